"""Conjugate gradients with one reduction per iteration, after Chronopoulos & Gear 1989.

With z = w r, γ = r·z and δ = z·A z known together, d ← z + β d and u ← u + α d follow without a second look at all particles.
"""

import quadrants as qd

from viscoil.sph.finite import unless_lost


@qd.func
def strides(gamma: qd.f32, delta: qd.f32, gamma_before: qd.f32, alpha_before: qd.f32):
    """(α, β) of an iteration; ``alpha_before`` = 0 in the first. α = 0 once rounding has eaten the curvature d·A d; NaN if one
    of the sums is, so that what it leads to is found out."""
    beta = 0.0
    curvature = delta
    if alpha_before > 0.0:
        beta = gamma / qd.max(gamma_before, 1e-30)
        curvature = delta - beta * gamma / alpha_before
    alpha = qd.select(curvature > 1e-6 * delta, gamma / qd.max(curvature, 1e-30), 0.0)
    return unless_lost(alpha, gamma + delta), beta
