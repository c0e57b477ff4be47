"""Whole frames of viscoelastic fluid at the sizes of Barreiro et al. 2017 (Table 1), and how fast the velocity projections are.

A cube of fluid stands on a table; steps per frame, iterations per step and relaxation times are the paper's. Every
iteration is carried out: the tolerance is one that single precision does not reach, and rows say which share was made. "N + M"
are iterations of the velocity projection and of the density constraint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import rounds
from viscoil.bench.block import edges
from viscoil.bench.scenes import acted

FRAMES = 5  # measured per row; the best counts
SETTLING = 6  # frames before projections are compared: the cube has to be slumping
SPACING = 0.01  # [m]
NEVER = 1e-30  # residual, relative to its start, that conjugate gradients do not come to; to 1e-7 the waffle takes 11 of 40


@dataclass(frozen=True)
class Load:
    """One row: what is simulated."""

    name: str
    particles: int
    steps: int  # per frame
    dt: float  # [s]
    iterations: int  # of the velocity projection
    density: int  # iterations of the density constraint
    viscosity: float  # [Pa s]
    relaxation: float  # [s]; 0 = Newtonian
    wanted: float | None  # [s] per frame on an H200
    paper: float | None  # [s] per frame on a GTX 1070


LOADS = [
    Load("interactive", 15_000, 3, 1 / 200, 8, 8, 50.0, 0.1, 0.0015, 0.03),
    Load("honey", 105_000, 10, 1 / 300, 10, 10, 10.0, 0.0, 0.008, 0.15),
    Load("waffle", 80_000, 10, 1 / 300, 40, 40, 100.0, 0.1, 0.045, 1.42),
    Load("million", 1_000_000, 3, 1 / 200, 8, 8, 10.0, 0.0, 0.025, None),
    Load("bears", 12_000_000, 5, 1 / 150, 15, 15, 5e4, 0.5, 0.6, 19.0),
]


def scene(load: Load, projection: str = "cg", density: int | None = None, tolerance: float = NEVER) -> Any:
    """A cube on a table."""
    from viscoil.scene.schema import Scene

    size = [SPACING * edge for edge in edges(load.particles)]
    material: dict[str, Any] = {"density": 1000.0, "viscosity": load.viscosity}
    if load.relaxation:
        material["relaxation_time"] = load.relaxation
    return Scene(
        title=load.name,
        spacing=SPACING,
        time={"frame_time": load.steps * load.dt, "steps_per_frame": load.steps},
        solver={
            "method": "dcpbd", "projection": projection, "velocity_iterations": load.iterations,
            "velocity_tolerance": tolerance, "iterations": density or load.density,
        },
        material={"fluid": material},
        fluid=[
            {
                "material": "fluid", "jitter": 0.1,
                "shape": {"type": "box", "size": size, "position": [0, size[1] / 2 + SPACING, 0]},
            }
        ],
        solid=[{"name": "table", "friction": "no-slip", "shape": {"type": "plane"}}],
    )  # fmt: skip


def _frame(sim: Any) -> float:
    """Seconds of a frame as a run has it, with checks, sorting of memory and metrics."""
    backend.synchronise()
    begin = perf_counter()
    sim.advance_frame()
    return perf_counter() - begin


def measure(load: Load, device: str, threads: int | None, projection: str = "cg", density: int | None = None) -> dict[str, Any]:
    """Seconds per frame, its split, and what the projection achieved."""
    from viscoil.simulate import Simulation

    sim = Simulation(scene(load, projection, density), device=device, threads=threads)
    sim.advance_frame()
    taken = []
    for _ in range(FRAMES):
        backend.synchronise()
        begin = perf_counter()
        sim.solver.begin_frame()
        rounds.launch(sim, load.steps, load.dt)
        backend.synchronise()
        taken.append(perf_counter() - begin)
    numbers = sim.solver.metrics()
    run = min(_frame(sim) for _ in range(2))
    told = acted(sim.metrics())
    rounds.timed_steps(sim, 1, load.dt, True)  # compiles
    _, each = rounds.timed_steps(sim, load.steps, load.dt, True)
    stages = {name: load.steps * value for name, value in each.items()}
    neighbours = float(sim.world.neighbors.list.count.to_numpy()[: sim.world.count].mean())
    seconds = min(taken)
    repeated = {"velocity_iterations": load.iterations, "iterations": density or load.density}
    moved = load.steps * rounds.moved(sim, {**repeated, "rounds": sim.solver.rounds(sim.world, load.dt)})
    return {
        "name": load.name, "particles": sim.world.count, "projection": projection, "steps": load.steps,
        "iterations": f"{load.iterations} + {density or load.density}", "neighbours": neighbours, "seconds": seconds,
        "median": float(np.median(taken)), "run": run,
        "made": numbers["velocity_iterations"] / (FRAMES * load.steps * load.iterations),
        "wanted": load.wanted, "paper": load.paper, "bytes": moved, "stages": stages,
        "rate": sim.world.count * load.steps * (load.iterations + (density or load.density)) / seconds,
        **numbers, **told,
    }  # fmt: skip


def convergence(load: Load, device: str, threads: int | None, target: float = 0.01) -> list[dict[str, Any]]:
    """Each projection: iterations and milliseconds of one step until the residual is below ``target`` of its start."""
    from viscoil.simulate import Simulation

    rows = []
    for projection in ("cg", "chebyshev", "jacobi"):
        sim = Simulation(scene(load, projection, tolerance=1e-3), device=device, threads=threads)
        for _ in range(SETTLING):
            sim.advance_frame()
        state, number = sim.state(), 4
        while True:
            sim.restore(state)
            sim.solver.params.velocity_iterations = number
            sim.solver.begin_frame()
            for _ in range(2):  # the first one compiles, and estimates eigenvalues
                sim.world.stages.precise = True
                sim.world.stages.taken()
                sim.solver.step(sim.world, load.dt)
            seconds, found = sim.world.stages.taken()["project"], sim.solver.metrics()
            if found["residual"] < target or number > 2000:
                reached, residual = number if found["residual"] < target else None, found["residual"]
                rows.append({"projection": projection, "iterations": reached, "seconds": seconds, "residual": residual})
                break
            number = max(number + 2, int(number * 1.25))
    return rows


def main(
    names: list[str], device: str, threads: int | None, density: int | None = None, projection: str = "cg",
    compare: bool = False, say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """All rows asked for."""
    from viscoil.bench import machine

    backend.start(device, threads)
    rows, compared = [], {}
    for load in LOADS:
        if load.name in names:
            say(f"{load.name}: {load.particles:,} particles")
            rows.append(measure(load, device, threads, projection, density))
            if compare:
                compared[load.name] = convergence(load, device, threads)
    return {"machine": machine.describe(), "rows": rows, "convergence": compared}


def table(result: dict[str, Any]) -> str:
    """The rows as text."""
    lines = [
        f"{'load':12} {'particles':>11} {'steps':>5} {'iterations':>10} {'neighbours':>10} {'s/frame':>9} {'asked':>6} "
        f"{'paper':>6} {'G/s':>6} {'TB/s':>5}  share of stages"
    ]
    for row in result["rows"]:
        whole = sum(row["stages"].values())
        shares = ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in row["stages"].items())
        paper = f"{row['paper']:.2f}" if row["paper"] else ""
        lines.append(
            f"{row['name']:12} {row['particles']:>11,} {row['steps']:>5} {row['iterations']:>10} {row['neighbours']:>10.1f} "
            f"{row['seconds']:>9.4f} {row['wanted']:>6.3f} {paper:>6} {row['rate'] / 1e9:>6.3f} "
            f"{row['bytes'] / row['seconds'] / 1e12:>5.2f}  {shares}"
        )
    for name, rows in result["convergence"].items():
        for row in rows:
            steps = f"{row['iterations']} iterations" if row["iterations"] else "not within 2000 iterations"
            took = f"{1e3 * row['seconds']:.2f} ms, residual {row['residual']:.4f}"
            lines.append(f"{name}: {row['projection']:9} {steps}, {took}")
    return "\n".join(lines)
