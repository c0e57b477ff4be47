"""A column of water at rest (IISPH): compression at the asked error, pressure ρ g depth, and what a warm start saves.

Between walls of boundary particles, and between walls given by their distance. The pressure of a particle is the one thing an
implicit pressure solver computes and nobody tells it; in a column at rest it must be the weight above.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.takahashi import RHO, STEP, D, per_step, pressures

G = 9.81
TOLERANCE = 1e-3
WALLS = ("particles", "distance")


def _scene(quick: bool, boundary: str, warm: float) -> dict[str, Any]:
    wide, high = (5, 14) if quick else (10, 30)
    size = (wide * D, high * D, wide * D)
    tank = (wide * D, (high + 4) * D, wide * D)
    return {
        "spacing": D,
        "time": {"frames": 60 if quick else 100, "frame_time": 10 * STEP, "steps_per_frame": 10},
        "solver": {
            "method": "iisph", "correction": "none", "xsph": 0.1, "tolerance": TOLERANCE, "iterations": 200, "warm_start": warm
        },
        "material": {"m": {"density": RHO}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": (0, size[1] / 2, 0)}}],
        "solid": [
            {"shape": {"type": "box", "size": tank, "position": (0, tank[1] / 2, 0)}, "container": True, "boundary": boundary}
        ],
    }  # fmt: skip


def _settle(trial: Trial, boundary: str, warm: float) -> dict[str, Any]:
    """A column after it has come to rest: means over the last third of the run."""
    sim = trial.simulation(_scene(trial.quick, boundary, warm))
    rows, layers = [], []
    for frame in sim.frames():
        rows.append(sim.metrics())
        if frame.index > sim.scene.time.frames * 2 / 3:
            layers.append((frame["position"][:, 1].astype(float), pressures(sim)))
    height, p = (np.mean([layer[k] for layer in layers], axis=0) for k in (0, 1))
    late = rows[-len(layers) :]
    inside = (height > 2 * D) & (height < height.max() - 2 * D)
    slope, base = np.polyfit(height[inside], p[inside], 1)
    return {
        "height": height, "pressure": p,
        "slope": -slope / (RHO * G),
        "surface": -base / slope,
        "spread": float(np.std(p[inside] - (base + slope * height[inside])) / (RHO * G * height.max())),
        "error": max(row["density_error"] for row in late),
        "iterations": float(np.mean([per_step(row) for row in late])),
        "time": [row["time"] for row in rows[1:]], "counts": [per_step(row) for row in rows[1:]],
        "energy": late[-1]["kinetic_energy"] / (len(p) * RHO * D**3 * G * height.max() / 2),
        "sunk": 1 - height.mean() / (rows[0]["centre_of_mass_y"]),
    }  # fmt: skip


def _measure(trial: Trial) -> Outcome:
    runs = {(boundary, warm): _settle(trial, boundary, warm) for boundary in WALLS for warm in (0.5, 0.0)}
    checks = []
    for boundary in WALLS:
        run, cold = (runs[boundary, warm] for warm in (0.5, 0.0))
        checks += [
            at_most(f"{boundary}: mean compression the last iterations predict, worst frame", run["error"], 1.05 * TOLERANCE),
            Check(f"{boundary}: pressure gradient, in ρg", run["slope"], 1.0, 0.05),
            at_most(f"{boundary}: scatter of pressures about the line, in ρg height", run["spread"], 0.05),
            at_most(f"{boundary}: kinetic energy at rest / potential energy", run["energy"], 1e-4),
            Check(f"{boundary}: the centre of mass sank by", run["sunk"], 0.0, 0.02),
            at_most(f"{boundary}: iterations with a warm start / without", run["iterations"] / cold["iterations"], 0.8),
        ]
    return Outcome(checks, {"runs": runs})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    left = axes(figure, "pressure [kPa]", "height [m]", (1, 2, 1))
    right = axes(figure, "time [s]", "pressure iterations per step", (1, 2, 2))
    for boundary, colour in zip(WALLS, (BLUE, ORANGE), strict=True):
        warm, cold = (outcome.data["runs"][boundary, share] for share in (0.5, 0.0))
        left.plot(warm["pressure"] / 1e3, warm["height"], ".", color=colour, ms=3, label=f"walls: {boundary}")
        right.plot(warm["time"], warm["counts"], color=colour, label=f"{boundary}, warm start")
        right.plot(cold["time"], cold["counts"], ":", color=colour, label=f"{boundary}, from zero")
    top = warm["surface"]
    left.plot([RHO * G * top / 1e3, 0], [0, top], "--", color=GREY, label="ρ g depth")
    left.legend()
    right.legend(fontsize=8)


def _two(scene: dict[str, Any], number: int) -> None:
    scene["solver"] |= {"iterations": 2, "tolerance": 0.0}


CASE = Case(
    name="iisph_column",
    measures="A resting column (IISPH, Δt = 2 ms, d = 4 cm): compression, pressure over depth, iterations",
    source="hydrostatics, p = ρ g depth; Ihmsen et al. 2014: half the last pressures save iterations",
    measure=_measure,
    mutation=Mutation("two iterations per step", _two),
    plot=_plot,
)
