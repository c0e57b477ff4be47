"""Fields on the sparse grid against sums over all particles, and the surfaces made of them."""

import numpy as np
import pytest
import trimesh
from bodies import RED_AND_BLUE, block, edge_counts, frame_of, sphere

from kit import lattice  # starts the compiler on the CPU
from viscoil.errors import SurfaceFailed
from viscoil.surface import blocks as sparse
from viscoil.surface.fields import CLAVET, SPLINE, evaluate
from viscoil.surface.reconstruct import smootherstep, surface

NODES = np.stack(np.meshgrid(*[np.arange(sparse.EDGE)] * 3, indexing="ij"), -1).reshape(-1, 3)


def by_definition(points, centre, radii, axes, weight, kind):
    """Σ_j w_j f(|G_j (x − x_j)|) in double precision."""
    d = points[:, None] - centre[None].astype(float)
    q = np.linalg.norm(np.einsum("pia,iab->pib", d, axes.astype(float)) / radii, axis=2)
    s, t = np.maximum(1 - q, 0), np.maximum(0.5 - q, 0)
    return ((s**2 if kind == CLAVET else 2 * s**3 - 8 * t**3) * weight).sum(axis=1)


@pytest.mark.parametrize("kind", [CLAVET, SPLINE])
def test_values_equal_the_sum_over_all_particles(kind):
    random = np.random.default_rng(5)
    x = np.concatenate([lattice((5, 4, 4), 3.1, 0.3), [[90.0, 3.3, -40.0], [91.5, 1.0, -39.0], [-2000.0, 700.0, 12.25]]])
    centre = x.astype(np.float32)
    radii = random.uniform(2, 7, (len(x), 3)).astype(np.float32)
    axes = np.linalg.qr(random.normal(size=(len(x), 3, 3)))[0].astype(np.float32)
    weight = random.uniform(0.5, 2, len(x)).astype(np.float32)
    values, blocks = evaluate(centre, radii, axes, weight, kind)
    summed = 0.0
    for origin, base in zip(blocks.origin, blocks.base, strict=True):
        there = values[tuple((base + NODES).T)]
        assert np.allclose(there, by_definition(origin + NODES, centre, radii, axes, weight, kind), atol=3e-5)
        summed += there.sum(dtype=float)
        assert (blocks.shift[tuple(base // sparse.EDGE)] == origin - base).all()
    assert values.sum(dtype=float) == pytest.approx(summed, rel=1e-6)  # nothing outside of the blocks
    # Blocks that do not exist would be empty: the sum over all of space is the integral of what one particle adds.
    share = 2 * np.pi * 4 / 3 / 20 if kind == CLAVET else np.pi / 8
    assert summed == pytest.approx((weight * radii.prod(axis=1)).sum() * share, rel=0.01)


def test_far_clusters_share_a_small_atlas():
    x = np.concatenate([sphere(4), sphere(2) + np.array([900, 0, 0]), [[0, -5000, 0.0], [300, 300, 300.0]]]) * 2.7
    blocks = sparse.find_blocks(x, np.full(x.shape, 5.0))
    assert np.prod(blocks.atlas) < 3 * len(blocks.origin) * sparse.EDGE**3
    taken = {tuple(base) for base in blocks.base}
    assert len(taken) == len(blocks.origin) and np.array(sorted(taken)).max() < max(blocks.atlas)


def test_boxes_do_not_overlap():
    size = np.random.default_rng(0).integers(1, 7, (60, 3))
    corner, total = sparse._shelves(size)
    filled = np.zeros(total, int)
    for (x, y, z), (dx, dy, dz) in zip(corner, size, strict=True):
        filled[x : x + dx, y : y + dy, z : z + dz] += 1
    assert filled.max() == 1 and filled.sum() == size.prod(axis=1).sum()
    assert filled.mean() > 0.35


def test_a_grid_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(sparse, "MOST_NODES", 1000)
    with pytest.raises(SurfaceFailed, match="use a larger cube or method splash"):
        surface(frame_of(sphere(3)), method="clavet")


METHODS = ["anisotropic", "clavet"]
BODIES = {
    "ball": (sphere(8, 0.2), 0.08),
    "block": (block((14, 14, 14), 0.2), 0.05),
    "sheet of 3": (block((24, 3, 24), 0.2), 0.09),
    "rope of 2x2": (block((40, 2, 2), 0.2), 0.08),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BODIES)
def test_meshes_have_the_volume_of_the_particles(name, method):
    x, tolerance = BODIES[name]
    mesh = surface(frame_of(x), method=method)
    assert mesh.volume_ratio() == pytest.approx(1, abs=tolerance)
    assert mesh.components == 1 and (edge_counts(mesh.triangles) == 2).all()
    assert trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False).is_winding_consistent


@pytest.mark.parametrize("method", METHODS)
def test_bodies_far_apart_are_where_they_belong_and_carry_their_quantities(method):
    x = np.concatenate([sphere(4), sphere(3) + np.array([400, -90, 60])])
    frame = frame_of(x, 0.01, RED_AND_BLUE, material=(x[:, 0] > 200).astype(np.int32), velocity=x.astype(np.float32))
    mesh = surface(frame, method=method)
    assert mesh.components == 2
    blue = mesh["material"] == 1
    assert np.allclose(mesh.vertices[blue].mean(axis=0), [4.0, -0.9, 0.6], atol=0.003)
    assert np.allclose(mesh.vertices[~blue].mean(axis=0), 0, atol=0.003)
    assert np.abs(np.linalg.norm(mesh.vertices[~blue], axis=1) - 0.04).max() < 0.008
    assert np.abs(mesh["velocity"] - mesh.vertices / 0.01).max() < 1.5
    outwards = np.einsum("ij,ij->i", mesh["normal"][~blue], mesh.vertices[~blue])
    assert (outwards > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_ropes_stay_as_thick_under_smoothing(method):
    frame = frame_of(block((40, 2, 2), 0.15))
    before, after = (surface(frame, method=method, smoothing=n) for n in (0, 25))
    assert after.volume() == pytest.approx(before.volume(), rel=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_and_next_to_nothing(method):
    assert len(surface(frame_of(np.zeros((0, 3))), method=method)) == 0
    one = surface(frame_of(np.zeros((1, 3))), method=method, threshold=0.3)
    assert one.components == 1 and np.abs(one.vertices.mean(axis=0)).max() < 0.05


def test_flat_ellipsoids_make_flat_surfaces():
    """What anisotropic kernels are for: less ripple than round ones before any smoothing."""
    frame = frame_of(block((16, 6, 16), 0.2))

    def ripple(method):
        mesh = surface(frame, method=method, smoothing=0, normal_smoothing=0)
        top = (np.abs(mesh.vertices[:, [0, 2]]).max(axis=1) < 5) & (mesh.vertices[:, 1] > 0)
        return float(np.arccos(np.clip(mesh["normal"][top, 1], -1, 1)).mean())

    assert ripple("anisotropic") < 0.8 * ripple("splash") < ripple("clavet")


def test_smootherstep():
    assert np.allclose(smootherstep(np.array([-1, 0, 0.5, 1, 2.0])), [0, 0, 0.5, 1, 1])
