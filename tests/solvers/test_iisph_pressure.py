"""Steps of IISPH against the same steps in NumPy over all pairs, and what must hold whatever the numbers are."""

import numpy as np
import pytest

from iisph_kit import DT, PLATE, D, H, cloud, made, noise, press, pressure, scene, setting, state, walls
from iisph_reference import (
    NONE,
    Pressure,
    Setting,
    matching_by_region,
    matching_goals,
    normalised,
    pair_correction,
    pairs_within,
    step,
)
from viscoil.simulate import Simulation

RISING = PLATE | {"motion": [{"time": 0.0, "position": (0, 0, 0)}, {"time": 1.0, "position": (0.0, 0.5, 0.2)}],
                  "interpolation": "linear"}  # fmt: skip


def inwards(x):
    """Velocities [m/s] that press a body together, as something around it would: added before every step."""
    return (-3.0 * (x - x.mean(0))).astype(np.float32).astype(float)


def both(x, v, steps, solver=None, correction=None, moving=(0.0, 0.0, 0.0), tolerance=0.0, pressed=False, **changes):
    """After every step: the simulation, and (x, v, p, iterations) of the reference."""
    sim = made(x, v, {**(solver or {}), "tolerance": tolerance}, **changes)
    s = setting(sim, tolerance=tolerance)
    p = np.zeros(len(x))
    for _ in range(steps):
        if pressed:
            push = inwards(x)
            v = v + push
            press(sim, push)
        solid = walls(sim, moving) if sim.world.boundary_count else NONE
        x, v, p, made_iterations = step(x, v, p, s, correction, solid)
        sim.step()
        yield sim, x, v, p, made_iterations


def squeezed(seed=1):
    """A shaken block, a little too dense: places and velocities."""
    x = cloud(jitter=0.05, squeezed=0.99, seed=seed)
    return x, noise(x, 0.02)


@pytest.mark.parametrize("iterations", [2, 3, 12])
@pytest.mark.parametrize("solid", [None, PLATE, RISING], ids=["free", "wall", "moving wall"])
def test_a_step_is_the_published_one(iterations, solid):
    """Density, a_ii, relaxed Jacobi with warm start, forces, Euler-Cromer: positions, velocities, pressures of six steps."""
    x, v = squeezed()
    moving = (0.0, 0.5, 0.2) if solid is RISING else (0.0, 0.0, 0.0)
    more = {"solid": [solid]} if solid else {}
    settings, under = {"iterations": iterations}, []
    for sim, place, now, p, _ in both(x, v, 6, settings, None, moving, pressed=True, gravity=(0, -9.81, 0), **more):
        under.append((p > 0).sum())
        assert np.abs(pressure(sim) - p).max() < 1e-4 * p.max()
        ours = state(sim)
        assert np.abs(ours[1] - now).max() < 2e-5 and np.abs(ours[0] - place).max() < 2e-7
    assert np.sum(under) > 60 and np.abs(now - v).max() > 0.2, "there was pressure to compare"


def test_no_pressure_pulls():
    for sim, *_ in both(*squeezed(), 6, {"iterations": 20}, pressed=True):
        assert (pressure(sim) >= 0).all() and (pressure(sim) == 0).any() and (pressure(sim) > 0).any()


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("scheme", ["springs", "position_based", "normalised"])
def test_pairs_pull_as_published(scheme, two_sided):
    """Whole steps with bonds: correction, symmetric XSPH, pressure."""
    x = cloud()
    v = noise(x, 2.0)
    bonds = pairs_within(x, H)
    solver = {"correction": "springs" if scheme == "springs" else "position_based", "two_sided": two_sided, "xsph": 0.1}
    if scheme == "springs":
        solver["spring_stiffness"] = 700.0
    else:
        solver |= {"rigidity": 0.1, "normalise": scheme == "normalised"}

    def correction(now):
        strength = 700.0 * DT / setting(sim).mass if scheme == "springs" else 0.1 / (2 * DT)
        factor = normalised(bonds, len(x)) if scheme == "normalised" else 1.0
        return pair_correction(now, bonds, strength * factor, two_sided)

    sim = made(x, v, solver)
    i, j, rest = sim.solver.bonds(sim.world)
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == set(zip(*(a.tolist() for a in bonds[:2]), strict=True))
    wanted = dict(zip(zip(*bonds[:2], strict=True), bonds[2], strict=True))
    assert all(abs(wanted[a, b] - r) < 1e-6 for a, b, r in zip(i, j, rest, strict=True))
    for there, place, now, _, _ in both(x, v, 4, solver, correction):
        assert np.abs(state(there)[1] - now).max() < 1e-3 and np.abs(state(there)[0] - place).max() < 3e-6
    assert np.abs(now - v).max() > 0.5, "bonds and pressure did something"


