"""World: everything that survives a step. No physics.

It owns the particles, the solids, the emitters' state and the clock. Solvers read and write it; the host looks at it
through frames.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from viscoil import particles as table
from viscoil.carried import Carried
from viscoil.measure import Measure
from viscoil.particles import FIELDS, Ints, Uploaded, allocate_array
from viscoil.solids.assembly import SolidSet
from viscoil.solids.clusters import ClusterSet
from viscoil.solvers.solver import Stages
from viscoil.sph.calibration import Lattice
from viscoil.sph.search import Neighbors

NOBODY = 2**31 - 1  # status[0] while every particle is finite
STEADY = tuple(name for name, field in FIELDS.items() if field.steady)
GROWTH = 1.5  # capacity grows by this factor, so that emission copies seldom


@dataclass(frozen=True)
class Number:
    """What every pass over particles needs to know."""

    count: Ints  # [1] particles


class World:
    """The state of a simulation."""

    def __init__(self, spacing: float, support: float, lattice: Lattice, solids: list[Any], box: Any, reach: float):
        """spacing, support, reach [m]: d, h and the radius of the neighbour search."""
        self.spacing = spacing
        self.support = support
        self.lattice = lattice
        self.gravity = (0.0, -9.81, 0.0)
        self.time = 0.0
        self.steps = 0
        self.part = 0  # steps already tried beyond those that count
        self.count = 0  # particles, boundary samples included
        self.boundary_count = 0
        self.next_id = 0
        self.solids = SolidSet(solids, lattice.wall_factor, spacing, support)
        self.clusters = ClusterSet([], spacing)  # particle solids
        self.material_names: list[str] = []  # by index
        self.box = box
        self.capacity = 0
        self.particles: Any = None
        self.lazy: set[str] = set()  # fields that have memory although they need not, see Field.lazy
        self._same: dict[str, Any] = {}  # the one value all particles have, of fields where that is so
        self.neighbors = Neighbors(reach, lattice.neighbors, 1, box)
        self.status = allocate_array(table.qd.i32, 2)  # smallest id in trouble, bits of the largest speed
        self.stages = Stages()
        self._number = Uploaded(Number)
        self._kinds: set[tuple[float, float]] = set()  # (volume, inverse mass) of all particles ever added
        self.evolving: tuple[str, ...] = ("position", "velocity")  # fields a step changes
        self._kept: dict[str, Any] = {}
        self.carried: dict[str, Carried] = {}  # rows of the method's own, see carry
        self.reset_status()
        self.reserve(1)  # an empty world can be looked at too: emitters may start later

    @property
    def uniform(self) -> bool:
        """Whether all particles share one volume and one mass: neighbours' then need not be read."""
        return len(self._kinds) == 1

    @property
    def uniform_fluid(self) -> bool:
        """The same of the fluid alone: samples of solids have no mass."""
        return len({kind for kind in self._kinds if kind[1] > 0}) == 1

    @property
    def packed(self) -> bool:
        """Whether passes may read neighbours as records: those have no room for volumes."""
        one_volume = len({volume for volume, _ in self._kinds}) == 1
        return self.neighbors.recorded and one_volume and not self.neighbors.torn

    def packs_places(self, mix: int) -> bool:
        """The same of density iterations, which also ask for masses and for members of particle solids (``mix`` > 0)."""
        return self.packed and self.uniform and mix == 0

    @property
    def fluid_count(self) -> int:
        return self.count - self.boundary_count

    # --- storage -----------------------------------------------------------------------------------------------------
    def reserve(self, needed: int) -> bool:
        """Makes room for ``needed`` particles; True when arrays were replaced (solvers must resize)."""
        if needed <= self.capacity:
            return False
        capacity = needed if self.count == 0 else max(needed, int(self.capacity * GROWTH))
        self.spare: dict[str, Any] = {}  # before the new ones are made
        self.particles = (
            table.grown(self.particles, self.count, capacity, self.lazy)
            if self.particles and self.count
            else table.allocate(capacity, self.lazy)
        )
        self.spare = table.spares(capacity, self.lazy)
        self._keep_room(capacity)
        for rows in self.carried.values():
            rows.reserve(self.count, capacity)
        self.capacity = capacity
        self._bounds = Measure(capacity)
        self.neighbors.resize(capacity)
        self.fit_cells()
        return True

    def add(self, values: dict[str, np.ndarray]) -> bool:
        """New particles; ids are given here. True when storage grew."""
        added = len(values["position"])
        if added == 0:
            return False
        grew = self.reserve(self.count + added)
        values = {**values, "id": np.arange(self.next_id, self.next_id + added, dtype=np.int32)}
        self.next_id += added
        for rows in self.carried.values():
            rows.clear(self.count, self.count + added)
        for name, field in FIELDS.items():
            if field.lazy and name in values:
                self._need(name)
        self._compare({name: values.get(name, table.filling(name)) for name in STEADY}, self.count == 0)
        self.count = table.append(self.particles, self.count, values, self.lazy)
        self._kinds |= set(product(_distinct(values.get("volume", 0.0)), _distinct(np.abs(values.get("inverse_mass", 1.0)))))
        if "solid" in values:
            self.boundary_count += int((np.asarray(values["solid"]) >= 0).sum())
        return grew

    def keep_only(self, keep: np.ndarray) -> None:
        """Removes particles: ``keep`` is a boolean per particle, in array order."""
        order = np.nonzero(keep)[0].astype(np.int32)
        solid = self.get("solid")
        device_order = allocate_array(table.qd.i32, len(order))
        table.transfer.write(device_order, order)
        number = self._number.set(count=len(order)).count
        table.reorder(self.particles, self.spare, device_order, number, len(order), self._differing())
        for rows in self.carried.values():
            rows.reorder(device_order, len(order))
        self.boundary_count = int((solid[order] >= 0).sum())
        self.count = len(order)
        self.neighbors.forget_order()

    def reorder(self) -> None:
        """Moves particles into the cell order of the last search: neighbours in space become neighbours in memory."""
        if self.count:
            order, number = self.neighbors.cells.order, self._number.set(count=self.count).count
            table.reorder(self.particles, self.spare, order, number, self.count, self._differing())
            for rows in self.carried.values():
                rows.reorder(self.neighbors.cells.order, self.count)

    def _differing(self) -> list[str]:
        """Fields besides the usual ones that are not the same everywhere: the others need not be brought into order."""
        same = self._same if "free_at" in self._same else {**self._same, "inverse_mass": None}
        rare = [name for name in FIELDS if name not in table.USUAL and same.get(name) is None]
        return [name for name in rare if name in self.lazy or not FIELDS[name].lazy]

    def _compare(self, values: dict[str, Any], first: bool) -> None:
        """Takes note of fields that are the same for these particles and, unless they are the ``first``, for all before."""
        for name, given in values.items():
            found = _distinct(given)
            turns = name == "inverse_mass" and found and found[0] < 0  # of particles that leave their nozzle
            if len(found) == 1 and not turns and (first or self._same.get(name) == found[0]):
                self._same[name] = found[0]
            else:
                self._same.pop(name, None)

    def _need(self, name: str) -> None:
        """Memory for a lazy field."""
        if name not in self.lazy:
            self.lazy.add(name)
            self.particles = table.with_room(self.particles, name, self.count)
            kind = table.kind_name(FIELDS[name])
            if kind not in self.spare:
                self.spare[kind] = allocate_array(FIELDS[name].type, self.capacity)

    def fit_cells(self) -> None:
        """Shapes the search cells after where the particles are."""
        if self.count == 0:
            return
        self.neighbors.fit(*self._bounds.bounds(self.particles.position, self.count))

    # --- host views --------------------------------------------------------------------------------------------------
    def get(self, name: str) -> np.ndarray:
        """Host copy of a field, boundary samples included, in array order."""
        return table.to_numpy(self.particles, name, self.count)

    def set(self, name: str, values: np.ndarray) -> None:
        """Overwrites a field for all particles, in array order."""
        if FIELDS[name].lazy and name not in self.lazy:
            if (np.asarray(values, np.float32) == table.filling(name)).all():
                return
            self._need(name)
        if name in STEADY:
            self._compare({name: values}, True)
        table.transfer.write(getattr(self.particles, name), values, 0, self.count)
        if name in ("volume", "inverse_mass"):
            self.forget_uniform()

    def forget_uniform(self) -> None:
        """From now on neighbours' volumes and masses are read."""
        self._kinds = {(1.0, 1.0), (2.0, 2.0)}

    def learn_uniform(self) -> None:
        """Takes stock of volumes and masses as they are."""
        self._kinds = set(product(_distinct(self.get("volume")), _distinct(np.abs(self.get("inverse_mass")))))

    def fluid_order(self) -> np.ndarray:
        """Array indices of the fluid particles, by id."""
        solid, ids = self.get("solid"), self.get("id")
        fluid = np.nonzero(solid < 0)[0]
        return fluid[np.argsort(ids[fluid], kind="stable")]

    def fluid_rows(self) -> Any:
        """The fluid particles in array order: what selects them from a host copy."""
        return self.get("solid") < 0 if self.boundary_count else slice(None)

    # --- trouble -----------------------------------------------------------------------------------------------------
    def reset_status(self) -> None:
        table.transfer.write(self.status, (NOBODY, 0))

    def read_status(self) -> tuple[int | None, float]:
        """(id of a particle in trouble or None, largest speed [m/s]) since the reset. Waits for the device."""
        raw = table.transfer.read(self.status)
        return (None if raw[0] == NOBODY else int(raw[0])), float(raw[1:2].view(np.float32)[0])

    def evolve(self, fields: tuple[str, ...]) -> None:
        """A solver says which fields besides position and velocity its steps change."""
        self.evolving = ("position", "velocity", *fields)
        for name in fields:
            if FIELDS[name].lazy:
                self._need(name)
        self._keep_room(self.capacity)

    def carry(self, rows: dict[str, Carried]) -> None:
        """A solver hands over rows of its own that belong to particles; those of the solver before are dropped."""
        self.carried = dict(rows)
        for carried in self.carried.values():
            carried.reserve(0, self.capacity)

    def _keep_room(self, capacity: int) -> None:
        self._kept = {name: allocate_array(FIELDS[name].type, capacity) for name in self.evolving}

    def remember(self) -> None:
        """Keeps what a step changes, to try again from here."""
        if self.solids.bodies:
            self.solids.bodies.remember()
        if self.count:
            p, kept, number = self.particles, self._kept, self._number.set(count=self.count).count
            table.copy_state(number, p.position, p.velocity, kept["position"], kept["velocity"])
            for name in self.evolving[2:]:
                table.copy(getattr(p, name), kept[name], 0, self.count)
            for rows in self.carried.values():
                rows.remember(self.count)

    def go_back(self) -> None:
        """Everything as it was at :meth:`remember`."""
        if self.solids.bodies:
            self.solids.bodies.go_back()
        if self.count:
            p, kept, number = self.particles, self._kept, self._number.set(count=self.count).count
            table.copy_state(number, kept["position"], kept["velocity"], p.position, p.velocity)
            for name in self.evolving[2:]:
                table.copy(kept[name], getattr(p, name), 0, self.count)
            for rows in self.carried.values():
                rows.go_back(self.count)


def _distinct(values: Any) -> list[float]:
    """The one value there is, or the smallest and the largest: enough to see that there is more than one."""
    values = np.asarray(values)
    if values.size == 0:
        return []
    low, high = np.float32(values.min()), np.float32(values.max())
    return [float(low)] if low == high else [float(low), float(high)]
