"""Boundary samples (Akinci et al. 2012): one layer of particles on a solid's surface, with a volume each.

V_b = 1/Σ_k W_bk over the samples themselves, so that a dense patch weighs no more than a sparse one. Fluid particles see
them as neighbours; densities at walls become right and particles stop stacking there. Samples lie half a spacing inside the
solid: a fluid particle that touches the surface is then one spacing away from them, as from its own kind.
"""

from typing import Any

import numpy as np

from viscoil import particles as table
from viscoil import transfer
from viscoil.particles import allocate_array
from viscoil.solids.assembly import SolidSet
from viscoil.sph.operators import density_kernel
from viscoil.sph.search import Neighbors
from viscoil.sph.smoothing import SPIKY

FINENESS = 0.5  # distance of candidates in spacings, before thinning


def sample_surface(shape: Any, spacing: float, container: bool = False) -> np.ndarray:
    """Points about one ``spacing`` apart, half a spacing below a bounded shape's surface, in its own frame [m].

    In walls thinner than one spacing they lie in the middle of the wall. The solid side of a container is outside.
    """
    from viscoil.scene.parts import Solid

    bare = shape.model_copy(update={"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0)})
    solid = SolidSet([Solid(shape=bare, container=container)], spacing=spacing, support=2 * spacing)
    step = spacing * FINENESS
    half = np.asarray(bare.extent()) / 2 + 2 * spacing
    middle = bare.middle()
    axes = [np.arange(-np.ceil(h / step), np.ceil(h / step) + 1) * step + m for h, m in zip(half, middle, strict=True)]
    near = []
    per = max(1, (1 << 20) // (len(axes[1]) * len(axes[2])))
    for begin in range(0, len(axes[0]), per):
        points = np.stack(np.meshgrid(axes[0][begin : begin + per], axes[1], axes[2], indexing="ij"), -1).reshape(-1, 3)
        near.append(points[np.abs(solid.distance(0, points) + spacing / 2) < spacing])
    points = np.concatenate(near)
    level = max(-spacing / 2, 0.9 * float(solid.distance(0, points).min()))
    for _ in range(4):  # two steps land on the level of exact distances, the others serve edges and blends
        phi = solid.distance(0, points) - level
        points = points - phi[:, None] * solid.normals(0, points, 0.05 * spacing)
    return thin_out(points[np.abs(solid.distance(0, points) - level) < 0.05 * spacing], 0.9 * spacing)


def thin_out(points: np.ndarray, distance: float) -> np.ndarray:
    """A subset in which no two points are closer than ``distance``: whoever comes first stays.

    Visited one by one. Deciding all at once in rounds needs a round for every step of the wave that runs through regular
    candidates, hundreds of them, and takes ten times as long.
    """
    neighbors, _ = _search(points, distance, 16)
    number, index = neighbors.to_numpy(len(points))
    first = np.cumsum(number) - number
    flat = index[np.arange(index.shape[1]) < number[:, None]].tolist()
    stays = bytearray(b"\x01") * len(points)
    for i, (begin, size) in enumerate(zip(first.tolist(), number.tolist(), strict=True)):
        if stays[i]:
            for j in flat[begin : begin + size]:
                if j > i:
                    stays[j] = 0
    return points[np.frombuffer(stays, bool)]


def _search(points: np.ndarray, reach: float, expected: int) -> tuple[Neighbors, Any]:
    """All pairs of points closer than ``reach`` [m], and the particles that stand for the points."""
    n = len(points)
    particles = table.allocate(n)
    table.append(particles, 0, {"position": points, "id": np.arange(n), "volume": np.ones(n)})
    neighbors = Neighbors(reach, expected, n)
    neighbors.fit(points.min(0), points.max(0))
    neighbors.find(particles.position, particles, n)
    while needed := neighbors.overflow():
        neighbors.widen(needed)
        neighbors.find(particles.position, particles, n)
    return neighbors, particles


def sample_volumes(points: np.ndarray, support: float, kernel: int = SPIKY) -> np.ndarray:
    """V_b = 1/Σ_k W_bk [m³] of surface samples, themselves included; W is the ``kernel`` densities are summed with."""
    neighbors, particles = _search(points, support, 40)
    sums, none = (allocate_array(table.qd.f32, len(points)) for _ in range(2))
    density_kernel(
        particles, particles.position, len(points), neighbors.list, neighbors.torus, support, none, sums, kernel, False
    )
    return 1 / transfer.read(sums)


def overlaps(points: np.ndarray, owner: np.ndarray, distance: float) -> list[tuple[int, int, int]]:
    """(owner a, owner b, pairs) for points of different owners closer than ``distance`` [m]."""
    neighbors, _ = _search(points, distance, 8)
    count, index = neighbors.to_numpy(len(points))
    foreign = (np.arange(index.shape[1]) < count[:, None]) & (owner[index] > owner[:, None])
    i, k = np.nonzero(foreign)
    pairs, numbers = np.unique(np.stack([owner[i], owner[index[i, k]]], 1), axis=0, return_counts=True)
    return [(int(a), int(b), int(number)) for (a, b), number in zip(pairs, numbers, strict=True)]
