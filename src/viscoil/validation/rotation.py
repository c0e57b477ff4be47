"""Angular momentum of a free viscous block at 2 rad/s (Barreiro et al. 2017, Fig. 7), published Jacobi iterations.

The paper compares positions measured with and without the rotation of the neighbourhood. Plain gradients take a turning surface
for strain in the velocity projection as well, where nothing is corotational; corrected gradients do not, and at half a degree
per step make corotation unnecessary. Both are switched here, one at a time.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most

SPACING = 0.025
SPIN = 2.0  # rad/s
JACOBI = {"method": "dcpbd_jacobi", "compliance": 0.0, "relaxation_time": 0.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "corotational, corrected gradients": JACOBI,
    "neither": {**JACOBI, "corotational": False, "gradient_correction": "none"},
    "corotational, plain gradients": {**JACOBI, "gradient_correction": "none"},
    "corotational, plain gradients, positions only": {
        **JACOBI,
        "gradient_correction": "none",
        "velocity_iterations": 0,
        "iterations": 40,
    },
    "not corotational, corrected gradients": {**JACOBI, "corotational": False},
    "as printed": {**JACOBI, "mode": "paper"},
    "accelerated solver": {"method": "dcpbd"},
}


def _scene(solver: dict[str, Any], quick: bool) -> dict[str, Any]:
    cells = (12, 4, 6) if quick else (20, 5, 10)
    size = [n * SPACING for n in cells]
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": 60, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": solver,
        "material": {"m": {"density": 1000.0, "viscosity": 1e5}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size}, "angular_velocity": (0, SPIN, 0)}],
    }


def _measure(trial: Trial) -> Outcome:
    curves = {}
    best, worst, *_ = VARIANTS
    for name in (best, worst) if trial.quick else VARIANTS:  # the others are drawn beside them
        frames = list(trial.simulation(_scene(VARIANTS[name], trial.quick)).frames())
        x, v = (np.array([f[field] for f in frames], float) for field in ("position", "velocity"))
        momentum = np.linalg.norm(np.cross(x - x.mean(1, keepdims=True), v).sum(1), axis=1)
        curves[name] = (np.array([f.time for f in frames]), momentum / momentum[0])
    checks = [
        at_least(f"{best}: angular momentum after 1 s, share of the start", curves[best][1][-1], 0.95),
        at_most(f"{worst}: the same", curves[worst][1][-1], 0.5),
    ]
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    picture = axes(figure, "time [s]", "angular momentum / its start")
    styles = [(BLUE, "-"), (RED, "-"), (ORANGE, "-"), (ORANGE, ":"), (ORANGE, "--"), (GREY, "-"), (GREEN, "--")]
    for (name, (t, momentum)), (colour, line) in zip(outcome.data["curves"].items(), styles, strict=False):
        picture.plot(t, momentum, line, color=colour, label=name)
    picture.set_ylim(0, 1.05)
    picture.legend(fontsize=8)


def _damped(scene: dict[str, Any], number: int) -> None:
    if scene["solver"]["method"] == "dcpbd_jacobi":
        scene["solver"] |= {"corotational": False, "gradient_correction": "none"}


CASE = Case(
    name="rotation",
    measures="Angular momentum of a viscous block at 2 rad/s after a second, with and without corotation",
    source="Barreiro et al. 2017, Fig. 7; limits of our specification",
    measure=_measure,
    mutation=Mutation("neither corotational nor corrected", _damped),
    plot=_plot,
)