@pytest.mark.parametrize("goal", ["lattice", "cluster"])
def test_shapes_pull_as_published(goal):
    """As printed, and region by region, which keeps momentum (conserve)."""
    x0 = cloud(squeezed=1.0)
    bonds = pairs_within(x0, H)
    v = noise(x0, 2.0)
    for conserve in (False, True):
        solver = {"correction": "shape_matching", "rigidity": 0.3, "goal": goal, "conserve": conserve}

        def correction(now, conserve=conserve):
            by_region = matching_by_region(now, x0, bonds, goal == "lattice")
            return 0.3 / DT * (by_region if conserve else matching_goals(now, x0, bonds, goal == "lattice") - now)

        for sim, place, now, _, _ in both(x0, v, 3, solver, correction):
            assert np.abs(state(sim)[1] - now).max() < 5e-4 and np.abs(state(sim)[0] - place).max() < 2e-6
        assert (np.abs(now.mean(0) - v.mean(0)).max() < 1e-9) == conserve


def test_lattice_neighbours_two_spacings_away_are_bonded():
    """H = 2 dx: the six that lie exactly on the edge belong to the 32 the formulas count on, whatever rounding says."""
    axis = np.arange(7) * D
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3).astype(np.float32).astype(float)
    sim = made(x, solver={"correction": "springs", "spring_stiffness": 100.0})
    i, j, _ = sim.solver.bonds(sim.world)
    members = np.bincount(np.concatenate([i, j]), minlength=len(x))
    inside = (np.abs(x - 3 * D) < 1.5 * D).all(1)
    assert (members[inside] == 32).all(), np.unique(members[inside], return_counts=True)


def test_iterations_end_when_they_should():
    """After as many iterations as the reference makes, to one more or less, which rounding may decide."""
    x, v = squeezed()
    counts = []
    for tolerance in (1e-2, 1e-3, 1e-4, 1e-5):
        for sim, _, _, _, wanted in both(x, v, 1, {"iterations": 500}, tolerance=tolerance, pressed=True):
            counts.append(sim.metrics()["iterations"])
            assert abs(counts[-1] - wanted) <= 1 and counts[-1] >= 2, (tolerance, counts, wanted)
            assert sim.metrics()["density_error"] <= tolerance
    assert counts[0] < counts[1] < counts[2] < counts[3]
    sim = made(x, v, {"iterations": 7, "tolerance": 0.0})
    for _ in range(3):
        sim.step()
        assert sim.metrics()["iterations"] == 7


@pytest.mark.parametrize("support", [1.8, 2.5, 3.0])
def test_other_supports_converge(support):
    """Larger kernels couple more particles: relaxation must be weaker for them, or the iterations swing for ever."""
    sim = made(*squeezed(), {"iterations": 400, "tolerance": 1e-4, "support": support})
    for _ in range(4):
        press(sim, inwards(state(sim)[0]))
        sim.step()
        assert sim.metrics()["iterations"] < 150 and sim.metrics()["density_error"] <= 1e-4


def test_warm_start_saves_iterations():
    """The same accuracy in fewer iterations, from half the pressures of the step before: water at rest in a box."""
    used = {}
    tank = {"container": True, "shape": {"type": "box", "size": (5 * D, 12 * D, 5 * D), "position": (2.5 * D, 6 * D, 2.5 * D)}}
    for warm in (0.0, 0.5):
        solver = {"iterations": 500, "tolerance": 1e-4, "warm_start": warm}
        sim = Simulation(scene((5, 10, 5), 40, solver=solver, gravity=(0, -9.81, 0), solid=[tank]), "cpu")
        counts = []
        for _ in range(30):
            sim.step()
            counts.append(sim.metrics()["iterations"])
        used[warm] = np.mean(counts[10:])
    assert used[0.5] < 0.85 * used[0.0], used


