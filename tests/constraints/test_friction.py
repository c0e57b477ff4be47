"""Pair friction: zero for rigid motion, symmetric, dissipative, momentum exactly kept, and the sum it claims to be."""

import numpy as np
import quadrants as qd

import kit
from viscoil.constraints.friction import divergence, friction, pair_factor
from viscoil.particles import Floats, Particles, Vectors, allocate_array, vec3
from viscoil.sph.neighbors import NeighborList, Torus

D, H, C, BULK = 0.1, 0.25, 10.4, 5.0


@qd.kernel
def _apply(
    p: Particles, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, c: qd.f32, b: qd.f32, u: Vectors, nu: Floats,
    bulk: Floats, out: Vectors,
):  # fmt: skip
    for i in range(n):
        bulk[i] = b * nu[i] * divergence(i, near.count[i], u, p.position, p, near, torus, h, 0, 1, False, False)
    for i in range(n):
        out[i] = friction(i, near.count[i], u, p.position, p, near, torus, h, c, nu, bulk, 0, 1, False, False, False)


class Block:
    """A shaken block of fluid and its friction."""

    def __init__(self, viscosity=None):
        self.x = kit.lattice((6, 6, 6), D, 0.25, seed=3)
        self.n = len(self.x)
        self.p = kit.make_particles(self.x, volume=np.full(self.n, D**3))
        self.near = kit.search(self.x, H, particles=self.p)
        self.viscosity = np.ones(self.n) if viscosity is None else viscosity

    def force(self, u):
        vectors, nu = allocate_array(vec3, self.n), allocate_array(qd.f32, self.n)
        bulk, out = allocate_array(qd.f32, self.n), allocate_array(vec3, self.n)
        vectors.from_numpy(np.asarray(u, np.float32))
        nu.from_numpy(np.asarray(self.viscosity, np.float32))
        _apply(self.p, self.n, self.near.list, self.near.torus, H, C, BULK, vectors, nu, bulk, out)
        return out.to_numpy().astype(float)


def test_equals_the_sum_over_all_pairs():
    block = Block(np.random.default_rng(0).uniform(0.5, 2, 216))
    u = np.random.default_rng(1).normal(size=block.x.shape)
    d = kit.differences(block.x)
    r2 = (d**2).sum(-1)
    gradient = D**3 * kit.cubic_gradient(d, H)
    difference = u[:, None] - u[None]
    bulk = BULK * block.viscosity * -(gradient * difference).sum((1, 2))
    mean = (block.viscosity[:, None] + block.viscosity[None]) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        pair = np.where(r2 > 0, C * mean * (difference * d).sum(-1) / r2, 0)
    expected = ((pair + bulk[:, None] + bulk[None])[..., None] * gradient).sum(1)
    assert np.abs(block.force(u) - expected).max() < 1e-4 * np.abs(expected).max()


def test_rigid_motion_meets_no_resistance():
    block = Block()
    scale = np.abs(block.force(np.random.default_rng(1).normal(size=block.x.shape))).max()
    rigid = np.array([0.3, -1, 2]) + np.cross([1.0, 2, -1], block.x)
    assert np.abs(block.force(rigid)).max() < 2e-5 * scale


def test_symmetric_and_dissipative():
    block = Block(np.random.default_rng(0).uniform(0.1, 10, 216))
    a, b = (np.random.default_rng(seed).normal(size=block.x.shape) for seed in (1, 2))
    fa, fb = block.force(a), block.force(b)
    size = np.sqrt(abs((a * fa).sum() * (b * fb).sum()))
    assert abs((a * fb).sum() - (b * fa).sum()) < 1e-4 * size
    assert (a * fa).sum() < 0 and (b * fb).sum() < 0


def test_momentum_is_kept():
    block = Block(np.random.default_rng(0).uniform(0.1, 10, 216))
    force = block.force(np.random.default_rng(1).normal(size=block.x.shape))
    assert np.abs(force.sum(0)).max() < 1e-5 * np.abs(force).sum()
    torque = np.cross(block.x, force).sum(0)
    assert np.abs(torque).max() < 1e-5 * np.abs(force).sum()


def test_alternating_velocities_are_resisted():
    """The tensor form is blind to them; this is why there is another one."""
    block = Block()
    sign = (-1.0) ** np.round(block.x / D - 0.5).sum(1)
    u = np.stack([sign, 0 * sign, 0 * sign], 1)
    smooth = np.stack([np.sin(2 * np.pi * block.x[:, 1] / (6 * D)), 0 * sign, 0 * sign], 1)
    assert -(u * block.force(u)).sum() / (u * u).sum() > -5 * (smooth * block.force(smooth)).sum() / (smooth**2).sum()


def test_pair_factor_is_that_of_a_continuum_within_the_lattice_error():
    for ratio in (2.3, 2.5, 3.0, 3.5):
        assert abs(pair_factor(0.1, 0.1 * ratio, 1e-3) - 10) < 0.6
    assert np.isclose(pair_factor(0.1, 0.25, 1e-3), pair_factor(2.0, 5.0, 8.0), rtol=1e-12), "independent of size"
