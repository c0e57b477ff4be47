"""Water at rest (IISPH): compression at the asked error, pressure ρ g depth, and what a warm start saves.

Between walls of boundary particles, and between walls given by their distance. The pressure is the one thing an implicit solver
computes and nobody tells it: in a pool without sides it must be the weight above. On a perfect lattice neighbouring layers do
not agree about it (kernels of two spacings couple every other layer only), so that the pool starts shaken.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.takahashi import RHO, STEP, D, per_step, pressures

G = 9.81
TOLERANCE = 1e-3
WALLS = ("particles", "distance")
FIRST = {"particles": (1.6, 0.4), "distance": (1.0, 0.2)}


def _scene(quick: bool, boundary: str, warm: float) -> dict[str, Any]:
    wide, high = (5, 14) if quick else (10, 30)
    size = (wide * D, high * D, wide * D)
    tank = (wide * D, (high + 4) * D, wide * D)
    return {
        "spacing": D,
        "time": {"frames": 40 if quick else 100, "frame_time": 10 * STEP, "steps_per_frame": 10},
        "solver": {
            "method": "iisph", "correction": "none", "xsph": 0.1, "tolerance": TOLERANCE, "iterations": 200, "warm_start": warm
        },
        "material": {"m": {"density": RHO}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": (0, size[1] / 2, 0)}}],
        "solid": [
            {"shape": {"type": "box", "size": tank, "position": (0, tank[1] / 2, 0)}, "container": True, "boundary": boundary}
        ],
    }  # fmt: skip


def _endless(quick: bool, boundary: str) -> dict[str, Any]:
    """A periodic piece of an endless pool, seven particles wide."""
    wide, high = 7 * D, (14 if quick else 30) * D
    floor: dict[str, Any] = {"type": "plane"}
    if boundary == "particles":
        floor = {"type": "box", "size": (19 * D, 4 * D, 19 * D), "position": (0, -2 * D, 0)}
    shape = {"type": "box", "size": (wide, high, wide), "position": (0, high / 2, 0)}
    return {
        "spacing": D,
        "domain": {"min": (-wide / 2, -1, -wide / 2), "max": (wide / 2, 3, wide / 2), "periodic": "xz"},
        "time": {"frames": 30 if quick else 100, "frame_time": 10 * STEP, "steps_per_frame": 10},
        "solver": {"method": "iisph", "correction": "none", "xsph": 0.2, "tolerance": TOLERANCE / 10, "iterations": 500},
        "material": {"m": {"density": RHO}},
        "fluid": [{"material": "m", "shape": shape, "jitter": 0.2}],
        "solid": [{"shape": floor, "boundary": boundary}],
    }


def _pool(trial: Trial, boundary: str) -> dict[str, Any]:
    """Mean height [m] and pressure [Pa] of layers one spacing thick, over the run's last half, and a line through them."""
    sim = trial.simulation(_endless(trial.quick, boundary))
    late = [(f["position"][:, 1].astype(float), pressures(sim)) for f in sim.frames() if f.index > sim.scene.time.frames // 2]
    y, p = (np.concatenate([one[k] for one in late]) for k in (0, 1))
    layer = (y / D).astype(int)
    full = [k for k in range(layer.max() + 1) if (layer == k).sum() > 20 * len(late)]
    height, pressure = (np.array([values[layer == k].mean() for k in full]) for values in (y, p))
    slope, base = np.polyfit(height[2:-2], pressure[2:-2], 1)
    return {
        "height": height, "pressure": pressure, "slope": -slope / (RHO * G), "surface": -base / slope,
        "noise": float(np.std(pressure[2:-2] - base - slope * height[2:-2]) / base),
        "first": float(pressure[0] / (base + slope * height[0])),
    }  # fmt: skip


def _settle(trial: Trial, boundary: str, warm: float) -> dict[str, Any]:
    """A column in its tank after it has come to rest: means over the last third of the run."""
    sim = trial.simulation(_scene(trial.quick, boundary, warm))
    rows, heights = [], []
    for frame in sim.frames():
        rows.append(sim.metrics())
        heights.append(float(frame["position"][:, 1].mean()))
    late = rows[-len(rows) // 3 :]
    return {
        "error": max(row["density_error"] for row in late),
        "iterations": float(np.mean([per_step(row) for row in late])),
        "time": [row["time"] for row in rows[1:]], "counts": [per_step(row) for row in rows[1:]],
        "energy": late[-1]["kinetic_energy"] / (len(frame) * RHO * D**3 * G * heights[0]),
        "sunk": 1 - float(np.mean(heights[-len(late) :])) / heights[0],
    }  # fmt: skip


def _measure(trial: Trial) -> Outcome:
    runs = {(boundary, warm): _settle(trial, boundary, warm) for boundary in WALLS for warm in (0.5, 0.0)}
    pools = {boundary: _pool(trial, boundary) for boundary in WALLS}
    checks = []
    for boundary in WALLS:
        run, cold, pool = runs[boundary, 0.5], runs[boundary, 0.0], pools[boundary]
        checks += [
            at_most(f"{boundary}: mean compression the last iterations predict, worst frame", run["error"], 1.05 * TOLERANCE),
            Check(f"{boundary}: pressure gradient, in ρg", pool["slope"], 1.0, 0.06),
            at_most(f"{boundary}: scatter of layers about the line, in the pressure at the floor", pool["noise"], 0.02),
            # One layer of samples that mirror a pressure pushes less than fluid would, so that the layer beside it has more.
            Check(f"{boundary}: pressure of the layer at the floor, in the line's", pool["first"], *FIRST[boundary]),
            Check(f"{boundary}: the column sank by", run["sunk"], 0.0, 0.02),
            at_most(f"{boundary}: kinetic energy at rest / potential energy", run["energy"], 5e-4),
            at_most(f"{boundary}: iterations with a warm start / without", run["iterations"] / cold["iterations"], 0.8),
        ]
    return Outcome(checks, {"runs": runs, "pools": pools})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    left = axes(figure, "pressure [kPa]", "height [m]", (1, 2, 1))
    right = axes(figure, "time [s]", "pressure iterations per step", (1, 2, 2))
    for boundary, colour in zip(WALLS, (BLUE, ORANGE), strict=True):
        pool = outcome.data["pools"][boundary]
        warm, cold = (outcome.data["runs"][boundary, share] for share in (0.5, 0.0))
        left.plot(pool["pressure"] / 1e3, pool["height"], "o", color=colour, ms=4, label=f"floor: {boundary}")
        right.plot(warm["time"], warm["counts"], color=colour, label=f"{boundary}, warm start")
        right.plot(cold["time"], cold["counts"], ":", color=colour, label=f"{boundary}, from zero")
    top = pool["surface"]
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
