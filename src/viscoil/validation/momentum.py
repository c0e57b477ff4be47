"""Linear momentum of two fluids that crash into each other without gravity."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, setting

SPACING = 0.02


def _scene(quick: bool) -> dict[str, Any]:
    n = 8 if quick else 14
    size = (n * SPACING, n * SPACING, n * SPACING)
    half = n * SPACING / 2
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": 25 if quick else 50, "frame_time": 0.004, "steps_per_frame": 1},
        "solver": {
            "method": "pbf", "iterations": 4, "unilateral": False, "artificial_pressure": 0.01, "xsph": 0.05, "vorticity": 0.0,
        },
        "material": {"light": {"density": 500}, "heavy": {"density": 2000}},
        "fluid": [
            {"shape": {"type": "box", "size": size, "position": (-half, 0, 0)}, "material": "light", "jitter": 0.1},
            {"shape": {"type": "box", "size": size, "position": (half, 0, 0)}, "material": "heavy", "jitter": 0.1},
        ],
    }


def _measure(trial: Trial) -> Outcome:
    sim = trial.simulation(_scene(trial.quick))
    state = sim.state()
    # Random motion plus a common drift, so that the momentum to be kept is not zero.
    rng = np.random.default_rng(1)
    state["particles/velocity"] = rng.uniform(-1, 1, state["particles/velocity"].shape).astype(np.float32) + 0.2
    sim.restore(state)
    frames = [sim.frame(), *sim.frames()]
    momentum, scale = [], []
    for frame in frames:
        density = np.array([m["density"] for m in frame.materials])[frame["material"]]
        mv = (density * SPACING**3)[:, None] * frame["velocity"].astype(float)
        momentum.append(mv.sum(0))
        scale.append(np.linalg.norm(mv, axis=1).sum())
    drift = np.linalg.norm(np.array(momentum) - momentum[0], axis=1) / scale[0]
    time = np.array([f.time for f in frames])
    checks = [Check("largest change of Σ m v, in Σ m|v| of the start", float(drift.max()), 0.0, 1e-5)]
    return Outcome(checks, {"time": time, "drift": drift, "scale": np.array(scale) / scale[0]})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, RED, axes

    d = outcome.data
    left = axes(figure, "time [s]", "change of momentum, in Σ m|v|", (1, 2, 1))
    left.semilogy(d["time"][1:], np.maximum(d["drift"][1:], 1e-12), color=BLUE)
    left.axhline(1e-5, color=RED, linestyle="--", label="tolerance")
    left.legend()
    right = axes(figure, "time [s]", "Σ m|v| / its start", (1, 2, 2))
    right.plot(d["time"], d["scale"], color=GREY)
    right.set_ylim(bottom=0)


CASE = Case(
    name="momentum",
    measures="Momentum of two fluids of density 1 : 4 with random velocities, without gravity",
    source="Newton's third law: pairs of particles exchange opposite impulses, so Σ m v stays what it was",
    measure=_measure,
    mutation=Mutation("vorticity confinement on (a force without a counterforce)", setting("solver.vorticity", 0.1)),
    plot=_plot,
)
