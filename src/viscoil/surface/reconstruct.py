"""From particles to a surface mesh: the one function everybody calls, and the steps all methods share.

field → marching cubes → clean-up → smoothing that keeps volume → normals → strays out, cavities filled → quantities.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.errors import SceneError, SurfaceFailed
from viscoil.extras import require
from viscoil.io.frame import Frame
from viscoil.surface import components
from viscoil.surface.attributes import Interpolation, carried, on_surface
from viscoil.surface.mesh import SurfaceMesh
from viscoil.surface.options import Options, settings
from viscoil.surface.smoothing import normals, smooth

SLIVER = 0.02  # pieces below this many particle volumes are leftovers of the marching cubes, not drops
# Weighted number of neighbours from which smoothing acts in full (Löschner et al. 2023, sec. 4): inside a fluid a
# particle has 13 to 15 of them, at a flat surface 8 to 9, in a rope of single particles fewer than 2.
CROWDED = 13.0
FARTHEST = 400_000  # cubes from the middle: grids are counted in 64-bit integers, (2 x 400 000)³ of them fit


@dataclass
class Raw:
    """A surface fresh from marching cubes."""

    mesh: Any  # pysplashsurf TriMesh3d, cleaned up
    weights: np.ndarray  # (v,) float32 in [0, 1]: how much smoothing may move a vertex


def surface(frame: Frame, quality: str = "film", method: str = "splash", **options: Any) -> SurfaceMesh:
    """The surface of the fluid in ``frame``.

    quality: "film" or "live"; method: "splash", "anisotropic" or "clavet"; further options, in particle spacings, are
    the fields of :class:`viscoil.surface.options.Options`. A frame without particles gives a mesh without vertices.
    """
    return reconstruct(frame, settings(quality, method, **options))


def reconstruct(frame: Frame, options: Options) -> SurfaceMesh:
    """The surface of ``frame`` with checked ``options`` (see :func:`viscoil.surface.options.settings`)."""
    begin = perf_counter()
    if not frame.spacing > 0:
        raise SceneError("surface: the frame does not say its particle spacing; expected frame.spacing > 0", key="spacing")
    names = carried(frame, options.fields)
    position = np.ascontiguousarray(frame["position"], np.float32)
    if not np.isfinite(position).all():
        bad = int(np.argmin(np.isfinite(position).all(axis=1)))
        raise SurfaceFailed(f"frame {frame.index}: position of particle {bad} is not finite, so there is no surface")
    result = SurfaceMesh(
        np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32), index=frame.index, time=frame.time,
        spacing=frame.spacing, up=frame.up, materials=frame.materials, particle_volume=len(frame) * frame.spacing**3,
        options=options.header(),
    )  # fmt: skip
    normal, at = np.zeros((0, 3), np.float32), None
    if len(frame):
        near = np.abs(position - np.median(position, axis=0)).max(axis=1) < FARTHEST * options.cube * frame.spacing
        raw = _raw(position[near], frame.spacing, options)
        smooth(raw.mesh, raw.weights, options.smoothing, frame.spacing)
        normal = normals(raw.mesh, options.normal_smoothing)
        normal = _into(result, raw.mesh, normal, options)
        at = Interpolation(position, options.support * frame.spacing)
    result.fields = {"normal": normal} | on_surface(frame, names, at, result.vertices)
    result.seconds = perf_counter() - begin
    return result


def _into(result: SurfaceMesh, mesh: Any, normal: np.ndarray, options: Options) -> np.ndarray:
    """Puts the pieces worth keeping into ``result``; their normals."""
    vertices = np.array(mesh.vertices, np.float32)
    triangles = mesh.triangles.astype(np.int32)
    if not np.isfinite(vertices).all():
        raise SurfaceFailed(f"frame {result.index}: the surface has vertices that are not finite")
    found = components.pieces(vertices, triangles)
    particle = result.spacing**3
    drop = found.volume >= 0
    keep = np.where(drop, found.volume >= max(options.stray, SLIVER) * particle, -found.volume >= options.bubbles * particle)
    result.filled_volume = float(-found.volume[~drop & ~keep].sum())
    result.components = int(keep.sum())
    kept, result.triangles = components.selected(triangles, keep[found.of_vertex])
    result.vertices = vertices[kept]
    return normal[kept]


def _raw(position: np.ndarray, spacing: float, options: Options) -> Raw:
    """The surface by the method asked for, before smoothing."""
    if options.method == "splash":
        return _splash(position, spacing, options)
    from viscoil.surface import fields  # here: it needs the kernel compiler

    return fields.raw(position, spacing, options)


def _splash(position: np.ndarray, spacing: float, options: Options) -> Raw:
    """SPH colour field Σ_j m/ρ_j W = threshold, by pysplashsurf, with clean-up and barnacles decimated."""
    splash = require("pysplashsurf", "to compute surfaces")
    try:
        mesh, _ = splash.reconstruction_pipeline(
            position, particle_radius=spacing / 2,
            # in particle radii; the kernel reaches twice its smoothing length
            smoothing_length=options.support, cube_size=2 * options.cube, iso_surface_threshold=options.threshold,
            mesh_cleanup=True, decimate_barnacles=True, mesh_smoothing_iters=0, mesh_smoothing_weights=True,
            mesh_smoothing_weights_normalization=CROWDED, output_mesh_smoothing_weights=True,
        )  # fmt: skip
    except RuntimeError as error:
        raise SurfaceFailed(f"the surface could not be computed: {first_line(error)}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # not an Exception: it would end the program
            raise SurfaceFailed(f"the surface could not be computed: {first_line(error)}") from error
        raise
    return Raw(mesh.mesh, mesh.point_attributes["sw"])


def first_line(error: BaseException) -> str:
    """What an error says, without the traces some libraries add."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
