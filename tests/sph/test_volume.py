"""The volume estimate against its definition in NumPy, its bias on known bodies, and the metrics it appears in."""

import numpy as np
import pytest

from kit import box_scene, cubic, differences, lattice, periodic_box, spiky
from viscoil.errors import SceneError
from viscoil.particles import allocate_array, qd
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.sph.calibration import calibrate
from viscoil.sph.smoothing import CUBIC
from viscoil.sph.volume import VolumeEstimate
from viscoil.world import World

D = 0.04
H = 2 * D


def by_definition(x, volume, h, w, fluid, box=None):
    """Σ d³/ρ̂ over the fluid; x̂ the mean of fluid within h, all sums over all pairs."""
    d = differences(x, box)
    r = np.linalg.norm(d, axis=2)
    near = (r < 1.0001 * h) & fluid[None, :] & ~np.eye(len(x), dtype=bool)
    middle = -(d * near[..., None]).sum(1) / np.maximum(near.sum(1), 1)[:, None]  # from x_i
    to = d + middle[:, None]
    if box is not None:
        for axis, name in enumerate("xyz"):
            if name in box.periodic:
                period = box.max[axis] - box.min[axis]
                to[..., axis] -= period * np.round(to[..., axis] / period)
    to[np.arange(len(x)), np.arange(len(x))] = 0  # the particle itself has moved there
    density = w(np.linalg.norm(to, axis=2), h) @ volume
    return D**3 * np.where(near.any(1), 1 / density, 1.0)[fluid].sum()


def world_of(x, kernel=CUBIC, support=H, box=None, margin=0.01, **fields):
    world = World(D, support, calibrate(D, support, kernel), [], box, support * (1 + margin))
    n = len(x)
    values = {"position": x, "volume": np.full(n, world.lattice.volume), "material": np.zeros(n), "inverse_mass": np.ones(n)}
    world.add({**values, **fields})
    world.fit_cells()
    world.neighbors.find_all(world.particles.position, world.particles, world.count)
    return world


def estimate(world):
    found = VolumeEstimate(world.capacity)
    found.find_middles(world)
    return found.total(world, allocate_array(qd.f32, world.capacity))


def ball(radius):
    n = int(radius) + 1
    x = lattice((2 * n + 1,) * 3, D)
    x -= x.mean(0)
    return x[np.linalg.norm(x, axis=1) < radius * D]


@pytest.mark.parametrize("kernel, w, support", [(CUBIC, cubic, 2.0), (0, spiky, 2.3)])
@pytest.mark.parametrize("jitter, records", [(0.0, "none"), (0.2, "none"), (0.2, "wide")])
def test_estimate_is_its_definition(kernel, w, support, jitter, records, monkeypatch):
    """With boundary samples of other volumes, a pair far away and a particle alone; in whole cells and in sliced ones."""
    monkeypatch.setenv("VISCOIL_RECORDS", records)
    x = np.concatenate([lattice((7, 8, 6), D, jitter), [[1.0, 0, 0], [1.0 + D, 0, 0], [3.0, 0, 0]]])
    x = x[:-3] if records == "wide" else x  # so far away that there is no memory for slices
    fluid = np.ones(len(x), bool)
    fluid[: 8 * 6] = False  # one side
    volume = np.where(fluid, calibrate(D, support * D, kernel).volume, 0.7 * D**3)
    world = world_of(x, kernel, support * D, volume=volume, solid=np.where(fluid, -1, 0), inverse_mass=fluid.astype(float))
    assert (np.prod(world.neighbors.slices) > 1) == (records == "wide")
    assert estimate(world) == pytest.approx(by_definition(x, volume, support * D, w, fluid), rel=2e-5)


def test_middles_look_beyond_the_list():
    """A surface particle moves in by more than half a spacing: sums over its own neighbours alone would be too small."""
    x = ball(6.2)
    world = world_of(x)
    volume = np.full(len(x), world.lattice.volume)
    found = estimate(world)
    assert found == pytest.approx(by_definition(x, volume, H, cubic, np.ones(len(x), bool)), rel=2e-5)
    assert found / (len(x) * D**3) == pytest.approx(0.960, abs=0.002)


