"""Solids that move by themselves: bodies with mass and joints, and robots from files. SI units, angles in degrees."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StrictBool, StrictStr, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from viscoil.material import Colour
from viscoil.model import Model
from viscoil.units import (
    AngularVelocity,
    Direction,
    NonNegativeNumber,
    Position,
    Quantity,
    Rotation,
    Slider,
    Time,
    Velocity,
    shown,
    wrong,
)

JOINTS = ("free", "ball", "hinge", "slide", "fixed")
TURNING, SLIDING = ("hinge",), ("slide",)
ROBOT_SUFFIXES = (".xml", ".mjcf", ".urdf")
# What a drive's value and a range are measured in, by joint.
_VALUE = {"hinge": Quantity("angle"), "slide": Quantity("length")}
Mass = Annotated[float, Quantity("mass", above=0)]
Friction = Annotated[float, Quantity("number", at_least=0, infinite=True, words=(("no-slip", math.inf),)), Slider(0, 2)]
Amount = float | StrictStr


class DriveKey(Model):
    """Where a driven joint should be at one moment."""

    time: Time
    """moment [s]"""
    value: Amount
    """angle [degrees] of a hinge, way [m] of a slide, measured from how the scene places it"""


def in_order(keys: list[Any]) -> list[Any]:
    """Keyframes as they are, each later than the one before."""
    for index in range(1, len(keys)):
        before, now = keys[index - 1].time, keys[index].time
        if now <= before:
            raise wrong(
                f"expected keyframes in order of time; keyframe {index} is at {now:g} s, keyframe {index - 1} at {before:g} s"
            )
    return keys


def _amounts(values: list[Any], kind: Quantity, where: str) -> list[float]:
    """Numbers or texts with a unit, in SI (angles: degrees); the sentence says which one is wrong."""
    found = []
    for index, value in enumerate(values):
        try:
            found.append(kind(value))
        except PydanticCustomError as error:
            raise wrong(f"{where.format(index)}: {error.message()}") from None
    return found


class Drive(Model):
    """A motor that holds a joint at a target which follows keyframes."""

    keyframes: list[DriveKey] = Field(min_length=1)
    """targets, in order of time"""
    interpolation: Literal["linear", "smooth"] = "smooth"
    """between keyframes: straight lines, or a smooth curve without jumps in velocity"""
    stiffness: Annotated[float, Quantity("number", above=0)] | None = None
    """of the motor [N m/rad of a hinge, N/m of a slide]; left out: stiff enough to follow within about 20 ms"""
    force: Annotated[float, Quantity("number", above=0)] | None = None
    """at most this much [N m of a hinge, N of a slide]; left out: as much as it takes"""

    @field_validator("keyframes")
    @classmethod
    def _in_order(cls, keys: list[DriveKey]) -> list[DriveKey]:
        return in_order(keys)


class Body(Model):
    """What makes a solid a rigid body that fluid, gravity and other bodies move."""

    density: Annotated[float, Quantity("density", above=0)] | None = None
    """mass per volume of the shape [kg/m³]; either this or mass"""
    mass: Mass | None = None
    """mass [kg]; either this or density"""
    joint: Literal[JOINTS] = "free"  # type: ignore[valid-type]
    """free: flies; ball: turns about anchor; hinge: turns about axis through anchor; slide: moves along axis; fixed: welded
    to its parent"""
    parent: StrictStr | None = None
    """name of the solid the joint is fastened to; left out: the world"""
    axis: Direction | None = None
    """of a hinge or slide, in the scene's axes"""
    anchor: Position = (0.0, 0.0, 0.0)
    """where a hinge or ball sits, from the solid's position, in the scene's axes [m]"""
    range: Annotated[list[Amount], Field(min_length=2, max_length=2)] | None = None
    """lowest and highest angle [degrees] of a hinge, or way [m] of a slide; left out: no stop"""
    damping: NonNegativeNumber = 0.0
    """of the joint [N m s/rad, or N s/m of a slide]"""
    stiffness: NonNegativeNumber = 0.0
    """of a spring that pulls the joint back to where it started [N m/rad, or N/m of a slide]"""
    velocity: Velocity = (0.0, 0.0, 0.0)
    """at the start, of the centre of mass (free) or along the axis (slide) [m/s]"""
    angular_velocity: AngularVelocity = (0.0, 0.0, 0.0)
    """at the start [rad/s]"""
    friction: NonNegativeNumber = 0.5
    """Coulomb coefficient against other solids; of two that touch the larger counts. Against fluid it is the solid's own"""
    collides: StrictBool = True
    """whether it touches other solids; fluid it always touches"""
    drive: Drive | None = None
    """a motor in the hinge or slide"""

    @model_validator(mode="after")
    def _makes_sense(self) -> "Body":
        given = [key for key in ("density", "mass") if getattr(self, key) is not None]
        if len(given) != 1:
            raise wrong(f"expected exactly one of density and mass; got {' and '.join(given) or 'neither'}")
        self._check_joint()
        kind = _VALUE.get(self.joint)
        if self.range is not None and kind is not None:
            low, high = _amounts(self.range, kind, "range.{}")
            if low >= high:
                raise wrong(f"range: expected the lower end first; got {low:g} and {high:g}")
            vars(self)["range"] = [low, high]  # not an assignment, which would check again
        if self.drive is not None and kind is not None:
            keys = self.drive.keyframes
            values = _amounts([key.value for key in keys], kind, "drive.keyframes.{}.value")
            for key, value in zip(keys, values, strict=True):
                vars(key)["value"] = value
        return self

    def _check_joint(self) -> None:
        """Keys that mean nothing for this joint are refused instead of being ignored."""
        joint = self.joint
        if joint in (*TURNING, *SLIDING) and self.axis is None:
            raise wrong(f"a {joint} needs an axis; expected a direction, e.g. axis = [0, 0, 1]")
        if joint == "free" and self.parent is not None:
            raise wrong(f'parent is "{self.parent}", but a free body is fastened to nothing; expected another joint: '
                        "ball, hinge, slide or fixed")  # fmt: skip
        if joint == "fixed" and self.parent is None:
            raise wrong("a fixed body needs a parent to be welded to; a solid that never moves needs no body at all")
        allowed = {
            "axis": (*TURNING, *SLIDING), "anchor": (*TURNING, "ball"), "range": (*TURNING, *SLIDING),
            "damping": ("ball", "hinge", "slide"), "stiffness": ("ball", "hinge", "slide"), "drive": (*TURNING, *SLIDING),
            "velocity": ("free", "slide"), "angular_velocity": ("free", "ball", "hinge"),
        }  # fmt: skip
        for key, joints in allowed.items():
            if joint not in joints and getattr(self, key) != type(self).model_fields[key].default:
                article = "one of " if len(joints) > 1 else ""
                quoted = ", ".join(f'"{name}"' for name in joints)
                raise wrong(f'{key} has no meaning with joint = "{joint}"; expected it only with {article}{quoted}')


