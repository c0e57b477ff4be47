"""Stress of an upper-convected Maxwell fluid on SPH, explicit in time (Barreiro et al. 2017, eqs. 3 and 4).

    dQ/dt = L Q + Q Lᵀ − (Q − I)/λ                                                   (3), the right way round
    σ = G (Q − I) + η_s (L + Lᵀ)                                                     (4), and a solvent
    a_i = Σ_j m_j (σ_i/ρ_i² + σ_j/ρ_j²) ∇W_ij

Everything is divided by the density of the first material, as inverse masses are; ρ is then relative to the rest density.
Gradients of velocities are corrected (B⁻¹), so that turning strains nothing; the divergence of stress is the plain sum above,
in which pairs exchange opposite impulses.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import gradient_of, strain_of
from viscoil.particles import Floats, Matrices, Particles, Vectors, mat3, vec3
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.smoothing import cubic_gradient


@dataclass(frozen=True)
class MaxwellRows:
    """What the materials are, one row each."""

    modulus: Floats  # G/ρ₀ [m²/s²], 0 where nothing is remembered
    rate: Floats  # 1/λ [1/s], 0 for a solid
    viscosity: Floats  # η_s/ρ₀ [m²/s], the whole viscosity where nothing is remembered


@qd.func(requires_top_level=True)
def stresses(
    p: Particles, x: Vectors, u: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, m: MaxwellRows,
    density: Floats, inverse: Matrices, stress: Matrices, viscous: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """σ_i/ρ_i² [m²/s²] of velocities u; ``density`` relative; ``viscous``: some material has a viscosity of its own."""
    for i in range(n):
        t = mat3(0.0)
        if p.inverse_mass[i] != 0.0:
            row = p.material[i]
            t = m.modulus[row] * strain_of(p.conformation[i])
            if qd.static(viscous):
                gradient = gradient_of(i, u, x, p, near, torus, h, inverse, periodic)
                t += m.viscosity[row] * (gradient + gradient.transpose())
            t /= qd.max(density[i] * density[i], 1e-6)
        stress[i] = t


@qd.func
def acceleration_of(
    i: qd.i32, t: Matrices, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32, periodic: qd.template()
) -> vec3:
    """w_i Σ_j V_j (σ_i/ρ_i² + σ_j/ρ_j²) ∇W_ij [m/s²]; a solid's samples answer with the stress of whom they meet."""
    total = vec3(0.0)
    base = i * near.row[0]
    for k in range(near.count[i]):
        j = near.index[seat(base, near.column[0], k)]
        d = separation(x[i], x[j], torus, periodic)
        other = t[i]
        if p.inverse_mass[j] != 0.0:
            other = t[j]
        total += (t[i] + other) @ (p.volume[j] * cubic_gradient(d.dot(d), h) * d)
    return p.inverse_mass[i] * total


@qd.func
def explicit_conformation(q: mat3, gradient: mat3, dt: qd.f32, rate: qd.f32) -> mat3:
    """Q + Δt (L Q + Q Lᵀ − (Q − I)/λ), forward Euler of eq. 3; ``rate``: 1/λ [1/s]."""
    carried = gradient @ q
    return q + dt * (carried + carried.transpose() - rate * strain_of(q))
