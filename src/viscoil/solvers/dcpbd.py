"""Viscoelastic fluids by conformation constraints, after Barreiro et al., ACM TOG 36(6), 2017 (DC-PBD, Algorithm 2).

Velocities are projected onto the conformation constraint, then positions onto the density constraint. The paper projects
positions onto the conformation constraint a second time, because few Jacobi iterations leave the velocities half done. Here
conjugate gradients finish the first projection, and the second one no longer changes anything that we can measure.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import quadrants as qd

from viscoil import backend
from viscoil.constraints.conformation import Substances, gradient_corrections, gradient_of
from viscoil.constraints.contact import contact_and_clearance, resolve_all
from viscoil.constraints.density import DensityNumbers, corrections, count_down, multipliers
from viscoil.constraints.friction import pair_factor
from viscoil.constraints.velocity_projection import (
    Projection,
    ProjectionNumbers,
    add_up,
    advance,
    audit,
    bulk_pressures,
    images,
    residuals,
    set_up,
    steer,
)
from viscoil.constraints.walls import walls_nearby
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Uploaded, Vectors, allocate_array, mat3, vec3
from viscoil.solids.sdf import Parts, Solids, distance, normal
from viscoil.solvers.solver import SolverParams, StepNumbers, step_numbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.steps.conformation import next_conformation
from viscoil.steps.integrate import corrected_velocities, predict
from viscoil.steps.spreading import SpreadingNumbers, spread_and_commit
from viscoil.units import Count, Quantity, Slider

DENSITY_LIMIT = 1.2  # as in pbf: Jacobi's share of the stiffest mode of the density constraint
BULK = 5.0  # resistance against changes of volume, in viscosities: a stretched rope keeps 85 % of its volume's rate
FEWEST = 6  # neighbours that make a velocity gradient
VECTORS = ("predicted", "correction", "wall_gradient", "weight")
FLOATS = ("multiplier", "error", "clear", "wall")


class DCPBDParams(SolverParams):
    """[solver] method = "dcpbd"."""

    method: Literal["dcpbd"] = "dcpbd"
    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.5
    """support radius h of the smoothing kernels, in particle spacings"""
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 40)] = 5
    """iterations of the density constraint per step"""
    velocity_iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 200)] = 60
    """most iterations of the velocity projection per step and round"""
    velocity_tolerance: Annotated[float, Quantity("number", above=0.0, at_most=0.5), Slider(1e-4, 0.3, log=True)] = 0.01
    """residual, relative to that without any stress, that ends the velocity projection"""
    contact_rounds: Annotated[int, Count(at_least=1, at_most=10)] = 2
    """how often the velocity projection looks again which particles solids hold"""
    spreading: Annotated[float, Quantity("number", at_least=0.0, at_most=50.0)] = 8.0
    """how strongly particles of strained fluid are spread evenly; 0 = not at all, and stretched ropes tear"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression below which the density iterations end early; 0 = always all iterations"""


@dataclass(frozen=True)
class Scratch:
    """Memory of one step besides the projection's."""

    predicted: Vectors  # x* [m]
    correction: Vectors  # Δx [m]
    wall_gradient: Vectors  # [1/m]
    weight: Vectors  # E of conformation.py
    multiplier: Floats  # of the density constraint [m²]
    error: Floats  # max(C, 0)
    clear: Floats  # at least this far from all solids [m]
    wall: Floats  # density of the walls, relative
    inverse: Matrices  # B⁻¹
    used: Ints  # iterations of the velocity projection: in this step, since last asked
    left: Ints  # iterations of the density constraint, likewise
    clamped: Ints  # eigenvalues of Q that were brought back


@qd.func(requires_top_level=True)
def _predict(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, v: Projection):
    """u*, x*, and a first contact so that lists are found where particles can be."""
    predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s.predicted)
    for i in range(k.count[0]):
        v.free[i] = (s.predicted[i] - p.position[i]) / k.dt[0]
        if p.inverse_mass[i] > 0.0:
            v.free[i] = p.velocity[i] + k.dt[0] * vec3(k.gx[0], k.gy[0], k.gz[0])
    contact_and_clearance(s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], k.solids[0], solids, parts, s.clear)


@qd.func
def _nearest(x: vec3, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    """(normal of the nearest solid, its friction)."""
    gap = 1e30
    n = vec3(0.0)
    rough = 0.0
    for solid in range(number):
        local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
        if local.norm() - solids.bound[solid] < gap:
            phi = distance(solid, local, solids, parts)
            if phi < gap:
                gap = phi
                n = solids.rotation[solid] @ normal(solid, local, 0.05 * radius, solids, parts)
                rough = solids.friction[solid]
    return n, rough


@qd.func(requires_top_level=True)
def _hold(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, v: Projection, first: qd.template()):
    """Who touches a solid keeps the velocity that contact leaves it; whom a wall would have to pull is let go."""
    for i in range(k.count[0]):
        if qd.static(first):
            v.held[i] = 0
            v.u[i] = v.free[i]
        if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0]:
            if v.held[i] > 0 and v.normal[i].dot(v.residual[i]) > 0.0:
                v.held[i] = 0
            elif v.held[i] == 0:
                wanted = p.position[i] + k.dt[0] * v.u[i]
                if qd.static(first):
                    wanted = p.position[i] + k.dt[0] * v.free[i]
                reached = resolve_all(wanted, p.position[i], k.radius[0], k.solids[0], solids, parts)
                if (reached - wanted).norm() > 1e-4 * k.radius[0]:
                    n, rough = _nearest(reached, k.radius[0], k.solids[0], solids, parts)
                    v.normal[i] = n
                    v.held[i] = qd.select(rough > 1e6, 2, 1)
                    v.u[i] = (reached - p.position[i]) / k.dt[0]


