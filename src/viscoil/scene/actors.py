"""Figures that stand, wave, step and walk: each is a set of solids whose poses are functions of time."""

import itertools
import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PrivateAttr, StrictStr, field_validator, model_validator

from viscoil.material import Colour
from viscoil.model import Model
from viscoil.scene.bodies import in_order
from viscoil.scene.parts import Friction, Solid
from viscoil.scene.shapes import Capsule, Sphere, Union
from viscoil.solids import gait
from viscoil.solids.drag import degrees_of
from viscoil.solids.gait import Gait, Joints, about
from viscoil.units import EndTime, Length, Position, PositiveTime, Quantity, Slider, Time, wrong

Angle = Annotated[float, Quantity("angle", at_least=-720, at_most=720)]
SIDES = ("left", "right")
LEGS = tuple(f"{side}_{joint}" for side in SIDES for joint in ("leg_forward", "leg_out", "knee"))
NEVER = 1e6  # [s], a start that does not come
FASTEST_STRIDE = 1.0  # heights: longer ones are jumps


class Pose(Model):
    """Angles of joints at one moment [degrees]; smooth in between. What is left out is as in the pose before; a joint that no
    pose names moves as the gait has it, and until the first that names it, a joint is as that one says."""

    time: Time
    """moment [s]"""
    bend: Angle | None = None
    """of the back, forward"""
    lean: Angle | None = None
    """of the back, to the right"""
    twist: Angle | None = None
    """of the back, to the left"""
    nod: Angle | None = None
    """of the head, forward"""
    head_turn: Angle | None = None
    """of the head, to the left"""
    left_arm_forward: Angle | None = None
    """0 hangs down, 90 points forward"""
    left_arm_out: Angle | None = None
    """0 hangs down, 90 points to the side"""
    left_arm_turn: Angle | None = None
    """about its own axis, outwards: says to which side the elbow bends"""
    left_elbow: Angle | None = None
    """0 is straight"""
    right_arm_forward: Angle | None = None
    """0 hangs down, 90 points forward"""
    right_arm_out: Angle | None = None
    """0 hangs down, 90 points to the side"""
    right_arm_turn: Angle | None = None
    """about its own axis, outwards: says to which side the elbow bends"""
    right_elbow: Angle | None = None
    """0 is straight"""
    left_leg_forward: Angle | None = None
    """of the thigh; legs only with gait "stand" """
    left_leg_out: Angle | None = None
    """of the thigh, to the side"""
    left_knee: Angle | None = None
    """0 is straight"""
    right_leg_forward: Angle | None = None
    """of the thigh; legs only with gait "stand" """
    right_leg_out: Angle | None = None
    """of the thigh, to the side"""
    right_knee: Angle | None = None
    """0 is straight"""


class Limb(Solid):
    """One part of a figure: an ordinary solid, but for who says where it is."""

    _path: Any = PrivateAttr(default=None)


