"""Viscosity impulses (Algorithm 5) against all pairs in NumPy: approaching pairs only, never more than stops them."""

import numpy as np
import pytest
import quadrants as qd

from pvfs_kit import Swept, cloud
from pvfs_reference import pairs, slowed
from viscoil import backend
from viscoil.particles import Flag, Floats, Ints, Particles, Table, Vectors, allocate_array, vec3
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.schedule import Hits, Schedule, begin_sweep, next_colour
from viscoil.steps.impulses import ImpulseNumbers, damp_colour, damped


@qd.kernel(graph=True)
def sweep(
    left: Flag, p: Particles, v: Vectors, near: NeighborList, torus: Torus, c: ImpulseNumbers, schedule: Schedule, hits: Hits,
    single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    begin_sweep(left, schedule)
    while qd.graph.do_while(left):
        damp_colour(schedule, p, v, near, torus, c, hits, single, uniform, periodic)
        next_colour(left, schedule)


@qd.kernel
def at_once(
    p: Particles, v: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: ImpulseNumbers, rate: Floats, over: Ints,
    out: Vectors, single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    damped(p, v, n, near, torus, c, rate, over, out, single, uniform, periodic)


def numbers(sigma, beta):
    sigmas = [sigma] if np.isscalar(sigma) else list(sigma)
    return Table(ImpulseNumbers).set(support=[1.0], linear=sigmas, quadratic=[beta]), len(sigmas) == 1


def upload(values):
    array = allocate_array(vec3, len(values))
    array.from_numpy(np.asarray(values, np.float32))
    return array


def swept(s, v, sigma, beta, schedule=None, uniform=True):
    """Velocities after the pairs came one after the other."""
    device, schedule = upload(v), schedule or s.coloured
    c, single = numbers(sigma, beta)
    sweep(
        backend.loop_counter(), s.particles, device, s.neighbors.list, s.neighbors.torus, c, schedule, s.hits, single,
        uniform, s.neighbors.periodic,
    )  # fmt: skip
    return device.to_numpy()[: s.n].astype(float)


def together(s, v, sigma, beta, uniform=True):
    """Velocities after all pairs acted at once."""
    out, rate, over = allocate_array(vec3, s.n), allocate_array(qd.f32, s.n), allocate_array(qd.i32, 1)
    c, single = numbers(sigma, beta)
    at_once(
        s.particles, upload(v), s.n, s.neighbors.list, s.neighbors.torus, c, rate, over, out, single, uniform,
        s.neighbors.periodic,
    )  # fmt: skip
    return out.to_numpy()[: s.n].astype(float)


def moving(n, size=0.1, seed=5):
    return np.random.default_rng(seed).uniform(-size, size, (n, 3)).astype(np.float32).astype(float)


@pytest.mark.parametrize(("sigma", "beta"), [(0.3, 0.0), (0.0, 0.5), (0.2, 1.0)])
def test_all_at_once_is_algorithm_5(sigma, beta):
    x = cloud()
    v = moving(len(x))
    assert np.allclose(together(Swept(x), v, sigma, beta), slowed(x, v, 1.0, sigma, beta), atol=3e-7)


def in_turn(x, v, order, sigma, beta):
    """Algorithm 5 as printed: owners in ``order``, each pair once, owned by the smaller number; velocities change at once."""
    v, q = v.copy(), pairs(x)
    for i in order:
        for j in np.nonzero(q[2][i] & (np.arange(len(x)) > i))[0]:
            way = q[0][i, j] / q[1][i, j]
            u = (v[i] - v[j]) @ way
            if u > 0:
                impulse = min((1 - q[1][i, j]) * (sigma * u + beta * u * u), u) / 2 * way
                v[i] -= impulse
                v[j] += impulse
    return v


def test_one_after_the_other_is_algorithm_5():
    """Its pairs come in the order of the lists; a little viscosity forgives that."""
    x = cloud()
    v, s = moving(len(x)), Swept(x)
    order = np.random.default_rng(0).permutation(s.n)
    assert np.allclose(swept(s, v, 0.01, 0.0, s.in_turn(order)), in_turn(x, v, order, 0.01, 0.0), atol=1e-4)
    two = Swept(x[:2])
    assert np.allclose(swept(two, v[:2], 0.4, 0.7), in_turn(x[:2], v[:2], [0, 1], 0.4, 0.7), atol=1e-7)


@pytest.mark.parametrize("act", [swept, together])
def test_pairs_that_part_are_left_alone(act):
    x = cloud()
    v = 0.1 * (x - x.mean(0))
    assert np.allclose(act(Swept(x), v, 0.5, 0.5), v, atol=1e-7)


@pytest.mark.parametrize("act", [swept, together])
def test_no_pair_bounces(act):
    """However viscous: an impulse takes the approach away and no more."""
    x = np.array([[0, 0, 0], [0.3, 0.2, 0]])
    v = np.array([[0.2, 0.1, 0.05], [-0.1, 0.0, 0]])
    way = (x[1] - x[0]) / np.linalg.norm(x[1] - x[0])
    after = act(Swept(x), v, 100.0, 100.0)
    assert (after[0] - after[1]) @ way == pytest.approx(0, abs=2e-7)
    assert np.allclose(after.sum(0), v.sum(0), atol=1e-7)
    across = v - (v @ way)[:, None] * way
    assert np.allclose(after - (after @ way)[:, None] * way, across, atol=1e-7), "nothing sideways"


@pytest.mark.parametrize("act", [swept, together])
@pytest.mark.parametrize("sigma", [0.3, 5.0])
def test_momentum_stays_and_energy_falls(act, sigma):
    """Together and very viscous, pairs are limited, each by one factor for both of its ends."""
    x = cloud((7, 7, 7))
    v = moving(len(x))
    after = act(Swept(x), v, sigma, 0.5)
    assert np.abs((after - v).sum(0)).max() < 1e-6 * np.abs(v).sum()
    assert (after**2).sum() < (v**2).sum()


@pytest.mark.parametrize("act", [swept, together])
def test_two_in_one_place_are_passed_over(act):
    x = cloud((4, 4, 4), 0.1)
    x[10] = x[11]
    v = np.zeros_like(x)
    v[10] = 0.1
    after = act(Swept(x), v, 0.3, 0.3)
    assert np.isfinite(after).all() and np.abs((after - v).sum(0)).max() < 1e-6
    alone = act(Swept(x[10:12]), v[10:12], 0.3, 0.3)
    assert np.array_equal(alone.astype(np.float32), v[10:12].astype(np.float32))


def test_heavy_and_light():
    x, light = cloud(), np.where(np.arange(150) % 3 == 0, 1.0, 0.2).astype(np.float32)
    s, v = Swept(x, inverse_mass=light), moving(150)
    for act in (swept, together):
        change = (act(s, v, 0.3, 0.3, uniform=False) - v) / light[:, None]
        assert np.abs(change.sum(0)).max() < 1e-6 * np.abs(change).sum() < np.inf


def test_materials_meet_in_the_middle():
    """σ of a pair is the mean of its ends."""
    x = np.array([[0, 0, 0], [0.4, 0, 0]])
    v = np.array([[0.1, 0, 0], [0, 0, 0.0]])
    s = Swept(x, material=np.array([0, 1]))
    for act in (swept, together):
        assert np.allclose(act(s, v, (0.2, 0.6), 0.0), slowed(x, v, 1.0, 0.4, 0.0), atol=1e-7)


def test_colours_are_one_particular_order():
    x = cloud((18, 16, 17), 0.3)
    s, v = Swept(x), moving(len(x))
    coloured, line = swept(s, v, 0.5, 0.5), swept(s, v, 0.5, 0.5, s.in_turn(s.induced()))
    assert np.array_equal(coloured, line) and np.abs(coloured - v).max() > 0.01
