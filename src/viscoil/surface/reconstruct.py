"""From particles to a surface mesh: the one function everybody calls, and the steps all methods share.

field → marching cubes → clean-up → quantities → smoothing that keeps volume → normals → strays out, cavities filled.
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
FREE = 0.5  # fullness from which smoothing acts in full; it is 0.1 in a row of particles, 0.65 on a flat surface
FARTHEST = 400_000  # cubes from the middle: grids are counted in 64-bit integers, (2 x 400 000)³ of them fit


@dataclass
class Raw:
    """A surface fresh from marching cubes."""

    mesh: Any  # pysplashsurf TriMesh3d, cleaned up
    around: Any  # its vertex connectivity
    fullness: np.ndarray  # (n,) float32, of the particles: 0 for one alone, 1 inside the fluid


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
    if not len(frame):
        result.fields, _ = on_surface(frame, names, None, result.vertices, np.zeros(0, np.float32))
        result.fields = {"normal": np.zeros((0, 3), np.float32)} | result.fields
        return result
    raw, frame = _near(frame, position, options)
    # Before smoothing, which moves a vertex by a fraction of a spacing: how much it may move is one of the quantities.
    at = Interpolation(frame["position"], max(2.0, options.support) * frame.spacing)
    fields, fullness = on_surface(frame, names, at, raw.mesh.vertices, raw.fullness)
    smooth(raw.mesh, raw.around, smootherstep(fullness / FREE), options.smoothing, frame.spacing)
    fields = {"normal": normals(raw.mesh, raw.around, options.normal_smoothing)} | fields
    _into(result, raw.mesh, fields, options)
    result.seconds = perf_counter() - begin
    return result


def _near(frame: Frame, position: np.ndarray, options: Options) -> tuple[Raw, Frame]:
    """The raw surface, and the frame without particles too far away for any grid."""
    near = np.abs(position - np.median(position, axis=0)).max(axis=1) < FARTHEST * options.cube * frame.spacing
    if not near.all():
        kept = {name: values[near] for name, values in frame.fields.items()}
        frame = Frame(frame.index, frame.time, frame.step, kept, frame.spacing, frame.up, frame.materials)
        position = position[near]
    return _raw(position, frame.spacing, options), frame


def _into(result: SurfaceMesh, mesh: Any, fields: dict[str, np.ndarray], options: Options) -> None:
    """Puts the pieces worth keeping into ``result``."""
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
    if keep.all():
        result.vertices, result.triangles, result.fields = vertices, triangles, fields
        return
    kept, result.triangles = components.selected(triangles, keep[found.of_vertex])
    result.vertices = vertices[kept]
    result.fields = {name: values[kept] for name, values in fields.items()}


def _raw(position: np.ndarray, spacing: float, options: Options) -> Raw:
    """The surface by the method asked for, before smoothing."""
    if options.method == "splash":
        return _splash(position, spacing, options)
    from viscoil.surface import fields  # here: it needs the kernel compiler

    return fields.raw(position, spacing, options)


def _splash(position: np.ndarray, spacing: float, options: Options) -> Raw:
    """SPH colour field Σ_j m/ρ_j W = threshold, by pysplashsurf, with clean-up and barnacles decimated."""
    assert options.support is not None
    splash = require("pysplashsurf", "to compute surfaces")
    try:
        found = splash.reconstruct_surface(
            position, particle_radius=spacing / 2, rest_density=1.0,
            # Both in particle radii, whatever its documentation says; the kernel reaches twice its smoothing length.
            smoothing_length=options.support, cube_size=2 * options.cube, iso_surface_threshold=options.threshold,
        )  # fmt: skip
        around = cleaned_up(found.mesh, found.grid)
    except RuntimeError as error:
        raise SurfaceFailed(f"the surface could not be computed: {first_line(error)}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # not an Exception: it would end the program
            raise SurfaceFailed(f"the surface could not be computed: {first_line(error)}") from error
        raise
    # ρ/ρ₀ of a particle alone is W(0) d³. The power makes it agree with the weighted numbers of neighbours of the other
    # methods for threads (0.11), sheets (0.4) and flat surfaces (0.65).
    alone = 8 / (np.pi * options.support**3)
    fullness = np.clip((found.particle_densities - alone) / (1 - alone), 0, 1).astype(np.float32) ** 1.5
    return Raw(found.mesh, around, fullness)


def cleaned_up(mesh: Any, grid: Any) -> Any:
    """Merges slivers of the marching cubes (Moore & Warren 1992) and what becomes barnacles when smoothed.

    Works in place; returns the connectivity of what is left.
    """
    splash = require("pysplashsurf", "to compute surfaces")
    splash.marching_cubes_cleanup(mesh, grid, max_iter=1)  # more change one vertex in a hundred thousand
    return splash.barnacle_decimation(mesh, keep_vertices=False)


def smootherstep(x: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, with slope and curvature 0 at both ends: weights of smoothing (Löschner et al. 2023)."""
    x = np.clip(x, 0, 1).astype(np.float32)
    return x * x * x * (x * (6 * x - 15) + 10)


def first_line(error: BaseException) -> str:
    """What an error says, without the traces some libraries add."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
