"""Velocity-corrected IISPH once more, slowly: all pairs, double precision, NumPy, SI units, equal masses.

Written from the equations of Ihmsen et al. 2014 (pressure), Akinci et al. 2012 (boundary samples) and Takahashi et al. 2014
(velocity corrections) alone. The iteration is the one they print, with the stored displacements D_i = Σ_j d_ij p_j.
"""

from dataclasses import dataclass

import numpy as np

TINY = 1e-30


def kernel(r, h):
    """Cubic spline W of support ``h``."""
    q = r / h
    inner, outer = 6 * (q**3 - q**2) + 1, 2 * np.maximum(1 - q, 0) ** 3
    return 8 / (np.pi * h**3) * np.where(q <= 0.5, inner, outer)


def slope(r, h):
    """dW/dr."""
    q = r / h
    return 48 / (np.pi * h**4) * np.where(q <= 0.5, q * (3 * q - 2), -(np.maximum(1 - q, 0) ** 2))


def gradient(d, h):
    """∇_i W_ij of differences d = x_i − x_j (..., 3)."""
    r = np.linalg.norm(d, axis=-1)
    return (slope(r, h) / np.where(r > 0, r, 1))[..., None] * d


def differences(a, b, period=None):
    """a_i − b_j of all pairs, shortest images; ``period`` (3,) [m], inf where there is none."""
    d = a[:, None] - b[None]
    if period is not None:
        d = d - np.where(np.isfinite(period), period, 0) * np.round(d / np.asarray(period, float))
    return d


def sample_volumes(x, h):
    """V_b = 1/Σ_k W_bk of one body's samples."""
    return 1 / kernel(np.linalg.norm(differences(x, x), axis=2), h).sum(1)


def dot(a, b):
    return (a * b).sum(-1)


@dataclass
class Walls:
    """Boundary samples: places [m], Ψ = ρ₀V [kg], velocities [m/s]."""

    x: np.ndarray
    psi: np.ndarray
    v: np.ndarray


NONE = Walls(np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)))


class Pressure:
    """Everything that belongs to fixed positions: kernels, densities, d_ii, a_ii, and the iteration over them."""

    def __init__(self, x, mass, rho0, h, dt, walls=NONE, period=None):
        self.mass, self.rho0, self.dt, self.walls = mass, rho0, dt, walls
        d = differences(x, x, period)
        self.r = np.linalg.norm(d, axis=2)
        self.w, self.g = kernel(self.r, h), gradient(d, h)
        db = differences(x, walls.x, period)
        self.wb, self.gb = kernel(np.linalg.norm(db, axis=2), h), gradient(db, h)
        self.rho = mass * self.w.sum(1) + self.wb @ walls.psi
        self.around = mass * self.g.sum(1) + np.einsum("b,iba->ia", walls.psi, self.gb)  # Σ_j m ∇W + Σ_b Ψ ∇W
        self.d_ii = -(dt**2) * self.around / self.rho[:, None] ** 2
        self.a_ii = self._a_ii()

    def _a_ii(self):
        """Σ_j m (d_ii − d_ji)·∇W_ij + Σ_b Ψ d_ii·∇W_ib."""
        d_ji = self.dt**2 * self.mass / self.rho[:, None, None] ** 2 * self.g
        fluid = self.mass * dot(self.d_ii[:, None] - d_ji, self.g).sum(1)
        return fluid + dot(self.d_ii[:, None], self.gb) @ self.walls.psi

    def advected(self, v):
        """ρ~: density at the end of the step without pressure."""
        fluid = self.mass * dot(v[:, None] - v[None], self.g).sum(1)
        wall = dot(v[:, None] - self.walls.v[None], self.gb) @ self.walls.psi
        return self.rho + self.dt * (fluid + wall)

    def displaced(self, p):
        """D_i = Σ_j d_ij p_j, d_ij = −Δt² m/ρ_j² ∇W_ij."""
        return -(self.dt**2) * self.mass * np.einsum("j,ija->ia", p / self.rho**2, self.g)

    def others(self, p):
        """b_i = Σ_j m (D_i − d_jj p_j − (D_j − d_ji p_i))·∇W_ij + Σ_b Ψ D_i·∇W_ib."""
        moved = self.displaced(p)
        own = self.d_ii * p[:, None]
        d_ji = self.dt**2 * self.mass * (p / self.rho**2)[:, None, None] * self.g
        inner = moved[:, None] - own[None] - (moved[None] - d_ji)
        return self.mass * dot(inner, self.g).sum(1) + dot(moved[:, None], self.gb) @ self.walls.psi

    def predicted(self, advected, p):
        """ρ_pred with pressures p, in the form of the iteration: ρ~ + a_ii p + b."""
        return advected + self.a_ii * p + self.others(p)

    def force(self, p):
        """Pressure acceleration a_i [m/s²] = F_i/m."""
        q = p / self.rho**2
        fluid = -self.mass * np.einsum("ij,ija->ia", q[:, None] + q[None], self.g)
        return fluid - np.einsum("i,b,iba->ia", q, self.walls.psi, self.gb)

    def predicted_from_force(self, advected, p):
        """The same ρ_pred from accelerations: ρ~ + Δt² (Σ_j m (a_i − a_j)·∇W_ij + Σ_b Ψ a_i·∇W_ib)."""
        a = self.force(p)
        change = self.mass * dot(a[:, None] - a[None], self.g).sum(1) + dot(a[:, None], self.gb) @ self.walls.psi
        return advected + self.dt**2 * change

    def iterate(self, advected, p, omega=0.5):
        """(p after one relaxed Jacobi iteration, mean compression that p before it predicts)."""
        b = self.others(p)
        error = np.maximum(advected + self.a_ii * p + b - self.rho0, 0).mean() / self.rho0
        active = np.abs(self.a_ii) > TINY
        solved = (self.rho0 - advected - b) / np.where(active, self.a_ii, 1)
        return np.where(active, np.maximum(0, (1 - omega) * p + omega * solved), 0.0), error

    def solve(self, v, p, iterations, tolerance=0.0, omega=0.5):
        """(p, iterations made, compression): ``iterations`` of them, or as many as the tolerance wants (at least 2)."""
        advected = self.advected(v)
        for made in range(1, iterations + 1):
            p, error = self.iterate(advected, p, omega)
            if made >= 2 and tolerance > 0 and error <= tolerance:
                break
        return p, made, error


