"""The whole studio without a browser: its processes, what it saves, what it survives."""

import math
import os
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

from kit import box_scene
from viscoil.cli import main
from viscoil.io.run import Run
from viscoil.scene.load import load
from viscoil.scene.parts import Solid
from viscoil.studio import Studio

D = 0.05


def write_scene(folder, name="pool.toml", **changes):
    scene = box_scene(D, (8, 5, 5), title="Pool", **changes)
    scene.solid.append(Solid(name="ball", shape={"type": "sphere", "radius": 0.08, "position": (0.3, 0.4, 0.12)}))
    path = folder / name
    path.write_text(scene.to_toml())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


class Patient(Studio):
    """A studio whose kernels may have to be compiled first."""

    def wait(self, condition, timeout=240.0):
        return super().wait(condition, timeout)


@pytest.fixture(scope="module")
def running(folder):
    with Patient(port=0, device="cpu", output=folder / "saved") as studio:
        yield studio


@pytest.fixture
def studio(running, folder):
    """The studio with a fresh scene at its start."""
    before = running.status.scenes
    running.load(write_scene(folder))
    running.show("points")
    running.colour_by("material")
    running.wait(lambda s: s.scenes > before and s.state == "paused" and s.updates > 0 and not s.problem)
    return running


def saved(studio, ending):
    """Waits for a new file or folder and returns it."""
    known = len(studio.status.saved)
    return lambda: next(
        p for p in studio.wait(lambda s: [x for x in s.saved[known:] if ending in x]).saved[known:] if ending in p
    )


def test_it_plays_and_measures(studio):
    assert studio.status.title == "Pool" and studio.status.particles == 200
    assert repr(studio) == f'<Studio at {studio.url}: "Pool", 200 particles at 0 s, paused>'
    studio.play()
    status = studio.wait(lambda s: s.frame >= 3)
    assert status.state == "running" and status.metrics["kinetic_energy"] > 0 and status.device.startswith("cpu")
    studio.pause()
    studio.wait(lambda s: s.state == "paused")
    assert len(studio.history.rows) >= 3
    studio.reset()
    studio.wait(lambda s: s.time == 0.0 and s.updates > 0)


def test_surfaces_come_from_their_own_process(studio):
    made = studio.status.meshes
    studio.show("surface")
    studio.wait(lambda s: s.meshes > made)
    studio.colour_by("speed")
    studio.play()
    studio.wait(lambda s: s.meshes > made + 3)
    studio.surfaces._link.process.kill()
    studio.wait(lambda s: "surfaces ended unexpectedly" in s.problem)
    made = studio.status.meshes
    studio.wait(lambda s: s.meshes > made + 1)


def test_a_scene_that_cannot_be_is_said_and_the_old_one_stays(studio, folder):
    wrong = folder / "wrong.toml"
    wrong.write_text("spacing = -1\n")
    studio.load(wrong)
    assert "spacing" in studio.wait(lambda s: s.problem).problem
    studio.step()
    assert studio.wait(lambda s: s.step == 1).title == "Pool"
    wrong.write_text(write_scene(folder, "right.toml").read_text().replace("Pool", "Mended"))
    studio.reload()
    studio.wait(lambda s: s.title == "Mended" and not s.problem)
    studio.load_upload("x.toml", b"\xff\xfe")
    studio.wait(lambda s: "UTF-8" in s.problem)
    studio.colour_by("nonsense")
    studio.wait(lambda s: "nonsense" in s.problem)


def test_a_crash_is_said_and_reset_starts_again_with_all_changes(studio):
    studio.set("solver.xsph", 0.3)
    studio.play()
    studio.wait(lambda s: s.frame >= 1 and "xsph = 0.3" in studio.toml)
    os.kill(studio._engine.process.pid, signal.SIGKILL)
    status = studio.wait(lambda s: s.state == "ended")
    assert "signal 9" in status.problem and "Reset" in status.problem
    studio.reset()
    studio.wait(lambda s: s.state == "paused" and not s.problem)
    assert load_text(studio.toml).solver.xsph == 0.3
    studio.play()
    studio.wait(lambda s: s.frame >= 1)


def load_text(text):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "x.toml"
        path.write_text(text)
        return load(path)


