"""XSPH viscosity (Macklin & Müller 2013, eq. 17), in a form that keeps momentum between different densities.

It is the last thing a step does, so the commit is done in the same pass.
"""

import quadrants as qd

from viscoil.particles import Particles, Vectors
from viscoil.sph.neighbors import NeighborList, Torus, separation
from viscoil.sph.smoothing import poly6
from viscoil.steps.integrate import wrapped


@qd.func(requires_top_level=True)
def xsph_and_commit(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, strength: qd.f32, support: qd.f32,
    velocity: Vectors, uniform: qd.template(), periodic: qd.template(), bodied: qd.template() = False,
):  # fmt: skip
    """v_i ← v_i + c Σ_j V_j 2w_i/(w_i + w_j) (v_j − v_i) W_ij, x_i ← x*_i.

    For equal masses (``uniform``) the factor is 1 and this is eq. 17; otherwise it makes the exchanged momentum symmetric.
    Particle solids take no part (``bodied``): inside it would brake their turning, and what clings to them is theirs to say.
    Boundary samples stay where their solid is, also outside a periodic box: their velocity is its motion.
    """
    for i in range(n):
        p.velocity[i] = velocity[i]
        p.position[i] = x[i]
        if p.inverse_mass[i] > 0.0:
            vi = velocity[i]
            wi = p.inverse_mass[i]
            change = vi * 0.0
            xi = x[i]
            volume = p.volume[i]
            base = i * near.row[0]
            column = near.column[0]
            for k in range(near.count[i]):
                j = near.index[base + k * column]
                d = separation(xi, x[j], torus, periodic)
                if qd.static(not uniform):
                    volume = p.volume[j] * 2.0 * wi / (wi + qd.max(p.inverse_mass[j], 0.0))
                share = volume
                if qd.static(bodied):
                    share = qd.select(qd.max(p.cluster[i], p.cluster[j]) >= 0, 0.0, volume)
                change += share * poly6(d.dot(d), support) * (velocity[j] - vi)
            p.velocity[i] = vi + strength * change
            p.position[i] = wrapped(x[i], torus, periodic)
