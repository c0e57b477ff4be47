"""Reference sums on a filled cubic lattice: they make volumes, regularisation and pressures independent of resolution.

With V = d³ the lattice sum of a smoothing kernel deviates from 1 by up to a few percent. Choosing V so that the density
of the resting lattice is exactly the rest density removes that, and the sums of squared gradients give every solver a
dimensionless measure of stiffness (specification 1.3).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from viscoil.sph.smoothing import CUBIC, POLY6, SPIKY


@dataclass(frozen=True)
class Lattice:
    """A particle inside a resting block of spacing d, seen through kernels of support h."""

    neighbors: int  # particles with r <= h, itself not counted: as many as a search with the least margin lists
    volume: float  # V [m³] that makes Σ V W = 1
    gradient_square: float  # Σ_j |V ∇W_ij|² [1/m²]; their vector sum is zero by symmetry
    wall_factor: float  # continuous walls: makes the density of a layer half a spacing from a flat wall exactly 1
    sample_factor: float  # the same for walls of boundary samples, which lie half a spacing inside
    kernel: int  # W of the density sum: SPIKY, POLY6 or CUBIC
    stiffest_mode: float  # largest eigenvalue of the density constraints' J Jᵀ, in units of gradient_square


@cache
def calibrate(spacing: float, support: float, kernel: int = SPIKY) -> Lattice:
    """Sums over the lattice of ``spacing`` [m] within ``support`` [m] for densities by ``kernel``.

    Gradients are those of Spiky beside Spiky and Poly6, as in PBF, and of the cubic spline beside itself.
    """
    reach = int(np.ceil(support / spacing)) + 1
    axis = np.arange(-reach, reach + 1) * spacing
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    r = np.linalg.norm(offsets, axis=1)
    listed = int(np.count_nonzero(r < support * (1 + 1e-6))) - 1
    inside = r < support * (1 - 1e-6)
    offsets, r = offsets[inside], r[inside]
    weight = _weight(r, support, kernel)
    volume = 1 / weight.sum()
    missing = volume * weight[offsets[:, 1] < -spacing / 2].sum()
    layer = offsets[:, 1] == 0
    beyond = np.hypot(r[layer], spacing)  # one flat layer of samples, seen from one spacing away
    sampled = (_weight(beyond, support, kernel) / _weight(r[layer], support, kernel).sum()).sum()
    offsets, r = offsets[r > 0], r[r > 0]
    gradient = (_steepness(r, support, volume, kernel) / r)[:, None] * offsets
    square = float((gradient**2).sum())
    # On a lattice the modes of J Jᵀ are plane waves with eigenvalue |Σ_j V∇W_j sin(k·x_j)|²: no matrix is needed. Waves
    # whose numbers are the same in another order have the same eigenvalue.
    wave = np.arange(0, np.pi + 0.05, 0.1) / spacing
    waves = np.stack(np.meshgrid(wave, wave, wave, indexing="ij"), -1).reshape(-1, 3)
    waves = waves[(waves[:, 0] <= waves[:, 1]) & (waves[:, 1] <= waves[:, 2])]
    modes = (np.sin(waves @ offsets.T) @ gradient) ** 2
    return Lattice(
        neighbors=listed,
        volume=float(volume),
        gradient_square=square,
        wall_factor=float(missing / _half_space(spacing / (2 * support), kernel)),
        sample_factor=float(missing / sampled),
        kernel=kernel,
        stiffest_mode=float(modes.sum(1).max()) / square,
    )


def _weight(r: np.ndarray, support: float, kernel: int) -> np.ndarray:
    """W [1/m³] at distances r [m]."""
    s = np.maximum(support - r, 0)
    if kernel == POLY6:
        return 315 / (64 * np.pi * support**9) * np.maximum(support**2 - r**2, 0) ** 3
    if kernel == CUBIC:
        return 16 / (np.pi * support**6) * (s**3 - 4 * np.maximum(support / 2 - r, 0) ** 3)
    return 15 / (np.pi * support**6) * s**3


def _steepness(r: np.ndarray, support: float, volume: float, kernel: int) -> np.ndarray:
    """−V dW/dr [1/m] of the kernel whose gradients go with ``kernel``."""
    s = np.maximum(support - r, 0)
    if kernel == CUBIC:
        return volume * 48 / (np.pi * support**6) * (s**2 - 4 * np.maximum(support / 2 - r, 0) ** 2)
    return volume * 45 / (np.pi * support**6) * s**2


def _half_space(q: float, kernel: int) -> float:
    """What constraints/walls.py integrates at a wall q supports away, for 0 <= q <= 1."""

    def spiky(z: float) -> float:
        s = 1 - min(z, 1.0)
        return s**5 * (1.5 - s)

    return (16 * spiky(q) - spiky(2 * q)) / 15 if kernel == CUBIC else spiky(q)
