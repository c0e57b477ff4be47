"""The slow IISPH the fast one is held against, held against what does not depend on its formulas."""

import numpy as np
import pytest

from iisph_reference import (
    Pressure,
    Walls,
    gradient,
    kernel,
    matching_by_region,
    matching_goals,
    normalised,
    pair_correction,
    pairs_within,
    rotation_of,
    sample_volumes,
    xsph,
)

D, H, DT, RHO = 0.04, 0.08, 0.002, 1000.0
MASS = RHO * D**3


def block(n=5, squeezed=0.9, jitter=0.15, seed=0):
    axis = (np.arange(n) + 0.5) * D * squeezed
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    return x + np.random.default_rng(seed).uniform(-jitter, jitter, x.shape) * D


def floor(n=7, moving=(0.0, 0.0, 0.0)):
    axis = (np.arange(n) - 1) * D
    x = np.stack(np.meshgrid(axis, [-D / 2], axis, indexing="ij"), -1).reshape(-1, 3)
    return Walls(x, RHO * sample_volumes(x, H), np.tile(np.asarray(moving), (len(x), 1)))


def cloud(walls=True, moving=(0.0, 1.0, 0.3)):
    x = block()
    v = np.random.default_rng(1).normal(size=x.shape)
    state = Pressure(x, MASS, RHO, H, DT, *([floor(moving=moving)] if walls else []))
    return x, v, state


def test_kernel():
    """It integrates to one, its slope is its derivative, a lattice has the density it should have."""
    r = np.linspace(0, H, 4001)
    assert abs(np.trapezoid(4 * np.pi * r**2 * kernel(r, H), r) - 1) < 1e-6
    at = np.array([0.1, 0.45, 0.7, 0.95]) * H
    numeric = (kernel(at + 1e-7, H) - kernel(at - 1e-7, H)) / 2e-7
    d = at[:, None] * np.array([1.0, 2.0, -2.0]) / 3
    assert np.allclose(dot_way(gradient(d, H), d), numeric, rtol=1e-5)
    axis = np.arange(-3, 4) * D
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    assert abs(D**3 * kernel(np.linalg.norm(x, axis=1), H).sum() - 0.99997) < 1e-4


def dot_way(g, d):
    return (g * d).sum(-1) / np.linalg.norm(d, axis=-1)


def test_samples_weigh_what_was_measured():
    """Ψ/m = 1.43 in the middle of a flat layer, 2.0 at its corners."""
    walls = floor(9)
    share = (walls.psi / MASS).reshape(9, 9)
    assert abs(share[4, 4] - 1.43) < 0.01 and abs(share[0, 0] - 2.0) < 0.05


@pytest.mark.parametrize("walls", [False, True])
def test_diagonal_is_the_derivative(walls):
    """a_ii = ∂ρ_pred_i/∂p_i, by finite differences of the density predicted from forces alone."""
    _, v, state = cloud(walls)
    p = np.random.default_rng(2).uniform(0, 2000, len(v))
    advected = state.advected(v)
    for i in (0, 31, 62, 124):
        up, down = p.copy(), p.copy()
        up[i] += 1.0
        down[i] -= 1.0
        slope = (state.predicted_from_force(advected, up)[i] - state.predicted_from_force(advected, down)[i]) / 2
        assert abs(slope - state.a_ii[i]) < 1e-9 * abs(state.a_ii[i])
    assert (state.a_ii < 0).all()


@pytest.mark.parametrize("walls", [False, True])
def test_predicted_density_is_a_density(walls):
    """ρ_pred is what the moved particles' density is, up to the square of the step."""
    x, v, _ = cloud(walls)
    p = np.random.default_rng(2).uniform(0, 2000, len(v))
    errors = []
    for dt in (2e-4, 1e-4):
        solid = floor(moving=(0.0, 1.0, 0.3)) if walls else None
        state = Pressure(x, MASS, RHO, H, dt, *([solid] if walls else []))
        predicted = state.predicted(state.advected(v), p)
        moved = x + dt * (v + dt * state.force(p))
        there = [Walls(solid.x + dt * solid.v, solid.psi, solid.v)] if walls else []
        errors.append(np.abs(Pressure(moved, MASS, RHO, H, dt, *there).rho - predicted).max())
    assert errors[0] < 2.0 and errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("walls", [False, True])
def test_both_forms_are_one(walls):
    """ρ~ + a_ii p + b_i and ρ~ + Δt² Σ m (a_i − a_j)·∇W are the same number, so their iterations are the same."""
    _, v, state = cloud(walls)
    p = np.random.default_rng(2).uniform(0, 2000, len(v))
    advected = state.advected(v)
    assert np.allclose(state.predicted(advected, p), state.predicted_from_force(advected, p), rtol=1e-12)
    q = p.copy()
    for _ in range(6):
        p, _ = state.iterate(advected, p)
        q = np.maximum(0, q + 0.5 * (RHO - state.predicted_from_force(advected, q)) / state.a_ii)
    assert np.allclose(p, q, rtol=1e-9, atol=1e-6)


def test_pressure_pushes_and_keeps_momentum():
    _, v, state = cloud(False)
    p, _, _ = state.solve(v, np.zeros(len(v)), 30)
    force = state.force(p)
    assert (p >= 0).all() and p.max() > 100
    assert np.abs(force.sum(0)).max() < 1e-12 * np.abs(force).sum()


@pytest.mark.parametrize("walls", [False, True])
def test_converges(walls):
    """To what was asked for, in fewer iterations when it starts from the answer of a step before."""
    _, v, state = cloud(walls)
    v = 0.1 * v
    p, cold, error = state.solve(v, np.zeros(len(v)), 2000, 1e-4)
    assert error <= 1e-4
    _, warm, _ = state.solve(v, 0.5 * p, 2000, 1e-4)
    assert warm < cold < 1000, (warm, cold)


def test_corrections_leave_rigid_motion_alone():
    x0 = block(squeezed=1.0)
    bonds = pairs_within(x0, H)
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    x = x0 @ turn.T + np.array([1.0, 2.0, 3.0])
    assert np.abs(pair_correction(x, bonds, 1.0)).max() < 1e-14
    for lattice in (False, True):
        assert np.abs(matching_goals(x, x0, bonds, lattice) - x).max() < 1e-13
        bent = x + 0.1 * D * np.sin(40 * x[:, [1, 2, 0]])
        moves = matching_by_region(bent, x0, bonds, lattice)
        assert np.abs(moves).max() > 1e-4 and np.abs(moves.sum(0)).max() < 1e-12
    stretched = x * 1.1
    assert np.abs(pair_correction(stretched, bonds, normalised(bonds, len(x))).sum(0)).max() < 1e-12
    assert np.allclose(rotation_of(turn @ np.diag([3.0, 2.0, 0.5])), turn)


def test_smoothing_keeps_momentum():
    _, v, state = cloud(False)
    assert np.abs((xsph(state, v, 0.3) - v).sum(0)).max() < 1e-12 * len(v)
