"""What a GPU's host does for a step and for a frame, measured without a GPU: time, launches, copies, waits.

    python benchmarks/host_time.py pbf:20000 pvfs:1000 iisph:20000 interactive honey

A stand-in driver (machine_code.py) does nothing and takes no time, so what is left is the host's: Python, the compiler's
runtime, ours. Times are those of this machine. A load is that of ``viscoil bench stages`` for a solver and a size, or one of
Barreiro's of ``viscoil bench papers``. Counts are per frame; "anew": how many of all launches of steps could not be replayed
because their arguments were others; "blocks": of threads, of a step's largest kernel.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine_code import stand_in
from rehearse import pretend

ROUNDS, FRAMES = 10, 5
COUNTED = {"graphs": "cuGraphLaunch", "kernels": "cuLaunchKernel", "copies": "cuMemcpy", "waits": "cuStreamSynchronize",
           "allocations": "cuMemAlloc", "made": "cuGraphInstantiate"}  # fmt: skip


def _watch() -> list[str]:
    """Names of kernels whose arguments are put together, from now on."""
    contexts = import_module("quadrants.lang.kernel").Kernel
    launched, names = contexts.launch_kernel, []

    def launch(self: Any, *arguments: Any, **more: Any) -> Any:
        known = len(self.launch_context_buffer_cache._launch_ctx_cache)
        result = launched(self, *arguments, **more)
        if len(self.launch_context_buffer_cache._launch_ctx_cache) > known:
            names.append(self.func.__name__)
        return result

    contexts.launch_kernel = launch
    return names


def _simulation(load: str) -> tuple[Any, float]:
    """What a load is, with nothing compiled, and its step [s]."""
    from viscoil.bench import conformation
    from viscoil.bench.cases import CASES
    from viscoil.simulate import Simulation

    solver, _, particles = load.partition(":")
    if particles:
        case = CASES[solver]
        return Simulation(case.scene(int(particles), case.counts), device="cuda"), case.dt
    found = next(one for one in conformation.LOADS if one.name == load)
    return Simulation(conformation.scene(found), device="cuda"), found.dt


def measure(load: str, driver: Any, anew: list[str]) -> dict[str, Any]:
    """One row."""
    sim, dt = _simulation(load)
    driver.count_anew()
    sim.solver.step(sim.world, dt)
    blocks = driver.blocks()
    for _ in range(3):  # compiles, and meets both places of rows that sorting exchanges
        sim.advance_frame()
    sim.solver.step(sim.world, dt)
    anew.clear()
    steps, frames = [], []
    for _ in range(ROUNDS):
        begin = perf_counter()
        for _ in range(20):
            sim.solver.step(sim.world, dt)
        steps.append((perf_counter() - begin) / 20)
    driver.count_anew()
    for _ in range(ROUNDS):
        begin = perf_counter()
        for _ in range(FRAMES):
            sim.advance_frame()
        frames.append((perf_counter() - begin) / FRAMES)
    counts = {name: driver.counted(call.encode()) / (ROUNDS * FRAMES) for name, call in COUNTED.items()}
    return {
        "load": load, "step_us": round(1e6 * min(steps), 1), "frame_us": round(1e6 * min(frames), 1),
        "steps_of_frame": sim.scene.time.steps_per_frame, **counts, "blocks": blocks,
        "anew": sum("whole_step" in name for name in anew),
    }  # fmt: skip


def main() -> None:
    loads = sys.argv[1:]
    if not loads:
        sys.exit(__doc__)
    if not os.environ.get("MODULES"):
        with tempfile.TemporaryDirectory() as place:
            sys.exit(subprocess.run([sys.executable, __file__, *loads], env=stand_in(Path(place)), check=False).returncode)
    pretend()
    driver = ctypes.CDLL("libcuda.so.1")
    driver.counted.restype = ctypes.c_long
    anew = _watch()
    for load in loads:
        print(json.dumps(measure(load, driver, anew)), flush=True)


if __name__ == "__main__":
    main()
