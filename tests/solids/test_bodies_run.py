"""Scenes with bodies as users run them: same bits on any number of threads and after a restart, and one push per step."""

import os
import subprocess
import sys

import numpy as np
import pytest

import viscoil as vc
from resume_kit import CHILD, contents, left_alone
from viscoil.io.execute import execute
from viscoil.io.run import Run
from viscoil.solids.coupling import BodySet

METHODS = ["pbf", "pvfs", "iisph", "dcpbd"]
# A light box, a heavy ball that falls into the fluid and on the box, a paddle on a hinge.
SCENE = """\
title = "busy bodies"
spacing = 0.025
[time]
frames = 8
frame_time = 0.02
steps_per_frame = 3
[output]
checkpoint_every = 3
[solver]
METHOD
[material.water]
density = 1000
[[fluid]]
material = "water"
shape = { type = "box", size = [0.3, 0.15, 0.2], position = [0.0, 0.075, 0.0] }
[[solid]]
name = "tank"
container = true
shape = { type = "box", size = [0.3, 0.6, 0.2], position = [0.0, 0.3, 0.0] }
[[solid]]
name = "box"
friction = 0.2
shape = { type = "box", size = [0.08, 0.06, 0.08], position = [-0.05, 0.14, 0.0], rotation = [10, 0, 20] }
body = { density = 400 }
[[solid]]
name = "ball"
shape = { type = "sphere", radius = 0.03, position = [-0.03, 0.22, 0.02] }
body = { density = 3000, velocity = [0.0, -1.0, 0.0] }
[[solid]]
name = "paddle"
shape = { type = "box", size = [0.02, 0.1, 0.1], position = [0.1, 0.15, 0.0] }
body = { density = 700, joint = "hinge", axis = [0, 0, 1], anchor = [0.0, 0.05, 0.0] }
"""


def written(method):
    """The scene as text; what the last step leaves to the next is more with momentum."""
    lines = [f'method = "{method}"', *(['acceleration = "momentum"'] if method in ("pbf", "dcpbd") else [])]
    return SCENE.replace("METHOD", "\n".join(lines))


@pytest.fixture(scope="module", params=METHODS)
def whole(request, tmp_path_factory):
    """(scene file, the run left alone)."""
    return left_alone(tmp_path_factory.mktemp("bodies"), written(request.param))


def poses(run, index):
    """Poses of the solids of a frame, by name."""
    return {solid["name"]: np.array(solid["pose"]) for solid in run.frame(index).solids}


def test_everything_moves(whole):
    first, last = poses(whole[1], 0), poses(whole[1], 8)
    assert np.array_equal(first["tank"], last["tank"])
    assert last["ball"][1, 3] < first["ball"][1, 3] - 0.02 and np.abs(last["box"] - first["box"]).max() > 0.005
    anchor = np.array([0.0, 0.05, 0.0, 1.0])
    assert np.abs(last["paddle"] - first["paddle"]).max() > 1e-3, "the hinge turns"
    assert np.allclose(last["paddle"] @ anchor, first["paddle"] @ anchor, atol=1e-4), "about its anchor"


def test_stopped_and_resumed(whole, tmp_path):
    path, run = whole
    scene = vc.load(path, {"time.frames": 4})
    part = Run.create(tmp_path / "run", scene)
    execute(vc.Simulation(scene, device="cpu"), part)
    longer = vc.load(part.path / "scene.toml", {"time.frames": 8})
    execute(vc.Simulation(longer, device="cpu"), Run.open(part.path), 8)
    assert contents(part) == contents(run)
    assert poses(part, 8)["ball"].tolist() == poses(run, 8)["ball"].tolist()


def test_threads_do_not_matter(whole, tmp_path):
    path, run = whole
    command = [sys.executable, "-c", CHILD, str(path), str(tmp_path / "run")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "VISCOIL_THREADS": "1"})
    assert contents(Run.open(tmp_path / "run")) == contents(run)


def state(sim):
    fluid = np.concatenate([sim.world.get("position").ravel(), sim.world.get("velocity").ravel()])
    return fluid, sim.world.solids.bodies.rigid.state()


@pytest.mark.parametrize("method", METHODS)
def test_a_repeated_step_pushes_once(method, tmp_path, monkeypatch):
    """A step that explodes is taken back, bodies included: two half steps instead are what two half steps always are."""
    path = tmp_path / "scene.toml"
    path.write_text(written(method))
    halves = vc.Simulation(vc.load(path, {"time.steps_per_frame": 12}), device="cpu")
    retried = vc.Simulation(vc.load(path, {"time.steps_per_frame": 6}), device="cpu")
    truth, tries = retried.world.read_status, []

    def explode_first():
        tries.append(1)
        found = truth()
        return (0, 0.0) if len(tries) % 2 else found

    monkeypatch.setattr(retried.world, "read_status", explode_first)
    for sim in (halves, retried):
        sim.advance_frame()
    assert len(tries) >= 12 and retried.step_count == halves.step_count == 12
    (places, bodies), (expected, moved) = state(retried), state(halves)
    assert np.array_equal(places, expected) and np.allclose(bodies, moved, rtol=0, atol=1e-12)


def test_without_bodies_nothing_is_exchanged(tmp_path, monkeypatch):
    """No poses up, no impulses down, no rigid world made."""
    path = tmp_path / "scene.toml"
    lines = written("pbf").splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("body")))

    def refuse(*_):
        raise AssertionError("nobody is there")

    for name in ("__init__", "predict", "commit"):
        monkeypatch.setattr(BodySet, name, refuse)
    sim = vc.Simulation(vc.load(path), device="cpu")
    sim.step()
    monkeypatch.setattr(type(sim.world.solids), "place", refuse)
    sim.step()
    assert not sim.world.solids.coupled and not sim.world.solids.moving
