"""Springs as velocities against springs as displacements (Takahashi et al. 2014, Figs. 5 and 6; Clavet et al. 2005).

The paper says that displaced particles make the pressure harder to solve. The mean number of iterations does not show it; what
does is stability: displacements at predicted places are stable for Δt²K/m < 4/3, velocity corrections for < 4, and springs of
1500 N/m (1900 in the small ball of the quick form, where fewer of them pull) lie between. Clavet's step is run in both readings
of how pressures follow displacements; steps stay 2 ms, which our own choice would shorten.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.press import loss, pressed, radius, table

METHODS: dict[str, dict[str, Any]] = {
    "velocity correction": {"method": "iisph"},
    "Clavet, reading 1": {"method": "clavet_iisph", "reading": 1},
    "Clavet, reading 2": {"method": "clavet_iisph", "reading": 2},
}
SOLVER = {"correction": "springs", "tolerance": 1e-4, "iterations": 300, "stability": 4.0}  # steps stay 2 ms


def _calm(run: dict[str, Any]) -> float:
    """Fastest particle while the plate presses at 1 m/s [m/s]; a run that failed has no such number."""
    return float("inf") if np.isfinite(run["failed"]) else float(run["speed"][run["pressing"]].max())


def _measure(trial: Trial) -> Outcome:
    soft, firm = 500.0, 1900.0 if trial.quick else 1500.0
    runs = {
        (name, k): pressed(trial.simulation(table(radius(trial), SOLVER | method | {"spring_stiffness": k}, release=False)))
        for k in (soft, firm)
        for name, method in METHODS.items()
    }
    ours, *theirs = METHODS
    most = 0.02 if trial.quick else 0.01  # a small ball is mostly surface
    checks = [
        at_most("500 N/m, velocity correction: volume lost, estimate", loss(runs[ours, soft])[0], most),
        at_most(f"{firm:g} N/m, velocity correction: fastest particle [m/s], plate 1 m/s", _calm(runs[ours, firm]), 15.0),
    ]
    for name in theirs:
        same = runs[name, soft]["working"] / runs[ours, soft]["working"]
        wild = min(_calm(runs[name, firm]), 1e3) / _calm(runs[ours, firm])
        checks += [
            Check(f"500 N/m, {name}: iterations, in the velocity correction's", same, 1.0, 0.25),
            at_least(f"{firm:g} N/m, {name}: fastest particle, in the velocity correction's (exploded: 1000 m/s)", wild, 1.5),
        ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, axes

    for place, k in enumerate(sorted({k for _, k in outcome.data["runs"]}), 1):
        picture = axes(figure, "time [s]", f"iterations per step, {k:g} N/m", (1, 2, place))
        for name, colour in zip(METHODS, (BLUE, ORANGE, GREEN), strict=True):
            run = outcome.data["runs"][name, k]
            picture.plot(run["time"], run["iterations"], color=colour, label=name, linewidth=1.2)
            if np.isfinite(run["failed"]):
                picture.plot(run["time"][-1], run["iterations"][-1], "x", color=colour, ms=9, label="exploded")
        picture.legend(fontsize=8)


def _soft(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["spring_stiffness"] = 100.0


CASE = Case(
    name="press_springs",
    measures="Pressure iterations and stability of a pressed ball, springs as velocities and as displacements (Figs. 5, 6)",
    source="Takahashi et al. 2014, Figs. 5 and 6; limits of stability of semi-implicit Euler, dt²K/m = 4, and of Clavet's, 4/3",
    measure=_measure,
    mutation=Mutation("springs of 100 N/m, which are stable with any method", _soft),
    plot=_plot,
)
