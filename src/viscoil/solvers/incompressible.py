"""What the methods of comparison share: prediction, the density constraint of Position Based Fluids, contact, the commit.

A method built on this does one thing of its own to the velocities, or inside the iterations, and reads like this:

    u ← u + Δt g, x* ← x + Δt u           predict
    neighbours at x*
    u ← ..., x* ← x + Δt u                 the method's own
    density and contact, N times           density_corrections, move
    u ← u + what x* was corrected by       commit
"""

from dataclasses import dataclass
from typing import Annotated, Any

import quadrants as qd
from pydantic import StrictBool

from viscoil.constraints.contact import contact_and_clearance, resolve_all
from viscoil.constraints.density import (
    DensityNumbers,
    chunk_sums,
    corrections,
    count_down,
    multipliers,
    plain_density,
    stop_when_small,
)
from viscoil.constraints.walls import walls_nearby
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers
from viscoil.sph.finite import all_finite
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.steps.integrate import predict, wrapped
from viscoil.units import Count, Quantity, Slider

VECTORS = ("predicted", "aim", "shift", "velocity", "correction", "wall_gradient")
FLOATS = ("multiplier", "error", "clear", "wall")


class IncompressibleParams(SolverParams):
    """Keys of every method that takes its incompressibility from Position Based Fluids."""

    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 40)] = 5
    """iterations of the density constraint per step; with a tolerance, the most there may be"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression below which the iterations end early; 0 = always all iterations"""
    unilateral: StrictBool = True
    """correct compression only; false = as published for PBF: thinned fluid pulls together too"""


@dataclass(frozen=True)
class Flow:
    """Memory of one step."""

    predicted: Vectors  # x* [m]
    aim: Vectors  # where the velocity alone leads [m]
    shift: Vectors  # x* − aim [m], kept apart: as a difference of places it would have lost most of its digits
    velocity: Vectors  # u [m/s]
    correction: Vectors  # Δx [m]
    wall_gradient: Vectors  # [1/m]
    multiplier: Floats  # λ of the density constraint [m²]
    error: Floats  # max(C, 0)
    clear: Floats  # at least this far from all solids [m]
    wall: Floats  # density of the walls, relative
    partial: Floats  # sums of error, by chunk
    used: Ints  # iterations: in this step, since last asked


@qd.kernel(graph=True, fastcache=True)
def predict_stage(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow):
    """u ← u + Δt g, x* ← x + Δt u, and a first contact so that lists are found where particles can be."""
    predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s.predicted)
    for i in range(k.count[0]):
        s.velocity[i] = (s.predicted[i] - p.position[i]) / k.dt[0]
        if p.inverse_mass[i] > 0.0:
            s.velocity[i] = p.velocity[i] + k.dt[0] * vec3(k.gx[0], k.gy[0], k.gz[0])
        s.aim[i] = s.predicted[i]
    contact_and_clearance(
        s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], k.support[0], k.solids[0], solids, parts, s.clear
    )
    for i in range(k.count[0]):
        s.shift[i] = s.predicted[i] - s.aim[i]


