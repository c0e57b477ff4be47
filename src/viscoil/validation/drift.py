"""Constraint drift (Barreiro et al. 2017, Fig. 6): a viscous cube dropped from 1.5 m, steps of 30 and 60 ms.

Drift is the root mean square distance to the best rigid placement of the undeformed cube, in particle spacings. The paper holds
80 iterations on velocities and 80 on positions against 160 on positions only, both of the published Jacobi kind and without
compliance. So is the accelerated solver, which needs a viscosity and gets 10⁵ Pa s; the printed algorithm is drawn beside them.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most
from viscoil.validation.spinning_block import rigid_deviation

SPACING = 0.025
DROP = 1.5  # m
STEPS = (0.03, 0.06)  # s
END = 1.2  # s; the impact is at 0.55 s
JACOBI = {"method": "dcpbd_jacobi", "compliance": 0.0, "relaxation_time": 0.0}
PRINTED = "as printed, 80 + 80"
VARIANTS: dict[str, dict[str, Any]] = {
    "velocities 80 + positions 80": {**JACOBI, "velocity_iterations": 80, "iterations": 80},
    "positions 160": {**JACOBI, "velocity_iterations": 0, "iterations": 160},
    PRINTED: {**JACOBI, "mode": "paper", "velocity_iterations": 80, "iterations": 80},
    "accelerated solver": {"method": "dcpbd"},
}


def scene(solver: dict[str, Any], cells: int, step: float) -> dict[str, Any]:
    """A cube of ``cells`` particles per edge, one step per frame."""
    edge = cells * SPACING
    shape = {"type": "box", "size": (edge, edge, edge), "position": (0, DROP + edge / 2, 0)}
    return {
        "spacing": SPACING,
        "time": {"frames": round(END / step), "frame_time": step, "steps_per_frame": 1},
        "solver": solver,
        "material": {"m": {"density": 1000.0, "viscosity": 1e5}},
        "fluid": [{"material": "m", "shape": shape}],
        "solid": [{"name": "floor", "friction": "no-slip", "shape": {"type": "plane"}}],
    }


def _curve(trial: Trial, solver: dict[str, Any], step: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and drift; it becomes infinite with the first step that explodes, whether or not shorter ones help."""
    from viscoil.errors import SimulationFailed

    sim = trial.simulation(scene(solver, 8 if trial.quick else 14, step))
    start, rows = sim.frame()["position"].astype(float), []
    try:
        for frame in sim.frames():
            exploded = sim.metrics()["retries"] > 0
            drift = rigid_deviation(start, frame["position"].astype(float)) / SPACING
            rows.append((frame.time, np.inf if exploded else drift))
            if exploded:
                break
    except SimulationFailed:
        rows.append((sim.time + step, np.inf))
    times, drifts = np.array(rows).T
    return times, drifts


def _measure(trial: Trial) -> Outcome:
    curves, checks, theirs = {}, [], "positions 160"
    shown = [name for name in VARIANTS if not (trial.quick and name == PRINTED)]  # which is only drawn
    for step in STEPS:
        curves |= {(name, step): _curve(trial, solver, step) for name, solver in VARIANTS.items() if name in shown}
        checks += [
            at_most(
                f"drift of {ours} at {1000 * step:.0f} ms [d], against {theirs}",
                curves[ours, step][1][-1],
                curves[theirs, step][1][-1],
            )
            for ours in ("velocities 80 + positions 80", "accelerated solver")
        ]
        if trial.noticed(checks):
            break
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, axes, plain_numbers

    for number, step in enumerate(STEPS, 1):
        picture = axes(figure, "time [s]", "drift [particle spacings]" if number == 1 else "", (1, 2, number))
        picture.set_title(f"Δt = {1000 * step:.0f} ms", fontsize=10)
        for name, colour in zip(VARIANTS, (BLUE, ORANGE, GREY, GREEN), strict=True):
            if (name, step) not in outcome.data["curves"]:
                continue
            t, drift = outcome.data["curves"][name, step]
            picture.semilogy(t, np.clip(drift, 1e-3, 1e3), color=colour, label=name)  # off the sheet: exploded
        picture.set_ylim(1e-3, 20)
        plain_numbers(picture, "y")
    figure.legend(*picture.get_legend_handles_labels(), loc="outside lower center", ncols=len(VARIANTS), fontsize=8)


def _blind(scene: dict[str, Any], number: int) -> None:
    if scene["solver"]["method"] == "dcpbd_jacobi":
        scene["solver"]["velocity_contact"] = False


CASE = Case(
    name="drift",
    measures="Deformation of a viscous cube after a drop of 1.5 m at steps of 30 and 60 ms, two projections against one",
    source="Barreiro et al. 2017, Fig. 6",
    measure=_measure,
    mutation=Mutation("no contact in the velocity projection", _blind),
    plot=_plot,
)
