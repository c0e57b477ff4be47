"""Depth-buffered discs, balls and ellipsoids in NumPy: which splat does each pixel see?"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Seen:
    """The pixels that something covers."""

    pixel: np.ndarray  # flat index into the picture
    splat: np.ndarray  # index of the splat seen there
    normal: np.ndarray  # (n, 3) unit vectors of its own surface: right, up, towards the camera
    depth: np.ndarray  # of the surface [m]


@dataclass
class Forms:
    """Ellipsoids xᵀAx = 1 about their centres [1/m²], in the camera's axes: right, up, towards the camera."""

    matrices: np.ndarray  # (n, 3, 3)
    inner: np.ndarray  # (n,) shortest radius [m]

    @classmethod
    def of(cls, axes: np.ndarray, radii: np.ndarray, camera_axes: np.ndarray) -> "Forms":
        """From ``axes`` (n, 3, 3, columns) and ``radii`` (n, 3); ``camera_axes``: rows right, up, towards the camera."""
        turned = np.asarray(camera_axes, np.float32) @ axes
        return cls((turned / np.square(radii)[:, None, :]) @ turned.transpose(0, 2, 1), radii.min(axis=1))


def splat(
    at: tuple[np.ndarray, np.ndarray, np.ndarray], radius: np.ndarray, focal: float, size: tuple[int, int],
    flat: np.ndarray, forms: Forms | None = None,
) -> Seen:  # fmt: skip
    """Draw balls of ``radius`` [m] at pixel coordinates and depths ``at``; ``flat`` ones are discs without a bulge.

    With ``forms`` the first splats are ellipsoids within those balls. Splats whose every pixel is certainly behind others
    are dropped first, which is most of a body of fluid.
    """
    x, y, depth = at
    near = depth > radius * 1.5
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(near, focal / depth, 0).astype(np.float32)
    pixels = scale * radius
    inner = pixels.copy()
    if forms is not None:
        inner[: len(forms.inner)] = scale[: len(forms.inner)] * forms.inner
    on_screen = near & (radius > 0) & (x > -pixels) & (x < size[0] + pixels) & (y > -pixels) & (y < size[1] + pixels)
    kept = np.flatnonzero(on_screen)
    if len(kept):
        balls = np.flatnonzero(~flat[kept])
        if len(balls):
            limits = np.percentile(inner[kept][balls], 10), np.percentile(pixels[kept][balls], 98)
            spots = x[kept], y[kept], depth[kept]
            kept = kept[_maybe_visible(spots, radius[kept], (inner[kept], pixels[kept]), limits, size)]
    kept = kept[np.argsort(-depth[kept], kind="stable")]  # far to near: later writes win
    shapes = _Shapes(kept, radius[kept].astype(np.float32), np.maximum(pixels[kept], 0.71), flat[kept], forms)
    return _draw(kept, (x[kept], y[kept], depth[kept]), shapes, size)


def _maybe_visible(at, radius, extents, limits, size) -> np.ndarray:
    """False for splats hidden behind a cell-wise bound of the depth of what is in front of them.

    ``extents`` are what splats cover for certain and at most [pixels]; ``limits`` the former of small and the latter of
    large balls: smaller ones hide nothing, larger ones always stay.
    """
    x, y, depth = at
    inner, pixels = extents
    small, large = limits
    cell = max(0.2 * small, 1.0)
    reach = int(np.ceil(large / cell))  # cells a large ball extends to each side of its centre's
    if cell > 0.35 * small or reach > 16:
        return np.ones(len(x), bool)
    width, height = int(size[0] / cell) + 2 * reach, int(size[1] / cell) + 2 * reach
    column = np.clip((x / cell).astype(np.int64) + reach, 0, width - 1)
    row = np.clip((y / cell).astype(np.int64) + reach, 0, height - 1)
    covers = (inner >= small) & (x > 0) & (x < size[0]) & (y > 0) & (y < size[1])
    front = np.full(width * height, np.inf, np.float32)
    np.minimum.at(front, (row * width + column)[covers], depth[covers])
    front = front.reshape(height, width)
    # A ball covers a cell i, j away entirely when that cell's far corner lies within its radius.
    fits = [(i, j) for i in range(6) for j in range(6) if np.hypot(i + 1, j + 1) * cell <= small]
    bound = _window(front, [(a * i, b * j) for i, j in fits for a in (-1, 1) for b in (-1, 1)], np.minimum)
    bound = _window(bound, [(i, 0) for i in range(-reach, reach + 1)], np.maximum)
    bound = _window(bound, [(0, j) for j in range(-reach, reach + 1)], np.maximum)
    return (depth - radius < bound[row, column]) | (pixels > reach * cell)


