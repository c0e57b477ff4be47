"""Interpolation: corrected gradients are exact for linear fields, also where half of the neighbours are missing."""

import numpy as np
import pytest
import quadrants as qd

from kit import cubic, cubic_gradient, differences, lattice, make_particles, poly6, search, spiky
from viscoil.particles import Particles, Vectors, allocate_array, mat3, vec3
from viscoil.sph.calibration import calibrate
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.operators import density_kernel, gradient_kernel
from viscoil.sph.smoothing import CUBIC, POLY6, SPIKY
from viscoil.steps.vorticity import curl

D, H = 0.02, 0.046


@qd.kernel
def _curl(p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, v: Vectors, out: Vectors):
    curl(p, x, n, near, torus, h, v, out, False)


def gradients(x, v, volume=D**3):
    """(B⁻¹, L) at every point."""
    p = make_particles(x, velocity=v, volume=np.full(len(x), volume))
    near = search(x, H, particles=p)
    correction, out = (allocate_array(mat3, len(x)) for _ in range(2))
    gradient_kernel(p, p.position, len(x), near.list, near.torus, H, p.velocity, correction, out, False)
    return correction.to_numpy(), out.to_numpy()


@pytest.fixture(scope="module")
def block():
    x = lattice((9, 8, 7), D, jitter=0.15)
    a = np.array([[0.3, -2.0, 0.7], [1.1, 0.2, -0.4], [-0.9, 0.5, 1.3]])
    return x, a, *gradients(x, x @ a.T + [1, 2, 3])


def test_correction_inverts_b(block):
    x, _, correction, _ = block
    d = differences(x)
    b = -np.einsum("ijk,ijl->ikl", D**3 * d, cubic_gradient(d, H))
    assert np.allclose(correction @ b, np.eye(3), atol=1e-5)
    assert np.linalg.eigvalsh(b).min() < 0.55, "the block has a free surface, where B is far from I"


def test_velocity_gradient_is_exact_for_linear_fields(block):
    _, a, _, gradient = block
    assert np.abs(gradient - a).max() < 2e-5 * np.abs(a).max() * 10


@pytest.mark.parametrize("kernel, w", [(SPIKY, spiky), (POLY6, poly6), (CUBIC, cubic)])
def test_density_sum(kernel, w):
    x = lattice((6, 6, 6), D, jitter=0.2)
    volume = np.random.default_rng(1).uniform(0.5, 1.5, len(x)) * D**3
    p = make_particles(x, volume=volume)
    near = search(x, H, particles=p)
    out, wall = (allocate_array(qd.f32, len(x)) for _ in range(2))
    wall.from_numpy(np.full(len(x), 0.25, np.float32))
    density_kernel(p, p.position, len(x), near.list, near.torus, H, wall, out, kernel, False)
    expected = w(np.linalg.norm(differences(x), axis=2), H) @ volume + 0.25
    assert np.allclose(out.to_numpy(), expected, rtol=2e-5)


def test_few_neighbours_are_regularised():
    """Alone, in pairs, on a line, in a plane: B is singular, the result still finite and bounded."""
    line = np.stack([np.arange(6) * D, np.zeros(6), np.zeros(6)], 1)
    plane = np.array([10, 0, 0]) + lattice((5, 1, 5), D)
    x = np.concatenate([[[5.0, 0, 0]], [[6.0, 0, 0], [6.0 + D, 0, 0]], line, plane, [[20.0, 0, 0]] * 3])
    correction, gradient = gradients(x, x * [1, 2, 3])
    assert np.isfinite(correction).all() and np.isfinite(gradient).all()
    assert np.allclose(correction[0], np.eye(3) / 0.3, rtol=1e-5), "alone: 1/max(trace/3, 0.3)"
    assert np.allclose(gradient[0], 0)
    assert np.abs(correction).max() < 1 / 0.05


def test_curl_of_a_rigid_rotation():
    lattice_reference = calibrate(D, H)
    x = lattice((9, 9, 9), D)
    omega = np.array([0.4, -1.2, 2.0])
    v = np.cross(omega, x)
    p = make_particles(x, velocity=v, volume=np.full(len(x), lattice_reference.volume))
    near = search(x, H, particles=p)
    out = allocate_array(vec3, len(x))
    _curl(p, p.position, len(x), near.list, near.torus, H, p.velocity, out)
    inside = np.all((x > H) & (x < 9 * D - H), axis=1)
    assert inside.sum() >= 27
    measured = out.to_numpy()[inside]
    along = measured @ omega / (omega @ omega)
    assert np.allclose(measured, along[:, None] * omega, atol=1e-3), "the axis is exact on a lattice"
    assert np.allclose(along, 2, rtol=0.2)
