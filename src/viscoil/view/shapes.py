"""Points on the surfaces of shapes, for quick pictures: which part of space does a solid take?"""

from itertools import pairwise
from typing import Any

import numpy as np

from viscoil.solids.figures import bear_parts
from viscoil.solids.meshes import mesh

Surface = tuple[np.ndarray, np.ndarray]  # points and unit normals


def surface(shape: dict[str, Any], step: float) -> Surface:
    """Points about ``step`` apart on the surface of ``shape`` in its own frame; none for shapes without a picture."""
    maker = _SURFACES.get(str(shape.get("type")))
    return maker(shape, step) if maker else (np.zeros((0, 3)), np.zeros((0, 3)))


def _revolved(profile: np.ndarray, step: float) -> Surface:
    """Rings of points about y along a profile of (radius, height) points, outside on the right going up."""
    points, normals = [], []
    for (r0, y0), (r1, y1) in pairwise(profile):
        length = float(np.hypot(r1 - r0, y1 - y0))
        if length == 0:
            continue
        rings = max(1, min(400, int(np.ceil(length / step))))
        for t in (np.arange(rings) + 0.5) / rings:
            r, y = r0 + t * (r1 - r0), y0 + t * (y1 - y0)
            count = max(8, min(1200, int(np.ceil(2 * np.pi * r / step))))
            angle = 2 * np.pi * (np.arange(count) + 0.5) / count
            ring = np.stack([np.cos(angle), np.zeros(count), np.sin(angle)], axis=1)
            points.append(ring * r + [0, y, 0])
            normals.append(ring * ((y1 - y0) / length) + [0, (r0 - r1) / length, 0])
    return np.concatenate(points), np.concatenate(normals)


def _arc(radius: float, centre: tuple[float, float], start: float, end: float) -> np.ndarray:
    angle = np.radians(np.linspace(start, end, 48))
    return np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)], axis=1)


def _sphere(shape: dict[str, Any], step: float) -> Surface:
    return _revolved(_arc(shape["radius"], (0, 0), -90, 90), step)


def _capsule(shape: dict[str, Any], step: float) -> Surface:
    r, h = shape["radius"], shape["height"] / 2
    return _revolved(np.concatenate([_arc(r, (0, -h), -90, 0), _arc(r, (0, h), 0, 90)]), step)


def _cone(shape: dict[str, Any], step: float) -> Surface:
    bottom, h = shape["radius"], shape["height"] / 2
    top = shape.get("top_radius", bottom if shape["type"] == "cylinder" else 0.0)
    return _revolved(np.array([[0, -h], [bottom, -h], [top, h], [0, h]]), step)


def _funnel(shape: dict[str, Any], step: float) -> Surface:
    top, bottom, h, wall = shape["top_radius"], shape["bottom_radius"], shape["height"] / 2, shape["thickness"]
    return _revolved(np.array([[bottom, -h], [bottom + wall, -h], [top + wall, h], [top, h], [bottom, -h]]), step)


def _torus(shape: dict[str, Any], step: float) -> Surface:
    return _revolved(_arc(shape["tube"], (shape["radius"], 0), -180, 180), step)


def _bowl(shape: dict[str, Any], step: float) -> Surface:
    rim, height, wall = shape["radius"], shape["height"], shape["thickness"] / 2
    ball = (rim * rim + height * height) / (2 * height)
    centre, up = (0.0, ball - height / 2), float(np.degrees(np.arctan2(height - ball, rim)))
    return _revolved(np.concatenate([_arc(ball + wall, centre, -90, up), _arc(ball - wall, centre, up, -90)]), step)


def _cup(shape: dict[str, Any], step: float) -> Surface:
    bottom, h, wall = shape["radius"], shape["height"] / 2, shape["thickness"] / 2
    top = bottom if shape.get("top_radius") is None else shape["top_radius"]
    outside = [[0, -h - wall], [bottom + wall, -h - wall], [top + wall, h + wall]]
    inside = [[top - wall, h + wall], [bottom - wall, wall - h], [0, wall - h]]
    return _revolved(np.array([*outside, *inside]), step)


