"""The density constraint of Position Based Fluids (Macklin & Müller 2013), eqs. 1–14 with the typos resolved.

Written with volumes V = m/ρ₀ instead of masses, C_i = Σ_j V_j W_ij − 1, so that boundary samples are neighbours like any
other and fluids of different density meet without a jump; walls add their own part (walls.py). With w the inverse masses:

    λ_i  = −C_i / (Σ_k w_k |∇_k C_i|² + ε)                                         (9), (11)
    Δx_i = w_i Σ_j (λ_i V_j + λ_j V_i + s_ij V_j) ∇W_ij                              (12), (14)
    s_ij = −k (W(x_ij)/W(Δq))ⁿ                                                      (13)

W is the Spiky kernel, whose gradient this is. The paper takes densities from Poly6 and gradients from Spiky; a correction
that does not follow the gradient of its constraint does work on the fluid, and a resting one then boils, the more the
shorter the step (``viscoil validate energy``). ``kernel`` selects the paper's pair of kernels where it is POLY6.

Members of one particle solid (``bodied``) that lie within a support of each other at rest count with the density they have at
rest and do not push each other: whatever body and lattice, its inside has no pressure of its own. Shape matching or bonds
keep it together; two far ends of a soft body that fold onto each other still collide.

Listed particles beyond the support take part with weight zero: asking for them would cost more than they do.
Pairs receive opposite impulses, because ∇W_ij is antisymmetric and fluid particles share one volume.
"""

from dataclasses import dataclass
from typing import Any

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, vec3
from viscoil.sph.finding import coincident
from viscoil.sph.finite import unless_lost
from viscoil.sph.neighbors import (
    NeighborList,
    Torus,
    entry,
    fetch_first,
    fetch_next,
    fetch_share,
    lanes,
    separation,
    team_sum,
    team_vector,
    turns,
)
from viscoil.sph.records import Records, begin_at, record_from, vector_of
from viscoil.sph.smoothing import density_weight, poly6, spiky_gradient


@dataclass(frozen=True)
class DensityNumbers:
    """Parameters of the constraint, one element each."""

    support: Floats  # h [m]
    softness: Floats  # ε of eq. 11 [1/m²]
    repulsion: Floats  # k of eq. 13 in units of λ [m²]
    reference: Floats  # 1/W(Δq) [m³]
    unilateral: Ints  # 1: only compression is corrected, C ← max(C, 0)
    share: Floats  # ε is at least this share of the squared gradients it softens
    stride: Floats  # this and the next two belong to acceleration.py: 1/κ_max
    warm: Floats  # share of the last step's multipliers to start from
    square: Floats  # Δt² [s²]


JACOBI_LIMIT = 1.2  # share of the stiffest mode an iteration may correct: 4/3 less room for disorder (see PBF.relaxation)


def stable_relaxation(lattice: Any, limit: float = JACOBI_LIMIT) -> float:
    """The smallest ε, relative to the lattice's sum of squared gradients, that keeps Jacobi's iterations stable."""
    return max(0.1, lattice.stiffest_mode / limit - 1)


def plain_values(world: Any, unilateral: bool = True, **more: float) -> dict[str, float]:
    """Values of DensityNumbers without artificial pressure, for methods that only want to be incompressible.

    ``unilateral``: compression only, because thin ropes have no full neighbourhood. ``more``: what is different.
    """
    softness = stable_relaxation(world.lattice) * world.lattice.gradient_square
    numbers = {"support": world.support, "softness": softness, "repulsion": 0.0, "reference": 1.0, "share": 0.0}
    return numbers | {"unilateral": int(unilateral)} | more


def plain_density(uploaded: Any, world: Any, unilateral: bool = True, **more: float) -> Any:
    """The same on the device."""
    return uploaded.set(**plain_values(world, unilateral, **more))


@qd.func
def bound(i: qd.i32, j: qd.i32, p: Particles, h: qd.f32):
    """(whether i and j are neighbours by birth in one particle solid, their squared distance at rest [m²])."""
    together = 0
    r2 = 0.0
    own = p.cluster[i]
    if qd.static(lanes() > 1):
        if own >= 0:  # a GPU's threads of one warp mostly agree, and those of fluid are spared four loads
            together, r2 = _bound(i, j, own, p, h)
    else:
        together, r2 = _bound(i, j, own, p, h)
        together = qd.select(own >= 0, together, 0)
    return together, r2


