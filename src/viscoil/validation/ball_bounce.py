"""A ball dropped onto the floor (Takahashi et al. 2014, Fig. 2): how high it comes back with the three velocity corrections.

Two pressure iterations, as published. Springs and position-based corrections are one method in two units, k_s = k_p m/(2Δt²):
their balls must move alike. Shape matching bounces highest when it is firm; at the modulus of the springs it does as they do.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.takahashi import MASS, STEP, D, ball, plate, scene

FALL = 0.3  # m
SCHEMES: dict[str, dict[str, Any]] = {
    "shape matching 0.3": {"correction": "shape_matching", "rigidity": 0.3},
    "shape matching 0.05": {"correction": "shape_matching", "rigidity": 0.05},
    "shape matching 0.165": {"correction": "shape_matching", "rigidity": 0.165},  # G = 26 kPa, as springs of 800 N/m
    # stability: in steps of 2 ms, as the others
    "springs 800 N/m": {"correction": "springs", "spring_stiffness": 0.1 * MASS / (2 * STEP**2), "stability": 4.0},
    "position-based 0.1": {"correction": "position_based", "rigidity": 0.1, "normalise": False},
}


def _drop(trial: Trial, solver: dict[str, Any]) -> dict[str, Any]:
    """Height of the centre over that of a ball at rest on the floor, in the height it fell; volume in the first."""
    size, frames = (4, 60) if trial.quick else (8, 100)
    settings = {"iterations": 2, "tolerance": 0.0, "xsph": 0.05, **solver}
    sim = trial.simulation(scene(frames, 5, settings, [ball(size, FALL)], [plate("floor", 2.5 * size * D, 0.0, True)]))
    t, height, volume = [], [], []
    for frame in sim.frames():
        row = sim.metrics()
        t.append(frame.time)
        height.append((row["centre_of_mass_y"] - size * D) / FALL)
        volume.append(row["volume"])
    height = np.array(height)
    lowest = int(height[: int(0.4 / 0.01)].argmin())
    return {"time": np.array(t), "height": height, "volume": np.array(volume) / volume[0], "back": float(height[lowest:].max())}


def _measure(trial: Trial) -> Outcome:
    runs = {name: _drop(trial, solver) for name, solver in SCHEMES.items()}
    firm, soft, alike, springs, pairs = runs.values()
    differ = np.abs(springs["height"] - pairs["height"]).max()
    checks = [
        at_most("springs and position-based: largest difference of heights, in the fall", differ, 1e-3),
        Check("position-based 0.1: rebound, in the fall", pairs["back"], 0.48, 0.2),
        Check("shape matching 0.3: rebound, in the fall", firm["back"], 0.75, 0.1),
        Check("shape matching 0.05: rebound, in the fall", soft["back"], 0.33, 0.1),
        Check("shape matching of the springs' modulus: rebound, in theirs", alike["back"] / springs["back"], 1.0, 0.15),
        at_least("firm shape matching keeps more height than position-based by", firm["back"] - pairs["back"], 0.05),
        at_least("and than soft shape matching by", firm["back"] - soft["back"], 0.05),
    ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.clavet import curves
    from viscoil.validation.drawing import axes

    runs = outcome.data["runs"].items()
    left = axes(figure, "time [s]", "height of the centre over rest / fall", (1, 2, 1))
    right = axes(figure, "time [s]", "volume (estimate) / its start", (1, 2, 2))
    for picture, key in ((left, "height"), (right, "volume")):
        curves(picture, [(name, run["time"], run[key]) for name, run in runs])


def _weak(scene: dict[str, Any], number: int) -> None:
    for key in ("rigidity", "spring_stiffness"):
        if key in scene["solver"]:
            scene["solver"][key] /= 10


CASE = Case(
    name="ball_bounce",
    measures="Rebound of a ball dropped 0.3 m, for the three velocity corrections at two pressure iterations (Fig. 2)",
    source="Takahashi et al. 2014, Fig. 2: shape matching bounces longest; heights of an independent NumPy study of the method",
    measure=_measure,
    mutation=Mutation("a tenth of the stiffness", _weak),
    plot=_plot,
)
