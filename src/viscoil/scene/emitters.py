"""Emitters: nozzles that release layers of particles at exact moments.

Layer k leaves the opening at τ_k = start + k d/speed. After a step that ends at t every layer with τ_k ≤ t is placed where
it has flown since: speed · (t − τ_k) beyond the opening, as the nozzle stood at τ_k. Neighbouring layers are therefore one
spacing apart for any time step: no gaps, no overlaps.
"""

from typing import Any

import numpy as np

from viscoil.scene.fill import _lattice_axis
from viscoil.solids.assembly import keyframed, rotation_matrix, signed_distance


def flow_frame(direction: np.ndarray) -> np.ndarray:
    """Rotation that turns local +y into ``direction`` [unit vector] by the shortest way."""
    y = np.asarray(direction, float)
    if y[1] < -1 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    v = np.cross([0.0, 1.0, 0.0], y)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1 + y[1])


class Nozzle:
    """One emitter and how far it has got."""

    def __init__(self, emitter: Any, spacing: float):
        self.emitter = emitter
        self.spacing = spacing
        self.layers = 0  # released so far
        self.released = 0  # particles released so far
        width, _, depth = _section_extent(emitter.shape)
        x, z = _lattice_axis(width, spacing), _lattice_axis(depth, spacing)
        points = np.stack(np.meshgrid(x, [0.0], z, indexing="ij"), -1).reshape(-1, 3)
        points += np.asarray(emitter.shape.position, float) * [1, 0, 1]
        self.section = points[signed_distance(emitter.shape, points) < 0]

    def pose(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and place of the opening at a moment [s]."""
        moved, turned = keyframed(self.emitter.motion, self.emitter.interpolation, time)
        rotation = rotation_matrix(turned) @ flow_frame(np.asarray(self.emitter.direction))
        return rotation, np.asarray(self.emitter.position, float) + moved

    def velocity(self, time: float) -> np.ndarray:
        """Velocity of the opening itself [m/s]."""
        if not self.emitter.motion:
            return np.zeros(3)
        step = 1e-4
        return (self.pose(time + step)[1] - self.pose(max(time - step, 0.0))[1]) / (time + step - max(time - step, 0.0))

    def release(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of everything that left the opening up to ``now`` [s] and was not yet released."""
        e, positions, speeds = self.emitter, [], []
        while True:
            # Counted, not accumulated: after a million layers the moment is still exact.
            moment = e.start + self.layers * self.spacing / e.speed
            full = e.max_particles is not None and self.released >= e.max_particles
            if moment > now or moment >= e.end or full or len(self.section) == 0:
                break
            rotation, place = self.pose(moment)
            flow = rotation @ np.array([0.0, e.speed, 0.0])
            layer = self.section @ rotation.T + place + flow * (now - moment)
            if e.max_particles is not None:
                layer = layer[: e.max_particles - self.released]
            positions.append(layer)
            speeds.append(np.broadcast_to(flow + self.velocity(moment), layer.shape))
            self.layers += 1
            self.released += len(layer)
        if not positions:
            return np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)
        return np.concatenate(positions).astype(np.float32), np.concatenate(speeds).astype(np.float32)


def _section_extent(shape: Any) -> tuple[float, float, float]:
    """A box around the shape's cut through y = 0, whatever its rotation."""
    x, y, z = shape.extent()
    if any(shape.rotation):
        longest = float(np.hypot(np.hypot(x, y), z))
        return longest, longest, longest
    return x, y, z
