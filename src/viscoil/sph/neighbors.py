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

import quadrants as qd

from viscoil import backend
from viscoil.particles import Floats, Ints, vec3
from viscoil.sph.records import Words, names_at, used

ivec4 = qd.types.vector(4, qd.i32)


@dataclass(frozen=True)
class Torus:
    """Where the cells lie. Small device arrays, so that a change costs no recompilation."""

    real: Floats  # origin [m] (3), cells per metre (3), period [m] (3; 0 = unbounded axis)
    whole: Ints  # cells per axis (3), cells in all, slices: cells along each axis as long as the search reaches (3)


@dataclass(frozen=True)
class NeighborList:
    """Neighbours of particle i are ``index[seat(i * row, column, k)]`` for k < count[i].

    Rows are contiguous on CPUs (column = 1). On GPUs (row = 1) four neighbours of a particle lie together, those of the next
    particle beside them: one load takes all four, and the threads of a warp read whole lines. Steps and width are one-element
    arrays.

    No array can have 2³¹ elements. On a GPU a list that needs more goes on in ``more`` and ``most`` after ``split`` columns
    each: :func:`fetch` and :func:`entry` know, and who reads ``index`` itself can only have lists of one piece.
    """

    count: Ints
    index: Ints
    more: Ints
    most: Ints
    split: Ints
    needed: Ints  # [1] most neighbours any particle had: larger than width = overflow
    row: Ints
    column: Ints
    width: Ints  # longest list there is room for
    address: Words  # of ``index`` on the device, where records are read as a whole


@qd.func
def axis_distance(a: qd.f32, b: qd.f32, axis: qd.template(), torus: Torus, periodic: qd.template()) -> qd.f32:
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
        axis_distance(a[0], b[0], 0, torus, periodic),
        axis_distance(a[1], b[1], 1, torus, periodic),
        axis_distance(a[2], b[2], 2, torus, periodic),
    )


def lanes() -> int:
    """Neighbours a loop fetches together.

    A GPU waits long for each; four at a time take little longer than one, which is what small scenes are bound by. On a CPU
    the compiler makes vector instructions of the plain loop instead.
    """
    return 4 if backend.current().is_gpu else 1


@qd.func
def seat(base: qd.i32, column: qd.i32, k: qd.i32) -> qd.i32:
    """Where entry k of a particle's list is, in a list of one piece; ``base``: its number times the list's row. The same holds
    for all that has an element per entry."""
    at = base + k * column
    if qd.static(lanes() > 1):
        at = qd.static(lanes()) * (base + (k >> 2) * column) + (k & 3)
    return at


@qd.func
def _four(index: Ints, at: qd.i32):
    """Four entries that lie together: the ``at``-th four."""
    return qd.Vector([index[4 * at + lane] for lane in qd.static(range(4))])


@qd.func
def batches(count: qd.i32) -> qd.i32:
    """Fetches that ``count`` neighbours take."""
    return (count + qd.static(lanes() - 1)) // qd.static(lanes())


@qd.func
def fetch(near: NeighborList, i: qd.i32, batch: qd.i32, torn: qd.template() = True):
    """Indices of the neighbours ``batch * lanes()`` and following of particle i; i itself where there are no more.

    Particle i is never listed as its own neighbour, and most terms of a sum vanish at distance zero by themselves. Lists are
    filled up with it to whole batches (:func:`fill_up`), so that nobody has to ask here.
    ``torn``: whether the list may have several pieces. Where it cannot, its address need not be looked up in every turn.
    """
    first = batch * qd.static(lanes())
    found = qd.Vector([0 for _ in qd.static(range(lanes()))])
    if qd.static(lanes() > 1):
        column = near.column[0]
        if qd.static(torn):
            split = near.split[0]  # whole batches
            if first < split:
                found = _first_piece(near, i + batch * column)
            elif first < 2 * split:
                found = _four(near.more, i + (batch - (split >> 2)) * column)
            else:
                found = _four(near.most, i + (batch - (split >> 1)) * column)
        else:
            found = _first_piece(near, i + batch * column)
    else:
        found[0] = near.index[i * near.row[0] + first * near.column[0]]
    return found


@qd.func
def _first_piece(near: NeighborList, at: qd.i32):
    """:func:`_four` of ``index``, by one load where there is one for it."""
    found = qd.Vector([0 for _ in qd.static(range(4))])
    if qd.static(used()):
        found = names_at(near.address[0] + qd.cast(at, qd.u64) * qd.u64(16))
    else:
        found = _four(near.index, at)
    return found


