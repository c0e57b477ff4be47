"""Springs between particles, with rest lengths that flow (Clavet et al. 2005, sections 5.1 and 5.2, Algorithms 3 and 4).

    D = Δt² k (1 − L/h)(L − r) r̂_ij                       j moves by +D/2, i by −D/2
    L ← L + Δt α sign(r − L) max(0, |r − L| − γL)          eqs. 7 (γ = 0) and 8; α, γ differ for stretching and compression

Every particle has a row of springs: the other's id and the length at rest. In sweeps a spring is held by the end with the
smaller id. Where all springs act at once (springs_at_once.py) both ends hold it and work out its new length from the same
numbers, so they agree to the last bit and nobody has to be told. Rows name others by id and travel with the particles
(carried.py): sorting, emission, removal and restarts do not touch them, and springs longer than the neighbour list
reaches live on.

A pair that comes within h gets a spring of length h, and a spring that grows longer than h is gone. At L = h a spring
does nothing, and unless it can shrink it stays so: a pair without a spring is a pair with one of length h. Hence springs are
kept in memory only while L < h; that is Algorithm 4 exactly, with fewer springs. Printed, that algorithm changes the
lengths of close pairs only, where no spring could ever grow beyond h; here all springs flow.

Which listed pairs still lack a spring is seen from a fingerprint: a sum over the indices of close neighbours and one over
those of close springs. Where they agree, nothing is new, and nobody needs to be looked for.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.carried import Carried
from viscoil.particles import Floats, Ints, Particles, Vectors, allocate_array, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, seat, separation
from viscoil.sph.pairs import displace, share_of, unit
from viscoil.sph.schedule import Schedule, apart, block_of, in_turn, rows, run_of, sweepers, take, tasks

FIRST_WIDTH = 60  # places per particle to begin with; rows grow when one is full
SHORT = 0.01  # of h: the shortest length at rest


@dataclass(frozen=True)
class SpringRows:
    """Springs by particle: place a of particle i is element i·row + a·column; used places come first."""

    partner: Ints  # id of the other
    rest: Floats  # L [m]
    number: Ints  # [particle] places used
    other: Ints  # index of the other; −2 − index where it is too far for a sweep
    known: Ints  # [1] 1: other is right already, nobody has moved in memory since the last step
    row: Ints
    column: Ints
    width: Ints  # [1] places per particle
    needed: Ints  # [1] most places any particle wanted


@dataclass(frozen=True)
class Plasticity:
    """How springs behave, by material of the ends."""

    support: Floats  # [1] h [m]
    stiffness: Floats  # [material] k Δt² [1]
    stretch: Floats  # [material] share of an excess length that flows in this step
    compress: Floats  # [material]
    stretch_yield: Floats  # [material] γ
    compress_yield: Floats  # [material]


def carried_springs(striped: bool) -> dict[str, Carried]:
    """What a world carries along for a method with springs."""
    return {
        "partner": Carried(qd.i32, FIRST_WIDTH, -1, striped=striped),
        "rest": Carried(qd.f32, FIRST_WIDTH, 0, striped=striped),
        "number": Carried(qd.i32, 1, 0),
    }


@qd.func
def stiffness_of(i: qd.i32, j: qd.i32, p: Particles, c: Plasticity, single: qd.template()) -> qd.f32:
    """k Δt² of a pair."""
    result = c.stiffness[0]
    if qd.static(not single):
        result = qd.min(c.stiffness[qd.max(p.material[i], 0)], c.stiffness[qd.max(p.material[j], 0)])
    return result


@qd.func
def pair_of(i: qd.i32, j: qd.i32, p: Particles, c: Plasticity, single: qd.template()):
    """(k Δt², flow when stretched, when compressed, yield when stretched, when compressed): the weaker of two materials."""
    a = 0
    b = 0
    if qd.static(not single):
        a = qd.max(p.material[i], 0)
        b = qd.max(p.material[j], 0)
    return (
        stiffness_of(i, j, p, c, single), qd.max(c.stretch[a], c.stretch[b]), qd.max(c.compress[a], c.compress[b]),
        qd.min(c.stretch_yield[a], c.stretch_yield[b]), qd.min(c.compress_yield[a], c.compress_yield[b]),
    )  # fmt: skip


@qd.func
def flowed_length(
    rest: qd.f32, r: qd.f32, stretch: qd.f32, compress: qd.f32, stretch_yield: qd.f32, compress_yield: qd.f32
) -> qd.f32:
    """Rest length after a step in which the spring was r long (eqs. 7 and 8); without a branch, which nobody could predict."""
    longer = qd.max(r - rest - stretch_yield * rest, 0.0)
    shorter = qd.max(rest - r - compress_yield * rest, 0.0)
    return rest + stretch * longer - compress * shorter


@qd.func
def tag(number: qd.i32) -> qd.i32:
    """An id's part of a fingerprint; sums of them may overflow."""
    u = qd.cast(number + 1, qd.u32) * qd.u32(0x9E3779B1)  # + 1: nobody's part is zero
    return qd.cast(u ^ (u >> qd.u32(15)), qd.i32)


