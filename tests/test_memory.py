"""Memory per particle: what is stated is what is used, and nothing is held that nobody needs."""

import gc

import numpy as np
import pytest

from viscoil import particles as table
from viscoil import transfer
from viscoil.particles import FIELDS
from viscoil.scene.schema import Scene
from viscoil.scene.size import OWN_BYTES, bytes_per_particle
from viscoil.simulate import Simulation
from viscoil.solvers import SOLVERS

D = 0.02


def block(method: str, edge: int, **more) -> Scene:
    size = [D * edge] * 3
    return Scene(
        spacing=D, solver={"method": method}, time={"frame_time": 0.002, "steps_per_frame": 1},
        fluid=[{"material": "honey" if method == "dcpbd" else "water", "shape": {"type": "box", "size": size}}], **more,
    )  # fmt: skip


@pytest.mark.parametrize("method", SOLVERS)
def test_the_estimate_is_what_a_simulation_takes(method):
    assert method in OWN_BYTES
    gc.collect()
    before = table.allocated()
    scene = block(method, 20)
    simulation = Simulation(scene)
    simulation.step()
    taken = (table.allocated() - before) / simulation.world.count
    stated = bytes_per_particle(scene)
    assert 0.97 * taken < stated < 1.25 * taken, f"{taken:.0f} B per particle taken, {stated} stated"


def test_a_fluid_holds_no_fields_it_has_no_use_for():
    world = Simulation(block("pbf", 8)).world
    assert world.particles.conformation.shape[0] == world.particles.rest.shape[0] == 1
    assert np.array_equal(world.get("conformation"), np.broadcast_to(np.eye(3), (world.count, 3, 3)))
    assert not world.get("rest").any() and world.get("rest").shape == (world.count, 3)
    world.set("conformation", np.eye(3))  # what it is anyway
    assert world.particles.conformation.shape[0] == 1
    world.set("conformation", 2 * np.eye(3))
    assert np.array_equal(world.get("conformation")[-1], 2 * np.eye(3))


def test_fields_appear_when_they_are_needed():
    thing = {"shape": {"type": "sphere", "radius": 0.06, "position": [0.0, -0.3, 0.0]}, "boundary": "particles"}
    world = Simulation(block("dcpbd", 8, solid=[thing])).world
    assert world.particles.conformation.shape == world.particles.rest.shape == world.particles.id.shape
    assert np.array_equal(world.get("conformation"), np.broadcast_to(np.eye(3), (world.count, 3, 3)))
    assert world.get("rest")[world.get("solid") >= 0].any()


def test_one_spare_array_per_type():
    world = Simulation(block("dcpbd", 8)).world
    assert len(world.spare) == 4
    arrays = [id(getattr(world.particles, name)) for name in FIELDS]
    world.reorder()
    assert arrays == [id(getattr(world.particles, name)) for name in FIELDS], "kernels keep what they know about arrays"


def test_what_is_the_same_everywhere_is_not_moved_and_what_is_not_is():
    two = [
        {"material": "water", "shape": {"type": "box", "size": [0.2, 0.2, 0.2]}},
        {"material": "honey", "shape": {"type": "box", "size": [0.2, 0.2, 0.2], "position": [0.5, 0.0, 0.0]}},
    ]
    scene = block("pbf", 5)
    assert not Simulation(scene).world._differing()
    world = Simulation(Scene(spacing=D, fluid=two)).world
    assert world._differing() == ["material", "inverse_mass"]
    by_id = np.argsort(world.get("id"))
    before = {name: world.get(name)[by_id] for name in FIELDS}
    world.fit_cells()
    world.neighbors.find_all(world.particles.position, world.particles, world.count)
    world.reorder()
    assert not np.array_equal(world.get("id"), np.sort(world.get("id")))
    by_id = np.argsort(world.get("id"))
    for name in FIELDS:
        assert np.array_equal(world.get(name)[by_id], before[name]), name


def test_particles_that_leave_a_nozzle_keep_their_own_masses():
    scene = Scene(
        spacing=D, solver={"method": "dcpbd"}, time={"frame_time": 0.01, "steps_per_frame": 2},
        emitter=[{"material": "honey", "shape": {"type": "cylinder", "radius": 0.05, "height": 0.02}, "speed": 1.0}],
    )  # fmt: skip
    simulation = Simulation(scene)
    for _ in range(12):
        simulation.advance_frame()
    world = simulation.world
    led = world.get("free_at") > world.time
    assert led.any() and not led.all()
    assert np.array_equal(world.get("inverse_mass") < 0, led)


@pytest.mark.parametrize("kind", [table.qd.i32, table.qd.f32, table.vec3, table.mat3], ids=["i32", "f32", "vec3", "mat3"])
def test_numbers_come_and_go(kind):
    array = table.allocate_array(kind, 9)
    tail = array.element_shape
    values = np.random.default_rng(1).integers(0, 99, (9, *tail))
    transfer.write(array, values)
    assert np.array_equal(array.to_numpy(), values) and np.array_equal(transfer.read(array), values)
    transfer.write(array, values[:2], 5)
    values[5:7] = values[:2]
    transfer.write(array, 7, 1, 3)
    values[1:4] = 7
    assert np.array_equal(transfer.read(array, 8), values[:8])
    transfer.write(array, values[:0])
    assert len(transfer.read(array, 0)) == 0
    transfer._send(array, values[:3].astype(transfer._shape(array)[0]), 6)  # the way of devices without a shorter one
    values[6:9] = values[:3]
    assert np.array_equal(array.to_numpy(), values)
    copy = transfer.read(array)
    copy[:] = 0
    assert np.array_equal(transfer.read(array), values), "a copy, not the array"


def test_a_block_is_filled_without_more_memory_than_it_takes():
    import tracemalloc

    edge = 90
    tracemalloc.start()
    simulation = Simulation(block("pbf", edge))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 90 * simulation.world.count, f"{peak / simulation.world.count:.0f} B per particle on the host"
