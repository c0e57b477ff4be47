"""Smoothing of meshes that keeps volume and features.

Weighted Laplacian smoothing (Löschner et al. 2023) moves each vertex towards the mean of those around it, less where
few particles are near, and removes the bumps that particles leave. Alone it does two things too many:

*It draws thin things in*: a rope two particles thick loses half its volume in 25 iterations. What it takes from a rope,
a drop or a rim is nearly the same everywhere around it when measured along the normal; what it takes from bumps changes
sign from one to the next. So the displacement along the normal is itself smoothed, which leaves the first
kind and averages out the second, and is given back.

*It wipes out features*: bumps are a tenth of a spacing high, the arm of a bear is a spacing thick or more. So
displacements D are shortened to D/√(1 + D²/L²) with L a fifth of a spacing: small ones pass, large ones end there.
"""

from typing import Any

import numpy as np

from viscoil.extras import require

LIMIT = 0.2  # L, in particle spacings: twice the height of the bumps
POLISH = 3  # iterations without limit afterwards: they smooth the seams between what was limited and what was not


def smooth(mesh: Any, around: Any, weights: np.ndarray, iterations: int, spacing: float) -> None:
    """Smooths the vertices of ``mesh`` (a pysplashsurf TriMesh3d with its vertex connectivity) in place.

    weights (v,): 0 keeps a vertex where it is, 1 moves it freely; spacing [m]: of the particles.
    """
    if iterations < 1 or not len(mesh.vertices):
        return
    before = mesh.vertices.copy()
    _smooth(mesh, around, weights, iterations)
    displacement = mesh.vertices - before
    square = np.einsum("ij,ij->i", displacement, displacement)[:, None]
    mesh.vertices[:] = before + displacement / np.sqrt(1 + square / (LIMIT * spacing) ** 2)
    _smooth(mesh, around, weights, min(POLISH, iterations))


def _smooth(mesh: Any, around: Any, weights: np.ndarray, iterations: int) -> None:
    """Weighted Laplacian smoothing, with what it takes along the normals given back."""
    splash = require("pysplashsurf", "to compute surfaces")
    before = mesh.vertices.copy()
    splash.laplacian_smoothing_parallel(mesh, around, iterations=iterations, beta=1.0, weights=weights)
    after = mesh.vertices.copy()
    normal = _unit(mesh.vertex_normals_parallel())
    # The library smooths positions of meshes only, so the displacement takes their place for a moment. ``mesh.vertices``
    # is a view that writes to the mesh, and it must be asked for anew after every smoothing: that exchanges the memory.
    displacement = np.zeros_like(before)
    displacement[:, 0] = np.einsum("ij,ij->i", before - after, normal)
    mesh.vertices[:] = displacement
    everywhere = np.ones(len(before), before.dtype)
    splash.laplacian_smoothing_parallel(mesh, around, iterations=iterations, beta=1.0, weights=everywhere)
    mesh.vertices[:] = after + mesh.vertices[:, :1] * normal


def normals(mesh: Any, around: Any, iterations: int) -> np.ndarray:
    """Unit normals (v, 3) of a TriMesh3d with its vertex connectivity, weighted by area, then smoothed over the mesh."""
    if not len(mesh.vertices):
        return np.zeros((0, 3), np.float32)
    splash = require("pysplashsurf", "to compute surfaces")
    plain = _unit(mesh.vertex_normals_parallel())
    if iterations < 1:
        return plain
    found = plain.copy()
    splash.laplacian_smoothing_normals_parallel(found, around, iterations=iterations)
    found = _unit(found)
    # On a drop of a few triangles the normals around a vertex cancel, and what is left may point anywhere.
    astray = np.einsum("ij,ij->i", found, plain) < 0.5
    return np.where(astray[:, None], plain, found)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Unit vectors; where there is no direction (triangles without area), the z axis."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    good = np.isfinite(length) & (length > 0)
    z = np.array([0, 0, 1], vectors.dtype)
    return np.where(good, vectors / np.where(good, length, 1), z).astype(np.float32)
