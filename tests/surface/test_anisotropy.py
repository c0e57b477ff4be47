"""Ellipsoids of Yu & Turk, against a plain evaluation of their formulas and against shapes whose answer is known."""

import numpy as np
import pytest
from bodies import block, frame_of

from kit import lattice
from viscoil import backend
from viscoil.surface.anisotropy import FEW, MANY, ROUND, ellipsoids, measure


def by_definition(x, spacing, support=2.0, reach=2.5, stretch=4.0, centring=0.9):
    """Means, covariances and eigenvectors over all pairs, in double precision."""
    x = np.asarray(x, np.float32).astype(float) / spacing
    d = x[None] - x[:, None]
    r = np.linalg.norm(d, axis=2)
    w = np.where(r < reach, 1 - (r / reach) ** 3, 0)
    total = w.sum(axis=1)
    mean = np.einsum("ij,ijk->ik", w, d) / total[:, None]
    spread = d - mean[:, None]
    covariance = np.einsum("ij,ija,ijb->iab", w, spread, spread) / total[:, None, None]
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    values = np.maximum(values, values[:, :1] / stretch)
    trust = np.clip(((r < reach).sum(axis=1) - 1 - FEW) / (MANY - FEW), 0, 1)[:, None]
    values = trust * values / np.maximum(values[:, :1], 1e-6) + 1 - trust
    q = np.minimum(r / support, 1)
    kernel = 8 / np.pi / support**3 * np.where(q < 0.5, 6 * (q**3 - q**2) + 1, 2 * (1 - q) ** 3)
    crowd = np.maximum(1 - (r / support) ** 2, 0).sum(axis=1) - 1
    scale = values / values.prod(axis=1, keepdims=True) ** (1 / 3)
    return (x + centring * mean) * spacing, vectors, scale, spacing**3 / kernel.sum(axis=1), crowd


@pytest.mark.parametrize("options", [{}, {"reach": 1.8, "support": 2.2, "stretch": 2.0, "centring": 0.3}])
def test_equals_the_definition(options):
    x = np.concatenate([lattice((7, 6, 5), 0.01, 0.3), [[0.2, 0.1, 0.0], [0.2, 0.105, 0.002], [-3.0, 2.0, 5.0]]])
    found = measure(x.astype(np.float32), 0.01, **options)
    centre, axes, scale, volume, crowd = by_definition(x, 0.01, **options)
    assert np.allclose(found.centre, centre, atol=2e-8 + 1e-6 * np.abs(centre))
    assert np.allclose(found.scale, scale, rtol=2e-4)
    assert np.allclose(found.volume, volume, rtol=1e-4) and np.allclose(found.crowd, crowd, atol=1e-3)
    distinct = (scale[:, 0] > 1.05 * scale[:, 1]) & (scale[:, 1] > 1.05 * scale[:, 2])  # else any axes will do
    assert distinct.sum() > 100
    assert np.allclose(np.abs(np.einsum("iab,iab->ib", found.axes, axes))[distinct], 1, atol=2e-3)


def test_axes_are_orthonormal_and_volumes_kept():
    found = ellipsoids(frame_of(block((8, 8, 8), 0.3), spacing=0.02))
    identity = np.einsum("iab,iac->ibc", found.axes, found.axes)
    assert np.allclose(identity, np.eye(3), atol=1e-5)
    assert np.allclose(np.linalg.det(found.axes), 1, atol=1e-5)  # rotations: no mirror images
    assert np.allclose(4 / 3 * np.pi * found.radii.prod(axis=1), 0.02**3, rtol=1e-4)
    assert (np.diff(found.radii, axis=1) <= 1e-7).all()  # longest axis first
    assert (found.radii[:, 0] <= 4.001 * found.radii[:, 2]).all()
    assert found.centre.dtype == found.axes.dtype == found.radii.dtype == np.float32


@pytest.mark.parametrize("x", [np.zeros((1, 3)), np.array([[0, 0, 0], [9, 0, 0], [9, 1, 0], [9.0, 0, 1]])])
def test_lonely_particles_are_spheres(x):
    found = ellipsoids(frame_of(x), centring=0.0)
    assert np.allclose(found.radii, ROUND, rtol=1e-5) and np.allclose(found.centre, x)


def test_sheets_are_flat_along_their_normal():
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    x = block((13, 1, 13), 0.0) @ turn.T
    found = ellipsoids(frame_of(x))
    inner = np.linalg.norm(x, axis=1) < 3
    normal = found.axes[inner, :, 2]  # the shortest axis
    assert np.allclose(np.abs(normal @ turn[:, 1]), 1, atol=1e-4)
    assert np.allclose(found.radii[inner, 0] / found.radii[inner, 2], 4, rtol=1e-3)  # as flat as is allowed
    assert np.allclose(found.radii[inner, 0], found.radii[inner, 1], rtol=0.02)


def test_surfaces_are_flatter_than_the_inside():
    x = block((11, 11, 11))
    found = ellipsoids(frame_of(x), centring=0.0)
    ratio = found.radii[:, 0] / found.radii[:, 2]
    top = (x[:, 1] > 4.9) & (np.abs(x[:, [0, 2]]).max(axis=1) < 2)
    inside = np.linalg.norm(x, axis=1) < 2
    assert (ratio[inside] < 1.01).all() and (ratio[top] > 1.8).all()
    assert np.allclose(np.abs(found.axes[top, 1, 2]), 1, atol=1e-4)


def test_threads_along_their_direction():
    x = block((40, 2, 2), 0.02)
    found = ellipsoids(frame_of(x))
    inner = np.abs(x[:, 0]) < 12
    assert (np.abs(found.axes[inner, 0, 0]) > 0.99).all() and (found.radii[inner, 0] > 1.5 * found.radii[inner, 1]).all()


def test_centring_evens_out_a_surface():
    x = block((16, 5, 16), 0.25)
    rough, smooth = (ellipsoids(frame_of(x), centring=c).centre for c in (0.0, 0.9))
    assert np.allclose(rough, x, atol=1e-6)
    top = (x[:, 1] > 1.7) & (np.abs(x[:, [0, 2]]).max(axis=1) < 5)
    assert smooth[top, 1].std() < 0.7 * rough[top, 1].std()
    assert (smooth[top, 1] < rough[top, 1]).all()  # and draws it in


def test_no_particles():
    found = ellipsoids(frame_of(np.zeros((0, 3))))
    assert found.centre.shape == (0, 3) and found.axes.shape == (0, 3, 3) and found.radii.shape == (0, 3)


def test_order_of_the_particles_does_not_matter():
    x = np.asarray(lattice((9, 9, 9), 1.0, 0.3), np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    plain, mixed = measure(x, 1.0), measure(x[order], 1.0)
    assert np.allclose(plain.scale[order], mixed.scale, atol=1e-5)
    assert backend.current().device == "cpu"
