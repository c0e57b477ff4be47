"""The conformation tensor against exact solutions for homogeneous flows."""

from itertools import pairwise

import numpy as np
import pytest
import quadrants as qd

import kit  # noqa: F401  starts the backend
from viscoil.constraints.conformation import Substances
from viscoil.particles import Ints, Matrices, allocate_array, mat3
from viscoil.steps.conformation import next_conformation

LAM = 0.5


@qd.kernel
def _evolve(q: Matrices, gradient: Matrices, dt: qd.f32, steps: qd.i32, k: Substances, clamped: Ints):
    for i in range(1):
        for _ in range(steps):
            q[i] = next_conformation(q[i], gradient[i], dt, 0, k, clamped)


def evolve(gradient, time, steps=2000, start=None, **properties):
    """(Q after ``time`` in a flow of constant gradient, eigenvalues that were limited)."""
    values = {"relaxation": LAM} | properties
    k = Substances(**{name: allocate_array(qd.f32, 1) for name in Substances.__dataclass_fields__})
    for name, value in values.items():
        getattr(k, name).from_numpy(np.array([value], np.float32))
    q, g, clamped = allocate_array(mat3, 1), allocate_array(mat3, 1), allocate_array(qd.i32, 1)
    q.from_numpy(np.asarray(np.eye(3) if start is None else start, np.float32)[None])
    g.from_numpy(np.asarray(gradient, np.float32)[None])
    _evolve(q, g, time / steps, steps, k, clamped)
    return q.to_numpy()[0].astype(float), int(clamped.to_numpy()[0])


def shear(rate):
    return np.array([[0, rate, 0], [0, 0, 0], [0, 0, 0.0]])


def test_start_up_shear():
    q, clamped = evolve(shear(3.0), 0.7)
    assert q[0, 1] == pytest.approx(1.130105, rel=0.005)  # Wi (1 − e^(−t/λ))
    assert q[0, 0] == pytest.approx(2.836753, rel=0.005)  # 1 + 2Wi²[1 − e^(−t/λ)(1 + t/λ)]
    assert q[1, 1] == pytest.approx(1, rel=1e-4) and q[2, 2] == pytest.approx(1, rel=1e-4) and clamped == 0


def test_start_up_extension():
    q, _ = evolve(np.diag([0.6, -0.3, -0.3]), 0.7)
    assert q[0, 0] == pytest.approx(1.643186, rel=0.005)
    assert q[1, 1] == pytest.approx(0.806621, rel=0.005) and q[2, 2] == pytest.approx(q[1, 1], rel=1e-5)


def test_first_order_in_time():
    exact = 1.130105
    errors = [abs(evolve(shear(3.0), 0.7, steps)[0][0, 1] - exact) for steps in (10, 20, 40, 80)]
    assert all(1.7 < a / b < 2.3 for a, b in pairwise(errors))


def test_rotation_turns_it():
    """The printed equations turn Q the wrong way round: an elongated Q shows it."""
    w = np.pi / 2
    spin = np.array([[0, -w, 0], [w, 0, 0], [0, 0, 0.0]])
    q, _ = evolve(spin, 0.5, 20000, start=np.diag([2.0, 1, 1]), relaxation=0.0, modulus=1.0)
    c = np.cos(w / 2)
    turn = np.array([[c, -c, 0], [c, c, 0], [0, 0, 1]])
    assert np.allclose(q, turn @ np.diag([2.0, 1, 1]) @ turn.T, atol=0.01)
    assert np.allclose(evolve(spin, 0.5, 20000, relaxation=0.0, modulus=1.0)[0], np.eye(3), atol=1e-3)


def test_what_forgets_at_once_stays_at_rest():
    assert np.allclose(evolve(shear(5.0), 1.0, 100, relaxation=0.0)[0], np.eye(3), atol=1e-5)


def test_giesekus_thins_and_tends_to_maxwell():
    rate = 2 / LAM
    maxwell, thinning = evolve(shear(rate), 10 * LAM)[0], evolve(shear(rate), 10 * LAM, mobility=0.3)[0]
    assert thinning[0, 1] < 0.6 * maxwell[0, 1]
    # Second normal stress difference: none for Maxwell, negative and small for Giesekus.
    assert abs(maxwell[1, 1] - maxwell[2, 2]) < 1e-3 and -0.9 < thinning[1, 1] - thinning[2, 2] < -0.05
    weak = evolve(shear(0.05 / LAM), 10 * LAM, mobility=0.3)[0]
    assert weak[0, 1] == pytest.approx(0.05, rel=0.01)


def test_giesekus_steady_shear_against_the_closed_form():
    """Viscosity (1 − f)²/(1 + (1 − 2α) f) with the f of Giesekus 1982."""
    alpha, wi = 0.3, 3.0
    chi2 = (np.sqrt(1 + 16 * alpha * (1 - alpha) * wi**2) - 1) / (8 * alpha * (1 - alpha) * wi**2)
    f = (1 - np.sqrt(chi2)) / (1 + (1 - 2 * alpha) * np.sqrt(chi2))
    eta = (1 - f) ** 2 / (1 + (1 - 2 * alpha) * f)
    assert evolve(shear(wi / LAM), 12 * LAM, 6000, mobility=alpha)[0][0, 1] == pytest.approx(wi * eta, rel=0.02)


def test_extension_is_bounded_with_fene():
    strong = np.diag([2.0, -1, -1]) / LAM  # Wi = 2: Maxwell has no steady state
    q, clamped = evolve(strong, 6 * LAM, extensibility=15.0)
    assert np.trace(q) < 15 and clamped == 0
    assert q[0, 0] > 8
    gentle = evolve(shear(0.05 / LAM), 10 * LAM, extensibility=15.0)[0]
    assert gentle[0, 1] == pytest.approx(0.05, rel=0.05)


def test_below_the_yield_strain_nothing_flows():
    held = evolve(np.zeros((3, 3)), 20 * LAM, start=np.eye(3) + 0.08 * (shear(1) + shear(1).T), yield_strain=0.1)[0]
    assert held[0, 1] == pytest.approx(0.08, rel=1e-3)
    flown = evolve(np.zeros((3, 3)), 20 * LAM, start=np.eye(3) + 0.3 * (shear(1) + shear(1).T), yield_strain=0.1)[0]
    assert flown[0, 1] == pytest.approx(0.1, rel=0.01)


def test_torn_particles_are_limited_and_counted():
    q, clamped = evolve(np.diag([40.0, -20, -20]), 0.5, 50, relaxation=0.0, modulus=1.0)
    values = np.linalg.eigvalsh(q)
    assert clamped > 0 and values.min() >= 0.0499 and values.max() <= 20.01
