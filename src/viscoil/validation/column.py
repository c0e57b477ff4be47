"""A column of water at rest: how much it is compressed by its own weight, against solver iterations."""

from itertools import pairwise
from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most

SPACING = 0.02
HIGH = 20  # particles


def _scene(quick: bool, iterations: int) -> dict[str, Any]:
    width, height = (6 if quick else 10) * SPACING, HIGH * SPACING
    return {
        "spacing": SPACING,
        "time": {"frames": 60, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "pbf", "iterations": iterations, "unilateral": True, "artificial_pressure": 0.0},
        "fluid": [
            {"shape": {"type": "box", "size": (width, height, width), "position": (0, height / 2, 0)}, "material": "water"}
        ],
        "solid": [
            {"shape": {"type": "box", "size": (width, 4 * height, width), "position": (0, 2 * height, 0)}, "container": True}
        ],
    }


def _settle(trial: Trial, iterations: int) -> dict[str, Any]:
    sim = trial.simulation(_scene(trial.quick, iterations))
    rows = []
    for _ in sim.frames():
        rows.append(sim.metrics())
    late = rows[-10:]
    mass = 1000 * SPACING**3 * rows[-1]["particles"]
    potential = mass * 9.81 * HIGH * SPACING / 2
    return {
        "time": [r["time"] for r in rows],
        "compression": [r["compression"] for r in rows],
        "rest": float(np.mean([r["compression"] for r in late])),
        "energy": float(np.mean([r["kinetic_energy"] for r in late])) / potential,
        "sunk": 1 - late[-1]["centre_of_mass_y"] / (HIGH * SPACING / 2),
    }


def _measure(trial: Trial) -> Outcome:
    runs = {n: _settle(trial, n) for n in ((2, 4, 10) if trial.quick else (1, 2, 4, 10, 20))}
    rest = [r["rest"] for r in runs.values()]
    worst_ratio = max(b / a for a, b in pairwise(rest))
    checks = [
        Check("mean compression at 10 iterations", runs[10]["rest"], 0.0, 0.01),
        at_most("compression from one iteration count to the next, worst ratio", worst_ratio, 0.9),
        Check("kinetic energy at rest / potential energy, 10 iterations", runs[10]["energy"], 0.0, 1e-3),
    ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, RED, axes, plain_numbers

    runs = outcome.data["runs"]
    left = axes(figure, "time [s]", "mean compression [%]", (1, 2, 1))
    right = axes(figure, "iterations per step", "mean compression at rest [%]", (1, 2, 2))
    for number, (count, run) in enumerate(runs.items()):
        left.plot(run["time"], 100 * np.array(run["compression"]), color=BLUE, alpha=0.3 + 0.7 * number / len(runs),
                  label=f"{count} iterations")  # fmt: skip
    right.loglog(list(runs), [100 * r["rest"] for r in runs.values()], "o-", color=BLUE)
    right.axhline(1, color=RED, linestyle="--", label="tolerance at 10")
    plain_numbers(right, "x", "y")
    left.legend()
    right.legend()


def _one_iteration(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["iterations"] = 1


CASE = Case(
    name="column",
    measures="Mean compression of a resting column 20 particles high (Δt = 4 ms, d = 2 cm)",
    source="incompressible hydrostatics: compression 0, rest; Jacobi iterations approach it slowly (Macklin & Müller 2013, §9)",
    measure=_measure,
    mutation=Mutation("solver iterations cut to 1", _one_iteration),
    plot=_plot,
)
