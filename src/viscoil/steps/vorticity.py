"""Vorticity confinement (Macklin & Müller 2013, eqs. 15 and 16): puts back rotation that the projection damps."""

import quadrants as qd

from viscoil.particles import Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, Torus, entry, separation
from viscoil.sph.smoothing import spiky_gradient


@qd.func(requires_top_level=True)
def curl(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, velocity: Vectors,
    out: Vectors, periodic: qd.template(),
):  # fmt: skip
    """ω_i = Σ_j V_j ∇W_ij × (v_j − v_i) [1/s] (15)."""
    for i in range(n):
        total = vec3(0.0)
        for k in range(near.count[i]):
            j = entry(near, i, k)
            d = separation(x[i], x[j], torus, periodic)
            gradient = p.volume[j] * spiky_gradient(d.dot(d), support) * d
            total += gradient.cross(velocity[j] - velocity[i])
        out[i] = total


@qd.func(requires_top_level=True)
def confine(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, strength: qd.f32, dt: qd.f32,
    vorticity: Vectors, velocity: Vectors, periodic: qd.template(),
):  # fmt: skip
    """v_i += Δt ε (N × ω_i) with N = η/|η|, η = Σ_j V_j (|ω_j| − |ω_i|) ∇W_ij (16); ε = ``strength`` [m/s]."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            own = vorticity[i].norm()
            eta = vec3(0.0)
            for k in range(near.count[i]):
                j = entry(near, i, k)
                d = separation(x[i], x[j], torus, periodic)
                eta += p.volume[j] * (vorticity[j].norm() - own) * spiky_gradient(d.dot(d), support) * d
            # Where the vorticity is even its gradient has no direction: compare with the largest it could be here.
            if eta.norm() > 1e-4 * own / support:
                velocity[i] += dt * strength * (eta / eta.norm()).cross(vorticity[i])
