"""A closed mesh as a few convex pieces for contacts between bodies.

The box around it is cut in two, and again, always where the convex hull of what lies in a box holds most that is not mesh, by
whichever of nine planes saves most; what is inside is counted on a grid. Small hollows below a cell are filled.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from viscoil.solids.mujoco_kit import library

CELLS = 32  # of the grid, along the longest edge
MOST = 24  # pieces
GOOD = 0.02  # of the volume may be filled too much in all
EXTREMES = 200  # points of a hull at most: those that lie farthest in so many directions


def _directions() -> np.ndarray:
    """Nearly even directions on a sphere: a Fibonacci spiral, and the axes."""
    k = np.arange(EXTREMES - 6) + 0.5
    height, turn = 1 - 2 * k / (EXTREMES - 6), np.pi * (1 + 5**0.5) * k
    ring = np.sqrt(1 - height**2)
    return np.concatenate([np.eye(3), -np.eye(3), np.stack([ring * np.cos(turn), ring * np.sin(turn), height], 1)])


def extremes(points: np.ndarray) -> np.ndarray:
    """Those of the points that lie farthest in some direction."""
    return points[np.unique((points @ _directions().T).argmax(0))] if len(points) > EXTREMES else np.unique(points, axis=0)


def hull_volume(points: np.ndarray) -> float:
    """Volume of the convex hull [m³]; 0 of points in a plane."""
    kit = library()
    spec = kit.MjSpec()
    size = float(np.ptp(points, axis=0).max())
    if len(points) < 4 or size == 0 or np.linalg.matrix_rank(points - points[0], tol=1e-6 * size) < 3:
        return 0.0
    # Lengths of about one, so that small meshes are not taken for nothing.
    solid = kit.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    spec.add_mesh(name="hull", uservert=((points - points.mean(0)) / size).ravel(), inertia=solid)
    body = spec.worldbody.add_body(name="hull")
    body.add_geom(type=kit.mjtGeom.mjGEOM_MESH, meshname="hull", density=1.0)
    return float(spec.compile().body_mass[1]) * size**3


def _clipped(triangles: np.ndarray, axis: int, level: float, side: float) -> np.ndarray:
    """Triangles (t, 3, 3) cut by the plane x[axis] = level; what lies on the side ±1 stays, as triangles again."""
    away = side * (triangles[:, :, axis] - level)
    inside = away >= 0
    number = inside.sum(1)
    kept = [triangles[number == 3]]
    for count in (1, 2):
        chosen = number == count
        t, d = triangles[chosen], away[chosen]
        lonely = (inside[chosen] if count == 1 else ~inside[chosen]).argmax(1)
        order = (lonely[:, None] + np.arange(3)) % 3
        t, d = np.take_along_axis(t, order[:, :, None], 1), np.take_along_axis(d, order, 1)
        cuts = [t[:, 0] + (d[:, 0] / (d[:, 0] - d[:, k]))[:, None] * (t[:, k] - t[:, 0]) for k in (1, 2)]
        if count == 1:
            kept.append(np.stack([t[:, 0], *cuts], 1))
        else:
            kept += [np.stack([cuts[0], t[:, 1], t[:, 2]], 1), np.stack([cuts[0], t[:, 2], cuts[1]], 1)]
    return np.concatenate(kept)


class _Piece:
    """What lies in one box: triangles cut to it, cells inside, and the hull of both."""

    def __init__(self, triangles: np.ndarray, cells: np.ndarray, cell: float):
        self.triangles, self.cells = triangles, cells
        self.points = extremes(np.concatenate([triangles.reshape(-1, 3), cells])) if len(triangles) + len(cells) else cells
        self.hull = hull_volume(self.points)
        self.surplus = self.hull - len(cells) * cell**3

    def _half(self, axis: int, level: float, side: float, cell: float) -> "_Piece":
        cells = self.cells[side * (self.cells[:, axis] - level) > 0]
        return _Piece(_clipped(self.triangles, axis, level, side), cells, cell)

    def split(self, cell: float) -> tuple["_Piece", "_Piece"] | None:
        """The best of nine cuts; None when none makes it smaller."""
        low, high = self.points.min(0), self.points.max(0)
        best, least = None, 0.999 * self.hull
        for axis in range(3):
            for share in (0.5, 0.3, 0.7) if high[axis] - low[axis] > 2 * cell else ():
                level = low[axis] + share * (high[axis] - low[axis])
                halves = tuple(self._half(axis, level, side, cell) for side in (-1.0, 1.0))
                if halves[0].hull + halves[1].hull < least:
                    best, least = halves, halves[0].hull + halves[1].hull
        return best  # type: ignore[return-value]


def decomposed(vertices: np.ndarray, triangles: np.ndarray, tree: Any) -> list[np.ndarray]:
    """Corners of convex pieces that together are nearly the mesh; ``tree``: answers signed distances at points."""
    low, high = vertices.min(0), vertices.max(0)
    cell = float((high - low).max()) / CELLS
    axes = [np.arange(a + cell / 2, b, cell) for a, b in zip(low, high, strict=True)]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    cells = cells[tree.distance(cells) < 0]
    pieces, done = [_Piece(vertices[triangles].astype(float), cells, cell)], []
    volume = max(len(cells) * cell**3, 1e-300)
    # On a convex mesh the count of cells at its surface is off by about a cell all over, either way: compare with that.
    if pieces[0].surplus < 0.05 * volume:
        return [pieces[0].points]
    while pieces and len(pieces) + len(done) < MOST and sum(max(p.surplus, 0.0) for p in pieces) > GOOD * volume:
        worst = max(range(len(pieces)), key=lambda k: pieces[k].surplus)
        piece = pieces.pop(worst)
        halves = piece.split(cell)
        if halves is None:
            done.append(piece)
        else:
            pieces += [half for half in halves if half.hull > 0]
    return [piece.points for piece in [*pieces, *done] if piece.hull > 0]


@lru_cache(maxsize=16)
def _pieces_of(loaded: Any) -> tuple[np.ndarray, ...]:
    from viscoil.solids.mesh_tree import tree_of

    return tuple(decomposed(loaded.vertices, loaded.triangles, tree_of(loaded)))


def mesh_pieces(file: str, scale: float) -> tuple[np.ndarray, ...]:
    """Corners of the convex pieces of a mesh file, in its own frame [m]."""
    from viscoil.solids.mesh_file import load

    return _pieces_of(load(file, scale))
