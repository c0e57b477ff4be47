"""Position Based Fluids, Macklin & Müller, ACM TOG 32(4), 2013. Equation and line numbers are the paper's."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd
from pydantic import StrictBool

from viscoil import backend
from viscoil.constraints.contact import contact_and_clearance, gauge_contacts, resolve_all
from viscoil.constraints.density import (
    JACOBI_LIMIT,
    DensityNumbers,
    chunk_sums,
    corrections,
    count_down,
    multipliers,
    stable_relaxation,
    stop_when_small,
)
from viscoil.constraints.particle_solids import find_clusters, hold_together
from viscoil.constraints.shape_matching import carry_on, rigid_velocities
from viscoil.constraints.walls import walls_nearby
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.solids.clusters import Clusters, Elastic, note_touch
from viscoil.solids.coupling import Bodies, approach, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.neighbors import Cells, NeighborList, SearchNumbers, Torus, search
from viscoil.sph.smoothing import NAMES
from viscoil.steps.clinging import cling
from viscoil.steps.integrate import predict, velocities
from viscoil.steps.viscosity import xsph_and_commit
from viscoil.steps.vorticity import confine, curl
from viscoil.units import Count, Quantity, Slider

VECTORS = ("predicted", "correction", "velocity", "vorticity", "wall_gradient")
SINGLE_LIMIT = 0.7  # with one iteration only; measured on a column that compresses under its weight (0.7 rests, 1.0 boils)


class PBFParams(SolverParams):
    """[solver] method = "pbf"."""

    method: Literal["pbf"] = "pbf"
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 30)] = 4
    """solver iterations per step; with a tolerance, the most there may be"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression below which the iterations end early; 0 = always all iterations, as in the paper"""
    relaxation: Annotated[float, Quantity("number", at_least=0.0, at_most=100.0)] | None = None
    """ε of eq. 11, relative to the lattice's sum of squared gradients; left out: as small as keeps iterations stable"""
    kernels: Literal["spiky", "paper"] = "spiky"
    """densities from the Spiky kernel, as its gradients are, or from Poly6 as in the paper (gains energy)"""
    artificial_pressure: Annotated[float, Quantity("number", at_least=0, at_most=10), Slider(1e-3, 0.2, log=True)] | None = None
    """k of eq. 13, in units of the lattice's multiplier; left out: 0.02, or 0 when unilateral (alone it makes a gas)"""
    pressure_power: Annotated[int, Count(at_least=1, at_most=8)] = 4
    """n of eq. 13"""
    pressure_distance: Annotated[float, Quantity("number", above=0.0, at_most=0.9)] = 0.2
    """|Δq| of eq. 13, in supports"""
    vorticity: Annotated[float, Quantity("speed", at_least=0.0), Slider(0.001, 1.0, log=True, off=True)] = 0.0
    """ε of eq. 16 [m/s]; 0 = no confinement"""
    xsph: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(0.001, 1.0, log=True, off=True)] = 0.01
    """c of eq. 17"""
    unilateral: StrictBool = True
    """correct compression only; false = as in the paper: thinned fluid pulls together too, which acts like surface tension
    but shakes free surfaces and jets"""
    wall_density: StrictBool = True
    """solids count in the density of particles beside them; false = the paper's bare collisions"""

    @property
    def density_kernel(self) -> int:
        """As the key ``kernels`` says."""
        return NAMES.index(self.kernels)


@dataclass(frozen=True)
class Scratch:
    """Memory of one step."""

    predicted: Vectors  # x* [m]
    correction: Vectors  # Δp [m]
    velocity: Vectors  # [m/s]
    vorticity: Vectors  # [1/s]
    multiplier: Floats  # λ [m²]
    error: Floats  # max(C, 0)
    clear: Floats  # at least this far from all solids [m]
    wall: Floats  # density of the walls, relative
    wall_gradient: Vectors  # [1/m]
    partial: Floats  # sums of error, by chunk
    used: Ints  # [1] iterations done, [0] in this step


