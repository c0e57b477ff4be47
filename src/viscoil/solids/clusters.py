"""Clusters: particles that belong together, as rigid or soft bodies, and the tables that find them.

A cluster's particles are born together, so their ids are consecutive: member m of cluster c is the particle with the id
first_id + m. Its *slot*, begin + m, numbers the members of all clusters through. Sorting moves particles about; once per step
:func:`locate` writes down where the members are, and everything else goes through ``index``. Where a member belongs in its
body is its field ``rest``. Nothing here outlives a step but ``first_id``: positions, velocities and ``rest`` say it all.

Sums over a cluster go by chunks of its slots (teams.py), in the order of ids. They have the same bits whatever the threads and
wherever the particles lie in memory.

Soft bodies: :class:`Elastic` lists the bonds of their lattices, see constraints/distances.py. Both ends of a bond keep a copy
of its numbers and compute the same: a slot needs nothing but its own row and the places of its partners, so that all
bonds take one loop.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.particles import Floats, Ints, Matrices, Particles, Vectors, allocate_array, mat3, vec3
from viscoil.sph.rotation import vec4
from viscoil.sph.sums import on_gpu

REACH = 1.5  # spacings: lattice neighbours along edges and across faces
ROW = 18  # bonds of a particle inside a lattice
CHUNK = 256  # slots that are added up together, see teams.py
SUMS = 16  # sums of a cluster that are made at once
TURNS = 12  # most turns of Chebyshev's iteration
RIGID, SOFT = 0, 1
STIFF = 40.0  # condition of the bonds' system from which four turns of Chebyshev's iteration leave too much

Turns = qd.types.NDArray[vec4, 1]


@dataclass(frozen=True)
class Clusters:
    """The tables on the device."""

    number: Ints  # clusters, slots, chunks of rigid clusters, chunks
    # by cluster
    first_id: Ints  # -1: not there yet
    begin: Ints  # its first slot; one more entry than clusters
    kind: Ints  # 0 rigid, 1 soft
    grip: Floats  # stickiness, 0 to 1
    centre: Vectors  # [m]
    inverse: Matrices  # of the inertia about it, of particles of mass 1 [1/m²]
    turn: Turns  # rotation of its rest shape, a unit quaternion
    start: Turns  # the same before the iteration
    base: Vectors  # place of its first member before the iteration [m]
    chunk: Ints  # its first chunk
    sum: Floats  # [16 cluster] see teams.py
    # by chunk of 256 slots, those of rigid clusters first
    chunk_cluster: Ints
    chunk_slot: Ints  # its first slot
    chunk_sum: Floats  # [16 chunk]
    # by slot
    index: Ints  # particle
    owner: Ints  # cluster
    touched: Ints  # 1: a solid pushed it in this iteration


@dataclass(frozen=True)
class Elastic:
    """The bonds of soft bodies on the device."""

    # by cluster
    compliance: Floats  # of a bond, times the mass unit [s²]: m/k
    yielding: Floats  # of a volume, times the mass unit [s² m⁻²]: m/(κV); 0: volumes are free
    damping: Floats  # [s]
    pace: Floats  # [24 cluster] factors of the last stride and of the residual, for each turn of Chebyshev's iteration
    # by bond of a slot, see bond_of: partner slot (the slot itself: no bond), length at rest, and what the step makes of it
    partner: Ints
    length: Floats  # [m]
    before: Floats  # elongation at the start of the step [m]
    multiplier: Floats
    stride: Floats  # d of Chebyshev's iteration
    # by slot
    rest: Vectors  # its place in the cluster [m]
    place: Vectors  # [m]; twice as many, because turns go back and forth between two halves
    shape: Matrices  # K⁻¹ of volumes.py [1/m²]
    pressure: Floats  # the volume's multiplier
    push: Matrices  # Δλ cof(F) K⁻¹


@dataclass(frozen=True)
class Member:
    """One cluster as it is given: places of its particles in its own frame [m], and what it is like."""

    kind: int  # RIGID or SOFT
    rest: np.ndarray  # (n, 3)
    grip: float = 1.0
    mobility: float = 1.0  # inverse mass of a particle
    shear: float = 0.0  # μ [Pa]
    bulk: float = 0.0  # κ beyond that of the springs [Pa]
    damping: float = 0.0  # [s]


def lattice_pairs(rest: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i < j) of points of a cubic lattice that are neighbours along an edge or across a face."""
    cell = np.rint((rest - rest[0]) / spacing).astype(np.int64)
    cell -= cell.min(0) - 1
    width = cell.max(0) + 2
    key = (cell[:, 0] * width[1] + cell[:, 1]) * width[2] + cell[:, 2]
    order = np.argsort(key)
    offsets = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)]
    first, second = [], []
    for x, y, z in offsets:
        wanted = key + (x * width[1] + y) * width[2] + z
        place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
        found = key[order][place] == wanted
        i, j = np.nonzero(found)[0], order[place[found]]
        first.append(np.minimum(i, j))
        second.append(np.maximum(i, j))
    return np.concatenate(first), np.concatenate(second)


