"""Making the neighbour list: particles into cells, and everybody within reach of each out of 27 cells (neighbors.py says why).

Cells, the order of particles in them and the scans live here; what passes read of a list is in neighbors.py.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Vectors, vec3
from viscoil.sph.neighbors import (
    NeighborList,
    Torus,
    axis_distance,
    batches,
    enter,
    fill_up,
    form_of,
    ivec4,
    lanes,
    separation,
)
from viscoil.sph.records import Records, begin_of, put_record, record_from, vector_of

ivec2 = qd.types.vector(2, qd.i32)


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
    sorted: Records  # [place] coordinates and the bits of the index, where passes read records


# What kernels have to know of a search, in one number: the depth of its scan; PARTING more where it may put particles apart
# that are at the same place, as the searches of steps do where passes read records; one of the next two where places are sorted
# into records as well, and candidates read from those, into a list of one piece or of several; and STAGED times the entries of
# a list that a block of threads collects in its shared memory first. FEW more where particles are few: the same is done then,
# but the whole kernel is compiled for fewer blocks of threads (backend.small_launches).
PARTING, RECORDED, TORN, STAGED, FEW = 4, 8, 16, 32, 4096
BASKETS = (44, 92)  # that many entries per thread: 128 threads share memory, 48 KiB at most


def recorded(depth: int) -> bool:
    """Whether candidates are read as records."""
    return depth % FEW >= RECORDED


def torn(depth: int) -> bool:
    """Whether a list that is made from records has several pieces."""
    return depth % STAGED >= TORN


def staged(depth: int) -> int:
    """Entries that are collected before they are written; 0: written one by one."""
    return depth % FEW // STAGED


def levels(depth: int) -> int:
    """Of the device's scan."""
    return depth % PARTING


def parting(depth: int) -> bool:
    """Whether who is at the place of another is put beside it."""
    return recorded(depth) and depth % RECORDED >= PARTING


@dataclass(frozen=True)
class SearchNumbers:
    """Arguments of a search, one element each."""

    count: Ints  # particles
    reach2: Floats  # search radius squared [m²]


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
def cells_beside(torus: Torus) -> qd.i32:
    """How many cells hold everybody within the reach of the search around any point: 27, or more where they are sliced."""
    return 9 * (2 * torus.whole[4] + 1)


