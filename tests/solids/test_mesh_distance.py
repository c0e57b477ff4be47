"""Distances of meshes: against closed forms, on grids as the kernels read them, and kept on disk."""

import numpy as np
import pytest
import trimesh

from mesh_kit import goblet, write, written
from viscoil.scene.parts import Solid
from viscoil.solids import mesh_grid
from viscoil.solids.assembly import SolidSet, signed_distance
from viscoil.solids.mass import mass_properties
from viscoil.solids.mesh_file import load
from viscoil.solids.mesh_grid import cache_folder, grid_of
from viscoil.solids.mesh_tree import MeshTree, tree_of

SHAPES = {
    "sphere": {"type": "sphere", "radius": 0.1},
    "box": {"type": "box", "size": (0.2, 0.1, 0.15)},
    "torus": {"type": "torus", "radius": 0.1, "tube": 0.04},
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VISCOIL_CACHE", str(tmp_path / "cache"))
    mesh_grid._remembered.cache_clear()


def exact(name, points):
    return signed_distance(Solid(shape=SHAPES[name]).shape, points)


def tree_volume(tree):
    return mass_properties(tree.vertices, tree.triangles).volume


def around(name, number=4000, reach=0.05):
    half = np.asarray(Solid(shape=SHAPES[name]).shape.extent()) / 2 + reach
    return np.random.default_rng(1).uniform(-half, half, (number, 3)).astype(np.float32)


@pytest.mark.parametrize("name", SHAPES)
def test_exact_distance(name, tmp_path):
    """Of a mesh of 128 edges around, which lies within 1e-4 of the shape."""
    tree = tree_of(load(written(tmp_path / "a.ply", SHAPES[name], 128)))
    points = around(name)
    assert np.abs(tree.distance(points) - exact(name, points)).max() < (1e-6 if name == "box" else 1e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_grid_and_kernels_agree_with_the_shape(name, tmp_path):
    """Within a tenth of a cell, but for the sharp edges of the box, which a grid cuts off by up to a third of one."""
    spacing, support = 0.01, 0.02
    shape = Solid(shape={"type": "mesh", "file": written(tmp_path / "a.ply", SHAPES[name], 80)}).shape
    grid = grid_of(shape.file, 1.0, spacing, support, 0.0)
    assert grid.cell <= spacing / 2 and grid.cell <= support / 4
    points = around(name)
    solids = SolidSet([Solid(shape=shape)], spacing=spacing, support=support)
    phi = solids.distance(0, points)
    assert np.allclose(phi, grid.interpolated(points), atol=1e-6), "the kernel reads what NumPy reads"
    error = np.abs(phi - exact(name, points)) / grid.cell
    seen = (exact(name, points) > -spacing) & (exact(name, points) < spacing + support)  # beyond, bounds are enough
    if name == "box":
        beyond = np.abs(points) - np.asarray(SHAPES[name]["size"]) / 2
        edge = (np.abs(beyond) < 3.5 * grid.cell).sum(axis=1) > 1
        assert error[seen & edge].max() < 0.4
        seen &= ~edge
    assert error[seen].max() < 0.1
    clear = np.abs(exact(name, points)) > 0.5 * grid.cell
    assert (np.sign(phi) == np.sign(exact(name, points)))[clear].all()


@pytest.mark.parametrize("name", SHAPES)
def test_outside_the_grid_is_a_lower_bound(name, tmp_path):
    shape = Solid(shape={"type": "mesh", "file": written(tmp_path / "a.ply", SHAPES[name])}).shape
    grid = grid_of(shape.file, 1.0, 0.01, 0.02)
    x = np.random.default_rng(2).normal(size=(3000, 3))
    x *= np.random.default_rng(3).uniform(0.1, 3.0, (3000, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    phi = SolidSet([Solid(shape=shape)], spacing=0.01, support=0.02).distance(0, x)
    true = tree_of(load(shape.file)).distance(x)
    beyond = (np.abs(x) > -grid.origin).any(axis=1)
    assert (phi[beyond] <= true[beyond]).all()
    assert (phi[beyond] > 0.6 * true[beyond]).all(), "and not a useless one"


def test_far_nodes_are_lower_bounds_and_near_ones_exact():
    ball = trimesh.creation.icosphere(4)
    grid = MeshTree(ball.vertices, ball.faces).grid(np.full(3, -1.5), 0.1, (31, 31, 31), 0.25)
    axis = np.linspace(-1.5, 1.5, 31)
    true = np.linalg.norm(np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1), axis=-1) - 1
    near = np.abs(true) < 0.24
    assert np.abs(grid - true)[near].max() < 0.004
    assert (np.abs(grid) < np.abs(true) + 0.004).all() and (np.abs(grid) > 0.75 * np.abs(true) - 0.004).all()
    assert (np.sign(grid) == np.sign(true))[np.abs(true) > 0.01].all()


def test_normals(tmp_path):
    shape = Solid(shape={"type": "mesh", "file": written(tmp_path / "a.ply", SHAPES["sphere"], 64)}).shape
    solids = SolidSet([Solid(shape=shape)], spacing=0.02, support=0.04)
    x = np.random.default_rng(0).normal(size=(2000, 3))
    x *= 0.11 / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = (solids.normals(0, x, 0.0005) * x / 0.11).sum(axis=1)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 3.0


def test_overlapping_nested_and_hollow(tmp_path):
    """Inside is where a mesh winds around at least once."""
    ball = trimesh.creation.icosphere(3)
    v, t = np.asarray(ball.vertices), np.asarray(ball.faces)
    pair = np.concatenate([t, t + len(v)])
    both = tree_of(load(write(tmp_path / "pair.ply", np.concatenate([v, v + np.array([1, 0, 0])]), pair)))
    assert both.crossings() > 10 and MeshTree(v, t).crossings() == 0
    assert (both.distance(np.array([[0.5, 0, 0], [-0.9, 0, 0], [1.9, 0, 0]])) < 0).all()
    assert (both.distance(np.array([[0.5, 0.95, 0], [-1.1, 0, 0]])) > 0).all()
    row = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.75, 0, 0], [1.2, 0, 0]])
    nested = MeshTree(np.concatenate([v, 0.5 * v]), pair)
    assert (np.sign(nested.distance(row)) == [-1, -1, -1, 1]).all()
    hollow = MeshTree(np.concatenate([v, 0.5 * v]), np.concatenate([t, t[:, ::-1] + len(v)]))
    assert (np.sign(hollow.distance(row)) == [1, 1, -1, 1]).all()
    assert hollow.thickness() == pytest.approx(0.5, rel=0.05)


