"""Robots from files: they stand upright, hang by their own joints, follow keyframes, and fluid sees their links."""

import numpy as np
import pytest

from viscoil.errors import SceneError
from viscoil.scene.bodies import Robot
from viscoil.scene.robots import robot_notes, robot_solids
from viscoil.scene.schema import Scene
from viscoil.solids.assembly import signed_distance
from viscoil.solids.rigid import RigidWorld
from viscoil.solids.robots import upright

DT = 1 / 240
PENDULUM = """
<mujoco model="pendulum">
  <compiler angle="degree"/>
  <option gravity="0 0 -1"/>
  <worldbody>
    <geom name="post" type="box" size=".02 .02 .5" pos="0 .1 .5"/>
    <body name="rod" pos="0 0 1" euler="0 10 0">
      <joint name="pivot" axis="0 1 0"/>
      <geom type="capsule" size=".01" fromto="0 0 0 0 0 -.5" density="1" rgba="1 0 0 1"/>
      <geom type="sphere" size=".05" pos="0 0 -.5" density="1000"/>
    </body>
  </worldbody>
</mujoco>
"""
ARM = """
<mujoco>
  <worldbody>
    <body name="base"><geom type="box" size=".1 .1 .05"/>
      <body name="upper" pos="0 0 .05">
        <joint name="shoulder" axis="0 1 0" damping=".1"/><geom type="cylinder" size=".03 .2" pos="0 0 .2"/>
        <body name="hand" pos="0 0 .4">
          <joint name="wrist" type="slide" axis="0 0 1"/><geom type="box" size=".04 .04 .02"/>
          <joint name="elbow" axis="0 1 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="shoulder" kp="400" dampratio="1"/><motor name="push" joint="wrist"/></actuator>
</mujoco>
"""
URDF = """
<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper">
    <inertial><origin xyz="0 0 0.2"/><mass value="1"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.04" length="0.4"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.05"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="100" velocity="1"/></joint>
</robot>
"""


@pytest.fixture
def made(tmp_path):
    def make(text, up="y", gravity=(0, -9.81, 0), suffix="xml", **robot):
        file = tmp_path / f"robot.{suffix}"
        file.write_text(text)
        scene = Scene(spacing=0.01, up=up, gravity=gravity, robot=[Robot(file=file, **robot)])
        solids = robot_solids(scene)
        return solids, RigidWorld(scene, solids)

    return make


def run(rigid, time, start=0.0):
    for k in range(round(time / DT)):
        rigid.commit(np.zeros((len(rigid.solid), 6)), start + k * DT, DT)


def keys(*values):
    return [{"time": time, "value": value} for time, value in values]


def test_up_is_turned_and_nothing_else():
    z, y = np.array([0, 0, 1.0]), np.array([0, 1.0, 0])
    assert upright("z", "y") @ z == pytest.approx(y)
    assert upright("z", "y") @ [1, 2, 3] == pytest.approx([1, 3, -2])
    assert upright("y", "z") @ y == pytest.approx(z)
    assert np.array_equal(upright("z", "z"), np.eye(3)) and np.array_equal(upright("y", "y"), np.eye(3))


@pytest.mark.parametrize("up", ["y", "z"])
def test_a_pendulum_stands_upright_and_keeps_its_time(made, up):
    """T = 2π √(I / (m g l)) (1 + θ²/16) with the scene's gravity, not the file's."""
    gravity = (0, -9.81, 0) if up == "y" else (0, 0, -9.81)
    solids, rigid = made(PENDULUM, up, gravity, position=(2, 0, 0))
    high = 1 if up == "y" else 2
    assert [s.name for s in solids] == ["robot/world", "robot/rod"]
    assert solids[0].body is None and rigid.solid == [1]
    assert rigid.poses()[1][0] == pytest.approx([2, 1, 0] if up == "y" else [2, 0, 1], abs=1e-12)
    inside, below = ((2, 0.5, -0.1), (2, -0.5, 0)) if up == "y" else ((2, 0.1, 0.5), (2, 0, -0.5))
    post = signed_distance(solids[0].shape, np.array([inside, below]))
    assert post[0] < 0 < post[1]
    arm, start = 0.25 + 0.4 * 0.05**2, np.radians(10)
    period = 2 * np.pi * np.sqrt(arm / (9.81 * 0.5)) * (1 + start**2 / 16)
    centres = []
    for k in range(round(3 * period / DT)):
        rigid.commit(np.zeros((1, 6)), k * DT, DT)
        centres.append(rigid.centres()[0])
    centres = np.array(centres) - [2, 0, 0]
    assert centres[:, high].max() < 0.52
    assert np.abs(centres[:, 3 - high]).max() < 1e-9  # it swings in the plane it should
    falls = np.flatnonzero((centres[:-1, 0] < 0) & (centres[1:, 0] >= 0)) * DT
    assert np.diff(falls).mean() == pytest.approx(period, rel=5e-3)


def test_links_are_solids_where_the_file_puts_them(made):
    solids, rigid = made(PENDULUM, rotation=(0, 90, 0))
    rod = solids[1]
    assert rod.colour == (1, 0, 0) and rod.body.mass == pytest.approx(rigid.masses[0])
    (rotation,), (position,) = rigid.poses()
    bob = position + rotation @ np.array([0, 0, -0.5])
    points = np.array([bob, bob + np.array([0, 0.06, 0]), position, position + np.array([0, 0.02, 0])])
    assert np.sign(signed_distance(rod.shape, points)).tolist() == [-1, 1, -1, 1]
    assert bob[2] == pytest.approx(0.5 * np.sin(np.radians(10)), abs=1e-9)  # −x of the file is +z after a turn by 90°
    assert bob[0] == pytest.approx(0, abs=1e-9)


