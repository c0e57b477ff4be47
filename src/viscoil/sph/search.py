"""The host's side of the neighbour search: how many cells, how long a list, and what to do when it was too short."""

from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, native
from viscoil.errors import SceneError
from viscoil.particles import Uploaded, allocate_array
from viscoil.sph.depth import FEW, PARTING, RECORDED, SPARE, TORN, collected
from viscoil.sph.finding import Cells, SearchNumbers, find_neighbors, sort_only
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import address_of, allocate_records, used
from viscoil.transfer import read, write

CELLS_PER_PARTICLE = 2  # upper bound of the torus size; cells hold about ten particles, so most stay empty
FEWEST_CELLS = 3  # per axis
WHOLE = (1, 1, 1)
# Cells along x, y and z per reach where candidates are read as records: the first of these that there is memory for. Rows that
# are half as thick leave out more of who is too far.
SLICES = (4, 1, 2), (4, 1, 1), (2, 1, 1)
LARGEST_TORUS = 256**3  # the device scan is compiled for this many cells
SMALL_TORUS = 256**2  # fewer need one level less of it
SMALL = 300_000  # particles that get along with so few: five or more in a cell
MOST_ELEMENTS = 2**31 - 1  # of an array
FEW_PARTICLES = 40_000  # fewer leave most of a GPU idle


def _constant(value: int) -> Any:
    array = allocate_array(qd.i32, 1)
    array.fill(value)
    return array


