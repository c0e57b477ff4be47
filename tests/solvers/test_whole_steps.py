"""Steps as one graph, as GPUs run them, give the bits of steps in stages, and so do all steps of a frame as one launch."""

import numpy as np
import pytest

import kit  # noqa: F401  (starts the backend)
from body_kit import FreeBodies
from viscoil import native
from viscoil.bench import iisph, pvfs
from viscoil.bench.cases import CASES as LOADS
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


def after(scene, precise, together=False):
    """Where particles are after two frames, how fast they are, what is told about it, and the launches. ``together``: all steps
    of a frame are one of them, as on GPUs, or as few as can be."""
    sim = Simulation(scene, "cpu")
    sim.world.stages.precise = precise
    launches = []
    step = sim.solver.step
    sim.solver.step = lambda world, dt, *number: (launches.append(number), step(world, dt, *number))
    if together:
        sim._ahead = sim._idle_steps
    sim.advance_frame()
    sim.advance_frame()
    frame = sim.frame()
    # What remains of a frame is divided anew after every launch, which may round otherwise.
    told = {name: value for name, value in sim.metrics().items() if not name.startswith(("seconds", "dt", "limited_by"))}
    return frame["position"], frame["velocity"], told, launches


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
    "pbf": lambda: LOADS["pbf"].scene(1000, {"iterations": 3}),
    "dcpbd": lambda: LOADS["dcpbd"].scene(700, {"velocity_iterations": 5, "iterations": 4}),
    "pvfs": lambda: pvfs.scene(BLOCK, "jacobi"),
    "iisph without bonds": lambda: iisph.scene(DROP, "none"),
    "iisph between samples": lambda: thick(BALL, "springs_plastic"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_graph_is_the_stages(name):
    staged = after(CASES[name](), True)
    assert np.abs(staged[1]).max() > 0 and staged[2]["iterations"] > 0
    whole, together = after(CASES[name](), False), after(CASES[name](), False, together=True)
    for way in (whole, together):
        assert np.array_equal(way[0], staged[0]) and np.array_equal(way[1], staged[1])
        assert way[2] == pytest.approx(staged[2], rel=1e-5, abs=1e-6)  # sums go by memory, which is sorted between launches
    # In PVFS the first step of a frame looks for the ends of springs and is one more; rows that are too short repeat a frame.
    frames = sum(bool(number) for number in together[3])
    assert len(whole[3]) == len(staged[3]) >= 4
    assert 2 <= frames <= 3 and len(together[3]) <= (2 if name == "pvfs" else 1) * frames


def test_thick_fluid_takes_several_passes():
    sim = Simulation(thick(BALL, "springs_plastic"), "cpu")
    assert sim.solver._passes(iisph.STEP)[0] > 1
