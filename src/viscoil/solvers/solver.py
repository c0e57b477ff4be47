"""What every solver is: parameters, scratch memory, and a ``step`` that reads like its paper's algorithm."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Annotated, Any, ClassVar, Protocol

import quadrants as qd

from viscoil import backend
from viscoil.model import Model
from viscoil.particles import Floats, Ints, Uploaded
from viscoil.sph.smoothing import SPIKY
from viscoil.transfer import take
from viscoil.units import Quantity

FARTHEST = 20.0  # supports a particle may move in one step before the state counts as exploding


class SolverParams(Model):
    """Keys every [solver] table has."""

    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.3
    """support radius h of the smoothing kernels, in particle spacings"""
    margin: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """neighbours are listed within (1 + margin) h: a list that stays good while particles move in the iterations"""
    contact_radius: Annotated[float, Quantity("number", above=0.0, at_most=1.0)] = 0.5
    """distance kept from solids, in particle spacings"""

    sample_gain: ClassVar[float] = 1.0  # how much more than their volume boundary samples weigh with the method

    @property
    def density_kernel(self) -> int:
        """W of the method's density sum, a number out of viscoil.sph.smoothing; volumes are calibrated for it."""
        return SPIKY


@dataclass(frozen=True)
class StepNumbers:
    """What a step's kernels are told, one element each (see Uploaded)."""

    steps: Ints  # of a launch
    count: Ints  # particles, boundary samples included
    movers: Ints  # fluid particles
    dt: Floats  # [s]
    gx: Floats  # gravity [m/s²]
    gy: Floats
    gz: Floats
    support: Floats  # h [m]
    radius: Floats  # contact radius [m]
    farthest: Floats  # displacement in one step that counts as an explosion [m]
    solids: Ints  # number of solids
    iterations: Ints  # most iterations
    tolerance: Floats  # mean compression that ends the iterations
    xsph: Floats  # c of eq. 17
    vorticity: Floats  # ε of eq. 16 [m/s]
    stiffness: Floats  # pressure per density error, for methods that have one


StepValues = qd.types.struct(**{f.name: qd.i32 if f.type is Ints else qd.f32 for f in fields(StepNumbers)})


@qd.func
def values_of(k: StepNumbers) -> StepValues:
    """Those numbers, read once at the top of a kernel: what is read between two loops is a launch of its own on a GPU."""
    return StepValues(
        steps=k.steps[0], count=k.count[0], movers=k.movers[0], dt=k.dt[0], gx=k.gx[0], gy=k.gy[0], gz=k.gz[0],
        support=k.support[0], radius=k.radius[0], farthest=k.farthest[0], solids=k.solids[0], iterations=k.iterations[0],
        tolerance=k.tolerance[0], xsph=k.xsph[0], vorticity=k.vorticity[0], stiffness=k.stiffness[0],
    )  # fmt: skip


def step_numbers(uploaded: Uploaded, world: Any, params: Any, dt: float, steps: int = 1, **more: float) -> Any:
    """The numbers every solver needs, from the world and its parameters; ``more`` are the solver's own."""
    gx, gy, gz = world.gravity
    return uploaded.set(
        steps=steps, count=world.count, movers=world.fluid_count, dt=dt, gx=gx, gy=gy, gz=gz, support=world.support,
        radius=params.contact_radius * world.spacing, farthest=FARTHEST * world.support, solids=len(world.solids),
        iterations=getattr(params, "iterations", 1), tolerance=getattr(params, "tolerance", 0.0),
        xsph=getattr(params, "xsph", 0.0), **more,
    )  # fmt: skip


class Stages:
    """Seconds spent in the named stages of a step.

    A GPU runs behind the host, so stages are only told apart there when ``precise`` asks for a wait after each.
    """

    def __init__(self, precise: bool | None = None):
        self.seconds: dict[str, float] = {}
        self.precise = (not backend.current().is_gpu) if precise is None else precise

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begin = perf_counter()
        yield
        if self.precise:
            backend.synchronise()
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin

    def taken(self) -> dict[str, float]:
        """The seconds so far, and starts again at zero."""
        seconds, self.seconds = self.seconds, {}
        return seconds


