"""The conformation constraint as published: one symmetric tensor per particle, Jacobi iterations (Barreiro et al. 2017).

    C_i(u) = θ_i (Q_i − I) + Δt (L_i + L_iᵀ)                                                   (10), velocities
    C_i(x) = θ_i (Q_i − I) + Σ_j V_j [(x_ji − R_i x⁰_ji) g_ijᵀ + its transpose]                 (16), positions

The paper writes six-vectors λ and 6×3 matrices A. With Λ the symmetric tensor that holds 2λ_xx, 2λ_yy, 2λ_zz on its diagonal
and λ_xy, λ_xz, λ_yz beside it, the same formulas are

    ΔΛ_ab = −(C_ab + a Λ_ab)/(E_a + E_b + a)                                                   (11), (17)
    Δx_i  = −w_i Σ_j (V_j T_i + V_i T_j) ∇W_ij,   T = ΔΛ B⁻¹                                   (12), (18) without relaxation
    E_a   = Σ_j w_j (V_j g_a)² + w_i (Σ_j V_j g_a)²                                            diagonal of J M⁻¹ Jᵀ over 2 or 1

with g = B⁻¹∇W (plain gradients: B = I) and w the inverse masses. Positions have a = α/Δt². Velocities have Δt²E and Δt T in
place of E and T, and then a = α is what gives the same force, with Λ carried over as Δt²Λ (specification 5.6, R-6).
α = ρ₀/G [s²/m²]. Equal a for all entries of the tensor is isotropic; the published equal α for all rows of the six-vector
halves it on the diagonal (R-9).

Relaxation: β/n_i on the particle, as printed, gives the two of a pair different impulses, and Λ counts more than was applied
(R-11). On the multiplier, ΔΛ ← ωΔΛ before anything else, neither happens. Jacobi converges for ω times the largest eigenvalue
of M⁻¹Jᵀ D⁻¹J below 2; :func:`probe_and_measure` estimates that eigenvalue by power iteration.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import Substances, divergence_of, gradient_of, memory_of
from viscoil.constraints.contact import clearance, clearance_on_way, resolve_all
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, mat3, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.rotation import rotation_of
from viscoil.sph.smoothing import cubic_gradient


@dataclass(frozen=True)
class Tensors:
    """Memory of the constraint, one element per particle except where noted."""

    u: Vectors  # velocities being projected [m/s]
    aim: Vectors  # where they lead [m]
    shift: Vectors  # how far positions are from there [m]; summed by itself, because a place has seven digits only
    change: Vectors  # Δu or Δx of an iteration
    weight: Vectors  # E [1/m²]
    multiplier: Matrices  # Λ; [m²/s²] of velocities, [m²] of positions
    force: Matrices  # T of an iteration
    inverse: Matrices  # B⁻¹, the identity for plain gradients, 0 where there are too few neighbours
    products: Vectors  # terms of the sums
    partial: Vectors  # their sums by chunks of 256
    scalars: Floats  # [0] largest eigenvalue, [1] |C + aΛ|, [2] −aΛ:C, [3] C:C, sums over particles


@dataclass(frozen=True)
class TensorNumbers:
    """What the iterations are told, one element each."""

    compliance: Floats  # α for everybody [s²/m²]; negative: what the materials say
    beta: Floats  # β of eqs. 12 and 18; 0: from the largest eigenvalue
    on_particle: Ints  # 1: relaxation on the particle, as printed
    corrected: Ints  # B⁻¹: 0 nowhere, 1 in the velocity projection, 2 in both
    corotational: Ints  # 1: R of eq. 14, 0: R = I
    contact: Ints  # 1: contact within the velocity projection
    literal: Ints  # 1: a = α/Δt for velocities, Λ restarted, equal α in the six-vector
    velocity_iterations: Ints


@qd.func
def softness(i: qd.i32, p: Particles, dt: qd.f32, m: Substances, c: TensorNumbers):
    """(α [s²/m²], θ) of particle i: α = ρ₀/G with G = G_polymer + η_s/Δt, of which the polymer's share θ remembers.

    A fluid has G_polymer = η/(λ + Δt). Without any stiffness α is 1e12, whose forces nobody sees.
    """
    k = qd.max(p.material[i], 0)
    polymer = m.modulus[k]
    if polymer == 0.0:
        polymer = m.viscosity[k] / (m.relaxation[k] + dt)
    total = polymer + m.solvent[k] / dt
    alpha = qd.select(total > 1e-12, 1.0 / qd.max(total, 1e-12), 1e12)
    theta = polymer / qd.max(total, 1e-12)
    if c.compliance[0] >= 0.0:
        alpha = c.compliance[0]
        theta = 1.0
    if m.modulus[k] == 0.0 and m.relaxation[k] == 0.0:
        theta = 0.0
    return alpha, theta


@qd.func
def relaxation(i: qd.i32, near: NeighborList, c: TensorNumbers, s: Tensors) -> qd.f32:
    """β/n_i, or 1.2 over the largest eigenvalue: 0.6 of what converges, because estimates come from below."""
    factor = 1.2 / qd.max(s.scalars[0], 1.0)
    if c.beta[0] > 0.0:
        factor = c.beta[0] / qd.cast(qd.max(near.count[i], 6), qd.f32)
    return factor


@qd.func
def inverse_of(b: mat3, neighbours: qd.i32, corrected: qd.i32) -> mat3:
    """B⁻¹ (as conformation.gradient_corrections limits it), the identity when not ``corrected``, 0 for under 6 neighbours."""
    third = b.trace() / 3.0
    result = mat3(0.0)
    if neighbours >= 6:
        result = qd.Matrix.identity(qd.f32, 3)
        if corrected == 1:
            result /= qd.max(third, 0.3)
            if third >= 0.15 and b.determinant() >= 0.05 * third * third * third:
                result = b.inverse()
    return result


@qd.func
def update(i: qd.i32, strain: mat3, weight: vec3, a: qd.f32, factor: qd.f32, c: TensorNumbers, s: Tensors) -> mat3:
    """ΔΛ of eq. 11 or 17, relaxed by ``factor`` unless particles are; adds it to Λ and keeps the accounts of the residual."""
    change = mat3(0.0)
    rest = mat3(0.0)
    work = 0.0
    acting = qd.select(c.on_particle[0] == 1, factor, 1.0)
    own = factor / acting
    for k, b in qd.static(qd.ndrange(3, 3)):
        soft = a
        if qd.static(k == b):
            soft = a * (1.0 - 0.5 * qd.cast(c.literal[0], qd.f32))
        rest[k, b] = strain[k, b] + soft * s.multiplier[i][k, b]
        work -= acting * soft * s.multiplier[i][k, b] * strain[k, b]
        change[k, b] = -own * rest[k, b] / (weight[k] + weight[b] + soft)
    s.multiplier[i] += change
    s.products[i] = vec3(rest.norm(), work, strain.norm_sqr())
    return change


@qd.func(requires_top_level=True)
def prepare(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, c: TensorNumbers, s: Tensors,
    periodic: qd.template(),
):  # fmt: skip
    """B⁻¹ and E at the positions x: they stay for the whole velocity projection (eq. 13)."""
    for i in range(n):
        b = mat3(0.0)
        squares = mat3(0.0)
        total = vec3(0.0)
        xi = x[i]
        base = i * near.row[0]
        column = near.column[0]
        for k in range(near.count[i]):
            j = near.index[seat(base, column, k)]
            d = separation(xi, x[j], torus, periodic)
            g = p.volume[j] * cubic_gradient(d.dot(d), h) * d
            b -= d.outer_product(g)
            squares += (qd.max(p.inverse_mass[j], 0.0) * g).outer_product(g)
            total += g
        inverse = inverse_of(b, near.count[i], qd.min(c.corrected[0], 1))
        e = inverse @ (squares + qd.max(p.inverse_mass[i], 0.0) * total.outer_product(total)) @ inverse.transpose()
        s.inverse[i] = inverse
        floor = 1e-6 / (h * h)
        s.weight[i] = vec3(qd.max(e[0, 0], floor), qd.max(e[1, 1], floor), qd.max(e[2, 2], floor))


@qd.func(requires_top_level=True)
def velocity_multipliers(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, m: Substances,
    c: TensorNumbers, s: Tensors, periodic: qd.template(),
):  # fmt: skip
    """ΔΛ of eq. 11."""
    for i in range(n):
        t = mat3(0.0)
        s.products[i] = vec3(0.0)
        if p.inverse_mass[i] != 0.0 and near.count[i] >= 6:
            gradient = gradient_of(i, s.u, x, p, near, torus, h, s.inverse, periodic)
            alpha, theta = softness(i, p, dt, m, c)
            strain = theta * memory_of(p.conformation[i], qd.max(p.material[i], 0), m) + dt * (gradient + gradient.transpose())
            factor = relaxation(i, near, c, s)
            a = qd.select(c.literal[0] == 1, alpha / dt, alpha)
            t = update(i, strain, dt * dt * s.weight[i], a, factor, c, s) @ s.inverse[i]
        s.force[i] = t


@qd.func(requires_top_level=True)
def velocity_changes(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, radius: qd.f32,
    number: qd.i32, solids: Solids, parts: Parts, clear: Floats, c: TensorNumbers, s: Tensors, left: Flag,
    periodic: qd.template(),
):  # fmt: skip
    """u ← u + Δu of eq. 12, then contact of where it leads; one iteration fewer to go."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            factor = qd.select(c.on_particle[0] == 1, relaxation(i, near, c, s), 1.0)
            change = -factor * p.inverse_mass[i] * dt * divergence_of(i, s.force, x, p, near, torus, h, periodic)
            u = s.u[i] + change
            if c.contact[0] == 1:
                clear[i] -= dt * change.norm()
                if clear[i] < h:
                    wanted = p.position[i] + dt * u
                    reached = resolve_all(wanted, p.position[i], radius, number, solids, parts, 0.0)
                    if (reached - wanted).norm() > 1e-5 * radius:
                        u = (reached - p.position[i]) / dt
            s.u[i] = u
        if i == 0:
            left[()] = left[()] - 1


