"""How cost grows: with the number of threads of a CPU, and with the number of particles up to what fits the device.

Threads are set once per process, so every number of them is a process of its own, one after the other. Sizes are measured in
this process, from small to large, each written down before the next is tried: running out of memory ends a process.
"""

import gc
import json as encoder
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from viscoil import backend
from viscoil.bench import limits, machine, memory, stages, store
from viscoil.bench.cases import CASES, simulation
from viscoil.errors import ViscoilError

THREADS = (1, 2, 4, 8, 16, 32)
THREAD_PARTICLES = 100_000
ON_CPU = [10_000, 30_000, 100_000, 300_000]
ON_GPU = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
MOST_BY_DEFAULT = {"pvfs": 3_000_000, "iisph": 3_000_000}  # building more takes longer than measuring it
LARGEST = {"pbf": 100_000_000, "dcpbd": 50_000_000}  # what is tried with --largest, or as much of it as fits
FULL = 0.94  # share of the free memory that the largest may take: the driver and graphs need some
SLOW = 3_000_000  # particles from which two rounds of few steps are enough


def thread_counts() -> list[int]:
    """1, 2, 4 … up to the cores, and twice as many, which is what viscoil starts by default."""
    return [number for number in THREADS if number <= 2 * backend.cores()] or [1]


def default_sizes(solver: str) -> list[int]:
    """Particle counts for the device that runs."""
    most = MOST_BY_DEFAULT.get(solver, max(ON_GPU))
    return [count for count in (ON_GPU if backend.current().is_gpu else ON_CPU) if count <= most]


def _with_threads(number: int, solvers: list[str], particles: int) -> dict[str, Any]:
    """What this measurement finds at one size in a process with so many threads."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        command = [
            sys.executable, "-m", "viscoil", "bench", "scaling", "--device", "cpu", "--threads", str(number), "--solver",
            ",".join(solvers), "--particles", str(particles), "--thread-particles", "0", "--json", str(file),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not file.exists():
            raise ViscoilError(f"{' '.join(command[2:])} failed: {done.stderr.strip()[-2000:]}")
        return encoder.loads(file.read_text(encoding="utf-8"))


def thread_rows(solvers: list[str], particles: int, counts: list[int], say: Callable[[str], None]) -> Any:
    """One row per solver and number of threads: step and iteration times, copy rate."""
    for number in counts:
        say(f"{number} thread{'s' if number > 1 else ''}: {', '.join(solvers)}")
        found = _with_threads(number, solvers, particles)
        for row in found["rows"]:
            yield {
                "what": "threads", "solver": row["solver"], "threads": number, "particles": row["particles"],
                "step_ms": row["step_ms"], "iteration_ms": row["iteration_ms"], "copy": found["copy"]["memory"],
            }  # fmt: skip


def _size_row(solver: str, particles: int, device: str, threads: int | None) -> dict[str, Any]:
    """One size: step and iterations, memory per particle, seconds to build it."""
    case, before = CASES[solver], machine.free_graphics_memory()
    begin = perf_counter()
    sim = simulation(case, particles, device, threads)
    built = perf_counter() - begin
    rounds = stages.ROUNDS if particles < SLOW else 2
    times = stages.step_times(sim, case, rounds)
    account = memory.account(sim)
    after = machine.free_graphics_memory()
    row = {
        "what": "sizes", "solver": solver, "particles": sim.world.fluid_count, "built_s": built, **times,
        "cost_ns": 1e6 * times["step_ms"] / (sim.world.fluid_count * case.iterations), "memory": account,
        "taken_bytes": before - after if before else None,
    }  # fmt: skip
    del sim
    gc.collect()
    return row


def _fitting(wanted: int, per_particle: float) -> int:
    """As many particles as fit the device's free memory, at most ``wanted``."""
    room = machine.free_graphics_memory()
    return min(wanted, int(FULL * room / per_particle)) if room else wanted


def size_rows(
    solvers: list[str], sizes: list[int] | None, largest: bool, device: str, threads: int | None, say: Callable[[str], None]
) -> Any:
    """One row per solver and size; with ``largest`` one more, as large as the device allows."""
    for solver in solvers:
        row: dict[str, Any] = {}
        for particles in sizes if sizes is not None else default_sizes(solver):
            say(f"{solver}: {particles:,} particles")
            yield (row := _size_row(solver, particles, device, threads))
        if largest and solver in LARGEST:
            # Staging of the last field on the way to the device comes on top of what stays.
            per_particle = row["memory"]["per_particle"] if row else 1500.0
            particles = _fitting(LARGEST[solver], per_particle)
            say(f"{solver}: {particles:,} particles, {per_particle:.0f} B each")
            yield _size_row(solver, particles, device, threads)


def main(
    solvers: list[str] | None = None,
    device: str = "auto",
    threads: int | None = None,
    json: Path | None = None,
    sizes: list[int] | None = None,
    largest: bool = False,
    thread_particles: int = THREAD_PARTICLES,
    counts: list[int] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Sizes, and on a CPU ``counts`` of threads as well; ``json`` is written after every row."""
    running = backend.start(device, threads)
    names = solvers or list(CASES)
    result = store.opened(
        "scaling", _command(solvers, sizes, largest, thread_particles, counts, threads), copy=limits.copying()
    )
    sources = [size_rows(names, sizes, largest, device, threads, say)]
    if thread_particles and not running.is_gpu:
        sources.insert(0, thread_rows(names, thread_particles, counts or thread_counts(), say))
    for source in sources:
        for row in source:
            result["rows"].append(row)
            store.write(json, result)
    store.write(json, result)
    return result


def _command(
    solvers: list[str] | None, sizes: list[int] | None, largest: bool, thread_particles: int, counts: list[int] | None,
    threads: int | None,
) -> str:  # fmt: skip
    parts = ["viscoil bench scaling", f"--device {backend.current().device}"]
    parts += [f"--solver {','.join(solvers)}"] if solvers else []
    parts += [f"--particles {','.join(map(str, sizes))}"] if sizes is not None else []
    parts += ["--largest"] if largest else []
    parts += [f"--thread-particles {thread_particles}"] if thread_particles != THREAD_PARTICLES else []
    parts += [f"--thread-counts {','.join(map(str, counts))}"] if counts else []
    return " ".join(parts + ([f"--threads {threads}"] if threads else []))
