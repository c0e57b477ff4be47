"""Fluid laid against solids: into opaque ones, onto the walls of containers, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from viscoil.render.contact import EVEN, REACH, SUNK, _straightened, laid
from viscoil.solids.meshes import creased, mesh
from viscoil.surface.mesh import SurfaceMesh

D = 0.1


def fluid(shape, at=(0, 0, 0)):
    vertices, triangles, normals = creased(*mesh(shape, 48), angle=180)
    moved = (vertices + np.asarray(at)).astype(np.float32)
    return SurfaceMesh(moved, triangles, {"normal": normals.astype(np.float32)}, spacing=D)


def pose(*at):
    matrix = np.eye(4)
    matrix[:3, 3] = at
    return matrix


FLOOR = {"name": "floor", "shape": {"type": "plane"}, "pose": pose(0, 0, 0)}


def test_a_drop_above_the_floor_touches_it():
    drop = fluid({"type": "sphere", "radius": 0.5}, (0, 0.56, 0))  # its lowest point is 0.6 spacings above
    after = laid(drop, [FLOOR])
    assert after.vertices[:, 1].min() == pytest.approx(-SUNK * D, rel=0.1)
    high = drop.vertices[:, 1] > 3 * D
    assert np.array_equal(after.vertices[: len(drop)][high], drop.vertices[high]), "only what is near moves"
    lowest = after.vertices[:, 1].argmin()
    assert after["normal"][lowest] == pytest.approx([0, -1, 0], abs=0.05)
    assert drop.vertices[:, 1].min() == pytest.approx(0.06, abs=1e-3), "the mesh it came from stays"


def test_what_is_out_of_reach_or_faces_away_stays():
    high = fluid({"type": "sphere", "radius": 0.5}, (0, 0.5 + 1.2 * REACH * D, 0))
    assert np.array_equal(laid(high, [FLOOR]).vertices, high.vertices)
    ceiling = {"name": "roof", "shape": {"type": "box", "size": [3, 0.2, 3]}, "pose": pose(0, 2.0, 0)}
    assert np.array_equal(laid(high, [ceiling]).vertices, high.vertices)


def test_sides_of_a_tank_become_flat_and_nothing_sticks_out():
    random = np.random.default_rng(2)
    water = fluid({"type": "box", "size": [2, 1, 2]}, (0, 0.5, 0))
    water.vertices += random.uniform(-0.4 * D, 0.4 * D, water.vertices.shape).astype(np.float32)
    tank = {"name": "tank", "container": True, "shape": {"type": "box", "size": [2, 4, 2]}, "pose": pose(0, 2, 0)}
    after = laid(water, [tank]).vertices[: len(water)]
    assert np.abs(after[:, [0, 2]]).max() <= 1 + 1e-3 * D
    assert after[:, 1].min() >= -SUNK * D - 1e-3 * D
    surface = water.vertices[:, 1] > 1 - 0.45 * D
    assert np.allclose(after[surface, 1], water.vertices[surface, 1], atol=0.02), "the water level stays"


def test_wet_solids_have_no_air_around_them():
    ball = {"name": "ball", "shape": {"type": "sphere", "radius": 0.4}, "pose": pose(0.2, 0.1, 0)}
    around = fluid({"type": "sphere", "radius": 0.4 + 0.5 * D}, (0.2, 0.1, 0))
    around.fields["normal"] *= -1  # a cavity in the fluid: its surface faces the ball
    away = np.linalg.norm(laid(around, [ball]).vertices - [0.2, 0.1, 0], axis=1)
    assert (away < 0.4).all()


def test_where_the_surface_meets_a_wall_it_has_an_edge():
    """Normals that turned from up to sideways there would mirror lights in a ragged line."""
    block = trimesh.creation.box((2, 1, 2)).subdivide().subdivide().subdivide().subdivide()
    vertices, triangles, normals = creased(block.vertices, block.faces, angle=180)
    fields = {"normal": normals.astype(np.float32), "material": np.arange(len(vertices))}
    water = SurfaceMesh((vertices + np.array([0, 0.5, 0])).astype(np.float32), triangles, fields, spacing=D)
    water.vertices[:, [0, 2]] *= 1 - 0.5 * D  # surfaces of particles end half a spacing before walls
    tank = {"name": "tank", "container": True, "shape": {"type": "box", "size": [2, 4, 2]}, "pose": pose(0, 2, 0)}
    after = laid(water, [tank])
    corners = np.abs(after.vertices[after.triangles])
    top = (corners[..., 1] > 1 - 1e-6).all(axis=1) & (corners[..., [0, 2]].min(axis=(1, 2)) < 0.8)  # not where two walls meet
    assert top.sum() > 100
    assert (after["normal"][after.triangles[top]][..., 1] > 0.99).all(), "up to the wall"
    sides = (corners[..., 0] > 1 - 1e-6).all(axis=1)
    assert (np.abs(after["normal"][after.triangles[sides]][..., 0]) > 0.6).all()
    assert len(after["material"]) == len(after.vertices), "all quantities go along"
    welded, which = np.unique(after.vertices, axis=0, return_inverse=True)
    assert len(welded) == len(water.vertices)
    assert trimesh.Trimesh(welded, which[after.triangles], process=False).is_watertight
    assert after.volume() == pytest.approx(4, rel=0.02)
    assert len(water["normal"]) == len(vertices), "the mesh it came from stays"
    again = laid(replace(water, triangles=water.triangles[::-1]), [tank])
    assert np.allclose(np.sort(again.vertices, axis=0), np.sort(after.vertices, axis=0), atol=1e-6)


def test_zigzag_of_triangles_is_taken_out_of_that_line():
    count = 40
    line = np.stack([np.arange(count) * 0.4 * D, 0.2 * D * (-1.0) ** np.arange(count), np.zeros(count)], axis=1)
    edges = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    after = _straightened(line, edges, D)
    assert np.abs(after[3:-3, 1]).max() < 0.02 * D
    assert np.array_equal(after[[0, -1]], line[[0, -1]]), "ends stay"
    far = line * [1, 20, 1]
    moved = np.linalg.norm(_straightened(far, edges, D) - far, axis=1)
    assert moved.max() == pytest.approx(EVEN * D)


def test_nothing_to_do():
    empty = SurfaceMesh(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32), {"normal": np.zeros((0, 3), np.float32)})
    assert laid(empty, [FLOOR]) is empty
