"""The numbers of a material that may change in time, and how they change: keyframes, as solids have them.

    [material.ice]
    preset = "ice cream"
    changes = [{ time = 2 }, { time = "5 s", viscosity = "0.3 Pa s", yield_strain = 0.001 }]

A property has its value of the material at the start, and that of each keyframe at its time; a keyframe that leaves it out
keeps what was before. What it is at a moment depends on the time alone, so a run that is resumed has the same bits.
"""

import itertools
import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from viscoil.model import Model, Problem
from viscoil.units import Quantity, Slider, Time

Viscosity = Annotated[float, Quantity("viscosity", at_least=0), Slider(0.1, 1e4, log=True)]  # [Pa s]
RelaxationTime = Annotated[
    float, Quantity("time", at_least=0, infinite=True), Slider(1e-3, 10, log=True, off=True)
]  # [s], inf: a solid
Modulus = Annotated[float, Quantity("modulus", above=0), Slider(1, 1e6, log=True)]  # [Pa]
SolventViscosity = Annotated[float, Quantity("viscosity", at_least=0), Slider(1e-3, 1e3, log=True, off=True)]  # [Pa s]
YieldStrain = Annotated[float, Quantity("number", above=0), Slider(0.01, 3, log=True)]
Mobility = Annotated[float, Quantity("number", at_least=0, at_most=0.5), Slider(0, 0.5)]
Extensibility = Annotated[float, Quantity("number", above=3, at_most=20), Slider(4, 20)]
SurfaceTension = Annotated[float, Quantity("surface tension", at_least=0), Slider(0, 0.1)]  # [N/m]
Friction = Annotated[
    float, Quantity("number", at_least=0, infinite=True, words=(("no-slip", math.inf),)), Slider(0, 2)
]
Stickiness = Annotated[float, Quantity("number", at_least=0, at_most=1), Slider(0, 1)]

Interpolation = Literal["log", "linear", "smooth"]
BY_FACTORS = frozenset({"viscosity", "relaxation_time", "modulus", "solvent_viscosity", "yield_strain"})  # span decades


class Change(Model):
    """What a material is like from one moment on; between two moments it is interpolated."""

    time: Time
    """moment [s]"""
    viscosity: Viscosity | None = None
    """η [Pa s]; like all that follow: left out, as in the keyframe before"""
    relaxation_time: RelaxationTime | None = None
    """λ [s]"""
    modulus: Modulus | None = None
    """G [Pa]"""
    solvent_viscosity: SolventViscosity | None = None
    """η_s [Pa s]"""
    yield_strain: YieldStrain | None = None
    """strain from which it flows [1]"""
    mobility: Mobility | None = None
    """α of Giesekus [1]"""
    extensibility: Extensibility | None = None
    """b of FENE-P [1]"""
    surface_tension: SurfaceTension | None = None
    """against air [N/m]"""
    friction: Friction | None = None
    """Coulomb coefficient at solids [1]"""
    stickiness: Stickiness | None = None
    """how strongly it clings to solids, 0 to 1"""


CHANGING = tuple(name for name in Change.model_fields if name != "time")


def changed_names(changes: Iterable[Change]) -> list[str]:
    """Properties that some keyframe names."""
    return [name for name in CHANGING if any(getattr(change, name) is not None for change in changes)]


def between(start: float, end: float, share: float, name: str, interpolation: str) -> float:
    """The value of a property at a ``share`` (0 to 1) of the way from one keyframe to the next.

    "log": equal factors in equal times for what spans decades (viscosities, times, moduli, strains), as much per second for
    the rest and where one end is 0; "linear": as much per second for all; "smooth": as "log", eased in and out
    (3s² − 2s³). From or to infinity there is no way: the value jumps at the later keyframe.
    """
    if share <= 0 or start == end or math.isinf(start) or math.isinf(end):
        return start
    if interpolation == "smooth":
        share = share * share * (3 - 2 * share)
    if interpolation != "linear" and name in BY_FACTORS and start > 0 and end > 0:
        return start * (end / start) ** share
    return start + share * (end - start)


def values_at(item: Any, changes: list[Change], interpolation: str, time: float) -> dict[str, float]:
    """Values at a moment [s] of those properties of ``item`` that change."""
    values = {}
    for name in changed_names(changes):
        value = getattr(item, name)
        stops = [(0.0, value)]
        for change in changes:  # what a keyframe leaves out stays as it was
            value = value if getattr(change, name) is None else getattr(change, name)
            stops.append((change.time, value))
        values[name] = stops[-1][1]
        for (begin, before), (end, after) in itertools.pairwise(stops):
            if time < end:
                values[name] = between(before, after, (time - begin) / (end - begin), name, interpolation)
                break
    return values


def problems_of(item: Any, changes: list[Change]) -> list[Problem]:
    """What is wrong with keyframes beside the material they belong to."""
    found = []
    for name in changed_names(changes):
        first = next(k for k, change in enumerate(changes) if getattr(change, name) is not None)
        if getattr(item, name) is None:
            text = f"{name} changes, but the material has none at the start; expected {name} in the material, too"
            found.append(Problem(f"changes.{first}.{name}", text, f"{name} in the material"))
    for number, change in enumerate(changes):
        if change.relaxation_time == math.inf and getattr(item, "modulus", None) is None:
            text = "an infinite relaxation_time is an elastic solid: expected a material with modulus instead of viscosity"
            found.append(Problem(f"changes.{number}.relaxation_time", text, "a material with modulus"))
        if number and change.time <= changes[number - 1].time:
            before = changes[number - 1].time
            text = f"expected keyframes in order of time; got {change.time:g} s after {before:g} s"
            found.append(Problem(f"changes.{number}.time", text, "keyframes in order of time"))
    return found
