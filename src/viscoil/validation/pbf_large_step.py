"""A ball dropped into a pool: PBF with long steps beside PCISPH (Macklin & Müller 2013, Figs. 3 and 4).

A run is called stable when no step had to be repeated, the fluid never holds 20 % more energy than it started with, and no
particle is ever compressed by half. Both methods correct compression only, so that their densities can be compared.

What does not carry over is the number: the paper reports PCISPH to be unstable below 10 steps per frame (Δt = 1.6 ms). Here
it survives 8 ms and fails at 16 ms, the step PBF takes without trouble (24 ms too; not 32 ms). The limit depends on
particle size and speed.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most

SPACING = 0.02
WIDTH = 0.32
POOL = 0.12
FRAME = 0.016  # s
ENERGY_LIMIT = 1.2
DENSITY_LIMIT = 1.5
STEPS = (0.032, 0.024, 0.016, 0.008, 0.004, 0.0016)  # s, tried from the longest


def _scene(method: str, dt: float, iterations: int, frames: int) -> dict[str, Any]:
    solver: dict[str, Any] = {"method": method, "iterations": iterations}
    if method == "pbf":
        solver |= {"unilateral": True, "artificial_pressure": 0.0}
    else:
        solver |= {"tolerance": 0.0}  # all iterations, as PBF does
    frame = max(dt, FRAME)
    return {
        "spacing": SPACING,
        "time": {"frames": round(frames * FRAME / frame), "frame_time": frame, "steps_per_frame": round(frame / dt)},
        "solver": solver,
        "fluid": [
            {"shape": {"type": "box", "size": (WIDTH, POOL, WIDTH), "position": (0, POOL / 2, 0)}, "material": "water"},
            {"shape": {"type": "sphere", "radius": 0.09, "position": (0, 0.34, 0)}, "material": "water"},
        ],
        "solid": [{"shape": {"type": "box", "size": (WIDTH, 3, WIDTH), "position": (0, 1.5, 0)}, "container": True}],
    }


def _drop(trial: Trial, method: str, dt: float, iterations: int) -> dict[str, Any]:
    from viscoil.errors import SimulationFailed

    sim = trial.simulation(_scene(method, dt, iterations, 40 if trial.quick else 100))
    rows, failed = [], False
    try:
        for _ in sim.frames():
            rows.append(sim.metrics())
    except SimulationFailed:
        failed = True
    column = {k: np.array([r[k] for r in rows], float) for k in ("time", "density_mean", "density_max", "kinetic_energy",
              "centre_of_mass_y", "retries")}  # fmt: skip
    weight = rows[0]["particles"] * 1000 * SPACING**3 * 9.81
    energy = column["kinetic_energy"] + weight * column["centre_of_mass_y"]
    gain, dense = float(np.max(energy) / energy[0]), float(np.max(column["density_max"]))
    quiet = not failed and column["retries"].sum() == 0
    stable = quiet and gain < ENERGY_LIMIT and dense < DENSITY_LIMIT
    return {**column, "energy": energy / energy[0], "gain": gain, "dense": dense, "stable": float(stable)}


def _late_median(run: dict[str, Any], key: str) -> float:
    """Over the time after the ball reached the pool; not a number when the run ended before."""
    values = run[key][run["time"] > 0.2]
    return float(np.median(values)) if len(values) else np.nan


def _largest_step(trial: Trial, method: str, iterations: int) -> float:
    """The longest of STEPS with a stable run [s]; 0 when there is none."""
    return next((dt for dt in STEPS if _drop(trial, method, dt, iterations)["stable"]), 0.0)


def _measure(trial: Trial) -> Outcome:
    runs = {
        "PBF, 16 ms, 10 iterations": _drop(trial, "pbf", FRAME, 10),
        "PCISPH, 16 ms, 10 iterations": _drop(trial, "pcisph", FRAME, 10),
        "PBF, 4 ms, 10 iterations": _drop(trial, "pbf", FRAME / 4, 10),
        "PCISPH, 1.6 ms, 4 iterations": _drop(trial, "pcisph", FRAME / 10, 4),
    }
    long, rival, fine, fine_rival = runs.values()
    mean, other = (_late_median(r, "density_mean") for r in (fine, fine_rival))
    most, most_other = (_late_median(r, "density_max") for r in (fine, fine_rival))
    checks = [
        Check("PBF at 16 ms stable (1 = yes)", long["stable"], 1.0),
        Check("PBF at 16 ms, largest energy / its start", long["gain"], 1.0, 0.05, "at most"),
        Check("PBF at 16 ms, largest density / rest", long["dense"], 1.0, 0.25),
        Check("PCISPH at 16 ms stable (1 = yes)", rival["stable"], 0.0),
        Check("40 iterations per frame: PBF − PCISPH, mean density", mean - other, 0.0, 0.01),
        Check("40 iterations per frame: PBF − PCISPH, largest density", most - most_other, 0.0, 0.02),
    ]
    if not trial.quick:
        checks += [
            at_least("longest stable step of PBF [s]", _largest_step(trial, "pbf", 10), FRAME),
            at_most("longest stable step of PCISPH [s]", _largest_step(trial, "pcisph", 4), FRAME / 2),
        ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, RED, axes, plain_numbers

    runs = outcome.data["runs"]
    left = axes(figure, "time [s]", "density / rest density, inside", (1, 2, 1))
    right = axes(figure, "time [s]", "energy / its start", (1, 2, 2))
    left.axhline(1, color=BLUE, linewidth=0.8, label="rest density")
    for (name, run), dashes in zip(runs.items(), ("--", "--", "-", "-"), strict=True):
        colour = GREEN if name.startswith("PBF") else RED
        right.semilogy(run["time"], run["energy"], dashes, color=colour, label=name)
        if dashes == "-":
            left.plot(run["time"], run["density_mean"], color=colour, label=f"{name}: mean")
            left.plot(run["time"], run["density_max"], ":", color=colour, label=f"{name}: max")
    left.set_ylim(0.985, 1.025)
    plain_numbers(right, "y")
    left.legend(fontsize=7)
    right.legend(fontsize=7)


def _no_softness(scene: dict[str, Any], number: int) -> None:
    if scene["solver"]["method"] == "pbf":
        # Momentum has a limit of its own for what an iteration may correct.
        scene["solver"] |= {"relaxation": 0.0, "acceleration": "none"}


CASE = Case(
    name="pbf_large_step",
    measures="A ball dropped into a pool: PBF at 16 ms, and densities beside PCISPH",
    source="Macklin & Müller 2013, Fig. 4, §8: PBF stable at 16 ms where PCISPH is not; similar compression",
    measure=_measure,
    mutation=Mutation("no constraint force mixing (ε = 0)", _no_softness),
    plot=_plot,
)
