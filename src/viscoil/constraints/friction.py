"""Viscous friction between pairs: the implicit part of the conformation constraint, without its blind spots.

Taken literally, J of the conformation constraint differentiates twice over the same neighbours: velocities that alternate from
particle to particle, and gaps that open between layers, cause no strain and meet no resistance, and stretched ropes come
apart. Here pairs resist along their connecting line (Monaghan's form of viscous stress), and volumes resist change:

    f_i/V_i = Σ_j V_j [ c ν_ij (u_ij·x_ij)/r² + q_i + q_j ] ∇W_ij,   q_i = b ν_i div u_i,   div u_i = Σ_j V_j u_ji·∇W_ij

which for smooth velocities is ν(∇²u + (1 + b)∇ div u), the divergence of ν(L + Lᵀ + b tr L): the same stress plus the
resistance b to changes of volume that makes a stretched rope thinner instead of emptier. It is linear, symmetric, negative
semi-definite and exactly zero for rigid motion without any correction of gradients, and takes two passes over the list that
read 24 and 32 bytes per neighbour, against 24 and 48 (and 36 written) for the tensor.
"""

import numpy as np
import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.sph.neighbors import (
    NeighborList,
    Torus,
    fetch_first,
    fetch_next,
    fetch_share,
    lanes,
    separation,
    team_sum,
    team_vector,
    turns,
)
from viscoil.sph.records import Records, begin_at, digits_of, other_of, own_of, unit_of
from viscoil.sph.smoothing import cubic_gradient, squared, steepness_beyond


def pair_factor(spacing: float, support: float, volume: float) -> float:
    """c: 10 for a continuum (2(D + 2) in three dimensions), and what makes the viscosity right for particles in disorder.

    −30/Σ_j V g r², averaged over a lattice shaken by 0.4 spacings: a perfect lattice, sheared along its axes, is 15 % softer.
    """
    d, h = 1.0, support / spacing
    count = 2 * int(np.ceil(h)) + 11
    axis = np.arange(count) * d
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    points += np.random.default_rng(0).uniform(-0.4, 0.4, points.shape)
    middle = np.nonzero((np.abs(points - (count - 1) / 2) < 4.5).all(axis=1))[0]
    sums = []
    for i in middle:
        r = np.linalg.norm(points - points[i], axis=1)
        q = r[(r > 0) & (r < h)] / h
        g = 48 / (np.pi * h**5) * np.where(q <= 0.5, 3 * q - 2, -((1 - q) ** 2) / q)
        sums.append((g * (q * h) ** 2).sum())
    return float(-30 / np.mean(sums) / (volume / spacing**3))


@qd.func
def divergence(
    i: qd.i32, count: qd.i32, u: Vectors, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32,
    member: qd.i32, team: qd.template(), uniform: qd.template(), periodic: qd.template(),
) -> qd.f32:  # fmt: skip
    """div u_i [1/s] from ``count`` neighbours; exactly 0 for rigid motion. ``uniform``: volumes are all the same, not read.

    The members of a ``team`` share the neighbours, and all of them know the sum."""
    total = 0.0
    xi = x[i]
    ui = u[i]
    volume = p.volume[i]
    for turn in range(turns(count, team)):
        some = fetch_share(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[j], torus, periodic)
            if qd.static(not uniform):
                volume = p.volume[j]
            total += volume * cubic_gradient(d.dot(d), h) * d.dot(u[j] - ui)
    return team_sum(total, team)


@qd.func
def _both(own: qd.f32, other: qd.f32) -> qd.f32:
    """Twice the viscosity between two, see :func:`friction` for those of solids."""
    mixed = 2.0 * (qd.max(own, 0.0) * qd.max(-other, 0.0) + qd.max(other, 0.0) * qd.max(-own, 0.0))
    return qd.select(qd.min(own, other) < 0.0, mixed, own + other)


