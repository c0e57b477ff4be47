"""Meshes made for tests: with NumPy, written where the test wants them."""

import numpy as np
import trimesh

from viscoil.solids.meshes import _revolved, mesh


def write(path, vertices, triangles):
    """Exactly these rows, in the format of the file's ending."""
    trimesh.Trimesh(np.asarray(vertices, float), triangles, process=False).export(path)
    return str(path)


def written(path, shape, detail=64):
    """The mesh of a shape with a formula, as a file."""
    return write(path, *mesh(shape, detail))


def goblet(height=0.12, wall=0.006, detail=64):
    """(vertices, triangles) of a drinking glass that stands on y = 0: foot, stem, and a cup with a round bottom."""
    r, foot, stem = 0.35 * height, 0.3 * height, 0.05 * height
    up = np.linspace(-90, 0, 13)
    outside = [(r * np.cos(np.radians(a)), 0.65 * height + r * 0.8 * np.sin(np.radians(a))) for a in up[2:]]
    inside = [((r - wall) * np.cos(np.radians(a)), 0.65 * height + (r * 0.8 - wall) * np.sin(np.radians(a))) for a in up]
    lower = [(0, 0), (foot, 0), (foot, 0.04 * height), (stem, 0.08 * height), (stem, 0.3 * height)]
    profile = [*lower, *outside, (r, height), (r - wall, height), *inside[::-1]]
    profile[-1] = (0.0, profile[-1][1])
    return _revolved(np.array(profile, float), detail)
