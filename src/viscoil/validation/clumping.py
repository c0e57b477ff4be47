"""Artificial pressure keeps particles of a splash apart (Macklin & Müller 2013, Fig. 2)."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least
from viscoil.validation.measures import nearest

SPACING = 0.02
WIDTH = 0.32
CLOSE = 0.3  # spacings
AFTER = 8  # first frame that counts: the ball has hit the pool
STRENGTHS = (0.0, 0.001, 0.003, 0.01)  # k of eq. 13, in units of the lattice's multiplier


def _scene(strength: float, frames: int) -> dict[str, Any]:
    return {
        "spacing": SPACING,
        "time": {"frames": frames, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "pbf", "iterations": 4, "unilateral": False, "artificial_pressure": strength},
        "fluid": [
            {"shape": {"type": "box", "size": (WIDTH, 0.12, WIDTH), "position": (0, 0.06, 0)}, "material": "water"},
            {
                "shape": {"type": "sphere", "radius": 0.1, "position": (0, 0.3, 0)},
                "material": "water",
                "velocity": (0, -4, 0),
            },
        ],
        "solid": [{"shape": {"type": "box", "size": (WIDTH, 2, WIDTH), "position": (0, 1, 0)}, "container": True}],
    }


def _splash(trial: Trial, strength: float) -> dict[str, Any]:
    sim = trial.simulation(_scene(strength, 32 if trial.quick else 60))
    distances = [nearest(f["position"]) / SPACING for f in sim.frames() if f.index >= AFTER and f.index % 4 == 0]
    together = np.concatenate(distances)
    return {"close": float((together < CLOSE).mean()), "distances": together}


def _measure(trial: Trial) -> Outcome:
    runs = {k: _splash(trial, k) for k in ((0.0, 0.01) if trial.quick else STRENGTHS)}
    clumped, kept = runs[0.0]["close"], runs[0.01]["close"]
    checks = [
        Check("particles with a neighbour nearer than 0.3 d, artificial pressure 0.01", kept, 0.0, 0.005),
        at_least("the same without artificial pressure / with it", clumped / max(kept, 1e-4), 10.0),
    ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    picture = axes(figure, "distance to the nearest neighbour [d]", "share of particles, per 0.02 d")
    bins = np.arange(0, 1.4, 0.02)
    colours = {0.0: RED, 0.001: ORANGE, 0.003: GREEN, 0.01: BLUE}
    for strength, run in outcome.data["runs"].items():
        count, _ = np.histogram(run["distances"], bins)
        label = f"k = {strength:g}: {100 * run['close']:.2g} % nearer than {CLOSE} d"
        picture.step(bins[:-1], count / len(run["distances"]), where="post", color=colours[strength], label=label)
    picture.axvline(CLOSE, color=GREY, linestyle="--")
    picture.legend()


def _off(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["artificial_pressure"] = 0.0


CASE = Case(
    name="clumping",
    measures="Nearest neighbours in a splash, with and without artificial pressure",
    source="Macklin & Müller 2013, Fig. 2 and §4: artificial pressure (eq. 13) removes clumps caused by missing neighbours",
    measure=_measure,
    mutation=Mutation("artificial pressure dropped", _off),
    plot=_plot,
)
