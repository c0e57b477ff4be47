"""Making the neighbour list: particles into cells, and everybody within reach of each out of 27 cells (neighbors.py says why).

Cells, the order of particles in them and the scans live here; what passes read of a list is in neighbors.py.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Vectors, vec3
from viscoil.sph.depth import levels, parting, recorded, room, spills, staged, torn
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
    seat,
    separation,
)
from viscoil.sph.records import Records, begin_of, put_names, put_record, record_from, used, vector_of

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
    sorted_x: Floats  # [place] coordinates in that order [m], one array each: a CPU's search reads them in streams
    sorted_y: Floats
    sorted_z: Floats
    sorted: Records  # [place] coordinates and the bits of the index instead, where passes read records


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
    return (2 * torus.whole[4] + 1) * (2 * torus.whole[5] + 1) * (2 * torus.whole[6] + 1)


@qd.func
def cell_beside(x: vec3, which: qd.i32, torus: Torus) -> qd.i32:
    """One of these cells (``which``: 0 to cells_beside − 1) around x."""
    along = 2 * torus.whole[4] + 1
    across = 2 * torus.whole[5] + 1
    row = which // along
    cx = _wrapped(_coordinate(x[0], 0, torus) + which % along - torus.whole[4], torus.whole[0])
    cy = _wrapped(_coordinate(x[1], 1, torus) + row % across - torus.whole[5], torus.whole[1])
    cz = _wrapped(_coordinate(x[2], 2, torus) + row // across - torus.whole[6], torus.whole[2])
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
        if qd.static(recorded(depth)):
            put_record(cells.sorted, place, position[i], qd.bit_cast(i, qd.f32))
        else:
            cells.sorted_x[place] = position[i][0]
            cells.sorted_y[place] = position[i][1]
            cells.sorted_z[place] = position[i][2]
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
        out.index[seat(i * form[1], form[2], k)] = j


@qd.func
def _scan_records(
    first: qd.i32, last: qd.i32, place: qd.i32, before: ivec2, i: qd.i32, x: vec3, begin: qd.u64, reach2: qd.f32,
    cells: Cells, torus: Torus, out: NeighborList, form: ivec4, basket: qd.template(), periodic: qd.template(),
    depth: qd.template(),
) -> ivec2:  # fmt: skip
    """The same for GPUs: one load per candidate tells where it is and who, and hits are stored at once. Returns how many there
    are by now, and one of them that is at the very place of i (−1: nobody).

    Threads find their k-th neighbours at different times. Written at once, each entry would be a line of the cache of its own;
    collected in ``basket`` [k, thread of 128], a block writes whole lines. What is too much for the list falls onto its end:
    the step is repeated with a longer list anyway. Threads of a warp look at different candidates, so that somebody nearly
    always hits, and all wait: what an entry, and a candidate, costs in instructions is what counts. Up to SPARE records behind
    ``last`` are read, and nobody asks who they are.
    """
    found = before[0]
    twin = before[1]
    a = first
    while a < last:
        squares = qd.Vector([0.0 for _ in qd.static(range(lanes()))])
        names = qd.Vector([0 for _ in qd.static(range(lanes()))])
        nearest = reach2
        for lane in qd.static(range(lanes())):  # all of them before the first store
            other = record_from(begin, a, lane)
            d = separation(x, vector_of(other), torus, periodic)
            squares[lane] = d.dot(d)
            names[lane] = qd.bit_cast(other[3], qd.i32)
            nearest = qd.min(nearest, squares[lane])
        if qd.static(staged(depth) > 0):
            top = qd.min(found, qd.static(staged(depth))) * 128 + qd.simt.block.thread_idx()
            for lane in qd.static(range(lanes())):  # the next one overwrites who is no neighbour: nobody waits
                basket[top] = names[lane]
                if (squares[lane] < reach2) & (lane < last - a) & (lane != place - a):
                    top += 128
                    found += 1
            if qd.static(spills(depth)):  # noqa: SIM102 (decided when compiled)
                if found > qd.static(staged(depth)):  # seldom, and all of them anew: the loop above stays what it is
                    _spill(found, squares, names, reach2, last - a, place - a, i, out, form, depth)
        else:
            for lane in qd.static(range(lanes())):
                if (squares[lane] < reach2) & (lane < last - a) & (lane != place - a):
                    _write(out, i, qd.min(found, form[0] - 1), names[lane], form, depth)
                    found += 1
        if nearest < 1e-12 * reach2:  # i itself, once, and seldom others
            for lane in qd.static(range(lanes())):
                if (squares[lane] < 1e-12 * reach2) & (lane < last - a) & (lane != place - a):
                    twin = names[lane]
        a += qd.static(lanes())
    return ivec2(found, twin)


@qd.func
def _spill(
    found: qd.i32, squares, names, reach2: qd.f32, number: qd.i32, own: qd.i32, i: qd.i32, out: NeighborList, form: ivec4,
    depth: qd.template(),
):  # fmt: skip
    """Neighbours among the last candidates that have no room in the basket go into the list. ``found``: with them; ``number``
    of candidates, of whom ``own`` is i."""
    at = found
    for back in qd.static(range(lanes())):
        lane = qd.static(lanes() - 1 - back)
        if (squares[lane] < reach2) & (lane < number) & (lane != own):
            at -= 1
            if at >= qd.static(staged(depth)):
                _write(out, i, qd.min(at, form[0] - 1), names[lane], form, depth)


@qd.func
def _hand_in(
    found: qd.i32, i: qd.i32, basket: qd.template(), out: NeighborList, form: ivec4, depth: qd.template()
):  # fmt: skip
    """What was collected becomes the list of i, filled up with i itself to a whole batch, as fill_up does; or is told to be too
    much for it."""
    count = qd.min(found, form[0])
    if qd.static(staged(depth) > 0):
        kept = qd.min(count, qd.static(staged(depth)))
        begin = out.address[0]
        for batch in range(batches(kept)):
            four = qd.Vector([0 for _ in qd.static(range(lanes()))])
            for lane in qd.static(range(lanes())):
                k = batch * qd.static(lanes()) + lane
                j = basket[k * 128 + qd.simt.block.thread_idx()]
                four[lane] = qd.select(k < kept, j, i)
            if qd.static(used() and not torn(depth)):
                put_names(begin + qd.cast(i + batch * form[2], qd.u64) * qd.u64(16), four)
            else:
                for lane in qd.static(range(lanes())):
                    _write(out, i, batch * qd.static(lanes()) + lane, four[lane], form, depth)
        if qd.static(spills(depth)):  # noqa: SIM102 (decided when compiled)
            if count > kept:
                fill_up(out, i, count, form)
    else:
        fill_up(out, i, count, form)
    out.count[i] = count
    if found > form[0]:
        qd.atomic_max(out.needed[0], found)


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
def _gap(inside: qd.f32, side: qd.i32, slack: qd.f32, size: qd.f32) -> qd.f32:
    """How far [m] somebody is at least from the cells ``side`` beyond its own along an axis (0: its own), who is ``inside`` its
    own by a share of its ``size``; ``slack``: see :func:`_slack`."""
    beyond = qd.cast(qd.abs(side), qd.f32) - qd.select(side < 0, 1.0 - inside, inside)
    return qd.select(side == 0, 0.0, qd.max(beyond - slack, 0.0) * size)


@qd.func
def _slack(cells: qd.f32) -> qd.f32:
    """More than rounding can be wrong by where coordinates are so many cells from the origin, in cells."""
    return 1e-3 + 1e-6 * qd.abs(cells)


@qd.func(requires_top_level=True)
def list_neighbors(
    cells: Cells, torus: Torus, position: Vectors, origin: Vectors, ids: Ints, inverse_mass: Floats, n: qd.i32, reach2: Floats,
    out: NeighborList, periodic: qd.template(), depth: qd.template(),
):  # fmt: skip
    """Everybody closer than the reach (squared, m²), for fluid particles, those led by nozzles included.

    Runs over places, not indices: threads then walk through space in order. The cells of a row along x are one run of the
    sorted arrays, or two where the torus closes. A GPU leaves out rows and cells whose nearest point is too far: seven cells
    of 27 on average, and of cells that are sliced more of them (search.SLICES). On a CPU, which looks at 16 candidates at once,
    asking takes longer than that.
    """
    for place in range(n):
        i = cells.order[place]
        if inverse_mass[i] != 0.0:
            dim_x = torus.whole[0]
            dim_y = torus.whole[1]
            dim_z = torus.whole[2]
            side_y = torus.whole[5]
            side_z = torus.whole[6]
            c = cells.cell[i]
            cx = c % dim_x
            cy = (c // dim_x) % dim_y
            cz = c // (dim_x * dim_y)
            begin = qd.u64(0)
            x = vec3(0.0)
            if qd.static(recorded(depth)):
                begin = begin_of(cells.sorted)
                x = vector_of(record_from(begin, place))
            else:
                x = vec3(cells.sorted_x[place], cells.sorted_y[place], cells.sorted_z[place])
            per_metre = vec3(torus.real[3], torus.real[4], torus.real[5])
            at = (x - vec3(torus.real[0], torus.real[1], torus.real[2])) * per_metre
            inside = at - qd.floor(at)
            slack = vec3(_slack(at[0]), _slack(at[1]), _slack(at[2]))
            size = 1.0 / per_metre
            form = form_of(out)
            within = reach2[0]
            hits = ivec2(0, -1)  # how many, and somebody at the very same place
            basket = qd.simt.block.SharedArray(qd.static(room(depth)), qd.i32) if qd.static(staged(depth) > 0) else 0
            for dz in range(-side_z, side_z + 1):
                gap_z = _gap(inside[2], dz, slack[2], size[2])
                layer = _wrapped(cz + dz, dim_z) * dim_y
                for dy in range(-side_y, side_y + 1):
                    left = within
                    if qd.static(recorded(depth) or lanes() > 1):
                        gap_y = _gap(inside[1], dy, slack[1], size[1])
                        left -= gap_y * gap_y + gap_z * gap_z
                    if left > 0.0:
                        line = (layer + _wrapped(cy + dy, dim_y)) * dim_x
                        back = 1
                        ahead = 1
                        if qd.static(recorded(depth) or lanes() > 1):
                            far = qd.min(left * qd.rsqrt(left) * per_metre[0] + slack[0], 1e9)
                            back = qd.min(qd.cast(far - inside[0] + 1.0, qd.i32), dim_x - 1)
                            ahead = qd.min(qd.cast(far + inside[0], qd.i32), dim_x - 1 - back)
                        from_cell = line + qd.max(cx - back, 0)
                        to_cell = line + qd.min(cx + 1 + ahead, dim_x)
                        runs = qd.select((cx < back) | (cx + ahead >= dim_x), 2, 1)
                        for run in range(runs):
                            if run == 1:
                                to_cell = line + qd.select(cx < back, dim_x, cx + 1 + ahead - dim_x)
                                from_cell = line + qd.select(cx < back, dim_x + cx - back, 0)
                            first = cells.start[from_cell]
                            last = cells.start[to_cell]
                            if qd.static(recorded(depth)):
                                hits = _scan_records(
                                    first, last, place, hits, i, x, begin, within, cells, torus, out, form, basket, periodic,
                                    depth,
                                )  # fmt: skip
                            else:
                                hits[0] = _scan_run(
                                    first, last, place, hits[0], i, within, cells, torus, out, form, periodic
                                )
            _hand_in(hits[0], i, basket, out, form, depth)
            if qd.static(parting(depth)):  # noqa: SIM102 (decided when compiled)
                if hits[1] >= 0:
                    _part(i, ids[i], ids[hits[1]], within, position, origin)
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
