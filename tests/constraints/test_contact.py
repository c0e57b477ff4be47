"""Contact with solids: friction, corners, moving walls, and nothing that passes through a wall, however fast."""

import numpy as np
import pytest
import quadrants as qd

from kit import make_particles
from viscoil.constraints.contact import contact
from viscoil.particles import Floats, Vectors, allocate_array, vec3
from viscoil.scene.parts import Solid
from viscoil.solids.assembly import SolidSet
from viscoil.solids.sdf import Parts, Solids

D = 0.02
R = D / 2
DT = 0.016


@qd.kernel
def _contact(new: Vectors, old: Vectors, w: Floats, n: qd.i32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    contact(new, old, w, n, radius, number, solids, parts)


def resolve(solids, old, new, times=1):
    """New positions after contact; ``times`` as often as a solver's iterations would."""
    p = make_particles(np.asarray(old, float))
    target = allocate_array(vec3, len(old))
    target.from_numpy(np.asarray(new, np.float32))
    for _ in range(times):
        _contact(target, p.position, p.inverse_mass, len(old), R, len(solids), solids.device, solids.parts)
    return target.to_numpy()


def solids(*items):
    return SolidSet([Solid(**item) for item in items])


def box(size, position=(0, 0, 0), **more):
    return {"shape": {"type": "box", "size": size, "position": position}, **more}


def test_free_particles_are_left_alone():
    x = np.random.default_rng(0).uniform(-1, 1, (200, 3)) + np.array([0, 3, 0])
    new = (x + np.random.default_rng(1).uniform(-0.5, 0.5, x.shape)).astype(np.float32)
    assert np.array_equal(resolve(solids({"shape": {"type": "plane"}}), x, new), new)


@pytest.mark.parametrize("friction, kept", [(0.0, 1.0), (0.5, None), ("no-slip", 0.0)])
@pytest.mark.parametrize("speed", [0.02, 0.3])
def test_friction(friction, kept, speed):
    """Pressed into a floor by 1 mm: slides on, is slowed by μ·depth, or stops."""
    old, depth, along = np.array([[0.1, R, 0.2]]), 1e-3, speed * DT
    new = resolve(solids({"shape": {"type": "plane"}, "friction": friction}), old, old + np.array([along, -depth, 0]))
    slipped = (new - old)[0]
    assert slipped[1] == pytest.approx(0, abs=1e-6)
    expected = max(along - 0.5 * depth, 0) if kept is None else kept * along
    assert slipped[0] == pytest.approx(expected, abs=2e-6)
    assert slipped[2] == pytest.approx(0, abs=1e-7)


def test_friction_needs_pressure():
    old = np.array([[0.1, R + 0.01, 0.2]])
    new = resolve(solids({"shape": {"type": "plane"}, "friction": "no-slip"}), old, old + np.array([0.003, -0.001, 0]))
    assert np.allclose(new - old, [0.003, -0.001, 0], atol=1e-6)


@pytest.mark.parametrize("friction, dragged", [(0.0, 0.0), (0.5, 0.5e-3), ("no-slip", 0.1 * DT)])
def test_a_moving_belt_drags(friction, dragged):
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (0.1, 0, 0)}]
    belt = solids(box((2, 1, 2), (0, -0.5, 0), friction=friction, motion=motion, interpolation="linear"))
    belt.place(0.3, 0.3 + DT)
    old = np.array([[0.1, R, 0.2]])
    new = resolve(belt, old, old + np.array([0, -1e-3, 0]))
    assert np.allclose(new - old, [dragged, 0, 0], atol=2e-6)


def test_a_turning_drum_carries_with_it():
    motion = [{"time": 0, "rotation": (0, 0, 0)}, {"time": 1, "rotation": (0, 0, 90)}]
    shape = {"type": "cylinder", "radius": 0.5, "height": 1, "rotation": (90, 0, 0)}
    drum = solids({"shape": shape, "container": True, "friction": "no-slip", "motion": motion, "interpolation": "linear"})
    drum.place(0.2, 0.2 + DT)
    old = np.array([[0.0, -0.5 + R, 0.0]])
    new = resolve(drum, old, old + np.array([0, -1e-4, 0]))
    assert new[0, 0] == pytest.approx((0.5 - R) * np.sin(np.pi / 2 * DT), rel=2e-3)
    assert np.linalg.norm(new[0, :2]) == pytest.approx(0.5 - R, abs=1e-5)


