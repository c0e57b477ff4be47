"""A very viscous cube dropped on the floor: conformation constraints beside the links of viscous PBF (Fig. 2).

The paper's claim: length constraints fail to prevent drift without suffering elastic oscillations. Same cube, same steps and
the same number of iterations here, for links of several stiffnesses and times of flow. Two numbers tell drift and oscillation
apart: the distance to the undeformed cube at the end, and how far the cube's height rises again after its lowest point.

It is reproduced: soft links sag, stiff ones throw the cube up again, and stiff ones that flow at once, so that nothing is left
to swing, keep the dent of the impact for good. All of them stay far from a cube that is merely very viscous.

Nobody is stiffer than his iterations: 20 of them at 20³ particles let the constraints drift by 5 % of the edge in a second, and
links by 7 to 52 %. So their number grows with the particles along an edge, for both alike.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.spinning_block import rigid_deviation

EDGE = 0.2  # m
REACH = 2.5  # iterations per particle along an edge: what is done at the floor has to be felt at the top
STILL = 0.015  # of the edge: what counts as neither drift nor oscillation
LINKS = {  # stiffness, time of flow [s]
    "soft links": (0.1, 0.1),
    "stiffer links": (0.3, 0.1),
    "stiff links": (1.0, 0.1),
    "stiff, slow flow": (1.0, 1.0),
    "stiff, flow at once": (1.0, 0.01),
}


def _scene(solver: dict[str, Any], quick: bool) -> dict[str, Any]:
    cells = 8 if quick else 20
    iterations = {"iterations": round(REACH * cells)}
    if solver["method"] == "dcpbd":
        iterations["velocity_iterations"] = round(REACH * cells)
    return {
        "spacing": EDGE / cells,
        "time": {"frames": 36 if quick else 60, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {**iterations, **solver},
        "material": {"m": {"density": 1000.0, "viscosity": 1e5}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": [EDGE] * 3, "position": (0, EDGE / 2 + 0.05, 0)}}],
        "solid": [{"friction": "no-slip", "shape": {"type": "plane"}}],
    }


def _fallen(trial: Trial, solver: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(time [s], height of the top over the floor, distance to the undeformed cube), both in edges."""
    frames = list(trial.simulation(_scene(solver, trial.quick)).frames())
    x = np.array([f["position"] for f in frames], float) / EDGE
    top = x[0, :, 1] > x[0, :, 1].max() - 0.02
    deviation = np.array([rigid_deviation(x[0], now) for now in x])
    return np.array([f.time for f in frames]), x[:, top, 1].mean(1), deviation


def rise(height: np.ndarray) -> float:
    """How far the height climbs again after its lowest point so far."""
    return float((height - np.minimum.accumulate(height)).max())


def _measure(trial: Trial) -> Outcome:
    ours, others = "conformation constraints", list(LINKS)
    curves = {ours: _fallen(trial, {"method": "dcpbd"})}
    checks = [
        at_most(f"{ours}: distance to the undeformed cube [edge]", float(curves[ours][2][-1]), STILL),
        at_most(f"{ours}: height regained after the impact [edge]", rise(curves[ours][1]), STILL),
    ]
    if trial.noticed(checks):
        return Outcome(checks, {"curves": curves})
    for name, (stiffness, flow_time) in LINKS.items():
        curves[name] = _fallen(trial, {"method": "viscous_pbf", "stiffness": stiffness, "flow_time": flow_time})
    rises = {name: rise(height) for name, (_, height, _) in curves.items()}
    drifts = {name: float(deviation[-1]) for name, (_, _, deviation) in curves.items()}
    checks += [
        *(at_least(f"{name}: drift or height regained [edge]", max(drifts[name], rises[name]), 2 * STILL) for name in others),
        at_least("soft links: drift [edge]", drifts["soft links"], 0.05),
        at_least("stiff, slow flow: height regained [edge]", rises["stiff, slow flow"], 0.03),
    ]
    return Outcome(checks, {"curves": curves, "drift": drifts, "rise": rises})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    left = axes(figure, "time [s]", "height of the top [edge]", (1, 2, 1))
    right = axes(figure, "time [s]", "distance to the undeformed cube [edge]", (1, 2, 2))
    colours = (BLUE, ORANGE, GREEN, RED, "#8e5aa8", GREY)
    for (name, (t, height, deviation)), colour in zip(outcome.data["curves"].items(), colours, strict=True):
        left.plot(t, height, color=colour, label=name)
        right.plot(t, deviation, color=colour, label=name)
    right.legend(fontsize=8)


def _soft(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"]["viscosity"] = 100.0


CASE = Case(
    name="creep",
    measures="Dropped viscous cube, beside the plastic links of viscous PBF: drift and oscillation",
    source="Barreiro et al. 2017, Fig. 2",
    measure=_measure,
    mutation=Mutation("a thousandth of the viscosity", _soft),
    plot=_plot,
)
