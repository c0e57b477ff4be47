"""What writers are given: one moment of a run after the other, with the solids as bodies that keep their names."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.io.frame import Frame
from viscoil.looks import DEFAULT_LOOK, LOOKS, Look
from viscoil.solids.meshes import creased, mesh
from viscoil.surface.mesh import SurfaceMesh

GREY = (0.7, 0.7, 0.7)
Colour = tuple[float, float, float]


@dataclass
class Moment:
    """A frame and, when it was asked for, the surface of its fluid."""

    frame: Frame
    surface: SurfaceMesh | None = None


@dataclass(frozen=True)
class Target:
    """Where an export goes and what is known before the first frame is read."""

    folder: Path
    name: str = "run"  # of single files, without ending
    particles: bool = True  # whether to write the particles
    surface: bool = False  # whether to write the surface; every Moment then has one
    indices: list[int] = field(default_factory=list)  # numbers of the frames that come
    times: list[float] = field(default_factory=list)  # their times [s]
    frame_time: float = 1 / 60  # between two frames of the run [s]
    stamp: str = ""  # the same for exports of the same content: a single file that carries it is left alone
    file: Path | None = None  # a single file named by the user

    @property
    def rate(self) -> float:
        """Frames per second, without the last digits that a division leaves."""
        return float(f"{1 / self.frame_time:.9g}")


class Geometry:
    """A body's mesh in its own frame, the same object in every frame."""

    def __init__(self, vertices: np.ndarray, triangles: np.ndarray) -> None:
        self.vertices = vertices  # (v, 3) float32 [m]
        self.triangles = triangles  # (t, 3) int32, outside anticlockwise

    @cached_property
    def creased(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(vertices, triangles, unit normals): edges stay sharp, round sides smooth. The triangles keep their order."""
        return creased(self.vertices, self.triangles)

    def corner_normals(self) -> np.ndarray:
        """Unit normals (3 t, 3) float32, one per corner of each triangle."""
        _, index, normals = self.creased
        return normals[index.ravel()]


@dataclass(frozen=True)
class Body:
    """A solid at one moment."""

    name: str  # the same in every frame, no two bodies share it
    geometry: Geometry
    pose: np.ndarray  # (4, 4) own frame to world
    container: bool  # a hollow that holds the fluid: to be drawn as glass or edges
    colour: Colour  # sRGB

    @property
    def vertices(self) -> np.ndarray:
        """(v, 3) float32 [m], own frame."""
        return self.geometry.vertices

    @property
    def triangles(self) -> np.ndarray:
        """(t, 3) int32."""
        return self.geometry.triangles

    def placed(self) -> np.ndarray:
        """Vertices in the world, float32."""
        return (self.vertices @ self.pose[:3, :3].T + self.pose[:3, 3]).astype(np.float32)


class Bodies:
    """Follows the solids through the frames. One that changes its shape is a new body."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], tuple[str, Geometry]] = {}
        self._extent: float | None = None

    def of(self, frame: Frame) -> list[Body]:
        """The bodies of a frame, in the order of its solids."""
        found, seen = [], {}
        for number, solid in enumerate(frame.solids):
            shape, container = solid.get("shape") or {}, bool(solid.get("container"))
            wanted = str(solid.get("name") or f"solid {number}")
            seen[wanted] = seen.get(wanted, 0) + 1
            key = (wanted, seen[wanted], json.dumps([shape, container], sort_keys=True))
            if key not in self._known:
                name = _unused(wanted, {name for name, _ in self._known.values()})
                self._known[key] = (name, Geometry(*mesh(shape, extent=self._plane_edge(frame))))
            pose = np.asarray(solid.get("pose", np.eye(4)), dtype=float)
            found.append(Body(*self._known[key], pose, container, colour_of(solid)))
        return found

    def _plane_edge(self, frame: Frame) -> float:
        """Edge of the square that stands for a plane [m]: generous for what the first frame holds, and then kept."""
        if self._extent is None:
            size = float(np.ptp(frame["position"], axis=0).max()) if len(frame) else 0.0
            self._extent = float(f"{max(10 * size, 100 * frame.spacing, 1e-3):.1g}")
        return self._extent


def _unused(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted} {number}"
    return name


def colour_of(thing: dict[str, Any]) -> Colour:
    """sRGB colour, 0 to 1, of a material or solid of a frame; grey where it has none that can be read."""
    colour = thing.get("colour")
    if isinstance(colour, str) and colour.startswith("#") and len(colour) in (4, 7):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        red, green, blue = (int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4))
        return red, green, blue
    if isinstance(colour, list | tuple | np.ndarray) and len(colour) == 3:
        return float(colour[0]), float(colour[1]), float(colour[2])
    return GREY


def look_of(material: dict[str, Any]) -> Look:
    """The material's look, in the material's colour where the look has none of its own."""
    named = (str(material.get(key)) for key in ("look", "name"))
    return next((LOOKS[name] for name in named if name in LOOKS), LOOKS[DEFAULT_LOOK]).coloured(colour_of(material))


def linear(colour: Any) -> np.ndarray:
    """sRGB to linear light, which is what USD, Alembic and glTF mean by a colour. float32."""
    colour = np.asarray(colour, np.float32)
    return np.where(colour <= 0.04045, colour / 12.92, ((np.maximum(colour, 0) + 0.055) / 1.055) ** 2.4).astype(np.float32)


def particle_colours(frame: Frame) -> np.ndarray:
    """Linear colours (n, 3) float32 of the particles by material."""
    palette = linear([colour_of(material) for material in frame.materials] or [GREY])
    index = frame["material"] if "material" in frame.names else np.zeros(len(frame), np.int32)
    return palette[np.clip(index, 0, len(palette) - 1)]


def face_materials(surface: SurfaceMesh) -> np.ndarray:
    """Material index (t,) of every triangle: that of its first corner."""
    if "material" not in surface.fields or not len(surface.triangles):
        return np.zeros(len(surface.triangles), np.int32)
    last = max(len(surface.materials) - 1, 0)
    return np.clip(surface["material"][surface.triangles[:, 0]], 0, last).astype(np.int32)
