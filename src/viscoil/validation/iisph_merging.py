"""Two balls that collide (Takahashi et al. 2014, Fig. 8): with new bonds they stay together, without they part again.

No gravity, so that momentum is a number to hold against zero. Unlike stiffness on both sides, as in the figure.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.takahashi import RHO, D, scene

SPEED = 0.8  # of each ball [m/s]


def _table(trial: Trial, merge: float) -> dict[str, Any]:
    radius, frames = (4, 30) if trial.quick else (6, 60)
    gap = (radius + 0.5) * D
    fluids = [
        {"material": name, "velocity": (-side * SPEED, 0, 0),
         "shape": {"type": "sphere", "radius": radius * D, "position": (side * gap, 0, 0)}}
        for name, side in (("soft", -1), ("firm", 1))
    ]  # fmt: skip
    solver = {
        "correction": "position_based", "normalise": False, "merge_ratio": merge, "split_ratio": 0.5, "xsph": 0.05,
        "iterations": 20, "tolerance": 1e-3,
        "materials": {"soft": {"rigidity": 0.03}, "firm": {"rigidity": 0.1}},
    }  # fmt: skip
    kinds = {name: {"density": RHO} for name in ("soft", "firm")}
    return scene(frames, 10, solver, fluids, [], gravity=(0, 0, 0), material=kinds)


def _collide(trial: Trial, merge: float) -> dict[str, Any]:
    sim = trial.simulation(_table(trial, merge))
    frames = list(sim.frames())
    kind = frames[0]["material"]
    x, v = (np.array([frame[name] for frame in frames], float) for name in ("position", "velocity"))
    centres, speeds = ([values[:, kind == k].mean(1) for k in (0, 1)] for values in (x, v))
    i, j, _ = sim.solver.bonds(sim.world)
    return {
        "time": np.array([frame.time for frame in frames]),
        "apart": np.linalg.norm(centres[1] - centres[0], axis=1),
        "parting": (speeds[1] - speeds[0])[:, 0],
        "drift": np.linalg.norm(v.mean(1) - v[0].mean(0), axis=1),
        "crossing": int((kind[i] != kind[j]).sum()),
    }


def _measure(trial: Trial) -> Outcome:
    runs = {merge: _collide(trial, merge) for merge in (0.0, 0.6, 0.9)}
    none, most = runs[0.0], runs[0.9]
    again = most["apart"][most["apart"].argmin() :]
    checks = [
        at_least("β = 0: the balls part at [m/s]", none["parting"][-1], 0.4),
        at_least("β = 0: distance of the centres at the end, in that at the start", none["apart"][-1] / none["apart"][0], 1.0),
        Check("β = 0: bonds between the balls", none["crossing"], 0, 0),
        at_most("β = 0.9: the centres end closer than at the start, by a factor of", most["apart"][-1] / most["apart"][0], 0.9),
        at_most("β = 0.9: largest distance after they met, in that at the start", again.max() / most["apart"][0], 0.95),
        at_least("β = 0.9: bonds between the balls", most["crossing"], 150 if trial.quick else 300),
        at_most("drift of the mean velocity [m/s], worst run", max(run["drift"].max() for run in runs.values()), 2e-6),
    ]  # fmt: skip
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.clavet import curves
    from viscoil.validation.drawing import axes

    left = axes(figure, "time [s]", "distance of the balls' centres [m]", (1, 2, 1))
    right = axes(figure, "time [s]", "speed at which they part [m/s]", (1, 2, 2))
    for picture, name in ((left, "apart"), (right, "parting")):
        runs = outcome.data["runs"].items()
        curves(picture, [(f"β = {merge:g}: {run['crossing']} bonds", run["time"], run[name]) for merge, run in runs])


def _never(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["merge_ratio"] = 0.0


CASE = Case(
    name="iisph_merging",
    measures="Two balls that meet at 1.6 m/s without gravity: parting or not, momentum (Fig. 8)",
    source="Takahashi et al. 2014, Fig. 8: balls adhere where new connections are made; momentum is kept",
    measure=_measure,
    mutation=Mutation("no new bonds", _never),
    plot=_plot,
)
