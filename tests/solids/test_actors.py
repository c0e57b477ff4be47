"""Figures of capsules: feet that bear weight do not slide, bones keep their length, nothing jumps, fluid meets the limbs."""

from itertools import pairwise

import numpy as np
import pytest

import viscoil as vc
from viscoil.errors import SceneError
from viscoil.scene.actors import Actor, Figure
from viscoil.scene.schema import Scene
from viscoil.solids import gait
from viscoil.solids.assembly import SolidSet

WAYS = {
    "walks": {"gait": "walk"}, "hurries": {"gait": "walk", "speed": 2.0}, "strolls": {"gait": "walk", "speed": 0.5},
    "turns": {"gait": "walk", "turn": 45.0}, "stops": {"gait": "walk", "start": 0.3, "end": 3.0}, "steps": {"gait": "step"},
    "turns on the spot": {"gait": "step", "turn": 60.0}, "is small": {"gait": "walk", "height": 0.3}, "waves": {"gait": "wave"},
}  # fmt: skip
MOMENTS = np.linspace(0.0, 5.0, 301)


@pytest.mark.parametrize("way", WAYS)
def test_feet_roll_on_the_floor_while_they_bear_weight_and_never_sink_in(way):
    actor = Actor(**WAYS[way])
    moves, h, tiny = actor.movement(), actor.height, 1e-5
    lifted, bearing = 0.0, []
    for t in MOMENTS:
        feet = [moves.foot(side, float(t)) for side in (0, 1)]
        bearing.append(sum(foot.bears for foot in feet))
        for side, foot in enumerate(feet):
            ends = gait.foot_ends(foot, h)
            low = ends[int(np.argmin([end[2] for end in ends]))] - [0, 0, gait.SOLE * h]
            assert low[2] > -1e-9
            lifted = max(lifted, low[2])
            later = moves.foot(side, float(t) + tiny)
            if foot.bears and later.bears:
                assert abs(low[2]) < 1e-9
                own = foot.frame().T @ (low - foot.ankle)  # the point of the sole that touches now
                slid = later.frame() @ own + later.ankle - low
                assert np.linalg.norm(slid) / tiny < 1e-3, "metres per second"
    assert min(bearing) >= 1
    if actor.gait in ("walk", "step"):
        assert lifted > 0.01 * h


@pytest.mark.parametrize("way", WAYS)
def test_bones_meet_at_their_joints_and_nothing_jumps(way):
    actor = Actor(**WAYS[way])
    figure, h = Figure(actor, "y"), actor.height
    before, step = figure.limbs(0.0), MOMENTS[1]
    for t in MOMENTS[1:]:
        now = figure.limbs(float(t))
        for limb, (rotation, place) in now.items():
            assert rotation @ rotation.T == pytest.approx(np.eye(3), abs=1e-9)
            assert np.linalg.det(rotation) == pytest.approx(1.0)
            speed, _ = figure.fastest(limb, 0.0)
            assert np.linalg.norm(place - before[limb][1]) <= speed * step + 1e-9
        for side in ("left", "right"):
            (thigh, upper), (shank, lower) = now[f"{side} thigh"], now[f"{side} shank"]
            knee = upper - thigh[:, 1] * gait.THIGH * h / 2
            assert knee == pytest.approx(lower + shank[:, 1] * gait.SHANK * h / 2, abs=1e-6 * h)
            # Knees bend forward: the thigh's lower end is never behind the line from hip to ankle.
            hip, ankle = upper + thigh[:, 1] * gait.THIGH * h / 2, lower - shank[:, 1] * gait.SHANK * h / 2
            assert (knee - (hip + ankle) / 2) @ thigh[:, 0] > -1e-9
        assert 0.9 * h < now["head"][1][1] + 0.068 * h < 1.01 * h
        before = now


def test_walks_where_it_is_told():
    figure = Figure(Actor(gait="walk", speed=1.2, start=0.5, end=4.5, heading=90.0, position=(1.0, 0.2, 3.0)), "y")
    assert all(np.array_equal(figure.limbs(0.0)[limb][1], figure.limbs(0.5)[limb][1]) for limb in figure.limbs(0.0))
    begin, after, later = (figure.limbs(t)["pelvis"][1] for t in (0.0, 8.0, 9.0))
    assert np.array_equal(after, later), "it stands"
    cycle = figure.gait.cycle
    assert after - begin == pytest.approx([0.0, 0.0, -1.2 * (4.0 - cycle)], abs=1e-9), "to the left of +x is −z"
    feet = [figure.limbs(9.0)[f"{side} foot"][1] for side in ("left", "right")]
    assert feet[0][2] == pytest.approx(feet[1][2]), "side by side"
    assert feet[0][0] < feet[1][0], "the left one on the left"