class Actor(Model):
    """A figure of capsules that moves by itself; solid for the fluid, and not moved by it."""

    name: StrictStr = ""
    """for messages and exported files; left out: figure and its number"""
    gait: Literal["walk", "step", "stand", "wave"] = "stand"
    """what it does from start to end; before and after that it stands"""
    height: Length = 1.75
    """from the soles to the top of the head [m]"""
    position: Position = (0.0, 0.0, 0.0)
    """where it stands at the start, on the floor [m]"""
    heading: Angle = 0.0
    """where it looks, turned to the left about the vertical from +x [degrees]"""
    speed: Annotated[float, Quantity("speed", above=0)] | None = None
    """of walking [m/s]; left out: 0.72 heights per second"""
    stride: Length | None = None
    """from one print of a foot to the next of the same [m]; left out: natural for the speed"""
    cycle: PositiveTime = 1.1
    """with gait "step": seconds from one touch of a foot to its next"""
    turn: Annotated[float, Quantity("angle", at_least=-360, at_most=360)] = 0.0
    """degrees it turns to the left in a second while it walks or steps"""
    start: Time = 0.0
    """begins at [s]"""
    end: EndTime = math.inf
    """stands again from [s]"""
    pose: list[Pose] = Field(default_factory=list)
    """own angles of joints, in order of time"""
    friction: Friction = 0.0
    """as of a solid"""
    stick_distance: Annotated[float, Quantity("length", at_least=0), Slider(1e-4, 0.1, log=True, off=True)] = 0.0
    """as of a solid"""
    stick_stiffness: Annotated[float, Quantity("rate squared", at_least=0), Slider(10, 1e6, log=True, off=True)] = 0.0
    """as of a solid"""
    colour: Colour = (0.7, 0.7, 0.7)
    """display colour"""

    @field_validator("pose")
    @classmethod
    def _in_order(cls, pose: list[Pose]) -> list[Pose]:
        return in_order(pose)

    @model_validator(mode="after")
    def _possible(self) -> "Actor":
        if self.end <= self.start:
            raise wrong(f"end is {self.end:g} s, expected a time after start ({self.start:g} s)")
        for key in ("speed", "stride"):
            if getattr(self, key) is not None and self.gait != "walk":
                raise wrong(f'{key} belongs to gait "walk"; this figure\'s gait is "{self.gait}"')
        if self.turn and self.gait not in ("walk", "step"):
            raise wrong(f'turn needs gait "walk" or "step"; this figure\'s gait is "{self.gait}"')
        if self.gait == "walk" and (longest := FASTEST_STRIDE * self.height) < self.strides():
            raise wrong(
                f"strides of {self.strides():.3g} m are too long for a figure of {self.height:g} m; "
                f"expected a stride of at most {longest:.3g} m (or a lower speed)"
            )
        seconds = self.movement().cycle
        if self.gait in ("walk", "step") and self.end - self.start < 2 * seconds:
            raise wrong(f"end is {self.end:g} s, expected at least two cycles ({2 * seconds:.3g} s) after start")
        named = [key for key in LEGS if any(getattr(pose, key) is not None for pose in self.pose)]
        if named and self.gait not in ("stand", "wave"):
            raise wrong(f'{named[0]}: the legs of a figure that walks or steps follow its feet; expected gait "stand"')
        return self

    def pace(self) -> float:
        """Walking speed [m/s]."""
        return self.speed if self.speed is not None else 0.72 * self.height

    def strides(self) -> float:
        """Length of a stride [m]: grows as the root of the speed, as people's do."""
        natural = 0.75 * self.height * math.sqrt(self.pace() / (0.72 * self.height))
        return self.stride if self.stride is not None else natural

    def movement(self) -> Gait:
        """The gait with its numbers."""
        common = {"height": self.height, "turn": self.turn, "start": self.start, "end": self.end}
        if self.gait == "walk":
            cycle = self.strides() / self.pace()
            return Gait(speed=self.pace(), cycle=cycle, lift=0.035 * self.height, off=42.0, touch=18.0, **common)
        if self.gait == "step":
            return Gait(speed=0.0, cycle=self.cycle, lift=0.15 * self.height, off=28.0, touch=0.0, **common)
        common |= {"start": NEVER, "end": 2 * NEVER}  # the feet stay where they are
        return Gait(speed=0.0, cycle=1.0, lift=0.0, off=0.0, touch=0.0, **common)

    def limbs(self, up: str, number: int) -> list[Limb]:
        """The figure as solids; the same objects until something about the figure changes."""
        key = (up, number, self.model_dump_json())
        made = vars(self).get("made")  # as a cached property: no part of what is compared or written down
        if made is None or made[0] != key:
            made = vars(self)["made"] = key, Figure(self, up).solids(self.name or f"figure {number}")
        return made[1]


