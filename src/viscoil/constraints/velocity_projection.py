"""Projection of velocities onto the conformation constraint, as the linear problem that it is (eqs. 10–13).

Without its multipliers the constraint leaves one equation per particle, implicit Euler for the stress:

    A u = b:   u_i/w_i − Δt F_i(u) = u*_i/w_i + Δt div(Gθ(Q − I))_i

with F the friction of friction.py. A is symmetric and positive definite, so conjugate gradients need the square root of the
iterations of Jacobi, and tell the residual for nothing. The variant of Chronopoulos & Gear has one reduction per iteration.
Masses are the preconditioner: then Σ r stays zero, and momentum is exact however early the iterations end (the diagonal of A
took more iterations and broke that).

Solids: the velocity of a particle that touches one is given (no slip), or its normal part is. That takes rows and columns
out of the system and leaves it symmetric. In the next round whoever a wall would have to pull is let go, whoever would enter
one is held, and the solver goes on from where it was: an active set.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import Substances, divergence_of, rates, strain_of
from viscoil.constraints.friction import divergence, friction
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, mat3, vec3
from viscoil.sph.neighbors import NeighborList, Torus


@dataclass(frozen=True)
class Projection:
    """Memory of the projection, one element per particle except where noted."""

    u: Vectors  # the unknown [m/s]
    free: Vectors  # u*, without constraints [m/s]
    residual: Vectors  # r = b − A u
    search: Vectors  # z, the preconditioned residual
    image: Vectors  # A z
    direction: Vectors  # d
    direction_image: Vectors  # A d
    normal: Vectors  # of the solid a held particle touches
    held: Ints  # 0 free, 1 normal velocity given, 2 velocity given, 3 tangential velocity given
    viscosity: Floats  # ν [m²/s]
    bulk: Floats  # q
    stress: Matrices  # T of the elastic stress
    products: Vectors  # terms of up to three sums
    partial: Vectors  # sums of 256, then of 64 of those
    scalars: Floats  # γ, α, β, γ at the start, u·r, u·F(u); see steer and audit


@dataclass(frozen=True)
class ProjectionNumbers:
    """Arguments, one element each."""

    iterations: Ints  # most of them
    tolerance: Floats  # residual relative to its start that is good enough
    pairs: Floats  # c of friction.py
    stiffest: Floats  # κ of conformation.rates [1/m²]


@qd.func
def allowed(v: vec3, n: vec3, held: qd.i32) -> vec3:
    """What of v a held particle may still do."""
    result = v
    if held == 2:
        result = vec3(0.0)
    elif held == 1:
        result = v - n * n.dot(v)
    elif held == 3:
        result = n * n.dot(v)
    return result


@qd.func(requires_top_level=True)
def set_up(
    p: Particles, n: qd.i32, dt: qd.f32, k: Substances, c: ProjectionNumbers, inverse: Matrices, s: Projection,
    elastic: qd.template(),
):  # fmt: skip
    """Viscosities, and the stress the material remembers."""
    for i in range(n):
        nu = 0.0
        t = mat3(0.0)
        if p.inverse_mass[i] != 0.0:
            correction = qd.Matrix.identity(qd.f32, 3)
            if qd.static(elastic):
                correction = inverse[i]
            modulus, viscous = rates(i, p, dt, correction, c.stiffest[0], k)
            nu = viscous
            if qd.static(elastic):
                t = modulus * strain_of(p.conformation[i]) @ inverse[i]
        s.viscosity[i] = nu
        if qd.static(elastic):
            s.stress[i] = t


@qd.func(requires_top_level=True)
def bulk_pressures(
    u: Vectors, p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, k: Substances,
    s: Projection, periodic: qd.template(),
):  # fmt: skip
    """q_i = b ν_i div u_i."""
    for i in range(n):
        q = 0.0
        if p.inverse_mass[i] != 0.0:
            q = k.bulk[p.material[i]] * s.viscosity[i] * divergence(i, u, x, p, near, torus, h, periodic)
        s.bulk[i] = q


@qd.func(requires_top_level=True)
def residuals(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, c: ProjectionNumbers,
    s: Projection, elastic: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """r = b − A u, of held particles as well: theirs is what the wall must take. Starts the search, and keeps accounts."""
    for i in range(n):
        r = vec3(0.0)
        z = vec3(0.0)
        account = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            drag = friction(i, s.u, x, p, near, torus, h, c.pairs[0], s.viscosity, s.bulk, periodic)
            force = drag
            if qd.static(elastic):
                force += divergence_of(i, s.stress, x, p, near, torus, h, periodic)
            r = (s.free[i] - s.u[i]) / p.inverse_mass[i] + dt * force
            z = p.inverse_mass[i] * allowed(r, s.normal[i], s.held[i])
            account = vec3(z.dot(r), allowed(s.u[i], s.normal[i], s.held[i]).dot(r), -dt * s.u[i].dot(drag))
        s.residual[i] = r
        s.search[i] = z
        s.products[i] = account
        s.direction[i] = vec3(0.0)
        s.direction_image[i] = vec3(0.0)


@qd.func(requires_top_level=True)
def images(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, c: ProjectionNumbers,
    s: Projection, periodic: qd.template(),
):  # fmt: skip
    """A z, and the terms of γ = r·z and δ = z·A z."""
    for i in range(n):
        image = vec3(0.0)
        account = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            z = s.search[i]
            image = z / p.inverse_mass[i] - dt * friction(
                i, s.search, x, p, near, torus, h, c.pairs[0], s.viscosity, s.bulk, periodic
            )
            image = allowed(image, s.normal[i], s.held[i])
            account = vec3(z.dot(s.residual[i]), z.dot(image), 0.0)
        s.image[i] = image
        s.products[i] = account


@qd.func(requires_top_level=True)
def add_up(n: qd.i32, s: Projection):
    """Sums of 256 products, then of 64 of those: always in the same order, whatever the threads do."""
    for a in range((n + 255) // 256):
        total = vec3(0.0)
        for i in range(a * 256, qd.min((a + 1) * 256, n)):
            total += s.products[i]
        s.partial[a] = total
    for b in range((n + 16383) // 16384):
        chunks = (n + 255) // 256
        total = vec3(0.0)
        for a in range(b * 64, qd.min((b + 1) * 64, chunks)):
            total += s.partial[a]
        s.partial[chunks + b] = total


@qd.func
def grand_total(n: qd.i32, s: Projection) -> vec3:
    """The sum of everything :func:`add_up` left."""
    total = vec3(0.0)
    chunks = (n + 255) // 256
    for b in range((n + 16383) // 16384):
        total += s.partial[chunks + b]
    return total


@qd.func(requires_top_level=True)
def audit(left: Flag, n: qd.i32, c: ProjectionNumbers, s: Projection, first: qd.template()):
    """What :func:`residuals` found: γ at the start (of the first round), and how much of the friction is missing."""
    for _ in range(1):
        total = grand_total(n, s)
        if qd.static(first):
            s.scalars[3] = total[0]
        s.scalars[0] = total[0]
        s.scalars[1] = 0.0
        s.scalars[4] = total[1]
        s.scalars[5] = total[2]
        left[()] = qd.select(total[0] > c.tolerance[0] * c.tolerance[0] * s.scalars[3], c.iterations[0], 0)


@qd.func(requires_top_level=True)
def steer(left: Flag, used: Ints, n: qd.i32, c: ProjectionNumbers, s: Projection):
    """γ, δ → α, β. Stops when √(γ/γ₀) is below the tolerance, or when rounding has eaten the curvature d·A d."""
    for _ in range(1):
        total = grand_total(n, s)
        gamma = total[0]
        delta = total[1]
        beta = 0.0
        curvature = delta
        if s.scalars[1] > 0.0:
            beta = gamma / qd.max(s.scalars[0], 1e-30)
            curvature = delta - beta * gamma / s.scalars[1]
        alpha = qd.select(curvature > 1e-6 * delta, gamma / qd.max(curvature, 1e-30), 0.0)
        s.scalars[0] = gamma
        s.scalars[1] = alpha
        s.scalars[2] = beta
        used[0] += 1
        used[1] += 1
        left[()] = qd.max(left[()] - 1, 0)  # the body of a do-while runs once in any case
        if gamma <= c.tolerance[0] * c.tolerance[0] * s.scalars[3] or alpha <= 0.0:
            left[()] = 0


@qd.func(requires_top_level=True)
def advance(p: Particles, n: qd.i32, s: Projection):
    """d ← z + β d, u ← u + α d, r ← r − α A d, and the next z."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            alpha = s.scalars[1]
            beta = s.scalars[2]
            d = s.search[i] + beta * s.direction[i]
            image = s.image[i] + beta * s.direction_image[i]
            r = s.residual[i] - alpha * image
            s.u[i] += alpha * d
            s.direction[i] = d
            s.direction_image[i] = image
            s.residual[i] = r
            s.search[i] = p.inverse_mass[i] * allowed(r, s.normal[i], s.held[i])
