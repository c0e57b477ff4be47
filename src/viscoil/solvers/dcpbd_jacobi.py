"""DC-PBD as Barreiro et al. published it, ACM TOG 36(6), 2017: Jacobi iterations on velocities, then on positions.

For comparison with ``dcpbd``, which solves the same model by other means. ``mode = "corrected"`` repairs what makes the printed
algorithm lose momentum, diverge or depend on directions; ``mode = "paper"`` takes it literally (docs/papers/barreiro2017.md).
``velocity_iterations = 0`` is regular PBD on positions only, the method the paper compares itself with in Fig. 6.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import quadrants as qd
from pydantic import StrictBool, model_validator

from viscoil import backend
from viscoil.constraints.conformation import Substances, gradient_of, substances_of
from viscoil.constraints.contact import resolve_all
from viscoil.constraints.density import (
    DensityNumbers,
    chunk_sums,
    corrections,
    count_down,
    multipliers,
    plain_density,
    stop_when_small,
)
from viscoil.constraints.tensor_projection import (
    TensorNumbers,
    Tensors,
    follow_velocities,
    keep_accounts,
    position_changes,
    position_multipliers,
    prepare,
    probe_and_measure,
    start_probe,
    start_projection,
    velocity_changes,
    velocity_multipliers,
)
from viscoil.constraints.walls import walls_nearby
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, Vectors, allocate_array, mat3, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.steps.conformation import next_conformation
from viscoil.steps.integrate import corrected_velocities, predict, wrapped
from viscoil.transfer import read, take
from viscoil.units import Count, Quantity, Slider, wrong

PUBLISHED_BETA = 5.0
ROUNDING = 1e-6  # strain that rounded places and velocities make by themselves, as in free fall: no share can be said of it
VECTORS = ("u", "aim", "shift", "change", "weight", "products")
FLOATS = ("multiplier", "error", "clear", "wall")


class DCPBDJacobiParams(SolverParams):
    """[solver] method = "dcpbd_jacobi"."""

    method: Literal["dcpbd_jacobi"] = "dcpbd_jacobi"
    mode: Literal["corrected", "paper"] = "corrected"
    """"paper" takes the printed equations literally: relaxation on the particle with β = 5, plain gradients, no contact among
    velocities, compliance α/Δt there and equal in the six-vector, multipliers restarted; keys left out below follow it"""
    velocity_iterations: Annotated[int, Count(at_least=0, at_most=1000), Slider(0, 200)] = 20
    """Jacobi iterations of the velocity projection per step; 0 = regular PBD, on positions only"""
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 200)] = 20
    """iterations of the position projection per step, each of density and of conformation"""
    order: Literal["staggered", "density_first", "conformation_first"] = "staggered"
    """one iteration of density after one of conformation, as published, or all of one kind after all of the other"""
    corotational: StrictBool = True
    """positions are compared after turning each neighbourhood by what it turned in the step (eqs. 14 to 16)"""
    gradient_correction: Literal["none", "velocity", "all"] | None = None
    """which projections use gradients that are exact for linear velocities; left out: "all", or "none" as published; "velocity"
    alone lets the two projections disagree, and stiff elastic material gains energy"""
    velocity_contact: StrictBool | None = None
    """contact with solids after every iteration of the velocity projection; left out: yes, or no as published"""
    relaxation: Literal["multiplier", "particle"] | None = None
    """what the relaxation factor multiplies; on the particle, as published, momentum is not conserved"""
    beta: Annotated[float, Quantity("number", above=0.0, at_most=1000.0)] | None = None
    """relaxation factor times the number of neighbours; left out: from a power iteration in every frame, or 5 as published"""
    compliance: Annotated[float, Quantity("number", at_least=0.0), Slider(1e-4, 10, log=True, off=True)] | None = None
    """α = ρ/G of everything [s²/m²], as in the paper's table; 0 = as stiff as iterations allow; left out: from materials"""
    relaxation_time: Annotated[float, Quantity("time", at_least=0.0, infinite=True)] | None = None
    """τ that goes with ``compliance`` [s]; inf = elastic; left out: from materials"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """mean compression, or mean strain left, below which the position iterations end early; 0 = always all iterations"""

    @model_validator(mode="after")
    def _time_needs_compliance(self) -> "DCPBDJacobiParams":
        if self.relaxation_time is not None and self.compliance is None:
            raise wrong(
                "relaxation_time replaces the materials' own only together with compliance: expected compliance beside it, "
                "e.g. compliance = 0, or relaxation_time in the material"
            )
        return self

    def chosen(self, key: str, corrected: Any, published: Any) -> Any:
        """The value of a key, which the mode decides where it is left out."""
        value = getattr(self, key)
        if value is None:
            value = published if self.mode == "paper" else corrected
        return value


@dataclass(frozen=True)
class Scratch:
    """Memory of one step besides the constraint's."""

    predicted: Vectors  # x*, x**, x [m]
    correction: Vectors  # Δx [m]
    wall_gradient: Vectors  # [1/m]
    multiplier: Floats  # of the density constraint [m²]
    error: Floats  # max(C, 0) of density, or the strain left where that is more
    clear: Floats  # at least this far from all solids [m]
    wall: Floats  # density of the walls, relative
    partial: Floats  # sums of error, by chunk
    used: Ints  # iterations: in this step, since last asked
    clamped: Ints  # eigenvalues of Q that were brought back


