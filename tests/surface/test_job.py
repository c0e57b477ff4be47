"""All frames of a run: in parallel, resumable, and nothing lost when a worker dies or somebody presses Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from bodies import block, frame_of

from viscoil.cli import main
from viscoil.errors import RunFolderError, SceneError
from viscoil.io.run import Run
from viscoil.surface import job, store

FRAMES = 6


def make_run(path, count=5, frames=FRAMES, pause=0) -> Run:
    with Run.create(path, f'title = "blocks"\nspacing = 1.0\n[time]\nframes = {frames}\n') as run:
        for index in range(frames):
            frame = frame_of(block((count + index, count, count), 0.2, seed=index))
            frame.index, frame.time = index, index / 10
            run.write_frame(frame)
            run.write_metrics({"frame": index, "seconds": 1.0})
    return run


@pytest.fixture
def run(tmp_path) -> Run:
    return make_run(tmp_path / "run")


def test_all_frames_in_two_processes(run):
    said = []
    outcome = job.surface_run(run, workers=2, progress=lambda *answer: said.append(answer), quality="live")
    assert outcome.made == list(range(FRAMES)) and not outcome.kept and not outcome.failed and outcome.workers == 2
    assert [done for _, done, _ in said] == list(range(1, FRAMES + 1)) and {total for *_, total in said} == {FRAMES}
    for index in range(FRAMES):
        mesh = store.read(store.path(run, index))
        assert mesh.index == index and mesh.particle_volume == len(run.frame(index))
        assert outcome.rows[index] == store.row(mesh)
    assert np.array_equal(run.metrics()["vertices"], [outcome.rows[i]["vertices"] for i in range(FRAMES)])
    again = job.surface_run(run, quality="live")
    assert again.kept == list(range(FRAMES)) and not again.made and again.rows == outcome.rows
    assert sorted(file.name for file in store.folder(run).iterdir())[0] == "metrics.csv"  # no lock, nothing half written


def test_only_what_is_missing_or_different_is_made(run):
    job.surface_run(run, frames=[1, 2, 3], workers=1, quality="live")
    store.path(run, 2).write_bytes(b"damaged")
    outcome = job.surface_run(run, frames=[1, 2, 3, 4], workers=1, quality="live")
    assert outcome.made == [2, 4] and outcome.kept == [1, 3]
    assert job.surface_run(run, frames=[1], workers=1, quality="live", smoothing=2).made == [1]
    assert job.surface_run(run, frames=[3], workers=1, quality="live", overwrite=True).made == [3]


def kill_once(monkeypatch, doomed, times=1):
    """Kills the worker that was just given frame ``doomed``."""
    asked, ask = [], job.Worker.ask

    def killing(self, frame):
        asked.append(frame)
        if frame == doomed and asked.count(doomed) <= times:
            os.kill(self._process.pid, signal.SIGKILL)
        return ask(self, frame)

    monkeypatch.setattr(job.Worker, "ask", killing)
    return asked


def test_a_worker_that_dies_costs_nothing(run, monkeypatch):
    asked = kill_once(monkeypatch, doomed=1)
    outcome = job.surface_run(run, workers=2, quality="live")
    assert outcome.made == list(range(FRAMES)) and not outcome.failed
    assert asked[-1] == 1 and asked.count(1) == 2  # once more, at the end, alone


def test_a_frame_that_kills_its_worker_is_reported_and_the_others_made(run, monkeypatch):
    kill_once(monkeypatch, doomed=1, times=2)
    outcome = job.surface_run(run, workers=2, quality="live")
    assert outcome.made == [0, 2, 3, 4, 5] and list(outcome.failed) == [1]
    assert "died twice" in outcome.failed[1] and "killed by SIGKILL (out of memory?)" in outcome.failed[1]


def test_a_damaged_frame_fails_alone(run, capsys):
    run.frame_path(3).write_bytes(b"nonsense")
    assert main(["surface", str(run.path), "--quality", "live", "--workers", "1"]) == 1
    said = capsys.readouterr()
    assert "frame 3 has no surface" in said.err and "is damaged" in said.err and "1 failed" in said.out
    assert store.indices(run) == [0, 1, 2, 4, 5]
    assert main(["surface", str(run.path), "--quality", "live", "--frames", "3"]) == 1
    assert capsys.readouterr().err.endswith("error: no surface could be made.\n")


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(tmp_path):
    run = make_run(tmp_path / "run", count=9, frames=40)
    command = [sys.executable, "-m", "viscoil", "surface", str(run.path), "--workers", "2"]
    # A shell that starts tests in the background lets them ignore Ctrl-C, and children would inherit that.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(store.indices(run)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err, (out, err)
    assert "the same command goes on" in err
    done = store.indices(run)
    assert 3 <= len(done) < 40
    assert not [file for file in store.folder(run).iterdir() if file.name.endswith(".part") or file.name == "lock"]
    for index in done:
        assert store.read(store.path(run, index)).index == index
    outcome = job.surface_run(run, frames=[*done, 39], workers=1)
    assert outcome.kept == done and outcome.made == [39]


def test_one_job_at_a_time(run):
    with store.Index(run), pytest.raises(RunFolderError, match="is being written by"):
        job.surface_run(run)


def test_workers_share_the_memory_and_the_cores(run, monkeypatch):
    monkeypatch.setattr(job, "cores", lambda: 8)
    monkeypatch.setattr("viscoil.scene.size.available_memory", lambda: int(40e9))
    options = job.settings()
    assert job.default_workers(run, [0, 1], options) == 8
    monkeypatch.setattr("viscoil.scene.size.available_memory", lambda: int(0.7e9))
    assert job.default_workers(run, [0, 1], options) == 2
    monkeypatch.setattr("viscoil.scene.size.available_memory", lambda: 1000)
    assert job.default_workers(run, [0, 1], options) == 1
    assert job._environment(3)["RAYON_NUM_THREADS"] == "2" and job._environment(3)["VISCOIL_DEVICE"] == "cpu"


def test_without_the_library_the_command_names_what_to_install(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pysplashsurf", None)
    assert main(["surface", str(run.path)]) == 2
    assert 'pip install ".[surface]"' in capsys.readouterr().err


def test_wrong_wishes(run, tmp_path):
    with pytest.raises(SceneError, match="workers: expected a whole number, at least 1; got 0"):
        job.surface_run(run, workers=0)
    with pytest.raises(SceneError, match='no option "smooth"'):
        job.surface_run(run, smooth=3)
    with (
        Run.create(tmp_path / "empty", 'title = "empty"\n') as empty,
        pytest.raises(RunFolderError, match="has no frames yet"),
    ):
        job.surface_run(empty)


# ---- the command ----------------------------------------------------------------------------------------------------
def test_the_command_says_what_it_did(run, capsys):
    assert main(["surface", str(run.path), "--frames", "-2:", "--quality", "live", "--smoothing", "3"]) == 0
    said = capsys.readouterr()
    assert "surface 2/2  frame" in said.err and "vertices  volume 1.0" in said.err
    assert "2 surfaces made in" in said.out and "mesh volume / particle volume 1.0" in said.out
    assert str(store.folder(run) / "surface.vtkhdf.series") in said.out
    assert store.header(store.path(run, 5))["options"]["smoothing"] == 3
    assert main(["surface", str(run.path), "--frames", "4", "--quality", "live", "--smoothing", "3"]) == 0
    assert "0 surfaces made" in (said := capsys.readouterr().out) and "1 were there" in said
    assert main(["info", str(run.path)]) == 0
    assert "volume_ratio" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--frames", "12"], "there is no frame 12; there are 6 frames from 0 to 5"),
        (["--quality", "fine"], 'quality "fine" is unknown.'),
        (["--cube", "0"], "cube is 0.0; expected a number of spacings from 0.05 to 2"),
        (["--smoothin", "3"], "Did you mean --smoothing?"),
    ],
)
def test_the_command_explains_itself(run, arguments, words, capsys):
    assert main(["surface", str(run.path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_help_has_examples(capsys):
    assert main(["surface", "--help"]) == 0
    assert "Examples:\n  viscoil surface runs/dam_break-1\n" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "  surface: Compute the surface" in capsys.readouterr().out
