"""Mesh files in scenes: as colliders, containers, nozzles, sinks and boundary samples, and what is said about them."""

import numpy as np
import pytest

from mesh_kit import goblet, write, written
from viscoil.errors import SceneError
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solids.mesh_file import load
from viscoil.solids.mesh_tree import tree_of

BALL = {"type": "sphere", "radius": 0.06}


def scene(spacing=0.01, frames=8, **parts):
    return Scene(spacing=spacing, solver={"method": "pbf"}, time={"frames": frames, "steps_per_frame": 4},
                 **{"fluid": [], **parts})  # fmt: skip


def last(sim):
    for _ in sim.frames():
        pass
    return sim.frame()["position"]


def mesh_of(file, **fields):
    return {"type": "mesh", "file": str(file), **fields}


def test_a_mesh_ball_is_a_ball(tmp_path):
    """A drop falls beside the middle of a ball and slides off: the mesh must send it the same way as the formula."""
    file = written(tmp_path / "ball.ply", BALL, 96)
    drop = {"shape": {"type": "sphere", "radius": 0.022, "position": (0.02, 0.085, 0.01)}, "material": "water"}
    places = [
        last(Simulation(scene(0.01, 10, fluid=[drop], solid=[{"shape": s}]), "cpu")) for s in (BALL, mesh_of(file))
    ]
    start = Simulation(scene(0.01, 10, fluid=[drop]), "cpu").frame()["position"]
    travelled = np.linalg.norm(places[0] - start, axis=1).mean()
    apart = np.linalg.norm(places[0].mean(0) - places[1].mean(0))
    assert travelled > 0.05 and apart < 0.02 * travelled
    assert places[0].mean(0)[0] > start.mean(0)[0] + 0.01, "it did slide"


def test_a_goblet_keeps_its_honey(tmp_path):
    file = write(tmp_path / "goblet.stl", *goblet(wall=0.006, detail=48))
    honey = {"shape": {"type": "cylinder", "radius": 0.028, "height": 0.035, "position": (0, 0.085, 0)}, "material": "honey"}
    glass = {"name": "goblet", "shape": mesh_of(file), "friction": 0.5}
    sim = Simulation(scene(0.0045, 10, fluid=[honey], solid=[glass, {"shape": {"type": "plane"}}]), "cpu")
    number = len(sim.frame()["position"])
    x = last(sim)
    phi = tree_of(load(file)).distance(x)
    assert len(x) == number > 300
    assert phi.min() > 0.9 * 0.5 * 0.0045, "nobody in the glass"
    assert np.hypot(x[:, 0], x[:, 2]).max() < 0.036 and x[:, 1].min() > 0.042, "everybody in the cup"


@pytest.mark.parametrize("boundary", ["distance", "particles"])
def test_container_and_boundary_samples(boundary, tmp_path):
    file = written(tmp_path / "ball.obj", BALL, 64)
    water = {"shape": {"type": "sphere", "radius": 0.035}, "material": "water"}
    vessel = {"shape": mesh_of(file), "container": True, "boundary": boundary}
    sim = Simulation(scene(0.012, 10, fluid=[water], solid=[vessel]), "cpu")
    x = last(sim)
    assert np.linalg.norm(x, axis=1).max() < 0.0605 and x[:, 1].mean() < -0.015, "it fell and stayed inside"
    if boundary == "particles":
        samples = sim.world.get("position")[sim.world.get("solid") >= 0]
        assert len(samples) > 150 and np.allclose(np.linalg.norm(samples, axis=1), 0.066, atol=0.001)


def test_nozzle_and_sink(tmp_path):
    """The opening is the cut of a torus through y = 0; what falls into the ball disappears."""
    ring = written(tmp_path / "ring.ply", {"type": "torus", "radius": 0.04, "tube": 0.015}, 64)
    ball = written(tmp_path / "ball.ply", BALL, 32)
    nozzle = {"shape": mesh_of(ring), "material": "water", "position": (0, 0.2, 0), "speed": 1.0, "end": 0.05}
    sim = Simulation(scene(0.01, 4, emitter=[nozzle]), "cpu")
    rho = np.hypot(*last(sim)[:, [0, 2]].T)
    assert len(rho) > 100 and rho.min() > 0.02 and rho.max() < 0.06
    drain = {"shape": mesh_of(ball, position=(0, 0.1, 0))}
    sim = Simulation(scene(0.01, 12, emitter=[nozzle], sink=[drain]), "cpu")
    assert len(last(sim)) < 0.2 * len(rho)


