"""The published conformation projection: its tensors against six-vectors, momentum, convergence, free fall, restart."""

import numpy as np
import pytest
import quadrants as qd

import kit
from viscoil.constraints.conformation import Substances
from viscoil.constraints.tensor_projection import TensorNumbers, Tensors, prepare, velocity_changes, velocity_multipliers
from viscoil.errors import SceneError
from viscoil.particles import Flag, Floats, Matrices, Particles, Uploaded, allocate_array, mat3, vec3
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solids.assembly import SolidSet
from viscoil.solids.sdf import Parts, Solids
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.rotation import rotation_of
from viscoil.validation import shear_wave

D, DT = 0.1, 0.01
PAPER = {"mode": "paper"}


def block(solver, cells=(8, 8, 8), **changes):
    size = [n * 0.025 for n in cells]
    values = {
        "spacing": 0.025, "time": {"frames": 10, "frame_time": 0.016, "steps_per_frame": 4}, "gravity": (0, 0, 0),
        "solver": {"method": "dcpbd_jacobi", "compliance": 0.0, "relaxation_time": 0.0, **solver},
        "material": {"m": {"density": 1000, "viscosity": 1000}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


# --- one iteration against the paper's own notation ---------------------------------------------------------------------
@qd.kernel
def _iterate(
    left: Flag, p: Particles, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, m: Substances,
    c: TensorNumbers, solids: Solids, parts: Parts, clear: Floats, s: Tensors,
):  # fmt: skip
    prepare(p, p.position, n, near, torus, h, c, s, False)
    velocity_multipliers(p, p.position, n, dt, near, torus, h, m, c, s, False)
    velocity_changes(p, p.position, n, dt, near, torus, h, 0.01, 0, solids, parts, clear, c, s, left, False)


class Projection:
    """A shaken block and one velocity iteration on it."""

    def __init__(self, support=2.3, cells=(5, 5, 5), **numbers):
        self.h = support * D
        self.x = kit.lattice(cells, D, 0.2, seed=5)
        self.n = len(self.x)
        self.p = kit.make_particles(self.x, volume=np.full(self.n, D**3))
        self.near = kit.search(self.x, self.h, particles=self.p)
        usual = {"compliance": 0.0, "beta": 5.0, "on_particle": 0, "corrected": 0, "literal": 0, "contact": 0}
        self.c = Uploaded(TensorNumbers).set(**{**usual, **numbers})
        vectors, matrices = ("u", "aim", "shift", "change", "weight", "products", "partial"), ("multiplier", "force", "inverse")
        self.s = Tensors(
            **{name: allocate_array(vec3, self.n) for name in vectors},
            **{name: allocate_array(mat3, self.n) for name in matrices},
            scalars=allocate_array(qd.f32, 4),
        )
        self.solids = SolidSet([])

    def __call__(self, u):
        """(Δu, |C|) of one iteration from u and Λ = 0."""
        self.s.multiplier.fill(0)
        self.s.u.from_numpy(np.asarray(u, np.float32))
        m = Substances(**{name: allocate_array(qd.f32, 1) for name in Substances.__dataclass_fields__})
        left = qd.ndarray(qd.i32, ())
        clear = allocate_array(qd.f32, self.n)
        _iterate(
            left, self.p, self.n, DT, self.near.list, self.near.torus, self.h, m, self.c, self.solids.device,
            self.solids.parts, clear, self.s,
        )  # fmt: skip
        return self.s.u.to_numpy().astype(float) - u, self.s.products.to_numpy()[:, 0].astype(float)


def six_vector_jacobian(x, h):
    """J (6n, 3n) of eqs. 10 and 13, and the neighbours of each particle."""
    g = D**3 * kit.cubic_gradient(kit.differences(x), h)
    n = len(x)
    rows = np.zeros((n, n, 6, 3))
    gx, gy, gz = (g[..., a] for a in range(3))
    rows[..., 0, 0], rows[..., 1, 1], rows[..., 2, 2] = 2 * gx, 2 * gy, 2 * gz
    rows[..., 3, 0], rows[..., 3, 1] = gy, gx
    rows[..., 4, 0], rows[..., 4, 2] = gz, gx
    rows[..., 5, 1], rows[..., 5, 2] = gz, gy
    own = -rows.sum(1)
    rows[np.arange(n), np.arange(n)] = own
    count = ((g**2).sum(-1) > 0).sum(1)
    return DT * rows.transpose(0, 2, 1, 3).reshape(6 * n, 3 * n), count


@pytest.mark.parametrize("literal", [0, 1])
def test_one_iteration_is_the_six_vector_formula(literal):
    """Eqs. 11 and 12 with explicit matrices; equal α on all rows when literal, twice as much on the diagonal otherwise."""
    alpha = 0.02
    projection = Projection(compliance=alpha, on_particle=literal, literal=literal)
    u = np.random.default_rng(0).normal(size=projection.x.shape)
    j, count = six_vector_jacobian(projection.x, projection.h)
    a = np.tile([alpha / DT] * 6 if literal else [2 * alpha] * 3 + [alpha] * 3, projection.n)
    multiplier = -(j @ u.ravel()) / ((j**2).sum(1) + a)
    relaxation = 5 / np.maximum(count, 6)
    if literal:
        expected = relaxation[:, None] * (j.T @ multiplier).reshape(-1, 3)
    else:
        expected = (j.T @ (np.repeat(relaxation, 6) * multiplier)).reshape(-1, 3)
    change, _ = projection(u)
    assert np.abs(change - expected).max() < 1e-4 * np.abs(expected).max()


def test_rigid_motion_is_no_strain():
    corrected, plain = Projection(corrected=1), Projection(corrected=0)
    rng = np.random.default_rng(1)
    scale = corrected(rng.normal(size=corrected.x.shape))[1].mean()
    shift = np.tile([0.3, -1.0, 2.0], (corrected.n, 1))
    turn = np.cross([0.5, 1.0, -0.4], corrected.x)
    assert corrected(shift)[1].max() == 0 and plain(shift)[1].max() == 0
    assert corrected(turn)[1].max() < 1e-5 * scale
    assert plain(turn)[1].max() > 0.01 * scale, "plain gradients take the turning surface for strain"


@qd.kernel
def _rotations(a: Matrices, n: qd.i32, out: Matrices):
    for i in range(n):
        out[i] = rotation_of(a[i])


def test_rotation_of_a_neighbourhood():
    """Against the singular value decomposition, up to a turn of a radian and for neighbours in a plane."""
    rng = np.random.default_rng(2)
    a, expected = [], []
    for k in range(200):
        axis = rng.normal(size=3)
        axis *= rng.uniform(0, 1) / np.linalg.norm(axis)
        cross = np.cross(np.eye(3), axis)
        angle = np.linalg.norm(axis)
        turn = np.eye(3) - np.sin(angle) / angle * cross + (1 - np.cos(angle)) / angle**2 * cross @ cross
        points = rng.normal(size=(30, 3)) * (1, 1, 0.02 if k % 2 else 1)
        moved = points @ turn.T + 0.05 * rng.normal(size=points.shape) * (k % 4 > 1)
        u, _, vt = np.linalg.svd(moved.T @ points)
        a.append(moved.T @ points)
        expected.append(u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt)
    source, target = allocate_array(mat3, 200), allocate_array(mat3, 200)
    source.from_numpy(np.array(a, np.float32))
    _rotations(source, 200, target)
    assert np.abs(target.to_numpy() - np.array(expected)).max() < 1e-4


# --- convergence ------------------------------------------------------------------------------------------------------
def largest_eigenvalues(support, cells=12):
    """(with D⁻¹, with D⁻¹ and 1/n on the particle) of M⁻¹Jᵀ D⁻¹J for a block, plain gradients, by power iteration."""
    x = kit.lattice((cells,) * 3, 1.0)
    reach = int(support) + 1
    grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    r = np.linalg.norm(grid, axis=1)
    grid = grid[(r > 0) & (r < support * (1 - 1e-6))]
    cell = np.round(x - 0.5).astype(int)
    other = cell[:, None] + grid
    i, k = np.nonzero(((other >= 0) & (other < cells)).all(-1))
    j = np.ravel_multi_index(tuple(other[i, k].T), (cells,) * 3)
    g = kit.cubic_gradient(-grid[k].astype(float), support)
    n, starts = len(x), np.searchsorted(i, np.arange(len(x)))
    gather = lambda values: np.add.reduceat(values, starts)  # noqa: E731
    e = gather(g**2) + gather(g) ** 2
    diagonal = e[:, :, None] + e[:, None]
    count = np.bincount(i, minlength=n)
    found = []
    for on_particle in (False, True):
        v = np.random.default_rng(0).normal(size=(n, 3))
        for _ in range(50):
            v /= np.linalg.norm(v)
            gradient = gather((v[j] - v[i])[:, :, None] * g[:, None])
            t = -(gradient + gradient.transpose(0, 2, 1)) / diagonal
            v = -gather(np.einsum("kab,kb->ka", t[i] + t[j], g))
            v = v / count[:, None] if on_particle else v
        found.append(np.linalg.norm(v))
    return found, len(grid)


# Largest stable β on 12³ particles: β/n_i on the particle, one global factor. Earlier trials of the method found the same but
# for a support of 3, where 9.6 and 11.1 came from lists in which rounding left 101 of 92 or 122 neighbours.
TABLE = {2.0: (4.4, 6.6), 2.3: (8.4, 11.3), 2.5: (9.8, 13.7), 3.0: (7.7, 9.0)}


@pytest.mark.parametrize("support", TABLE)
def test_relaxation_stays_below_the_limit(support):
    (constraint, literal), neighbours = largest_eigenvalues(support)
    on_particle, everywhere = 2 / literal, 2 * neighbours / constraint
    assert (on_particle, everywhere) == pytest.approx(TABLE[support], rel=0.07)
    sim = Simulation(block({"support": support, "iterations": 1, "gradient_correction": "none"}, cells=(12, 12, 12)), "cpu")
    sim.step()
    estimate = float(sim.solver.tensors.scalars.to_numpy()[0])
    assert 0.9 * constraint < estimate < 1.01 * constraint
    assert 1.2 / estimate * constraint < 1.4


def test_published_beta_diverges_at_two_spacings():
    """β = 5 lies above the limit of 4.4 there: random motion grows. The estimated factor calms it."""
    energies = {}
    for name, solver in {"published": PAPER, "estimated": {}}.items():
        sim = Simulation(block({"support": 2.0, "velocity_iterations": 60, **solver}), "cpu")
        noise = np.random.default_rng(0).normal(size=(sim.particles, 3))
        sim.world.set("velocity", 0.01 * noise)
        before = sim.frame()["velocity"].astype(float)
        sim.solver.step(sim.world, 0.004)
        after = sim.frame()["velocity"].astype(float)
        energies[name] = (after**2).sum() / (before**2).sum()
    assert energies["estimated"] < 0.7 and energies["published"] > 10


# --- whole steps ------------------------------------------------------------------------------------------------------
def momentum_error(solver):
    sim = Simulation(block(solver), "cpu")
    rng = np.random.default_rng(0)
    sim.world.set("velocity", rng.normal(size=(sim.particles, 3)) * 0.1 + 0.03)
    before = sim.frame()["velocity"].astype(float)
    sim.advance_frame()
    after = sim.frame()["velocity"].astype(float)
    return np.abs(after.sum(0) - before.sum(0)).max() / np.linalg.norm(before, axis=1).sum()


def test_momentum_needs_relaxation_on_the_multiplier():
    assert momentum_error({}) < 1e-5
    assert momentum_error({"relaxation": "multiplier", "beta": 5.0}) < 1e-5
    assert momentum_error(PAPER) > 1e-3


def acceleration(solver):
    """Of a free elastic block that is stretched unevenly inside [m/s²]."""
    scene = block({"compliance": 0.01, "relaxation_time": float("inf"), **solver}, gravity=(0, -9.81, 0))
    sim = Simulation(scene, "cpu")
    height = sim.world.get("position")[:, 1]
    stretch = 1 + 0.1 * (height - height.min()) / np.ptp(height)
    sim.world.set("conformation", stretch[:, None, None] * np.eye(3))
    for _ in sim.frames(5):
        pass
    return sim.frame()["velocity"].astype(float).mean(0) / sim.time


def test_a_free_elastic_block_falls_with_g():
    assert acceleration({}) == pytest.approx((0, -9.81, 0), abs=0.0981)
    assert abs(acceleration(PAPER)[1] + 9.81) > 0.5


@pytest.mark.parametrize("fluid", ["Newtonian", "Oldroyd-B"])
def test_materials_mean_what_they_say(fluid):
    """A shear wave decays as its closed form says; the literal variant has a tenth of the stiffness, and its metrics tell."""
    lam, whole, solvent = shear_wave.FLUIDS[fluid]
    errors = {}
    for mode in ("corrected", "paper"):
        scene = shear_wave.scene((lam, whole, solvent), 12, 1 / 240, 12, jitter=0.0)
        scene["solver"] = {"method": "dcpbd_jacobi", "mode": mode}
        sim = Simulation(Scene(**scene), "cpu")
        t, measured = shear_wave.decay(sim)
        exact = shear_wave.amplitude(t, lam, whole / 1000, solvent / 1000, 2 * np.pi / shear_wave.LENGTH)
        errors[mode] = np.abs(measured - exact).max()
        assert (sim.metrics()["viscosity_share"] > 0.9) is (mode == "corrected")
    assert errors["corrected"] < 0.1 and errors["paper"] > 0.3


def test_metrics_tell_what_is_missing():
    few = Simulation(block({"compliance": 0.001, "velocity_iterations": 2, "iterations": 2}, gravity=(0, -9.81, 0)), "cpu")
    many = Simulation(block({"compliance": 0.001, "velocity_iterations": 80, "iterations": 80}, gravity=(0, -9.81, 0)), "cpu")
    rows = []
    for sim in (few, many):
        sim.world.set("velocity", np.random.default_rng(0).normal(size=(sim.particles, 3)) * 0.1)
        sim.step()
        sim.advance_frame()
        rows.append(sim.metrics())
    assert rows[0]["viscosity_share"] < 0.3 and rows[1]["viscosity_share"] > 0.8
    assert rows[1]["residual"] < 0.3 * rows[0]["residual"]
    assert rows[1]["largest_eigenvalue"] > 5 and rows[1]["clamped"] == 0


@pytest.mark.parametrize("solver", [{}, PAPER])
def test_restart_has_the_same_bits(solver):
    def scene():
        floor = [{"friction": "no-slip", "shape": {"type": "plane", "position": (0, -0.1, 0)}}]
        return block({"compliance": 0.01, "relaxation_time": 0.1, **solver}, gravity=(0, -9.81, 0), solid=floor)

    sim = Simulation(scene(), "cpu")
    for _ in sim.frames(4):
        pass
    state = sim.state()
    for _ in sim.frames(7):
        pass
    again = Simulation(scene(), "cpu")
    again.restore(state)
    for _ in again.frames(7):
        pass
    assert sim.frame(["density", "conformation"]).differences(again.frame(["density", "conformation"])) == []


def test_mistakes_are_explained():
    with pytest.raises(SceneError, match="relaxation_time replaces the materials' own only together with compliance"):
        block({"compliance": None, "relaxation_time": 0.1}).check()
    with pytest.raises(SceneError, match="relaxation"):
        block({"relaxation": "both"}).check()
