"""Bodies made of particles, one piece at a time: bonds, the fit of a shape, Chebyshev's turns, volumes."""

import numpy as np
import pytest
import quadrants as qd

from kit import lattice, make_particles, search
from viscoil.constraints.distances import pull_bonds, start_bonds
from viscoil.constraints.shape_matching import fit_centres, match_shapes, stiffen
from viscoil.constraints.volumes import keep_volumes
from viscoil.particles import Floats, Particles, Vectors, allocate_array, vec3
from viscoil.solids.clusters import RIGID, SOFT, Clusters, ClusterSet, Elastic, Member, lattice_pairs, locate
from viscoil.sph.neighbors import Torus

D = 0.1


@qd.kernel
def _match(p: Particles, n: qd.i32, x: Vectors, clear: Floats, torus: Torus, b: Clusters):
    locate(p, n, b)
    match_shapes(p, x, 0, clear, torus, b, False)


@qd.kernel
def _stiffen(p: Particles, n: qd.i32, x: Vectors, v: Vectors, torus: Torus, b: Clusters):
    locate(p, n, b)
    fit_centres(p, x, torus, b, False)
    stiffen(p, x, v, torus, b, False)


@qd.kernel
def _begin(p: Particles, n: qd.i32, torus: Torus, b: Clusters, e: Elastic):
    locate(p, n, b)
    start_bonds(p, torus, b, e, False)


@qd.kernel
def _pull(p: Particles, x: Vectors, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic, turns: qd.template()):
    pull_bonds(p, x, 0, clear, dt, torus, b, e, turns, False)


@qd.kernel
def _volumes(p: Particles, x: Vectors, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic):
    keep_volumes(p, x, 0, clear, dt, torus, b, e, False)


def turn(seed=0):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def best_fit(x, r):
    """The rigid motion of r nearest to x, by singular values."""
    u, _, v = np.linalg.svd((x - x.mean(0)).T @ (r - r.mean(0)))
    rotation = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ v))]) @ v
    return x.mean(0) + (r - r.mean(0)) @ rotation.T


def body(kind, rest, x, **more):
    """A cluster whose particles lie backwards in memory, at places x; (particles, set, places on the device, torus, clear)."""
    n = len(rest)
    order = np.arange(n)[::-1]
    p = make_particles(x[order], id=order, rest=rest[order], cluster=np.zeros(n), inverse_mass=np.ones(n))
    clusters = ClusterSet([Member(kind, rest.astype(np.float32), **more)], D)
    clusters.begin(0, 0)
    places = allocate_array(vec3, n)
    places.from_numpy(x[order].astype(np.float32))
    return p, clusters, places, search(x, 2 * D).torus, allocate_array(qd.f32, n)


def test_bonds_of_a_lattice_are_edges_and_face_diagonals():
    x = lattice((4, 3, 5), D)
    x = x[np.random.default_rng(1).permutation(len(x))]
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    wanted = {(i, j) for i, j in zip(*np.nonzero(distance < 1.5 * D), strict=True) if i < j}
    found = list(zip(*lattice_pairs(x.astype(np.float32), D), strict=True))
    assert len(found) == len(wanted) and set(found) == wanted


@pytest.mark.parametrize("shaken", [0.0, 0.3])
def test_matching_is_the_best_rigid_motion_and_keeps_momentum(shaken):
    rest = lattice((5, 4, 3), D) - 0.2
    x = rest @ turn(3).T + [1.0, 2.0, -1.0]
    x += np.random.default_rng(0).uniform(-shaken, shaken, x.shape) * D
    p, clusters, places, torus, clear = body(RIGID, rest, x)
    _match(p, len(x), places, clear, torus, clusters.device)
    found = places.to_numpy()[::-1]
    assert np.abs(found - best_fit(x, rest)).max() < 1e-6
    assert np.abs(found.mean(0, dtype=float) - x.mean(0)).max() < 5e-7


def test_a_member_that_touches_counts_more():
    rest = lattice((4, 4, 4), D)
    x = rest.copy()
    low = rest[:, 1] < D
    x[low, 1] += 0.2 * D  # the ground pushed them up
    p, clusters, places, torus, clear = body(RIGID, rest, x)
    _match(p, len(x), places, clear, torus, clusters.device)
    usual = (places.to_numpy()[::-1] - rest)[low, 1].mean()
    places.from_numpy(x[::-1].astype(np.float32))
    _hold(p, len(x), places, clear, torus, clusters.device)
    assert usual < 0.06 * D < 0.1 * D < (places.to_numpy()[::-1] - rest)[low, 1].mean() < 0.2 * D


@qd.kernel
def _hold(p: Particles, n: qd.i32, x: Vectors, clear: Floats, torus: Torus, b: Clusters):
    for slot in range(b.number[1]):
        b.touched[slot] = qd.cast(p.rest[b.index[slot]][1] < 0.1, qd.i32)
    match_shapes(p, x, 0, clear, torus, b, False)


def test_velocities_of_a_rigid_body_keep_both_momenta():
    rest = lattice((5, 3, 4), D)
    p, clusters, places, torus, _ = body(RIGID, rest, rest)
    v = np.random.default_rng(2).normal(size=rest.shape).astype(np.float32)
    device = allocate_array(vec3, len(v))
    device.from_numpy(v[::-1].copy())
    _stiffen(p, len(v), places, device, torus, clusters.device)
    found = device.to_numpy()[::-1].astype(float)
    assert np.abs((found - v).sum(0)).max() < 1e-4
    assert np.abs(np.cross(rest, found - v).sum(0)).max() < 1e-4
    i, j = 3, 41
    assert abs((found[i] - found[j]) @ (rest[i] - rest[j])) < 1e-5  # nothing is stretched


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
    p, clusters, places, torus, clear = body(SOFT, rest, x, shear=shear)
    wanted = exact_bonds(rest, x, shear * D, 1.0, dt)
    _begin(p, len(x), torus, clusters.device, clusters.elastic)
    errors = []
    for _ in range(4):
        _pull(p, places, clear, dt, torus, clusters.device, clusters.elastic, 6)
        errors.append(np.abs(places.to_numpy()[::-1] - wanted).max() / np.abs(x - wanted).max())
    assert errors[0] < 0.4 and errors[3] < 0.02
    assert np.abs(places.to_numpy()[::-1].mean(0) - x.mean(0)).max() < 1e-6


def test_volumes_come_back_and_keep_momentum():
    rest = lattice((3, 3, 3), D)
    x = rest * 1.05
    p, clusters, places, torus, clear = body(SOFT, rest, x, shear=1.0, bulk=1e6)
    _begin(p, len(x), torus, clusters.device, clusters.elastic)
    for _ in range(60):
        _volumes(p, places, clear, 1.0, torus, clusters.device, clusters.elastic)
    found = places.to_numpy()[::-1].astype(float)
    size = np.ptp(found, axis=0).prod() / np.ptp(rest, axis=0).prod()
    assert abs(size - 1) < 0.01 and abs(np.ptp(x, axis=0).prod() / np.ptp(rest, axis=0).prod() - 1) > 0.15
    assert np.abs(found.mean(0) - x.mean(0)).max() < 1e-5
