"""Where things will be: how far jets and falling things get before something stops them.

What shows the first moment alone shows a nozzle, and nothing of what it pours on. Flights here are those of free fall, which
is more than thick fluids do and as far as thin ones get; what comes after the landing is taken for a heap.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from viscoil.solids.meshes import mesh

MOST = 300  # particles that are followed
MOMENTS = 16  # of a nozzle or solid that moves
SAMPLES = 96  # points of a flight
WIDEST = 4.0  # a flight that nothing stops ends after this many sizes of all there is
DIRECTIONS = np.array([d for d in product((-2, -1, 0, 1, 2), repeat=3) if any(d)], float)


@dataclass
class Flights:
    """Things under way."""

    start: np.ndarray  # (n, 3) where they start [m]
    velocity: np.ndarray  # (n, 3) with what velocity [m/s]
    time: np.ndarray  # (n,) how long they have [s]
    volume: float  # of all together, where it is fluid [m³]
    own: int | None = None  # index of the solid that flies: it is not in its own way

    def paths(self, gravity: np.ndarray, longest: float) -> np.ndarray:
        """(n, SAMPLES, 3) points of their ways [m], closer together at the start; all end after ``longest`` [m]."""
        t = self.time[:, None, None] * np.linspace(0, 1, SAMPLES)[:, None] ** 2
        x = self.start[:, None] + self.velocity[:, None] * t + gravity * t**2 / 2
        way = x - self.start[:, None]
        length = np.linalg.norm(way, axis=2, keepdims=True)
        return self.start[:, None] + way * np.minimum(1, longest / np.maximum(length, 1e-12))


def reach(sim: Any) -> np.ndarray:
    """Points (n, 3) [m] on the outside of what fluid and moving solids pass through before the end of the scene, for a
    simulation at its start."""
    fluid = [*_blocks(sim), *(_jet(nozzle, sim.scene.end_time, sim.world.spacing) for nozzle in sim.nozzles)]
    flights, moved = [f for f in fluid if len(f.start)], _moved(sim)
    flights += _falling(sim)
    known = [moved, *(f.start for f in flights), *(_corners(sim, k, 0.0) for k in range(len(sim.world.solids)))]
    everything = np.concatenate(known)
    if not len(everything):
        return everything
    free = [_free(sim, flight.start, flight.own) for flight in flights]  # a plane has no size, but a distance
    free = np.concatenate([np.zeros(1), *free])
    size = float(np.ptp(everything, axis=0).max() + free[np.isfinite(free)].max()) + 8 * sim.world.spacing
    found = [moved]
    for flight in flights:
        paths = flight.paths(np.asarray(sim.scene.gravity, float), WIDEST * size)
        passed, landed = _until_stopped(sim, paths, flight.own)
        found += [passed, _within(sim, _heap(landed, flight.volume, "xyz".index(sim.scene.up)))]
    return extremes(np.concatenate(found))


def extremes(points: np.ndarray) -> np.ndarray:
    """Those of the points (n, 3) that are outermost in some direction."""
    return points[_outermost(points)] if len(points) else points


# --- what flies ------------------------------------------------------------------------------------------------------
def _blocks(sim: Any) -> list[Flights]:
    """The fluid that is there from the start."""
    rows = sim.world.fluid_rows()
    position, velocity = (np.asarray(sim.world.get(name)[rows], float) for name in ("position", "velocity"))
    if not len(position):
        return []
    some = np.unique(np.concatenate([np.arange(0, len(position), -(-len(position) // MOST)), _outermost(position)]))
    time = np.full(len(some), sim.scene.end_time)
    return [Flights(position[some], velocity[some], time, len(position) * sim.world.spacing**3)]


def _jet(nozzle: Any, duration: float, spacing: float) -> Flights:
    """What leaves a nozzle: from the rim of its opening, at moments of its motion."""
    emitter = nozzle.emitter
    end = min(float(emitter.end), duration)
    lasting = max(end - float(emitter.start), 0.0)
    rim = nozzle.section[_outermost(nozzle.section)] if len(nozzle.section) else np.zeros((0, 3))
    moments = np.linspace(emitter.start, end, MOMENTS if emitter.motion else 1) if lasting else []
    poses = [nozzle.pose(t) for t in moments]
    start = [rim @ rotation.T + place for rotation, place in poses]
    flow = [rotation[:, 1] * nozzle.speed + nozzle.velocity(t) for t, (rotation, _) in zip(moments, poses, strict=True)]
    volume = len(nozzle.section) * spacing**2 * nozzle.speed * lasting
    if emitter.max_particles is not None:
        volume = min(volume, emitter.max_particles * spacing**3)
    return Flights(
        np.concatenate([*start, np.zeros((0, 3))]), np.repeat(np.array(flow).reshape(-1, 3), len(rim), axis=0),
        np.repeat([duration - t for t in moments], len(rim)), volume,
    )  # fmt: skip


def _falling(sim: Any) -> list[Flights]:
    """Solids that forces move: the corners of the boxes around them."""
    found = []
    for index, solid in enumerate(sim.scene.solid):
        if solid.body is not None and solid.body.joint == "free":
            corners = _corners(sim, index, 0.0)
            velocity = np.broadcast_to(np.asarray(solid.body.velocity, float), corners.shape)
            found.append(Flights(corners, velocity, np.full(len(corners), sim.scene.end_time), 0.0, index))
    return found


def _moved(sim: Any) -> np.ndarray:
    """Corners (n, 3) of the boxes around solids that keyframes or gaits move, on their ways."""
    from viscoil.solids.assembly import path_of

    solids, found = sim.world.solids, [np.zeros((0, 3))]
    for index, solid in enumerate(solids.solids):
        if solid.motion or path_of(solid):
            found += [_corners(sim, index, t) for t in np.linspace(0, sim.scene.end_time, MOMENTS)]
    return np.concatenate(found)


def _corners(sim: Any, index: int, time: float) -> np.ndarray:
    """(8, 3) of the box around a solid in its own frame, as it stands at a moment; none of planes and containers."""
    solid = sim.world.solids.solids[index]
    if solid.container or solid.shape.type == "plane":
        return np.zeros((0, 3))
    points = mesh(solid.shape.model_dump(exclude={"position", "rotation"}), 16)[0]
    rotation, position = sim.world.solids.pose(index, time)
    return np.array(list(product(*zip(points.min(0), points.max(0), strict=True)))) @ rotation.T + position


# --- where it stops --------------------------------------------------------------------------------------------------
def _until_stopped(sim: Any, paths: np.ndarray, own: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, 3) of the paths before they enter a solid, and the last of each (n, 3)."""
    count = len(paths)
    free = _free(sim, paths.reshape(-1, 3), own).reshape(count, SAMPLES)
    # What starts inside something (a nozzle in its own tap) is stopped once it has been outside.
    stopped = (free < 0) & (np.cumsum(free >= 0, axis=1) > 0)
    last = np.where(stopped.any(axis=1), np.argmax(stopped, axis=1), SAMPLES) - 1
    landed = paths[np.arange(count), last].copy()
    for k in np.nonzero(last < SAMPLES - 1)[0]:
        before, after = free[k, last[k]], free[k, last[k] + 1]
        landed[k] += (paths[k, last[k] + 1] - landed[k]) * before / max(before - after, 1e-30)
    return np.concatenate([paths[np.arange(SAMPLES) <= last[:, None]], landed]), landed


