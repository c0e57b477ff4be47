"""Particle-based viscoelastic fluids, Clavet, Beaudoin & Poulin, SCA 2005. Algorithm and equation numbers are the paper's.

Prediction and relaxation: particles move by their velocities, then positions are corrected by springs, double density
relaxation and collisions, and what the positions became is the new velocity.

The paper goes through particles and pairs one after the other. ``coloured`` does exactly that in parallel, ``sequential`` in
one thread in a fixed random order, ``jacobi`` corrects all from the same positions, with limits that keep it stable.
"""

import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import quadrants as qd
from pydantic import Field, StrictBool

from viscoil import backend, transfer
from viscoil.bundles import Bundles
from viscoil.constraints.double_density import COUNTERS, LIMIT, DoubleDensityNumbers
from viscoil.errors import SceneError
from viscoil.measure import mean
from viscoil.particles import Floats, Table, Uploaded, allocate_array, vec3
from viscoil.solvers.events import SpringEvent
from viscoil.solvers.pvfs_matter import TAU, Matter, depth_of, flow_share, matter_of
from viscoil.solvers.pvfs_stages import (
    VECTORS,
    Clinging,
    Known,
    Ranked,
    Scratch,
    SweepNumbers,
    Turn,
    adjust_stage,
    finish_stage,
    line_up_stage,
    predict_stage,
    relax_at_once,
    relax_sweep,
    spring_sweep,
    springs_at_once,
    viscosity_at_once,
    viscosity_sweep,
    yield_stage,
)
from viscoil.solvers.pvfs_whole import whole_step
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.schedule import Schedule, hits_for, ids_by_rank, line_schedule
from viscoil.sph.springs import Plasticity, RowSums, SpringRows, carried_springs, freeze_kernel, hold, on_host
from viscoil.steps.impulses import ImpulseNumbers
from viscoil.units import Count, Quantity, Slider

PUBLISHED = 0.004  # k̂ of the paper
RESTING = 0.37  # spacing of fluid at rest, in supports, measured inside large drops
STABLE = 0.008  # largest k̂(Δt/τ)² that was stable, measured; twice that explodes
CAREFUL = 0.004  # what steps are chosen for: at 0.006 the compressed floor of a deep pool boils, and jacobi's limits act
SPRINGY = {"sequential": 1.0, "coloured": 1.0, "jacobi": 0.3}  # largest kΔt² of springs: beyond, sweeps turn bodies
VISCOUS = {"sequential": 1.0, "coloured": 1.0, "jacobi": 0.3}  # largest σΔt of which nine tenths act, measured on shear waves
SWEEPS = 4  # towards the velocities of bodies
MOST_STEPS = 100  # per 1/30 s, that viscosity may ask for
COMPRESSION = 0.042  # relative density increase per ĝ(H/h)/k̂, measured on pools


