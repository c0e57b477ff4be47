"""Viscoelastic fluids that keep their volume, after Takahashi, Fujishiro & Nishita 2014: velocity corrections on IISPH.

Everything that makes the fluid viscoelastic changes velocities only, before the pressure is solved for; positions stay where
the neighbour lists and kernels were made until the end of the step. The pressure solver (Ihmsen et al. 2014) then sees a
velocity field like any other, and its convergence does not suffer.
"""

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import quadrants as qd
from pydantic import Field, StrictBool

from viscoil import backend, native, transfer
from viscoil.carried import Carried
from viscoil.constraints.acceleration import pace_of
from viscoil.constraints.pressure import PressureField, PressureNumbers, kept
from viscoil.errors import SceneError
from viscoil.native.pressure import PressurePasses
from viscoil.particles import Table, Uploaded, allocate_array, vec3
from viscoil.solvers.events import SpringEvent
from viscoil.solvers.iisph_bodies import finish_with_bodies_stage
from viscoil.solvers.iisph_matter import (
    CALM,
    STABLE,
    Bonding,
    Matter,
    Ratio,
    Share,
    Stiffness,
    Stiffnesses,
    Weakening,
    matter_of,
)
from viscoil.solvers.iisph_stages import (
    Scratch,
    advect_stage,
    finish_stage,
    pressure_stage,
    smooth_stage,
    walls_stage,
    weigh_stage,
)
from viscoil.solvers.iisph_whole import whole_step, whole_step_of_liquid
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.sph.sums import allocate_sums
from viscoil.steps.bonding import Bonds
from viscoil.steps.smooth_velocities import SmoothingNumbers
from viscoil.units import Count, PositiveTime, Quantity, Slider

FEWEST = 2  # pressure iterations of a step
ONE_PASS = 0.8  # strength of XSPH in one pass; beyond 1 it would overshoot
CONVERGENT = 1.5  # ω times the stiffest mode of the lattice: from 2 on Jacobi diverges
HURRIED = 1.5  # κ_max with momentum, in that of the lattice: 1.1 was enough until steps became longer than half a spacing
MOST_PASSES = 10  # of XSPH in one step
LARGE = 50000  # particles from which slopes no longer fit into caches, and working them out again is faster than reading
SLOPES = ("slope_x", "slope_y", "slope_z")
BOND_REACH = 1.001  # supports within which what is frozen is bonded: on a lattice some lie at exactly one


