"""All springs of PVFS at once (Clavet et al. 2005, Algorithms 3 and 4), as GPUs do it: they flow and pull in one pass.

Both act at the same positions, so every spring is looked at once: its length flows (eqs. 7 and 8), and what it then pulls is
added up. Pulling together, springs overshoot where there are many: each is scaled by min(1, 5/W) of the end with the
larger W = Δt² Σ k (1 − L/h), one factor for both ends, so momentum stays. W is that of the lengths the step begins with
(:func:`loads`): a pass along the rows that looks nobody up, where W of the lengths it ends with would take another pass over
all springs and their ends.

Rows are read four places at a time: what others hold arrives from far, and stores would make the next ones wait.
"""

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, lanes, separation
from viscoil.sph.pairs import share_of
from viscoil.sph.springs import (
    Plasticity,
    SpringRows,
    begin_new,
    flowed_length,
    index_of,
    pair_of,
    pull_of,
    stiffness_of,
    tag,
)

LIMIT = 5.0  # W up to which springs that act together do not overshoot, measured


@qd.func(requires_top_level=True)
def loads(
    p: Particles, n: qd.i32, c: Plasticity, springs: SpringRows, where: Ints, load: Floats, single: qd.template()
):
    """load_i = W_i = Δt² Σ k (1 − L/h) of the springs as they are."""
    for i in range(n):
        total = 0.0
        if p.inverse_mass[i] != 0.0:
            h = c.support[0]
            base = i * springs.row[0]
            column = springs.column[0]
            known = springs.known[0]
            stiff = c.stiffness[0]
            for a in range(springs.number[i]):
                at = base + a * column
                if qd.static(not single):
                    stiff = stiffness_of(i, qd.max(index_of(at, known, springs, where), 0), p, c, single)
                total += stiff * qd.max(1.0 - springs.rest[at] / h, 0.0)
        load[i] = total


@qd.func
def _pulling(
    i: qd.i32, j: qd.i32, d: vec3, rest: qd.f32, stiff: qd.f32, mine: qd.f32, other: qd.f32, c: Plasticity, p: Particles,
    uniform: qd.template(),
):  # fmt: skip
    """(what the spring moves i by, whether it was scaled down); ``mine``, ``other``: W of its ends."""
    push = pull_of(i, j, d, rest, stiff, c.support[0], p)
    most = qd.max(mine, other)
    push *= qd.min(1.0, 5.0 / qd.max(most, 1e-30))  # LIMIT
    if qd.static(uniform):
        push *= 0.5
    else:
        push *= share_of(p.inverse_mass[i], p.inverse_mass[j])
    return -push, qd.select(most > 5.0, 1, 0)


@qd.func
def _flow_and_pull(
    i: qd.i32, p: Particles, x: Vectors, torus: Torus, c: Plasticity, springs: SpringRows, where: Ints, load: Floats,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lets the springs of particle i flow, drops those that grew too long and adds up what is left: (springs left, fingerprint
    of close ones, displacement, springs scaled down)."""
    h = c.support[0]
    xi = x[i]
    mine = load[i]
    kept = 0
    mark = 0
    limited = 0
    total = vec3(0.0)
    base = i * springs.row[0]
    column = springs.column[0]
    known = springs.known[0]
    number = springs.number[i]
    stiff, stretch, compress, stretch_yield, compress_yield = pair_of(i, i, p, c, single)
    for batch in range((number + qd.static(lanes() - 1)) // qd.static(lanes())):
        first = batch * qd.static(lanes())
        who = qd.Vector([-1 for _ in range(qd.static(lanes()))])
        old = qd.Vector([0.0 for _ in range(qd.static(lanes()))])
        loaded = qd.Vector([0.0 for _ in range(qd.static(lanes()))])
        dx = qd.Vector([0.0 for _ in range(qd.static(lanes()))])
        dy = qd.Vector([0.0 for _ in range(qd.static(lanes()))])
        dz = qd.Vector([0.0 for _ in range(qd.static(lanes()))])
        for lane in qd.static(range(lanes())):
            at = base + qd.min(first + lane, number - 1) * column
            who[lane] = qd.select(first + lane < number, index_of(at, known, springs, where), -1)
            old[lane] = springs.rest[at]
        for lane in qd.static(range(lanes())):
            j = qd.max(who[lane], 0)
            d = separation(x[j], xi, torus, periodic)
            dx[lane], dy[lane], dz[lane] = d[0], d[1], d[2]
            loaded[lane] = load[j]
        for lane in qd.static(range(lanes())):
            j = who[lane]
            if j >= 0:
                d = vec3(dx[lane], dy[lane], dz[lane])
                r = d.norm()
                if qd.static(not single):
                    stiff, stretch, compress, stretch_yield, compress_yield = pair_of(i, j, p, c, single)
                rest = flowed_length(old[lane], r, stretch, compress, stretch_yield, compress_yield)
                if rest < h:
                    rest = qd.max(rest, 0.01 * h)  # SHORT
                    at = base + kept * column
                    if kept < first + lane:
                        springs.partner[at] = springs.partner[base + (first + lane) * column]
                    if known == 0 or kept < first + lane:
                        springs.other[at] = j
                    if rest != old[lane] or kept < first + lane:
                        springs.rest[at] = rest
                    kept += 1
                    closest = qd.select(compress * stiff > 0.0, (1.0 - compress_yield) * h, 0.0)
                    mark += qd.select(r < closest, tag(j), 0)
                    by, scaled = _pulling(i, j, d, rest, stiff, mine, loaded[lane], c, p, uniform)
                    total += by
                    limited += scaled
    return kept, mark, total, limited


@qd.func(requires_top_level=True)
def flow_and_pull(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows, where: Ints,
    load: Floats, displacement: Vectors, counts: Ints, single: qd.template(), growing: qd.template(), uniform: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """Algorithms 4 and 3 at positions x: lengths flow, springs end and begin, and all of them pull together.

    ``load``: W of :func:`loads`; ``growing``: whether any pair can get a spring at all. counts[512 ...] adds up springs that
    were scaled, both ends of each.
    """
    for i in range(n):
        moved = vec3(0.0)
        if p.inverse_mass[i] != 0.0:
            kept, mark, total, limited = _flow_and_pull(
                i, p, x, torus, c, springs, where, load, single, uniform, periodic
            )
            if qd.static(growing):
                old = kept
                kept = begin_new(i, old, mark, p, x, near, torus, c, springs, single, True, uniform, periodic)
                for a in range(old, kept):
                    at = i * springs.row[0] + a * springs.column[0]
                    j = springs.other[at]
                    d = separation(x[j], x[i], torus, periodic)
                    stiff = stiffness_of(i, j, p, c, single)
                    by, scaled = _pulling(i, j, d, springs.rest[at], stiff, load[i], load[j], c, p, uniform)
                    total += by
                    limited += scaled
            springs.number[i] = kept
            if p.inverse_mass[i] > 0.0:
                moved = total
                if limited > 0:
                    qd.atomic_add(counts[512 + i % 256], limited)
        displacement[i] = moved
