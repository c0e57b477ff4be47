"""Position Based Fluids, Macklin & Müller, ACM TOG 32(4), 2013. Equation and line numbers are the paper's."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd
from pydantic import StrictBool

from viscoil import backend, native
from viscoil.carried import Carried
from viscoil.constraints.acceleration import LARGEST_SHARE, compiled_pace, momentum_numbers
from viscoil.constraints.contact import contact_and_clearance, contact_of_nearby, gauge_contacts
from viscoil.constraints.density import (
    JACOBI_LIMIT,
    DensityNumbers,
    chunk_sums,
    count_down,
    stable_relaxation,
    stop_when_small,
)
from viscoil.constraints.density_iteration import (
    begin_halves,
    copy_places,
    end_halves,
    shift,
    touch,
    weigh,
    weigh_walls,
)
from viscoil.constraints.nearby import Nearby, allocate_nearby, lists, nobody_nearby
from viscoil.constraints.particle_solids import find_clusters, hold_together
from viscoil.constraints.shape_matching import carry_on, rigid_velocities
from viscoil.native.fluid import FluidPasses, suits
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.solids.coupling import Bodies, approach, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, StepValues, step_numbers, values_of
from viscoil.sph.finding import Cells, SearchNumbers, cells_to_scan, search
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import Records, allocate_records
from viscoil.sph.smoothing import NAMES
from viscoil.sph.sums import padded
from viscoil.steps.clinging import cling
from viscoil.steps.integrate import packed_velocities, predict, velocities
from viscoil.steps.viscosity import xsph_and_commit, xsph_by_records
from viscoil.steps.vorticity import confine, curl
from viscoil.units import Count, Quantity, Slider

VECTORS = ("correction", "velocity", "vorticity", "wall_gradient")
SINGLE_LIMIT = 0.7  # with one iteration only; measured on a column that compresses under its weight (0.7 rests, 1.0 boils)


class PBFParams(SolverParams):
    """[solver] method = "pbf"."""

    method: Literal["pbf"] = "pbf"
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 30)] = 4
    """solver iterations per step; with a tolerance, the most there may be"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression below which the iterations end early; 0 = always all iterations, as in the paper"""
    acceleration: Literal["momentum", "none"] = "momentum"
    """how iterations follow each other: with momentum, whose error falls with the square of their number, or Jacobi's as in
    the paper. Always the paper's with cohesion (unilateral = false), with its pair of kernels, and where there is only one"""
    warm_start: Annotated[float, Quantity("number", at_least=0.0, at_most=LARGEST_SHARE)] = 0.5
    """with momentum: share of the multipliers of the steps before to start from, as far as they last; more than half swings"""
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

    predicted: Vectors  # x* [m]; two halves, see density_iteration
    correction: Vectors  # velocities without what clings; places that meet bodies [m]
    velocity: Vectors  # [m/s]
    vorticity: Vectors  # [1/s]
    multiplier: Floats  # λ [m²], where records do not hold it
    error: Floats  # max(C, 0)
    clear: Floats  # at least this far from all solids [m]
    wall: Floats  # density of the walls, relative
    wall_gradient: Vectors  # [1/m]
    partial: Floats  # sums of error, by chunk
    used: Ints  # [1] iterations done, [0] in this step
    half: Ints  # of ``predicted``: that holds the places, that a shift reads; and if it is the last shift
    records: Records  # places and multipliers, two halves as well
    nearby: Nearby  # who is beside solids


