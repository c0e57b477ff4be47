"""Mesh solids in pictures, exports and the studio: drawn from the file, laid against fluid like a formula's shape."""

import numpy as np
import pytest

from mesh_kit import goblet, write, written
from viscoil.errors import SceneError
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies
from viscoil.render.contact import laid
from viscoil.solids.meshes import creased, mesh
from viscoil.surface.mesh import SurfaceMesh
from viscoil.view.shapes import surface

BALL = {"type": "sphere", "radius": 0.4}


def frame_with(shape, **fields):
    solid = {"name": "thing", "pose": np.eye(4), "shape": shape, "colour": (0.1, 0.2, 0.9), **fields}
    return Frame(0, 0.0, 0, {"position": np.zeros((1, 3), np.float32)}, 0.1, solids=[solid])


def test_exports_carry_the_triangles(tmp_path):
    shape = {"type": "mesh", "file": write(tmp_path / "goblet.stl", *goblet(detail=24)), "scale": 2.0}
    (body,) = Bodies().of(frame_with(shape))
    assert len(body.triangles) == len(goblet(detail=24)[1])
    assert np.ptp(body.vertices, axis=0)[1] == pytest.approx(0.24, rel=1e-5)


def test_quick_pictures_have_points_on_it(tmp_path):
    points, normals = surface({"type": "mesh", "file": written(tmp_path / "ball.ply", BALL, 64)}, 0.05)
    assert np.abs(np.linalg.norm(points, axis=1) - 0.4).max() < 2e-3
    assert (np.einsum("ij,ij->i", points / 0.4, normals) > 0.99).all()
    points, normals = surface({"type": "mesh", "file": written(tmp_path / "box.ply", {"type": "box", "size": (1, 1, 1)})}, 0.1)
    beside = np.abs(points[normals[:, 1] > 0.5, None] - points[None, normals[:, 1] > 0.5]).max(axis=2) + 9 * np.eye(450)
    assert np.isclose(np.abs(points).max(axis=1), 0.5).all() and 0.02 < beside.min(axis=1).max() < 0.1, "and no gaps"


@pytest.mark.parametrize("wrap", [False, True], ids=["alone", "in a union"])
def test_fluid_is_laid_against_it(wrap, tmp_path):
    """A film around a ball lies on the mesh as on the formula."""
    vertices, triangles, normals = creased(*mesh({"type": "sphere", "radius": 0.45}, 32), angle=180)
    film = SurfaceMesh(vertices, triangles, {"normal": -normals}, spacing=0.1)
    shape = {"type": "mesh", "file": written(tmp_path / "ball.ply", BALL, 64)}
    shape = {"type": "union", "parts": [shape]} if wrap else shape
    one, two = (laid(film, [{"name": "ball", "shape": s, "pose": np.eye(4)}]).vertices for s in (BALL, shape))
    assert np.linalg.norm(one, axis=1).max() < 0.4 and np.abs(one - two).max() < 0.05 * film.spacing
    assert np.abs(np.linalg.norm(one, axis=1) - np.linalg.norm(two, axis=1)).max() < 1e-3


def test_a_file_that_is_gone_is_named(tmp_path):
    file = written(tmp_path / "ball.ply", BALL, 8)
    (tmp_path / "ball.ply").unlink()
    with pytest.raises(SceneError, match=r"ball\.ply' does not exist.*copied or moved"):
        Bodies().of(frame_with({"type": "mesh", "file": file}))


def test_the_spout_of_a_mesh_nozzle(tmp_path):
    pytest.importorskip("viser")
    from viscoil.studio.stage import nozzle_mesh

    vertices, _ = nozzle_mesh({"type": "mesh", "file": written(tmp_path / "ball.ply", BALL, 16)})
    assert np.hypot(vertices[:, 0], vertices[:, 2]).max() == pytest.approx(0.4 * 1.35 + 0.04, rel=0.05)