class IISPHParams(SolverParams):
    """[solver] method = "iisph"."""

    method: Literal["iisph"] = "iisph"
    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.0
    """support radius H, in particle spacings"""
    margin: Annotated[float, Quantity("number", at_least=0.001, at_most=0.5)] = 0.01
    """neighbours are listed within (1 + margin) H"""
    iterations: Annotated[int, Count(at_least=FEWEST, at_most=10000), Slider(2, 200)] = 50
    """most pressure iterations per step"""
    tolerance: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5), Slider(1e-5, 0.1, log=True)] = 0.001
    """mean compression below which the iterations end, after at least two; 0 = always all"""
    relaxation: Annotated[float, Quantity("number", above=0.0, at_most=1.0)] = 0.5
    """ω of the relaxed Jacobi iteration; with supports over 2.1 less is taken, where this would not converge"""
    acceleration: Literal["momentum", "none"] = "none"
    """how iterations follow each other: Jacobi's as published, or with momentum: about half as many for the same density; the
    pressure itself is noisier (10 % in a shallow pool). Always Jacobi's where there are bodies that fluid can move"""
    warm_start: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0)] = 0.5
    """share of the last step's pressure that the iteration starts from"""
    correction: Literal["none", "shape_matching", "springs", "position_based"] = "springs"
    """how velocities are corrected to make the fluid viscoelastic"""
    spring_stiffness: Stiffness = 0.0
    """springs: k [N/m], for materials without modulus"""
    rigidity: Share = 0.0
    """shape matching, position-based: k, share of a deformation taken back in a step, for materials without modulus"""
    reference_step: PositiveTime | None = None
    """the step [s] that rigidity is meant for: shorter ones take back less, so that the material stays the same; left out:
    whatever the step is, as in the paper"""
    stability: Annotated[float, Quantity("number", above=0.0, at_most=STABLE)] = CALM
    """largest k S Δt² 2/(3m) that steps are chosen for: 4 is the limit without pressure, under pressure bonds boil from 1 on"""
    lower_limit: Share = 1.0
    """l/k: what is left of the stiffness of material that yields for long"""
    weakening: Weakening = 0.0
    """d [1/s]: how fast what yields loses its stiffness; 0 = never"""
    yield_ratio: Ratio = 0.02
    """α: deformation from which a bond (with shape matching, a particle) yields, in supports"""
    merge_ratio: Ratio | None = None
    """β: particles that come closer than this are bonded, in supports; 0 = never. Left out: 0, and 1 for materials with a
    finite relaxation time, whose bonds would run out"""
    split_ratio: Ratio | None = None
    """γ: bonds deformed by more than this break, in supports; left out: never"""
    two_sided: StrictBool = False
    """springs, position-based: bonds push as well; published ones only pull, because pressure resists compression"""
    normalise: StrictBool = True
    """position-based: shares of a particle's bonds add up to at most three, so that rigidities up to 1 are stable"""
    goal: Literal["lattice", "cluster"] = "lattice"
    """shape matching: goals are averages over all regions a particle is in, or its own region's"""
    conserve: StrictBool = True
    """shape matching: regions act on all their members alike, which keeps momentum; false: as published"""
    xsph: Share = 0.05
    """ε of XSPH, which damps oscillations; a viscosity of the material comes on top"""
    xsph_central: StrictBool = False
    """XSPH acts along the line between two particles only: that keeps angular momentum, which the published form does not"""
    wall_viscosity: Annotated[float, Quantity("number", at_least=0.0)] = 0.0
    """friction against approaching boundary particles, σ H c_s/2 of Akinci et al. 2012 [m²/s]"""
    freeze_at_start: StrictBool = True
    """what is filled at the start begins bonded; false: bonds appear as particles come close (merge_ratio)"""
    events: list[SpringEvent] = Field(default_factory=list)
    """moments at which all bonds freeze or are cleared"""
    materials: dict[str, Bonding] = Field(default_factory=dict)
    """what differs for single materials, by name: spring_stiffness, rigidity, lower_limit, ..."""

    density_kernel: ClassVar[int] = 2  # the cubic spline
    sample_gain: ClassVar[float] = 1.14  # with mirrored pressure a column then neither sinks nor swells, measured


def _beside_bodies(capacity: int) -> dict[str, Any]:
    """Rows of the pressure field that only bodies need which fluid can move."""
    return {
        "body": allocate_array(qd.i32, 2 * capacity), "by_body": allocate_array(vec3, 2 * capacity),
        "of_body": allocate_array(qd.f32, 2 * capacity), "braked": allocate_array(vec3, 2 * capacity),
    }  # fmt: skip


