"""Meshes of solids: closed, the right way round, of the right volume, and on the zero of the distance the fluid feels."""

import math
import sys

import numpy as np
import pytest
import trimesh

from kit import backend  # noqa: F401
from viscoil.errors import SceneError
from viscoil.scene.parts import Solid
from viscoil.scene.shapes import SHAPES
from viscoil.solids.assembly import signed_distance
from viscoil.solids.formulas import distance, flattened
from viscoil.solids.meshes import creased, mesh

UNION = {
    "type": "union", "parts": [
        {"type": "sphere", "radius": 0.2, "position": (0.3, 0, 0)},
        {"type": "union", "position": (-0.2, 0.1, 0), "rotation": (0, 0, 30), "parts": [
            {"type": "box", "size": (0.2, 0.5, 0.2), "rotation": (0, 45, 0)}, {"type": "torus", "radius": 0.2, "tube": 0.05}]},
    ],
}  # fmt: skip
ROUNDED = 0.3 * 0.4 * 0.2 + 2 * 0.1 * (0.3 * 0.4 + 0.4 * 0.2 + 0.2 * 0.3) + math.pi * 0.01 * 0.9 + 4 / 3 * math.pi * 0.001
# name: (shape, volume [m³], None where there is no formula)
SHAPES_AND_VOLUMES = {
    "box": ({"type": "box", "size": (0.4, 0.6, 0.5)}, 0.12),
    "rounded box": ({"type": "box", "size": (0.5, 0.6, 0.4), "rounding": 0.1}, ROUNDED),
    "sphere": ({"type": "sphere", "radius": 0.3}, 4 / 3 * math.pi * 0.027),
    "capsule": ({"type": "capsule", "radius": 0.15, "height": 0.3}, math.pi * 0.15**2 * 0.5),
    "cylinder": ({"type": "cylinder", "radius": 0.25, "height": 0.4}, math.pi * 0.0625 * 0.4),
    "cone": ({"type": "cone", "radius": 0.3, "height": 0.5}, math.pi * 0.09 * 0.5 / 3),
    "frustum": ({"type": "cone", "radius": 0.1, "top_radius": 0.3, "height": 0.2}, math.pi / 3 * 0.2 * 0.13),
    "funnel": (
        {"type": "funnel", "bottom_radius": 0.1, "top_radius": 0.3, "height": 0.3, "thickness": 0.06},
        2 * math.pi * 0.2 * (math.hypot(0.3, 0.2) * 0.06 + math.pi * 0.03**2),
    ),
    "torus": ({"type": "torus", "radius": 0.25, "tube": 0.1}, 2 * math.pi**2 * 0.25 * 0.01),
    "bowl": ({"type": "bowl", "radius": 0.3, "height": 0.2, "thickness": 0.05}, None),
    "deep bowl": ({"type": "bowl", "radius": 0.2, "height": 0.5, "thickness": 0.05}, None),
    "cup": (
        {"type": "cup", "radius": 0.3, "height": 0.5, "thickness": 0.06},
        # floor and wall to the middle of the edge's roundings, a quarter disc carried around the edge and half a one around
        # the rim, less where floor and wall overlap inside the corner
        math.pi * (0.27**2 * 0.06 + (0.3**2 - 0.27**2) * 0.03 + (0.33**2 - 0.27**2) * 0.5) + 2 * math.pi * (
            (math.pi / 4) * 0.03**2 * (0.3 + 4 * 0.03 / (3 * math.pi)) + (math.pi / 2) * 0.03**2 * 0.3
        ),
    ),
    "conical cup": ({"type": "cup", "radius": 0.2, "top_radius": 0.4, "height": 0.4, "thickness": 0.08}, None),
    "bear": ({"type": "bear", "height": 0.8}, None),
    "union": (UNION | {"blend": 0.05}, None),
}


def face_normals(vertices, triangles):
    a, b, c = (vertices[triangles[:, k]].astype(float) for k in range(3))
    n = np.cross(b - a, c - a)
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def test_every_shape_has_a_case():
    assert set(SHAPES) == set(SHAPES_AND_VOLUMES) - {"rounded box", "frustum", "deep bowl", "conical cup"} | {"plane", "mesh"}


