"""Collisions and stickiness of wetting fluid: the formulas exactly, whatever the step, and nothing that passes through."""

import numpy as np
import pytest
import quadrants as qd

from kit import box_scene, make_particles
from viscoil import Simulation
from viscoil.constraints.wet_contact import wet_contact
from viscoil.errors import SceneError
from viscoil.particles import Floats, Particles, Vectors, allocate_array, vec3
from viscoil.scene.parts import Solid
from viscoil.solids.assembly import SolidSet
from viscoil.solids.sdf import Parts, Solids

D = 0.02
R = D / 2
TAU = 1 / 30
DT = TAU / 4
STICK = {"stick_distance": 0.016, "stick_stiffness": 500.0}
FLOOR = {"type": "plane"}


@qd.kernel
def _wet_contact(
    p: Particles, x: Vectors, before: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts, stickiness: Floats,
):  # fmt: skip
    wet_contact(p, x, before, n, dt, radius, number, solids, parts, stickiness, False)


def device(kind, values):
    array = allocate_array(kind, len(values))
    array.from_numpy(np.asarray(values, np.float32))
    return array


def meet(solids, old, new, dt=DT, stickiness=(1.0,), **fields):
    """(x, velocity) of particles that were at ``old`` and would go to ``new``, after one contact."""
    old, new = np.atleast_2d(np.asarray(old, float)), np.atleast_2d(np.asarray(new, float))
    p = make_particles(old, **fields)
    x, before = device(vec3, new), device(vec3, old)
    _wet_contact(p, x, before, len(old), dt, R, len(solids), solids.device, solids.parts, device(qd.f32, stickiness))
    x, before = x.to_numpy().astype(float), before.to_numpy().astype(float)
    return x, (x - before) / dt


def solids(*items):
    return SolidSet([Solid(**item) for item in items])


def floor(**more):
    return solids({"shape": FLOOR, **more})


def box(size, position=(0, 0, 0), **more):
    return {"shape": {"type": "box", "size": size, "position": position}, **more}


# --- stickiness, eq. 12 ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [TAU, TAU / 4, TAU / 20])
def test_the_pull_is_equation_12(dt):
    """Zero where contact begins and at d_stick, k d_stick/4 in the middle; exactly the formula between."""
    d, k = STICK["stick_distance"], STICK["stick_stiffness"]
    gap = np.array([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0, 1.2]) * d + 1e-9
    x = np.stack([np.linspace(0, 1, len(gap)), R + gap, np.zeros(len(gap))], 1)
    new, velocity = meet(floor(**STICK), x, x, dt)
    expected = np.where(gap < d, k * gap * (1 - gap / d), 0)
    assert np.allclose(velocity[:, 1] / dt, -expected, atol=1e-5 * k * d + 4e-9 / dt**2)
    assert velocity[3, 1] / dt == pytest.approx(-k * d / 4, rel=1e-3)
    assert np.abs(velocity[[0, 6, 7]]).max() < 1e-6
    assert np.allclose(new[:, [0, 2]], x[:, [0, 2]], atol=1e-8), "towards the solid and nowhere else"


def test_sticky_fluid_slides():
    """No friction in the range of the pull, not even at a wall without slip."""
    old = np.array([[0.0, R + 0.004, 0.0]])
    _, velocity = meet(floor(**STICK, friction="no-slip"), old, old + np.array([1e-3, 0, 0]))
    assert velocity[0, 0] == pytest.approx(1e-3 / DT, rel=1e-4) and velocity[0, 1] < 0


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0])
def test_a_materials_stickiness_is_a_factor(factor):
    x = np.array([[0.0, R + 0.008, 0.0]] * 2)
    _, velocity = meet(floor(**STICK), x, x, stickiness=(1.0, factor), material=np.array([0, 1]))
    assert velocity[1, 1] == pytest.approx(factor * velocity[0, 1], abs=1e-5)
    assert factor > 0 or np.array_equal(velocity[1], [0, 0, 0])


