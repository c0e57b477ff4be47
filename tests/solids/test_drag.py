"""Moving things by hand: they travel, they push, they never jump, and the scene follows."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.errors import SceneError
from viscoil.scene.load import load
from viscoil.scene.parts import Emitter, Solid
from viscoil.simulate import Simulation
from viscoil.solids.assembly import rotation_matrix
from viscoil.solids.drag import as_matrix, axis_and_angle, degrees_of, drag, limits, turned

D = 0.05
UNHURRIED = (1e9, 1e9)


def paddle_scene(**changes):
    """A shallow pool with an upright paddle in it."""
    scene = box_scene(D, (16, 6, 8), **changes)
    shape = {"type": "box", "size": (0.1, 0.6, 0.3), "position": (0.2, 0.35, 0.2)}
    scene.solid.append(Solid(name="paddle", shape=shape))
    return scene


def settled(scene, frames=5):
    sim = Simulation(scene, "cpu")
    for _ in range(frames):
        sim.advance_frame()
    return sim


# --- the way ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "degrees", [(0, 0, 0), (10, 20, 30), (-170, 40, 95), (0, 90, 0), (30, 90, 0), (12, -90, 0), (180, 0, 0), (0, 180, 0)]
)
def test_angles_and_matrices_are_two_ways_to_say_the_same(degrees):
    matrix = rotation_matrix(degrees)
    assert np.allclose(as_matrix(degrees), matrix, atol=1e-14)
    assert np.allclose(rotation_matrix(degrees_of(matrix)), matrix, atol=1e-12)
    axis, angle = axis_and_angle(matrix)
    assert np.allclose(turned(axis, angle), matrix, atol=1e-7), "half turns included"


def test_a_way_begins_and_ends_where_it_should_and_turns_evenly():
    start, target = (np.eye(3), np.zeros(3)), (rotation_matrix((0, 90, 0)), np.array([1.0, 0, 0]))
    way = drag(2.0, start, target, 4.0, UNHURRIED, 0.1)
    assert way.end == 6.0
    for time, share in ((0.0, 0.0), (2.0, 0.0), (3.0, 0.25), (5.0, 0.75), (6.0, 1.0), (9.0, 1.0)):
        rotation, position = way.pose(time)
        assert np.allclose(position, [share, 0, 0])
        assert np.allclose(rotation, rotation_matrix((0, 90 * share, 0)), atol=1e-12)


def test_a_way_takes_as_long_as_the_limits_ask():
    here = (np.eye(3), np.zeros(3))
    assert drag(0.0, here, (np.eye(3), np.array([3.0, 0, 0])), 0.1, (2.0, 9.0), 1.0).end == pytest.approx(1.5)
    turn = (rotation_matrix((0, 0, 90)), np.zeros(3))
    assert drag(0.0, here, turn, 0.1, (2.0, 9.0), 4.0).end == pytest.approx(np.pi / 2 * 4 / 2), "its far points are as fast"
    assert drag(0.0, here, turn, 0.1, (1e9, 0.5), 0.0).end == pytest.approx(np.pi)
    assert drag(1.0, here, here, 0.25, (2.0, 9.0), 1.0).end == pytest.approx(1.25)


def test_limits_follow_the_time_step():
    scene = box_scene(D)
    assert limits(scene) == pytest.approx((0.5 * D / 0.004, 0.125 / 0.004))
    scene.time.step = 0.008
    assert limits(scene)[0] == pytest.approx(0.5 * D / 0.008)
    scene.time.cfl = 0.4
    assert limits(scene)[0] == pytest.approx(0.4 * D * 32 / 0.016)
    scene.time.min_step = 0.004
    assert limits(scene)[0] == pytest.approx(0.4 * D / 0.004)


# --- solids ----------------------------------------------------------------------------------------------------------


def test_a_dragged_paddle_pushes_the_fluid_and_keeps_it_out():
    sim = settled(paddle_scene())
    before = sim.metrics()["momentum_x"]
    arrival = sim.move_solid("paddle", position=(0.5, 0.35, 0.2), over=0.15)
    assert arrival == pytest.approx(sim.time + 0.15)
    largest = before
    inside = 0
    while sim.time < arrival + 0.05:
        sim.step()
        largest = max(largest, sim.metrics()["momentum_x"])
        inside += int((sim.world.solids.distance(1, sim.frame()["position"]) < 0).sum())
    mass = 1000 * D**3 * sim.particles
    assert largest > 0.05 * mass * 2.0, "a good part of the fluid takes on the paddle's 2 m/s"
    assert inside == 0
    rotation, position = sim.world.solids.pose(1, sim.time)
    assert np.allclose(position, [0.5, 0.35, 0.2]) and np.allclose(rotation, np.eye(3))


def test_the_fluid_feels_a_velocity_not_a_place():
    """The same way, slowly: far less momentum. A solid that jumped would not know the difference."""
    peaks = []
    for over in (0.1, 1.0):
        sim = settled(paddle_scene())
        arrival = sim.move_solid(1, position=(0.4, 0.35, 0.2), over=over)
        peak = 0.0
        while sim.time < arrival:
            sim.advance_frame()
            peak = max(peak, sim.metrics()["momentum_x"])
        peaks.append(peak)
    assert peaks[0] > 3 * peaks[1] > 0


def test_a_wild_drag_is_slowed_down_and_nothing_explodes():
    sim = settled(paddle_scene())
    begin = sim.time
    arrival = sim.move_solid("paddle", position=(0.7, 0.35, 0.2), rotation=(0, 60, 20))
    assert arrival - begin > 0.5 / limits(sim.scene)[0]
    top = 0.0
    while sim.time < arrival:
        report = sim.step()
        top = max(top, report["speed_max"])
        assert (sim.world.solids.distance(1, sim.frame()["position"]) > 0).all()
    assert sim.metrics()["particles"] == sim.particles and top < 8 * limits(sim.scene)[0]


def test_a_new_target_replaces_the_old_one_without_a_jump():
    sim = settled(paddle_scene(), 1)
    sim.move_solid("paddle", position=(0.6, 0.35, 0.2), over=0.2)
    for _ in range(8):
        sim.step()
    before = sim.world.solids.pose(1, sim.time)[1]
    assert 0.2 < before[0] < 0.6
    sim.move_solid("paddle", rotation=(0, 45, 0), over=0.1)
    assert np.allclose(sim.world.solids.pose(1, sim.time)[1], before)
    while sim.world.solids.moving:
        sim.step()
    rotation, position = sim.world.solids.pose(1, sim.time)
    assert np.allclose(position, [0.6, 0.35, 0.2]), "what the new call leaves out stays wanted"
    assert np.allclose(rotation, rotation_matrix((0, 45, 0)))


def test_a_solid_that_has_arrived_is_at_rest():
    sim = settled(paddle_scene(), 1)
    sim.move_solid("paddle", position=(0.25, 0.35, 0.2), over=0.02)
    for _ in range(12):
        sim.step()
    assert not sim.world.solids.moving
    device = sim.world.solids.device
    assert np.array_equal(device.position.to_numpy(), device.position0.to_numpy())
    assert np.array_equal(device.rotation.to_numpy(), device.rotation0.to_numpy())


def test_boundary_samples_travel_with_their_solid():
    scene = paddle_scene()
    scene.solid[1].boundary = "particles"
    sim = settled(scene, 1)
    belongs = sim.world.get("solid") == 1
    before = sim.world.get("position")[belongs].mean(0)
    sim.move_solid(1, position=(0.4, 0.45, 0.2))
    while sim.world.solids.moving:
        sim.step()
    moved = sim.world.get("position")[sim.world.get("solid") == 1].mean(0) - before
    assert np.allclose(moved, [0.2, 0.1, 0], atol=1e-3)


def test_the_scene_follows_and_a_restart_from_it_has_the_same_bits(tmp_path):
    scene = paddle_scene()
    scene.solid[1].motion = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 9.0, "position": (9, 0, 0)}]
    sim = settled(scene, 2)
    sim.move_solid("paddle", position=(0.3, 0.4, 0.2), rotation=(10, 20, 30), over=0.03)
    while sim.world.solids.moving or sim.world.time != sim.frame_index * scene.time.frame_time:
        sim.step()
    paddle = sim.scene.solid[1]
    assert paddle.motion == [] and paddle.shape.position == pytest.approx((0.3, 0.4, 0.2))
    assert paddle.shape.rotation == pytest.approx((10, 20, 30))
    state = sim.state()
    file = tmp_path / "scene.toml"
    file.write_text(sim.scene.to_toml())
    again = Simulation(load(file), "cpu")
    again.restore(state)
    for run in (sim, again):
        run.advance_frame()
    a, b = sim.frame(), again.frame()
    assert all(np.array_equal(a[name], b[name]) for name in a.names)


def test_changes_of_the_scene_do_not_stop_a_drag():
    sim = settled(paddle_scene(), 1)
    sim.move_solid("paddle", position=(0.4, 0.35, 0.2), over=0.1)
    sim.step()
    sim.scene.gravity = (0, -5, 0)
    sim.update()
    while sim.world.solids.moving:
        sim.step()
    assert sim.scene.solid[1].shape.position == pytest.approx((0.4, 0.35, 0.2))


def test_messages_name_what_there_is():
    sim = Simulation(paddle_scene(), "cpu")
    with pytest.raises(SceneError, match=r"no solid 'padle'. Did you mean .paddle."):
        sim.move_solid("padle", position=(0, 0, 0))
    with pytest.raises(SceneError, match="a number from 0 to 1"):
        sim.move_solid(7, position=(0, 0, 0))
    with pytest.raises(SceneError, match="the scene has none"):
        sim.move_emitter(0, position=(0, 0, 0))
    with pytest.raises(SceneError, match="three angles"):
        sim.move_solid(1, rotation=(1, 2))


# --- nozzles ---------------------------------------------------------------------------------------------------------


def test_a_dragged_nozzle_pours_from_its_new_place_in_its_new_direction():
    scene = box_scene(D, (12, 2, 8), gravity=(0, 0, 0))
    ball = {"type": "sphere", "radius": 0.08}
    nozzle = Emitter(shape=ball, material="water", position=(0.1, 0.17, 0.2), direction=(1, 0, 0), speed=1.0)
    scene.emitter.append(nozzle)
    sim = settled(scene, 2)
    arrival = sim.move_emitter(0, position=(0.3, 0.15, 0.2), direction=(0, 0, 2), over=0.1)
    while sim.time < arrival:
        sim.step()
    assert sim.scene.emitter[0].position == pytest.approx((0.3, 0.15, 0.2))
    assert sim.scene.emitter[0].direction == pytest.approx((0, 0, 1))
    known = sim.world.next_id
    before = sim.nozzles[0].released
    while sim.nozzles[0].released == before:
        sim.step()
    frame = sim.frame()
    fresh = frame["id"] >= known
    assert np.allclose(frame["position"][fresh].mean(0)[:2], [0.3, 0.15], atol=0.01)
    assert np.allclose(frame["velocity"][fresh], [0, 0, 1], atol=1e-5), "at rest again: only the flow"
