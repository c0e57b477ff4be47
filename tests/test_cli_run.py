"""`viscoil run` and the commands around it, with a simulation that costs nothing in place of the real one."""

import json
import os
import shlex
import signal
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from viscoil.cli import main, show
from viscoil.errors import SimulationFailed
from viscoil.io.frame import Frame


class Drift:
    """Eight particles that move by one metre per frame; ``accident`` happens before that frame is handed out."""

    accident: tuple[int, object] | None = None
    particles = 8

    def __init__(self, scene, device="auto", threads=None, callback=None):
        self.scene, self.device, self.threads = scene, device, threads
        self.frame_index, self.notes = 0, ["pbf: viscosity = 0.001 Pa s has no effect"]

    def frame(self) -> Frame:
        corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float32)
        position = 0.02 * corners + np.float32(self.frame_index)
        return Frame(
            self.frame_index, self.frame_index * 0.016, 4 * self.frame_index,
            {"position": position, "velocity": np.zeros((8, 3), np.float32), "id": np.arange(8, dtype=np.int32),
             "material": np.zeros(8, np.int32)},
            spacing=0.02, materials=[{"name": "water", "colour": [0.2, 0.5, 0.8], "density": 998.0}],
        )  # fmt: skip

    def frames(self, count=None):
        first = self.frame_index + 1 if self.frame_index else 0
        for index in range(first, count + 1):
            if self.accident and index == self.accident[0]:
                self.accident[1]()
            self.frame_index = index
            yield self.frame()

    def metrics(self):
        return {"frame": self.frame_index, "time": self.frame_index * 0.016, "density_mean": 1.02, "particles": 8}

    def state(self):
        return {"frame": self.frame_index}

    def restore(self, state):
        self.frame_index = int(state["frame"])


@pytest.fixture(autouse=True)
def fake(monkeypatch, tmp_path):
    """The fake simulation in an empty working directory."""
    module = types.ModuleType("viscoil.simulate")
    module.Simulation = Drift
    monkeypatch.setitem(sys.modules, "viscoil.simulate", module)
    monkeypatch.setattr(Drift, "accident", None)
    monkeypatch.chdir(tmp_path)


def test_run_says_where_everything_is_and_everything_is_there(capsys):
    assert main(["run", "dam_break", "--frames", "3"]) == 0
    out = capsys.readouterr().out
    assert "finished: 3 frames" in out
    memory, *places = out.splitlines()[1:]
    assert memory.startswith("memory") and memory.endswith("B per particle")
    for line in places:
        assert Path(line.split(maxsplit=1)[1]).is_file(), line
    assert sorted(os.listdir("runs/dam_break-1/frames"))[:4] == [f"frame_0000{i}.vtkhdf" for i in range(4)]


LADDER = """
spacing = 0.1
picture = { quality = "paper" }
time = { frames = 3, steps_per_frame = 4 }
[[fluid]]
material = "water"
shape = { type = "box", size = [1, 1, 1] }
[profiles.paper]
spacing = 0.05
time.steps_per_frame = 8
"""


def test_run_says_what_the_gallery_shows_and_what_to_do_next(capsys, monkeypatch):
    clock = iter(range(0, 10_000, 10))  # s
    monkeypatch.setattr("viscoil.cli.progress.time.perf_counter", lambda: float(next(clock)))
    Path("my ladder.toml").write_text(LADDER)
    assert main(["run", "my ladder.toml"]) == 0
    err = capsys.readouterr().err
    note = "this is the quick size, about 1,000 particles; the picture in the gallery is made with --set quality=paper: about "
    assert note + "8,200 particles, about 16 times the work" in err
    next_ = dict(line.split("  ", 1) for line in err.split("next:\n")[1].splitlines())
    assert next_["picture"].strip().startswith("viscoil render runs/my_ladder-1 --fast")
    assert next_["live"].strip() == "viscoil studio 'my ladder.toml'"
    # The fake took 10 s for each frame of 8 particles and 4 steps; the first is not counted.
    seconds = 8000 * 24 * 10 / 32
    assert next_["larger"].strip() == f"viscoil run 'my ladder.toml' --set quality=paper   (about {show.about(seconds)} here)"
    for command in ("numbers", "film"):
        assert main(shlex.split(next_[command])[1:]) == 0, command