class PVFSParams(SolverParams):
    """[solver] method = "pvfs"."""

    method: Literal["pvfs"] = "pvfs"
    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.7
    """support radius h, in particle spacings: fluid at rest has a spacing of 0.37 h"""
    margin: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.1
    """neighbours are listed within (1 + margin) h: a list that stays good while particles are relaxed"""
    relaxation: Literal["auto", "coloured", "sequential", "jacobi"] = "auto"
    """one particle after the other, in parallel (coloured) or by one thread in a fixed random order (sequential), or all at
    once (jacobi); auto: coloured on CPUs, jacobi on GPUs"""
    coupling: Literal["implicit", "explicit"] = "implicit"
    """bodies that fluid can move: one velocity for which they receive what particles get, or as published (creates momentum)"""
    compressibility: Annotated[float, Quantity("number", above=0.0, at_most=1.0), Slider(0.01, 0.5, log=True)] = 0.1
    """how much denser fluid may be under ``depth`` of it; chooses the stiffness, and with it the number of steps"""
    depth: Annotated[float, Quantity("length", above=0.0)] | None = None
    """of the deepest fluid [m]; left out: height of what is filled at the start, at most twice the cube root of its volume"""
    stiffness: Annotated[float, Quantity("acceleration", above=0.0), Slider(0.01, 1000, log=True)] | None = None
    """k of eq. 2 [m/s²]; left out: from the compressibility"""
    near_stiffness: Annotated[float, Quantity("acceleration", above=0.0)] | None = None
    """k_near of eq. 5 [m/s²]; left out: 2.5 k, as in the paper"""
    rest_density: Annotated[float, Quantity("number", above=0.0, at_most=100.0)] = 10.0
    """ρ₀ of eq. 2 [1]: sum over neighbours that pressure aims at; fluid rests at three quarters of it"""
    substeps: Annotated[int, Count(at_least=1, at_most=10000)] | None = None
    """steps per 1/30 s; left out: as many as stability needs. Fewer than that are refused"""
    spring_stiffness: Annotated[float, Quantity("rate squared", at_least=0.0), Slider(1, 1e4, log=True, off=True)] = 0.0
    """k_spring of Algorithm 3 [1/s²], for materials without modulus or relaxation time"""
    plasticity: Annotated[float, Quantity("rate", at_least=0.0), Slider(0.01, 100, log=True, off=True)] = 0.0
    """α of eqs. 7 and 8 [1/s], for those materials: how fast springs forget their length"""
    plasticity_stretch: Annotated[float, Quantity("rate", at_least=0.0)] | None = None
    """α of stretched springs [1/s]; left out: the common one"""
    plasticity_compression: Annotated[float, Quantity("rate", at_least=0.0)] | None = None
    """α of compressed springs [1/s]; left out: the common one"""
    yield_ratio: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(0.0, 0.5)] = 0.0
    """γ of eq. 8: relative deformation below which springs keep their length, for materials without yield strain"""
    yield_stretch: Annotated[float, Quantity("number", at_least=0.0, at_most=10.0)] | None = None
    """γ of stretched springs; left out: the common one"""
    yield_compression: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0)] | None = None
    """γ of compressed springs; left out: the common one"""
    linear_viscosity: Annotated[float, Quantity("rate", at_least=0.0), Slider(0.1, 1000, log=True, off=True)] = 0.0
    """σ of Algorithm 5 [1/s], for materials without viscosity"""
    quadratic_viscosity: Annotated[float, Quantity("per length", at_least=0.0), Slider(0.1, 100, log=True)] | None = None
    """β of Algorithm 5 [1/m]; left out: 0.1/h"""
    freeze_at_start: StrictBool = True
    """what is filled at the start begins with springs of its shape; false: springs appear as particles come close"""
    events: list[SpringEvent] = Field(default_factory=list)
    """moments at which all springs freeze or are cleared"""

    @classmethod
    def clavet(
        cls, h: float, k: float = PUBLISHED, k_near: float = 0.01, rho0: float = 10.0, k_spring: float = 0.0,
        alpha: float = 0.0, gamma: float = 0.0, sigma: float = 0.0, beta: float = 0.0, substeps: int = 1, **more: Any,
    ) -> "PVFSParams":  # fmt: skip
        """The paper's dimensionless numbers, which are for h = 1 and steps of 1/30 s, in SI units for h [m].

        Springs and viscosity are off unless given; the paper uses k_spring = 0.3, alpha = 0.3 and gamma of 0 to 0.2. The
        spacing of the scene must be 0.38 h.
        """
        return cls(
            support=1 / 0.38, stiffness=k * h / TAU**2, near_stiffness=k_near * h / TAU**2, rest_density=rho0,
            spring_stiffness=k_spring / TAU**2, plasticity=alpha / TAU, yield_ratio=gamma, linear_viscosity=sigma / TAU,
            quadratic_viscosity=beta / h, substeps=substeps, **more,
        )  # fmt: skip


