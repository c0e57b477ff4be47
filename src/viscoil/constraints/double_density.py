"""Double density relaxation (Clavet et al. 2005, section 4, eqs. 1–6, Algorithm 2).

    ρ_i = Σ_j (1 − q)²        P_i = k (ρ_i − ρ₀)            attracts where particles are too few: surface tension
    ρ'_i = Σ_j (1 − q)³       P'_i = k' ρ'_i                always repels: no clusters
    D_ij = Δt² [P_i (1 − q) + P'_i (1 − q)²] r̂_ij          j moves by +D/2, i by −D/2          q = r/h, r̂ from i to j

Each pair is visited from both ends. :func:`relax_colour` does it as published, one particle after the other on positions that
are already corrected. :func:`pressures` and :func:`displacements` do it for all at once from the same positions (Jacobi):
the pair then moves by ½Δt²[(P_i + P_j)(1 − q) + (P'_i + P'_j)(1 − q)²]. That is stable up to a smaller stiffness, so a
pair's displacement is scaled down by min(1, 1/Λ) with Λ = 3.6 (kΔt²/h) ρ² of the denser end: one factor for both ends,
so momentum stays. Particles of different mass share a displacement by their inverse masses; solids and nozzles do not move.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, seat, separation
from viscoil.sph.pairs import displace, share_of, unit
from viscoil.sph.schedule import Hits, Schedule, apart, block_of, in_turn, rows, run_of, sweepers, take, tasks

LIMIT = 3.6  # Λ = LIMIT (kΔt²/h) ρ², measured: plain Jacobi is stable up to Λ of about one
COUNTERS = 256  # slots over which counting is spread: pairs, limited pairs, limited springs


@dataclass(frozen=True)
class DoubleDensityNumbers:
    """What the relaxation is told, one element each."""

    support: Floats  # h [m]
    push: Floats  # k Δt² [m]
    near_push: Floats  # k' Δt² [m]
    rest: Floats  # ρ₀ [1]
    limit: Floats  # Λ/ρ²


@qd.func
def densities(i: qd.i32, x: Vectors, near: NeighborList, torus: Torus, h: qd.f32, periodic: qd.template()):
    """(ρ_i, ρ'_i, neighbours within h), eqs. 1 and 4."""
    xi = x[i]
    density = 0.0
    near_density = 0.0
    number = 0
    for batch in range(batches(near.count[i])):
        found = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            d = separation(x[found[lane]], xi, torus, periodic)
            w = qd.max(1.0 - d.norm() / h, 0.0)
            if qd.static(lanes() > 1):
                w = qd.select(found[lane] == i, 0.0, w)
            density += w * w
            near_density += w * w * w
            number += qd.select(w > 0.0, 1, 0)
    return density, near_density, number


@qd.func
def _relax(
    i: qd.i32, worker: qd.i32, p: Particles, x: Vectors, shift: Vectors, near: NeighborList, torus: Torus,
    c: DoubleDensityNumbers, hits: Hits, uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 2 for one particle: neighbours move at once, itself when all have.

    Nobody but the neighbour itself moves while it is its turn, so distances of the first pass serve the second.
    """
    h = c.support[0]
    xi = x[i]
    base = i * near.row[0]
    column = near.column[0]  # outside of the loop: for all the compiler knows, what is stored there could change it
    first = worker * near.width[0]
    end = first
    for k in range(near.count[i]):
        j = near.index[seat(base, column, k)]
        d = separation(x[j], xi, torus, periodic)
        r2 = d.dot(d)
        hits.index[end] = j
        hits.weight[end] = r2
        end += qd.select(r2 < h * h, 1, 0)
    density = 0.0
    near_density = 0.0
    for a in range(first, end):
        w = qd.max(1.0 - qd.sqrt(hits.weight[a]) / h, 0.0)
        hits.weight[a] = w
        density += w * w
        near_density += w * w * w
    pressure = c.push[0] * (density - c.rest[0])
    near_pressure = c.near_push[0] * near_density
    moved = vec3(0.0)
    for a in range(first, end):
        j = hits.index[a]
        w = hits.weight[a]
        d = separation(x[j], xi, torus, periodic)
        push = d / qd.max(1.0 - w, 1e-30)  # h r̂
        if w == 1.0:
            push = h * unit(d, d.norm(), p.id[i], p.id[j])
        push *= w * (pressure + near_pressure * w) / h
        if qd.static(uniform):
            displace(j, 0.5 * push, x, shift)
            moved -= 0.5 * push
        else:
            displace(j, share_of(p.inverse_mass[j], p.inverse_mass[i]) * push, x, shift)
            moved -= share_of(p.inverse_mass[i], p.inverse_mass[j]) * push
    displace(i, moved, x, shift)


@qd.func
def _relax_block(
    task: qd.i32, worker: qd.i32, schedule: Schedule, p: Particles, x: Vectors, shift: Vectors, near: NeighborList,
    torus: Torus, c: DoubleDensityNumbers, hits: Hits, uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 2 for the particles of a block, one by one."""
    block = block_of(task, schedule)
    for row in range(rows(block)):
        first, last = run_of(block, row, schedule)
        for place in range(first, last):
            i = schedule.order[in_turn(place, first, last, schedule)]
            if i >= 0:
                _relax(i, worker, p, x, shift, near, torus, c, hits, uniform, periodic)

@qd.func(requires_top_level=True)
def relax_colour(
    schedule: Schedule, p: Particles, x: Vectors, shift: Vectors, near: NeighborList, torus: Torus, c: DoubleDensityNumbers,
    hits: Hits, uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Algorithm 2 for the blocks of one colour, in parallel."""
    for w in range(qd.static(sweepers() * apart())):
        if w % qd.static(apart()) == 0:
            task = take(schedule)
            while task < tasks(schedule):
                _relax_block(
                    task, w // qd.static(apart()), schedule, p, x, shift, near, torus, c, hits, uniform, periodic
                )
                task = take(schedule)


@qd.func(requires_top_level=True)
def pressures(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, pressure: Vectors,
    counts: Ints, periodic: qd.template(),
):  # fmt: skip
    """(P Δt², P' Δt², limiter) of all particles from the same positions; counts[..] adds up pairs, both ends of each.

    Solids' samples have no list, hence no density and no pressure of their own.
    """
    for i in range(n):
        pressure[i] = vec3(0.0, 0.0, 1.0)
        if p.inverse_mass[i] != 0.0:
            density, near_density, number = densities(i, x, near, torus, c.support[0], periodic)
            stiff = c.limit[0] * density * density
            pressure[i] = vec3(
                c.push[0] * (density - c.rest[0]), c.near_push[0] * near_density, qd.min(1.0, 1.0 / qd.max(stiff, 1e-30))
            )
            qd.atomic_add(counts[i % 256], number)


@qd.func(requires_top_level=True)
def displacements(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, pressure: Vectors,
    displacement: Vectors, counts: Ints, uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What all particles move by, from the same positions; counts[256 ...] adds up limited pairs, both ends of each."""
    for i in range(n):
        total = vec3(0.0)
        limited = 0
        if p.inverse_mass[i] > 0.0:
            h = c.support[0]
            xi = x[i]
            mine = pressure[i]
            for batch in range(batches(near.count[i])):
                found = fetch(near, i, batch)
                for lane in qd.static(range(lanes())):
                    j = found[lane]
                    d = separation(x[j], xi, torus, periodic)
                    r = d.norm()
                    w = qd.max(1.0 - r / h, 0.0)
                    if qd.static(lanes() > 1):
                        w = qd.select(j == i, 0.0, w)
                    both = mine + pressure[j]
                    limit = qd.min(mine[2], pressure[j][2])
                    size = 0.5 * limit * (both[0] * w + both[1] * w * w)
                    if qd.static(not uniform):
                        size *= 2.0 * share_of(p.inverse_mass[i], p.inverse_mass[j])
                    if r < 1e-12:
                        if j != i:
                            total -= size * unit(d, r, p.id[i], p.id[j])
                    else:
                        total -= size / r * d
                    limited += qd.select(w > 0.0 and limit < 1.0, 1, 0)
        displacement[i] = total
        if limited > 0:
            qd.atomic_add(counts[256 + i % 256], limited)