@qd.func(requires_top_level=True)
def _look(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    s: Scratch, v: Projection, elastic: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """b − A u and its sums."""
    bulk_pressures(v.u, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, periodic)
    residuals(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, elastic, periodic)
    add_up(k.count[0], v)


@qd.kernel(graph=True, fastcache=True)
def _predict_stage(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, v: Projection):
    _predict(p, k, solids, parts, s, v)


@qd.kernel(graph=True, fastcache=True)
def _project_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, s: Scratch, v: Projection, first: qd.Template, elastic: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """One round of the velocity projection: u* → u**."""
    _hold(p, k, solids, parts, s, v, first)
    if qd.static(first):
        if qd.static(elastic):
            gradient_corrections(p, s.predicted, k.count[0], near, torus, k.support[0], 6, s.inverse, s.weight, periodic)
        set_up(p, k.count[0], k.dt[0], m, c, s.inverse, v, elastic)
    _look(p, k, near, torus, m, c, s, v, elastic, periodic)
    audit(left, k.count[0], c, v, first)
    while qd.graph.do_while(left):
        bulk_pressures(v.search, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, periodic)
        images(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, periodic)
        add_up(k.count[0], v)
        steer(left, s.used, k.count[0], c, v)
        advance(p, k.count[0], v)


@qd.kernel(graph=True, fastcache=True)
def _settle_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, s: Scratch, v: Projection, elastic: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """What is left of the residual, and x** = x⁰ + Δt u**; where that aimed at is kept in ``free``."""
    _look(p, k, near, torus, m, c, s, v, elastic, periodic)
    audit(left, k.count[0], c, v, False)
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            x = p.position[i] + k.dt[0] * v.u[i]
            v.free[i] = x
            s.clear[i] -= (x - s.predicted[i]).norm()
            if s.clear[i] < k.support[0]:
                x = resolve_all(x, p.position[i], k.radius[0], k.solids[0], solids, parts)
            s.predicted[i] = x


@qd.func(requires_top_level=True)
def _move(left: Flag, p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch):
    """x* ← x* + Δx, and contact."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            s.predicted[i] += s.correction[i]
            s.clear[i] -= s.correction[i].norm()
            if s.clear[i] < k.support[0]:
                s.predicted[i] = resolve_all(s.predicted[i], p.position[i], k.radius[0], k.solids[0], solids, parts)
        if i == 0:
            count_down(left, s.left)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, s: Scratch, walled: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x** → x: density and contact."""
    for _ in range(1):
        left[()] = k.iterations[0]
    while qd.graph.do_while(left):
        if qd.static(walled):
            walls_nearby(p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.clear, s.wall, s.wall_gradient)
        multipliers(
            p, s.predicted, k.count[0], near, torus, c, s.wall, s.wall_gradient, s.error, s.multiplier,
            False, uniform, periodic,
        )  # fmt: skip
        corrections(
            p, s.predicted, k.count[0], near, torus, c, s.multiplier, s.wall_gradient, s.correction, 1, uniform, periodic
        )
        _move(left, p, k, solids, parts, s)


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: SpreadingNumbers, s: Scratch,
    v: Projection, status: Ints, elastic: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """u with what the positions were corrected by, the conformation at the end of the step, and even distances."""
    corrected_velocities(p, k.count[0], k.dt[0], k.farthest[0], v.free, s.predicted, v.u, status)
    if qd.static(elastic):
        for i in range(k.count[0]):
            if p.inverse_mass[i] != 0.0:
                gradient = gradient_of(i, v.u, s.predicted, p, near, torus, k.support[0], s.inverse, periodic)
                p.conformation[i] = next_conformation(p.conformation[i], gradient, k.dt[0], p.material[i], m, s.clamped)
    spread_and_commit(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, m, v.u, periodic)


class DCPBD:
    """The solver. Scratch only: everything that lasts belongs to the world."""

    honours = frozenset(
        {"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain", "mobility", "extensibility"}
    )
    stages = ("integrate", "neighbours", "project", "solve", "velocity")
    leads_nozzles = True  # stress has to hold on to what is still in the pipe
    evolves = ("conformation",)  # fields besides position and velocity that a step changes

    def __init__(self, params: DCPBDParams, world: Any):
        self.params = params
        self._had_walls = False
        self._step, self._projection_numbers = Uploaded(StepNumbers), Uploaded(ProjectionNumbers)
        self._density, self._spreading = Uploaded(DensityNumbers), Uploaded(SpreadingNumbers)
        self._pairs = pair_factor(world.spacing, world.support, world.lattice.volume)
        self._elastic = False
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        vectors = ("u", "free", "residual", "search", "image", "direction", "direction_image", "normal", "products")
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in FLOATS},
            inverse=allocate_array(mat3, capacity),
            used=allocate_array(qd.i32, 2), left=allocate_array(qd.i32, 2), clamped=allocate_array(qd.i32, 1),
        )  # fmt: skip
        self.projection = Projection(
            **{name: allocate_array(vec3, capacity) for name in vectors},
            held=allocate_array(qd.i32, capacity),
            **{name: allocate_array(qd.f32, capacity) for name in ("viscosity", "bulk")},
            stress=allocate_array(mat3, capacity),
            partial=allocate_array(vec3, capacity // 256 + capacity // 16384 + 3),
            scalars=allocate_array(qd.f32, 8),
        )

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of, in SI units."""
        rows = {name: np.zeros(len(materials), np.float32) for name in Substances.__dataclass_fields__}
        for index, material in enumerate(materials):
            eta, lam, modulus = material.maxwell()
            solid = math.isinf(lam)
            rho = materials[0].density
            rows["viscosity"][index] = 0.0 if solid else eta / rho
            rows["relaxation"][index] = 0.0 if solid else lam
            rows["modulus"][index] = modulus / rho if solid else 0.0
            rows["solvent"][index] = (material.solvent_viscosity or 0.0) / rho
            rows["bulk"][index] = 0.0 if solid else BULK
            rows["mobility"][index] = material.mobility or 0.0
            rows["extensibility"][index] = material.extensibility or 0.0
            rows["yield_strain"][index] = material.yield_strain or 0.0
        # What forgets at once has nothing to remember: then no stress is stored and no conformation followed.
        self._elastic = bool((rows["modulus"] > 0).any() or (rows["relaxation"] > 0).any())
        self.substances = Substances(**{name: allocate_array(qd.f32, len(materials)) for name in rows})
        for name, values in rows.items():
            getattr(self.substances, name).from_numpy(values)

    def density_numbers(self, world: Any) -> DensityNumbers:
        """The density constraint: compression only, because thin ropes have no full neighbourhood."""
        lattice = world.lattice
        softness = max(0.1, lattice.stiffest_mode / DENSITY_LIMIT - 1) * lattice.gradient_square
        return self._density.set(support=world.support, softness=softness, repulsion=0.0, reference=1.0, unilateral=1)

    def step(self, world: Any, dt: float) -> None:
        """Algorithm 2."""
        p, s, v, c, m = world.particles, self.scratch, self.projection, self.params, self.substances
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k = step_numbers(self._step, world, c, dt)
        numbers = self._projection_numbers.set(
            iterations=c.velocity_iterations, tolerance=c.velocity_tolerance, pairs=self._pairs,
            stiffest=2 * world.lattice.stiffest_mode * world.lattice.gradient_square,
        )  # fmt: skip
        with world.stages("integrate"):
            _predict_stage(p, k, solids, parts, s, v)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("project"):
            for number in range(c.contact_rounds if len(world.solids) else 1):
                _project_stage(left, p, k, near, torus, m, numbers, solids, parts, s, v, number == 0, self._elastic, periodic)
            _settle_stage(left, p, k, near, torus, m, numbers, solids, parts, s, v, self._elastic, periodic)
        with world.stages("solve"):
            _solve_stage(
                left, p, k, near, torus, self.density_numbers(world), solids, parts, s, bool(len(world.solids)),
                world.uniform, periodic,
            )  # fmt: skip
        with world.stages("velocity"):
            spreading = self._spreading.set(spacing=world.spacing, strength=c.spreading)
            _finish_stage(p, k, near, torus, m, spreading, s, v, world.status, self._elastic, periodic)

    def iterations_used(self) -> int:
        """Iterations of the density constraint since the last call."""
        backend.synchronise()
        used = int(self.scratch.left.to_numpy()[1])
        self.scratch.left.fill(0)
        return used

    def metrics(self) -> dict[str, float]:
        """Iterations of the velocity projection in the frame, and how well its last step converged: the residual, and the
        share of the asked viscosity that acted. Eigenvalues of Q that had to be limited in the frame."""
        scalars = self.projection.scalars.to_numpy()
        start, work, drag = float(scalars[3]), float(scalars[4]), float(scalars[5])
        clamped = int(self.scratch.clamped.to_numpy()[0])
        used = int(self.scratch.used.to_numpy()[1])
        self.scratch.clamped.fill(0)
        self.scratch.used.fill(0)
        return {
            "velocity_iterations": used,
            "residual": math.sqrt(max(float(scalars[0]), 0.0) / start) if start > 0 else 0.0,
            "viscosity_share": 1 - min(abs(work) / drag, 1.0) if drag > 0 else 1.0,
            "clamped": clamped,
        }
