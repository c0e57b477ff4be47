"""Triangle meshes of the shapes of the scene format, for pictures and exports. NumPy on the host, no kernels.

Every mesh is in the shape's own frame (as it stands in a frame's ``solids``: without position and rotation), closed but for
planes, and seen from outside its triangles run anticlockwise.
"""

import json
from functools import lru_cache
from typing import Any

import numpy as np

from viscoil.errors import MissingExtra, SceneError
from viscoil.extras import require
from viscoil.keys import did_you_mean
from viscoil.solids.formulas import Part, bear_union, distance, flattened

DETAIL = 64  # edges around a circle
EXTENT = 10.0  # edge length of the square that stands for a plane [m]
_MOST_POINTS = 6_000_000  # of a grid for blended shapes: what a laptop evaluates in a few seconds

Mesh = tuple[np.ndarray, np.ndarray]


def mesh(shape: dict[str, Any], detail: int = DETAIL, extent: float = EXTENT) -> Mesh:
    """Vertices (v, 3) float32 [m] and triangles (t, 3) int32 of any shape of the scene format.

    ``detail`` is the number of edges around a circle. Planes become a square with edges of ``extent`` metres around the
    origin. Blended unions and bears are contoured from their distance when pysplashsurf is installed; without it they
    are the closed meshes of their parts, pushed into each other. The arrays are shared between callers: copy to change.
    """
    kind = str(shape.get("type"))
    if kind not in _MAKERS:
        raise SceneError(f'there is no shape "{kind}".{did_you_mean(kind, _MAKERS)} Expected one of: {", ".join(_MAKERS)}')
    key = json.dumps({name: value for name, value in shape.items() if name not in ("position", "rotation")}, sort_keys=True)
    return _cached(key, max(8, int(detail)), float(extent))


@lru_cache(maxsize=256)
def _cached(key: str, detail: int, extent: float) -> Mesh:
    shape = json.loads(key)
    vertices, triangles = _MAKERS[shape["type"]](shape, detail, extent)
    result = np.ascontiguousarray(vertices, np.float32), np.ascontiguousarray(triangles, np.int32)
    for array in result:
        array.setflags(write=False)
    return result


