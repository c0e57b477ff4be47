"""The table of per-particle quantities: whatever is done to particles is done to every row of it."""

import dataclasses

import numpy as np
import pytest

from kit import make_particles
from viscoil import particles as table
from viscoil.carried import Carried
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


@pytest.mark.parametrize("append", [table.append, table.append_packed])
@pytest.mark.parametrize("lazy", [table.LAZY, frozenset()], ids=["all fields", "few fields"])
def test_append_field_by_field_or_in_one_message(append, lazy):
    values = columns(50)
    if not lazy:
        values |= {name: np.broadcast_to(table.filling(name), v.shape) for name, v in values.items() if name in table.LAZY}
    p = table.allocate(53, lazy)
    append(p, 3, {**values, "velocity": np.array([1.0, 2.0, 3.0]), "volume": 0.5}, lazy)
    given = {"velocity": np.tile(np.float32([1, 2, 3]), (50, 1)), "volume": np.full(50, np.float32(0.5))}
    assert same({name: v[3:] for name, v in read(p, 53).items()}, {**values, **given})


def test_grow_keeps_everything():
    values = columns(50)
    p = table.allocate(50)
    table.append(p, 0, values)
    larger = table.grown(p, 50, 90)
    assert table.capacity(larger) == 90
    assert same(read(larger, 50), values)


def test_reorder_moves_every_field():
    values = columns(700)
    p, spare = table.allocate(700), table.spares(700)
    table.append(p, 0, values)
    order = np.random.default_rng(3).permutation(700).astype(np.int32)
    device = table.allocate_array(table.qd.i32, 700)
    device.from_numpy(order)
    number = table.allocate_array(table.qd.i32, 1)
    number.fill(700)
    table.reorder(p, spare, device, number, 700, set(table.FIELDS) - set(table.USUAL))
    assert same(read(p, 700), {name: v[order] for name, v in values.items()})
    assert len(spare) == 4, "one array per type"


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
    assert {f.name for f in dataclasses.fields(p)} == set(FIELDS)


# --- rows a method carries along ---------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", [table.qd.i32, table.qd.f32])
LAYOUTS = pytest.mark.parametrize("striped", [False, True])


def rows_of(kind, striped, capacity=7, width=3, seed=0):
    """(Carried, what its first five particles hold)"""
    values = np.random.default_rng(seed).integers(1, 1000, (5, width)).astype(np.int32 if kind is table.qd.i32 else np.float32)
    rows = Carried(kind, width, -1, striped=striped)
    rows.reserve(0, capacity)
    rows.set(values)
    return rows, values


def elements(rows, count):
    """The rows as a kernel finds them: element i·row + a·column."""
    i, a = np.arange(count)[:, None], np.arange(rows.width)[None]
    return rows.array.to_numpy()[i * rows.row.to_numpy()[0] + a * rows.column.to_numpy()[0]]


@KINDS
@LAYOUTS
def test_rows_lie_where_kernels_look_for_them(kind, striped):
    rows, values = rows_of(kind, striped)
    assert (rows.row.to_numpy()[0], rows.column.to_numpy()[0]) == ((1, 7) if striped else (3, 1))
    assert np.array_equal(elements(rows, 5), values) and np.array_equal(rows.get(5), values)
    assert rows.get(5).dtype == values.dtype and rows.get(5).flags.c_contiguous
    assert (rows.get(7)[5:] == -1).all(), "places nobody set"
    assert rows.get(0).shape == (0, 3)


@KINDS
@LAYOUTS
def test_rows_grow_and_widen(kind, striped):
    rows, values = rows_of(kind, striped)
    for_kernels = rows.row, rows.column
    rows.reserve(5, 12)
    assert np.array_equal(elements(rows, 5), values) and (elements(rows, 12)[5:] == -1).all()
    rows.widen(6, 5)
    assert rows.width == 6 and (rows.row, rows.column) == for_kernels, "launches keep their arguments"
    assert np.array_equal(elements(rows, 5)[:, :3], values)
    assert (rows.get(12)[:, 3:] == -1).all() and (rows.get(12)[5:] == -1).all()
    rows.clear(2, 4)
    assert (rows.get(5)[2:4] == -1).all() and np.array_equal(rows.get(5)[[0, 1, 4], :3], values[[0, 1, 4]])


@KINDS
@LAYOUTS
def test_rows_travel_and_come_back(kind, striped):
    rows, values = rows_of(kind, striped)
    order = table.allocate_array(table.qd.i32, 4)
    order.from_numpy(np.array([3, 0, 4, 1], np.int32))
    rows.reorder(order, 4)
    assert np.array_equal(elements(rows, 4), values[[3, 0, 4, 1]])
    rows.remember(4)
    rows.clear(0, 7)
    rows.go_back(4)
    assert np.array_equal(rows.get(4), values[[3, 0, 4, 1]])


@LAYOUTS
@pytest.mark.parametrize("width", [2, 3, 9])
def test_rows_become_as_wide_as_what_is_set(striped, width):
    """A checkpoint may have been written when rows were wider (or narrower) than now."""
    rows, values = rows_of(table.qd.i32, striped)
    wide, _ = rows_of(table.qd.i32, not striped, width=width, seed=1)
    rows.set(wide.get(4))
    assert rows.width == width and np.array_equal(elements(rows, 4), wide.get(4))
    assert np.array_equal(rows.get(5)[4, :3], np.append(values[4], [-1] * 9)[:width][:3]), "who is not set keeps its own"
    rows.set(np.zeros((0, 5), np.int32))
    assert rows.width == 5 and rows.get(7).shape == (7, 5)


@LAYOUTS
def test_a_world_carries_rows(striped):
    """Birth, growth, sorting, removal and steps taken back: rows stay with their particles."""
    world, rng = make_world(), np.random.default_rng(5)
    rows = Carried(table.qd.i32, 2, -1, striped=striped)
    world.carry({"mine": rows})

    def marked():
        return np.stack([world.get("id"), 10 * world.get("id")], 1)

    for round_ in range(6):
        before = world.count
        world.add({"position": rng.uniform(0, 0.5, (int(rng.integers(1, 40)), 3))})
        assert (rows.get(world.count)[before:] == -1).all(), "nothing of those who were there before"
        assert np.array_equal(rows.get(before), marked()[:before])
        rows.set(marked())
        world.neighbors.find(world.particles.position, world.particles, world.count)
        world.reorder()
        world.remember()
        rows.clear(0, world.count)
        world.go_back()
        if round_ == 3:
            rows.widen(5, world.count)
            assert np.array_equal(rows.get(world.count)[:, :2], marked()) and rows.get(1).shape == (1, 5)
            rows.set(marked())
        world.keep_only(rng.random(world.count) < 0.7)
        assert np.array_equal(rows.get(world.count), marked())
