"""Predictive-corrective incompressible SPH, Solenthaler & Pajarola 2009: the method PBF is compared with (Fig. 4).

Pressures accumulate over the iterations of a step, p_i += δ max(ρ*_i − ρ₀, 0), where δ is the pressure that would cancel a
density error on the filled reference lattice. Written per unit density: pressures in p/ρ₀ [m²/s²], volumes V.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.constraints.contact import contact
from viscoil.constraints.density import chunk_sums, coincident, count_down, stop_when_small
from viscoil.constraints.walls import walls
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.pbf import FARTHEST
from viscoil.solvers.solver import SolverParams
from viscoil.sph.neighbors import NeighborList, Torus, separation
from viscoil.sph.smoothing import spiky, spiky_gradient
from viscoil.steps.integrate import velocities
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
        if p.inverse_mass[i] > 0.0:
            s.predicted[i] = p.position[i] + dt * (p.velocity[i] + dt * (vec3(gx, gy, gz) + s.force[i]))
        elif p.solid[i] >= 0:
            s.predicted[i] = solids.rotation[p.solid[i]] @ p.rest[i] + solids.position[p.solid[i]]
        else:
            s.predicted[i] = p.position[i] + dt * p.velocity[i]


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
            base = i * near.row
            for k in range(near.count[i]):
                j = near.index[base + k * near.column]
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
            base = i * near.row
            for k in range(near.count[i]):
                j = near.index[base + k * near.column]
                d = separation(p.position[i], p.position[j], torus, periodic)
                r2 = d.dot(d)
                if r2 < 1e-12 * support * support:
                    d = coincident(p.id[i], p.id[j], support)
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
    left: Flag, p: Particles, n: qd.i32, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, near: NeighborList, torus: Torus,
    support: qd.f32, delta: qd.f32, iterations: qd.i32, movers: qd.i32, tolerance: qd.f32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts, s: Scratch, periodic: qd.Template,
):  # fmt: skip
    """The pressure loop, then the last prediction is the new position."""
    _clear(n, left, iterations, s)
    while qd.graph.do_while(left):
        _predict(p, n, dt, gx, gy, gz, solids, s)
        contact(s.predicted, p.position, p.inverse_mass, n, radius, number, solids, parts)
        walls(p, s.predicted, n, support, number, solids, parts, s.wall, s.wall_gradient)
        _update_pressure(p, n, near, torus, support, delta, s, periodic)
        _pressure_force(p, n, near, torus, support, s, left, periodic)
        chunk_sums(s.error, n, s.partial)
        stop_when_small(left, s.used, s.partial, n, movers, tolerance, 3)
    _predict(p, n, dt, gx, gy, gz, solids, s)
    contact(s.predicted, p.position, p.inverse_mass, n, radius, number, solids, parts)


@qd.kernel(graph=True, fastcache=True)
def _finish(
    p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, near: NeighborList, torus: Torus, support: qd.f32,
    strength: qd.f32, s: Scratch, status: Ints, periodic: qd.Template,
):  # fmt: skip
    velocities(p, n, dt, farthest, s.predicted, s.velocity, status)
    xsph_and_commit(p, s.predicted, n, near, torus, strength, support, s.velocity, False, periodic)


class PCISPH:
    """The solver."""

    honours = frozenset({"density", "friction"})
    stages = ("neighbours", "solve", "velocity")

    def __init__(self, params: PCISPHParams, world: Any):
        self.params = params
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in ("pressure", "error", "wall")},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
        )

    def step(self, world: Any, dt: float) -> None:
        """Lists at the start of the step, pressure loop, integration."""
        p, n, s, c = world.particles, world.count, self.scratch, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, number = world.solids.device, world.solids.parts, len(world.solids)
        # β_p of the paper is 2Δt² per unit density; the vector sum of gradients vanishes on the lattice.
        delta = 1 / (2 * dt * dt * world.lattice.gradient_square)
        with world.stages("neighbours"):
            world.neighbors.find(p.position, p, n)
        with world.stages("solve"):
            _solve(
                backend.loop_counter(), p, n, dt, *world.gravity, near, torus, world.support, delta, c.iterations, world.fluid_count, c.tolerance,
                c.contact_radius * world.spacing, number, solids, parts, s, periodic,
            )  # fmt: skip
        with world.stages("velocity"):
            _finish(
                p, n, dt, FARTHEST * world.support, near, torus, world.support, c.xsph, s, world.status, periodic
            )

    def iterations_used(self) -> int:
        """Iterations since the last call."""
        backend.synchronise()
        used = int(self.scratch.used.to_numpy()[1])
        self.scratch.used.fill(0)
        return used
