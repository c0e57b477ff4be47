"""XSPH viscosity (Macklin & Müller 2013, eq. 17), in a form that keeps momentum between different densities."""

import quadrants as qd

from viscoil.particles import Particles, Vectors
from viscoil.sph.neighbors import NeighborList, Torus, separation
from viscoil.sph.smoothing import poly6


@qd.func(requires_top_level=True)
def xsph(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, strength: qd.f32, support: qd.f32,
    velocity: Vectors, out: Vectors, periodic: qd.template(),
):  # fmt: skip
    """v_i ← v_i + c Σ_j V_j 2w_i/(w_i + w_j) (v_j − v_i) W_ij.

    For equal masses the factor is 1 and this is eq. 17; otherwise it makes the exchanged momentum symmetric.
    """
    for i in range(n):
        result = velocity[i]
        if p.inverse_mass[i] > 0.0:
            vi = velocity[i]
            wi = p.inverse_mass[i]
            change = vi * 0.0
            base = i * near.row
            for k in range(near.count[i]):
                j = near.index[base + k * near.column]
                d = separation(x[i], x[j], torus, periodic)
                share = 2.0 * wi / (wi + p.inverse_mass[j])
                change += p.volume[j] * share * poly6(d.dot(d), support) * (velocity[j] - vi)
            result = vi + strength * change
        out[i] = result
