"""Particles and FIELDS: the one table of per-particle quantities.

Allocation, growth, reordering, emission, removal, checkpoints and export all walk :data:`FIELDS`, so a new quantity is
one row here. Arrays hold fluid and boundary samples alike: a boundary sample is a particle that belongs to a solid
(``solid >= 0``) and does not move by itself (``inverse_mass == 0``). Kernels therefore never ask which kind a neighbour
is; they read its volume and its inverse mass.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, make_dataclass, replace
from typing import Any
from weakref import WeakSet

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.transfer import copy

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
    lazy: bool = False  # no memory until somebody has another value than ``fill``; kernels of others never read it
    steady: bool = False  # no step changes it: where all particles have one value, sorting leaves it alone
    help: str = ""


FIELDS: dict[str, Field] = {
    "position": Field(vec3, "m", 0.0, exported=True),
    "velocity": Field(vec3, "m/s", 0.0, exported=True),
    "id": Field(qd.i32, "", -1, exported=True, help="permanent, unique, in order of birth"),
    "material": Field(qd.i32, "", 0, exported=True, steady=True, help="index into the scene's materials"),
    "solid": Field(qd.i32, "", -1, steady=True, help="index of the solid a boundary sample belongs to, -1 for fluid"),
    "rest": Field(
        vec3, "m", 0.0, lazy=True, help="place of a boundary sample in its solid's frame, of a member in its cluster's"
    ),
    "cluster": Field(qd.i32, "", -1, steady=True, help="index of the particle solid it belongs to, -1 for everything else"),
    "volume": Field(qd.f32, "m^3", 0.0, steady=True, help="V = m/ρ₀ of fluid, Akinci volume of boundary samples"),
    "inverse_mass": Field(
        qd.f32, "", 1.0, steady=True, help="relative to the first material; 0 = a solid's sample, < 0 = led by a nozzle"
    ),
    "free_at": Field(qd.f32, "s", 0.0, steady=True, help="when a particle led by its nozzle leaves the pipe"),
    "conformation": Field(
        mat3, "", 1.0, exported=True, lazy=True, help="conformation Q of the polymer, the identity at rest"
    ),
    "density": Field(qd.f32, "kg/m^3", 0.0, exported=True, help="SPH density at the last frame"),
}

DERIVED: dict[str, Field] = {  # computed when a frame is asked for them (or the scene's [output] does), never stored
    "stress": Field(mat3, "Pa", 0.0, saved=False, exported=True, help="without the pressure, see constraints/stress"),
    "stress_mises": Field(qd.f32, "Pa", 0.0, saved=False, exported=True, help="von Mises' equivalent of that stress"),
}

LAZY = frozenset(name for name, field in FIELDS.items() if field.lazy)

Particles = make_dataclass(
    "Particles",
    [(name, qd.types.NDArray[field.type, 1]) for name, field in FIELDS.items()],
    frozen=True,
)
Particles.__module__ = __name__
Particles.__doc__ = "One array per row of FIELDS, all of the same capacity."


@backend.turn
def allocate_array(kind: Any, size: int) -> Any:
    """A zeroed device array of ``size`` elements of ``kind`` (qd.i32, qd.f32, vec3 or mat3)."""
    array = qd.ndarray(kind, (max(int(size), 1),))  # the compiler clears new memory; its fill() compiles anew each time
    _alive.add(array)
    return array


_alive: "WeakSet[Any]" = WeakSet()


@backend.turn
def allocated() -> int:
    """Bytes of all arrays of this process that :func:`allocate_array` made and that are still there."""
    return sum(transfer.bytes_of(array) for array in _alive)


class Uploaded:
    """A dataclass of one-element device arrays, sent to the device only when what it would get changes.

    Numbers passed by value make every launch put all its arguments together anew, which takes longer than a small step;
    a launch whose arguments are the same arrays as before is replayed at once.
    """

    def __init__(self, kind: type):
        """kind: a frozen dataclass whose fields are all Floats or Ints."""
        self._values: dict[str, float] = {}
        self._sent: dict[str, Any] = {}
        self._types = {f.name: np.int32 if f.type is Ints else np.float32 for f in fields(kind)}
        self.device = kind(**{f.name: allocate_array(qd.i32 if f.type is Ints else qd.f32, 1) for f in fields(kind)})

    def set(self, **values: float) -> Any:
        """Takes new values and returns the dataclass for a kernel."""
        for name, value in values.items():
            if self._values.get(name) != value:
                self._values[name], sent = value, self._types[name](value)
                if self._sent.get(name) != sent:  # steps of a frame differ in digits that the device never sees
                    transfer.write(getattr(self.device, name), [sent])
                    self._sent[name] = sent
        return self.device


class Table:
    """A dataclass of device arrays of numbers, one per material, sent to the device only when one changes."""

    def __init__(self, kind: type):
        self._kind = kind
        self._values: dict[str, tuple[float, ...]] = {}
        self._sent: dict[str, np.ndarray] = {}
        self._arrays: dict[str, Any] = {}
        self._made: Any = None

    def set(self, **columns: list[float]) -> Any:
        """Takes new values and returns the dataclass for a kernel."""
        for name, values in columns.items():
            if self._values.get(name) == (given := tuple(values)):
                continue
            now, before, self._values[name] = np.asarray(given, np.float32), self._sent.get(name, ()), given
            if np.array_equal(now, before):
                continue
            if len(now) != len(before):
                self._arrays[name] = allocate_array(qd.f32, len(now))
                self._made = None
            transfer.write(self._arrays[name], now)
            self._sent[name] = now
        if self._made is None:
            self._made = self._kind(**{f.name: self._arrays[f.name] for f in fields(self._kind)})
        return self._made


def allocate(capacity: int, lazy: Iterable[str] = LAZY) -> Any:
    """Particles with room for ``capacity``; of lazy fields only those named here have room."""
    return Particles(**{name: _column(name, capacity, lazy) for name in FIELDS})


def _column(name: str, capacity: int, lazy: Iterable[str]) -> Any:
    field = FIELDS[name]
    if not field.lazy or name in lazy:
        return allocate_array(field.type, capacity)
    array = allocate_array(field.type, 1)
    transfer.write(array, filling(name), 0, 1)
    return array


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


def spares(capacity: int, lazy: Iterable[str] = LAZY) -> dict[str, Any]:
    """One array per type of field, to bring a field into another order with, or for whoever needs room for a moment."""
    kinds = {kind_name(field): field.type for name, field in FIELDS.items() if name in lazy or not field.lazy}
    return {kind: allocate_array(device_kind, capacity) for kind, device_kind in kinds.items()}


def kind_name(field: Field) -> str:
    """The key of :func:`spares` for a field: types of the compiler cannot be keys."""
    kind, tail = numpy_type(field)
    return f"{np.dtype(kind).name}{list(tail)}"


_KINDS = {name: kind_name(field) for name, field in FIELDS.items()}


USUAL = ("position", "velocity", "id", "density")  # brought into order in one launch; others one by one, if they differ


@qd.kernel(graph=True, fastcache=True)
def _reorder_usual(
    number: Ints, order: Ints, position: Vectors, velocity: Vectors, ident: Ints, density: Floats,
    vectors: Vectors, ints: Ints, floats: Floats,
):  # fmt: skip
    """USUAL into the order given, through one spare array per type, in one launch. number: [1] particles."""
    n = number[0]
    for k in range(n):
        vectors[k] = position[order[k]]
        ints[k] = ident[order[k]]
        floats[k] = density[order[k]]
    for k in range(n):
        position[k] = vectors[k]
        ident[k] = ints[k]
        density[k] = floats[k]
    for k in range(n):
        vectors[k] = velocity[order[k]]
    for k in range(n):
        velocity[k] = vectors[k]


@qd.kernel(graph=True, fastcache=True)
def copy_state(number: Ints, position: Vectors, velocity: Vectors, to_position: Vectors, to_velocity: Vectors):
    """Positions and velocities of the first number[0] particles, in one launch."""
    for k in range(number[0]):
        to_position[k] = position[k]
        to_velocity[k] = velocity[k]


def reorder(particles: Any, spare: dict[str, Any], order: Any, number: Any, count: int, names: Iterable[str]) -> None:
    """Moves USUAL and the fields named into the order given: ``order[k]`` is the present index of what becomes number k.

    There and back, so that arrays stay where they are: kernels keep what they know about them, and one spare array per type
    is enough. ``number``: ``count`` on the device.
    """
    p = particles
    ways = (spare[_KINDS[name]] for name in ("position", "id", "density"))
    _reorder_usual(number, order, p.position, p.velocity, p.id, p.density, *ways)
    for name in names:
        array, way = getattr(particles, name), spare[_KINDS[name]]
        gather(order, count, array, way)
        copy(way, array, 0, count)


def grown(particles: Any, count: int, new_capacity: int, lazy: Iterable[str] = LAZY) -> Any:
    """A copy of the first ``count`` particles with room for more."""
    larger = allocate(new_capacity, lazy)
    for name, field in FIELDS.items():
        if name in lazy or not field.lazy:
            copy(getattr(particles, name), getattr(larger, name), 0, count)
    return larger


def with_room(particles: Any, name: str, count: int) -> Any:
    """The same particles with memory for a lazy field, filled for the first ``count``."""
    array = allocate_array(FIELDS[name].type, capacity(particles))
    transfer.write(array, filling(name), 0, count)
    return replace(particles, **{name: array})


def filling(name: str) -> np.ndarray:
    """The value of a field nobody set, for one particle."""
    field = FIELDS[name]
    kind, _ = numpy_type(field)
    return np.asarray(field.fill * np.eye(3) if field.type is mat3 else field.fill, kind)


@qd.func
def _float(packed: Ints, at: qd.i32) -> qd.f32:
    return qd.bit_cast(packed[at], qd.f32)


@qd.func
def _vector(packed: Ints, at: qd.i32) -> vec3:
    return vec3(_float(packed, at), _float(packed, at + 1), _float(packed, at + 2))


TOGETHER = (  # fields that one message carries to a GPU; others go one by one
    "position", "velocity", "id", "material", "solid", "rest", "cluster", "volume", "inverse_mass", "free_at", "conformation",
    "density",
)  # fmt: skip


@qd.kernel(fastcache=True)
def _unpack(
    packed: Ints, width: qd.i32, first: qd.i32, count: qd.i32, p: Particles, with_rest: qd.template(),
    with_conformation: qd.template(),
):  # fmt: skip
    """TOGETHER of particles first + k from ``width`` numbers each, in that order; lazy ones where they have memory."""
    for k in range(count):
        i = first + k
        at = width * k
        p.position[i] = _vector(packed, at)
        p.velocity[i] = _vector(packed, at + 3)
        p.id[i] = packed[at + 6]
        p.material[i] = packed[at + 7]
        p.solid[i] = packed[at + 8]
        if qd.static(with_rest):
            p.rest[i] = _vector(packed, at + 9)
        p.cluster[i] = packed[at + 12]
        p.volume[i] = _float(packed, at + 13)
        p.inverse_mass[i] = _float(packed, at + 14)
        p.free_at[i] = _float(packed, at + 15)
        if qd.static(with_conformation):
            x = _vector(packed, at + 16)
            y = _vector(packed, at + 19)
            z = _vector(packed, at + 22)
            p.conformation[i] = mat3(x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])
        p.density[i] = _float(packed, at + 25)


def _packed(values: dict[str, np.ndarray], added: int, room: int) -> np.ndarray:
    """What :func:`_unpack` reads, (room, width), floats as their bits; fields not given have their fill value."""
    columns = []
    for name in TOGETHER:
        kind, tail = numpy_type(FIELDS[name])
        column = np.zeros((room, *tail), kind)
        column[:added] = values.get(name, filling(name))
        columns.append(column.reshape(room, -1).view(np.int32))
    return np.concatenate(columns, axis=1)


def append(particles: Any, count: int, values: dict[str, np.ndarray], lazy: Iterable[str] = LAZY) -> int:
    """Writes new particles behind the first ``count``; fields not given take their fill value. Returns the new count.

    Few particles go to a GPU with all fields at once: a message costs more than what those of a nozzle carry."""
    added = len(values["position"])
    if added > LOT or not backend.current().is_gpu:
        for name, field in FIELDS.items():
            if name in lazy or not field.lazy:
                transfer.write(getattr(particles, name), values.get(name, filling(name)), count, added)
    elif added:
        append_packed(particles, count, values, lazy)
    return count + added


def append_packed(particles: Any, count: int, values: dict[str, np.ndarray], lazy: Iterable[str] = LAZY) -> None:
    """The same, TOGETHER in one message; at most LOT particles."""
    added = len(values["position"])
    room = 1 << (added - 1).bit_length()
    packed = _packed(values, added, room)
    if room not in _STAGING:
        _STAGING[room] = allocate_array(qd.i32, packed.size)
    transfer.write(_STAGING[room], packed.reshape(-1))
    _unpack(_STAGING[room], packed.shape[1], count, added, particles, "rest" in lazy, "conformation" in lazy)
    for name in FIELDS:
        if name not in TOGETHER and (name in lazy or not FIELDS[name].lazy):
            transfer.write(getattr(particles, name), values.get(name, filling(name)), count, added)


LOT = 1 << 16  # particles that are sent at once
_STAGING: dict[int, Any] = {}  # by room: nozzles emit every few steps, so memory on the way to the device is kept


def to_numpy(particles: Any, name: str, count: int) -> np.ndarray:
    """A host copy of one field, the first ``count`` particles; of a lazy field without memory, its fill value."""
    array = getattr(particles, name)
    if FIELDS[name].lazy and array.shape[0] < capacity(particles):
        return np.broadcast_to(filling(name), (count, *numpy_type(FIELDS[name])[1])).copy()
    return transfer.read(array, count)
