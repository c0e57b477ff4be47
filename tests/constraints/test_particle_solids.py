"""Bodies made of particles, one piece at a time: bonds, the fit of a shape, Chebyshev's turns, volumes."""

import numpy as np
import pytest
import quadrants as qd

from kit import lattice, make_particles, search
from viscoil.constraints.particle_solids import find_clusters, hold_together, loops_of
from viscoil.constraints.shape_matching import fit_and_stiffen, stiffen
from viscoil.particles import Floats, Ints, Particles, Vectors, allocate_array, vec3
from viscoil.solids.clusters import RIGID, SOFT, Clusters, ClusterSet, Elastic, Member, lattice_pairs
from viscoil.sph.neighbors import Torus

D = 0.1


@qd.kernel
def _begin(p: Particles, n: qd.i32, dt: Floats, torus: Torus, b: Clusters, e: Elastic, mix: qd.template()):
    find_clusters(p, n, dt[0], torus, b, e, mix, False)


@qd.kernel
def _hold(
    p: Particles, x: Vectors, half: Ints, clear: Floats, dt: Floats, torus: Torus, b: Clusters, e: Elastic, mix: qd.template()
):
    hold_together(p, x, half, clear, dt[0], torus, b, e, mix, False)


@qd.kernel
def _stiffen(x: Vectors, v: Vectors, again: Vectors, torus: Torus, b: Clusters):
    fit_and_stiffen(x, v, torus, b, False)
    stiffen(x, again, torus, b, False)


def turn(seed=0):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def best_fit(x, r):
    """The rigid motion of r nearest to x, by singular values."""
    u, _, v = np.linalg.svd((x - x.mean(0)).T @ (r - r.mean(0)))
    rotation = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ v))]) @ v
    return x.mean(0) + (r - r.mean(0)) @ rotation.T


class Bodies:
    """Clusters whose particles lie backwards in memory, at places x (one array per cluster)."""

    def __init__(self, members, x):
        x = np.concatenate(x)
        rest, self.count = np.concatenate([m.rest for m in members]), len(x)
        order = np.arange(self.count)[::-1]
        owner = np.repeat(np.arange(len(members)), [len(m.rest) for m in members])
        w = np.repeat([m.mobility for m in members], [len(m.rest) for m in members])
        self.particles = make_particles(x[order], id=order, rest=rest[order], cluster=owner[order], inverse_mass=w[order])
        self.set = ClusterSet(members, D)
        self.set.set_first_ids(list(np.cumsum([0, *(len(m.rest) for m in members[:-1])])))
        self.device, self.elastic, self.torus = self.set.device, self.set.elastic, search(x, 2 * D).torus
        self.dt, self.half = allocate_array(qd.f32, 1), allocate_array(qd.i32, 1)
        self.clear, self.places = allocate_array(qd.f32, self.count), self.upload(x)

    def upload(self, values):
        array = allocate_array(vec3, self.count)
        array.from_numpy(np.ascontiguousarray(values[::-1], np.float32))
        return array

    def begin(self, dt, mix):
        self.dt.from_numpy(np.array([dt], np.float32))
        _begin(self.particles, self.count, self.dt, self.torus, self.device, self.elastic, mix)

    def hold(self, mix):
        _hold(self.particles, self.places, self.half, self.clear, self.dt, self.torus, self.device, self.elastic, mix)

    @property
    def x(self):
        return self.places.to_numpy()[::-1].astype(float)


def body(kind, rest, x, **more):
    """One cluster alone."""
    return Bodies([Member(kind, rest.astype(np.float32), **more)], [x])


def test_bonds_of_a_lattice_are_edges_and_face_diagonals():
    x = lattice((4, 3, 5), D)
    x = x[np.random.default_rng(1).permutation(len(x))]
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    wanted = {(i, j) for i, j in zip(*np.nonzero(distance < 1.5 * D), strict=True) if i < j}
    found = list(zip(*lattice_pairs(x.astype(np.float32), D), strict=True))
    assert len(found) == len(wanted) and set(found) == wanted


SIZES = ((5, 4, 3), (9, 8, 11))  # of one chunk, and of four, the last of them not full


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shaken", [0.0, 0.3])
def test_matching_is_the_best_rigid_motion_and_keeps_momentum(shaken, size):
    rest = lattice(size, D) - 0.2
    x = rest @ turn(3).T + [1.0, 2.0, -1.0]
    x += np.random.default_rng(0).uniform(-shaken, shaken, x.shape) * D
    b = body(RIGID, rest, x)
    b.begin(1.0, 1)
    b.hold(1)
    assert np.abs(b.x - best_fit(x, rest)).max() < 1e-6
    assert np.abs(b.x.mean(0) - x.mean(0)).max() < 5e-7
    assert np.abs(b.clear.to_numpy()[::-1] + np.linalg.norm(b.x - x, axis=1)).max() < 1e-6


