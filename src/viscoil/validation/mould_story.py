"""The story of the mould (Clavet et al. 2005, Fig. 12): springs frozen, then plastic, then gone.

A block with frozen springs is stepped on: it comes back. Made plastic and stepped on again, it keeps the print. Without its
springs it flows away. One run; only what the user may change while it runs is changed.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.clavet import SPACING, TAU, H, scene, solver

FOOT = 1.2  # edge of the foot [h]
DOWN = 0.45  # how deep it steps, in heights of the block
STEP = 60  # τ from the start of a step to the end
PLASTIC, MELTED, END = 180, 400, 620  # moments [τ]
CELLS = (14, 7, 14)


def _scene() -> dict[str, Any]:
    table = scene(CELLS, END // 5, solver(k_spring=0.3), 0.002, 0.0, every=5)
    top = CELLS[1] * SPACING
    way = DOWN * top + 0.3 * H
    table["solid"].append(
        {
            "name": "foot",
            "shape": {"type": "box", "size": (FOOT * H, 4 * H, FOOT * H), "position": (0, top + 2 * H + 0.3 * H, 0)},
            "motion": [
                {"time": moment * TAU, "position": (0, y, 0)}
                for start in (40, PLASTIC + 20)
                for moment, y in ((start, 0.0), (start + STEP / 3, -way), (start + 2 * STEP / 3, -way), (start + STEP, 0.0))
            ],
        }
    )
    return table


def _heights(x: np.ndarray) -> tuple[float, float]:
    """Top [h] of what lies under the foot, and of the rest: the highest particles there."""
    under = np.abs(x[:, [0, 2]]).max(1) < 0.45 * FOOT
    around = (np.abs(x[:, [0, 2]]).max(1) > 0.8 * FOOT) & (np.abs(x[:, [0, 2]]).max(1) < 1.6 * FOOT)
    return tuple(float(np.percentile(x[rows, 1], 97)) if rows.sum() > 5 else 0.0 for rows in (under, around))


def _measure(trial: Trial) -> Outcome:
    sim = trial.simulation(_scene())
    times, tops = [], []
    frames = sim.frames()
    for frame in frames:
        moment = round(frame.time / TAU)
        times.append(moment)
        tops.append(_heights(frame["position"].astype(float) / H))
        if moment == PLASTIC:
            sim.update({"solver.plasticity": 0.3 / TAU, "solver.yield_ratio": 0.1})
        elif moment == MELTED:
            sim.solver.clear(sim.world)
            sim.update({"solver.spring_stiffness": 0.0})
    t, under = np.array(times), np.array(tops)[:, 0]
    before, lowest = under[t == 40][0], under[(t > 40) & (t < 120)].min()
    recovered, again = under[t == PLASTIC][0], under[(t > PLASTIC) & (t < PLASTIC + 80)].min()
    fresh, left, flat = under[t == PLASTIC + 100][0], under[t == MELTED][0], under[-1]
    checks = [
        at_most("elastic: height under the foot, share of that before", lowest / before, 0.75),
        at_least("elastic: height after the foot is gone, share of that before", recovered / before, 0.85),
        at_least("plastic: depth of the print, share of the pressed", (recovered - fresh) / (recovered - again), 0.4),
        at_least("plastic: depth of the print 100 τ later, share of that", (recovered - left) / (recovered - fresh), 0.9),
        at_most("melted: height at the end, share of the block's", flat / before, 0.4),
    ]
    return Outcome(checks, {"time": t, "tops": np.array(tops)})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    picture = axes(figure, "time [τ = 1/30 s]", "height of the top [h]")
    for column, (name, colour) in enumerate((("under the foot", BLUE), ("around it", ORANGE))):
        picture.plot(outcome.data["time"], outcome.data["tops"][:, column], color=colour, label=name)
    for moment, name in ((0, "elastic"), (PLASTIC, "plastic"), (MELTED, "no springs")):
        picture.axvline(moment, color=GREY, linestyle=":")
        picture.annotate(name, (moment + 5, 0.1), fontsize=9)
    picture.set_ylim(bottom=0)
    picture.legend()


def _stay(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["plasticity"] = 0.3 / TAU


CASE = Case(
    name="mould_story",
    measures="A frozen block is stepped on and comes back; plastic it keeps the print; without springs it flows away",
    source="Clavet et al. 2005, §5.1 and Fig. 12",
    measure=_measure,
    mutation=Mutation("plastic from the beginning", _stay),
    plot=_plot,
)
