"""Boundary samples: where they lie, what they weigh, and that they follow their solid."""

import numpy as np
import pytest

from kit import box_scene, differences
from viscoil.scene.parts import Solid
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solids.assembly import SolidSet
from viscoil.solids.boundary import overlaps, sample_surface, sample_volumes, thin_out
from viscoil.sph.smoothing import CUBIC

D = 0.02
H = 2.3 * D

SHAPES = [
    {"type": "box", "size": (0.3, 0.2, 0.25)},
    {"type": "sphere", "radius": 0.12},
    {"type": "cylinder", "radius": 0.1, "height": 0.2},
    {"type": "capsule", "radius": 0.06, "height": 0.1},
    {"type": "cone", "radius": 0.15, "top_radius": 0.08, "height": 0.2},
    {"type": "torus", "radius": 0.12, "tube": 0.05},
    {"type": "funnel", "top_radius": 0.2, "bottom_radius": 0.08, "height": 0.2, "thickness": 0.012},
    {
        "type": "union",
        "parts": [{"type": "sphere", "radius": 0.1}, {"type": "box", "size": (0.3, 0.08, 0.08), "position": (0.1, 0, 0)}],
    },
]


@pytest.mark.parametrize("fields", SHAPES, ids=lambda s: s["type"])
@pytest.mark.parametrize("container", [False, True])
def test_one_even_layer_below_the_surface(fields, container):
    shape = Solid(shape=fields).shape
    points = sample_surface(shape, D, container)
    solid = SolidSet([Solid(shape=shape, container=container)])
    phi = solid.distance(0, points)
    thin = fields["type"] == "funnel" and not container
    level = -0.9 * 0.006 if thin else -D / 2
    assert np.allclose(phi, level, atol=0.06 * D)
    distances = np.linalg.norm(differences(points), axis=2) + 9 * np.eye(len(points))
    assert distances.min() > 0.899 * D, "nobody too close"
    assert distances.min(1).max() < 1.6 * D, "no holes"
    if not thin:
        # Every place of the level is near a sample: shoot random points onto it.
        probe = np.random.default_rng(0).uniform(-0.3, 0.3, (4000, 3))
        for _ in range(6):
            probe = probe - (solid.distance(0, probe) + D / 2)[:, None] * solid.normals(0, probe, 0.05 * D)
        probe = probe[np.abs(solid.distance(0, probe) + D / 2) < 0.02 * D]
        assert len(probe) > 500
        gap = np.array([np.linalg.norm(points - p, axis=1).min() for p in probe[:800]])
        assert gap.max() < 1.3 * D


def test_volumes_weigh_dense_patches_less():
    """V = 1/ΣW: alone 1/W(0); twice as many samples weigh half each."""
    alone = sample_volumes(np.array([[0.0, 0, 0], [5.0, 0, 0]]), H)
    assert np.allclose(alone, np.pi * H**3 / 15, rtol=1e-4)
    twice = sample_volumes(np.repeat([[0.0, 0, 0], [5.0, 0, 0]], 2, axis=0), H)
    assert np.allclose(twice, alone[0] / 2, rtol=1e-4)


def test_volumes_by_the_cubic_spline():
    """W(0) = 8/(π h³); in a flat layer at two spacings of support Ψ_b/m = 1.43."""
    alone = sample_volumes(np.array([[0.0, 0, 0], [5.0, 0, 0]]), H, CUBIC)
    assert np.allclose(alone, np.pi * H**3 / 8, rtol=1e-4)
    flat = np.stack(np.meshgrid(np.arange(9) * D, [0.0], np.arange(9) * D, indexing="ij"), -1).reshape(-1, 3)
    volume = sample_volumes(flat, 2 * D, CUBIC).reshape(9, 9) / D**3
    assert volume[4, 4] == pytest.approx(1.43, abs=0.01) and volume[0, 0] > 1.9


def test_thin_out_is_the_greedy_choice():
    points = np.random.default_rng(1).uniform(0, 0.2, (400, 3))
    kept: list[np.ndarray] = []
    for p in points.astype(np.float32):
        if all(np.linalg.norm(p - q) >= 0.05 for q in kept):
            kept.append(p)
    assert np.allclose(thin_out(points, 0.05), kept, atol=1e-6)