def test_the_scene_is_saved_with_sliders_and_drags(studio):
    studio.set("gravity.strength", 3.0)
    studio.set_text("material.water.density = 1.2 g/cm3")
    studio.move("ball", (0.2, 0.45, 0.12))
    studio.play()
    studio.wait(lambda s: "1200" in studio.toml and load_text(studio.toml).solid[1].shape.position[0] == pytest.approx(0.2))
    path = saved(studio, ".toml")
    studio.save_scene()
    scene = load(path())
    assert scene.gravity == pytest.approx((0, -3, 0)) and scene.material["water"].density == 1200
    assert scene.solid[1].shape.position == pytest.approx((0.2, 0.45, 0.12))
    studio.set_text("just words")
    studio.wait(lambda s: "key = value" in s.problem)


def test_a_checkpoint_goes_on_in_the_command_line(studio):
    studio.step_frame()
    studio.wait(lambda s: s.frame == 1)
    path = saved(studio, "checkpoint")
    studio.save_checkpoint()
    folder = path()
    assert main(["run", folder, "--resume", "--frames", "3"]) == 0
    assert Run.open(folder).frames == [1, 2, 3]


def test_a_recording_becomes_a_page(studio):
    studio.toggle_recording()
    studio.wait(lambda s: s.recording is not None)
    studio.play()
    studio.wait(lambda s: (s.recording or 0) > 0.05)
    path = saved(studio, "playback")
    studio.toggle_recording()
    with open(path()) as file:
        assert "__VISER_EMBED_DATA__" in file.read()
    studio.wait(lambda s: s.recording is None)
    studio.pause()
    studio.wait(lambda s: s.state == "paused")
    studio.toggle_recording()
    studio.wait(lambda s: s.recording is not None)
    studio.load("no such scene")
    studio.wait(lambda s: "no scene called" in s.problem)


def test_a_scene_that_is_reset_before_it_is_seen_is_seen_all_the_same(studio, folder):
    studio.load(write_scene(folder, "other.toml"))
    studio.reset()
    scenes = studio.status.scenes
    studio.wait(lambda s: s.scenes >= scenes + 2 and s.updates > 0 and not studio._set_stage)
    assert len(studio.stage._things) == 2


def test_a_picture_without_a_browser(studio):
    from PIL import Image

    path = studio.save_picture()
    image = np.asarray(Image.open(path).convert("L"), float)
    assert image.std() > 5


def test_scripts_are_told_what_there_is(studio):
    studio.move("bal", (0, 0, 0))
    assert 'Did you mean "ball"' in studio.wait(lambda s: s.problem).problem


def test_a_page_without_a_size_is_not_given_a_view(studio):
    """Hidden windows and closed frames have none, and tell what a division by that gives."""
    assert studio._fit(1.5) is not None
    assert [studio._fit(aspect) for aspect in (0.0, math.inf, math.nan)] == [None] * 3


def test_the_legend_follows_what_a_material_is_made_of(studio):
    shown = lambda: studio.panel._legend.content  # noqa: E731
    studio.wait(lambda s: ">water</span>" in shown())
    studio.set("material.water.preset", "chocolate")
    studio.wait(lambda s: ">water: chocolate</span>" in shown())
    studio.reload()
    studio.wait(lambda s: ">water</span>" in shown())


# --- the command -----------------------------------------------------------------------------------------------------


def test_without_viser_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["studio", "dam_break", "--no-browser"]) == 2
    assert 'pip install ".[studio]"' in capsys.readouterr().err


def test_wrong_wishes_are_refused_before_anything_starts(capsys):
    assert main(["studio", "dam_brake", "--no-browser"]) == 2
    assert 'Did you mean "dam_break"' in capsys.readouterr().err
    assert main(["studio", "--no-browser", "--port", "99999"]) == 2
    assert "65535" in capsys.readouterr().err
    assert main(["studio", "--no-browser", "--threads", "0"]) == 2


def test_the_command_serves_warns_and_ends_cleanly(folder):
    """Listening for the whole network has to be asked for, and is said."""
    command = [sys.executable, "-m", "viscoil", "studio", str(write_scene(folder, "served.toml")), "--no-browser"]
    command += ["--port", "0", "--host", "0.0.0.0", "--device", "cpu", "-o", str(folder / "served")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        line = process.stdout.readline()
        url = line.split()[-1]
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200 and b"<html" in answer.read().lower()
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Anyone who can reach this computer" in errors and "Traceback" not in errors
    for _ in range(100):  # its children have gone with it
        if not os.path.exists("/proc") or not _members(process.pid):
            break
        time.sleep(0.1)
    assert not _members(process.pid)


def _members(group):
    """Processes of a session that still run."""
    found = []
    for entry in os.listdir("/proc") if os.path.exists("/proc") else []:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == group and fields[0] != "Z":
                found.append(int(entry))
    return found
