"""Position Based Fluids, Macklin & Müller, ACM TOG 32(4), 2013. Equation and line numbers are the paper's."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.constraints.contact import contact, resolve_all
from viscoil.constraints.density import (
    DensityNumbers,
    chunk_sums,
    corrections,
    count_down,
    multipliers,
    stop_when_small,
)
from viscoil.constraints.walls import walls
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import SolverParams
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.steps.integrate import predict, velocities
from viscoil.steps.viscosity import xsph_and_commit
from viscoil.steps.vorticity import confine, curl
from viscoil.units import Count, Quantity

VECTORS = ("predicted", "correction", "velocity", "vorticity", "wall_gradient")
JACOBI_LIMIT = 5 / 3  # of 2; the rest is for disorder
FARTHEST = 20.0  # supports a particle may move in one step before the state counts as exploding


class PBFParams(SolverParams):
    """[solver] method = "pbf"."""

    method: Literal["pbf"] = "pbf"
    iterations: Annotated[int, Count(at_least=1, at_most=1000)] = 4
    """solver iterations per step; with a tolerance, the most there may be"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression below which the iterations end early; 0 = always all iterations, as in the paper"""
    relaxation: Annotated[float, Quantity("number", at_least=0.0, at_most=100.0)] | None = None
    """ε of eq. 11, relative to the lattice's sum of squared gradients; left out: as small as keeps iterations stable"""
    kernels: Literal["spiky", "paper"] = "spiky"
    """densities from the Spiky kernel, as its gradients are, or from Poly6 as in the paper (gains energy)"""
    artificial_pressure: Annotated[float, Quantity("number", at_least=0.0, at_most=10.0)] | None = None
    """k of eq. 13, in units of the lattice's multiplier; left out: 0.02, or 0 when unilateral (a gas otherwise)"""
    pressure_power: Annotated[int, Count(at_least=1, at_most=8)] = 4
    """n of eq. 13"""
    pressure_distance: Annotated[float, Quantity("number", above=0.0, at_most=0.9)] = 0.2
    """|Δq| of eq. 13, in supports"""
    vorticity: Annotated[float, Quantity("speed", at_least=0.0)] = 0.0
    """ε of eq. 16 [m/s]; 0 = no confinement"""
    xsph: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0)] = 0.01
    """c of eq. 17"""
    unilateral: bool = False
    """correct compression only (no cohesion)"""
    wall_density: bool = True
    """solids count in the density of particles beside them; false = the paper's bare collisions"""


@dataclass(frozen=True)
class Scratch:
    """Memory of one step."""

    predicted: Vectors  # x* [m]
    correction: Vectors  # Δp [m]
    velocity: Vectors  # [m/s]
    vorticity: Vectors  # [1/s]
    multiplier: Floats  # λ [m²]
    error: Floats  # max(C, 0)
    wall: Floats  # density of the walls, relative
    wall_gradient: Vectors  # [1/m]
    partial: Floats  # sums of error, by chunk
    used: Ints  # [1] iterations done, [0] in this step


@qd.kernel(graph=True, fastcache=True)
def _predict(
    p: Particles, n: qd.i32, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts, s: Scratch,
):  # fmt: skip
    """Lines 1–4, and a first contact so that lists are found where particles can be."""
    predict(p, n, dt, gx, gy, gz, solids, s.predicted)
    contact(s.predicted, p.position, p.inverse_mass, n, radius, number, solids, parts)


@qd.func(requires_top_level=True)
def _move(
    p: Particles, n: qd.i32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts, s: Scratch, left: Flag
):
    """x* ← x* + Δp, collisions included (lines 14 and 17)."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            moved = s.predicted[i] + s.correction[i]
            s.predicted[i] = resolve_all(moved, p.position[i], radius, number, solids, parts)
        if i == 0:
            count_down(left, s.used)


@qd.func(requires_top_level=True)
def _start(s: Scratch, left: Flag, iterations: qd.i32):
    for _ in range(1):
        left[()] = iterations
        s.used[0] = 0


@qd.kernel(graph=True, fastcache=True)
def _solve(
    left: Flag, p: Particles, n: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers, iterations: qd.i32, movers: qd.i32,
    tolerance: qd.f32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts, s: Scratch,
    walled: qd.Template, power: qd.Template, uniform: qd.Template, published: qd.Template, controlled: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Lines 8–19: all λ, then all Δp, then collisions and new positions."""
    _start(s, left, iterations)
    while qd.graph.do_while(left):
        if qd.static(walled):
            walls(p, s.predicted, n, c.support, number, solids, parts, s.wall, s.wall_gradient)
        multipliers(p, s.predicted, n, near, torus, c, s.wall, s.wall_gradient, s.error, s.multiplier, published, uniform, periodic)
        corrections(p, s.predicted, n, near, torus, c, s.multiplier, s.wall_gradient, s.correction, power, uniform, periodic)
        _move(p, n, radius, number, solids, parts, s, left)
        if qd.static(controlled):
            chunk_sums(s.error, n, s.partial)
            stop_when_small(left, s.used, s.partial, n, movers, tolerance, 2)


