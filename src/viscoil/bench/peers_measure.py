"""One measure for everybody's particles: how much denser than the resting lattice they lie, and how high a heap is.

Densities are SPH sums over the positions alone, whoever made them: ρ/ρ₀ = Σ W / Σ_lattice W with a cubic spline of
``SUPPORT`` spacings. That is wider than what either code iterates on (2 and 2.3), so nobody is judged by the very sum he
makes small, and a disturbed packing of the right volume measures closer to 1. Where walls or the surface are nearer than the
support, fluid is missing in the sum; such particles are left out near walls and count as not compressed at the surface.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import particles as table
from viscoil.particles import allocate_array
from viscoil.sph.calibration import calibrate
from viscoil.sph.operators import density_kernel
from viscoil.sph.search import Neighbors
from viscoil.sph.smoothing import CUBIC

SUPPORT = 3.0  # spacings
NARROW = 2.0  # spacings: SPlisHSPlasH's own kernel, shown beside it, because the verdict can depend on the width


@dataclass(frozen=True)
class Compression:
    """ρ/ρ₀ − 1 of what is compressed, and 0 of what is not."""

    mean: float
    largest: float
    percentile: float  # 99.9 %: the largest is one particle's
    counted: float  # share of the particles that were far enough from walls


def densities(positions: np.ndarray, spacing: float, support: float = SUPPORT) -> np.ndarray:
    """ρ/ρ₀ of particles (n, 3) [m] that rest on a lattice of ``spacing`` [m]; walls do not count."""
    h = support * spacing
    lattice = calibrate(spacing, h, CUBIC)
    x = np.ascontiguousarray(positions, np.float32)
    count = len(x)
    particles = table.allocate(count)
    volume = np.full(count, lattice.volume, np.float32)
    table.append(particles, 0, {"position": x, "id": np.arange(count), "volume": volume})
    neighbors = Neighbors(h, lattice.neighbors, count, None)
    neighbors.fit(x.min(0), x.max(0))
    neighbors.find(particles.position, particles, count)
    while needed := neighbors.overflow():
        neighbors.widen(needed)
        neighbors.find(particles.position, particles, count)
    wall, ratio = allocate_array(qd.f32, count), allocate_array(qd.f32, count)
    density_kernel(
        particles, particles.position, count, neighbors.list, neighbors.torus, h, wall, ratio, CUBIC, neighbors.periodic
    )
    return ratio.to_numpy()[:count].astype(float)


def compression(positions: np.ndarray, case: Any, support: float = SUPPORT) -> Compression:
    """Of the particles further than the support from all walls of a :class:`viscoil.bench.peers_scenes.Case`."""
    clear = positions[:, 1]
    if case.box is not None:
        box = np.asarray(case.box)
        clear = np.minimum(positions, box - positions).min(1)
    inner = clear > support * case.spacing
    if not inner.any():
        return Compression(0.0, 0.0, 0.0, 0.0)
    excess = np.maximum(densities(positions, case.spacing, support)[inner] - 1.0, 0.0)
    return Compression(
        float(excess.mean()), float(excess.max()), float(np.percentile(excess, 99.9)), float(inner.mean())
    )


def height(positions: np.ndarray, spacing: float) -> float:
    """Top of a heap [m]: half a spacing above the highest percent of the particles (drops do not count)."""
    y = np.sort(positions[:, 1])
    return float(y[-max(1, len(y) // 100) :].mean() + spacing / 2)
