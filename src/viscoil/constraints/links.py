"""Length constraints on links, C_ij = |x_ij| − l_ij, and how links come and go (viscous PBF of Takahashi et al. 2014).

    Δx_i = −k Σ_j w_i/(w_i + w_j) C_ij/max(n_i, n_j) x_ij/|x_ij|

n are the numbers of links of both ends: the average that Jacobi needs, taken the same for both, so that pairs move by
opposite impulses and momentum is exact.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, vec3
from viscoil.sph.links import flowed
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation


@dataclass(frozen=True)
class LinkNumbers:
    """Parameters, one element each."""

    stiffness: Floats  # k, share of its error a link corrects per iteration
    reach: Floats  # closer than this pairs are linked [m]
    cut: Floats  # farther than this a link is cut [m]
    strain: Floats  # difference to the length at rest that cuts a link [m]
    flow: Floats  # share of what is beyond the yield strain that flows in a step
    yielding: Floats  # γ


@qd.func(requires_top_level=True)
def link_corrections(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: LinkNumbers, length: Floats, number: Ints,
    correction: Vectors, periodic: qd.template(),
):  # fmt: skip
    """Δx_i of all links [m]."""
    for i in range(n):
        total = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            w = p.inverse_mass[i]
            base = i * near.row[0]
            for k in range(near.count[i]):
                e = seat(base, near.column[0], k)
                if length[e] > 0.0:
                    j = near.index[e]
                    d = separation(x[i], x[j], torus, periodic)
                    r = qd.max(d.norm(), 1e-3 * length[e])
                    share = w / ((w + p.inverse_mass[j]) * qd.cast(qd.max(number[i], number[j]), qd.f32))
                    total -= share * (r - length[e]) / r * d
        correction[i] = c.stiffness[0] * total


@qd.func(requires_top_level=True)
def flow_and_cut(
    x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: LinkNumbers, length: Floats, periodic: qd.template()
):
    """Lengths at rest follow the links, and links that are too long or too strained end."""
    for i in range(n):
        base = i * near.row[0]
        for k in range(near.count[i]):
            e = seat(base, near.column[0], k)
            if length[e] > 0.0:
                r = separation(x[i], x[near.index[e]], torus, periodic).norm()
                if r > c.cut[0] or qd.abs(r - length[e]) > c.strain[0]:
                    length[e] = 0.0
                else:
                    length[e] = flowed(length[e], r, c.flow[0], c.yielding[0])
