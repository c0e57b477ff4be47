"""Steps as one graph, as GPUs run them, give the bits of steps in stages."""

import numpy as np
import pytest

import kit  # noqa: F401  (starts the backend)
from body_kit import FreeBodies
from viscoil import native
from viscoil.bench import iisph, pvfs
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
BALL = iisph.Load("ball", 3.5, 10, 0.0, 9.81, None)
DROP = iisph.Load("drop", 3.5, 0, 0.0, 9.81, None)
BLOCK = pvfs.Load("block", (6, 5, 6), True, None, None)


@pytest.fixture(autouse=True)
def kernels_only():
    """Stages of a CPU may use compiled passes, which round otherwise: graphs are made of kernels and compared with those."""
    with native.use(False):
        yield


def after(scene, precise):
    """Where particles are after a frame and a half, how fast they are, and what is told about it."""
    sim = Simulation(scene, "cpu")
    sim.world.stages.precise = precise
    sim.advance_frame()
    for _ in range(5):
        sim.step()
    frame = sim.frame()
    return frame["position"], frame["velocity"], sim.solver.iterations_used()


def thick(load, correction):
    """A fluid so viscous that velocities are smoothed several times per step."""
    scene = iisph.scene(load, correction)
    scene.material["ball"].solvent_viscosity = 300.0
    return scene


def moved_box(method):
    """A cube of fluid that flies into a light box; positions, velocities, and where the box went."""
    scene = Scene.model_validate({
        "spacing": D, "gravity": (0, 0, 0), "solver": {"method": method, "relaxation": "jacobi" if method == "pvfs" else 0.5},
        "time": {"frames": 9, "frame_time": 1 / 60, "steps_per_frame": 8}, "material": {"water": {"density": 1000}},
        "fluid": [{"shape": {"type": "box", "size": (6 * D,) * 3}, "material": "water", "velocity": (1.0, 0.0, 0.0)}],
        "solid": [{"shape": {"type": "box", "size": (6 * D,) * 3, "position": (6.5 * D, 0, 0)}}],
    })  # fmt: skip
    found = []
    for precise in (False, True):
        sim = Simulation(scene, "cpu")
        sim.world.stages.precise = precise
        mass = 100 * (6 * D) ** 3
        bodies = FreeBodies([0], [mass], [np.full(3, mass * 6 * D * D)], [scene.solid[0].shape.position])
        sim.world.solids.couple(bodies, D, 1000 * D**3, 0.0)
        sim.advance_frame()
        frame = sim.frame()
        found.append((frame["position"], frame["velocity"], bodies.position.copy()))
    return found


@pytest.mark.parametrize("method", ["pvfs", "iisph"])
def test_one_graph_moves_bodies_alike(method):
    whole, staged = moved_box(method)
    assert all(np.array_equal(a, b) for a, b in zip(whole, staged, strict=True))
    assert whole[2][0, 0] > 6.51 * D


CASES = {
    "pvfs": lambda: pvfs.scene(BLOCK, "jacobi"),
    "iisph without bonds": lambda: iisph.scene(DROP, "none"),
    "iisph between samples": lambda: thick(BALL, "springs_plastic"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_graph_is_the_stages(name):
    whole, staged = after(CASES[name](), False), after(CASES[name](), True)
    assert np.array_equal(whole[0], staged[0]) and np.array_equal(whole[1], staged[1])
    assert whole[2] == staged[2] > 0
    assert np.abs(whole[1]).max() > 0


def test_thick_fluid_takes_several_passes():
    sim = Simulation(thick(BALL, "springs_plastic"), "cpu")
    assert sim.solver._passes(iisph.STEP)[0] > 1
