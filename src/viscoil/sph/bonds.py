"""Connections between particles: who is bonded to whom, and what a bond remembers (Takahashi et al. 2014, sections 4.1 to
4.3).

    a new bond       between unconnected particles at |x_ij|/H < β_ij, remembering how they are now
    a bond ends      where γ_ij < | |x_ij| − r_ij |/H
    (extension)      r ← r + share of what |x_ij| is beyond the yield: Maxwell's relaxation of rest lengths, as in springs.py

Values of a pair (α, β, γ, rates) are means of the two materials' values. A particle's stiffness is k_i = s_i k, k of its
material and s_i the share of it that it still has; it is carried along, starts at 1, and weakening lowers it (see
velocity_correction.py).

Both ends hold a bond and decide about it from the same numbers, so they agree to the last bit and nobody has to be told. Rows
name others by id and travel with the particles (carried.py): sorting, emission, removal and restarts do not touch
them, and bonds longer than the neighbour list reaches live on. For springs and position-based corrections a bond remembers
the length at rest. For shape matching it remembers six numbers, see regions.py.

Which listed pairs still lack a bond is seen from a fingerprint: a sum over the ids of close neighbours and one over the ids
of close partners. Where they agree nothing is new, and nobody needs to be looked for.

Samples of solids have no bonds. What a nozzle leads has some, so that it arrives connected.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import quadrants as qd

from viscoil.carried import Carried
from viscoil.particles import Floats, Ints, Particles, Vectors
from viscoil.sph import springs
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.springs import flowed_length, tag

Scheme = Literal["springs", "position_based", "shape_matching"]
FIRST_WIDTH = 44  # places per particle to begin with: a lattice has 32 partners within 2 spacings; rows grow when one is full
REFERENCE = 6  # numbers a bond remembers for shape matching
NEVER = 1e30  # splitting ratio of what never splits
SHORT = 0.01  # of H: the shortest length at rest


@dataclass(frozen=True)
class BondRows:
    """Bonds by particle: place a of particle i is element i·row + a·column; used places come first."""

    partner: Ints  # id of the other
    rest: Floats  # length at rest [m]; shape matching: number c of place a is element i·rest_row + (6a + c)·column
    number: Ints  # [particle] S: places used
    strength: Floats  # [particle] s: share of the material's stiffness that is left
    where: Ints  # [id] index of the particle in this step, −1 for who is gone
    stiffness: Floats  # [particle] s k in this step
    scarcity: Floats  # [particle] 3/S in this step
    row: Ints
    column: Ints
    rest_row: Ints
    width: Ints  # [1] places per particle
    needed: Ints  # [1] most places any particle wanted, if that was too many


@dataclass(frozen=True)
class BondNumbers:
    """How bonds behave; a table by material where not one element. Ratios are lengths divided by H."""

    support: Floats  # [1] H [m]
    reach: Floats  # [1] pairs this close are bonded by freezing [m]; bonds that flowed to more end
    kick: Floats  # [1] Δt/m of the first material [s/kg] for springs, 1/Δt [1/s] else
    stiffness: Floats  # k [N/m] for springs, else share of a deformation taken back per step [1]
    lower: Floats  # l/k: weakening ends there
    weakening: Floats  # dΔt/k, dΔt for shape matching [1]
    yielding: Floats  # α: deformation beyond which a bond weakens its ends
    merging: Floats  # β
    splitting: Floats  # γ
    flow: Floats  # share of an excess that is forgotten per step
    flow_yield: Floats  # relative deformation below which nothing is forgotten


@dataclass(frozen=True)
class BondCounts:
    """One element each."""

    count: Ints  # particles
    ids: Ints  # ids ever given


def carried_bonds(scheme: Scheme, striped: bool) -> dict[str, Carried]:
    """What a world carries along for bonds of this scheme."""
    numbers = REFERENCE if scheme == "shape_matching" else 1
    rows = {
        "partner": Carried(qd.i32, FIRST_WIDTH, -1, striped=striped),
        "rest": Carried(qd.f32, numbers * FIRST_WIDTH, 0, striped=striped),
        "number": Carried(qd.i32, 1, 0),
        "strength": Carried(qd.f32, 1, 1),
    }
    if scheme == "shape_matching":
        rows["rotation"] = Carried(qd.f32, 4, 0, striped=striped)  # of the region; zeros: not yet known
    return rows


@qd.func
def between(values: Floats, i: qd.i32, j: qd.i32, p: Particles, single: qd.template()) -> qd.f32:
    """Mean of the two materials' values."""
    result = values[0]
    if qd.static(not single):
        result = 0.5 * (values[qd.max(p.material[i], 0)] + values[qd.max(p.material[j], 0)])
    return result


@qd.func
def own(values: Floats, i: qd.i32, p: Particles, single: qd.template()) -> qd.f32:
    """Value of the particle's material."""
    result = values[0]
    if qd.static(not single):
        result = values[qd.max(p.material[i], 0)]
    return result