@qd.kernel(graph=True, fastcache=True)
def _predict_stage(p: Particles, k: StepNumbers, solids: Solids, s: Scratch):
    predict(p, k.count[0], k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s.predicted)


@qd.kernel(graph=True, fastcache=True)
def _estimate_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: TensorNumbers, s: Scratch, t: Tensors,
    periodic: qd.Template,
):  # fmt: skip
    """Largest eigenvalue of the constraint among the present neighbours."""
    prepare(p, s.predicted, k.count[0], near, torus, k.support[0], c, t, periodic)
    start_probe(left, p, k.count[0], 30, t)
    while qd.graph.do_while(left):
        probe_and_measure(left, p, s.predicted, k.count[0], near, torus, k.support[0], t, periodic)


@qd.func(requires_top_level=True)
def _start(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: TensorNumbers, solids: Solids, parts: Parts,
    s: Scratch, t: Tensors, periodic: qd.template(),
):  # fmt: skip
    start_projection(
        p, s.predicted, k.count[0], k.dt[0], vec3(k.gx[0], k.gy[0], k.gz[0]), k.solids[0], solids, parts, s.clear, t
    )
    prepare(p, s.predicted, k.count[0], near, torus, k.support[0], c, t, periodic)


@qd.kernel(graph=True, fastcache=True)
def _project_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: TensorNumbers,
    solids: Solids, parts: Parts, s: Scratch, t: Tensors, periodic: qd.Template,
):  # fmt: skip
    """u* → u**: conformation only, constant Jacobians at x*."""
    _start(p, k, near, torus, c, solids, parts, s, t, periodic)
    for _ in range(1):
        left[()] = c.velocity_iterations[0]
    while qd.graph.do_while(left):
        velocity_multipliers(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], m, c, t, periodic)
        velocity_changes(
            p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], k.radius[0], k.solids[0], solids, parts, s.clear,
            c, t, left, periodic,
        )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def _begin_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: TensorNumbers, solids: Solids, parts: Parts,
    s: Scratch, t: Tensors, periodic: qd.Template,
):  # fmt: skip
    """What of the velocity projection regular PBD needs: u* and Λ = 0."""
    _start(p, k, near, torus, c, solids, parts, s, t, periodic)


@qd.kernel(graph=True, fastcache=True)
def _follow_stage(p: Particles, k: StepNumbers, c: TensorNumbers, solids: Solids, parts: Parts, s: Scratch, t: Tensors):
    """x** = x* + Δt(u** − u*), and contact."""
    follow_velocities(p, s.predicted, k.count[0], k.dt[0], k.radius[0], k.solids[0], solids, parts, s.clear, c, t)
    for _ in range(1):
        s.used[0] = 0


