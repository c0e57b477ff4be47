"""Bonds: what a solver with velocity corrections owns (sph/bonds.py, sph/regions.py, steps/velocity_correction.py).

    bonds = Bonds("springs", striped=backend.current().is_gpu, two_sided=False, normalise=False)
    solver.carried = bonds.carried                       # before the world takes them over (World.carry)
    bonds.set(support=[H], reach=[H], kick=[dt / m], stiffness=[...], lower=[...], ...)    # columns of BondNumbers
    bonds.freeze(world)                                  # what is near is bonded; makes its own neighbour search
    ...
    bonds.update(world)                                  # in a step, with the neighbour list of the unmoved positions
    bonds.correct(world, velocity)                       # velocity [m/s] is an array like positions; adds Δv

``set`` costs nothing while nothing changes, and templates follow from it: what no material does is not compiled in. Options
(``two_sided``, ``normalise``, ``goal``, ``conserve``) are attributes and may change between steps. The scheme may not: its rows
are different. Rows that were too short are reported by ``short_of_room`` and grow in ``make_room``, as solvers do it.
"""

from typing import Any, Literal

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.bundles import Bundles
from viscoil.measure import mean
from viscoil.particles import Table, Uploaded, allocate_array, vec3
from viscoil.sph import springs
from viscoil.sph.bonds import (
    NEVER,
    REFERENCE,
    BondCounts,
    BondNumbers,
    BondRows,
    Scheme,
    carried_bonds,
    clear,
    freeze_kernel,
    on_host,
)
from viscoil.sph.regions import Regions
from viscoil.steps.velocity_correction import correct_stage, update_stage

SCHEMES = ("springs", "position_based", "shape_matching")
GOALS = ("lattice", "cluster")


