"""Emitters: nozzles that release layers of particles at exact moments.

Layer k leaves the opening at τ_k = start + k d/speed (counted from the last change of the speed, if there was one).
After a step that ends at t every layer with τ_k ≤ t is placed where it has flown since: speed · (t − τ_k) beyond the opening,
as the nozzle stood at τ_k. Neighbouring layers are therefore one spacing apart for any time step: no gaps, no overlaps.
"""

import math
from typing import Any

import numpy as np

from viscoil.scene.fill import _lattice_axis
from viscoil.solids.assembly import keyframed, rotation_matrix, signed_distance
from viscoil.solids.drag import Drag, drag


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

    def __init__(self, emitter: Any, spacing: float, pipe: float = 0.0):
        """pipe [m]: how far before the opening particles exist already, led by the nozzle."""
        self.emitter = emitter
        self.spacing = spacing
        self.pipe = pipe
        self.layers = 0  # released so far
        self.released = 0  # particles released so far
        self.since = float(emitter.start)  # moment [s] of layer number ``base``
        self.base = 0
        self._drag: Drag | None = None  # while it is being moved by hand
        self.read()

    def read(self) -> None:
        """Looks at the emitter again."""
        emitter, spacing = self.emitter, self.spacing
        self.speed = emitter.speed
        (x, z), (width, depth) = _section_box(emitter.shape)
        axes = _lattice_axis(width, spacing) + x, [0.0], _lattice_axis(depth, spacing) + z
        points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
        self.section = points[signed_distance(emitter.shape, points, spacing) < 0]
        # Led layers stay in line for a while. Exactly above each other, they would part like a pack of cards when the jet is
        # stretched: every other one is moved by half a spacing.
        aside = np.array([0.25 * spacing, 0.0, 0.25 * spacing])
        both = (points - aside, points + aside) if self.pipe else (points,)
        self._sections = [these[signed_distance(emitter.shape, these, spacing) < 0] for these in both]

    def moment(self) -> float:
        """When the next layer leaves [s]."""
        # Counted, not accumulated: after a million layers the moment is still exact.
        return self.since + (self.layers - self.base) * self.spacing / self.speed

    def due(self) -> float:
        """When the next layer appears [s]: at the start of the pipe, if there is one; infinity after the last."""
        full = self.emitter.max_particles is not None and self.released >= self.emitter.max_particles
        if full or self.moment() >= self.emitter.end or len(self.section) == 0:
            return math.inf
        return self.moment() - self.pipe / self.speed

    def change(self, now: float) -> None:
        """Takes over changes of the emitter at a moment [s]: the layer on its way keeps its distance to the last one."""
        upcoming, before = self.moment(), self.speed
        self.read()
        if self.layers == 0:
            self.since = max(float(self.emitter.start), now)
        elif upcoming <= now:  # it had ended and is switched on again
            self.since, self.base = now, self.layers
        elif self.speed != before:
            self.since, self.base = now + (upcoming - now) * before / self.speed, self.layers

    def pose(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and place of the opening at a moment [s]."""
        if self._drag:
            return self._drag.pose(time)
        moved, turned = keyframed(self.emitter.motion, self.emitter.interpolation, time)
        rotation = rotation_matrix(turned) @ flow_frame(np.asarray(self.emitter.direction))
        return rotation, np.asarray(self.emitter.position, float) + moved

    def velocity(self, time: float) -> np.ndarray:
        """Velocity of the opening itself [m/s]."""
        if not self.emitter.motion and not self._drag:
            return np.zeros(3)
        step = 1e-4
        return (self.pose(time + step)[1] - self.pose(max(time - step, 0.0))[1]) / (time + step - max(time - step, 0.0))

    def drag(
        self, direction: np.ndarray | None, position: np.ndarray | None, now: float, over: float, limits: tuple[float, float]
    ) -> float:
        """Sends the nozzle on its way to a flow direction and place (None: as it is); returns when it arrives [s]."""
        start = self.pose(now)
        rotation, place = self._drag.target if self._drag else start
        if direction is not None:
            rotation = flow_frame(direction / np.linalg.norm(direction))
        self.emitter.motion = []
        lever = float(np.abs(self.section).max(initial=0.0))
        self._drag = drag(now, start, (rotation, place if position is None else position), over, limits, lever)
        return self._drag.end

    @property
    def dragging(self) -> bool:
        """Whether it is on its way by hand."""
        return self._drag is not None

    def settle(self, now: float) -> None:
        """Writes down in the scene how far hands have moved it, and lets go when it has arrived."""
        if self._drag is None:
            return
        rotation, place = self._drag.pose(now)
        self.emitter.position = tuple(float(x) for x in place)
        self.emitter.direction = tuple(float(x) for x in rotation[:, 1])
        if now >= self._drag.end:
            self._drag = None

    def _layer(self) -> np.ndarray:
        """The next layer in the frame of the opening."""
        if not self.pipe:
            return self.section
        layer = self._sections[self.layers % 2]
        shaken = np.random.default_rng(self.layers).uniform(-0.1, 0.1, layer.shape) * self.spacing
        return layer + shaken * [1.0, 0.0, 1.0]

    def release(self, now: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(positions, velocities, moments of leaving the opening [s]) of all that is in the pipe or has left it at ``now`` [s]
        and was not yet released."""
        e, positions, speeds, moments = self.emitter, [], [], []
        while True:
            moment = self.moment()
            if self.due() > now:
                break
            rotation, place = self.pose(moment)
            flow = rotation @ np.array([0.0, self.speed, 0.0]) + self.velocity(moment)
            layer = self._layer() @ rotation.T + place + flow * (now - moment)
            if e.max_particles is not None:
                layer = layer[: e.max_particles - self.released]
            positions.append(layer)
            speeds.append(np.broadcast_to(flow, layer.shape))
            moments.append(np.full(len(layer), moment))
            self.layers += 1
            self.released += len(layer)
        if not positions:
            return np.empty((0, 3), np.float32), np.empty((0, 3), np.float32), np.empty(0, np.float32)
        return tuple(np.concatenate(rows).astype(np.float32) for rows in (positions, speeds, moments))


def _section_box(shape: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Centre (x, z) and edges of a box that holds the shape's cut through y = 0, whatever its rotation [m]."""
    turn = rotation_matrix(shape.rotation)
    centre = np.asarray(shape.position, float) + turn @ np.asarray(shape.middle(), float)
    size = np.abs(turn) @ np.asarray(shape.extent(), float)
    return (float(centre[0]), float(centre[2])), (float(size[0]), float(size[2]))