@pytest.mark.parametrize("name", SHAPES_AND_VOLUMES)
def test_closed_and_right_way_round_with_its_volume(name):
    shape, volume = SHAPES_AND_VOLUMES[name]
    vertices, triangles = mesh(shape)
    assert vertices.dtype == np.float32 and triangles.dtype == np.int32
    found = trimesh.Trimesh(vertices, triangles, process=False)
    assert found.is_watertight and found.is_winding_consistent
    if volume is None:
        rng = np.random.default_rng(5)
        low, high = found.bounds
        points = rng.uniform(low, high, (60_000, 3))
        volume = float((signed_distance(Solid(shape=shape).shape, points) < 0).mean() * np.prod(high - low))
    assert found.volume == pytest.approx(volume, rel=0.012), "also: positive, outside is outside"


@pytest.mark.parametrize("name", SHAPES_AND_VOLUMES)
def test_vertices_lie_where_the_fluid_feels_the_solid(name):
    shape = SHAPES_AND_VOLUMES[name][0]
    phi = signed_distance(Solid(shape=shape).shape, mesh(shape)[0])
    assert np.abs(phi).max() < 1e-5 * 0.8 if "union" not in name else np.abs(phi).max() < 1e-3
    assert np.abs(phi).mean() < 2e-6


@pytest.mark.parametrize("name", [*SHAPES_AND_VOLUMES, "plane"])
def test_host_distance_is_the_kernels(name):
    shape = {"type": "plane"} if name == "plane" else SHAPES_AND_VOLUMES[name][0]
    points = np.random.default_rng(3).uniform(-0.6, 0.6, (2000, 3))
    assert np.allclose(distance(*flattened(shape), points), signed_distance(Solid(shape=shape).shape, points), atol=2e-6)


def test_finer_detail_comes_closer():
    sphere = {"type": "sphere", "radius": 1.0}
    exact = 4 / 3 * math.pi
    errors = [exact - trimesh.Trimesh(*mesh(sphere, detail), process=False).volume for detail in (16, 32, 64)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_a_plane_is_a_square_facing_up():
    vertices, triangles = mesh({"type": "plane"}, extent=6.0)
    assert vertices.min() == -3 and vertices.max() == 3 and (vertices[:, 1] == 0).all()
    normal = face_normals(vertices, triangles)
    assert (normal[:, 1] > 0).all() and (normal[:, [0, 2]] == 0).all()


def test_without_pysplashsurf_a_bear_is_its_parts(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysplashsurf", None)
    vertices, triangles = mesh({"type": "bear", "height": 0.123})
    found = trimesh.Trimesh(vertices, triangles, process=False)
    assert found.is_watertight and found.euler_number == 2 * 10, "ten closed bodies"
    phi = signed_distance(Solid(shape={"type": "bear", "height": 0.123}).shape, vertices)
    assert phi.max() < 1e-6, "parts never stick out of the blended body"
    assert np.ptp(vertices[:, 1]) == pytest.approx(0.123, rel=0.05)


def test_mesh_from_a_file(tmp_path):
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "box.stl")
    vertices, triangles = mesh({"type": "mesh", "file": str(tmp_path / "box.stl"), "scale": 0.5})
    assert trimesh.Trimesh(vertices, triangles).volume == pytest.approx(6 / 8)
    with pytest.raises(SceneError, match=r"gone\.stl"):
        mesh({"type": "mesh", "file": str(tmp_path / "gone.stl")})


def test_place_is_ignored_and_unknown_shapes_are_named():
    assert mesh({"type": "sphere", "radius": 1.0, "position": (1, 2, 3)})[0] is mesh({"type": "sphere", "radius": 1.0})[0]
    with pytest.raises(SceneError, match='Did you mean "capsule"'):
        mesh({"type": "capsul"})


def test_creases_split_sharp_edges_only():
    vertices, triangles, normals = creased(*mesh({"type": "box", "size": (1, 1, 1)}))
    assert len(vertices) == 24 and np.allclose(np.linalg.norm(normals, axis=1), 1)
    assert np.allclose(np.repeat(face_normals(vertices, triangles), 3, axis=0), normals[triangles.ravel()])
    round_vertices, _, round_normals = creased(*mesh({"type": "sphere", "radius": 2.0}))
    assert len(round_vertices) == len(mesh({"type": "sphere", "radius": 2.0})[0])
    assert (round_vertices * round_normals).sum(1).min() > 2 * 0.995
    assert len(creased(np.zeros((0, 3)), np.zeros((0, 3), int))[0]) == 0
