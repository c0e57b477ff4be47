"""Sparse grids: only blocks of nodes that some particle reaches exist, however far apart the particles are.

The marching cubes of the library want one dense array. Blocks that touch each other form a cluster; the bounding boxes of
all clusters are packed side by side into one dense array, the atlas, whose emptiness between them costs little. A vertex
found in the atlas is put where it belongs by the shift of its block.
"""

from dataclasses import dataclass

import numpy as np

from viscoil.errors import SurfaceFailed
from viscoil.surface.components import connected

EDGE = 16  # nodes along a block's edge
MOST_NODES = 1_500_000_000  # of an atlas: 6 GB
_BIAS, _BITS = 1 << 20, 21  # block coordinates as one integer


@dataclass(frozen=True)
class Blocks:
    """The blocks that exist, and who reaches them."""

    origin: np.ndarray  # (b, 3) first node of each block, counted over all space
    first: np.ndarray  # (b + 1,) place of a block's first particle in ``particle``
    particle: np.ndarray  # particles that reach a block, block after block, ascending within each
    base: np.ndarray  # (b, 3) first node of each block in the atlas
    atlas: tuple[int, int, int]  # nodes of the atlas along x, y and z
    shift: np.ndarray  # (x, y, z, 3) by atlas block: what to add to an atlas node to get the node of space


def find_blocks(centre: np.ndarray, extent: np.ndarray) -> Blocks:
    """Blocks reached by particles at ``centre`` (n, 3) with half widths ``extent`` (n, 3), both in nodes."""
    # One node more on every side: all nodes on the rim of a cluster are then outside of every particle.
    low = np.floor_divide(np.ceil(centre - extent).astype(np.int64) - 1, EDGE)
    high = np.floor_divide(np.floor(centre + extent).astype(np.int64) + 1, EDGE)
    wide = high - low + 1
    many = wide.prod(axis=1)
    particle = np.repeat(np.arange(len(centre), dtype=np.int32), many)
    within = np.arange(len(particle)) - np.repeat(np.cumsum(many) - many, many)
    wide, low = wide[particle], low[particle]
    place = np.stack([within // (wide[:, 1] * wide[:, 2]), within // wide[:, 2] % wide[:, 1], within % wide[:, 2]], 1) + low
    keys, owner = np.unique(_key(place), return_inverse=True)
    order = np.argsort(owner, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(keys)))])
    coordinates = _coordinates(keys)
    base, atlas, shift = _pack(coordinates, keys)
    return Blocks(
        (coordinates * EDGE).astype(np.int32), first.astype(np.int32), particle[order], base.astype(np.int32), atlas, shift
    )


def _key(block: np.ndarray) -> np.ndarray:
    if len(block) and np.abs(block).max() >= _BIAS:
        raise SurfaceFailed("the particles are too far apart for this method; use method splash")
    x, y, z = (block + _BIAS).T
    return (x << 2 * _BITS) | (y << _BITS) | z


def _coordinates(keys: np.ndarray) -> np.ndarray:
    mask = (1 << _BITS) - 1
    return np.stack([keys >> 2 * _BITS, (keys >> _BITS) & mask, keys & mask], 1) - _BIAS


def _pack(block: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, tuple[int, int, int], np.ndarray]:
    """(first node of each block in the atlas, nodes of the atlas, shift of each of its blocks)."""
    cluster = _clusters(block, keys)
    count = int(cluster.max()) + 1
    low, high = np.full((count, 3), np.iinfo(np.int64).max), np.full((count, 3), np.iinfo(np.int64).min)
    np.minimum.at(low, cluster, block)
    np.maximum.at(high, cluster, block)
    size = high - low + 1
    corner, total = _shelves(size)
    if np.prod(total.astype(float)) * EDGE**3 > MOST_NODES:
        raise SurfaceFailed(
            f"the grid would have {np.prod(total.astype(float)) * EDGE**3:.2g} nodes, more than the limit of "
            f"{MOST_NODES:.2g}; use a larger cube or method splash"
        )
    shift = np.zeros((*total, 3), np.int32)
    for k in range(count):
        (x, y, z), (dx, dy, dz) = corner[k], size[k]
        shift[x : x + dx, y : y + dy, z : z + dz] = (low[k] - corner[k]) * EDGE
    nodes = tuple(int(n) for n in total * EDGE)
    return (block - low[cluster] + corner[cluster]) * EDGE, nodes, shift


def _clusters(block: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Number of the cluster of each block; blocks that share a face, an edge or a corner belong together."""
    edges = [np.zeros((0, 2), np.int64)]
    steps = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)]
    for step in steps[14:]:  # the other half are the same pairs
        wanted = _key(block + np.array(step))
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = np.flatnonzero(keys[found] == wanted)
        edges.append(np.stack([here, found[here]], axis=1))
    return np.unique(connected(np.concatenate(edges), len(block)), return_inverse=True)[1]


def _shelves(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places boxes of ``size`` (k, 3) without overlap: (corner of each, size of what holds them all).

    Largest first, next to each other along z into rows, rows along y into layers, layers along x.
    """
    order = np.lexsort(-size.T)
    # As wide as the largest box, or as a cube that would hold all of them.
    edge = int(np.ceil(size.prod(axis=1).sum() ** (1 / 3)))
    width = np.maximum(size.max(axis=0), edge)
    corner = np.zeros_like(size)
    x = y = z = layer = row = 0
    for k in order:
        dx, dy, dz = size[k]
        if z + dz > width[2]:
            y, z, row = y + row, 0, 0
        if y + dy > width[1]:
            x, y, z, layer, row = x + layer, 0, 0, 0, 0
        corner[k] = x, y, z
        z, row, layer = z + dz, max(row, dy), max(layer, dx)
    return corner, (corner + size).max(axis=0)
