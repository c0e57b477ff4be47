"""A block in free fall against the integrator's own closed form, and that against Newton's parabola."""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial

G = 9.81  # m/s²
DURATION = 0.096  # s
START = 0.05  # m, height of the block's centre: heights stay near 0, where float32 is finest


def _scene(dt: float) -> dict[str, Any]:
    return {
        "spacing": 0.01,
        "gravity": (0.0, -G, 0.0),
        "time": {"frames": round(DURATION / dt), "frame_time": dt, "steps_per_frame": 1},
        "solver": {"method": "pbf", "unilateral": True, "artificial_pressure": 0.0},
        "fluid": [{"shape": {"type": "box", "size": (0.05, 0.05, 0.05), "position": (0, START, 0)}, "material": "water"}],
    }


def _fall(trial: Trial, dt: float) -> dict[str, Any]:
    sim = trial.simulation(_scene(dt))
    frames = list(sim.frames())
    n = np.arange(len(frames))[:, None]
    drop = np.array([f["position"][:, 1] for f in frames], float)
    drop = drop - drop[0]
    speed = np.array([f["velocity"] for f in frames], float)
    exact = -0.5 * G * dt**2 * n * (n + 1)  # v_n = −n g Δt, y_n = y_0 − g Δt² n(n+1)/2
    sideways = np.abs(speed[:, :, [0, 2]]).max()
    return {
        "time": n[:, 0] * dt,
        "drop": drop.mean(1),
        "position_error": np.abs(drop - exact).max() / abs(exact[-1, 0]),
        "speed_error": max(np.abs(speed[:, :, 1] + G * dt * n).max(), sideways) / (G * dt * n[-1, 0]),
        "parabola_error": abs(drop[-1].mean() + 0.5 * G * DURATION**2),
    }


def _measure(trial: Trial) -> Outcome:
    steps = (0.004, 0.002, 0.001)
    falls = {dt: _fall(trial, dt) for dt in steps}
    errors = [falls[dt]["parabola_error"] for dt in steps]
    order = np.log2(errors[0] / errors[-1]) / np.log2(steps[0] / steps[-1])
    checks = [
        Check("largest position error at 4 ms, share of the fall", falls[0.004]["position_error"], 0.0, 5e-5),
        Check("largest velocity error at 4 ms, share of the speed", falls[0.004]["speed_error"], 0.0, 5e-5),
        Check("order in Δt of the distance to Newton's parabola", float(order), 1.0, 0.02),
    ]
    return Outcome(checks, {"falls": falls})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, axes

    left = axes(figure, "time [s]", "height lost [m]", (1, 2, 1))
    right = axes(figure, "time step [ms]", "distance to the parabola at the end [mm]", (1, 2, 2))
    t = np.linspace(0, DURATION, 100)
    left.plot(t, -0.5 * G * t**2, color=GREY, label="Newton")
    for (dt, fall), colour in zip(outcome.data["falls"].items(), (ORANGE, BLUE, GREEN), strict=True):
        left.plot(fall["time"], fall["drop"], ".", color=colour, ms=3, label=f"Δt = {1e3 * dt:g} ms")
        right.plot(1e3 * dt, 1e3 * fall["parabola_error"], "o", color=colour)
    step = np.array([0.0, 0.004])
    right.plot(1e3 * step, 1e3 * 0.5 * G * step * DURATION, color=GREY, label="g Δt t/2, symplectic Euler")
    left.legend()
    right.legend()


def _heavier(scene: dict[str, Any], number: int) -> None:
    scene["gravity"] = (0.0, -1.01 * G, 0.0)


CASE = Case(
    name="free_fall",
    measures="Free fall of a block of 125 particles",
    source="symplectic Euler in closed form: v_n = n g Δt, y_n = y_0 − g Δt² n(n+1)/2; Newton's parabola as Δt → 0",
    measure=_measure,
    mutation=Mutation("gravity 1 % too strong", _heavier),
    plot=_plot,
)
