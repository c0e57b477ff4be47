"""The neighbour search against brute force, wherever particles can be."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from kit import differences, lattice, make_particles, periodic_box, search
from viscoil import backend, native
from viscoil.errors import SceneError
from viscoil.sph.depth import FEW, PARTING, RECORDED, TORN, collected, levels, parting, recorded, spills, staged, torn
from viscoil.sph.search import CELLS_PER_PARTICLE, Neighbors, list_width, pieces_of, team_size
from viscoil.transfer import read

R = 0.1
RNG = np.random.default_rng(5)


def listed(neighbors, n):
    """Neighbours of each particle as lists, in the order found."""
    count, index = neighbors.to_numpy(n)
    return [list(index[i, : count[i]]) for i in range(n)]


def check(x, box=None, **fields):
    """Everybody within reach is listed once; pairs on the very edge may fall either way."""
    x = np.asarray(x, np.float32)
    particles = make_particles(x, **fields)
    found = listed(search(x, R, box, particles), len(x))
    with np.errstate(over="ignore"):
        r = np.linalg.norm(differences(x, box), axis=2)
    resolution = 4e-7 * (R + np.abs(x).max(initial=0, where=np.abs(x) < 1e3))
    moves = fields.get("inverse_mass", np.ones(len(x))) > 0
    for i, mine in enumerate(found):
        assert len(set(mine)) == len(mine), f"particle {i} lists somebody twice"
        assert i not in mine
        if not moves[i]:
            assert mine == []
            continue
        must = set(np.nonzero(r[i] < R - resolution)[0]) - {i}
        may = set(np.nonzero(r[i] < R + resolution)[0])
        assert must <= set(mine) <= may, f"particle {i}: missing {must - set(mine)}, wrong {set(mine) - may}"


BLOCK = RNG.uniform(0, 0.3, (200, 3))
PLACES = {
    "random": RNG.uniform(-0.4, 0.6, (900, 3)),
    "clustered": np.concatenate([c + RNG.normal(0, 0.03, (60, 3)) for c in RNG.uniform(-3, 3, (8, 3))]),
    "coincident": np.repeat(RNG.uniform(0, 0.3, (9, 3)), 30, axis=0),
    "far apart": np.concatenate([RNG.uniform(0, 0.3, (100, 3)) + c for c in ((0, 0, 0), (900, 0, 0), (-700, 800, 500))]),
    "a million metres": np.concatenate([BLOCK, np.round(RNG.uniform(-1e6, 1e6, (30, 3))), [[1e6] * 3] * 4]),
    "beyond all bounds": np.concatenate([BLOCK, [[1e30, 0, 0]] * 3, [[-3e37, 1e38, 1e12]] * 2, [[0, 3e38, 0]]]),
    "thin thread": np.stack([RNG.uniform(0, 60, 900), RNG.uniform(0, 0.04, 900), RNG.uniform(0, 0.04, 900)], 1),
    "sheet": np.stack([RNG.uniform(0, 3, 900), RNG.uniform(-50, -49.99, 900), RNG.uniform(0, 3, 900)], 1),
    "lattice on cell borders": lattice((8, 8, 8), R / 2) - R / 4,
    "one": np.zeros((1, 3)),
}  # fmt: skip


@pytest.fixture(params=["none", "wide"])
def records(request, monkeypatch):
    """Candidates read number by number, and as GPUs do: as records, from cells that are sliced along x."""
    monkeypatch.setenv("VISCOIL_RECORDS", request.param)
    with native.use(native.active() and request.param == "none"):
        yield request.param


@pytest.mark.parametrize("place", PLACES)
def test_against_brute_force(place, records):
    check(PLACES[place])


@pytest.mark.parametrize("axes", ["x", "y", "xz", "xyz"])
@pytest.mark.parametrize("size", [(0.3, 0.4, 0.55), (0.61, 1.7, 0.33)])
def test_periodic_boxes(axes, size, records):
    low = np.array([-0.13, 2.0, 0.4])
    box = periodic_box(low, low + size, axes)
    x = low + RNG.uniform(0, 1, (500, 3)) * size
    check(x, box)
    outside = x + RNG.integers(-2, 3, x.shape) * np.array([a in axes for a in "xyz"]) * size
    check(outside, box)  # predicted positions are not wrapped yet


def test_wide_periodic_box_with_few_particles(records):
    """More cells than memory: cells become larger, nothing else changes."""
    box = periodic_box((0, 0, 0), (40, 1, 60), "xz")
    x = np.concatenate([RNG.uniform(0, 0.3, (150, 3)), np.array([39.99, 0.5, 59.99]) + RNG.uniform(-0.1, 0.1, (50, 3))])
    check(x, box)


def test_too_small_periodic_box_is_refused():
    with pytest.raises(SceneError, match=r"periodic box is 0\.29 m long in z.*at least three times"):
        Neighbors(R, 30, 10, periodic_box((0, 0, 0), (1, 1, 0.29), "xz"))
    Neighbors(R, 30, 10, periodic_box((0, 0, 0), (1, 1, 0.3), "xz"))


def test_boundary_samples_are_listed_but_have_no_list():
    x = RNG.uniform(0, 0.3, (300, 3))
    check(x, inverse_mass=RNG.integers(0, 2, 300).astype(float))


@pytest.mark.parametrize("axes", ["", "xyz"])
def test_order_in_memory_does_not_matter(axes, records):
    """Lists name the same particles in the same order, whatever the arrays' order: sums keep their bits."""
    n = 400
    x = np.concatenate([RNG.uniform(0, 0.5, (n - 20, 3)), np.full((20, 3), 0.25)]).astype(np.float32)
    ids = RNG.permutation(10 * n)[:n]
    box = periodic_box((0, 0, 0), (0.5, 0.5, 0.5), axes) if axes else None

    def by_id(order):
        found = listed(search(x[order], R, box, make_particles(x[order], id=ids[order])), n)
        return {ids[order][i]: [ids[order][j] for j in mine] for i, mine in enumerate(found)}

    assert by_id(np.arange(n)) == by_id(RNG.permutation(n))