def test_what_was_set_stays_in_what_is_said_next(capsys):
    assert main(["run", "coiling", "--frames", "1", "--set", "gravity=[0,-1,0]", "-o", "slow"]) == 0
    err = capsys.readouterr().err
    assert "live     viscoil studio slow/scene.toml" in err
    assert "the picture in the gallery" not in err and "larger" not in err


def test_estimates_are_told_as_words():
    told = [show.about(seconds) for seconds in (0.314, 38.2, 99, 100, 380, 5662, 7200)]
    assert told == ["0.31 s", "38 s", "99 s", "2 min", "6 min", "1 h 34 min", "2 h 0 min"]


def test_runs_are_numbered(capsys):
    for number in (1, 2):
        assert main(["run", "dam_break", "--frames", "1"]) == 0
        assert Path(f"runs/dam_break-{number}/run.json").is_file()


def test_progress_is_one_plain_line_per_frame_on_stderr(capsys):
    main(["run", "dam_break", "--frames", "2"])
    err = capsys.readouterr().err
    lines = [line for line in err.splitlines() if line.startswith("frame ")]
    assert [line.split()[1] for line in lines] == ["0/2", "1/2", "2/2"]
    assert "8 particles" in lines[1] and "steps/s" in lines[1] and "ETA 0:00" in lines[1]
    assert "density error +2.00 %" in lines[1]
    assert "note: pbf: viscosity = 0.001 Pa s has no effect" in err
    assert "\x1b" not in err


def test_progress_bar_at_a_terminal(capsys, monkeypatch):
    from viscoil.cli import progress

    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    assert main(["run", "dam_break", "--frames", "2"]) == 0
    err = capsys.readouterr().err
    assert "frame 2/2" in err and "8 particles" in err


