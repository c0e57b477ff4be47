"""Scalar fields of particles on a sparse grid, and their surfaces.

clavet       f(x) = √Σ_j (1 − r/h)²              eq. 13 of Clavet et al. 2005; the root makes its slope nearly constant
anisotropic  φ(x) = Σ_j V_j det(G_j) P(|G_j(x − x̄_j)|)  eqs. 5 to 7 of Yu & Turk 2013; G_j turns its ellipsoid into a ball

Every block of the grid adds up the particles that reach it, in their order: no two threads share a node, so the values
do not depend on how many there are.
"""

from dataclasses import dataclass

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.errors import SurfaceFailed
from viscoil.extras import require
from viscoil.particles import Floats, Ints, Matrices, Vectors, allocate_array, mat3, vec3
from viscoil.surface import anisotropy
from viscoil.surface.blocks import Blocks, find_blocks
from viscoil.surface.options import Options
from viscoil.surface.reconstruct import Raw, cleaned_up

# Weighted neighbours of a particle inside a fluid, per support³: ∫ (1 − r²) dV over the unit ball, a little less because
# particles are not everywhere (13 for a support of two spacings, as in Löschner et al. 2023).
CROWDED = 13 / 8
CLAVET, SPLINE = 0, 1  # what a particle adds at distance q of its reach: (1 − q)², or a cubic spline


@dataclass(frozen=True)
class Blobs:
    """Particles as ellipsoids, in units of grid nodes. Device arrays."""

    centre: Vectors
    metric: Matrices  # q² = dᵀ M d with d from the centre; 1 where the particle's reach ends
    extent: Vectors  # half width of the ellipsoid along x, y, z
    weight: Floats  # value at the centre


@dataclass(frozen=True)
class Grid:
    """Where the blocks lie. Device arrays; three entries per block."""

    origin: Ints
    base: Ints
    first: Ints
    particle: Ints
    atlas: Ints  # nodes along x, y, z


@qd.func
def _amount(q: qd.f32, kind: qd.template()) -> qd.f32:
    """What a particle adds at q, 1 in its centre and 0 from q = 1 on."""
    s = qd.max(1.0 - q, 0.0)
    value = s * s
    if qd.static(kind == 1):
        t = qd.max(0.5 - q, 0.0)
        value = 2.0 * s * s * s - 8.0 * t * t * t
    return value


@qd.kernel(fastcache=True)
def _add_up(blobs: Blobs, grid: Grid, planes: qd.i32, out: Floats, kind: qd.Template):
    """Values on the atlas; one thread per plane of sixteen by sixteen nodes of a block."""
    for plane in range(planes):
        b = plane // 16
        ix = plane % 16
        x = qd.cast(grid.origin[3 * b] + ix, qd.f32)
        low_y = grid.origin[3 * b + 1]
        low_z = grid.origin[3 * b + 2]
        slab = (grid.base[3 * b] + ix) * grid.atlas[1]
        for k in range(grid.first[b], grid.first[b + 1]):
            j = grid.particle[k]
            c = blobs.centre[j]
            e = blobs.extent[j]
            dx = x - c[0]
            if qd.abs(dx) < e[0]:
                m = blobs.metric[j]
                first_y = qd.max(qd.cast(qd.ceil(c[1] - e[1]), qd.i32) - low_y, 0)
                last_y = qd.min(qd.cast(qd.floor(c[1] + e[1]), qd.i32) - low_y, 15)
                for iy in range(first_y, last_y + 1):
                    dy = qd.cast(low_y + iy, qd.f32) - c[1]
                    # Along z: q² = A dz² + 2 B dz + C, below 1 between the two roots.
                    half = m[0, 2] * dx + m[1, 2] * dy
                    rest = m[0, 0] * dx * dx + 2.0 * m[0, 1] * dx * dy + m[1, 1] * dy * dy
                    under = half * half - m[2, 2] * (rest - 1.0)
                    if under > 0.0:
                        root = qd.sqrt(under)
                        first_z = qd.max(qd.cast(qd.ceil(c[2] - (half + root) / m[2, 2]), qd.i32) - low_z, 0)
                        last_z = qd.min(qd.cast(qd.floor(c[2] - (half - root) / m[2, 2]), qd.i32) - low_z, 15)
                        line = (slab + grid.base[3 * b + 1] + iy) * grid.atlas[2] + grid.base[3 * b + 2]
                        for iz in range(first_z, last_z + 1):
                            dz = qd.cast(low_z + iz, qd.f32) - c[2]
                            q2 = rest + dz * (2.0 * half + m[2, 2] * dz)
                            out[line + iz] += blobs.weight[j] * _amount(qd.sqrt(qd.max(q2, 0.0)), kind)