def xsph(pressure, v, strength):
    """v_i + ε Σ_j 2m/(ρ_i + ρ_j) (v_j − v_i) W_ij, symmetric."""
    weight = 2 * pressure.mass / (pressure.rho[:, None] + pressure.rho[None]) * pressure.w
    return v + strength * np.einsum("ij,ija->ia", weight, v[None] - v[:, None])


def pairs_within(x, h, period=None):
    """(i, j, r) of all pairs i < j closer than 1.001 ``h``: on a lattice some lie at exactly one."""
    r = np.linalg.norm(differences(x, x, period), axis=2)
    i, j = np.nonzero(np.triu(r < 1.001 * h, 1))
    return i, j, r[i, j]


def pair_correction(x, bonds, strength, two_sided=False, period=None):
    """Σ over bonds of −strength·D_ij·x_ij/|x_ij| for i and the opposite for j; ``strength`` a number or one per bond.

    Springs: strength Δt k/m, position-based: k/(2Δt); the velocity correction [m/s] either way.
    """
    i, j, rest = bonds
    d = x[i] - x[j]
    if period is not None:
        d = d - np.where(np.isfinite(period), period, 0) * np.round(d / np.asarray(period, float))
    r = np.linalg.norm(d, axis=1)
    stretch = r - rest if two_sided else np.maximum(r - rest, 0)
    pull = (strength * stretch / np.where(r > 0, r, 1))[:, None] * d
    result = np.zeros_like(x)
    np.add.at(result, i, -pull)
    np.add.at(result, j, pull)
    return result


def normalised(bonds, count):
    """3/max(S_i, S_j) per bond."""
    i, j, _ = bonds
    members = np.bincount(np.concatenate([i, j]), minlength=count)
    return 3 / np.maximum(members[i], members[j])


def rotation_of(a):
    """Rotation of the polar decomposition, determinant +1, by singular values."""
    u, _, vt = np.linalg.svd(a)
    turn = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    return u @ turn @ vt


def regions_of(x, x0, bonds):
    """For every region (a particle and those it is bonded to; at least four) its number, members and their goals."""
    i, j, _ = bonds
    member = np.eye(len(x), dtype=bool)
    member[i, j] = member[j, i] = True
    for number in range(len(x)):
        inside = np.nonzero(member[number])[0]
        if len(inside) >= 4:
            s, s0 = x[inside].mean(0), x0[inside].mean(0)
            turn = rotation_of((x[inside] - s).T @ (x0[inside] - s0))
            yield number, inside, (x0[inside] - s0) @ turn.T + s


def matching_goals(x, x0, bonds, lattice=True):
    """Goals of shape matching: the mean over the regions a particle is in (``lattice``), or its own region's."""
    goals, count = np.zeros_like(x), np.zeros(len(x))
    for number, inside, wanted in regions_of(x, x0, bonds):
        those = inside if lattice else [number]
        goals[those] += wanted if lattice else wanted[inside == number]
        count[those] += 1
    return np.where(count[:, None] > 0, goals / np.maximum(count, 1)[:, None], x)


def matching_by_region(x, x0, bonds, lattice=True):
    """Displacements of shape matching that add up to nothing, region by region.

    lattice: every region moves all its n members by 1/n of the way to their goals. Else it moves the particle it belongs to
    all the way, and all its members back by what their centre gained.
    """
    move = np.zeros_like(x)
    for number, inside, wanted in regions_of(x, x0, bonds):
        if lattice:
            move[inside] += (wanted - x[inside]) / len(inside)
        else:
            own = (wanted - x[inside])[inside == number][0]
            move[number] += own
            move[inside] -= own / len(inside)
    return move


@dataclass
class Setting:
    """A step's constants."""

    mass: float
    rho0: float
    h: float
    dt: float
    gravity: tuple = (0.0, 0.0, 0.0)
    iterations: int = 5
    tolerance: float = 0.0
    warm: float = 0.5
    xsph: float = 0.0


def step(x, v, p, s, correction=None, walls=NONE, period=None):
    """One step: (x, v, p, iterations made). ``correction``: function of x that gives velocities to add [m/s]."""
    state = Pressure(x, s.mass, s.rho0, s.h, s.dt, walls, period)
    v = v + s.dt * np.asarray(s.gravity)
    if correction is not None:
        v = v + correction(x)
    if s.xsph:
        v = xsph(state, v, s.xsph)
    p, made, _ = state.solve(v, s.warm * p, s.iterations, s.tolerance)
    v = v + s.dt * state.force(p)
    return x + s.dt * v, v, p, made
