"""XSPH viscosity (Macklin & Müller 2013, eq. 17), in a form that keeps momentum between different densities.

It is the last thing a step does, so the commit is done in the same pass.
"""

import quadrants as qd

from viscoil.particles import Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, fetch_first, fetch_next, lanes, separation, turns
from viscoil.sph.records import Records, begin_at, digits_of, other_of, own_of
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
            count = near.count[i]
            for batch in range(batches(count)):
                some = fetch(near, i, batch)
                for lane in qd.static(range(lanes())):
                    j = some[lane]
                    d = separation(xi, x[j], torus, periodic)
                    if qd.static(not uniform):
                        volume = p.volume[j] * 2.0 * wi / (wi + qd.max(p.inverse_mass[j], 0.0))
                    share = volume
                    if qd.static(bodied):
                        share = qd.select(qd.max(p.cluster[i], p.cluster[j]) >= 0, 0.0, volume)
                    change += share * poly6(d.dot(d), support) * (velocity[j] - vi)
            p.velocity[i] = vi + strength * change
            p.position[i] = wrapped(x[i], torus, periodic)


@qd.func(requires_top_level=True)
def xsph_by_records(
    p: Particles, x: Vectors, half: Ints, n: qd.i32, near: NeighborList, strength: qd.f32, support: qd.f32, velocity: Vectors,
    r: Records,
):  # fmt: skip
    """:func:`xsph_and_commit` in open space where all have one volume and mass: the half of the records that holds no places of
    the density iterations has places with velocities. Differences are those of rounded velocities, for both of a pair."""
    qd.loop_config(block_dim=256)
    for i in range(n):
        change = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            begin = begin_at(r, 1 - half[0])
            digits = digits_of(r)
            xi, vi = own_of(begin, i, digits)
            count = near.count[i]
            some = fetch_first(near, i, count, 0, 1)
            for turn in range(turns(count, 1)):
                ahead = fetch_next(near, i, count, turn, 0, 1)
                for lane in qd.static(range(lanes())):
                    d, vj = other_of(xi, begin, some[lane], digits)
                    near_by = qd.max(1.0 - 3.637978807091713e-12 * d.dot(d), 0.0)  # 1 − q², of poly6
                    change += near_by * near_by * near_by * (vj - vi)
                some = ahead
            change *= poly6(0.0, support)
        p.velocity[i] = velocity[i] + strength * p.volume[i] * change
        p.position[i] = x[i]
