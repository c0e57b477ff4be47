"""The same scene twice: the same bits."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial

SPACING = 0.02


def _scene() -> dict[str, Any]:
    return {
        "spacing": SPACING,
        "time": {"frames": 20, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "pbf", "vorticity": 0.02, "xsph": 0.01},
        "fluid": [
            {
                "shape": {"type": "box", "size": (0.2, 0.3, 0.2), "position": (0.1, 0.15, 0.1)},
                "material": "water",
                "jitter": 0.1,
                "seed": 3,
            }
        ],
        "solid": [{"shape": {"type": "box", "size": (0.5, 1.0, 0.2), "position": (0.25, 0.5, 0.1)}, "container": True}],
    }


def _measure(trial: Trial) -> Outcome:
    first, second = ([(f["position"], f["velocity"]) for f in trial.simulation(_scene()).frames()] for _ in range(2))
    different = [
        int(sum((a.view(np.int32) != b.view(np.int32)).any(1).sum() for a, b in zip(one, two, strict=True)))
        for one, two in zip(first, second, strict=True)
    ]
    checks = [Check("positions and velocities that differ in any bit", float(sum(different)), 0.0)]
    return Outcome(checks, {"different": different})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, axes

    picture = axes(figure, "frame", "values that differ between two runs")
    picture.plot(outcome.data["different"], color=BLUE)
    picture.set_ylim(-0.5, max(1, *outcome.data["different"]) * 1.05)


def _nudge(scene: dict[str, Any], number: int) -> None:
    if number == 1:  # one unit in the last place of float32
        scene["gravity"] = (0.0, -9.81 * (1 + 2.0**-23), 0.0)


CASE = Case(
    name="determinism",
    measures="A splash simulated twice in one process, compared bit by bit",
    source="the same scene on the same device gives the same bits: sums have one order, whatever the threads do",
    measure=_measure,
    mutation=Mutation("gravity of the second run changed in its last bit", _nudge),
    plot=_plot,
)
