"""What bodies weigh and how they touch: volumes and inertia by formula, hollow meshes that stay hollow."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

from viscoil.scene.parts import Solid
from viscoil.scene.shapes import SHAPES
from viscoil.solids.bulk import bulk_of, together
from viscoil.solids.convex import hull_volume, mesh_pieces
from viscoil.solids.mass import mass_properties
from viscoil.solids.meshes import mesh
from viscoil.solids.rigid import RigidWorld

LENGTHS = {
    "box": {"size": (0.3, 0.2, 0.1)}, "sphere": {"radius": 0.1}, "capsule": {"radius": 0.05, "height": 0.2},
    "cylinder": {"radius": 0.1, "height": 0.3}, "cone": {"radius": 0.1, "top_radius": 0.04, "height": 0.3},
    "torus": {"radius": 0.2, "tube": 0.05},
    "funnel": {"top_radius": 0.2, "bottom_radius": 0.05, "height": 0.2, "thickness": 0.03},
    "bowl": {"radius": 0.2, "height": 0.1, "thickness": 0.03}, "cup": {"radius": 0.1, "height": 0.2, "thickness": 0.03},
}  # fmt: skip


@pytest.mark.parametrize("name", [*LENGTHS, "rounded"])
def test_formulas_agree_with_integrals_over_triangles(name):
    table = {"type": name, **LENGTHS[name]} if name != "rounded" else {"type": "box", "size": (0.3, 0.2, 0.1), "rounding": 0.03}
    found, whole = bulk_of(SHAPES[table["type"]](**table)), mass_properties(*mesh(table, 256))
    assert found.volume == pytest.approx(whole.volume, rel=1e-3)
    assert found.centre == pytest.approx(whole.centre, abs=1e-4)
    assert found.inertia == pytest.approx(whole.inertia, abs=2e-3 * np.abs(whole.inertia).max())


def test_unions_count_what_overlaps_once():
    """Two balls of radius r at a distance d share a lens of π (2r − d)² (d² + 4dr)/(12 d)."""
    r, d = 0.1, 0.12
    balls = [{"type": "sphere", "radius": r, "position": (x, 0.3, 0)} for x in (0, d)]
    found = bulk_of(SHAPES["union"](parts=balls))
    lens = np.pi * (2 * r - d) ** 2 * (d * d + 4 * d * r) / (12 * d)
    assert found.volume == pytest.approx(8 / 3 * np.pi * r**3 - lens, rel=2e-3)
    assert found.centre == pytest.approx([d / 2, 0.3, 0], abs=1e-4)
    apart = bulk_of(SHAPES["union"](parts=[balls[0], {**balls[1], "position": (0.5, 0, 0), "rotation": (0, 0, 45)}]))
    one = bulk_of(SHAPES["sphere"](radius=r))
    whole = together([one.moved(np.eye(3), np.array(p)) for p in ((0, 0.3, 0), (0.5, 0, 0))])
    assert apart.volume == pytest.approx(whole.volume, rel=1e-12) and apart.inertia == pytest.approx(whole.inertia, rel=1e-9)


@pytest.fixture
def trough(tmp_path):
    """A U of three planks as one closed mesh: its outline, extruded."""
    outline = [(-2, -1), (2, -1), (2, 1), (1.5, 1), (1.5, -0.5), (-1.5, -0.5), (-1.5, 1), (-2, 1)]
    ears = [(0, 1, 5), (1, 4, 5), (1, 2, 4), (2, 3, 4), (0, 5, 7), (5, 6, 7)]
    n = len(outline)
    vertices = [(0.1 * x, 0.1 * y, z) for z in (-0.2, 0.2) for x, y in outline]
    faces = [(c, b, a) for a, b, c in ears] + [(a + n, b + n, c + n) for a, b, c in ears]
    for k in range(n):
        a, b = k, (k + 1) % n
        faces += [(a, b, b + n), (a, b + n, a + n)]
    whole = trimesh.Trimesh(vertices, faces, process=False)
    assert whole.is_watertight and whole.volume > 0
    whole.export(tmp_path / "trough.ply")
    return tmp_path / "trough.ply"


def test_hulls_and_pieces(trough, tmp_path):
    assert hull_volume(np.array([[x, y, z] for x in (0, 0.01) for y in (0, 0.02) for z in (0, 0.03)])) == pytest.approx(6e-6)
    assert hull_volume(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.5, 0]])) == 0
    pieces = mesh_pieces(str(trough), 1.0)
    volume = trimesh.load_mesh(trough).volume
    assert 3 <= len(pieces) <= 24
    assert sum(hull_volume(p) for p in pieces) == pytest.approx(volume, rel=0.05)
    trimesh.creation.icosphere(3, 0.1).export(tmp_path / "ball.stl")
    assert len(mesh_pieces(str(tmp_path / "ball.stl"), 1.0)) == 1


def test_a_ball_falls_into_a_trough_of_triangles(trough):
    ball = {"shape": {"type": "sphere", "radius": 0.1, "position": (0.02, 0.3, 0)}, "body": {"density": 500}}
    shape = {"type": "mesh", "file": str(trough), "position": (0, 0.1, 0)}
    scene = SimpleNamespace(gravity=(0, -9.81, 0), up="y")
    for body in (None, {"density": 700}):
        rigid = RigidWorld(scene, [Solid(shape={"type": "plane"}), Solid(shape=shape, body=body), Solid(**ball)])
        for k in range(240):
            rigid.commit(np.zeros((len(rigid.solid), 6)), k / 240, 1 / 240)
        assert rigid.poses()[1][-1, 1] == pytest.approx(0.05 + 0.1, abs=3e-3)
        assert abs(rigid.poses()[1][-1, 0]) < 0.06
    assert rigid.masses[0] == pytest.approx(700 * trimesh.load_mesh(trough).volume, rel=1e-6)
    assert rigid.poses()[1][0] == pytest.approx([0, 0.1, 0], abs=5e-3)


def test_links_may_be_meshes(trough, tmp_path):
    from viscoil.scene.bodies import Robot
    from viscoil.scene.robots import robot_solids
    from viscoil.scene.schema import Scene
    from viscoil.solids.assembly import signed_distance

    text = """<mujoco><asset><mesh name="u" file="trough.obj"/></asset><worldbody><body name="u" pos="0 0 1"><freejoint/>
    <geom type="mesh" mesh="u"/></body><body pos="3 0 1"><freejoint/><geom type="ellipsoid" size=".1 .2 .3"/></body>
    </worldbody></mujoco>"""
    trimesh.load_mesh(trough).export(tmp_path / "trough.obj")
    (tmp_path / "u.xml").write_text(text)
    scene = Scene(spacing=0.01, up="z", gravity=(0, 0, -9.81), robot=[Robot(file=tmp_path / "u.xml")])
    solids = robot_solids(scene)
    points = np.array([[0, -0.08, 1], [0, 0.05, 1], [0.17, 0.05, 1], [3.05, 0, 1], [3, 0, 1.28], [3.11, 0, 1]])
    near = [signed_distance(solid.shape, points) for solid in solids]
    assert np.sign(near[0]).tolist() == [-1, 1, -1, 1, 1, 1]
    assert np.sign(near[1]).tolist() == [1, 1, 1, -1, -1, 1]
