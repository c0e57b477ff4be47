"""Regions of shape matching: a particle and its partners, and the rigid motion that fits them best (Takahashi et al. 2014).

The region of j has members k (j itself and those bonded to it) with places x⁰ᵏ in a frame of its own, in which j is at the
origin. With masses m, relative to x_j,

    s = Σ m x / Σ m,   s⁰ = Σ m x⁰ / Σ m,   A = Σ m (x − s)(x⁰ − s⁰)ᵀ,   R: rotation of A,   t = s − R s⁰

so that R x⁰ + t is where a member belongs (its goal). Every region has its own frame, because after two bodies have merged
there is no common one. A bond of i and k remembers where k is in the region of i (3 numbers) and where i is in that of k (3
numbers).

    joining    x⁰ = Rᵀ(x − t): as things are now. No goal moves, and neither R nor t of the region changes
    leaving    when either of the two is farther than γH from its goal in the other's region; both leave each other
    flowing    x⁰ ← x⁰ + share · (Rᵀx − x⁰) beyond the yield: Maxwell's relaxation, an extension

Whatever both ends keep a copy of is worked out for the end with the smaller id first, at both ends: the same instructions on
the same numbers give the same bits.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, mat3, vec3
from viscoil.sph.bonds import BondNumbers, BondRows, between, closest, lacks, own, settle, wanted
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.rotation import rotation_near, turned, turned_back, vec4, whole_turn
from viscoil.sph.springs import tag


@dataclass(frozen=True)
class Regions:
    """How the regions lie in this step."""

    rotation: Floats  # R as a quaternion, number c of particle i is element i·row + c·column; carried along, to start from
    row: Ints
    column: Ints
    offset: Vectors  # t [m]
    lightness: Floats  # 1/members; 0 where there are fewer than four, which have no shape
    worst: Floats  # farthest that a member is from its goal, squared [m²]; only while members may leave
    share: Floats  # m/Σm of the particle in its region
    changed: Ints  # whether members left in this step


@qd.func
def rotation_at(i: qd.i32, m: Regions) -> vec4:
    """R of region i as it is stored."""
    first = i * m.row[0]
    column = m.column[0]
    return vec4(
        m.rotation[first], m.rotation[first + column], m.rotation[first + 2 * column], m.rotation[first + 3 * column]
    )


@qd.func
def place_at(at: qd.i32, bonds: BondRows) -> vec3:
    """Three numbers a bond remembers, from element ``at`` on."""
    column = bonds.column[0]
    return vec3(bonds.rest[at], bonds.rest[at + column], bonds.rest[at + 2 * column])


@qd.func
def put_place(at: qd.i32, place: vec3, bonds: BondRows):
    """Counterpart of :func:`place_at`."""
    for axis in qd.static(range(3)):
        bonds.rest[at + axis * bonds.column[0]] = place[axis]


@qd.func
def _mass(i: qd.i32, p: Particles, uniform: qd.template()) -> qd.f32:
    """Relative to the first material."""
    result = 1.0
    if qd.static(not uniform):
        result = 1.0 / qd.max(qd.abs(p.inverse_mass[i]), 1e-30)
    return result


@qd.func
def _fit(
    i: qd.i32, p: Particles, x: Vectors, torus: Torus, bonds: BondRows, m: Regions, uniform: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """R and t of region i from where its members are."""
    xi = x[i]
    mass = _mass(i, p, uniform)
    total = mass
    centre = vec3(0.0)
    centre0 = vec3(0.0)
    a = mat3(0.0)
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    for b in range(bonds.number[i]):
        j = bonds.where[bonds.partner[base + b * column]]
        d = separation(x[j], xi, torus, periodic)
        d0 = place_at(rest_base + 6 * b * column, bonds)
        if qd.static(uniform):
            a += d.outer_product(d0)
            centre += d
            centre0 += d0
            total += 1.0
        else:
            other = _mass(j, p, uniform)
            a += (other * d).outer_product(d0)
            centre += other * d
            centre0 += other * d0
            total += other
    centre /= total
    centre0 /= total
    a -= (total * centre).outer_product(centre0)
    q = rotation_near(a, whole_turn(rotation_at(i, m)))
    first = i * m.row[0]
    for c in qd.static(range(4)):
        m.rotation[first + c * m.column[0]] = q[c]
    m.offset[i] = centre - turned(q, centre0)
    m.share[i] = mass / total
    members = bonds.number[i] + 1
    m.lightness[i] = qd.select(members >= 4, 1.0 / qd.cast(members, qd.f32), 0.0)


@qd.func
def _worst(i: qd.i32, x: Vectors, torus: Torus, bonds: BondRows, m: Regions, periodic: qd.template()) -> qd.f32:
    """The farthest that a member of region i is from its goal, squared [m²]."""
    xi = x[i]
    q = rotation_at(i, m)
    t = m.offset[i]
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    worst = 0.0
    for a in range(bonds.number[i]):
        j = bonds.where[bonds.partner[base + a * column]]
        d = separation(x[j], xi, torus, periodic)
        miss = turned(q, place_at(rest_base + 6 * a * column, bonds)) + t - d
        worst = qd.max(worst, miss.dot(miss))
    return worst


@qd.func(requires_top_level=True)
def fit_regions(
    p: Particles, x: Vectors, n: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), leaving: qd.template(),
):  # fmt: skip
    """Partners that are gone are dropped; R and t of every region, and its worst member if members may be ``leaving``."""
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            base = i * bonds.row[0]
            rest_base = i * bonds.rest_row[0]
            column = bonds.column[0]
            number = bonds.number[i]
            kept = number
            for a in range(number):
                kept -= qd.select(bonds.where[bonds.partner[base + a * column]] < 0, 1, 0)
            if kept < number:
                kept = 0
                for a in range(number):
                    name = bonds.partner[base + a * column]
                    if bonds.where[name] >= 0:
                        bonds.partner[base + kept * column] = name
                        _move(rest_base + 6 * a * column, rest_base + 6 * kept * column, bonds)
                        kept += 1
            settle(i, kept, p, c, bonds, single)
            _fit(i, p, x, torus, bonds, m, uniform, periodic)
            if qd.static(leaving):
                m.worst[i] = _worst(i, x, torus, bonds, m, periodic)
        m.changed[i] = 0


@qd.func
def _move(source: qd.i32, target: qd.i32, bonds: BondRows):
    """What a bond remembers, to another place of its row."""
    for number in qd.static(range(6)):
        bonds.rest[target + number * bonds.column[0]] = bonds.rest[source + number * bonds.column[0]]


@qd.func
def _ends(i: qd.i32, j: qd.i32, d: vec3, p: Particles):
    """(end with the smaller id, the other end, from the first to the second), d leading from i to j."""
    first = qd.select(p.id[i] < p.id[j], 1, 0)
    return qd.select(first == 1, i, j), qd.select(first == 1, j, i), qd.select(first == 1, d, -d)


@qd.func
def _apart(i: qd.i32, at: qd.i32, j: qd.i32, d: vec3, p: Particles, bonds: BondRows, m: Regions):
    """(farthest that an end of a bond is from its goal in the other's region, longest place it remembers), squared [m²]."""
    mine = place_at(at, bonds)
    yours = place_at(at + 3 * bonds.column[0], bonds)
    a, b, way = _ends(i, j, d, p)
    first = qd.select(a == i, mine, yours)
    second = qd.select(a == i, yours, mine)
    miss = turned(rotation_at(a, m), first) + m.offset[a] - way
    other = turned(rotation_at(b, m), second) + m.offset[b] + way
    return qd.max(miss.dot(miss), other.dot(other)), qd.max(first.dot(first), second.dot(second))


@qd.func
def _look(
    i: qd.i32, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, single: qd.template(),
    periodic: qd.template(), splitting: qd.template(), merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """(whether members of region i may have to leave, fingerprint of close ones); nothing is stored, no branch taken."""
    xi = x[i]
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    safe2 = 0.998 * c.reach[0] * c.reach[0]  # roundings aside
    near = closest(i, i, p, c, single)
    most = 0.999 * qd.min(own(c.splitting, i, p, single), 1e9) * c.support[0]
    alarm = 0
    mark = 0
    for a in range(bonds.number[i]):
        name = bonds.partner[base + a * column]
        j = bonds.where[name]
        if qd.static(splitting):
            if qd.static(not single):
                most = 0.999 * qd.min(between(c.splitting, i, j, p, single), 1e9) * c.support[0]
            alarm |= qd.select(qd.max(m.worst[i], m.worst[j]) > most * most, 1, 0)
        if qd.static(flowing):
            mine = place_at(rest_base + 6 * a * column, bonds)
            yours = place_at(rest_base + (6 * a + 3) * column, bonds)
            alarm |= qd.select(qd.max(mine.dot(mine), yours.dot(yours)) > safe2, 1, 0)
        if qd.static(merging):
            if qd.static(not single):
                near = closest(i, j, p, c, single)
            d = separation(x[j], xi, torus, periodic)
            mark += qd.select(d.dot(d) < near * near, tag(name), 0)
    return alarm, mark


@qd.func
def _leave(
    i: qd.i32, p: Particles, x: Vectors, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, single: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """Drops the bonds of particle i that end: (bonds left, fingerprint of close ones)."""
    kept = 0
    mark = 0
    xi = x[i]
    base = i * bonds.row[0]
    rest_base = i * bonds.rest_row[0]
    column = bonds.column[0]
    reach2 = c.reach[0] * c.reach[0]
    for a in range(bonds.number[i]):
        name = bonds.partner[base + a * column]
        j = bonds.where[name]
        d = separation(x[j], xi, torus, periodic)
        near = closest(i, j, p, c, single)
        most = qd.min(between(c.splitting, i, j, p, single), 1e9) * c.support[0]
        apart, long = _apart(i, rest_base + 6 * a * column, j, d, p, bonds, m)
        stay = qd.select(apart > most * most, 0, 1)
        stay = qd.select(between(c.flow, i, j, p, single) > 0.0, qd.select(long > reach2, 0, stay), stay)
        if stay == 1:
            if kept < a:
                bonds.partner[base + kept * column] = name
                _move(rest_base + 6 * a * column, rest_base + 6 * kept * column, bonds)
            mark += qd.select(d.dot(d) < near * near, tag(name), 0)
            kept += 1
    return kept, mark


@qd.func
def _flowed(place: vec3, now: vec3, share: qd.f32, yielding: qd.f32) -> vec3:
    """A place after a share of what is beyond the yield of its way to ``now`` was forgotten."""
    way = now - place
    far = way.norm()
    return place + share * qd.max(1.0 - yielding * place.norm() / qd.max(far, 1e-30), 0.0) * way


@qd.func
def forget(
    i: qd.i32, at: qd.i32, j: qd.i32, d: vec3, p: Particles, c: BondNumbers, bonds: BondRows, m: Regions,
    single: qd.template(),
):  # fmt: skip
    """Lets the two places flow that a bond remembers."""
    column = bonds.column[0]
    mine = place_at(at, bonds)
    yours = place_at(at + 3 * column, bonds)
    a, b, way = _ends(i, j, d, p)
    share = between(c.flow, i, j, p, single)
    most = between(c.flow_yield, i, j, p, single)
    first = _flowed(qd.select(a == i, mine, yours), turned_back(rotation_at(a, m), way), share, most)
    second = _flowed(qd.select(a == i, yours, mine), turned_back(rotation_at(b, m), -way), share, most)
    put_place(at, qd.select(a == i, first, second), bonds)
    put_place(at + 3 * column, qd.select(a == i, second, first), bonds)


@qd.func
def _join(
    i: qd.i32, kept: qd.i32, p: Particles, x: Vectors, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows,
    m: Regions, single: qd.template(), periodic: qd.template(),
) -> qd.i32:  # fmt: skip
    """New bonds of particle i, with the places both have now in each other's region; bonds there are by then."""
    number = kept
    for k in range(near.count[i]):
        j = near.index[seat(i * near.row[0], near.column[0], k)]
        d = separation(x[j], x[i], torus, periodic)
        if lacks(i, j, kept, d.dot(d), p, c, bonds, single) == 1:
            if number < bonds.width[0]:
                a, b, way = _ends(i, j, d, p)
                first = turned_back(rotation_at(a, m), way - m.offset[a])
                second = turned_back(rotation_at(b, m), -way - m.offset[b])
                column = bonds.column[0]
                at = i * bonds.rest_row[0] + 6 * number * column
                put_place(at, qd.select(a == i, first, second), bonds)
                put_place(at + 3 * column, qd.select(a == i, second, first), bonds)
                bonds.partner[i * bonds.row[0] + number * column] = p.id[j]
            number += 1
    return number


@qd.func(requires_top_level=True)
def update_regions(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), splitting: qd.template(),
    merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """Members leave and join at positions x, which regions have been fitted to; what then changed is fitted again."""
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            before = bonds.number[i]
            kept = before
            alarm, mark = _look(i, p, x, torus, c, bonds, m, single, periodic, splitting, merging, flowing)
            if alarm == 1:
                kept, mark = _leave(i, p, x, torus, c, bonds, m, single, periodic)
            changed = qd.select(kept < before, 1, 0)
            if qd.static(merging):
                present = wanted(i, near, p, x, torus, c, single, uniform, periodic)
                if present != mark:
                    more = _join(i, kept, p, x, near, torus, c, bonds, m, single, periodic)
                    changed = qd.select(more > kept, 1, changed)
                    kept = more
            if changed == 1:
                settle(i, kept, p, c, bonds, single)
            m.changed[i] = changed
    for i in range(n):
        if m.changed[i] == 1:
            _fit(i, p, x, torus, bonds, m, uniform, periodic)
