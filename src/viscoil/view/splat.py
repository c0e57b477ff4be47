"""Depth-buffered discs and balls in NumPy: which splat does each pixel see?"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Seen:
    """The pixels that something covers."""

    pixel: np.ndarray  # flat index into the picture
    splat: np.ndarray  # index of the splat seen there
    x: np.ndarray  # where on its disc, in radii from the centre: right
    y: np.ndarray  # and up
    depth: np.ndarray  # of the surface [m]


def splat(
    at: tuple[np.ndarray, np.ndarray, np.ndarray], radius: np.ndarray, focal: float, size: tuple[int, int],
    flat: np.ndarray,
) -> Seen:
    """Draw balls of ``radius`` [m] at pixel coordinates and depths ``at``; ``flat`` ones are discs without a bulge.

    Splats whose every pixel is certainly behind others are dropped first, which is most of a body of fluid.
    """
    x, y, depth = at
    near = depth > radius * 1.5
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = np.where(near, focal * radius / depth, 0).astype(np.float32)
    on_screen = near & (x > -pixels) & (x < size[0] + pixels) & (y > -pixels) & (y < size[1] + pixels)
    kept = np.flatnonzero(on_screen)
    if len(kept):
        balls = np.flatnonzero(~flat[kept])
        if len(balls):
            limits = np.percentile(pixels[kept][balls], [10, 98])
            visible = _maybe_visible((x[kept], y[kept], depth[kept]), radius[kept], pixels[kept], limits, size)
            kept = kept[visible]
    kept = kept[np.argsort(-depth[kept], kind="stable")]  # far to near: later writes win
    return _draw(kept, (x, y, depth), radius, np.maximum(pixels, 0.71), size, flat)


def _maybe_visible(at, radius, pixels, limits, size) -> np.ndarray:
    """False for splats hidden behind a cell-wise bound of the depth of what is in front of them.

    ``limits`` are the radii [pixels] of small and of large balls; smaller ones hide nothing, larger ones always stay.
    """
    x, y, depth = at
    small, large = limits
    cell = max(0.2 * small, 1.0)
    reach = int(np.ceil(large / cell))  # cells a large ball extends to each side of its centre's
    if cell > 0.35 * small or reach > 16:
        return np.ones(len(x), bool)
    width, height = int(size[0] / cell) + 2 * reach, int(size[1] / cell) + 2 * reach
    column = np.clip((x / cell).astype(np.int64) + reach, 0, width - 1)
    row = np.clip((y / cell).astype(np.int64) + reach, 0, height - 1)
    covers = (pixels >= small) & (x > 0) & (x < size[0]) & (y > 0) & (y < size[1])
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


def _draw(kept, at, radius, pixels, size, flat) -> Seen:
    width, height = size
    x, y, depth, r, world = at[0][kept], at[1][kept], at[2][kept], pixels[kept], radius[kept]
    bulge = np.where(flat[kept], np.float32(0), world).astype(np.float32)
    left, top = np.floor(x).astype(np.int32), np.floor(y).astype(np.int32)
    inverse = (1 / r).astype(np.float32)
    buffer = np.full(width * height, np.inf, np.float32)
    owner = np.full(width * height, -1, np.int32)
    number = np.arange(len(kept), dtype=np.int32)
    reach = int(np.ceil(r.max())) if len(kept) else -1
    fx, fy = (left + 0.5 - x) * inverse, (top + 0.5 - y) * inverse
    for dy in range(-reach, reach + 1):
        v = fy + dy * inverse
        row = top + dy
        some = np.flatnonzero((np.abs(v) < 1) & (row >= 0) & (row < height))
        if not len(some):
            continue
        vv, uu, step = v[some] ** 2, fx[some], inverse[some]
        base, column, z, b = row[some] * width, left[some], depth[some], bulge[some]
        for dx in range(-reach, reach + 1):
            u = uu + dx * step
            rest = 1 - vv - u * u
            place = column + dx
            hit = np.flatnonzero((rest > 0) & (place >= 0) & (place < width))
            if not len(hit):
                continue
            pixel = base[hit] + place[hit]
            surface = z[hit] - b[hit] * np.sqrt(rest[hit])
            front = surface < buffer[pixel]
            pixel = pixel[front]
            buffer[pixel] = surface[front]
            owner[pixel] = number[some[hit[front]]]
    pixel = np.flatnonzero(owner >= 0)
    mine = owner[pixel]
    px, py = (pixel % width) + 0.5, (pixel // width) + 0.5
    return Seen(
        pixel, kept[mine], ((px - x[mine]) * inverse[mine]).astype(np.float32),
        ((y[mine] - py) * inverse[mine]).astype(np.float32), buffer[pixel],
    )
