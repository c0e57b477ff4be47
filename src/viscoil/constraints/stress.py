"""Extra stress of fluids that carry a conformation Q: what a rheometer would read, without the pressure [Pa].

    σ = G (fQ − I) + η_s (L + Lᵀ),    G = η/λ, of a solid its shear modulus

with the velocity gradient L of the present velocities (eq. 9 of Barreiro et al. 2017, corrected) and f of FENE-P, 1 for all
others. What has forgotten everything within a step (λ = 0, or under :data:`SUDDEN` of it) has the stress of steady flow,
η (L + Lᵀ), in place of G (Q − I): its Q − I is smaller than what 32-bit numbers resolve. Pressure is not part of it, so only
its deviator and differences of its normal components mean something: of a fluid at rest all of it is zero.
"""

from typing import Any

import quadrants as qd

from viscoil import transfer
from viscoil.constraints.conformation import Substances, gradient_corrections, gradient_of, memory_of, substances_of
from viscoil.particles import Matrices, Particles, allocate_array, mat3
from viscoil.sph.neighbors import NeighborList, Torus

# Steps, relaxation times below which count as none: the stress of steady flow is then off by at most this share of what it
# changes by within a step, and Q − I = λ(L + Lᵀ) of a slow flow (10⁻⁵) is what 32-bit numbers still resolve to a percent.
SUDDEN = 0.01


@qd.kernel(fastcache=True)
def stress_kernel(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, density: qd.f32, dt: qd.f32, sudden: qd.f32,
    k: Substances, inverse: Matrices, out: Matrices, periodic: qd.template(),
):  # fmt: skip
    """σ [Pa] of all fluid particles, zero for samples and members of solids; ``density`` of the first material [kg/m³],
    ``dt`` of the last step, ``sudden``: relaxation times up to which there is no memory [s]. Leaves B⁻¹ in ``inverse``."""
    gradient_corrections(p, p.position, n, near, torus, h, 6, inverse, periodic)
    for i in range(n):
        total = mat3(0.0)
        if p.inverse_mass[i] != 0.0 and p.cluster[i] < 0:
            m = qd.max(p.material[i], 0)
            gradient = gradient_of(i, p.velocity, p.position, p, near, torus, h, inverse, periodic)
            viscosity = k.solvent[m]
            modulus = k.modulus[m]
            if modulus == 0.0:
                if k.relaxation[m] > sudden:
                    modulus = k.viscosity[m] / k.relaxation[m]
                elif k.yield_strain[m] > 0.0:  # keeps its strain: as stiff as in the step, see conformation.rates
                    modulus = k.viscosity[m] / qd.max(k.relaxation[m], dt)
                else:
                    viscosity += k.viscosity[m]
            total = viscosity * (gradient + gradient.transpose())
            if modulus > 0.0:
                total += modulus * memory_of(p.conformation[i], m, k)
        out[i] = density * total


class StressField:
    """Memory for the stress of a world of up to ``capacity`` particles; made when it is asked for."""

    def __init__(self, capacity: int):
        self._inverse, self._stress = (allocate_array(mat3, capacity) for _ in range(2))
        self._substances: Substances | None = None

    def find(self, world: Any, materials: list[Any], dt: float) -> Any:
        """σ of all particles (n, 3, 3) [Pa] on the host, in array order; ``dt``: length of the last step [s].

        Searches neighbours where particles are now, which no step relies on: results stay the same, asked or not.
        """
        self._substances, _ = substances_of(materials, into=self._substances)
        p, search = world.particles, world.neighbors
        if world.count:
            search.find_all(p.position, p, world.count)
            stress_kernel(
                p, world.count, search.list, search.torus, world.support, materials[0].density, dt, SUDDEN * dt,
                self._substances, self._inverse, self._stress, search.periodic,
            )  # fmt: skip
        return transfer.read(self._stress, world.count)
