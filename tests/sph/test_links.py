"""Links: who is linked with whom, both ends alike, full rows, sorting, cutting, and the law of flow."""

import numpy as np
import pytest
import quadrants as qd

from kit import differences, lattice, make_particles, periodic_box, search
from viscoil.carried import Carried
from viscoil.particles import Floats, Ints, Particles, allocate_array
from viscoil.sph.links import LinkRows, agree, carried_links, flowed, make, recall, store
from viscoil.sph.neighbors import NeighborList, Torus

D = 0.1
H = 2.3 * D
REACH = 0.7 * H


@qd.kernel
def relink(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, reach: qd.f32, rows: LinkRows, length: Floats, number: Ints,
    total: Ints, periodic: qd.Template,
):  # fmt: skip
    recall(p, n, near, rows, length, number)
    make(p, p.position, n, near, torus, reach, rows, length, number, periodic)
    agree(n, near, length, number)
    store(p, n, near, length, rows, total)


@qd.kernel
def flow_kernel(rest: Floats, r: qd.f32, share: qd.f32, yielding: qd.f32, steps: qd.i32):
    for i in range(rest.shape[0]):
        for _ in range(steps):
            rest[i] = flowed(rest[i], r, share, yielding)


class Linked:
    """Links among points, as a solver would hold them."""

    def __init__(self, width=32):
        self.width = width
        self.carried = carried_links(width)

    def relink(self, x, ids=None, box=None, reach=REACH):
        """New links between points closer than ``reach``; (n, n) lengths at rest by id, 0 where there is no link."""
        n = len(x)
        ids = np.arange(n) if ids is None else ids
        particles = make_particles(x, id=ids)
        near = search(x, H, box, particles)
        width = allocate_array(qd.i32, 1)
        width.fill(self.width)
        if self.carried["partner"].array.shape[0] < n * self.width:
            for rows in self.carried.values():
                rows.reserve(0, n)
        rows = LinkRows(self.carried["partner"].array, self.carried["rest"].array, width)
        length = allocate_array(qd.f32, near.list.index.shape[0])
        number, self.total = allocate_array(qd.i32, n), allocate_array(qd.i32, 1)
        relink(particles, n, near.list, near.torus, reach, rows, length, number, self.total, box is not None)
        matrix = np.zeros((n, n))
        partner, rest = self.carried["partner"].get(n), self.carried["rest"].get(n)
        for i in range(n):
            used = partner[i] >= 0
            matrix[ids[i], partner[i][used]] = rest[i][used]
        return matrix


@pytest.mark.parametrize("box", [None, periodic_box((0, 0, 0), (0.8, 0.8, 0.8), "xyz")])
def test_all_close_pairs_are_linked_at_their_distance(box):
    x = lattice((8, 8, 8), D, 0.2)
    r = np.linalg.norm(differences(x, box), axis=2)
    expected = np.where((r > 0) & (r < REACH), r, 0)
    found = Linked().relink(x, box=box)
    assert np.allclose(found, expected, rtol=1e-5) and (found > 0).sum() > 5000


def test_full_rows_refuse_both_ends():
    linked = Linked(width=5)
    found = linked.relink(lattice((6, 6, 6), D, 0.2))
    assert np.array_equal(found, found.T), "both ends hold the same bits"
    assert (found > 0).sum(1).max() == 5 and linked.total.to_numpy()[0] == (found > 0).sum() > 100


def test_links_are_found_again_in_another_order_and_keep_their_length():
    linked, x = Linked(), lattice((5, 5, 5), D, 0.1)
    first = linked.relink(x)
    order = np.random.default_rng(0).permutation(len(x)).astype(np.int32)
    device = allocate_array(qd.i32, len(x))
    device.from_numpy(order)
    for rows in linked.carried.values():
        rows.reorder(device, len(x))
    again = linked.relink(1.1 * x[order], ids=order, reach=0.0)
    assert np.array_equal(first, again)


def test_who_is_out_of_sight_is_no_longer_linked():
    linked, x = Linked(), lattice((4, 4, 4), D)
    first = linked.relink(x)
    far = x.copy()
    far[0] += 10.0
    after = linked.relink(far, reach=0.0)
    assert first[0].any() and not after[0].any() and not after[:, 0].any()
    assert np.array_equal(after[1:, 1:], first[1:, 1:])


@pytest.mark.parametrize("r", [0.13, 0.08])
def test_lengths_at_rest_follow_the_law_of_flow(r):
    """dl/dt = a (r − (1 ± γ) l): an exponential towards r/(1 ± γ)."""
    start, rate, gamma, dt, steps = 0.1, 2.0, 0.1, 1e-3, 400
    rest = allocate_array(qd.f32, 1)
    rest.fill(start)
    flow_kernel(rest, r, rate * dt, gamma, steps)
    factor = 1 + gamma if r > start else 1 - gamma
    exact = r / factor + (start - r / factor) * np.exp(-rate * factor * dt * steps)
    assert rest.to_numpy()[0] == pytest.approx(exact, rel=1e-3) and abs(exact - start) > 0.005


def test_below_the_yield_strain_nothing_flows():
    rest = allocate_array(qd.f32, 1)
    rest.fill(0.1)
    flow_kernel(rest, 0.109, 0.5, 0.1, 100)
    assert rest.to_numpy()[0] == np.float32(0.1)


def test_rows_travel_grow_and_go_back():
    rows = Carried(qd.i32, 3, -1)
    rows.reserve(0, 4)
    values = np.arange(12, dtype=np.int32).reshape(4, 3)
    rows.set(values)
    rows.remember(4)
    order = allocate_array(qd.i32, 3)
    order.from_numpy(np.array([2, 0, 3], np.int32))
    rows.reorder(order, 3)
    assert np.array_equal(rows.get(3), values[[2, 0, 3]])
    rows.reserve(3, 6)
    assert np.array_equal(rows.get(6), np.vstack([values[[2, 0, 3]], np.full((3, 3), -1)]))
    rows.remember(6)
    rows.set(values)
    rows.go_back(6)
    assert np.array_equal(rows.get(3), values[[2, 0, 3]])
