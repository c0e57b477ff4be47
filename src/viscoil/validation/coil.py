"""Liquid rope coiling (Barreiro et al. 2017, Fig. 5) as a measurement.

A rope of cold honey falls on a table, buckles and winds itself up. Whatever makes it do so, fluid arrives at the coil at the
speed U₁ = Q/(πa₁²) and is laid down along a circle of radius R at the frequency Ω, so ΩR = U₁. The frequency itself is set by
what bends the rope against its viscosity (Ribe 2004), with a₁ the rope's radius at the coil and prefactors of order one:

    viscous        Ω ~ Q/(H a₁²)              toothpaste: pushed from close above
    gravitational  Ω ~ (g Q³/(ν a₁⁸))^(1/4)   honey from a moderate height
    inertial       Ω ~ (Q⁴/(ν a₁¹⁰))^(1/3)    honey from high above

Quick: a thinner honey from less high, which coils sooner and as often. Full: the scene "coiling" at the size of the paper,
and three ropes whose gravitational scales differ by a factor of two. Phase, frequency and R come from where particles come to
rest, a₁ from the rope some radii above the pile.
"""

from typing import Any

import numpy as np

from viscoil.validation import ropes
from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most

NOZZLE = 0.01  # m, radius
SPEED = 0.1  # m/s, out of the nozzle
RHO = 1420.0
# fall height [m], viscosity [Pa s], spacing [m], simulated time and when coiling has begun [s]
SMALL = (0.15, 70.0, 0.003, 3.0, 0.9)
HONEY = (0.2, 140.0, 0.0012, 5.0, 1.2)  # the scene "coiling" at the size of the paper, 89k particles
SERIES = ((0.15, 70.0, 0.002, 3.0, 0.9), (0.2, 140.0, 0.002, 4.0, 1.2), (0.2, 400.0, 0.002, 6.0, 1.6))


def scene(height: float, viscosity: float, spacing: float, duration: float) -> dict[str, Any]:
    """A rope of honey that falls on a table, as tables of a scene."""
    return {
        "spacing": spacing,
        "time": {"frames": round(60 * duration), "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"},
        "material": {"honey": {"density": RHO, "viscosity": viscosity}},
        "emitter": [
            {
                "material": "honey", "position": (0, height, 0), "direction": (0, -1, 0), "speed": SPEED,
                "shape": {"type": "cylinder", "radius": NOZZLE, "height": 0.02},
            }
        ],
        "solid": [{"name": "table", "friction": "no-slip", "shape": {"type": "plane"}}],
    }  # fmt: skip


def measure(sim: Any, begin: float) -> dict[str, Any]:
    """Everything about one coiling rope from the moment ``begin`` [s] on."""
    d, height = sim.scene.spacing, sim.scene.emitter[0].position[1]
    nu = sim.scene.material["honey"].viscosity / RHO
    flow = sim.nozzles[0].speed * len(sim.nozzles[0].section) * d * d  # what really flows: whole particles
    time, angle, path, distances, piles, gaps, radii, before = [], [], [], [], [], [], [], None
    for frame in sim.frames():
        now = frame["position"], frame["velocity"]
        if frame.time >= begin:
            cut = ropes.slices(*now, d, height - 0.02, 2 * d)
            pile = ropes.pile_height(cut)
            lower = (cut.y > pile + 4 * NOZZLE / 3) & (cut.y < pile + 4 * NOZZLE)  # thin already, upright still
            radii.append(np.nanmean(cut.radius[lower]))
            landed = ropes.landing(before, now, 0.4 * flow / (np.pi * radii[-1] ** 2), 0.6 * height)
            spot = landed[:, [0, 2]].mean(0) if len(landed) > 3 else np.full(2, np.nan)
            distances += list((landed[:, [0, 2]].astype(float) ** 2).sum(1))
            time.append(frame.time)
            angle.append(np.arctan2(spot[1], spot[0]))
            path.append(spot)
            piles.append(pile)
            gaps.append(ropes.largest_gap(now[0], pile, height - 0.02))
        before = now
    time, angle = np.array(time), np.array(angle)
    wound, first, last = ropes.turns(angle)
    omega = ropes.frequency(time[first : last + 1], angle[first : last + 1]) if last > first + 2 else 0.0
    a1 = float(np.mean(radii[first : last + 1]))
    coil = float(np.sqrt(max(np.mean(distances) - a1**2 / 2, 0.0)))  # a rope of radius a₁ laid along a circle
    u1 = flow / (np.pi * a1**2)
    fall = height - float(np.mean(piles[first : last + 1]))
    return {
        "time": time, "angle": angle, "path": np.array(path), "pile": np.array(piles), "turns": wound, "span": (first, last),
        "frequency": omega, "a1": a1, "R": coil, "U1": u1, "gap": max(gaps) / d, "flow": flow, "height": fall,
        "scales": ropes.scales(flow, nu, a1, fall), "forces": ropes.forces(u1, nu, a1, coil or np.inf),
        "last": before[0],
    }  # fmt: skip


