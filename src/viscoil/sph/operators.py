"""SPH interpolation on a finished neighbour list: density, gradients and their correction.

∇W_ij is the gradient with respect to x_i; sums run over neighbours with volumes V_j (specification 1.1 and 1.4).
"""

import quadrants as qd

from viscoil.particles import Floats, Matrices, Particles, Vectors, mat3
from viscoil.sph.neighbors import NeighborList, Torus, entry, separation
from viscoil.sph.smoothing import cubic_gradient, density_weight


@qd.func(requires_top_level=True)
def relative_density(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, wall: Floats,
    out: Floats, kernel: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """ρ_i/ρ₀ = Σ_j V_j W_ij + walls, particle i included (eq. 2 divided by the rest density)."""
    for i in range(n):
        total = p.volume[i] * density_weight(0.0, support, kernel) + wall[i]
        for k in range(near.count[i]):
            j = entry(near, i, k)
            d = separation(x[i], x[j], torus, periodic)
            total += p.volume[j] * density_weight(d.dot(d), support, kernel)
        out[i] = total


@qd.func(requires_top_level=True)
def gradient_correction(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, out: Matrices,
    periodic: qd.template(),
):  # fmt: skip
    """B_i⁻¹ with B_i = Σ_j V_j x_ji ∇W_ijᵀ: B_i⁻¹∇W_ij is exact for linear fields (Bonet & Lok).

    Where too few neighbours leave B nearly singular (trace/3 < 0.15 or det < 0.05 (trace/3)³) the isotropic factor
    1/max(trace/3, 0.3) replaces it.
    """
    for i in range(n):
        b = mat3(0.0)
        for k in range(near.count[i]):
            j = entry(near, i, k)
            d = separation(x[i], x[j], torus, periodic)
            b += -p.volume[j] * cubic_gradient(d.dot(d), support) * d.outer_product(d)
        third = b.trace() / 3.0
        if third < 0.15 or b.determinant() < 0.05 * third * third * third:
            out[i] = qd.Matrix.identity(qd.f32, 3) / qd.max(third, 0.3)
        else:
            out[i] = b.inverse()


@qd.func(requires_top_level=True)
def velocity_gradient(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, velocity: Vectors,
    correction: Matrices, out: Matrices, periodic: qd.template(),
):  # fmt: skip
    """L_i = Σ_j V_j (v_j − v_i) (B_i⁻¹∇W_ij)ᵀ, L_ab = ∂v_a/∂x_b [1/s]; with identity corrections, plain SPH."""
    for i in range(n):
        total = mat3(0.0)
        for k in range(near.count[i]):
            j = entry(near, i, k)
            d = separation(x[i], x[j], torus, periodic)
            gradient = correction[i] @ (p.volume[j] * cubic_gradient(d.dot(d), support) * d)
            total += (velocity[j] - velocity[i]).outer_product(gradient)
        out[i] = total


@qd.kernel(graph=True, fastcache=True)
def density_kernel(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, wall: Floats,
    out: Floats, kernel: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """ρ/ρ₀ of all listed particles."""
    relative_density(p, x, n, near, torus, support, wall, out, kernel, periodic)


@qd.kernel(graph=True, fastcache=True)
def gradient_kernel(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, velocity: Vectors,
    correction: Matrices, out: Matrices, periodic: qd.Template,
):  # fmt: skip
    """Corrected velocity gradients of all listed particles; leaves B⁻¹ in ``correction``."""
    gradient_correction(p, x, n, near, torus, support, correction, periodic)
    velocity_gradient(p, x, n, near, torus, support, velocity, correction, out, periodic)