class RobotDrive(Model):
    """Keyframes for one joint or actuator of a robot's file."""

    joint: StrictStr | None = None
    """name of a hinge or slide in the file; either this or actuator"""
    actuator: StrictStr | None = None
    """name of an actuator in the file; its control follows the values as they are"""
    keyframes: list[DriveKey] = Field(min_length=1)
    """targets, in order of time: degrees or metres of a joint, control signals of an actuator"""
    interpolation: Literal["linear", "smooth"] = "smooth"
    """between keyframes: straight lines, or a smooth curve without jumps in velocity"""

    @field_validator("keyframes")
    @classmethod
    def _in_order(cls, keys: list[DriveKey]) -> list[DriveKey]:
        return in_order(keys)

    @model_validator(mode="after")
    def _one_name(self) -> "RobotDrive":
        given = [key for key in ("joint", "actuator") if getattr(self, key) is not None]
        if len(given) != 1:
            raise wrong(f"expected exactly one of joint and actuator; got {' and '.join(given) or 'neither'}")
        return self

    def values(self, kind: str) -> list[float]:
        """Targets in the units of a scene: degrees of a "hinge", metres of a "slide", plain numbers of an "actuator"."""
        quantity = _VALUE.get(kind, Quantity("number"))
        return _amounts([key.value for key in self.keyframes], quantity, "keyframes.{}.value")


class Robot(Model):
    """A mechanism from an MJCF or URDF file; each of its links with geometry becomes a solid that fluid sees."""

    file: str
    """MJCF (.xml) or URDF (.urdf) file, relative to the scene file"""
    name: StrictStr = ""
    """its links are called name/link; left out: the file's name"""
    position: Position = (0.0, 0.0, 0.0)
    """where the file's origin stands [m]"""
    rotation: Rotation = (0.0, 0.0, 0.0)
    """turned in the scene's axes, after its up axis was made the scene's [degrees]"""
    up: Literal["z", "y"] = "z"
    """the file's up axis; z is what MJCF and URDF use. It is turned into the scene's up axis"""
    drive: list[RobotDrive] = Field(default_factory=list)
    """motors that follow keyframes; driven joints start where their first keyframe says"""
    weightless: StrictBool = False
    """gravity does not act on its links: its motors then do not sag"""
    two_way: StrictBool = True
    """whether fluid moves it; false: it moves fluid only"""
    friction: Friction = 0.0
    """of its links against fluid, as a solid's"""
    boundary: Literal["distance", "particles"] = "distance"
    """of its links, as a solid's"""
    colour: Colour | None = None
    """of all its links; left out: as in the file"""
    _made: Any = PrivateAttr(None)  # what its links were made from, and they

    @field_validator("file", mode="before")
    @classmethod
    def _existing_file(cls, value: Any, info: ValidationInfo) -> str:
        if not isinstance(value, (str, Path)) or not str(value):
            raise wrong(f'expected the name of a robot file, e.g. "arm.xml"; got {shown(value)}')
        folder = (info.context or {}).get("folder", ".")
        path = (Path(folder) / Path(value).expanduser()).resolve()
        if path.suffix.lower() not in ROBOT_SUFFIXES:
            raise wrong(f"expected an MJCF or URDF file ending in {', '.join(ROBOT_SUFFIXES)}; got {shown(str(value))}")
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            raise wrong(f"expected an existing robot file; {path} {what}")
        return str(path)

    @property
    def title(self) -> str:
        """What its links' names begin with."""
        return self.name or Path(self.file).stem
