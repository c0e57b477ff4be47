"""Records give back what was put into them, and passes that read neighbours as records give the steps of those that do not."""

import numpy as np
import pytest
import quadrants as qd

import kit
from viscoil import native, transfer
from viscoil.errors import DeviceError
from viscoil.particles import Floats, Vectors, allocate_array, vec3
from viscoil.scene.particle_solids import ParticleSolid
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.sph import records
from viscoil.sph.records import Records, allocate_records, put_fourth, put_record, record

D = 0.02


@qd.kernel
def _put(r: Records, x: Vectors, w: Floats):
    for i in range(w.shape[0]):
        put_record(r, i, x[i], -1.0)
    for i in range(w.shape[0]):
        put_fourth(r, i, x[i][2], w[i])


@qd.kernel
def _get(r: Records, x: Vectors, w: Floats):
    for i in range(w.shape[0]):
        found = record(r, w.shape[0] - 1 - i)
        x[i] = vec3(found[0], found[1], found[2])
        w[i] = found[3]


def test_records_give_back_every_bit(monkeypatch):
    monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    n, random = 1000, np.random.default_rng(1)
    x = (random.normal(size=(n, 3)) * 10.0 ** random.integers(-30, 30, (n, 1))).astype(np.float32)
    w = np.where(np.arange(n) % 5 == 0, np.float32(-0.0), random.normal(size=n)).astype(np.float32)
    r, places, fourth = allocate_records(n), allocate_array(vec3, n), allocate_array(qd.f32, n)
    transfer.write(places, x)
    transfer.write(fourth, w)
    _put(r, places, fourth)
    _get(r, places, fourth)
    assert np.array_equal(transfer.read(places).view(np.int32), x[::-1].copy().view(np.int32))
    assert np.array_equal(transfer.read(fourth).view(np.int32), w[::-1].copy().view(np.int32))


@qd.kernel
def _pair_up(r: Records, x: Vectors, v: Vectors, apart_by: Vectors, seen: Vectors, h: qd.f32):
    for i in range(x.shape[0]):
        records.put_place(r, i, x[i], h)
        records.put_velocity(r, i, v[i])
    for i in range(x.shape[0]):
        own = records.bits_of(record(r, i))
        other = records.bits_of(record(r, (i + 1) % x.shape[0]))
        one, two = records.here(records.aligned(own[0], own[1])), records.aligned(other[0], other[1])
        apart_by[i] = records.unit_of(h) * records.apart(one, two, records.digits_of(r))
        seen[i] = records.velocity_in(own[2], own[3], records.digits_of(r))


def test_a_place_and_a_velocity_fit_into_one_record(monkeypatch):
    """Differences of places to 2e-6 supports, far from the origin as well, and velocities to 4e-6 of their largest component,
    without a bias: rounding must not push."""
    monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    n, h, random = 4000, 0.05, np.random.default_rng(2)
    x = np.cumsum(random.uniform(-0.5, 0.5, (n, 3)) * h, axis=0).astype(np.float32) - np.float32(0.3)
    v = (random.normal(size=(n, 3)) * 10.0 ** random.integers(-12, 3, (n, 1))).astype(np.float32)
    v[:3] = ((0, 0, 0), (1, -1, 0.5), (-7.9999995, 0, 1e-9))
    r, arrays = allocate_records(n), [allocate_array(vec3, n) for _ in range(4)]
    for array, values in zip(arrays, (x, v), strict=False):
        transfer.write(array, values)
    _pair_up(r, *arrays, h)
    apart, seen = (transfer.read(array).reshape(n, 3) for array in arrays[2:])
    exact = x.astype(float)[:-1] - x.astype(float)[1:]
    assert np.abs(apart[:-1] - exact).max() < (2e-6 + 3e-7 * np.abs(x).max() / h) * h
    error = (seen.astype(float) - v) / np.maximum(np.abs(v).max(axis=1, keepdims=True), 1e-30)
    assert np.abs(error).max() < 8e-6 and abs(error[3:].mean()) < 1e-7 and (seen[0] == 0).all()


def test_who_is_at_the_place_of_another_is_put_beside_it(monkeypatch):
    """By searches of steps, without a velocity coming of it, and by no other."""
    monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    x = kit.lattice((6, 6, 6), D).astype(np.float32)
    x[40] = x[7]
    p = kit.make_particles(x)
    search, there = kit.search(x, 2.1 * D, particles=p), allocate_array(vec3, len(x))
    assert np.array_equal(transfer.read(p.position).reshape(-1, 3)[: len(x)], x), "a look moves nobody"
    transfer.write(there, x)
    with native.use(False):
        search.find(there, p, len(x))
    moved, began = (transfer.read(array).reshape(-1, 3)[: len(x)] - x for array in (there, p.position))
    assert set(np.nonzero(np.abs(moved).max(axis=1))[0]) == {7, 40}
    assert np.allclose(moved[7], -moved[40], atol=1e-7) and 1e-5 < np.linalg.norm(moved[7]) / D < 1e-3
    assert np.allclose(moved, began, atol=1e-7)