@qd.func(requires_top_level=True)
def _move(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, t: Tensors):
    """x ← x + Δx, and contact."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0:
            t.shift[i] += s.correction[i]
            x = t.aim[i] + t.shift[i]
            s.clear[i] -= s.correction[i].norm()
            if s.clear[i] < k.support[0]:
                free = x
                x = resolve_all(free, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
                t.shift[i] += x - free
            s.predicted[i] = x


@qd.func(requires_top_level=True)
def _count(left: Flag, k: StepNumbers, s: Scratch, t: Tensors, conformation: qd.template()):
    """One iteration fewer; the last one when everything that is asked for is nearly done."""
    for i in range(k.count[0]):
        if qd.static(conformation):
            s.error[i] = qd.max(s.error[i], t.products[i][0])
        if i == 0:
            count_down(left, s.used)
    if qd.static(conformation):
        chunk_sums(s.error, k.count[0], s.partial)
        stop_when_small(left, s.used, s.partial, k.count[0], k.movers[0], k.tolerance[0], 2)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, d: DensityNumbers, m: Substances,
    c: TensorNumbers, solids: Solids, parts: Parts, s: Scratch, t: Tensors, density: qd.Template, conformation: qd.Template,
    walled: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x** → x: one iteration of density, contact, one of conformation, contact."""
    for _ in range(1):
        left[()] = k.iterations[0]
    while qd.graph.do_while(left):
        if qd.static(density):
            if qd.static(walled):
                walls_nearby(
                    p, s.predicted, k.count[0], k.support[0], k.solids[0], solids, parts, s.clear, s.wall, s.wall_gradient, 0
                )
            multipliers(
                p, s.predicted, k.count[0], near, torus, d, s.wall, s.wall_gradient, s.error, s.multiplier,
                False, uniform, periodic,
            )  # fmt: skip
            corrections(
                p, s.predicted, k.count[0], near, torus, d, s.multiplier, s.wall_gradient, s.correction, 1, uniform, periodic
            )
            _move(p, k, solids, parts, s, t)
        if qd.static(conformation):
            position_multipliers(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], m, c, t, periodic)
            position_changes(p, s.predicted, k.count[0], near, torus, k.support[0], c, t, s.correction, periodic)
            _move(p, k, solids, parts, s, t)
        _count(left, k, s, t, conformation)


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: TensorNumbers, s: Scratch, t: Tensors,
    status: Ints, periodic: qd.Template,
):  # fmt: skip
    """u = (x − x⁰)/Δt, Q at the end of the step from the final u and x, and the new positions."""
    keep_accounts(k.count[0], t)
    corrected_velocities(p, k.count[0], k.dt[0], k.farthest[0], t.aim, s.predicted, t.u, status)
    prepare(p, s.predicted, k.count[0], near, torus, k.support[0], c, t, periodic)
    for i in range(k.count[0]):
        if p.inverse_mass[i] != 0.0:
            gradient = gradient_of(i, t.u, s.predicted, p, near, torus, k.support[0], t.inverse, periodic)
            p.conformation[i] = next_conformation(p.conformation[i], gradient, k.dt[0], p.material[i], m, s.clamped)
    for i in range(k.count[0]):
        p.position[i] = wrapped(s.predicted[i], torus, periodic)
        p.velocity[i] = t.u[i]


