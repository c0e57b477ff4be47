"""What velocity corrections must not touch (Takahashi et al. 2014): momentum and rigid motion.

Bonds pull both ends alike, shape matching has its mean correction taken out: the mean velocity of a body that is shaken, and of
one that falls, is what it would be without them. Angular momentum of pairs is kept exactly; that of shape matching is not: a
particle's goal is the mean over regions of unlike size at the surface, and is measured as well.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.takahashi import STEP, D, ball, scene

SCHEMES: dict[str, dict[str, Any]] = {
    "shape matching": {"correction": "shape_matching", "rigidity": 0.3},
    "springs": {"correction": "springs", "spring_stiffness": 800.0},
    "position-based": {"correction": "position_based", "rigidity": 0.3},
}
SHAKE = 0.5  # m/s
SPIN = 3.0  # rad/s


def _run(trial: Trial, scheme: str, motion: str) -> dict[str, Any]:
    """A ball that is shaken, turned or dropped: mean velocity and angular momentum per mass about its centre, over time."""
    radius, frames = (4, 12) if trial.quick else (8, 60)
    fluid = ball(radius, 0.0)
    if motion == "turned":
        fluid["angular_velocity"] = tuple(SPIN * np.array([1.0, 2.0, 2.0]) / 3)
    gravity = (0.0, -9.81, 0.0) if motion == "dropped" else (0.0, 0.0, 0.0)
    table = scene(frames, 10, {**SCHEMES[scheme], "xsph": 0.0}, [fluid], [], gravity=gravity)
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
    for name in SCHEMES:
        shaken, turned, dropped = (_run(trial, name, motion) for motion in ("shaken", "turned", "dropped"))
        drift = np.linalg.norm(shaken["mean"] - shaken["mean"][0], axis=1)
        # r v of a shaken particle; all of it would be a gain of one
        gained = np.linalg.norm(shaken["turning"] - shaken["turning"][0], axis=1) / (shaken["radius"] * SHAKE)
        kept = np.linalg.norm(turned["turning"], axis=1) / np.linalg.norm(turned["turning"][0])
        steps = dropped["time"] / STEP
        fall = np.zeros((len(steps), 3))
        fall[:, 1] = -9.81 * STEP * steps
        rigid = np.abs(dropped["v"] - fall[:, None]).max((1, 2))
        quick = np.abs(np.diff(shaken["v"], axis=0)).mean()
        checks += [
            at_most(f"{name}: mean velocity of a shaken ball drifts by [m/s]", drift.max(), 1e-6),
            at_least(f"{name}: meanwhile particles change their velocity by [m/s per frame]", quick, 0.02),
            at_most(f"{name}: angular momentum a shaken ball gains, in radius × speed", gained.max(), 2e-3),
            at_least(f"{name}: angular momentum a turning ball keeps", kept.min(), 0.98),
            at_most(f"{name}: a falling ball's velocities deviate from g t by [m/s]", rigid.max(), 1e-5),
        ]
        curves[name] = (shaken["time"], np.maximum(drift, 1e-10), gained, kept)
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, RED, axes

    left = axes(figure, "time [s]", "drift of a shaken ball's mean velocity [m/s]", (1, 2, 1))
    right = axes(figure, "time [s]", "angular momentum a turning ball keeps", (1, 2, 2))
    for (name, (t, drift, _, kept)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE, GREEN), strict=True):
        left.semilogy(t, drift, color=colour, label=name)
        right.plot(t, kept, color=colour, label=name)
    left.axhline(1e-6, color=RED, linestyle="--", label="asked for")
    left.legend()
    right.legend()


def _as_printed(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["conserve"] = False


CASE = Case(
    name="iisph_momentum",
    measures="Momentum and rigid motion under the three velocity corrections",
    source="Newton's third law; Takahashi et al. 2014, section 4, with the mean of shape matching's corrections taken out",
    measure=_measure,
    mutation=Mutation("shape matching as printed: its mean correction stays", _as_printed),
    plot=_plot,
)
