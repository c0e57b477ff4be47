"""Steps of a load without graphs, for profilers that look at one kernel after the other:

    ncu --clock-control none -k regex:whole_step --print-summary per-kernel --metrics gpu__time_duration.sum,… \
        python benchmarks/plain_steps.py pbf 1000000

The load is that of ``viscoil bench stages`` for a solver and a size, or a cube of ``viscoil bench conformation`` (honey).
``cake`` is the scene of that name at its end, which comes first, with graphs; it is one step that a profiler should look at:

    ncu --profile-from-start off … python benchmarks/plain_steps.py cake
"""

import ctypes
import sys
from typing import Any

from viscoil import backend, compiler

STEPS = 2


def simulation_of(words: list[str]) -> tuple[Any, float]:
    """What the words ask for, and its time step [s]."""
    if len(words) == 2:
        from viscoil.bench.cases import CASES, simulation

        return simulation(CASES[words[0]], int(words[1]), "cuda", None), CASES[words[0]].dt
    from viscoil.bench.conformation import LOADS, scene
    from viscoil.simulate import Simulation

    if words == ["cake"]:
        from viscoil.scene.load import load as load_scene

        sim = Simulation(load_scene("cake", quality="as_published"), device="cuda")
        while sim.frame_index < sim.scene.time.frames:
            sim.advance_frame()
        return sim, sim.scene.time.frame_time / sim.scene.time.steps_per_frame
    load = next(load for load in LOADS if load.name == words[0])
    return Simulation(scene(load), device="cuda"), load.dt


def main(words: list[str]) -> None:
    backend.start("cuda")
    whole = words == ["cake"]
    if not whole:
        compiler.leave_graphs()
    sim, dt = simulation_of(words)
    backend.synchronise()
    compiler.leave_graphs()
    if whole:
        ctypes.CDLL("libcuda.so.1").cuProfilerStart()
    for _ in range(1 if whole else STEPS):
        sim.solver.step(sim.world, dt)
    backend.synchronise()


if __name__ == "__main__":
    main(sys.argv[1:])