def test_an_unknown_way_is_refused_and_the_known_ones_are_named(monkeypatch):
    monkeypatch.setenv("VISCOIL_RECORDS", "wode")
    with pytest.raises(DeviceError, match=r"expected one of wide, none; got 'wode'.*wide"):
        records.mode()


def test_a_cpu_uses_none_by_itself(monkeypatch):
    monkeypatch.delenv("VISCOIL_RECORDS", raising=False)
    assert records.mode() == "none" and not records.used()
    assert allocate_records(1000).words.shape[0] == 2


def test_lists_by_records_are_those_without(monkeypatch):
    x = kit.lattice((9, 8, 7), D, jitter=0.4)
    box = kit.periodic_box((0, 0, 0), (9 * D, 8 * D, 7 * D), "xz")
    for reach, around in ((2.1 * D, None), (2.1 * D, box)):
        monkeypatch.delenv("VISCOIL_RECORDS", raising=False)
        number, rows = kit.search(x, reach, around).to_numpy(len(x))
        monkeypatch.setenv("VISCOIL_RECORDS", "wide")
        search = kit.search(x, reach, around, expected=10)  # too short at first
        found, entries = search.to_numpy(len(x))
        width = number.max()
        assert search.recorded and width > 20
        assert np.array_equal(found, number), "in another order: cells are sliced"
        assert np.array_equal(np.sort(entries[:, :width]), np.sort(rows[:, :width]))


def scene(method, material=None, **more):
    """A block of fluid that falls into the corner of a tank."""
    solver = {"method": method, "iterations": 5, **more}
    return Scene.model_validate({
        "spacing": D, "solver": solver, "time": {"frames": 2, "frame_time": 1 / 60, "steps_per_frame": 4},
        "material": {"stuff": {"density": 1000, **(material or {})}},
        "fluid": [{"material": "stuff", "velocity": (-1.0, -1.0, 0.3), "shape": {
            "type": "box", "size": (8 * D, 6 * D, 7 * D), "position": (4 * D, 3 * D, 3.5 * D)}}],
        "solid": [{"container": True, "shape": {"type": "box", "size": (0.4, 0.4, 0.4), "position": (0.2, 0.2, 0.2)}}],
    })  # fmt: skip


def with_body(scene):
    """A rigid body made of particles, lighter than the fluid beside it."""
    box = {"type": "box", "size": (5 * D, 5 * D, 5 * D), "position": (11 * D, 3 * D, 3.5 * D)}
    scene.particle_solid.append(ParticleSolid.model_validate({"kind": "rigid", "density": 500, "shape": box}))
    return scene


CASES = {
    "pbf": lambda: scene("pbf"),
    "pbf with repulsion, ended early": lambda: scene(
        "pbf", unilateral=False, artificial_pressure=0.02, tolerance=0.01, iterations=6
    ),
    "dcpbd, viscous": lambda: scene("dcpbd", {"viscosity": 20.0}),
    "dcpbd with a rigid body": lambda: with_body(scene("dcpbd", {"viscosity": 20.0})),
    "dcpbd, elastic": lambda: scene("dcpbd", {"modulus": 2000.0, "solvent_viscosity": 5.0}, iterations=4),
}


def after(case, precise):
    """Places and velocities after some steps."""
    sim = Simulation(CASES[case](), "cpu")
    sim.world.stages.precise = precise
    for _ in range(6):
        sim.step()
    frame = sim.frame()
    return sim.world.packed, frame["position"], frame["velocity"]


@pytest.mark.parametrize("case", CASES)
def test_steps_by_records_are_those_without(case, monkeypatch):
    with native.use(False):
        packed, x, v = after(case, True)
        assert not packed
        monkeypatch.setenv("VISCOIL_RECORDS", "wide")
        for precise in (True, False) if case == "pbf" else (True,):  # one kernel for a whole step takes long to compile
            packed, y, u = after(case, precise)
            assert packed
            assert np.abs(x - y).max() < 2e-4 * D and np.abs(v - u).max() < 5e-3
    assert np.abs(v).max() > 0.3, "something happened"


def test_particles_that_differ_are_not_read_as_records(monkeypatch):
    monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    sim = Simulation(scene("pbf"), "cpu")
    assert sim.world.packed
    assert sim.world.packs_places(0) and not sim.world.packs_places(1)
    sim.world.forget_uniform()
    assert not sim.world.packed
