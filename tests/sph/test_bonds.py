"""Bonds: who has one, what it remembers, when it ends, that both ends agree to the bit, and that nothing loses one."""

import numpy as np
import pytest

import kit
from bond_kit import Bench, D, H, Pairs, Shapes, cloud

SCHEMES = ("springs", "position_based", "shape_matching")
LAW = {"weakening": 0.02, "lower": 0.3, "merging": 0.8, "splitting": 0.3}


def shaken(x, size, seed=0):
    return x + np.random.default_rng(seed).normal(size=x.shape) * size * D


def pairs_within(x, radius):
    r = np.linalg.norm(kit.differences(x), axis=-1)
    return {(i, j) for i, j in zip(*np.nonzero(r < radius), strict=True) if i != j}


# --- which there are ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
def test_freezing_bonds_every_pair_within_reach_as_it_is(scheme):
    x = cloud()
    bench = Bench(x, scheme)
    table = bench.table()
    assert set(table) == pairs_within(x, H)
    for (i, j), rest in table.items():
        d = (x[j] - x[i]) if scheme == "shape_matching" else [np.linalg.norm(x[j] - x[i])]
        assert np.allclose(rest[: len(d)], d, atol=1e-7)
    i, j, rest = bench.bonds.on_host(bench.world)
    assert (i < j).all() and len(i) == bench.check_symmetric()
    assert np.allclose(rest, np.linalg.norm(x[i] - x[j], axis=1), atol=1e-7)
    bench.bonds.clear(bench.world)
    assert not bench.table() and len(bench.bonds.on_host(bench.world)[0]) == 0
    bench.move(1.1 * x)
    bench.bonds.freeze(bench.world)
    bench.bonds.freeze(bench.world)
    assert set(bench.table()) == pairs_within(1.1 * x, H)


def test_freezing_gives_the_strength_back():
    x = cloud()
    bench = Bench(x, "springs", {"weakening": 0.5})
    bench.move(1.2 * x)
    bench.step()
    assert bench.strength.max() < 0.6
    bench.bonds.freeze(bench.world)
    assert (bench.strength == 1).all()


@pytest.mark.parametrize("scheme", ["springs", "shape_matching"])
@pytest.mark.parametrize("how", ["frozen", "merged"])
def test_solids_and_soft_materials_have_none_and_nozzles_lead_bonded_fluid(scheme, how):
    x = cloud()
    kind = np.arange(len(x)) % 5
    inverse_mass = np.where(kind == 0, 0.0, np.where(kind == 1, -1.0, 1.0))
    material = np.where(kind == 2, 1, 0)
    bench = Bench(
        x, scheme, {"merging": 1.0}, {"stiffness": 0.0, "merging": 1.0}, inverse_mass=inverse_mass, material=material,
        freeze=how == "frozen",
    )  # fmt: skip
    bench.step()
    able = {i for i in range(len(x)) if kind[i] not in (0, 2)}
    assert set(bench.table()) == {(i, j) for i, j in pairs_within(x, H) if i in able and j in able}
    bench.move(1.1 * x)
    dv = bench.step()
    assert (dv[kind < 3] == 0).all() and np.abs(dv[kind >= 3]).min(axis=0).max() > 0


def test_bonds_reach_through_the_sides_of_a_periodic_box():
    x = kit.lattice((7, 7, 7), D) - np.array([0.5 * D, 0, 0])
    box = kit.periodic_box((0, 0, 0), (7 * D, 7 * D, 7 * D), "xyz")
    for scheme in ("springs", "shape_matching"):
        for freeze in (True, False):
            bench = Bench(x, scheme, box=box, freeze=False)
            bench.set({"merging": 0.0 if freeze else 0.95, "stiffness": 0.1}, reach=0.95 * H)
            if freeze:
                bench.bonds.freeze(bench.world)
            bench.step()
            assert len(bench.table()) == 26 * 343, "a cubic lattice has 26 neighbours within 1.9 spacings"
            moved = (x + np.array([2.4 * D, 0, 0])) % (7 * D)
            bench.move(moved)
            assert np.abs(bench.step()).max() < 1e-4


# --- when they begin and end -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
def test_new_bonds_join_close_pairs_and_do_not_pull(scheme):
    """Two bodies with frames of their own, one of them turned: nothing happens until somebody moves."""
    a, b = cloud((4, 4, 4)), cloud((4, 4, 4), seed=2) + np.array([0.3, 0, 0])
    x = np.concatenate([a, b])
    turned = b - b.mean(0)
    turned = np.stack([turned[:, 1], -turned[:, 0], turned[:, 2]], 1) + a.mean(0) + [4.1 * D, 0, 0]
    now = np.concatenate([a, turned])
    stiffness = 500.0 if scheme == "springs" else 0.5
    bench, without = (Bench(x, scheme, {"merging": merging, "stiffness": stiffness}) for merging in (0.9, 0.0))
    for each in (bench, without):
        each.move(now)
    dv = bench.step()
    new = {pair for pair in bench.table() if (pair[0] < 64) != (pair[1] < 64)}
    assert new == {(i, j) for i, j in pairs_within(now, 0.9 * H) if (i < 64) != (j < 64)} and len(new) > 50
    noise = 2e-4  # m/s: a rounding of positions per step
    assert np.abs(dv).max() < noise and np.abs(without.step()).max() < noise
    bench.move(shaken(now, 0.05))
    assert np.abs(bench.step()).max() > 100 * noise
    bench.check_symmetric()


