"""Rigid bodies on the host: they fall, spin, stack and give way as mechanics says, and start again bit for bit."""

from types import SimpleNamespace

import numpy as np
import pytest

from viscoil.errors import SimulationFailed
from viscoil.scene.parts import Solid
from viscoil.solids.assembly import rotation_matrix
from viscoil.solids.rigid import RigidWorld

DT = 1 / 240
NO_GRAVITY = (0.0, 0.0, 0.0)
DOWN = (0.0, -9.81, 0.0)
FLOOR = {"shape": {"type": "plane"}}


def world(*solids, gravity=DOWN):
    return RigidWorld(SimpleNamespace(gravity=gravity, up="y"), [Solid(**solid) for solid in solids])


def box(size=(0.1, 0.2, 0.3), position=(0, 1, 0), rotation=(0, 0, 0), **body):
    shape = {"type": "box", "size": size, "position": position, "rotation": rotation}
    return {"shape": shape, "body": {"density": 600} | body if "mass" not in body else body}


def run(rigid, time, start=0.0, dt=DT):
    for k in range(round(time / dt)):
        rigid.commit(np.zeros((len(rigid.solid), 6)), start + k * dt, dt)


def angular_momentum(rigid, bulk):
    (rotation,), _ = rigid.poses()
    return rotation @ np.diag(bulk) @ rotation.T @ rigid.twists()[0, 3:]


# --- flying ----------------------------------------------------------------------------------------------------------


def test_a_body_falls_as_the_fluid_does():
    rigid = world(box(velocity=(1, 0, 0)))
    run(rigid, 0.5)
    n = 120
    fallen = -9.81 * DT**2 * n * (n + 1) / 2  # symplectic Euler with the fluid's step
    assert rigid.poses()[1][0] == pytest.approx([0.5, 1 + fallen, 0], abs=1e-12)
    assert rigid.twists()[0] == pytest.approx([1, -9.81 * 0.5, 0, 0, 0, 0], abs=1e-12)


def test_mass_is_density_times_volume_and_the_frame_is_the_shapes():
    rigid = world(box(rotation=(10, 20, 30)), {"shape": {"type": "sphere", "radius": 0.1}, "body": {"mass": 2.0}})
    assert rigid.masses == pytest.approx([3.6, 2.0], rel=1e-12)
    assert rigid.solid == [0, 1]
    assert rigid.poses()[0][0] == pytest.approx(rotation_matrix((10, 20, 30)), abs=1e-14)
    assert rigid.hearts == pytest.approx(np.zeros((2, 3)), abs=1e-15)


@pytest.mark.parametrize("size", [4.0**-9, 4.0**-7, 4.0**-5])
def test_size_is_no_number_of_free_motion(size):
    """Boxes of 0.4 µm and more, pushed and on a hinge with a spring, in steps that MuJoCo makes as they are (rigid.LONGEST)."""

    def moved(size):
        mass, fast, spin, dt = size**3, size**0.5, size**-0.5, DT / 10 * size**0.5
        edges = np.multiply((0.1, 0.2, 0.3), size)
        free = box(edges, (0, size, 0), (10, 20, 30), angular_velocity=(5 * spin, spin, 0))
        hinged = box(edges, (size, size, 0), joint="hinge", axis=(1, 0, 0), anchor=(0, 0.2 * size, 0),
                     stiffness=3 * mass * size, damping=0.2 * mass * size * fast)  # fmt: skip
        rigid = world(free, hinged)
        push = mass * fast * np.concatenate([[0.3, 0.1, 0.0], np.multiply(size, [0.02, 0.0, 0.01])])
        rigid.commit([push, push], 0.0, dt)
        run(rigid, 20 * dt, dt, dt)
        inverse = rigid.predict(21 * dt, dt).inverse[:, :3, :3] * mass
        return rigid.poses()[1] / size, inverse, rigid.masses / mass

    for found, wanted in zip(moved(size), moved(1.0), strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e-5])
