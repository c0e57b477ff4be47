"""Implicit viscosity by goal gradients, Peer et al., ACM TOG 34(4), 2015: shear is taken out of the velocity gradient.

    L_i = Σ_j V_j (u_j − u_i) (B_i⁻¹∇W_ij)ᵀ = R + V + S        rotation, change of volume, shear
    G_i = R + V + ξS                                            the goal; 0 ≤ ξ ≤ 1, 0 = as viscous as can be
    Σ_j V_j W_ij (u_i − u_j) = Σ_j V_j W_ij ½(G_i + G_j) x_ij   velocities that fit the goals

V is dropped where the fluid is thin and closing (ρ < ρ₀, tr L ≤ 0), as published. The matrix on the left is the Laplacian of
the graph of neighbours: symmetric, semi-definite, blind to translations. Conjugate gradients with masses as preconditioner
keep what the matrix cannot see, the momentum, exactly; the diagonal, the usual choice, does not.

Published with plain gradients, B = ρ/ρ₀. Those see shear in the surface of a body that merely turns, and stop it.
"""

from dataclasses import dataclass
from typing import Any

import quadrants as qd

from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, allocate_array, mat3, vec3
from viscoil.sph.descent import strides
from viscoil.sph.finite import is_finite
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.smoothing import cubic, cubic_gradient, spiky
from viscoil.sph.sums import Sums, allocate_sums, chunk_totals, grand_total, hand_in, padded, workers

VECTORS = ("residual", "search", "image", "direction", "direction_image")


@dataclass(frozen=True)
class Fit:
    """Memory of the fit, one element per particle except where noted."""

    goal: Matrices  # G [1/s]
    residual: Vectors  # r, right side minus left
    search: Vectors  # z = w r
    image: Vectors  # A z
    direction: Vectors  # d
    direction_image: Vectors  # A d
    held: Ints  # 1: a wall has given the velocity
    scalars: Floats  # [4] γ = r·z, α, β, γ that would have to be reached at a tolerance of 1
    used: Ints  # [1] iterations since last asked


@dataclass(frozen=True)
class FitNumbers:
    """Arguments, one element each."""

    shear: Floats  # ξ
    iterations: Ints  # most of them
    tolerance: Floats  # residual that is good enough, relative to the right side


def allocate_fit(capacity: int) -> tuple[Any, Any]:
    """(memory of the fit, of its sums) for ``capacity`` particles."""
    fit = Fit(
        goal=allocate_array(mat3, capacity), held=allocate_array(qd.i32, capacity), scalars=allocate_array(qd.f32, 4),
        used=allocate_array(qd.i32, 1), **{name: allocate_array(vec3, capacity) for name in VECTORS},
    )  # fmt: skip
    return fit, allocate_sums(capacity)


@qd.func
def goal_of(gradient: mat3, xi: qd.f32, thin: qd.i32) -> mat3:
    """R + V + ξS of a velocity gradient [1/s]; ``thin`` = 1 drops V where it is a contraction."""
    one = qd.Matrix.identity(qd.f32, 3)
    mirrored = gradient.transpose()
    volume = gradient.trace() / 3.0
    shear = 0.5 * (gradient + mirrored) - volume * one
    if thin == 1 and volume <= 0.0:
        volume = 0.0
    return 0.5 * (gradient - mirrored) + volume * one + xi * shear


@qd.func
def safe_inverse(b: mat3) -> mat3:
    """B⁻¹; a plain factor where neighbours in a line or a plane leave B nearly singular (as for the conformation)."""
    third = b.trace() / 3.0
    result = qd.Matrix.identity(qd.f32, 3) / qd.max(third, 0.3)
    if third >= 0.15 and b.determinant() >= 0.05 * third * third * third:
        result = b.inverse()
    return result