def test_however_stiff_the_pull_ends_at_contact():
    x = np.array([[0.0, R + 0.004, 0.0]])
    new, _ = meet(floor(stick_distance=0.016, stick_stiffness=1e7), x, x)
    assert new[0, 1] == pytest.approx(R, abs=1e-7)


def test_a_ball_pulls_from_below_too():
    ball = solids({"shape": {"type": "sphere", "radius": 0.1}, **STICK})
    directions = np.random.default_rng(0).normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    gap = 0.3 * STICK["stick_distance"]
    x = directions * (0.1 + R + gap)
    _, velocity = meet(ball, x, x)
    pull = STICK["stick_stiffness"] * gap * 0.7 * DT
    assert np.allclose(velocity, -pull * directions, atol=0.01 * pull)


# --- collision, eqs. 9 to 11 -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("friction, share", [(0.0, 0.0), (0.3, 0.3), (0.9, 0.9), (1.0, 1.0), (2.0, 1.0), ("no-slip", 1.0)])
def test_friction_takes_its_share_in_a_thirtieth_of_a_second(friction, share):
    """Whether that is one step or ten."""
    wall = floor(friction=friction)
    for steps in (1, 4, 10):
        dt = TAU / steps
        velocity = np.array([[0.2, 0.0, -0.1]])
        x = np.array([[0.0, R, 0.0]])
        for _ in range(steps):
            x, velocity = meet(wall, x, x + dt * (velocity + np.array([0, -0.05, 0])), dt)
        assert np.allclose(velocity, (1 - share) * np.array([0.2, 0, -0.1]), atol=1e-5 * steps**1.5), steps
        assert x[0, 1] == pytest.approx(R, abs=1e-6)


@pytest.mark.parametrize("speed", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("inside", [False, True], ids=["slope", "ball"])
def test_one_step_rubs_once(speed, inside):
    """However often the wall is looked at: because it is curved, because rounding finds it again, because one is fast."""
    if inside:
        wall = solids({"shape": {"type": "sphere", "radius": 0.3}, "container": True, "friction": 0.6})
    else:
        wall = floor(friction=0.6, shape={**FLOOR, "position": (0.1, 0.337, 0.2), "rotation": (10, 20, 30)})
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.3, 0.3, (300, 3))
    for _ in range(3):
        x += (R - wall.distance(0, x))[:, None] * wall.normals(0, x, 1e-4)
    along = np.cross(wall.normals(0, x, 1e-4), rng.normal(size=x.shape))
    along *= speed / np.linalg.norm(along, axis=1, keepdims=True)
    _, velocity = meet(wall, x, x + DT * along - 1e-4 * wall.normals(0, x, 1e-4))
    kept = np.linalg.norm(velocity, axis=1) / speed
    assert np.allclose(kept, 0.4 ** (DT / TAU), rtol=0.02 if inside else 1e-3)


@pytest.mark.parametrize("speed", [0.3, 4.0])
def test_one_step_pulls_once(speed):
    old = np.array([[0.0, R + 0.004, 0.0]])
    _, velocity = meet(floor(**STICK), old, old + np.array([speed * DT, 0, 0]))
    assert velocity[0, 1] == pytest.approx(-DT * 500 * 0.004 * 0.75, rel=1e-3)


def test_what_approaches_stops_and_what_leaves_is_let_go():
    wall = floor()
    old = np.array([[0.0, R + 5e-4, 0.0], [0.1, 0.5 * R, 0.0], [0.2, R + 5e-4, 0.0]])
    move = np.array([[1e-3, -1e-3, 0.0], [1e-3, 1e-3, 0.0], [1e-3, -2e-4, 0.0]])
    new, velocity = meet(wall, old, old + move)
    assert np.allclose(velocity[0], [1e-3 / DT, 0, 0], atol=1e-5), "normal part cancelled, tangential part kept"
    assert np.allclose(velocity[1], move[1] / DT, atol=1e-5), "nobody is held back"
    assert new[1, 1] == pytest.approx(R, abs=1e-7)
    assert np.allclose(new[2], (old + move)[2], atol=1e-8), "beyond R nothing happens"


