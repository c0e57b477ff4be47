"""Reference sums on a filled cubic lattice: they make volumes, regularisation and pressures independent of resolution.

With V = d³ the lattice sum of a smoothing kernel deviates from 1 by up to a few percent. Choosing V so that the density
of the resting lattice is exactly the rest density removes that, and the sums of squared gradients give every solver a
dimensionless measure of stiffness (specification 1.3).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lattice:
    """A particle inside a resting block of spacing d, seen through kernels of support h."""

    neighbors: int  # particles with r < h, itself not counted
    volume: float  # V [m³] that makes Σ V W = 1
    gradient_square: float  # Σ_j |V ∇W_ij|² [1/m²]; their vector sum is zero by symmetry
    wall_factor: float  # continuous walls: makes the density of a layer half a spacing from a flat wall exactly 1
    sample_factor: float  # the same for walls of boundary samples, which lie half a spacing inside
    published: bool  # W is Poly6, as in the PBF paper, not Spiky
    stiffest_mode: float  # largest eigenvalue of the density constraints' J Jᵀ, in units of gradient_square


def calibrate(spacing: float, support: float, published: bool = False) -> Lattice:
    """Sums over the lattice of ``spacing`` [m] within ``support`` [m]; W is Spiky, or Poly6 as ``published``."""
    reach = int(np.ceil(support / spacing)) + 1
    axis = np.arange(-reach, reach + 1) * spacing
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    r = np.linalg.norm(offsets, axis=1)
    inside = r < support * (1 - 1e-6)
    offsets, r = offsets[inside], r[inside]
    if published:
        weight = 315 / (64 * np.pi * support**9) * (support**2 - r**2) ** 3
    else:
        weight = _spiky(r, support)
    volume = 1 / weight.sum()
    missing = volume * weight[offsets[:, 1] < -spacing / 2].sum()
    layer = offsets[:, 1] == 0
    beyond = np.hypot(r[layer], spacing)  # one flat layer of samples, seen from one spacing away
    sampled = (_spiky(beyond, support) / _spiky(r[layer], support).sum()).sum()
    s = 1 - spacing / (2 * support)
    offsets, r = offsets[r > 0], r[r > 0]
    gradient = (volume * 45 / (np.pi * support**6) * (support - r) ** 2 / r)[:, None] * offsets
    square = float((gradient**2).sum())
    # On a lattice the modes of J Jᵀ are plane waves with eigenvalue |Σ_j V∇W_j sin(k·x_j)|²: no matrix is needed.
    wave = np.arange(0, np.pi + 0.05, 0.1) / spacing
    waves = np.stack(np.meshgrid(wave, wave, wave, indexing="ij"), -1).reshape(-1, 3)
    modes = (np.sin(waves @ offsets.T) @ gradient) ** 2
    return Lattice(
        neighbors=len(r),
        volume=float(volume),
        gradient_square=square,
        wall_factor=float(missing / (s**5 * (1.5 - s))),
        sample_factor=float(missing / sampled),
        published=published,
        stiffest_mode=float(modes.sum(1).max()) / square,
    )


def _spiky(r: np.ndarray, support: float) -> np.ndarray:
    return 15 / (np.pi * support**6) * np.maximum(support - r, 0) ** 3
