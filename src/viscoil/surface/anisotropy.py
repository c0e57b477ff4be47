"""Ellipsoids instead of spheres: how the particles around each particle are spread (Yu & Turk 2013).

One pass over the particles around each particle gives their weighted mean and covariance; its eigenvectors are the axes
of the ellipsoid, its eigenvalues their lengths. Particles on a surface become flat and lie in it, particles of a thread
become long, particles inside stay round.

Where we differ from the paper: its scale k_s (1400 in its units, so that |k_s C| is about 1 inside a fluid) is chosen for
each particle such that all ellipsoids have the volume of one particle, d³, and the change from ellipsoids to spheres where
neighbours are few (its N_ε = 25) is gradual, so that nothing jumps from one frame to the next.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.io.frame import Frame
from viscoil.particles import Floats, Ints, Matrices, Uploaded, Vectors, allocate_array, mat3, vec3
from viscoil.sph.finding import Cells, cells_to_scan, count_cells, prefix_sum, sort_cells
from viscoil.sph.neighbors import Torus
from viscoil.sph.search import Neighbors

REACH = 2.5  # [d] radius r of the weights; the paper takes twice its kernel radius
STRETCH = 4.0  # k_r: longest over shortest axis, at most
CENTRING = 0.9  # λ: how far centres move towards the mean of their neighbours
FEW, MANY = 6.0, 18.0  # neighbours up to which an ellipsoid is a sphere, and from which it is itself
ROUND = (3 / (4 * np.pi)) ** (1 / 3)  # [d] radius of a sphere of volume d³


@dataclass(frozen=True)
class Ellipsoids:
    """One ellipsoid per particle, all of volume d³."""

    centre: np.ndarray  # (n, 3) float32 [m]
    axes: np.ndarray  # (n, 3, 3) float32, rotations: orthonormal columns, longest axis first
    radii: np.ndarray  # (n, 3) float32 [m] along those axes


@dataclass(frozen=True)
class Spread:
    """What one pass over its surroundings says about each particle. Device arrays; lengths in spacings."""

    centre: Vectors  # moved towards the mean of the neighbours, relative to the particle
    axes: Matrices  # columns: eigenvectors of the covariance
    scale: Vectors  # lengths along them, product 1
    volume: Floats  # 1/Σ_j W(r_ij): what a particle stands for in the field, larger where few are near
    crowd: Floats  # Σ_j (1 − r²/s²) within the support s: weighted number of neighbours (Löschner et al. 2023)


@dataclass(frozen=True)
class SpreadNumbers:
    """Arguments of the pass, one element each; lengths in spacings."""

    count: Ints
    spacing: Floats  # [m]
    reach: Floats
    support: Floats
    stretch: Floats
    centring: Floats


@qd.func
def _rotate(a: mat3, v: mat3, p: qd.template(), q: qd.template()):
    """One Jacobi rotation: makes a[p, q] zero and keeps a = VᵀCV symmetric."""
    b = a
    u = v
    if qd.abs(a[p, q]) > 1e-12:
        theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
        t = qd.select(theta >= 0.0, 1.0, -1.0) / (qd.abs(theta) + qd.sqrt(theta * theta + 1.0))
        c = 1.0 / qd.sqrt(t * t + 1.0)
        s = t * c
        for k in qd.static(range(3)):
            b[k, p] = c * a[k, p] - s * a[k, q]
            b[k, q] = s * a[k, p] + c * a[k, q]
            u[k, p] = c * v[k, p] - s * v[k, q]
            u[k, q] = s * v[k, p] + c * v[k, q]
        d = b
        for k in qd.static(range(3)):
            d[p, k] = c * b[p, k] - s * b[q, k]
            d[q, k] = s * b[p, k] + c * b[q, k]
        b = d
    return b, u


@qd.func
def _swap(values: vec3, v: mat3, p: qd.template(), q: qd.template()):
    """Exchanges two eigenpairs when the first is the smaller."""
    e = values
    u = v
    if values[p] < values[q]:
        e[p] = values[q]
        e[q] = values[p]
        for k in qd.static(range(3)):
            u[k, p] = v[k, q]
            u[k, q] = v[k, p]
    return e, u


@qd.func
def eigen(matrix: mat3):
    """(eigenvalues, largest first; eigenvectors as columns of a rotation) of a symmetric matrix, by Jacobi rotations.

    Four rounds bring any 3x3 matrix to the precision of float32, also with equal eigenvalues, where closed formulas fail.
    """
    a = matrix
    v = qd.Matrix.identity(qd.f32, 3)
    for _ in range(4):
        a, v = _rotate(a, v, 0, 1)
        a, v = _rotate(a, v, 0, 2)
        a, v = _rotate(a, v, 1, 2)
    e = vec3(a[0, 0], a[1, 1], a[2, 2])
    e, v = _swap(e, v, 0, 1)
    e, v = _swap(e, v, 1, 2)
    e, v = _swap(e, v, 0, 1)
    # Exchanging columns makes a mirror image of a rotation; renderers would turn its ellipsoid inside out.
    third = vec3(v[0, 0], v[1, 0], v[2, 0]).cross(vec3(v[0, 1], v[1, 1], v[2, 1]))
    for k in qd.static(range(3)):
        v[k, 2] = third[k]
    return e, v


@qd.func
def _wrapped(c: qd.i32, dim: qd.i32) -> qd.i32:
    return (c + dim) % dim


@qd.func(requires_top_level=True)
def spread(cells: Cells, torus: Torus, k: SpreadNumbers, out: Spread):
    """Weights w = 1 − (r/r_a)³ (eq. 11 of Yu & Turk), mean (10), covariance (9), clamped eigenvalues (15)."""
    for place in range(k.count[0]):
        i = cells.order[place]
        dim_x = torus.whole[0]
        dim_y = torus.whole[1]
        dim_z = torus.whole[2]
        c = cells.cell[i]
        cx = c % dim_x
        cy = (c // dim_x) % dim_y
        cz = c // (dim_x * dim_y)
        unit = 1.0 / k.spacing[0]
        x = cells.sorted_x[place]
        y = cells.sorted_y[place]
        z = cells.sorted_z[place]
        inverse_reach = 1.0 / k.reach[0]
        inverse_support = 1.0 / k.support[0]
        total = 0.0
        near = 0.0
        density = 0.0
        crowd = 0.0
        mean = vec3(0.0)
        xx = 0.0
        yy = 0.0
        zz = 0.0
        xy = 0.0
        xz = 0.0
        yz = 0.0
        # Rows of three cells along x; where the torus closes, its first and last cell are a second run of their own.
        for row in range(18):
            ry = _wrapped(cy + (row // 2) % 3 - 1, dim_y)
            rz = _wrapped(cz + row // 6 - 1, dim_z)
            line = (rz * dim_y + ry) * dim_x
            first = cells.start[line + qd.max(cx - 1, 0)]
            last = cells.start[line + qd.min(cx + 2, dim_x)]
            if row % 2 == 1:
                other = line + qd.select(cx == 0, dim_x - 1, 0)
                first = cells.start[other]
                last = qd.select(cx == 0 or cx == dim_x - 1, cells.start[other + 1], first)
            for j in range(first, last):
                dx = (cells.sorted_x[j] - x) * unit
                dy = (cells.sorted_y[j] - y) * unit
                dz = (cells.sorted_z[j] - z) * unit
                r2 = dx * dx + dy * dy + dz * dz
                q = qd.sqrt(r2) * inverse_reach
                w = qd.max(1.0 - q * q * q, 0.0)
                total += w
                near += qd.select(q < 1.0, 1.0, 0.0)
                # The cubic spline without its branch, which would keep the loop from becoming vector instructions.
                a = qd.max(1.0 - qd.sqrt(r2) * inverse_support, 0.0)
                b = qd.max(0.5 - qd.sqrt(r2) * inverse_support, 0.0)
                density += 2.0 * a * a * a - 8.0 * b * b * b
                crowd += qd.max(1.0 - r2 * inverse_support * inverse_support, 0.0)
                mean += w * vec3(dx, dy, dz)
                xx += w * dx * dx
                yy += w * dy * dy
                zz += w * dz * dz
                xy += w * dx * dy
                xz += w * dx * dz
                yz += w * dy * dz
        mean /= total
        covariance = mat3([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) / total - mean.outer_product(mean)
        e, v = eigen(covariance)
        e = qd.max(e, e[0] / k.stretch[0])
        # From a sphere to the ellipsoid as neighbours become enough to tell a direction. 6 and 18: FEW and MANY.
        trust = qd.min(qd.max((near - 1.0 - 6.0) / 12.0, 0.0), 1.0)
        e = trust * e / qd.max(e[0], 1e-6) + (1.0 - trust)
        out.scale[i] = e / qd.pow(e[0] * e[1] * e[2], 1.0 / 3.0)
        out.axes[i] = v
        out.centre[i] = k.centring[0] * mean
        out.volume[i] = qd.math.pi / 8.0 / (density * inverse_support * inverse_support * inverse_support)
        out.crowd[i] = crowd - 1.0  # itself is not its neighbour


@qd.kernel(graph=True, fastcache=True)
def _spread(
    cells: Cells, torus: Torus, position: Vectors, ids: Ints, k: SpreadNumbers, out: Spread, depth: qd.Template
):  # fmt: skip
    scanned = cells_to_scan(torus)
    count_cells(cells, torus, position, k.count[0])
    prefix_sum(cells, torus, scanned, depth)
    sort_cells(cells, position, ids, k.count[0], depth)
    spread(cells, torus, k, out)


@dataclass(frozen=True)
class HostSpread:
    """:class:`Spread` on the host, in metres."""

    centre: np.ndarray  # (n, 3) [m]
    axes: np.ndarray  # (n, 3, 3)
    scale: np.ndarray  # (n, 3)
    volume: np.ndarray  # (n,) [m³]
    crowd: np.ndarray  # (n,)


def measure(
    position: np.ndarray, spacing: float, support: float = 2.0, reach: float = REACH, stretch: float = STRETCH,
    centring: float = CENTRING,
) -> HostSpread:  # fmt: skip
    """How the particles at ``position`` (n, 3) [m] are spread. support, reach in spacings."""
    backend.current()
    count = len(position)
    if not count:
        return HostSpread(*(np.zeros(shape, np.float32) for shape in ((0, 3), (0, 3, 3), (0, 3), (0,), (0,))))
    search = Neighbors(max(reach, support) * spacing, 0, count, plain=True)  # only its cells are used
    search.fit(position.min(axis=0), position.max(axis=0))
    x, ids = allocate_array(vec3, count), allocate_array(qd.i32, count)
    transfer.write(x, np.asarray(position, np.float32))
    transfer.write(ids, np.arange(count, dtype=np.int32))
    numbers = Uploaded(SpreadNumbers).set(
        count=count, spacing=spacing, reach=reach, support=support, stretch=stretch, centring=centring
    )
    kinds: dict[str, Any] = {"centre": vec3, "axes": mat3, "scale": vec3, "volume": qd.f32, "crowd": qd.f32}
    out = Spread(**{name: allocate_array(kind, count) for name, kind in kinds.items()})
    _spread(search.cells, search.torus, x, ids, numbers, out, search.scan_depth)
    found = {name: transfer.read(getattr(out, name)) for name in kinds}
    found["centre"] = position + np.float32(spacing) * found["centre"]
    found["volume"] = found["volume"] * np.float32(spacing) ** 3
    return HostSpread(**found)


def ellipsoids(
    frame: Frame, reach: float = REACH, stretch: float = STRETCH, centring: float = CENTRING, size: float = 1.0
) -> Ellipsoids:
    """The particles of ``frame`` as ellipsoids, to be drawn as in Fig. 1a of the PBF paper.

    reach: radius [d] in which neighbours shape an ellipsoid; stretch: longest over shortest axis, at most; centring: how
    far centres move towards the mean of their neighbours; size: factor on all radii (1: each has the volume d³).
    """
    found = measure(frame["position"], frame.spacing, reach=reach, stretch=stretch, centring=centring)
    radii = found.scale * np.float32(ROUND * frame.spacing * size)
    return Ellipsoids(found.centre.astype(np.float32), found.axes, radii)