@qd.kernel(graph=True, fastcache=True)
def _velocities(p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, s: Scratch, status: Ints):
    """Line 21."""
    velocities(p, n, dt, farthest, s.predicted, s.velocity, status)


@qd.kernel(graph=True, fastcache=True)
def _confine(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, strength: qd.f32, dt: qd.f32, s: Scratch,
    periodic: qd.Template,
):  # fmt: skip
    """Line 22, first half."""
    curl(p, s.predicted, n, near, torus, support, s.velocity, s.vorticity, periodic)
    confine(p, s.predicted, n, near, torus, support, strength, dt, s.vorticity, s.velocity, periodic)


@qd.kernel(graph=True, fastcache=True)
def _finish(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, strength: qd.f32, s: Scratch,
    uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Lines 22 (second half) and 23."""
    xsph_and_commit(p, s.predicted, n, near, torus, strength, support, s.velocity, uniform, periodic)


class PBF:
    """The solver. Scratch only: everything that lasts belongs to the world."""

    honours = frozenset({"density", "friction"})
    stages = ("integrate", "neighbours", "solve", "velocity")

    def __init__(self, params: PBFParams, world: Any):
        self.params = params
        self._walled = False
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in ("multiplier", "error", "wall")},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
        )

    def relaxation(self, world: Any) -> float:
        """ε relative to the lattice: as asked, or what makes the stiffest mode of the lattice shrink by 2/3 of itself.

        Jacobi iterations amplify a mode of stiffness κ (in units of the diagonal) by 1 − κ/(1 + ε): stable for κ/(1 + ε) < 2.
        """
        if self.params.relaxation is not None:
            return self.params.relaxation
        return max(0.1, world.lattice.stiffest_mode / JACOBI_LIMIT - 1)

    def artificial_pressure(self) -> float:
        """k relative to the lattice. Repulsion needs cohesion against it: alone it drives the particles apart."""
        if self.params.artificial_pressure is not None:
            return self.params.artificial_pressure
        return 0.0 if self.params.unilateral else 0.02

    def numbers(self, world: Any) -> DensityNumbers:
        """The constraint's parameters in SI units."""
        c, h = self.params, world.support
        stiffness = world.lattice.gradient_square
        q = c.pressure_distance
        reference = 315 / (64 * 3.141592653589793 * h**3) * (1 - q * q) ** 3
        return DensityNumbers(
            support=h,
            softness=self.relaxation(world) * stiffness,
            repulsion=self.artificial_pressure() / stiffness,
            reference=1 / reference,
            unilateral=int(c.unilateral),
        )

    def step(self, world: Any, dt: float) -> None:
        """Algorithm 1."""
        p, n, s, c = world.particles, world.count, self.scratch, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, number = world.solids.device, world.solids.parts, len(world.solids)
        radius, walled = c.contact_radius * world.spacing, bool(number and c.wall_density)
        self._clear_walls(walled)
        with world.stages("integrate"):  # lines 1-4
            _predict(p, n, dt, *world.gravity, radius, number, solids, parts, s)
        with world.stages("neighbours"):  # lines 5-7
            world.neighbors.find(s.predicted, p, n)
        with world.stages("solve"):  # lines 8-19
            _solve(
                backend.loop_counter(), p, n, near, torus, self.numbers(world), c.iterations, world.fluid_count, c.tolerance, radius, number,
                solids, parts, s, walled, c.pressure_power, world.uniform, c.kernels == "paper", c.tolerance > 0, periodic,
            )  # fmt: skip
        with world.stages("velocity"):  # lines 20-24
            _velocities(p, n, dt, FARTHEST * world.support, s, world.status)
            if c.vorticity > 0:
                _confine(p, n, near, torus, world.support, c.vorticity, dt, s, periodic)
            _finish(p, n, near, torus, world.support, c.xsph, s, world.uniform, periodic)

    def _clear_walls(self, walled: bool) -> None:
        """Without walls their density is not computed at all: it must be zero once."""
        if self._walled and not walled:
            self.scratch.wall.fill(0)
            self.scratch.wall_gradient.fill(0)
        self._walled = walled

    def iterations_used(self) -> int:
        """Iterations since the last call."""
        backend.synchronise()
        used = int(self.scratch.used.to_numpy()[1])
        self.scratch.used.fill(0)
        return used
