"""What the studio's processes say to each other: plain dataclasses over a pipe, arrays as raw bytes behind them.

Commands go to the simulation's process, events come back. At most one frame is under way at a time: the simulation sends
the next one only after the last was taken, so that nobody who watches can hold it up.
"""

from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from viscoil.controls import Group, Ingredient


# --- commands --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Load:
    """Build a scene: a shipped name or a path, or the text of an uploaded file. Nothing but TOML is ever read."""

    source: str  # name or path; of an upload, the file's name
    text: str | None = None
    quality: str | None = None


@dataclass(frozen=True)
class Play:
    """Go on until told otherwise."""


@dataclass(frozen=True)
class Pause:
    """Stop after the present step."""


@dataclass(frozen=True)
class Advance:
    """Go on by one step, or to the end of the frame, and stop."""

    frame: bool = False


@dataclass(frozen=True)
class Reset:
    """Back to the start, with the scene as it was edited."""


@dataclass(frozen=True)
class Change:
    """Set a key of the scene (see ``viscoil.controls.apply``)."""

    path: str
    value: Any


@dataclass(frozen=True)
class Move:
    """Drag a solid or a nozzle."""

    kind: str  # "solid" or "emitter"
    index: int
    position: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...]  # matrix; of a nozzle, its +y is the flow


@dataclass(frozen=True)
class Pace:
    """Simulated seconds per second at most; None: as fast as it can."""

    factor: float | None


@dataclass(frozen=True)
class Watch:
    """Which fields frames should carry besides the usual ones, and whether every frame must be sent (for a recording)."""

    fields: tuple[str, ...]
    every_frame: bool = False


@dataclass(frozen=True)
class Taken:
    """The last frame was received: the next one may be sent."""


@dataclass(frozen=True)
class Save:
    """Write a run folder that `viscoil run --resume` continues."""

    folder: str


@dataclass(frozen=True)
class Keep:
    """Write every frame from now on to a run folder; None: end it."""

    folder: str | None


@dataclass(frozen=True)
class Quit:
    """End."""


# --- events ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Thing:
    """Something in the scene that is drawn, and can be dragged unless it moves by itself."""

    kind: str  # "solid" or "emitter"
    index: int
    name: str
    shape: dict[str, Any]
    container: bool
    colour: tuple[float, float, float]
    position: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...]
    by_itself: bool = False  # a body, or part of a figure or robot: not for hands

    @property
    def key(self) -> str:
        """Unique in its scene."""
        return f"{self.kind}.{self.index}"


@dataclass(frozen=True)
class SceneInfo:
    """What there is to know about a scene that was built."""

    source: str
    title: str
    description: str
    quality: str
    qualities: tuple[str, ...]
    method: str
    spacing: float
    up: str
    frame_time: float
    groups: tuple[Group, ...]
    things: tuple[Thing, ...]
    materials: tuple[dict[str, Any], ...]
    fields: dict[str, str]  # quantities that frames can carry -> unit
    box: tuple[tuple[float, ...], tuple[float, ...]] | None  # periodic box
    toml: str
    notes: tuple[str, ...]
    ingredients: tuple[Ingredient, ...] = ()
    reach: tuple[tuple[float, float, float], ...] = ()  # points that fluid and solids may get to [m]


@dataclass(frozen=True)
class Loaded:
    """A scene was built and stands at its start; ``fresh``: another one than before."""

    info: SceneInfo
    fresh: bool


@dataclass(frozen=True)
class Edited:
    """The scene was changed: its text, the values of all controls by path, and what its materials are."""

    toml: str
    values: dict[str, float | None]
    ingredients: tuple[Ingredient, ...] = ()


@dataclass(frozen=True)
class State:
    """What the simulation is doing."""

    name: str  # empty, building, paused, running, failed
    device: str = ""


@dataclass(frozen=True)
class Problem:
    """Something went wrong; complete sentences."""

    text: str
    about: str = ""  # key of the scene, where there is one


@dataclass(frozen=True)
class Note:
    """Something worth reading."""

    text: str


@dataclass(frozen=True)
class Saved:
    """A run folder was written."""

    folder: str
    frame: int
    command: str  # that goes on with it
    frames: int = 1  # it holds


@dataclass(frozen=True)
class Keeping:
    """Whether frames are being written to a run folder."""

    on: bool


@dataclass(frozen=True)
class FrameSent:
    """A frame (its fields follow as arrays), how fast it goes, and the metrics of the frames finished since the last one."""

    header: dict[str, Any]
    rates: dict[str, float]  # steps, frames and simulated seconds per second
    rows: list[dict[str, Any]]
    whole: bool  # at the end of a frame, not between
    nozzles: list[tuple[np.ndarray, np.ndarray]]  # rotation and place of each


@dataclass(frozen=True)
class Ended:
    """The process is gone."""

    exit_code: int | None


# --- arrays ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Arrays:
    """Announces arrays that follow as raw bytes, and what they belong to."""

    content: Any
    shapes: dict[str, tuple[tuple[int, ...], str]]  # name -> shape and type


def send_arrays(pipe: Connection, content: Any, arrays: dict[str, np.ndarray]) -> None:
    """Sends ``content`` and ``arrays`` without copying the arrays into one message."""
    pipe.send(Arrays(content, {name: (a.shape, a.dtype.str) for name, a in arrays.items()}))
    for array in arrays.values():
        if array.nbytes:
            pipe.send_bytes(memoryview(np.ascontiguousarray(array)).cast("B"))


def receive_arrays(pipe: Connection, announced: Arrays) -> dict[str, np.ndarray]:
    """The arrays that follow an announcement."""
    found = {}
    for name, (shape, kind) in announced.shapes.items():
        array = np.empty(shape, np.dtype(kind))
        if array.nbytes:
            pipe.recv_bytes_into(memoryview(array).cast("B"))
        found[name] = array
    return found