def test_a_nozzle_that_is_never_cut(tmp_path):
    ball = written(tmp_path / "ball.ply", {**BALL}, 16)
    nozzle = {"shape": mesh_of(ball, position=(0, 0.2, 0)), "material": "water", "speed": 1.0}
    with pytest.raises(SceneError, match="no cross section at y = 0"):
        Simulation(scene(emitter=[nozzle]), "cpu")


@pytest.mark.parametrize("kind", ["fluid", "solid"])
def test_millimetres_are_noticed(kind, tmp_path):
    """A mesh 1000 times too large or too small ends in one message with the scale that fits."""
    file = written(tmp_path / "ball.stl", {"type": "sphere", "radius": 60.0}, 16)
    bath = {"shape": {"type": "box", "size": (0.2, 0.1, 0.2)}, "material": "water"}

    def with_scale(factor):
        thing = {"shape": mesh_of(file, scale=factor, position=(0, 0.5, 0))}
        more = {"fluid": [bath, {**thing, "material": "water"}]} if kind == "fluid" else {"fluid": [bath], "solid": [thing]}
        return scene(**more)

    with pytest.raises(SceneError, match=r"ball\.stl' is 120 m long .* try scale = 0\.001 \(from millimetres\)") as caught:
        Simulation(with_scale(1.0), "cpu")
    assert caught.value.key == f"{kind}.{1 if kind == 'fluid' else 0}.shape"
    with pytest.raises(SceneError, match=r"shorter than one particle spacing.*try scale = 0\.001"):
        with_scale(1e-6).check_size()
    with_scale(0.001).check_size()
    with_scale(0.02).check_size()


def test_broken_meshes_name_their_place(tmp_path):
    file = write(tmp_path / "open.ply", [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    bath = {"shape": {"type": "box", "size": (0.2, 0.1, 0.2)}, "material": "water"}
    with pytest.raises(SceneError, match=r"scene: solid\.0\.shape\.file: mesh file .*open\.ply' is not closed") as caught:
        Simulation(scene(fluid=[bath], solid=[{"name": "leaf", "shape": mesh_of(file)}]), "cpu")
    assert caught.value.key == "solid.0.shape.file"


def test_notes_on_thin_walls_and_crossings(tmp_path):
    file = write(tmp_path / "goblet.ply", *goblet(wall=0.006, detail=32))
    bath = {"shape": {"type": "box", "size": (0.1, 0.05, 0.1), "position": (0.3, 0, 0)}, "material": "water"}
    thin = Simulation(scene(0.012, fluid=[bath], solid=[{"name": "glass", "shape": mesh_of(file)}]), "cpu").notes
    (note,) = [n for n in thin if "thin" in n]
    assert "glass" in note and "spacing (0.012 m)" in note and "Expected a spacing of at most 0.005" in note
    fine = scene(0.0048, fluid=[bath], solid=[{"shape": mesh_of(file)}])
    assert not [note for note in Simulation(fine, "cpu").notes if "mesh" in note]
    ball = load(written(tmp_path / "ball.ply", BALL, 24))
    both = np.concatenate([ball.vertices, ball.vertices + np.array([0.05, 0, 0])])
    pair = np.concatenate([ball.triangles, ball.triangles + len(ball.vertices)])
    crossing = mesh_of(write(tmp_path / "pair.ply", both, pair))
    for parts in ({"solid": [{"shape": crossing}], "fluid": [bath]}, {"fluid": [{"shape": crossing, "material": "water"}]}):
        (note,) = [n for n in Simulation(scene(**parts), "cpu").notes if "mesh" in n]
        assert "cuts itself" in note and "pair.ply" in note


def test_a_body_that_is_a_mesh(tmp_path):
    """A box of wood dropped into water: as a mesh it has the same mass, and goes the same way."""
    box = {"type": "box", "size": (0.12, 0.12, 0.12)}
    file = written(tmp_path / "box.ply", box)
    heights = []
    for shape in (box, mesh_of(file)):
        water = {"shape": {"type": "box", "size": (0.3, 0.18, 0.3), "position": (0, 0.09, 0)}, "material": "water"}
        tank = {"shape": {"type": "box", "size": (0.3, 1.0, 0.3), "position": (0, 0.5, 0)}, "container": True}
        wood = {"name": "wood", "shape": {**shape, "position": (0, 0.26, 0)}, "body": {"density": 600}}
        sim = Simulation(scene(0.03, 20, fluid=[water], solid=[tank, wood]), "cpu")
        heights.append([float(np.asarray(frame.solids[1]["pose"])[1, 3]) for frame in sim.frames()])
    apart = np.abs(np.subtract(*heights))
    assert np.ptp(heights[0]) > 0.05 and apart.max() < 0.005
