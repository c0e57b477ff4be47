"""Particles beside walls: as many as anywhere else, when walls count in the density."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, setting

SPACING = 0.02
SIDE = 8  # particles
HIGH = 14  # particles


def _scene() -> dict[str, Any]:
    width, height = SIDE * SPACING, HIGH * SPACING
    return {
        "spacing": SPACING,
        "time": {"frames": 60, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "pbf", "iterations": 8, "unilateral": True, "artificial_pressure": 0.0, "wall_density": True},
        "fluid": [
            {
                "shape": {"type": "box", "size": (width, height, width), "position": (0, height / 2, 0)},
                "material": "water",
                "jitter": 0.2,
            }
        ],
        "solid": [
            {"shape": {"type": "box", "size": (width, 4 * height, width), "position": (0, 2 * height, 0)}, "container": True}
        ],
    }


def _profile(frames: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Particles per volume, relative to 1/d³, by distance from the floor [d], averaged over frames."""
    edges = np.arange(0, HIGH - 1.0, 1.0)
    x = np.concatenate([f["position"] for f in frames]) / SPACING
    count, _ = np.histogram(x[:, 1], edges)
    return edges[:-1] + 0.5, count / (len(frames) * SIDE * SIDE)


def _measure(trial: Trial) -> Outcome:
    sim = trial.simulation(_scene())
    frames = list(sim.frames())[-20:]
    height, profile = _profile(frames)
    x = np.concatenate([f["position"] for f in frames]) / SPACING
    middle = (x[:, 1] > 2) & (x[:, 1] < HIGH - 4)
    wall = SIDE / 2 - np.abs(x[middle][:, [0, 2]]).max(1)  # distance to the nearest side wall [d]
    shares = []
    for near, far in ((0, 1), (1, SIDE / 2)):
        area = (SIDE - 2 * near) ** 2 - (SIDE - 2 * far) ** 2
        shares.append(((wall >= near) & (wall < far)).sum() / area)
    inside = profile[2:-2].mean()
    checks = [
        Check("particles in the layer on the floor / inside", float(profile[0] / inside), 1.0, 0.15),
        Check("particles in the layer at the sides / inside", float(shares[0] / shares[1]), 1.0, 0.15),
    ]
    return Outcome(checks, {"height": height, "profile": profile, "last": frames[-1]["position"] / SPACING})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, axes

    d = outcome.data
    left = axes(figure, "particles per d³", "height above the floor [d]", (1, 2, 1))
    left.barh(d["height"], d["profile"], height=0.9, color=BLUE)
    left.axvline(1, color=GREY)
    right = axes(figure, "x [d]", "z [d]", (1, 2, 2))
    seen = (d["last"][:, 1] > 2) & (d["last"][:, 1] < HIGH - 4)
    right.plot(d["last"][seen, 0], d["last"][seen, 2], ".", color=BLUE, ms=3)
    right.set_title("seen from above, without floor and surface layers", fontsize=9)
    right.set_aspect("equal")


CASE = Case(
    name="wall_density",
    measures="Number of particles beside walls of signed distance, in a settled box",
    source="a resting fluid is even; without the walls' density particles stack on them (Macklin & Müller 2013, §9)",
    measure=_measure,
    mutation=Mutation("walls left out of the density, as published", setting("solver.wall_density", False)),
    plot=_plot,
)