@qd.func(requires_top_level=True)
def _predict(
    p: Particles, k: StepValues, n: qd.i32, full: qd.i32, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies,
    b: Clusters, e: Elastic, s: Scratch, coupled: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lines 1–4, and a first contact so that lists are found where particles can be."""
    predict(p, n, k.dt, k.gx, k.gy, k.gz, solids, s.predicted)
    if qd.static(coupled):
        for i in range(n):
            s.clear[i] = 0.0  # not known yet
        _meet_bodies(s.predicted, p, k, n, solids, parts, bodies, s)
    if qd.static(lists(coupled, mix)):
        contact_of_nearby(
            s.predicted, p.position, p.inverse_mass, n, full, k.radius, k.support, k.solids, solids, parts, s.clear, s.nearby
        )
    else:
        contact_and_clearance(
            s.predicted, p.position, p.inverse_mass, n, k.radius, k.support, k.solids, solids, parts, s.clear
        )
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, n, bodies)
    find_clusters(p, n, k.dt, torus, b, e, mix, periodic)
    if qd.static(mix & 1 > 0):  # after contact, which would have bent them
        carry_on(p, p.velocity, k.dt, k.gx, k.gy, k.gz, torus, b, s.predicted, True, False, periodic)


@qd.func(requires_top_level=True)
def _meet_bodies(
    x: Vectors, p: Particles, k: StepValues, n: qd.i32, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch
):
    """Bodies yield to what pushes into them, before particles are put out."""
    gauge_contacts(x, p.position, p.inverse_mass, n, k.radius, s.clear, k.support, solids, parts, bodies)
    solve_bodies(solids, bodies)


@qd.func(requires_top_level=True)
def _start(
    left: Flag, p: Particles, k: StepValues, n: qd.i32, solids: Solids, parts: Parts, s: Scratch, walls: qd.template(),
    packed: qd.template(), listed: qd.template(),
):  # fmt: skip
    begin_halves(left, s.predicted, s.half, s.used, s.records, n, k.support, k.iterations, packed)
    if qd.static(walls > 1):
        weigh_walls(
            p, s.predicted, s.half, n, k.support, k.solids, solids, parts, s.clear, s.wall, s.wall_gradient, s.nearby, listed
        )


@qd.func(requires_top_level=True)
def _contact(
    p: Particles, k: StepValues, n: qd.i32, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters,
    e: Elastic, s: Scratch, walls: qd.template(), coupled: qd.template(), mix: qd.template(), periodic: qd.template(),
    packed: qd.template(),
):  # fmt: skip
    """Collisions (line 14), bodies made of particles included, and what walls then add to densities.

    ``walls``: 0 there are none, 1 they are only collided with, 2 they count in densities too."""
    if qd.static(coupled):
        copy_places(s.predicted, s.half, n, s.correction)
        _meet_bodies(s.correction, p, k, n, solids, parts, bodies, s)
        approach(s.clear, n, bodies)
    touch(
        p, s.predicted, s.half, s.records, n, k.radius, k.support, k.solids, solids, parts, b, s.clear, s.wall, s.wall_gradient,
        s.nearby, walls > 1 and not coupled and mix == 0, mix, not coupled, packed, qd.static(lists(coupled, mix)),
    )  # fmt: skip
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, n, bodies)
    hold_together(p, s.predicted, s.half, s.clear, k.dt, torus, b, e, mix, periodic)
    if qd.static(walls > 1 and (coupled or mix > 0)):  # not before they are where they stay
        weigh_walls(
            p, s.predicted, s.half, n, k.support, k.solids, solids, parts, s.clear, s.wall, s.wall_gradient, s.nearby, False
        )


@qd.func(requires_top_level=True)
def _iterate(
    left: Flag, p: Particles, k: StepValues, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, pressure: Floats,
    team: qd.template(), walls: qd.template(), power: qd.template(), uniform: qd.template(), kernel: qd.template(),
    controlled: qd.template(), hurried: qd.template(), coupled: qd.template(), mix: qd.template(), periodic: qd.template(),
    packed: qd.template(),
):  # fmt: skip
    """Lines 9–18: all λ, then all Δp and new positions, then collisions."""
    weigh(
        p, s.predicted, s.half, s.records, n, full, near, torus, c, s.clear, s.wall, s.wall_gradient, s.error, s.multiplier,
        pressure, left, s.used, team, kernel, walls > 1, controlled, hurried, uniform, periodic, mix > 0, packed,
    )  # fmt: skip
    shift(
        p, s.predicted, s.half, s.records, n, full, near, torus, c, s.clear, s.wall_gradient, s.multiplier, left, s.used, team,
        power, walls > 1, uniform, periodic, mix > 0, packed, packed and not coupled and not controlled, s.nearby,
        qd.static(lists(coupled, mix)),
    )  # fmt: skip
    if qd.static(walls > 0 or mix > 0):
        _contact(p, k, n, torus, solids, parts, bodies, b, e, s, walls, coupled, mix, periodic, packed)
    if qd.static(controlled):
        chunk_sums(s.error, n, s.partial)
        stop_when_small(left, s.used, s.partial, n, k.movers, k.tolerance, 2)


@qd.func(requires_top_level=True)
def _finish(
    p: Particles, k: StepValues, n: qd.i32, near: NeighborList, torus: Torus, b: Clusters, s: Scratch, status: Ints,
    confined: qd.template(), uniform: qd.template(), mix: qd.template(), periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """Lines 20–24: velocities, vorticity confinement, XSPH, new positions."""
    if qd.static(packed and not confined and not periodic):
        packed_velocities(p, n, k.dt, k.farthest, k.support, s.predicted, s.half, s.velocity, s.records, status)
    else:
        velocities(p, n, k.dt, k.farthest, s.predicted, s.velocity, status)
    if qd.static(confined):
        curl(p, s.predicted, n, near, torus, k.support, s.velocity, s.vorticity, periodic)
        confine(p, s.predicted, n, near, torus, k.support, k.vorticity, k.dt, s.vorticity, s.velocity, periodic)
    if qd.static(mix & 1 > 0):
        rigid_velocities(p, s.predicted, k.dt, torus, b, s.velocity, periodic)
    if qd.static(mix > 0):
        cling(p, s.predicted, n, near, torus, k.dt, k.support, b, s.velocity, s.correction, periodic)
        xsph_and_commit(p, s.predicted, n, near, torus, k.xsph, k.support, s.correction, uniform, periodic, True)
    elif qd.static(packed and not confined and not periodic):
        xsph_by_records(p, s.predicted, s.half, n, near, k.xsph, k.support, s.velocity, s.records)
    else:
        xsph_and_commit(p, s.predicted, n, near, torus, k.xsph, k.support, s.velocity, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def _predict_stage(
    p: Particles, numbers: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic,
    s: Scratch, coupled: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    k = values_of(numbers)  # read once: a bound that is read before every loop costs a kernel each on a GPU
    n = k.count
    nobody_nearby(s.nearby)
    _predict(p, k, n, padded(n), torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, pressure: Floats, team: qd.Template,
    walls: qd.Template, power: qd.Template, uniform: qd.Template, kernel: qd.Template, controlled: qd.Template,
    hurried: qd.Template, coupled: qd.Template, mix: qd.Template, periodic: qd.Template, packed: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    full = padded(n * team)
    _start(left, p, k, n, solids, parts, s, walls, packed, qd.static(lists(coupled, mix)))
    while qd.graph.do_while(left):
        _iterate(
            left, p, k, n, full, near, torus, c, solids, parts, bodies, b, e, s, pressure, team, walls, power, uniform, kernel,
            controlled, hurried, coupled, mix, periodic, packed,
        )  # fmt: skip
    if qd.static(controlled):
        end_halves(s.predicted, s.half, n)


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, b: Clusters, s: Scratch, status: Ints,
    confined: qd.Template, uniform: qd.Template, mix: qd.Template, periodic: qd.Template, packed: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    _finish(p, k, n, near, torus, b, s, status, confined, uniform, mix, periodic, packed)


# What is left to the kernels of a CPU whose pair loops are compiled by hand. Those loops read copies: one half is enough.
@qd.kernel(graph=True, fastcache=True)
def _begin_stage(left: Flag, p: Particles, numbers: StepNumbers, solids: Solids, parts: Parts, s: Scratch, walls: qd.Template):
    k = values_of(numbers)
    n = k.count
    for _ in range(1):
        left[()] = k.iterations
        s.used[0] = 0
        s.half[0] = 0
    if qd.static(walls > 1):
        weigh_walls(
            p, s.predicted, s.half, n, k.support, k.solids, solids, parts, s.clear, s.wall, s.wall_gradient, s.nearby, False
        )


@qd.kernel(graph=True, fastcache=True)
def _contact_stage(
    left: Flag, p: Particles, numbers: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters,
    e: Elastic, s: Scratch, walls: qd.Template, controlled: qd.Template, coupled: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    if qd.static(walls > 0):
        _contact(p, k, n, torus, solids, parts, bodies, b, e, s, walls, coupled, 0, False, False)
    for _ in range(1):
        count_down(left, s.used)
    if qd.static(controlled):
        chunk_sums(s.error, n, s.partial)
        stop_when_small(left, s.used, s.partial, n, k.movers, k.tolerance, 2)


@qd.kernel(graph=True, fastcache=True)
def _velocity_stage(
    p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, s: Scratch, status: Ints, confined: qd.Template
):
    k = values_of(numbers)
    n = k.count
    velocities(p, n, k.dt, k.farthest, s.predicted, s.velocity, status)
    if qd.static(confined):
        curl(p, s.predicted, n, near, torus, k.support, s.velocity, s.vorticity, False)
        confine(p, s.predicted, n, near, torus, k.support, k.vorticity, k.dt, s.vorticity, s.velocity, False)


@qd.kernel(graph=True, fastcache=True)
def _whole_step(
    left: Flag, steps_left: Flag, p: Particles, numbers: StepNumbers, cells: Cells, torus: Torus, sk: SearchNumbers,
    near: NeighborList, c: DensityNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch,
    pressure: Floats, status: Ints, team: qd.Template, walls: qd.Template, power: qd.Template, uniform: qd.Template,
    kernel: qd.Template, controlled: qd.Template, hurried: qd.Template, coupled: qd.Template, mix: qd.Template,
    periodic: qd.Template, packed: qd.Template, confined: qd.Template, depth: qd.Template,
):  # fmt: skip
    """Algorithm 1 as one graph, as often as the numbers say: what a GPU runs when nobody asks for the time of its stages."""
    k = values_of(numbers)
    n = k.count
    whole = padded(n)
    full = padded(n * team)
    scanned = cells_to_scan(torus)
    steps_left[()] = k.steps
    while qd.graph.do_while(steps_left):
        steps_left[()] -= 1
        nobody_nearby(s.nearby)
        _predict(p, k, n, whole, torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)
        search(cells, torus, scanned, s.predicted, p.position, p.id, p.inverse_mass, n, sk.reach2, near, periodic, depth)
        _start(left, p, k, n, solids, parts, s, walls, packed, qd.static(lists(coupled, mix)))
        while qd.graph.do_while(left):
            _iterate(
                left, p, k, n, full, near, torus, c, solids, parts, bodies, b, e, s, pressure, team, walls, power, uniform,
                kernel, controlled, hurried, coupled, mix, periodic, packed,
            )  # fmt: skip
        if qd.static(controlled):
            end_halves(s.predicted, s.half, n)
        _finish(p, k, n, near, torus, b, s, status, confined, uniform, mix, periodic, packed)


class PBF(Method):
    """The solver. What lasts belongs to the world: the multipliers that the next step starts from, too."""

    stages = ("integrate", "neighbours", "solve", "velocity")
    couples = True
    holds_clusters = True
    long_lists = True
    in_graphs = True

    def __init__(self, params: PBFParams, world: Any):
        self.params = params
        self._passes = FluidPasses()
        self._step, self._density = Uploaded(StepNumbers), Uploaded(DensityNumbers)
        self.carried = {"pressure": Carried(qd.f32, 2)}
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(qd.f32, capacity) for name in ("multiplier", "error", "clear", "wall")},
            predicted=allocate_array(vec3, 2 * capacity),
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2),
            half=allocate_array(qd.i32, 3),
            records=allocate_records(2 * capacity),
            nearby=allocate_nearby(capacity),
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

    @property
    def hurried(self) -> bool:
        """Whether iterations gather momentum."""
        c = self.params
        return c.acceleration == "momentum" and c.unilateral and c.kernels == "spiky" and c.iterations > 1

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
            "share": 0.0,
        }

    def values_of_step(self, world: Any, dt: float) -> dict[str, float]:
        """The same for iterations with momentum, if there are such, in a step of ``dt`` [s]."""
        c = self.params
        hurry = momentum_numbers(world.lattice, self.relaxation(world), dt, c.warm_start) if self.hurried else {}
        return {**self.values(world), **hurry}

    def numbers(self, world: Any) -> DensityNumbers:
        """The constraint's parameters on the device."""
        return self._density.set(**self.values(world))

    def step(self, world: Any, dt: float, number: int = 1) -> None:
        """Algorithm 1."""
        p, s, c = world.particles, self.scratch, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k = step_numbers(self._step, world, c, dt, number, vorticity=c.vorticity)
        d = self._density.set(**self.values_of_step(world, dt))
        bodies, coupled = world.solids.bodies_device, world.solids.coupled
        walls = 1 + c.wall_density if len(world.solids) else 0
        power = c.pressure_power if self.artificial_pressure() > 0 else 0
        b, e, mix = world.clusters.device, world.clusters.elastic, world.clusters.mix(dt)
        pressure, packed = world.carried["pressure"].array, world.packs_places(mix)
        variant = (
            world.neighbors.team, walls, power, world.uniform, c.density_kernel, c.tolerance > 0, self.hurried, coupled, mix,
            periodic, packed,
        )  # fmt: skip
        if not world.stages.precise:
            with backend.small_launches(world.neighbors.few):
                _whole_step(
                    left, backend.loop_counter(1), p, k, world.neighbors.cells, torus, world.neighbors.numbers(world.count),
                    near, d, solids, parts, bodies, b, e, s, pressure, world.status, *variant, c.vorticity > 0,
                    world.neighbors.scan_depth,
                )  # fmt: skip
            return
        with world.stages("integrate"):  # lines 1-4
            _predict_stage(p, k, torus, solids, parts, bodies, b, e, s, coupled, mix, periodic)
        with world.stages("neighbours"):  # lines 5-7
            world.neighbors.find(s.predicted, p, world.count)
        if suits(world, mix):
            self._finish_compiled(world, left, k, dt, walls)
            return
        with world.stages("solve"):  # lines 8-19
            _solve_stage(left, p, k, near, torus, d, solids, parts, bodies, b, e, s, pressure, *variant)
        with world.stages("velocity"):  # lines 20-24
            _finish_stage(p, k, near, torus, b, s, world.status, c.vorticity > 0, world.uniform, mix, periodic, packed)

    def _finish_compiled(self, world: Any, left: Any, k: Any, dt: float, walls: int) -> None:
        """Lines 8-24 with all loops over pairs compiled by hand."""
        p, s, c, near, torus = world.particles, self.scratch, self.params, world.neighbors.list, world.neighbors.torus
        solids, parts, bodies = world.solids.device, world.solids.parts, world.solids.bodies_device
        values, done = self.values_of_step(world, dt), 0
        with world.stages("solve"):
            _begin_stage(left, p, k, solids, parts, s, walls)
            while native.whole_number(left) > 0:
                pace = compiled_pace(values, done) if self.hurried else values
                self._passes.density(world, s, pace, c.density_kernel, c.pressure_power, walls > 1)
                done += 1
                _contact_stage(
                    left, p, k, torus, solids, parts, bodies, world.clusters.device, world.clusters.elastic, s, walls,
                    c.tolerance > 0, world.solids.coupled,
                )  # fmt: skip
        with world.stages("velocity"):
            _velocity_stage(p, k, near, torus, s, world.status, c.vorticity > 0)
            self._passes.xsph_and_commit(world, s.predicted, s.velocity, c.xsph)
