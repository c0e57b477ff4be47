"""Rigid bodies made of particles float as deep as Archimedes says: the share of a body under water is its relative density.

Particles of a body keep the same distance from fluid as fluid from itself, so a body displaces its own volume and needs no
correction of its size.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least
from viscoil.validation.cluster_impact import D, members, scene

EDGE = 7  # of the boxes, in spacings: three supports of PBF
DENSITIES = (0.3, 0.6, 0.9, 1.5)  # relative
ROOM = 12  # of the tank for each of them, in spacings
DEPTH = 13  # of the water, in spacings


def _level(x: np.ndarray, bodies: list[np.ndarray]) -> float:
    """Height of the water's surface away from the bodies [m]: mean of the highest particles of columns, and half a spacing."""
    free = np.ones(len(x), bool)
    for body in bodies:
        away = np.abs(x[:, [0, 2]] - body.mean(0)[[0, 2]]).max(1)
        free &= away > (EDGE / 2 + 1.5) * D
    x = x[free]
    cell = np.floor(x[:, 0] / (1.5 * D)).astype(int) * 1000 + np.floor(x[:, 2] / (1.5 * D)).astype(int)
    tops = [x[cell == c, 1].max() for c in np.unique(cell)]
    return float(np.median(tops) + D / 2)


def _floating(trial: Trial, method: str, frames: int) -> dict[float, list[float]]:
    """Shares of each body under water, frame by frame."""
    number = len(DENSITIES)
    wide, side, water = number * ROOM * D, ROOM * D, DEPTH * D
    bodies = [
        {
            "kind": "rigid", "density": 1000.0 * ratio, "stickiness": "slip",
            "shape": {
                "type": "box", "size": (EDGE * D,) * 3,
                "position": ((k - (number - 1) / 2) * ROOM * D, water + (0.5 - min(ratio, 1.0)) * EDGE * D, 0.0),
            },
        }
        for k, ratio in enumerate(DENSITIES)
    ]  # fmt: skip
    fluid = {"material": "water", "shape": {"type": "box", "size": (wide, water, side), "position": (0, water / 2, 0)}}
    tank = {"container": True, "shape": {"type": "box", "size": (wide, 2.0, side), "position": (0, 1.0, 0)}}
    sim = trial.simulation(scene(method, 9.81, frames, fluid=[fluid], solid=[tank], particle_solid=bodies))
    shares: dict[float, list[float]] = {ratio: [] for ratio in DENSITIES}
    for _ in sim.frames():
        places = [members(sim, k, "position") for k in range(number)]
        level = _level(members(sim, -1, "position"), places)
        for ratio, x in zip(DENSITIES, places, strict=True):
            # A particle stands for a cell of its size: it is under water by as much of that as lies below the level.
            shares[ratio].append(float(np.clip((level - x[:, 1]) / D + 0.5, 0, 1).mean()))
    return shares


def _measure(trial: Trial) -> Outcome:
    checks, data = [], {}
    for method in ("pbf",) if trial.quick else ("pbf", "dcpbd"):
        shares = _floating(trial, method, 60 if trial.quick else 150)
        data[method] = shares
        for ratio in DENSITIES[:-1]:
            found = float(np.mean(shares[ratio][-20:]))
            checks.append(Check(f"{method}: share under water, density {ratio:g}", found, ratio, 0.1))
        checks.append(at_least(f"{method}: share under water, density 1.5", shares[1.5][-1], 0.99))
    return Outcome(checks, data)


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import GREY, axes

    drawing = axes(figure, "time [s]", "share of the body under water")
    for method, shares in outcome.data.items():
        for ratio, values in shares.items():
            drawing.plot(np.arange(len(values)) / 60, values, label=f"{method}, density {ratio:g}")
            drawing.axhline(min(ratio, 1.0), color=GREY, linestyle="--", linewidth=0.8)
    drawing.legend(fontsize=8)


def _heavy(scene: dict[str, Any], number: int) -> None:
    for body in scene["particle_solid"]:
        body["density"] *= 1.5


CASE = Case(
    name="cluster_floating",
    measures="Rigid bodies made of particles float: how deep",
    source="Archimedes' principle",
    measure=_measure,
    mutation=Mutation("bodies are 1.5 times as heavy", _heavy),
    plot=_plot,
)
