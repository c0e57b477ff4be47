"""Frame: what the host sees of a simulation, once per frame. Writers, viewers and surface know only this."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ASKED_FOR = ("conformation", "stress", "stress_mises")  # fields that scenes have written only when they say so


@dataclass(repr=False)
class Frame:
    """A copy of the fluid at one moment, sorted by particle id.

    ``fields`` holds one array per quantity, first axis = particles: ``position`` (n, 3) float32 [m], ``velocity``
    (n, 3) float32 [m/s], ``id`` (n,), ``material`` (n,) index into ``materials``, and what the scene asks for.
    """

    index: int  # number of the frame; 0 is the initial state
    time: float  # simulated time [s]
    step: int  # time steps taken since the start
    fields: dict[str, np.ndarray]
    spacing: float = 0.0  # particle spacing d [m]
    up: str = "y"  # "y" or "z"
    materials: list[dict[str, Any]] = field(default_factory=list)  # name, colour, density [kg/m³]
    solids: list[dict[str, Any]] = field(default_factory=list)  # name, pose (4x4, column vectors), shape
    title: str = ""
    more: Callable[[str], np.ndarray] | None = field(default=None, repr=False, compare=False)  # computes what is not in fields

    def __post_init__(self) -> None:
        if "position" not in self.fields:
            raise ValueError("a frame needs the field 'position'")
        count = len(self.fields["position"])
        for name, values in self.fields.items():
            array = np.ascontiguousarray(values)
            if array.dtype == bool:  # no file format has a boolean array type
                array = array.astype(np.uint8)
            if array.dtype.kind not in "iu" and array.dtype not in (np.float32, np.float64):
                raise ValueError(f"field '{name}' holds {array.dtype}, a frame holds numbers only")
            if array.ndim == 0 or len(array) != count:
                raise ValueError(f"field '{name}' has shape {array.shape}, expected {count} rows like 'position'")
            self.fields[name] = array
        self._computed: dict[str, np.ndarray] = {}  # by ``more``: kept for the next look, and never written

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.fields:
            return self.fields[name]
        if self.more is None:
            wanted = f"; a scene asks for it with [output] fields = ['{name}']" if name in ASKED_FOR else ""
            raise KeyError(f"this frame has no field '{name}'; it has {', '.join(self.fields)}{wanted}")
        if name not in self._computed:
            self._computed[name] = self.more(name)
        return self._computed[name]

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to the simulation: copies and other processes have the fields alone."""
        return {**self.__dict__, "more": None}

    def __repr__(self) -> str:
        holds = ", ".join(self.fields)
        title = f' of "{self.title}"' if self.title else ""
        return f"<Frame {self.index}{title}: {len(self)} particles at {self.time:.6g} s, step {self.step}; {holds}>"

    def __len__(self) -> int:
        return len(self.fields["position"])

    @property
    def names(self) -> list[str]:
        """Names of the fields."""
        return list(self.fields)

    @property
    def up_axis(self) -> int:
        """Index of the coordinate that points up."""
        return "xyz".index(self.up)

    def header(self) -> dict[str, Any]:
        """Everything but the arrays, as plain numbers, strings, lists and dicts (ready for JSON)."""
        return {
            "index": int(self.index), "time": float(self.time), "step": int(self.step),
            "spacing": float(self.spacing), "up": self.up, "title": self.title,
            "materials": plain(self.materials), "solids": plain(self.solids),
        }

    @classmethod
    def from_header(cls, header: dict[str, Any], fields: dict[str, np.ndarray]) -> "Frame":
        """The inverse of :meth:`header`."""
        return cls(fields=fields, **header)

    def first_not_finite(self) -> tuple[str, int] | None:
        """Name of the first field with a NaN or infinity and the row it is in; None when all numbers are finite."""
        for name, values in self.fields.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
                return name, int(np.argmax(bad))
        return None

    def surface(self, quality: str = "film", method: str = "splash", **options: Any) -> Any:
        """The surface of the fluid as a SurfaceMesh; options as in :func:`viscoil.surface.reconstruct.surface`."""
        from viscoil.surface.reconstruct import surface  # here: frames are read without it

        return surface(self, quality, method, **options)

    def differences(self, other: "Frame") -> list[str]:
        """Names of what differs, bit for bit: time, step and fields. Empty when both hold the same state."""
        differing = [name for name in ("time", "step") if getattr(self, name) != getattr(other, name)]
        for name in sorted(self.fields.keys() | other.fields.keys()):
            mine, theirs = self.fields.get(name), other.fields.get(name)
            if mine is None or theirs is None or not same_bits(mine, theirs):
                differing.append(name)
        return differing


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same type, shape and bits (unlike ==, tells 0.0 from -0.0)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return bool(np.array_equal(left, right))


def plain(value: Any) -> Any:
    """``value`` with NumPy scalars and arrays turned into Python numbers and lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