class Bonds:
    """The bonds of a world, for one scheme."""

    def __init__(
        self, scheme: Scheme, striped: bool = False, two_sided: bool = False, normalise: bool = False,
        goal: Literal["lattice", "cluster"] = "lattice", conserve: bool = True,
    ):  # fmt: skip
        self.scheme, self.two_sided, self.normalise, self.goal, self.conserve = scheme, two_sided, normalise, goal, conserve
        self.carried = carried_bonds(scheme, striped)
        self._table, self._counts = Table(BondNumbers), Uploaded(BondCounts)
        self._width, self._needed = (allocate_array(qd.i32, 1) for _ in range(2))
        self._where = allocate_array(qd.i32, 1)
        self._wide = 0
        self._bundles = Bundles()
        self.resize(1)

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        shaped = capacity if self.scheme == "shape_matching" else 1
        self._stiffness, self._scarcity = (allocate_array(qd.f32, capacity) for _ in range(2))
        self._offset, self._changed = allocate_array(vec3, shaped), allocate_array(qd.i32, shaped)
        self._lightness, self._worst, self._share = (allocate_array(qd.f32, shaped) for _ in range(3))
        self._sums = springs.RowSums(capacity)
        self._empty = allocate_array(qd.f32, 1), allocate_array(qd.i32, 1)
        self.capacity = capacity

    # --- numbers -----------------------------------------------------------------------------------------------------------
    def set(self, **columns: list[float]) -> None:
        """How bonds behave from now on: the columns of :class:`BondNumbers`, one value per material (or one)."""
        self.numbers = self._table.set(**columns)
        if "stiffness" in columns:
            self.single = len(columns["stiffness"]) == 1
        stiff = any(k > 0 for k in columns.get("stiffness", ()))
        self.acts = stiff if "stiffness" in columns else self.acts
        for name, column, used in (
            ("merging", "merging", lambda v: v > 0),
            ("splitting", "splitting", lambda v: v < 0.01 * NEVER),
            ("flowing", "flow", lambda v: v > 0),
            ("weakening", "weakening", lambda v: v > 0),
        ):
            if column in columns:
                setattr(self, name, any(map(used, columns[column])))

    def steady(self, matter: list[Any]) -> None:
        """Tells the world which rows steps leave alone, for such materials: it need not remember them.

        Bonds to particles that are gone are dropped whenever a step meets them, also in one that is repeated.
        """
        lasting = not any(m.merging > 0 or m.splitting < 0.01 * NEVER or m.flow > 0 for m in matter)
        for name in ("partner", "rest", "number"):
            self.carried[name].steady = lasting and self.scheme != "shape_matching"
        self.carried["strength"].steady = not any(m.weakening > 0 for m in matter)

    # --- memory ------------------------------------------------------------------------------------------------------------
    def rows(self, world: Any) -> Any:
        """The bonds on the device."""
        if self.capacity < world.capacity:
            self.resize(world.capacity)
        partner, rest, number, strength = (world.carried[name] for name in ("partner", "rest", "number", "strength"))
        if self._wide != partner.width:
            self._wide = partner.width
            self._width.fill(partner.width)
        if self._where.shape[0] < world.next_id:
            self._where = allocate_array(qd.i32, int(1.5 * world.next_id))
        return self._bundles.of(
            BondRows, partner.array, rest.array, number.array, strength.array, self._where, self._stiffness,
            self._scarcity, partner.row, partner.column, rest.row, self._width, self._needed,
        )  # fmt: skip

    def regions(self, world: Any) -> Any:
        """The regions on the device; empty unless shapes are matched."""
        rotation = world.carried.get("rotation")
        arrays = (rotation.array, rotation.row, rotation.column) if rotation else (self._empty[0], *2 * self._empty[1:])
        return self._bundles.of(Regions, *arrays, self._offset, self._lightness, self._worst, self._share, self._changed)

    def short_of_room(self) -> int:
        """Places a particle wanted beyond those in its row, or 0. Waits for the device."""
        needed = int(transfer.read(self._needed)[0])
        if needed:
            self._needed.fill(0)
        return needed

    def make_room(self, world: Any, needed: int) -> None:
        """Longer rows."""
        width = int(needed * 1.15) + 4
        for name, numbers in (("partner", 1), ("rest", REFERENCE if self.scheme == "shape_matching" else 1)):
            world.carried[name].widen(numbers * width, world.count)

    # --- what a solver does with them --------------------------------------------------------------------------------------
    def freeze(self, world: Any) -> None:
        """Every pair within reach is bonded as it is now, at full strength: a body remembers its shape from now on."""
        if not world.count:
            return
        if "rotation" in world.carried:
            world.carried["rotation"].clear(0, world.count)
        search = world.neighbors
        search.find_all(world.particles.position, world.particles, world.count)
        while True:
            freeze_kernel(
                world.particles, world.count, search.list, search.torus, self.numbers, self.rows(world), self.single,
                search.periodic, self.scheme == "shape_matching",
            )  # fmt: skip
            if not (needed := self.short_of_room()):
                break
            self.make_room(world, needed)

    def clear(self, world: Any) -> None:
        """All bonds are gone: a body melts."""
        clear(world)

    def on_host(self, world: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ids, ids of the others, lengths at rest [m]) of all bonds, each once with the smaller id first."""
        return on_host(world)

    def update(self, world: Any, x: Any = None) -> None:
        """Bonds end and begin at positions x (those of the particles), which the neighbour list was made for."""
        search, rows = world.neighbors, self.rows(world)
        update_stage(
            world.particles, world.particles.position if x is None else x, self._counts_of(world), search.list,
            search.torus, self.numbers, rows, self.regions(world), SCHEMES.index(self.scheme), self.single,
            world.uniform, search.periodic, self.splitting, self.merging, self.flowing,
        )  # fmt: skip

    def correct(self, world: Any, velocity: Any, x: Any = None) -> None:
        """Adds Δv to ``velocity`` [m/s]; then bonds weaken. After :meth:`update` at the same positions."""
        search = world.neighbors
        correct_stage(
            world.particles, world.particles.position if x is None else x, self._counts_of(world), search.torus,
            self.numbers, self.rows(world), self.regions(world), velocity, SCHEMES.index(self.scheme), self.single,
            world.uniform, search.periodic, self.two_sided, self.normalise, GOALS.index(self.goal), self.conserve,
            self.weakening, self.flowing,
        )  # fmt: skip

    def arguments(self, world: Any) -> tuple[Any, ...]:
        """What a kernel needs that updates and corrects in one go, and what it is compiled for."""
        return (
            self._counts_of(world), self.numbers, self.rows(world), self.regions(world), SCHEMES.index(self.scheme),
            self.splitting, self.merging, self.flowing, self.two_sided, self.normalise, GOALS.index(self.goal), self.conserve,
            self.weakening,
        )  # fmt: skip

    def _counts_of(self, world: Any) -> Any:
        return self._counts.set(count=world.count, ids=world.next_id)

    def metrics(self, world: Any) -> dict[str, float]:
        """Bonds per particle, each counted once, and the mean share of stiffness left, of those that have bonds."""
        self.rows(world)  # as long as the world is
        number, strength = (world.carried[name].array for name in ("number", "strength"))
        held, holders, left = self._sums.of(number, strength, world.count)
        return {"bonds": mean(held / 2, world.fluid_count), "strength": mean(left, holders)}