def _free(sim: Any, points: np.ndarray, own: int | None) -> np.ndarray:
    """Distance [m] of points (n, 3) to the nearest solid but ``own``; infinity without any."""
    free = np.full(len(points), np.inf)
    for index in range(len(sim.world.solids)):
        if index != own:
            free = np.minimum(free, sim.world.solids.distance(index, points))
    return free


def _heap(landed: np.ndarray, volume: float, up_axis: int) -> np.ndarray:
    """Points (m, 3) around where a volume [m³] landed: a half ball of it, or a half cylinder where it is laid in a line."""
    if not volume:
        return landed
    radius = np.cbrt(3 * volume / (2 * np.pi))
    length = float(np.linalg.norm(np.ptp(landed, axis=0)))
    if length > radius:
        radius = min(radius, np.sqrt(2 * volume / (np.pi * length)))
    ways = np.concatenate([np.eye(3), -np.eye(3)])
    return np.concatenate([landed + radius * way for way in np.delete(ways, up_axis + 3, axis=0)])


def _within(sim: Any, points: np.ndarray) -> np.ndarray:
    """The points, brought back into containers that are boxes and into the periodic domain."""
    for index, solid in enumerate(sim.world.solids.solids):
        if solid.container and solid.shape.type == "box":
            rotation, position = sim.world.solids.pose(index, 0.0)
            half = np.asarray(solid.shape.size, float) / 2
            points = np.clip((points - position) @ rotation, -half, half) @ rotation.T + position
    domain = sim.scene.domain
    return np.clip(points, domain.min, domain.max) if domain else points


def _outermost(points: np.ndarray) -> np.ndarray:
    """Indices of the points (n, 3) that are outermost in some direction."""
    return np.unique(np.argmax(points @ DIRECTIONS.T, axis=0))