class IISPH(Method):
    """The solver. Bonds and pressures last, so the world carries them."""

    honours = frozenset({"density", "viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain"})
    leads_nozzles = True
    measures_volume = True
    in_graphs = True
    couples = True  # as drawn: no erosion, boxes float within 0.03 of Archimedes
    samples_couple = True
    stages = ("integrate", "neighbours", "density", "correction", "smoothing", "pressure", "finish")

    def __init__(self, params: IISPHParams, world: Any):
        self._matter: list[Matter] = []
        self._spacing, self._h = world.spacing, world.support
        self._world = world
        self.held = None if params.correction == "none" else Bonds(params.correction, striped=backend.current().is_gpu)
        self.carried = {"pressure": Carried(qd.f32, 1), **(self.held.carried if self.held else {})}
        self._step, self._pressure = Uploaded(StepNumbers), Uploaded(PressureNumbers)
        self._smoothing, self._passes_of_pressure = Table(SmoothingNumbers), PressurePasses()
        self._now = 0.0
        self.params = params
        self.resize(max(world.capacity, 1))

    @property
    def params(self) -> IISPHParams:
        """Parameters; unstable ones are refused."""
        return self._params

    @params.setter
    def params(self, params: IISPHParams) -> None:
        scheme = Stiffnesses(self._spacing, self._h, params)
        shares = [params.rigidity, *(own.rigidity or 0.0 for own in params.materials.values())]
        if params.correction == "position_based" and max(shares) > (limit := scheme.largest_rigidity()):
            raise SceneError(
                f"solver.rigidity: {max(shares):g} explodes with {scheme.lattice.bonds} bonds per particle that are not "
                f"normalised; expected at most {math.floor(100 * limit) / 100:g}, or normalise = true",
                key="solver.rigidity",
            )
        if params.correction != (scheme_before := self.held.scheme if self.held else "none"):
            raise SceneError(
                f"solver.correction cannot be changed while a simulation runs (it was {scheme_before}, now "
                f"{params.correction}); make a new Simulation instead",
                key="solver.correction",
            )
        unknown = [name for name in params.materials if name not in self._world.material_names]
        if unknown:
            raise SceneError(
                f'solver.materials.{unknown[0]}: the scene has no material of that name; expected one of '
                f"{', '.join(self._world.material_names)}",
                key=f"solver.materials.{unknown[0]}",
            )
        self._params, self._scheme = params, scheme
        self._read_for: Any = None
        self.notes = []

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        self.scratch = Scratch(*(allocate_array(vec3, capacity) for _ in range(2)))
        self.field = PressureField(
            **{name: allocate_array(vec3, capacity) for name in ("gradient", "acceleration", "toward", "wall_velocity")},
            **{
                name: allocate_array(qd.f32, capacity)
                for name in ("density", "diagonal", "source", "pressure", "change", "wall", "flux", "grip")
            },
            **{name: allocate_array(qd.f32, 1) for name in SLOPES},
            **_beside_bodies(capacity if self._world.solids.coupled else 0),
            used=allocate_array(qd.i32, 2),
            error=allocate_array(qd.f32, 1),
        )
        self._sums = allocate_sums(capacity)
        self.counter = self.field.used
        if self.held:
            self.held.resize(capacity)

    # --- materials -------------------------------------------------------------------------------------------------------
    def take_materials(self, materials: list[Any]) -> None:
        """Physical numbers into those of bonds and XSPH."""
        self._materials, self._read_for = materials, None
        self._read_materials()

    def _read_materials(self) -> None:
        """Anew when parameters, which speak for materials that say nothing, have changed."""
        if self._read_for != self.params:
            names = self._world.material_names
            self._matter = [matter_of(m, self.params, name) for m, name in zip(self._materials, names, strict=True)]
            self._read_for = self.params.model_copy(deep=True)

    def _bonded(self) -> bool:
        """Whether any material is held together now."""
        self._read_materials()
        return self.held is not None and any(self._scheme.of_step(m, 1e-3) > 0 for m in self._matter)

    def longest_step(self, world: Any) -> tuple[float, str]:
        """Longest stable step [s], and what sets it."""
        self._read_materials()
        limits = [(math.inf, "")]
        for name, matter in zip(world.material_names, self._matter, strict=True):
            if self.params.correction != "none":
                limits.append((self._scheme.longest_step(matter), f"stability of the bonds of {name}"))
                if (load := self._scheme.load(matter, 1e-3)) > 1.001 * self.params.stability and self._per_step(matter):
                    self._note(f"iisph: bonds of {name} may boil under pressure (a load of {load:.2g} per step); expected a "
                               "smaller rigidity, or reference_step and shorter steps")
            if matter.viscosity > 0:
                longest = ONE_PASS * MOST_PASSES / self._strength(matter, 1.0)
                limits.append((longest, f"viscosity of {name}, {MOST_PASSES} passes of XSPH"))
        return min(limits)

    def _per_step(self, matter: Matter) -> bool:
        """Whether shorter steps do not help: the rigidity is that of a step, whatever its length."""
        return self.params.correction != "springs" and matter.modulus == 0 and self.params.reference_step is None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _strength(self, matter: Matter, dt: float) -> float:
        """ε that the material's viscosity asks for in a step."""
        per_moment = 10 if self.params.xsph_central else 6
        return per_moment * matter.viscosity / matter.density * dt / self._scheme.lattice.second_moment

    def _passes(self, dt: float) -> tuple[int, SmoothingNumbers]:
        """How often velocities are smoothed in a step, and how strongly each time."""
        strengths = [m.xsph + self._strength(m, dt) for m in self._matter] or [0.0]
        passes = max(1, math.ceil(max(strengths) / ONE_PASS))
        return passes, self._smoothing.set(support=[self._h], strength=[s / passes for s in strengths], passes=[passes])

    def _bonds_of(self, dt: float) -> Bonds:
        """The bonds, told how to behave in a step of ``dt`` [s]."""
        bonds, params, matter = self.held, self.params, self._matter
        bonds.two_sided, bonds.normalise, bonds.goal, bonds.conserve = (
            params.two_sided, params.normalise and bonds.scheme == "position_based", params.goal, params.conserve
        )  # fmt: skip
        bonds.set(
            support=[self._h],
            reach=[BOND_REACH * self._h],
            stiffness=[self._scheme.of_step(m, dt) for m in matter],
            lower=[m.lower for m in matter],
            weakening=[m.weakening * dt for m in matter],
            yielding=[m.yielding for m in matter],
            merging=[m.merging for m in matter],
            splitting=[m.splitting for m in matter],
            flow=[-math.expm1(-m.flow * dt) for m in matter],
            flow_yield=[m.flow_yield for m in matter],
            kick=[dt / self._scheme.mass(matter[0]) if bonds.scheme == "springs" else 1 / dt],
        )
        return bonds

    # --- bonds -----------------------------------------------------------------------------------------------------------
    def freeze(self, world: Any) -> None:
        """All pairs within the support are bonded as they are: a body remembers its shape from now on."""
        if world.count and self._bonded():
            self._bonds_of(1e-3).freeze(world)

    def clear(self, world: Any) -> None:
        """All bonds are gone: a body melts."""
        if self.held:
            self.held.clear(world)

    def bonds(self, world: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ids, ids of the others, lengths at rest [m]) of all bonds, each once."""
        if self.held is None:
            return np.zeros(0, int), np.zeros(0, int), np.zeros(0)
        return self.held.on_host(world)

    def short_of_room(self) -> int:
        """Bonds a particle wanted beyond the places it has, or 0."""
        return self.held.short_of_room() if self.held else 0

    def make_room(self, world: Any, needed: int) -> None:
        """Longer rows."""
        self.held.make_room(world, needed)

    @property
    def busy(self) -> bool:
        """Whether something is still to happen to bonds at its moment."""
        return any(event.time >= self._now for event in self.params.events)

    def prepare(self, world: Any, begin: float, end: float) -> None:
        """Events whose moment is in begin ≤ t < end."""
        self._now = begin
        self._read_materials()
        if self.held:
            self.held.steady(self._matter)
        events = [SpringEvent(time=0.0, do="freeze")] if self.params.freeze_at_start else []
        for event in [*events, *self.params.events]:
            if begin <= event.time < end:
                (self.freeze if event.do == "freeze" else self.clear)(world)

    # --- the step --------------------------------------------------------------------------------------------------------
    def step(self, world: Any, dt: float, number: int = 1) -> None:
        """The algorithm of section 3.2."""
        k, c = self._numbers(world, dt, number)
        if not world.stages.precise:
            self._whole(world, dt, k, c)
            return
        with world.stages("integrate"):
            self._advect(world, k)
        with world.stages("neighbours"):
            world.neighbors.find(world.particles.position, world.particles, world.count)
        with world.stages("density"):
            self._weigh(world, world.particles.position, k, c)
        with world.stages("correction"):
            self._correct(world, world.particles.position, k, dt, self.scratch.velocity)
        with world.stages("smoothing"):
            self._smooth(world, k, dt)
        with world.stages("pressure"):
            self._solve_pressure(world, world.particles.position, k, c, advected=True)
        with world.stages("finish"):
            self._finish(world, k, c)

    def _whole(self, world: Any, dt: float, k: StepNumbers, c: PressureNumbers) -> None:
        """The same as one graph."""
        search, solids = world.neighbors, world.solids
        self._make_rows(world)
        passes, smoothing = self._passes(dt)
        numbers = (
            backend.loop_counter(), backend.loop_counter(1), world.particles, k, search.cells, search.torus,
            search.numbers(world.count), search.list, c, smoothing, solids.device, solids.parts, solids.bodies_device,
            self.scratch, world.carried["pressure"].array, self.field, self._sums, world.status,
        )  # fmt: skip
        variant = (
            world.boundary_count > 0, self._walled(world), solids.coupled, len(self._matter) == 1, world.uniform,
            search.periodic, search.scan_depth, self._enclosed(world), self.params.xsph_central, self.params.tolerance > 0,
            passes > 1,
        )  # fmt: skip
        with backend.small_launches(search.few):
            if self._bonded():
                whole_step(*numbers, *self._bonds_of(dt).arguments(world), *variant)
            else:
                whole_step_of_liquid(*numbers, *variant)

    def _numbers(self, world: Any, dt: float, steps: int = 1) -> tuple[StepNumbers, PressureNumbers]:
        p = self.params
        self._read_materials()
        k = step_numbers(self._step, world, p, dt, steps)
        self._host = {
            "dt": dt, "support": world.support, "relaxation": min(p.relaxation, CONVERGENT / world.lattice.stiffest_mode),
            "warm": p.warm_start, "tolerance": p.tolerance, "movers": world.fluid_count, "iterations": p.iterations,
            "least": FEWEST, "wall_viscosity": p.wall_viscosity, "stride": self._stride(world),
        }  # fmt: skip
        self._by_hand = native.active() and world.uniform_fluid and not world.solids.coupled and not world.neighbors.periodic
        self._keeping = kept() and not (self._by_hand and world.fluid_count > LARGE)
        return k, self._pressure.set(**self._host)

    def _advect(self, world: Any, k: StepNumbers) -> None:
        """v_adv = v + Δt g."""
        advect_stage(world.particles, k, world.solids.device, self.scratch, world.solids.coupled)

    def _weigh(self, world: Any, x: Any, k: StepNumbers, c: PressureNumbers) -> None:
        """Densities at ``x`` and what walls contribute there."""
        self._make_rows(world)
        if self._by_hand:
            walls = world.boundary_count > 0, self._walled(world)
            if any(walls):
                walls_stage(
                    world.particles, x, k, world.neighbors.list, world.neighbors.torus, c, world.solids.device,
                    world.solids.parts, self.scratch, self.field, *walls,
                )  # fmt: skip
            self._passes_of_pressure.weigh(
                world, x, self.scratch.velocity, self.field, self._host, any(walls), self._keeping
            )
            return
        weigh_stage(
            world.particles, x, k, world.neighbors.list, world.neighbors.torus, c, world.solids.device, world.solids.parts,
            world.solids.bodies_device, self.scratch, self.field, world.boundary_count > 0, self._walled(world),
            world.solids.coupled, world.uniform, world.neighbors.periodic,
        )  # fmt: skip

    def _make_rows(self, world: Any) -> None:
        """Rows for bodies that fluid can move, and slopes of all pairs where they are kept."""
        entries = world.neighbors.list.index.shape[0]
        if self._keeping and self.field.slope_x.shape[0] != entries:  # lists have become longer
            self.field = replace(self.field, **{name: allocate_array(qd.f32, entries) for name in SLOPES})
        if world.solids.coupled and self.field.body.shape[0] != 2 * (capacity := self.field.wall.shape[0]):
            self.field = replace(self.field, **_beside_bodies(capacity))

    def _stride(self, world: Any) -> float:
        """1/κ_max of iterations with momentum, or 0: not beside bodies that yield to what one iteration pushes them with."""
        hurried = self.params.acceleration == "momentum" and not world.solids.coupled
        return 1 / (HURRIED * world.lattice.stiffest_mode) if hurried else 0.0

    def _walled(self, world: Any) -> bool:
        """Whether there are walls by distance."""
        return any(solid.boundary == "distance" for solid in world.solids.solids)

    def _enclosed(self, world: Any) -> bool:
        """Whether there are walls of any kind."""
        return len(world.solids) > 0

    def _correct(self, world: Any, x: Any, k: StepNumbers, dt: float, velocity: Any) -> None:
        """v* = v_adv + Δv, for deformations as they are at ``x``."""
        if self._bonded():
            bonds = self._bonds_of(dt)
            bonds.update(world, x)
            bonds.correct(world, velocity, x)

    def _smooth(self, world: Any, k: StepNumbers, dt: float) -> None:
        """ṽ by XSPH."""
        passes, numbers = self._passes(dt)
        for number in range(passes):
            smooth_stage(
                world.particles, k, world.neighbors.list, world.neighbors.torus, numbers, self.scratch, self.field,
                world.solids.device, world.solids.bodies_device, number > 0, self.params.xsph_central, self._enclosed(world),
                world.solids.coupled, len(self._matter) == 1, world.uniform, world.neighbors.periodic,
            )  # fmt: skip

    def _solve_pressure(self, world: Any, x: Any, k: StepNumbers, c: PressureNumbers, advected: bool) -> None:
        """p = IISPH(ṽ) at ``x``."""
        if self._by_hand and not self._keeping:
            self._passes_of_pressure.solve(
                world, x, self.scratch.smoothed, self.field, self._host, self._enclosed(world), advected, pace_of
            )
            return
        pressure_stage(
            backend.loop_counter(), world.particles, x, k, world.neighbors.list, world.neighbors.torus, c, self.scratch,
            world.carried["pressure"].array, self.field, self._sums, world.solids.device, world.solids.bodies_device,
            self._enclosed(world), advected, self.params.tolerance > 0, world.solids.coupled, world.uniform,
            world.neighbors.periodic,
        )  # fmt: skip

    def _finish(self, world: Any, k: StepNumbers, c: PressureNumbers) -> None:
        """v = ṽ + Δt a, x ← x + Δt v."""
        if world.solids.coupled:
            finish_with_bodies_stage(
                world.particles, k, c, world.neighbors.torus, world.solids.device, world.solids.parts,
                world.solids.bodies_device, self.scratch, world.carried["pressure"].array, self.field, world.status,
                world.neighbors.periodic,
            )  # fmt: skip
            return
        finish_stage(
            world.particles, k, world.neighbors.torus, world.solids.device, world.solids.parts, self.scratch,
            world.carried["pressure"].array, self.field, world.status, self._enclosed(world), world.neighbors.periodic,
        )  # fmt: skip

    # --- reports ---------------------------------------------------------------------------------------------------------
    def metrics(self) -> dict[str, float]:
        """Bonds per particle, what is left of their stiffness, and the mean compression that the pressure left."""
        held = self.held.metrics(self._world) if self.held else {}
        return {**held, "density_error": float(transfer.read(self.field.error)[0])}
