"""Whole steps of PVFS with and without springs, beside the speeds of Clavet et al. 2005 and the fastest CPU code known to us.

A block stands on a floor under a little gravity, with the paper's constants and one step per 1/30 s, as published: k = 0.004,
k_near = 0.01, k_spring = 0.3, α = 0.3, γ = 0.1, springs frozen at the start. "in a run" is a frame of a simulation, with
checks, sorting of memory and metrics; "solver" its steps alone; "CPU" the time of all cores together, which other programs
on a busy machine disturb less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import rounds

ROUNDS = 5  # measured per row; the median counts
STEPS = 10  # per round, and per frame
SUPPORT = 0.05  # h [m]
GRAVITY = 0.001  # ĝ = g τ²/h: a pile of ten h is then compressed by a tenth
MATTER = {"k_spring": 0.3, "alpha": 0.3, "gamma": 0.1}  # the paper's plastic material
ANCHORS = (
    (10.5e6, "64k particles, 32 threads of a Threadripper 3960X, README of github.com/yabadabu/viscoelastic_cpu"),
    (39.8e6, "131k particles, 23 threads of a Ryzen 9 9900X, benchmarks/results there, October 2026"),
)  # particle-steps/s: double density relaxation and collisions of at most 64 neighbours, no springs, no viscosity


@dataclass(frozen=True)
class Load:
    """One row: what is simulated."""

    name: str
    edges: tuple[int, int, int]  # particles along x, y and z
    springs: bool
    wanted: float | None  # [ms] per step: what we asked for, on two CPU cores, or on an H200 for the million
    paper: float | None  # [ms] per frame in 2005, one step with surface and display


LOADS = [
    Load("1k", (10, 10, 10), True, 10.0, 100.0),
    Load("20k", (28, 26, 28), True, 1e3 / 12, 2000.0),
    Load("20k_liquid", (28, 26, 28), False, None, 2000.0),
    Load("1m", (100, 100, 100), True, 8.0, None),
]


def scene(load: Load, relaxation: str = "auto") -> Any:
    """A block on a floor."""
    from viscoil.scene.schema import Scene
    from viscoil.solvers.pvfs import PVFSParams
    from viscoil.solvers.pvfs_matter import TAU

    spacing = 0.38 * SUPPORT
    size = [spacing * edge for edge in load.edges]
    return Scene(
        title=load.name,
        spacing=spacing,
        gravity=(0.0, -GRAVITY * SUPPORT / TAU**2, 0.0),
        time={"frame_time": STEPS * TAU, "steps_per_frame": STEPS},
        solver=PVFSParams.clavet(SUPPORT, beta=0.1, relaxation=relaxation, **(MATTER if load.springs else {})),
        material={"fluid": {"density": 1000.0}},
        fluid=[
            {
                "material": "fluid", "jitter": 0.05,
                "shape": {"type": "box", "size": size, "position": [0, size[1] / 2 + spacing / 2, 0]},
            }
        ],
        solid=[{"name": "floor", "friction": "no-slip", "shape": {"type": "plane"}}],
    )  # fmt: skip


def measure(load: Load, device: str, threads: int | None, relaxation: str = "auto") -> dict[str, Any]:
    """Seconds per step of a run and of the solver alone, and the split; medians of several rounds."""
    from viscoil.simulate import Simulation
    from viscoil.solvers.pvfs_matter import TAU

    sim = Simulation(scene(load, relaxation), device=device, threads=threads)
    sim.advance_frame()  # compiles, freezes springs, makes lists and rows long enough
    times = rounds.timed(sim, STEPS, TAU, ROUNDS)
    world, neighbours, springs = sim.world, rounds.listed_neighbours(sim), sim.solver.metrics()["springs"]
    return {
        "name": load.name, "particles": world.fluid_count, "relaxation": sim.solver.form, "springs": springs,
        "neighbours": neighbours, **times, "rate": world.fluid_count / times["seconds"], "wanted": load.wanted,
        "paper": load.paper,
        "bytes": rounds.moved(sim, {}),
    }  # fmt: skip


def main(
    names: list[str], device: str, threads: int | None, relaxations: list[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """All rows asked for, once per relaxation."""
    from viscoil.bench import machine

    backend.start(device, threads)
    about, rows = machine.describe(), []
    for load in LOADS:
        for relaxation in relaxations or ["auto"]:
            if load.name in names:
                say(f"{load.name}: {int(np.prod(load.edges)):,} particles, {relaxation}")
                rows.append(measure(load, device, threads, relaxation))
    anchors = [{"rate": rate, "source": source} for rate, source in ANCHORS]
    return {"machine": about, "rows": rows, "anchors": anchors}


def table(result: dict[str, Any]) -> str:
    """The rows as text, and what stands beside them."""
    lines = [
        f"{'load':10} {'particles':>9} {'relaxation':>10} {'springs':>7} {'neighbours':>10} {'ms/step':>8} {'steps/s':>8} "
        f"{'solver ms':>9} {'CPU ms':>7} {'asked ms':>8} {'2005 ms':>7} {'Mp·st/s':>8} {'TB/s':>5}  share of stages"
    ]
    for row in result["rows"]:
        wanted, paper = (f"{row[key]:.0f}" if row[key] else "" for key in ("wanted", "paper"))
        moved = f"{row['bytes'] / row['step'] / 1e12:.2f}" if row["bytes"] else ""
        lines.append(
            f"{row['name']:10} {row['particles']:>9,} {row['relaxation']:>10} {row['springs']:>7.1f} "
            f"{row['neighbours']:>10.1f} {1e3 * row['seconds']:>8.2f} {1 / row['seconds']:>8.1f} {1e3 * row['step']:>9.2f} "
            f"{1e3 * row['cpu']:>7.1f} {wanted:>8} {paper:>7} {row['rate'] / 1e6:>8.3f} {moved:>5}  "
            f"{rounds.shares(row['stages'])}"
        )
    for row in result["rows"]:
        if row["springs"]:
            ratio = row["stages"]["springs"] / row["stages"]["relaxation"]
            verdict = "more than" if ratio > 1 else "not more than"
            lines.append(
                f"{row['name']}, {row['relaxation']}: springs cost {verdict} the relaxation ({ratio:.2f} of it; "
                f"{row['springs']:.0f} springs and {row['neighbours']:.0f} listed neighbours per particle)"
            )
    lines.append("ms/step: in a run, median of frames; CPU ms: of all cores together; 2005: a frame with surface and display")
    lines += rounds.busy(result["machine"])
    for anchor in result["anchors"]:
        lines.append(f"beside: {anchor['rate'] / 1e6:.1f} Mp·st/s, {anchor['source']} (no springs, no viscosity)")
    return "\n".join(lines)
