"""The note on solids that are thinner than a spacing."""

import pytest

from kit import box_scene
from mesh_kit import written
from viscoil.scene.mesh_checks import mesh_notes, thin_notes
from viscoil.simulate import Simulation

D = 0.05  # m, spacing of box_scene


@pytest.mark.parametrize("shape, thickness", [
    ({"type": "box", "size": (0.2, 0.03, 0.2)}, "0.03"),
    ({"type": "cup", "radius": 0.2, "height": 0.2, "thickness": 0.02}, "0.02"),
    ({"type": "funnel", "bottom_radius": 0.1, "top_radius": 0.2, "height": 0.2, "thickness": 0.0125}, "0.0125"),
    ({"type": "capsule", "radius": 0.02, "height": 0.2}, "0.04"),
    ({"type": "union", "parts": [{"type": "sphere", "radius": 0.1}, {"type": "box", "size": (0.2, 0.04, 0.2)}]}, "0.04"),
])  # fmt: skip
def test_one_note_that_says_everything(shape, thickness):
    scene = box_scene(solid=[{"name": "lid", "shape": shape}])
    (note,) = thin_notes(scene)
    assert note.startswith(f'solid.0 ("lid") is {thickness} m thin, less than one particle spacing (0.05 m): it holds')
    assert "see each other" in note
    assert note.endswith(f"Expected a spacing of at most {float(thickness):.2g} m or a thicker one")
    assert note in Simulation(scene, device="cpu").notes


def test_silence_where_walls_are_thick_enough(tmp_path):
    thick = [{"shape": {"type": "box", "size": (1, D, 1)}}, {"shape": {"type": "plane"}}]
    tank = {"container": True, "shape": {"type": "box", "size": (1, 1, 1)}}
    assert thin_notes(box_scene(solid=[*thick, tank])) == []
    hollow = {"container": True, "shape": {"type": "sphere", "radius": 0.01}}
    assert thin_notes(box_scene(solid=[hollow])) == [], "all outside of it is solid"
    file = written(tmp_path / "plate.ply", {"type": "box", "size": (0.4, 0.03, 0.4)})
    plate = box_scene(solid=[{"shape": {"type": "mesh", "file": file}}])
    assert thin_notes(plate) == [], "the walls of meshes are measured"
    (note,) = mesh_notes(plate, 2.3 * D)
    assert "has a wall 0.03 m thin, less than one particle spacing" in note and "see each other" in note


def test_a_figure_gets_one_note():
    actor = {"height": 0.5}
    scene = box_scene(actor=[actor], fluid=[{"material": "water", "shape": {"type": "box", "size": (1, 1, 1)}}])
    assert len(scene.every_solid()) > 5
    assert len(thin_notes(scene)) == 1
