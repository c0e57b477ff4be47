"""Robots and bodies in whole simulations: fluid meets their links, and a restart goes on as if nothing had happened."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.restart import restore, state_of
from viscoil.scene.bodies import Robot
from viscoil.scene.parts import Solid
from viscoil.simulate import Simulation

D = 0.05
PADDLE = """
<mujoco><worldbody><body name="paddle" pos="0 0 .45">
  <joint name="swing" axis="0 1 0"/><geom type="box" size=".03 .15 .16" pos="0 0 -.2" density="900"/>
</body></worldbody></mujoco>
"""


def paddle_scene(tmp_path, **robot):
    """A shallow pool, a driven paddle of a file that hangs into it, and a float."""
    (tmp_path / "paddle.xml").write_text(PADDLE)
    scene = box_scene(D, (16, 5, 8))
    keys = [{"time": 0, "value": 0}, {"time": 0.1, "value": 40}]
    drive = [{"joint": "swing", "keyframes": keys}]
    scene.robot = [Robot(file=tmp_path / "paddle.xml", position=(0.4, 0, 0.2), drive=drive, **robot)]
    shape = {"type": "box", "size": (0.15, 0.1, 0.15), "position": (0.65, 0.33, 0.2)}
    scene.solid = [*scene.solid, Solid(name="float", shape=shape, body={"density": 300})]
    return scene


@pytest.mark.parametrize("two_way", [True, False])
def test_a_paddle_from_a_file_moves_fluid(tmp_path, two_way):
    sim = Simulation(paddle_scene(tmp_path, two_way=two_way), "cpu")
    names = [solid["name"] for solid in sim.frame().solids]
    assert "paddle/paddle" in names
    for _ in range(5):
        sim.advance_frame()
    frame = sim.frame()
    pose = np.array(next(solid["pose"] for solid in frame.solids if solid["name"] == "paddle/paddle"))
    assert pose[:3, 3] == pytest.approx([0.4, 0.45, 0.2], abs=1e-6)
    assert (pose[:3, :3] @ [0, 0, -1])[0] < -0.2  # its lower end swings to −x
    assert frame["velocity"][:, 0].mean() < -0.02
    rigid = sim.world.solids.bodies.rigid
    assert rigid.follows.tolist() == [True, two_way]
    hit = np.abs(sim.world.solids.bodies.impulse).sum(1) > 0
    assert hit.tolist() == [True, two_way]


def test_restart_with_a_robot_and_a_float_is_exact(tmp_path):
    first, second = (Simulation(paddle_scene(tmp_path), "cpu") for _ in range(2))
    for _ in range(3):
        first.advance_frame()
    restore(second, state_of(first))
    for sim in (first, second):
        sim.advance_frame()
    assert np.array_equal(first.frame()["position"], second.frame()["position"])
    assert np.array_equal(*(sim.world.solids.bodies.rigid.state() for sim in (first, second)))
