"""Parts of a step as kernels of their own, so that each can be timed alone. The loops are the solver's."""

from typing import Any

import numpy as np
import quadrants as qd

from viscoil import native
from viscoil.constraints.density import DensityNumbers, corrections, multipliers
from viscoil.particles import Floats, Ints, Particles, Vectors
from viscoil.sph.finding import Cells, SearchNumbers, cells_to_scan, count_cells, list_neighbors, prefix_sum, sort_cells
from viscoil.sph.neighbors import NeighborList, Torus


@qd.kernel(graph=True, fastcache=True)
def _sort(cells: Cells, torus: Torus, position: Vectors, ids: Ints, n: qd.i32, depth: qd.Template):
    scanned = cells_to_scan(torus)
    count_cells(cells, torus, position, n)
    prefix_sum(cells, torus, scanned, depth)
    sort_cells(cells, position, ids, n, depth)


@qd.kernel(graph=True, fastcache=True)
def _list(
    cells: Cells, torus: Torus, p: Particles, position: Vectors, k: SearchNumbers, out: NeighborList, periodic: qd.Template,
    depth: qd.Template,
):  # fmt: skip
    n = k.count[0]
    list_neighbors(cells, torus, position, p.position, p.id, p.inverse_mass, n, k.reach2, out, periodic, depth)


@qd.kernel(graph=True, fastcache=True)
def _multipliers(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers, wall: Floats,
    wall_gradient: Vectors, error: Floats, multiplier: Floats, kernel: qd.Template, uniform: qd.Template,
    periodic: qd.Template,
):  # fmt: skip
    multipliers(p, x, n, near, torus, c, wall, wall_gradient, error, multiplier, kernel, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def _corrections(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers, multiplier: Floats,
    wall_gradient: Vectors, correction: Vectors, power: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    corrections(p, x, n, near, torus, c, multiplier, wall_gradient, correction, power, uniform, periodic)


def sort(world: Any, position: Any) -> None:
    """Particles into cells, as :meth:`Neighbors.find` does it."""
    search = world.neighbors
    _sort(search.cells, search.torus, position, world.particles.id, world.count, search.scan_depth)


def list_all(world: Any, position: Any) -> None:
    """The neighbour list of sorted particles, by whoever makes it in a step."""
    search = world.neighbors
    if native.active() and not search.periodic and not search.recorded:
        native.list_neighbors(search, world.particles.inverse_mass, world.count)
        return
    _list(
        search.cells, search.torus, world.particles, position, search.numbers(world.count), search.list, search.periodic,
        search.scan_depth,
    )  # fmt: skip


def multiply(world: Any, solver: Any, position: Any) -> None:
    """One pass for the multipliers of the density constraints."""
    s, search = solver.scratch, world.neighbors
    _multipliers(
        world.particles, position, world.count, search.list, search.torus, solver.numbers(world), s.wall,
        s.wall_gradient, s.error, s.multiplier, solver.params.density_kernel, world.uniform, search.periodic,
    )  # fmt: skip


def correct(world: Any, solver: Any, position: Any) -> None:
    """One pass for the corrections of the positions."""
    s, search = solver.scratch, world.neighbors
    _corrections(
        world.particles, position, world.count, search.list, search.torus, solver.numbers(world), s.multiplier,
        s.wall_gradient, s.correction, solver.params.pressure_power, world.uniform, search.periodic,
    )  # fmt: skip


def mean_neighbors(world: Any) -> float:
    """Entries of the neighbour list per particle."""
    return float(np.mean(world.neighbors.list.count.to_numpy()[: world.count]))