@qd.func
def _bound(i: qd.i32, j: qd.i32, own: qd.i32, p: Particles, h: qd.f32):
    d = p.rest[i] - p.rest[j]
    r2 = d.dot(d)
    return qd.select(own == p.cluster[j], qd.select(r2 < h * h, 1, 0), 0), r2


@qd.func
def multiplier_of(
    i: qd.i32, count: qd.i32, p: Particles, x: Vectors, first: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    wall: qd.f32, toward: vec3, member: qd.i32, team: qd.template(), kernel: qd.template(), uniform: qd.template(),
    periodic: qd.template(), bodied: qd.template(),
):  # fmt: skip
    """(λ_i of eq. 11, max(C_i, 0)) of a moving particle; ``wall`` and ``toward``: density of the walls and its gradient.

    ``first``: where in x the particles begin. ``uniform``: all share one volume and one mass; neighbours' are not read. The
    members of a ``team`` share the ``count`` neighbours, and all of them know the result.
    """
    h = c.support[0]
    xi = x[first + i]
    volume = p.volume[i]
    mobility = p.inverse_mass[i]
    density = 0.0
    own = vec3(0.0)
    squares = 0.0
    lengths = 0.0  # the same without masses
    for turn in range(turns(count, team)):
        some = fetch_share(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[first + j], torus, periodic)
            r2 = d.dot(d)
            if qd.static(not uniform):
                volume = p.volume[j]
                mobility = qd.max(p.inverse_mass[j], 0.0)
            gradient = volume * spiky_gradient(r2, h) * d
            if qd.static(bodied):
                together, at_rest = bound(i, j, p, h)
                r2 = qd.select(together == 1, at_rest, r2)
                gradient *= qd.select(together == 1, 0.0, 1.0)
            weight = volume * density_weight(r2, h, kernel)
            if qd.static(lanes() > 1):
                weight = qd.select(j == i, 0.0, weight)
            density += weight
            own += gradient
            squares += mobility * gradient.dot(gradient)
            if qd.static(not uniform):
                lengths += gradient.dot(gradient)
    density = team_sum(density, team) + p.volume[i] * density_weight(0.0, h, kernel) + wall
    own = toward + team_vector(own, team)
    squares = team_sum(squares, team)
    if qd.static(not uniform):
        lengths = team_sum(lengths, team)
    # ε was made for inverse masses of 1. Among lighter particles, which move more, it must grow with them.
    softness = c.softness[0] * p.inverse_mass[i]
    if qd.static(not uniform):
        softness = qd.max(softness, c.softness[0] * squares / qd.max(lengths, 1e-30))
    return _multiplier(density, squares + p.inverse_mass[i] * own.dot(own), softness, c)


@qd.func
def _multiplier(density: qd.f32, stiffness: qd.f32, softness: qd.f32, c: DensityNumbers):
    """(λ of eq. 11, max(C, 0)) from a density, relative to that at rest, and the sum of squared gradients."""
    excess = density - 1.0
    error = qd.max(excess, 0.0)
    if c.unilateral[0] == 1:
        excess = error
    value = -excess / (stiffness + qd.max(softness, c.share[0] * stiffness))
    return unless_lost(value, density + stiffness), error


