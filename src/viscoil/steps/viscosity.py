"""XSPH viscosity (Macklin & Müller 2013, eq. 17), in a form that keeps momentum between different densities.

It is the last thing a step does, so the commit is done in the same pass.
"""

import quadrants as qd

from viscoil.particles import Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, separation
from viscoil.sph.records import Records, record, vector_of
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
                some = fetch(near, i, count, batch)
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
    p: Particles, x: Vectors, half: Ints, n: qd.i32, near: NeighborList, torus: Torus, strength: qd.f32, support: qd.f32,
    velocity: Vectors, r: Records, periodic: qd.template(),
):  # fmt: skip
    """:func:`xsph_and_commit` where all have one volume and mass: one half of the records has places, the other velocities."""
    for i in range(n):
        vi = velocity[i]
        change = vec3(0.0)
        place = x[i]
        if p.inverse_mass[i] > 0.0:
            there = half[0] * velocity.shape[0]
            fast = velocity.shape[0] - there
            count = near.count[i]
            for batch in range(batches(count)):
                some = fetch(near, i, count, batch, False)
                for lane in qd.static(range(lanes())):
                    other = record(r, there + some[lane])
                    v = record(r, fast + some[lane])
                    d = separation(x[i], vector_of(other), torus, periodic)
                    change += poly6(d.dot(d), support) * (vector_of(v) - vi)
            place = wrapped(x[i], torus, periodic)
        p.velocity[i] = vi + strength * p.volume[i] * change
        p.position[i] = place
