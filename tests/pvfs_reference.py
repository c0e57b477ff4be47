"""Clavet et al. 2005 once more, slowly: all pairs, double precision, NumPy. In units of h = 1."""

import numpy as np


def pairs(x):
    """(x_j − x_i, distances, q < 1 and i ≠ j) of all pairs."""
    d = x[None] - x[:, None]
    r = np.linalg.norm(d, axis=2)
    near = (r < 1) & ~np.eye(len(x), dtype=bool)
    return d, r, near


def densities(x):
    """Eqs. 1 and 4."""
    _, r, near = pairs(x)
    s = np.where(near, 1 - r, 0)
    return (s**2).sum(1), (s**3).sum(1)


def relaxed(x, dt, k, k_near, rho0, limit=False):
    """Displacements of all particles at once (eqs. 1 to 6, each pair from both ends)."""
    d, r, near = pairs(x)
    s = np.where(near, 1 - r, 0)
    rho, rho_near = (s**2).sum(1), (s**3).sum(1)
    pressure, hard = k * (rho - rho0), k_near * rho_near
    push = 0.5 * dt**2 * ((pressure[:, None] + pressure) * s + (hard[:, None] + hard) * s**2)
    if limit:
        factor = np.minimum(1, 1 / np.maximum(3.6 * k * dt**2 * rho**2, 1e-30))
        push *= np.minimum(factor[:, None], factor)
    return -((push / np.where(r > 0, r, 1))[..., None] * d).sum(1)


def relaxed_in_turn(x, order, dt, k, k_near, rho0):
    """Alg. 2: positions after every particle of ``order`` pushed its neighbours, which move at once."""
    x = x.copy()
    for i in order:
        d = x - x[i]
        r = np.linalg.norm(d, axis=1)
        near = (r < 1) & (np.arange(len(x)) != i)
        s = np.where(near, 1 - r, 0)
        pressure, hard = k * ((s**2).sum() - rho0), k_near * (s**3).sum()
        move = 0.5 * dt**2 * ((pressure * s + hard * s**2) / np.where(r > 0, r, 1))[:, None] * d
        x += move
        x[i] -= move.sum(0)
    return x


def slowed(x, v, dt, sigma, beta):
    """Velocities after the impulses of Alg. 5, all pairs from the same velocities; I ≤ u."""
    d, r, near = pairs(x)
    way = d / np.where(r > 0, r, 1)[..., None]
    u = np.where(near & (r > 0), ((v[:, None] - v[None]) * way).sum(2), 0)
    impulse = np.minimum(dt * np.where(near, 1 - r, 0) * (sigma * u + beta * u * u), u)
    return v - 0.5 * (np.where(u > 0, impulse, 0)[..., None] * way).sum(1)


class Springs:
    """Rest lengths L (n, n), symmetric, NaN where there is no spring."""

    def __init__(self, x, frozen=True):
        self.rest = np.full((len(x), len(x)), np.nan)
        if frozen:
            _, r, near = pairs(x)
            self.rest[near] = r[near]

    def adjust(self, x, dt, alpha, gamma=0.0, alpha_c=None, gamma_c=None):
        """Alg. 4 for every spring: creation with L = h, eq. 8, removal at L > h."""
        _, r, near = pairs(x)
        new = near & np.isnan(self.rest)
        rest = np.where(new, 1.0, self.rest)
        alpha_c, gamma_c = alpha if alpha_c is None else alpha_c, gamma if gamma_c is None else gamma_c

        def share(a):
            return dt * a if dt * a <= 0.5 else 1 - np.exp(-dt * a)

        longer, shorter = r - rest - gamma * rest, rest - gamma_c * rest - r
        rest = rest + np.where(longer > 0, share(alpha) * longer, 0) - np.where(shorter > 0, share(alpha_c) * shorter, 0)
        self.rest = np.where(rest > 1, np.nan, rest)

    @property
    def lengths(self):
        """With 1 where there is no spring."""
        return np.nan_to_num(self.rest, nan=1.0)

    def pull(self, x, dt, k):
        """Displacements of Alg. 3, all springs at once."""
        d, r, _ = pairs(x)
        rest = self.lengths
        move = dt**2 * k * np.maximum(1 - rest, 0) * (rest - r) / np.where(r > 0, r, 1)
        return -0.5 * (move[..., None] * d).sum(1)
