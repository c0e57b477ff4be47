"""Time per stage of a step, particles·iterations per second, and how near that is to what the machine can do.

Three ways of looking: *stages* waits for the device after every part of a step, which tells the parts apart; *whole steps* are
launched as in a run (a GPU is not waited for), which is what throughput is computed from; *one iteration* is what doubling the
number of iterations adds to a whole step. All three start from the same state and take turns.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import limits, machine, memory, store, traffic, yardstick
from viscoil.bench.cases import CASES, Case, repeats, simulation
from viscoil.bench.rounds import listed_neighbours, row_ends, timed_steps
from viscoil.errors import SimulationFailed

ON_CPU = [20_000, 100_000]
ON_GPU = [20_000, 100_000, 1_000_000]
MORE = {"pbf": {False: [500_000], True: [10_000_000]}}  # by solver, and whether it is a GPU
ROOM_FOR_MORE = 16e9  # [B] free memory of a GPU from which the largest is measured
ROUNDS = 5
SECONDS_PER_ROUND = 0.4
MOST_STEPS = 20  # per round


def default_particles(solver: str) -> list[int]:
    """Particle counts for the device that runs."""
    gpu = backend.current().is_gpu
    more = MORE.get(solver, {}).get(gpu, [])
    return [*(ON_GPU if gpu else ON_CPU), *(more if not gpu or machine.free_graphics_memory() > ROOM_FOR_MORE else [])]


class Alternating:
    """Steps of one simulation in several ways, always from the same state."""

    def __init__(self, sim: Any, case: Case):
        self.sim, self.case, self.steps = sim, case, 1
        self.as_in_a_run = sim.world.stages.precise
        sim.world.remember()
        for precise in {True, self.as_in_a_run}:  # compiles
            self._timed(precise)
        self.steps = int(np.clip(SECONDS_PER_ROUND / self.whole(), 1, MOST_STEPS))
        self._make_room()

    def _make_room(self) -> None:
        """Lists and rows long enough for all steps that will be timed: nobody looks after them there."""
        world, solver = self.sim.world, self.sim.solver
        while True:
            world.reset_status()
            self.whole()
            needed, short = world.neighbors.overflow(), solver.short_of_room()
            if needed:
                world.neighbors.widen(needed)
            if short:
                solver.make_room(world, short)
                world.remember()
            if not needed and not short:
                return

    def _timed(self, precise: bool) -> tuple[float, dict[str, float]]:
        result = timed_steps(self.sim, self.steps, self.case.dt, precise)
        self.sim.world.go_back()
        return result

    def whole(self) -> float:
        """Seconds of a step, launched as in a run."""
        return self._timed(self.as_in_a_run)[0]

    def parts(self) -> tuple[float, dict[str, float]]:
        """(seconds of a step that is waited for after every stage, seconds of its stages)."""
        return self._timed(True)

    def doubled(self, key: str) -> float:
        """Seconds of a step with twice the iterations that ``key`` counts."""
        params = self.sim.solver.params
        setattr(params, key, 2 * self.case.counts[key])
        try:
            return self.whole()
        finally:
            setattr(params, key, self.case.counts[key])


def step_times(sim: Any, case: Case, rounds: int = ROUNDS) -> dict[str, Any]:
    """Whole steps and single iterations [ms], the best of several rounds each."""
    ways = Alternating(sim, case)
    whole, doubled = [], {key: [] for key in case.counts}
    for _ in range(rounds):
        whole.append(ways.whole())
        for key, taken in doubled.items():
            taken.append(ways.doubled(key))
    return {"steps": ways.steps * rounds, "step_ms": 1e3 * min(whole), "iteration_ms": _each(case, min(whole), doubled, {})}


def _each(case: Case, step: float, doubled: dict[str, list[float]], stages: dict[str, float]) -> dict[str, float]:
    """Milliseconds of one iteration, by kind, from steps [s] with twice as many of it.

    On a busy machine the difference of two small steps is noise. A stage holds all its iterations and some more, so one takes
    at most its part of that (or of the step, where stages are not known), and at least half of it (a tenth).
    """
    result = {}
    for key, taken in doubled.items():
        most = stages.get(case.stage_of[key], step) / case.counts[key]
        least = 0.5 * most if stages else 0.1 * most
        result[key] = 1e3 * float(np.clip((min(taken) - step) / case.counts[key], least, most))
    return result


def _search(sim: Any) -> tuple[float, float]:
    """Seconds of a sort into cells and of a list, each alone."""
    ours = yardstick.Ours(sim.world, sim.solver)
    ours.list()  # compiles
    taken, begin = [], perf_counter()
    while len(taken) < ROUNDS or perf_counter() - begin < SECONDS_PER_ROUND:
        taken.append(ours.list())
    sort, listing = np.min(taken, axis=0)
    return float(sort), float(listing)


def _divided(sim: Any, stages: dict[str, float]) -> dict[str, float]:
    """Stages with the search as sort and list: a step has both in one launch, here divided as each takes alone."""
    sort, listing = _search(sim)
    result = {}
    for name in sim.solver.stages:
        if name == "neighbours":
            whole = stages.get(name, 0.0)
            result |= {"sort": whole * sort / (sort + listing), "list": whole * listing / (sort + listing)}
        elif name in stages:
            result[name] = stages[name]
    return result


def _times(sim: Any, case: Case, rounds: int) -> dict[str, Any]:
    """All times of a row [ms], the best of several rounds each."""
    ways = Alternating(sim, case)
    whole, parts, doubled = [], [], {key: [] for key in case.counts}
    for _ in range(rounds):  # taking turns: a busy moment of the machine meets all of them
        whole.append(ways.whole())
        parts.append(ways.parts())
        for key, taken in doubled.items():
            taken.append(ways.doubled(key))
    precise, stages = min(parts, key=lambda part: part[0])
    bad, _ = sim.world.read_status()
    if bad is not None:
        raise SimulationFailed(f"{sim.scene.title}: the fluid did not stay together; the times would mean nothing")
    frames = []
    for _ in range(2):
        begin = perf_counter()
        sim.advance_frame()
        frames.append((perf_counter() - begin) / case.steps)
    step = min(whole)
    return {
        "steps": ways.steps * rounds, "stages_ms": {k: 1e3 * v for k, v in _divided(sim, stages).items()},
        "stepwise_ms": 1e3 * precise, "step_ms": 1e3 * step, "run_ms": 1e3 * min(frames),
        "iteration_ms": _each(case, step, doubled, stages),
    }  # fmt: skip


def floors(row: dict[str, Any], copies: dict[str, Any]) -> dict[str, Any]:
    """What the machine's limits say about a row: least times [ms] and the share of them that was reached.

    "memory": all bytes come from memory; "hot": as fast as copies of the same size; "walk": neighbours only fetched.
    """
    count, model = row["particles"], row["traffic"]
    moved = {"step": model["step"], **model["iteration"]}
    taken = {"step": row["step_ms"], **row["iteration_ms"]}
    result: dict[str, Any] = {"memory_ms": {}, "hot_ms": {}, "walk_ms": {}, "share": {}, "hot_share": {}, "walk_share": {}}
    for key in taken:
        size = moved[key] * count
        result["memory_ms"][key] = 1e3 * size / copies["memory"]
        result["hot_ms"][key] = 1e3 * size / limits.rate_at(copies, size)
        result["share"][key] = result["memory_ms"][key] / taken[key]
        result["hot_share"][key] = result["hot_ms"][key] / taken[key]
        if key != "step":
            result["walk_ms"][key] = model["walks"][key] * row["walk_ms"]
            result["walk_share"][key] = result["walk_ms"][key] / taken[key]
    return result


def timed(case: Case, particles: int, device: str, threads: int | None) -> dict[str, Any]:
    """Times and rates alone, and how much the fluid of the last frame was compressed."""
    sim = simulation(case, particles, device, threads)
    return {**_rates(sim, case, _times(sim, case, ROUNDS)), "compression": sim.metrics()["compression"]}


def _rates(sim: Any, case: Case, times: dict[str, Any]) -> dict[str, Any]:
    """Times, and particles·iterations per second of whole steps and of iterations alone."""
    iterations = sum(case.counts[key] * times["iteration_ms"][key] for key in case.counts) or times["step_ms"]
    work = 1e3 * sim.world.fluid_count * case.iterations
    rates = {"rate": work / times["step_ms"], "iteration_rate": work / iterations}
    return {"particles": sim.world.fluid_count, "iterations": case.iterations, **times, **rates}


def measure(
    case: Case, particles: int, copies: dict[str, Any], device: str, threads: int | None, rounds: int = ROUNDS
) -> dict[str, Any]:
    """One row."""
    sim = simulation(case, particles, device, threads)
    world, counts = sim.world, repeats(sim, case)
    times = _rates(sim, case, _times(sim, case, rounds))
    listed, ends = listed_neighbours(sim), row_ends(sim)
    row = {
        "solver": case.solver, "neighbours": listed, "ends": ends, "counts": counts, **times,
        "walk_ms": 1e3 * limits.walking(world), "traffic": traffic.account(sim, counts, listed, ends),
        "memory": memory.account(sim),
    }  # fmt: skip
    row["floors"] = floors(row, copies)
    del sim, world
    gc.collect()  # device memory for the next, larger one
    return row


def _yardstick_rows(
    counts: list[int], device: str, threads: int | None, rounds: int, say: Callable[[str], None]
) -> tuple[dict[str, Any] | None, list[str]]:
    """(comparison with C++ or None, why there is none)."""
    if backend.current().is_gpu:
        return None, ["The C++ yardstick runs on the CPU and is left out on a GPU."]
    if yardstick.compiler() is None:
        return None, ["g++ was not found: the comparison with C++ is left out."]
    program = yardstick.build()
    if program is None:
        return None, ["g++ could not compile the yardstick (OpenMP missing?): the comparison with C++ is left out."]
    rows = []
    for count in counts:
        say(f"C++ yardstick: {count:,} particles")
        sim = yardstick.floating_block(count, device, threads)
        rows.append(yardstick.compare(sim, program, 2 * rounds, threads, 10 * SECONDS_PER_ROUND))
        gc.collect()
    return {"compiler": yardstick.version(), "flags": " ".join(yardstick.FLAGS), "rows": rows}, []


def main(
    solvers: list[str] | None = None,
    particles: list[int] | None = None,
    device: str = "auto",
    threads: int | None = None,
    json: Path | None = None,
    iterations: int | None = None,
    rounds: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    beside: bool = True,
) -> dict[str, Any]:
    """Measures, writes ``json`` after every row if a file is given, and returns what was measured.

    ``beside``: on a CPU also the C++ yardstick, at the sizes of PBF.
    """
    backend.start(device, threads)
    rounds = rounds or ROUNDS
    names = solvers or list(CASES)
    result = store.opened("stages", _command(solvers, particles, iterations, threads), copy=None, yardstick=None)
    say("copying")
    result["copy"] = limits.copying()
    for name in names:
        case = CASES[name].with_iterations(iterations)
        for count in particles or default_particles(name):
            say(f"{name}: {count:,} particles")
            result["rows"].append(measure(case, count, result["copy"], device, threads, rounds))
            store.write(json, result)
    if "pbf" in names and beside:
        counts = particles or default_particles("pbf")
        result["yardstick"], more = _yardstick_rows(counts, device, threads, rounds, say)
        result["notes"] += more
    store.write(json, result)
    return result


def _command(solvers: list[str] | None, counts: list[int] | None, iterations: int | None, threads: int | None) -> str:
    parts = ["viscoil bench stages", f"--device {backend.current().device}"]
    parts += [f"--solver {','.join(solvers)}"] if solvers else []
    parts += [f"--particles {','.join(map(str, counts))}"] if counts else []
    parts += [f"--iterations {iterations}"] if iterations else []
    return " ".join(parts + ([f"--threads {threads}"] if threads else []))