@qd.func(requires_top_level=True)
def _predict(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic,
    s: Scratch, coupled: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lines 1–4, and a first contact so that lists are found where particles can be."""
    predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s.predicted)
    if qd.static(coupled):
        for i in range(k.count[0]):
            s.clear[i] = 0.0  # not known yet
        _meet_bodies(p, k, solids, parts, bodies, s)
    contact_and_clearance(
        s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], k.solids[0], solids, parts, s.clear
    )
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, k.count[0], bodies)
    find_clusters(p, k.count[0], torus, b, e, mix, periodic)
    if qd.static(mix & 1 > 0):  # after contact, which would have bent them
        carry_on(p, k.dt[0], k.gx[0], k.gy[0], k.gz[0], torus, b, s.predicted, 0, periodic)


@qd.func(requires_top_level=True)
def _meet_bodies(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch):
    """Bodies yield to what pushes into them, before particles are put out."""
    gauge_contacts(
        s.predicted, p.position, p.inverse_mass, k.count[0], k.radius[0], s.clear, k.support[0], solids, parts, bodies
    )
    solve_bodies(solids, bodies)


@qd.func(requires_top_level=True)
def _move(
    p: Particles, k: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, left: Flag,
    coupled: qd.template(), mix: qd.template(),
):  # fmt: skip
    """x* ← x* + Δp, collisions included (lines 14 and 17)."""
    if qd.static(coupled):
        for i in range(k.count[0]):
            if p.inverse_mass[i] > 0.0:
                s.predicted[i] += s.correction[i]
                s.clear[i] -= s.correction[i].norm()
        _meet_bodies(p, k, solids, parts, bodies, s)
        approach(s.clear, k.count[0], bodies)
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            if qd.static(not coupled):
                s.predicted[i] += s.correction[i]
                s.clear[i] -= s.correction[i].norm()
            if s.clear[i] < k.support[0]:
                place = resolve_all(
                    s.predicted[i], p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i]
                )
                if qd.static(mix & 1 > 0):
                    note_touch(i, p, s.predicted[i], place, k.radius[0], b)
                s.predicted[i] = place
        if i == 0:
            count_down(left, s.used)
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, k.count[0], bodies)


@qd.func(requires_top_level=True)
def _start(left: Flag, k: StepNumbers, s: Scratch):
    for _ in range(1):
        left[()] = k.iterations[0]
        s.used[0] = 0


@qd.func(requires_top_level=True)
def _iterate(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, walled: qd.template(), power: qd.template(),
    uniform: qd.template(), kernel: qd.template(), controlled: qd.template(), coupled: qd.template(), mix: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """Lines 9–18: all λ, then all Δp, then collisions and new positions."""
    if qd.static(walled):
        walls_nearby(
            p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.clear, s.wall, s.wall_gradient, 0
        )
    multipliers(
        p, s.predicted, k.count[0], near, torus, c, s.wall, s.wall_gradient, s.error, s.multiplier,
        kernel, uniform, periodic, mix > 0,
    )  # fmt: skip
    corrections(
        p, s.predicted, k.count[0], near, torus, c, s.multiplier, s.wall_gradient, s.correction,
        power, uniform, periodic, mix > 0,
    )  # fmt: skip
    _move(p, k, solids, parts, bodies, b, s, left, coupled, mix)
    hold_together(p, s.predicted, 0, s.clear, k.dt[0], torus, b, e, mix, periodic)
    if qd.static(controlled):
        chunk_sums(s.error, k.count[0], s.partial)
        stop_when_small(left, s.used, s.partial, k.count[0], k.movers[0], k.tolerance[0], 2)


@qd.func(requires_top_level=True)
def _finish(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, b: Clusters, s: Scratch, status: Ints,
    confined: qd.template(), uniform: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lines 20–24: velocities, vorticity confinement, XSPH, new positions."""
    velocities(p, k.count[0], k.dt[0], k.farthest[0], s.predicted, s.velocity, status)
    if qd.static(confined):
        curl(p, s.predicted, k.count[0], near, torus, k.support[0], s.velocity, s.vorticity, periodic)
        confine(
            p, s.predicted, k.count[0], near, torus, k.support[0], k.vorticity[0], k.dt[0], s.vorticity, s.velocity, periodic
        )
    if qd.static(mix & 1 > 0):
        rigid_velocities(p, s.predicted, k.dt[0], torus, b, s.velocity, periodic)
    if qd.static(mix > 0):
        cling(p, s.predicted, k.count[0], near, torus, k.dt[0], k.support[0], b, s.velocity, s.correction, periodic)
        xsph_and_commit(p, s.predicted, k.count[0], near, torus, k.xsph[0], k.support[0], s.correction, uniform, periodic, True)
    else:
        xsph_and_commit(p, s.predicted, k.count[0], near, torus, k.xsph[0], k.support[0], s.velocity, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def _predict_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic,
    s: Scratch, coupled: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    _predict(p, k, torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, walled: qd.Template, power: qd.Template,
    uniform: qd.Template, kernel: qd.Template, controlled: qd.Template, coupled: qd.Template, mix: qd.Template,
    periodic: qd.Template,
):  # fmt: skip
    _start(left, k, s)
    while qd.graph.do_while(left):
        _iterate(
            left, p, k, near, torus, c, solids, parts, bodies, b, e, s, walled, power, uniform, kernel, controlled, coupled,
            mix, periodic,
        )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, b: Clusters, s: Scratch, status: Ints,
    confined: qd.Template, uniform: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    _finish(p, k, near, torus, b, s, status, confined, uniform, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def _whole_step(
    left: Flag, p: Particles, k: StepNumbers, cells: Cells, torus: Torus, sk: SearchNumbers, near: NeighborList,
    c: DensityNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, status: Ints,
    walled: qd.Template, power: qd.Template, uniform: qd.Template, kernel: qd.Template, controlled: qd.Template,
    coupled: qd.Template, mix: qd.Template, confined: qd.Template, periodic: qd.Template, depth: qd.Template,
):  # fmt: skip
    """Algorithm 1 as one graph: what a GPU runs when nobody asks for the time of its stages."""
    _predict(p, k, torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)
    search(cells, torus, s.predicted, p.id, p.inverse_mass, sk, near, periodic, depth)
    _start(left, k, s)
    while qd.graph.do_while(left):
        _iterate(
            left, p, k, near, torus, c, solids, parts, bodies, b, e, s, walled, power, uniform, kernel, controlled, coupled,
            mix, periodic,
        )  # fmt: skip
    _finish(p, k, near, torus, b, s, status, confined, uniform, mix, periodic)


class PBF(Method):
    """The solver. Scratch only: everything that lasts belongs to the world."""

    stages = ("integrate", "neighbours", "solve", "velocity")
    couples = True
    holds_clusters = True

    def __init__(self, params: PBFParams, world: Any):
        self.params = params
        self._had_walls = False
        self._step, self._density = Uploaded(StepNumbers), Uploaded(DensityNumbers)
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in ("multiplier", "error", "clear", "wall")},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
        )
        self.counter = self.scratch.used

    def relaxation(self, world: Any) -> float:
        """ε relative to the lattice: as asked, or the smallest that is stable for any number of iterations.

        One Jacobi iteration multiplies the error of a mode of stiffness κ (in units of the diagonal) by 1 − κ/(1 + ε), N of
        them by g, its N-th power. Velocities carry the error on, e ← g (2e − e_before), which decays for −1/3 < g < 1 only:
        the iterations alone would allow κ/(1 + ε) < 2, but with an odd number of them the motion needs κ/(1 + ε) < 4/3.
        """
        if self.params.relaxation is not None:
            return self.params.relaxation
        limit = JACOBI_LIMIT if self.params.iterations > 1 else SINGLE_LIMIT
        return stable_relaxation(world.lattice, limit)

    def artificial_pressure(self) -> float:
        """k relative to the lattice. Repulsion needs cohesion against it: alone it drives the particles apart."""
        if self.params.artificial_pressure is not None:
            return self.params.artificial_pressure
        return 0.0 if self.params.unilateral else 0.02

    def values(self, world: Any) -> dict[str, float]:
        """The constraint's parameters in SI units."""
        c, h = self.params, world.support
        stiffness = world.lattice.gradient_square
        q = c.pressure_distance
        at_distance = 315 / (64 * math.pi * h**3) * (1 - q * q) ** 3
        return {
            "support": h,
            "softness": self.relaxation(world) * stiffness,
            "repulsion": self.artificial_pressure() / stiffness,
            "reference": 1 / at_distance,
            "unilateral": int(c.unilateral),
        }

    def numbers(self, world: Any) -> DensityNumbers:
        """The same on the device."""
        return self._density.set(**self.values(world))

    def step(self, world: Any, dt: float) -> None:
        """Algorithm 1."""
        p, s, c = world.particles, self.scratch, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k, d = step_numbers(self._step, world, c, dt, vorticity=c.vorticity), self.numbers(world)
        bodies, coupled = world.solids.bodies_device, world.solids.coupled
        variant = (self._walled(world), c.pressure_power, world.uniform, c.density_kernel, c.tolerance > 0, coupled)
        b, e, mix = world.clusters.device, world.clusters.elastic, world.clusters.mix(dt)
        if not world.stages.precise:
            _whole_step(
                left, p, k, world.neighbors.cells, torus, world.neighbors.numbers(world.count), near, d, solids, parts, bodies,
                b, e, s, world.status, *variant, mix, c.vorticity > 0, periodic, world.neighbors.scan_depth,
            )  # fmt: skip
            return
        with world.stages("integrate"):  # lines 1-4
            _predict_stage(p, k, torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)
        with world.stages("neighbours"):  # lines 5-7
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("solve"):  # lines 8-19
            _solve_stage(left, p, k, near, torus, d, solids, parts, bodies, b, e, s, *variant, mix, periodic)
        with world.stages("velocity"):  # lines 20-24
            _finish_stage(p, k, near, torus, b, s, world.status, c.vorticity > 0, world.uniform, mix, periodic)

    def _walled(self, world: Any) -> bool:
        """Whether walls add to densities; where they no longer do, what they last added is cleared once."""
        walled = bool(len(world.solids) and self.params.wall_density)
        if self._had_walls and not walled:
            self.scratch.wall.fill(0)
            self.scratch.wall_gradient.fill(0)
        self._had_walls = walled
        return walled
