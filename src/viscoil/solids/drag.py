"""Things moved by hand while a simulation runs: from where they are to where they are wanted, no faster than allowed.

A hand does not know what a simulation can bear: the way may take longer than was asked for, but nothing jumps, so that the
fluid feels a wall with a velocity and is pushed, not trapped.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed


@dataclass(frozen=True)
class Drag:
    """A straight way at constant speed between two poses; before and after it, its ends."""

    begin: float  # [s]
    end: float  # [s]
    start: tuple[np.ndarray, np.ndarray]  # rotation matrix and position [m]
    target: tuple[np.ndarray, np.ndarray]

    def pose(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Rotation matrix and position at a moment [s]."""
        if time >= self.end:
            return self.target
        share = max(0.0, (time - self.begin) / (self.end - self.begin))
        (r0, p0), (r1, p1) = self.start, self.target
        axis, angle = axis_and_angle(r0.T @ r1)
        return r0 @ turned(axis, share * angle), p0 + share * (p1 - p0)


def drag(
    now: float, start: tuple[np.ndarray, np.ndarray], target: tuple[np.ndarray, np.ndarray], over: float,
    limits: tuple[float, float], lever: float,
) -> Drag:  # fmt: skip
    """The way from ``start`` to ``target`` in ``over`` seconds, or as many as the ``limits`` ask for.

    ``limits``: fastest speed of any point [m/s] and fastest turn [rad/s]; ``lever`` [m] is how far points are from the
    centre.
    """
    speed, turn = limits
    angle = axis_and_angle(start[0].T @ target[0])[1]
    way = float(np.linalg.norm(target[1] - start[1])) + angle * lever
    seconds = max(over, way / speed, angle / turn)
    return Drag(now, now + seconds, start, target)


def axis_and_angle(rotation: np.ndarray) -> tuple[np.ndarray, float]:
    """Unit axis and angle [rad, 0 to π] of a rotation matrix."""
    skew = np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    length = float(np.linalg.norm(skew))  # 2 sin(angle)
    angle = math.atan2(length, float(np.trace(rotation)) - 1)
    if length > 1e-9:
        return skew / length, angle
    if angle < 1.0:
        return np.array([0.0, 1.0, 0.0]), 0.0
    # Half a turn: the axis is the direction that stays, the largest column of R + 1.
    columns = rotation + np.eye(3)
    best = columns[:, int(np.argmax(np.linalg.norm(columns, axis=0)))]
    return best / np.linalg.norm(best), angle


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """Matrix of a rotation about a unit ``axis`` by ``angle`` [rad] (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * (cross @ cross)


def degrees_of(rotation: np.ndarray) -> tuple[float, float, float]:
    """The angles [degrees] of scene files for a rotation matrix: about x, then the new y, then the new z."""
    if abs(rotation[0, 2]) > 1 - 1e-12:  # x and z turn about the same axis: all of it is given to x
        x, y, z = math.atan2(rotation[2, 1], rotation[1, 1]), math.copysign(math.pi / 2, rotation[0, 2]), 0.0
    else:
        y = math.asin(rotation[0, 2])
        x, z = math.atan2(-rotation[1, 2], rotation[2, 2]), math.atan2(-rotation[0, 1], rotation[0, 0])
    return math.degrees(x), math.degrees(y), math.degrees(z)


def limits(scene: Any) -> tuple[float, float]:
    """Fastest speed [m/s] and turn [rad/s] by hand.

    Half a spacing and an eighth of a radian per step: a wall that moves farther than its neighbours can get out of the way
    in a step squeezes them. Where the step follows the speed, as fast as 32 steps per frame allow.
    """
    t, spacing = scene.time, scene.spacing
    if t.cfl is None:
        step = t.frame_time / t.steps_per_frame if t.steps_per_frame else t.step
        return 0.5 * spacing / step, 0.125 / step
    step = max(t.frame_time / 32, t.min_step or 0.0)
    return t.cfl * spacing / step, 0.125 / step


def as_matrix(rotation: Any) -> np.ndarray:
    """Three angles [degrees] as in scene files, or a rotation matrix (3, 3), as a matrix."""
    values = np.asarray(rotation, float)
    if values.shape == (3, 3):
        return values
    if values.shape != (3,):
        raise SceneError(f"rotation: expected three angles in degrees or a 3 x 3 matrix; got the shape {values.shape}")
    x, y, z = np.radians(values)
    return turned(np.array([1.0, 0, 0]), x) @ turned(np.array([0, 1.0, 0]), y) @ turned(np.array([0, 0, 1.0]), z)


def named(which: int | str, names: list[str], what: str) -> int:
    """Index of the item called ``which``, or numbered so."""
    if isinstance(which, str) and which in names and which:
        return names.index(which)
    if isinstance(which, int) and 0 <= which < len(names):
        return which
    known = [name for name in names if name]
    hint = did_you_mean(which, known) if isinstance(which, str) else ""
    expected = f"a number from 0 to {len(names) - 1}" if names else "none, the scene has none"
    raise SceneError(
        f"there is no {what} {which!r}.{hint} Expected {listed(known) + ' or ' if known else ''}{expected}", key=what
    )