def test_inner_corners_resolve_all_faces_at_once():
    tank = solids(box((1, 1, 1), container=True))
    rng = np.random.default_rng(2)
    for signs in np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).T.reshape(-1, 3):
        old = signs * (0.5 - R - rng.uniform(0, 2 * D, (100, 3)))
        new = resolve(tank, old, old + signs * rng.uniform(0, 0.8 * D, (100, 3)))
        assert np.all(np.abs(new) <= 0.5 - R + 1e-3 * R)


def test_containers_hold_everything():
    """Every shape inside-out, every particle shot at its wall at any speed."""
    rng = np.random.default_rng(3)
    for shape in (
        {"type": "box", "size": (0.5, 0.4, 0.3)},
        {"type": "sphere", "radius": 0.25},
        {"type": "capsule", "radius": 0.2, "height": 0.3},
        {"type": "cylinder", "radius": 0.2, "height": 0.5}, {"type": "cone", "radius": 0.3, "top_radius": 0.1, "height": 0.5},
        {"type": "torus", "radius": 0.3, "tube": 0.15},
    ):  # fmt: skip
        tank = solids({"shape": {**shape, "rotation": (10, 20, 30)}, "container": True})
        x = rng.uniform(-0.5, 0.5, (6000, 3))
        old = x[tank.distance(0, x) > R]
        assert len(old) > 100
        flight = rng.normal(size=old.shape)
        flight *= rng.uniform(0, 1.0, (len(old), 1)) / np.linalg.norm(flight, axis=1, keepdims=True)
        new = resolve(tank, old, old + flight, times=3)
        left = tank.distance(0, new)
        assert left.min() > 0.5 * R, shape["type"]
        assert (left > 0.999 * R).mean() > 0.98, shape["type"]


THICKNESS = [0.5 * D, D]
SPEEDS = [0.5, 2.0, 10.0, 50.0]


@pytest.mark.parametrize("thickness", THICKNESS)
@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("friction", [0.0, "no-slip"])
def test_nothing_tunnels_through_a_thin_wall(thickness, speed, friction):
    wall = solids(box((4, thickness, 4), friction=friction))
    rng = np.random.default_rng(4)
    n = 3000
    old = np.stack(
        [rng.uniform(-1, 1, n), thickness / 2 + R + rng.uniform(0, 1, n) ** 3 * speed * DT, rng.uniform(-1, 1, n)], 1
    )
    angle = rng.uniform(0, 1, n) * 1.5
    turn = rng.uniform(0, 2 * np.pi, n)
    direction = np.stack([np.sin(angle) * np.cos(turn), -np.cos(angle), np.sin(angle) * np.sin(turn)], 1)
    new = resolve(wall, old, old + speed * DT * direction, times=4)
    assert new[:, 1].min() > thickness / 2 + 0.9 * R


@pytest.mark.parametrize("thickness", THICKNESS)
@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_a_thin_plate_hits_resting_particles(thickness, speed):
    """Several steps of a plate that sweeps through: everybody is pushed before it."""
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (speed, 0, 0)}]
    plate = solids(box((thickness, 2, 2), motion=motion, interpolation="linear"))
    rng = np.random.default_rng(5)
    x = rng.uniform(-0.5, 0.5, (2000, 3))
    x[:, 0] = thickness / 2 + R + rng.uniform(0, 4 * speed * DT, 2000)
    for k in range(6):
        plate.place(k * DT, (k + 1) * DT)
        x = resolve(plate, x, x, times=3).astype(float)
        assert np.all(x[:, 0] > speed * (k + 1) * DT + thickness / 2 + 0.9 * R), f"step {k}"


@pytest.mark.parametrize("turn", [0.1, 0.45])
def test_a_turning_paddle_lets_nobody_through(turn):
    """A thin blade about z turns by ``turn`` radians per step; particles in its way stay ahead of it."""
    degrees = np.degrees(turn) / DT
    motion = [{"time": 0, "rotation": (0, 0, 0)}, {"time": 1, "rotation": (0, 0, degrees)}]
    blade = solids(box((1.0, D, 1.0), motion=motion, interpolation="linear"))
    rng = np.random.default_rng(6)
    radius, angle = rng.uniform(0.1, 0.45, 1500), rng.uniform(0.15, 1.4, 1500)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), rng.uniform(-0.4, 0.4, 1500)], 1)
    x = x[blade.distance(0, x) > R]
    for k in range(int(1.3 / turn)):
        blade.place(k * DT, (k + 1) * DT)
        x = resolve(blade, x, x, times=3).astype(float)
        angle = (k + 1) * turn
        ahead = x[:, 1] * np.cos(angle) - x[:, 0] * np.sin(angle)
        beyond = np.abs(x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle)) > 0.5
        assert np.all((ahead > 0) | beyond), f"step {k}"
        assert np.all(blade.distance(0, x) > 0.9 * R)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("joined", [False, True], ids=["separate", "union"])