class DCPBDJacobi(Method):
    """The solver. Scratch only: everything that lasts belongs to the world."""

    honours = frozenset(
        {"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain", "mobility", "extensibility"}
    )
    stages = ("integrate", "neighbours", "project", "solve", "velocity")
    leads_nozzles = True  # stress has to hold on to what is still in the pipe
    evolves = ("conformation",)  # fields besides position and velocity that a step changes

    def __init__(self, params: DCPBDJacobiParams, world: Any):
        self.params = params
        self._step, self._tensor, self._density = Uploaded(StepNumbers), Uploaded(TensorNumbers), Uploaded(DensityNumbers)
        self._materials: list[Any] = []
        self.substances: Any = None
        self._had_walls = False
        self._movers = 1
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in ("predicted", "correction", "wall_gradient")},
            **{name: allocate_array(qd.f32, capacity) for name in FLOATS},
            partial=allocate_array(qd.f32, capacity // 256 + 1),
            used=allocate_array(qd.i32, 2), clamped=allocate_array(qd.i32, 1),
        )  # fmt: skip
        self.tensors = Tensors(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            **{name: allocate_array(mat3, capacity) for name in ("multiplier", "force", "inverse")},
            partial=allocate_array(vec3, capacity // 256 + 1),
            scalars=allocate_array(qd.f32, 4),
        )
        self._estimated_for: Any = None

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of; ``relaxation_time`` of the parameters goes before theirs."""
        self._materials, self._time = materials, self.params.relaxation_time
        self.substances, _ = substances_of(materials, relaxation_time=self._time, into=self.substances)

    def numbers(self) -> TensorNumbers:
        """The conformation constraint's switches."""
        c = self.params
        corrected = {"none": 0, "velocity": 1, "all": 2}[c.chosen("gradient_correction", "all", "none")]
        return self._tensor.set(
            compliance=-1.0 if c.compliance is None else c.compliance,
            beta=c.chosen("beta", 0.0, PUBLISHED_BETA),
            on_particle=int(c.chosen("relaxation", "multiplier", "particle") == "particle"),
            corrected=corrected,
            corotational=int(c.corotational),
            contact=int(c.chosen("velocity_contact", True, False)),
            literal=int(c.mode == "paper"),
            velocity_iterations=c.velocity_iterations,
        )

    def step(self, world: Any, dt: float) -> None:
        """Algorithm 2 in the order of section 5: lists, velocity projection, staggered position projection, Q."""
        p, s, t, params = world.particles, self.scratch, self.tensors, self.params
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        if self._time != params.relaxation_time:
            self.take_materials(self._materials)
        k, c, m = step_numbers(self._step, world, params, dt), self.numbers(), self.substances
        self._movers = max(world.fluid_count, 1)
        with world.stages("integrate"):
            _predict_stage(p, k, solids, s)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("project"):
            if self._estimated_for is not near:
                _estimate_stage(left, p, k, near, torus, c, s, t, periodic)
                self._estimated_for = near
            if params.velocity_iterations:
                _project_stage(left, p, k, near, torus, m, c, solids, parts, s, t, periodic)
            else:
                _begin_stage(p, k, near, torus, c, solids, parts, s, t, periodic)
            _follow_stage(p, k, c, solids, parts, s, t)
        with world.stages("solve"):
            kinds = {"staggered": [(True, True)], "density_first": [(True, False), (False, True)]}
            for density, conformation in kinds.get(params.order, [(False, True), (True, False)]):
                _solve_stage(
                    left, p, k, near, torus, plain_density(self._density, world), m, c, solids, parts, s, t, density,
                    conformation, self._walled(world), world.uniform, periodic,
                )  # fmt: skip
        with world.stages("velocity"):
            _finish_stage(p, k, near, torus, m, c, s, t, world.status, periodic)

    def _walled(self, world: Any) -> bool:
        """Whether walls add to densities; where they no longer do, what they last added is cleared once."""
        walled = bool(len(world.solids))
        if self._had_walls and not walled:
            self.scratch.wall.fill(0)
            self.scratch.wall_gradient.fill(0)
        self._had_walls = walled
        return walled

    def iterations_used(self) -> int:
        """Iterations of the position projection since the last call."""
        return int(take(self.scratch.used)[1])

    def begin_frame(self) -> None:
        """Neighbourhoods change: the largest eigenvalue is estimated anew, as a run that resumes here would."""
        self._estimated_for = None

    def metrics(self) -> dict[str, float]:
        """Of the last step: mean strain the constraint still asks to undo, share of the asked viscosity or modulus that acted,
        largest eigenvalue of the constraint (relaxation times it must stay under 2). In the frame: eigenvalues of Q limited."""
        eigenvalue, rest, work, strain = (float(value) for value in read(self.tensors.scalars))
        clamped = int(take(self.scratch.clamped)[0])
        return {
            "residual": rest / self._movers,
            "viscosity_share": min(max(work / strain, 0.0), 1.0) if strain > ROUNDING**2 * self._movers else 1.0,
            "largest_eigenvalue": eigenvalue,
            "clamped": clamped,
        }
