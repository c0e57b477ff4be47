"""Velocity corrections of Takahashi et al. 2014 against NumPy, their conservation laws, and what they leave alone."""

import numpy as np
import pytest

from bond_kit import DT, MASS, Bench, D, H, Pairs, Shapes, cloud

PAIRS = ("springs", "position_based")
SCHEMES = (*PAIRS, "shape_matching")


def shaken(x, size=0.1, seed=0):
    return x + np.random.default_rng(seed).normal(size=x.shape) * size * D


def rotation(axis, angle):
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def same(dv, expected, most=1e-6):
    assert np.abs(dv - expected).max() < most * np.abs(expected).max()


def momenta(dv, x, m=1.0):
    """(linear, angular) momentum relative to the sum of sizes; positions about the centre."""
    p = np.broadcast_to(m, len(x))[:, None] * dv
    arm = x - x.mean(0)
    linear = np.linalg.norm(p.sum(0)) / np.linalg.norm(p, axis=1).sum()
    turning = np.cross(arm, p)
    return linear, np.linalg.norm(turning.sum(0)) / (np.linalg.norm(arm, axis=1) * np.linalg.norm(p, axis=1)).sum()


# --- against references ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", PAIRS)
@pytest.mark.parametrize("options", [{}, {"two_sided": True}, {"normalise": True}])
@pytest.mark.parametrize("mixed", [False, True])
def test_pairs_follow_the_paper(scheme, options, mixed):
    """One material and one mass, then two of each, weakened beforehand so that every particle has a stiffness of its own."""
    x = cloud()
    more, laws = {}, [{"weakening": 0.02, "lower": 0.5}]
    if mixed:
        material = (np.arange(len(x)) // 2) % 2
        more = {"material": material, "inverse_mass": np.where(material == 0, 1.0, 0.4)}
        laws.append({"weakening": 0.05, "stiffness": 0.07, "yielding": 0.04})
    bench, truth = Bench(x, scheme, *laws, **more, **options), Pairs(x, scheme, *laws, **more, **options)
    for step in range(4):
        now = shaken(x, seed=step)
        bench.move(now)
        same(bench.step(), truth.step(now))
        assert np.abs(bench.strength - truth.s).max() < 1e-6
    assert truth.s.std() > 0.005


@pytest.mark.parametrize("goal", ["lattice", "cluster"])
@pytest.mark.parametrize("conserve", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_shape_matching_follows_the_paper(goal, conserve, mixed):
    x = cloud()
    more, laws = {}, [{"weakening": 0.02, "lower": 0.5, "stiffness": 0.6}]
    if mixed:
        material = (np.arange(len(x)) // 2) % 2
        more = {"material": material, "inverse_mass": np.where(material == 0, 1.0, 0.4)}
        laws.append({"weakening": 0.05, "stiffness": 0.3, "yielding": 0.04})
    options = {"goal": goal, "conserve": conserve}
    bench, truth = Bench(x, "shape_matching", *laws, **more, **options), Shapes(x, *laws, **more, **options)
    for step in range(4):
        now = shaken(x, seed=step) @ rotation((1, 2, -1), 1.1 * step).T
        bench.move(now)
        same(bench.step(), truth.step(now), 3e-6)
        assert np.abs(bench.strength - truth.s).max() < 1e-6
    assert truth.s.std() > 0.001


def test_springs_and_positions_are_the_same_thing():
    """k_spr = k_pb m/(2 Δt²)."""
    x, k = cloud(), 0.1
    results = []
    for scheme, stiffness in (("springs", k * MASS / (2 * DT * DT)), ("position_based", k)):
        bench = Bench(x, scheme, {"stiffness": stiffness})
        bench.move(shaken(x))
        results.append(bench.step())
    same(*results)


def test_conserving_regions_are_the_printed_average_inside_a_body():
    x = 0.95 * cloud((11, 11, 11), 0.0)
    inside = (np.abs(x - x.mean(0)) < 1.1 * D).all(1)
    results = []
    for conserve in (True, False):
        bench = Bench(x, "shape_matching", {"stiffness": 0.5}, conserve=conserve)
        bench.move(shaken(x, 0.05))
        results.append(bench.step())
    same(results[0][inside], results[1][inside])
    assert np.abs(results[0] - results[1])[~inside].max() > 0.01 * np.abs(results[1]).max()


# --- conservation ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("masses", [False, True])
def test_no_net_impulse_and_no_net_torque(scheme, masses):
    """With surfaces, two materials, uneven masses, after splitting, merging and weakening; positions far from the origin."""
    x = cloud((7, 6, 5)) + np.array([1.0, 0.5, -0.7])
    material = (x[:, 0] > 1.0 + 3.5 * D).astype(int)
    w = np.where(material == 0, 1.0, 0.3) if masses else np.ones(len(x))
    law = {"merging": 0.8, "splitting": 0.4, "weakening": 0.05}
    bench = Bench(x, scheme, law, {**law, "stiffness": 0.05}, material=material, inverse_mass=w, normalise=True)
    for step in range(4):
        x = shaken(x, 0.12, step)
        bench.move(x)
        dv = bench.step()
        linear, angular = momenta(dv, np.asarray(x, np.float32).astype(float), 1 / w)
        assert linear < 1e-6 and angular < 1e-6, (linear, angular)


def test_a_region_alone_keeps_momentum_as_clusters_too():
    """The own region's goal moves one particle: its members pay, by mass. Linear momentum only; as printed not even that."""
    x = cloud()
    w = np.where(np.arange(len(x)) % 2, 1.0, 0.3)
    found = []
    for conserve in (True, False):
        bench = Bench(x, "shape_matching", {"stiffness": 0.5}, inverse_mass=w, goal="cluster", conserve=conserve)
        bench.move(shaken(x))
        found.append(momenta(bench.step(), x, 1 / w)[0])
    assert found[0] < 1e-6 and found[1] > 1e-3


def test_the_printed_average_loses_momentum_at_surfaces():
    """Why ``conserve`` is there."""
    x = cloud()
    bench = Bench(x, "shape_matching", {"stiffness": 0.5}, conserve=False)
    bench.move(shaken(x))
    assert momenta(bench.step(), x)[0] > 1e-3


# --- what they leave alone ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("angle", [0.0, 0.02, 0.7, 1.6, 3.0, np.pi])
def test_rigid_motion_is_untouched(scheme, angle):
    """Any turn in one step: nothing but roundings of positions (1e-7 m/Δt), and nothing weakens."""
    x = cloud()
    bench = Bench(x, scheme, {"stiffness": 500.0 if scheme == "springs" else 1.0, "weakening": 0.1}, normalise=True)
    bench.move((x - x.mean(0)) @ rotation((0.3, -1, 0.5), angle).T + [0.3, 0.2, -0.1])
    assert np.abs(bench.step()).max() < 2e-4
    assert (bench.strength == 1).all()


def test_slack_bonds_push_only_when_two_sided():
    x = cloud()
    for two_sided in (False, True):
        bench = Bench(x, "springs", {"weakening": 0.1}, two_sided=two_sided)
        bench.move(0.9 * x)
        dv = bench.step()
        assert np.abs(dv).max() > 0 if two_sided else (dv == 0).all()
        assert (bench.strength == 1).all(), "only stretching weakens"


def test_fewer_than_four_have_no_shape():
    for n in (1, 2, 3, 4):
        x = np.array([[0.0, 0, 0], [D, 0, 0], [0, D, 0], [0, 0, D]])[:n]
        bench = Bench(x, "shape_matching", {"stiffness": 1.0, "weakening": 0.5})
        bench.move(x * [1.3, 1, 1])
        dv = bench.step()
        assert np.isfinite(dv).all() and (np.abs(dv).max() > 0.01 if n == 4 else (dv == 0).all())
        assert (bench.strength == 1).all() == (n < 4)


def test_flat_and_straight_bodies_have_one():
    """A sheet and a thread, turned by 100°: their rotation is found (or does not matter), and they get their shape back."""
    for cells in ((8, 8, 1), (12, 1, 1)):
        x = 0.9 * cloud(cells, 0.0)
        bench = Bench(x, "shape_matching", {"stiffness": 1.0})
        turn = rotation((1, 0.2, -0.5), 1.75).T
        bench.move(x @ turn)
        assert np.abs(bench.step()).max() < 2e-4
        bench.move(shaken(x, 0.05) @ turn)
        dv = bench.step()
        assert np.isfinite(dv).all() and 0.01 < np.abs(dv).max() < 0.3 * D / DT
        if cells[1] > 1:
            same(dv, Shapes(x, {"stiffness": 1.0}).step(shaken(x, 0.05) @ turn), 1e-4)


def test_nozzles_lead_and_others_feel_it():
    x = cloud()
    w = np.where(np.arange(len(x)) < 50, -1.0, 1.0)
    for scheme in SCHEMES:
        bench, free = (Bench(x, scheme, inverse_mass=each) for each in (w, 1.0))
        for each in (bench, free):
            each.move(shaken(x))
        dv, all_free = bench.step(), free.step()
        assert (dv[:50] == 0).all() and np.array_equal(dv[50:], all_free[50:])


# --- weakening ---------------------------------------------------------------------------------------------------------
def test_pairs_weaken_linearly_and_shapes_exponentially_down_to_their_limits():
    x = cloud((4, 4, 4))
    for scheme in SCHEMES:
        bench = Bench(x, scheme, {"weakening": 0.1, "lower": 0.35, "yielding": 0.01})
        bench.move(1.4 * x)
        seen = []
        for _ in range(15):
            bench.step()
            seen.append(bench.strength[0])
        law = 0.9 ** np.arange(1, 16) if scheme == "shape_matching" else 1 - 0.1 * np.arange(1, 16)
        assert np.allclose(seen, np.maximum(law, 0.35), atol=1e-5)


def test_only_what_is_stretched_beyond_alpha_weakens():
    """One of two bonds beyond: half the rate. Without bonds nothing changes."""
    x = np.array([[0.0, 0, 0], [0.5 * H, 0, 0], [0, 0.5 * H, 0], [1.0, 0, 0]])
    bench = Bench(x, "springs", {"weakening": 0.1, "yielding": 0.05})
    bench.move(x + np.array([[0, 0, 0], [0.06 * H, 0, 0], [0, 0.04 * H, 0], [0, 0, 0]]))
    bench.step()
    assert np.allclose(bench.strength[3], 1) and np.allclose(bench.strength[0], 0.95)
    assert bench.strength[1] < 1


def test_a_limit_above_the_strength_gives_nothing_back():
    """If l ≥ k the stiffness stays as it is."""
    x = cloud((4, 4, 4))
    for scheme in SCHEMES:
        bench = Bench(x, scheme, {"weakening": 0.1, "yielding": 0.01})
        bench.move(1.4 * x)
        bench.step(4)
        before = bench.strength
        bench.set({"weakening": 0.1, "yielding": 0.01, "lower": 0.95})
        bench.step(2)
        assert np.array_equal(before, bench.strength) and before.max() < 0.7


def test_weakened_particles_pull_less_in_the_next_step_only():
    x = cloud((4, 4, 4))
    bench = Bench(x, "springs", {"weakening": 0.25, "yielding": 0.01})
    bench.move(1.3 * x)
    first, second = bench.step(), bench.step()
    same(second, 0.75 * first, 1e-5)
