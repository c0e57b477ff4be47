"""Triangles to pixels in NumPy: which triangle does each pixel see, and how much fluid lies behind it?"""

from dataclasses import dataclass

import numpy as np

from viscoil.view.camera import Camera

LARGE = 48  # pixels: triangles with longer sides are cut into four, again and again
MOST_CUTS = 9


@dataclass
class Samples:
    """Pixels inside triangles: one row for every triangle a pixel's ray passes through."""

    pixel: np.ndarray  # flat index into the picture
    triangle: np.ndarray
    weights: np.ndarray  # (n, 3) of the triangle's corners, corrected for perspective
    depth: np.ndarray  # along the view axis [m]


@dataclass
class Projected:
    """Corners of triangles on the picture."""

    x: np.ndarray  # (v,) pixels from the left
    y: np.ndarray  # (v,) pixels from the top
    depth: np.ndarray  # (v,) [m]

    @classmethod
    def of(cls, points: np.ndarray, camera: Camera, size: tuple[int, int]) -> "Projected":
        return cls(*camera.project(points, size))

    def turned(self, triangles: np.ndarray) -> np.ndarray:
        """Twice the signed area of each triangle on the picture; positive: its front is seen."""
        x, y = self.x[triangles], self.y[triangles]
        # The picture's y points down, so what runs anticlockwise in the world comes out negative.
        return (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0]) - (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0])


def samples(at: Projected, triangles: np.ndarray, size: tuple[int, int], near: float) -> Samples:
    """All pixels covered by ``triangles``, either side. Triangles that reach nearer than ``near`` [m] are left out.

    A pixel on an edge belongs to the triangle to its right or below, so that neighbours share none.
    """
    width, height = size
    x, y, depth = (values[triangles].astype(np.float32) for values in (at.x, at.y, at.depth))
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
    top, bottom = np.ceil(y.min(axis=1) - 0.5), np.ceil(y.max(axis=1) - 0.5) - 1
    good = (bottom >= top) & (bottom >= 0) & (top < height) & (x.max(axis=1) > 0) & (x.min(axis=1) < width)
    kept = np.flatnonzero(good & (depth.min(axis=1) > near) & (area != 0))
    x, y, depth, inverse = x[kept], y[kept], depth[kept], 1 / area[kept]
    # Share of each corner = start + across * column + down * row: linear on the picture.
    starts, across, down = [], [], []
    for a, b in ((1, 2), (2, 0), (0, 1)):
        slope_x, slope_y = (y[:, a] - y[:, b]) * inverse, (x[:, b] - x[:, a]) * inverse
        starts.append(-(x[:, a] * slope_x + y[:, a] * slope_y) + np.float32(0.5) * (slope_x + slope_y))
        across.append(slope_x)
        down.append(slope_y)
    # The rows of each triangle, and on each row the columns between its sides.
    first = np.maximum(top[kept], 0).astype(np.int32)
    rows = np.minimum(bottom[kept], height - 1).astype(np.int32) - first + 1
    of, row = _spread(first, rows)
    level = [start[of] + slope[of] * row.astype(np.float32) for start, slope in zip(starts, down, strict=True)]
    left, right = np.zeros(len(of), np.float32), np.full(len(of), width, np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        for begin, slope in zip(level, (slope[of] for slope in across), strict=True):
            crossing = -begin / slope
            left = np.where(slope > 0, np.maximum(left, crossing), left)
            right = np.where(slope < 0, np.minimum(right, crossing), right)
            right = np.where((slope == 0) & (begin < 0), np.float32(0), right)
    left = np.ceil(left).astype(np.int32)
    count = np.maximum(np.ceil(right).astype(np.int32) - left, 0)
    span, column = _spread(left, count)
    of = of[span]
    step = column.astype(np.float32)
    over = (1 / depth)[of]
    weights = np.stack([(level[k][span] + across[k][of] * step) * over[:, k] for k in range(3)], axis=1)
    total = weights.sum(axis=1)
    weights /= total[:, None]
    return Samples(row[span] * np.int32(width) + column, kept[of], weights, 1 / total)


def _spread(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which entry each of all ``count`` numbers belongs to, and the numbers: first, first + 1, ... of each entry."""
    which = np.repeat(np.arange(len(count), dtype=np.int32), count)
    begin = np.cumsum(count, dtype=np.int32) - count
    return which, np.arange(len(which), dtype=np.int32) + np.repeat(first - begin, count)


def nearest(found: Samples, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """Depth of what each of so many ``pixels`` sees first (infinite: nothing) and the rows of ``found`` that are seen."""
    front = np.full(pixels, np.inf, np.float32)
    np.minimum.at(front, found.pixel, found.depth)
    rows = np.flatnonzero(found.depth == front[found.pixel])
    # Two triangles that share an edge may both have the pixel on it: one is enough.
    owner = np.full(pixels, -1, np.int64)
    owner[found.pixel[rows]] = rows
    return front, owner[owner >= 0]


def cut(points: np.ndarray, triangles: np.ndarray, camera: Camera, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The same surface with no triangle much larger than ``LARGE`` pixels: boxes around large ones are mostly empty.

    Returns points and, for each, weights would be costly: quantities are carried as extra columns of ``points``.
    """
    for _ in range(MOST_CUTS):
        at = Projected.of(points[:, :3], camera, size)
        x, y = at.x[triangles], at.y[triangles]
        seen = (at.depth[triangles] > 0).all(axis=1)
        large = np.flatnonzero(seen & ((np.ptp(x, axis=1) > LARGE) | (np.ptp(y, axis=1) > LARGE)))
        if not len(large) or len(large) > 200_000:
            break
        a, b, c = triangles[large].T
        start = len(points)
        n = len(large)
        points = np.concatenate([points, *((points[i] + points[j]) / 2 for i, j in ((a, b), (b, c), (c, a)))])
        ab, bc, ca = (start + k * n + np.arange(n) for k in range(3))
        new = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
        triangles = np.concatenate([np.delete(triangles, large, axis=0), new])
    return points, triangles
