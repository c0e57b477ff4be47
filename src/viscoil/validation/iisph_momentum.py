"""What velocity corrections must not touch (Takahashi et al. 2014): momentum and rigid motion.

Bonds pull both ends alike, and every region of shape matching moves its members so that neither their centre nor their angular
momentum changes. So a shaken ball keeps both, a turning one keeps turning, and a falling one falls like a stone. XSPH is left
out: it keeps momentum but brakes rotation, since what it exchanges does not lie along the line between two particles.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.takahashi import D, ball, scene

SCHEMES: dict[str, dict[str, Any]] = {
    "shape matching": {"correction": "shape_matching", "rigidity": 0.3},
    "springs": {"correction": "springs", "spring_stiffness": 800.0},
    "position-based": {"correction": "position_based", "rigidity": 0.3},
}
SHAKE = 0.5  # m/s
SPIN = 3.0  # rad/s


def _run(trial: Trial, scheme: str, motion: str) -> dict[str, Any]:
    """A ball that is shaken, turned or dropped: mean velocity and angular momentum per mass about its centre, over time."""
    radius, frames = (4, 60) if trial.quick else (8, 300)
    fluid = ball(radius, 0.0)
    if motion == "turned":
        fluid["angular_velocity"] = tuple(SPIN * np.array([1.0, 2.0, 2.0]) / 3)
    gravity = (0.0, -9.81, 0.0) if motion == "dropped" else (0.0, 0.0, 0.0)
    table = scene(frames, 1, {**SCHEMES[scheme], "xsph": 0.0}, [fluid], [], gravity=gravity)
    sim = trial.simulation(table)
    if motion == "shaken":
        kick = np.random.default_rng(0).uniform(-SHAKE, SHAKE, (sim.world.count, 3))
        sim.world.set("velocity", (kick - kick.mean(0)).astype(np.float32))
    frames = list(sim.frames())
    x, v = (np.array([frame[name] for frame in frames], float) for name in ("position", "velocity"))
    mean = v.mean(1)
    turning = np.cross(x - x.mean(1, keepdims=True), v - mean[:, None]).mean(1)
    return {"time": np.array([f.time for f in frames]), "mean": mean, "turning": turning, "v": v, "x": x, "radius": radius * D}


def _measure(trial: Trial) -> Outcome:
    checks, curves = [], {}
    rounding = 5e-5 if trial.quick else 5e-4  # of places in single precision, per Δt, after a fall of 0.07 m or 1.8 m
    for name in SCHEMES:
        shaken, turned, dropped = (_run(trial, name, motion) for motion in ("shaken", "turned", "dropped"))
        change = np.diff(shaken["v"], axis=0)
        net = np.linalg.norm(change.sum(1), axis=1) / np.linalg.norm(change, axis=2).sum(1)
        # r v of a shaken particle; all of it would be a gain of one
        gained = np.linalg.norm(shaken["turning"] - shaken["turning"][0], axis=1) / (shaken["radius"] * SHAKE)
        kept = np.linalg.norm(turned["turning"], axis=1) / np.linalg.norm(turned["turning"][0])
        fall = np.zeros((len(dropped["time"]), 3))
        fall[:, 1] = -9.81 * dropped["time"]
        rigid = np.abs(dropped["v"] - fall[:, None]).max((1, 2))
        checks += [
            at_most(f"{name}: net momentum a step gives a shaken ball, in the sum of what particles get", net.max(), 1e-6),
            at_least(f"{name}: meanwhile particles change their velocity by [m/s per step]", np.abs(change).mean(), 0.02),
            at_most(f"{name}: angular momentum a shaken ball gains, in radius × speed", gained.max(), 1e-5),
            Check(f"{name}: angular momentum a turning ball keeps", kept[-1], 1.0, 1e-4),
            at_most(f"{name}: a falling ball's velocities deviate from g t by [m/s]", rigid.max(), rounding),
        ]
        curves[name] = (shaken["time"][1:], np.maximum(net, 1e-10), np.maximum(gained[1:], 1e-10))
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, RED, axes

    left = axes(figure, "time [s]", "net momentum of a step / sum of all particles'", (1, 2, 1))
    right = axes(figure, "time [s]", "angular momentum gained, in radius × speed", (1, 2, 2))
    for (name, (t, net, gained)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE, GREEN), strict=True):
        left.semilogy(t, net, color=colour, label=name, linewidth=1)
        right.semilogy(t, gained, color=colour, label=name)
    left.axhline(1e-6, color=RED, linestyle="--", label="at most")
    right.axhline(1e-5, color=RED, linestyle="--", label="at most")
    left.legend()
    right.legend()


def _as_printed(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["conserve"] = False


CASE = Case(
    name="iisph_momentum",
    measures="Momentum and rigid motion under the three velocity corrections",
    source="Newton's third law; Takahashi et al. 2014, section 4, shape matching region by region",
    measure=_measure,
    mutation=Mutation("shape matching as printed: its mean correction stays", _as_printed),
    plot=_plot,
)