def test_a_member_that_touches_counts_more():
    rest = lattice((4, 4, 4), D)
    x = rest.copy()
    low = rest[:, 1] < D
    x[low, 1] += 0.2 * D  # the ground pushed them up
    b = body(RIGID, rest, x)
    b.begin(1.0, 1)
    b.hold(1)
    usual = (b.x - rest)[low, 1].mean()
    b.places = b.upload(x)
    b.device.touched.from_numpy(low.astype(np.int32))
    b.hold(1)
    assert usual < 0.06 * D < 0.1 * D < (b.x - rest)[low, 1].mean() < 0.2 * D


@pytest.mark.parametrize("size", SIZES)
def test_velocities_of_a_rigid_body_keep_both_momenta(size):
    rest = lattice(size, D)
    b = body(RIGID, rest, rest)
    v, again = np.random.default_rng(2).normal(size=(2, *rest.shape)).astype(np.float32)
    first, second = b.upload(v), b.upload(again)
    b.begin(1.0, 1)
    _stiffen(b.places, first, second, b.torus, b.device)
    for before, after in ((v, first), (again, second)):
        found = after.to_numpy()[::-1].astype(float)
        assert np.abs((found - before).sum(0)).max() < 1e-4
        assert np.abs(np.cross(rest, found - before).sum(0)).max() < 1e-4
        i, j = 3, 41
        assert abs((found[i] - found[j]) @ (rest[i] - rest[j])) < 1e-5  # nothing is stretched


def plain_bonds(rest, x, multiplier, turns, shear, damping, w, dt):
    """Turns of Chebyshev's iteration as distances.py states them, one bond after the other; (places, multipliers)."""
    a, b = lattice_pairs(rest.astype(np.float32), D)
    x, length, low = x.copy(), np.linalg.norm(rest[a] - rest[b], axis=1), 1 / (shear * D) / dt**2
    ratio = damping / dt
    half = 6.3 * w * (1 + ratio)
    centre, rho, stride = low + half, half / (low + half), 0.0
    for number in range(turns):
        d = x[a] - x[b]
        r = np.linalg.norm(d, axis=1)
        residual = (1 + ratio) * (length - r) - low * multiplier  # what is not stretched at the start
        before, rho = (rho, 1 / (2 * centre / half - rho)) if number else (0.0, rho)
        stride = rho * before * stride + 2 * rho / half * residual if number else residual / centre
        multiplier = multiplier + stride
        np.add.at(x, a, w * (stride / r)[:, None] * d)
        np.add.at(x, b, -w * (stride / r)[:, None] * d)
    return x, multiplier


