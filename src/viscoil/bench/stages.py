"""Time per stage of a step and particles·iterations per second, for blocks of fluid at rest.

Two ways of looking: *stages* waits for the device after every part of a step, which tells the parts apart; *whole
steps* are launched as in a run (a GPU is not waited for), which is what throughput is computed from.
"""

import gc
import json as encoder
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import block, machine, paper, passes, yardstick
from viscoil.bench.rounds import timed_steps
from viscoil.errors import SimulationFailed

FORMAT = 1
ON_CPU = [20_000, 100_000, 500_000]
ON_GPU = [20_000, 100_000, 500_000, 1_000_000]
LARGEST = 10_000_000  # measured by default where the GPU has room
ROOM_FOR_LARGEST = 16e9  # [bytes] free memory from which it is
ROUNDS = 5
SECONDS_PER_ROUND = 0.4
MOST_STEPS = 20  # per round
BUSY = 0.5  # load per core from which other programs disturb the measurement


def default_particles() -> list[int]:
    """Particle counts for the device that runs."""
    if not backend.current().is_gpu:
        return list(ON_CPU)
    return [*ON_GPU, LARGEST] if _free_graphics_memory() > ROOM_FOR_LARGEST else list(ON_GPU)


def _free_graphics_memory() -> float:
    """Bytes free on the smallest NVIDIA card, 0 where nobody can tell."""
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()
        return min(float(text) for text in answer) * 2**20
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0.0


def _simulation(scene: Any, device: str, threads: int | None) -> Any:
    """A block that has gone through one frame: compiled, settled, its lists long enough."""
    from viscoil.simulate import Simulation

    sim = Simulation(scene, device=device, threads=threads)
    sim.advance_frame()
    return sim


class _Start:
    """Positions and velocities to come back to: left alone, the block would lose its lattice and gain neighbours."""

    def __init__(self, world: Any):
        ids = world.get("id")
        self._values = {name: np.empty_like(world.get(name)) for name in ("position", "velocity")}
        for name, values in self._values.items():
            values[ids] = world.get(name)

    def restore(self, world: Any) -> None:
        """The same state, whatever order the arrays are in by now."""
        ids = world.get("id")
        for name, values in self._values.items():
            world.set(name, values[ids])


def _search(sim: Any) -> tuple[float, float]:
    """Seconds of a sort into cells and of a list, each alone."""
    ours = yardstick.Ours(sim.world, sim.solver)
    ours.list()  # compiles
    taken, begin = [], perf_counter()
    while len(taken) < ROUNDS or perf_counter() - begin < SECONDS_PER_ROUND:
        taken.append(ours.list())
    sort, listing = np.min(taken, axis=0)
    return float(sort), float(listing)


def _bytes_per_iteration(neighbours: float) -> float:
    """Memory one particle needs in one iteration [B] if every array is read or written once per pass.

    The list twice (4 B an entry); 16 to clear the walls' part; λ: 44 read, 8 written; Δp: 40 read, 12 written; new
    positions: 40 read, 12 written. Positions of neighbours count once: they come from the cache.
    """
    return 2 * 4 * neighbours + 16 + 52 + 52 + 52


