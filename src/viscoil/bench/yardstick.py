"""The same loops in plain C++ with OpenMP, compiled and timed beside our kernels on the same particles.

A speed means little without something to hold it against. ``yardstick.cpp`` is what a programmer would write without
effort: a counting sort, a list over 27 cells, one pass for λ, one for Δp. Both sides get the same particles and take
turns, so that whatever else the machine does meets both.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import block, passes
from viscoil.bench.machine import processor

SOURCE = Path(__file__).with_name("yardstick.cpp")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp")


def compiler() -> str | None:
    """Path of g++, or None."""
    return shutil.which("g++")


def version() -> str:
    """First line of ``g++ --version``."""
    return subprocess.run([compiler() or "g++", "--version"], capture_output=True, text=True).stdout.split("\n")[0]


def build() -> Path | None:
    """The compiled program, from the cache where it fits; None without a working g++."""
    program = compiler()
    if program is None:
        return None
    # -march=native: a folder shared between machines must not hand the one's program to the other.
    key = "\n".join([SOURCE.read_text(), *FLAGS, version(), processor()])
    folder = Path(os.environ.get("VISCOIL_CACHE") or Path.home() / ".cache" / "viscoil") / "yardstick"
    target = folder / hashlib.sha256(key.encode()).hexdigest()[:16]
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "yardstick"
            done = subprocess.run([program, *FLAGS, str(SOURCE), "-o", str(made)], capture_output=True)
            if done.returncode:
                return None
            os.replace(made, target)
    return target


class Yardstick:
    """The C++ program, holding the particles of a world. Use it in a ``with`` statement."""

    def __init__(self, program: Path, world: Any, solver: Any, threads: int):
        self._folder = tempfile.TemporaryDirectory()
        self._count = world.count
        source = Path(self._folder.name) / "particles"
        c = solver.values(world)
        with source.open("wb") as file:
            file.write(np.array([world.count, world.neighbors.width], np.int32).tobytes())
            file.write(np.array([c[name] for name in ("support", "softness", "repulsion", "reference")], np.float32).tobytes())
            for name in ("position", "volume", "inverse_mass"):
                file.write(np.ascontiguousarray(world.get(name), np.float32).tobytes())
        # Passive: waiting threads must not take the cores while the other side is being timed.
        self._process = subprocess.Popen(
            [str(program), str(source), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )  # fmt: skip

    def __enter__(self) -> "Yardstick":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.communicate("quit\n")
        self._folder.cleanup()

    def _ask(self, command: str) -> tuple[float, float]:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        first, second = self._process.stdout.readline().split()
        return float(first), float(second)

    def list(self) -> tuple[float, float]:
        """Seconds of a sort and of a list."""
        return self._ask("list")

    def iterate(self) -> tuple[float, float]:
        """Seconds of a λ pass and of a Δp pass."""
        return self._ask("iterate")

    def results(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(neighbours of each particle, λ [m²], Δp [m]) in the order of the world's arrays."""
        n, file = self._count, Path(self._folder.name) / "results"
        self._ask(f"dump {file}")
        raw = np.fromfile(file, np.float32)
        return raw[:n].view(np.int32), raw[n : 2 * n], raw[2 * n :].reshape(n, 3)


class Ours:
    """Our kernels for the same four parts, on the world's own positions."""

    def __init__(self, world: Any, solver: Any):
        self.world, self.solver = world, solver

    def _timed(self, function: Any, *arguments: Any) -> float:
        begin = perf_counter()
        function(*arguments)
        backend.synchronise()
        return perf_counter() - begin

    def list(self) -> tuple[float, float]:
        """Seconds of a sort and of a list."""
        position = self.world.particles.position
        return self._timed(passes.sort, self.world, position), self._timed(passes.list_all, self.world, position)

    def iterate(self) -> tuple[float, float]:
        """Seconds of a λ pass and of a Δp pass."""
        each = (self.world, self.solver, self.world.particles.position)
        return self._timed(passes.multiply, *each), self._timed(passes.correct, *each)

    def results(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As :meth:`Yardstick.results`."""
        n, s = self.world.count, self.solver.scratch
        return self.world.neighbors.list.count.to_numpy()[:n], s.multiplier.to_numpy()[:n], s.correction.to_numpy()[:n]


def floating_block(particles: int, device: str, threads: int | None) -> Any:
    """A weightless block without solids, its memory in cell order: what both sides can work on."""
    from viscoil.simulate import Simulation

    return Simulation(block.scene(particles, tank=False), device=device, threads=threads)


def thread_counts(threads: int | None) -> list[int]:
    """Threads the C++ program is tried with: as many as asked for; otherwise one per core, and as many as we use.

    We start two threads per core. On a busy machine more threads get more of it, on a quiet one they hardly matter:
    taking the better of both leaves no advantage to us.
    """
    return [threads] if threads else sorted({backend.cores(), backend.current().threads})


def compare(sim: Any, program: Path, rounds: int, threads: int | None, seconds: float) -> dict[str, Any]:
    """Best times of both in milliseconds and the ratios ours / yardstick.

    They take turns for at least ``rounds`` rounds and ``seconds``: short passes need many tries to find a quiet moment.
    """
    world, tried = sim.world, thread_counts(threads)
    taken: dict[str, list[tuple[float, ...]]] = {"ours": [], "yardstick": []}
    with ExitStack() as opened:
        sides: list[tuple[str, Any]] = [("ours", Ours(world, sim.solver))]
        for number in tried:
            sides.append(("yardstick", opened.enter_context(Yardstick(program, world, sim.solver, number))))
        for _, side in sides:  # compiles, touches memory for the first time, may widen lists
            side.list(), side.iterate()
        begin = perf_counter()
        while len(taken["ours"]) < rounds or perf_counter() - begin < seconds:
            for name, side in sides:
                taken[name].append((*side.list(), *side.iterate()))
    best = {name: np.min(times, axis=0) * 1e3 for name, times in taken.items()}
    result: dict[str, Any] = {"particles": world.count, "threads": tried, "neighbours": passes.mean_neighbors(world)}
    for name, (sort, listing, multiply, correct) in best.items():
        result[name] = {
            "sort_ms": sort, "list_ms": listing, "search_ms": sort + listing, "multipliers_ms": multiply,
            "corrections_ms": correct, "iteration_ms": multiply + correct,
        }  # fmt: skip
    for part in ("search", "iteration"):
        result[f"{part}_ratio"] = result["ours"][f"{part}_ms"] / result["yardstick"][f"{part}_ms"]
    return result