def test_winding_number_of_a_fine_and_a_coarse_tree():
    """Far parts count by their dipole: the sign must be right everywhere, also for a goblet whose walls are close."""
    tree = MeshTree(*goblet(detail=48))
    rng = np.random.default_rng(0)
    x = rng.uniform((-0.06, -0.02, -0.06), (0.06, 0.14, 0.06), (3000, 3))
    phi = tree.distance(x)
    corners = tree.vertices[tree.triangles][None] - (x - tree.middle)[:400, None, None]
    length = np.linalg.norm(corners, axis=-1)
    a, b, c = (corners[:, :, k] for k in range(3))
    la, lb, lc = (length[:, :, k] for k in range(3))
    under = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    full = np.arctan2((a * np.cross(b, c)).sum(-1), under).sum(1) / (2 * np.pi)
    assert np.abs(full - np.round(full)).max() < 1e-3
    assert ((full > 0.5) == (phi[:400] < 0)).all()
    assert (phi < 0).mean() == pytest.approx(tree_volume(tree) / (0.12 * 0.16 * 0.12), abs=0.012)


def test_thin_walls_make_the_grid_finer(tmp_path):
    file = write(tmp_path / "goblet.stl", *goblet(wall=0.006, detail=32))
    thin, thick = grid_of(file, 1.0, 0.012, 0.024), grid_of(file, 4.0, 0.012, 0.024)
    assert 0.004 < thin.thickness < 0.0061 and thin.cell <= thin.thickness / 2
    assert thick.cell == pytest.approx(0.006)


