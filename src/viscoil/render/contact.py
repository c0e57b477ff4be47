"""Where fluid meets solids: its surface is laid against them, as wet things look.

A surface made from particles ends somewhere within a particle's width of a wall. Seen through, the sliver of air in between
would shine like a mirror, and the sides of a tank would be lumpy. So vertices that face a solid nearby are moved: a little
into opaque solids, exactly onto the walls of containers. Where what is pressed against a solid ends, the surface has an edge:
normals that turn gradually from one side to the other would mirror every light in a ragged line along it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from viscoil.solids.formulas import Part, distance, flattened
from viscoil.solids.meshes import mesh as triangulated
from viscoil.surface.mesh import SurfaceMesh

REACH = 1.15  # particle spacings within which a surface is taken to touch
SUNK = 0.30  # how far it then lies inside opaque solids, in spacings
EVEN = 0.5  # how far the line in which a surface meets a solid is moved along it at most, in spacings: half a triangle
ROUNDS = 6  # of averaging that take the zigzag of triangles out of that line
_STEP = 1e-3  # of the spacing, for the slope of distances


def laid(mesh: SurfaceMesh, solids: list[dict[str, Any]]) -> SurfaceMesh:
    """``mesh`` with its vertices and normals laid against ``solids`` (rows of ``Frame.solids``)."""
    if not len(mesh) or not mesh.spacing > 0:
        return mesh
    vertices, normals = mesh.vertices.astype(np.float64), mesh["normal"].astype(np.float64)
    up = np.eye(3)["xyz".index(mesh.up)]
    pressed = np.zeros(len(mesh), bool)
    for solid in solids:
        pressed[_lay(vertices, normals, solid, mesh.spacing, up)] = True
    fields = mesh.fields | {"normal": normals.astype(np.float32)}
    return _edged(replace(mesh, vertices=vertices.astype(np.float32), fields=fields), pressed)


def _edged(mesh: SurfaceMesh, pressed: np.ndarray) -> SurfaceMesh:
    """``mesh`` with an edge around what is ``pressed`` (v,) bool against solids.

    Triangles with one foot there get vertices of their own in its place, with the normals of their other corners.
    """
    on = pressed[mesh.triangles]
    rows = np.flatnonzero(on.any(axis=1) & ~on.all(axis=1))
    if not len(rows):
        return mesh
    corners, on = mesh.triangles[rows], on[rows]
    twins, which = np.unique(corners[on], return_inverse=True)
    free = (mesh["normal"][corners] * ~on[..., None]).sum(axis=1)
    normals = np.zeros((len(twins), 3))
    np.add.at(normals, which, free[np.nonzero(on)[0]])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    corners[on] = len(mesh) + which
    vertices = mesh.vertices.copy()
    two = (on.sum(axis=1) == 2)[np.nonzero(on)[0]]  # an edge of these triangles is part of the line
    vertices[twins] = _straightened(vertices[twins], which[two].reshape(-1, 2), mesh.spacing)
    triangles = mesh.triangles.copy()
    triangles[rows] = corners
    fields = {name: np.concatenate([values, values[twins]]) for name, values in mesh.fields.items()}
    fields["normal"][len(mesh) :] = normals
    return replace(mesh, vertices=np.concatenate([vertices, vertices[twins]]), triangles=triangles, fields=fields)


def _straightened(points: np.ndarray, edges: np.ndarray, spacing: float) -> np.ndarray:
    """``points`` (n, 3) [m] of lines ``edges`` (m, 2) with the zigzag of the triangles taken out, moved by EVEN at most."""
    count = np.bincount(edges.reshape(-1), minlength=len(points))
    inner = (count > 1)[:, None]
    moved = points.astype(np.float64)
    for _ in range(ROUNDS):
        total = np.zeros_like(moved)
        np.add.at(total, edges, moved[edges[:, ::-1]])
        moved = np.where(inner, (moved + total / np.maximum(count, 1)[:, None]) / 2, moved)
    way = moved - points
    far = np.linalg.norm(way, axis=1, keepdims=True)
    return points + way * np.minimum(1, EVEN * spacing / np.maximum(far, 1e-30))


def _lay(
    vertices: np.ndarray, normals: np.ndarray, solid: dict[str, Any], spacing: float, up: np.ndarray
) -> np.ndarray:
    """Move ``vertices`` (v, 3) [m] against ``solid`` and turn ``normals`` (v, 3); indices of those that now lie on it."""
    shape = solid.get("shape", {})
    pose = np.asarray(solid.get("pose", np.eye(4)), float)
    turn, place = pose[:3, :3], pose[:3, 3]
    parts, blend = flattened(shape)
    side = -1.0 if solid.get("container") else 1.0
    near = _near(parts, vertices, turn, place, side, spacing)
    local = (vertices[near] - place) @ turn
    phi = side * distance(parts, blend, local)
    touching = phi < REACH * spacing
    near, local, phi = near[touching], local[touching], phi[touching]
    if not len(near):
        return near
    slope = np.stack([side * distance(parts, blend, local + step) for step in np.eye(3) * _STEP * spacing], axis=1)
    away = (slope - phi[:, None]) @ turn.T  # out of the solid, in the world's axes
    away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-30)
    facing = -np.einsum("ij,ij->i", away, normals[near])
    close = _smooth((REACH * spacing - phi) / (0.5 * spacing))
    share = _smooth((facing - 0.15) / 0.5) * close
    # Containers have nothing behind their walls, except for the floor they stand on.
    into = SUNK if side > 0 else np.where(away @ up > 0.9, SUNK, 0.0)
    target = -into * spacing
    move = share * (phi - target)
    if side < 0:
        move = np.where(phi < target, phi - target, move)  # nothing may stick out of a container
    vertices[near] -= move[:, None] * away
    pressed = share > 0.5
    # Beside it the surface meets the solid at a right angle: what leans towards it is a particle's roundness.
    bent = normals[near] + (close * np.clip(facing, 0, None))[:, None] * away
    bent[pressed] = -away[pressed]
    normals[near] = bent / np.maximum(np.linalg.norm(bent, axis=1, keepdims=True), 1e-30)
    return near[pressed]


def _near(
    parts: list[Part], vertices: np.ndarray, turn: np.ndarray, place: np.ndarray, side: float, spacing: float
) -> np.ndarray:
    """Vertices that may be within reach: for small solids those around them, otherwise all."""
    if side < 0 or any(part.shape["type"] == "plane" for part in parts):
        return np.arange(len(vertices))
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for part in parts:
        centre = place + turn @ part.centre
        if part.shape["type"] == "mesh":
            corners = (triangulated(part.shape)[0] @ part.rotation.T) @ turn.T + centre
            low, high = np.minimum(low, corners.min(axis=0)), np.maximum(high, corners.max(axis=0))
            continue
        numbers = [value for key, value in part.shape.items() if isinstance(value, int | float) and key != "rounding"]
        size = np.linalg.norm(part.shape["size"]) / 2 if "size" in part.shape else sum(numbers)  # generous
        low, high = np.minimum(low, centre - size), np.maximum(high, centre + size)
    margin = 2 * spacing
    return np.flatnonzero(((vertices > low - margin) & (vertices < high + margin)).all(axis=1))


def _smooth(t: np.ndarray) -> np.ndarray:
    t = np.clip(t, 0, 1)
    return t * t * (3 - 2 * t)