CORRECTIONS = {
    "none": {},
    "springs": {"correction": "springs", "spring_stiffness": 800.0},
    "position_based": {"correction": "position_based", "rigidity": 0.3},
    "shape_matching": {"correction": "shape_matching", "rigidity": 0.3},
    "cluster": {"correction": "shape_matching", "rigidity": 0.3, "goal": "cluster"},
}


@pytest.mark.parametrize("name", CORRECTIONS)
def test_momentum_is_kept(name):
    x = cloud()
    v = noise(x, 0.5) + np.array([1.0, -0.5, 0.2])
    sim = made(x, v, {**CORRECTIONS[name], "xsph": 0.1})
    before = state(sim)[1].mean(0)
    for _ in range(20):
        sim.step()
    after = state(sim)[1]
    assert np.abs(after - v).max() > 0.1
    assert np.abs(after.mean(0) - before).max() < 2e-6, after.mean(0) - before


@pytest.mark.parametrize("name", CORRECTIONS)
def test_falls_freely(name):
    """A lattice at rest knows nothing of pressure, bonds and viscosity: all fall alike, v = k Δt g."""
    x = cloud((5, 5, 5), 0.0, 1.0)
    sim = made(x, None, {**CORRECTIONS[name], "xsph": 0.1}, gravity=(0, -9.81, 0))
    for _ in range(10):
        sim.step()
    place, v = state(sim)
    assert np.abs(v - np.array([0, -9.81 * 10 * DT, 0])).max() < 2e-5
    assert np.abs(place - x - np.array([0, -9.81 * DT**2 * 55, 0])).max() < 1e-6


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_lattice_at_rest_stays(name):
    x = cloud((6, 6, 6), 0.0, 1.0)
    sim = made(x, None, {**CORRECTIONS[name], "xsph": 0.1, "tolerance": 1e-3, "iterations": 50})
    for _ in range(20):
        sim.step()
    place, v = state(sim)
    assert np.abs(v).max() < 1e-4 and np.abs(place - x).max() < 1e-6


@pytest.mark.parametrize("name", CORRECTIONS)
def test_turning_is_nobodys_business(name):
    """A stiff turn by an angle no correction may notice: what it adds to velocities is nothing."""
    x0 = cloud((5, 5, 5), 0.1, 1.05)
    axis, angle = np.array([1.0, 2.0, 2.0]) / 3, 1.1
    c, s = np.cos(angle), np.sin(angle)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    turn = c * np.eye(3) + s * cross + (1 - c) * np.outer(axis, axis)
    sim = made(x0, None, CORRECTIONS[name])
    world = sim.world
    world.set("position", world.get("position") @ turn.T.astype(np.float32))
    world.fit_cells()
    sim.step()
    quiet = made(x0 @ turn.T, None, {})
    quiet.step()
    assert np.abs(state(sim)[1] - state(quiet)[1]).max() < 1e-3  # of float32 places: 1e-8 m/Δt · k


def test_two_in_one_place_do_no_harm():
    """Kernels without a slope at r = 0 never part them; nothing becomes infinite, and twice the same comes out."""
    x = cloud((4, 4, 4))
    x[20] = x[21]
    runs = []
    for _ in range(2):
        sim = made(x, None, CORRECTIONS["springs"])
        for _ in range(5):
            sim.step()
        runs.append(state(sim)[0])
    assert np.isfinite(runs[0]).all() and np.array_equal(*runs)


def test_reference_knows_the_kernel_we_use():
    """Density metric and reference agree on a shaken cloud beside a wall."""
    x = cloud() + 0.02
    sim = made(x, None, {}, solid=[PLATE])
    s: Setting = setting(sim)
    sim.advance_frame()
    seen = walls(sim)
    reference = Pressure(state(sim)[0], s.mass, s.rho0, s.h, s.dt, seen).rho
    assert np.abs(sim.frame(["density"])["density"] / reference - 1).max() < 1e-4