def test_a_cup_of_thin_walls_holds(speed, joined):
    """Sliding along one wall into the next: both must hold."""
    t, side = D, 0.4
    parts = [((side, t, side), (0, -side / 2, 0))]
    for sign in (-1, 1):
        parts.append(((t, side, side + 2 * t), (sign * (side + t) / 2, 0, 0)))
        parts.append(((side + 2 * t, side, t), (0, 0, sign * (side + t) / 2)))
    if joined:
        boxes = [{"type": "box", "size": s, "position": p} for s, p in parts]
        cup = solids({"shape": {"type": "union", "parts": boxes}})
    else:
        cup = solids(*(box(s, p) for s, p in parts))
    rng = np.random.default_rng(7)
    old = rng.uniform(-side / 2 + t, side / 2 - t, (4000, 3))
    direction = rng.normal(size=old.shape)
    direction[:, 1] = -np.abs(direction[:, 1])
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    new = resolve(cup, old, old + speed * DT * direction, times=4)
    inside = np.all(np.abs(new[:, [0, 2]]) < side / 2, axis=1) & (new[:, 1] > -side / 2)
    assert inside.all(), f"{(~inside).sum()} of {len(inside)} left"
    assert min(cup.distance(k, new).min() for k in range(len(cup))) > 0.5 * R


@pytest.mark.parametrize("close", [0.02, 0.1, 0.2, 0.24, 0.3])
def test_who_starts_too_close_to_one_wall_does_not_fly_through_the_next(close):
    """Leaving a wall is no touch, but what comes after it is: squeezed particles are no exception."""
    random = np.random.default_rng(3)
    room = solids(box((0.4, 0.4, 0.4), container=True))
    both = [box((D, 1, 1), (x, 0, 0))["shape"] for x in (-0.2 - D / 2, 0.2 + D / 2)]
    plates = solids({"shape": {"type": "union", "parts": both}})
    old = random.uniform(-0.15, 0.15, (300, 3))
    old[:, 0] = -0.2 + close * R
    new = old + np.array([3.0, 0, 0]) + random.normal(size=old.shape) * 0.05
    for walls in (room, plates):
        x = resolve(walls, old, new)
        assert np.all(np.abs(x[:, 0]) < 0.2 - 0.9 * R)


@pytest.mark.parametrize("deep", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("further", [0.2, 0.9, 5.0])
def test_who_is_pressed_into_a_thin_wall_comes_out_on_his_own_side(deep, further):
    """A wall of one spacing, entered by up to 0.7 of its half: pushed on, short or long, he is still on the near side."""
    wall = solids(box((D, 1, 1), (D / 2, 0, 0)))
    old = np.array([[deep * R, y, 0.1] for y in np.linspace(-0.3, 0.3, 20)])
    new = old + np.array([further * R, 0.3 * R, 0])
    x = resolve(wall, old, new)
    assert np.all(x[:, 0] <= -R * (1 - 1e-4))


def test_sliding_over_an_edge_goes_on():
    """Whom a traced path leads past the end of a board flies on, and not to where the path through it would have led."""
    board = solids(box((0.2, D, 1), (0, 0, 0)))
    x = resolve(board, np.array([[0.0, 0.05, 0]]), np.array([[0.3, -0.2, 0]]))
    assert x[0, 0] > 0.15
    assert x[0, 1] > 0, "not below the board"


def test_a_particle_inside_a_solid_is_put_outside():
    ball = solids({"shape": {"type": "sphere", "radius": 0.1}})
    x = np.random.default_rng(8).normal(size=(500, 3))
    x *= np.random.default_rng(9).uniform(0.02, 0.1, (500, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    new = resolve(ball, x, x)
    assert np.allclose(np.linalg.norm(new, axis=1), 0.1 + R, atol=1e-4)


def test_extreme_numbers_stay_finite():
    floor = solids({"shape": {"type": "plane"}}, box((1, 1, 1), (0, 3, 0)))
    old = np.array([[0.0, 1, 0], [0, 3, 0], [0, R, 0]])
    new = resolve(floor, old, np.array([[0.0, -1e6, 0], [0, 3, 0], [1e6, R, 1e6]]))
    assert np.isfinite(new).all()
    assert new[:, 1].min() > 0.9 * R
