"""The viscosity XSPH has, against the one the material asked for: a shear wave in a periodic block decays as e^(−ηk²t/ρ)."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.takahashi import RHO, STEP, D, block, wave

VISCOSITIES = (10.0, 40.0)  # Pa s
SPEED = 0.002  # of the wave [m/s]: layers of the lattice must not slip past each other, which has a friction of its own


def _decay(trial: Trial, viscosity: float, step: float = STEP) -> tuple[float, Any]:
    """Viscosity [Pa s] from the rate at which the wave's first mode decays, and the wave."""
    cells = 12 if trial.quick else 24
    k = 2 * np.pi / (cells * D)
    material = {"viscosity": viscosity} if viscosity else {}
    sim = trial.simulation(block((7, cells, 7), {"correction": "none", "tolerance": 0.0, "iterations": 4}, material, step))
    until = min(1.0 * RHO / (max(viscosity, 10.0) * k * k), 0.3 if trial.quick else 1.0)
    t, a = wave(sim, (0, k, 0), (1, 0, 0), SPEED, until)
    return float(-np.polyfit(t, np.log(np.maximum(a, 1e-9)), 1)[0] / k**2 * RHO), (t, a)


def _measure(trial: Trial) -> Outcome:
    checks, curves = [], {}
    own, curves["none asked for"] = _decay(trial, 0.0)
    checks.append(at_most("viscosity nobody asked for [Pa s]", own, 0.5))
    for viscosity in VISCOSITIES:
        found, curve = _decay(trial, viscosity)
        half, _ = _decay(trial, viscosity, STEP / 2)
        curves[f"{viscosity:g} Pa s"] = curve
        checks.append(Check(f"viscosity, in the {viscosity:g} Pa s asked for", found / viscosity, 1.0, 0.05))
        checks.append(Check(f"the same at half the step, {viscosity:g} Pa s", half / viscosity, 1.0, 0.05))
    return Outcome(checks, {"curves": curves, "k": 2 * np.pi / ((12 if trial.quick else 24) * D)})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, axes

    picture = axes(figure, "time [s]", "amplitude of the shear wave / its start")
    colours, asked_for = (BLUE, ORANGE, GREEN), (0.0, *VISCOSITIES)
    for (name, (t, a)), colour, asked in zip(outcome.data["curves"].items(), colours, asked_for, strict=True):
        picture.plot(t, np.exp(-asked / RHO * outcome.data["k"] ** 2 * t), color=colour, label=f"{name}, exact")
        picture.plot(t, a, "o", color=colour, ms=3, label=f"{name}, measured")
    picture.legend()


def _thinner(scene: dict[str, Any], number: int) -> None:
    if "viscosity" in scene["material"]["m"]:
        scene["material"]["m"]["viscosity"] /= 2


CASE = Case(
    name="iisph_viscosity",
    measures="Viscosity of XSPH against the material's, from a decaying shear wave in a periodic block",
    source="one transverse mode of a Newtonian fluid, e^(−ηk²t/ρ)",
    measure=_measure,
    mutation=Mutation("half the viscosity", _thinner),
    plot=_plot,
)
