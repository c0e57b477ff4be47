"""A cube of fluid without gravity becomes a ball: the surface tension that artificial pressure brings with it.

The paper calls it an unphysical by-product, and it is: how fast the cube becomes round depends on the time step and on the
particles' size (§9 says so too). What is checked is that it becomes round. Without artificial pressure it does the
opposite: particles gather in clumps and threads, and the cube falls apart.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, setting
from viscoil.validation.measures import nearest

SPACING = 0.02
SIDE = 10  # particles


def _scene(frames: int) -> dict[str, Any]:
    edge = SIDE * SPACING
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": frames, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "pbf", "iterations": 4, "unilateral": False, "artificial_pressure": 0.01, "xsph": 0.05},
        "fluid": [{"shape": {"type": "box", "size": (edge, edge, edge)}, "material": "water", "jitter": 0.05}],
    }


def _measure(trial: Trial) -> Outcome:
    sim = trial.simulation(_scene(60 if trial.quick else 120))
    ball = (3 / (4 * np.pi)) ** (1 / 3) * SIDE * SPACING  # radius of the ball of the same volume [m]
    time, corner = [], []
    for frame in sim.frames():
        r = np.linalg.norm(frame["position"] - frame["position"].mean(0), axis=1)
        time.append(frame.time)
        corner.append(float(np.sort(r)[-20:].mean() / ball))
    close = nearest(frame["position"]) < 0.3 * SPACING
    checks = [
        Check("farthest particles from the centre / radius of the ball, at the end", corner[-1], 1.0, 0.06),
        Check("particles with a neighbour nearer than 0.3 d", float(close.mean()), 0.0, 0.005),
    ]
    return Outcome(checks, {"time": time, "corner": corner, "last": frame["position"] / ball})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, axes

    d = outcome.data
    left = axes(figure, "time [s]", "farthest particles / radius of the ball", (1, 2, 1))
    left.plot(d["time"], d["corner"], color=BLUE)
    left.axhline(1, color=GREY, linestyle="--", label="ball")
    left.axhline(d["corner"][0], color=GREY, linestyle=":", label="cube")
    left.legend()
    right = axes(figure, "x / radius", "y / radius", (1, 2, 2))
    angle = np.linspace(0, 2 * np.pi, 200)
    right.plot(*d["last"][:, :2].T, ".", color=BLUE, ms=3)
    right.plot(np.cos(angle), np.sin(angle), color=GREY)
    right.set_aspect("equal")


CASE = Case(
    name="surface_tension",
    measures="A cube of fluid without gravity, pulled round by artificial pressure",
    source="Macklin & Müller 2013, §4 and Fig. 2: artificial pressure acts like surface tension, whose resting shape is a ball",
    measure=_measure,
    mutation=Mutation("artificial pressure dropped", setting("solver.artificial_pressure", 0.0)),
    plot=_plot,
)
