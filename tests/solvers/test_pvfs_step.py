"""Steps of PVFS against the same step in NumPy over all pairs, and what must hold for every order of relaxation."""

import numpy as np
import pytest

from pvfs_kit import cloud, made, rest_lengths, state
from pvfs_reference import Springs, densities, relaxed, slowed

SET = {"k": 0.004, "k_near": 0.01, "rho0": 10.0}
RELAXATIONS = ("sequential", "coloured", "jacobi")


def moving(x, size=0.05, seed=3):
    return np.random.default_rng(seed).uniform(-size, size, x.shape)


@pytest.mark.parametrize("springs", [False, True])
@pytest.mark.parametrize("viscous", [False, True])
def test_a_step_is_algorithm_1(springs, viscous):
    """Viscosity, prediction, springs, double density: x and v of a jacobi step, all pairs in double precision."""
    x, published = cloud(), {}
    v = moving(x)
    if viscous:
        published |= {"sigma": 0.2, "beta": 0.3}
    if springs:
        published |= {"k_spring": 0.05, "alpha": 0.2, "gamma": 0.05}
    sim = made(x, v, published=published)
    sim.scene.solver.relaxation = "jacobi"
    sim.update()
    sim.solver.freeze(sim.world)
    laws = Springs(x)
    for _ in range(3):
        sim.step()
        if viscous:
            v = slowed(x, v, 1.0, 0.2, 0.3)
        before, x = x, x + v
        if springs:
            laws.adjust(x, 1.0, 0.2, 0.05)
            x = x + laws.pull(x, 1.0, 0.05)
        x = x + relaxed(x, 1.0, **SET, limit=True)
        v = x - before
        assert np.allclose(state(sim)[0], x, atol=3e-6) and np.allclose(state(sim)[1], v, atol=1e-5)
    if springs:
        assert np.allclose(rest_lengths(sim), laws.lengths, atol=3e-6)


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_rest_is_where_it_should_be(relaxation):
    """Not to the last digit of any other order: the same density at rest."""
    x = cloud((8, 8, 8), 0.02)
    sim = made(x, published={"beta": 0.3}, freeze=False)
    sim.scene.solver.relaxation = relaxation
    sim.update()
    for _ in range(80):
        sim.step()
    x = state(sim)[0]
    core = np.linalg.norm(x - x.mean(0), axis=1) < 0.8
    assert 7.0 < densities(x)[0][core].mean() < 7.4


@pytest.mark.parametrize("relaxation", RELAXATIONS)
@pytest.mark.parametrize("published", [{}, {"k_spring": 0.2, "alpha": 0.1, "sigma": 0.3, "beta": 0.3}])
def test_pairs_keep_momentum(relaxation, published):
    x = cloud()
    v = moving(x, 0.1) + np.array([0.05, 0.02, -0.03])
    sim = made(x, v, published=published)
    sim.scene.solver.relaxation = relaxation
    sim.update()
    mean = state(sim)[1].mean(0)
    for _ in range(30):
        sim.step()
    assert np.abs(state(sim)[1].mean(0) - mean).max() < 1e-6


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_two_in_one_place_part(relaxation):
    """r = 0 has no direction; one is made up, the same for both, and nothing becomes infinite."""
    x = cloud((4, 4, 4), 0.1)
    x[20] = x[21]
    runs = []
    for _ in range(2):
        sim = made(x, published={"sigma": 0.2, "beta": 0.2, "k_spring": 0.1, "alpha": 0.1})
        sim.scene.solver.relaxation = relaxation
        sim.update()
        mean = state(sim)[0].mean(0)
        for _ in range(20):
            sim.step()
        runs.append(state(sim)[0])
        assert np.isfinite(runs[-1]).all() and np.abs(runs[-1].mean(0) - mean).max() < 1e-5
    assert np.linalg.norm(runs[0][20] - runs[0][21]) > 0.1
    assert np.array_equal(*runs)
