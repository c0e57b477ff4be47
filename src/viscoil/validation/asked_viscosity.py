"""Asked against measured viscosity over four decades, two time steps, two resolutions.

From a lattice: disordered particles that slide past each other lose energy of their own, as much as about 0.3 Pa s would take
at this size and speed, which hides the thinnest fluid. Order costs up to 10 % of the viscosity (friction.pair_factor).
"""

from itertools import product
from typing import Any

import numpy as np

from viscoil.io.acted import ENOUGH
from viscoil.validation import shear_wave
from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.shear_wave import LENGTH, RHO

ASKED = (0.1, 1.0, 10.0, 100.0, 1000.0)  # Pa s
TOLERANCE = 0.2  # relative


def _measured(trial: Trial, viscosity: float, cells: int, shorter: int) -> tuple[float, float]:
    """(viscosity from the decay of a wave [Pa s], share that the run says has acted)."""
    k = 2 * np.pi / LENGTH
    # About one decay time in 15 frames; thin fluids are watched for a second and decay by less.
    frame = min(1 / 15, RHO / viscosity / k**2 / 15)
    scene = shear_wave.scene((0.0, viscosity, 0.0), cells, frame / 4, 15, jitter=0.0)
    scene["time"]["steps_per_frame"] = 4 * shorter
    sim = trial.simulation(scene)
    t, amplitude = shear_wave.decay(sim)
    rate = -np.polyfit(t, np.log(np.maximum(amplitude, 1e-6)), 1)[0]
    return rate / k**2 * RHO, float(sim.metrics()["viscosity_share"])


def _measure(trial: Trial) -> Outcome:
    variants = [(20, 1), (20, 4), (40, 1)] if not trial.quick else [(16, 1), (16, 4), (32, 1)]
    asked = ASKED if not trial.quick else ASKED[::2]
    rows, errors = [], []
    for eta, (cells, shorter) in product(asked, variants):
        measured, share = _measured(trial, eta, cells, shorter)
        rows.append((eta, cells, shorter, measured, share))
        errors += [abs(measured / eta - 1)] if share >= ENOUGH else []
        largest = at_most("largest error of the unflagged, share of the asked", max(errors, default=np.inf), TOLERANCE)
        if errors and trial.noticed([largest]):
            break
    checks = [largest, at_least("runs not flagged, share", len(errors) / len(rows), 1.0)]
    return Outcome(checks, {"rows": rows})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, axes

    picture = axes(figure, "asked [Pa s]", "measured / asked")
    variants = sorted({row[1:3] for row in outcome.data["rows"]})
    for (cells, shorter), colour in zip(variants, (BLUE, ORANGE, GREEN), strict=True):
        mine = [row for row in outcome.data["rows"] if row[1:3] == (cells, shorter)]
        label = f"{cells} particles per wave, Δt{f'/{shorter}' if shorter > 1 else ''}"
        picture.semilogx([r[0] for r in mine], [r[3] / r[0] for r in mine], "o-", color=colour, label=label)
    picture.axhspan(1 - TOLERANCE, 1 + TOLERANCE, color=GREY, alpha=0.15)
    picture.set_ylim(0.5, 1.5)
    picture.legend()


def _thinner(scene: dict[str, Any], number: int) -> None:
    scene["material"]["fluid"]["viscosity"] /= 1.5


CASE = Case(
    name="asked_viscosity",
    measures="Viscosity from the decay of a shear wave, 0.1 to 1000 Pa s, two time steps, two resolutions",
    source="what the scene asks for",
    measure=_measure,
    mutation=Mutation("viscosity / 1.5", _thinner),
    plot=_plot,
)
