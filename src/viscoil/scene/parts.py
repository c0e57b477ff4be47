"""The parts a scene is made of: fluids, emitters, sinks, solids, time, output. SI units throughout."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, field_validator, model_validator

from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed
from viscoil.looks import LOOKS, PARTICLE_LOOKS
from viscoil.material import Colour
from viscoil.model import Model
from viscoil.scene.bodies import Body, Friction, in_order
from viscoil.scene.shapes import Plane, Shape
from viscoil.units import (
    AngularVelocity,
    Count,
    Direction,
    EndTime,
    NonNegativeNumber,
    Number,
    Position,
    PositiveNumber,
    PositiveTime,
    Quantity,
    Rotation,
    Slider,
    Time,
    Velocity,
    shown,
    wrong,
)

QUANTITIES = (
    "particles", "density_mean", "density_max", "kinetic_energy", "height", "front_x", "speed_max", "volume",
    "centre_of_mass_x", "centre_of_mass_y", "centre_of_mass_z", "extent_x", "extent_y", "extent_z",
)  # fmt: skip
STICK_KEYS = ("stick_distance", "stick_stiffness")
STEP_KEYS = ("steps_per_frame", "step", "cfl")  # exactly one says how time is cut


class Keyframe(Model):
    """Where something is at one moment; between two keyframes it is interpolated."""

    time: Time
    """moment [s]"""
    position: Position | None = None
    """moved by this much from where it was placed [m]; left out: as in the keyframe before"""
    rotation: Rotation | None = None
    """turned by this much about its own centre [degrees]; left out: as in the keyframe before"""


class _Moving(Model):
    """Shared by everything that can follow keyframes."""

    motion: list[Keyframe] = Field(default_factory=list)
    """keyframes, in order of time"""
    interpolation: Literal["linear", "smooth"] = "smooth"
    """between keyframes: straight lines, or a smooth curve without jumps in velocity"""

    @field_validator("motion")
    @classmethod
    def _in_order(cls, motion: list[Keyframe]) -> list[Keyframe]:
        return in_order(motion)


class _Lasting(Model):
    """Shared by everything that is switched on and off."""

    start: Time = 0.0
    """switched on at [s]"""
    end: EndTime = math.inf
    """switched off at [s]"""

    @model_validator(mode="after")
    def _ends_after_start(self) -> "_Lasting":
        if self.end <= self.start:
            raise wrong(f"end is {self.end:g} s, expected a time after start ({self.start:g} s)")
        return self


def _bounded(shape: Any) -> bool:
    return not isinstance(shape, Plane) and all(_bounded(part) for part in getattr(shape, "parts", ()))


def _closed_shape(shape: Any, what: str) -> Any:
    if not _bounded(shape):
        raise wrong(f"a plane has no end, {what} needs a closed shape; expected e.g. box, sphere or cylinder")
    return shape


class Fluid(Model):
    """A volume filled with particles at the start."""

    shape: Shape
    """what is filled"""
    material: StrictStr
    """a [material.NAME] of this scene or a preset"""
    velocity: Velocity = (0.0, 0.0, 0.0)
    """at the start [m/s]"""
    angular_velocity: AngularVelocity = (0.0, 0.0, 0.0)
    """at the start, about the shape's centre [rad/s]"""
    jitter: Annotated[float, Quantity("number", at_least=0, at_most=0.5)] = 0.0
    """random displacement as a fraction of the spacing"""
    seed: Annotated[int, Count(at_least=0, at_most=2**31 - 1)] = 0
    """start of the random numbers"""

    @field_validator("shape")
    @classmethod
    def _fillable(cls, shape: Any) -> Any:
        return _closed_shape(shape, "a fluid")


class Emitter(_Moving, _Lasting):
    """A nozzle: fluid flows out of the shape's cross section at local y = 0."""

    shape: Shape
    """its cut through local y = 0 is the opening"""
    material: StrictStr
    """a [material.NAME] of this scene or a preset"""
    position: Position = (0.0, 0.0, 0.0)
    """centre of the opening [m]"""
    direction: Direction = (0.0, -1.0, 0.0)
    """of the flow; any length"""
    speed: Annotated[float, Quantity("speed", above=0), Slider(0.01, 10, log=True)]
    """of the flow [m/s]"""
    max_particles: Annotated[int, Count(at_least=1)] | None = None
    """stops after this many"""

    @field_validator("shape")
    @classmethod
    def _nozzle(cls, shape: Any) -> Any:
        return _closed_shape(shape, "an emitter")

    @field_validator("direction")
    @classmethod
    def _unit_length(cls, direction: tuple[float, float, float]) -> tuple[float, float, float]:
        length = math.hypot(*direction)
        # A direction that is already of unit length keeps its bits, so that writing and reading changes nothing.
        if abs(length - 1) < 1e-12:
            return direction
        return direction[0] / length, direction[1] / length, direction[2] / length


class Sink(_Lasting):
    """A volume in which particles disappear."""

    shape: Shape
    """particles whose centre enters are removed"""