@qd.func(requires_top_level=True)
def goals(
    p: Particles, x: Vectors, u: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, k: FitNumbers, s: Fit,
    corrected: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """G_i of the velocities u [m/s]."""
    for i in range(n):
        b = mat3(0.0)
        gradient = mat3(0.0)
        density = p.volume[i] * spiky(0.0, h)
        base = i * near.row[0]
        for a in range(near.count[i]):
            j = near.index[seat(base, near.column[0], a)]
            d = separation(x[i], x[j], torus, periodic)
            r2 = d.dot(d)
            g = p.volume[j] * cubic_gradient(r2, h) * d
            density += p.volume[j] * spiky(r2, h)
            gradient += (u[j] - u[i]).outer_product(g)
            if qd.static(corrected):
                b -= d.outer_product(g)
        if qd.static(corrected):
            gradient = gradient @ safe_inverse(b)
        else:
            gradient /= density
        s.goal[i] = goal_of(gradient, k.shear[0], qd.cast(density < 1.0, qd.i32))


@qd.func(requires_top_level=True)
def misfits(
    p: Particles, x: Vectors, u: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, s: Fit, sums: Sums,
    periodic: qd.template(),
):  # fmt: skip
    """r = Σ_j V_j W_ij [½(G_i + G_j) x_ij − (u_i − u_j)]; a solid's sample takes the goal of whom it meets."""
    qd.loop_config(block_dim=256)  # what hand_in adds up
    for i in range(padded(n)):
        account = vec3(0.0)
        if i < n:
            r = vec3(0.0)
            wanted = vec3(0.0)
            if p.inverse_mass[i] > 0.0:
                base = i * near.row[0]
                for a in range(near.count[i]):
                    j = near.index[seat(base, near.column[0], a)]
                    d = separation(x[i], x[j], torus, periodic)
                    other = s.goal[i]
                    if p.inverse_mass[j] != 0.0:
                        other = s.goal[j]
                    weight = p.volume[j] * cubic(d.dot(d), h)
                    goal = weight * (0.5 * (s.goal[i] + other) @ d)
                    wanted += goal
                    r += goal - weight * (u[i] - u[j])
            w = qd.max(p.inverse_mass[i], 0.0) * qd.cast(1 - s.held[i], qd.f32)
            s.residual[i] = r
            s.search[i] = w * r
            s.direction[i] = vec3(0.0)
            s.direction_image[i] = vec3(0.0)
            account = vec3(w * r.dot(r), w * wanted.dot(wanted), 0.0)
        hand_in(i, n, account, sums)
    chunk_totals(n, sums)


@qd.func(requires_top_level=True)
def images(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, s: Fit, sums: Sums,
    periodic: qd.template(),
):  # fmt: skip
    """A z, and the terms of γ = r·z and δ = z·A z."""
    qd.loop_config(block_dim=256)
    for i in range(padded(n)):
        account = vec3(0.0)
        if i < n:
            image = vec3(0.0)
            z = s.search[i]
            if p.inverse_mass[i] > 0.0 and s.held[i] == 0:
                base = i * near.row[0]
                for a in range(near.count[i]):
                    j = near.index[seat(base, near.column[0], a)]
                    d = separation(x[i], x[j], torus, periodic)
                    image += p.volume[j] * cubic(d.dot(d), h) * (z - s.search[j])
            s.image[i] = image
            account = vec3(z.dot(s.residual[i]), z.dot(image), 0.0)
        hand_in(i, n, account, sums)
    chunk_totals(n, sums)


@qd.func(requires_top_level=True)
def begin(left: Flag, n: qd.i32, k: FitNumbers, s: Fit, sums: Sums):
    """How many iterations there may be: none when the velocities fit already."""
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        total = grand_total(worker, n, sums)
        if worker == 0:
            s.scalars[0] = total[0]
            s.scalars[1] = 0.0
            s.scalars[3] = qd.max(total[0], total[1])
            wanted = total[0] > k.tolerance[0] * k.tolerance[0] * s.scalars[3] or not is_finite(total[0])
            left[()] = qd.select(wanted, k.iterations[0], 0)


@qd.func(requires_top_level=True)
def steer(left: Flag, n: qd.i32, k: FitNumbers, s: Fit, sums: Sums):
    """γ, δ → α, β, and whether to go on."""
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        total = grand_total(worker, n, sums)
        if worker == 0:
            gamma = total[0]
            alpha, beta = strides(gamma, total[1], s.scalars[0], s.scalars[1])
            if gamma <= k.tolerance[0] * k.tolerance[0] * s.scalars[3]:
                alpha = 0.0
            s.scalars[0] = gamma
            s.scalars[1] = alpha
            s.scalars[2] = beta
            s.used[0] += 1
            left[()] = qd.max(left[()] - 1, 0)  # the body of a do-while runs once in any case
            if not alpha > 0.0 or not is_finite(alpha):
                left[()] = 0


@qd.func(requires_top_level=True)
def advance(p: Particles, n: qd.i32, u: Vectors, s: Fit):
    """d ← z + β d, u ← u + α d, r ← r − α A d, z ← w r."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0 and s.held[i] == 0:
            alpha = s.scalars[1]
            d = s.search[i] + s.scalars[2] * s.direction[i]
            image = s.image[i] + s.scalars[2] * s.direction_image[i]
            r = s.residual[i] - alpha * image
            u[i] += alpha * d
            s.direction[i] = d
            s.direction_image[i] = image
            s.residual[i] = r
            s.search[i] = p.inverse_mass[i] * r
