"""The compiled search lists exactly whom the kernels list, in the same order, wherever particles are."""

import numpy as np
import pytest

from kit import lattice, make_particles
from sph.test_neighbors import PLACES
from viscoil import native
from viscoil.sph.search import Neighbors

R = 0.1
RNG = np.random.default_rng(11)


def lists(x, compiled, expected=30, **fields):
    """(neighbours of each, their indices) by one of the two ways."""
    x = np.asarray(x, np.float32)
    particles = make_particles(x, **fields)
    neighbors = Neighbors(R, expected, len(x))
    neighbors.fit(np.nanmin(x, axis=0), np.nanmax(x, axis=0))
    with native.use(compiled):
        neighbors.find_all(particles.position, particles, len(x))
    return neighbors.to_numpy(len(x))


def without_edge(x, count, index):
    """Entries of all rows one after the other, as (who, whom), less the pairs whose distance is the reach but for rounding.

    The kernels' compiler may add three squares in any order; such pairs weigh nothing.
    """
    who = np.repeat(np.arange(len(count)), count)
    whom = index[np.arange(index.shape[1]) < count[:, None]]
    x = np.asarray(x, np.float32).astype(float)
    with np.errstate(over="ignore"):
        r = np.linalg.norm(x[who] - x[whom], axis=1)
    sure = np.abs(r / R - 1) > 1e-6 * (1 + np.abs(x[who]).max(axis=1) / R)
    return np.stack([who[sure], whom[sure]])


def assert_same(x, **options):
    count, index = lists(x, True, **options)
    reference_count, reference = lists(x, False, **options)
    assert np.array_equal(without_edge(x, count, index), without_edge(x, reference_count, reference))
    assert np.abs(count - reference_count).max() <= 2
    return count


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place, instructions):
    assert_same(PLACES[place])


@pytest.mark.parametrize("away", [0.0, 1.0, 10.0, -700.0])
def test_on_the_very_edge(away, instructions):
    """Pairs whose distance is the reach but for rounding: at most those may differ."""
    n = 4000
    corner = np.stack(np.meshgrid(*[np.arange(16) * 0.31] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]
    a = (corner + away + RNG.uniform(0, 0.05, (n, 3))).astype(np.float32)
    towards = RNG.normal(size=(n, 3))
    towards *= R * (1 + RNG.uniform(-3e-7, 3e-7, (n, 1))) / np.linalg.norm(towards, axis=1)[:, None]
    assert 0 < assert_same(np.concatenate([a, a + towards])).sum() < 2 * n


def test_too_short_rows_are_reported_and_widened(instructions):
    crowd = RNG.uniform(0, 0.1, (300, 3))
    assert assert_same(crowd, expected=4).max() > 64


def test_those_that_do_not_move_list_nobody(instructions):
    x = lattice((9, 9, 9), R / 2, 0.3)
    count = assert_same(x, inverse_mass=RNG.integers(-1, 2, len(x)).astype(np.float32), id=RNG.permutation(len(x)))
    assert (count == 0).sum() > 200


def test_any_number_of_threads(instructions):
    x = lattice((24, 24, 24), R / 2, 0.4)
    expected = assert_same(x).sum()
    library = native._load()[0]
    for threads in (1, 3, 7):
        library.viscoil_set_threads(threads)
        assert assert_same(x).sum() == expected
    library.viscoil_set_threads(2)


def test_a_position_that_is_no_number_hurts_nobody_else(instructions):
    """Time steps that explode are taken back; the search must survive them."""
    x = lattice((8, 8, 8), R / 2, 0.2)
    x[[3, 77]] = np.nan
    count, index = lists(x, True)
    assert count[3] == count[77] == 0
    assert index.max() < len(x) and count[100] > 10