class Solid(_Moving):
    """A rigid obstacle, a moving tool, or (inside-out) a container."""

    name: StrictStr = ""
    """for messages and exported files"""
    shape: Shape
    """what is solid; with container = true, what is hollow"""
    container: StrictBool = False
    """inside-out: the fluid stays inside"""
    body: Body | None = None
    """makes it a rigid body that fluid, gravity and other bodies move; left out: it stands still or follows its keyframes"""
    friction: Friction = 0.0
    """Coulomb coefficient [1]; "no-slip" = inf. With pvfs: share of the sliding speed lost in 1/30 s of contact, all of it
    from 1 on"""
    stick_distance: Annotated[float, Quantity("length", at_least=0), Slider(1e-4, 0.1, log=True, off=True)] = 0.0
    """only pvfs: how far beyond contact the solid attracts fluid [m], small against the support radius; 0 = not sticky"""
    stick_stiffness: Annotated[float, Quantity("rate squared", at_least=0), Slider(10, 1e6, log=True, off=True)] = 0.0
    """only pvfs: how strongly; the pull is at most stick_stiffness stick_distance / 4 [m/s²], and to hold fluid that hangs
    several particles deep that must be some ten times gravity [1/s²]"""
    boundary: Literal["distance", "particles"] = "distance"
    """wall by signed distance, or by boundary particles (better densities at the wall)"""
    colour: Colour = (0.7, 0.7, 0.7)
    """display colour"""

    @model_validator(mode="before")
    @classmethod
    def _stickiness_is_two_numbers(cls, data: Any) -> Any:
        # Of what is written down; while a scene runs, either number at 0 switches stickiness off.
        given = [key for key in STICK_KEYS if isinstance(data, dict) and data.get(key) is not None]
        if len(given) == 1:
            (missing,) = set(STICK_KEYS) - set(given)
            raise wrong(f"{given[0]} has no effect without {missing}; expected both (how far and how strongly it attracts)")
        return data

    @model_validator(mode="after")
    def _bodies_move_by_themselves(self) -> "Solid":
        if self.body is None:
            return self
        if self.motion:
            raise wrong("body and motion together: a body is moved by forces, motion by keyframes; expected one of them "
                        "(a driven joint is written body.drive)")  # fmt: skip
        if self.container:
            raise wrong("body and container together: a container is hollow all around and has no mass; expected "
                        "container = false, e.g. with a bowl, funnel or union of walls as the shape")  # fmt: skip
        if not _bounded(self.shape):
            raise wrong("a plane has no end and no mass, so it cannot have a body; expected e.g. box, sphere or cylinder")
        return self

    @model_validator(mode="after")
    def _samples_need_an_end(self) -> "Solid":
        if self.boundary == "particles" and not _bounded(self.shape):
            raise wrong('boundary is "particles", but a plane has no end; expected "distance" or a closed shape')
        return self


class Domain(Model):
    """A periodic box: what leaves on one side comes back on the other."""

    min: Position
    """lower corner [m]"""
    max: Position
    """upper corner [m]"""
    periodic: StrictStr
    """the axes that repeat, e.g. "x" or "xz" """

    @field_validator("periodic")
    @classmethod
    def _axes(cls, axes: str) -> str:
        if not axes or set(axes) - set("xyz") or len(set(axes)) != len(axes):
            raise wrong(f'expected axes out of x, y and z, each once, e.g. "xz"; got {shown(axes)}')
        return "".join(sorted(axes))

    @model_validator(mode="after")
    def _ordered(self) -> "Domain":
        for axis in range(3):
            if self.min[axis] >= self.max[axis]:
                raise wrong(
                    f"expected min below max on every axis; on {'xyz'[axis]} min is {self.min[axis]:g} m "
                    f"and max is {self.max[axis]:g} m"
                )
        return self