@qd.func
def closest(i: qd.i32, j: qd.i32, p: Particles, c: BondNumbers, single: qd.template()) -> qd.f32:
    """Distance within which a pair becomes bonded [m]; 0: never."""
    stiff = qd.min(own(c.stiffness, i, p, single), own(c.stiffness, j, p, single))
    return qd.select(stiff > 0.0, between(c.merging, i, j, p, single) * c.support[0], 0.0)


@qd.func
def _look(
    i: qd.i32, first: qd.i32, last: qd.i32, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, bonds: BondRows,
    single: qd.template(), periodic: qd.template(), splitting: qd.template(), merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """(which of the places first ≤ a < last of particle i end, as bits; fingerprint of close partners that stay).

    Nothing is stored and no branch taken, so that the compiler makes vector instructions of it.
    """
    ends = qd.u32(0)
    mark = 0
    h = c.support[0]
    reach = c.reach[0]
    xi = x[i]
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    split = qd.min(own(c.splitting, i, p, single), 1e9) * h
    near = closest(i, i, p, c, single)
    share = own(c.flow, i, p, single)
    for a in range(first, last):
        name = bonds.partner[base + a * column]
        j = bonds.where[name]
        gone = qd.select(j < 0, qd.u32(1), qd.u32(0))
        if qd.static(splitting or merging or flowing):
            other = qd.max(j, 0)
            rest = bonds.rest[rest_base + a * column]
            d = separation(x[other], xi, torus, periodic)
            r2 = d.dot(d)
            if qd.static(splitting):
                if qd.static(not single):
                    split = qd.min(between(c.splitting, i, other, p, single), 1e9) * h
                longest = rest + split
                shortest = qd.max(rest - split, 0.0)
                gone = qd.select(r2 > longest * longest, qd.u32(1), gone)
                gone = qd.select(r2 < shortest * shortest, qd.u32(1), gone)
            if qd.static(flowing):
                if qd.static(not single):
                    share = between(c.flow, i, other, p, single)
                gone = qd.select(share > 0.0, qd.select(rest > reach, qd.u32(1), gone), gone)
            if qd.static(merging):
                if qd.static(not single):
                    near = closest(i, other, p, c, single)
                mark += qd.select(gone == 0, qd.select(r2 < near * near, tag(name), 0), 0)
        ends |= gone << qd.cast(a - first, qd.u32)
    return ends, mark


@qd.func
def _keep(
    i: qd.i32, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, bonds: BondRows, single: qd.template(),
    periodic: qd.template(), splitting: qd.template(), merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """Drops the bonds of particle i that end: (bonds left, fingerprint of close partners)."""
    kept = 0
    mark = 0
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    number = bonds.number[i]
    first = 0
    while first < number:
        last = qd.min(first + 32, number)
        ends, close = _look(i, first, last, p, x, torus, c, bonds, single, periodic, splitting, merging, flowing)
        mark += close
        if ends == 0 and kept == first:
            kept = last
        else:
            for a in range(first, last):
                if (ends >> qd.cast(a - first, qd.u32)) & qd.u32(1) == 0:
                    bonds.partner[base + kept * column] = bonds.partner[base + a * column]
                    bonds.rest[rest_base + kept * column] = bonds.rest[rest_base + a * column]
                    kept += 1
        first = last
    return kept, mark


@qd.func
def _flow(
    i: qd.i32, kept: qd.i32, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, bonds: BondRows, single: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """Rest lengths of particle i go their way."""
    xi = x[i]
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    shortest = 0.01 * c.support[0]  # SHORT
    share = own(c.flow, i, p, single)
    most = own(c.flow_yield, i, p, single)
    for a in range(kept):
        j = bonds.where[bonds.partner[base + a * column]]
        if qd.static(not single):
            share = between(c.flow, i, j, p, single)
            most = between(c.flow_yield, i, j, p, single)
        r = separation(x[j], xi, torus, periodic).norm()
        at = rest_base + a * column
        bonds.rest[at] = qd.max(flowed_length(bonds.rest[at], r, share, share, most, most), shortest)


@qd.func
def wanted(
    i: qd.i32, near: NeighborList, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, single: qd.template(),
    uniform: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """Fingerprint of the listed neighbours particle i is to be bonded to."""
    xi = x[i]
    mark = 0
    distance = closest(i, i, p, c, single)
    base = i * near.row[0]
    column = near.column[0]
    for k in range(near.count[i]):
        j = near.index[seat(base, column, k)]
        d = separation(x[j], xi, torus, periodic)
        if qd.static(not single):
            distance = closest(i, j, p, c, single)
        sign = qd.select(d.dot(d) < distance * distance, tag(p.id[j]), 0)
        if qd.static(not uniform):
            sign = qd.select(p.inverse_mass[j] != 0.0, sign, 0)
        mark += sign
    return mark


@qd.func
def lacks(
    i: qd.i32, j: qd.i32, kept: qd.i32, d2: qd.f32, p: Particles, c: BondNumbers, bonds: BondRows, single: qd.template()
) -> qd.i32:
    """Whether i and j, whose distance is √d2, are to be bonded and are not yet among the ``kept`` first partners of i."""
    distance = closest(i, j, p, c, single)
    result = 0
    if d2 < distance * distance and p.inverse_mass[j] != 0.0:
        result = 1
        base = i * bonds.row[0]
        name = p.id[j]
        for a in range(kept):
            result = qd.select(bonds.partner[base + a * bonds.column[0]] == name, 0, result)
    return result


@qd.func
def _add(
    i: qd.i32, kept: qd.i32, p: Particles, x: Vectors, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows,
    single: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """New bonds of particle i, as long as they are now; bonds there are by then."""
    number = kept
    base = i * bonds.row[0]
    for k in range(near.count[i]):
        j = near.index[seat(i * near.row[0], near.column[0], k)]
        d = separation(x[j], x[i], torus, periodic)
        d2 = d.dot(d)
        if lacks(i, j, kept, d2, p, c, bonds, single) == 1:
            if number < bonds.width[0]:
                at = number * bonds.column[0]
                bonds.partner[base + at] = p.id[j]
                bonds.rest[i * bonds.rest_row[0] + at] = qd.max(qd.sqrt(d2), 0.01 * c.support[0])  # SHORT
            number += 1
    return number


@qd.func
def settle(i: qd.i32, number: qd.i32, p: Particles, c: BondNumbers, bonds: BondRows, single: qd.template()):
    """Notes how many bonds particle i has by now, and what it needs for its correction."""
    fits = qd.min(number, bonds.width[0])
    if number > fits:
        qd.atomic_max(bonds.needed[0], number)
    bonds.number[i] = fits
    bonds.stiffness[i] = bonds.strength[i] * own(c.stiffness, i, p, single)
    bonds.scarcity[i] = 3.0 / qd.cast(qd.max(fits, 1), qd.f32)


@qd.func(requires_top_level=True)
def update_pairs(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), splitting: qd.template(),
    merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """The set of bonds at positions x: bonds end, flow and begin. The last three say whether any material does so."""
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            kept, mark = _keep(i, p, x, torus, c, bonds, single, periodic, splitting, merging, flowing)
            if qd.static(flowing):
                _flow(i, kept, p, x, torus, c, bonds, single, periodic)
            if qd.static(merging):
                present = wanted(i, near, p, x, torus, c, single, uniform, periodic)
                if present != mark:
                    kept = _add(i, kept, p, x, near, torus, c, bonds, single, periodic)
            settle(i, kept, p, c, bonds, single)


@qd.kernel(fastcache=True)
def freeze_kernel(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows, single: qd.Template,
    periodic: qd.Template, shape: qd.Template,
):  # fmt: skip
    """Every pair within reach gets a bond that remembers it as it is now, at full strength; all other bonds end."""
    for i in range(n):
        number = 0
        if p.inverse_mass[i] != 0.0:
            for k in range(near.count[i]):
                j = near.index[seat(i * near.row[0], near.column[0], k)]
                d = separation(p.position[j], p.position[i], torus, periodic)
                r = d.norm()
                stiff = qd.min(own(c.stiffness, i, p, single), own(c.stiffness, j, p, single))
                if r < c.reach[0] and stiff > 0.0 and p.inverse_mass[j] != 0.0:
                    if number < bonds.width[0]:
                        column = bonds.column[0]
                        bonds.partner[i * bonds.row[0] + number * column] = p.id[j]
                        first = i * bonds.rest_row[0]
                        if qd.static(shape):
                            for axis in qd.static(range(3)):  # regions are not turned yet: rotations start anew
                                bonds.rest[first + (6 * number + axis) * column] = d[axis]
                                bonds.rest[first + (6 * number + 3 + axis) * column] = -d[axis]
                        else:
                            bonds.rest[first + number * column] = qd.max(r, 0.01 * c.support[0])  # SHORT
                    number += 1
        if number > bonds.width[0]:
            qd.atomic_max(bonds.needed[0], number)
            number = bonds.width[0]
        bonds.number[i] = number
        bonds.strength[i] = 1.0


def on_host(world: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ids, ids of the others, lengths at rest [m]) of all bonds, each once with the smaller id first."""
    if "rotation" not in world.carried:
        return springs.on_host(world)
    places = world.carried["rest"].get(world.count)
    lengths = np.linalg.norm(places.reshape(len(places), -1, REFERENCE)[..., :3], axis=-1)
    return springs.on_host(world, lengths.astype(np.float32))


def clear(world: Any) -> None:
    """All bonds are gone: a body melts. What is bonded from now on is as strong as new."""
    for name in ("number", "strength", "rotation"):
        if name in world.carried:
            world.carried[name].clear(0, world.count)