def list_width(neighbors: int) -> int:
    """Row length for about ``neighbors`` entries; never 64 or 80, whose rows fall onto the same cache sets."""
    width = max(8, 4 * ((neighbors + 3) // 4))
    return width + 4 if width % 16 == 0 else width


def pieces_of(capacity: int, width: int, gpu: bool, may_split: bool = True) -> tuple[int, dict[str, int]]:
    """(columns after which a list is split, columns of each of its pieces) for ``capacity`` rows of ``width`` entries."""
    if not (gpu and may_split) and capacity * width > MOST_ELEMENTS:
        where = "this solver" if gpu else "a CPU"
        raise SceneError(
            f"too many particles for {where}: {capacity:,} of them with room for {width} neighbours each need a list of more "
            f"than {MOST_ELEMENTS:,} entries; at most {MOST_ELEMENTS // width:,} fit"
        )
    split = min(width, MOST_ELEMENTS // max(capacity, 1))
    if split < width:
        split -= split % 8  # batches are not torn apart
    if split * 3 < width:
        raise SceneError(
            f"too many particles: {capacity:,} of them with room for {width} neighbours each need a list of more than "
            f"{3 * MOST_ELEMENTS:,} entries"
        )
    return split, {"index": split, "more": min(width - split, split), "most": max(0, width - 2 * split)}


def team_size(particles: int, growing: bool, width: int) -> int:
    """Threads of a GPU that share the neighbours of one particle, of which a list has room for ``width``: few particles leave
    most of it idle.

    Measured on an H200, whole steps. With some 65 neighbours: 15,000 particles take 11 % less time with eight than with four,
    80,000 take 2 % less with two than with one, 106,000 take 6 % more. With 28 neighbours 80,000 to 130,000 take 4 to 9 % less
    with one than with two. Where a whole
    team fetches once, a smaller one does as well. Settled once per scene, and where nozzles add particles for the
    middle way: another size is another program to compile, and other bits.
    """
    if not backend.current().is_gpu:
        return 1
    if growing:
        return 2
    wide = width >= 64
    if particles < FEW_PARTICLES:
        return 8 if wide else 4
    return 2 if wide and particles < 100_000 else 1


class Neighbors:
    """The neighbour search of one world: its cells and its list, sized for ``capacity`` particles."""

    def __init__(self, reach: float, expected: int, capacity: int, box: Any = None, plain: bool = False):
        """reach [m]: search radius; expected: neighbours of a particle inside the fluid; box: periodic Domain or None;
        ``plain``: 27 cells around each, and no records, for whoever reads the cells himself."""
        self.reach = float(reach)
        self.box = box
        self.periodic = box is not None and bool(box.periodic)
        self.dims = (FEWEST_CELLS,) * 3
        self.multiple = 1  # unbounded axes have a multiple of this many cells (at most 16), for those who colour them
        self.recorded = used() and not plain  # whether passes may read records
        self.torus = Torus(allocate_array(qd.f32, 9), allocate_array(qd.i32, 7))
        self._width = list_width(int(expected * 1.25) + 6)
        self._table = 0
        self._numbers = Uploaded(SearchNumbers)
        self.team = 1  # threads per particle, see team_size
        self.may_split = True  # whether all that reads the list can follow it into its second piece
        self.resize(capacity)
        self.fit(np.zeros(3), np.zeros(3))

    def resize(self, capacity: int) -> None:
        """Room for ``capacity`` particles."""
        self.capacity = capacity
        gpu = backend.current().is_gpu
        streamed = 1 if self.recorded else capacity
        self.split, pieces = pieces_of(capacity, self._width, gpu, self.may_split)
        arrays = {name: allocate_array(qd.i32, max(1, capacity * columns)) for name, columns in pieces.items()}
        self.list = NeighborList(
            count=allocate_array(qd.i32, capacity),
            **arrays,
            split=_constant(self.split),
            needed=allocate_array(qd.i32, 1),
            row=_constant(1 if gpu else self._width),
            column=_constant(capacity if gpu else 1),
            width=_constant(self._width),
            address=address_of(arrays["index"]),
        )
        # As many as may be needed, not as are used now: what the scan of these takes is compiled into steps.
        most = SMALL_TORUS - 1 if gpu and capacity < SMALL else LARGEST_TORUS
        self._table = min(max(4096, CELLS_PER_PARTICLE * capacity), most - 1)
        self.cells = Cells(
            cell=allocate_array(qd.i32, capacity),
            slot=allocate_array(qd.i32, capacity),
            count=allocate_array(qd.i32, self._table + 1),
            start=allocate_array(qd.i32, self._table + 1),
            partial=allocate_array(qd.u32, self._table // 128 + 1024),
            sorted_id=allocate_array(qd.i32, capacity),
            order=allocate_array(qd.i32, capacity),
            sorted_x=allocate_array(qd.f32, streamed),
            sorted_y=allocate_array(qd.f32, streamed),
            sorted_z=allocate_array(qd.f32, streamed),
            sorted=allocate_records(capacity + SPARE if self.recorded else 1),
        )
        self.forget_order()

    def forget_order(self) -> None:
        """Particles stay as they lie until the next search, which a method may never ask for."""
        write(self.cells.order, np.arange(self.capacity, dtype=np.int32))

    def allow_split(self, allowed: bool) -> None:
        """Whether all that reads the list can follow it into its second piece; a list too long for who cannot is refused."""
        self.may_split = allowed
        pieces_of(self.capacity, self._width, backend.current().is_gpu, allowed)

    @property
    def torn(self) -> bool:
        """Whether the list has several pieces."""
        return self.split < self._width

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
        may_slice = self.recorded and self.multiple == 1
        cells = np.prod(dims, dtype=float)
        fitting = (slices for slices in SLICES if may_slice and np.prod(slices) * cells <= self._table)
        self.slices = next(fitting, WHOLE)
        dims *= self.slices
        room, least = float(self._table), FEWEST_CELLS + -FEWEST_CELLS % self.multiple
        for left, axis in zip((3, 2, 1), np.argsort(dims, kind="stable"), strict=True):
            # The shortest axis first: what it leaves is shared evenly by the longer ones. Unbounded axes then share
            # cells, periodic ones get larger cells.
            dims[axis] = min(dims[axis], int(room ** (1 / left) * (1 + 1e-9)))
            if period[axis] == 0:
                dims[axis] = max(dims[axis] - dims[axis] % self.multiple, least)
            room /= dims[axis]
        size = np.where(period > 0, period / dims, self.reach / np.array(self.slices))
        self.dims = tuple(int(d) for d in dims)
        write(self.torus.real, np.concatenate([origin, 1 / size, period]))
        write(self.torus.whole, [*dims, np.prod(dims), *self.slices])

    def find(self, position: Any, particles: Any, count: int) -> None:
        """Sorts ``count`` particles at ``position`` into cells and lists the neighbours of those that move.

        Nobody is moved by it where ``position`` is where they are, not where a step leads them."""
        if native.active() and not self.periodic and not self.recorded:
            sort_only(self.cells, self.torus, position, particles.id, self.numbers(count), self.scan_depth)
            native.list_neighbors(self, particles.inverse_mass, count)
            return
        depth = backend.constant(self.scan_depth - (PARTING if self.recorded and position is particles.position else 0))
        find_neighbors(
            self.cells, self.torus, position, particles.position, particles.id, particles.inverse_mass,
            self.numbers(count), self.list, self.periodic, depth,
        )  # fmt: skip

    def find_all(self, position: Any, particles: Any, count: int) -> None:
        """As :meth:`find`, and again with longer lists until all neighbours have found room. Waits for the device."""
        self.find(position, particles, count)
        while needed := self.overflow():
            self.widen(needed)
            self.find(position, particles, count)

    @property
    def few(self) -> bool:
        """Whether launching kernels is what a GPU's time goes to. Settled once per scene, as teams are."""
        return self.team > 2

    def numbers(self, count: int) -> SearchNumbers:
        """Arguments of a search among ``count`` particles, on the device."""
        return self._numbers.set(count=count, reach2=self.reach**2)

    @property
    def scan_depth(self) -> int:
        """Levels of the device's prefix sum; 0 for the CPU's own. More where candidates are read as records: see PARTING."""
        more = PARTING + (TORN if self.torn else RECORDED) if self.recorded else 0
        if not backend.current().is_gpu:
            return more
        if self.recorded and backend.current().device == "cuda":
            more += collected(self._width)
        more += FEW * self.few
        return backend.constant(more + (2 if self._table < SMALL_TORUS - 1 else 3))

    def to_numpy(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(neighbours of each particle (n,), their indices (n, width)); entries beyond the count are set to 0."""
        number = read(self.list.count, count)
        if backend.current().is_gpu:
            _, pieces = pieces_of(self.capacity, self._width, True)
            parts = [
                read(getattr(self.list, name), self.capacity * columns).reshape(columns // 4, self.capacity, 4)
                for name, columns in pieces.items()
            ]
            rows = np.concatenate(parts).swapaxes(0, 1).reshape(self.capacity, -1)
        else:
            rows = read(self.list.index, self.capacity * self._width).reshape(-1, self._width)
        return number, np.where(np.arange(self._width) < number[:, None], rows[:count], 0)

    def overflow(self) -> int:
        """Neighbours the fullest particle has when the list was too short, else 0. Waits for the device."""
        needed = int(read(self.list.needed)[0])
        if needed > self._width:
            self.list.needed.fill(0)
            return needed
        return 0
