"""The numbers validation cases take from frames, on states where they are known."""

import numpy as np
import pytest

from viscoil.validation.measures import enstrophy, nearest


def lattice(n: int, spacing: float) -> np.ndarray:
    axis = np.arange(n) * spacing
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)


def test_nearest_neighbour_against_a_plain_search():
    x = np.random.default_rng(0).uniform(-1, 1, (700, 3)).astype(np.float32) + 5
    plain = [np.sort(np.linalg.norm(x.astype(float) - one, axis=1))[1] for one in x.astype(float)]
    assert np.allclose(nearest(x), plain, atol=1e-7)


def test_nearest_neighbour_of_a_lattice_and_of_a_pair():
    assert np.allclose(nearest(lattice(9, 0.02)), 0.02)
    three = np.array([[0, 0, 0], [0, 0, 0.001], [1, 0, 0.0]])
    assert np.allclose(nearest(three), [0.001, 0.001, 1.0], atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_enstrophy_of_a_rigid_rotation(axis):
    x = lattice(10, 0.05)
    rate = np.zeros(3)
    rate[axis] = 3.0
    v = np.cross(rate, x - x.mean(0))
    exact = 0.5 * len(x) * 0.05**3 * (2 * 3.0) ** 2  # |ω| = 2Ω everywhere, the surface included
    assert enstrophy(x, v, 0.05) == pytest.approx(exact, rel=0.1)


def test_no_enstrophy_in_a_stretching_flow():
    x = lattice(8, 0.05)
    as_if_rotating = 0.5 * len(x) * 0.05**3 * 1.0**2  # |ω| as large as the stretching rate
    assert enstrophy(x, x * [1.0, -0.5, -0.5], 0.05) < 1e-3 * as_if_rotating
