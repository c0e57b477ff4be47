"""Timing in rounds: a frame of a run, steps of the solver alone, and steps with every stage waited for, in turns.

A busy moment of the machine then meets all three alike, and medians forget it.
"""

from time import perf_counter, process_time
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import traffic

BUSY = 0.5  # load per core from which other programs disturb the measurement


def launch(sim: Any, steps: int, dt: float) -> None:
    """``steps`` steps of ``dt`` [s] as a run launches them: those of a frame at once, where that can be."""
    each = sim.scene.time.steps_per_frame or 1
    for done in range(0, steps, each):
        sim.solver.steps(sim.world, dt, min(each, steps - done))


def timed_steps(sim: Any, steps: int, dt: float, precise: bool) -> tuple[float, dict[str, float]]:
    """(seconds per step, seconds per step and stage) of ``steps`` steps of ``dt`` [s].

    ``precise``: every stage is waited for.
    """
    world = sim.world
    before, world.stages.precise = world.stages.precise, precise
    world.stages.taken()
    backend.synchronise()
    begin = perf_counter()
    launch(sim, steps, dt)
    backend.synchronise()
    seconds = perf_counter() - begin
    world.stages.precise = before
    return seconds / steps, {name: value / steps for name, value in world.stages.taken().items()}


def timed(sim: Any, steps: int, dt: float, rounds: int) -> dict[str, Any]:
    """Seconds per step: in a run ("seconds", "fastest"), of the solver alone ("step"), of all cores in a run ("cpu"), and by
    stage ("stages"); medians of ``rounds``. A frame has ``steps`` steps of ``dt`` [s]. Everything is compiled before. And
    the mean "compression" of the last frame."""
    timed_steps(sim, steps, dt, True)
    run, work, step, parts = [], [], [], []
    for _ in range(rounds):
        backend.synchronise()
        begin, before = perf_counter(), process_time()
        sim.advance_frame()
        backend.synchronise()
        run.append((perf_counter() - begin) / steps)
        work.append((process_time() - before) / steps)
        step.append(timed_steps(sim, steps, dt, sim.world.stages.precise)[0])
        parts.append(timed_steps(sim, steps, dt, True)[1])
    return {
        "seconds": float(np.median(run)), "fastest": float(min(run)), "step": float(np.median(step)),
        "cpu": float(np.median(work)), "compression": sim.metrics()["compression"],
        "stages": {name: float(np.median([part.get(name, 0.0) for part in parts])) for name in sim.solver.stages},
    }  # fmt: skip


def listed_neighbours(sim: Any) -> float:
    """Entries of the neighbour list per particle of the fluid."""
    return float(sim.world.neighbors.list.count.to_numpy()[: sim.world.count].sum() / sim.world.fluid_count)


def row_ends(sim: Any) -> float:
    """Springs or bonds that a particle's row holds, in the mean."""
    number = sim.world.carried.get("number")
    return float(number.get(sim.world.count).sum() / sim.world.fluid_count) if number is not None else 0.0


def moved(sim: Any, counts: dict[str, int]) -> float:
    """Bytes that a step of all particles has to move at least, see traffic.py."""
    return traffic.account(sim, counts, listed_neighbours(sim), row_ends(sim))["step"] * sim.world.fluid_count


def shares(stages: dict[str, float]) -> str:
    """Stages as parts of a step, those that took any time."""
    whole = sum(stages.values())
    return ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in stages.items() if value)


def busy(machine: dict[str, Any]) -> list[str]:
    """What to say about other programs on a CPU, if anything."""
    if machine["load"] > BUSY * machine["cores"] and not machine["gpu"]:
        return [f"The machine was busy (load {machine['load']:g} before the start): times are too long."]
    return []
