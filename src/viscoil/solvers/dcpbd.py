"""Viscoelastic fluids by conformation constraints, after Barreiro et al., ACM TOG 36(6), 2017 (DC-PBD, Algorithm 2).

Velocities are projected onto the conformation constraint, then positions onto the density constraint. The paper projects
positions onto the conformation constraint a second time, because few Jacobi iterations leave the velocities half done. Here
conjugate gradients finish the first projection, and the second one no longer changes anything that we can measure.
"""

import math
from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.carried import Carried
from viscoil.constraints.acceleration import LARGEST_SHARE, compiled_pace, momentum_numbers
from viscoil.constraints.body_projection import BodyRows, allocate_rows
from viscoil.constraints.conformation import Substances, substances_of
from viscoil.constraints.density import DensityNumbers, plain_density, plain_values, stable_relaxation
from viscoil.constraints.friction import pair_factor
from viscoil.constraints.nearby import allocate_nearby, nobody_nearby
from viscoil.constraints.velocity_projection import Projection, ProjectionNumbers
from viscoil.native.fluid import FluidPasses, VelocityPasses, suits
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, allocate_array, mat3, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.solids.coupling import Bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.dcpbd_positions import (
    finish,
    finish_stage,
    relax,
    settle,
    settle_stage,
    solve_stage,
    touch_stage,
)
from viscoil.solvers.dcpbd_projection import (
    Scratch,
    begin,
    end_round,
    estimate_stage,
    gradients_stage,
    hold_stage,
    iterate,
    predict,
    predict_stage,
    prepare,
    prepare_stage,
    strides_stage,
)
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers, values_of
from viscoil.sph.finding import Cells, SearchNumbers, cells_to_scan, search
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import allocate_records
from viscoil.sph.sums import Sums, allocate_sums, block_size, padded, total_on_host
from viscoil.steps.spreading import SpreadingNumbers
from viscoil.transfer import read, take
from viscoil.units import Count, Quantity, Slider

BULK = 5.0  # resistance against changes of volume, in viscosities: a stretched rope keeps 85 % of its volume's rate
POWER_ITERATIONS = 24  # of the estimate of the largest eigenvalue
LONG = 0.05  # spacings that gravity moves a particle in a step, from which a step is long: who touches what is less clear then
SAFETY = 1.4  # on that estimate, which comes from below; neighbourhoods change until the next frame's (1.15 once blew up)
PROJECTION_VECTORS = ("u", "free", "residual", "search", "image", "direction", "direction_image", "normal")


class DCPBDParams(SolverParams):
    """[solver] method = "dcpbd"."""

    method: Literal["dcpbd"] = "dcpbd"
    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.5
    """support radius h of the smoothing kernels, in particle spacings"""
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 40)] = 5
    """iterations of the density constraint per step"""
    acceleration: Literal["momentum", "none"] = "momentum"
    """how those follow each other: with momentum, whose error falls with the square of their number, or Jacobi's; always
    Jacobi's where there is only one"""
    warm_start: Annotated[float, Quantity("number", at_least=0.0, at_most=LARGEST_SHARE)] = 0.5
    """with momentum: share of the multipliers of the steps before to start from, as far as they last; more than half swings"""
    projection: Literal["cg", "chebyshev", "jacobi"] = "cg"
    """how velocities are projected: conjugate gradients, Chebyshev's iteration, or Jacobi's as in the paper. With bodies that
    fluid can move always conjugate gradients"""
    velocity_iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 400)] = 400
    """most iterations of the velocity projection per step: so many that the tolerance ends them, at any size"""
    velocity_tolerance: Annotated[float, Quantity("number", above=0.0, at_most=0.5), Slider(1e-4, 0.3, log=True)] = 0.005
    """residual, relative to that without any stress, that ends the velocity projection by conjugate gradients; with twice as
    much there were moments at which three quarters of the viscosity acted"""
    contact_rounds: Annotated[int, Count(at_least=1, at_most=10)] | None = None
    """how often the velocity projection looks which particles solids hold; its iterations are shared among the rounds.
    Left out: twice, and four times in long steps, in which gravity alone moves a particle by a twentieth of a spacing"""
    spreading: Annotated[float, Quantity("number", at_least=0.0, at_most=50.0)] = 8.0
    """how strongly particles of strained fluid are spread evenly; 0 = not at all, and stretched ropes tear"""


