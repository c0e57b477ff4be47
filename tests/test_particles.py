"""The table of per-particle quantities: whatever is done to particles is done to every row of it."""

import numpy as np
import pytest

from kit import make_particles
from viscoil import particles as table
from viscoil.particles import FIELDS
from viscoil.sph.calibration import calibrate
from viscoil.world import World

D = 0.05


def column(name, n, seed=0):
    kind, tail = table.numpy_type(FIELDS[name])
    rng = np.random.default_rng([seed, sorted(FIELDS).index(name)])
    if kind is np.int32:
        return rng.integers(0, 1000, (n, *tail)).astype(kind)
    return rng.normal(size=(n, *tail)).astype(kind)


def columns(n, seed=0):
    return {name: column(name, n, seed) for name in FIELDS}


def read(particles, n):
    return {name: table.to_numpy(particles, name, n) for name in FIELDS}


def same(a, b):
    return all(np.array_equal(a[name], b[name]) for name in FIELDS)


def test_every_row_says_what_it_is():
    for name, field in FIELDS.items():
        assert name.isidentifier()
        assert isinstance(field.unit, str) and isinstance(field.saved, bool)
        assert field.help or field.unit, f"{name} needs a unit or a line of help"
    assert {"position", "velocity", "id", "material"} <= {n for n, f in FIELDS.items() if f.exported}


def test_append_fills_what_is_not_given():
    p = table.allocate(10)
    first = columns(4, 1)
    assert table.append(p, 0, first) == 4
    assert table.append(p, 4, {"position": np.ones((3, 3))}) == 7
    values = read(p, 7)
    for name, field in FIELDS.items():
        assert np.array_equal(values[name][:4], first[name])
        if name != "position":
            fill = field.fill * np.eye(3) if field.type is table.mat3 else field.fill
            assert np.all(values[name][4:] == np.float32(fill)), name


def test_grow_keeps_everything():
    values = columns(50)
    p = table.allocate(50)
    table.append(p, 0, values)
    larger = table.grown(p, 50, 90)
    assert table.capacity(larger) == 90
    assert same(read(larger, 50), values)


def test_reorder_moves_every_field():
    values = columns(700)
    p, spare = table.allocate(700), table.allocate(700)
    table.append(p, 0, values)
    order = np.random.default_rng(3).permutation(700).astype(np.int32)
    device = table.allocate_array(table.qd.i32, 700)
    device.from_numpy(order)
    q, other = table.reorder(p, spare, device, 700)
    assert q is spare and other is p
    assert same(read(q, 700), {name: v[order] for name, v in values.items()})


def make_world():
    return World(D, 2.3 * D, calibrate(D, 2.3 * D), [], None, 2.3 * D)


def test_keep_only():
    world = make_world()
    values = columns(200)
    values["solid"] = np.where(np.arange(200) % 3 == 0, 1, -1)
    world.add(values)
    before = {name: world.get(name) for name in FIELDS}
    assert world.boundary_count == 67 and world.fluid_count == 133
    keep = np.random.default_rng(1).random(200) < 0.6
    world.keep_only(keep)
    assert world.count == keep.sum()
    assert world.boundary_count == (values["solid"][keep] >= 0).sum()
    for name in FIELDS:
        assert np.array_equal(world.get(name), before[name][keep]), name
    world.keep_only(np.zeros(world.count, bool))
    assert world.count == world.boundary_count == 0


def test_ids_are_permanent_and_unique():
    """Emission, removal, growth and reordering in any order: an id never changes its particle and is never given twice."""
    world, rng = make_world(), np.random.default_rng(8)
    born: dict[int, float] = {}
    for _round in range(12):
        n = int(rng.integers(1, 60))
        x = rng.uniform(0, 0.5, (n, 3)).astype(np.float32)
        first = world.next_id
        world.add({"position": x})
        new = np.arange(first, world.next_id)
        assert not born.keys() & set(new.tolist())
        born |= dict(zip(new.tolist(), x[:, 0].tolist(), strict=True))
        world.neighbors.find(world.particles.position, world.particles, world.count)
        world.reorder()
        world.keep_only(rng.random(world.count) < 0.8)
        ids = world.get("id")
        assert len(np.unique(ids)) == len(ids)
        assert [born[i] for i in ids.tolist()] == world.get("position")[:, 0].tolist()
    assert world.next_id == len(born)


def test_set_and_get():
    world = make_world()
    world.add({"position": np.zeros((5, 3))})
    world.set("velocity", (1.0, 2.0, 3.0))
    assert np.array_equal(world.get("velocity"), np.tile([1, 2, 3], (5, 1)))
    world.set("density", np.arange(5))
    assert np.array_equal(world.get("density"), np.arange(5))
    with pytest.raises(KeyError):
        world.set("colour", 1)
    with pytest.raises(ValueError):
        world.set("velocity", np.zeros((4, 3)))


def test_remember_and_go_back():
    world = make_world()
    world.add({"position": np.random.default_rng(0).normal(size=(30, 3)), "velocity": np.ones((30, 3))})
    x, v = world.get("position"), world.get("velocity")
    world.remember()
    world.set("position", np.nan)
    world.set("velocity", np.inf)
    world.go_back()
    assert np.array_equal(world.get("position"), x) and np.array_equal(world.get("velocity"), v)


def test_an_empty_world_can_be_looked_at():
    world = make_world()
    assert world.count == 0
    for name, field in FIELDS.items():
        kind, tail = table.numpy_type(field)
        assert world.get(name).shape == (0, *tail) and world.get(name).dtype == kind
    assert len(world.fluid_order()) == 0


def test_fluid_order_is_by_id_and_without_samples():
    world = make_world()
    world.add({"position": np.zeros((4, 3)), "solid": np.array([-1, 0, -1, -1])})
    world.add({"position": np.zeros((2, 3))})
    world.set("id", np.array([9, 1, 3, 7, 2, 0]))
    assert world.get("id")[world.fluid_order()].tolist() == [0, 2, 3, 7, 9]


def test_particles_are_made_of_their_fields():
    p = make_particles(np.zeros((3, 3)))
    assert set(vars(p)) == set(FIELDS)