def test_overflow_is_reported_and_repaired():
    x = np.concatenate([RNG.uniform(0, 5, (200, 3)), RNG.uniform(0, 0.05, (500, 3))])
    particles = make_particles(x)
    neighbors = Neighbors(R, 20, len(x))
    neighbors.fit(x.min(0), x.max(0))
    before = neighbors.width
    neighbors.find(particles.position, particles, len(x))
    needed = neighbors.overflow()
    assert needed >= 499
    assert neighbors.to_numpy(len(x))[0].max() == before, "rows are cut, not overrun"
    assert neighbors.overflow() == 0, "said once"
    neighbors.widen(needed)
    neighbors.find(particles.position, particles, len(x))
    assert neighbors.overflow() == 0
    assert neighbors.to_numpy(len(x))[0].max() == needed
    check(x)


def test_rows_avoid_strides_that_share_cache_sets():
    for wanted in range(200):
        width = list_width(wanted)
        assert width >= wanted and width % 16 and width % 4 == 0


@pytest.mark.parametrize("far", [1e2, 1e6, 1e30, 3e38])
@pytest.mark.parametrize("direction", [(1, 0, 0), (1, -1, 0), (-1, 1, 1)])
def test_a_runaway_costs_neither_memory_nor_time(far, direction):
    """(A step-by-step search for the shape of the cells would never end here.)"""
    neighbors = Neighbors(R, 60, 1000)
    ends = np.array([np.zeros(3), np.full(3, 0.5), np.array(direction) * far])
    tracemalloc.start()
    neighbors.fit(ends.min(0), ends.max(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
    assert 27 <= np.prod(neighbors.dims) <= max(4096, CELLS_PER_PARTICLE * 1000)
    assert min(neighbors.dims) >= 3


def test_cells_are_used_up_to_what_memory_allows():
    """A thread gets its cells along its length, a cube evenly, a small set no more than it needs."""
    neighbors = Neighbors(R, 60, 50_000)
    neighbors.fit(np.zeros(3), np.array([500.0, 0.3, 0.3]))
    assert neighbors.dims[0] > 1000 and neighbors.dims[1] == neighbors.dims[2] == 8
    neighbors.fit(np.zeros(3), np.full(3, 100.0))
    assert min(neighbors.dims) >= 40
    neighbors.fit(np.zeros(3), np.array([2.0, 1.0, 1.0]))
    assert max(neighbors.dims) <= 24


@pytest.mark.parametrize(
    "slices, edges", [((1, 1, 1), (30, 14)), ((2, 1, 1), (14, 14)), ((4, 1, 1), (5, 14)), ((4, 1, 2), (6, 7))]
)
def test_cells_are_sliced_as_far_as_memory_goes(slices, edges, monkeypatch):
    """And not where somebody colours them, or wants 27 of them around each."""
    monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    neighbors = Neighbors(R, 60, 5000)  # 10,000 cells
    size = np.array([edges[0], edges[1], edges[1]]) * R * 0.99
    neighbors.fit(np.zeros(3), size)
    assert neighbors.slices == slices and np.prod(neighbors.dims) <= CELLS_PER_PARTICLE * 5000
    real, whole = read(neighbors.torus.real), read(neighbors.torus.whole)
    assert np.allclose(real[3:6], np.array(slices) / R)
    assert whole.tolist() == [*neighbors.dims, np.prod(neighbors.dims), *slices]
    for multiple, plain in ((2, False), (1, True)):
        other = Neighbors(R, 60, 5000, plain=plain)
        other.multiple = multiple
        other.fit(np.zeros(3), size)
        assert other.slices == (1, 1, 1)


@pytest.mark.parametrize("multiple", [1, 2, 3, 4])
@pytest.mark.parametrize("axes", ["", "y"])
def test_cells_come_in_multiples(multiple, axes):
    """Whoever colours cells needs as many of each colour all around the torus; periodic axes fit their period instead."""
    box = periodic_box((0, 0, 0), (1, 7 * R, 1), axes) if axes else None
    usual, even = Neighbors(R, 60, 3000, box), Neighbors(R, 60, 3000, box)
    even.multiple = multiple
    for size in [(0, 0, 0), (1.3, 0.6, 0.9), (500, 0.3, 0.3), (100, 100, 100), (1e30, 1, 1e6)]:
        for neighbors in (usual, even):
            neighbors.fit(np.zeros(3), np.array(size, float))
        assert all(d % multiple == 0 and d >= 3 for d, axis in zip(even.dims, "xyz", strict=True) if axis not in axes)
        assert np.prod(even.dims) <= max(4096, CELLS_PER_PARTICLE * 3000)
        assert not axes or even.dims[1] == 7
        assert multiple > 1 or even.dims == usual.dims
        assert all(abs(a - b) <= max(multiple, 0.7 * b) for a, b in zip(even.dims, usual.dims, strict=True))


@pytest.mark.parametrize("multiple", [2, 3])
def test_multiples_change_no_neighbours(multiple):
    x = lattice((9, 7, 5), R / 2.3, 0.3)
    particles = make_particles(x)
    neighbors = Neighbors(R, 60, len(x))
    neighbors.multiple = multiple
    neighbors.fit(x.min(0), x.max(0))
    neighbors.find(particles.position, particles, len(x))
    number, index = neighbors.to_numpy(len(x))
    expected_number, expected = search(x, R).to_numpy(len(x))
    assert np.array_equal(number, expected_number)
    for i in range(len(x)):
        assert set(index[i, : number[i]]) == set(expected[i, : number[i]])


@pytest.mark.parametrize("capacity", [2_000, 150_000, 400_000])
def test_a_gpus_program_does_not_depend_on_where_the_fluid_is(monkeypatch, capacity):
    monkeypatch.setattr(backend, "current", lambda: SimpleNamespace(is_gpu=True, device="vulkan"))
    neighbors = Neighbors(R, 30, capacity)
    before = neighbors.scan_depth
    neighbors.fit(np.zeros(3), np.full(3, 1e4 * R))
    cells = np.prod(neighbors.dims)
    assert cells > min(capacity, 30_000) and neighbors.scan_depth == before
    assert cells + 1 <= 256 ** levels(before), "the scan is not deep enough"


def test_a_list_of_more_entries_than_an_array_can_have_is_split():
    split, pieces = pieces_of(100_000_000, 44, gpu=True)
    assert sum(pieces.values()) == 44 and max(pieces.values()) * 100_000_000 < 2**31
    assert split == pieces["index"] == pieces["more"] and split % 8 == 0  # batches of neighbours stay in one piece
    assert pieces_of(1_000_000, 44, gpu=True) == (44, {"index": 44, "more": 0, "most": 0})
    with pytest.raises(SceneError, match="a CPU"):
        pieces_of(100_000_000, 44, gpu=False)
    with pytest.raises(SceneError, match="this solver"):
        pieces_of(100_000_000, 44, gpu=True, may_split=False)
    with pytest.raises(SceneError, match="too many particles"):
        pieces_of(200_000_000, 44, gpu=True)


def test_teams_on_a_gpu(monkeypatch):
    """Few particles share more threads."""
    monkeypatch.setattr(backend, "current", lambda: SimpleNamespace(is_gpu=True))
    assert [team_size(n, False, 100) for n in (1000, 80_000, 106_000)] == [8, 2, 1] and team_size(1000, True, 100) == 2
    assert [team_size(n, False, 44) for n in (1000, 80_000, 106_000)] == [4, 1, 1]
    monkeypatch.setattr(backend, "current", lambda: SimpleNamespace(is_gpu=False))
    assert team_size(1000, False, 100) == 1


@pytest.mark.parametrize("few", [0, FEW])
def test_few_particles_change_nothing_else_about_a_search(few):
    """Read as records where nobody made any, places would be written beyond an array's end."""
    for depth in (0, 2, 3):
        assert not recorded(depth + few) and not parting(depth + few) and not torn(depth + few) and not staged(depth + few)
        for apart in (0, PARTING):
            for form in (RECORDED, TORN):
                for width in (0, 28, 44, 48, 60, 76, 80, 92, 100, 120):
                    number = depth + apart + form + (collected(width) if width else 0) + few
                    assert levels(number) == depth and recorded(number) and parting(number) == bool(apart)
                    assert torn(number) == (form == TORN) and staged(number) in ((44, 76, 92) if width else (0,))
                    assert spills(number) == (width > staged(number) > 0)
                    assert 128 * 4 * (staged(number) + 4) <= 48 * 1024