def _box(shape: dict[str, Any], step: float) -> Surface:
    half = np.asarray(shape["size"], float) / 2
    points, normals = [], []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        lines = [(np.arange(n) + 0.5) / n * 2 - 1 for n in (max(4, min(400, int(2 * half[k] / step))) for k in (u, v))]
        a, b = (grid.ravel() for grid in np.meshgrid(*lines))
        for side in (-1.0, 1.0):
            face = np.zeros((len(a), 3))
            face[:, axis], face[:, u], face[:, v] = side * half[axis], a * half[u], b * half[v]
            points.append(face)
            normals.append(np.tile(np.eye(3)[axis] * side, (len(a), 1)))
    return np.concatenate(points), np.concatenate(normals)


def _union(shape: dict[str, Any], step: float) -> Surface:
    found = [(np.zeros((0, 3)), np.zeros((0, 3)))]
    for part in shape.get("parts", []):
        points, normals = surface(part, step)
        turn = rotation_matrix(part.get("rotation", (0, 0, 0)))
        found.append((points @ turn.T + np.asarray(part.get("position", (0, 0, 0))), normals @ turn.T))
    return np.concatenate([p for p, _ in found]), np.concatenate([n for _, n in found])


def _bear(shape: dict[str, Any], step: float) -> Surface:
    parts = []
    for kind, lengths, centre, rotation in bear_parts(shape["height"])[0]:
        part = {"type": kind, "radius": lengths[0], "position": centre, "rotation": rotation}
        parts.append(part | ({"height": 2 * lengths[1]} if kind == "capsule" else {}))
    return _union({"parts": parts}, step)


def _mesh(shape: dict[str, Any], step: float) -> Surface:
    """The middles of triangles, those of a file cut into smaller ones about ``step`` long."""
    vertices, triangles = mesh(shape)
    corners = vertices[triangles].astype(float)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    twice = np.linalg.norm(normals, axis=1)
    corners, normals, twice = corners[twice > 0], normals[twice > 0], twice[twice > 0]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    pieces = np.clip(np.ceil(longest / step), 1, 200).astype(int)
    found = []
    for n in np.unique(pieces):
        i, j = (k.ravel() for k in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
        below, above = i + j < n, i + j < n - 1  # the halves of n x n little parallelograms that are in the triangle
        u, v = (np.concatenate([k[below] + 1 / 3, k[above] + 2 / 3]) / n for k in (i, j))
        mine = pieces == n
        middles = np.stack([1 - u - v, u, v], axis=1) @ corners[mine]
        found.append((middles.reshape(-1, 3), np.repeat(normals[mine] / twice[mine][:, None], n * n, axis=0)))
    return np.concatenate([p for p, _ in found]), np.concatenate([n for _, n in found])


def rotation_matrix(degrees: Any) -> np.ndarray:
    """Turn about x, then the new y, then the new z."""
    turn = np.eye(3)
    for axis, angle in enumerate(np.radians(np.asarray(degrees, float))):
        c, s = np.cos(angle), np.sin(angle)
        one = np.eye(3)
        u, v = (axis + 1) % 3, (axis + 2) % 3
        one[u, u], one[u, v], one[v, u], one[v, v] = c, -s, s, c
        turn = turn @ one
    return turn


def edges(shape: dict[str, Any], step: float) -> np.ndarray:
    """Points along the edges of a box; other containers have none."""
    if shape.get("type") != "box":
        return np.zeros((0, 3))
    half = np.asarray(shape["size"], float) / 2
    points = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        along = np.linspace(-half[axis], half[axis], max(2, min(4000, int(2 * half[axis] / step))))
        for a in (-1, 1):
            for b in (-1, 1):
                line = np.zeros((len(along), 3))
                line[:, axis], line[:, u], line[:, v] = along, a * half[u], b * half[v]
                points.append(line)
    return np.concatenate(points)


_SURFACES = {
    "sphere": _sphere, "capsule": _capsule, "cylinder": _cone, "cone": _cone, "funnel": _funnel, "torus": _torus,
    "bowl": _bowl, "cup": _cup, "box": _box, "union": _union, "bear": _bear,
    "mesh": _mesh,
}
