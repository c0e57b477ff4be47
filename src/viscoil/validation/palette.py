"""Falling cubes (Barreiro et al. 2017, Fig. 4): an elastic one bounces, a viscous one stays, a liquid one spreads."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most

SPACING = 0.025
RHO = 1000.0
DROP = 0.3  # m
MATERIALS: dict[str, dict[str, Any]] = {
    "elastic": {"modulus": 1e5},  # the paper's α = ρ/G = 0.01 s²/m²
    "viscous": {"viscosity": 1e4},
    "liquid": {"viscosity": 0.001},
}


def scene(material: dict[str, Any], cells: int, drop: float, frames: int, floor: Any = "no-slip") -> dict[str, Any]:
    """A cube of ``cells`` particles per edge above a plane."""
    edge = cells * SPACING
    return {
        "spacing": SPACING,
        "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"},
        "material": {"m": {"density": RHO, **material}},
        "fluid": [
            {"material": "m", "shape": {"type": "box", "size": (edge, edge, edge), "position": (0, drop + edge / 2, 0)}}
        ],
        "solid": [{"name": "floor", "friction": floor, "shape": {"type": "plane"}}],
    }


def _bounce(time: np.ndarray, height: np.ndarray) -> float:
    """Fastest speed upwards after the lowest point, as a share of the fastest downwards before."""
    speed = np.gradient(height, time)
    lowest = int(np.argmin(height[: 2 * len(height) // 3]))
    return float(speed[lowest:].max() / -speed.min())


def _measure(trial: Trial) -> Outcome:
    cells = 8 if trial.quick else 14
    curves = {}
    for name, material in MATERIALS.items():
        sim = trial.simulation(scene(material, cells, DROP, 60 if trial.quick else 90))
        rows = []
        for _ in sim.frames():
            m = sim.metrics()
            rows.append((m["time"], m["centre_of_mass_y"], m["height"], m["extent_x"], m["clamped"]))
        curves[name] = np.array(rows).T
    fall = curves["elastic"]
    before = fall[0] < 0.2
    acceleration = 2 * np.polyfit(fall[0][before], fall[1][before], 2)[0]
    edge = cells * SPACING
    checks = [
        Check("acceleration of the falling elastic cube [m/s²]", float(acceleration), -9.81, 0.0981),
        at_least("elastic: speed after the bounce, share of that before", _bounce(*curves["elastic"][:2]), 0.25),
        at_most("viscous: the same", _bounce(*curves["viscous"][:2]), 0.05),
        at_least("viscous: height at the end, in edges", curves["viscous"][2][-1] / edge, 0.85),
        at_least("liquid: width at the end, in edges", curves["liquid"][3][-1] / edge, 3.0),
        at_most("eigenvalues of Q that had to be limited", sum(rows[4].sum() for rows in curves.values()), 0.0),
    ]
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, axes

    left = axes(figure, "time [s]", "height of the centre of mass [m]", (1, 2, 1))
    right = axes(figure, "time [s]", "width [m]", (1, 2, 2))
    for (name, rows), colour in zip(outcome.data["curves"].items(), (ORANGE, GREEN, BLUE), strict=True):
        left.plot(rows[0], rows[1], color=colour, label=name)
        right.plot(rows[0], rows[3], color=colour, label=name)
    left.legend()


def _dead(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"] = {"density": RHO, "viscosity": 100.0}


CASE = Case(
    name="palette",
    measures="Three cubes dropped 0.3 m: acceleration in flight, bounce, spreading",
    source="Barreiro et al. 2017, Fig. 4; limits of our specification",
    measure=_measure,
    mutation=Mutation("everything a fluid of 100 Pa s", _dead),
    plot=_plot,
)
