"""Mesh files: read, tidied and checked in one place, for everything that uses them. NumPy on the host, no kernels.

What comes out is closed and faces outwards. What cannot be used ends in one message that says which file, what is wrong with
it and what to do. Files that are odd but usable carry notes.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.solids.mass import mass_properties
from viscoil.solids.mesh_repair import clusters, open_edges, oriented, tidied

CLOSE = 1e-5  # of the mesh's length: gaps of files written with few digits are closed over this distance
FLAT = 1e-7  # a mesh with less than this share of its box's volume has no inside


@dataclass(frozen=True, eq=False)
class Loaded:
    """A closed mesh, in metres, seen from outside anticlockwise."""

    file: str
    vertices: np.ndarray  # (v, 3) float64 [m]
    triangles: np.ndarray  # (t, 3) int32
    notes: tuple[str, ...]  # what the user should know about the file

    @property
    def low(self) -> np.ndarray:
        return self.vertices.min(axis=0)

    @property
    def high(self) -> np.ndarray:
        return self.vertices.max(axis=0)


def load(file: str, scale: float = 1.0) -> Loaded:
    """The mesh in ``file``, its lengths multiplied with ``scale``; read again only when the file changes."""
    path = Path(file)
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise _bad(file, f"{what}; paths are relative to the scene file, and frames remember the whole path: put the mesh "
                   "back there when a run was copied or moved")  # fmt: skip
    status = path.stat()
    return _loaded(str(path), float(scale), status.st_mtime_ns, status.st_size)


def _bad(file: str, text: str) -> SceneError:
    return SceneError(f"mesh file '{file}' {text}", file=file, expected="a closed triangle mesh")


@lru_cache(maxsize=32)
def _loaded(file: str, scale: float, changed: int, size: int) -> Loaded:
    if size == 0:
        raise _bad(file, "is empty (0 bytes); expected a closed triangle mesh. Export it again")
    vertices, triangles = _read(file)
    if not np.isfinite(vertices).all():
        broken = int((~np.isfinite(vertices)).any(axis=1).sum())
        raise _bad(file, f"holds {broken} of {len(vertices)} vertices whose coordinates are not finite (NaN or infinite); "
                   "expected numbers. Export it again")  # fmt: skip
    vertices = vertices * scale
    notes: list[str] = []
    vertices, triangles = _closed(file, vertices, triangles, notes)
    vertices, triangles = _outwards(file, vertices, triangles, notes)
    for array in (vertices, triangles):
        array.setflags(write=False)
    return Loaded(file, vertices, triangles, tuple(f"mesh file '{file}': {note}" for note in notes))


def _read(file: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles as they are written."""
    import trimesh  # only scenes with meshes pay for it

    try:
        found: Any = trimesh.load(file, force="mesh", process=False)
        triangles = np.asarray(found.faces, np.int64).reshape(-1, 3)
        vertices = np.asarray(found.vertices, np.float64).reshape(-1, 3)
    except Exception as error:  # readers of foreign formats fail in their own ways; whatever it is, the file is what is wrong
        if _is_prose(file):
            raise _bad(file, "is a text file without triangles, not a mesh; expected a closed triangle mesh") from None
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise _bad(file, f"could not be read as {Path(file).suffix[1:].upper()}: {why}. Export it again") from None
    if len(triangles) == 0:
        what = "is a text file without triangles, not a mesh" if _is_prose(file) else "holds no triangles"
        raise _bad(file, f"{what}; expected a closed triangle mesh")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise _bad(file, f"is damaged: a triangle names vertex {int(triangles.max())}, but there are {len(vertices)}")
    return vertices, triangles


def _is_prose(file: str) -> bool:
    """Whether a file starts like text of which no line begins as one of a mesh."""
    with open(file, "rb") as stream:
        start = stream.read(4096)
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # not just cut within a letter
            return False
        text = start[: error.start].decode("utf-8")
    words = {line.split()[0].lower() for line in text.splitlines() if line.split()}
    known = {"v", "f", "vn", "vt", "o", "ply", "solid", "facet", "vertex", "off", "element", "{"}
    return text.isprintable() or (not words & known and all(c.isprintable() or c.isspace() for c in text))


def _closed(
    file: str, vertices: np.ndarray, triangles: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Without doubled vertices and empty triangles, or the message that it has an edge."""
    size = float(np.ptp(vertices[np.unique(triangles)], axis=0).max())
    if size == 0:
        raise _bad(file, f"has no extent: all its {len(triangles)} triangles lie in one point")
    used, kept = tidied(vertices, triangles, 1e-8 * size)
    if len(kept) == 0 or _area(used, kept) < 1e-12 * size * size:
        raise _bad(file, f"has no area: all its {len(triangles)} triangles are degenerate (their corners lie on a line or in a "
                   "point); expected a closed surface")  # fmt: skip
    edges = open_edges(kept)
    if len(edges):
        wider, fewer = tidied(vertices, triangles, CLOSE * size)
        if len(fewer) and len(open_edges(fewer)) == 0:
            notes.append(f"vertices up to {CLOSE * size:.2g} m apart were made one to close it")
            return wider, fewer
        raise _bad(file, _holes(used, edges))
    return used, kept


def _holes(vertices: np.ndarray, edges: np.ndarray) -> str:
    """Where a mesh is open."""
    which = clusters(edges)
    widths = [np.ptp(vertices[np.unique(edges[which == k])], axis=0).max() for k in range(which.max() + 1)]
    largest = int(np.argmax(widths))
    place = vertices[np.unique(edges[which == largest])].mean(axis=0)
    number = f"{len(widths)} holes, the largest" if len(widths) > 1 else "one hole,"
    return (
        f"is not closed, so it has no inside: {len(edges)} open edges ({number} {widths[largest]:.3g} m wide around "
        f"({place[0]:.3g}, {place[1]:.3g}, {place[2]:.3g}) m in the mesh's frame). Close it in a modelling program (fill "
        "holes; give sheets a thickness)"
    )


def _outwards(
    file: str, vertices: np.ndarray, triangles: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """With all triangles facing outwards; cavities face inwards."""
    turned = oriented(vertices, triangles)
    if turned is None:
        raise _bad(file, "has triangles that cannot all face outwards (one side of it is both, or three faces meet at an "
                   "edge); expected a surface with an inside")  # fmt: skip
    flipped = int((turned != triangles).any(axis=1).sum())
    if 0 < flipped < len(triangles):
        notes.append(f"{flipped} of {len(triangles)} triangles faced the wrong way and were turned")
    volume, size = mass_properties(vertices, turned).volume, np.ptp(vertices, axis=0)
    if volume <= FLAT * max(float(size.prod()), 1e-3 * float(size.max()) ** 3):
        box = f"{size[0]:.3g} × {size[1]:.3g} × {size[2]:.3g} m"
        raise _bad(file, f"is flat: it encloses no volume ({volume:.2g} m³ within {box}); give sheets a thickness")
    return vertices, np.ascontiguousarray(turned, np.int32)


def _area(vertices: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)
