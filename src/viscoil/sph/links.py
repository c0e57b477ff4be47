"""Links: pairs of particles that remember a length, as springs and length constraints need it.

Every particle has a row with room for ``width`` links: the other's id, and the length at rest [m]. Both ends hold the link,
always with the same bits. Rows name others by id and travel with the particles (carried.py), so neither sorting nor
restarts touch them.

Inside a step links are wanted beside the neighbour list. Whoever is linked is near, so :func:`recall` finds every link by
walking the list, and lays the lengths out like it: ``length[e]`` belongs to ``index[e]``, 0 where there is no link. A link
whose other end is not in the list is gone. :func:`make` adds links, :func:`store` puts what is left back into the rows.

A new link needs room at both ends. Each end proposes the first neighbours of its list that fit, and :func:`agree` drops
what only one side proposed: nobody is linked one way, whatever is full.
"""

from dataclasses import dataclass
from typing import Any

import quadrants as qd

from viscoil.carried import Carried
from viscoil.particles import Floats, Ints, Particles, Vectors
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation

NOBODY = -1  # partner of an empty place


@dataclass(frozen=True)
class LinkRows:
    """Links by particle: place a of particle i is element i·width + a; used places come first."""

    partner: Ints  # id of the other, -1 = empty
    rest: Floats  # length at rest [m]
    width: Ints  # [1] places per particle


def carried_links(width: int) -> dict[str, Carried]:
    """What a world carries along for a method with links, ``width`` of them per particle."""
    return {"partner": Carried(qd.i32, width, NOBODY), "rest": Carried(qd.f32, width)}


def link_rows(world: Any) -> Any:
    """The rows a world carries: plain ones, each as long as they are wide.

    One dataclass for the same arrays: launches are known by the identity of their arguments (see Bonds._same).
    """
    partner = world.carried["partner"]
    arrays = partner.array, world.carried["rest"].array, partner.row
    key = tuple(map(id, arrays))
    if key not in partner.made:
        partner.made[key] = arrays, LinkRows(*arrays)
    return partner.made[key][1]


@qd.func(requires_top_level=True)
def recall(p: Particles, n: qd.i32, near: NeighborList, rows: LinkRows, length: Floats, number: Ints):
    """Lengths of all links, laid out like the list; number[i]: links of particle i."""
    for i in range(n):
        width = rows.width[0]
        used = 0
        for a in range(width):
            used += qd.select(rows.partner[i * width + a] >= 0, 1, 0)
        found = 0
        base = i * near.row[0]
        for k in range(near.count[i]):
            e = seat(base, near.column[0], k)
            other = p.id[near.index[e]]
            rest = 0.0
            for a in range(used):
                if rows.partner[i * width + a] == other:
                    rest = rows.rest[i * width + a]
            length[e] = rest
            found += qd.select(rest > 0.0, 1, 0)
        number[i] = found


@qd.func(requires_top_level=True)
def make(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, reach: qd.f32, rows: LinkRows, length: Floats,
    number: Ints, periodic: qd.template(),
):  # fmt: skip
    """Proposes links to all neighbours closer than ``reach`` [m], as long as there is room; their length with a minus sign."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            room = rows.width[0] - number[i]
            base = i * near.row[0]
            for k in range(near.count[i]):
                e = seat(base, near.column[0], k)
                j = near.index[e]
                if room > 0 and length[e] == 0.0 and p.inverse_mass[j] > 0.0:
                    r = separation(x[i], x[j], torus, periodic).norm()
                    if r < reach and r > 1e-3 * reach:
                        length[e] = -r
                        room -= 1


@qd.func(requires_top_level=True)
def agree(n: qd.i32, near: NeighborList, length: Floats, number: Ints):
    """Proposals of both ends become links, others are dropped.

    In place: a proposal is only ever dropped when the other end has none, and then the other end does not look here.
    """
    for i in range(n):
        base = i * near.row[0]
        for k in range(near.count[i]):
            e = seat(base, near.column[0], k)
            if length[e] < 0.0:
                j = near.index[e]
                other = j * near.row[0]
                wanted = 0
                for a in range(near.count[j]):
                    f = seat(other, near.column[0], a)
                    if near.index[f] == i and length[f] != 0.0:
                        wanted = 1
                length[e] = qd.select(wanted == 1, -length[e], 0.0)
                number[i] += wanted


@qd.func
def flowed(rest: qd.f32, r: qd.f32, share: qd.f32, yielding: qd.f32) -> qd.f32:
    """Rest length of a link that is r long [m], after Clavet et al. 2005: l ← l + s sign(r − l) max(0, |r − l| − γl).

    ``share`` s: Δt over the time of flow, at most 1; ``yielding`` γ: strain below which nothing flows.
    """
    beyond = qd.max(qd.abs(r - rest) - yielding * rest, 0.0)
    return rest + share * qd.select(r > rest, beyond, -beyond)


@qd.func(requires_top_level=True)
def store(p: Particles, n: qd.i32, near: NeighborList, length: Floats, rows: LinkRows, total: Ints):
    """The links of the list into the rows; total[0] counts them, both ends of each."""
    for i in range(n):
        width = rows.width[0]
        place = 0
        base = i * near.row[0]
        for k in range(near.count[i]):
            e = seat(base, near.column[0], k)
            if length[e] > 0.0 and place < width:
                rows.partner[i * width + place] = p.id[near.index[e]]
                rows.rest[i * width + place] = length[e]
                place += 1
        qd.atomic_add(total[0], place)
        for a in range(place, width):
            rows.partner[i * width + a] = -1
            rows.rest[i * width + a] = 0.0