class ClusterSet:
    """All clusters of a world; an empty one costs nothing."""

    def __init__(self, members: list[Member], spacing: float, unit: float = 1.0):
        """spacing [m]; unit [kg]: the mass that inverse masses are relative to."""
        self.members, self._spacing, self._unit = members, spacing, unit
        sizes = np.array([len(m.rest) for m in members], np.int64)
        begin = np.cumsum([0, *sizes])
        slots, clusters = int(begin[-1]), len(members)
        self.rigid = any(m.kind == RIGID for m in members)
        self.soft = any(m.kind == SOFT for m in members)
        self.firm = any(m.kind == SOFT and m.bulk > 0 for m in members)
        self.first_ids = [-1] * clusters
        chunks = -(-sizes // CHUNK)
        order = np.argsort([m.kind for m in members], kind="stable").astype(np.int64)  # rigid clusters first
        first = np.zeros(clusters, np.int64)
        first[order] = np.cumsum([0, *chunks[order]])[:-1]
        owners = np.repeat(order, chunks[order])
        rigid = int(sum(chunks[[m.kind == RIGID for m in members]]))
        columns = {
            "number": [clusters, slots, rigid, len(owners)], "first_id": self.first_ids, "begin": begin,
            "kind": [m.kind for m in members], "owner": np.repeat(np.arange(clusters), sizes),
            "grip": [m.grip for m in members], "chunk": first, "chunk_cluster": owners,
            "chunk_slot": begin[owners] + CHUNK * (np.arange(len(owners)) - first[owners]),
        }  # fmt: skip
        sizes_of = {"index": slots, "touched": slots, "sum": SUMS * clusters, "chunk_sum": SUMS * len(owners)}
        self.device = Clusters(
            **{
                name: _array(Clusters, name, columns.get(name), sizes_of.get(name, clusters))
                for name in Clusters.__dataclass_fields__
            }
        )
        self.elastic = self._bonds(begin, spacing, unit)

    def __len__(self) -> int:
        return len(self.members)

    def _bonds(self, begin: np.ndarray, spacing: float, unit: float) -> Elastic:
        """Bonds of all soft bodies. k = μd makes the lattice isotropic with shear modulus μ."""
        slots = int(begin[-1])
        pairs = [
            np.stack(lattice_pairs(member.rest, spacing)) + first
            for member, first in zip(self.members, begin[:-1], strict=True) if member.kind == SOFT
        ]  # fmt: skip
        a, b = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), np.int64)
        rest = np.concatenate([m.rest for m in self.members]) if self.members else np.zeros((0, 3))
        rows = slots if pairs else 0
        partner = np.repeat(np.arange(rows)[:, None], ROW, axis=1)
        ends, others = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.argsort(ends, kind="stable")
        place = np.arange(len(ends)) - np.searchsorted(ends[order], ends[order])
        partner[ends[order], place] = others[order]
        length = np.linalg.norm(rest[partner].astype(float) - rest[:rows, None], axis=2)
        turned = np.transpose if on_gpu() else np.ascontiguousarray  # see bond_of
        columns = {
            "partner": turned(partner).reshape(-1), "length": turned(length).reshape(-1), "rest": rest[:rows],
            "compliance": [unit / (m.shear * spacing) if m.shear > 0 else 0.0 for m in self.members],
            "yielding": [unit / (m.bulk * spacing**3) if m.bulk > 0 else 0.0 for m in self.members],
            "damping": [m.damping for m in self.members],
            "shape": self._shapes(rest, a, b)[:rows],
        }  # fmt: skip
        sizes = dict.fromkeys(("before", "multiplier", "stride"), ROW * rows)
        sizes |= {"place": 2 * rows, "pace": 2 * TURNS * len(self.members)}
        return Elastic(
            **{
                name: _array(Elastic, name, columns.get(name), sizes.get(name, rows))
                for name in Elastic.__dataclass_fields__
            }
        )

    @staticmethod
    def _shapes(rest: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """K⁻¹ of every slot [1/m²]; zero where its bonds lie in a plane, which has no volume."""
        d = rest[b].astype(float) - rest[a]
        squares = np.zeros((len(rest), 3, 3))
        np.add.at(squares, a, d[:, :, None] * d[:, None])
        np.add.at(squares, b, d[:, :, None] * d[:, None])
        size = np.trace(squares, axis1=1, axis2=2) / 3
        sound = np.linalg.det(squares) > 1e-3 * np.maximum(size, 1e-30) ** 3
        result = np.zeros_like(squares)
        result[sound] = np.linalg.inv(squares[sound])
        return result

    def begin(self, cluster: int, first_id: int) -> None:
        """A cluster's particles were added to the world, from this id on."""
        self.set_first_ids([*self.first_ids[:cluster], first_id, *self.first_ids[cluster + 1 :]])

    def set_first_ids(self, first_ids: list[int]) -> None:
        """Which clusters are there, e.g. when a run is resumed."""
        self.first_ids = [int(i) for i in first_ids]
        if self.first_ids:
            transfer.write(self.device.first_id, np.array(self.first_ids, np.int32))

    def mix(self, dt: float) -> int:
        """What kernels are compiled for, added up: 1 rigid bodies, 2 soft ones, 4 soft ones that keep their volume, 8 soft
        ones so stiff for steps of dt [s] that their bonds need more turns. 0 until the first of them is there."""
        if all(first < 0 for first in self.first_ids):
            return 0
        stiff = False
        for member in self.members:
            if member.kind == SOFT:
                compliance = self._unit / (member.shear * self._spacing * dt * dt)
                stiff |= 12 * member.mobility * (1 + member.damping / dt) > STIFF * compliance
        return int(self.rigid) + 2 * int(self.soft) + 4 * int(self.firm) + 8 * int(stiff)


def _array(table: type, name: str, values: Any, size: int) -> Any:
    """A device array of a table's column: with these values, or zeros."""
    kinds = {Ints: (qd.i32, np.int32), Floats: (qd.f32, np.float32), Vectors: (vec3, None), Turns: (vec4, None)}
    kind, numpy_kind = kinds.get(table.__dataclass_fields__[name].type, (mat3, np.float32))
    if values is None:
        return allocate_array(kind, size)
    array = allocate_array(kind, len(values))
    if len(values):
        transfer.write(array, np.asarray(values, numpy_kind or np.float32))
    return array


@qd.func
def bond_of(slot: qd.i32, number: qd.i32, b: Clusters) -> qd.i32:
    """Where a slot's bond with this number (of 18) lies: neighbouring threads of a GPU read neighbouring numbers."""
    result = 18 * slot + number
    if qd.static(on_gpu()):
        result = number * b.number[1] + slot
    return result


@qd.func
def slot_of(i: qd.i32, p: Particles, b: Clusters) -> qd.i32:
    """Slot of a particle that belongs to a cluster."""
    c = p.cluster[i]
    return b.begin[c] + p.id[i] - b.first_id[c]


@qd.func
def note_touch(i: qd.i32, p: Particles, wanted: vec3, place: vec3, radius: qd.f32, b: Clusters):
    """Remembers whether a solid put particle i to another place than it wanted; radius: of contact [m]."""
    if p.cluster[i] >= 0:
        b.touched[slot_of(i, p, b)] = qd.cast((place - wanted).norm() > 1e-4 * radius, qd.i32)


@qd.func(requires_top_level=True)
def locate(p: Particles, n: qd.i32, b: Clusters):
    """Where the members are, now that all particles may have been sorted."""
    for i in range(n):
        if p.cluster[i] >= 0:
            slot = slot_of(i, p, b)
            b.index[slot] = i
            b.touched[slot] = 0
