"""Couette flow: fluid between two plates, the upper one set in motion smoothly.

The plate's velocity rises as U(3r² − 2r³) within a tenth of a second or two, and the same rise goes into the reference. An
impulsive start would be a test of how a jump is smeared over a kernel, not of the fluid.

The reference is that of plates half a spacing further in, where the outermost layers of particles are: those go with the
plates, as fluid at a wall does (constraints/wall_friction.py). Against plates where they are drawn, the error grows by about
the speed that half a spacing makes; that is measured, too, and falls with the spacing.
"""

from typing import Any

import numpy as np

from viscoil.validation import channel
from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most

HEIGHT = 0.16  # m
SPEED = 0.2  # m/s
RISE = 0.2  # s
DURATION = 0.8  # s
FLUIDS: dict[str, channel.Fluid] = {"Newtonian": (0.0, 20.0, 0.0), "Oldroyd-B": (0.2, 20.0, 4.0), "Maxwell": (0.2, 20.0, 0.0)}
TOLERANCE = 0.1  # of the plate's speed


def wall(t: float) -> float:
    """Velocity of the upper plate [m/s]."""
    r = min(t / RISE, 1.0)
    return SPEED * (3 * r * r - 2 * r**3)


def _moved(t: float) -> float:
    """How far the plate has come [m]."""
    r = min(t / RISE, 1.0)
    return SPEED * (RISE * (r**3 - r**4 / 2) + max(t - RISE, 0.0))


def _measure(trial: Trial) -> Outcome:
    layers, step = (28, 1 / 240) if trial.quick else (40, 1 / 480)
    frames = round(DURATION / (4 * step))
    motion = [{"time": step * k, "position": (_moved(step * k), 0, 0)} for k in range(4 * frames + 1)]
    checks, curves = [], {}
    for name, fluid in FLUIDS.items():
        sim = trial.simulation(channel.scene(fluid, layers, HEIGHT, step, frames, motion=motion))
        t, y, u = channel.profiles(sim, HEIGHT, layers)
        d, y = HEIGHT / layers, y.mean(0)
        exact = channel.reference(fluid, HEIGHT - d, 0.0, wall, t, y - d / 2)
        drawn = channel.reference(fluid, HEIGHT, 0.0, wall, t, y)
        middle = [(u - e)[:, layers // 2 - 1 : layers // 2 + 1].mean(1) for e in (exact, drawn)]
        checks += [
            at_most(f"{name}: largest error of any layer at any time, in U", np.abs(u - exact).max() / SPEED, TOLERANCE),
            at_most(f"{name}: half-way between the plates, in U", np.abs(middle[0]).max() / SPEED, TOLERANCE / 2),
            at_most(f"{name}: the same with plates as drawn, in U", np.abs(middle[1]).max() / SPEED, TOLERANCE),
        ]
        curves[name] = (t, y, u / SPEED, exact / SPEED)
        if trial.noticed(checks):
            break
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    for place, (name, (t, y, u, exact)) in enumerate(outcome.data["curves"].items(), 1):
        picture = axes(figure, "velocity / U", "height [m]" if place == 1 else "", (1, 3, place))
        for moment, colour in zip((0.1, 0.2, 0.4, DURATION), (GREY, BLUE, ORANGE, RED), strict=True):
            k = int(np.argmin(np.abs(t - moment)))
            picture.plot(exact[k], y, color=colour, label=f"{t[k]:.1f} s")
            picture.plot(u[k], y, "o", color=colour, ms=3)
        picture.set_title(f"{name} (lines: exact)", fontsize=9, color=GREEN)
        picture.legend(fontsize=8)


def _thicker(scene: dict[str, Any], number: int) -> None:
    scene["material"]["fluid"]["viscosity"] *= 2


CASE = Case(
    name="couette",
    measures="Start-up of Couette flow between plates, Newtonian, Oldroyd-B and Maxwell",
    source="the one-dimensional equations of an Oldroyd-B fluid with the same moving wall, integrated numerically",
    measure=_measure,
    mutation=Mutation("twice the viscosity", _thicker),
    plot=_plot,
)