def creased(vertices: np.ndarray, triangles: np.ndarray, angle: float = 40.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(vertices, triangles, unit normals) for smooth shading: vertices are doubled along edges sharper than ``angle``.

    The normal of a corner is the mean over those faces at its vertex that are turned by less than ``angle`` degrees
    against its own face, weighted with their angle there.
    """
    corner = np.asarray(vertices, float)[triangles]
    sides = np.roll(corner, -1, axis=1) - corner
    face = np.cross(sides[:, 0], sides[:, 1])
    face /= np.maximum(np.linalg.norm(face, axis=1, keepdims=True), 1e-30)
    back = -np.roll(sides, 1, axis=1)
    lengths = np.linalg.norm(sides, axis=2) * np.linalg.norm(back, axis=2)
    weight = np.arccos(np.clip((sides * back).sum(2) / np.maximum(lengths, 1e-30), -1, 1)).ravel()
    # All pairs of corners that share a vertex.
    at = np.asarray(triangles).ravel()
    order = np.argsort(at, kind="stable")
    number = np.bincount(at, minlength=len(vertices))
    first = np.cumsum(number) - number
    own = np.repeat(np.arange(len(at)), number[at])
    rank = np.arange(len(own)) - np.repeat(np.cumsum(number[at]) - number[at], number[at])
    other = order[first[at[own]] + rank]
    alike = (face[own // 3] * face[other // 3]).sum(1) > np.cos(np.radians(angle))
    own, other = own[alike], other[alike]
    pull = face[other // 3] * weight[other, None]
    normal = np.stack([np.bincount(own, pull[:, k], minlength=len(at)) for k in range(3)], 1).astype(float)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
    keys = np.column_stack([at, np.round(normal * 4096)]).astype(np.int64)
    _, chosen, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return (
        np.ascontiguousarray(np.asarray(vertices)[at[chosen]], np.float32),
        index.reshape(-1, 3).astype(np.int32), normal[chosen].astype(np.float32),
    )  # fmt: skip


# ---- shapes with a closed form ---------------------------------------------------------------------------------------


def _merged(vertices: np.ndarray, triangles: np.ndarray) -> Mesh:
    """The same with coinciding vertices made one and triangles without area left out."""
    size = max(float(np.ptp(vertices, axis=0).max()), 1e-30)
    places = np.round(vertices / size * 1e7).astype(np.int64)
    _, first, index = np.unique(places, axis=0, return_index=True, return_inverse=True)
    triangles = index.reshape(-1)[triangles]
    a, b, c = triangles.T
    return vertices[first], triangles[(a != b) & (b != c) & (c != a)]


def _revolved(profile: np.ndarray, detail: int) -> Mesh:
    """A profile of (radius, height) points turned about y; going up, outside is on the right."""
    angle = 2 * np.pi * np.arange(detail) / detail
    r, y = profile[:, :1], profile[:, 1:]
    vertices = np.stack([r * np.cos(angle), y + 0 * angle, r * np.sin(angle)], -1).reshape(-1, 3)
    ring, column = (k.ravel() for k in np.meshgrid(np.arange(len(profile) - 1), np.arange(detail), indexing="ij"))
    beside = (column + 1) % detail
    a, b, c, d = ring * detail + column, (ring + 1) * detail + column, (ring + 1) * detail + beside, ring * detail + beside
    return _merged(vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]))


def _arc(radius: float, centre: tuple[float, float], start: float, end: float, detail: int) -> np.ndarray:
    """Points on an arc in the meridian plane, angles in degrees."""
    angle = np.radians(np.linspace(start, end, max(2, round(detail * abs(end - start) / 360)) + 1))
    return np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)], 1)


def _plane(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    e = extent / 2
    return np.array([[-e, 0, -e], [-e, 0, e], [e, 0, e], [e, 0, -e]]), np.array([[0, 1, 2], [0, 2, 3]])


def _box(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    """A cube of grid lines whose directions from the inner box's corners, set to unit length, make the round edges."""
    rounding = float(shape.get("rounding", 0.0))
    inner = np.asarray(shape["size"], float) / 2 - rounding
    arcs = max(2, detail // 8) if rounding > 0 else 0
    quarter = np.tan(np.pi / 4 * np.linspace(1, 0, arcs + 1)) if arcs else np.ones(1)
    line, side = np.concatenate([-quarter, quarter[::-1]]), np.repeat([-1.0, 1.0], arcs + 1)
    u, v = (k.ravel() for k in np.meshgrid(np.arange(len(line)), np.arange(len(line)), indexing="ij"))
    corner = (u < len(line) - 1) & (v < len(line) - 1)
    a = np.flatnonzero(corner)
    square = np.concatenate([np.stack([a, a + len(line), a + len(line) + 1], 1), np.stack([a, a + len(line) + 1, a + 1], 1)])
    vertices, triangles = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            towards, corners = np.empty((len(u), 3)), np.empty((len(u), 3))
            towards[:, axis] = corners[:, axis] = sign
            for k, along in (((axis + 1) % 3, u), ((axis + 2) % 3, v)):
                towards[:, k], corners[:, k] = line[along], side[along]
            triangles.append((square if sign > 0 else square[:, ::-1]) + len(u) * len(vertices))
            vertices.append(corners * inner + rounding * towards / np.linalg.norm(towards, axis=1, keepdims=True))
    return _merged(np.concatenate(vertices), np.concatenate(triangles))


def _sphere(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    return _revolved(_on_axis(_arc(shape["radius"], (0, 0), -90, 90, detail)), detail)


def _capsule(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    r, h = shape["radius"], shape["height"] / 2
    return _revolved(_on_axis(np.concatenate([_arc(r, (0, -h), -90, 0, detail), _arc(r, (0, h), 0, 90, detail)])), detail)


def _on_axis(profile: np.ndarray) -> np.ndarray:
    profile[[0, -1], 0] = 0.0  # cos 90° is not quite zero
    return profile


def _cone(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    bottom, h = shape["radius"], shape["height"] / 2
    top = bottom if shape["type"] == "cylinder" else shape.get("top_radius", 0.0)
    return _revolved(np.array([[0, -h], [bottom, -h], [top, h], [0, h]], float), detail)


def _funnel(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    """The side of a cone thickened by half the wall on either side, with round rims."""
    bottom, top, h, wall = shape["bottom_radius"], shape["top_radius"], shape["height"] / 2, shape["thickness"] / 2
    outwards = np.degrees(np.arctan2(bottom - top, 2 * h))  # direction of the outer wall in the meridian plane
    lower = _arc(wall, (bottom, -h), outwards - 180, outwards, detail // 2)
    upper = _arc(wall, (top, h), outwards, outwards + 180, detail // 2)
    loop = np.concatenate([lower, upper, lower[:1]])
    return _revolved(np.maximum(loop, [0.0, -np.inf]), detail)


def _torus(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    return _revolved(_arc(shape["tube"], (shape["radius"], 0), -180, 180, max(16, detail // 2)), detail)


def _bowl(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    """The outer wall from the bottom up, round the rim, and the inner wall down again."""
    rim, height, wall = shape["radius"], shape["height"], shape["thickness"] / 2
    ball = (rim * rim + height * height) / (2 * height)
    centre, up = (0.0, ball - height / 2), float(np.degrees(np.arctan2(height - ball, rim)))
    outside = _arc(ball + wall, centre, -90, up, 2 * detail)
    over = _arc(wall, (rim, height / 2), up, up + 180, detail // 2)
    inside = _arc(ball - wall, centre, up, -90, 2 * detail)
    return _revolved(_on_axis(np.concatenate([outside, over[1:-1], inside])), detail)


def _cup(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    """Under the floor, round its edge, up the outer wall, over the rim, and down again inside to the floor."""
    bottom, h, wall = shape["radius"], shape["height"] / 2, shape["thickness"] / 2
    top = shape.get("top_radius")
    top = bottom if top is None else top
    slant = np.arctan2(bottom - top, 2 * h)  # direction of the outer wall in the meridian plane
    outwards = float(np.degrees(slant))
    edge = _arc(wall, (bottom, -h), -90, outwards, detail // 2)
    rim = _arc(wall, (top, h), outwards, outwards + 180, detail // 2)
    # Inside, wall and floor meet where both are half a thickness away.
    corner = bottom - wall * (1 + np.sin(slant)) / np.cos(slant)
    inner = np.array([[corner, wall - h], [0.0, wall - h]])
    return _revolved(np.concatenate([[[0.0, -h - wall]], edge, rim, inner]), detail)


def _file(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    from viscoil.solids.mesh_file import load

    loaded = load(shape["file"], shape.get("scale", 1.0))
    return loaded.vertices, loaded.triangles


# ---- unions ----------------------------------------------------------------------------------------------------------


def _bear(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    return _union({"type": "union", **bear_union(shape["height"])}, detail, extent)


def _union(shape: dict[str, Any], detail: int, extent: float) -> Mesh:
    parts, blend = flattened(shape)
    together = _joined(parts, detail, extent)
    if blend > 0 and len(parts) > 1 and all(part.shape["type"] not in ("plane", "mesh") for part in parts):
        try:
            contour = require("pysplashsurf", "to draw blended shapes")
        except MissingExtra:
            return together
        return _contoured(contour, parts, blend, together[0], detail)
    return together


def _joined(parts: list[Part], detail: int, extent: float) -> Mesh:
    """The meshes of all parts side by side."""
    vertices, triangles, count = [], [], 0
    for part in parts:
        v, t = _MAKERS[part.shape["type"]](part.shape, detail, extent)
        vertices.append(v @ part.rotation.T + part.centre)
        triangles.append(np.asarray(t, np.int64) + count)
        count += len(v)
    return np.concatenate(vertices), np.concatenate(triangles)


def _contoured(library: Any, parts: list[Part], blend: float, inside: np.ndarray, detail: int) -> Mesh:
    """The zero of the blended distance: marching cubes, then every vertex moved onto it along the gradient."""
    low, high = inside.min(axis=0), inside.max(axis=0)
    cell = float((high - low).max()) / (1.5 * detail)
    reach = 1.25 * blend + 2.5 * cell  # blending lets a solid bulge by at most 5/4 of the blend length
    low, high = low - reach, high + reach
    cell = max(cell, float(np.prod(high - low) / _MOST_POINTS) ** (1 / 3))
    axes = [np.arange(np.ceil((b - a) / cell) + 1) * cell for a, b in zip(low, high, strict=True)]
    slabs = [
        distance(parts, blend, np.stack(np.meshgrid([x], *axes[1:], indexing="ij"), -1).reshape(-1, 3) + low) for x in axes[0]
    ]
    field = -np.stack(slabs).reshape([len(a) for a in axes])  # the library calls large values inside
    found, grid = library.marching_cubes(
        field, iso_surface_threshold=0.0, cube_size=cell, translation=list(map(float, low)), return_grid=True
    )
    tidy = library.marching_cubes_cleanup(found, grid)  # collapses the slivers marching cubes leaves
    found = tidy if tidy is not None else found
    vertices, triangles = np.asarray(found.vertices, float), np.asarray(found.triangles, np.int64)
    probe = 1e-3 * cell
    for _ in range(3):
        phi = distance(parts, blend, vertices)
        gradient = np.stack(
            [distance(parts, blend, vertices + probe * e) - distance(parts, blend, vertices - probe * e) for e in np.eye(3)], 1
        ) / (2 * probe)
        step = phi / np.maximum((gradient**2).sum(1), 0.25)
        vertices = vertices - np.clip(step, -cell, cell)[:, None] * gradient
    return vertices, triangles


_MAKERS = {
    "plane": _plane, "box": _box, "sphere": _sphere, "capsule": _capsule, "cylinder": _cone, "cone": _cone,
    "funnel": _funnel, "torus": _torus, "bowl": _bowl, "cup": _cup, "union": _union, "bear": _bear, "mesh": _file,
}