def test_what_stands_still_may_be_of_any_size(size):
    """What it would weigh is nothing that MuJoCo has to accept."""
    tank = {"container": True, "shape": {"type": "box", "size": (size,) * 3, "position": (0, size / 2, 0)}}
    plate = {"shape": {"type": "box", "size": (size, size / 10, size), "position": (0, -size, 0)}}
    rigid = world(tank, plate, box(np.multiply((0.1, 0.2, 0.3), size), (0, size / 2, 0)))
    run(rigid, 0.1 * size**0.5, dt=DT / 10 * size**0.5)
    fallen = 9.81 * 0.1**2 / 2
    assert rigid.poses()[1][0] / size == pytest.approx([0, 0.5 - fallen, 0], rel=0.01)


@pytest.mark.parametrize("smaller", [1.0, 1e-2, 1e-4])
def test_a_small_body_beside_a_large_one(smaller):
    """What one weighs does not decide whether the other may be; neither feels the other without touching it."""
    pebble = box(np.multiply((0.1, 0.2, 0.3), smaller), (20, 1, 0), angular_velocity=(0, 3, 0))
    rigid = world(box((10, 10, 10), (0, 1, 0)), pebble)
    run(rigid, 0.1)
    assert rigid.masses == pytest.approx([6e5, 3.6 * smaller**3])
    assert rigid.twists() == pytest.approx(np.array([[0, -0.981, 0, 0, 0, 0], [0, -0.981, 0, 0, 3, 0]]), abs=1e-9)


def test_a_spinning_body_keeps_energy_and_angular_momentum():
    rigid = world(box(rotation=(10, 20, 30), angular_velocity=(5, 1, 3)), gravity=NO_GRAVITY)
    inertia = 3.6 / 12 * np.array([0.2**2 + 0.3**2, 0.1**2 + 0.3**2, 0.1**2 + 0.2**2])
    before = angular_momentum(rigid, inertia)
    energy = before @ rigid.twists()[0, 3:]
    run(rigid, 1.0)
    after = angular_momentum(rigid, inertia)
    assert np.linalg.norm(after - before) < 0.02 * np.linalg.norm(before)
    assert after @ rigid.twists()[0, 3:] == pytest.approx(energy, rel=0.01)
    assert np.abs(rigid.twists()[0, 3:] - [5, 1, 3]).max() > 1  # it tumbles


# --- what fluid asks -------------------------------------------------------------------------------------------------


def chains():
    hinge = box(joint="hinge", axis=(0, 0, 1), anchor=(0, 0.1, 0))
    low = box(position=(0, 0.8, 0), joint="hinge", axis=(1, 0, 1), anchor=(0, 0.1, 0), parent="upper", density=900)
    return {
        "free": [box(rotation=(10, 20, 30), velocity=(1, 2, 3))],
        "ball": [box(joint="ball", anchor=(0, 0.1, 0))],
        "hinge": [hinge],
        "slide": [box(joint="slide", axis=(1, 1, 0))],
        "two links": [{**hinge, "name": "upper"}, low],
        "welded": [{**hinge, "name": "upper"}, box(position=(0, 0.8, 0), joint="fixed", parent="upper")],
    }


@pytest.mark.parametrize("name", chains())
def test_mobility_is_what_a_kick_does(name):
    rigid = world(*chains()[name], gravity=NO_GRAVITY)
    before, said = rigid.state(), rigid.predict(0.0, 1e-7)
    twist0 = rigid.twists()
    for body in range(len(rigid.solid)):
        for k in range(6):
            impulse = np.zeros((len(rigid.solid), 6))
            impulse[body, k] = 0.01
            rigid.restore(before)
            rigid.commit(impulse, 0.0, 1e-7)
            assert (rigid.twists() - twist0)[body] == pytest.approx(said.inverse[body, :, k] * 0.01, abs=1e-5)
    assert said.inverse == pytest.approx(np.swapaxes(said.inverse, 1, 2), abs=1e-12)
    assert np.linalg.eigvalsh(said.inverse).min() > -1e-9