def _limb_shapes(h: float) -> dict[str, Any]:
    """Shapes of the parts of a figure of height h, each in its own frame: y towards the trunk (of the trunk: up), x forward."""
    def rod(radius: float, length: float, at: tuple[float, float, float] = (0, 0, 0), lying: bool = False) -> Capsule:
        rotation = (90.0, 0.0, 0.0) if lying else (0.0, 0.0, 0.0)
        return Capsule(radius=radius * h, height=length * h, position=tuple(h * x for x in at), rotation=rotation)

    hand = Sphere(radius=0.029 * h, position=(0.0, -(gait.FOREARM / 2 + 0.022) * h, 0.0))
    pelvis = Union(blend=0.03 * h, parts=[rod(0.064, 0.068, (0, 0.012, 0), True), rod(0.06, 0.05, (0, 0.075, 0), True)])
    ribs = [rod(0.064, 0.06, (0, -0.075, 0), True), rod(0.06, 0.05, (0, -0.125, 0), True)]
    chest = Union(blend=0.03 * h, parts=[*ribs, rod(0.04, 0.185, (0, -0.02, 0), True)])
    head = Union(blend=0.01 * h, parts=[Sphere(radius=0.068 * h), rod(0.032, 0.06, (-0.008, -0.075, 0))])
    arm = Union(blend=0.01 * h, parts=[rod(0.027, gait.FOREARM), hand])
    foot = Capsule(radius=gait.SOLE * h, height=(gait.TOE - gait.HEEL) * h)
    return {
        "pelvis": pelvis, "chest": chest, "head": head,
        "upper arm": rod(0.033, gait.UPPER_ARM), "forearm": arm,
        "thigh": rod(0.047, gait.THIGH), "shank": rod(0.037, gait.SHANK), "foot": foot,
    }  # fmt: skip


TRUNK = ("pelvis", "chest", "head")
PAIRED = ("upper arm", "forearm", "thigh", "shank", "foot")


