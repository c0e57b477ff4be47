"""Viscosity impulses between particles that approach each other (Clavet et al. 2005, section 5.3, Algorithm 5).

    u = (v_i − v_j)·r̂ > 0:     I = Δt (1 − q)(σu + βu²),  at most u         v_i −= I/2 r̂,  v_j += I/2 r̂

σ [1/s] smooths, β [1/m] only keeps fast particles from running through each other. The published impulse has no bound; I ≤ u
stops the approach and does no more. Pairs that separate are left alone, so this viscosity does not resist stretching.
Distances are those at the start of the step. :func:`damp_colour` goes through the pairs one after the other, :func:`damped`
does all at once, each pair scaled by min(1, 4/V), V = Δt Σ_j (1 − q)(σ + βu) of the end with more.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, seat, separation
from viscoil.sph.pairs import share_of
from viscoil.sph.schedule import Hits, Schedule, apart, block_of, in_turn, rows, run_of, sweepers, take, tasks


@dataclass(frozen=True)
class ImpulseNumbers:
    """What the impulses are told."""

    support: Floats  # h [m]
    linear: Floats  # [material] σ Δt [1]
    quadratic: Floats  # [1] β Δt [s/m]


@qd.func
def _strength(i: qd.i32, j: qd.i32, p: Particles, c: ImpulseNumbers, single: qd.template()) -> qd.f32:
    """σ Δt of a pair: the mean of its ends."""
    result = c.linear[0]
    if qd.static(not single):
        result = 0.5 * (c.linear[qd.max(p.material[i], 0)] + c.linear[qd.max(p.material[j], 0)])
    return result


@qd.func
def _damp(
    i: qd.i32, worker: qd.i32, p: Particles, v: Vectors, near: NeighborList, torus: Torus, c: ImpulseNumbers, hits: Hits,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 5 for the pairs of one particle with those of larger id; solids' samples have no list and count as larger."""
    h = c.support[0]
    xi = p.position[i]
    mine = p.id[i]
    base = i * near.row[0]
    column = near.column[0]
    first = worker * near.width[0]
    end = first
    for k in range(near.count[i]):
        j = near.index[seat(base, column, k)]
        d = separation(p.position[j], xi, torus, periodic)
        r2 = d.dot(d)
        hits.index[end] = j
        hits.weight[end] = r2
        later = qd.select(p.id[j] > mine, 1, 0)
        if qd.static(not uniform):
            later = qd.select(p.inverse_mass[j] == 0.0, 1, later)
        end += qd.select(r2 < h * h, later, 0)  # not "and", which is a branch
    vi = v[i]
    quadratic = c.quadratic[0]
    strength = c.linear[0]
    for a in range(first, end):
        j = hits.index[a]
        d = separation(p.position[j], xi, torus, periodic)
        towards = (vi - v[j]).dot(d)
        if towards > 0.0:  # which coinciding particles never have
            inverse = 1.0 / qd.sqrt(hits.weight[a])
            u = towards * inverse
            if qd.static(not single):
                strength = _strength(i, j, p, c, single)
            part = (1.0 - hits.weight[a] * inverse / h) * (strength + quadratic * u)
            impulse = qd.min(part, 1.0) * u * inverse * d
            if qd.static(uniform):
                vi -= 0.5 * impulse
                v[j] = v[j] + 0.5 * impulse
            else:
                vi -= share_of(p.inverse_mass[i], p.inverse_mass[j]) * impulse
                v[j] = v[j] + share_of(p.inverse_mass[j], p.inverse_mass[i]) * impulse
    v[i] = vi


@qd.func
def _damp_block(
    task: qd.i32, worker: qd.i32, schedule: Schedule, p: Particles, v: Vectors, near: NeighborList, torus: Torus,
    c: ImpulseNumbers, hits: Hits, single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 5 for the particles of a block, one by one."""
    block = block_of(task, schedule)
    for row in range(rows(block)):
        first, last = run_of(block, row, schedule)
        for place in range(first, last):
            i = schedule.order[in_turn(place, first, last, schedule)]
            if i >= 0:
                _damp(i, worker, p, v, near, torus, c, hits, single, uniform, periodic)

@qd.func(requires_top_level=True)
def damp_colour(
    schedule: Schedule, p: Particles, v: Vectors, near: NeighborList, torus: Torus, c: ImpulseNumbers, hits: Hits,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 5 for the blocks of one colour, in parallel."""
    for w in range(qd.static(sweepers() * apart())):
        if w % qd.static(apart()) == 0:
            task = take(schedule)
            while task < tasks(schedule):
                _damp_block(
                    task, w // qd.static(apart()), schedule, p, v, near, torus, c, hits, single, uniform, periodic
                )
                task = take(schedule)


@qd.func
def _approach(i: qd.i32, j: qd.i32, p: Particles, v: Vectors, torus: Torus, h: qd.f32, periodic: qd.template()):
    """(r̂ from i to j, 1 − q, approaching speed); 1 − q and the speed are 0 where there is nothing to do."""
    d = separation(p.position[j], p.position[i], torus, periodic)
    r = d.norm()
    direction = d / qd.max(r, 1e-30)
    u = qd.max((v[i] - v[j]).dot(direction), 0.0)
    w = qd.select(u > 0.0 and r > 0.0, qd.max(1.0 - r / h, 0.0), 0.0)
    return direction, w, u


@qd.func
def _slowed(
    i: qd.i32, p: Particles, v: Vectors, near: NeighborList, torus: Torus, c: ImpulseNumbers, rate: Floats,
    limiting: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """(change of the velocity of particle i by all its pairs, V_i); ``limiting``: with pairs scaled by their V."""
    total = vec3(0.0)
    sum_of_rates = 0.0
    count = near.count[i]
    for batch in range(batches(count)):
        found = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            j = found[lane]
            direction, w, u = _approach(i, j, p, v, torus, c.support[0], periodic)
            part = w * (_strength(i, j, p, c, single) + c.quadratic[0] * u)
            sum_of_rates += part
            if qd.static(limiting):
                part *= qd.min(1.0, 4.0 / qd.max(qd.max(rate[i], rate[j]), 1e-30))
            size = 0.5 * u * qd.min(part, 1.0)
            if qd.static(not uniform):
                size *= 2.0 * share_of(p.inverse_mass[i], p.inverse_mass[j])
            total -= size * direction
    return total, sum_of_rates


@qd.func(requires_top_level=True)
def damped(
    p: Particles, v: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: ImpulseNumbers, rate: Floats, over: Ints,
    out: Vectors, single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Velocities after the impulses of all pairs at once; rate_i = V_i.

    Seldom is any V so large that pairs have to be scaled: over[0], 0 before, tells, and then all is done again.
    """
    for i in range(n):
        total, rate_of_all = _slowed(i, p, v, near, torus, c, rate, False, single, uniform, periodic)
        rate[i] = rate_of_all
        if rate_of_all > 4.0:
            over[0] = 1
        out[i] = v[i]
        if p.inverse_mass[i] > 0.0:
            out[i] = v[i] + total
    for i in range(n):
        if over[0] == 1 and p.inverse_mass[i] > 0.0:
            total, _ = _slowed(i, p, v, near, torus, c, rate, True, single, uniform, periodic)
            out[i] = v[i] + total
