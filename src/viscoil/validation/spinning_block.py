"""A viscous block spinning in empty space (Barreiro et al. 2017, Figs. 3 and 7): it goes on spinning and keeps its shape."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most

SPACING = 0.025
SPIN = 2.0  # rad/s
RATIOS = {"viscous": {"viscosity": 1e4}, "elastic": {"modulus": 1e5}}


def _scene(material: dict[str, Any], quick: bool) -> dict[str, Any]:
    cells = (12, 4, 6) if quick else (20, 5, 10)
    size = [n * SPACING for n in cells]
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": 60, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"},
        "material": {"m": {"density": 1000.0, **material}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size}, "angular_velocity": (0, SPIN, 0)}],
    }


def rigid_deviation(start: np.ndarray, now: np.ndarray) -> float:
    """Root mean square distance [m] to the best rigid placement of ``start`` (Kabsch)."""
    a, b = start - start.mean(0), now - now.mean(0)
    u, _, vt = np.linalg.svd(a.T @ b)
    turn = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt
    return float(np.sqrt(((a @ turn - b) ** 2).sum(1).mean()))


def _measure(trial: Trial) -> Outcome:
    checks, curves = [], {}
    for name, material in RATIOS.items():
        frames = list(trial.simulation(_scene(material, trial.quick)).frames())
        x, v = (np.array([f[field] for f in frames], float) for field in ("position", "velocity"))
        momentum = np.linalg.norm(np.cross(x - x.mean(1, keepdims=True), v).sum(1), axis=1)
        linear = np.linalg.norm(v.sum(1), axis=1).max() / np.linalg.norm(v[0], axis=1).sum()
        deviation = np.array([rigid_deviation(x[0], now) for now in x]) / SPACING
        curves[name] = (np.array([f.time for f in frames]), momentum / momentum[0], deviation)
        checks += [
            at_least(f"{name}: angular momentum after 1 s, share of the start", momentum[-1] / momentum[0], 0.95),
            at_most(f"{name}: linear momentum, in Σ m|v| of the start", linear, 1e-5),
            at_most(f"{name}: deviation from a rigid block [d]", deviation[-1], 0.5),
        ]
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, ORANGE, axes

    left = axes(figure, "time [s]", "angular momentum / its start", (1, 2, 1))
    right = axes(figure, "time [s]", "deviation from a rigid block [d]", (1, 2, 2))
    for (name, (t, momentum, deviation)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE), strict=True):
        left.plot(t, momentum, color=colour, label=name)
        right.plot(t, deviation, color=colour, label=name)
    left.set_ylim(0, 1.05)
    left.legend()


def _soft(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"] = {"density": 1000.0, "viscosity": 1.0}


CASE = Case(
    name="spinning_block",
    measures="Angular momentum and shape of a spinning block after a second, viscous and elastic",
    source="Barreiro et al. 2017, Figs. 3 and 7; conservation of momentum",
    measure=_measure,
    mutation=Mutation("hardly any viscosity", _soft),
    plot=_plot,
)