def test_unions_hold_meshes(tmp_path):
    file = written(tmp_path / "ball.ply", SHAPES["sphere"], 96)
    parts = [{"type": "mesh", "file": file, "position": (0.3, 0, 0)}, SHAPES["box"]]
    union = Solid(shape={"type": "union", "parts": parts}).shape
    x = np.random.default_rng(0).uniform(-0.4, 0.45, (3000, 3))
    true = np.minimum(exact("box", x), exact("sphere", x - np.array([0.3, 0, 0])))
    phi = signed_distance(union, x, 0.01)
    assert np.abs(phi - true)[np.abs(true) < 0.02].max() < 1e-3
    assert np.allclose(union.extent(), (0.5, 0.2, 0.2), atol=1e-3)
    upside = Solid(shape={"type": "mesh", "file": file, "position": (0, 1, 0), "rotation": (0, 0, 90)}, container=True)
    assert SolidSet([upside], spacing=0.01).distance(0, np.array([[0, 1, 0]])) > 0.07


# ---- on disk ---------------------------------------------------------------------------------------------------------


def again(*arguments):
    mesh_grid._remembered.cache_clear()
    return grid_of(*arguments)


def test_kept_on_disk(tmp_path, monkeypatch):
    file = written(tmp_path / "a.ply", SHAPES["box"])
    made = []
    original = mesh_grid._made
    monkeypatch.setattr(mesh_grid, "_made", lambda *a: made.append(1) or original(*a))
    first = grid_of(file, 1.0, 0.02, 0.04)
    assert grid_of(file, 1.0, 0.02, 0.04) is first
    second = again(file, 1.0, 0.02, 0.04)
    assert len(made) == 1 and np.array_equal(first.phi, second.phi) and second.cell == first.cell
    copy = tmp_path / "copy.ply"
    copy.write_bytes((tmp_path / "a.ply").read_bytes())
    again(str(copy), 1.0, 0.02, 0.04)
    assert len(made) == 1, "what counts is what is in the file, not its name"
    for number, other in enumerate([(2.0, 0.02, 0.04), (1.0, 0.03, 0.06), (1.0, 0.02, 0.04, 0.01)], 2):
        again(file, *other)
        assert len(made) == number
    stored = list(cache_folder().glob("*.npz"))
    assert len(stored) == 4 and not list(cache_folder().glob(".*"))
    with np.load(stored[0], allow_pickle=False) as content:
        assert content["phi"].dtype == np.float32


@pytest.mark.parametrize("harm", ["cut", "scribble", "empty", "other", "flipped"])
def test_damaged_files_are_made_again(harm, tmp_path):
    file = written(tmp_path / "a.ply", SHAPES["box"])
    first = grid_of(file, 1.0, 0.02, 0.04)
    (stored,) = cache_folder().glob("*.npz")
    content = stored.read_bytes()
    harmed = {"cut": content[: len(content) // 2], "scribble": b"not a grid", "empty": b"",
              "other": content[:-200] + bytes(200),
              "flipped": content[:4000] + bytes([content[4000] ^ 255]) + content[4001:]}  # fmt: skip
    stored.write_bytes(harmed[harm])
    assert np.array_equal(again(file, 1.0, 0.02, 0.04).phi, first.phi)
    assert stored.read_bytes() == content


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setenv("VISCOIL_CACHE", str(tmp_path / "taken"))
    assert grid_of(written(tmp_path / "a.ply", SHAPES["box"]), 1.0).phi.size > 1000
