"""One iteration of the density constraint by the kernels, to hold the compiled one against."""

import quadrants as qd

from viscoil import backend
from viscoil.constraints.density import DensityNumbers
from viscoil.constraints.density_iteration import shift, weigh
from viscoil.particles import Flag, Ints, Particles
from viscoil.solvers.pbf import Scratch
from viscoil.sph.neighbors import NeighborList, Torus


@qd.kernel
def _iterate(
    left: Flag, p: Particles, count: Ints, near: NeighborList, torus: Torus, c: DensityNumbers, s: Scratch,
    kernel: qd.Template, power: qd.Template,
):  # fmt: skip
    n = count[0]
    weigh(
        p, s.predicted, s.half, s.records, n, n, near, torus, c, s.clear, s.wall, s.wall_gradient, s.error, s.multiplier,
        s.error, left, s.used, 1, kernel, True, True, False, True, False, False, False,
    )  # fmt: skip
    shift(
        p, s.predicted, s.half, s.records, n, n, near, torus, c, s.clear, s.wall_gradient, s.multiplier, left, s.used,
        1, power, True, True, False, False, False, False, s.nearby, False,
    )  # fmt: skip


def state(sim):
    """λ, max(C, 0), distances kept free, and places: in the half that holds them."""
    s, n = sim.solver.scratch, sim.world.count
    half = int(s.half.to_numpy()[0])
    x = s.predicted.to_numpy()
    x = x[half * len(x) // 2 :][:n]
    return [*(getattr(s, name).to_numpy()[:n] for name in ("multiplier", "error", "clear")), x]


def by_kernels(sim):
    """State after one iteration from the places in the first half, which stay as they are."""
    solver, world, s = sim.solver, sim.world, sim.solver.scratch
    count = qd.ndarray(qd.i32, (1,))
    count.fill(world.count)
    s.half.fill(0)
    clear = s.clear.to_numpy()
    power = solver.params.pressure_power if solver.artificial_pressure() > 0 else 0
    _iterate(
        backend.loop_counter(), world.particles, count, world.neighbors.list, world.neighbors.torus,
        solver.numbers(world), s, solver.params.density_kernel, power,
    )  # fmt: skip
    after = state(sim)
    s.half.fill(0)
    s.clear.from_numpy(clear)
    return after


def by_passes(sim, passes):
    """The same by the compiled passes; places in the first half move."""
    solver = sim.solver
    for name in ("multiplier", "error"):
        getattr(solver.scratch, name).fill(7)
    passes.density(
        sim.world, solver.scratch, solver.values(sim.world), solver.params.density_kernel, solver.params.pressure_power, True
    )
    return state(sim)
