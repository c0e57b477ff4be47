"""Neighbour search: particles into cells, cells into one list per step.

Space is unbounded, memory is not: cell coordinates are wrapped onto a torus of ``dims`` cells. Cells that are
neighbours in space stay neighbours on the torus (locality survives, unlike with a scrambled hash), a runaway particle
merely shares a cell with strangers, and the distance test drops them. A periodic axis is the same torus with exactly as
many cells as fit into the period. With at least three cells per axis the 27 cells around a particle are distinct, so
nobody is listed twice.

The order of a list depends on the cells and on the particles' ids only, never on threads, on the order of the arrays or
on atomics: particles of a cell are ranked by id. Hence every sum over neighbours has the same bits in every run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend
from viscoil.errors import SceneError
from viscoil.particles import Floats, Ints, Uploaded, Vectors, allocate_array, vec3

CELLS_PER_PARTICLE = 2  # upper bound of the torus size; cells hold about ten particles, so most stay empty
FEWEST_CELLS = 3  # per axis
LARGEST_TORUS = 256**3  # the device scan is compiled for this many cells


@dataclass(frozen=True)
class Torus:
    """Where the cells lie. Small device arrays, so that a change costs no recompilation."""

    real: Floats  # origin [m] (3), cells per metre (3), period [m] (3; 0 = unbounded axis)
    whole: Ints  # cells per axis (3), cells in all


@dataclass(frozen=True)
class Cells:
    """Particles by cell."""

    cell: Ints  # [particle] its cell
    slot: Ints  # [particle] its arrival number in the cell (arbitrary)
    count: Ints  # [cell] particles; zero between calls
    start: Ints  # [cell + 1] first place of a cell in the sorted arrays
    partial: qd.types.NDArray[qd.u32, 1]  # scratch of the prefix sum
    sorted_id: Ints  # [place] ids, by cell, in order of arrival
    order: Ints  # [place] particle index, by cell, then by id
    sorted_x: Floats  # [place] coordinates in that order [m], one array each: the search reads them in streams
    sorted_y: Floats
    sorted_z: Floats


@dataclass(frozen=True)
class NeighborList:
    """Neighbours of particle i are ``index[i * row + k * column]`` for k < count[i].

    Rows are contiguous on CPUs (column = 1), columns on GPUs (row = 1). Steps and width are one-element arrays.
    """

    count: Ints
    index: Ints
    needed: Ints  # [1] most neighbours any particle had: larger than width = overflow
    row: Ints
    column: Ints
    width: Ints  # longest list there is room for


@dataclass(frozen=True)
class SearchNumbers:
    """Arguments of a search, one element each."""

    count: Ints  # particles
    reach2: Floats  # search radius squared [m²]


@qd.func
def _axis_distance(a: qd.f32, b: qd.f32, axis: qd.template(), torus: Torus, periodic: qd.template()) -> qd.f32:
    d = a - b
    if qd.static(periodic):
        period = torus.real[6 + axis]
        if period > 0.0:
            d -= period * qd.round(d / period)
    return d


@qd.func
def separation(a: vec3, b: vec3, torus: Torus, periodic: qd.template()) -> vec3:
    """x_ij = a − b [m]; in a periodic box the shortest image of it."""
    return vec3(
        _axis_distance(a[0], b[0], 0, torus, periodic),
        _axis_distance(a[1], b[1], 1, torus, periodic),
        _axis_distance(a[2], b[2], 2, torus, periodic),
    )


def lanes() -> int:
    """Neighbours a loop fetches together.

    A GPU waits long for each; four at a time take little longer than one, which is what small scenes are bound by. On a CPU
    the compiler makes vector instructions of the plain loop instead.
    """
    return 4 if backend.current().is_gpu else 1


@qd.func
def batches(count: qd.i32) -> qd.i32:
    """Fetches that ``count`` neighbours take."""
    return (count + qd.static(lanes() - 1)) // qd.static(lanes())


@qd.func
def fetch(near: NeighborList, i: qd.i32, count: qd.i32, batch: qd.i32):
    """Indices of the neighbours ``batch * lanes()`` and following of particle i; i itself where there are no more.

    Particle i is never listed as its own neighbour, and most terms of a sum vanish at distance zero by themselves.
    """
    first = batch * qd.static(lanes())
    at = i * near.row[0] + first * near.column[0]
    found = qd.Vector([near.index[at + lane * near.column[0]] for lane in qd.static(range(lanes()))])
    if qd.static(lanes() > 1):
        for lane in qd.static(range(lanes())):
            found[lane] = qd.select(first + lane < count, found[lane], i)
    return found


@qd.func
def _coordinate(x: qd.f32, axis: qd.template(), torus: Torus) -> qd.i32:
    # Beyond 1e9 cells the conversion to an integer would overflow.
    c = qd.floor((x - torus.real[axis]) * torus.real[3 + axis])
    return qd.cast(qd.max(qd.min(c, 1.0e9), -1.0e9), qd.i32) % torus.whole[axis]


@qd.func
def _wrapped(c: qd.i32, dim: qd.i32) -> qd.i32:
    w = c
    if w < 0:
        w += dim
    elif w >= dim:
        w -= dim
    return w


@qd.func
def cell_beside(x: vec3, which: qd.i32, torus: Torus) -> qd.i32:
    """One of the 27 cells (``which``: 0 to 26) that hold everybody within the reach of the search around any point x."""
    cx = _wrapped(_coordinate(x[0], 0, torus) + which % 3 - 1, torus.whole[0])
    cy = _wrapped(_coordinate(x[1], 1, torus) + which // 3 % 3 - 1, torus.whole[1])
    cz = _wrapped(_coordinate(x[2], 2, torus) + which // 9 - 1, torus.whole[2])
    return (cz * torus.whole[1] + cy) * torus.whole[0] + cx


@qd.func(requires_top_level=True)
def count_cells(cells: Cells, torus: Torus, position: Vectors, n: qd.i32):
    """Cell of each particle, particles of each cell."""
    for i in range(n):
        x = position[i]
        cx = _coordinate(x[0], 0, torus)
        cy = _coordinate(x[1], 1, torus)
        cz = _coordinate(x[2], 2, torus)
        c = (cz * torus.whole[1] + cy) * torus.whole[0] + cx
        cells.cell[i] = c
        cells.slot[i] = qd.atomic_add(cells.count[c], 1)


@qd.func(requires_top_level=True)
def prefix_sum(cells: Cells, torus: Torus, depth: qd.template()):
    """start[c] = particles in the cells before c. ``depth``: levels of the device's scan, 0 for the CPU's own."""
    if qd.static(depth > 0):
        qd.algorithms.exclusive_scan_add(cells.count, cells.start, cells.partial, torus.whole[3] + 1, qd.i32, depth)
    else:
        for chunk in range((torus.whole[3] + 1023) // 1024):
            total = 0
            for c in range(chunk * 1024, qd.min((chunk + 1) * 1024, torus.whole[3])):
                total += cells.count[c]
            cells.partial[chunk] = qd.cast(total, qd.u32)
        for _ in range(1):
            running = qd.cast(0, qd.u32)
            for chunk in range((torus.whole[3] + 1023) // 1024):
                total = cells.partial[chunk]
                cells.partial[chunk] = running
                running += total
            cells.start[torus.whole[3]] = qd.cast(running, qd.i32)
        for chunk in range((torus.whole[3] + 1023) // 1024):
            running = qd.cast(cells.partial[chunk], qd.i32)
            for c in range(chunk * 1024, qd.min((chunk + 1) * 1024, torus.whole[3])):
                cells.start[c] = running
                running += cells.count[c]


@qd.func(requires_top_level=True)
def sort_cells(cells: Cells, position: Vectors, ids: Ints, n: qd.i32):
    """Particles by cell, and inside a cell by id: the rank is the number of smaller ids there."""
    for i in range(n):
        cells.sorted_id[cells.start[cells.cell[i]] + cells.slot[i]] = ids[i]
    for i in range(n):
        first = cells.start[cells.cell[i]]
        place = first
        for k in range(first, cells.start[cells.cell[i] + 1]):
            if cells.sorted_id[k] < ids[i]:
                place += 1
        cells.order[place] = i
        cells.sorted_x[place] = position[i][0]
        cells.sorted_y[place] = position[i][1]
        cells.sorted_z[place] = position[i][2]
        cells.count[cells.cell[i]] = 0  # for the next search


@qd.func
def _scan_run(
    first: qd.i32, last: qd.i32, place: qd.i32, already: qd.i32, base: qd.i32, reach2: qd.f32,
    cells: Cells, torus: Torus, out: NeighborList, periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """Appends the neighbours among the places first..last; returns how many there are by now.

    Thirty-two candidates at a time become the bits of a mask. That loop has no branch and no store, so the compiler
    turns it into vector instructions; only the hits are then walked one by one.
    """
    found = already
    a = first
    while a < last:
        end = qd.min(a + 32, last)
        mask = qd.u32(0)
        for k in range(a, end):
            dx = _axis_distance(cells.sorted_x[place], cells.sorted_x[k], 0, torus, periodic)
            dy = _axis_distance(cells.sorted_y[place], cells.sorted_y[k], 1, torus, periodic)
            dz = _axis_distance(cells.sorted_z[place], cells.sorted_z[k], 2, torus, periodic)
            near = dx * dx + dy * dy + dz * dz < reach2
            mask |= qd.select(near, qd.u32(1) << qd.cast(k - a, qd.u32), qd.u32(0))
        while mask != 0:
            lowest = mask & (~mask + qd.u32(1))
            k = a + 31 - qd.math.clz(qd.cast(lowest, qd.i32))
            mask ^= lowest
            if k != place:
                if found < out.width[0]:
                    out.index[base + found * out.column[0]] = cells.order[k]
                found += 1
        a = end
    return found


@qd.func(requires_top_level=True)
def list_neighbors(
    cells: Cells, torus: Torus, inverse_mass: Floats, n: qd.i32, reach2: qd.f32, out: NeighborList, periodic: qd.template()
):
    """Everybody closer than the reach (squared, m²), for fluid particles, those led by nozzles included.

    Runs over places, not indices: threads then walk through space in order. Three cells along x are one run of the
    sorted arrays, or two where the torus closes.
    """
    for place in range(n):
        i = cells.order[place]
        if inverse_mass[i] != 0.0:
            dim_x = torus.whole[0]
            dim_y = torus.whole[1]
            dim_z = torus.whole[2]
            c = cells.cell[i]
            cx = c % dim_x
            cy = (c // dim_x) % dim_y
            cz = c // (dim_x * dim_y)
            found = 0
            base = i * out.row[0]
            for row in range(9):
                ry = _wrapped(cy + row % 3 - 1, dim_y)
                rz = _wrapped(cz + row // 3 - 1, dim_z)
                line = (rz * dim_y + ry) * dim_x
                first = cells.start[line + qd.max(cx - 1, 0)]
                last = cells.start[line + qd.min(cx + 2, dim_x)]
                found = _scan_run(first, last, place, found, base, reach2, cells, torus, out, periodic)
                if cx == 0 or cx == dim_x - 1:
                    other = line + qd.select(cx == 0, dim_x - 1, 0)
                    first = cells.start[other]
                    last = cells.start[other + 1]
                    found = _scan_run(first, last, place, found, base, reach2, cells, torus, out, periodic)
            out.count[i] = qd.min(found, out.width[0])
            if found > out.width[0]:
                qd.atomic_max(out.needed[0], found)
        else:
            out.count[i] = 0


@qd.func(requires_top_level=True)
def search(
    cells: Cells, torus: Torus, position: Vectors, ids: Ints, inverse_mass: Floats, k: SearchNumbers,
    out: NeighborList, periodic: qd.template(), depth: qd.template(),
):  # fmt: skip
    """Particles into cells, and the list of neighbours of those that move."""
    count_cells(cells, torus, position, k.count[0])
    prefix_sum(cells, torus, depth)
    sort_cells(cells, position, ids, k.count[0])
    list_neighbors(cells, torus, inverse_mass, k.count[0], k.reach2[0], out, periodic)


@qd.kernel(graph=True, fastcache=True)
def _find(
    cells: Cells, torus: Torus, position: Vectors, ids: Ints, inverse_mass: Floats, k: SearchNumbers,
    out: NeighborList, periodic: qd.Template, depth: qd.Template,
):  # fmt: skip
    search(cells, torus, position, ids, inverse_mass, k, out, periodic, depth)


def _constant(value: int) -> Any:
    array = allocate_array(qd.i32, 1)
    array.fill(value)
    return array


def list_width(neighbors: int) -> int:
    """Row length for about ``neighbors`` entries; never 64 or 80, whose rows fall onto the same cache sets."""
    width = max(8, 4 * ((neighbors + 3) // 4))
    return width + 4 if width % 16 == 0 else width


class Neighbors:
    """The neighbour search of one world: its cells and its list, sized for ``capacity`` particles."""

    def __init__(self, reach: float, expected: int, capacity: int, box: Any = None):
        """reach [m]: search radius; expected: neighbours of a particle inside the fluid; box: periodic Domain or None."""
        self.reach = float(reach)
        self.box = box
        self.periodic = box is not None and bool(box.periodic)
        self.dims = (FEWEST_CELLS,) * 3
        self.multiple = 1  # unbounded axes have a multiple of this many cells (at most 16), for those who colour them
        self.torus = Torus(allocate_array(qd.f32, 9), allocate_array(qd.i32, 4))
        self._width = list_width(int(expected * 1.25) + 6)
        self._table = 0
        self._numbers = Uploaded(SearchNumbers)
        self.resize(capacity)
        self.fit(np.zeros(3), np.zeros(3))

    def resize(self, capacity: int) -> None:
        """Room for ``capacity`` particles."""
        self.capacity = capacity
        gpu = backend.current().is_gpu
        self.list = NeighborList(
            count=allocate_array(qd.i32, capacity),
            index=allocate_array(qd.i32, capacity * self._width),
            needed=allocate_array(qd.i32, 1),
            row=_constant(1 if gpu else self._width),
            column=_constant(capacity if gpu else 1),
            width=_constant(self._width),
        )
        self._table = min(max(4096, CELLS_PER_PARTICLE * capacity), LARGEST_TORUS - 1)
        self.cells = Cells(
            cell=allocate_array(qd.i32, capacity),
            slot=allocate_array(qd.i32, capacity),
            count=allocate_array(qd.i32, self._table + 1),
            start=allocate_array(qd.i32, self._table + 1),
            partial=allocate_array(qd.u32, self._table // 128 + 1024),
            sorted_id=allocate_array(qd.i32, capacity),
            order=allocate_array(qd.i32, capacity),
            sorted_x=allocate_array(qd.f32, capacity),
            sorted_y=allocate_array(qd.f32, capacity),
            sorted_z=allocate_array(qd.f32, capacity),
        )

    @property
    def width(self) -> int:
        return self._width

    def widen(self, needed: int) -> None:
        """Longer rows after an overflow."""
        self._width = list_width(int(needed * 1.15) + 4)
        self.resize(self.capacity)

    def fit(self, low: np.ndarray, high: np.ndarray) -> None:
        """Shapes the torus after the extent of the particles (metres), within the memory it has.

        A pure function of its arguments and the capacity: a resumed run gets the same cells.
        """
        origin, period, dims = np.zeros(3), np.zeros(3), np.zeros(3, int)
        for axis in range(3):
            if self.periodic and "xyz"[axis] in self.box.periodic:
                length = self.box.max[axis] - self.box.min[axis]
                dims[axis] = int(length / self.reach * (1 + 1e-6))
                if dims[axis] < FEWEST_CELLS:
                    raise SceneError(
                        f"domain: the periodic box is {length:g} m long in {'xyz'[axis]}, expected at least three times "
                        f"the search radius ({FEWEST_CELLS * self.reach:g} m)"
                    )
                origin[axis], period[axis] = self.box.min[axis], length
            else:
                wanted = (float(high[axis]) - float(low[axis])) / self.reach
                dims[axis] = int(min(max(wanted + 3, 8), 1e9))
                dims[axis] += -dims[axis] % self.multiple
        room, least = float(self._table), FEWEST_CELLS + -FEWEST_CELLS % self.multiple
        for left, axis in zip((3, 2, 1), np.argsort(dims, kind="stable"), strict=True):
            # The shortest axis first: what it leaves is shared evenly by the longer ones. Unbounded axes then share
            # cells, periodic ones get larger cells.
            dims[axis] = min(dims[axis], int(room ** (1 / left) * (1 + 1e-9)))
            if period[axis] == 0:
                dims[axis] = max(dims[axis] - dims[axis] % self.multiple, least)
            room /= dims[axis]
        size = np.where(period > 0, period / dims, self.reach)
        self.dims = tuple(int(d) for d in dims)
        self.torus.real.from_numpy(np.concatenate([origin, 1 / size, period]).astype(np.float32))
        self.torus.whole.from_numpy(np.array([*dims, np.prod(dims)], np.int32))

    def find(self, position: Any, particles: Any, count: int) -> None:
        """Sorts ``count`` particles at ``position`` into cells and lists the neighbours of those that move."""
        _find(
            self.cells, self.torus, position, particles.id, particles.inverse_mass,
            self.numbers(count), self.list, self.periodic, self.scan_depth,
        )  # fmt: skip

    def find_all(self, position: Any, particles: Any, count: int) -> None:
        """As :meth:`find`, and again with longer lists until all neighbours have found room. Waits for the device."""
        self.find(position, particles, count)
        while needed := self.overflow():
            self.widen(needed)
            self.find(position, particles, count)

    def numbers(self, count: int) -> SearchNumbers:
        """Arguments of a search among ``count`` particles, on the device."""
        return self._numbers.set(count=count, reach2=self.reach**2)

    @property
    def scan_depth(self) -> int:
        """Levels of the device's prefix sum; 0 for the CPU's own."""
        if not backend.current().is_gpu:
            return 0
        return 2 if np.prod(self.dims) < 256**2 - 1 else 3

    def to_numpy(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(neighbours of each particle (n,), their indices (n, width)); entries beyond the count are set to 0."""
        number = self.list.count.to_numpy()[:count]
        index = self.list.index.to_numpy()[: self.capacity * self._width]
        by_column = backend.current().is_gpu
        rows = index.reshape(self._width, self.capacity).T if by_column else index.reshape(-1, self._width)
        return number, np.where(np.arange(self._width) < number[:, None], rows[:count], 0)

    def overflow(self) -> int:
        """Neighbours the fullest particle has when the list was too short, else 0. Waits for the device."""
        needed = int(self.list.needed.to_numpy()[0])
        if needed > self._width:
            self.list.needed.fill(0)
            return needed
        return 0
