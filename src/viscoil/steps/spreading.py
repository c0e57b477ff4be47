"""Spreading: particles of a flowing material keep even distances.

Stretched fluid leaves particles far apart along the flow and crowded across it. A real fluid has no memory of that; particles
on a lattice keep their places in it, until the gaps are wider than the kernels and a rope falls into discs. So whatever is
strained is stirred a little: neighbours nearer than 1.5 spacings push each other apart, by

    δx_i = c Δt ε̇_i d Σ_j (1 − r/1.5d)² x_ij/r,   ε̇_i² = 7.5 Σ_j |V∇W| (u_ij·x_ij/r²)² / Σ_j |V∇W|

in proportion to the rate of strain |D|, so that fluid at rest and rigid motion stay as they are. Beside a free surface only
along it: the normal is that of Σ_j V_j∇W_ij. It moves places, not velocities, and belongs to fluids: a solid keeps
its lattice, and so does what yields, which would creep and tear with it.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import Substances
from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, fetch_first, fetch_next, lanes, separation, turns
from viscoil.sph.records import Records, begin_at, digits_of, other_of, own_of, put_place, put_velocity, unit_of
from viscoil.sph.smoothing import cubic_gradient, cubic_steepness
from viscoil.steps.integrate import wrapped


@dataclass(frozen=True)
class SpreadingNumbers:
    """Arguments, one element each."""

    spacing: Floats  # d [m]
    strength: Floats  # c


@qd.func(requires_top_level=True)
def spread_and_commit(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, c: SpreadingNumbers,
    k: Substances, velocity: Vectors, periodic: qd.template(),
):  # fmt: skip
    """x_i ← x*_i + δx_i, at most a twentieth of a spacing; v_i as given."""
    for i in range(n):
        spacing = c.spacing[0]
        strength = c.strength[0]
        p.velocity[i] = velocity[i]
        p.position[i] = x[i]
        if p.inverse_mass[i] > 0.0:
            shift = vec3(0.0)
            if _is_spread(p.material[i], strength, k):
                push = vec3(0.0)
                inward = vec3(0.0)
                stretch = 0.0
                total = 0.0
                xi = x[i]
                ui = velocity[i]
                count = near.count[i]
                for batch in range(batches(count)):
                    some = fetch(near, i, batch)
                    for lane in qd.static(range(lanes())):
                        j = some[lane]
                        d = separation(xi, x[j], torus, periodic)
                        r2 = qd.max(d.dot(d), 1e-6 * h * h)
                        r = qd.sqrt(r2)
                        g = p.volume[j] * cubic_gradient(r2, h)
                        if qd.static(lanes() > 1):
                            g = qd.select(j == i, 0.0, g)
                        inward += g * d
                        rate = d.dot(ui - velocity[j]) / r2
                        stretch -= g * r * rate * rate
                        total -= g * r
                        near_by = qd.max(1.0 - r / (1.5 * spacing), 0.0)
                        push += near_by * near_by / r * d
                shift = _shift(push, inward, stretch / qd.max(total, 1e-30), strength * dt, spacing, h)
            p.position[i] = wrapped(x[i] + shift, torus, periodic)


@qd.func(requires_top_level=True)
def spread_by_records(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, h: qd.f32, c: SpreadingNumbers, k: Substances,
    velocity: Vectors, records: Records,
):  # fmt: skip
    """:func:`spread_and_commit` in open space where all have one volume, from records of a place and a velocity."""
    for i in range(n):
        put_place(records, i, x[i], h)
        put_velocity(records, i, velocity[i])
    for i in range(n):
        spacing = c.spacing[0]
        strength = c.strength[0]
        shift = vec3(0.0)
        if p.inverse_mass[i] > 0.0 and _is_spread(p.material[i], strength, k):
            push = vec3(0.0)
            inward = vec3(0.0)
            stretch = 0.0
            total = 0.0
            begin = begin_at(records, 0)
            digits = digits_of(records)
            xi, ui = own_of(begin, i, digits)
            unit = unit_of(h)
            closer = unit / (1.5 * spacing)
            count = near.count[i]
            some = fetch_first(near, i, count, 0, 1)
            for turn in range(turns(count, 1)):
                ahead = fetch_next(near, i, count, turn, 0, 1)
                for lane in qd.static(range(lanes())):
                    d, uj = other_of(xi, begin, some[lane], digits)
                    g, r, inverse = cubic_steepness(d.dot(d), 274877.906944)  # 1e-6 h²
                    inward += g * d  # i itself, which fills up the last fetch, adds nothing: d, u_i − u_j and r are zero
                    rate = d.dot(ui - uj) * inverse
                    stretch -= g * inverse * (rate * rate)
                    total -= g * r
                    near_by = qd.max(1.0 - closer * r, 0.0)
                    push += (near_by * near_by * inverse) * d
                some = ahead
            inward *= p.volume[i] * (48.0 / qd.math.pi) / (h * h * h * h * h) * unit
            shift = _shift(push, inward, stretch / qd.max(total, 1e-30) / (unit * unit), strength * dt, spacing, h)
        p.velocity[i] = velocity[i]
        p.position[i] = x[i] + shift


@qd.func
def _is_spread(m: qd.i32, strength: qd.f32, k: Substances) -> bool:
    """Whether material m is a fluid that resists."""
    return strength > 0.0 and k.modulus[m] == 0.0 and k.yield_strain[m] == 0.0 and k.viscosity[m] + k.solvent[m] > 0.0


@qd.func
def _shift(push: vec3, inward: vec3, rate2: qd.f32, strength: qd.f32, spacing: qd.f32, h: qd.f32) -> vec3:
    """δx_i [m], of the sums above: ``push`` without units, Σ V∇W [1/m], ε̇²/7.5 [1/s²]; ``strength``: c Δt."""
    size = inward.norm()
    # |Σ V∇W| h is about 1.5 on a flat surface and 0 inside: half of that already counts as surface.
    at_surface = qd.min(size * h / 0.5, 1.0)
    normal = inward / qd.max(size, 1e-12)
    shift = strength * qd.sqrt(7.5 * rate2) * spacing * (push - at_surface * normal.dot(push) * normal)
    return shift * qd.min(1.0, 0.05 * spacing / qd.max(shift.norm(), 1e-30))
