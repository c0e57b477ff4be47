"""Passes of Position Based Fluids written by hand, against the kernels they stand in for."""

import hashlib

import numpy as np
import pytest

from kit import box_scene
from native.iteration_kit import by_kernels, by_passes
from viscoil import backend, native
from viscoil.native.fluid import FluidPasses
from viscoil.simulate import Simulation

CASES = {
    "compression only": {},
    "as published": {"unilateral": False, "kernels": "paper"},
    "strong repulsion": {"unilateral": False, "artificial_pressure": 0.1, "pressure_power": 3},
    "wide supports": {"support": 3.1},
    "narrow supports": {"support": 1.55},
}


def shaken(edges=(13, 9, 11), jitter=0.4, **solver):
    """A tank of disturbed fluid, half a step on its way, its lists found."""
    scene = box_scene(0.02, edges, solver={"method": "pbf", **solver})
    scene.fluid[0].jitter = jitter
    sim = Simulation(type(scene)(**scene.to_dict()), device="cpu")
    rng = np.random.default_rng(2)
    sim.world.set("velocity", rng.normal(0, 0.3, (sim.world.count, 3)))
    return sim


def difference(a, b):
    """The largest difference relative to the largest value."""
    return np.abs(a - b).max() / np.abs(b).max()


def assert_same_iteration(sim):
    """λ, errors, distances and displacements of one more iteration are the kernels' but for rounding."""
    n = sim.world.count
    before = sim.solver.scratch.predicted.to_numpy()[:n]
    expected = by_kernels(sim)
    assert np.array_equal(sim.solver.scratch.predicted.to_numpy()[:n], before)
    found = by_passes(sim, FluidPasses())
    for ours, theirs in zip(found[:3], expected[:3], strict=True):
        near = np.abs(theirs) < 1e6
        assert difference(ours[near], theirs[near]) < 3e-5  # C is a small difference of sums near 1
    assert np.abs(found[3] - expected[3]).max() < 4 * np.spacing(np.float32(np.abs(before).max()))
    return found[3] - before


@pytest.mark.parametrize("case", CASES)
def test_multipliers_and_corrections(case, instructions):
    sim = shaken(**CASES[case])
    sim.step()  # walls are known, and predicted positions
    assert np.abs(assert_same_iteration(sim)).max() > 1e-4


@pytest.mark.parametrize("by", [by_kernels, lambda sim: by_passes(sim, FluidPasses())], ids=["kernels", "passes"])
def test_a_density_that_is_lost_stays_lost(by, instructions):
    """The clamp of what only corrects compression would make nothing to correct of it."""
    sim = shaken()
    sim.step()
    s = sim.solver.scratch
    beside = int(np.argmin(s.clear.to_numpy()[: sim.world.count]))
    wall = s.wall.to_numpy()
    wall[beside] = np.nan
    s.wall.from_numpy(wall)
    multiplier = by(sim)[0]
    assert np.isnan(multiplier[beside]) and np.isfinite(np.delete(multiplier, beside)).all()


def test_coincident_particles_part_the_same_way(instructions):
    """Whose places are the same, or nearly, is sent apart in the direction the kernels would choose."""
    sim = shaken(jitter=0.2, unilateral=False)
    sim.step()
    world, s = sim.world, sim.solver.scratch
    x = world.get("position")
    x[1::40] = x[::40][: len(x[1::40])]
    x[2::40] = x[::40][: len(x[2::40])] + np.float32(1e-9)
    world.set("position", x)
    world.neighbors.find_all(world.particles.position, world.particles, world.count)
    both = s.predicted.to_numpy()
    both[: world.count] = x
    s.predicted.from_numpy(both)
    moved = assert_same_iteration(sim)
    assert difference(moved[1], moved[0]) > 0.1


STEPS = CASES | {
    "iterations that end early": {"tolerance": 0.02, "iterations": 30},
    "vortices": {"vorticity": 0.1, "xsph": 0.3},
    "no smoothing, no walls": {"xsph": 0.0, "wall_density": False},
}


@pytest.mark.parametrize("case", STEPS)
def test_whole_steps(case):
    """A step leaves the same places and velocities but for rounding, after the same number of iterations."""
    results = []
    for compiled in (True, False):
        with native.use(compiled):
            sim = shaken(**STEPS[case])
            sim.step()
            used = sim.solver.iterations_used()
            ids = np.argsort(sim.world.get("id"))
            results.append((used, sim.world.get("position")[ids], sim.world.get("velocity")[ids], sim._largest_speed))
    (used, x, v, fastest), (expected_used, expected_x, expected_v, expected_fastest) = results
    assert used == expected_used
    assert np.abs(x - expected_x).max() < 2e-6  # [m], of 0.02 between particles
    assert difference(v, expected_v) < 1e-4
    assert fastest == pytest.approx(expected_fastest, rel=1e-4)


def test_what_is_remembered(instructions):
    """Multipliers of the steps before, and what of them lasts, after a step from the same memory."""
    memory = []
    for compiled in (True, False):
        with native.use(compiled):
            sim = shaken(jitter=0.1)
            kept = np.random.default_rng(3).uniform(0, 2, (sim.world.count, 2)).astype(np.float32)
            sim.world.carried["pressure"].set(kept[sim.world.get("id")])
            sim.step()
            ids = np.argsort(sim.world.get("id"))
            memory.append(sim.world.carried["pressure"].get(sim.world.count)[ids])
    found, expected = memory
    assert np.allclose(found[:, 1], np.minimum(kept[:, 0], 1.3 * kept[:, 1] + 0.02 * kept[:, 0]), rtol=1e-5)
    assert difference(found[:, 1], expected[:, 1]) < 1e-6 and difference(found[:, 0], expected[:, 0]) < 1e-4
    assert (found[:, 0] > 0).mean() > 0.1


def test_those_led_by_a_nozzle_are_left_where_they_are(instructions):
    sim = shaken()
    w = np.ones(sim.world.count, np.float32)
    w[::7] = -1
    sim.world.set("inverse_mass", w)
    sim.world.learn_uniform()
    sim.step()
    assert sim.world.uniform
    led = sim.world.get("inverse_mass") < 0
    before = sim.solver.scratch.predicted.to_numpy()[: sim.world.count]
    multiplier, _error, _clear, x = by_passes(sim, FluidPasses())
    assert not multiplier[led].any() and np.array_equal(x[led], before[led]) and (x != before)[~led].any()


def digest(threads):
    native._load()[0].viscoil_set_threads(threads)
    sim = shaken(edges=(24, 20, 22), unilateral=False)
    for _ in range(3):
        sim.step()
    order = np.argsort(sim.world.get("id"))
    return hashlib.sha256(sim.world.get("position")[order].tobytes() + sim.world.get("velocity")[order].tobytes()).hexdigest()


def test_bits_do_not_depend_on_threads():
    one = digest(1)
    assert digest(2) == one and digest(5) == one
    native._load()[0].viscoil_set_threads(min(backend.current().threads, backend.cores()))


def test_left_to_the_kernels_where_something_else_is_asked(monkeypatch):
    """Several densities: neighbours' volumes and masses have to be read."""
    calls, density = [], FluidPasses.density
    monkeypatch.setattr(FluidPasses, "density", lambda *given, **more: (calls.append(1), density(*given, **more))[1])
    sim = shaken()
    sim.step()
    assert calls, "one density: compiled"
    calls.clear()
    sim.world.forget_uniform()
    sim.step()
    assert not calls, "the kernels know more"