@qd.func
def cell_beside(x: vec3, which: qd.i32, torus: Torus) -> qd.i32:
    """One of these cells (``which``: 0 to cells_beside − 1) around x."""
    slices = torus.whole[4]
    row = which // (2 * slices + 1)
    cx = _wrapped(_coordinate(x[0], 0, torus) + which % (2 * slices + 1) - slices, torus.whole[0])
    cy = _wrapped(_coordinate(x[1], 1, torus) + row % 3 - 1, torus.whole[1])
    cz = _wrapped(_coordinate(x[2], 2, torus) + row // 3 - 1, torus.whole[2])
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


@qd.func
def cells_to_scan(torus: Torus) -> qd.i32:
    """For the top of a kernel, with its other numbers: what is read between two loops is a launch of its own on a GPU."""
    return torus.whole[3] + 1


@qd.func(requires_top_level=True)
def prefix_sum(cells: Cells, torus: Torus, scanned: qd.i32, depth: qd.template()):
    """start[c] = particles in the cells before c. ``depth``: levels of the device's scan, 0 for the CPU's own; see RECORDED.
    ``scanned`` = cells_to_scan(torus)."""
    if qd.static(levels(depth) > 0):
        qd.algorithms.exclusive_scan_add(
            cells.count, cells.start, cells.partial, scanned, qd.i32, qd.static(levels(depth))
        )
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
def sort_cells(cells: Cells, position: Vectors, ids: Ints, n: qd.i32, depth: qd.template()):
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
        if qd.static(recorded(depth)):
            put_record(cells.sorted, place, position[i], qd.bit_cast(i, qd.f32))
        cells.count[cells.cell[i]] = 0  # for the next search


@qd.func
def _scan_run(
    first: qd.i32, last: qd.i32, place: qd.i32, already: qd.i32, i: qd.i32, reach2: qd.f32,
    cells: Cells, torus: Torus, out: NeighborList, form: ivec4, periodic: qd.template(),
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
            dx = axis_distance(cells.sorted_x[place], cells.sorted_x[k], 0, torus, periodic)
            dy = axis_distance(cells.sorted_y[place], cells.sorted_y[k], 1, torus, periodic)
            dz = axis_distance(cells.sorted_z[place], cells.sorted_z[k], 2, torus, periodic)
            near = dx * dx + dy * dy + dz * dz < reach2
            mask |= qd.select(near, qd.u32(1) << qd.cast(k - a, qd.u32), qd.u32(0))
        while mask != 0:
            lowest = mask & (~mask + qd.u32(1))
            k = a + 31 - qd.math.clz(qd.cast(lowest, qd.i32))
            mask ^= lowest
            if k != place:
                if found < form[0]:
                    enter(out, i, found, cells.order[k], form)
                found += 1
        a = end
    return found


@qd.func
def _write(out: NeighborList, i: qd.i32, k: qd.i32, j: qd.i32, form: ivec4, depth: qd.template()):
    """:func:`neighbors.enter`, shorter for lists of one piece."""
    if qd.static(torn(depth)):
        enter(out, i, k, j, form)
    else:
        out.index[i * form[1] + k * form[2]] = j


@qd.func
def _collect(
    k: qd.i32, j: qd.i32, i: qd.i32, basket: qd.template(), out: NeighborList, form: ivec4, depth: qd.template()
):
    """Neighbour j as the k-th of particle i. One beyond the list's width falls onto its last entry: the step is repeated with a
    longer list anyway.

    Threads find their k-th neighbours at different times. Written at once, each entry would be a line of the cache of its own;
    collected in ``basket`` [k, thread of 128], a block writes whole lines. What is too much for it is written at once."""
    if qd.static(0 < staged(depth) < BASKETS[-1]):
        basket[qd.min(k, qd.static(staged(depth) - 1)) * 128 + qd.simt.block.thread_idx()] = j
    elif qd.static(staged(depth) > 0):
        if k < qd.static(staged(depth)):
            basket[k * 128 + qd.simt.block.thread_idx()] = j
        else:
            _write(out, i, qd.min(k, form[0] - 1), j, form, depth)
    else:
        _write(out, i, qd.min(k, form[0] - 1), j, form, depth)


@qd.func
def _scan_records(
    first: qd.i32, last: qd.i32, place: qd.i32, before: ivec2, i: qd.i32, x: vec3, begin: qd.u64, reach2: qd.f32,
    cells: Cells, torus: Torus, out: NeighborList, form: ivec4, basket: qd.template(), periodic: qd.template(),
    depth: qd.template(),
) -> ivec2:  # fmt: skip
    """The same for GPUs: one load per candidate tells where it is and who, and hits are stored at once. Returns how many there
    are by now, and one of them that is at the very place of i (−1: nobody).

    Threads of a warp look at different candidates, so that somebody nearly always hits: what a hit costs is what counts.
    """
    found = before[0]
    twin = before[1]
    for batch in range(batches(last - first)):
        a = first + batch * qd.static(lanes())
        squares = qd.Vector([0.0 for _ in qd.static(range(lanes()))])
        names = qd.Vector([0 for _ in qd.static(range(lanes()))])
        for lane in qd.static(range(lanes())):  # all of them before the first store
            other = record_from(cells.sorted, begin, qd.min(a + lane, last - 1))
            d = separation(x, vector_of(other), torus, periodic)
            missing = qd.select(a + lane < last, qd.select(a + lane == place, 1, 0), 1)
            squares[lane] = qd.select(missing == 1, 1e30, d.dot(d))
            names[lane] = qd.bit_cast(other[3], qd.i32)
        for lane in qd.static(range(lanes())):
            if squares[lane] < reach2:
                _collect(found, names[lane], i, basket, out, form, depth)
                found += 1
                twin = qd.select(squares[lane] < 1e-12 * reach2, names[lane], twin)
    return ivec2(found, twin)


@qd.func
def coincident(a: qd.i32, b: qd.i32) -> vec3:
    """A direction for two particles at the same place, told from their ids; opposite for the two of them."""
    low = qd.cast(qd.min(a, b), qd.u32)
    high = qd.cast(qd.max(a, b), qd.u32)
    # Two rounds of integer mixing: any scrambling of the pair of ids will do.
    m = (low * qd.u32(0x9E3779B1)) ^ (high * qd.u32(0x85EBCA77))
    m = (m ^ (m >> 15)) * qd.u32(0xC2B2AE3D)
    x = qd.cast(m & 1023, qd.f32) - 511.5
    y = qd.cast((m >> 10) & 1023, qd.f32) - 511.5
    z = qd.cast((m >> 20) & 1023, qd.f32) - 511.5
    return qd.select(a < b, 1.0, -1.0) * vec3(x, y, z).normalized()


@qd.func
def _part(i: qd.i32, own: qd.i32, other: qd.i32, reach2: qd.f32, position: Vectors, origin: Vectors):
    """Particle i, at the very place of another (ids ``own`` and ``other``), is put a ten-thousandth of the reach beside it, the
    other likewise: passes that read records then need not ask every pair whether it has a direction. Where it began is moved
    along, so that no velocity comes of it."""
    x = position[i]
    visible = 1e-6 * qd.max(qd.abs(x[0]), qd.abs(x[1]), qd.abs(x[2]))  # some units in the last place
    way = qd.max(1e-4 * qd.sqrt(reach2), visible) * coincident(own, other)
    position[i] = x + way
    origin[i] = origin[i] + way


@qd.func
def _gap(x: qd.f32, side: qd.i32, axis: qd.template(), torus: Torus) -> qd.f32:
    """How far [m] x is at least from the cells on one side (−1, 1) of its own along an axis; 0 for its own (0)."""
    t = (x - torus.real[axis]) * torus.real[3 + axis]
    inside = t - qd.floor(t)
    gap = qd.select(side < 0, inside, 1.0 - inside) - 1e-3 - 1e-6 * qd.abs(t)  # more than rounding can be wrong by
    return qd.select(side == 0, 0.0, qd.max(gap, 0.0) / torus.real[3 + axis])


@qd.func
def _cells_back(x: qd.f32, far: qd.f32, torus: Torus) -> qd.i32:
    """Cells between that of coordinate x along the x-axis and the last one that may hold what is ``far`` [m] from it; negative
    distances look ahead. A little more than rounding can be wrong by."""
    t = (x - torus.real[0]) * torus.real[3]
    reach = qd.abs(far) * torus.real[3] + 1e-3 + 1e-6 * qd.abs(t)
    cells = qd.select(far > 0.0, qd.floor(t) - qd.floor(t - reach), qd.floor(t + reach) - qd.floor(t))
    return qd.cast(qd.max(qd.min(cells, 1.0e9), 0.0), qd.i32)


@qd.func(requires_top_level=True)
def list_neighbors(
    cells: Cells, torus: Torus, position: Vectors, origin: Vectors, ids: Ints, inverse_mass: Floats, n: qd.i32, reach2: Floats,
    out: NeighborList, periodic: qd.template(), depth: qd.template(),
):  # fmt: skip
    """Everybody closer than the reach (squared, m²), for fluid particles, those led by nozzles included.

    Runs over places, not indices: threads then walk through space in order. The cells of a row along x are one run of the
    sorted arrays, or two where the torus closes. A GPU leaves out rows and cells whose nearest point is too far: seven cells
    of 27 on average, and of cells that are sliced along x enough to look at 103 candidates instead of 143 for 28 neighbours.
    On a CPU, which looks at 16 candidates at once, asking takes longer than that.
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
            x = vec3(cells.sorted_x[place], cells.sorted_y[place], cells.sorted_z[place])
            begin = qd.u64(0)
            if qd.static(recorded(depth)):
                begin = begin_of(cells.sorted)
            form = form_of(out)
            within = reach2[0]
            hits = ivec2(0, -1)  # how many, and somebody at the very same place
            basket = qd.simt.block.SharedArray(qd.static(staged(depth) * 128), qd.i32) if qd.static(staged(depth) > 0) else 0
            for row in range(9):
                ry = _wrapped(cy + row % 3 - 1, dim_y)
                rz = _wrapped(cz + row // 3 - 1, dim_z)
                left = within
                if qd.static(recorded(depth) or lanes() > 1):
                    gap_y = _gap(x[1], row % 3 - 1, 1, torus)
                    gap_z = _gap(x[2], row // 3 - 1, 2, torus)
                    left -= gap_y * gap_y + gap_z * gap_z
                line = (rz * dim_y + ry) * dim_x
                if left > 0.0:
                    back = 1
                    ahead = 1
                    if qd.static(recorded(depth) or lanes() > 1):
                        far = qd.sqrt(left)
                        back = qd.min(_cells_back(x[0], far, torus), dim_x - 1)
                        ahead = qd.min(_cells_back(x[0], -far, torus), dim_x - 1 - back)
                    from_cell = line + qd.max(cx - back, 0)
                    to_cell = line + qd.min(cx + 1 + ahead, dim_x)
                    runs = qd.select(cx < back or cx + ahead >= dim_x, 2, 1)
                    for run in range(runs):
                        if run == 1:
                            to_cell = line + qd.select(cx < back, dim_x, cx + 1 + ahead - dim_x)
                            from_cell = line + qd.select(cx < back, dim_x + cx - back, 0)
                        first = cells.start[from_cell]
                        last = cells.start[to_cell]
                        if qd.static(recorded(depth)):
                            hits = _scan_records(
                                first, last, place, hits, i, x, begin, within, cells, torus, out, form, basket, periodic, depth
                            )
                        else:
                            hits[0] = _scan_run(first, last, place, hits[0], i, within, cells, torus, out, form, periodic)
            found = hits[0]
            count = qd.min(found, form[0])
            if qd.static(staged(depth) > 0):
                for k in range(qd.min(count, qd.static(staged(depth)))):
                    _write(out, i, k, basket[k * 128 + qd.simt.block.thread_idx()], form, depth)
            fill_up(out, i, count, form)
            out.count[i] = count
            if qd.static(parting(depth)):  # noqa: SIM102 (decided when compiled)
                if hits[1] >= 0:
                    _part(i, ids[i], ids[hits[1]], within, position, origin)
            if found > form[0]:
                qd.atomic_max(out.needed[0], found)
        else:
            out.count[i] = 0


@qd.func(requires_top_level=True)
def search(
    cells: Cells, torus: Torus, scanned: qd.i32, position: Vectors, origin: Vectors, ids: Ints, inverse_mass: Floats, n: qd.i32,
    reach2: Floats, out: NeighborList, periodic: qd.template(), depth: qd.template(),
):  # fmt: skip
    """n particles into cells, and the list of neighbours of those that move. ``origin``: where they began the step, see
    :func:`_part`."""
    count_cells(cells, torus, position, n)
    prefix_sum(cells, torus, scanned, depth)
    sort_cells(cells, position, ids, n, depth)
    list_neighbors(cells, torus, position, origin, ids, inverse_mass, n, reach2, out, periodic, depth)


@qd.kernel(graph=True, fastcache=True)
def sort_only(cells: Cells, torus: Torus, position: Vectors, ids: Ints, k: SearchNumbers, depth: qd.Template):
    n = k.count[0]
    scanned = cells_to_scan(torus)
    count_cells(cells, torus, position, n)
    prefix_sum(cells, torus, scanned, depth)
    sort_cells(cells, position, ids, n, depth)


@qd.kernel(graph=True, fastcache=True)
def find_neighbors(
    cells: Cells, torus: Torus, position: Vectors, origin: Vectors, ids: Ints, inverse_mass: Floats, k: SearchNumbers,
    out: NeighborList, periodic: qd.Template, depth: qd.Template,
):  # fmt: skip
    n = k.count[0]
    scanned = cells_to_scan(torus)
    search(cells, torus, scanned, position, origin, ids, inverse_mass, n, k.reach2, out, periodic, depth)
