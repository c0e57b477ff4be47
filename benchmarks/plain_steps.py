"""Steps of a load without graphs, for profilers that look at one kernel after the other:

    ncu --clock-control none -k regex:whole_step --print-summary per-kernel --metrics gpu__time_duration.sum,… \
        python benchmarks/plain_steps.py pbf 1000000
"""

import sys

from viscoil import backend, compiler

STEPS = 2


def main() -> None:
    solver, particles = sys.argv[1], int(sys.argv[2])
    backend.start("cuda")
    compiler.leave_graphs()
    from viscoil.bench.cases import CASES, simulation

    case = CASES[solver]
    sim = simulation(case, particles, "cuda", None)
    for _ in range(STEPS):
        sim.solver.step(sim.world, case.dt)
    backend.synchronise()


if __name__ == "__main__":
    main()
