"""Mass properties of closed meshes against closed forms."""

import numpy as np
import pytest
import trimesh

from viscoil.solids.assembly import rotation_matrix
from viscoil.solids.mass import mass_properties
from viscoil.solids.meshes import mesh


def test_box_anywhere_and_turned():
    a, b, c = 0.3, 0.5, 0.2
    vertices, triangles = mesh({"type": "box", "size": (a, b, c)})
    turn, shift = rotation_matrix((20, 30, 40)), np.array([100.0, -50.0, 7.0])
    exact = a * b * c / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    got = mass_properties(vertices.astype(float) @ turn.T + shift, triangles)
    assert got.volume == pytest.approx(a * b * c, rel=1e-6)
    assert np.allclose(got.centre, shift, atol=1e-6)
    assert np.allclose(got.inertia, turn @ exact @ turn.T, atol=1e-6 * np.abs(exact).max())
    moments, axes = got.principal()
    assert np.allclose(moments, np.sort(np.diag(exact))[::-1], rtol=1e-5)
    assert np.linalg.det(axes) == pytest.approx(1.0) and np.allclose(axes * moments @ axes.T, got.inertia)


def test_inside_out_is_the_same_body():
    vertices, triangles = mesh({"type": "cone", "radius": 0.2, "height": 0.4})
    right, wrong = mass_properties(vertices, triangles), mass_properties(vertices, triangles[:, ::-1])
    assert wrong.volume == pytest.approx(right.volume) and np.allclose(wrong.inertia, right.inertia)
    assert right.centre[1] == pytest.approx(-0.1, abs=1e-4), "a quarter of the height above the base"


def test_ball_and_hollow_ball():
    outer = trimesh.creation.icosphere(subdivisions=5, radius=1.0)
    got = mass_properties(outer.vertices, outer.faces)
    assert np.allclose(got.inertia, 0.4 * got.volume * np.eye(3), rtol=2e-3, atol=1e-6)
    vertices = np.concatenate([outer.vertices, 0.5 * outer.vertices])
    triangles = np.concatenate([outer.faces, outer.faces[:, ::-1] + len(outer.vertices)])
    hollow = mass_properties(vertices, triangles)
    assert hollow.volume == pytest.approx(got.volume * 7 / 8)
    assert np.allclose(hollow.inertia, got.inertia * 31 / 32, atol=1e-9)


def test_flat_mesh_has_no_volume():
    flat = mass_properties([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]])
    assert flat.volume == 0 and not flat.inertia.any()