def measure(scene: Any, device: str, threads: int | None, rounds: int = ROUNDS) -> dict[str, Any]:
    """Times of one block; the best of several rounds each."""
    sim = _simulation(scene, device, threads)
    world, dt, iterations = sim.world, block.step_length(scene.method), scene.solver.iterations
    as_in_a_run = world.stages.precise
    for precise in (True, as_in_a_run):  # compiles
        timed_steps(sim, 1, dt, precise)
    one, _ = timed_steps(sim, 1, dt, as_in_a_run)
    number = int(np.clip(SECONDS_PER_ROUND / one, 1, MOST_STEPS))
    start = _Start(world)
    whole, parts, frames = [], [], []
    for _ in range(rounds):  # taking turns: a busy moment of the machine meets all of them
        start.restore(world)
        whole.append(timed_steps(sim, number, dt, as_in_a_run)[0])
        start.restore(world)
        begin = perf_counter()
        sim.advance_frame()
        frames.append((perf_counter() - begin) / block.STEPS_PER_FRAME)
        start.restore(world)
        parts.append(timed_steps(sim, number, dt, True))
    precise, seconds = min(parts, key=lambda part: part[0])
    bad, _ = world.read_status()
    if world.neighbors.overflow() or bad is not None:
        raise SimulationFailed(f"{scene.title}: the block did not stay at rest; the times would mean nothing")
    listed = passes.mean_neighbors(world)
    sort, listing = _search(sim)
    neighbours = seconds.pop("neighbours")
    # The step has both in one launch: divided here in proportion to the times each takes alone.
    seconds |= {"sort": neighbours * sort / (sort + listing), "list": neighbours * listing / (sort + listing)}
    order = [name for name in ("integrate", "sort", "list", "solve", "velocity") if name in seconds]
    result = {
        "particles": world.fluid_count,
        "neighbours": listed,
        "iterations": iterations,
        "steps": number * rounds,
        "stages_ms": {name: 1e3 * seconds[name] for name in order},
        "iteration_ms": 1e3 * seconds["solve"] / iterations,
        "stepwise_ms": 1e3 * precise,
        "step_ms": 1e3 * min(whole),
        "run_ms": 1e3 * min(frames),
        "rate": world.fluid_count * iterations / min(whole),
        "iteration_rate": world.fluid_count * iterations / seconds["solve"],
    }
    if scene.method == "pbf":
        each = _bytes_per_iteration(listed)
        result |= {"bytes_per_iteration": each, "bandwidth": each * result["iteration_rate"]}
    del sim, world
    gc.collect()  # device memory for the next, larger block
    return result


def _paper_rows(device: str, threads: int | None, rounds: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Blocks of the sizes of the paper's scenes, with its iterations and with confinement."""
    rows = []
    for scene in paper.SCENES:
        say(f"{scene.name}: {scene.particles:,} particles, {scene.iterations} iterations")
        times = measure(
            block.scene(scene.particles, "pbf", scene.iterations, vorticity=paper.VORTICITY), device, threads, rounds
        )
        published = {
            "particles": scene.particles,
            "step_ms": scene.step_ms,
            "split": dict(zip(paper.CATEGORIES, scene.split, strict=True)) if scene.split else None,
        }
        rows.append({"scene": scene.name, **times, "split": paper.split(times["stages_ms"]), "paper": published})
    return rows


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


def run(
    solver: str = "pbf",
    particles: list[int] | None = None,
    device: str = "auto",
    threads: int | None = None,
    iterations: int = 4,
    rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Everything that is measured, as plain values; ``say`` hears what is going on."""
    backend.start(device, threads)
    counts = particles or default_particles()
    result: dict[str, Any] = {
        "format": FORMAT,
        "kind": "stages",
        "command": _command(solver, counts, iterations, threads),
        "solver": solver,
        "machine": machine.describe(),
        "blocks": [],
        "paper": [],
        "yardstick": None,
        "notes": [],
    }
    for count in counts:
        say(f"{count:,} particles, {iterations} iterations")
        result["blocks"].append(measure(block.scene(count, solver, iterations), device, threads, rounds))
    if solver == "pbf":
        result["paper"] = _paper_rows(device, threads, rounds, say)
        result["yardstick"], result["notes"] = _yardstick_rows(counts, device, threads, rounds, say)
    before = result["machine"]["load"]
    if before > BUSY * backend.cores():
        result["notes"].append(
            f"The machine was busy (load {before:g} on {backend.cores()} cores before the start): times are too long, and "
            "only ratios of things measured in turns mean something."
        )
    return result


def _command(solver: str, counts: list[int], iterations: int, threads: int | None) -> str:
    parts = [
        "viscoil bench stages", f"--solver {solver}", f"--particles {','.join(map(str, counts))}",
        f"--iterations {iterations}", f"--device {backend.current().device}",
    ]  # fmt: skip
    return " ".join(parts + ([f"--threads {threads}"] if threads else []))


def main(
    solver: str = "pbf",
    particles: list[int] | None = None,
    device: str = "auto",
    threads: int | None = None,
    json: Path | None = None,
    iterations: int = 4,
    rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measures, writes ``json`` if a file is given, and returns what was measured."""
    result = run(solver, particles, device, threads, iterations, rounds, say)
    if json is not None:
        Path(json).write_text(encoder.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result
