"""Upper-convected Maxwell fluids by explicit stress on SPH: the baseline Barreiro et al. 2017 compare with (section 6).

The same material as the conformation constraints have, with its stress put into the momentum equation instead of a
constraint; incompressible by the density constraint of PBF. Nothing is implicit in the stress, so steps must be shorter
than shear waves and diffusion need to cross a particle: about 0.4 h √(ρ/G), 0.1 h² ρ/η and 2λ.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.constraints.conformation import gradient_corrections, gradient_of
from viscoil.constraints.walls import walls_nearby
from viscoil.particles import Floats, Ints, Matrices, Particles, allocate_array, mat3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.incompressible import (
    Flow,
    Incompressible,
    IncompressibleParams,
    aim_again,
    commit,
    density_stage,
    predict_stage,
)
from viscoil.solvers.solver import StepNumbers, step_numbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.operators import relative_density
from viscoil.steps.upper_convected import MaxwellRows, acceleration_of, explicit_conformation, stresses


class UCMSPHParams(IncompressibleParams):
    """[solver] method = "ucm_sph"."""

    method: Literal["ucm_sph"] = "ucm_sph"


@dataclass(frozen=True)
class Stress:
    """Memory of the stress, one element per particle."""

    density: Floats  # relative to the rest density
    inverse: Matrices  # B⁻¹
    tensor: Matrices  # σ/ρ² [m²/s²]


@qd.kernel(graph=True, fastcache=True)
def _stress_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: MaxwellRows, solids: Solids, parts: Parts, s: Flow,
    t: Stress, viscous: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """u ← u + Δt a of the stress (symplectic Euler), x* ← x + Δt u."""
    walls_nearby(
        p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.clear, s.wall, s.wall_gradient, 0
    )
    relative_density(p, s.predicted, k.count[0], near, torus, k.support[0], s.wall, t.density, False, periodic)
    gradient_corrections(p, s.predicted, k.count[0], near, torus, k.support[0], 6, t.inverse, periodic)
    stresses(
        p, s.predicted, s.velocity, k.count[0], near, torus, k.support[0], m, t.density, t.inverse, t.tensor,
        viscous, periodic,
    )  # fmt: skip
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            s.correction[i] = k.dt[0] * acceleration_of(i, t.tensor, s.predicted, p, near, torus, k.support[0], periodic)
    for i in range(k.count[0]):  # a loop of its own: all forces are of the same positions
        if p.inverse_mass[i] > 0.0:
            s.velocity[i] += s.correction[i]
            aim_again(i, p, k, solids, parts, s)


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: MaxwellRows, s: Flow, t: Stress, status: Ints,
    periodic: qd.Template,
):  # fmt: skip
    """Velocities with what positions were corrected by, and Q at the end of the step."""
    commit(p, k, torus, s, status, periodic)
    for i in range(k.count[0]):
        if p.inverse_mass[i] != 0.0 and m.modulus[p.material[i]] > 0.0:
            gradient = gradient_of(i, s.velocity, s.predicted, p, near, torus, k.support[0], t.inverse, periodic)
            p.conformation[i] = explicit_conformation(p.conformation[i], gradient, k.dt[0], m.rate[p.material[i]])


class UCMSPH(Incompressible):
    """The solver."""

    honours = frozenset({"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity"})
    evolves = ("conformation",)
    stages = ("integrate", "neighbours", "stress", "solve", "velocity")

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        super().resize(capacity)
        self.stress = Stress(
            density=allocate_array(qd.f32, capacity), inverse=allocate_array(mat3, capacity),
            tensor=allocate_array(mat3, capacity),
        )  # fmt: skip

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of, in SI units. What forgets at once is a viscosity, and nothing is remembered."""
        rows = {name: np.zeros(len(materials), np.float32) for name in MaxwellRows.__dataclass_fields__}
        for index, material in enumerate(materials):
            eta, lam, modulus = material.maxwell()
            rho = materials[0].density
            remembers = lam > 0 and modulus > 0
            rows["modulus"][index] = modulus / rho if remembers else 0.0
            rows["rate"][index] = 1 / lam if remembers and math.isfinite(lam) else 0.0
            rows["viscosity"][index] = ((material.solvent_viscosity or 0.0) + (0.0 if remembers else eta)) / rho
        self._viscous = bool((rows["viscosity"] > 0).any())
        self.rows = MaxwellRows(**{name: allocate_array(qd.f32, len(materials)) for name in rows})
        for name, values in rows.items():
            transfer.write(getattr(self.rows, name), values)

    def step(self, world: Any, dt: float) -> None:
        """Prediction, acceleration by stress, density, conformation."""
        p, s, t, m = world.particles, self.flow, self.stress, self.rows
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k = step_numbers(self._step, world, self.params, dt)
        with world.stages("integrate"):
            predict_stage(p, k, solids, parts, s)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("stress"):
            _stress_stage(p, k, near, torus, m, solids, parts, s, t, self._viscous, periodic)
        with world.stages("solve"):
            density_stage(left, p, k, near, torus, self.density_numbers(world), solids, parts, s, *self.variant(world))
        with world.stages("velocity"):
            _finish_stage(p, k, near, torus, m, s, t, world.status, periodic)