@qd.kernel(graph=True, fastcache=True)
def _whole_step(
    left: Flag, rounds_left: Flag, steps_left: Flag, p: Particles, numbers: StepNumbers, cells: Cells, torus: Torus,
    sk: SearchNumbers, near: NeighborList, m: Substances, c: ProjectionNumbers, d: DensityNumbers, spreading: SpreadingNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, v: Projection, rows: BodyRows,
    sums: Sums, pressure: Floats, status: Ints, elastic: qd.Template, hurried: qd.Template, walled: qd.Template,
    coupled: qd.Template, mix: qd.Template, team: qd.Template, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
    packed: qd.Template, places_packed: qd.Template, depth: qd.Template,
):  # fmt: skip
    """Algorithm 2 as one graph, rounds of conjugate gradients included, as often as the numbers say: what GPUs run when nobody
    times stages."""
    k = values_of(numbers)
    n = k.count
    full = padded(n)
    shared = padded(n * team, qd.static(block_size(team)))
    scanned = cells_to_scan(torus)
    steps_left[()] = k.steps
    while qd.graph.do_while(steps_left):
        steps_left[()] -= 1
        rounds_left[()] = c.rounds[0]
        nobody_nearby(s.nearby)
        predict(p, k, n, full, torus, solids, parts, b, e, s, v, coupled, mix, periodic)
        search(cells, torus, scanned, s.predicted, p.position, p.id, p.inverse_mass, n, sk.reach2, near, periodic, depth)
        prepare(p, k, n, near, torus, m, c, s, v, elastic, periodic)
        while qd.graph.do_while(rounds_left):
            begin(
                left, rounds_left, p, k, n, shared, near, torus, m, c, solids, parts, bodies, b, s, v, rows, sums, coupled, mix,
                team, uniform, even, periodic, packed,
            )  # fmt: skip
            while qd.graph.do_while(left):
                iterate(
                    left, p, k, n, shared, near, torus, m, c, solids, bodies, b, s, v, rows, sums, coupled, mix, team,
                    uniform, even, periodic, packed,
                )  # fmt: skip
            end_round(k, n, solids, bodies, s, coupled)
        settle(left, p, k, n, full, torus, solids, parts, bodies, b, s, v, sums, walled, coupled, mix, periodic, places_packed)
        while qd.graph.do_while(left):
            relax(
                left, p, k, n, shared, near, torus, d, solids, parts, bodies, b, e, s, v.search, pressure, team, hurried,
                walled, coupled, uniform, mix, periodic, places_packed,
            )  # fmt: skip
        finish(p, k, n, near, torus, m, spreading, b, s, v, status, elastic, mix, periodic, packed)


