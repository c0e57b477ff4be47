"""The numbers of a frame, summed up on the device.

Every 256 particles make one row of partial results; the host adds the rows in double precision. The rows do not depend on
threads, and a frame of a million particles sends a few hundred kilobytes instead of its arrays.
"""

import math
from typing import Any

import numpy as np
import quadrants as qd

from viscoil.particles import Floats, Ints, Particles, Vectors, allocate_array, vec3
from viscoil.transfer import read

CHUNK = 256
SUMS = (
    "particles", "inside", "ratio_inside", "excess", "mass", "energy",
    "momentum_x", "momentum_y", "momentum_z", "moment_x", "moment_y", "moment_z",
)  # fmt: skip
EXTREMES = ("ratio", "speed", "high_x", "high_y", "high_z", "minus_low_x", "minus_low_y", "minus_low_z")  # all maxima
WIDTH = len(SUMS) + len(EXTREMES)
NOTHING = -1e30  # maximum over no particles


@qd.kernel(fastcache=True)
def _bounds(x: Vectors, n: qd.i32, corners: Vectors):
    """Lower and upper corner of the box around the particles of each chunk [m]."""
    for chunk in range((n + 255) // 256):
        a = x[chunk * 256]
        b = x[chunk * 256]
        for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
            a = qd.min(a, x[i])
            b = qd.max(b, x[i])
        corners[2 * chunk] = a
        corners[2 * chunk + 1] = b


@qd.kernel(fastcache=True)
def _totals(
    p: Particles, n: qd.i32, ratio: Floats, listed: Ints, rest: Floats, volume: qd.f32, full: qd.f32, rows: Floats
):
    """Sums (SUMS), then maxima (EXTREMES) over the fluid particles of each chunk; volume d³ [m³], full: neighbours inside."""
    for chunk in range((n + 255) // 256):
        s = qd.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        e = qd.Vector([-1e30, -1e30, -1e30, -1e30, -1e30, -1e30, -1e30, -1e30])
        for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
            if p.solid[i] < 0:
                mass = rest[p.material[i]] * volume
                v = p.velocity[i]
                x = p.position[i]
                inside = qd.select(qd.cast(listed[i], qd.f32) >= full, 1.0, 0.0)
                s[0] += 1.0
                s[1] += inside
                s[2] += inside * ratio[i]
                s[3] += qd.max(ratio[i] - 1.0, 0.0)
                s[4] += mass
                s[5] += 0.5 * mass * v.dot(v)
                for axis in qd.static(range(3)):
                    s[6 + axis] += mass * v[axis]
                    s[9 + axis] += mass * x[axis]
                    e[2 + axis] = qd.max(e[2 + axis], x[axis])
                    e[5 + axis] = qd.max(e[5 + axis], -x[axis])
                e[0] = qd.max(e[0], ratio[i])
                e[1] = qd.max(e[1], v.norm())
        for k in qd.static(range(12)):
            rows[chunk * 20 + k] = s[k]
        for k in qd.static(range(8)):
            rows[chunk * 20 + 12 + k] = e[k]


def mean(total: float, members: float) -> float:
    """Their mean; NaN, which tables leave empty, where there are no members."""
    return total / members if members else math.nan


class Measure:
    """Scratch for summing up worlds of up to ``capacity`` particles."""

    def __init__(self, capacity: int):
        chunks = capacity // CHUNK + 1
        self._corners = allocate_array(vec3, 2 * chunks)
        self._rows = allocate_array(qd.f32, chunks * WIDTH)

    def bounds(self, position: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Corners of the box around ``count`` > 0 particles [m]."""
        _bounds(position, count, self._corners)
        corners = read(self._corners, 2 * ((count + CHUNK - 1) // CHUNK))
        return corners[0::2].min(0), corners[1::2].max(0)

    def totals(self, world: Any, ratio: Any, rest: Any, full: float) -> dict[str, float]:
        """SUMS and EXTREMES of the fluid; of no particles sums are 0 and extremes NaN.

        ratio: ρ/ρ₀, rest: ρ₀ by material, on the device.
        """
        chunks = (world.count + CHUNK - 1) // CHUNK
        if chunks == 0:
            return dict.fromkeys(SUMS, 0.0) | dict.fromkeys(EXTREMES, math.nan)
        _totals(
            world.particles, world.count, ratio, world.neighbors.list.count, rest, world.spacing**3, full, self._rows
        )
        rows = read(self._rows, chunks * WIDTH).reshape(chunks, WIDTH)
        sums = rows[:, : len(SUMS)].sum(0, dtype=float)
        most = rows[:, len(SUMS) :].max(0).astype(float)
        most[most <= NOTHING] = math.nan
        return dict(zip((*SUMS, *EXTREMES), (*sums.tolist(), *most.tolist()), strict=True))
