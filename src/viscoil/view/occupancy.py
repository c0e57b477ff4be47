"""How much fluid is around a point: a coarse grid that gives soft shadows and darkens hollows."""

import numpy as np

MOST_CELLS = 96  # along the longest edge


class Occupancy:
    """Fraction of space filled by particles, on a grid around all but a few strays; 0 outside."""

    def __init__(self, position: np.ndarray, spacing: float) -> None:
        low, high = np.percentile(position, [0.5, 99.5], axis=0) if len(position) else (np.zeros(3), np.ones(3))
        self.cell = float(max(1.6 * spacing, np.max(high - low) / MOST_CELLS, 1e-9))
        self.low = (low - 4 * self.cell).astype(np.float32)
        self.shape = tuple(int(n) for n in np.ceil((high - low) / self.cell) + 8)
        where = ((position - self.low) / self.cell).astype(np.int64)
        inside = ((where >= 0) & (where < self.shape)).all(axis=1)
        flat = np.ravel_multi_index(where[inside].T, self.shape)
        counts = np.bincount(flat, minlength=int(np.prod(self.shape))).reshape(self.shape)
        self.values = _empty_border(_blur(np.minimum(counts * np.float32((spacing / self.cell) ** 3), 1)))
        self.wide = _empty_border(_blur(_blur(self.values)))

    def at(self, points: np.ndarray, wide: bool = False, smooth: bool = False) -> np.ndarray:
        """Filled fraction at ``points``: of the nearest cell, or interpolated when ``smooth``.

        ``wide`` averages over a larger neighbourhood. The border is empty: points outside take its value.
        """
        grid = (self.wide if wide else self.values).reshape(-1)
        _, ny, nz = self.shape
        where = (points - self.low) * np.float32(1 / self.cell)
        if not smooth:
            i, j, k = (np.clip(where[:, a], 0, self.shape[a] - 1).astype(np.int32) for a in range(3))
            return grid[(i * ny + j) * nz + k]
        where = np.clip(where - np.float32(0.5), 0, np.array(self.shape, np.float32) - 1.001)
        cell = where.astype(np.int32)
        part = where - cell
        flat = (cell[:, 0] * ny + cell[:, 1]) * nz + cell[:, 2]
        total = np.zeros(len(points), np.float32)
        for corner in range(8):
            i, j, k = corner >> 2, (corner >> 1) & 1, corner & 1
            weight = np.prod([part[:, a] if one else 1 - part[:, a] for a, one in enumerate((i, j, k))], axis=0)
            total += weight * grid[flat + (i * ny + j) * nz + k]
        return total

    def light(
        self, points: np.ndarray, direction: np.ndarray, start: float, steps: int = 12, smooth: bool = False
    ) -> np.ndarray:
        """Part of the light from ``direction`` that reaches ``points``, marching from ``start`` cells away."""
        blocked = np.zeros(len(points), np.float32)
        reach, stride = start, 1.0
        for _ in range(steps):
            moved = points + (direction * (reach * self.cell)).astype(np.float32)
            blocked += self.at(moved, wide=reach > 6, smooth=smooth) * stride
            reach += stride
            stride *= 1.22  # coarser far away: shadows soften with distance
        return np.exp(-1.1 * blocked)

    def normals(self, points: np.ndarray) -> np.ndarray:
        """Unit vectors out of the fluid (zero where there is no clear outside)."""
        step = np.eye(3, dtype=np.float32) * np.float32(0.9 * self.cell)
        gradient = np.stack([self.at(points - s) - self.at(points + s) for s in step], axis=1)
        gradient += np.stack([self.at(points - 2 * s, True) - self.at(points + 2 * s, True) for s in step], axis=1)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return np.where(length > 0.05, gradient / np.maximum(length, 1e-6), 0)


def _empty_border(grid: np.ndarray) -> np.ndarray:
    for axis in range(3):
        edges = np.moveaxis(grid, axis, 0)
        edges[:2] = edges[-2:] = 0
    return grid


def _blur(grid: np.ndarray) -> np.ndarray:
    """Mean over three cells along each axis."""
    grid = grid.astype(np.float32)
    for axis in range(3):
        padded = np.concatenate([np.zeros_like(grid.take([0], axis)), grid, np.zeros_like(grid.take([0], axis))], axis)
        n = grid.shape[axis]
        grid = np.sum([padded.take(range(k, k + n), axis) for k in range(3)], axis=0) / np.float32(3)
    return grid
