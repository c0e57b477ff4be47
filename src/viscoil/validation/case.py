"""What a validation case is: a measurement, a reference with its source, a tolerance, a mutation and a picture.

A case lives in a file of its own beside this one and ends with ``CASE = Case(...)``; nothing else has to be registered.
Its ``measure`` builds scenes through the :class:`Trial` it is given and returns an :class:`Outcome`. The trial is where a
mutation enters: it changes the scene's public parameters (a dropped term, a density × 1.5) before anything is simulated,
and the case must then fail. What cannot fail proves nothing.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from viscoil.simulate import Simulation

Change = Callable[[dict[str, Any], int], None]
Relation = Literal["near", "at most", "at least"]


@dataclass(frozen=True)
class Check:
    """One number held against its reference."""

    quantity: str
    """what was measured, with its unit"""
    measured: float
    reference: float
    tolerance: float = 0.0
    """absolute, in the unit of the quantity"""
    relation: Relation = "near"
    """near: |measured − reference| ≤ tolerance; at most, at least: one side only"""

    @property
    def ok(self) -> bool:
        """Whether the number is where it should be; what is not finite never is."""
        if not math.isfinite(self.measured):
            return False
        difference = self.measured - self.reference
        if self.relation == "at most":
            return difference <= self.tolerance
        if self.relation == "at least":
            return difference >= -self.tolerance
        return abs(difference) <= self.tolerance


def at_most(quantity: str, measured: float, limit: float) -> Check:
    """A number that must not lie above ``limit``."""
    return Check(quantity, float(measured), limit, 0.0, "at most")


def at_least(quantity: str, measured: float, limit: float) -> Check:
    """A number that must not lie below ``limit``."""
    return Check(quantity, float(measured), limit, 0.0, "at least")


@dataclass(frozen=True)
class Outcome:
    """Everything a case found out."""

    checks: list[Check]
    data: dict[str, Any] = field(default_factory=dict)
    """curves for the plot"""


@dataclass(frozen=True)
class Mutation:
    """A fault put in on purpose."""

    name: str
    change: Change
    """changes a scene (nested tables, in place); called with the scene and its number within the case"""


class Trial:
    """One run of a case: builds its simulations on the chosen device, mutated or not."""

    def __init__(self, quick: bool = True, device: str = "auto", mutation: Mutation | None = None):
        self.quick = quick
        self.device = device
        self.mutation = mutation
        self._built = 0

    def simulation(self, scene: dict[str, Any]) -> "Simulation":
        """The scene (nested tables, as in a TOML file), ready to be stepped."""
        from viscoil.scene.schema import Scene
        from viscoil.simulate import Simulation

        scene = deepcopy(scene)
        if self.mutation:
            self.mutation.change(scene, self._built)
        self._built += 1
        return Simulation(Scene(**scene), device=self.device)

    def noticed(self, checks: list[Check]) -> bool:
        """Whether the fault that was put in shows in these already: more simulations would not make the case fail more."""
        return self.mutation is not None and not all(check.ok for check in checks)


@dataclass(frozen=True)
class Case:
    """A known solution, and how to tell that we reproduce it."""

    name: str
    measures: str
    """what is measured"""
    source: str
    """where the reference comes from"""
    measure: Callable[[Trial], Outcome]
    mutation: Mutation
    """under which the case must fail"""
    plot: Callable[[Outcome, Any], None]
    """draws an outcome into a matplotlib figure"""

    def run(self, quick: bool = True, device: str = "auto", mutated: bool = False) -> Outcome:
        """Measures; ``mutated`` puts the fault in first."""
        return self.measure(Trial(quick, device, self.mutation if mutated else None))


@dataclass(frozen=True)
class Result:
    """A row of the table ``viscoil validate`` prints."""

    case: str
    measured: float
    reference: float
    tolerance: float
    ok: bool
    name: str = ""
    """of the case alone"""
    quantity: str = ""
    relation: str = "near"
    source: str = ""
    plot: str = ""
    """file, when one was drawn"""


def results(case: Case, outcome: Outcome, plot: str = "") -> list[Result]:
    """The rows of one outcome."""
    signs = {"near": "", "at most": " (at most)", "at least": " (at least)"}
    return [
        Result(
            f"{case.name}: {check.quantity}{signs[check.relation]}", check.measured, check.reference, check.tolerance,
            check.ok, case.name, check.quantity, check.relation, case.source, plot,
        )
        for check in outcome.checks
    ]  # fmt: skip


def setting(key: str, value: Any) -> Change:
    """A change that sets one dotted key of every scene, e.g. ``setting("solver.kernels", "paper")``."""

    def change(scene: dict[str, Any], number: int) -> None:
        *tables, last = key.split(".")
        for name in tables:
            scene = scene.setdefault(name, {})
        scene[last] = value

    return change