class TimeSettings(Model):
    """Frames and time steps. Exactly one of steps_per_frame, step and cfl (four steps per frame when none is given)."""

    frames: Annotated[int, Count(at_least=0, at_most=10_000_000)] = 100
    """frames to simulate"""
    frame_time: PositiveTime = 1 / 60
    """time between two frames [s]"""
    steps_per_frame: Annotated[int, Count(at_least=1, at_most=1_000_000)] | None = None
    """fixed step: frame_time divided by this; left out, and no step or cfl either: 4"""
    step: PositiveTime | None = None
    """fixed step [s]; the last one before a frame is shortened to meet it"""
    cfl: Annotated[float, Quantity("number", above=0, at_most=10)] | None = None
    """step chosen so that nothing moves further than this fraction of the spacing"""
    max_step: PositiveTime | None = None
    """with cfl: never longer than this [s]"""
    min_step: PositiveTime | None = None
    """with cfl: never shorter than this [s]"""

    @model_validator(mode="after")
    def _one_rule(self) -> "TimeSettings":
        given = [key for key in STEP_KEYS if getattr(self, key) is not None]
        if len(given) > 1:
            raise wrong(f"expected only one of steps_per_frame, step and cfl; got {' and '.join(given)}")
        if not given:
            vars(self)["steps_per_frame"] = 4  # the paper's dam break; not an assignment, which would check again
        limits = [key for key in ("max_step", "min_step") if getattr(self, key) is not None]
        if limits and self.cfl is None:
            raise wrong(f"{limits[0]} limits the step that cfl chooses; expected cfl beside it")
        if self.max_step and self.min_step and self.min_step > self.max_step:
            raise wrong(f"min_step is {self.min_step:g} s, expected at most max_step ({self.max_step:g} s)")
        if self.step and self.step > self.frame_time:
            raise wrong(f"step is {self.step:g} s, expected at most frame_time ({self.frame_time:g} s)")
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name in STEP_KEYS and value is not None:
            # Choosing one rule from Python means leaving the other; the old ones come back if the value is wrong.
            before = dict(vars(self))
            others = [*(key for key in STEP_KEYS if key != name), *(("max_step", "min_step") if name != "cfl" else ())]
            vars(self).update(dict.fromkeys(others))
            try:
                super().__setattr__(name, value)
            except SceneError:
                vars(self).update(before)
                raise
        else:
            super().__setattr__(name, value)


class Output(Model):
    """What is written to the run folder."""

    checkpoint_every: Annotated[int, Count(at_least=1)] = 10
    """frames between checkpoints"""
    fields: list[StrictStr] = Field(default_factory=lambda: ["density"])
    """quantities written besides position, velocity, id and material: density, conformation, and of method "dcpbd" stress
    (extra stress [Pa], a 3×3 tensor) and stress_mises (von Mises' equivalent of it [Pa])"""
    volume: Literal["auto", "none", "estimate", "mesh"] = "auto"
    """volume of the fluid in the metrics of each frame. estimate: from densities (`volume`). mesh: that, and the volume inside
    a surface of the fluid (`mesh_volume`; slower, needs the extra "surface"). auto: the estimate, for methods that are there
    to keep it"""


class Expect(Model):
    """A measured number that the scene promises, with its tolerance."""

    quantity: StrictStr
    """what is measured; of a body, its centre of mass: body_NAME_x, _y or _z"""
    time: Time | None = None
    """when [s]; left out: at the end"""
    value: Number
    """expected value, SI units"""
    tolerance: NonNegativeNumber | None = None
    """absolute"""
    relative: PositiveNumber | None = None
    """fraction of the value"""
    quality: StrictStr = "quick"
    """the profile it was measured with"""

    @field_validator("quantity")
    @classmethod
    def _measured(cls, name: str) -> str:
        if name not in QUANTITIES and not (name.startswith("body_") and name[-2:] in ("_x", "_y", "_z")):
            raise wrong(f'unknown quantity "{name}".{did_you_mean(name, QUANTITIES)} Expected one of: {listed(QUANTITIES)}, or '
                        "body_NAME_x, _y, _z")  # fmt: skip
        return name

    @model_validator(mode="after")
    def _one_tolerance(self) -> "Expect":
        given = [key for key in ("tolerance", "relative") if getattr(self, key) is not None]
        if len(given) != 1:
            raise wrong(f"expected exactly one of tolerance and relative; got {' and '.join(given) or 'neither'}")
        return self

    def accepts(self, measured: float) -> bool:
        """Is ``measured`` within the tolerance?"""
        allowed = self.tolerance if self.tolerance is not None else (self.relative or 0.0) * abs(self.value)
        return abs(measured - self.value) <= allowed


class Figure(Model):
    """The published figure a scene is set up after."""

    paper: StrictStr
    """authors and year"""
    number: StrictStr
    """of the figure"""
    caption: StrictStr = ""
    """what it shows"""


class Picture(Model):
    """The picture that stands for a scene: which moment, from where. Used by `viscoil gallery` and `viscoil render`."""

    time: Time | None = None
    """the telling moment [s]; left out: the end"""
    quality: StrictStr = "quick"
    """the profile it is simulated with"""
    look: StrictStr | None = None
    """one look for all materials; left out: each material's own"""
    azimuth: Annotated[float, Quantity("angle", at_least=-360, at_most=360)] = 35.0
    """where the camera stands, turned about the vertical from straight ahead [degrees]"""
    elevation: Annotated[float, Quantity("angle", at_least=-89, at_most=89)] = 20.0
    """how far it looks down [degrees]"""
    zoom: PositiveNumber = 1.0
    """larger than 1: closer than what frames the action"""
    field_of_view: Annotated[float, Quantity("angle", above=0, at_most=120)] = 35.0
    """of the picture's height [degrees]"""

    @field_validator("look")
    @classmethod
    def _known_look(cls, name: str | None) -> str | None:
        known = [*LOOKS, *PARTICLE_LOOKS]
        if name is not None and name not in known:
            raise wrong(f'unknown look "{name}".{did_you_mean(name, known)} Expected one of: {listed(known)}')
        return name
