"""Pieces of a mesh: which triangles hang together, how much they enclose, and which of them to leave out."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pieces:
    """Connected pieces of a closed mesh."""

    of_vertex: np.ndarray  # (v,) number of the piece a vertex belongs to
    volume: np.ndarray  # (p,) enclosed volume [m³]; negative for cavities, whose triangles look inwards

    def __len__(self) -> int:
        return len(self.volume)


def pieces(vertices: np.ndarray, triangles: np.ndarray) -> Pieces:
    """Connected pieces and their signed volumes."""
    root = connected(np.concatenate([triangles[:, :2], triangles[:, 1:]]), len(vertices))
    numbers = np.cumsum(root == np.arange(len(root))) - 1
    of_vertex, count = numbers[root], int(numbers[-1]) + 1 if len(numbers) else 0
    corners = vertices.astype(np.float64)
    if len(corners):
        corners -= corners.mean(axis=0)
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (corners[triangles[:, k]].T for k in range(3))
    tetrahedra = (ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)) / 6
    volume = np.bincount(of_vertex[triangles[:, 0]], weights=tetrahedra, minlength=count)
    return Pieces(of_vertex.astype(np.int32), volume)


def connected(edges: np.ndarray, count: int) -> np.ndarray:
    """The smallest number that each of ``count`` things is connected with through ``edges`` (e, 2).

    Hooks larger roots onto smaller ones, then shortens all chains, until no edge is left between two roots.
    """
    parent = np.arange(count, dtype=np.int64)
    while True:
        a, b = parent[edges[:, 0]], parent[edges[:, 1]]
        open_ = a != b
        if not open_.any():
            return parent
        edges, a, b = edges[open_], a[open_], b[open_]
        np.minimum.at(parent, np.maximum(a, b), np.minimum(a, b))
        while not np.array_equal(parent, shorter := parent[parent]):
            parent = shorter


def selected(triangles: np.ndarray, keep_vertex: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(indices of the vertices kept, triangles between them in their new numbers)."""
    kept = np.flatnonzero(keep_vertex)
    number = np.full(len(keep_vertex), -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return kept, number[triangles[keep_vertex[triangles[:, 0]]]]