class Figure:
    """An actor's limbs at any moment."""

    def __init__(self, actor: Actor, up: str):
        self.actor, self.gait = actor.model_copy(), actor.movement()
        self.height = actor.height
        self.axes = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float) if up == "y" else np.eye(3)
        self._known: dict[float, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._fastest: dict[str, tuple[float, float]] = {}
        self._tracks = _tracks(actor.pose)

    def solids(self, name: str) -> list[Limb]:
        """One solid for every limb, placed as at time 0."""
        shapes, made = _limb_shapes(self.height), []
        a = self.actor
        look = {"colour": a.colour, "friction": a.friction}
        if a.stick_distance and a.stick_stiffness:
            look |= {"stick_distance": a.stick_distance, "stick_stiffness": a.stick_stiffness}
        for limb, (rotation, position) in self.limbs(0.0).items():
            shape = shapes[limb.removeprefix("left ").removeprefix("right ")].model_copy(deep=True)
            shape.position, shape.rotation = tuple(map(float, position)), degrees_of(rotation)
            solid = Limb(name=f"{name}: {limb}", shape=shape, **look)
            solid._path = Path(self, limb)
            made.append(solid)
        return made

    def limbs(self, time: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Rotation matrix and middle of every limb [m] at a moment [s]."""
        if time not in self._known:
            if len(self._known) > 32:  # a step asks for two moments, limb by limb
                self._known.clear()
            turn = self.axes @ about(2, self.actor.heading)
            origin = np.asarray(self.actor.position, float)
            self._known[time] = {
                limb: (turn @ axes, origin + turn @ place) for limb, (axes, place) in self._upright(time).items()
            }
        return self._known[time]

    def fastest(self, limb: str, lever: float) -> tuple[float, float]:
        """(speed of any of a limb's points [m/s], turn [rad/s]) that is never exceeded."""
        if not self._fastest:
            self._fastest = self._measured()
        speed, turn = self._fastest[limb]
        return 1.05 * (speed + turn * lever), 1.05 * turn

    def _measured(self) -> dict[str, tuple[float, float]]:
        """Limb -> fastest speed of its middle and fastest turn, at moments close together while anything changes."""
        actor, cycle = self.actor, self.gait.cycle
        stretches = [(actor.pose[0].time, actor.pose[-1].time)] if len(actor.pose) > 1 else []
        if actor.gait != "stand":
            stretches.append((actor.start, actor.start + 4 * cycle))
            if math.isfinite(actor.end):
                stretches.append((max(actor.start, actor.end - cycle), actor.end + 2 * cycle))
        found = dict.fromkeys(self.limbs(0.0), (0.0, 0.0))
        for first, end in stretches:
            count = min(2000, math.ceil((end - first) / (0.01 * min(cycle, 1.0))))
            seconds = (end - first) / count
            for before, now in itertools.pairwise(self._upright(float(t)) for t in np.linspace(first, end, count + 1)):
                for limb, (speed, turn) in found.items():
                    (r0, p0), (r1, p1) = before[limb], now[limb]
                    angle = math.acos(min(1.0, max(-1.0, (float(np.sum(r0 * r1)) - 1) / 2)))
                    way = float(np.linalg.norm(p1 - p0))
                    found[limb] = max(speed, way / seconds), max(turn, angle / seconds)
        return found

    # --- joints --------------------------------------------------------------------------------------------------------
    def _upright(self, time: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The limbs in the figure's own directions (x forward, y left, z up), from where it started."""
        h, own = self.height, self._own(time)
        feet = [self.gait.foot(side, time) for side in (0, 1)]
        pelvis, facing = self.gait.pelvis(time, feet)
        angles = self._joints(time, own)
        if any(key in own for key in LEGS):
            legs, pelvis = self._posed_legs(pelvis, facing, own)
        else:
            legs = {}
            for side, hip in enumerate(gait.hips(pelvis, facing, h)):
                ahead = about(2, 0.5 * (facing + feet[side].heading))[:, 0]
                legs |= _leg(SIDES[side], hip, gait.knee(hip, feet[side].ankle, ahead, h), feet[side], ahead, h)
        facing_ = about(2, facing)
        back = facing_ @ about(2, angles.twist) @ about(1, angles.bend) @ about(0, angles.lean)
        # The back bends half in the hips and half in the waist.
        lower = facing_ @ about(2, 0.2 * angles.twist) @ about(1, 0.5 * angles.bend) @ about(0, 0.5 * angles.lean)
        waist = pelvis + lower @ np.array([0, 0, 0.09 * h])
        shoulders = waist + back @ np.array([0, 0, (gait.SPINE - 0.09) * h])
        neck = waist + back @ np.array([0, 0, (gait.NECK - 0.09) * h])
        head = facing_ @ about(2, angles.head_turn + 0.3 * angles.twist) @ about(1, angles.nod + 0.4 * angles.bend)
        limbs = {
            "pelvis": (_limb_axes(lower), pelvis),
            "chest": (_limb_axes(back), shoulders),
            "head": (_limb_axes(head), neck + head @ np.array([0.005 * h, 0, (0.93 - 0.525 - gait.NECK) * h])),
        }
        for side in (0, 1):
            limbs |= _arm(side, shoulders, back, angles, h)
        return limbs | legs

    def _own(self, time: float) -> dict[str, float]:
        """Angles the scene gives, at a moment."""
        own = {}
        for key, (times, values) in self._tracks.items():
            k = int(np.searchsorted(times, time, side="right"))
            if 0 < k < len(times):
                s = gait.smooth((time - times[k - 1]) / (times[k] - times[k - 1]))
                own[key] = values[k - 1] + s * (values[k] - values[k - 1])
            else:
                own[key] = values[min(k, len(values) - 1)]
        return own

    def _joints(self, time: float, own: dict[str, float]) -> Joints:
        angles = self.gait.joints(time) if self.actor.gait in ("walk", "step") else Joints()
        if self.actor.gait == "wave":
            raised = gait.smooth((time - self.actor.start) / 0.7) * gait.smooth((self.actor.end - time) / 0.7)
            swung = 70.0 + 28.0 * math.sin(2 * math.pi * (time - self.actor.start) / 0.9)
            for angle, value in (("arm_out", 95.0), ("arm_turn", 90.0), ("elbow", swung)):
                both = getattr(angles, angle)
                both[1] += raised * (value - both[1])
        for key, value in own.items():
            side, _, joint = key.partition("_")
            if side in SIDES and hasattr(angles, joint):
                getattr(angles, joint)[SIDES.index(side)] = value
            elif hasattr(angles, key):
                setattr(angles, key, value)
        return angles

    def _posed_legs(self, pelvis: np.ndarray, facing: float, own: dict[str, float]) -> tuple[dict[str, Any], np.ndarray]:
        """Legs whose angles are given: the lower of the two feet stands on the floor."""
        h, joints, lowest = self.height, [], math.inf
        for side, name in enumerate(SIDES):
            out = (1 - 2 * side) * own.get(f"{name}_leg_out", 0.0)
            thigh = about(2, facing) @ about(1, -own.get(f"{name}_leg_forward", 0.0)) @ about(0, out)
            shank = thigh @ about(1, own.get(f"{name}_knee", 0.0))
            joints.append((-gait.THIGH * h * thigh[:, 2], -gait.SHANK * h * shank[:, 2], thigh[:, 0]))
            lowest = min(lowest, float((joints[-1][0] + joints[-1][1])[2]))
        pelvis = np.array([pelvis[0], pelvis[1], gait.ANKLE * h - lowest])
        legs = {}
        for side, hip in enumerate(gait.hips(pelvis, facing, h)):
            to_knee, to_ankle, ahead = joints[side]
            foot = gait.Foot(hip + to_knee + to_ankle, facing, 0.0, False)
            legs |= _leg(SIDES[side], hip, hip + to_knee, foot, ahead, h)
        return legs, pelvis


class Path:
    """Where one limb is: what a set of solids asks for solids that do not follow keyframes."""

    def __init__(self, figure: Figure, limb: str):
        self.figure, self.limb = figure, limb

    def pose(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Rotation matrix and position [m] at a moment [s]."""
        return self.figure.limbs(time)[self.limb]

    def fastest(self, lever: float) -> tuple[float, float]:
        """(fastest speed of points within ``lever`` metres of the middle [m/s], fastest turn [rad/s]) at any time."""
        return self.figure.fastest(self.limb, lever)


def _tracks(poses: list[Pose]) -> dict[str, tuple[list[float], list[float]]]:
    """Joint -> moments and angles at which it is named."""
    tracks: dict[str, tuple[list[float], list[float]]] = {}
    for pose in poses:
        for key in Pose.model_fields:
            value = getattr(pose, key)
            if key == "time":
                continue
            if value is None and key in tracks:
                value = tracks[key][1][-1]
            if value is not None:
                times, values = tracks.setdefault(key, ([], []))
                times.append(pose.time)
                values.append(value)
    return tracks


def _limb_axes(frame: np.ndarray) -> np.ndarray:
    """From axes forward, left, up of a joint to those of a limb: x forward, y up, z to the right."""
    return np.stack([frame[:, 0], frame[:, 2], -frame[:, 1]], axis=1)


def _between(top: np.ndarray, bottom: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pose of a limb from one joint to the next."""
    y = (top - bottom) / np.linalg.norm(top - bottom)
    x = ahead - ahead.dot(y) * y
    x /= np.linalg.norm(x)
    return np.stack([x, y, np.cross(x, y)], axis=1), 0.5 * (top + bottom)


def _leg(side: str, hip: np.ndarray, knee: np.ndarray, foot: gait.Foot, ahead: np.ndarray, h: float) -> dict[str, Any]:
    heel, toes = gait.foot_ends(foot, h)
    return {
        f"{side} thigh": _between(hip, knee, ahead),
        f"{side} shank": _between(knee, foot.ankle, ahead),
        f"{side} foot": _between(heel, toes, foot.frame()[:, 2]),
    }


def _arm(side: int, shoulders: np.ndarray, back: np.ndarray, angles: Joints, h: float) -> dict[str, Any]:
    sign, name = 1 - 2 * side, SIDES[side]
    shoulder = shoulders + back @ np.array([0.0, sign * gait.SHOULDER * h, 0.0])
    upper = back @ about(1, -angles.arm_forward[side]) @ about(0, sign * angles.arm_out[side])
    upper = upper @ about(2, sign * angles.arm_turn[side])
    lower = upper @ about(1, -angles.elbow[side])
    elbow = shoulder - gait.UPPER_ARM * h * upper[:, 2]
    return {
        f"{name} upper arm": (_limb_axes(upper), 0.5 * (shoulder + elbow)),
        f"{name} forearm": (_limb_axes(lower), elbow - 0.5 * gait.FOREARM * h * lower[:, 2]),
    }
