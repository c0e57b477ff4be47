"""Viscoelastic fluids by conformation constraints, after Barreiro et al., ACM TOG 36(6), 2017 (DC-PBD, Algorithm 2).

Velocities are projected onto the conformation constraint, then positions onto the density constraint. The paper projects
positions onto the conformation constraint a second time, because few Jacobi iterations leave the velocities half done. Here
conjugate gradients finish the first projection, and the second one no longer changes anything that we can measure.
"""

import math
from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.constraints.body_projection import allocate_rows
from viscoil.constraints.conformation import Substances, gradient_of, substances_of
from viscoil.constraints.contact import gauge_contacts, resolve_all
from viscoil.constraints.density import DensityNumbers, correction_of, multiplier_of, plain_density
from viscoil.constraints.friction import pair_factor
from viscoil.constraints.particle_solids import hold_together
from viscoil.constraints.shape_matching import carry_on, fit_centres, fit_twists, rigid_velocities
from viscoil.constraints.velocity_projection import Projection, ProjectionNumbers, allowed
from viscoil.constraints.walls import wall_density
from viscoil.particles import Flag, Ints, Particles, Uploaded, Vectors, allocate_array, mat3, vec3
from viscoil.solids.clusters import Clusters, Elastic, note_touch
from viscoil.solids.coupling import Bodies, approach, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.dcpbd_projection import (
    Scratch,
    estimate_stage,
    gradients_stage,
    predict_stage,
    prepare_stage,
    strides_stage,
)
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.sums import Sums, allocate_sums, chunk_totals, hand_in, padded, total_on_host
from viscoil.steps.conformation import next_conformation
from viscoil.steps.integrate import corrected_velocities
from viscoil.steps.spreading import SpreadingNumbers, spread_and_commit
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
    projection: Literal["cg", "chebyshev", "jacobi"] = "cg"
    """how velocities are projected: conjugate gradients, Chebyshev's iteration, or Jacobi's as in the paper. With bodies that
    fluid can move always conjugate gradients"""
    velocity_iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 200)] = 100
    """most iterations of the velocity projection per step"""
    velocity_tolerance: Annotated[float, Quantity("number", above=0.0, at_most=0.5), Slider(1e-4, 0.3, log=True)] = 0.01
    """residual, relative to that without any stress, that ends the velocity projection by conjugate gradients"""
    contact_rounds: Annotated[int, Count(at_least=1, at_most=10)] | None = None
    """how often the velocity projection looks which particles solids hold; its iterations are shared among the rounds.
    Left out: twice, and four times in long steps, in which gravity alone moves a particle by a twentieth of a spacing"""
    spreading: Annotated[float, Quantity("number", at_least=0.0, at_most=50.0)] = 8.0
    """how strongly particles of strained fluid are spread evenly; 0 = not at all, and stretched ropes tear"""


@qd.func(requires_top_level=True)
def _meet_bodies(
    x: Vectors, p: Particles, k: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch
):
    """Bodies yield to what pushes into them, before particles are put out."""
    gauge_contacts(x, p.position, p.inverse_mass, k.count[0], k.radius[0], s.clear, k.support[0], solids, parts, bodies)
    solve_bodies(solids, bodies)
    approach(s.clear, k.count[0], bodies)


