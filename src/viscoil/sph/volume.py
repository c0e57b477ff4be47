"""The volume of the fluid as particles show it (Takahashi, Fujishiro, Nishita 2014, section 5.2).

    V = Σ_i m_i/ρ̂_i,    ρ̂_i = density where the neighbours of i have their mean, only i being there instead of at its place

Densities at a surface are too small, as half of the kernel is empty, and Σ m/ρ would be 6 % too large for a ball of 8000
particles; half a spacing further inside, where the mean of the neighbours is, they are about right. Neighbours are the fluid
within the support, the end of it included, with equal weights (the paper names none): of a lattice two spacings wide the six
at the very end would else count or not as rounding will, and all at once half of them in the first motion (0.6 %). Walls count
in ρ̂ as they do in densities. Disorder looks like loss: see docs/papers/takahashi2014.md.

Densities are relative to those at rest: fluids of different density take the volume they have.
"""

from typing import Any

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, allocate_array, vec3
from viscoil.sph.finding import Cells, cell_beside, cells_beside
from viscoil.sph.neighbors import NeighborList, Torus, entry, separation
from viscoil.sph.smoothing import density_weight
from viscoil.sph.sums import Sums, allocate_sums, chunk_totals, hand_in, padded, total_on_host


@qd.kernel(fastcache=True)
def _middles(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, support: qd.f32, out: Vectors, numbers: Floats,
    periodic: qd.Template,
):  # fmt: skip
    """Mean position of the fluid within the support of each particle, itself not counted; its own where there is none."""
    for i in range(n):
        x = p.position[i]
        total = vec3(0.0)
        number = 0.0
        for k in range(near.count[i]):
            j = entry(near, i, k)
            d = separation(p.position[j], x, torus, periodic)
            counts = qd.select(p.solid[j] < 0, 1.0, 0.0)
            counts = qd.select(d.dot(d) < 1.0002 * support * support, counts, 0.0)  # 1e-4 of the support for rounding
            total += counts * d
            number += counts
        out[i] = x + total / qd.max(number, 1.0)
        numbers[i] = number


@qd.kernel(fastcache=True)
def _terms(
    p: Particles, n: qd.i32, cells: Cells, torus: Torus, support: qd.f32, volume: qd.f32, middle: Vectors, numbers: Floats,
    wall: Floats, sums: Sums, kernel: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Adds up ``volume``/ρ̂ [m³] of the fluid. Walks cells: the middle has other neighbours than the particle."""
    qd.loop_config(block_dim=256)
    for i in range(padded(n)):
        term = vec3(0.0)
        if i < n and p.solid[i] < 0:
            x = middle[i]
            density = 0.0
            for which in range(cells_beside(torus)):
                cell = cell_beside(x, which, torus)
                for place in range(cells.start[cell], cells.start[cell + 1]):
                    j = cells.order[place]
                    d = separation(x, p.position[j], torus, periodic)
                    density += qd.select(j == i, 0.0, p.volume[j] * density_weight(d.dot(d), support, kernel))
            density += p.volume[i] * density_weight(0.0, support, kernel) + wall[i]
            term[0] = qd.select(numbers[i] > 0.0, volume / density, volume)
        hand_in(i, n, term, sums)
    chunk_totals(n, sums)


class VolumeEstimate:
    """Memory to estimate the volume of up to ``capacity`` particles."""

    def __init__(self, capacity: int):
        self.middle = allocate_array(vec3, capacity)  # x̂ [m]
        self._numbers = allocate_array(qd.f32, capacity)  # of fluid neighbours
        self._sums = allocate_sums(capacity)

    def find_middles(self, world: Any) -> None:
        """Where densities are asked for; the world's neighbour list must be that of its positions."""
        search = world.neighbors
        _middles(
            world.particles, world.count, search.list, search.torus, world.support, self.middle, self._numbers,
            search.periodic,
        )  # fmt: skip

    def total(self, world: Any, wall: Any) -> float:
        """V [m³]; ``wall``: density of the walls at :attr:`middle`. Waits for the device."""
        search = world.neighbors
        _terms(
            world.particles, world.count, search.cells, search.torus, world.support, world.spacing**3, self.middle,
            self._numbers, wall, self._sums, world.lattice.kernel, search.periodic,
        )  # fmt: skip
        return float(total_on_host(self._sums, world.count)[0])
