"""Shapes filled with particles on a lattice of the scene's spacing."""

from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.solids.assembly import rotation_matrix, signed_distance

SLAB = 1 << 20  # lattice points looked at together


def _lattice_axis(length: float, spacing: float) -> np.ndarray:
    """Cell centres of the lattice that fits into ``length``, centred on 0 [m]."""
    number = max(1, int(length / spacing + 1e-4))
    return (np.arange(number) - (number - 1) / 2) * spacing


def _slabs(extent: Any, spacing: float) -> Any:
    """Lattice points of a box, a bounded number at a time."""
    x, y, z = (_lattice_axis(length, spacing) for length in extent)
    per = max(1, SLAB // (len(y) * len(z)))
    for begin in range(0, len(x), per):
        yield np.stack(np.meshgrid(x[begin : begin + per], y, z, indexing="ij"), -1).reshape(-1, 3)


def fill_shape(shape: Any, spacing: float) -> np.ndarray:
    """Particle positions (n, 3) [m] inside a shape: lattice points, in the shape's own frame, then placed."""
    if shape.type == "mesh":
        local = _fill_mesh(shape, spacing)
    else:
        at_origin = shape.model_copy(update={"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0)})
        centre = np.asarray(at_origin.middle())
        inside = []
        for points in _slabs(at_origin.extent(), spacing):
            points = points + centre
            inside.append(points[signed_distance(at_origin, points) < 0])
        local = np.concatenate(inside)
    placed = local @ rotation_matrix(shape.rotation).T + np.asarray(shape.position, float)
    return placed.astype(np.float32)


def read_mesh(file: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) [m] and triangles (m, 3) of a mesh file, or one message that says what is wrong with it."""
    import trimesh

    if not Path(file).is_file():
        raise SceneError(f"mesh file '{file}' does not exist; paths are relative to the scene file")
    try:
        mesh = trimesh.load(file, force="mesh", process=True)
    except Exception as error:
        raise SceneError(f"mesh file '{file}' could not be read: {error}") from None
    if getattr(mesh, "faces", None) is None or len(mesh.faces) == 0:
        raise SceneError(f"mesh file '{file}' holds no triangles")
    if not np.isfinite(mesh.vertices).all():
        raise SceneError(f"mesh file '{file}' holds coordinates that are not finite")
    if not mesh.is_watertight:
        raise SceneError(
            f"mesh file '{file}' is not closed, so it has no inside to fill; close its holes in a modelling program"
        )
    return np.asarray(mesh.vertices, float) * scale, np.asarray(mesh.faces)


def inside_mesh(vertices: np.ndarray, faces: np.ndarray, axes: tuple[np.ndarray, ...]) -> np.ndarray:
    """Boolean grid (x, y, z): inside by the parity of crossings along z, for the grid lines at (x, y).

    The lines are shifted by an irrational hair, so that none runs exactly through an edge of a neatly modelled mesh.
    """
    x, y, z = axes
    hair = 1e-5 * (np.ptp(vertices, axis=0).max() + 1e-30)
    px, py = x + hair * 0.7548776662, y + hair * 0.5698402910
    crossings = np.zeros((len(x), len(y), len(z) + 1), np.int32)  # counts crossings below z_k, by difference
    for a, b, c in vertices[faces]:
        low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        ix = slice(np.searchsorted(px, low[0]), np.searchsorted(px, high[0], "right"))
        iy = slice(np.searchsorted(py, low[1]), np.searchsorted(py, high[1], "right"))
        if ix.start >= ix.stop or iy.start >= iy.stop:
            continue
        gx, gy = px[ix][:, None], py[iy][None, :]
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if area == 0:
            continue  # seen edge-on: no line crosses it
        u = ((b[0] - gx) * (c[1] - gy) - (b[1] - gy) * (c[0] - gx)) / area
        v = ((c[0] - gx) * (a[1] - gy) - (c[1] - gy) * (a[0] - gx)) / area
        hit = (u >= 0) & (v >= 0) & (u + v <= 1)
        height = u * a[2] + v * b[2] + (1 - u - v) * c[2]
        i, j = np.nonzero(hit)
        np.add.at(crossings, (i + ix.start, j + iy.start, np.searchsorted(z, height[i, j])), 1)
    return (np.cumsum(crossings[:, :, :-1], axis=2) % 2).astype(bool)


def _fill_mesh(shape: Any, spacing: float) -> np.ndarray:
    vertices, faces = read_mesh(shape.file, shape.scale)
    low, high = vertices.min(0), vertices.max(0)
    axes = tuple(_lattice_axis(b - a, spacing) + (a + b) / 2 for a, b in zip(low, high, strict=True))
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)[inside_mesh(vertices, faces, axes)]


def jittered(positions: np.ndarray, amount: float, spacing: float, seed: int) -> np.ndarray:
    """Positions displaced at random by at most ``amount`` spacings per axis."""
    if amount == 0:
        return positions
    noise = np.random.default_rng(seed).uniform(-amount, amount, positions.shape)
    return (positions + noise * spacing).astype(np.float32)