@qd.func(requires_top_level=True)
def position_multipliers(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, m: Substances,
    c: TensorNumbers, s: Tensors, periodic: qd.template(),
):  # fmt: skip
    """ΔΛ of eq. 17 with the corotational constraint (16), everything anew from the present positions x."""
    for i in range(n):
        t = mat3(0.0)
        s.products[i] = vec3(0.0)
        if p.inverse_mass[i] != 0.0 and near.count[i] >= 6:
            moved = mat3(0.0)  # Σ V (x_ji − x⁰_ji) ∇Wᵀ
            before = mat3(0.0)  # Σ V x⁰_ji ∇Wᵀ
            fit = mat3(0.0)  # Σ x_ji x⁰_jiᵀ
            centre = vec3(0.0)
            centre0 = vec3(0.0)
            squares = mat3(0.0)
            total = vec3(0.0)
            xi = x[i]
            x0i = p.position[i]
            base = i * near.row[0]
            column = near.column[0]
            for k in range(near.count[i]):
                j = near.index[seat(base, column, k)]
                d = separation(xi, x[j], torus, periodic)
                d0 = separation(x0i, p.position[j], torus, periodic)
                g = p.volume[j] * cubic_gradient(d.dot(d), h) * d
                moved += (d0 - d).outer_product(g)
                before -= d0.outer_product(g)
                fit += d.outer_product(d0)
                centre += d
                centre0 += d0
                squares += (qd.max(p.inverse_mass[j], 0.0) * g).outer_product(g)
                total += g
            fit -= centre.outer_product(centre0) / qd.cast(near.count[i] + 1, qd.f32)
            gradient = moved
            if c.corotational[0] == 1:
                gradient -= (rotation_of(fit) - qd.Matrix.identity(qd.f32, 3)) @ before
            inverse = inverse_of(moved + before, near.count[i], c.corrected[0] // 2)
            gradient = gradient @ inverse
            e = inverse @ (squares + qd.max(p.inverse_mass[i], 0.0) * total.outer_product(total)) @ inverse.transpose()
            floor = 1e-6 / (h * h)
            weight = vec3(qd.max(e[0, 0], floor), qd.max(e[1, 1], floor), qd.max(e[2, 2], floor))
            alpha, theta = softness(i, p, dt, m, c)
            strain = theta * memory_of(p.conformation[i], qd.max(p.material[i], 0), m) + gradient + gradient.transpose()
            factor = relaxation(i, near, c, s)
            t = update(i, strain, weight, alpha / (dt * dt), factor, c, s) @ inverse
        s.force[i] = t


@qd.func(requires_top_level=True)
def position_changes(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, c: TensorNumbers, s: Tensors,
    change: Vectors, periodic: qd.template(),
):  # fmt: skip
    """Δx of eq. 18."""
    for i in range(n):
        total = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            factor = qd.select(c.on_particle[0] == 1, relaxation(i, near, c, s), 1.0)
            total = -factor * p.inverse_mass[i] * divergence_of(i, s.force, x, p, near, torus, h, periodic)
        change[i] = total


@qd.func(requires_top_level=True)
def start_projection(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, gravity: vec3, number: qd.i32, solids: Solids, parts: Parts,
    clear: Floats, s: Tensors,
):  # fmt: skip
    """u*, Λ = 0, and a lower bound of the distance to solids; 0 where the way to x* may have led through one."""
    for i in range(n):
        s.multiplier[i] = mat3(0.0)
        s.u[i] = (x[i] - p.position[i]) / dt
        clear[i] = 1e30
        if p.inverse_mass[i] > 0.0:
            s.u[i] = p.velocity[i] + dt * gravity
            gap = clearance(x[i], number, solids, parts)
            if clearance_on_way(p.position[i], x[i], number, solids, parts) < 0.0:
                gap = qd.min(gap, 0.0)
            clear[i] = gap


@qd.func(requires_top_level=True)
def follow_velocities(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts,
    clear: Floats, c: TensorNumbers, s: Tensors,
):  # fmt: skip
    """x** = x⁰ + Δt u**, contact there, and Λ of the position projection: Δt² of the velocities', or 0 as printed."""
    for i in range(n):
        scale = qd.select(c.literal[0] == 1, 0.0, dt * dt)
        s.multiplier[i] = scale * s.multiplier[i]
        if p.inverse_mass[i] > 0.0:
            aim = p.position[i] + dt * s.u[i]
            s.aim[i] = aim
            x[i] = resolve_all(aim, p.position[i], radius, number, solids, parts, p.inverse_mass[i])
            s.shift[i] = x[i] - aim
            clear[i] = clearance(x[i], number, solids, parts)


@qd.func
def scrambled(k: qd.i32) -> qd.f32:
    """A number in [−1, 1) that has nothing to do with its neighbours'."""
    m = qd.cast(k, qd.u32) * qd.u32(0x9E3779B1)
    m = (m ^ (m >> 15)) * qd.u32(0x85EBCA77)
    m = (m ^ (m >> 13)) * qd.u32(0xC2B2AE3D)
    return qd.cast((m ^ (m >> 16)) & 0xFFFF, qd.f32) / 32768.0 - 1.0


@qd.func(requires_top_level=True)
def start_probe(left: Flag, p: Particles, n: qd.i32, turns: qd.i32, s: Tensors):
    """A motion without pattern, the same in every run: the begin of the power iteration. ``turns`` of it are to come."""
    for i in range(n):
        s.change[i] = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            s.change[i] = vec3(scrambled(3 * p.id[i]), scrambled(3 * p.id[i] + 1), scrambled(3 * p.id[i] + 2))
        if i == 0:
            s.scalars[0] = 1.0
            left[()] = turns


@qd.func(requires_top_level=True)
def probe_and_measure(
    left: Flag, p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, s: Tensors,
    periodic: qd.template(),
):  # fmt: skip
    """One turn of the power iteration of M⁻¹Jᵀ D⁻¹J, α = 0: its gain is the estimate. It is symmetric in the norm Σ|v|²/w."""
    for i in range(n):
        s.u[i] = s.change[i] / s.scalars[0]
    for i in range(n):
        t = mat3(0.0)
        if p.inverse_mass[i] != 0.0 and near.count[i] >= 6:
            gradient = gradient_of(i, s.u, x, p, near, torus, h, s.inverse, periodic)
            e = s.weight[i]
            for k, b in qd.static(qd.ndrange(3, 3)):
                t[k, b] = -(gradient[k, b] + gradient[b, k]) / (e[k] + e[b])
            t = t @ s.inverse[i]
        s.force[i] = t
    for i in range(n):
        v = vec3(0.0)
        before = 0.0
        if p.inverse_mass[i] > 0.0:
            v = -p.inverse_mass[i] * divergence_of(i, s.force, x, p, near, torus, h, periodic)
            before = s.u[i].dot(s.u[i]) / p.inverse_mass[i]
        s.change[i] = v
        s.products[i] = vec3(v.dot(v) / qd.max(p.inverse_mass[i], 1e-30), before, 0.0)
    add_up(n, s)
    for _ in range(1):
        total = vec3(0.0)
        for chunk in range((n + 255) // 256):
            total += s.partial[chunk]
        s.scalars[0] = qd.max(qd.sqrt(total[0] / qd.max(total[1], 1e-30)), 1e-6)
        left[()] = left[()] - 1


@qd.func(requires_top_level=True)
def add_up(n: qd.i32, s: Tensors):
    """Sums of 256 products each: always in the same order, whatever the threads do."""
    for chunk in range((n + 255) // 256):
        total = vec3(0.0)
        for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
            total += s.products[i]
        s.partial[chunk] = total


@qd.func(requires_top_level=True)
def keep_accounts(n: qd.i32, s: Tensors):
    """The sums of the last iteration of a step."""
    add_up(n, s)
    for _ in range(1):
        total = vec3(0.0)
        for chunk in range((n + 255) // 256):
            total += s.partial[chunk]
        for k in qd.static(range(3)):
            s.scalars[1 + k] = total[k]