def _window(grid: np.ndarray, offsets: list[tuple[int, int]], function) -> np.ndarray:
    """Smallest or largest of the values at the ``offsets`` of each cell; nothing (infinity) lies outside."""
    reach = max(max(abs(i), abs(j)) for i, j in offsets)
    padded = np.pad(grid, reach, constant_values=np.inf)
    rows, columns = grid.shape
    result = grid.copy()
    for i, j in set(offsets):
        function(result, padded[reach + i : reach + i + rows, reach + j : reach + j + columns], out=result)
    return result


class _Shapes:
    """Splats in pixels about their centres, p right and q up.

    An ellipsoid is where a w² + 2 (b p + c q) w + d p² + 2 e p q + f q² = 1, w towards the camera. Its nearer side is at
    w = (√root − b p − c q)/a with root = (b p + c q)² − a (d p² + 2 e p q + f q² − 1), which is positive on its outline.
    """

    def __init__(self, kept: np.ndarray, world: np.ndarray, pixels: np.ndarray, flat: np.ndarray, forms: Forms | None):
        self.metres = world / pixels  # a pixel's worth there
        scale = (1 / np.square(pixels)).astype(np.float32)
        self.a, self.d, self.f = scale.copy(), scale.copy(), scale.copy()
        self.b, self.c, self.e = (np.zeros(len(kept), np.float32) for _ in range(3))
        self.across, self.up = pixels.astype(np.float32), pixels.astype(np.float32)
        if forms is not None:
            some = np.flatnonzero(kept < len(forms.inner))
            matrix = forms.matrices[kept[some]] * np.square(self.metres[some])[:, None, None]
            for name, (i, j) in {"a": (2, 2), "b": (0, 2), "c": (1, 2), "d": (0, 0), "e": (0, 1), "f": (1, 1)}.items():
                getattr(self, name)[some] = matrix[:, i, j]
            inverse = np.linalg.inv(matrix.astype(np.float64))
            self.across[some], self.up[some] = np.sqrt(inverse[:, 0, 0]), np.sqrt(inverse[:, 1, 1])
        self.bulge = np.where(flat, np.float32(0), self.metres).astype(np.float32)

    def normal(self, of: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Unit normals of the nearer side."""
        a, b, c, d, e, f = (getattr(self, name)[of] for name in "abcdef")
        tilt = b * p + c * q
        w = (np.sqrt(np.maximum(tilt**2 - a * (d * p * p + 2 * e * p * q + f * q * q - 1), 0)) - tilt) / a
        outward = np.stack([d * p + e * q + b * w, e * p + f * q + c * w, tilt + a * w], axis=1)
        return outward / np.maximum(np.sqrt(np.einsum("ij,ij->i", outward, outward))[:, None], 1e-20)


def _draw(kept, at, shapes: _Shapes, size) -> Seen:
    """Row by row and column by column of the largest splat: all splats at once."""
    width, height = size
    x, y, depth = at[0].astype(np.float32), at[1].astype(np.float32), at[2].astype(np.float32)
    left, top = np.floor(x).astype(np.int32), np.floor(y).astype(np.int32)
    buffer = np.full(width * height, np.inf, np.float32)
    owner = np.full(width * height, -1, np.int32)
    fp, fq = left + np.float32(0.5) - x, y - top - np.float32(0.5)
    s = shapes
    slope = s.b**2 - s.a * s.d  # root = slope p² + 2 (b c − a e) q p + (c² − a f) q² + a
    for dy in range(-_reach(s.up), _reach(s.up) + 1):
        row = top + dy
        some = np.flatnonzero((np.abs(fq - dy) < s.up) & (row >= 0) & (row < height))
        if not len(some):
            continue
        a, b, q, p0, curve = s.a[some], s.b[some], fq[some] - np.float32(dy), fp[some], slope[some]
        linear = 2 * (b * s.c[some] - a * s.e[some]) * q
        constant = (s.c[some] ** 2 - a * s.f[some]) * q * q + a
        over, tilt = s.bulge[some] / a, s.c[some] * q
        base, column, z = row[some] * width, left[some], depth[some]
        reach = _reach(s.across[some])
        for dx in range(-reach, reach + 1):
            p = p0 + np.float32(dx)
            root = (curve * p + linear) * p + constant
            place = column + dx
            hit = np.flatnonzero((root > 0) & (place >= 0) & (place < width))
            if not len(hit):
                continue
            pixel = base[hit] + place[hit]
            surface = z[hit] - over[hit] * (np.sqrt(root[hit]) - b[hit] * p[hit] - tilt[hit])
            front = surface < buffer[pixel]
            pixel = pixel[front]
            buffer[pixel] = surface[front]
            owner[pixel] = some[hit[front]]
    pixel = np.flatnonzero(owner >= 0)
    mine = owner[pixel]
    p, q = (pixel % width) + np.float32(0.5) - x[mine], y[mine] - (pixel // width) - np.float32(0.5)
    return Seen(pixel, kept[mine], shapes.normal(mine, p.astype(np.float32), q.astype(np.float32)), buffer[pixel])


def _reach(pixels: np.ndarray) -> int:
    return int(np.ceil(pixels.max())) if len(pixels) else -1