def test_prediction_and_commitment_agree_and_prediction_changes_nothing():
    rigid = world(box(rotation=(10, 20, 30), velocity=(1, 2, 3), angular_velocity=(1, 0, 2)))
    before = rigid.state()
    said = rigid.predict(0.0, DT)
    assert np.array_equal(rigid.state(), before)
    centre, start = rigid.centres(), rigid.poses()[0]
    rigid.commit(np.zeros((1, 6)), 0.0, DT)
    assert np.array_equal(rigid.poses()[0], said.rotation) and np.array_equal(rigid.poses()[1], said.position)
    assert said.centre0 == pytest.approx(centre)
    assert rigid.centres() - centre == pytest.approx(said.twist[:, :3] * DT, abs=1e-12)
    assert said.twist[0, 3:] == pytest.approx([1, 0, 2], abs=0.05)
    assert (said.rotation[0] - start[0]) == pytest.approx(
        np.cross(said.twist[0, 3:], start[0].T).T * DT, abs=1e-4
    )  # fmt: skip


def test_a_push_moves_the_end_by_what_was_promised():
    rigid = world(box(rotation=(10, 20, 30), velocity=(1, 2, 3)))
    said = rigid.predict(0.0, DT)
    impulse = np.array([[0.3, 0.1, -0.2, 0.01, 0.0, 0.02]])
    centre = rigid.centres()
    rigid.commit(impulse, 0.0, DT)
    twist = said.twist[0] + said.inverse[0] @ impulse[0]
    assert (rigid.centres() - centre)[0] == pytest.approx(twist[:3] * DT, abs=1e-12)


def test_the_centre_of_mass_is_not_the_frames_origin():
    cone = {"type": "cone", "radius": 0.1, "height": 0.4, "position": (0, 1, 0)}
    rigid = world({"shape": cone, "body": {"density": 500, "velocity": (1, 0, 0), "angular_velocity": (0, 0, 3)}})
    assert rigid.hearts[0] == pytest.approx([0, -0.1, 0], abs=1e-12)
    assert rigid.twists()[0] == pytest.approx([1, 0, 0, 0, 0, 3], abs=1e-12)
    assert rigid.predict(0, DT).centre0[0] == pytest.approx([0, 0.9, 0], abs=1e-12)


def held():
    hinge = {"joint": "hinge", "axis": (0, 0, 1), "anchor": (0, 0.2, 0)}
    motor = {"drive": {"keyframes": [{"time": 0, "value": 20}]}}
    return {
        "on the floor": ([FLOOR, box((0.1,) * 3, (0, 0.05, 0))], (0, -0.02, 0)),
        "many on the floor": ([FLOOR, *(box((0.1,) * 3, (0.2 * k, 0.05, 0)) for k in range(12))], (0, -0.02, 0)),
        "by friction": ([FLOOR, box((0.1,) * 3, (0, 0.05, 0))], (0.005, 0, 0)),
        "by a motor": ([box((0.1, 0.4, 0.1), **hinge, **motor)], (0.1, 0, 0)),
        "by a damper": ([box((0.1, 0.4, 0.1), **hinge, damping=30.0)], (0.1, 0, 0)),
    }


@pytest.mark.parametrize("name", held())
def test_mobility_knows_what_holds_a_body(name):
    """Where it rests on something, fluid must not reckon with a body that gives way freely."""
    solids, push = held()[name]
    rigid = world(*solids)
    run(rigid, 0.5)
    impulse = np.zeros((len(rigid.solid), 6))
    impulse[:, :3] = push
    said, centre = rigid.predict(0.5, DT), rigid.centres()
    rigid.commit(impulse, 0.5, DT)
    along = np.asarray(push) / np.linalg.norm(push)
    free = np.linalg.norm(push) / rigid.masses
    expected = np.einsum("bij,bj->bi", said.inverse, impulse)[:, :3] @ along
    happened = ((rigid.centres() - centre) / DT - said.twist[:, :3]) @ along
    assert (happened < 0.5 * free).all()
    assert (np.abs(happened - expected) < 0.2 * free).all()


