"""Numbers that several cases take from frames."""

import numpy as np

ROWS = 512  # particles compared with all others at a time


def nearest(positions: np.ndarray) -> np.ndarray:
    """Distance of every particle to its nearest neighbour [m]; all pairs, for some thousand particles."""
    x = positions.astype(float) - positions.mean(0)
    square = (x * x).sum(1)
    result = np.empty(len(x))
    for begin in range(0, len(x), ROWS):
        rows = slice(begin, begin + ROWS)
        r2 = square[rows, None] + square[None, :] - 2 * x[rows] @ x.T
        r2[np.arange(len(r2)), np.arange(begin, begin + len(r2))] = np.inf
        result[rows] = r2.min(1)
    return np.sqrt(np.maximum(result, 0))


def enstrophy(positions: np.ndarray, velocities: np.ndarray, spacing: float) -> float:
    """½ Σ V |ω|² [m³/s²], ω the curl of the velocity from weighted differences over all neighbours within 2.3 spacings.

    ω solves the least-squares fit of a linear velocity field around each particle, so that surfaces do not fake rotation.
    """
    x, v = positions.astype(float) - positions.mean(0), velocities.astype(float)
    square = (x * x).sum(1)
    reach = 2.3 * spacing
    total = 0.0
    for begin in range(0, len(x), ROWS):
        rows = slice(begin, begin + ROWS)
        i, j = np.nonzero(square[rows, None] + square[None, :] - 2 * x[rows] @ x.T < reach * reach)
        d, u = x[j] - x[begin + i], v[j] - v[begin + i]
        w = (1 - np.linalg.norm(d, axis=1) / reach) ** 2
        number = len(x[rows])
        moment, product = np.zeros((number, 3, 3)), np.zeros((number, 3, 3))
        for a in range(3):
            for b in range(3):
                moment[:, a, b] = np.bincount(i, w * d[:, a] * d[:, b], number)
                product[:, a, b] = np.bincount(i, w * u[:, a] * d[:, b], number)
        moment += 0.05 * spacing**2 * np.eye(3)
        gradient = product @ np.linalg.inv(moment)  # L_ab = ∂u_a/∂x_b
        curl = np.stack([gradient[:, 2, 1] - gradient[:, 1, 2], gradient[:, 0, 2] - gradient[:, 2, 0],
                         gradient[:, 1, 0] - gradient[:, 0, 1]], 1)  # fmt: skip
        total += 0.5 * spacing**3 * float((curl * curl).sum())
    return total