def evaluate(
    centre: np.ndarray, radii: np.ndarray, axes: np.ndarray | None, weight: np.ndarray, kind: int
) -> tuple[np.ndarray, Blocks]:
    """(values on the atlas (x, y, z), its blocks) of ellipsoids given in nodes.

    centre (n, 3), radii (n, 3) along the columns of axes (n, 3, 3; None: along x, y, z), weight (n,).
    """
    backend.current()
    turned = np.broadcast_to(np.eye(3, dtype=np.float32), (len(centre), 3, 3)) if axes is None else axes
    extent = np.sqrt(np.einsum("iab,ib->ia", turned**2, radii**2))
    metric = np.einsum("iab,ib,icb->iac", turned, 1 / radii**2, turned)
    blocks = find_blocks(centre, extent)
    cells = int(np.prod(np.array(blocks.atlas, dtype=np.int64)))
    if cells > 2**31 - 1:
        raise SurfaceFailed(f"the grid would have {cells:,} nodes; use a larger cube or method splash")
    blobs = Blobs(
        _sent(centre, vec3), _sent(metric, mat3), _sent(extent, vec3), _sent(weight, qd.f32)
    )
    grid = Grid(
        _sent(blocks.origin.reshape(-1), qd.i32), _sent(blocks.base.reshape(-1), qd.i32), _sent(blocks.first, qd.i32),
        _sent(blocks.particle, qd.i32), _sent(np.array(blocks.atlas), qd.i32),
    )  # fmt: skip
    values = allocate_array(qd.f32, cells)
    _add_up(blobs, grid, 16 * len(blocks.origin), values, kind)
    return transfer.read(values).reshape(blocks.atlas), blocks


def _sent(values: np.ndarray, kind: object) -> object:
    """A device array of ``values``."""
    array = allocate_array(kind, len(values))
    transfer.write(array, np.asarray(values, np.int32 if kind is qd.i32 else np.float32))
    return array


def raw(position: np.ndarray, spacing: float, options: Options) -> Raw:
    """The surface of the field ``options.method`` names, cleaned up, with weights for smoothing."""
    assert options.support is not None and options.threshold is not None
    splash = require("pysplashsurf", "to compute surfaces")
    cube = options.cube * spacing
    centring = options.centring if options.method == "anisotropic" else 0.0
    found = anisotropy.measure(
        position, spacing, support=options.support, stretch=options.stretch, centring=centring
    )
    middle = np.median(position, axis=0)
    reach = options.support / options.cube  # [nodes]
    if options.method == "clavet":
        radii = np.full((len(position), 3), reach, np.float32)
        weight, axes, kind = np.ones(len(position), np.float32), None, CLAVET
    else:
        radii, axes, kind = found.scale * np.float32(reach), found.axes, SPLINE
        weight = found.volume * np.float32(8 / np.pi / (options.support * spacing) ** 3)  # det G = 1/h³: all have one volume
    values, blocks = evaluate((found.centre - middle) / np.float32(cube), radii, axes, weight, kind)
    if options.method == "clavet":
        values = np.sqrt(values)
    mesh, grid = splash.marching_cubes(values, iso_surface_threshold=options.threshold, cube_size=1.0, return_grid=True)
    around = cleaned_up(mesh, grid)
    _place(mesh, blocks, middle, cube)
    return Raw(mesh, around, found.crowd / np.float32(CROWDED * options.support**3))


def _place(mesh: object, blocks: Blocks, middle: np.ndarray, cube: float) -> None:
    """Moves the vertices of ``mesh`` from the atlas to where they belong [m]."""
    vertices = mesh.vertices.copy()
    if len(vertices):
        x, y, z = np.clip(vertices // 16, 0, np.array(blocks.shift.shape[:3]) - 1).astype(np.int64).T
        mesh.vertices[:] = (vertices + blocks.shift[x, y, z]) * np.float32(cube) + middle.astype(np.float32)