def test_being_put_out_is_no_velocity():
    ball = solids({"shape": {"type": "sphere", "radius": 0.1, "position": (1.0, 2.0, -1.0)}})
    rng, centre = np.random.default_rng(8), np.array([1, 2, -1])
    x = rng.normal(size=(500, 3))
    x *= rng.uniform(0.02, 0.1, (500, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    new, velocity = meet(ball, x + centre, x + centre)
    assert np.allclose(np.linalg.norm(new - centre, axis=1), 0.1 + R, atol=1e-4)
    assert np.abs(velocity).max() < 2e-4, "a few bits of the positions"


def test_far_away_nothing_changes():
    x = np.random.default_rng(0).uniform(-1, 1, (200, 3)) + np.array([0, 3, 0])
    new = (x + np.random.default_rng(1).uniform(-0.5, 0.5, x.shape)).astype(np.float32)
    moved, _ = meet(solids({"shape": FLOOR, **STICK}, {"shape": {"type": "sphere", "radius": 0.1}, **STICK}), x, new)
    assert np.array_equal(moved.astype(np.float32), new)


def test_samples_and_led_particles_are_left_alone():
    x = np.array([[0.0, 0.3 * R, 0.0]] * 3)
    new, _ = meet(floor(), x, x, inverse_mass=np.array([0.0, -1.0, 1.0]))
    assert np.allclose(new[:, 1], [0.3 * R, 0.3 * R, R], atol=1e-8)


# --- walls that move -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("friction, share", [(0.0, 0.0), (0.5, 0.5), ("no-slip", 1.0)])
def test_a_belt_carries(friction, share):
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (0.1, 0, 0)}]
    belt = solids(box((2, 1, 2), (0, -0.5, 0), friction=friction, motion=motion, interpolation="linear"))
    belt.place(0.3, 0.3 + DT)
    old = np.array([[0.1, R, 0.2]])
    _, velocity = meet(belt, old, old + np.array([0, -1e-4, 0]))
    lost = 1 - (1 - share) ** (DT / TAU)
    assert np.allclose(velocity, [[0.1 * lost, 0, 0]], atol=3e-5)


def test_a_piston_pushes_and_lets_go():
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (0, 0.3, 0)}]
    piston = solids(box((2, 1, 2), (0, -0.5, 0), motion=motion, interpolation="linear"))
    piston.place(0.0, DT)
    old = np.array([[0.1, R, 0.2], [0.3, R, 0.2]])
    _, velocity = meet(piston, old, old + np.array([[0, 0, 0], [0, 0.5 * DT, 0]]))
    assert np.allclose(velocity, [[0, 0.3, 0], [0, 0.5, 0]], atol=3e-5)


def test_a_turning_drum_carries_with_it():
    motion = [{"time": 0, "rotation": (0, 0, 0)}, {"time": 1, "rotation": (0, 0, 90)}]
    shape = {"type": "cylinder", "radius": 0.5, "height": 1, "rotation": (90, 0, 0)}
    drum = solids({"shape": shape, "container": True, "friction": "no-slip", "motion": motion, "interpolation": "linear"})
    drum.place(0.2, 0.2 + DT)
    old = np.array([[0.0, -0.5 + R, 0.0]])
    new, _ = meet(drum, old, old + np.array([0, -1e-4, 0]))
    assert new[0, 0] == pytest.approx((0.5 - R) * np.sin(np.pi / 2 * DT), rel=2e-3)
    assert np.linalg.norm(new[0, :2]) == pytest.approx(0.5 - R, abs=1e-5)


