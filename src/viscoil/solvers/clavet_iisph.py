"""Clavet et al. 2005 on IISPH: the method of Figs. 5a and 6 of Takahashi et al. 2014, for comparison.

Prediction and relaxation with IISPH in place of the double density relaxation. How that is done the paper does not say (R37):

    reading 1   x = xⁿ + Δt v, then springs displace x; pressures from densities and kernels at x, with the neighbours of xⁿ
    reading 2   springs displace xⁿ and change v as well; pressures from ṽ and kernels at the displaced places

Both take the same bonds as the velocity corrections, so that the comparison is fair. Bonds at predicted places are stable for
k S Δt² 2/(3m) < 4/3 only, a third of what velocity corrections bear.
"""

from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil.particles import Particles, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Solids
from viscoil.solvers.iisph import IISPH, IISPHParams
from viscoil.solvers.iisph_stages import Scratch
from viscoil.solvers.solver import StepNumbers
from viscoil.steps.integrate import moved
from viscoil.units import Count


class ClavetIISPHParams(IISPHParams):
    """[solver] method = "clavet_iisph"."""

    method: Literal["clavet_iisph"] = "clavet_iisph"  # type: ignore[assignment]
    correction: Literal["springs", "position_based"] = "springs"  # type: ignore[assignment]
    """what displaces particles"""
    acceleration: Literal["momentum", "none"] = "none"
    """iterations as published"""
    reading: Annotated[int, Count(at_least=1, at_most=2)] = 1
    """1: springs act where velocities lead; 2: where particles are"""


@qd.kernel(graph=True, fastcache=True)
def _predict_stage(p: Particles, k: StepNumbers, solids: Solids, s: Scratch, predicted: Vectors, reading: qd.Template):
    """Where springs are looked at: xⁿ + Δt ṽ, or xⁿ."""
    for i in range(k.count[0]):
        x = p.position[i]
        if qd.static(reading == 1):
            x = moved(i, p, k.dt[0], vec3(0.0), solids)
            if p.inverse_mass[i] > 0.0:
                x = p.position[i] + k.dt[0] * s.smoothed[i]
        predicted[i] = x
        s.velocity[i] = s.smoothed[i]


@qd.kernel(graph=True, fastcache=True)
def _displace_stage(p: Particles, k: StepNumbers, s: Scratch, predicted: Vectors):
    """What springs changed velocities by displaces particles as well."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            predicted[i] = predicted[i] + k.dt[0] * (s.smoothed[i] - s.velocity[i])


class ClavetIISPH(IISPH):
    """The solver."""

    couples = False
    samples_couple = False
    stages = ("integrate", "neighbours", "density", "smoothing", "correction", "pressure", "finish")

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        super().resize(capacity)
        self._predicted = allocate_array(vec3, capacity)

    def step(self, world: Any, dt: float) -> None:
        """Prediction, springs, pressure at displaced places, integration from where the step began."""
        k, c = self._numbers(world, dt)
        p, x = world.particles, self._predicted
        with world.stages("integrate"):
            self._advect(world, k)
        with world.stages("neighbours"):
            world.neighbors.find(p.position, p, world.count)
        with world.stages("density"):
            self._weigh(world, p.position, k, c)
        with world.stages("smoothing"):
            self._smooth(world, k, dt)
        with world.stages("correction"):
            _predict_stage(p, k, world.solids.device, self.scratch, x, self.params.reading)
            self._correct(world, x, k, dt, self.scratch.smoothed)
            _displace_stage(p, k, self.scratch, x)
        with world.stages("neighbours"):
            world.neighbors.find(p.position, p, world.count)  # boundary samples were cut off the lists
        with world.stages("density"):
            self._weigh(world, x, k, c)
        with world.stages("pressure"):
            self._solve_pressure(world, x, k, c, advected=self.params.reading == 2)
        with world.stages("finish"):
            self._finish(world, k, c)
