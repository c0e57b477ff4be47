"""What a scene may say about bodies and robots, and what it is told when that makes no sense."""

import pytest

from viscoil.errors import SceneError
from viscoil.scene.bodies import Body, Robot
from viscoil.scene.load import load
from viscoil.scene.parts import Solid
from viscoil.scene.schema import Scene

BOX = {"type": "box", "size": (1, 1, 1)}
HINGE = {"density": 600, "joint": "hinge", "axis": [0, 0, 1]}


def test_one_line_is_enough():
    solid = Solid(shape=BOX, body={"density": 600})
    assert solid.body.joint == "free" and solid.body.mass is None
    assert Body(mass="250 g").mass == 0.25


def test_angles_and_lengths_have_units():
    body = Body(**HINGE, range=["-1.570796 rad", 45], drive={"keyframes": [{"time": 0, "value": "3.141593 rad"}]})
    assert body.range == pytest.approx([-90, 45], rel=1e-6)
    assert body.drive.keyframes[0].value == pytest.approx(180, rel=1e-6)
    slide = Body(mass=1, joint="slide", axis=[1, 0, 0], range=["-5 cm", 0.1])
    assert slide.range == pytest.approx([-0.05, 0.1])


WRONG = {
    "neither": ({}, "expected exactly one of density and mass; got neither"),
    "both": ({"density": 1, "mass": 1}, "expected exactly one of density and mass; got density and mass"),
    "negative": ({"density": -1}, "density: expected a density in kg/m³, greater than 0"),
    "unit": ({"mass": "3 cm"}, "mass: expected a mass in kg, greater than 0.*cm is a unit of length"),
    "joint": ({"density": 1, "joint": "hing"}, 'joint: expected one of "free".*Did you mean "hinge"'),
    "key": ({"density": 1, "anchr": 1}, 'unknown key "anchr". Did you mean "anchor"'),
    "axis": ({"density": 1, "joint": "hinge"}, "a hinge needs an axis; expected a direction"),
    "no axis": ({**HINGE, "axis": [0, 0, 0]}, "axis: expected a direction that is not zero"),
    "free parent": ({"density": 1, "parent": "a"}, 'parent is "a", but a free body is fastened to nothing; expected another'),
    "fixed": ({"density": 1, "joint": "fixed"}, "a fixed body needs a parent"),
    "range": ({"density": 1, "range": [0, 1]}, 'range has no meaning with joint = "free"; expected it only with one of'),
    "order": ({**HINGE, "range": [10, -10]}, "range: expected the lower end first; got 10 and -10"),
    "range unit": ({**HINGE, "range": ["1 m", 2]}, "range.0: expected an angle in degrees.*m is a unit of length"),
    "speed": ({**HINGE, "velocity": [1, 0, 0]}, 'velocity has no meaning with joint = "hinge"; .* "free", "slide"'),
    "drive": ({"density": 1, "drive": {"keyframes": [{"time": 0, "value": 1}]}}, 'drive has no meaning with joint = "free"'),
    "drive unit": ({**HINGE, "drive": {"keyframes": [{"time": 0, "value": "1 kg"}]}}, "drive.keyframes.0.value: expected an"),
    "no keys": ({**HINGE, "drive": {"keyframes": []}}, "drive.keyframes: expected a list with at least 1 item"),
    "key order": ({**HINGE, "drive": {"keyframes": [{"time": 1, "value": 1}, {"time": 0, "value": 1}]}},
                  "expected keyframes in order of time; keyframe 1 is at 0 s, keyframe 0 at 1 s"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_body_is_said(name):
    table, words = WRONG[name]
    with pytest.raises(SceneError, match=words):
        Solid(shape=BOX, body=table)


@pytest.mark.parametrize(
    ("solid", "words"),
    [
        ({"shape": BOX, "motion": [{"time": 0}]}, "body and motion together: .*expected one of them"),
        ({"shape": BOX, "container": True}, "body and container together: .*expected container = false"),
        ({"shape": {"type": "plane"}}, "a plane has no end and no mass"),
        ({"shape": {"type": "union", "parts": [BOX, {"type": "plane"}]}}, "a plane has no end and no mass"),
    ],
)
def test_bodies_are_neither_keyframed_nor_hollow_nor_endless(solid, words):
    with pytest.raises(SceneError, match=words):
        Solid(**solid, body={"density": 1})


def scene(*solids, **keys):
    return Scene(spacing=0.1, fluid=[{"shape": BOX, "material": "water"}], solid=[{"shape": BOX, **s} for s in solids], **keys)


def test_parents_must_exist_and_chains_must_end():
    with pytest.raises(SceneError, match=r'solid.1.body.parent: no solid called "doo"\. Did you mean "door"') as error:
        scene({"name": "door"}, {"name": "knob", "body": {**HINGE, "parent": "doo"}}).check()
    assert error.value.suggestion == "door"
    with pytest.raises(SceneError, match="fastened to itself"):
        scene({"name": "a", "body": {**HINGE, "parent": "b"}}, {"name": "b", "body": {**HINGE, "parent": "a"}}).check()
    with pytest.raises(SceneError, match="fastened to itself"):
        scene({"name": "a", "body": {**HINGE, "parent": "a"}}).check()
    scene({"name": "a", "body": {**HINGE, "parent": "b"}}, {"name": "b", "body": HINGE}).check()


def test_robot_files_are_found_beside_the_scene(tmp_path):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    text = 'spacing = 0.1\n[[fluid]]\nmaterial = "water"\nshape = { type = "box", size = [1, 1, 1] }\n'
    text += '[[robot]]\nfile = "arm.xml"\n'
    (tmp_path / "scene.toml").write_text(text)
    found = load(tmp_path / "scene.toml")
    assert found.robot[0].file == str((tmp_path / "arm.xml").resolve()) and found.robot[0].title == "arm"
    (tmp_path / "scene.toml").write_text(text + '[[robot]]\nfile = "arm.xml"\n')
    with pytest.raises(SceneError, match='two robots are called "arm"; expected different names'):
        load(tmp_path / "scene.toml")


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        ({"file": "arm.txt"}, "file: expected an MJCF or URDF file ending in .xml, .mjcf, .urdf"),
        ({"file": "arm.xml"}, "file: expected an existing robot file; .*arm.xml does not exist"),
        ({"file": 3}, 'file: expected the name of a robot file, e.g. "arm.xml"; got 3'),
        ({"file": "a.xml", "up": "x"}, 'up: expected one of "z", "y"'),
        ({"file": "a.xml", "drive": [{"keyframes": [{"time": 0, "value": 0}]}]}, "one of joint and actuator; got neither"),
        ({"file": "a.xml", "dirve": []}, 'unknown key "dirve". Did you mean "drive"'),
    ],
)
def test_what_is_wrong_with_a_robot_table_is_said(robot, words):
    with pytest.raises(SceneError, match=words):
        Robot(**robot)


def test_bodies_survive_being_written_down(tmp_path):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    drive = {"keyframes": [{"time": 0, "value": 10}, {"time": 1, "value": 20.5}], "stiffness": 3}
    first = scene({"name": "a", "body": {**HINGE, "drive": drive, "range": [-10, 30]}}, {"body": {"mass": 2}},
                  robot=[{"file": tmp_path / "arm.xml", "drive": [{"joint": "j", "keyframes": drive["keyframes"]}]}])
    (tmp_path / "scene.toml").write_text(first.to_toml())
    again = load(tmp_path / "scene.toml")
    assert again.to_dict() == first.to_dict()
    assert load(tmp_path / "scene.toml", {"solid.1.body.density": 300}).solid[1].body.mass is None