def test_a_drum_brings_its_ring_to_its_own_speed():
    """A step at a time over half a turn, pressed on by the turn itself."""
    rate = 90.0  # degrees a second
    motion = [{"time": 0, "rotation": (0, 0, 0)}, {"time": 10, "rotation": (0, 0, 10 * rate)}]
    shape = {"type": "cylinder", "radius": 0.5, "height": 1, "rotation": (90, 0, 0)}
    drum = solids({"shape": shape, "container": True, "friction": 0.3, "motion": motion, "interpolation": "linear"})
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    x = np.stack([np.cos(angle), np.sin(angle), np.zeros(12)], 1) * (0.5 - R)
    velocity = np.zeros_like(x)
    for k in range(120):
        drum.place(k * DT, (k + 1) * DT)
        outward = x * [1, 1, 0] / np.linalg.norm(x[:, :2], axis=1, keepdims=True)
        x, velocity = meet(drum, x, x + DT * (velocity + 0.02 * outward))
    swirl = (x[:, 0] * velocity[:, 1] - x[:, 1] * velocity[:, 0]) / np.linalg.norm(x, axis=1)
    assert np.allclose(swirl, np.radians(rate) * (0.5 - R), rtol=0.02)
    assert np.allclose(np.linalg.norm(x, axis=1), 0.5 - R, atol=0.05 * R)


# --- corners and fast particles --------------------------------------------------------------------------------------
def test_inner_corners_resolve_all_faces_at_once():
    tank = solids(box((1, 1, 1), container=True, friction=0.2))
    rng = np.random.default_rng(2)
    for signs in np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).T.reshape(-1, 3):
        old = signs * (0.5 - R - rng.uniform(0, 2 * D, (100, 3)))
        move = signs * rng.uniform(0, 0.8 * D, (100, 3))
        new, velocity = meet(tank, old, old + move)
        assert np.all(np.abs(new) <= 0.5 - R + 1e-3 * R)
        # Within 0.05 R of the bisector the normal is that of a bevel: a few slide along it.
        assert np.mean(np.all(velocity * signs > -1e-4, axis=1)) > 0.93, "stopped, not thrown back"
        assert np.all(np.linalg.norm(velocity, axis=1) <= np.linalg.norm(move, axis=1) / DT + 1e-4)


def test_a_long_slide():
    """Tracing along a floor gives up after about 48 R: what is faster stops there, rather than passing through something."""
    old = np.array([[0.0, R, 0.0]])
    new, velocity = meet(floor(), old, old + np.array([40 * R, -0.5 * R, 0]))
    assert np.allclose(new, [[40 * R, R, 0]], atol=1e-3 * R) and np.allclose(velocity, [[40 * R / DT, 0, 0]], atol=1e-3)
    new, velocity = meet(floor(), old, old + np.array([100 * R, -0.5 * R, 0]))
    assert new[0, 1] == pytest.approx(R, abs=1e-6) and 40 * R < new[0, 0] < 100 * R


@pytest.mark.parametrize("joined", [False, True], ids=["separate", "union"])
@pytest.mark.parametrize("speed", [0.05, 0.5, 20.0])
def test_a_gutter_of_two_boards_holds(joined, speed):
    """Pushed out of one board into the other: both hold, and nobody gains speed."""
    boards = [
        {"type": "box", "size": (1, 0.1, 1), "position": (sign * 0.3, 0.25, 0), "rotation": (0, 0, sign * 50)}
        for sign in (-1, 1)
    ]
    gutter = solids({"shape": {"type": "union", "parts": boards}}) if joined else solids(*({"shape": b} for b in boards))
    rng = np.random.default_rng(7)
    x = rng.uniform(-0.4, 0.4, (6000, 3)) + np.array([0, 0.5, 0])
    above = x[:, 1] > 1.19 * np.abs(x[:, 0])
    x = x[above & np.all([gutter.distance(k, x) > R for k in range(len(gutter))], axis=0)]
    velocity = rng.normal(size=x.shape) * [1, 1, 0.1] - [0, 1, 0]
    velocity *= speed / np.linalg.norm(velocity, axis=1, keepdims=True)
    fastest = speed
    for _ in range(20):
        x, velocity = meet(gutter, x, x + DT * (velocity - np.array([0, 9.81 * DT, 0])))
        fastest += 9.81 * DT
        assert np.linalg.norm(velocity, axis=1).max() < 1.001 * fastest + 1e-3
        inside = np.all(np.abs(x[:, [0, 2]]) < 0.35, axis=1) & (x[:, 1] < 0.5)
        assert all((gutter.distance(k, x[inside]) > 0.5 * R).all() for k in range(len(gutter)))
        assert (x[inside, 1] > 1.19 * np.abs(x[inside, 0]) - 0.2).all(), "nobody below"