@qd.func
def sums_by_records(
    i: qd.i32, count: qd.i32, r: Records, half: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, member: qd.i32,
    team: qd.template(), kernel: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """(h³ Σ W with i's own, h⁴ Σ ∇W, h⁸ Σ |∇W|²) where all have one volume and mass: a half of the records holds the places.

    Kernels are those of a support of 1: |∇W|² alone would leave the range of float32 for small particles."""
    begin = begin_at(r, half)
    xi = vector_of(record_from(begin, i))
    density = 0.0
    gradients = vec3(0.0)
    squares = 0.0
    shorter = 1.0 / (h * h)
    some = fetch_first(near, i, count, member, team)
    for turn in range(turns(count, team)):
        ahead = fetch_next(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            d = separation(xi, vector_of(record_from(begin, some[lane])), torus, periodic)
            q2 = d.dot(d) * shorter
            slope = spiky_gradient(q2, 1.0)
            density += density_weight(q2, 1.0, kernel)
            gradients += slope * d
            squares += slope * slope * q2
        some = ahead
    # Who fills up the last fetch is i itself: one of them is meant.
    own = qd.cast(1 - _filled(count, team), qd.f32) * density_weight(0.0, 1.0, kernel)
    return team_sum(density, team) + own, team_vector(gradients, team) / h, team_sum(squares, team)


@qd.func
def multiplier_from(
    i: qd.i32, p: Particles, density: qd.f32, gradients: vec3, squares: qd.f32, wall: qd.f32, toward: vec3, c: DensityNumbers
):
    """What :func:`multiplier_of` tells, from the sums of :func:`sums_by_records`. The one volume is read once, not by each."""
    h = c.support[0]
    share = p.volume[0] / (h * h * h)
    mobility = p.inverse_mass[i]
    gradient = h * toward + share * gradients  # in units of 1/h, as all that follows
    stiffness = mobility * (share * share * squares + gradient.dot(gradient))
    value, error = _multiplier(share * density + wall, stiffness, c.softness[0] * mobility * h * h, c)
    return value * h * h, error


@qd.func(requires_top_level=True)
def multipliers(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    wall: Floats, wall_gradient: Vectors, error: Floats, multiplier: Floats, kernel: qd.template(),
    uniform: qd.template(), periodic: qd.template(), bodied: qd.template() = False,
):  # fmt: skip
    """λ_i of eq. 11; error[i] = max(C_i, 0), what is left to correct."""
    for i in range(n):
        error[i] = 0.0
        multiplier[i] = 0.0
        if p.inverse_mass[i] > 0.0:
            value, left = multiplier_of(
                i, near.count[i], p, x, 0, near, torus, c, wall[i], wall_gradient[i], 0, 1, kernel, uniform, periodic, bodied
            )
            multiplier[i] = value
            error[i] = left


@qd.func
def pair_repulsion(k: qd.f32, own: qd.f32, other: qd.f32) -> qd.f32:
    """k of eq. 13 for a pair of inverse masses: a multiplier, so it falls with them; samples count as one's own kind."""
    return 2.0 * k / (own + qd.select(other > 0.0, other, own))


@qd.func
def pair_weight(
    own: qd.f32, volume: qd.f32, other: qd.f32, other_volume: qd.f32, r2: qd.f32, h: qd.f32, repulsion: qd.f32,
    reference: qd.f32, power: qd.template(),
) -> qd.f32:  # fmt: skip
    """λ_i V_j + λ_j V_i + s_ij V_j for multipliers ``own``, ``other`` and volumes ``volume``, ``other_volume``."""
    strength = 0.0
    if qd.static(power > 0):
        strength = -repulsion
        ratio = poly6(r2, h) * reference
        for _ in qd.static(range(power)):
            strength *= ratio
    return (own + strength) * other_volume + other * volume


@qd.func
def correction_of(
    i: qd.i32, count: qd.i32, p: Particles, x: Vectors, first: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    multiplier: Floats, toward: vec3, member: qd.i32, team: qd.template(), power: qd.template(), uniform: qd.template(),
    periodic: qd.template(), bodied: qd.template(),
) -> vec3:  # fmt: skip
    """Δx_i of eq. 14 of a moving particle; ``power`` is n of eq. 13, 0 without artificial pressure.

    Coincident neighbours, which need a direction made up for them, are only counted at first and treated in a second
    loop that hardly ever runs: without a rare branch the compiler makes vector instructions of the first.
    """
    h = c.support[0]
    w = p.inverse_mass[i]
    repulsion = c.repulsion[0] / w
    reference = c.reference[0]
    touching = 1e-12 * h * h
    xi = x[first + i]
    own = multiplier[i]
    volume = p.volume[i]
    other = volume
    number = 0.0
    total = vec3(0.0)
    for turn in range(turns(count, team)):
        some = fetch_share(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[first + j], torus, periodic)
            r2 = d.dot(d)
            number += qd.select(r2 < touching, 1.0, 0.0)
            if qd.static(not uniform):
                other = p.volume[j]
                if qd.static(power > 0):
                    repulsion = pair_repulsion(c.repulsion[0], w, p.inverse_mass[j])
            weight = pair_weight(own, volume, multiplier[j], other, r2, h, repulsion, reference, power)
            if qd.static(bodied):
                together, _at_rest = bound(i, j, p, h)
                weight = qd.select(together == 1, 0.0, weight)
            total += weight * spiky_gradient(r2, h) * d
    total = own * toward + team_vector(total, team)
    if team_sum(number, team) > _filled(count, team) + 0.5:
        total += _parting(i, count, p, x, first, near, torus, c, multiplier, power, periodic)
    return w * total


@qd.func
def _filled(count: qd.i32, team: qd.template()) -> qd.i32:
    """Neighbours that only fill up the last fetches; they lie at distance zero."""
    return turns(count, team) * qd.static(lanes() * team) - count


@qd.func
def _parting(
    i: qd.i32, count: qd.i32, p: Particles, x: Vectors, first: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    multiplier: Floats, power: qd.template(), periodic: qd.template(),
) -> vec3:  # fmt: skip
    """What neighbours at the very place of particle i add to its sum of eq. 14, each in a direction made up for the two."""
    h = c.support[0]
    total = vec3(0.0)
    for k in range(count):
        j = entry(near, i, k)
        d = separation(x[first + i], x[first + j], torus, periodic)
        r2 = d.dot(d)
        if r2 < 1e-12 * h * h:
            repulsion = pair_repulsion(c.repulsion[0], p.inverse_mass[i], p.inverse_mass[j])
            weight = pair_weight(
                multiplier[i], p.volume[i], multiplier[j], p.volume[j], r2, h, repulsion, c.reference[0], power
            )
            total += weight * spiky_gradient(r2, h) * (1e-6 * h * coincident(p.id[i], p.id[j]) - d)
    return total


@qd.func
def correction_by_records(
    i: qd.i32, count: qd.i32, p: Particles, r: Records, half: qd.i32, near: NeighborList, torus: Torus,
    c: DensityNumbers, member: qd.i32, team: qd.template(), power: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """(x_i, λ_i, Σ of eq. 14 without w_i and what walls add) where all have one volume and mass: records hold places and
    multipliers. Nobody is at the place of another here: the search has put them apart (neighbors.py)."""
    h = c.support[0]
    repulsion = 0.0
    if qd.static(power > 0):
        repulsion = c.repulsion[0] / p.inverse_mass[i]
    reference = c.reference[0]
    begin = begin_at(r, half)
    own = record_from(begin, i)
    xi = vector_of(own)
    total = vec3(0.0)
    some = fetch_first(near, i, count, member, team)
    for turn in range(turns(count, team)):
        ahead = fetch_next(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            other = record_from(begin, some[lane])
            d = separation(xi, vector_of(other), torus, periodic)
            r2 = d.dot(d)
            weight = pair_weight(own[3], 1.0, other[3], 1.0, r2, h, repulsion, reference, power)
            total += weight * spiky_gradient(r2, h) * d
        some = ahead
    return xi, own[3], p.volume[0] * team_vector(total, team)


@qd.func(requires_top_level=True)
def corrections(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    multiplier: Floats, wall_gradient: Vectors, correction: Vectors, power: qd.template(),
    uniform: qd.template(), periodic: qd.template(), bodied: qd.template() = False,
):  # fmt: skip
    """Δx_i of eq. 14."""
    for i in range(n):
        correction[i] = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            correction[i] = correction_of(
                i, near.count[i], p, x, 0, near, torus, c, multiplier, wall_gradient[i], 0, 1, power, uniform, periodic, bodied
            )


@qd.func(requires_top_level=True)
def chunk_sums(values: Floats, n: qd.i32, partial: Floats):
    """partial[c] = sum of the 256 values of chunk c: always the same order, whatever the threads do."""
    for chunk in range((n + 255) // 256):
        total = 0.0
        for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
            total += values[i]
        partial[chunk] = total


@qd.func
def count_down(left: qd.types.NDArray[qd.i32, 0], used: Ints):
    """One iteration fewer to go. Called by one particle of a loop's last pass: a pass of its own would cost more."""
    left[()] = left[()] - 1
    used[0] += 1
    used[1] += 1


@qd.func(requires_top_level=True)
def stop_when_small(
    left: qd.types.NDArray[qd.i32, 0], used: Ints, partial: Floats, n: qd.i32, movers: qd.i32, tolerance: qd.f32, least: qd.i32
):
    """Ends the loop once the mean compression is below the tolerance, after at least ``least`` iterations."""
    for _ in range(1):
        total = qd.cast(0.0, qd.f64)
        for chunk in range((n + 255) // 256):
            total += qd.cast(partial[chunk], qd.f64)
        if used[0] >= least and total < qd.cast(tolerance, qd.f64) * movers:
            left[()] = 0
