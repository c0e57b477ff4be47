"""Time of every single loop of a step: on a GPU each of them is a launch, and together they are all there is.

Loops are timed one by one by the compiler's own profiler, without graphs, so that a step takes longer here than in a run: what
lies between loops is not part of them. They have no names of their own; each is told by its kernel and its place in it, in the
order of the source. ``serial`` are those of one thread: numbers that loops need and that no other loop has found.
"""

import gc
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from viscoil import backend
from viscoil.bench import store
from viscoil.bench.cases import CASES, Case, simulation
from viscoil.bench.report import Table, number

STEPS = 10


def _records() -> list[Any]:
    """What was launched since they were last forgotten, in order."""
    profiler = import_module("quadrants.profiler.kernel_profiler").get_default_kernel_profiler()
    profiler._update_records()
    return list(profiler._traced_records)


def _forget() -> None:
    import quadrants as qd

    qd.profiler.clear_kernel_profiler_info()


def place_of(name: str) -> tuple[str, str]:
    """(kernel and number of the loop in it, kind of loop) out of the compiler's name for it."""
    found = re.fullmatch(r"(.+?)_c\d+_\d+_kernel_(\d+)_(\w+?)", name)
    if found is None:
        return name, ""
    kernel, number_of_loop, kind = found.groups()
    return f"{kernel.strip('_')} {number_of_loop}", "serial" if "serial" in kind else "loop"


def measure(case: Case, particles: int, device: str, threads: int | None, whole: bool) -> dict[str, Any]:
    """One row: the loops of a step, in the order in which they first come."""
    sim = simulation(case, particles, device, threads)
    sim.world.stages.precise = not whole
    sim.solver.step(sim.world, case.dt)  # compiles
    backend.synchronise()
    _forget()
    for _ in range(STEPS):
        sim.solver.step(sim.world, case.dt)
    backend.synchronise()
    loops: dict[str, dict[str, Any]] = {}
    for record in _records():
        place, kind = place_of(record.name)
        loop = loops.setdefault(place, {"loop": place, "kind": kind, "launches": 0, "ms": 0.0})
        loop["launches"] += 1
        loop["ms"] += record.kernel_time
    for loop in loops.values():
        loop["launches"] /= STEPS
        loop["ms"] /= STEPS
    row = {"solver": case.solver, "particles": sim.world.fluid_count, "counts": case.counts, "loops": list(loops.values())}
    del sim
    gc.collect()  # device memory for the next one
    return row


def main(
    solvers: list[str] | None = None, particles: list[int] | None = None, device: str = "auto", threads: int | None = None,
    json: Path | None = None, iterations: int | None = None, whole: bool = False, say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Measures; ``whole``: the step as the one kernel that GPUs run, else by stages."""
    running = backend.start(device, threads, profiled=True)
    names, counts = solvers or list(CASES), particles or [100_000]
    command = f"viscoil bench loops --device {running.device} --solver {','.join(names)}"
    command += f" --particles {','.join(map(str, counts))}" + (" --whole" if whole else "")
    result = store.opened("loops", command + (f" --iterations {iterations}" if iterations else ""))
    for name in names:
        for count in counts:
            say(f"{name}: {count:,} particles")
            result["rows"].append(measure(CASES[name].with_iterations(iterations), count, device, threads, whole))
            store.write(json, result)
    return result


def tables(result: dict[str, Any]) -> list[Table]:
    """A table of each row."""
    found = []
    for row in result["rows"]:
        sum_ms = sum(loop["ms"] for loop in row["loops"]) or 1.0
        work = " + ".join(f"{value}" for value in row["counts"].values()) or "1"
        launches = sum(loop["launches"] for loop in row["loops"])
        title = f"{row['solver']}, {row['particles']:,} particles, {work} iterations"
        title += f": {launches:.0f} launches, {number(sum_ms)} ms"
        lines = [
            [
                loop["loop"], loop["kind"], f"{loop['launches']:g}", number(1e3 * loop["ms"] / loop["launches"]),
                number(loop["ms"]), f"{100 * loop['ms'] / sum_ms:.1f}",
            ]
            for loop in row["loops"]
        ]  # fmt: skip
        found.append((title, ["kernel and loop", "kind", "per step", "µs each", "ms per step", "%"], lines))
    return found


def draw(result: dict[str, Any], figure: Any) -> None:
    """Loops as bars, the first row's."""
    loops = result["rows"][0]["loops"]
    axes = figure.subplots()
    axes.barh([loop["loop"] for loop in loops][::-1], [loop["ms"] for loop in loops][::-1])
    axes.set_xlabel("ms per step")
    axes.tick_params(axis="y", labelsize=6)
