"""A Maxwell cube that slumps under its weight: conformation constraints beside explicit stress on SPH.

Barreiro et al. 2017 (section 6) report, for a cube of 32³ particles with a relaxation time of 0.015 s, stable steps of 0.1 ms
with stress and of 6 ms with constraints, and 7 times the speed. Modulus, particle size and the scene are not given; here the
edge is 0.25 m and the viscosity 1000 Pa s, so G = 67 kPa.

A step counts as good when nothing had to be repeated, the fluid never moves with a tenth of the energy it could fall by, and
the height stays within 5 % of a run of the stress-based method with much shorter steps. The longest good steps of both are
compared; how long both took for it is in the plot, and depends on the machine. A second check is the paper's remark that
very low relaxation times, high viscosity, are out of reach for stress: at a tenth of it, steps have to be shorter again.
"""

from typing import Any

import numpy as np

from viscoil.errors import SimulationFailed
from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most

EDGE = 0.25  # m
RHO = 1000.0
EVERY = 0.06  # between two looks at the height [s]
LOOKS = 8
LATEST = 0.012  # between two looks at whether it is still stable, where steps are that short [s]
MEMORY = 0.015  # relaxation time λ [s]
SHORTER = 0.0015  # the same viscosity with ten times the modulus [s]
ACCURACY = 0.05
STRESS = (0.006, 0.004, 0.003, 0.002, 0.001, 0.0005, 0.00025, 0.0001)  # s, tried from the longest
CONSTRAINTS = (0.06, 0.03, 0.02, 0.012, 0.006, 0.003, 0.001)


def _scene(method: str, step: float, cells: int, memory: float, looks: int) -> dict[str, Any]:
    frame = LATEST if step <= LATEST else EVERY
    return {
        "spacing": EDGE / cells,
        "time": {"frames": round(looks * EVERY / frame), "frame_time": frame, "step": step},
        "solver": {"method": method},
        "material": {"m": {"density": RHO, "viscosity": 1000.0, "relaxation_time": memory}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": [EDGE] * 3, "position": (0, EDGE / 2, 0)}}],
        "solid": [{"friction": "no-slip", "shape": {"type": "plane"}}],
    }


def _slump(
    trial: Trial, method: str, step: float, memory: float = MEMORY, looks: int = LOOKS
) -> tuple[np.ndarray | None, float]:
    """(height of the top every 0.06 s [m], None when unstable; seconds the steps took)."""
    cells = 10 if trial.quick else 32
    sim = trial.simulation(_scene(method, step, cells, memory, looks))
    top = sim.frame()["position"][:, 1] > EDGE * (1 - 1 / cells)
    heights, seconds = [], 0.0
    try:
        for frame in sim.frames():
            row = sim.metrics()
            if row["retries"] or row["kinetic_energy"] > 0.1 * RHO * EDGE**3 * 9.81 * EDGE / 2:
                return None, seconds
            seconds += row["seconds"]
            if abs(frame.time / EVERY - len(heights)) < 1e-6:
                heights.append(float(frame["position"][top, 1].mean()))
    except SimulationFailed:
        return None, seconds
    return np.array(heights), seconds


def _best(trial: Trial, method: str, steps: tuple[float, ...], reference: np.ndarray) -> dict[str, Any]:
    """The longest stable and the longest good step; heights and seconds of the latter, timed once its kernels are there."""
    stable = float("nan")
    for step in steps:
        heights, _ = _slump(trial, method, step)
        if heights is None:
            continue
        stable = step if np.isnan(stable) else stable
        error = float(np.abs(heights / reference - 1).max())
        if error <= ACCURACY:
            seconds = min(_slump(trial, method, step)[1] for _ in range(3))
            return {"stable": stable, "good": step, "heights": heights, "error": error, "seconds": seconds}
    nothing = float("nan")
    return {"stable": stable, "good": nothing, "heights": None, "error": nothing, "seconds": nothing}


def _measure(trial: Trial) -> Outcome:
    fine = 0.0005 if trial.quick else 0.0001
    reference, _ = _slump(trial, "ucm_sph", fine)
    if reference is None:
        reference = np.full(LOOKS + 1, np.nan)
    found = {
        "stress": _best(trial, "ucm_sph", STRESS, reference),
        "constraints": _best(trial, "dcpbd", CONSTRAINTS, reference),
    }
    ratio = found["constraints"]["good"] / found["stress"]["good"]
    brief = (step for step in STRESS if _slump(trial, "ucm_sph", step, SHORTER, 2)[0] is not None)
    stiffer = next(brief, float("nan"))
    checks = [
        at_least("longest good step of the constraints, in that of the stress", ratio, 5.0),
        at_most("longest stable step of the stress at a tenth of λ, in that at λ", stiffer / found["stress"]["stable"], 0.5),
    ]
    speed = found["stress"]["seconds"] / found["constraints"]["seconds"]
    return Outcome(
        checks, {"reference": reference, "fine": fine, "found": found, "ratio": ratio, "speed": speed, "stiffer": stiffer}
    )


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    picture = axes(figure, "time [s]", "height of the cube's top [m]")
    t, data = np.arange(LOOKS + 1) * EVERY, outcome.data
    picture.fill_between(
        t, (1 - ACCURACY) * data["reference"], (1 + ACCURACY) * data["reference"], color=GREY, alpha=0.2,
        label=f"stress, Δt = {1e3 * data['fine']:g} ms, ± {ACCURACY:.0%}",
    )  # fmt: skip
    for (name, row), colour in zip(data["found"].items(), (ORANGE, BLUE), strict=True):
        if row["heights"] is not None:
            label = f"{name}, Δt = {1e3 * row['good']:g} ms: {row['seconds']:.3g} s"
            picture.plot(t, row["heights"], "o-", color=colour, label=label)
    picture.set_title(
        f"steps {data['ratio']:.3g} times as long (paper: 60), {data['speed']:.3g} times as fast here (paper: 7)", fontsize=9
    )
    picture.legend()


def _explicit(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["method"] = "ucm_sph"


CASE = Case(
    name="stress_baseline",
    measures="Longest time step that gets a slumping Maxwell cube right: constraints beside explicit stress",
    source="Barreiro et al. 2017, section 6: 6 ms against 0.1 ms",
    measure=_measure,
    mutation=Mutation("stress in place of the constraints", _explicit),
    plot=_plot,
)