@qd.func
def shifted(i: qd.i32, p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow):
    """x*_i ← aim + shift, and contact."""
    x = s.aim[i] + s.shift[i]
    if s.clear[i] < k.support[0]:
        allowed = resolve_all(x, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
        if (allowed - x).norm_sqr() > 0.0:
            x = allowed
            s.shift[i] = x - s.aim[i]
    s.predicted[i] = x


@qd.func
def aim_again(i: qd.i32, p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow):
    """x*_i ← x_i + Δt u_i with the velocity as it is now, and contact."""
    s.aim[i] = p.position[i] + k.dt[0] * s.velocity[i]
    s.shift[i] = vec3(0.0)
    s.clear[i] -= (s.aim[i] - s.predicted[i]).norm()
    shifted(i, p, k, solids, parts, s)


@qd.func(requires_top_level=True)
def density_corrections(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids, parts: Parts,
    s: Flow, walled: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Δx of one Jacobi iteration of the density constraint."""
    if qd.static(walled):
        walls_nearby(
            p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.clear, s.wall, s.wall_gradient, 0
        )
    multipliers(
        p, s.predicted, k.count[0], near, torus, c, s.wall, s.wall_gradient, s.error, s.multiplier,
        False, uniform, periodic,
    )  # fmt: skip
    corrections(p, s.predicted, k.count[0], near, torus, c, s.multiplier, s.wall_gradient, s.correction, 1, uniform, periodic)


@qd.func(requires_top_level=True)
def move(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Flow):
    """x* ← x* + Δx, and contact."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            s.shift[i] += s.correction[i]
            s.clear[i] -= s.correction[i].norm()
            shifted(i, p, k, solids, parts, s)


@qd.func(requires_top_level=True)
def begin_iterations(left: Flag, k: StepNumbers, s: Flow):
    """All iterations still to do."""
    for _ in range(1):
        left[()] = k.iterations[0]
        s.used[0] = 0


@qd.func(requires_top_level=True)
def end_iteration(left: Flag, k: StepNumbers, s: Flow, controlled: qd.template()):
    """One fewer to do; none when ``controlled`` and the mean compression is within the tolerance."""
    for _ in range(1):
        count_down(left, s.used)
    if qd.static(controlled):
        chunk_sums(s.error, k.count[0], s.partial)
        stop_when_small(left, s.used, s.partial, k.count[0], k.movers[0], k.tolerance[0], 2)


@qd.kernel(graph=True, fastcache=True)
def density_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, s: Flow, walled: qd.Template, uniform: qd.Template, controlled: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x* → density at most the rest density, outside of solids."""
    begin_iterations(left, k, s)
    while qd.graph.do_while(left):
        density_corrections(p, k, near, torus, c, solids, parts, s, walled, uniform, periodic)
        move(p, k, solids, parts, s)
        end_iteration(left, k, s, controlled)


@qd.func(requires_top_level=True)
def commit(p: Particles, k: StepNumbers, torus: Torus, s: Flow, status: Ints, periodic: qd.template()):
    """u ← u + (x* − x_aim)/Δt, x ← x*; records trouble as integrate.velocities does."""
    for i in range(k.count[0]):
        x = s.predicted[i]
        way = x - p.position[i]
        u = s.velocity[i]
        if p.inverse_mass[i] > 0.0:
            u += s.shift[i] / k.dt[0]
        if not all_finite(x) or way.dot(way) > k.farthest[0] * k.farthest[0]:
            qd.atomic_min(status[0], p.id[i])
        elif p.inverse_mass[i] > 0.0:
            qd.atomic_max(status[1], qd.bit_cast(u.norm(), qd.i32))
            x = wrapped(x, torus, periodic)
        s.velocity[i] = u
        p.velocity[i] = u
        p.position[i] = x


@qd.kernel(graph=True, fastcache=True)
def commit_stage(p: Particles, k: StepNumbers, torus: Torus, s: Flow, status: Ints, periodic: qd.Template):
    """:func:`commit` on its own."""
    commit(p, k, torus, s, status, periodic)


class Incompressible(Method):
    """A solver but for its step. Scratch only: everything that lasts belongs to the world."""

    def __init__(self, params: Any, world: Any):
        self.params = params
        self._had_walls = False
        self._step, self._density = Uploaded(StepNumbers), Uploaded(DensityNumbers)
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.flow = Flow(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in FLOATS},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
        )
        self.counter = self.flow.used

    def density_numbers(self, world: Any) -> DensityNumbers:
        """The constraint's parameters: as soft as keeps Jacobi stable for any number of iterations."""
        return plain_density(self._density, world, self.params.unilateral)

    def variant(self, world: Any) -> tuple[bool, bool, bool, bool]:
        """walled, uniform, controlled, periodic: what the kernels of the iterations are compiled for."""
        walled = bool(len(world.solids))
        if self._had_walls and not walled:  # what walls last added is cleared once
            self.flow.wall.fill(0)
            self.flow.wall_gradient.fill(0)
        self._had_walls = walled
        return walled, world.uniform, self.params.tolerance > 0, world.neighbors.periodic