@qd.func
def friction(
    i: qd.i32, count: qd.i32, u: Vectors, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32, c: qd.f32,
    viscosity: Floats, bulk: Floats, member: qd.i32, team: qd.template(), uniform: qd.template(), even: qd.template(),
    periodic: qd.template(),
) -> vec3:  # fmt: skip
    """f_i/V_i [m/s²] of the velocities u; ``viscosity`` ν and ``bulk`` q per particle. ``even``: one ν for all.
    ``count``, ``team`` as in :func:`divergence`.

    Negative viscosities belong to solids: fluid rubs against a boundary sample (−1) as against itself, against a particle solid
    with that share of its own viscosity, and solids do not rub against each other.
    """
    total = vec3(0.0)
    xi = x[i]
    ui = u[i]
    q = bulk[i]
    volume = p.volume[i]
    half = 0.5 * c
    own = viscosity[i]
    rub = 2.0 * half * own
    smallest = 1e-6 * h * h
    for turn in range(turns(count, team)):
        some = fetch_share(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[j], torus, periodic)
            r2 = d.dot(d)
            if qd.static(not uniform):
                volume = p.volume[j]
            if qd.static(not even):
                rub = half * _both(own, viscosity[j])
            pair = rub * d.dot(ui - u[j]) / qd.max(r2, smallest)
            total += (volume * cubic_gradient(r2, h) * (pair + q + bulk[j])) * d
    return team_vector(total, team)


# --- the same where all have one volume, from records of a place and a velocity each ---------------------------------------
# Lengths in units of h/2¹⁹, see there: a quarter of one more under a root only matters where it keeps 1/r from becoming
# infinite. The body of either loop is some forty instructions; how many there are decides, next to
# what is fetched, how long a pass takes.
@qd.func
def divergence_by_records(
    i: qd.i32, count: qd.i32, r: Records, half: qd.i32, volume: qd.f32, near: NeighborList, h: qd.f32, member: qd.i32,
    team: qd.template(),
) -> qd.f32:  # fmt: skip
    """:func:`divergence`, of the velocities in a half of the records."""
    total = 0.0
    begin = begin_at(r, half)
    digits = digits_of(r)
    xi, ui = own_of(begin, i, digits)
    some = fetch_first(near, i, count, member, team)
    for turn in range(turns(count, team)):
        ahead = fetch_next(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            d, uj = other_of(xi, begin, some[lane], digits)
            slope, _inverse = steepness_beyond(squared(d, 0.25))
            total += slope * d.dot(uj - ui)
        some = ahead
    return volume * (48.0 / qd.math.pi) / (h * h * h * h * h) * unit_of(h) * team_sum(total, team)


@qd.func
def friction_by_records(
    i: qd.i32, count: qd.i32, r: Records, half: qd.i32, volume: qd.f32, near: NeighborList, h: qd.f32, c: qd.f32,
    viscosity: Floats, bulk: Floats, member: qd.i32, team: qd.template(), even: qd.template(),
) -> vec3:  # fmt: skip
    """:func:`friction`; ``half`` as in :func:`divergence_by_records`."""
    total = vec3(0.0)
    begin = begin_at(r, half)
    digits = digits_of(r)
    xi, ui = own_of(begin, i, digits)
    unit = unit_of(h)
    q = bulk[i]
    nu = viscosity[i]
    rub = c * nu / unit
    some = fetch_first(near, i, count, member, team)
    for turn in range(turns(count, team)):
        ahead = fetch_next(near, i, count, turn, member, team)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d, uj = other_of(xi, begin, j, digits)
            slope, inverse = steepness_beyond(squared(d, 0.25))
            if qd.static(not even):
                rub = 0.5 * c * _both(nu, viscosity[j]) / unit
            pair = rub * d.dot(ui - uj) * (inverse * inverse)
            total += (slope * (pair + q + bulk[j])) * d
        some = ahead
    return volume * (48.0 / qd.math.pi) / (h * h * h * h * h) * unit * team_vector(total, team)
