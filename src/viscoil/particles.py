"""Particles and FIELDS: the one table of per-particle quantities.

Allocation, growth, reordering, emission, removal, checkpoints and export all walk :data:`FIELDS`, so a new quantity is
one row here. Arrays hold fluid and boundary samples alike: a boundary sample is a particle that belongs to a solid
(``solid >= 0``) and does not move by itself (``inverse_mass == 0``). Kernels therefore never ask which kind a neighbour
is; they read its volume and its inverse mass.
"""

from dataclasses import dataclass, fields, make_dataclass
from typing import Any

import numpy as np
import quadrants as qd

vec3 = qd.types.vector(3, qd.f32)
mat3 = qd.types.matrix(3, 3, qd.f32)

Ints = qd.types.NDArray[qd.i32, 1]
Longs = qd.types.NDArray[qd.i64, 1]
Floats = qd.types.NDArray[qd.f32, 1]
Vectors = qd.types.NDArray[vec3, 1]
Matrices = qd.types.NDArray[mat3, 1]
Flag = qd.types.NDArray[qd.i32, 0]  # one integer on the device


@dataclass(frozen=True)
class Field:
    """One per-particle quantity."""

    type: Any  # qd.i32, qd.f32, vec3 or mat3
    unit: str  # SI unit, "" for plain numbers
    fill: float  # value of particles that nobody set; of matrices, times the identity
    saved: bool = True  # part of a checkpoint
    exported: bool = False  # offered to frames and exporters
    help: str = ""


FIELDS: dict[str, Field] = {
    "position": Field(vec3, "m", 0.0, exported=True),
    "velocity": Field(vec3, "m/s", 0.0, exported=True),
    "id": Field(qd.i32, "", -1, exported=True, help="permanent, unique, in order of birth"),
    "material": Field(qd.i32, "", 0, exported=True, help="index into the scene's materials"),
    "solid": Field(qd.i32, "", -1, help="index of the solid a boundary sample belongs to, -1 for fluid"),
    "rest": Field(vec3, "m", 0.0, help="place of a boundary sample in its solid's frame, of a member in its cluster's"),
    "cluster": Field(qd.i32, "", -1, help="index of the particle solid it belongs to, -1 for everything else"),
    "volume": Field(qd.f32, "m^3", 0.0, help="V = m/ρ₀ of fluid, Akinci volume of boundary samples"),
    "inverse_mass": Field(qd.f32, "", 1.0, help="relative to the first material; 0 = a solid's sample, < 0 = led by a nozzle"),
    "free_at": Field(qd.f32, "s", 0.0, help="when a particle led by its nozzle leaves the pipe"),
    "conformation": Field(mat3, "", 1.0, exported=True, help="conformation Q of the polymer, the identity at rest"),
    "density": Field(qd.f32, "kg/m^3", 0.0, exported=True, help="SPH density at the last frame"),
}

Particles = make_dataclass(
    "Particles",
    [(name, qd.types.NDArray[field.type, 1]) for name, field in FIELDS.items()],
    frozen=True,
)
Particles.__module__ = __name__
Particles.__doc__ = "One array per row of FIELDS, all of the same capacity."


def allocate_array(kind: Any, size: int) -> Any:
    """A zeroed device array of ``size`` elements of ``kind`` (qd.i32, qd.f32, vec3 or mat3)."""
    array = qd.ndarray(kind, (max(int(size), 1),))
    array.fill(0)
    return array


class Uploaded:
    """A dataclass of one-element device arrays, sent to the device only when a value changes.

    Numbers passed by value make every launch put all its arguments together anew, which takes longer than a small step;
    a launch whose arguments are the same arrays as before is replayed at once.
    """

    def __init__(self, kind: type):
        """kind: a frozen dataclass whose fields are all Floats or Ints."""
        self._values: dict[str, float] = {}
        types = {f.name: (qd.i32, np.int32) if f.type is Ints else (qd.f32, np.float32) for f in fields(kind)}
        self._numpy = {name: numpy_kind for name, (_, numpy_kind) in types.items()}
        self.device = kind(**{name: allocate_array(device_kind, 1) for name, (device_kind, _) in types.items()})

    def set(self, **values: float) -> Any:
        """Takes new values and returns the dataclass for a kernel."""
        for name, value in values.items():
            if self._values.get(name) != value:
                getattr(self.device, name).from_numpy(np.array([value], self._numpy[name]))
                self._values[name] = value
        return self.device