class DCPBD(Method):
    """The solver. What lasts belongs to the world: the multipliers that the next step starts from, too."""

    honours = frozenset(
        {"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain", "mobility", "extensibility"}
    )
    stages = ("integrate", "neighbours", "project", "solve", "velocity")
    leads_nozzles = True  # stress has to hold on to what is still in the pipe
    couples = True
    holds_clusters = True
    long_lists = True
    has_stress = True
    evolves = ("conformation",)  # fields besides position and velocity that a step changes

    def __init__(self, params: DCPBDParams, world: Any):
        self.params = params
        self._step, self._projection_numbers = Uploaded(StepNumbers), Uploaded(ProjectionNumbers)
        self._density, self._spreading = Uploaded(DensityNumbers), Uploaded(SpreadingNumbers)
        self._pairs = pair_factor(world.spacing, world.support, world.lattice.volume)
        self._power = allocate_array(qd.i32, 1)
        self._power.fill(POWER_ITERATIONS)
        self.substances: Any = None
        self._elastic = self._even = False
        self._bodies, self._rows = 0, allocate_rows(0)
        self._passes, self._velocities = FluidPasses(), VelocityPasses()
        self._largest: float | None = None
        self._iterations = self._count = 0
        self._density_of_first = self._cell = 0.0  # [kg/m³], [m³]: their product is a particle's mass, where w = 1
        self._team = world.neighbors.team
        self.carried = {"pressure": Carried(qd.f32, 2)}
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(qd.f32, capacity) for name in ("multiplier", "clear", "wall")},
            predicted=allocate_array(vec3, 2 * capacity),
            wall_gradient=allocate_array(vec3, capacity),
            inverse=allocate_array(mat3, capacity),
            clamped=allocate_array(qd.i32, 1),
            half=allocate_array(qd.i32, 3),
            used=allocate_array(qd.i32, 2),
            records=allocate_records(2 * capacity),
            nearby=allocate_nearby(capacity),
        )
        self.projection = Projection(
            **{name: allocate_array(vec3, capacity) for name in PROJECTION_VECTORS},
            **{name: allocate_array(qd.i32, capacity) for name in ("held", "holder")},
            **{name: allocate_array(qd.f32, capacity) for name in ("viscosity", "bulk")},
            stress=allocate_array(mat3, capacity),
            scalars=allocate_array(qd.f32, 8),
            progress=allocate_array(qd.i32, 3),
        )
        self.sums = allocate_sums(capacity * self._team)

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of. What forgets at once has nothing to remember: then no conformation is followed."""
        self.substances, self._elastic = substances_of(materials, BULK, into=self.substances)
        self._density_of_first = materials[0].density if materials else 0.0
        # One material without memory has one viscosity: neighbours' need not be read.
        self._even = len(materials) == 1 and not self._elastic
        self._largest = None

    def begin_frame(self) -> None:
        """The largest eigenvalue is estimated anew: a run that resumes here must find the same one."""
        self._largest = None

    def rounds(self, world: Any, dt: float) -> int:
        """How often a step looks who is held."""
        if not len(world.solids):
            return 1
        if self.params.contact_rounds is not None:
            return self.params.contact_rounds
        return 4 if math.hypot(*world.gravity) * dt * dt > LONG * world.spacing else 2

    def _descent(self, rounds: int) -> dict[str, float]:
        """What conjugate gradients have to know."""
        c = self.params
        return {
            "iterations": c.velocity_iterations, "rounds": rounds, "tolerance": c.velocity_tolerance, "pairs": self._pairs,
        }  # fmt: skip

    def _numbers(self, world: Any, rounds: int = 1) -> Any:
        c = self.params
        return self._projection_numbers.set(
            **self._descent(rounds), largest=self._largest or 1.0,
            stiffest=2 * world.lattice.stiffest_mode * world.lattice.gradient_square,
            accelerated=int(c.projection == "chebyshev"),
        )  # fmt: skip

    def _estimate(self, world: Any, k: Any, variant: tuple[bool, ...]) -> None:
        """The largest eigenvalue of the projection's matrix, once per frame, for those that need it."""
        near, torus, v = world.neighbors.list, world.neighbors.torus, self.projection
        estimate_stage(
            backend.loop_counter(), world.particles, k, near, torus, self.substances, self._numbers(world), self.scratch, v,
            self.sums, self._power, *variant,
        )  # fmt: skip
        self._largest = max(1.0, 1 + SAFETY * (float(read(v.scalars)[4]) - 1))

    @property
    def in_graphs(self) -> bool:
        """Not with Chebyshev's or Jacobi's iteration, which begins with an estimate."""
        return self.params.projection == "cg"

    def step(self, world: Any, dt: float, number: int = 1) -> None:
        """Algorithm 2."""
        p, s, v, c, m, sums = world.particles, self.scratch, self.projection, self.params, self.substances, self.sums
        left, rounds_left, steps_left = (backend.loop_counter(depth) for depth in range(3))
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, walled = world.solids.device, world.solids.parts, bool(len(world.solids))
        k, pressure = step_numbers(self._step, world, c, dt, number), world.carried["pressure"].array
        hurried = c.acceleration == "momentum" and c.iterations > 1
        lattice = world.lattice
        hurry = momentum_numbers(lattice, stable_relaxation(lattice), dt, c.warm_start) if hurried else {}
        density = plain_density(self._density, world, **hurry)
        spreading = self._spreading.set(spacing=world.spacing, strength=c.spreading)
        self._count, self._iterations = world.count, self._iterations + number * c.iterations
        self._cell = world.spacing**3
        b, e, mix = world.clusters.device, world.clusters.elastic, world.clusters.mix(dt)
        variant = (world.uniform, self._even and mix == 0, periodic)
        bodies, coupled = world.solids.bodies_device, world.solids.coupled
        if coupled and self._bodies != len(world.solids.bodies):
            self._bodies = len(world.solids.bodies)
            self._rows = allocate_rows(self._bodies)
        team, rounds, gradients = world.neighbors.team, self.rounds(world, dt), c.projection == "cg" or coupled
        packed = world.packed and not coupled and not periodic  # places in records repeat with a period of their own
        places_packed = world.packs_places(mix) and not coupled
        if gradients and not world.stages.precise:
            with backend.small_launches(world.neighbors.few):
                _whole_step(
                    left, rounds_left, steps_left, p, k, world.neighbors.cells, torus, world.neighbors.numbers(world.count),
                    near, m, self._numbers(world, rounds), density, spreading, solids, parts, bodies, b, e, s, v, self._rows,
                    sums, pressure, world.status, self._elastic, hurried, walled, coupled, mix, team, *variant, packed,
                    places_packed, world.neighbors.scan_depth,
                )  # fmt: skip
            return
        compiled = suits(world, mix) and not coupled
        with world.stages("integrate"):
            predict_stage(p, k, torus, solids, parts, b, e, s, v, coupled, mix, periodic)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("project"):
            prepare_stage(p, k, near, torus, m, self._numbers(world, rounds), s, v, self._elastic, periodic)
            if not gradients and self._largest is None:
                self._estimate(world, k, variant)
            numbers = self._numbers(world, rounds)
            for _ in range(rounds):
                args = left, rounds_left, p, k, near, torus, m, numbers, solids, parts, bodies, b, s, v, self._rows, sums
                if compiled and gradients:
                    hold_stage(p, k, solids, parts, bodies, s, v)
                    self._velocities.project(world, s.predicted, v, m.bulk, dt, self._even, self._descent(rounds))
                elif gradients:
                    gradients_stage(*args, coupled, mix, team, *variant, packed)
                else:
                    strides_stage(*args, mix, *variant)
            settle_stage(left, p, k, torus, solids, parts, bodies, b, s, v, sums, walled, coupled, mix, periodic, places_packed)
        with world.stages("solve"):
            if compiled:
                self._relax_compiled(world, k, walled, hurry)
            else:
                solve_stage(
                    left, p, k, near, torus, density, solids, parts, bodies, b, e, s, v.search, pressure, team, hurried,
                    walled, coupled, world.uniform, mix, periodic, places_packed,
                )  # fmt: skip
        with world.stages("velocity"):
            finish_stage(p, k, near, torus, m, spreading, b, s, v, world.status, self._elastic, mix, periodic, packed)

    def _relax_compiled(self, world: Any, k: Any, walled: bool, hurry: dict[str, float]) -> None:
        """All iterations of the density constraint with the loops over pairs compiled by hand, in the first half."""
        s, values = self.scratch, plain_values(world, **hurry)
        s.half.fill(0)
        for done in range(self.params.iterations):
            self._passes.density(world, s, compiled_pace(values, done) if hurry else values, 0, 0, walled)
            if walled:
                touch_stage(world.particles, k, world.solids.device, world.solids.parts, world.clusters.device, s)

    def iterations_used(self) -> int:
        """Iterations of the density constraint since the last call."""
        used, self._iterations = self._iterations, 0
        return used

    def metrics(self) -> dict[str, float]:
        """Iterations of the velocity projection in the frame, and how well its last step converged: the residual, the share of
        the asked viscosity that acted, and the energy [J] that friction took there, without which a share says nothing.
        Eigenvalues of Q that had to be limited in the frame."""
        start = float(read(self.projection.scalars)[3])
        left, work, drag = total_on_host(self.sums, self._count) if self._count else (0.0, 0.0, 0.0)
        clamped = int(take(self.scratch.clamped)[0])
        used = int(take(self.projection.progress)[1])
        return {
            "velocity_iterations": used,
            "residual": math.sqrt(max(left, 0.0) / start) if start > 0 else 0.0,
            "viscosity_share": 1 - min(abs(work) / drag, 1.0) if drag > 0 else 1.0,
            "friction_energy": max(drag, 0.0) * self._density_of_first * self._cell,
            "clamped": clamped,
        }
