"""A pinhole camera that finds its own place."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from viscoil.errors import SceneError
from viscoil.io.frame import Frame
from viscoil.view.shapes import surface

FILL = 0.88  # part of the picture that what is framed may take
ENOUGH = 2000  # particles of a frame that are looked at to place the camera
STRAYS = 0.5  # percentage of particles at each end of each axis that need not be in the picture


@dataclass(frozen=True)
class View:
    """From where a picture is taken, in words that suit any scene. Angles in degrees."""

    azimuth: float = 28.0  # 0 looks along the horizontal axis that is not x; positive: from further right
    elevation: float = 16.0  # how far it looks down
    zoom: float = 1.0  # larger than 1: closer than what frames the action
    field_of_view: float = 30.0  # of the picture's height


@dataclass(frozen=True)
class Camera:
    """Where the picture is taken from. Lengths in metres."""

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    field_of_view: float = 30.0  # vertical [degrees]
    floor: float | None = None  # height of the ground along ``up`` [m]; None: no ground

    @classmethod
    def framing(
        cls, frames: Iterable[Frame], size: tuple[int, int] = (960, 540), azimuth: float = View.azimuth,
        elevation: float = View.elevation, zoom: float = View.zoom, field_of_view: float = View.field_of_view,
        also: np.ndarray | None = None,
    ) -> "Camera":
        """A camera that sees particles and solids of all ``frames``, and ``also`` points (n, 3) [m]: the same for every
        picture of a film.

        ``azimuth`` and ``elevation`` [degrees] say from where: 0, 0 looks along the horizontal axis that is not x.
        ``zoom`` above 1 goes closer than what shows everything. Frames are looked at once, one after the other.
        """
        seen = _Seen()
        for frame in frames:
            seen.add(frame)
        if also is not None and len(also):
            seen.add_points(also)
        points = seen.points()
        up = np.eye(3)[seen.up_axis]
        depth_axis = np.eye(3)[2] if seen.up_axis == 1 else -np.eye(3)[1]
        a, e = np.radians([azimuth, elevation])
        backward = np.cos(e) * (np.cos(a) * depth_axis + np.sin(a) * np.eye(3)[0]) + np.sin(e) * up
        half = FILL * np.tan(np.radians(field_of_view) / 2)
        position, target = _fit(points, seen.spacing, (backward, up), (half * size[0] / size[1], half))
        position = target + (position - target) / max(zoom, 1e-3)
        floor = seen.floor(float(points[:, seen.up_axis].min()))
        return cls(tuple(position.tolist()), tuple(target.tolist()), tuple(up.tolist()), field_of_view, floor)

    @classmethod
    def placed(cls, text: str, frame: Frame, field_of_view: float = View.field_of_view) -> "Camera":
        """A camera said in words: ``"x,y,z -> x,y,z"``, where it stands and what it looks at [m]."""
        numbers = [re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", part) for part in re.split(r"->|→|;", text)]
        if [len(part) for part in numbers] != [3, 3] or re.search(r"[^-+\d.,eE>→;\s]", text):
            raise SceneError(
                f'--camera "{text}": expected where it stands and what it looks at in metres, e.g. "2,1.5,3 -> 0,0.5,0"',
                key="camera",
            )
        (a, b, c), (d, e, f) = ([float(number) for number in part] for part in numbers)
        position, target = (a, b, c), (d, e, f)
        if position == target:
            raise SceneError(f'--camera "{text}": it stands where it looks at; expected two different points', key="camera")
        seen = _Seen()
        seen.add(frame)
        up = (0.0, 1.0, 0.0) if seen.up_axis == 1 else (0.0, 0.0, 1.0)
        return cls(position, target, up, field_of_view, seen.floor(float(seen.points()[:, seen.up_axis].min())))

    @property
    def height_at_target(self) -> float:
        """How much of the world the picture's height spans where the camera looks at [m]."""
        return 2 * float(np.linalg.norm(np.subtract(self.position, self.target))) * np.tan(np.radians(self.field_of_view) / 2)

    def axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unit vectors right, above and forward."""
        forward = np.subtract(self.target, self.position)
        forward = forward / max(float(np.linalg.norm(forward)), 1e-30)
        return (*_axes(forward, np.asarray(self.up)), forward)

    def stage_axes(self) -> np.ndarray:
        """Rows of a rotation to the axes of the stage: the camera's right, up, and horizontally towards the camera."""
        right, up = self.axes()[0], np.asarray(self.up, float)
        return np.stack([right, up, np.cross(right, up)])

    def focal(self, size: tuple[int, int]) -> float:
        """Focal length in pixels of a picture of ``size``."""
        return size[1] / 2 / np.tan(np.radians(self.field_of_view) / 2)

    def project(self, points: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pixel coordinates (from the top left) and depth along the view axis [m] of world points."""
        right, above, forward = self.axes()
        basis = np.stack([right, -above, forward], axis=1).astype(np.float32)
        seen = (np.asarray(points, np.float32) - np.asarray(self.position, np.float32)) @ basis
        depth = seen[:, 2]
        scale = self.focal(size) / np.where(np.abs(depth) < 1e-12, 1e-12, depth)
        return seen[:, 0] * scale + size[0] / 2, seen[:, 1] * scale + size[1] / 2, depth

    def rays(self, size: tuple[int, int]) -> np.ndarray:
        """Directions (height, width, 3) through the centres of the pixels, of length 1 along the view axis."""
        right, above, forward = self.axes()
        focal = self.focal(size)
        x = ((np.arange(size[0]) + 0.5 - size[0] / 2) / focal)[None, :, None]
        y = ((np.arange(size[1]) + 0.5 - size[1] / 2) / focal)[:, None, None]
        return (x * right - y * above + forward).astype(np.float32)


def _axes(forward: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right = np.cross(forward, up)
    if np.linalg.norm(right) < 1e-6:  # looking straight up or down
        right = np.cross(forward, np.roll(up, 1))
    right = right / np.linalg.norm(right)
    return right, np.cross(right, forward)


def _fit(
    points: np.ndarray, margin: float, directions: tuple[np.ndarray, np.ndarray], half: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Position and target that put ``points`` in the middle and within the tangents ``half`` of the view axis."""
    backward, up = directions
    right, above = _axes(-backward, up)
    target = (points.min(axis=0) + points.max(axis=0)) / 2
    distance = 0.0
    for _ in range(4):  # moving the target changes the perspective a little: it settles at once
        x, y, nearer = ((points - target) @ axis for axis in (right, above, backward))
        # A point at height y is in the picture when |y| <= half (distance - nearer).
        needed = [np.max(nearer + (np.abs(v) + margin) / h) for v, h in zip((x, y), half, strict=True)]
        distance = float(max(*needed, 1e-6))
        across, along = (v / np.maximum(distance - nearer, 1e-9) for v in (x, y))
        target = target + distance / 2 * ((across.min() + across.max()) * right + (along.min() + along.max()) * above)
    return target + backward * distance, target


class _Seen:
    """What is to be seen, gathered frame by frame: some particles and all solids, without strays that would make all small."""

    def __init__(self) -> None:
        self.up_axis, self.spacing = 1, 0.0
        self._first: Frame | None = None
        self._found: list[np.ndarray] = []

    def add(self, frame: Frame) -> None:
        if self._first is None:
            self._first, self.up_axis = frame, frame.up_axis
        self.spacing = max(self.spacing, frame.spacing)
        self._found += _solids(frame)
        if len(frame):
            position = frame["position"]
            low, high = np.percentile(position, [STRAYS, 100 - STRAYS], axis=0)
            some = position[:: max(1, len(position) // ENOUGH)]
            self._found.append(np.clip(some, low, high))

    def add_points(self, points: np.ndarray) -> None:
        """Points (n, 3) that have to be in the picture."""
        self._found.append(np.asarray(points, float))

    def points(self) -> np.ndarray:
        """Points (n, 3) that should be in the picture."""
        found = self._found + self._containers()
        return np.concatenate(found) if found else np.array([[-0.5] * 3, [0.5] * 3])

    def _containers(self) -> list[np.ndarray]:
        """Corners of box containers, moved to where they do not make what is in them small."""
        if not self._found or self._first is None:
            return []
        points = np.concatenate(self._found)
        low, high = points.min(axis=0), points.max(axis=0)
        room = np.full(3, 0.3 * np.max(high - low))
        above = np.where(np.arange(3) == self.up_axis, 0.05 * np.max(high - low), room)
        found = []
        for solid in self._first.solids:
            shape, pose = solid.get("shape", {}), np.asarray(solid.get("pose", np.eye(4)), dtype=float)
            if solid.get("container") and shape.get("type") == "box":
                corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, 8).T * shape["size"]
                found.append(np.clip(corners @ pose[:3, :3].T + pose[:3, 3], low - room, high + above))
        return found

    def floor(self, lowest: float) -> float:
        """Height of the ground: a plane or a container's bottom just below the particles, otherwise the lowest particle."""
        heights = []
        for solid in self._first.solids if self._first else ():
            shape, pose = solid.get("shape", {}), np.asarray(solid.get("pose", np.eye(4)), dtype=float)
            if shape.get("type") == "plane" and pose[self.up_axis, 1] > 0.99:
                heights.append(pose[self.up_axis, 3])
            elif shape.get("type") == "box" and solid.get("container"):
                heights.append(pose[self.up_axis, 3] - np.abs(pose[self.up_axis, :3]) @ np.asarray(shape["size"]) / 2)
        # A surface in the middle of the particles is not what they stand on.
        below = [height for height in heights if height <= lowest + self.spacing]
        return float(max(below)) if below else float(lowest - self.spacing / 2)


def _solids(frame: Frame) -> list[np.ndarray]:
    """Points around each solid that one would want to see: not containers, not planes."""
    found = []
    for solid in frame.solids:
        if not solid.get("container"):
            pose = np.asarray(solid.get("pose", np.eye(4)), dtype=float)
            points, _ = surface(solid.get("shape", {}), np.inf)
            if len(points):
                found.append(points @ pose[:3, :3].T + pose[:3, 3])
    return found
