"""What physical numbers of a material mean to velocity-corrected IISPH, which knows springs, shares and XSPH.

On the filled lattice, for affine deformations, with sums over the S bonds of a particle (r [m] their lengths, dx the spacing):

    G = k Σr²/(30 dx³)                 springs of k [N/m] that push and pull; half of it when they only pull
    k = κ m/(2Δt²)                     position-based correction of share κ as springs (κ 3/S when normalised)
    G = ρ κ ⟨u²⟩/(6Δt²)                lattice shape matching of share κ; ⟨u²⟩ the mean square distance from a region's centre
    ν = ε ⟨r²⟩/(6Δt)                   XSPH of strength ε; ⟨r²⟩ the second moment of the kernel

The first three come from the elastic energy of one neighbourhood averaged over directions. By itself a step is stable
while its load k S Δt² 2/(3m) < 4 (semi-implicit Euler; S bonds pull on a particle, and its neighbours move too). Under pressure
that is not enough: at a load of 2 a pressed ball boils, loses 1.5 % of its volume and needs twice the iterations; at 0.5 it is
calm.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np

from viscoil.model import Model
from viscoil.units import Quantity, Slider

STABLE = 4.0  # largest k S Δt² 2/(3m)
CALM = 0.8  # what steps are chosen for
NEVER = 1e30  # ratio at which nothing splits

Stiffness = Annotated[float, Quantity("spring stiffness", at_least=0.0), Slider(1, 1e4, log=True, off=True)]
Share = Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(0.0, 1.0)]
Weakening = Annotated[float, Quantity("rate", at_least=0.0), Slider(0.01, 100, log=True, off=True)]
Ratio = Annotated[float, Quantity("number", at_least=0.0, at_most=10.0), Slider(0.0, 1.0)]


class Bonding(Model):
    """How one material is held together; what is left out is as in [solver]."""

    spring_stiffness: Stiffness | None = None
    """k of springs [N/m]"""
    rigidity: Share | None = None
    """k of shape matching and position-based corrections"""
    lower_limit: Share | None = None
    """l/k: weakening goes no further"""
    weakening: Weakening | None = None
    """d [1/s]"""
    yield_ratio: Ratio | None = None
    """α, in supports"""
    merge_ratio: Ratio | None = None
    """β, in supports"""
    split_ratio: Ratio | None = None
    """γ, in supports"""
    xsph: Share | None = None
    """ε of XSPH"""


@dataclass(frozen=True)
class Neighbourhood:
    """A particle inside a resting block."""

    bonds: int  # S: others within the support
    squares: float  # Σr² over them [m²]
    spread: float  # ⟨u²⟩ [m²]
    second_moment: float  # ⟨r²⟩ of the kernel [m²]


@cache
def neighbourhood(spacing: float, support: float) -> Neighbourhood:
    """Sums over the lattice of ``spacing`` [m] within ``support`` [m]."""
    reach = int(np.ceil(support / spacing)) + 1
    axis = np.arange(-reach, reach + 1) * spacing
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    r = np.linalg.norm(offsets, axis=1)
    r = r[r < 1.001 * support]
    q = np.minimum(r / support, 1.0)
    weight = np.where(q <= 0.5, 6 * (q**3 - q**2) + 1, 2 * (1 - q) ** 3)
    squares = float((r**2).sum())
    return Neighbourhood(len(r) - 1, squares, squares / len(r), float((weight * r**2).sum() / weight.sum()))


@dataclass(frozen=True)
class Matter:
    """A material as velocity-corrected IISPH sees it."""

    density: float  # [kg/m³]
    modulus: float  # G that was asked for [Pa]; 0: the numbers below speak for themselves
    spring: float  # k [N/m]
    rigidity: float  # share per step or per reference step
    lower: float
    weakening: float  # [1/s]
    yielding: float
    merging: float
    splitting: float
    flow: float  # [1/s] rate at which bonds forget their length
    flow_yield: float
    viscosity: float  # [Pa s], beside what XSPH does anyway
    xsph: float  # ε of every step


def matter_of(material: Any, params: Any, name: str) -> Matter:
    """The material's own numbers where it has any, those of the solver where it says nothing."""
    viscosity, relaxation_time, modulus = material.maxwell()
    elastic = relaxation_time > 0
    own = params.materials.get(name)

    def setting(key: str) -> Any:
        value = getattr(own, key) if own is not None else None
        return getattr(params, key) if value is None else value

    newtonian = (material.solvent_viscosity or 0.0) + (0.0 if elastic else viscosity)
    split, merge = setting("split_ratio"), setting("merge_ratio")
    flow = 1 / relaxation_time if elastic else 0.0
    return Matter(
        density=material.density,
        modulus=modulus if elastic else 0.0,
        spring=setting("spring_stiffness"),
        rigidity=setting("rigidity"),
        lower=setting("lower_limit"),
        weakening=setting("weakening"),
        yielding=setting("yield_ratio"),
        merging=(1.0 if flow > 0 else 0.0) if merge is None else merge,
        splitting=NEVER if split is None else split,
        flow=flow,
        flow_yield=material.yield_strain or 0.0,
        viscosity=newtonian,
        xsph=setting("xsph"),
    )


class Stiffnesses:
    """From moduli to the constants of a scheme and back, for a lattice of ``spacing`` [m] and ``support`` [m]."""

    def __init__(self, spacing: float, support: float, params: Any):
        self.spacing = spacing
        self.lattice = neighbourhood(spacing, support)
        self.scheme = params.correction
        self.sides = 1.0 if params.two_sided else 0.5  # share of bonds that resist a shear
        self.normalised = 3 / self.lattice.bonds if params.normalise else 1.0
        self.reference, self.stability = params.reference_step, params.stability

    def spring(self, matter: Matter) -> float:
        """k [N/m] of springs that act like the material; 0 where shape matching or a bare share is meant."""
        if matter.modulus > 0:
            return matter.modulus * 30 * self.spacing**3 / (self.lattice.squares * self.sides)
        return matter.spring if self.scheme == "springs" else 0.0

    def mass(self, matter: Matter) -> float:
        """Of a particle [kg]."""
        return matter.density * self.spacing**3

    def of_step(self, matter: Matter, dt: float) -> float:
        """k of the scheme for a step: [N/m] of springs, a share of the others."""
        if self.scheme == "springs":
            return self.spring(matter)
        if matter.modulus > 0:
            if self.scheme == "shape_matching":
                return 6 * matter.modulus * dt * dt / (matter.density * self.lattice.spread)
            return 2 * dt * dt * self.spring(matter) / self.mass(matter) / self.normalised
        return matter.rigidity * (dt / self.reference) ** 2 if self.reference else matter.rigidity

    def load(self, matter: Matter, dt: float) -> float:
        """How stiff a step is: k S Δt² 2/(3m) of springs, and what is the same for the others."""
        k = self.of_step(matter, dt)
        if self.scheme == "springs":
            return k * self.lattice.bonds * dt * dt * 2 / (3 * self.mass(matter))
        if self.scheme == "position_based":
            return k * self.lattice.bonds / 3 * self.normalised
        return k

    def longest_step(self, matter: Matter) -> float:
        """Of those that are stable and calm [s]: the load goes with Δt², but for shares of a step, which stay what they are."""
        fixed = self.scheme != "springs" and matter.modulus == 0 and self.reference is None
        load = self.load(matter, 1.0)
        return math.inf if fixed or load == 0 else math.sqrt(self.stability / load)

    def largest_rigidity(self) -> float:
        """Share from which position-based corrections explode (R36)."""
        return STABLE * 3 / self.lattice.bonds / self.normalised
