"""Takamatsu & Kanai 2011 on IISPH: the method of Figs. 3a and 4 of Takahashi et al. 2014, for comparison.

The fluid solver and shape matching each say what the velocity should be, and the particle takes something between the two:

    v = (1 − k) (ṽ + Δt a) + k (ṽ + (g − x)/Δt)

So a share k of the pressure's work is thrown away after the pressure was solved for. The original has an equation of state
instead of IISPH, and goals by clusters.
"""

from typing import Any, Literal

import quadrants as qd
from pydantic import StrictBool

from viscoil.constraints.pressure import PressureField
from viscoil.particles import Floats, Particles, vec3
from viscoil.solvers.iisph import IISPH, IISPHParams
from viscoil.solvers.iisph_stages import Scratch
from viscoil.solvers.solver import StepNumbers


class TakamatsuIISPHParams(IISPHParams):
    """[solver] method = "takamatsu_iisph"."""

    method: Literal["takamatsu_iisph"] = "takamatsu_iisph"  # type: ignore[assignment]
    correction: Literal["shape_matching"] = "shape_matching"  # type: ignore[assignment]
    """goals come from shape matching"""
    acceleration: Literal["momentum", "none"] = "none"
    """iterations as published"""
    conserve: StrictBool = False
    """regions act on all their members alike; as published they do not"""


@qd.kernel(graph=True, fastcache=True)
def _clear_stage(k: StepNumbers, s: Scratch):
    """Room for the velocities that shape matching asks for."""
    for i in range(k.count[0]):
        s.velocity[i] = vec3(0.0)


@qd.kernel(graph=True, fastcache=True)
def _interpolate_stage(p: Particles, k: StepNumbers, s: Scratch, f: PressureField, stiffness: Floats, strength: Floats):
    """(1 − k) of the pressure's acceleration, and k (g − x)/Δt, which ``s.velocity`` holds."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            share = strength[i] * stiffness[qd.max(p.material[i], 0)]
            f.acceleration[i] = (1.0 - share) * f.acceleration[i]
            s.smoothed[i] = s.smoothed[i] + s.velocity[i]


class TakamatsuIISPH(IISPH):
    """The solver."""

    couples = False
    samples_couple = False
    stages = ("integrate", "neighbours", "density", "smoothing", "pressure", "correction", "finish")

    def step(self, world: Any, dt: float) -> None:
        """Pressure first, then what is between its velocities and those of shape matching."""
        k, c = self._numbers(world, dt)
        x = world.particles.position
        with world.stages("integrate"):
            self._advect(world, k)
        with world.stages("neighbours"):
            world.neighbors.find(x, world.particles, world.count)
        with world.stages("density"):
            self._weigh(world, x, k, c)
        with world.stages("smoothing"):
            self._smooth(world, k, dt)
        with world.stages("pressure"):
            self._solve_pressure(world, x, k, c, advected=True)
        with world.stages("correction"):
            if self._bonded():
                _clear_stage(k, self.scratch)
                self._correct(world, x, k, dt, self.scratch.velocity)
                stiffness, strength = self.held.numbers.stiffness, world.carried["strength"].array
                _interpolate_stage(world.particles, k, self.scratch, self.field, stiffness, strength)
        with world.stages("finish"):
            self._finish(world, k, c)