@qd.func
def index_of(at: qd.i32, known: qd.i32, springs: SpringRows, where: Ints) -> qd.i32:
    """Index of the other end of the spring at a place, −1 when it is gone. ``known``: springs.known[0]."""
    j = 0
    if known == 1:
        j = springs.other[at]
        j = qd.select(j < -1, -2 - j, j)
    else:
        j = where[springs.partner[at]]
    return j


@qd.func
def _keep(
    i: qd.i32, p: Particles, x: Vectors, bins: Vectors, torus: Torus, c: Plasticity, springs: SpringRows, where: Ints,
    reach: qd.f32, drift: Ints, single: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lets the springs of particle i flow and drops those that grew too long: (springs left, fingerprint of close ones, number
    of those that are too long for a sweep)."""
    h = c.support[0]
    xi = x[i]
    kept = 0
    mark = 0
    far = 0.0
    base = i * springs.row[0]
    column = springs.column[0]
    known = springs.known[0]
    slack = 2.0 * qd.bit_cast(drift[0], qd.f32)
    stiff, stretch, compress, stretch_yield, compress_yield = pair_of(i, i, p, c, single)
    for a in range(springs.number[i]):
        j = index_of(base + a * column, known, springs, where)
        if j >= 0:
            r = separation(x[j], xi, torus, periodic).norm()
            if qd.static(not single):
                stiff, stretch, compress, stretch_yield, compress_yield = pair_of(i, j, p, c, single)
            rest = flowed_length(springs.rest[base + a * column], r, stretch, compress, stretch_yield, compress_yield)
            if rest < h:
                at = base + kept * column
                if kept < a:
                    springs.partner[at] = springs.partner[base + a * column]
                springs.rest[at] = qd.max(rest, 0.01 * h)  # SHORT
                index = j
                if r + slack >= reach and separation(bins[j], bins[i], torus, periodic).norm_sqr() >= reach * reach:
                    index = -2 - j
                    far += 1.0
                springs.other[at] = index
                kept += 1
                closest = qd.select(compress * stiff > 0.0, (1.0 - compress_yield) * h, 0.0)
                mark += qd.select(r < closest, tag(j), 0)
    return kept, mark, far


@qd.func
def wanted(i: qd.i32, j: qd.i32, p: Particles, both: qd.template(), uniform: qd.template()) -> qd.i32:
    """Whether particle i is to hold a spring with j, were they close."""
    result = 1
    if qd.static(not both):
        result = qd.select(p.id[j] > p.id[i], 1, 0)
    if qd.static(not uniform):
        result = qd.select(p.inverse_mass[j] != 0.0, result, 0)
    return result


@qd.func
def add_new(
    i: qd.i32, kept: qd.i32, p: Particles, x: Vectors, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows,
    single: qd.template(), both: qd.template(), uniform: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """Springs of particle i to close neighbours that have none; how many there are by then, which may be too many."""
    h = c.support[0]
    number = kept
    base = i * springs.row[0]
    column = springs.column[0]
    for k in range(near.count[i]):
        j = near.index[seat(i * near.row[0], near.column[0], k)]
        r = separation(x[j], x[i], torus, periodic).norm()
        if r < h and wanted(i, j, p, both, uniform) == 1:
            stiff, _, compress, _, compress_yield = pair_of(i, j, p, c, single)
            rest = flowed_length(h, r, 0.0, compress, 0.0, compress_yield)
            if rest < h and stiff > 0.0:
                name = p.id[j]
                known = 0
                for a in range(kept):
                    known |= qd.select(springs.partner[base + a * column] == name, 1, 0)
                if known == 0:
                    if number < springs.width[0]:
                        at = base + number * column
                        springs.partner[at] = name
                        springs.rest[at] = qd.max(rest, 0.01 * h)  # SHORT
                        springs.other[at] = j
                    number += 1
    return number


@qd.func
def close_mark(
    i: qd.i32, p: Particles, x: Vectors, near: NeighborList, torus: Torus, c: Plasticity, single: qd.template(),
    both: qd.template(), uniform: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """Fingerprint of the neighbours particle i should have a spring with."""
    xi = x[i]
    mark = 0
    closest = qd.select(c.compress[0] * c.stiffness[0] > 0.0, (1.0 - c.compress_yield[0]) * c.support[0], 0.0)
    count = near.count[i]
    for batch in range(batches(count)):
        found = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            j = found[lane]
            r2 = separation(x[j], xi, torus, periodic).norm_sqr()
            if qd.static(not single):
                stiff, _, compress, _, compress_yield = pair_of(i, j, p, c, single)
                closest = qd.select(compress * stiff > 0.0, (1.0 - compress_yield) * c.support[0], 0.0)
            part = wanted(i, j, p, both, uniform) * qd.select(r2 < closest * closest, tag(j), 0)
            if qd.static(lanes() > 1):
                part = qd.select(j == i, 0, part)
            mark += part
    return mark


@qd.func
def begin_new(
    i: qd.i32, kept: qd.i32, mark: qd.i32, p: Particles, x: Vectors, near: NeighborList, torus: Torus, c: Plasticity,
    springs: SpringRows, single: qd.template(), both: qd.template(), uniform: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """Springs of particle i after those began that its close neighbours lack; ``mark``: fingerprint of those that do not."""
    number = kept
    if close_mark(i, p, x, near, torus, c, single, both, uniform, periodic) != mark:
        number = add_new(i, kept, p, x, near, torus, c, springs, single, both, uniform, periodic)
        if number > springs.width[0]:
            qd.atomic_max(springs.needed[0], number)
            number = springs.width[0]
    return number


@qd.func(requires_top_level=True)
def adjust(
    p: Particles, x: Vectors, bins: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows,
    where: Ints, reach: qd.f32, drift: Ints, load: Floats, single: qd.template(), growing: qd.template(),
    uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 4 at positions x, for sweeps: lengths flow, springs end, springs begin.

    ``bins``: where cells and lists were made; springs between particles that were farther apart there than ``reach`` [m] are
    told apart, and load_i counts them. ``drift``: bits of the farthest that x is from bins [m]. ``growing``: whether any pair
    can get a spring at all.
    """
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            kept, mark, far = _keep(i, p, x, bins, torus, c, springs, where, reach, drift, single, periodic)
            if qd.static(growing):
                kept = begin_new(i, kept, mark, p, x, near, torus, c, springs, single, False, uniform, periodic)
            springs.number[i] = kept
            load[i] = far


@qd.func
def pull_of(i: qd.i32, j: qd.i32, d: vec3, rest: qd.f32, stiffness: qd.f32, h: qd.f32, p: Particles) -> vec3:
    """D of a spring (Algorithm 3) from i to j, which are d apart."""
    r2 = d.dot(d)
    stiff = stiffness * qd.max(1.0 - rest / h, 0.0)
    result = (stiff * rest * qd.rsqrt(qd.max(r2, 1e-30)) - stiff) * d
    if r2 < 1e-24:
        result = stiff * rest * unit(d, 0.0, p.id[i], p.id[j])
    return result


@qd.func
def _spring(
    i: qd.i32, at: qd.i32, h: qd.f32, stiffness: qd.f32, far: qd.template(), p: Particles, x: Vectors, shift: Vectors,
    torus: Torus, c: Plasticity, springs: SpringRows, single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 3 for one spring, both ends at once; ``far``: if it is one that a parallel sweep leaves out."""
    j = springs.other[at]
    if qd.static(far):
        j = -2 - j
    if j >= 0:
        k = stiffness
        if qd.static(not single):
            k = stiffness_of(i, j, p, c, single)
        push = pull_of(i, j, separation(x[j], x[i], torus, periodic), springs.rest[at], k, h, p)
        if qd.static(uniform):
            displace(i, -0.5 * push, x, shift)
            displace(j, 0.5 * push, x, shift)
        else:
            displace(i, -share_of(p.inverse_mass[i], p.inverse_mass[j]) * push, x, shift)
            displace(j, share_of(p.inverse_mass[j], p.inverse_mass[i]) * push, x, shift)


@qd.func
def _spring_block(
    task: qd.i32, schedule: Schedule, p: Particles, x: Vectors, shift: Vectors, torus: Torus, c: Plasticity,
    springs: SpringRows, single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 3 for the springs of the particles of a block, one by one.

    The springs of one particle wait for each other, because each starts from where the one before has moved it. Four particles
    take turns, so that a core has something to do meanwhile: another order, as good as any.
    """
    block = block_of(task, schedule)
    h = c.support[0]
    stiffness = c.stiffness[0]
    column = springs.column[0]
    for row in range(rows(block)):
        first, last = run_of(block, row, schedule)
        quarters = (last - first + 3) // 4
        for number_of_quarter in range(quarters):
            quarter = in_turn(number_of_quarter, 0, quarters, schedule)
            who = qd.Vector([-1, -1, -1, -1])
            number = qd.Vector([0, 0, 0, 0])
            base = qd.Vector([0, 0, 0, 0])
            for lane in qd.static(range(4)):
                place = first + 4 * quarter + in_turn(lane, 0, 4, schedule)
                who[lane] = qd.select(place < last, schedule.order[qd.min(place, last - 1)], -1)
                number[lane] = qd.select(who[lane] >= 0, springs.number[qd.max(who[lane], 0)], 0)
                base[lane] = who[lane] * springs.row[0]
            most = number.max()
            for number_of_spring in range(most):
                a = in_turn(number_of_spring, 0, most, schedule)
                for lane in qd.static(range(4)):
                    if a < number[lane]:
                        _spring(
                            who[lane], base[lane] + a * column, h, stiffness, False, p, x, shift, torus, c, springs,
                            single, uniform, periodic,
                        )  # fmt: skip

@qd.func(requires_top_level=True)
def spring_colour(
    schedule: Schedule, p: Particles, x: Vectors, shift: Vectors, torus: Torus, c: Plasticity, springs: SpringRows,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 3 for the blocks of one colour, in parallel."""
    for w in range(qd.static(sweepers() * apart())):
        if w % qd.static(apart()) == 0:
            task = take(schedule)
            while task < tasks(schedule):
                _spring_block(task, schedule, p, x, shift, torus, c, springs, single, uniform, periodic)
                task = take(schedule)


@qd.func(requires_top_level=True)
def far_springs(
    p: Particles, x: Vectors, shift: Vectors, number: qd.i32, schedule: Schedule, torus: Torus, c: Plasticity,
    springs: SpringRows, load: Floats, single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 3 for springs between particles too far apart for a parallel sweep, one by one; there are few."""
    for _ in range(1):
        for place in range(number):
            i = schedule.order[in_turn(place, 0, number, schedule)]
            if i >= 0 and load[qd.max(i, 0)] > 0.0:
                for a in range(springs.number[i]):
                    at = i * springs.row[0] + in_turn(a, 0, springs.number[i], schedule) * springs.column[0]
                    _spring(
                        i, at, c.support[0], c.stiffness[0], True, p, x, shift, torus, c, springs, single, uniform, periodic
                    )


@qd.kernel(fastcache=True)
def freeze_kernel(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows, single: qd.Template,
    both: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Every pair closer than h gets a spring of its present length; all other springs end."""
    for i in range(n):
        number = 0
        if p.inverse_mass[i] != 0.0:
            for k in range(near.count[i]):
                j = near.index[seat(i * near.row[0], near.column[0], k)]
                r = separation(p.position[j], p.position[i], torus, periodic).norm()
                stiff = stiffness_of(i, j, p, c, single)
                if r < c.support[0] and stiff > 0.0 and wanted(i, j, p, both, False) == 1:
                    if number < springs.width[0]:
                        at = i * springs.row[0] + number * springs.column[0]
                        springs.partner[at] = p.id[j]
                        springs.rest[at] = qd.max(r, 0.01 * c.support[0])  # SHORT
                    number += 1
        if number > springs.width[0]:
            qd.atomic_max(springs.needed[0], number)
            number = springs.width[0]
        springs.number[i] = number


@qd.kernel(fastcache=True)
def _sum_rows(number: Ints, weight: Floats, n: qd.i32, sums: Vectors):
    """Of every 256 particles: places used, particles that use any, and the sum of their weights."""
    for chunk in range((n + 255) // 256):
        total = 0  # of 256 rows: a single can hold that without rounding
        some = 0
        heavy = 0.0
        for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
            total += number[i]
            some += qd.select(number[i] > 0, 1, 0)
            heavy += qd.select(number[i] > 0, weight[i], 0.0)
        sums[chunk] = vec3(qd.cast(total, qd.f32), qd.cast(some, qd.f32), heavy)


class RowSums:
    """Sums over the rows of a world, on the device: a million particles would take longer to come to the host than a step."""

    def __init__(self, capacity: int):
        self._sums = allocate_array(vec3, capacity // 256 + 1)

    def of(self, number: Any, weight: Any, count: int) -> tuple[int, int, float]:
        """(Places used, particles that use any, sum of their weights) of ``count`` particles; both arrays by particle."""
        if count == 0:
            return 0, 0, 0.0
        _sum_rows(number, weight, count, self._sums)
        held, holders, weights = transfer.read(self._sums, (count + 255) // 256).sum(axis=0, dtype=float).tolist()
        return int(held), int(holders), weights


def on_host(world: Any, rest: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ids, ids of the others, lengths at rest [m]) of all that rows hold, each once with the smaller id first.

    ``rest``: the lengths, where rows remember something else.
    """
    number = world.carried["number"].get(world.count)[:, 0]
    partner = world.carried["partner"].get(world.count)
    rest = world.carried["rest"].get(world.count) if rest is None else rest
    used = np.arange(partner.shape[1]) < number[:, None]
    mine = np.broadcast_to(world.get("id")[:, None], partner.shape)
    once = used & (mine < partner)
    return mine[once], partner[once], rest[once]


def hold(world: Any, both: bool) -> None:
    """Makes one end of every spring hold it, or both: rows that are already so stay as they are, to the bit."""
    if not world.count:
        return
    number = world.carried["number"].get(world.count)[:, 0]
    partner = world.carried["partner"].get(world.count)
    mine = world.get("id")
    used = np.arange(partner.shape[1]) < number[:, None]
    twice = bool((used & (mine[:, None] > partner)).any())
    if twice == both or not used.any():
        return
    owner, other, rest = on_host(world)
    if both:
        owner, other, rest = np.concatenate([owner, other]), np.concatenate([other, owner]), np.concatenate([rest, rest])
    at = np.full(int(mine.max()) + 1, -1)
    at[mine] = np.arange(world.count)
    there = (at[owner] >= 0) & (other < len(at))
    there[there] = at[other[there]] >= 0
    owner, other, rest = at[owner[there]], other[there], rest[there]
    order = np.argsort(owner, kind="stable")
    owner, other, rest = owner[order], other[order], rest[order]
    number = np.bincount(owner, minlength=world.count).astype(np.int32)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    width = max(FIRST_WIDTH, int(number.max()) + 4)
    partners, rests = np.full((world.count, width), -1, np.int32), np.zeros((world.count, width), np.float32)
    partners[owner, place], rests[owner, place] = other, rest
    world.carried["partner"].set(partners)
    world.carried["rest"].set(rests)
    world.carried["number"].set(number[:, None])
