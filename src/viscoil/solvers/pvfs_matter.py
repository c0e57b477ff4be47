"""What physical numbers of a material mean to PVFS, which knows springs and impulses per mass.

Sums over pairs of an evenly filled neighbourhood (N = 19.7 particles per h³) turn the constants of Clavet et al. 2005 into
those of a continuum, for motions that are the same everywhere (affine):

    G = ρ k h²/60 Σ_j (1 − q) q²     = SHEAR ρ k h²          springs of stiffness k [1/s²] with L = r
    η = ρ σ h²/120 Σ_j (1 − q) q²    = FRICTION ρ σ h²       impulses of strength σ [1/s], which act on half of the pairs

with Σ_j (1 − q) q² = 4πN (1/5 − 1/6) = 8.27. A relaxation time λ is a plasticity α = 1/λ, a yield strain is the ratio γ.
Surface tension cannot be asked for: it follows from the stiffness of the relaxation, about 1.3e-3 h³/τ² (k̂/0.004) ρ.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

TAU = 1 / 30  # the time step of the paper [s]
SHEAR = 0.138  # G/(ρ k h²)
FRICTION = 0.069  # η/(ρ σ h²)


@dataclass(frozen=True)
class Matter:
    """A material as PVFS sees it."""

    spring: float  # k [1/s²]
    stretch: float  # α of stretched springs [1/s]
    compress: float  # α of compressed springs [1/s]
    stretch_yield: float  # γ
    compress_yield: float
    linear: float  # σ [1/s]
    stickiness: float  # factor on the pull of solids


def matter_of(material: Any, params: Any, h: float) -> Matter:
    """The material's own numbers where it has any, those of the solver where it says nothing. h [m]: support."""
    viscosity, relaxation_time, modulus = material.maxwell()
    elastic = relaxation_time > 0
    spring = modulus / (SHEAR * material.density * h * h) if elastic else params.spring_stiffness
    flow = 1 / relaxation_time if elastic else params.plasticity
    yielding = params.yield_ratio if material.yield_strain is None else material.yield_strain
    newtonian = (material.solvent_viscosity or 0.0) + (0.0 if elastic else viscosity)
    given = material.viscosity is not None or material.solvent_viscosity is not None

    def either(own: float | None, common: float) -> float:
        return common if own is None else own

    return Matter(
        spring=spring,
        stretch=either(None if elastic else params.plasticity_stretch, flow),
        compress=either(None if elastic else params.plasticity_compression, flow),
        stretch_yield=either(params.yield_stretch, yielding),
        compress_yield=either(params.yield_compression, yielding),
        linear=newtonian / (FRICTION * material.density * h * h) if given else params.linear_viscosity,
        stickiness=either(material.stickiness, 1.0),
    )


def flow_share(rate: float, dt: float) -> float:
    """Share of an excess length that flows in a step: αΔt, or 1 − exp(−αΔt) where that would overshoot."""
    return rate * dt if rate * dt <= 0.5 else -math.expm1(-rate * dt)


def depth_of(world: Any) -> float:
    """How deep the fluid is that is there now [m]: its height along gravity, at most twice the cube root of its volume."""
    least, fluid = 4 * world.support, world.fluid_order()
    if len(fluid) == 0:
        return least
    x, g = world.get("position")[fluid], np.asarray(world.gravity, float)
    heights = x @ (g / max(float(np.linalg.norm(g)), 1e-30))
    volume = len(fluid) * world.spacing**3
    return max(least, min(float(np.ptp(heights)) + world.spacing, 2 * volume ** (1 / 3)))