def test_overrides_reach_the_scene_as_run(capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out", "--set", "fluid.0.material=honey", "title=Sweet"])
    text = Path("out/scene.toml").read_text()
    assert 'material = "honey"' in text and 'title = "Sweet"' in text and "frames = 1" in text


def test_an_existing_run_is_neither_touched_nor_lost(capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out"])
    capsys.readouterr()
    assert main(["run", "dam_break", "--frames", "1", "-o", "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["run", "dam_break", "--frames", "1", "-o", "out", "--overwrite"]) == 0


def test_ctrl_c_saves_says_how_to_go_on_and_going_on_works(capsys, monkeypatch):
    monkeypatch.setattr(Drift, "accident", (3, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert main(["run", "dam_break", "--frames", "6", "-o", "out"]) == 130
    out = capsys.readouterr().out
    assert "stopped by the user after frame 3 of 6" in out
    command = out.split("Go on with: viscoil ")[1].splitlines()[0]
    monkeypatch.setattr(Drift, "accident", None)
    assert main(command.split()) == 0
    assert "finished: 6 frames" in capsys.readouterr().out


@pytest.mark.parametrize("again", [["out"], ["out/scene.toml", "-o", "out"], ["dam_break", "-o", "out"]])
def test_a_finished_run_can_be_extended(again, capsys):
    main(["run", "dam_break", "--frames", "2", "-o", "out"])
    before = Path("out/frames/frame_00001.vtkhdf").stat().st_mtime_ns
    assert main(["run", *again, "--resume", "--frames", "4"]) == 0
    assert Path("out/frames/frame_00004.vtkhdf").is_file()
    assert Path("out/frames/frame_00001.vtkhdf").stat().st_mtime_ns == before


def test_resume_without_a_folder_takes_the_newest_run(capsys):
    main(["run", "dam_break", "--frames", "1"])
    main(["run", "dam_break", "--frames", "1"])
    assert main(["run", "dam_break", "--resume", "--frames", "2"]) == 0
    assert Path("runs/dam_break-2/frames/frame_00002.vtkhdf").is_file()
    assert not Path("runs/dam_break-3").exists()


def test_another_scene_cannot_resume_a_run(capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out"])
    assert main(["run", "dam_break", "-o", "out", "--resume", "--set", "spacing=0.02"]) == 2
    assert "another scene" in capsys.readouterr().err


def test_a_run_folder_as_scene_needs_resume(capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out"])
    assert main(["run", "out"]) == 2
    assert "add --resume" in capsys.readouterr().err


def test_a_run_folder_called_like_a_scene_does_not_hide_the_scene(capsys):
    assert main(["run", "dam_break", "--frames", "1", "-o", "dam_break"]) == 0
    assert main(["run", "dam_break", "--frames", "1"]) == 0
    assert Path("runs/dam_break-1/run.json").is_file()
    assert main(["run", "dam_break", "--frames", "2", "--resume"]) == 0
    assert Path("dam_break/frames/frame_00002.vtkhdf").is_file()


def test_a_failed_simulation_exits_with_1_and_one_message(capsys, monkeypatch):
    def explode():
        raise SimulationFailed("particle 7 left for infinity at 0.03 s; the time step is probably too long", time=0.03)

    monkeypatch.setattr(Drift, "accident", (2, explode))
    assert main(["run", "dam_break", "--frames", "4", "-o", "out"]) == 1
    err = capsys.readouterr().err
    assert "error: particle 7 left for infinity" in err and "Traceback" not in err
    assert Path("out/frames/frame_00001.vtkhdf").is_file()


def test_info_describes_the_run(capsys):
    main(["run", "dam_break", "--frames", "2", "-o", "out"])
    capsys.readouterr()
    assert main(["info", "out"]) == 0
    out = capsys.readouterr().out
    lines = dict(line.strip().split("  ", 1) for line in out.splitlines() if line.startswith("  "))
    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        "scene", "method", "state", "measures of frame 2, at 32 ms"
    ]
    assert lines["status"].strip() == "finished" and "0 to 2 on disk (32 ms), of 2" in lines["frames"]
    assert "Dam break" in lines["title"] and "pbf" in lines["solver"] and lines["materials"].strip() == "water"
    assert lines["density_mean"].strip() == "1.02 of rest" and lines["particles"].strip() == "8"


def test_a_run_says_what_did_not_act_while_it_runs_at_its_end_in_its_log_and_in_info(capsys, monkeypatch):
    assert main(["run", "dam_break", "--frames", "12", "-o", "fine"]) == 0
    captured = capsys.readouterr()
    assert "compressed" not in captured.out + captured.err + Path("fine/log.txt").read_text()
    own = Drift.metrics
    monkeypatch.setattr(Drift, "metrics", lambda self: own(self) | {"compression": 0.04})
    assert main(["run", "dam_break", "--frames", "12", "-o", "out"]) == 0
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("frame ")]
    assert ["compressed by 4 %" in line for line in lines] == [False] * 10 + [True] * 3
    said = "for {} frames in a row, by 4 % at the most. What helps: solver.iterations = 8 (now 4)"
    assert captured.err.count("note: the fluid was compressed by more than 3 %") == 1 and said.format(10) in captured.err
    assert said.format(12) in captured.out and said.format(12) in Path("out/log.txt").read_text()
    assert main(["info", "out"]) == 0
    assert said.format(12) in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "suffix"), [("vtk", ".vtp"), ("ply", ".ply"), ("npz", ".npz")])
def test_export_prints_its_folder(kind, suffix, capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out"])
    capsys.readouterr()
    assert main(["export", "out", "--to", kind]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder == Path("out/export") / kind
    assert len(list(folder.glob(f"*{suffix}"))) == 2


def test_unknown_export_format(capsys):
    main(["run", "dam_break", "--frames", "1", "-o", "out"])
    assert main(["export", "out", "--to", "vtp"]) == 2
    err = capsys.readouterr().err
    assert '"vtp"' in err and 'Did you mean "vtk"?' in err


def test_plot_writes_a_picture(capsys):
    main(["run", "dam_break", "--frames", "3", "-o", "out"])
    capsys.readouterr()
    assert main(["plot", "out"]) == 0
    assert Path(capsys.readouterr().out.strip()).read_bytes().startswith(b"\x89PNG")


def test_demo_leaves_a_picture_and_a_run(capsys):
    for _ in range(2):  # a second demo replaces the first
        assert main(["demo", "--frames", "2"]) == 0
        out = capsys.readouterr().out
        assert "demo/dam_break.png" in out and "demo/run" in out
        assert Path("demo/dam_break.png").read_bytes().startswith(b"\x89PNG")
        assert "demo/dam_break.mp4" in out and Path("demo/dam_break.mp4").stat().st_size > 1000
        assert Path("demo/run/frames/frame_00002.vtkhdf").is_file()


# --- validate and bench, with cases and measurements in place of the real ones ---------------------------------------
@dataclass
class Result:
    case: str
    measured: float
    reference: float
    tolerance: float
    ok: bool


@pytest.fixture
def validation(monkeypatch):
    import viscoil

    module = types.ModuleType("viscoil.validation")
    module.CASES = {"free_fall": None, "column": None}
    module.called = []

    def run(names, quick, device, plots):
        module.called.append((names, quick, device, plots))
        return [Result(name, 1.0, 1.1, 0.2, name != "column") for name in names]

    module.run = run
    monkeypatch.setitem(sys.modules, "viscoil.validation", module)
    monkeypatch.setattr(viscoil, "validation", module, raising=False)
    return module


def test_validate_prints_a_table_and_exits_with_1_when_a_case_fails(validation, capsys):
    assert main(["validate", "--device", "cpu", "--quick"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["case", "measured", "reference", "tolerance", "result"]
    assert lines[1].split() == ["free_fall", "1", "1.1", "0.2", "ok"]
    assert lines[2].split()[-1] == "FAILED"
    assert validation.called == [(["free_fall", "column"], True, "cpu", None)]


def test_validate_one_case_as_json(validation, capsys):
    assert main(["validate", "free_fall", "--device", "cpu", "--json", "--plots", "p"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["measured"] == 1.0
    assert validation.called == [(["free_fall"], False, "cpu", Path("p"))]


def test_validate_unknown_case(validation, capsys):
    assert main(["validate", "free_fal"]) == 2
    assert 'no validation case "free_fal". Did you mean "free_fall"?' in capsys.readouterr().err


def test_duration():
    assert [show.duration(s) for s in (0, 65, 3600 * 2 + 190)] == ["0:00", "1:05", "2:03:10"]


def test_the_real_thing_from_scene_to_export(tmp_path):
    """No fakes: a few hundred particles through the installed command."""
    (tmp_path / "tiny.toml").write_text(
        'title = "Tiny"\nspacing = "5 cm"\n[time]\nframes = 2\n[[fluid]]\nmaterial = "water"\n'
        'shape = { type = "sphere", radius = 0.2, position = [0, 0.3, 0] }\n[[solid]]\nshape = { type = "plane" }\n'
    )

    def viscoil(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "viscoil", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    run = viscoil("run", "tiny.toml", "--device", "cpu", "--threads", "2", "--set", "solver.iterations=2")
    assert run.returncode == 0, run.stderr
    assert "finished: 2 frames" in run.stdout and "frame 2/2" in run.stderr
    folder = tmp_path / "runs" / "tiny-1"
    assert json.loads((folder / "run.json").read_text())["device"] == "cpu"
    assert "iterations = 2" in (folder / "scene.toml").read_text()
    export = viscoil("export", str(folder), "--to", "npz")
    assert export.returncode == 0, export.stderr
    with np.load(sorted((folder / "export" / "npz").glob("*.npz"))[-1]) as arrays:
        position = arrays["position"]
    assert len(position) > 200 and np.isfinite(position).all() and position[:, 1].min() > 0