def test_nothing_starts_moving_in_a_corner():
    """At rest in the corner of a tank under gravity: hundred steps on, still at rest."""
    tank = solids(box((1, 1, 1), container=True, friction=0.2, **STICK))
    x, velocity = np.array([[-0.5 + R, -0.5 + R, 0.5 - R]]), np.zeros((1, 3))
    for _ in range(100):
        x, velocity = meet(tank, x, x + DT * (velocity + np.array([0, -9.81 * DT, 0])))
    assert np.abs(velocity).max() < 1e-4 and np.allclose(x, [[-0.5 + R, -0.5 + R, 0.5 - R]], atol=1e-5)


@pytest.mark.parametrize("thickness", [0.5 * D, D])
@pytest.mark.parametrize("speed", [0.5, 2.0, 10.0, 50.0])
@pytest.mark.parametrize("friction", [0.0, "no-slip"])
def test_nothing_tunnels_through_a_thin_wall(thickness, speed, friction):
    wall = solids(box((4, thickness, 4), friction=friction))
    rng = np.random.default_rng(4)
    n = 3000
    height = thickness / 2 + R + rng.uniform(0, 1, n) ** 3 * speed * DT
    old = np.stack([rng.uniform(-1, 1, n), height, rng.uniform(-1, 1, n)], 1)
    angle, turn = rng.uniform(0, 1, n) * 1.5, rng.uniform(0, 2 * np.pi, n)
    direction = np.stack([np.sin(angle) * np.cos(turn), -np.cos(angle), np.sin(angle) * np.sin(turn)], 1)
    new, velocity = meet(wall, old, old + speed * DT * direction)
    assert new[:, 1].min() > thickness / 2 + 0.9 * R
    hit = new[:, 1] > (old + speed * DT * direction)[:, 1] + 1e-5
    assert hit.sum() > 500 and np.abs(velocity[hit, 1]).max() < 1e-4 * speed + 1e-4, "what hits the wall stops"
    along = np.linalg.norm(velocity[hit][:, [0, 2]], axis=1)
    asked = 0 if friction == "no-slip" else speed * np.sin(angle[hit])
    inner = np.all(np.abs(new[hit][:, [0, 2]]) < 1.9, axis=1)
    assert np.allclose(along[inner], np.broadcast_to(asked, along.shape)[inner], atol=2e-3 * speed)


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_a_thin_plate_sweeps_up_everybody(speed):
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (speed, 0, 0)}]
    plate = solids(box((D, 2, 2), motion=motion, interpolation="linear"))
    rng = np.random.default_rng(5)
    x = rng.uniform(-0.5, 0.5, (2000, 3))
    x[:, 0] = D / 2 + R + rng.uniform(0, 4 * speed * DT, 2000)
    velocity = np.zeros_like(x)
    for k in range(6):
        plate.place(k * DT, (k + 1) * DT)
        x, velocity = meet(plate, x, x + velocity * DT)
        assert np.all(x[:, 0] > speed * (k + 1) * DT + D / 2 + 0.9 * R), f"step {k}"
    moving = velocity[:, 0] > 0.5 * speed
    assert moving.sum() > 1500 and np.allclose(velocity[moving], [speed, 0, 0], atol=2e-3 * speed)