def plain_volumes(rest, x, pressure, bulk, w, dt):
    """One iteration of volumes.py; (places, multipliers)."""
    pairs = np.concatenate([np.stack(lattice_pairs(rest.astype(np.float32), D), 1)] * 2)
    pairs[len(pairs) // 2 :] = pairs[len(pairs) // 2 :, ::-1]
    after, pressure = x.copy(), pressure.copy()
    for i in range(len(x)):
        k = pairs[pairs[:, 0] == i, 1]
        r, d = rest[k] - rest[i], x[k] - x[i]
        inverse = np.linalg.inv(r.T @ r)
        f = d.T @ r @ inverse
        slope = np.linalg.det(f) * np.linalg.inv(f).T @ inverse @ r.T
        squares = (slope**2).sum() + (slope.sum(1) ** 2).sum()
        low = 1 / (bulk * D**3) / dt**2
        change = (1 - np.linalg.det(f) - low * pressure[i]) / (2.8 * w * squares + low)
        pressure[i] += change
        after[k] += w * change * slope.T
        after[i] -= w * change * slope.sum(1)
    return after, pressure


@pytest.mark.parametrize("mix", [2, 10, 14, 15])
def test_bodies_of_all_kinds_share_their_loops(mix):
    """Two rigid and two soft ones, of several chunks each, against the equations one by one."""
    w, shear, bulk, damping, dt, turns = 0.7, 30.0, 500.0 if mix & 4 else 0.0, 0.5, 0.8, 12 if mix & 8 else 4
    rests = [lattice(size, D) for size in ((7, 7, 6), (8, 9, 4), (3, 4, 5), (4, 3, 3))]
    kinds = [SOFT, RIGID, RIGID, SOFT]
    if not mix & 1:
        rests, kinds = rests[::3], kinds[::3]
    members = [
        Member(kind, rest.astype(np.float32), 1.0, w, *((shear, bulk, damping) if kind == SOFT else ()))
        for kind, rest in zip(kinds, rests, strict=True)
    ]
    rng = np.random.default_rng(5)
    moved = [rest @ turn(k).T + k + 0.03 * D * rng.normal(size=rest.shape) for k, rest in enumerate(rests)]
    b = Bodies(members, [rest @ turn(k).T + k for k, rest in enumerate(rests)])
    assert b.set.mix(dt) == mix & 7 | 8 * (12 * w * (1 + damping / dt) > 40 / (shear * D * dt * dt))
    b.begin(dt, mix)
    b.places = b.upload(np.concatenate(moved))
    wanted = [x.copy() for x in moved]
    state = [(np.zeros(len(lattice_pairs(r.astype(np.float32), D)[0])), np.zeros(len(r))) for r in rests]
    for _ in range(3):
        b.hold(mix)
        for k, (kind, rest) in enumerate(zip(kinds, rests, strict=True)):
            multiplier, pressure = state[k]
            if kind == RIGID:
                wanted[k] = best_fit(wanted[k], rest)
                continue
            if mix & 4:
                wanted[k], pressure = plain_volumes(rest, wanted[k], pressure, bulk, w, dt)
            wanted[k], multiplier = plain_bonds(rest, wanted[k], multiplier, turns, shear, damping, w, dt)
            state[k] = multiplier, pressure
    assert np.abs(b.x - np.concatenate(wanted)).max() < 3e-6
    for places, before in zip(np.split(b.x, np.cumsum([len(r) for r in rests])[:-1]), moved, strict=True):
        assert np.abs(places.mean(0) - before.mean(0)).max() < 5e-7  # momentum


def exact_bonds(rest, x, k, w, dt):
    """Multipliers and places after one implicit step of springs of stiffness k from places x, linear about x."""
    a, b = lattice_pairs(rest.astype(np.float32), D)
    d = x[a] - x[b]
    length = np.linalg.norm(d, axis=1)
    n = d / length[:, None]
    jacobian = np.zeros((len(a), 3 * len(x)))
    for axis in range(3):
        jacobian[np.arange(len(a)), 3 * a + axis] = n[:, axis]
        jacobian[np.arange(len(a)), 3 * b + axis] = -n[:, axis]
    stretch = length - np.linalg.norm(rest[a] - rest[b], axis=1)
    multiplier = np.linalg.solve(w * jacobian @ jacobian.T + np.eye(len(a)) / (k * dt * dt), -stretch)
    return x + (w * jacobian.T @ multiplier).reshape(-1, 3)


def test_turns_of_chebyshev_reach_the_implicit_step():
    rest = lattice((4, 4, 4), D)
    x = rest * [1.002, 1.0, 0.999] + np.random.default_rng(0).uniform(-1e-3, 1e-3, rest.shape) * D
    dt, shear = 1.0, 40.0  # bonds: compliance 1/(μ d) = 1/4 against 12 of the stiffest mode
    b = body(SOFT, rest, x, shear=shear)
    wanted = exact_bonds(rest, x, shear * D, 1.0, dt)
    errors = []
    b.begin(dt, 10)
    for _ in range(3):
        b.hold(10)
        errors.append(np.abs(b.x - wanted).max() / np.abs(x - wanted).max())
    assert errors[0] < 0.2 and errors[2] < 0.02
    assert np.abs(b.x.mean(0) - x.mean(0)).max() < 1e-6


def test_volumes_come_back_and_keep_momentum():
    rest = lattice((3, 3, 3), D)
    x = rest * 1.05
    b = body(SOFT, rest, x, shear=1e-6, bulk=1e6)  # bonds that do nothing
    b.begin(1.0, 6)
    for _ in range(60):
        b.hold(6)
    size = np.ptp(b.x, axis=0).prod() / np.ptp(rest, axis=0).prod()
    assert abs(size - 1) < 0.01 and abs(np.ptp(x, axis=0).prod() / np.ptp(rest, axis=0).prod() - 1) > 0.15
    assert np.abs(b.x.mean(0) - x.mean(0)).max() < 1e-5


def test_loops_of_an_iteration():
    """What a GPU starts per iteration; nothing at all without particle solids."""
    assert [loops_of(mix) for mix in (0, 1, 2, 3, 6, 10, 15)] == [0, 2, 4, 4, 6, 12, 14]
