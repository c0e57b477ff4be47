"""A run with springs, killed at any moment and resumed, has the same bits; so have runs with other numbers of threads."""

import os
import subprocess
import sys

import pytest

from resume_kit import CHILD, contents, left_alone
from viscoil.io.run import Run

# Springs that flow, are made, frozen and cleared, new particles, a moving solid that sticks, two materials.
SCENE = """\
title = "busy springs"
spacing = 0.019
[time]
frames = 10
frame_time = 0.03333333333
steps_per_frame = 1
[output]
checkpoint_every = 3
[solver]
method = "pvfs"
relaxation = "RELAXATION"
linear_viscosity = 3.0
events = [{ time = 0.1, do = "freeze" }, { time = 0.25, do = "clear" }]
[material.clay]
density = 1200
modulus = 300.0
relaxation_time = 0.5
yield_strain = 0.05
changes = [{ time = 0.05 }, { time = 0.2, modulus = 100.0, relaxation_time = 0.1 }]
[material.jelly]
density = 1000
modulus = 200.0
relaxation_time = inf
[[fluid]]
material = "clay"
jitter = 0.1
shape = { type = "box", size = [0.16, 0.12, 0.12], position = [0.0, 0.1, 0.0] }
[[emitter]]
material = "jelly"
shape = { type = "sphere", radius = 0.04 }
position = [0.0, 0.4, 0.0]
speed = 1.0
[[sink]]
shape = { type = "box", size = [0.05, 0.05, 1.0], position = [0.1, 0.03, 0.0] }
start = 0.2
[[solid]]
name = "floor"
friction = 0.3
stick_distance = 0.015
stick_stiffness = 300.0
shape = { type = "plane" }
[[solid]]
name = "ball"
shape = { type = "sphere", radius = 0.04, position = [0.2, 0.1, 0.0] }
motion = [{ time = 0.0, position = [0.0, 0.0, 0.0] }, { time = 0.3, position = [-0.15, 0.0, 0.0] }]
"""


@pytest.fixture(scope="module", params=["coloured", "jacobi", "sequential"])
def whole(request, tmp_path_factory):
    """(scene file, the run left alone)."""
    path, run = left_alone(tmp_path_factory.mktemp("springs"), SCENE.replace("RELAXATION", request.param))
    counts = run.metrics()["particles"]
    assert counts[-1] > counts[0], "the emitter works"
    return path, run


def child(path, folder, threads=2):
    command = [sys.executable, "-c", CHILD, str(path), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "VISCOIL_THREADS": str(threads)})


def test_killed_and_resumed(whole, tmp_path):
    path, run = whole
    for lines in (3, 5):
        process = child(path, tmp_path / "run")
        for _ in range(lines):
            assert process.stdout.readline(), "the child ended by itself"
        process.kill()
        process.communicate()
    process = child(path, tmp_path / "run")
    process.communicate()
    assert process.returncode == 0 and contents(Run.open(tmp_path / "run")) == contents(run)
    assert Run.open(tmp_path / "run").checkpoint_path(10).read_bytes() == run.checkpoint_path(10).read_bytes()


def test_threads_do_not_matter(whole, tmp_path):
    """Four and the two of this process; one is tried with bodies (solids/test_bodies_run.py): each is compiled for anew."""
    path, run = whole
    process = child(path, tmp_path / "run", threads=4)
    process.communicate()
    assert process.returncode == 0 and contents(Run.open(tmp_path / "run")) == contents(run)
