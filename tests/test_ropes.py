"""Measuring ropes: helices, gaps and piles whose numbers are known."""

import numpy as np
import pytest

from viscoil.validation import ropes

D = 0.002


def cylinder(radius, low, high):
    """Particles of a straight rope."""
    side = np.arange(-0.02, 0.02, D) + D / 2
    x, y, z = (a.ravel() for a in np.meshgrid(side, low + D * (np.arange(round((high - low) / D)) + 0.5), side, indexing="ij"))
    inside = x * x + z * z < radius**2
    return np.stack([x, y, z], 1)[inside]


def test_radius_centre_and_speed_of_a_straight_rope():
    x = cylinder(0.01, 0.0, 0.2) + np.array([0.003, 0, -0.001])
    cut = ropes.slices(x, np.tile([0.1, -0.4, 0], (len(x), 1)), D, 0.18, 2 * D)
    assert cut.radius == pytest.approx(0.01, rel=0.03) and cut.spread == pytest.approx(0.01, rel=0.03)
    assert cut.centre == pytest.approx(np.tile([0.003, -0.001], (45, 1)), abs=1e-9)
    assert cut.speed == pytest.approx(0.4)
    assert ropes.pile_height(cut) == 0.0


def test_where_the_pile_begins():
    x = np.concatenate([cylinder(0.005, 0.06, 0.2), cylinder(0.018, 0.0, 0.06)])
    cut = ropes.slices(x, np.zeros_like(x), D, 0.18, 2 * D)
    assert ropes.pile_height(cut) == pytest.approx(0.06, abs=2 * D)


def test_a_torn_rope_has_a_gap():
    whole, torn = cylinder(0.005, 0.0, 0.2), np.concatenate([cylinder(0.005, 0.0, 0.1), cylinder(0.005, 0.11, 0.2)])
    assert ropes.largest_gap(whole, 0.02, 0.18) == pytest.approx(D, rel=1e-6)
    assert ropes.largest_gap(torn, 0.02, 0.18) == pytest.approx(0.01 + D, rel=1e-6)
    assert ropes.largest_gap(torn, 0.02, 0.3) == pytest.approx(0.1 + D / 2, rel=1e-6), "an end counts"


@pytest.mark.parametrize("direction", [1, -1])
def test_turns_of_a_helix(direction):
    t = np.linspace(0, 2, 200)
    angle = np.angle(np.exp(1j * direction * 2 * np.pi * 3.5 * t))
    wound, first, last = ropes.turns(angle)
    assert wound == pytest.approx(7.0, abs=1e-6) and (first, last) == (0, 199)
    assert ropes.frequency(t, angle) == pytest.approx(2 * np.pi * 3.5, rel=1e-6)
    angle[50:53] = np.nan
    assert ropes.turns(angle)[0] == pytest.approx(7.0, abs=1e-6)


def test_turns_count_one_direction_only():
    t = np.linspace(0, 4, 400)
    there_and_back = 2 * np.pi * np.where(t < 3, 2 * t, 12 - 2 * t)
    assert ropes.turns(there_and_back)[0] == pytest.approx(6.0, abs=0.02)
    folding = 2 * np.pi * 0.7 * np.sin(2 * np.pi * 3 * t)
    assert ropes.turns(folding)[0] < 1.5
    wobbling = 2 * np.pi * (2 * t + 0.1 * np.sin(40 * t))
    assert ropes.turns(wobbling)[0] == pytest.approx(8, abs=0.25)
    assert ropes.turns(np.full(10, np.nan)) == (0.0, 0, 0)


def test_landing():
    x = np.array([[0, 0.01, 0], [1, 0.01, 0], [2, 0.15, 0], [3, 0.01, 0.0]])
    fast, slow = np.tile([0, -1.0, 0], (4, 1)), np.array([[0, 0, 0], [0, -1.0, 0], [0, 0, 0], [0, 0, 0.0]])
    later = np.concatenate([x, [[9, 0, 0]]])  # one was born in between
    found = ropes.landing((x, fast), (later, np.concatenate([slow, np.zeros((1, 3))])), 0.5, 0.1)
    assert found[:, 0].tolist() == [0, 3]


def test_scales_of_coiling():
    """Dimensions and exponents: Ω_G ∝ Q^(3/4) a^(−2), Ω_I ∝ Q^(4/3) a^(−10/3), Ω_V ∝ Q/(H a²)."""
    one = ropes.scales(3e-5, 0.1, 0.005, 0.15)
    assert one["gravitational"] == pytest.approx((9.81 * 2.7e-14 / (0.1 * 0.005**8)) ** 0.25)
    faster, thicker = ropes.scales(6e-5, 0.1, 0.005, 0.15), ropes.scales(3e-5, 0.1, 0.01, 0.15)
    assert [np.log2(faster[n] / one[n]) for n in one] == pytest.approx([1, 0.75, 4 / 3])
    assert [np.log2(thicker[n] / one[n]) for n in one] == pytest.approx([-2, -2, -10 / 3])
    # Where two forces are equal, so are the frequencies of the regimes they make: R = U/Ω, up to powers of π.
    u, a, nu = 0.4, 0.005, 0.1
    coil = (nu * a * a * u / 9.81) ** 0.25
    push = ropes.forces(u, nu, a, coil)
    assert push["viscous"] == pytest.approx(push["gravitational"])
