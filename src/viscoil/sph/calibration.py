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
    volume: float  # V [m³] that makes Σ V W = 1 with Poly6
    gradient_square: float  # Σ_j |V ∇W_ij|² with the Spiky gradient [1/m²]; their vector sum is zero by symmetry


def calibrate(spacing: float, support: float) -> Lattice:
    """Sums over the lattice of ``spacing`` [m] within ``support`` [m]."""
    reach = int(np.ceil(support / spacing)) + 1
    axis = np.arange(-reach, reach + 1) * spacing
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    r = np.linalg.norm(offsets, axis=1)
    r = r[r < support * (1 - 1e-6)]
    poly6 = 315 / (64 * np.pi * support**9) * (support**2 - r**2) ** 3
    volume = 1 / poly6.sum()
    r = r[r > 0]
    gradient = 45 / (np.pi * support**6) * (support - r) ** 2
    return Lattice(len(r), float(volume), float((volume**2 * gradient**2).sum()))