def test_overlaps_counts_pairs_of_different_owners():
    a = np.stack([np.arange(10) * 0.1, np.zeros(10), np.zeros(10)], 1)
    points = np.concatenate([a, a[3:6] + 0.01, a + 9])
    owner = np.repeat([0, 1, 2], [10, 3, 10])
    assert overlaps(points, owner, 0.02) == [(0, 1, 3)]


@pytest.fixture(scope="module")
def column():
    """Water in a box of boundary samples."""
    n = 9
    solid = {
        "container": True,
        "boundary": "particles",
        "shape": {"type": "box", "size": (n * D,) * 3, "position": (n * D / 2,) * 3},
    }
    fluid = {
        "material": "water",
        "shape": {"type": "box", "size": (n * D, 7 * D, n * D), "position": (n * D / 2, 3.5 * D, n * D / 2)},
    }
    scene = Scene(spacing=D, fluid=[fluid], solid=[solid], time={"frames": 40, "frame_time": 0.016, "steps_per_frame": 4})
    return n, scene, Simulation(scene, device="cpu")


def test_wall_density_of_samples(column):
    """The first layer at a flat wall of samples is as dense as the inside, within a few percent."""
    n, scene, sim = column
    density = sim.frame()["density"].reshape(n, 7, n) / scene.material_named("water").density
    assert density[4, 3, 4] == pytest.approx(1, abs=1e-3)
    floor = density[3:6, 0, 3:6]
    assert np.allclose(floor, 1, atol=0.06) and floor.mean() == pytest.approx(1, abs=0.03)


def test_column_in_samples_comes_to_rest(column):
    n, _, sim = column
    *_, frame = sim.frames(40)
    x = frame["position"]
    assert len(frame) == n * 7 * n
    assert x.min() > 0.099 * D and x[:, [0, 2]].max() < (n - 0.099) * D, "nobody left"
    assert sim.metrics()["speed_max"] < 0.25
    assert sim.metrics()["kinetic_energy"] < 0.02
    assert x[:, 1].max() < 8 * D
    assert x[:, 1].mean() == pytest.approx(3.5 * D, rel=0.1), "it keeps its volume"


def test_samples_follow_a_moving_solid():
    motion = [
        {"time": 0, "position": (0, 0, 0), "rotation": (0, 0, 0)},
        {"time": 1, "position": (0.5, 0, 0), "rotation": (0, 0, 90)},
    ]
    scene = box_scene(D, gravity=(0, 0, 0))
    scene.solid = [
        {
            "boundary": "particles",
            "motion": motion,
            "interpolation": "linear",
            "shape": {"type": "box", "size": (0.1, 0.2, 0.1), "position": (1, 0, 0)},
        }
    ]
    sim = Simulation(scene, device="cpu")
    sim.advance_frame()
    world = sim.world
    mine = world.get("solid") == 0
    assert world.boundary_count == mine.sum() > 50
    rotation, position = world.solids.pose(0, sim.time)
    assert np.allclose(world.get("position")[mine], world.get("rest")[mine] @ rotation.T + position, atol=1e-5)
    spin = np.cross([0, 0, np.pi / 2], world.get("position")[mine] - position)
    assert np.allclose(world.get("velocity")[mine], np.array([0.5, 0, 0]) + spin, atol=0.02)
    assert len(sim.frame()) == 216, "samples are not fluid"


def test_samples_beyond_a_periodic_box_stand_still():
    """A floor longer than the period: its samples outside the box must not be seen to jump by a period."""
    n = 8
    size, middle = (1.5 * n * D, 4 * D, 1.5 * n * D), (n * D / 2, -2 * D, n * D / 2)
    floor = {"boundary": "particles", "shape": {"type": "box", "size": size, "position": middle}}
    domain = {"min": (0, 0, 0), "max": (n * D, 1, n * D), "periodic": "xz"}
    scene = box_scene(D, (n, 4, n), domain=domain, solid=[floor])
    sim = Simulation(scene, device="cpu")
    density = sim.frame()["density"].reshape(n, 4, n)[:, 0, :] / scene.material_named("water").density
    assert np.allclose(density, 1, atol=0.03), "each place of the floor counts once"
    for _ in sim.frames(4):
        pass
    samples = sim.world.get("solid") >= 0
    assert np.abs(sim.world.get("velocity")[samples]).max() == 0
    assert sim.metrics()["retries"] == 0
