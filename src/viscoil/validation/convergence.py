"""Density error of one step against iterations, in a dam break frozen at t = 1 s (Macklin & Müller 2013, Fig. 6).

As published, and with momentum, whose error falls with the square of the number of iterations; how it falls from one count to
the next is another matter there: what is left of a mode swings about zero once it is small.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most, setting

COUNTS = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40)
STEP = 0.004  # s
FREEZE = 250  # steps


def _scene(quick: bool, unilateral: bool, acceleration: str) -> dict[str, Any]:
    return {
        "spacing": 0.03 if quick else 0.02,
        "time": {"frames": FREEZE + 1, "frame_time": STEP, "steps_per_frame": 1},
        "solver": {
            "method": "pbf", "iterations": 4, "unilateral": unilateral, "acceleration": acceleration,
            "artificial_pressure": 0.0 if unilateral else 0.001,
        },
        "fluid": [{"shape": {"type": "box", "size": (0.3, 0.6, 0.18), "position": (0.15, 0.3, 0.09)}, "material": "water"}],
        "solid": [{"shape": {"type": "box", "size": (0.9, 3, 0.18), "position": (0.45, 1.5, 0.09)}, "container": True}],
    }  # fmt: skip


def _errors(trial: Trial, unilateral: bool, acceleration: str = "none") -> dict[str, np.ndarray]:
    """Mean and largest compression after the same step, solved with more and more iterations."""
    sim = trial.simulation(_scene(trial.quick, unilateral, acceleration))
    while sim.frame_index < FREEZE:
        sim.advance_frame()
    frozen, mean, largest = sim.state(), [], []
    for count in COUNTS:
        sim.restore(frozen)
        sim.scene.solver.iterations = count
        sim.advance_frame()
        mean.append(sim.metrics()["compression"])
        largest.append(sim.metrics()["density_max"] - 1)
    return {"mean": np.array(mean), "largest": np.array(largest)}


def _measure(trial: Trial) -> Outcome:
    one_sided, both, momentum = _errors(trial, True), _errors(trial, False), _errors(trial, True, "momentum")
    steepest = np.max(one_sided["mean"][1:] / one_sided["mean"][:-1])
    ten = COUNTS.index(10)
    checks = [
        at_most("mean error, 40 iterations / 1", one_sided["mean"][-1] / one_sided["mean"][0], 0.5),
        at_most("largest error, 40 iterations / 1", one_sided["largest"][-1] / one_sided["largest"][0], 0.6),
        at_most("mean error from one count to the next, worst ratio", steepest, 1.0),
        at_most("mean error with cohesion, 40 iterations / 1", both["mean"][-1] / both["mean"][0], 0.6),
        at_most("mean error with momentum, 10 iterations / 40 without", momentum["mean"][ten] / one_sided["mean"][-1], 1.0),
        at_most("mean error with momentum, 40 iterations / 1", momentum["mean"][-1] / momentum["mean"][0], 0.05),
    ]
    return Outcome(checks, {"one_sided": one_sided, "both": both, "momentum": momentum})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, axes, plain_numbers

    for place, (key, title) in enumerate((("mean", "mean compression [%]"), ("largest", "largest compression [%]")), 1):
        picture = axes(figure, "iterations", title, (1, 2, place))
        one_sided, both, momentum = (100 * outcome.data[run][key] for run in ("one_sided", "both", "momentum"))
        picture.semilogy(COUNTS, one_sided, "o-", color=BLUE, ms=4, label="compression only")
        picture.semilogy(COUNTS, momentum, "^-", color=GREEN, ms=4, label="compression only, with momentum")
        picture.semilogy(COUNTS, both, "s-", color=ORANGE, ms=4, label="with cohesion and s_corr")
        plain_numbers(picture, "y")
        picture.legend(fontsize=8)


CASE = Case(
    name="convergence",
    measures="Density error of one step of a dam break (t = 1 s) against iterations",
    source="Macklin & Müller 2013, Fig. 6: the error falls with the number of iterations",
    measure=_measure,
    mutation=Mutation("constraint force mixing 20 times too soft", setting("solver.relaxation", 25.0)),
    plot=_plot,
)