def test_periodic_images():
    n = 8
    box = periodic_box((0, 0, 0), (n * D,) * 3, "xyz")
    full = world_of(lattice((n, n, n), D), box=box)
    assert estimate(full) == pytest.approx((n * D) ** 3, rel=1e-5), "no surface: exactly the volume of the box"
    x = lattice((n, n, n), D, jitter=0.2)
    volume = np.full(n**3, full.lattice.volume)
    expected = by_definition(x, volume, H, cubic, np.ones(n**3, bool), box)
    assert estimate(world_of(x, box=box)) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("margin", [0.01, 0.2])
def test_lattice_does_not_hang_on_rounding(margin):
    """Six neighbours lie at exactly one support: wherever the ball is, they count."""
    x = ball(8.3)
    values = [estimate(world_of(x + place, margin=margin)) for place in ([0, 0, 0], [0.123, 4.567, -0.89])]
    assert np.ptp(values) < 1e-4 * values[0]
    shaken = x + np.random.default_rng(0).uniform(-0.02, 0.02, x.shape) * D
    assert estimate(world_of(shaken)) == pytest.approx(values[0], rel=2e-3), "the first motion changes nothing"


def test_uniform_compression_is_seen():
    x = ball(8.3)
    before, after = estimate(world_of(x)), estimate(world_of(0.99 * x))
    assert after / before == pytest.approx(0.99**3, abs=0.008)


def scene(**changes):
    return box_scene(D, (6, 6, 6), **changes)


def test_metrics_hold_it_when_asked_for():
    """Surfaces and walls take the same 8 % of the particles beside them: half of this block is outside."""
    sim = Simulation(scene(output={"volume": "estimate"}), "cpu")
    first = sim.metrics()["volume"]
    assert first == pytest.approx(0.92 * 216 * D**3, rel=0.02)
    sim.advance_frame()
    assert sim.metrics()["volume"] == pytest.approx(first, rel=0.03)
    for choice in ("none", "auto"):
        sim = Simulation(scene(output={"volume": choice}), "cpu")
        assert "volume" not in sim.metrics(), "the default asks the method, and PBF does not promise its volume"


@pytest.mark.parametrize("boundary", ["distance", "particles"])
def test_walls_look_like_surfaces(boundary):
    """A slab between two plates: those beside a plate count as much as those on a free surface, to a percent of them."""
    n = 8
    size = (n * D, n * D, n * D)
    domain = {"min": (0, -1, 0), "max": (n * D, 1, n * D), "periodic": "xz"}
    plate = {"boundary": boundary, "shape": {"type": "box", "size": (2 * n * D, 4 * D, 2 * n * D)}}
    plates = [{**plate, "shape": {**plate["shape"], "position": (n * D / 2, y, n * D / 2)}} for y in (-2 * D, (n + 2) * D)]
    found = []
    for solid in (plates, []):
        sim = Simulation(box_scene(D, (n, n, n), domain=domain, solid=solid, output={"volume": "estimate"}), "cpu")
        found.append(sim.metrics()["volume"] / np.prod(size))
    beside, free = (n / 2 * (1 - np.array(found))).tolist()  # missing layers at each side
    assert 0.05 < beside < 0.12 and abs(beside - free) < 0.03


def test_an_empty_scene_has_none():
    emitter = {"shape": {"type": "cylinder", "radius": 0.1, "height": 0.1}, "position": (0, 1, 0), "direction": (0, -1, 0),
               "speed": 1.0, "material": "water", "start": 1.0}  # fmt: skip
    sim = Simulation(Scene(spacing=D, emitter=[emitter], output={"volume": "estimate"}), "cpu")
    assert sim.metrics()["volume"] == 0.0


def test_wrong_choices_are_named():
    with pytest.raises(SceneError, match=r"output\.volume"):
        scene(output={"volume": "meshes"})
