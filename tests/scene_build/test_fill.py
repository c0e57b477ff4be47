"""Filling shapes and meshes with particles."""

import numpy as np
import pytest
import trimesh

from kit import box_scene
from viscoil.errors import SceneError
from viscoil.scene.fill import fill_shape, jittered
from viscoil.scene.parts import Solid
from viscoil.scene.shapes import SHAPES, Mesh
from viscoil.simulate import Simulation
from viscoil.solids.assembly import signed_distance
from viscoil.solids.mesh_file import load

D = 0.01


def shape(**fields):
    return Solid(shape=fields).shape


VOLUMES = {
    "box": ({"size": (0.2, 0.1, 0.3)}, 0.006),
    "sphere": ({"radius": 0.1}, 4 / 3 * np.pi * 1e-3),
    "capsule": ({"radius": 0.05, "height": 0.2}, np.pi * 0.0025 * (0.2 + 0.2 / 3)),
    "cylinder": ({"radius": 0.1, "height": 0.2}, np.pi * 0.002),
    "cone": ({"radius": 0.15, "top_radius": 0.05, "height": 0.2}, np.pi / 3 * 0.2 * (0.0225 + 0.0075 + 0.0025)),
    "torus": ({"radius": 0.1, "tube": 0.05}, 2 * np.pi**2 * 0.1 * 0.0025),
    "funnel": ({"top_radius": 0.2, "bottom_radius": 0.1, "height": 0.2, "thickness": 0.04}, None),
    "bowl": ({"radius": 0.2, "height": 0.12, "thickness": 0.04}, None),
    "cup": ({"radius": 0.12, "top_radius": 0.18, "height": 0.2, "thickness": 0.04}, None),
    "bear": ({"height": 0.5}, None),
    "union": (
        {"parts": [{"type": "box", "size": (0.1, 0.1, 0.1), "position": (a, 0.1, 0)} for a in (-0.2, 0.3)], "blend": 0.0},
        0.002,
    ),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_count_is_volume_over_cube(name):
    fields, volume = VOLUMES[name]
    s = shape(type=name, **fields)
    x = fill_shape(s, D)
    volume = volume or s.volume()
    assert len(x) * D**3 == pytest.approx(volume, rel=0.05 if VOLUMES[name][1] else 0.2)
    assert len(x) * D**3 < s.volume() * 1.03 + D**3, "estimates hold what is filled"
    assert len(np.unique(np.round(x / (D / 4)).astype(int), axis=0)) == len(x)
    assert np.all(signed_distance(s, x) < 1e-6)


@pytest.mark.parametrize("name", [n for n in VOLUMES if n != "union"])
def test_place_and_turn(name):
    """The lattice belongs to the shape: placing and turning it moves the particles, nothing else."""
    fields, _ = VOLUMES[name]
    plain = fill_shape(shape(type=name, **fields), D)
    turned = fill_shape(shape(type=name, position=(1, 2, 3), rotation=(20, 30, 40), **fields), D)
    assert len(plain) == len(turned)
    assert np.allclose(turned.mean(0) - plain.mean(0) @ _turn().T, (1, 2, 3), atol=1e-4)
    assert np.allclose(_gaps(plain), _gaps(turned), atol=1e-5)


def _gaps(x):
    return np.linalg.norm(x[1:] - x[:-1], axis=1)


def _turn():
    """About x, then the new y, then the new z: each acts in the frame the ones before have turned."""
    turn = np.eye(3)
    for axis, degrees in enumerate((20, 30, 40)):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        one, (a, b) = np.eye(3), [k for k in range(3) if k != axis]
        one[a, a] = one[b, b] = c
        one[a, b], one[b, a] = (s, -s) if axis == 1 else (-s, s)
        turn = turn @ one
    return turn


def test_exact_fits_fill_exactly():
    """0.1 / 0.001 is 100 particles and not 99, whatever the rounding of the numbers."""
    for n in (1, 3, 7, 10, 33):
        for d in (0.1, 0.007, 1 / 3, 0.025):
            assert len(fill_shape(shape(type="box", size=(n * d, d, 2 * d)), d)) == 2 * n


def test_every_shape_is_covered():
    assert set(VOLUMES) | {"plane", "mesh"} == set(SHAPES)


INSIDE = {
    "box": lambda x: np.all(np.abs(x) < (0.1, 0.05, 0.15), axis=1),
    "ball": lambda x: np.linalg.norm(x, axis=1) < 0.1,
    "tetra": lambda x: np.all(x > 0, axis=1) & (x.sum(1) < 0.3),
    "hollow": lambda x: (np.abs(np.hypot(x[:, 0], x[:, 1]) - 0.075) < 0.0255) & (np.abs(x[:, 2]) < 0.1),
}
MESHES = {
    "box": lambda: trimesh.creation.box((0.2, 0.1, 0.3)),
    "ball": lambda: trimesh.creation.icosphere(subdivisions=3, radius=0.1),
    "tetra": lambda: trimesh.Trimesh(
        [(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    ),
    "hollow": lambda: trimesh.creation.annulus(r_min=0.05, r_max=0.1, height=0.2),
}  # fmt: skip


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("suffix", ["obj", "stl", "ply"])
def test_meshes(kind, suffix, tmp_path):
    mesh = MESHES[kind]()
    file = tmp_path / f"{kind}.{suffix}"
    mesh.export(file)
    x = fill_shape(Mesh(file=str(file)), D)
    assert len(x) * D**3 == pytest.approx(abs(mesh.volume), rel=0.06)
    assert INSIDE[kind](x).all()
    scaled = fill_shape(Mesh(file=str(file), scale=0.5, position=(1, 0, 0)), D / 2)
    assert np.allclose(scaled, x * 0.5 + np.float32([1, 0, 0]), atol=1e-6)


def test_open_and_broken_meshes_are_named(tmp_path):
    mesh = trimesh.creation.box((1, 1, 1))
    mesh.update_faces(np.arange(len(mesh.faces)) > 1)
    mesh.export(tmp_path / "open.stl")
    with pytest.raises(SceneError, match="not closed"):
        load(str(tmp_path / "open.stl"))
    (tmp_path / "empty.obj").write_text("# nothing\n")
    with pytest.raises(SceneError, match=r"empty\.obj"):
        load(str(tmp_path / "empty.obj"))
    (tmp_path / "junk.ply").write_bytes(bytes(range(256)))
    with pytest.raises(SceneError, match=r"junk\.ply"):
        load(str(tmp_path / "junk.ply"))
    with pytest.raises(SceneError, match="does not exist"):
        load(str(tmp_path / "missing.obj"))


def test_jitter_is_bounded_and_repeatable():
    x = fill_shape(shape(type="box", size=(0.1, 0.1, 0.1)), D)
    a, b = jittered(x, 0.3, D, 7), jittered(x, 0.3, D, 7)
    assert np.array_equal(a, b) and not np.array_equal(a, jittered(x, 0.3, D, 8))
    assert 0.25 * D < np.abs(a - x).max() <= 0.3 * D * 1.001
    assert jittered(x, 0, D, 7) is x


def test_fluid_does_not_start_inside_solids():
    scene = box_scene(0.05)
    scene.solid.append(Solid(shape={"type": "sphere", "radius": 0.1, "position": (0.15, 0.15, 0.15)}))
    scene.solid.append(Solid(shape={"type": "plane", "position": (0, 0.05, 0), "rotation": (0, 0, 10)}))
    sim = Simulation(scene, "cpu")
    x = sim.frame()["position"]
    for index in range(3):
        assert sim.world.solids.distance(index, x).min() > 0.45 * 0.05
    assert any("inside solids" in note for note in sim.notes) and len(x) < 216


def test_nothing_left_is_an_error():
    scene = box_scene(0.05)
    scene.solid.append(Solid(shape={"type": "plane", "position": (0, 9, 0)}))
    with pytest.raises(SceneError, match="no particles"):
        Simulation(scene, "cpu")


def test_overlapping_fluids_are_refused():
    scene = box_scene(0.05)
    block = scene.fluid[0].model_copy(deep=True)
    block.shape.position = (0.15, 0.15 + 0.26, 0.15)
    scene.fluid.append(block)
    with pytest.raises(SceneError, match=r"fluid\.1 overlaps fluid\.0: 36 pairs"):
        Simulation(scene, "cpu")
    block.shape.position = (0.15, 0.15 + 0.3, 0.15)
    assert Simulation(scene, "cpu").particles == 432


def test_velocities_spin_and_materials():
    scene = box_scene(0.05)
    scene.fluid[0].velocity, scene.fluid[0].angular_velocity = (1, 2, 3), (0, 0, 2)
    scene.fluid.append(
        {"material": "honey", "shape": {"type": "sphere", "radius": 0.1, "position": (0.15, 0.45, 0.15)}}
    )
    scene = type(scene)(**scene.to_dict())
    frame = Simulation(scene, "cpu").frame()
    x, v, water = frame["position"], frame["velocity"], frame["material"] == 0
    r = x[water] - 0.15
    assert np.allclose(v[water], np.array([1, 2, 3]) + np.stack([-2 * r[:, 1], 2 * r[:, 0], 0 * r[:, 0]], 1), atol=1e-5)
    assert np.all(v[~water] == 0) and 0 < (~water).sum() < 40
    assert [m["name"] for m in frame.materials] == ["water", "honey"]