# --- teams: several threads of a GPU for one particle -------------------------------------------------------------------
@qd.func
def turns(count: qd.i32, team: qd.template()) -> qd.i32:
    """Fetches that each member of a team takes for ``count`` neighbours."""
    return (count + qd.static(lanes() * team - 1)) // qd.static(lanes() * team)


@qd.func
def fetch_share(
    near: NeighborList, i: qd.i32, count: qd.i32, turn: qd.i32, member: qd.i32, team: qd.template(), torn: qd.template() = True
):
    """What a member of a team fetches in its turn; i itself where there are no more. A team of one: :func:`fetch`."""
    batch = turn
    if qd.static(team > 1):
        batch = turn * team + member
        batch = qd.select(batch * qd.static(lanes()) < count, batch, 0)
    found = fetch(near, i, batch, torn)
    if qd.static(team > 1):  # noqa: SIM102 (decided when compiled)
        if turn * team + member != batch:
            for lane in qd.static(range(lanes())):
                found[lane] = i
    return found


@qd.func
def fetch_first(near: NeighborList, i: qd.i32, count: qd.i32, member: qd.i32, team: qd.template()):
    """:func:`fetch_share` of the first turn, from a list of one piece; i itself where there is none.

    It has to differ from a plain load: the compiler would else move what :func:`fetch_next` loads into the next turn."""
    found = fetch_share(near, i, count, 0, member, team, False)
    for lane in qd.static(range(lanes())):
        found[lane] = qd.select(count > 0, found[lane], i)
    return found


@qd.func
def fetch_next(near: NeighborList, i: qd.i32, count: qd.i32, turn: qd.i32, member: qd.i32, team: qd.template()):
    """:func:`fetch_share` of the turn after ``turn``, or of that one again if it is the last, from a list of one piece.

    Fetched before the neighbours of this turn are used: a GPU then waits for names and for places at the same time, not for
    one after the other."""
    return fetch_share(near, i, count, qd.min(turn + 1, turns(count, team) - 1), member, team, False)


@qd.func
def team_sum(value: qd.f32, team: qd.template()) -> qd.f32:
    """Sum over the members of a team, in all of them, in a fixed order. All threads of a warp have to come here."""
    total = value
    for step in qd.static(range(team.bit_length() - 1)):
        total += qd.simt.subgroup.shuffle_xor(total, qd.u32(qd.static(1 << step)))
    return total


@qd.func
def team_vector(value: vec3, team: qd.template()) -> vec3:
    """:func:`team_sum` of three components."""
    return vec3(team_sum(value[0], team), team_sum(value[1], team), team_sum(value[2], team))


@qd.func
def entry(near: NeighborList, i: qd.i32, k: qd.i32) -> qd.i32:
    """The k-th neighbour of particle i, whichever piece of the list it is in."""
    j = 0
    if qd.static(lanes() > 1):
        split = near.split[0]
        if k < split:
            j = near.index[seat(i, near.column[0], k)]
        elif k < 2 * split:
            j = near.more[seat(i, near.column[0], k - split)]
        else:
            j = near.most[seat(i, near.column[0], k - 2 * split)]
    else:
        j = near.index[i * near.row[0] + k * near.column[0]]
    return j


@qd.func
def enter(out: NeighborList, i: qd.i32, k: qd.i32, j: qd.i32, form: ivec4):
    """Writes what :func:`entry` reads. The list's width, row, column and split are handed over: after a store they would be
    read again."""
    if qd.static(lanes() > 1):
        if k < form[3]:
            out.index[seat(i, form[2], k)] = j
        elif k < 2 * form[3]:
            out.more[seat(i, form[2], k - form[3])] = j
        else:
            out.most[seat(i, form[2], k - 2 * form[3])] = j
    else:
        out.index[i * form[1] + k * form[2]] = j


@qd.func
def fill_up(out: NeighborList, i: qd.i32, count: qd.i32, form: ivec4):
    """Particle i itself behind its ``count`` neighbours, up to a whole batch: see :func:`fetch`. Widths are whole batches."""
    if qd.static(lanes() > 1):
        for k in range(count, batches(count) * qd.static(lanes())):
            enter(out, i, k, i, form)


@qd.func
def form_of(near: NeighborList) -> ivec4:
    """Width, row, column and split of a list."""
    return ivec4(near.width[0], near.row[0], near.column[0], near.split[0])


