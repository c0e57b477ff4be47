"""A viscous beam spinning in empty space: conformation constraints beside the viscosity of Peer et al. inside PBF (Fig. 3).

The paper's claim: Peer's method constrains velocities, but cannot keep positions from drifting in a PBF simulation. Here too,
for a reason that can be named. Particles of a turning beam move along straight lines, so the beam dilates a little in every
step, and that shows in the velocity gradient. Conformation constraints resist all of it; Peer's goal takes out the shear and
keeps the change of volume, which adds up. Where the density constraint acts on compression only, the beam flies apart like
dust, at any time step: 40 % longer after half a second. Where it also pulls, its thin surface draws the beam together.

With plain gradients, as Peer's method was published, the beam does not drift because it does not turn: its surface looks
sheared to them, and the rotation is gone within a tenth of a second. The curve is in the plot.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.spinning_block import rigid_deviation

SPACING = 0.025
SPIN = 2.0  # rad/s
VISCOSITY = 1e4  # Pa s, of the conformation constraints; Peer's method runs at its most viscous, ξ = 0
METHODS = {
    "conformation constraints": {"method": "dcpbd"},
    "Peer, compression only": {"method": "peer_pbf"},
    "Peer, density both ways": {"method": "peer_pbf", "unilateral": False},
    "Peer, plain gradients": {"method": "peer_pbf", "gradients": "plain"},
}


def _scene(solver: dict[str, Any], quick: bool) -> dict[str, Any]:
    cells = (24, 4, 4) if quick else (48, 8, 8)
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": 30 if quick else 60, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": solver,
        "material": {"m": {"density": 1000.0, "viscosity": VISCOSITY}},
        "fluid": [
            {"material": "m", "shape": {"type": "box", "size": [n * SPACING for n in cells]}, "angular_velocity": (0, SPIN, 0)}
        ],
    }


def _measure(trial: Trial) -> Outcome:
    curves = {}
    for name, solver in METHODS.items():
        frames = list(trial.simulation(_scene(solver, trial.quick)).frames())
        x, v = (np.array([f[field] for f in frames], float) for field in ("position", "velocity"))
        momentum = np.linalg.norm(np.cross(x - x.mean(1, keepdims=True), v).sum(1), axis=1)
        deviation = np.array([rigid_deviation(x[0], now) for now in x]) / SPACING
        curves[name] = (np.array([f.time for f in frames]), momentum / momentum[0], deviation)
    (_, spin, ours), (_, _, one), (_, _, both), (_, plain, _) = curves.values()
    half = len(ours) // 2 if not trial.quick else len(ours) - 1  # half a second
    checks = [
        at_most("conformation constraints: deviation from a rigid beam after 0.5 s [d]", ours[half], 0.05),
        at_least("conformation constraints: angular momentum after 0.5 s, share of the start", spin[half], 0.97),
        at_least("Peer, compression only: deviation, in that of conformation constraints", one[half] / ours[half], 10.0),
        at_least("Peer, density both ways: deviation, in that of conformation constraints", both[half] / ours[half], 10.0),
        at_most("Peer, plain gradients: angular momentum after 0.5 s, share of the start", plain[half], 0.1),
    ]
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, RED, axes

    left = axes(figure, "time [s]", "angular momentum / its start", (1, 2, 1))
    right = axes(figure, "time [s]", "deviation from a rigid beam [d]", (1, 2, 2))
    for (name, (t, momentum, deviation)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE, RED, GREY), strict=True):
        left.plot(t, momentum, color=colour, label=name)
        right.plot(t, deviation, color=colour, label=name)
    left.set_ylim(0, 1.1)
    right.legend(fontsize=8)


def _soft(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"]["viscosity"] = 1.0


CASE = Case(
    name="beam",
    measures="Spinning viscous beam, beside Peer's viscosity inside PBF: shape, angular momentum",
    source="Barreiro et al. 2017, Fig. 3",
    measure=_measure,
    mutation=Mutation("hardly any viscosity", _soft),
    plot=_plot,
)