# --- touching --------------------------------------------------------------------------------------------------------


def test_two_boxes_rest_on_each_other():
    rigid = world(FLOOR, box((0.2, 0.1, 0.2), (0, 0.051, 0)), box((0.1, 0.1, 0.1), (0.02, 0.152, 0.01)))
    run(rigid, 1.0)
    position = rigid.poses()[1]
    assert position[:, 1] == pytest.approx([0.05, 0.15], abs=3e-4)
    assert position[:, 0] == pytest.approx([0, 0.02], abs=1e-4)
    assert np.abs(rigid.twists()).max() < 1e-3


def test_friction_holds_on_a_slope_and_ice_does_not():
    for friction, slides in ((0.8, False), (0.1, True)):
        slope = {"shape": {"type": "plane", "rotation": (0, 0, -20)}}
        up = rotation_matrix((0, 0, -20)) @ np.array([0, 0.0501, 0])
        rigid = world(slope, box((0.1, 0.1, 0.1), tuple(up), (0, 0, -20), friction=friction))
        run(rigid, 0.5)
        moved = np.linalg.norm(rigid.poses()[1][0] - up)
        expected = (np.sin(np.radians(20)) - friction * np.cos(np.radians(20))) * 9.81 * 0.5**2 / 2
        assert moved == pytest.approx(expected, rel=0.05) if slides else moved < 2e-3


def test_what_keyframes_move_pushes_and_drags_bodies_and_is_not_moved():
    motion = [{"time": 0}, {"time": 1, "position": (0.5, 0, 0)}]
    pusher = {"shape": {"type": "box", "size": (0.1, 0.1, 0.1), "position": (-0.11, 0.05, 0)}, "motion": motion}
    belt = {"shape": {"type": "box", "size": (0.5, 0.1, 0.5), "position": (0, 0, 2)}, "motion": motion}
    rigid = world(FLOOR, pusher, belt, box((0.1,) * 3, (0, 0.05, 0), friction=0.1), box((0.1,) * 3, (0, 0.1, 2), friction=1))
    assert rigid.solid == [3, 4]
    run(rigid, 1.2)
    position = rigid.poses()[1]
    assert position[0, 0] > 0.48
    assert position[1, 0] == pytest.approx(0.5, abs=0.01)
    assert position[:, 2] == pytest.approx([0, 2], abs=0.01)


@pytest.mark.parametrize(
    "shape",
    [
        {"type": "box", "size": (0.4, 0.4, 0.4), "rotation": (0, 30, 0)},
        {"type": "cylinder", "radius": 0.2, "height": 0.4},
        {"type": "sphere", "radius": 0.2},
        {"type": "cone", "radius": 0.25, "top_radius": 0.15, "height": 0.4},
    ],
    ids=lambda shape: shape["type"],
)
def test_containers_keep_what_is_inside(shape):
    rigid = world(
        {"shape": shape, "container": True},
        {"shape": {"type": "sphere", "radius": 0.04}, "body": {"density": 500, "velocity": (3, 1, 2)}},
    )
    for k in range(20):
        run(rigid, 0.1, 0.1 * k)
        assert np.abs(rigid.poses()[1]).max() < 0.23
    assert np.linalg.norm(rigid.twists()[0, :3]) < 1.0


HOLLOW = {
    "bowl": {"type": "bowl", "radius": 0.2, "height": 0.12, "thickness": 0.03, "position": (0, 0.1, 0)},
    "funnel": {"type": "funnel", "top_radius": 0.2, "bottom_radius": 0.03, "height": 0.15, "thickness": 0.03,
               "position": (0, 0.1, 0)},
    "torus": {"type": "torus", "radius": 0.12, "tube": 0.08, "position": (0, 0.1, 0)},
    "cup": {"type": "cup", "radius": 0.1, "height": 0.15, "thickness": 0.03, "position": (0, 0.1, 0)},
}  # fmt: skip


