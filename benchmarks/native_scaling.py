"""Wall time of the compiled passes beside the kernels', in turns in one process, for VISCOIL_THREADS threads.

    VISCOIL_THREADS=8 python benchmarks/native_scaling.py 100000
"""

import sys
from time import perf_counter

import numpy as np

from viscoil import backend, native
from viscoil.bench import block
from viscoil.simulate import Simulation

ROUNDS = 8


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def main(particles: int) -> None:
    sim = Simulation(block.scene(particles), device="cpu")
    world, taken = sim.world, {}
    for compiled in (True, False):  # compiles
        with native.use(compiled):
            sim.advance_frame()
    for _ in range(ROUNDS):
        for compiled in (True, False):
            with native.use(compiled):
                world.stages.taken()
                begin = perf_counter()
                sim.solver.step(world, 0.001)
                whole = perf_counter() - begin
                taken.setdefault(compiled, []).append({**world.stages.taken(), "step": whole})
    say(f"{backend.current().threads} threads on {backend.cores()} cores, {world.count:,} particles, {native.describe()}")
    for name in taken[True][0]:
        ours, kernels = (1e3 * np.min([row[name] for row in taken[way]]) for way in (True, False))
        say(f"  {name:12s} compiled {ours:8.2f} ms   kernels {kernels:8.2f} ms   ratio {kernels / ours:5.2f}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
