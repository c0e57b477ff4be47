"""SurfaceMesh: the surface of a fluid at one moment. NumPy only; writers and renderers know nothing more of surfaces."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class SurfaceMesh:
    """Triangles, seen from outside anticlockwise, with one array per quantity on the vertices.

    ``fields``, first axis = vertices: ``normal`` (v, 3) float32, ``velocity`` (v, 3) float32 [m/s], ``material`` (v,)
    int32 index into ``materials``, ``colour`` (v, 3) float32 sRGB, and any other quantity of the frame.
    """

    vertices: np.ndarray  # (v, 3) float32 [m]
    triangles: np.ndarray  # (t, 3) int32
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    index: int = 0  # number of the frame it belongs to
    time: float = 0.0  # [s]
    spacing: float = 0.0  # particle spacing d [m]
    up: str = "y"
    materials: list[dict[str, Any]] = field(default_factory=list)
    particle_volume: float = 0.0  # of the particles it was made from, n d³ [m³]
    filled_volume: float = 0.0  # of the cavities that were filled [m³]: part of volume(), but not fluid
    components: int = 0  # connected pieces
    seconds: float = 0.0  # it took to make
    options: dict[str, Any] = field(default_factory=dict)  # it was made with

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.fields[name]
        except KeyError:
            raise KeyError(f"this mesh has no field '{name}'; it has {', '.join(self.fields) or 'none'}") from None

    def __len__(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    def volume(self) -> float:
        """Enclosed volume [m³], by the divergence theorem: Σ a·(b×c)/6 about the mean vertex, in double precision."""
        if not len(self.triangles):
            return 0.0
        corners = self.vertices.astype(np.float64)
        a, b, c = ((corners - corners.mean(axis=0))[self.triangles[:, k]] for k in range(3))
        return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)

    def area(self) -> float:
        """Surface area [m²]."""
        a, b, c = (self.vertices.astype(np.float64)[self.triangles[:, k]] for k in range(3))
        return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)

    def volume_ratio(self) -> float:
        """Fluid inside the mesh, filled cavities not counted, over the volume of the particles; nan without any."""
        if self.particle_volume <= 0:
            return float("nan")
        return (self.volume() - self.filled_volume) / self.particle_volume

    def header(self) -> dict[str, Any]:
        """Everything but the arrays, as plain numbers, strings, lists and dicts (ready for JSON)."""
        return {
            "index": int(self.index), "time": float(self.time), "spacing": float(self.spacing), "up": self.up,
            "materials": self.materials, "particle_volume": float(self.particle_volume),
            "filled_volume": float(self.filled_volume), "components": int(self.components),
            "seconds": float(self.seconds), "options": self.options,
        }  # fmt: skip
