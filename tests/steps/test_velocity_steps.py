"""XSPH, vorticity confinement and prediction against NumPy."""

import numpy as np
import pytest
import quadrants as qd

from kit import differences, lattice, make_particles, poly6, search, spiky_gradient
from viscoil.particles import Ints, Particles, Vectors, allocate_array, vec3
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.steps.integrate import velocities
from viscoil.steps.viscosity import xsph_and_commit
from viscoil.steps.vorticity import confine, curl

D, H = 0.02, 0.046


@qd.kernel
def _xsph(
    p: Particles,
    x: Vectors,
    n: qd.i32,
    near: NeighborList,
    torus: Torus,
    c: qd.f32,
    h: qd.f32,
    v: Vectors,
    uniform: qd.Template,
):
    xsph_and_commit(p, x, n, near, torus, c, h, v, uniform, False)


@qd.kernel
def _confine(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, strength: qd.f32, dt: qd.f32, w: Vectors, v: Vectors
):
    curl(p, p.position, n, near, torus, h, v, w, False)
    confine(p, p.position, n, near, torus, h, strength, dt, w, v, False)


@qd.kernel
def _velocities(p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, predicted: Vectors, velocity: Vectors, status: Ints):
    velocities(p, n, dt, farthest, predicted, velocity, status)


def vectors(values):
    array = allocate_array(vec3, len(values))
    array.from_numpy(np.asarray(values, np.float32))
    return array


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(4)
    x = lattice((6, 6, 6), D, jitter=0.2)
    return x, rng.normal(size=x.shape), np.full(len(x), D**3)


@pytest.mark.parametrize("masses", ["equal", "two"])
def test_xsph(cloud, masses):
    x, v, volume = cloud
    w = np.ones(len(x)) if masses == "equal" else np.where(np.arange(len(x)) % 3, 1.0, 0.25)
    p = make_particles(x, velocity=v, volume=volume, inverse_mass=w)
    near = search(x, H, particles=p)
    _xsph(p, vectors(x + 1), len(x), near.list, near.torus, 0.1, H, vectors(v), masses == "equal")
    weight = poly6(np.linalg.norm(differences(x + 1), axis=2), H) * volume[None] * 2 * w[:, None] / (w[:, None] + w[None])
    expected = v + 0.1 * (weight[..., None] * (v[None] - v[:, None])).sum(1)
    found = p.velocity.to_numpy()
    assert np.allclose(found, expected, atol=2e-4)
    assert np.allclose(p.position.to_numpy(), x + 1, atol=1e-6), "positions are committed"
    assert np.allclose((found / w[:, None]).sum(0), (v / w[:, None]).sum(0), atol=1e-3 * np.abs(v).sum() / 100)
    assert np.abs(found - v).max() > 0.05


def test_vorticity_confinement(cloud):
    """Eqs. 15 and 16, term by term."""
    x, v, volume = cloud
    p = make_particles(x, velocity=v, volume=volume)
    near = search(x, H, particles=p)
    omega, velocity = allocate_array(vec3, len(x)), vectors(v)
    _confine(p, len(x), near.list, near.torus, H, 0.3, 0.004, omega, velocity)
    gradient = volume[None, :, None] * spiky_gradient(differences(x), H)
    w = np.cross(gradient, v[None] - v[:, None]).sum(1)
    assert np.allclose(omega.to_numpy(), w, atol=1e-4 * np.abs(w).max())
    size = np.linalg.norm(w, axis=1)
    eta = (gradient * (size[None] - size[:, None])[..., None]).sum(1)
    force = 0.3 * np.cross(eta / np.linalg.norm(eta, axis=1, keepdims=True), w)
    assert np.allclose(velocity.to_numpy() - v, 0.004 * force, atol=2e-3 * np.abs(0.004 * force).max())


def test_even_vorticity_needs_no_confinement():
    """Inside a rigid rotation |ω| has no gradient: no direction must be made up from rounding."""
    x = lattice((13, 13, 13), D)
    v = np.cross([0, 0, 3.0], x)
    p = make_particles(x, velocity=v, volume=np.full(len(x), D**3))
    near = search(x, H, particles=p)
    velocity = vectors(v)
    _confine(p, len(x), near.list, near.torus, H, 1.0, 1.0, allocate_array(vec3, len(x)), velocity)
    inside = np.all((x > 2 * H) & (x < 13 * D - 2 * H), axis=1)
    assert inside.sum() >= 1
    assert np.allclose(velocity.to_numpy()[inside], v[inside], atol=1e-5)


def test_velocities_report_trouble():
    """The smallest id that is not finite or moved too far, and the largest speed of the others."""
    x = np.zeros((6, 3))
    moved = x.copy()
    moved[1] = (0.03, 0, 0)
    p = make_particles(x, id=np.array([10, 11, 12, 13, 14, 15]), inverse_mass=np.array([1, 1, 1, 1, 1, 0.0]))
    status = allocate_array(qd.i32, 2)

    def look(places):
        status.from_numpy(np.array([2**31 - 1, 0], np.int32))
        _velocities(p, 6, 0.01, 1.0, vectors(places), allocate_array(vec3, 6), status)
        raw = status.to_numpy()
        return raw[0], raw[1:].view(np.float32)[0]

    assert look(moved) == (2**31 - 1, pytest.approx(3.0))
    for bad in (np.nan, np.inf, -np.inf, 1.5):
        broken = moved.copy()
        broken[4, 1] = broken[3, 2] = bad
        who, speed = look(broken)
        assert who == 13 and speed == pytest.approx(3.0)
    samples = moved.copy()
    samples[5] = (0.9, 0, 0)
    assert look(samples)[1] == pytest.approx(3.0), "walls do not count as fast particles"