class Table:
    """A dataclass of device arrays of numbers, one per material, sent to the device only when one changes."""

    def __init__(self, kind: type):
        self._kind = kind
        self._values: dict[str, tuple[float, ...]] = {}
        self._arrays: dict[str, Any] = {}
        self._made: Any = None

    def set(self, **columns: list[float]) -> Any:
        """Takes new values and returns the dataclass for a kernel."""
        for name, values in columns.items():
            if self._values.get(name) == (now := tuple(values)):
                continue
            if len(now) != len(self._values.get(name, ())):
                self._arrays[name] = allocate_array(qd.f32, len(now))
                self._made = None
            self._arrays[name].from_numpy(np.array(now, np.float32))
            self._values[name] = now
        if self._made is None:
            self._made = self._kind(**{f.name: self._arrays[f.name] for f in fields(self._kind)})
        return self._made


def allocate(capacity: int) -> Any:
    """Particles with room for ``capacity``."""
    return Particles(**{name: allocate_array(field.type, capacity) for name, field in FIELDS.items()})


def capacity(particles: Any) -> int:
    return particles.id.shape[0]


def numpy_type(field: Field) -> tuple[type, tuple[int, ...]]:
    """NumPy element type and trailing shape of a field."""
    if field.type is vec3:
        return np.float32, (3,)
    if field.type is mat3:
        return np.float32, (3, 3)
    return (np.int32 if field.type is qd.i32 else np.float32), ()


@qd.kernel(fastcache=True)
def gather(order: Ints, count: qd.i32, source: qd.types.NDArray, target: qd.types.NDArray):
    """target[k] = source[order[k]] for k < count; serves every field type."""
    for k in range(count):
        target[k] = source[order[k]]


@qd.kernel(fastcache=True)
def copy(source: qd.types.NDArray, target: qd.types.NDArray, offset: qd.i32, count: qd.i32):
    """target[offset + k] = source[k] for k < count; serves every field type."""
    for k in range(count):
        target[offset + k] = source[k]


def reorder(particles: Any, spare: Any, order: Any, count: int) -> tuple[Any, Any]:
    """Moves every field into the order given; returns (particles, spare) with their roles exchanged.

    ``order[k]`` is the present index of the particle that becomes number k.
    """
    for name in FIELDS:
        gather(order, count, getattr(particles, name), getattr(spare, name))
    return spare, particles


def grown(particles: Any, count: int, new_capacity: int) -> Any:
    """A copy of the first ``count`` particles with room for more."""
    larger = allocate(new_capacity)
    for name in FIELDS:
        copy(getattr(particles, name), getattr(larger, name), 0, count)
    return larger


def append(particles: Any, count: int, values: dict[str, np.ndarray]) -> int:
    """Writes new particles behind the first ``count``; fields not given take their fill value. Returns the new count."""
    added = len(values["position"])
    room = 1 << max(added - 1, 0).bit_length()
    for name, field in FIELDS.items():
        kind, tail = numpy_type(field)
        column = np.zeros((room, *tail), kind)
        column[:added] = field.fill * (np.eye(3, dtype=kind) if field.type is mat3 else 1)
        if name in values:
            column[:added] = values[name]
        staging = _staging(field.type, room)
        staging.from_numpy(column)
        copy(staging, getattr(particles, name), count, added)
    return count + added


_STAGING: dict[Any, Any] = {}  # nozzles emit every few steps: memory on the way to the device is kept


def _staging(kind: Any, room: int) -> Any:
    """An array to send ``room`` elements of ``kind`` through; large ones, as fluids are filled with, are not kept."""
    key = str(kind), room
    if key in _STAGING:
        return _STAGING[key]
    array = allocate_array(kind, room)
    if room <= 4096:
        _STAGING[key] = array
    return array


def to_numpy(particles: Any, name: str, count: int) -> np.ndarray:
    """A host copy of one field, the first ``count`` particles."""
    return getattr(particles, name).to_numpy()[:count]


@qd.func
def _place(e: qd.i32, count: qd.i32, width: qd.i32, striped: qd.template()):
    """(particle, place) of the e-th of ``count`` rows' elements: neighbours in e are neighbours in memory."""
    i, a = e // width, e % width
    if qd.static(striped):
        i, a = e % count, e // count
    return i, a


@qd.kernel(fastcache=True)
def gather_rows(
    order: Ints, count: qd.i32, width: qd.i32, row: qd.i32, column: qd.i32, source: qd.types.NDArray,
    target: qd.types.NDArray, striped: qd.template(),
):  # fmt: skip
    """target row k = source row order[k] for k < count."""
    for e in range(count * width):
        k, a = _place(e, count, width, striped)
        target[k * row + a * column] = source[order[k] * row + a * column]


