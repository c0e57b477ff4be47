"""Iterations with momentum: fewer of them for the same error, and nothing else changes."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.constraints.acceleration import LARGEST_SHARE, pace_of
from viscoil.errors import ViscoilError
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
STEP = 0.004


def left_of(stiffness, number, start=1.0):
    """p_N: what ``number`` iterations leave of the error of modes of stiffness κ/κ_max."""
    error, before = np.full_like(stiffness, start), np.full_like(stiffness, start)
    for k in range(1, number + 1):
        mu, omega = pace_of(float(k))
        error, before = error + mu * (error - before) - omega * stiffness * error, error
    return error


@pytest.mark.parametrize("number", [2, 3, 5, 8, 20, 50])
def test_slow_modes_fall_with_the_square_and_none_swings_too_far(number):
    slow = np.array([1e-6])
    assert 1 - left_of(slow, number)[0] == pytest.approx(number * (number + 1.5) / 2 * 1e-6, rel=1e-3)
    every = left_of(np.linspace(0, 1, 5001), number)
    assert every.min() > -1 / (3 + 4 * LARGEST_SHARE), "with half the last multipliers this would swing from step to step"
    assert every.max() <= 1


@pytest.mark.parametrize("share", [0.0, LARGEST_SHARE])
def test_errors_of_all_modes_die_out_from_step_to_step(share):
    """The analysis that ν and the share come from: z²(z − c) = g (2z − 1)(z − c) − c (1 − g) z² has no root outside 1."""
    for number in (2, 3, 4, 8, 16):
        for g in left_of(np.linspace(1e-3, 1, 200), number):
            rest = g * np.polymul([2, -1], [1, -share])
            polynomial = np.polysub(np.polymul([1, 0, 0], [1, -share]), np.polysub(rest, [share * (1 - g), 0, 0]))
            assert np.abs(np.roots(polynomial)).max() < 1 + 1e-3


def column(layers, viscosity=1e-3, **solver):
    """A column at rest, five wide, as frames of four steps."""
    wide, high = 5 * D, layers * D
    scene = {
        "spacing": D,
        "time": {"frames": 30, "frame_time": 4 * STEP, "steps_per_frame": 4},
        "solver": solver,
        "material": {"m": {"density": 1000, **({"viscosity": viscosity} if solver["method"] == "dcpbd" else {})}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": (wide, high, wide), "position": (0, high / 2, 0)}}],
        "solid": [{"container": True, "shape": {"type": "box", "size": (wide, 2 * high, wide), "position": (0, high, 0)}}],
    }
    sim = Simulation(Scene(**scene), "cpu")
    return [sim.metrics() for _ in sim.frames()]


def compression(rows):
    return np.mean([row["compression"] for row in rows[-8:]])


@pytest.mark.parametrize("method", ["pbf", "dcpbd"])
def test_a_column_is_compressed_less_by_as_many_iterations(method):
    given = {"method": method, "iterations": 8, "viscosity": 10.0}
    plain, cold, warm = column(20, **given, acceleration="none"), *(
        column(20, **given, acceleration="momentum", **more) for more in ({"warm_start": 0.0}, {})
    )
    assert compression(cold) < 0.5 * compression(plain)
    assert compression(warm) < 0.7 * compression(cold)
    potential = 9.81 * 10 * D * 1000 * D**3 * warm[-1]["particles"]
    assert warm[-1]["kinetic_energy"] < max(1e-3 * potential, 1.5 * plain[-1]["kinetic_energy"]), "rest stays rest"


def rebound(**solver):
    """Largest mean speed [m/s] upwards of a block that fills its tank's width and meets the floor at 1 m/s."""
    scene = box_scene(0.05, (8, 6, 8), solver=solver)
    scene.fluid[0].shape.position = (0.2, 0.151, 0.2)
    scene.fluid[0].velocity = (0.0, -1.0, 0.0)
    sim = Simulation(scene, "cpu")
    speeds = []
    for _ in range(30):
        sim.step()
        speeds.append(sim.world.get("velocity")[:, 1].mean())
    return max(speeds)


@pytest.mark.parametrize("method", ["pbf", "dcpbd"])
def test_a_blow_is_not_repeated(method):
    """A fluid that cannot be compressed does not jump. Half of an impact's multipliers in the next step made it 0.3 m/s."""
    given = {"method": method, "acceleration": "momentum"}
    assert rebound(**given, iterations=16) < 0.05
    assert rebound(**given, iterations=4) < 1.1 * rebound(**given, iterations=4, warm_start=0.0) < 0.25


def test_pressure_needs_fewer_iterations_to_the_same_tolerance():
    used = {}
    for way in ("none", "momentum"):
        rows = column(20, method="iisph", correction="none", tolerance=1e-4, iterations=300, acceleration=way)
        used[way] = sum(row["iterations"] for row in rows[10:])
        assert rows[-1]["density_error"] <= 1e-4
    assert used["momentum"] < 0.7 * used["none"]


@pytest.mark.parametrize("method", ["pbf", "dcpbd", "iisph"])
def test_momentum_of_the_fluid_is_untouched(method):
    """Two blocks fly into each other far from everything."""
    more = {"correction": "none"} if method == "iisph" else {}
    block = {"type": "box", "size": (6 * D,) * 3}
    scene = {
        "spacing": D, "gravity": (0, 0, 0), "time": {"frames": 8, "frame_time": 4 * STEP, "steps_per_frame": 4},
        "solver": {"method": method, "iterations": 6, **more},
        "fluid": [
            {"material": "water", "shape": block | {"position": (x, 0, 0)}, "velocity": (v, 0.1 * v, 0)}
            for x, v in ((-4 * D, 0.7), (4 * D, -1.0))
        ],
    }  # fmt: skip
    sim = Simulation(Scene(**scene), "cpu")
    totals = np.array([frame["velocity"].astype(float).sum(0) for frame in sim.frames()])
    assert np.abs(totals - totals[0]).max() < 2e-5 * 0.85 * len(sim.frame())


def test_where_momentum_is_not_meant_to_be():
    """Cohesion, the paper's kernels and single iterations go as published; more than half of the past is refused."""
    for keys in ({"unilateral": False}, {"kernels": "paper"}, {"iterations": 1}, {"acceleration": "none"}):
        scene = box_scene(D, (3, 3, 3), solver={"method": "pbf", **keys})
        assert not Simulation(scene, "cpu").solver.hurried
    assert Simulation(box_scene(D, (3, 3, 3), solver={"method": "pbf"}), "cpu").solver.hurried
    with pytest.raises((ViscoilError, ValueError)):
        Scene(spacing=D, solver={"method": "pbf", "warm_start": 0.6})
