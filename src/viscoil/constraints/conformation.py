"""Conformation: strain measured without a reference shape, and the stress that acts back (Barreiro et al. 2017).

Each particle carries a symmetric tensor Q, the conformation of the polymer in it, which is the identity at rest and moves
with the fluid (steps/conformation.py). With g_ij = B_i⁻¹∇W_ij the corrected gradient,

    L_i = Σ_j V_j (u_j − u_i) g_ijᵀ                                                  (9)
    C_i = θ_i (Q_i − I) + ϑΔt (L_i + L_iᵀ)                                           (7), (10), with ϑ = 1
    σ_i = G_i C_i                                                                    (4)
    f_i = Σ_j V_i V_j (σ_i g_ij − σ_j g_ji)                                          −Jᵀσ, with J of (13)

Pairs exchange opposite impulses, and neither translation nor (thanks to B⁻¹) rotation causes stress. The paper's
six-vectors and 6×3 matrices say the same: their multipliers are the entries of a tensor whose diagonal counts twice, and
equal compliance of all tensor entries is what makes the material isotropic (specification R-9).

One modulus G and one θ stand for all materials (:func:`rates`): a fluid of viscosity η and relaxation time λ has
Gθ = η/(λ + ϑΔt), a solid its shear modulus, and a solvent of viscosity η_s adds η_s/Δt to G. The stress of weak steady flow is
then (η + η_s)(L + Lᵀ) for any Δt. Everything is divided by the density of the first material, as inverse masses are.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.particles import Floats, Matrices, Particles, Vectors, allocate_array, mat3, vec3
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, separation
from viscoil.sph.smoothing import cubic_gradient


@dataclass(frozen=True)
class Substances:
    """What the materials are, one row each."""

    viscosity: Floats  # η/ρ₀ [m²/s] of the part that remembers; unused where modulus > 0
    relaxation: Floats  # λ [s]
    modulus: Floats  # G/ρ₀ [m²/s²] of an elastic solid, 0 for everything that flows
    solvent: Floats  # η_s/ρ₀ [m²/s]
    bulk: Floats  # resistance against changes of volume, in viscosities
    mobility: Floats  # Giesekus' anisotropy of friction, 0 to 0.5
    extensibility: Floats  # FENE-P: trace of Q at which the polymer is taut; 0 = never
    yield_strain: Floats  # elastic strain beyond which it flows; 0 = none
    stickiness: Floats  # of particle solids: share of a fluid's viscosity that acts between the two


def substances_of(
    materials: list[Any], bulk: float = 0.0, relaxation_time: float | None = None, into: Substances | None = None
) -> tuple[Substances, bool]:
    """(the materials on the device, whether any of them remembers).

    bulk: resistance of fluids against changes of volume; relaxation_time [s]: goes before the materials' own; into: arrays to
    use again when the number of materials is still the same.
    """
    rows = {name: np.zeros(len(materials), np.float32) for name in Substances.__dataclass_fields__}
    rho = materials[0].density  # inverse masses are relative to the first material as well
    for index, material in enumerate(materials):
        eta, lam, modulus = material.maxwell()
        lam = lam if relaxation_time is None else relaxation_time
        solid = math.isinf(lam)
        rows["viscosity"][index] = 0.0 if solid or math.isinf(eta) else eta / rho
        rows["relaxation"][index] = 0.0 if solid else lam
        rows["modulus"][index] = min(modulus, 1e30) / rho if solid else 0.0
        rows["solvent"][index] = (material.solvent_viscosity or 0.0) / rho
        rows["bulk"][index] = 0.0 if solid else bulk
        for name in ("mobility", "extensibility", "yield_strain", "stickiness"):
            rows[name][index] = getattr(material, name) or 0.0
    if into is None or into.viscosity.shape[0] != len(materials):
        into = Substances(**{name: allocate_array(qd.f32, len(materials)) for name in rows})
    for name, values in rows.items():
        transfer.write(getattr(into, name), values)
    return into, bool((rows["modulus"] > 0).any() or (rows["relaxation"] > 0).any())


@qd.func
def strain_of(q: mat3) -> mat3:
    """Q − I."""
    return q - qd.Matrix.identity(qd.f32, 3)


@qd.func
def spring_factor(trace: qd.f32, b: qd.f32) -> qd.f32:
    """f of FENE-P: 1 at rest, without bound as the trace nears b; 1 everywhere for b = 0 (never taut)."""
    return qd.select(b > 0.0, (b - 3.0) / qd.max(b - trace, 1e-3 * b), 1.0)


@qd.func
def memory_of(q: mat3, m: qd.i32, k: Substances) -> mat3:
    """What the stress of material m is proportional to: fQ − I, with f of FENE-P, 1 for all others."""
    return spring_factor(q.trace(), k.extensibility[m]) * q - qd.Matrix.identity(qd.f32, 3)


@qd.func
def rates(i: qd.i32, p: Particles, dt: qd.f32, inverse: mat3, stiffest: qd.f32, k: Substances):
    """(elastic modulus Gθ/ρ₀ [m²/s²] on Q − I, viscosity GΔt/ρ₀ [m²/s] on L + Lᵀ) of particle i.

    The implicit share ϑ of a step's strain damps: an oscillator loses a factor √(1 + ϑ(ωΔt)²) per step, and is stable when
    (1 − 2ϑ)(ωΔt)² ≤ 4. For what forgets within a step ϑ = 1; for what remembers it is the least that is stable,
    ½ − 2/(ωΔt)², with a tenth to spare and never under 0.1. Gθ = η/(λ + ϑΔt) keeps steady flow exact.

    ω² = G s κ/ρ, with κ (``stiffest``) [1/m²] of the lattice's stiffest mode, and s what the constraint, linear about Q = I and
    far from surfaces, does not know: stretched material answers with LQ + QLᵀ in place of L + Lᵀ, at most by the largest
    eigenvalue of Q ≤ 1 + |Q − I|, FENE-P by its spring besides, and at a surface gradients, and with them forces, grow by B⁻¹
    (``inverse``).
    """
    m = qd.max(p.material[i], 0)
    elastic = k.modulus[m]
    memory = 1.0
    if elastic == 0.0:
        memory = k.relaxation[m] / (k.relaxation[m] + dt)
        elastic = k.viscosity[m] / (k.relaxation[m] + dt)
    q = p.conformation[i]
    stiffer = qd.max(inverse.norm_sqr() / 3.0, 1.0) * (1.0 + strain_of(q).norm())
    b = k.extensibility[m]
    if b > 0.0:  # d(fQ): the nearer to taut, the stiffer
        stiffer *= spring_factor(q.trace(), b) * (1.0 + q.trace() / qd.max(b - q.trace(), 1e-3 * b))
    least = 0.5 * stiffer - 2.0 / qd.max(elastic * stiffest * dt * dt, 1e-6)
    share = (1.0 - memory) + memory * qd.max(1.1 * least, 0.1)
    if k.modulus[m] == 0.0:
        elastic = k.viscosity[m] / (k.relaxation[m] + share * dt)
        if k.yield_strain[m] > 0.0:  # below its yield strain it does not relax: the whole modulus counts
            elastic = k.viscosity[m] / qd.max(k.relaxation[m], share * dt)
    return elastic, share * elastic * dt + k.solvent[m]


@qd.func(requires_top_level=True)
def gradient_corrections(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, fewest: qd.i32,
    inverse: Matrices, periodic: qd.template(),
):  # fmt: skip
    """B_i⁻¹, which makes the gradient of a linear field exact.

    Fewer than ``fewest`` neighbours define no gradient: B⁻¹ = 0 then, and no stress. Neighbours in a line or a plane define
    it in part only: B⁻¹ becomes a plain factor there. A flat surface has eigenvalues 1, 1 and ½ of B, far from that limit.
    """
    for i in range(n):
        b = mat3(0.0)
        xi = x[i]
        count = near.count[i]
        for batch in range(batches(count)):
            some = fetch(near, i, batch)
            for lane in qd.static(range(lanes())):
                j = some[lane]
                d = separation(xi, x[j], torus, periodic)
                b -= d.outer_product(p.volume[j] * cubic_gradient(d.dot(d), h) * d)
        third = b.trace() / 3.0
        result = mat3(0.0)
        if near.count[i] >= fewest:
            result = qd.Matrix.identity(qd.f32, 3) / qd.max(third, 0.3)
            if third >= 0.15 and b.determinant() >= 0.05 * third * third * third:
                result = b.inverse()
        inverse[i] = result


@qd.func
def gradient_of(
    i: qd.i32, u: Vectors, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32, inverse: Matrices,
    periodic: qd.template(),
) -> mat3:  # fmt: skip
    """L_i of the velocities u [1/s] (eq. 9, corrected)."""
    total = mat3(0.0)
    xi = x[i]
    ui = u[i]
    count = near.count[i]
    for batch in range(batches(count)):
        some = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[j], torus, periodic)
            total += (u[j] - ui).outer_product(p.volume[j] * cubic_gradient(d.dot(d), h) * d)
    return total @ inverse[i]


@qd.func
def divergence_of(
    i: qd.i32, t: Matrices, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32, periodic: qd.template()
) -> vec3:
    """Σ_j V_j (T_i + T_j) ∇W_ij with T = σ B⁻¹: the force of stress σ per volume (eq. 12 without its relaxation)."""
    total = vec3(0.0)
    xi = x[i]
    own = t[i]
    count = near.count[i]
    for batch in range(batches(count)):
        some = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            d = separation(xi, x[j], torus, periodic)
            total += (own + t[j]) @ (p.volume[j] * cubic_gradient(d.dot(d), h) * d)
    return total
