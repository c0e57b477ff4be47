"""Signed distances of mesh files on padded grids, kept on disk by what they were made from.

A grid reaches ``pad`` beyond the mesh's box, so that everything a particle asks for (contact, stickiness, the density of walls)
is interpolated from exact distances. Cells are at most half a spacing and a quarter of a support, finer for small meshes and
thin walls, and coarser only where the grid would be too large for memory.
"""

import contextlib
import hashlib
import io
import json
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from viscoil.errors import ViscoilError
from viscoil.solids.mesh_file import Loaded, load
from viscoil.solids.mesh_tree import tree_of

VERSION = 1  # of the numbers in the files: another one when they are computed differently
MOST_NODES = 16_000_000  # 64 MB, half a minute on two cores
FINEST = 48  # cells along the longest edge, at least
WALL = 2.5  # cells across the thinnest wall
STALE = 14 * 24 * 3600  # seconds after which a grid nobody used is removed


@dataclass(frozen=True)
class Grid:
    """φ of one mesh, in its own frame."""

    phi: np.ndarray  # (x, y, z) float32 [m]
    origin: np.ndarray  # (3,) place of the first node [m]
    cell: float  # distance of nodes [m]
    wanted: float  # what it would have been with more memory [m]
    thickness: float  # of the thinnest hundredth of the walls [m]; inf without walls
    crossings: int  # edges of the mesh that run through its triangles

    def interpolated(self, points: np.ndarray) -> np.ndarray:
        """φ [m] at points (n, 3): what the kernels read (``sdf.grid``)."""
        inner = (np.asarray(points, float) - self.origin) / self.cell
        last = np.array(self.phi.shape) - 1
        held = np.clip(inner, 0, last)
        low = np.minimum(held.astype(np.int64), last - 1)
        share = held - low
        phi = np.zeros(len(held))
        for corner in range(8):
            at = np.array([corner >> 2 & 1, corner >> 1 & 1, corner & 1])
            weight = np.where(at, share, 1 - share).prod(axis=1)
            phi += weight * self.phi[tuple((low + at).T)]
        beyond = self.cell * np.linalg.norm(inner - held, axis=1)
        return np.where(beyond > 0, np.hypot(np.maximum(phi - 0.1 * self.cell, 0.0), beyond), phi)


def grid_of(file: str, scale: float, spacing: float = 0.0, support: float = 0.0, reach: float = 0.0) -> Grid:
    """The grid of a mesh file for particles of a ``spacing`` and ``support`` [m] (0: as fine as the mesh's size asks for).

    ``reach`` [m]: how far from its surface a solid does something, besides being seen within a support.
    """
    mesh = load(file, scale)
    status = Path(file).stat()
    numbers = float(scale), float(spacing), float(support), float(reach)
    return _remembered(mesh.file, *numbers, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _remembered(file: str, scale: float, spacing: float, support: float, reach: float, changed: int, size: int) -> Grid:
    mesh = load(file, scale)
    key = hashlib.sha256(Path(file).read_bytes())
    key.update(json.dumps([VERSION, scale, spacing, support, reach, MOST_NODES, FINEST, WALL]).encode())
    stored = cache_folder() / f"{key.hexdigest()[:32]}.npz"
    grid = _from_disk(stored)
    if grid is None:
        grid = _made(mesh, spacing, support, reach)
        _to_disk(stored, grid)
    return grid


def _made(mesh: Loaded, spacing: float, support: float, reach: float) -> Grid:
    tree = tree_of(mesh)
    thickness, crossings = tree.thickness(), tree.crossings()
    low, high = mesh.low, mesh.high
    longest = float((high - low).max())
    wanted = longest / FINEST
    if spacing > 0:
        wanted = min(wanted, spacing / 2, support / 4 if support > 0 else np.inf)
    wanted = min(wanted, max(thickness / WALL, longest / 400))
    pad = spacing + support + reach or longest / 4  # contact radii are at most one spacing

    def counts(cell: float) -> np.ndarray:
        return np.ceil((high - low + 2 * (pad + 2 * cell)) / cell).astype(np.int64) + 1

    cell = wanted
    while counts(cell).prod() > MOST_NODES:
        cell *= 1.05
    number = counts(cell)
    origin = (low + high) / 2 - (number - 1) * cell / 2
    shape = (int(number[0]), int(number[1]), int(number[2]))
    phi = tree.grid(origin, cell, shape, pad + 2 * cell)
    return Grid(phi, origin, float(cell), float(wanted), thickness, crossings)


# ---- on disk ---------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where grids are kept: beside the compiled kernels."""
    given = os.environ.get("VISCOIL_CACHE")
    return Path(given) / "meshes" if given else Path.home() / ".cache" / "viscoil" / "meshes"


def _from_disk(path: Path) -> Grid | None:
    """The grid in a file, or None when there is none that can be used."""
    try:
        with np.load(path, allow_pickle=False) as file:
            grid = Grid(
                file["phi"], file["origin"], *(float(file[name]) for name in ("cell", "wanted", "thickness")),
                int(file["crossings"]),
            )  # fmt: skip
            digest = str(file["digest"])
    except Exception:
        return None  # not there, cut short, scribbled over, with any error that causes: it is made again
    if digest != _digest(grid):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # in use: not stale
    return grid


def _digest(grid: Grid) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(grid.phi))
    digest.update(repr((grid.phi.shape, grid.origin.tolist(), grid.cell, grid.wanted, grid.thickness, grid.crossings)).encode())
    return digest.hexdigest()


def _to_disk(path: Path, grid: Grid) -> None:
    """Keeps a grid; a folder that cannot be written to costs the time to make it again, nothing else."""
    from viscoil.io.atomic import write_atomic

    packed = io.BytesIO()
    np.savez(
        packed, phi=grid.phi, origin=grid.origin, cell=grid.cell, wanted=grid.wanted, thickness=grid.thickness,
        crossings=grid.crossings, digest=_digest(grid),
    )  # fmt: skip
    with contextlib.suppress(OSError, ViscoilError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, packed.getbuffer())
        os.utime(path.parent)
        for old in path.parent.glob("*.npz"):
            if time.time() - old.stat().st_mtime > STALE:
                old.unlink()