class Solver(Protocol):
    """The contract between the time loop and a method."""

    params: Any
    honours: frozenset[str]  # material keys the method can represent; others are reported to the user

    leads_nozzles: bool  # fluid inside a nozzle's pipe takes part, led by the nozzle
    measures_volume: bool  # it is there to keep the volume: frames measure it unless the scene says otherwise
    couples: bool  # bodies that fluid can move receive what they give
    samples_couple: bool  # also those whose boundary is particles
    long_lists: bool  # it reads neighbours by fetch and entry alone: lists may have more than 2³¹ entries
    holds_clusters: bool  # rigid and soft bodies made of particles keep their shape
    erosion: float  # how much thinner than drawn such a body is for the fluid, so that it displaces what it should [spacings]
    has_stress: bool  # its materials are a stress that depends on Q and ∇v: frames can have it (constraints/stress.py)
    evolves: tuple[str, ...]  # fields of particles besides position and velocity that a step changes
    notes: Sequence[str]  # what the user should know about choices the method made
    # A method whose particles remember more than FIELDS offers ``carried``: dict[str, Carried], see World.carry.

    def __init__(self, params: Any, world: Any) -> None: ...

    def take_materials(self, materials: list[Any]) -> None:
        """What the particles are made of; called at the start and after every change."""

    def resize(self, capacity: int) -> None:
        """Scratch memory for ``capacity`` particles."""

    @property
    def busy(self) -> bool:
        """Whether the host has to look between steps."""
        ...

    def begin_frame(self) -> None:
        """Called before the first step of a frame: the place to forget what a resumed run could not know."""

    def longest_step(self, world: Any) -> tuple[float, str]:
        """(longest step [s] that is stable now, why it is not longer)."""
        ...

    def prepare(self, world: Any, begin: float, end: float) -> None:
        """Called once before the steps from ``begin`` to ``end`` [s], which may have to be repeated from here.

        Each interval begins where the one before ended, to the last bit: what happens at a moment happens when
        begin ≤ moment < end.
        """

    def step(self, world: Any, dt: float) -> None:
        """Advances ``world`` by ``dt`` seconds. Launches work; does not wait for the device."""

    def steps(self, world: Any, dt: float, number: int) -> None:
        """The same ``number`` times, where the host has nothing to do in between."""

    def short_of_room(self) -> int:
        """What the fullest particle needed when memory of the method was too small since the last call, else 0.

        The steps are then undone, :meth:`make_room` is called, and they are repeated. Waits for the device.
        """
        ...

    def make_room(self, world: Any, needed: int) -> None:
        """Makes room for what :meth:`short_of_room` asked for."""

    def iterations_used(self) -> int:
        """Iterations since the last call (waits for the device)."""

    def metrics(self) -> dict[str, float]:
        """The method's own numbers of a frame."""


class Method:
    """What a solver says that keeps nothing from step to step and knows nothing of materials but their density.

    A subclass sets ``counter`` to a device array of two: iterations in this step, and since they were last asked for.
    """

    honours: frozenset[str] = frozenset({"density"})
    leads_nozzles = False
    measures_volume = False
    couples = False
    samples_couple = False
    holds_clusters = False
    long_lists = False
    erosion = 0.0
    has_stress = False
    evolves: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    busy = False
    in_graphs = False  # on GPUs a step is one launch, and so are several: ``step`` takes their number
    counter: Any
    step: Any  # as in Solver, and with the number of steps where those are graphs

    def take_materials(self, materials: list[Any]) -> None:
        """Density is all that counts, and particles carry it."""

    def begin_frame(self) -> None:
        """Nothing is carried over that a resumed run could not know."""

    def longest_step(self, world: Any) -> tuple[float, str]:
        """Any step will do."""
        return math.inf, ""

    def prepare(self, world: Any, begin: float, end: float) -> None:
        """Nothing happens at a moment."""

    def steps(self, world: Any, dt: float, number: int) -> None:
        """At once where that can be: a GPU waits for the host from one launch to the next."""
        if number > 1 and self.in_graphs and not world.stages.precise:
            self.step(world, dt, number)
            return
        for world.part in range(number):
            self.step(world, dt)

    def short_of_room(self) -> int:
        """Nothing grows."""
        return 0

    def make_room(self, world: Any, needed: int) -> None:
        """Nothing was short."""

    def metrics(self) -> dict[str, float]:
        """Nothing besides the iterations."""
        return {}

    def iterations_used(self) -> int:
        """Iterations since the last call."""
        return int(take(self.counter)[1])
