"""Sweeps in which every visit sees what the visits before it did, in parallel and always with the same bits.

A visit of particle i reads and writes i and its listed neighbours. Cells are as wide as the lists reach, and blocks are two
cells wide, so two blocks with a block between them have nobody in common, wherever particles have moved since the list was
made: what is touched depends on the list alone. Blocks are coloured like a chessboard in three dimensions (eight colours; a
third one per axis where an odd number of blocks closes the torus). Colours come one after the other, blocks of a colour in
parallel, the particles of a block one by one. That is Gauss and Seidel's method in one particular order, on any number
of threads.

Displacements that follow each other turn a body a little: each acts along the line between two particles, but the others
have moved them since. Together they add up to a torque of second order, always the same in a body at rest, and an elastic
cube that nobody touched turned by 200 degrees in a second. In the opposite order the torque is the opposite, so steps go
forwards and backwards in turn (:func:`in_turn`).

The same kernels sweep in any given order: a torus of one cell that holds everybody is one block, visited by one thread.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.particles import Flag, Floats, Ints, allocate_array


@dataclass(frozen=True)
class Schedule:
    """Who is visited when."""

    order: Ints  # [place] particle, -1 = nobody
    start: Ints  # [cell + 1] first place of a cell
    whole: Ints  # cells per axis (3), cells in all
    colour: Ints  # whose turn it is, and the next block of that colour that nobody has taken
    backwards: Ints  # [1] 1: everything comes in the opposite order


@dataclass(frozen=True)
class Hits:
    """Neighbours of the particle being visited that matter, found first and walked afterwards: a row per worker.

    Half of what a list holds is too far away, at random places: finding the rest without a branch, then working without a
    branch, takes a third of the time on a CPU.
    """

    index: Ints
    weight: Floats


def hits_for(width: int, present: Hits | None) -> Hits:
    """Rows ``width`` long for all workers; what is there, when large enough."""
    needed = width * sweepers()
    if present is not None and present.index.shape[0] >= needed:
        return present
    return Hits(*(allocate_array(kind, needed) for kind in (qd.i32, qd.f32)))


def sweepers() -> int:
    """Workers of a sweep. Each takes a block, works through it and takes the next: who is quick does more."""
    return 4096 if backend.current().is_gpu else 32


def apart() -> int:
    """Iterations from one worker to the next: on a CPU a thread takes 512 of a loop at once, however few there are."""
    return 1 if backend.current().is_gpu else 512


@qd.func
def _blocks(dim: qd.i32) -> qd.i32:
    return qd.max(dim // 2, 1)


@qd.func
def _colours(dim: qd.i32) -> qd.i32:
    blocks = _blocks(dim)
    return qd.select(blocks == 1, 1, 2 + blocks % 2)


@qd.func
def _share(dim: qd.i32, colour: qd.i32) -> qd.i32:
    """Blocks of one colour along an axis."""
    return qd.select(colour == 2, 1, qd.max(_blocks(dim) // 2, 1))


@qd.func
def _all_colours(whole: Ints) -> qd.i32:
    return _colours(whole[0]) * _colours(whole[1]) * _colours(whole[2])


@qd.func
def in_turn(number: qd.i32, first: qd.i32, last: qd.i32, schedule: Schedule) -> qd.i32:
    """Which of first ≤ ... < last it is that comes as ``number``: itself, or counted from the end."""
    return qd.select(schedule.backwards[0] == 1, first + last - 1 - number, number)


@qd.func
def _colour_of(schedule: Schedule):
    """The present colour along each axis."""
    colour = in_turn(schedule.colour[0], 0, _all_colours(schedule.whole), schedule)
    nx = _colours(schedule.whole[0])
    ny = _colours(schedule.whole[1])
    return qd.Vector([colour % nx, (colour // nx) % ny, colour // (nx * ny)])


@qd.func
def tasks(schedule: Schedule) -> qd.i32:
    """Blocks of the present colour."""
    c = _colour_of(schedule)
    number = 1
    for axis in qd.static(range(3)):
        number *= _share(schedule.whole[axis], c[axis])
    return number


@qd.func
def _span(dim: qd.i32, colour: qd.i32, number: qd.i32):
    """Cells (begin, end) of the ``number``-th block of a colour along an axis; the last block takes what is left over."""
    blocks = _blocks(dim)
    block = qd.select(colour == 2, blocks - 1, 2 * number + colour)
    return 2 * block, qd.select(block == blocks - 1, dim, 2 * block + 2)


@qd.func
def block_of(task: qd.i32, schedule: Schedule):
    """Cells (x begin, x end, y begin, y end, z begin, z end) of a block of the present colour."""
    c = _colour_of(schedule)
    nx = _share(schedule.whole[0], c[0])
    ny = _share(schedule.whole[1], c[1])
    x0, x1 = _span(schedule.whole[0], c[0], task % nx)
    y0, y1 = _span(schedule.whole[1], c[1], (task // nx) % ny)
    z0, z1 = _span(schedule.whole[2], c[2], task // (nx * ny))
    return qd.Vector([x0, x1, y0, y1, z0, z1])


@qd.func
def rows(block: qd.template()) -> qd.i32:
    """Runs of cells along x in a block."""
    return (block[3] - block[2]) * (block[5] - block[4])


@qd.func
def run_of(block: qd.template(), number: qd.i32, schedule: Schedule):
    """Places (first, one past the last) of the run of cells whose turn it is."""
    deep = block[3] - block[2]
    row = in_turn(number, 0, rows(block), schedule)
    line = ((block[4] + row // deep) * schedule.whole[1] + block[2] + row % deep) * schedule.whole[0]
    return schedule.start[line + block[0]], schedule.start[line + block[1]]


@qd.func
def take(schedule: Schedule) -> qd.i32:
    """A block of the present colour that nobody has taken."""
    return qd.atomic_add(schedule.colour[1], 1)


@qd.func(requires_top_level=True)
def begin_sweep(left: Flag, schedule: Schedule):
    """All colours are still to come."""
    for _ in range(1):
        schedule.colour[0] = 0
        schedule.colour[1] = 0
        left[()] = _all_colours(schedule.whole)


@qd.func(requires_top_level=True)
def next_colour(left: Flag, schedule: Schedule):
    """One colour is done."""
    for _ in range(1):
        schedule.colour[0] += 1
        schedule.colour[1] = 0
        left[()] -= 1


# --- orders ------------------------------------------------------------------------------------------------------------
@qd.func
def scrambled(number: qd.i32) -> qd.i32:
    """An id turned into a rank that looks random: one to one on 31 bits, the same in every run."""
    u = qd.cast(number, qd.u32)
    for _ in qd.static(range(2)):
        u = (u * qd.u32(0x2C1B3C6D)) & qd.u32(0x7FFFFFFF)
        u = u ^ (u >> qd.u32(15))
    return qd.cast(u, qd.i32)


@qd.func(requires_top_level=True)
def ranks(ids: Ints, n: qd.i32, rank: Ints):
    """Ranks of all particles."""
    for i in range(n):
        rank[i] = scrambled(ids[i])


@qd.kernel(fastcache=True)
def _rank(ids: Ints, n: qd.i32, rank: Ints):
    ranks(ids, n, rank)


def ids_by_rank(count: int) -> np.ndarray:
    """The ids 0 ... count − 1 in the order of their ranks."""
    ids, rank = allocate_array(qd.i32, count), allocate_array(qd.i32, count)
    transfer.write(ids, np.arange(max(count, 1), dtype=np.int32))
    _rank(ids, count, rank)
    return np.argsort(transfer.read(rank, count), kind="stable").astype(np.int32)


@qd.func(requires_top_level=True)
def find_ids(ids: Ints, n: qd.i32, all_ids: qd.i32, where: Ints):
    """where[id] = index of the particle of that id, -1 when it is gone."""
    for a in range(all_ids):
        where[a] = -1
    for i in range(n):
        where[ids[i]] = i


@qd.func(requires_top_level=True)
def in_line(sequence: Ints, number: qd.i32, where: Ints, schedule: Schedule):
    """Everybody in the order of a sequence of ids, as the one cell of a schedule."""
    for a in range(number):
        schedule.order[a] = where[sequence[a]]
        if a == 0:
            schedule.start[0] = 0
            schedule.start[1] = number


def line_schedule(places: int, colour: Any, backwards: Any) -> Schedule:
    """A schedule of one cell with so many places."""
    whole = allocate_array(qd.i32, 4)
    transfer.write(whole, np.ones(4, np.int32))
    return Schedule(allocate_array(qd.i32, places), allocate_array(qd.i32, 2), whole, colour, backwards)


def induced_order(order: np.ndarray, start: np.ndarray, dims: tuple[int, int, int]) -> np.ndarray:
    """The order in which a coloured sweep forwards visits particles, were it done by one thread (host; for tests)."""

    def colours(dim: int) -> list[list[tuple[int, int]]]:
        blocks = max(dim // 2, 1)
        spans = [(2 * b, dim if b == blocks - 1 else 2 * b + 2) for b in range(blocks)]
        if blocks == 1:
            return [spans]
        even = blocks - blocks % 2
        return [spans[:even:2], spans[1:even:2], *([spans[-1:]] if blocks % 2 else [])]

    visited = []
    for of_z in colours(dims[2]):
        for of_y in colours(dims[1]):
            for of_x in colours(dims[0]):
                for z0, z1 in of_z:
                    for y0, y1 in of_y:
                        for x0, x1 in of_x:
                            for z in range(z0, z1):
                                for y in range(y0, y1):
                                    line = (z * dims[1] + y) * dims[0]
                                    visited.append(order[start[line + x0] : start[line + x1]])
    return np.concatenate(visited) if visited else np.zeros(0, np.int32)