@pytest.mark.parametrize("speed", [2.0, 50.0])
def test_containers_hold_everything(speed):
    rng = np.random.default_rng(3)
    for shape in (
        {"type": "box", "size": (0.5, 0.4, 0.3)}, {"type": "sphere", "radius": 0.25},
        {"type": "cylinder", "radius": 0.2, "height": 0.5}, {"type": "torus", "radius": 0.3, "tube": 0.15},
    ):  # fmt: skip
        tank = solids({"shape": {**shape, "rotation": (10, 20, 30)}, "container": True})
        x = rng.uniform(-0.5, 0.5, (4000, 3))
        x = x[tank.distance(0, x) > R]
        velocity = rng.normal(size=x.shape)
        velocity *= speed / np.linalg.norm(velocity, axis=1, keepdims=True)
        for _ in range(3):
            x, velocity = meet(tank, x, x + DT * velocity)
            assert tank.distance(0, x).min() > 0.2 * R, shape["type"]
        assert np.linalg.norm(velocity, axis=1).max() < 1.001 * speed + 1e-3, "nobody gains speed"


@pytest.mark.parametrize("close", [0.02, 0.1, 0.24, 0.3])
def test_who_starts_too_close_to_one_wall_does_not_fly_through_the_next(close):
    random = np.random.default_rng(3)
    old = random.uniform(-0.15, 0.15, (300, 3))
    old[:, 0] = -0.2 + close * R
    new = old + np.array([3.0, 0, 0]) + random.normal(size=old.shape) * 0.05
    plates = [{"type": "box", "size": (D, 1, 1), "position": (x, 0, 0)} for x in (-0.2 - D / 2, 0.2 + D / 2)]
    x, _ = meet(solids({"shape": {"type": "union", "parts": plates}}), old, new)
    assert np.all(np.abs(x[:, 0]) < 0.2 - 0.9 * R)


def test_extreme_numbers_stay_finite():
    both = solids({"shape": FLOOR, **STICK}, box((1, 1, 1), (0, 3, 0), **STICK))
    old = np.array([[0.0, 1, 0], [0, 3, 0], [0, R, 0]])
    new, _ = meet(both, old, np.array([[0.0, -1e6, 0], [0, 3, 0], [1e6, R, 1e6]]))
    assert np.isfinite(new).all() and new[:, 1].min() > 0.9 * R


# --- the keys of scenes ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["stick_distance", "stick_stiffness"])
def test_stickiness_needs_both_numbers(key):
    with pytest.raises(SceneError, match=f"{key} has no effect without .*; expected both"):
        Solid(shape=FLOOR, **{key: 0.01})


def test_stickiness_has_units():
    solid = Solid(shape=FLOOR, stick_distance="5 mm", stick_stiffness="270 1/s²")
    assert (solid.stick_distance, solid.stick_stiffness) == (0.005, 270.0)
    with pytest.raises(SceneError, match="1/s²"):
        Solid(shape=FLOOR, stick_distance="5 mm", stick_stiffness="5 mm")


def test_live_changes_reach_the_device():
    scene = box_scene(solid=[{"shape": FLOOR}])
    sim = Simulation(scene)
    sim.update({"solid.0.stick_distance": 0.004})
    sim.update({"solid.0.stick_stiffness": 300.0})
    device = sim.world.solids.device
    assert device.stick_distance.to_numpy()[0] == pytest.approx(0.004)
    assert device.stick_stiffness.to_numpy()[0] == 300.0
    sim.update({"solid.0.stick_stiffness": 0.0})
    assert sim.world.solids.device.stick_stiffness.to_numpy()[0] == 0.0
