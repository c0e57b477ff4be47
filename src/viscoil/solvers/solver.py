"""What every solver is: parameters, scratch memory, and a ``step`` that reads like its paper's algorithm."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Annotated, Any, Literal, Protocol

from viscoil import backend
from viscoil.model import Model
from viscoil.units import Count, NonNegativeNumber, PositiveNumber, Quantity  # noqa: F401  (re-exported to solvers)


class SolverParams(Model):
    """Keys every [solver] table has."""

    support: Annotated[float, Quantity("number", at_least=1.5, at_most=4.0)] = 2.3
    """support radius h of the smoothing kernels, in particle spacings"""
    margin: Annotated[float, Quantity("number", at_least=0.0, at_most=0.5)] = 0.0
    """neighbours are listed within (1 + margin) h: a list that stays good while particles move in the iterations"""
    contact_radius: Annotated[float, Quantity("number", above=0.0, at_most=1.0)] = 0.5
    """distance kept from solids, in particle spacings"""


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

    def __init__(self, params: Any, world: Any) -> None: ...

    def resize(self, capacity: int) -> None:
        """Scratch memory for ``capacity`` particles."""

    def step(self, world: Any, dt: float) -> None:
        """Advances ``world`` by ``dt`` seconds. Launches work; does not wait for the device."""

    def iterations_used(self) -> int:
        """Iterations since the last call (waits for the device)."""


SmoothingName = Literal["poly6", "spiky", "cubic"]
