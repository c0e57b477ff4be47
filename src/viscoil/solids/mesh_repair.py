"""Small repairs of triangle meshes: doubled vertices, empty triangles, triangles that face the wrong way."""

import numpy as np

_MOST_WORK = 200_000_000  # solid angles looked at to tell cavities from bodies that are inside out


def tidied(vertices: np.ndarray, triangles: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices within about ``distance`` [m] made one; triangles with a corner twice left out, and vertices nobody uses."""
    places = np.round((vertices - vertices.min(axis=0)) / max(distance, 1e-300)).astype(np.int64)
    _, first, index = np.unique(places, axis=0, return_index=True, return_inverse=True)
    triangles = index.reshape(-1)[triangles]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    used, triangles = np.unique(triangles, return_inverse=True)
    return vertices[first][used], triangles.reshape(-1, 3)


def directed_edges(triangles: np.ndarray) -> np.ndarray:
    """(3 t, 2): the edges of triangle k are rows k, t + k and 2 t + k."""
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])


def _keys(edges: np.ndarray) -> np.ndarray:
    """One number per edge, the same in both directions."""
    return edges.min(axis=1).astype(np.int64) << 32 | edges.max(axis=1)


def open_edges(triangles: np.ndarray) -> np.ndarray:
    """Edges (n, 2) at which an odd number of triangles meets."""
    keys, count = np.unique(_keys(directed_edges(triangles)), return_counts=True)
    odd = keys[count % 2 == 1]
    return np.stack([odd >> 32, odd & 0xFFFFFFFF], axis=1)


def clusters(pairs: np.ndarray) -> np.ndarray:
    """Numbers each of the ``pairs`` (n, 2) by the connected cluster it belongs to."""
    nodes, index = np.unique(pairs, return_inverse=True)
    index = index.reshape(-1, 2)
    label = _labels(len(nodes), index)
    return np.unique(label[index[:, 0]], return_inverse=True)[1]


def _labels(number: int, pairs: np.ndarray) -> np.ndarray:
    """Smallest member of everybody's cluster: labels run along pairs, and to the labels' labels, until nothing changes."""
    label = np.arange(number)
    while True:
        least = np.minimum(label[pairs[:, 0]], label[pairs[:, 1]])
        new = label.copy()
        for side in (0, 1):
            np.minimum.at(new, label[pairs[:, side]], least)
        new = new[new]
        if np.array_equal(new, label):
            return label
        label = new


def oriented(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray | None:
    """The triangles, all facing outwards (cavities inwards); None when that is not possible."""
    consistent = _consistent(triangles)
    if consistent is None:
        return None
    part = clusters(consistent[:, :2])
    volumes = np.bincount(part, _sixfold(vertices, consistent)) / 6
    wrong = volumes < 0
    if wrong.all():  # the whole file is inside out
        return consistent[:, ::-1]
    if wrong.sum() * len(triangles) > _MOST_WORK:
        return consistent
    result = consistent.copy()
    # A cavity belongs inside out; a body beside the others does not.
    outward = np.where(wrong[part][:, None], consistent[:, ::-1], consistent)
    for k in np.flatnonzero(wrong):
        others = outward[part != k]
        corner = vertices[consistent[part == k][0]].mean(axis=0)
        if abs(winding(corner, vertices, others)) < 0.5:
            result[part == k] = consistent[part == k][:, ::-1]
    return result


def _sixfold(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[triangles[:, k]] - vertices.mean(axis=0) for k in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c))


def winding(point: np.ndarray, vertices: np.ndarray, triangles: np.ndarray) -> float:
    """How often a mesh winds around a point: Σ Ω/4π over its triangles (van Oosterom and Strackee 1983)."""
    a, b, c = (vertices[triangles[:, k]] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    dot = np.einsum
    under = la * lb * lc + dot("ij,ij->i", a, b) * lc + dot("ij,ij->i", b, c) * la + dot("ij,ij->i", c, a) * lb
    return float(np.arctan2(dot("ij,ij->i", a, np.cross(b, c)), under).sum() / (2 * np.pi))


def _consistent(triangles: np.ndarray) -> np.ndarray | None:
    """Neighbours at an edge run along it in opposite directions: triangles turned until they do, or None."""
    if _balanced(triangles):
        return triangles
    edges = directed_edges(triangles)
    owner = np.tile(np.arange(len(triangles)), 3)
    forward = edges[:, 0] < edges[:, 1]
    _, index, count = np.unique(_keys(edges), return_inverse=True, return_counts=True)
    order = np.argsort(index.reshape(-1), kind="stable")
    plain = np.flatnonzero(count == 2)  # edges of four triangles say nothing about who belongs to whom
    first = (np.cumsum(count) - count)[plain]
    one, two = order[first], order[first + 1]
    alike = forward[one] == forward[two]  # then one of the two is to be turned
    beside: list[list[tuple[int, bool]]] = [[] for _ in range(len(triangles))]
    for a, b, turn in zip(owner[one].tolist(), owner[two].tolist(), alike.tolist(), strict=True):
        beside[a].append((b, turn))
        beside[b].append((a, turn))
    flip = [-1] * len(triangles)
    for seed in range(len(triangles)):
        if flip[seed] >= 0:
            continue
        flip[seed], waiting = 0, [seed]
        while waiting:
            here = waiting.pop()
            for there, turn in beside[here]:
                if flip[there] < 0:
                    flip[there] = flip[here] ^ turn
                    waiting.append(there)
    result = np.where(np.array(flip)[:, None] > 0, triangles[:, ::-1], triangles)
    return result if _balanced(result) else None


def _balanced(triangles: np.ndarray) -> bool:
    """Whether every edge is run along equally often in both directions."""
    edges = directed_edges(triangles)
    _, index = np.unique(_keys(edges), return_inverse=True)
    return not np.bincount(index.reshape(-1), np.where(edges[:, 0] < edges[:, 1], 1.0, -1.0)).any()
