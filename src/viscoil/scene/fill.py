"""Shapes filled with particles on a lattice of the scene's spacing."""

from typing import Any

import numpy as np

from viscoil.solids.assembly import rotation_matrix, signed_distance
from viscoil.solids.mesh_file import load
from viscoil.solids.mesh_tree import tree_of

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
    turn, place = rotation_matrix(shape.rotation).T, np.asarray(shape.position, float)
    if shape.type == "mesh":
        return (_fill_mesh(shape, spacing) @ turn + place).astype(np.float32)
    at_origin = shape.model_copy(update={"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0)})
    centre = np.asarray(at_origin.middle())
    inside = []
    for points in _slabs(at_origin.extent(), spacing):
        points = points + centre
        inside.append((points[signed_distance(at_origin, points, spacing) < 0] @ turn + place).astype(np.float32))
    return np.concatenate(inside)


def _fill_mesh(shape: Any, spacing: float) -> np.ndarray:
    """Lattice points around which the mesh winds: parts that overlap are filled once, cavities stay empty."""
    mesh = load(shape.file, shape.scale)
    axes = [_lattice_axis(b - a, spacing) + (a + b) / 2 for a, b in zip(mesh.low, mesh.high, strict=True)]
    counts = (len(axes[0]), len(axes[1]), len(axes[2]))
    phi = tree_of(mesh).grid(np.array([axis[0] for axis in axes]), spacing, counts, spacing)
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)[phi < 0]


def jittered(positions: np.ndarray, amount: float, spacing: float, seed: int) -> np.ndarray:
    """Positions displaced at random by at most ``amount`` spacings per axis."""
    if amount == 0:
        return positions
    random, result = np.random.default_rng(seed), np.empty(positions.shape, np.float32)
    for begin in range(0, len(positions), SLAB):  # a bounded number at a time: the same numbers as all at once
        some = positions[begin : begin + SLAB]
        result[begin : begin + SLAB] = some + random.uniform(-amount, amount, some.shape) * spacing
    return result
