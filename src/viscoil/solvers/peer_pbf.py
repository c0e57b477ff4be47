"""Viscosity of Peer et al. 2015 inside Position Based Fluids: the method of Fig. 3 in Barreiro et al. 2017, for comparison.

Velocities are fitted to gradients without shear (steps/goal_gradients.py), then the density constraint moves positions, and
nothing opposes that. There is no viscosity in Pa s here: a step multiplies the amplitude of a shear wave by (1 + ξ)/2 whatever
its length, so what ξ means depends on the time step.
"""

from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.particles import Flag, Particles, Uploaded, vec3
from viscoil.solids.sdf import Parts, Solids, distance
from viscoil.solvers.incompressible import (
    Flow,
    Incompressible,
    IncompressibleParams,
    aim_again,
    commit_stage,
    density_stage,
    predict_stage,
)
from viscoil.solvers.solver import StepNumbers, step_numbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.sums import Sums
from viscoil.steps.goal_gradients import Fit, FitNumbers, advance, allocate_fit, begin, goals, images, misfits, steer
from viscoil.transfer import take
from viscoil.units import Count, Quantity, Slider


class PeerPBFParams(IncompressibleParams):
    """[solver] method = "peer_pbf"."""

    method: Literal["peer_pbf"] = "peer_pbf"
    shear: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(0.0, 1.0)] = 0.0
    """ξ, share of the shear rate a step leaves; 0 = as viscous as can be, 1 = no fit at all"""
    gradients: Literal["corrected", "plain"] = "corrected"
    """corrected: exact for linear velocities, a turning body goes on turning; plain: as published"""
    velocity_iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 200)] = 50
    """most iterations of the fit of velocities per step"""
    velocity_tolerance: Annotated[float, Quantity("number", above=0.0, at_most=0.5), Slider(1e-4, 0.3, log=True)] = 0.01
    """residual, relative to the right side, that ends the fit"""


@qd.func
def _sticks(x: vec3, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts) -> qd.i32:
    """Whether x touches a solid without slip; ``radius``: contact radius [m]."""
    result = 0
    for solid in range(number):
        local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
        reach = 1.02 * radius * solids.standoff[solid]
        near = local.norm() - solids.bound[solid] < reach
        if solids.friction[solid] > 1e6 and near and distance(solid, local, solids, parts) < reach:
            result = 1
    return result


@qd.func(requires_top_level=True)
def _hold(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow, v: Fit):
    """Who touches a solid without slip keeps the velocity that contact left it."""
    for i in range(k.count[0]):
        v.held[i] = 0
        if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0]:
            v.held[i] = _sticks(s.predicted[i], k.radius[0], k.solids[0], solids, parts)
            if v.held[i] == 1:
                s.velocity[i] = (s.predicted[i] - p.position[i]) / k.dt[0]


@qd.kernel(graph=True, fastcache=True)
def _fit_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: FitNumbers, solids: Solids, parts: Parts,
    s: Flow, v: Fit, sums: Sums, corrected: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """u* → velocities that fit gradients without shear."""
    _hold(p, k, solids, parts, s, v)
    goals(p, s.predicted, s.velocity, k.count[0], near, torus, k.support[0], c, v, corrected, periodic)
    misfits(p, s.predicted, s.velocity, k.count[0], near, torus, k.support[0], v, sums, periodic)
    begin(left, k.count[0], c, v, sums)
    while qd.graph.do_while(left):
        images(p, s.predicted, k.count[0], near, torus, k.support[0], v, sums, periodic)
        steer(left, k.count[0], c, v, sums)
        advance(p, k.count[0], s.velocity, v)


@qd.kernel(graph=True, fastcache=True)
def _aim_stage(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow):
    """x* ← x + Δt u."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            aim_again(i, p, k, solids, parts, s)


class PeerPBF(Incompressible):
    """The solver."""

    stages = ("integrate", "neighbours", "project", "solve", "velocity")

    def __init__(self, params: PeerPBFParams, world: Any):
        self._numbers = Uploaded(FitNumbers)
        super().__init__(params, world)

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        super().resize(capacity)
        self.fit, self._sums = allocate_fit(capacity)

    def step(self, world: Any, dt: float) -> None:
        """Prediction, velocities that fit the goals, density."""
        p, s, c = world.particles, self.flow, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k = step_numbers(self._step, world, c, dt)
        with world.stages("integrate"):
            predict_stage(p, k, solids, parts, s)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        if c.shear < 1:
            with world.stages("project"):
                numbers = self._numbers.set(shear=c.shear, iterations=c.velocity_iterations, tolerance=c.velocity_tolerance)
                corrected = c.gradients == "corrected"
                _fit_stage(left, p, k, near, torus, numbers, solids, parts, s, self.fit, self._sums, corrected, periodic)
                _aim_stage(p, k, solids, parts, s)
        with world.stages("solve"):
            density_stage(left, p, k, near, torus, self.density_numbers(world), solids, parts, s, *self.variant(world))
        with world.stages("velocity"):
            commit_stage(p, k, torus, s, world.status, periodic)

    def metrics(self) -> dict[str, float]:
        """Iterations of the fit in the frame."""
        return {"velocity_iterations": int(take(self.fit.used)[0])}
