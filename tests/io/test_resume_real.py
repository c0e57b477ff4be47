"""Resuming the real simulation: stopped, killed, extended or damaged, the frames have the same bits as in one go."""

import os
import random
import signal
import subprocess
import sys

import pytest

import viscoil as vc
from resume_kit import CHILD, contents
from viscoil.errors import RunFolderError
from viscoil.io.execute import Progress, execute
from viscoil.io.run import Run

FRAMES = 8
# Everything that has a state of its own: emission, removal, a moving solid, boundary samples, two materials.
BUSY = """\
title = "busy"
spacing = 0.04
[time]
frames = 8
frame_time = 0.02
steps_per_frame = 3
[output]
checkpoint_every = 3
[solver]
method = "pbf"
[[fluid]]
material = "water"
shape = { type = "box", size = [0.4, 0.3, 0.3], position = [0.25, 0.2, 0.2] }
[[emitter]]
material = "honey"
shape = { type = "sphere", radius = 0.08 }
position = [0.7, 0.8, 0.2]
direction = [0.0, -1.0, 0.0]
speed = 1.5
[[sink]]
shape = { type = "box", size = [0.2, 0.3, 0.4], position = [0.95, 0.1, 0.2] }
[[solid]]
name = "tank"
container = true
shape = { type = "box", size = [1.0, 2.0, 0.4], position = [0.5, 1.0, 0.2] }
[[solid]]
name = "ball"
boundary = "particles"
shape = { type = "sphere", radius = 0.1, position = [0.6, 0.15, 0.2] }
motion = [{ time = 0.0, position = [0.0, 0.0, 0.0] }, { time = 0.16, position = [-0.1, 0.1, 0.0] }]
"""


def marks(run: Run) -> dict[int, int]:
    return {index: run.frame_path(index).stat().st_mtime_ns for index in run.frames}


@pytest.fixture(scope="module")
def scene_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "busy.toml"
    path.write_text(BUSY)
    return path


@pytest.fixture(scope="module")
def whole(scene_file, tmp_path_factory) -> Run:
    """The run left alone."""
    scene = vc.load(scene_file)
    run = Run.create(tmp_path_factory.mktemp("whole") / "run", scene)
    outcome = execute(vc.Simulation(scene, device="cpu"), run)
    assert outcome.status == "finished" and run.frames == list(range(FRAMES + 1))
    counts = run.metrics()["particles"]
    assert counts[-1] > counts[0], "the emitter works"
    return run


class StopAt(Progress):
    def __init__(self, index: int) -> None:
        self.index = index

    def frame(self, frame, metrics):
        if frame.index == self.index:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("stop_at", [0, 3, 5])
def test_stopped_and_resumed(stop_at, whole, scene_file, tmp_path):
    scene = vc.load(scene_file)
    run = Run.create(tmp_path / "run", scene)
    assert execute(vc.Simulation(scene, device="cpu"), run, progress=StopAt(stop_at)).status == "interrupted"
    before = marks(run)
    again = Run.open(run.path)
    outcome = execute(vc.Simulation(again.scene(), device="cpu"), again)
    assert outcome.resumed_from == stop_at + 1
    assert contents(run) == contents(whole)
    assert {index: when for index, when in marks(run).items() if index in before} == before
    assert run.checkpoint_path(FRAMES).read_bytes() == whole.checkpoint_path(FRAMES).read_bytes()
    mine, theirs = run.metrics(), whole.metrics()
    for name in theirs:
        if not name.startswith("seconds"):
            assert mine[name].tolist() == theirs[name].tolist(), name


def test_extended(whole, scene_file, tmp_path):
    scene = vc.load(scene_file, {"time.frames": 4})
    run = Run.create(tmp_path / "run", scene)
    execute(vc.Simulation(scene, device="cpu"), run)
    assert run.frames[-1] == 4
    longer = vc.load(run.path / "scene.toml", {"time.frames": FRAMES})
    execute(vc.Simulation(longer, device="cpu"), Run.open(run.path), FRAMES)
    assert contents(run) == contents(whole)


def test_damaged_checkpoint_costs_only_time(whole, scene_file, tmp_path):
    scene = vc.load(scene_file)
    run = Run.create(tmp_path / "run", scene)
    execute(vc.Simulation(scene, device="cpu"), run)
    before = marks(run)
    path = run.checkpoint_path(FRAMES)
    path.write_bytes(path.read_bytes()[:-7])
    outcome = execute(vc.Simulation(scene, device="cpu"), Run.open(run.path))
    assert outcome.resumed_from == 6 and marks(run) == before and contents(run) == contents(whole)


def test_another_scene_is_refused(whole, scene_file):
    other = vc.load(scene_file, {"gravity": [0.0, -1.6, 0.0]})
    with pytest.raises(RunFolderError, match="another scene"):
        execute(vc.Simulation(other, device="cpu"), Run.open(whole.path))


def test_killed_at_random_moments(whole, scene_file, tmp_path):
    """kill -9 from outside, some time after a random frame; then once more to the end."""
    folder, dice, before = tmp_path / "run", random.Random(5), {}
    command = [sys.executable, "-c", CHILD, str(scene_file), str(folder)]
    for lines in (2, 4):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for _ in range(lines):
            assert child.stdout.readline(), "the child ended by itself"
        try:
            child.wait(timeout=dice.uniform(0.0, 0.08))
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()
        run = Run.open(folder)
        after = marks(run)
        assert {index: after.get(index) for index in before} == before, "finished frames were touched"
        before = after
    assert before, "something was finished before the kills"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert contents(Run.open(folder)) == contents(whole)
    assert {index: when for index, when in marks(run).items() if index in before} == before
    assert Run.open(folder).status == "finished"
