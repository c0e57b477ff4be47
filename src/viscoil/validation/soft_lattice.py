"""Soft bodies made of particles are as stiff as their Young's modulus says, at any spacing, and come back to their shape.

A column that stands on the ground is shorter by ρgH/(2E) of its height H under its own weight (no friction, small strain). A
lattice of springs whose stiffness was chosen for one spacing would miss that at the next; bonds that are not converged would
make the column softer. What is left is the surface, whose particles lack bonds: a column of 4 particles across sags 22 % too
much, of 6 14 %, of 8 11 %. A stretched block without gravity comes back to its shape.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most

E = 6e4  # Young's modulus [Pa]
HIGH, WIDE = 0.24, 0.12  # column [m]
DENSITY, G = 1000.0, 9.81
SAG = DENSITY * G * HIGH / (2 * E)


def _soft(method: str, spacing: float, size: tuple[float, float, float], frames: int, iterations: int, **more: Any) -> Any:
    body = {
        "kind": "soft", "density": DENSITY, "young_modulus": E, "poisson_ratio": 0.25, "damping_time": 0.02,
        "shape": {"type": "box", "size": size, "position": (0, size[1] / 2, 0)},
    }  # fmt: skip
    return {
        "spacing": spacing, "solver": {"method": method, "iterations": iterations}, "particle_solid": [body],
        "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 6}, **more,
    }  # fmt: skip


def _by_id(sim: Any, name: str) -> np.ndarray:
    return sim.world.get(name)[np.argsort(sim.world.get("id"))].astype(float)


def _left(sim: Any, dt: float) -> float:
    """RMS of what the last step left of the bonds' equations, −(1 + T/Δt) C + (T/Δt) C⁰ − α̃λ, over the RMS of their strain."""
    from viscoil.solids.clusters import ROW  # the compiler with it: a look at the table of cases needs none
    from viscoil.sph.sums import on_gpu

    e, rows = sim.world.clusters.elastic, sim.world.count  # one body: slots are ids
    place = sim.world.get("position")[np.argsort(sim.world.get("id"))]
    table = (getattr(e, name).to_numpy() for name in ("partner", "length", "before", "multiplier"))
    layout = (ROW, rows) if on_gpu() else (rows, ROW)
    partner, length, before, multiplier = (x.reshape(layout).T if on_gpu() else x.reshape(layout) for x in table)
    bonded = partner != np.arange(rows)[:, None]
    stretch = (np.linalg.norm(place[partner] - place[:, None], axis=2) - length)[bonded]
    before, multiplier = before[bonded], multiplier[bonded]
    ratio, compliance = float(e.damping.to_numpy()[0]) / dt, float(e.compliance.to_numpy()[0]) / dt**2
    rest = -(1 + ratio) * stretch + ratio * before - compliance * multiplier
    return float(np.sqrt((rest**2).mean() / (stretch**2).mean()))


def _column(trial: Trial, method: str, spacing: float, iterations: int, frames: int = 40) -> tuple[float, float]:
    """(strain at rest, what is left of the bonds' equations)."""
    ground = {"shape": {"type": "plane"}}
    sim = trial.simulation(_soft(method, spacing, (WIDE, HIGH, WIDE), frames, iterations, solid=[ground]))
    start = _by_id(sim, "position")
    for _ in sim.frames():
        pass
    moved = _by_id(sim, "position") - start
    high, low = start[:, 1] > HIGH - spacing, start[:, 1] < spacing
    sag = (moved[low, 1].mean() - moved[high, 1].mean()) / (HIGH - spacing)
    return float(sag), _left(sim, 1 / 360)


def _recovery(trial: Trial, method: str) -> float:
    """Largest strain that is left a second after a block was stretched by 30 %."""
    sim = trial.simulation(_soft(method, 0.02, (0.12, 0.12, 0.12), 60, 5, gravity=(0, 0, 0)))
    sim.world.set("position", sim.world.get("position") * np.array([1.3, 0.9, 0.9], np.float32))
    for _ in sim.frames():
        pass
    size = np.ptp(_by_id(sim, "position"), axis=0) / np.ptp(_by_id(sim, "rest"), axis=0)
    return float(np.abs(size - 1).max())


def _measure(trial: Trial) -> Outcome:
    checks, data = [], {}
    numbers = (1, 3, 9) if trial.quick else (1, 2, 4, 8, 16)
    for method in ("pbf",) if trial.quick else ("pbf", "dcpbd"):
        coarse, fine = (_column(trial, method, spacing, 6)[0] for spacing in (0.02, 0.015 if trial.quick else 0.01))
        residuals = [_column(trial, method, 0.03, n)[1] for n in numbers]
        data[method] = residuals
        checks += [
            Check(f"{method}: sag of a column, coarse, over ρgH/2E", coarse / SAG, 1.0, 0.2),
            Check(f"{method}: sag of a column, fine, over ρgH/2E", fine / SAG, 1.0, 0.2),
            Check(f"{method}: sag, fine over coarse", fine / coarse, 1.0, 0.2),
            at_most(f"{method}: residual of the bonds, {numbers[-1]} iterations over 1", residuals[-1] / residuals[0], 0.1),
            at_most(f"{method}: strain left 1 s after a stretch of 30 %", _recovery(trial, method), 0.01),
        ]
    return Outcome(checks, data | {"numbers": numbers})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import axes

    drawing = axes(figure, "iterations per step", "residual of the bonds over their strain")
    for method, residuals in outcome.data.items():
        if method != "numbers":
            drawing.loglog(outcome.data["numbers"], residuals, "o-", label=method)
    drawing.legend(fontsize=8)


def _half(scene: dict[str, Any], number: int) -> None:
    scene["particle_solid"][0]["young_modulus"] /= 2


CASE = Case(
    name="soft_lattice",
    measures="Soft bodies made of particles: stiffness at two spacings, convergence, recovery",
    source="Hooke's law for a column under its own weight",
    measure=_measure,
    mutation=Mutation("half the modulus", _half),
    plot=_plot,
)
