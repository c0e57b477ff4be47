"""Volume, centre and inertia of closed triangle meshes: exact integrals over the polyhedron, NumPy only.

A closed mesh is the signed sum of the tetrahedra between a point o and its triangles (divergence theorem). For corners
a, b, c relative to o and D = a·(b × c):

    V = Σ D/6        ∫ x dV = Σ D (a + b + c)/24        ∫ x xᵀ dV = Σ D/120 (s sᵀ + a aᵀ + b bᵀ + c cᵀ),  s = a + b + c
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mass:
    """What a body of density 1 kg/m³ would have; multiply volume and inertia with the density."""

    volume: float  # [m³]
    centre: np.ndarray  # (3,) centre of mass [m], in the mesh's frame
    inertia: np.ndarray  # (3, 3) about the centre of mass, in the mesh's axes [m⁵]

    def principal(self) -> tuple[np.ndarray, np.ndarray]:
        """(moments (3,) in falling order, rotation (3, 3) whose columns are the principal axes, right-handed)."""
        moments, axes = np.linalg.eigh(self.inertia)
        moments, axes = moments[::-1], axes[:, ::-1]
        if np.linalg.det(axes) < 0:
            axes = axes * np.array([1.0, 1.0, -1.0])
        return moments, axes


def mass_properties(vertices: np.ndarray, triangles: np.ndarray) -> Mass:
    """Of a closed mesh, whichever side its triangles face. Parts that overlap count twice, cavities count as empty."""
    points = np.asarray(vertices, float)
    origin = points.mean(axis=0)  # near the mesh: far from it the tetrahedra would nearly cancel
    corners = points[np.asarray(triangles)] - origin
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    sixfold = np.einsum("ij,ij->i", a, np.cross(b, c))
    total = sixfold.sum()
    if total == 0:
        return Mass(0.0, origin, np.zeros((3, 3)))
    middle = a + b + c
    first = sixfold @ middle / 24
    second = sum(np.einsum("i,ij,ik->jk", sixfold, v, v) for v in (middle, a, b, c)) / 120
    volume = total / 6
    centre = first / volume
    second = second - volume * np.outer(centre, centre)  # about the centre of mass
    inertia = np.trace(second) * np.eye(3) - second
    if volume < 0:  # inside out: all integrals have the other sign
        volume, inertia = -volume, -inertia
    return Mass(float(volume), centre + origin, inertia)