@pytest.mark.parametrize("scheme", ["springs", "shape_matching"])
def test_sets_follow_the_paper_while_everything_moves(scheme):
    """Against a reference in double precision: bonds split, merge and weaken, in two materials."""
    x = cloud((5, 4, 4))
    material = (np.arange(len(x)) // 3) % 2
    laws = {**LAW, "stiffness": 0.3}, {"merging": 0.6, "splitting": 0.5, "stiffness": 0.1, "yielding": 0.05, "weakening": 0.1}
    bench = Bench(x, scheme, *laws, material=material)
    truth = Shapes(x, *laws, material=material) if scheme == "shape_matching" else Pairs(x, scheme, *laws, material=material)
    seen = set()
    for step in range(6):
        x = shaken(x, 0.15, step)
        bench.move(x)
        dv, expected = bench.step(), truth.step(x)
        bench.check_symmetric()
        assert np.abs(dv - expected).max() < 2e-6 * np.abs(expected).max()
        assert np.abs(bench.strength - truth.s).max() < 1e-6
        members = {(i, j) for i, at in truth.at.items() for j in at if i != j} if scheme == "shape_matching" else truth.rest
        assert {p for p in bench.table() if p in members or p[::-1] not in members} == set(members)
        seen.add(frozenset(members))
    assert len(seen) > 3 and 0.3 < bench.strength.min() < 0.9


def test_over_compressed_pairs_let_go_too():
    """[R31] γ counts in both directions; never means never."""
    x = np.array([[0.0, 0, 0], [0.9 * H, 0, 0], [0, 0.5 * H, 0]])
    bench = Bench(x, "springs", {"splitting": 0.3})
    bench.move(x * [[1], [0.6], [1]])
    bench.step()
    assert set(bench.table()) == {(0, 2), (2, 0)}
    bench.move(x * [[1], [1], [1.8]])
    bench.step()
    assert not bench.table()
    bench = Bench(x, "springs")
    bench.move(100 * x)
    assert np.abs(bench.step()).max() > 0 and len(bench.table()) == 4


@pytest.mark.parametrize("scheme", ["springs", "position_based"])
def test_rest_lengths_flow_and_end_beyond_the_reach(scheme):
    """Extension: beyond the yield rest lengths go the given share of their way, in both directions."""
    x = cloud()
    law = {"flow": 0.2, "flow_yield": 0.05}
    bench, truth = Bench(x, scheme, law), Pairs(x, scheme, law)
    for step, factor in enumerate((1.2, 1.25, 1.1, 0.9)):
        now = shaken(factor * x, 0.05, step)
        bench.move(now)
        dv, expected = bench.step(), truth.step(now)
        assert np.abs(dv - expected).max() < 2e-6 * np.abs(expected).max()
    assert bench.check_symmetric() == len(truth.rest) < len(pairs_within(x, H)) / 2


def test_within_the_yield_nothing_flows_by_a_bit():
    x = cloud()
    for scheme in ("springs", "shape_matching"):
        bench = Bench(x, scheme, {"flow": 0.2, "flow_yield": 0.2})
        before = bench.table()
        bench.move(1.01 * x)
        bench.step()
        after = bench.table()
        assert all(np.array_equal(before[pair], after[pair]) for pair in after) and len(after) == len(before)


def test_references_of_shapes_flow_until_nothing_pulls():
    """A sheared block forgets; its regions' frames stay where they are. Beyond the reach members leave, at both ends."""
    x = cloud()
    sheared = x + 0.3 * x[:, [1, 0, 2]] * [1, 0, 0]
    bench = Bench(x, "shape_matching", {"flow": 0.3, "stiffness": 0.5}, conserve=True)
    bench.set({"flow": 0.3, "stiffness": 0.5}, reach=1.5 * H)
    bench.move(sheared)
    sizes = [np.abs(bench.step()).max() for _ in range(25)]
    bench.check_symmetric()
    assert sizes[0] > 0.1 and np.allclose(np.array(sizes[1:8]) / sizes[:7], 0.7, atol=0.02) and sizes[-1] < 1e-3 * sizes[0]
    assert len(bench.table()) == len(pairs_within(x, H))
    bench.set({"flow": 0.3, "stiffness": 0.5})
    bench.step()
    assert bench.check_symmetric() * 2 < len(pairs_within(x, H))


# --- both ends agree ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["springs", "shape_matching"])
@pytest.mark.parametrize("striped", [False, True])
def test_ends_agree_to_the_last_bit_after_many_steps(scheme, striped):
    x = cloud((7, 7, 7))
    material = (x[:, 0] > x[:, 0].mean()).astype(int)
    laws = {**LAW, "flow": 0.02}, {**LAW, "merging": 0.95, "splitting": 0.2, "flow": 0.1, "flow_yield": 0.02}
    bench = Bench(x, scheme, *laws, material=material, striped=striped, inverse_mass=np.where(material == 0, 1.0, 0.5))
    rng = np.random.default_rng(4)
    sizes = []
    for _ in range(25):
        x += rng.normal(size=x.shape) * 0.08 * D + 0.01 * np.roll(x - x.mean(0), 1, axis=1) * [1, -1, 1]
        bench.move(x)
        bench.step()
        sizes.append(bench.check_symmetric())
        bench.world.neighbors.find(bench.world.particles.position, bench.world.particles, bench.world.count)
        bench.world.reorder()
    assert len(set(sizes)) > 10 and sizes[-1] > 1500


def test_layouts_give_the_same_corrections():
    x = cloud((6, 6, 6))
    for scheme in SCHEMES:
        results = []
        for striped in (False, True):
            bench = Bench(x, scheme, LAW, striped=striped)
            bench.move(shaken(x, 0.15))
            results.append(bench.step(2))
        assert np.abs(results[0] - results[1]).max() < 1e-6 * np.abs(results[0]).max() > 0


# --- nothing loses them ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
def test_they_survive_sorting_growth_and_widening(scheme):
    x = cloud((7, 7, 7))[np.random.default_rng(0).permutation(343)]
    now = shaken(x, 0.1)
    expected = Bench(x, scheme, LAW)
    expected.move(now)
    dv, table = expected.step(), expected.table()

    def check(bench):
        found = bench.table()
        assert set(found) == set(table) and all(np.array_equal(found[pair], table[pair]) for pair in table)

    sorted_, poured, wide = (Bench(x, scheme, LAW) for _ in range(3))
    sorted_.world.neighbors.find(sorted_.world.particles.position, sorted_.world.particles, sorted_.world.count)
    sorted_.world.reorder()
    assert not np.array_equal(sorted_.world.get("id"), np.arange(343))
    sorted_.move(now)
    assert np.array_equal(sorted_.step(), dv)
    check(sorted_)
    capacity = poured.world.capacity
    poured.add(x + 10.0)
    assert poured.world.capacity > capacity
    poured.move(np.concatenate([now, x + 10.0]))
    after = poured.step()
    assert np.array_equal(after[:343], dv) and np.abs(after[343:]).max() < 1e-4, "new bonds do not pull"
    assert {p for p in poured.table() if p[0] >= 343} == {(i + 343, j + 343) for i, j in pairs_within(x, 0.8 * H)}
    wide.bonds.make_room(wide.world, 90)
    wide.move(now)
    assert np.array_equal(wide.step(), dv)
    check(wide)


@pytest.mark.parametrize("scheme", ["springs", "shape_matching"])
def test_rows_grow_and_nothing_is_dropped(scheme):
    x = cloud((7, 7, 7), 0.05)
    squeezed = (x - x.mean(0)) * 0.6
    bench = Bench(x, scheme, {"merging": 0.9})
    bench.move(squeezed)
    bench.step()
    assert bench.check_symmetric() > 343 * 30
    assert set(bench.table()) == pairs_within(squeezed, 0.9 * H) | pairs_within(x, H)
    bench.bonds.freeze(bench.world)
    assert set(bench.table()) == pairs_within(squeezed, H)


def test_removed_particles_take_only_their_own():
    x = cloud()
    for scheme in SCHEMES:
        bench = Bench(x, scheme, {"merging": 0.5})
        keep = np.arange(len(x)) % 5 != 0
        bench.world.keep_only(keep)
        bench.step()
        assert set(bench.table()) == {(i, j) for i, j in pairs_within(x, H) if keep[i] and keep[j]}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_restarts_and_repeated_steps_have_the_same_bits(scheme):
    """Everything that lasts is in the rows: another world that gets them goes on alike; a step taken back is not there."""
    x = cloud((6, 6, 6))
    bench, other = Bench(x, scheme, LAW), Bench(x, scheme, LAW, freeze=False)
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    now = shaken(x @ turn.T, 0.1)
    bench.move(now)
    bench.step(3)
    for name, rows in bench.world.carried.items():
        other.world.carried[name].set(rows.get(bench.world.count))
    other.move(now)
    bench.world.remember()
    first = bench.step(2)
    bench.world.go_back()
    assert np.array_equal(first, bench.step(2)) and np.array_equal(first, other.step(2))
    assert np.array_equal(bench.strength, other.strength)
