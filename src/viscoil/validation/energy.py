"""Kinetic energy of a closed box: nothing feeds it, so it may only fall.

Particles start disordered. A perfect lattice resists being sheared and gives part of the energy back while it melts; that
is an exchange with its order, not a gain, and would hide what is looked for here.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, setting

SPACING = 0.02
SPEED = 0.3  # m/s, amplitude at the start
SIDE = 12  # particles
RELAX = 20  # frames


def _scene(dt: float, frames: int) -> dict[str, Any]:
    length = SIDE * SPACING
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "domain": {"min": (0, 0, 0), "max": (length, length, length), "periodic": "xyz"},
        "time": {"frames": frames, "frame_time": 0.016, "steps_per_frame": round(0.016 / dt)},
        "solver": {
            "method": "pbf", "iterations": 10, "unilateral": True, "artificial_pressure": 0.0, "xsph": 0.0,
            "kernels": "spiky",
        },
        "fluid": [
            {
                "shape": {"type": "box", "size": (length,) * 3, "position": (length / 2,) * 3},
                "material": "water",
                "jitter": 0.3,
            }
        ],
    }  # fmt: skip


def _relax(sim: Any) -> None:
    """Lets jittered particles find their places without gaining speed."""
    for _ in range(RELAX):
        state = sim.state()
        state["particles/velocity"][:] = 0
        sim.restore(state)
        sim.advance_frame()


def _decay(trial: Trial, dt: float) -> dict[str, Any]:
    sim = trial.simulation(_scene(dt, RELAX + (40 if trial.quick else 60)))
    _relax(sim)
    state = sim.state()
    x = state["particles/position"] * (2 * np.pi / (SIDE * SPACING))
    vortices = [np.sin(x[:, 0]) * np.cos(x[:, 1]), -np.cos(x[:, 0]) * np.sin(x[:, 1]), 0 * x[:, 0]]
    state["particles/velocity"] = (SPEED * np.stack(vortices, 1)).astype(np.float32)
    sim.restore(state)
    mass = 1000 * SPACING**3
    frames = [sim.frame(), *sim.frames()]
    energy = np.array([0.5 * mass * (f["velocity"].astype(float) ** 2).sum() for f in frames])
    return {"time": np.array([f.time - frames[0].time for f in frames]), "energy": energy / energy[0]}


def _measure(trial: Trial) -> Outcome:
    runs = {dt: _decay(trial, dt) for dt in ((0.004,) if trial.quick else (0.004, 0.001))}
    checks = []
    for dt, run in runs.items():
        rise = np.max(run["energy"] - np.minimum.accumulate(run["energy"]))
        checks.append(Check(f"largest rise of kinetic energy at {1e3 * dt:g} ms, share of the start", float(rise), 0.0, 1e-3))
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    picture = axes(figure, "time [s]", "kinetic energy / its start")
    for (dt, run), colour in zip(outcome.data["runs"].items(), (BLUE, ORANGE), strict=False):
        picture.plot(run["time"], run["energy"], color=colour, label=f"Δt = {1e3 * dt:g} ms")
    picture.axhline(1, color=GREY, linewidth=0.8)
    picture.set_ylim(bottom=0)
    picture.legend()


CASE = Case(
    name="energy",
    measures="Kinetic energy of a Taylor–Green vortex in a full periodic box",
    source="first law: no work is done on a closed box of passive fluid, its kinetic energy never rises",
    measure=_measure,
    mutation=Mutation("the paper's pair of kernels (Poly6 densities, Spiky gradients)", setting("solver.kernels", "paper")),
    plot=_plot,
)