def test_links_are_the_same_objects_until_the_robot_changes(made, tmp_path):
    made(PENDULUM)
    scene = Scene(spacing=0.01, robot=[Robot(file=tmp_path / "robot.xml")])
    first = robot_solids(scene)
    assert all(a is b for a, b in zip(first, robot_solids(scene), strict=True))
    scene.robot[0].position = (1, 0, 0)
    assert robot_solids(scene)[0] is not first[0]


def test_drives_use_the_files_motors_or_bring_their_own(made):
    drive = [
        {"joint": "shoulder", "keyframes": keys((0, 20), (0.5, "1 rad"))},  # has a position servo
        {"joint": "wrist", "keyframes": keys((0, "2 cm"), (0.5, 0.1))},  # has a motor only
        {"joint": "elbow", "keyframes": keys((0, 0), (0.5, -90)), "interpolation": "linear"},  # has nothing
    ]
    solids, rigid = made(ARM, drive=drive, weightless=True)
    joint = lambda name: rigid._data.joint(f"robot/{name}").qpos[0]  # noqa: E731
    assert rigid._model.nu == 4
    assert joint("shoulder") == pytest.approx(np.radians(20)) and joint("wrist") == pytest.approx(0.02)
    assert [s.name for s in solids] == ["robot/base", "robot/upper", "robot/hand"]
    run(rigid, 1.5)
    assert joint("shoulder") == pytest.approx(1.0, abs=0.01)
    assert joint("wrist") == pytest.approx(0.1, abs=0.002)
    assert joint("elbow") == pytest.approx(-np.pi / 2, abs=0.01)
    _, second = made(ARM, drive=[{"actuator": "servo", "keyframes": keys((0, 0.5))}], weightless=True)
    run(second, 0.5)
    assert second._data.joint("robot/shoulder").qpos[0] == pytest.approx(0.5, abs=0.01)


def test_fluid_moves_a_robot_unless_told_otherwise(made):
    impulse = np.array([[0.5, 0, 0, 0, 0, 0]])
    for two_way in (True, False):
        _, rigid = made(PENDULUM, gravity=(0, 0, 0), two_way=two_way)
        assert (np.abs(rigid.predict(0, DT).inverse).max() > 0) == two_way
        rigid.commit(impulse, 0, DT)
        assert (abs(rigid.twists()[0, 0]) > 0.1) == two_way


def test_a_urdf_file_stands_upright_too(made):
    solids, rigid = made(URDF, suffix="urdf", drive=[{"joint": "shoulder", "keyframes": keys((0, 0), (0.5, 90))}])
    assert [s.name for s in solids] == ["robot/base", "robot/upper"]
    assert rigid.masses == pytest.approx([1.0])
    assert rigid.centres()[0] == pytest.approx([0, 0.25, 0], abs=1e-12)
    run(rigid, 1.0)
    assert rigid.centres()[0] == pytest.approx([0.2, 0.05, 0], abs=0.003)


def test_restart_of_a_robot_is_exact(made):
    drive = [{"joint": "elbow", "keyframes": keys((0, 0), (0.5, -90))}]
    _, first = made(ARM, drive=drive)
    _, second = made(ARM, drive=drive)
    run(first, 0.2)
    second.restore(first.state())
    run(first, 0.2, 0.2)
    run(second, 0.2, 0.2)
    assert np.array_equal(first.state(), second.state())


def test_a_robot_goes_on_after_a_change_of_the_scene(made):
    drive = [{"joint": "elbow", "keyframes": keys((0, 0), (0.5, -90))}]
    _, old = made(ARM, drive=drive)
    run(old, 0.2)
    _, new = made(ARM, drive=drive)
    new.take_over(old)
    assert new.poses()[1] == pytest.approx(old.poses()[1]) and new.twists() == pytest.approx(old.twists())


def test_what_cannot_be_taken_over_is_said(made, tmp_path):
    text = """<mujoco><asset><hfield name="hills" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 1 0"/></asset>
    <worldbody><geom type="hfield" hfield="hills"/></worldbody></mujoco>"""
    solids, _ = made(text)
    assert solids == []
    scene = Scene(spacing=0.01, robot=[Robot(file=tmp_path / "robot.xml")])
    assert robot_notes(scene) == ["robot/world: geometry of the kind hfield is left out"]


@pytest.mark.parametrize(
    ("text", "drive", "words"),
    [
        ("hello", [], "robot.0.file: .*robot.xml is not a robot that can be read .*expected an MJCF or URDF file"),
        ("<mujoco><worldbody><bod/></worldbody></mujoco>", [], "is not a robot that can be read .*bod"),
        (ARM, [{"joint": "sholder", "keyframes": keys((0, 0))}], 'robot.0.drive.0.joint: robot.xml has no joint called '
         '"sholder".*Did you mean "shoulder".*Expected one of: shoulder, wrist, elbow'),
        (ARM, [{"actuator": "serv", "keyframes": keys((0, 0))}], 'has no actuator called "serv".*Did you mean "servo"'),
        (ARM, [{"joint": "wrist", "keyframes": keys((0, "90 deg"))}], "robot.0.drive.0.keyframes.0.value: expected a length"),
        (ARM.replace('<joint name="elbow" axis="0 1 0"/>', '<joint name="elbow" type="ball"/>'),
         [{"joint": "elbow", "keyframes": keys((0, 0))}], '"elbow" is neither hinge nor slide'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_robot_is_said(made, text, drive, words):
    with pytest.raises(SceneError, match=words):
        made(text, drive=drive)
