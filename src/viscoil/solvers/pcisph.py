"""Predictive-corrective incompressible SPH, Solenthaler & Pajarola 2009: the method PBF is compared with (Fig. 4).

Pressures accumulate over the iterations of a step, p_i += δ max(ρ*_i − ρ₀, 0), where δ is the pressure that would cancel a
density error on the filled reference lattice. Written per unit density: pressures in p/ρ₀ [m²/s²], volumes V.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.constraints.contact import contact
from viscoil.constraints.density import chunk_sums, count_down, stop_when_small
from viscoil.constraints.walls import walls
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.finding import coincident
from viscoil.sph.neighbors import NeighborList, Torus, seat, separation
from viscoil.sph.smoothing import spiky, spiky_gradient
from viscoil.steps.integrate import moved, velocities
from viscoil.steps.viscosity import xsph_and_commit
from viscoil.units import Count, Quantity

VECTORS = ("predicted", "force", "velocity", "wall_gradient")


class PCISPHParams(SolverParams):
    """[solver] method = "pcisph"."""

    method: Literal["pcisph"] = "pcisph"
    iterations: Annotated[int, Count(at_least=3, at_most=1000)] = 50
    """most pressure iterations per step"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.01
    """mean compression below which the iterations end, after at least three; 0 = always all"""
    xsph: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0)] = 0.01
    """viscosity, c of PBF's eq. 17, so that both methods are damped alike"""


@dataclass(frozen=True)
class Scratch:
    """Memory of one step."""

    predicted: Vectors  # x* [m]
    force: Vectors  # pressure acceleration [m/s²]
    velocity: Vectors  # [m/s]
    pressure: Floats  # p/ρ₀ [m²/s²]
    error: Floats  # max(ρ*/ρ₀ − 1, 0)
    wall: Floats  # density of the walls, relative
    wall_gradient: Vectors  # [1/m]
    partial: Floats
    used: Ints


@qd.func(requires_top_level=True)
def _predict(p: Particles, n: qd.i32, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, solids: Solids, s: Scratch):
    """v* = v + Δt (g + a_p), x* = x + Δt v*."""
    for i in range(n):
        s.predicted[i] = moved(i, p, dt, vec3(gx, gy, gz) + s.force[i], solids)


@qd.func(requires_top_level=True)
def _update_pressure(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, delta: qd.f32, s: Scratch,
    periodic: qd.template(),
):  # fmt: skip
    """ρ* at the predicted positions (list of the step's start), p += δ (ρ*/ρ₀ − 1)⁺."""
    for i in range(n):
        s.error[i] = 0.0
        if p.inverse_mass[i] > 0.0:
            density = p.volume[i] * spiky(0.0, support) + s.wall[i]
            base = i * near.row[0]
            for k in range(near.count[i]):
                j = near.index[seat(base, near.column[0], k)]
                d = separation(s.predicted[i], s.predicted[j], torus, periodic)
                density += p.volume[j] * spiky(d.dot(d), support)
            s.error[i] = qd.max(density - 1.0, 0.0)
            s.pressure[i] += delta * s.error[i]


@qd.func(requires_top_level=True)
def _pressure_force(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, s: Scratch, left: Flag,
    periodic: qd.template(),
):  # fmt: skip
    """a_i = −w_i Σ_j V_j (p_i + p_j) ∇W_ij at the positions of the step's start; walls mirror the pressure."""
    for i in range(n):
        total = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            total = -2.0 * s.pressure[i] * s.wall_gradient[i]
            base = i * near.row[0]
            for k in range(near.count[i]):
                j = near.index[seat(base, near.column[0], k)]
                d = separation(p.position[i], p.position[j], torus, periodic)
                r2 = d.dot(d)
                if r2 < 1e-12 * support * support:
                    d = 1e-6 * support * coincident(p.id[i], p.id[j])
                other = qd.select(p.inverse_mass[j] > 0.0, s.pressure[j], s.pressure[i])
                total -= p.volume[j] * (s.pressure[i] + other) * spiky_gradient(r2, support) * d
            total *= p.inverse_mass[i]
        s.force[i] = total
        if i == 0:
            count_down(left, s.used)


@qd.func(requires_top_level=True)
def _clear(n: qd.i32, left: Flag, iterations: qd.i32, s: Scratch):
    for i in range(n):
        s.pressure[i] = 0.0
        s.force[i] = vec3(0.0)
    for _ in range(1):
        left[()] = iterations
        s.used[0] = 0


@qd.kernel(graph=True, fastcache=True)
def _solve(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, solids: Solids, parts: Parts, s: Scratch,
    periodic: qd.Template,
):  # fmt: skip
    """The pressure loop, then the last prediction is the new position."""
    _clear(k.count[0], left, k.iterations[0], s)
    while qd.graph.do_while(left):
        _predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s)
        contact(s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], k.solids[0], solids, parts)
        walls(p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.wall, s.wall_gradient, 0)
        _update_pressure(p, k.count[0], near, torus, k.support[0], k.stiffness[0], s, periodic)
        _pressure_force(p, k.count[0], near, torus, k.support[0], s, left, periodic)
        chunk_sums(s.error, k.count[0], s.partial)
        stop_when_small(left, s.used, s.partial, k.count[0], k.movers[0], k.tolerance[0], 3)
    _predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s)
    contact(s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], k.solids[0], solids, parts)


@qd.kernel(graph=True, fastcache=True)
def _finish(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, s: Scratch, status: Ints, periodic: qd.Template
):
    velocities(p, k.count[0], k.dt[0], k.farthest[0], s.predicted, s.velocity, status)
    xsph_and_commit(p, s.predicted, k.count[0], near, torus, k.xsph[0], k.support[0], s.velocity, False, periodic)


class PCISPH(Method):
    """The solver."""

    stages = ("neighbours", "solve", "velocity")

    def __init__(self, params: PCISPHParams, world: Any):
        self.params = params
        self._step = Uploaded(StepNumbers)
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in ("pressure", "error", "wall")},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
        )
        self.counter = self.scratch.used

    def step(self, world: Any, dt: float) -> None:
        """Lists at the start of the step, pressure loop, integration."""
        p, s = world.particles, self.scratch
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        # β_p of the paper is 2Δt² per unit density; the vector sum of gradients vanishes on the lattice.
        delta = 1 / (2 * dt * dt * world.lattice.gradient_square)
        k = step_numbers(self._step, world, self.params, dt, stiffness=delta)
        with world.stages("neighbours"):
            world.neighbors.find(p.position, p, world.count)
        with world.stages("solve"):
            _solve(
                backend.loop_counter(), p, k, near, torus, world.solids.device, world.solids.parts, s, periodic
            )
        with world.stages("velocity"):
            _finish(p, k, near, torus, s, world.status, periodic)