def _checks(rope: dict[str, Any]) -> list[Check]:
    ratio = rope["frequency"] / rope["scales"]["gravitational"]
    return [
        at_least("turns in one direction", rope["turns"], 5.0),
        at_most("largest gap in the falling rope at any time [d]", rope["gap"], 1.5),
        at_least("height of the pile at the end, in rope radii", rope["pile"][-1] / rope["a1"], 4.0),
        Check("ΩR/U₁", rope["frequency"] * rope["R"] / rope["U1"], 1.0, 0.2),
        Check("frequency / gravitational scale, as a power of ten", float(np.log10(max(ratio, 1e-9))), 0.0, 0.5),
    ]


def _coil(trial: Trial, height: float, viscosity: float, spacing: float, duration: float, begin: float) -> dict[str, Any]:
    return measure(trial.simulation(scene(height, viscosity, spacing, duration)), begin)


def _measure(trial: Trial) -> Outcome:
    rope = _coil(trial, *(SMALL if trial.quick else HONEY))
    checks, others = _checks(rope), []
    if not trial.quick:
        others = [_coil(trial, *row) for row in SERIES]
        expected = np.log([r["scales"]["gravitational"] for r in others])
        slope = np.polyfit(expected, np.log([r["frequency"] for r in others]), 1)[0]
        checks.append(Check("exponent of the frequency over the gravitational scale, three ropes", float(slope), 1.0, 0.3))
    return Outcome(checks, {"rope": rope, "others": others})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    rope = outcome.data["rope"]
    left = axes(figure, "x [mm]", "y [mm]", (1, 3, 1))
    left.plot(1e3 * rope["last"][:, 0], 1e3 * rope["last"][:, 1], ".", ms=1.5, color=ORANGE)
    left.set_aspect("equal")
    middle = axes(figure, "time [s]", "turns of the landing spot", (1, 3, 2))
    known = np.isfinite(rope["angle"])
    middle.plot(rope["time"][known], np.unwrap(rope["angle"][known]) / (2 * np.pi), color=BLUE)
    first, last = rope["span"]
    middle.axvspan(rope["time"][first], rope["time"][last], color=GREEN, alpha=0.15)
    weight = rope["forces"]["gravitational"] / rope["forces"]["inertial"]
    words = f"Ω = {rope['frequency']:.1f} rad/s, a₁ = {1e3 * rope['a1']:.1f} mm, R = {1e3 * rope['R']:.1f} mm"
    middle.set_title(f"{words}, weight/inertia {weight:.1f}", fontsize=8)
    right = axes(figure, "scale [rad/s]", "measured [rad/s]", (1, 3, 3))
    for r in [rope, *outcome.data["others"]]:
        for (name, value), colour in zip(r["scales"].items(), (GREY, BLUE, RED), strict=True):
            right.loglog(value, r["frequency"], "o", color=colour, label=name if r is rope else None)
    right.loglog([5, 200], [5, 200], color=GREY, linewidth=0.8)
    right.legend(fontsize=8)


def _thin(scene: dict[str, Any], number: int) -> None:
    scene["material"]["honey"]["viscosity"] = 1.0


CASE = Case(
    name="coil",
    measures="A coiling rope: turns, unbroken, pile, ΩR = U₁, frequency against the regimes of coiling",
    source="Barreiro et al. 2017, Fig. 5; Ribe 2004, Proc. R. Soc. A 460, 3223: scales of the coiling frequency",
    measure=_measure,
    mutation=Mutation("runny: 1 Pa s", _thin),
    plot=_plot,
)
