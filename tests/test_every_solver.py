"""What every registered solver must do. Walks the registry: a new method is tested by being registered."""

import inspect

import numpy as np
import pytest

from kit import box_scene
from viscoil import solvers
from viscoil.material import Material
from viscoil.simulate import Simulation
from viscoil.solvers import SOLVERS
from viscoil.solvers.solver import SolverParams

ALL = sorted(SOLVERS)
# What makes a method viscous where it is neither XSPH nor the material's viscosity: key, value without, value with.
STRENGTH = {"peer_pbf": ("shear", 1.0, 0.0), "viscous_pbf": ("stiffness", 0.0, 1.0)}
# Many density iterations turn the 1 % by which a box presses its fluid at the start into speed (pbf with 20 does so as well).
GENTLE = {"dcpbd_jacobi": {"iterations": 4}}
# Clavet's densities do not see walls, so fluid crowds in a small box; all others are as dense as their lattice.
DENSEST = {"pvfs": 1.35}


@pytest.fixture(scope="module", params=ALL)
def ran(request):
    """A small block that fell into its box, a few frames on, at a step any method can take."""
    scene = box_scene(0.05, (6, 6, 6), solver={"method": request.param, **GENTLE.get(request.param, {})})
    scene.time.frame_time, scene.time.steps_per_frame = 0.004, 4
    sim = Simulation(scene, "cpu")
    return request.param, sim, list(sim.frames(8)), sim.state()


@pytest.mark.parametrize("name", ALL)
def test_is_described(name):
    info, params = SOLVERS[name], solvers.params_class(name)
    assert len(info.summary) > 10 and issubclass(params, SolverParams)
    assert params().method == name
    source = "".join(inspect.getsource(kind) for kind in params.__mro__ if issubclass(kind, SolverParams))
    for key in params.model_fields:
        if key != "method":
            after = source.split(f"    {key}:", 1)[1].split("\n", 2)
            assert after[1].strip().startswith('"""'), f"{name}.{key} needs a line that says what it is"
    made = solvers.solver_class(name)
    assert made.honours <= set(Material.model_fields)
    assert callable(made.step) and callable(made.resize) and made.step.__doc__


def test_steps_without_losing_anybody(ran):
    name, sim, frames, _ = ran
    assert len(frames) == 9
    for frame in frames:
        assert len(frame) == 216 and np.array_equal(frame["id"], np.arange(216))
        for field in frame.names:
            assert np.isfinite(frame[field]).all(), field
    x = frames[-1]["position"]
    assert x.min() > 0 and x[:, [0, 2]].max() < 0.3
    assert sim.metrics()["iterations"] >= 4 and sim.metrics()["steps"] == 4
    assert 0.9 < sim.metrics()["density_mean"] < DENSEST.get(name, 1.1)


def test_falls_like_a_stone(ran):
    """Free fall is the integrator's own closed form: v_k = k Δt g, x_k = x_0 + Δt² g k(k+1)/2."""
    name, _sim, _, _ = ran
    scene = box_scene(0.05, (4, 4, 4), solid=[], solver={"method": name})
    if hasattr(scene.solver, "xsph"):
        scene.solver.xsph = 0.0
    scene.time.frame_time, scene.time.steps_per_frame = 0.01, 10
    block = Simulation(scene, "cpu")
    first = block.frame()["position"]
    block.world.set("volume", 1e-12)  # no neighbours to speak of
    if name == "pvfs":  # which does not know volumes: no neighbours at all
        first = first * np.float32(10.0)
        block.world.set("position", first[np.argsort(np.argsort(block.world.get("id")))])
        block.world.fit_cells()
    *_, frame = block.frames(3)
    fallen = frame["position"] - first
    assert np.allclose(fallen[:, 1], -9.81 * 0.001**2 * 30 * 31 / 2, rtol=1e-3)
    assert np.allclose(frame["velocity"], (0, -9.81 * 0.03, 0), atol=1e-3)
    assert np.abs(fallen[:, [0, 2]]).max() < 1e-5


def test_conserves_momentum(ran):
    name, *_ = ran
    scene = box_scene(0.05, (6, 6, 6), solid=[], gravity=(0, 0, 0), solver={"method": name})
    scene.fluid[0].jitter, scene.fluid[0].velocity = 0.2, (1.0, -0.5, 0.3)
    scene.time.frame_time, scene.time.steps_per_frame = 0.004, 4
    sim = Simulation(scene, "cpu")
    first = [sim.metrics()[f"momentum_{a}"] for a in "xyz"]
    for _ in sim.frames(4):
        pass
    scale = 216 * 0.05**3 * 1000 * 1.2
    assert np.allclose([sim.metrics()[f"momentum_{a}"] for a in "xyz"], first, atol=1e-5 * scale)


def test_settings_are_honoured_between_steps(ran):
    """What is written into the scene's solver counts from the next step on, exactly as when written at the start."""
    _name, sim, _, state = ran
    sim.restore(state)
    if hasattr(sim.scene.solver, "tolerance"):
        sim.scene.solver.tolerance = 0.0
    for wanted in (3, 7):
        if not hasattr(sim.scene.solver, "iterations"):  # one relaxation per step: its steps are what can be asked for
            sim.scene.solver.substeps = 250 * wanted  # per 1/30 s, in frames of 4 ms
            sim.advance_frame()
            assert sim.metrics()["iterations"] == sim.metrics()["steps"] == 30 * wanted
            continue
        sim.scene.solver.iterations = wanted
        sim.advance_frame()
        assert sim.metrics()["iterations"] == 4 * wanted


def test_viscosity_parameter_damps(ran):
    name, sim, _, state = ran
    energies = []
    for c in (0.0, 0.5):
        sim.restore(state)
        noise = np.random.default_rng(0).normal(size=(sim.world.count, 3))
        sim.world.set("velocity", noise)
        if hasattr(sim.scene.solver, "xsph"):
            sim.scene.solver.xsph = c
        elif name in STRENGTH:
            key, without, with_it = STRENGTH[name]
            setattr(sim.scene.solver, key, with_it if c else without)
        else:
            sim.scene.material["water"] = Material(density=1000, viscosity=1e3 * c)
            sim.update()
        sim.advance_frame()
        energies.append(sim.metrics()["kinetic_energy"])
    assert energies[1] < 0.5 * energies[0]


def test_two_materials_and_growth(ran):
    """Emission of a heavier material grows the arrays of the solver too."""
    name, *_ = ran
    scene = box_scene(0.05, (4, 4, 4), solver={"method": name})
    scene.time.frame_time, scene.time.steps_per_frame = 0.004, 4
    scene.emitter = [
        {"material": "honey", "shape": {"type": "sphere", "radius": 0.1}, "position": (0.1, 0.35, 0.1), "speed": 3.0}
    ]
    sim = Simulation(type(scene)(**scene.to_dict()), "cpu")
    before = sim.world.capacity
    for frame in sim.frames(10):
        assert np.isfinite(frame["position"]).all()
    assert sim.world.capacity > before and len(frame) > 64
    assert set(frame["material"]) == {0, 1}