class PVFS(Method):
    """The solver. Springs last, so the world carries them."""

    honours = frozenset(
        {"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain", "stickiness"}
    )
    leads_nozzles = True
    couples = True
    stages = ("integrate", "neighbours", "viscosity", "springs", "relaxation", "contact")

    def __init__(self, params: PVFSParams, world: Any):
        self._h, self._gravity = world.support, math.hypot(*world.gravity)
        self._deep = depth_of(world)
        self._matter: list[Matter] = []
        self.params = params
        self._step, self._density = Uploaded(StepNumbers), Uploaded(DoubleDensityNumbers)
        self._impulses, self._plasticity, self._clinging = Table(ImpulseNumbers), Table(Plasticity), Table(Clinging)
        self._sweep, self._hits = Uploaded(SweepNumbers), hits_for(1, None)
        self._width, self._needed = (allocate_array(qd.i32, 1) for _ in range(2))
        self._colour, self._turn, self._known = allocate_array(qd.i32, 2), Uploaded(Turn), Uploaded(Known)
        self._bundles = Bundles()
        self._sequence: Any = None  # ids in the order of a sequential sweep
        self._steps = self._count = self._since = 0
        self._now = 0.0
        self.carried = carried_springs(striped=backend.current().is_gpu)
        if world.boundary_count:
            self.notes.append('pvfs: boundary particles push unevenly and heat the fluid; expected boundary = "distance"')
        world.neighbors.multiple = 4  # an even number of blocks along each axis: eight colours
        world.fit_cells()
        self.resize(max(world.capacity, 1))

    @property
    def params(self) -> PVFSParams:
        """Parameters; unstable ones are refused."""
        return self._params

    @params.setter
    def params(self, params: PVFSParams) -> None:
        asked = self._stiffness_of(params)
        scaled = asked * TAU**2 / self._h
        if params.substeps and scaled > 1.0001 * STABLE * params.substeps**2:
            limit = math.ceil(math.sqrt(scaled / STABLE) - 1e-4)
            softest = STABLE * params.substeps**2 * self._h / TAU**2
            raise SceneError(
                f"solver.substeps: {params.substeps} steps per 1/30 s are unstable with a stiffness of {asked:.4g} m/s²; "
                f"expected at least {limit}, or a stiffness of at most {softest:.4g} m/s², or substeps left out",
                key="solver.substeps",
            )
        self._params = params
        self.notes = [self._choice()]
        if not 0.95 < params.support * RESTING < 1.05:
            self.notes.append(
                f"pvfs: fluid rests at a spacing of {RESTING} h, but is filled at {1 / params.support:.3g} h: it will "
                f"{'shrink' if params.support * RESTING < 1 else 'swell'} at once; expected a support of {1 / RESTING:.2g}"
            )

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(
            **{name: allocate_array(vec3, capacity) for name in VECTORS},
            load=allocate_array(qd.f32, capacity),
            rank=allocate_array(qd.i32, capacity),
            where=allocate_array(qd.i32, 1),
            over=allocate_array(qd.i32, 1),
            drift=allocate_array(qd.i32, 1),
            counts=allocate_array(qd.i32, 3 * COUNTERS),
        )
        self._bins, self._sums = allocate_array(vec3, capacity), RowSums(capacity)
        self._other, self._seen = allocate_array(qd.i32, 1), -1
        self._sprung = True  # whether there may be springs from before
        self._held: bool | None = None  # whether both ends hold springs; not known after a restart

    # --- choices -------------------------------------------------------------------------------------------------------
    @property
    def form(self) -> str:
        """sequential, coloured or jacobi."""
        if self.params.relaxation != "auto":
            return self.params.relaxation
        return "jacobi" if backend.current().is_gpu else "coloured"

    def _stiffness_of(self, params: PVFSParams) -> float:
        """k, or what stands for it where k_near is larger than usual [m/s²]."""
        k = self._k_of(params)
        return k if params.near_stiffness is None else max(k, params.near_stiffness / 2.5)

    def _k_of(self, params: PVFSParams) -> float:
        if params.stiffness is not None:
            return params.stiffness
        needed = COMPRESSION * self._gravity * (params.depth or self._deep) / self._h / params.compressibility
        return needed or PUBLISHED * self._h / TAU**2  # without weight nothing tells how stiff a fluid has to be

    def _choice(self) -> str:
        """What was chosen, in words."""
        k, h = self._k_of(self.params), self._h
        steps = self.params.substeps or self._stable_steps()
        why = "as asked"
        if self.params.stiffness is None:
            depth = self.params.depth or self._deep
            why = f"for {100 * self.params.compressibility:.3g} % compression under {depth:.3g} m"
        return (
            f"pvfs: stiffness {k:.3g} m/s² ({k * TAU**2 / h:.3g} in the paper's units) {why}, "
            f"at least {steps:.3g} steps per 1/30 s"
        )

    def _stable_steps(self) -> float:
        """Steps per 1/30 s that the density relaxation needs: a whole number, or less than one for particles of metres."""
        needed = math.sqrt(self._stiffness_of(self.params) * TAU**2 / self._h / CAREFUL)
        return math.ceil(needed - 1e-4) if needed > 1 else needed

    def _steps_per_tau(self) -> float:
        """Steps per 1/30 s: as asked, unless gravity was changed since and has made that unstable."""
        steps, needed = self.params.substeps, self._stable_steps()
        if steps is None or self._stiffness_of(self.params) * TAU**2 / self._h > 1.0001 * STABLE * steps**2:
            if steps and not any("gravity" in note for note in self.notes):
                self.notes.append(f"pvfs: under this gravity {steps} steps per 1/30 s are unstable; taking {needed:.3g}")
            return needed
        return steps

    def longest_step(self, world: Any) -> tuple[float, str]:
        """Longest stable step [s], and what sets it."""
        self._gravity = math.hypot(*world.gravity)
        self._read_materials()
        steps = self._steps_per_tau()
        limits = [(TAU / steps, f"stability, {steps:.3g} steps per 1/30 s")]
        if (stiffest := max((matter.spring for matter in self._matter), default=0.0)) > 0:
            limits.append((math.sqrt(SPRINGY[self.form] / stiffest), f"stability of springs of {stiffest:.3g} 1/s²"))
        if not self.params.substeps and (thickest := max((matter.linear for matter in self._matter), default=0.0)) > 0:
            limit = max(VISCOUS[self.form] / thickest, TAU / MOST_STEPS)
            limits.append((limit, f"viscosity of {thickest:.3g} 1/s"))
            if limit * thickest > 1.001 * VISCOUS[self.form] and not any("viscosity" in note for note in self.notes):
                acting = 100 * VISCOUS[self.form] / (limit * thickest)
                self.notes.append(f"pvfs: only about {acting:.2g} % of the viscosity acts, with {MOST_STEPS} steps per 1/30 s")
        return min(limits)

    # --- materials and springs -------------------------------------------------------------------------------------------
    def take_materials(self, materials: list[Any]) -> None:
        """Physical numbers into those of springs and impulses."""
        self._materials, self._read_for = materials, None
        self._read_materials()

    def _read_materials(self) -> None:
        """Anew when parameters, which speak for materials that say nothing, have changed."""
        if self._read_for != self.params:
            self._matter = [matter_of(material, self.params, self._h) for material in self._materials]
            self._read_for = self.params.model_copy()

    def _springy(self) -> bool:
        """Whether any material has springs now."""
        self._read_materials()
        return any(matter.spring > 0 for matter in self._matter)

    def _tables(self, dt: float) -> tuple[ImpulseNumbers, Plasticity, Floats]:
        matter = self._matter
        beta = 0.1 / self._h if self.params.quadratic_viscosity is None else self.params.quadratic_viscosity
        impulses = self._impulses.set(
            support=[self._h], linear=[m.linear * dt for m in matter] or [0.0], quadratic=[beta * dt]
        )
        plasticity = self._plasticity.set(
            support=[self._h], stiffness=[m.spring * dt * dt for m in matter],
            stretch=[flow_share(m.stretch, dt) for m in matter], compress=[flow_share(m.compress, dt) for m in matter],
            stretch_yield=[m.stretch_yield for m in matter], compress_yield=[m.compress_yield for m in matter],
        )  # fmt: skip
        self._damping = beta > 0 or any(m.linear > 0 for m in matter)
        self._growing = any(m.spring > 0 and m.compress > 0 for m in matter)
        return impulses, plasticity, self._clinging.set(stickiness=[m.stickiness for m in matter]).stickiness

    def _rows(self, world: Any) -> SpringRows:
        """The springs on the device."""
        partner, rest, number = (world.carried[name] for name in ("partner", "rest", "number"))
        if self._other.shape != partner.array.shape:
            self._other = allocate_array(qd.i32, partner.array.shape[0])
            self._width.fill(partner.width)
            self._seen = -1
        known = self._known.set(known=int(self._seen == partner.version)).known
        return self._bundles.of(
            SpringRows, partner.array, rest.array, number.array, self._other, known, partner.row,
            partner.column, self._width, self._needed,
        )  # fmt: skip

    def short_of_room(self) -> int:
        """Places a particle wanted beyond those in its row, or 0."""
        needed = int(transfer.read(self._needed)[0])
        if needed:
            self._needed.fill(0)
        return needed

    def make_room(self, world: Any, needed: int) -> None:
        """Longer rows."""
        width = int(needed * 1.15) + 4
        for name in ("partner", "rest"):
            world.carried[name].widen(width, world.count)

    def freeze(self, world: Any) -> None:
        """Every pair within h gets a spring of its present length: a body remembers its shape from now on."""
        if not world.count or not self._springy():
            return
        plasticity = self._tables(TAU)[1]
        world.neighbors.find_all(world.particles.position, world.particles, world.count)
        self._seen = -1  # the kernel names the others only
        while True:
            freeze_kernel(
                world.particles, world.count, world.neighbors.list, world.neighbors.torus, plasticity, self._rows(world),
                len(self._matter) == 1, self.form == "jacobi", world.neighbors.periodic,
            )  # fmt: skip
            if not (needed := self.short_of_room()):
                break
            self.make_room(world, needed)

    def clear(self, world: Any) -> None:
        """All springs are gone: a body melts."""
        world.carried["number"].clear(0, world.count)

    def springs(self, world: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ids, ids of the others, lengths at rest [m]) of all springs, each once."""
        return on_host(world)

    @property
    def busy(self) -> bool:
        """Whether something is still to happen to springs at its moment."""
        return any(event.time >= self._now for event in self.params.events)

    def prepare(self, world: Any, begin: float, end: float) -> None:
        """Events whose moment is in begin ≤ t < end."""
        self._now = begin
        both = self.form == "jacobi"
        if self._held is not both:  # a restart from another device, or another relaxation
            hold(world, both)
            self._held = both
        springy = self._springy()
        if self._sprung and not springy:  # nobody would let them flow, and they would come back as they were
            self.clear(world)
        self._sprung = springy
        for rows in self.carried.values():  # what does not flow neither begins nor ends
            rows.steady = not any(m.spring > 0 and m.stretch + m.compress > 0 for m in self._matter)
        events = [SpringEvent(time=0.0, do="freeze")] if self.params.freeze_at_start else []
        for event in [*events, *self.params.events]:
            if begin <= event.time < end:
                (self.freeze if event.do == "freeze" else self.clear)(world)

    # --- the step ----------------------------------------------------------------------------------------------------------
    @property
    def in_graphs(self) -> bool:
        """Sweeps have an order that the host tells."""
        return self.form == "jacobi"

    def step(self, world: Any, dt: float, number: int = 1) -> None:
        """Algorithm 1."""
        self._gravity = math.hypot(*world.gravity)
        self._springy_now = self._springy()
        if number > 1 and self._seen != world.carried["partner"].version:  # only the first one looks for the ends of springs
            self.step(world, dt)
            number -= 1
        k, tables = step_numbers(self._step, world, self.params, dt, number), self._tables(dt)
        self._with_room_for_ids(world)
        rows = self._rows(world)
        if self.form == "jacobi" and not world.stages.precise:
            self._whole(world, k, rows, *tables, self._density_numbers(dt))
        else:
            self._in_stages(world, k, rows, *tables, self._density_numbers(dt))
        self._seen = world.carried["partner"].version
        self._steps += number
        self._since += number
        self._count = world.count

    def _whole(self, world: Any, k: Any, rows: Any, impulses: Any, plasticity: Any, stickiness: Any, density: Any) -> None:
        """The step as one graph."""
        search, solids, implicit = world.neighbors, world.solids, self.params.coupling == "implicit"
        with backend.small_launches(search.few):
            whole_step(
                backend.loop_counter(), world.particles, k, search.cells, search.torus, search.numbers(world.count),
                search.list, impulses, plasticity, rows, density, self._sweep_numbers(world), solids.device, solids.parts,
                solids.bodies_device, stickiness, self.scratch, world.status, self._damping, self._springy_now, self._growing,
                len(self._matter) == 1, world.uniform, len(solids) > 0, self._body_sweeps(world), implicit, search.periodic,
                search.scan_depth,
            )  # fmt: skip

    def _in_stages(self, world: Any, k: Any, rows: Any, impulses: Any, plasticity: Any, stickiness: Any, density: Any) -> None:
        """The step with every stage launched on its own."""
        p, s, solids, left = world.particles, self.scratch, world.solids, backend.loop_counter()
        near, torus, periodic, uniform = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic, world.uniform
        single, at_once, sweep = len(self._matter) == 1, self.form == "jacobi", self._sweep_numbers(world)
        with world.stages("integrate"):
            predict_stage(p, k, solids.device, s, sweep, self._springy_now or self.form == "sequential")
        with world.stages("neighbours"):
            world.neighbors.find(s.x, self._bundles.of(Ranked, s.rank, p.inverse_mass, p.position), world.count)
            schedule = self._schedule(world, s, sweep)
        hits = self._hits = hits_for(1 if at_once else world.neighbors.width, self._hits)
        bins = s.x
        if self._damping:
            with world.stages("viscosity"):
                if at_once:
                    viscosity_at_once(p, k, near, torus, impulses, s, single, uniform, periodic)
                else:
                    bins = self._bins
                    viscosity_sweep(left, p, k, near, torus, impulses, schedule, hits, s, bins, single, uniform, periodic)
        if self._springy_now:
            with world.stages("springs"):
                if at_once:
                    springs_at_once(p, k, near, torus, plasticity, rows, s, single, self._growing, uniform, periodic)
                else:
                    adjust_stage(p, k, near, torus, plasticity, rows, s, bins, sweep, single, self._growing, uniform, periodic)
                    spring_sweep(left, p, torus, plasticity, rows, schedule, sweep, s, single, uniform, periodic)
        with world.stages("relaxation"):
            if at_once:
                relax_at_once(p, k, near, torus, density, s, uniform, periodic)
            else:
                relax_sweep(left, p, near, torus, density, schedule, hits, s, uniform, periodic)
        with world.stages("contact"):
            implicit, sweeps = self.params.coupling == "implicit", self._body_sweeps(world)
            for _ in range(sweeps):
                yield_stage(p, k, solids.device, solids.parts, solids.bodies_device, stickiness, s, implicit)
            finish_stage(
                p, k, torus, solids.device, solids.parts, solids.bodies_device, stickiness, s, world.status, len(solids) > 0,
                sweeps > 0 and implicit, periodic,
            )  # fmt: skip

    def _sweep_numbers(self, world: Any) -> Any:
        """The same on the device."""
        places = world.next_id if self.form == "sequential" else world.count
        return self._sweep.set(ids=world.next_id, places=places, reach=world.neighbors.reach)

    def _body_sweeps(self, world: Any) -> int:
        """How often bodies are let yield to the fluid (Algorithm 6)."""
        if not world.solids.coupled:
            return 0
        return SWEEPS if self.params.coupling == "implicit" else 1

    def _density_numbers(self, dt: float) -> DoubleDensityNumbers:
        k = self._k_of(self.params)
        near = self.params.near_stiffness or 2.5 * k
        return self._density.set(
            support=self._h, push=k * dt * dt, near_push=near * dt * dt, rest=self.params.rest_density,
            limit=LIMIT * self._stiffness_of(self.params) * dt * dt / self._h,
        )  # fmt: skip

    def _with_room_for_ids(self, world: Any) -> None:
        """Scratch in which every id has a place."""
        if self.scratch.where.shape[0] < world.next_id:
            self.scratch = replace(self.scratch, where=allocate_array(qd.i32, int(1.5 * world.next_id)))

    def _schedule(self, world: Any, s: Scratch, sweep: SweepNumbers) -> Schedule:
        """Who is visited when: by cells, or in the fixed random order of the ids; backwards in every other step."""
        backwards = self._turn.set(backwards=(world.steps + world.part) % 2).backwards
        if self.form != "sequential":
            cells, whole = world.neighbors.cells, world.neighbors.torus.whole
            return self._bundles.of(Schedule, cells.order, cells.start, whole, self._colour, backwards)
        if self._sequence is None or self._sequence[0] != world.next_id:
            array = allocate_array(qd.i32, world.next_id)
            transfer.write(array, ids_by_rank(world.next_id))
            self._sequence = world.next_id, array, line_schedule(world.next_id, self._colour, backwards)
        _, sequence, schedule = self._sequence
        line_up_stage(sequence, s, sweep, schedule)
        return schedule

    # --- reports -----------------------------------------------------------------------------------------------------------
    def iterations_used(self) -> int:
        """Relaxations since the last call."""
        used, self._steps = self._steps, 0
        return used

    def metrics(self) -> dict[str, float]:
        """Springs per particle, shares of pairs and springs that jacobi had to limit, and the stiffness k [m/s²]."""
        counts = transfer.take(self.scratch.counts).astype(np.int64).reshape(3, COUNTERS).sum(axis=1)
        springs = self._sums.of(self.carried["number"].array, self.scratch.load, self._count)[0]
        steps, self._since = max(self._since, 1), 0
        return {
            "springs": mean(springs / (2 if self.form == "jacobi" else 1), self._count),
            "limited_pairs": float(counts[1] / max(counts[0], 1)),
            "limited_springs": float(counts[2] / max(springs * steps, 1)),
            "stiffness": self._k_of(self.params),
        }
