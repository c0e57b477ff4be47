"""Steps of a load without graphs, for profilers that look at one kernel after the other:

    ncu --clock-control none -k regex:whole_step --print-summary per-kernel --metrics gpu__time_duration.sum,… \
        python benchmarks/plain_steps.py pbf 1000000

The load is that of ``viscoil bench stages`` for a solver and a size, or one of Barreiro's of ``viscoil bench papers`` (honey).
"""

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

    load = next(load for load in LOADS if load.name == words[0])
    return Simulation(scene(load), device="cuda"), load.dt


def main(words: list[str]) -> None:
    backend.start("cuda")
    compiler.leave_graphs()
    sim, dt = simulation_of(words)
    for _ in range(STEPS):
        sim.solver.step(sim.world, dt)
    backend.synchronise()


if __name__ == "__main__":
    main(sys.argv[1:])