def test_a_figure_stands_along_the_scenes_vertical():
    words = {"gait": "walk", "heading": 30.0}
    tall, lying = Figure(Actor(**words), "z").limbs(2.0), Figure(Actor(**words), "y").limbs(2.0)
    to_y = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    for limb, (rotation, place) in tall.items():
        assert to_y @ place == pytest.approx(lying[limb][1], abs=1e-12)
        assert to_y @ rotation == pytest.approx(lying[limb][0], abs=1e-12)
    assert tall["head"][1][2] > 1.5


def test_own_poses():
    down = {"right_arm_forward": 0, "right_arm_out": 0, "right_elbow": 0}
    poses = [{"time": 1.0, **down}, {"time": 2.0, "right_arm_forward": 90}]
    figure = Figure(Actor(gait="walk", pose=poses), "y")
    down, ahead = (figure.limbs(t)["right forearm"][0][:, 1] for t in (0.5, 2.5))
    back = figure.limbs(0.5)["chest"][0][:, 1], figure.limbs(2.5)["chest"][0][:, 0]
    assert down == pytest.approx(back[0], abs=1e-9), "hangs along the back"
    assert ahead == pytest.approx(-back[1], abs=1e-9), "points where the chest does"
    bent = {"left_leg_forward": 80, "left_knee": 90, "right_knee": 30}
    knees = [{"time": 0.0, "left_knee": 0, "right_knee": 0}, {"time": 1.0, **bent}]
    squat = Figure(Actor(pose=knees), "y")
    low = [min(squat.limbs(t)[f"{side} foot"][1][1] for side in ("left", "right")) for t in (0.0, 0.5, 1.0)]
    assert low == pytest.approx([gait.SOLE * 1.75] * 3), "one foot on the floor"
    assert squat.limbs(1.0)["pelvis"][1][1] < squat.limbs(0.0)["pelvis"][1][1] - 0.02


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"gait": "walk", "speed": 5.0}, "strides of"),
        ({"gait": "stand", "speed": 1.0}, 'speed belongs to gait "walk"'),
        ({"gait": "wave", "turn": 10.0}, 'turn needs gait "walk" or "step"'),
        ({"gait": "walk", "end": 1.0}, "at least two cycles"),
        ({"gait": "walk", "pose": [{"time": 0.0, "left_knee": 10}]}, "follow its feet"),
        ({"pose": [{"time": 1.0, "bend": 10}, {"time": 0.5, "bend": 0}]}, "in order of time"),
        ({"gait": "run"}, "expected one of"),
    ],
)
def test_what_cannot_be_is_said(words, message):
    with pytest.raises(SceneError, match=message):
        Actor(**words)


def rain(method="pvfs"):
    return Scene(
        spacing=0.025, solver={"method": method}, time={"frames": 4, "frame_time": 0.02, "steps_per_frame": 4},
        material={"drops": {"density": 1000, "viscosity": 1.0}},
        fluid=[{"shape": {"type": "box", "size": (0.3, 0.1, 0.3), "position": (0, 0.72, 0)}, "material": "drops",
                "velocity": (0, -2, 0)}],
        solid=[{"shape": {"type": "plane"}}],
        actor=[{"gait": "step", "cycle": 0.5, "height": 0.6, "friction": 0.5, "turn": 90}],
    )  # fmt: skip


@pytest.mark.parametrize("method", ["pvfs", "pbf"])
def test_fluid_meets_the_limbs(method):
    scene = rain(method)
    assert Scene.model_validate(scene.to_dict()) == scene
    sim = vc.Simulation(scene, device="cpu")
    assert sim.world.solids.moving
    frames = list(sim.frames())
    assert len(frames[0].solids) == 14
    assert len({solid["name"] for solid in frames[0].solids}) == 14
    begin, end = (np.array([solid["pose"] for solid in frame.solids]) for frame in (frames[0], frames[-1]))
    apart = np.linalg.norm(end - begin, axis=(1, 2))
    assert apart[0] == 0
    assert (apart[1:] > 1e-4).sum() == 12, "all but the foot it stands on"
    assert scene == rain(method), "making the limbs changes nothing about a scene"
    assert all(a is b for a, b in zip(scene.every_solid(), sim.world.solids.solids, strict=True))
    position = frames[-1]["position"]
    assert (position[:, 1] < 0.65).sum() > 100, "some fell past the head"
    sim.world.solids.place(sim.time, sim.time)
    for index in range(14):
        assert sim.world.solids.distance(index, position).min() > 0.2 * scene.spacing


def test_speed_of_a_figure_is_known_to_the_time_step():
    solids = SolidSet(rain().every_solid())
    speed, turn = solids.motion(0.5, 0.6)
    poses = [[solids.pose(k, t) for t in np.linspace(0.0, 1.5, 400)] for k in range(len(solids))]
    fastest = max(np.linalg.norm(b[1] - a[1]) * 399 / 1.5 for limb in poses for a, b in pairwise(limb))
    assert fastest < speed < 3 * fastest
    assert 1.0 < turn < 60.0
