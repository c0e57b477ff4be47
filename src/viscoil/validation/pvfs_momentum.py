"""Momentum of drops relaxed by double densities, springs and viscosity (Clavet et al. 2005): what is kept, and how well.

Pairs exchange opposite displacements and impulses, so the mean velocity of a drop without gravity stays what it was, in every
order of relaxation and with limited pairs. Angular momentum is not kept exactly, although the paper says so: pairs are pushed
along the line between their *predicted* places while velocities belong to the way from the old ones, which leaves a moment of
the order of Δt. It is measured twice: what a drop gains that did not turn, and what one keeps that did. That loss is numerical
damping of the integrator, and half as large with half the step. An elastic body left alone must not begin to turn by itself:
sweeps that always go through springs in the same sense make it do so.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.clavet import TAU, H, curves, scene, solver

CELLS = (12, 6, 6)
RELAXATIONS = ("sequential", "coloured", "jacobi")
FLUIDS: dict[str, dict[str, float]] = {
    "liquid": {},
    "springs and viscosity": {"k_spring": 0.1, "alpha": 0.05, "gamma": 0.1, "sigma": 0.2, "beta": 0.2},
}
TYPICAL = 0.1  # r v of a particle in such a drop [h²/τ]
SPIN = 0.02  # rad/τ


def _followed(
    trial: Trial, relaxation: str, fluid: dict[str, float], steps: int, spin: float, substeps: int = 1
) -> Any:
    """Times [τ], mean velocity [h/τ] and angular momentum per particle about the centre [h²/τ]."""
    table = scene(CELLS, steps // 10, solver(relaxation, substeps=substeps, **fluid), every=10, substeps=substeps)
    # About an axis that is none of the box's, so that there is something to get wrong.
    axis = np.array([1.0, 2.0, 2.0]) / 3
    table["fluid"][0]["angular_velocity"] = tuple(spin / TAU * axis)
    frames = list(trial.simulation(table).frames())
    x, v = (np.array([f[name] for f in frames], float) for name in ("position", "velocity"))
    x, v = x / H, v * TAU / H
    mean = v.mean(1)
    turning = np.cross(x - x.mean(1, keepdims=True), v - mean[:, None]).mean(1)
    return np.array([f.time for f in frames]) / TAU, mean, turning


def _spun(trial: Trial, relaxation: str, steps: int, substeps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Times [τ] and angular momentum of a liquid that turns, share of the start."""
    t, _, turning = _followed(trial, relaxation, FLUIDS["liquid"], steps, SPIN, substeps)
    return t, np.linalg.norm(turning, axis=1) / np.linalg.norm(turning[0])


def _left_alone(trial: Trial, relaxation: str, steps: int) -> float:
    """Angular velocity [rad/τ] of a frozen cube that nobody touched; its springs and its pressure work against each other."""
    table = scene((8, 8, 8), steps // 10, solver(relaxation, k_spring=0.3), every=10)
    frame = list(trial.simulation(table).frames())[-1]
    x, v = frame["position"].astype(float) / H, frame["velocity"].astype(float) * TAU / H
    d, u = x - x.mean(0), v - v.mean(0)
    return float(np.linalg.norm(np.linalg.solve(np.eye(3) * (d * d).sum() - d.T @ d, np.cross(d, u).sum(0))))


def _measure(trial: Trial) -> Outcome:
    steps = 200 if trial.quick else 600
    checks, drifts, turns = [], [], []
    for relaxation in RELAXATIONS:
        for name, fluid in FLUIDS.items():
            t, mean, turning = _followed(trial, relaxation, fluid, steps, 0.0)
            drift = np.linalg.norm(mean - mean[0], axis=1)
            gained = np.linalg.norm(turning - turning[0], axis=1)
            label = f"{relaxation}, {name}"
            checks += [
                at_most(f"{label}: change of the mean velocity in {steps} steps [h/τ]", drift.max(), 1e-5),
                at_most(f"{label}: angular momentum gained, in a typical r v", gained.max() / TYPICAL, 0.01),
            ]
            drifts.append((label, t, np.maximum(drift, 1e-9)))
        spin = _left_alone(trial, relaxation, 150)
        checks.append(at_most(f"{relaxation}: spin of an elastic cube left alone [rad/τ]", spin, 5e-4))
        turns.append((relaxation, *_spun(trial, relaxation, steps)))
        kept = float(turns[-1][2][-1])
        checks.append(at_least(f"{relaxation}: angular momentum of a spinning drop, share kept", kept, 1 - 0.05 * steps / 100))
    turns.append(("coloured, Δt = τ/2", *_spun(trial, "coloured", steps, 2)))
    lost = {name: 1 - float(size[-1]) for name, _, size in turns}
    share = lost["coloured, Δt = τ/2"] / lost["coloured"]
    checks.append(Check("coloured: loss with Δt = τ/2, in that with Δt = τ", share, 0.5, 0.2))
    return Outcome(checks, {"drifts": drifts, "turns": turns})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import GREY, axes

    left = axes(figure, "time [τ = 1/30 s]", "change of the mean velocity [h/τ]", (1, 2, 1))
    curves(left, outcome.data["drifts"])
    left.axhline(1e-5, color=GREY, linestyle="--")
    left.set_yscale("log")
    right = axes(figure, "time [τ]", "angular momentum of a spinning drop / its start", (1, 2, 2))
    curves(right, outcome.data["turns"])


def _pulled(scene: dict[str, Any], number: int) -> None:
    scene["gravity"] = (0.0, -1e-6 * H / TAU**2, 0.0)


CASE = Case(
    name="pvfs_momentum",
    measures="Linear and angular momentum of drops, for every order of relaxation",
    source="Newton's third law; Clavet et al. 2005, §4.1: pairs are displaced by opposite amounts along their line",
    measure=_measure,
    mutation=Mutation("a millionth of a force from outside", _pulled),
    plot=_plot,
)