@qd.kernel(graph=True, fastcache=True)
def _settle_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch,
    v: Projection, sums: Sums, coupled: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x** = x⁰ + Δt u**; where that aimed at is kept in ``free``. Accounts of what the projection left: r·wr, u·r and the
    power of the friction, Δt u·F(u) = u·(r − (u* − u)/w)."""
    qd.loop_config(block_dim=256)
    for i in range(padded(k.count[0])):
        account = vec3(0.0)
        if i < k.count[0]:
            if p.inverse_mass[i] > 0.0:
                w = p.inverse_mass[i]
                u = v.u[i]
                r = v.residual[i]
                possible = allowed(r, v.normal[i], v.held[i])
                account = vec3(
                    w * possible.dot(possible), u.dot(possible), u.dot((v.free[i] - u) / w - r)
                )
                if p.cluster[i] >= 0:  # what holds a body together is not for the projection to take away
                    account = vec3(0.0)
                x = p.position[i] + k.dt[0] * u
                v.free[i] = x
                s.clear[i] -= (x - s.predicted[i]).norm()
                if qd.static(not coupled):  # noqa: SIM102 (decided when compiled)
                    if s.clear[i] < k.support[0]:
                        x = resolve_all(x, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
                s.predicted[i] = x
            s.predicted[s.predicted.shape[0] // 2 + i] = s.predicted[i]
            if i == 0:
                s.half[0] = k.iterations[0] % 2  # so that the last iteration writes the first half
        hand_in(i, k.count[0], account, sums)
    chunk_totals(k.count[0], sums)
    if qd.static(coupled):
        _meet_bodies(s.predicted, p, k, solids, parts, bodies, s)
        for i in range(k.count[0]):
            # Clusters leave their contact to the iterations: it would be counted and then undone here.
            if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0] and p.cluster[i] < 0:
                x = resolve_all(
                    s.predicted[i], p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i]
                )
                s.predicted[i] = x
                s.predicted[s.predicted.shape[0] // 2 + i] = x
        settle_bodies(solids, bodies)
        approach(s.clear, k.count[0], bodies)
    if qd.static(mix & 1 > 0):  # as they were before contact, which comes back in the iterations
        fit_centres(p, p.position, torus, b, periodic)
        fit_twists(p, p.position, v.u, torus, b, periodic)
        carry_on(p, k.dt[0], 0.0, 0.0, 0.0, torus, b, s.predicted, s.predicted.shape[0] // 2, periodic)


@qd.func(requires_top_level=True)
def _weigh(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids, parts: Parts,
    s: Scratch, walled: qd.template(), uniform: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Multipliers of the density constraint, walls included."""
    for i in range(k.count[0]):
        first = s.half[0] * (s.predicted.shape[0] // 2)
        value = 0.0
        if p.inverse_mass[i] > 0.0:
            wall = 0.0
            toward = vec3(0.0)
            if qd.static(walled):
                if s.clear[i] < k.support[0]:
                    share, slope = wall_density(s.predicted[first + i], k.support[0], k.solids[0], solids, parts, 0)
                    wall = share
                    toward = slope
                s.wall_gradient[i] = toward
            found, _error = multiplier_of(
                i, p, s.predicted, first, near, torus, c, wall, toward, False, uniform, periodic, mix > 0
            )
            value = found
        s.multiplier[i] = value
        if i == 0:
            s.half[1] = s.half[0]


@qd.func
def _put_out(
    i: qd.i32, x: vec3, p: Particles, k: StepNumbers, solids: Solids, parts: Parts, b: Clusters, mix: qd.template()
) -> vec3:
    """Where contact leaves particle i that wants to be at x."""
    place = resolve_all(x, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
    if qd.static(mix & 1 > 0):
        note_touch(i, p, x, place, k.radius[0], b)
    return place


@qd.func(requires_top_level=True)
def _move(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, trial: Vectors, coupled: qd.template(), walled: qd.template(),
    uniform: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """x* ← x* + Δx, and contact: from one half of the array to the other, so that all read what was there before.

    With bodies places without contact go through ``trial``."""
    for i in range(k.count[0]):
        length = s.predicted.shape[0] // 2
        first = s.half[1] * length
        place = s.predicted[first + i]
        if p.inverse_mass[i] > 0.0:
            toward = vec3(0.0)
            if qd.static(walled):
                toward = s.wall_gradient[i]
            change = correction_of(
                i, p, s.predicted, first, near, torus, c, s.multiplier, toward, 1, uniform, periodic, mix > 0
            )
            place += change
            s.clear[i] -= change.norm()
            if qd.static(not coupled):  # noqa: SIM102 (decided when compiled)
                if s.clear[i] < k.support[0]:
                    place = _put_out(i, place, p, k, solids, parts, b, mix)
        if qd.static(coupled):
            trial[i] = place
        else:
            s.predicted[length - first + i] = place
        if i == 0:
            s.half[0] = 1 - s.half[1]
            left[()] = qd.max(left[()] - 1, 0)
    if qd.static(coupled):
        _meet_bodies(trial, p, k, solids, parts, bodies, s)
        for i in range(k.count[0]):
            place = trial[i]
            if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0]:
                place = _put_out(i, place, p, k, solids, parts, b, mix)
            s.predicted[s.half[0] * (s.predicted.shape[0] // 2) + i] = place
        settle_bodies(solids, bodies)
        approach(s.clear, k.count[0], bodies)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, trial: Vectors, coupled: qd.Template,
    walled: qd.Template, uniform: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x** → x: density and contact, and bodies made of particles take back their shapes."""
    for _ in range(1):
        left[()] = k.iterations[0]
    while qd.graph.do_while(left):
        _weigh(p, k, near, torus, c, solids, parts, s, walled, uniform, mix, periodic)
        _move(left, p, k, near, torus, c, solids, parts, bodies, b, s, trial, coupled, walled, uniform, mix, periodic)
        hold_together(
            p, s.predicted, s.half[0] * (s.predicted.shape[0] // 2), s.clear, k.dt[0], torus, b, e, mix, periodic
        )


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: SpreadingNumbers, b: Clusters,
    s: Scratch, v: Projection, status: Ints, elastic: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """u with what the positions were corrected by, the conformation at the end of the step, and even distances."""
    corrected_velocities(p, k.count[0], k.dt[0], k.farthest[0], v.free, s.predicted, v.u, status)
    if qd.static(mix & 1 > 0):
        rigid_velocities(p, s.predicted, k.dt[0], torus, b, v.u, periodic)
    if qd.static(elastic):
        for i in range(k.count[0]):
            if p.inverse_mass[i] != 0.0:
                gradient = gradient_of(i, v.u, s.predicted, p, near, torus, k.support[0], s.inverse, periodic)
                p.conformation[i] = next_conformation(p.conformation[i], gradient, k.dt[0], p.material[i], m, s.clamped)
    spread_and_commit(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, m, v.u, periodic)


class DCPBD(Method):
    """The solver. Scratch only: everything that lasts belongs to the world."""

    honours = frozenset(
        {"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain", "mobility", "extensibility"}
    )
    stages = ("integrate", "neighbours", "project", "solve", "velocity")
    leads_nozzles = True  # stress has to hold on to what is still in the pipe
    couples = True
    holds_clusters = True
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
        self._largest: float | None = None
        self._iterations = self._count = 0
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(qd.f32, capacity) for name in ("multiplier", "clear")},
            predicted=allocate_array(vec3, 2 * capacity),
            wall_gradient=allocate_array(vec3, capacity),
            inverse=allocate_array(mat3, capacity),
            clamped=allocate_array(qd.i32, 1),
            half=allocate_array(qd.i32, 2),
        )
        self.projection = Projection(
            **{name: allocate_array(vec3, capacity) for name in PROJECTION_VECTORS},
            **{name: allocate_array(qd.i32, capacity) for name in ("held", "holder")},
            **{name: allocate_array(qd.f32, capacity) for name in ("viscosity", "bulk")},
            stress=allocate_array(mat3, capacity),
            scalars=allocate_array(qd.f32, 8),
            progress=allocate_array(qd.i32, 3),
        )
        self.sums = allocate_sums(capacity)

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of. What forgets at once has nothing to remember: then no conformation is followed."""
        self.substances, self._elastic = substances_of(materials, BULK, into=self.substances)
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

    def _numbers(self, world: Any, rounds: int = 1) -> Any:
        c = self.params
        return self._projection_numbers.set(
            iterations=c.velocity_iterations, rounds=rounds,
            tolerance=c.velocity_tolerance, pairs=self._pairs, largest=self._largest or 1.0,
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
        self._largest = max(1.0, 1 + SAFETY * (float(v.scalars.to_numpy()[4]) - 1))

    def step(self, world: Any, dt: float) -> None:
        """Algorithm 2."""
        p, s, v, c, m, sums = world.particles, self.scratch, self.projection, self.params, self.substances, self.sums
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left, walled = world.solids.device, world.solids.parts, backend.loop_counter(), bool(len(world.solids))
        k, density = step_numbers(self._step, world, c, dt), plain_density(self._density, world)
        spreading = self._spreading.set(spacing=world.spacing, strength=c.spreading)
        self._count, self._iterations = world.count, self._iterations + c.iterations
        b, e, mix = world.clusters.device, world.clusters.elastic, world.clusters.mix(dt)
        variant = (world.uniform, self._even and mix == 0, periodic)
        bodies, coupled = world.solids.bodies_device, world.solids.coupled
        if coupled and self._bodies != len(world.solids.bodies):
            self._bodies = len(world.solids.bodies)
            self._rows = allocate_rows(self._bodies)
        with world.stages("integrate"):
            predict_stage(p, k, torus, solids, parts, b, e, s, v, mix, periodic)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("project"):
            rounds = self.rounds(world, dt)
            prepare_stage(p, k, near, torus, m, self._numbers(world, rounds), s, v, self._elastic, periodic)
            gradients = c.projection == "cg" or coupled
            if not gradients and self._largest is None:
                self._estimate(world, k, variant)
            numbers = self._numbers(world, rounds)
            for _ in range(rounds):
                args = left, p, k, near, torus, m, numbers, solids, parts, bodies, b, s, v, self._rows, sums
                if gradients:
                    gradients_stage(*args, coupled, mix, *variant)
                else:
                    strides_stage(*args, mix, *variant)
            _settle_stage(p, k, torus, solids, parts, bodies, b, s, v, sums, coupled, mix, periodic)
        with world.stages("solve"):
            _solve_stage(
                left, p, k, near, torus, density, solids, parts, bodies, b, e, s, v.search, coupled, walled, world.uniform, mix,
                periodic,
            )  # fmt: skip
        with world.stages("velocity"):
            _finish_stage(p, k, near, torus, m, spreading, b, s, v, world.status, self._elastic, mix, periodic)

    def iterations_used(self) -> int:
        """Iterations of the density constraint since the last call."""
        used, self._iterations = self._iterations, 0
        return used

    def metrics(self) -> dict[str, float]:
        """Iterations of the velocity projection in the frame, and how well its last step converged: the residual, and the
        share of the asked viscosity that acted. Eigenvalues of Q that had to be limited in the frame."""
        start = float(self.projection.scalars.to_numpy()[3])
        left, work, drag = total_on_host(self.sums, self._count) if self._count else (0.0, 0.0, 0.0)
        clamped = int(self.scratch.clamped.to_numpy()[0])
        used = int(self.projection.progress.to_numpy()[1])
        self.scratch.clamped.fill(0)
        self.projection.progress.fill(0)
        return {
            "velocity_iterations": used,
            "residual": math.sqrt(max(left, 0.0) / start) if start > 0 else 0.0,
            "viscosity_share": 1 - min(abs(work) / drag, 1.0) if drag > 0 else 1.0,
            "clamped": clamped,
        }