@pytest.mark.parametrize("name", HOLLOW)
def test_a_ball_lies_in_hollow_things(name):
    """What is cut into convex pieces stays hollow, and a ball sinks into it as deep as it should."""
    ball = {"shape": {"type": "sphere", "radius": 0.06, "position": (0.01, 0.25, 0)}, "body": {"density": 500}}
    rigid = world({"shape": HOLLOW[name]}, ball)
    run(rigid, 1.5)
    x, y, z = rigid.poses()[1][0]
    lowest = {"bowl": 0.04 + 0.015 + 0.06, "funnel": 0.0986, "torus": 0.1 + np.sqrt(0.14**2 - 0.12**2), "cup": 0.1}[name]
    assert y == pytest.approx(lowest, abs=0.012)
    assert np.hypot(x, z) < 0.05
    assert any("touches other solids as" in note for note in rigid.notes)


def test_bodies_that_do_not_collide_pass_through():
    rigid = world(FLOOR, box(position=(0, 0.1, 0), collides=False))
    run(rigid, 0.5)
    assert rigid.poses()[1][0, 1] < -0.5


# --- joints and motors -----------------------------------------------------------------------------------------------


def test_a_pendulum_keeps_its_length_and_time():
    """Period of a physical pendulum: T = 2π √(I / (m g l)) (1 + θ²/16)."""
    length, start = 0.5, np.radians(10)
    place = (length * np.sin(start), 1 - length * np.cos(start), 0)
    ball = {"shape": {"type": "sphere", "radius": 0.05, "position": place}}
    anchor = (-place[0], 1 - place[1], 0)
    rigid = world({**ball, "body": {"density": 1000, "joint": "hinge", "axis": (0, 0, 1), "anchor": anchor}})
    arm = length**2 + 0.4 * 0.05**2
    period = 2 * np.pi * np.sqrt(arm / (9.81 * length)) * (1 + start**2 / 16)
    xs = []
    for k in range(round(3 * period / DT)):
        rigid.commit(np.zeros((1, 6)), k * DT, DT)
        xs.append(rigid.poses()[1][0])
    xs = np.array(xs)
    assert np.linalg.norm(xs - [0, 1, 0], axis=1) == pytest.approx(length, abs=1e-9)
    falls = np.flatnonzero((xs[:-1, 0] > 0) & (xs[1:, 0] <= 0)) * DT
    assert np.diff(falls).mean() == pytest.approx(period, rel=5e-3)


@pytest.mark.parametrize("stiffness", [None, 500.0])
def test_a_driven_hinge_goes_where_it_is_told(stiffness):
    drive = {"keyframes": [{"time": 0, "value": 0}, {"time": 0.5, "value": "0.5 rad"}, {"time": 1, "value": 60}]}
    if stiffness:
        drive["stiffness"] = stiffness
    rigid = world(box((0.1, 0.4, 0.1), joint="hinge", axis=(0, 0, 1), anchor=(0, 0.2, 0), drive=drive))
    run(rigid, 0.5)
    assert rigid.poses()[0][0] == pytest.approx(rotation_matrix((0, 0, np.degrees(0.5))), abs=0.03)
    run(rigid, 1.0, 0.5)
    assert rigid.poses()[0][0] == pytest.approx(rotation_matrix((0, 0, 60)), abs=0.02)


def test_a_weak_motor_gives_up_and_a_stop_holds():
    drive = {"keyframes": [{"time": 0, "value": 0.5}], "force": 10}
    weak = box((0.1,) * 3, (0, 0, 0), joint="slide", axis=(0, 1, 0), drive=drive, mass=2.0, range=[-0.3, 0.6])
    strong = box((0.1,) * 3, (1, 0, 0), joint="slide", axis=(0, 1, 0), drive={**drive, "force": 40}, mass=2.0)
    rigid = world(weak, strong)
    run(rigid, 2.0)
    assert rigid.poses()[1][:, 1] == pytest.approx([-0.3, 0.5], abs=0.02)


