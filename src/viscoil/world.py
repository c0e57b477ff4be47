"""World: everything that survives a step. No physics.

It owns the particles, the solids, the emitters' state and the clock. Solvers read and write it; the host looks at it
through frames.
"""

from itertools import product
from typing import Any

import numpy as np

from viscoil import particles as table
from viscoil.measure import Measure
from viscoil.particles import FIELDS, Carried, allocate_array
from viscoil.solids.assembly import SolidSet
from viscoil.solids.clusters import ClusterSet
from viscoil.solvers.solver import Stages
from viscoil.sph.calibration import Lattice
from viscoil.sph.neighbors import Neighbors

NOBODY = 2**31 - 1  # status[0] while every particle is finite
GROWTH = 1.5  # capacity grows by this factor, so that emission copies seldom


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
        self.spare: Any = None
        self.neighbors = Neighbors(reach, lattice.neighbors, 1, box)
        self.status = allocate_array(table.qd.i32, 2)  # smallest id in trouble, bits of the largest speed
        self.stages = Stages()
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
    def fluid_count(self) -> int:
        return self.count - self.boundary_count

    # --- storage -----------------------------------------------------------------------------------------------------
    def reserve(self, needed: int) -> bool:
        """Makes room for ``needed`` particles; True when arrays were replaced (solvers must resize)."""
        if needed <= self.capacity:
            return False
        capacity = needed if self.count == 0 else max(needed, int(self.capacity * GROWTH))
        self.particles = (
            table.grown(self.particles, self.count, capacity) if self.particles else table.allocate(capacity)
        )
        self.spare = table.allocate(capacity)
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
        self.count = table.append(self.particles, self.count, values)
        self._kinds |= set(product(_distinct(values.get("volume", 0.0)), _distinct(np.abs(values.get("inverse_mass", 1.0)))))
        if "solid" in values:
            self.boundary_count += int((np.asarray(values["solid"]) >= 0).sum())
        return grew

    def keep_only(self, keep: np.ndarray) -> None:
        """Removes particles: ``keep`` is a boolean per particle, in array order."""
        order = np.nonzero(keep)[0].astype(np.int32)
        solid = self.get("solid")
        device_order = allocate_array(table.qd.i32, len(order))
        if len(order):
            device_order.from_numpy(order)
        self.particles, self.spare = table.reorder(self.particles, self.spare, device_order, len(order))
        for rows in self.carried.values():
            rows.reorder(device_order, len(order))
        self.boundary_count = int((solid[order] >= 0).sum())
        self.count = len(order)

    def reorder(self) -> None:
        """Moves particles into the cell order of the last search: neighbours in space become neighbours in memory."""
        if self.count:
            self.particles, self.spare = table.reorder(
                self.particles, self.spare, self.neighbors.cells.order, self.count
            )
            for rows in self.carried.values():
                rows.reorder(self.neighbors.cells.order, self.count)

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
        kind, tail = table.numpy_type(FIELDS[name])
        staging = allocate_array(FIELDS[name].type, self.count)
        staging.from_numpy(np.ascontiguousarray(np.broadcast_to(values, (self.count, *tail)), kind))
        table.copy(staging, getattr(self.particles, name), 0, self.count)
        if name in ("volume", "inverse_mass"):
            self.forget_uniform()

    def forget_uniform(self) -> None:
        """From now on neighbours' volumes and masses are read."""
        self._kinds = {(0.0, 0.0), (1.0, 1.0)}

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
        self.status.from_numpy(np.array([NOBODY, 0], np.int32))

    def read_status(self) -> tuple[int | None, float]:
        """(id of a particle in trouble or None, largest speed [m/s]) since the reset. Waits for the device."""
        raw = self.status.to_numpy()
        return (None if raw[0] == NOBODY else int(raw[0])), float(raw[1:2].view(np.float32)[0])

    def evolve(self, fields: tuple[str, ...]) -> None:
        """A solver says which fields besides position and velocity its steps change."""
        self.evolving = ("position", "velocity", *fields)
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
            for name, kept in self._kept.items():
                table.copy(getattr(self.particles, name), kept, 0, self.count)
            for rows in self.carried.values():
                rows.remember(self.count)

    def go_back(self) -> None:
        """Everything as it was at :meth:`remember`."""
        if self.solids.bodies:
            self.solids.bodies.go_back()
        if self.count:
            for name, kept in self._kept.items():
                table.copy(kept, getattr(self.particles, name), 0, self.count)
            for rows in self.carried.values():
                rows.go_back(self.count)


def _distinct(values: Any) -> list[float]:
    """The first two different values, as many as it takes to see that there is more than one."""
    return np.unique(np.asarray(values, np.float32))[:2].tolist()
