"""Poiseuille flow: fluid between two plates, pushed along by a constant force from rest.

Waters & King 1970 solved it for an Oldroyd-B fluid. With the half gap h, Y = (y − h)/h, T = t/λ, E = λη₀/(ρh²), β = η_s/η₀
and u in units of the steady mean velocity ρfh²/(3η₀),

    u = 1.5(1 − Y²) − 48 Σ sin(n(1 + Y)/2)/n³ e^(−αT/2) [cosh(bT/2) + (c/b) sinh(bT/2)],   n = π, 3π, 5π, …
    α = 1 + βEn²/4,   b² = α² − En²,   c = 1 − (2 − β)En²/4

An elastic fluid overshoots, because it flows freely until stress has built up. With λ → 0 this is Newton's fluid.

The plates of the reference are half a spacing further in than those of the scene, where the outermost layers of particles are:
those go with the wall (constraints/wall_friction.py). Against plates as drawn the flow is slower, because it goes with the
square of the gap; that is measured, too, and falls with the spacing.
"""

from typing import Any

import numpy as np

from viscoil.validation import channel
from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.channel import RHO

HEIGHT = 0.16  # m, the whole gap
FORCE = 2.0  # m/s²
FLUIDS: dict[str, channel.Fluid] = {"Newtonian": (0.0, 20.0, 0.0), "Oldroyd-B": (0.3, 20.0, 2.0)}
DURATION = {"Newtonian": 0.6, "Oldroyd-B": 1.2}  # s


def waters_king(t: np.ndarray, y: np.ndarray, fluid: channel.Fluid, height: float, force: float) -> np.ndarray:
    """u(t, y) [m/s] of the docstring; y from 0 to ``height``."""
    lam, whole, solvent = max(fluid[0], 1e-6), fluid[1] / RHO, fluid[2] / RHO
    half = height / 2
    beta = solvent / whole if fluid[0] else 1.0  # Newton's fluid is all solvent, whatever λ is
    e = lam * whole / half**2
    place, time = (np.asarray(y) - half) / half, np.asarray(t)[:, None] / lam
    u = np.broadcast_to(1.5 * (1 - place**2), (len(time), len(place))).copy()
    for n in np.arange(1, 200, 2) * np.pi:
        a = 1 + beta * e * n * n / 4
        b = np.sqrt(complex(a * a - e * n * n))
        c = 1 - (2 - beta) * e * n * n / 4
        # (cosh + c/b sinh) e^(−aT/2) as two exponentials that both decay: cosh alone would overflow
        plus, minus = np.exp((b - a) * time / 2), np.exp((-b - a) * time / 2)
        u -= (48 * np.sin(n * (1 + place) / 2) / n**3) * np.real((plus + minus) / 2 + c / b * (plus - minus) / 2)
    return u * force * half**2 / (3 * whole)


def peak(t: np.ndarray, u: np.ndarray) -> float:
    """When u is largest [s], from a parabola through the highest three points."""
    k = int(np.clip(np.argmax(u), 1, len(u) - 2))
    before, top, after = u[k - 1 : k + 2]
    return float(t[k] + 0.5 * (t[1] - t[0]) * (before - after) / (before - 2 * top + after))


def _measure(trial: Trial) -> Outcome:
    layers, step = (28, 1 / 240) if trial.quick else (40, 1 / 480)
    checks, curves = [], {}
    for name, fluid in FLUIDS.items():
        frames = round(DURATION[name] / (4 * step))
        sim = trial.simulation(channel.scene(fluid, layers, HEIGHT, step, frames, force=FORCE))
        t, y, u = channel.profiles(sim, HEIGHT, layers)
        d, y = HEIGHT / layers, y.mean(0)
        exact, drawn = waters_king(t, y - d / 2, fluid, HEIGHT - d, FORCE), waters_king(t, y, fluid, HEIGHT, FORCE)
        checked = channel.reference(fluid, HEIGHT, FORCE, lambda _: 0.0, t, y)
        axis = slice(layers // 2 - 1, layers // 2 + 1)
        centre, ideal, wider = (values[:, axis].mean(1) for values in (u, exact, drawn))
        errors = [np.abs(values).max() / ideal.max() for values in (centre - ideal, centre - wider, drawn - checked)]
        checks += [
            at_most(f"{name}: largest error on the centre line, share of its peak", errors[0], 0.15),
            at_most(f"{name}: the same with plates as drawn", errors[1], 0.15),
            at_most(f"{name}: series against finite differences, share of the peak", errors[2], 0.005),
        ]
        if fluid[0]:
            when = peak(t, ideal)
            checks.append(Check(f"{name}: time of the overshoot [s]", peak(t, centre), when, 0.1 * when))
        curves[name] = (t, y, u, exact, centre, ideal)
        if trial.noticed(checks):
            break
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    left = axes(figure, "time [s]", "velocity on the centre line [m/s]", (1, 2, 1))
    right = axes(figure, "height [m]", "velocity [m/s]", (1, 2, 2))
    for (name, (t, y, u, exact, centre, ideal)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE), strict=True):
        left.plot(t, ideal, color=colour, label=f"{name}, exact")
        left.fill_between(t, ideal - 0.15 * ideal.max(), ideal + 0.15 * ideal.max(), color=colour, alpha=0.1)
        left.plot(t, centre, "o", color=colour, ms=3, label=name)
        for k in sorted({int(np.argmax(ideal)), len(t) - 1}):
            right.plot(y, exact[k], color=colour)
            right.plot(y, u[k], "o", color=colour, ms=3, label=f"{name}, {t[k]:.2f} s")
    right.axhline(0, color=GREY, linewidth=0.8)
    left.legend(fontsize=8)
    right.legend(fontsize=8)


def _thicker(scene: dict[str, Any], number: int) -> None:
    scene["material"]["fluid"]["viscosity"] *= 1.5


CASE = Case(
    name="poiseuille",
    measures="Start-up of Poiseuille flow between plates, Newtonian and Oldroyd-B",
    source="Waters & King 1970, Rheologica Acta 9, 345, checked against finite differences",
    measure=_measure,
    mutation=Mutation("viscosity × 1.5", _thicker),
    plot=_plot,
)