def test_a_body_hangs_from_what_keyframes_move():
    """Inertia of the hanging part is felt: a cart that starts at once leaves its pendulum behind."""
    cart = {"name": "cart", "shape": {"type": "box", "size": (0.1, 0.1, 0.1)}, "interpolation": "linear",
            "motion": [{"time": 0}, {"time": 1, "position": (1, 0, 0)}]}  # fmt: skip
    ball = {"shape": {"type": "sphere", "radius": 0.01, "position": (0, -0.5, 0)},
            "body": {"density": 99, "joint": "hinge", "axis": (0, 0, 1), "anchor": (0, 0.5, 0), "parent": "cart"}}  # fmt: skip
    rigid = world(cart, ball, gravity=NO_GRAVITY)
    run(rigid, 0.1)
    x, y, _ = rigid.poses()[1][0]
    assert abs(x) < 0.005  # left behind, but drawn up by the rod that turned
    assert y == pytest.approx(-np.sqrt(0.25 - 0.01), abs=0.005)


def test_a_push_beyond_all_measure_is_a_failure_and_not_a_number():
    for impulse in (1e9, np.nan, np.inf):
        rigid = world({"name": "raft", **box()})
        with pytest.raises(SimulationFailed, match="raft: fluid pushed it beyond all measure"):
            rigid.commit(np.full((1, 6), impulse), 0.0, DT)


# --- starting again --------------------------------------------------------------------------------------------------


def test_restart_is_exact():
    drive = {"keyframes": [{"time": 0, "value": 0}, {"time": 1, "value": 90}]}
    solids = [
        FLOOR, box((0.2, 0.1, 0.2), (0, 0.06, 0)), box((0.1, 0.1, 0.1), (0.02, 0.2, 0.01), (5, 6, 7)),
        box((0.1, 0.4, 0.1), (0.3, 1, 0), joint="hinge", axis=(0, 0, 1), anchor=(0, 0.2, 0), drive=drive),
        {"shape": {"type": "box", "size": (0.1, 0.1, 0.1), "position": (-0.3, 0.05, 0)},
         "motion": [{"time": 0}, {"time": 1, "position": (0.3, 0, 0)}]},
    ]  # fmt: skip
    first, second = world(*solids), world(*solids)
    run(first, 0.3)
    second.restore(first.state())
    for rigid in (first, second):
        for k in range(72, 150):
            rigid.predict(k * DT, DT)
            rigid.commit(np.full((3, 6), 1e-3), k * DT, DT)
    assert np.array_equal(first.state(), second.state())
    assert first.poses()[0].tobytes() == second.poses()[0].tobytes()


def test_bodies_that_stay_go_on_after_a_change():
    scene = SimpleNamespace(gravity=DOWN, up="y")
    solids = [Solid(**box(velocity=(1, 0, 0))), Solid(**box(position=(2, 1, 0), angular_velocity=(0, 3, 0)))]
    old = RigidWorld(scene, solids)
    run(old, 0.2)
    new = RigidWorld(scene, [Solid(**box(position=(5, 1, 0))), solids[1]])
    new.take_over(old)
    assert new.poses()[1][1] == pytest.approx(old.poses()[1][1])
    assert new.twists()[1] == pytest.approx(old.twists()[1])
    assert new.poses()[1][0] == pytest.approx([5, 1, 0])


def test_how_bodies_give_way_does_not_depend_on_how_they_came_here():
    """While a body touches something its mobility knows the contact's stiffness, which MuJoCo limits by its own step."""
    parts = FLOOR, box(position=(0, 0.0995, 0), rotation=(0, 0, 3))
    first, second = world(*parts), world(*parts)
    run(first, 0.1, dt=0.1 / 7)
    second.restore(first.state())
    assert first._model.opt.timestep != second._model.opt.timestep
    assert np.array_equal(first.predict(0.1, 0.01).inverse, second.predict(0.1, 0.01).inverse)
    assert first._data.ncon > 0