@qd.kernel(fastcache=True)
def copy_rows(
    source: qd.types.NDArray, row: qd.i32, column: qd.i32, target: qd.types.NDArray, new_row: qd.i32, new_column: qd.i32,
    count: qd.i32, width: qd.i32, striped: qd.template(),
):  # fmt: skip
    """The first ``width`` places of the first ``count`` particles, into another layout."""
    for e in range(count * width):
        i, a = _place(e, count, width, striped)
        target[i * new_row + a * new_column] = source[i * row + a * column]


@qd.kernel(fastcache=True)
def fill_rows(
    target: qd.types.NDArray, first: qd.i32, last: qd.i32, width: qd.i32, row: qd.i32, column: qd.i32, value: qd.i32,
    striped: qd.template(),
):  # fmt: skip
    """All places of particles first ≤ i < last take ``value``."""
    for e in range((last - first) * width):
        i, a = _place(e, last - first, width, striped)
        target[(first + i) * row + a * column] = value


class Carried:
    """Rows of ``width`` numbers per particle that a method needs beyond FIELDS, e.g. links to other particles.

    The world carries them along as it does the fields: through sorting, growth, removal, steps that are taken back, and
    restarts. Only the method that asked for them pays for them. Place a of particle i is element i·row + a·column of
    ``array``. Plain rows lie one after the other (row = width, column = 1), as CPUs like them; striped ones lie place by
    place (row = 1, column = capacity), so that neighbouring threads of a GPU read neighbouring numbers.
    """

    def __init__(self, kind: Any, width: int, fill: int = 0, striped: bool = False):
        """kind: qd.i32 or qd.f32; fill: what new particles have, a whole number; striped: place by place."""
        self.kind, self.width, self.fill, self.striped = kind, width, fill, striped
        self.row, self.column = (allocate_array(qd.i32, 1) for _ in range(2))  # for kernels; the same arrays for good
        self.capacity, self._row, self._column = 0, 0, 0
        self.array: Any = None
        self._lay_out(0, 1, width)

    def _lay_out(self, count: int, capacity: int, width: int) -> None:
        """New arrays of this shape; the first ``count`` particles keep as many of their places as there are."""
        old, old_width, old_row, old_column = self.array, self.width, self._row, self._column
        self.capacity, self.width = capacity, width
        self._row, self._column = (1, capacity) if self.striped else (width, 1)
        self.row.fill(self._row)
        self.column.fill(self._column)
        self.array, self._spare, self._kept = (allocate_array(self.kind, capacity * width) for _ in range(3))
        self.clear(0, capacity)
        if count:
            copy_rows(
                old, old_row, old_column, self.array, self._row, self._column, count, min(width, old_width), self.striped
            )

    def reserve(self, count: int, capacity: int) -> None:
        """Room for ``capacity`` particles; the first ``count`` stay."""
        self._lay_out(count, capacity, self.width)

    def widen(self, width: int, count: int) -> None:
        """``width`` places per particle; the first ``count`` particles keep theirs, new places hold ``fill``.

        What :meth:`remember` kept is gone: go back first.
        """
        self._lay_out(count, self.capacity, width)

    def clear(self, first: int, last: int) -> None:
        """Particles first ≤ i < last start anew."""
        fill_rows(self.array, first, last, self.width, self._row, self._column, self.fill, self.striped)

    def reorder(self, order: Any, count: int) -> None:
        """As :func:`reorder` does with fields."""
        gather_rows(order, count, self.width, self._row, self._column, self.array, self._spare, self.striped)
        self.array, self._spare = self._spare, self.array

    def _used(self, count: int) -> int:
        """Elements up to the last one of the first ``count`` particles."""
        return (self.capacity if self.striped else count) * self.width

    def remember(self, count: int) -> None:
        """Keeps the rows of the first ``count`` particles."""
        copy(self.array, self._kept, 0, self._used(count))

    def go_back(self, count: int) -> None:
        """The rows as they were at :meth:`remember`."""
        copy(self._kept, self.array, 0, self._used(count))

    def get(self, count: int) -> np.ndarray:
        """Host copy (count, width), whatever the layout."""
        values = self.array.to_numpy()[: self.capacity * self.width]
        if self.striped:
            return np.ascontiguousarray(values.reshape(self.width, self.capacity).T[:count])
        return values.reshape(self.capacity, self.width)[:count]

    def set(self, values: np.ndarray) -> None:
        """Overwrites the rows of the first particles: (n, width), whatever the layout.

        Another number of columns makes all rows as wide as that first, as a checkpoint may have it.
        """
        count, width = values.shape
        if width != self.width:
            self._lay_out(self.capacity, self.capacity, width)
        if not values.size:
            return
        staging = allocate_array(self.kind, values.size)
        staging.from_numpy(np.ascontiguousarray(values, np.int32 if self.kind is qd.i32 else np.float32).reshape(-1))
        copy_rows(staging, width, 1, self.array, self._row, self._column, count, width, self.striped)
