"""Springs: who has one, how long it is at rest, when it ends, and that nothing loses one."""

import numpy as np
import pytest

from pvfs_kit import TAU, D, H, cloud, made, rest_lengths, scene, state
from pvfs_reference import Springs
from viscoil.simulate import Simulation

SPRUNG = {"k_spring": 0.05, "alpha": 0.2, "gamma": 0.05}


def near(a, b, atol=3e-6):
    return np.allclose(a, b, atol=atol)


def moved(sim, x):
    """Puts particle i to x[i] [h], at rest."""
    ids = sim.world.get("id")
    sim.world.set("position", (x[ids] * H).astype(np.float32))
    sim.world.set("velocity", np.zeros((len(ids), 3), np.float32))
    sim.world.fit_cells()


# --- which there are ---------------------------------------------------------------------------------------------------
def test_freezing_makes_a_spring_of_every_pair_within_h():
    x = cloud()
    sim = made(x, published=SPRUNG)
    assert near(rest_lengths(sim), Springs(x).lengths)
    sim.solver.clear(sim.world)
    assert (rest_lengths(sim) == 1).all()
    sim.solver.freeze(sim.world)
    sim.solver.freeze(sim.world)
    assert near(rest_lengths(sim), Springs(x).lengths)


def test_freezing_again_forgets_the_shape_before():
    x = cloud()
    sim = made(x, published=SPRUNG)
    moved(sim, 1.05 * x)
    sim.solver.freeze(sim.world)
    assert near(rest_lengths(sim), Springs(1.05 * x).lengths)


def test_new_springs_are_as_long_as_the_support_and_do_not_pull():
    """Without plasticity they stay so: a liquid is a liquid, springs or not (the same bits)."""
    x = cloud()
    v = np.random.default_rng(0).uniform(-0.05, 0.05, x.shape)
    sims = [made(x, v, freeze=False, published={"k_spring": stiffness}) for stiffness in (0.3, 0.0)]
    for _ in range(4):
        for sim in sims:
            sim.step()
        assert (rest_lengths(sims[0]) == 1).all()
    assert np.array_equal(state(sims[0])[0], state(sims[1])[0])


@pytest.mark.parametrize("relaxation", ["coloured", "jacobi"])
def test_springs_reach_through_the_sides_of_a_periodic_box(relaxation):
    """Frozen, and made by plastic flow: a lattice without a surface has the same springs everywhere."""
    edge = 10 * D
    box = {"min": (0, 0, 0), "max": (edge, edge, edge), "periodic": "xyz"}
    sim = Simulation(scene((10, 10, 10), {"k_spring": 0.1, "alpha": 0.1, "relaxation": relaxation}, domain=box), "cpu")
    sim.solver.freeze(sim.world)
    frozen = (rest_lengths(sim) < 1).sum(1)
    assert (frozen == 80).all(), "a cubic lattice of 0.38 h has 80 neighbours within h"
    sim.solver.clear(sim.world)
    sim.step()
    assert ((rest_lengths(sim) < 1).sum(1) == 80).all()


@pytest.mark.parametrize("relaxation", ["sequential", "coloured", "jacobi"])
def test_the_metrics_count_each_spring_once(relaxation):
    sim = made(cloud(), published={"k_spring": 0.1, "relaxation": relaxation})
    sim.advance_frame()
    assert sim.metrics()["springs"] == pytest.approx(len(sim.solver.springs(sim.world)[0]) / 150)


def test_rows_grow_and_nothing_is_dropped():
    """Squeezed to a third, every particle has far more springs than anybody expected."""
    x = cloud((8, 8, 8), 0.05)
    squeezed = (x - x.mean(0)) * 0.45
    sim = made(x, published=SPRUNG)
    moved(sim, squeezed)
    sim.solver.freeze(sim.world)
    rest = rest_lengths(sim)
    expected = Springs(squeezed).lengths
    most = (expected < 1).sum(1).max()
    assert most > 300 and near(rest, expected)


@pytest.mark.parametrize("relaxation", ["coloured", "jacobi"])
def test_ends_agree_to_the_last_bit(relaxation):
    """In sweeps the end with the smaller id holds a spring. Else both do, and nobody is left with half a one."""
    x = cloud()
    sim = made(x, np.random.default_rng(3).uniform(-0.1, 0.1, x.shape), published={"k_spring": 0.2, "alpha": 0.1})
    sim.scene.solver.relaxation = relaxation
    sim.update()
    made_since = 0
    for _ in range(25):
        before = rest_lengths(sim) < 1
        sim.step()
        made_since += int(((rest_lengths(sim) < 1) & ~before).sum())
        count, ids = sim.world.count, sim.world.get("id")
        number, partner, rest = (sim.world.carried[name].get(count) for name in ("number", "partner", "rest"))
        used = np.arange(partner.shape[1]) < number
        ends = np.full((count, count), np.nan, np.float32)
        ends[np.repeat(ids, number[:, 0]), partner[used]] = rest[used]
        if relaxation == "jacobi":
            assert np.array_equal(ends, ends.T, equal_nan=True)
        else:
            assert np.isnan(np.tril(ends)[np.tril_indices(count)]).all()
    assert made_since > 500


# --- how long they are -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("factor", [1.15, 0.8])
@pytest.mark.parametrize(
    "law",
    [
        {"alpha": 0.3},
        {"alpha": 0.3, "gamma": 0.1},
        {"alpha": 2.0, "gamma": 0.05},  # beyond Δt α = 0.5 the share is 1 − e^(−Δt α)
        {"alpha": 0.3, "gamma": 0.2, "alpha_c": 0.1, "gamma_c": 0.02},
    ],
)
def test_rest_lengths_follow_equation_8(law, factor):
    x = cloud()
    sim = made(x, published={"k_spring": 0.05, "alpha": law["alpha"], "gamma": law.get("gamma", 0.0)})
    if "alpha_c" in law:
        sim.scene.solver.plasticity_compression = law["alpha_c"] / TAU
        sim.scene.solver.yield_compression = law["gamma_c"]
        sim.update()
    expected = Springs(x)
    moved(sim, factor * x)
    for _ in range(3):
        now, v = state(sim)
        expected.adjust(now + v, 1.0, **law)
        sim.step()
        assert near(rest_lengths(sim), expected.lengths, 1e-5)
    assert not near(expected.lengths, Springs(x).lengths, 0.01)


def test_within_the_yield_nothing_changes_by_a_bit():
    x = cloud()
    sim = made(x, published={"k_spring": 0.05, "alpha": 0.3, "gamma": 0.2})
    before = sim.solver.springs(sim.world)
    moved(sim, 1.001 * x)
    sim.step()
    now = dict(zip(zip(*sim.solver.springs(sim.world)[:2], strict=True), sim.solver.springs(sim.world)[2], strict=True))
    for i, j, length in zip(*before, strict=True):
        assert now[i, j] == length


def test_springs_end_when_they_are_longer_than_the_support():
    x = np.array([[0, 0, 0], [0.8, 0, 0], [0, 0.6, 0]])
    sim = made(x, published={"k_spring": 0.01, "alpha": 0.4})
    moved(sim, x * [[1], [2.5], [1.0]])
    expected = Springs(x)
    for _ in range(2):
        now, v = state(sim)
        expected.adjust(now + v, 1.0, 0.4)
        sim.step()
    assert near(rest_lengths(sim), expected.lengths, 1e-5)
    assert rest_lengths(sim)[0, 1] == 1 and rest_lengths(sim)[0, 2] < 1


@pytest.mark.parametrize("relaxation", ["sequential", "coloured", "jacobi"])
def test_springs_longer_than_any_list_live_on_and_pull(relaxation):
    """An elastic pair torn four supports apart comes back; plastic pairs let go (see above)."""
    x = np.array([[0.0, 0, 0], [0.5, 0, 0]])
    sim = made(x, published={"k_spring": 0.1, "relaxation": relaxation})
    moved(sim, np.array([[-2.0, 0, 0], [2.0, 0, 0]]))
    sim.step()
    apart = np.linalg.norm(np.diff(state(sim)[0], axis=0))
    assert apart == pytest.approx(4 - 0.1 * (1 - 0.5) * 3.5, abs=1e-4)
    assert rest_lengths(sim)[0, 1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("change", [("coloured", "jacobi"), ("jacobi", "coloured")])
def test_another_relaxation_takes_them_over(change):
    """Sweeps keep springs at one end, jacobi at both: whoever changes his mind in between loses and doubles none."""
    x = cloud()
    v = np.random.default_rng(3).uniform(-0.05, 0.05, x.shape)
    sim = made(x, v, published={"k_spring": 0.1, "relaxation": change[0]})
    for _ in range(3):
        sim.step()
    before, mean = rest_lengths(sim), state(sim)[1].mean(0)
    sim.scene.solver.relaxation = change[1]
    sim.update()
    for _ in range(3):
        sim.step()
    assert np.array_equal(rest_lengths(sim), before), "elastic: not a bit changes"
    assert np.abs(state(sim)[1].mean(0) - mean).max() < 1e-6
    straight = made(x, v, published={"k_spring": 0.1, "relaxation": change[1]})
    for _ in range(6):
        straight.step()
    assert np.abs(state(sim)[0] - state(straight)[0]).max() < 0.05


# --- nothing loses them ------------------------------------------------------------------------------------------------
def test_they_survive_sorting():
    x = cloud((8, 8, 8))[np.random.default_rng(0).permutation(512)]
    sim = made(x, published=SPRUNG)
    before, ids = rest_lengths(sim), sim.world.get("id")
    sim.world.neighbors.find(sim.world.particles.position, sim.world.particles, sim.world.count)
    sim.world.reorder()
    assert not np.array_equal(sim.world.get("id"), ids)
    assert np.array_equal(before, rest_lengths(sim))


def test_removed_particles_take_only_their_own():
    x = cloud()
    sim = made(x, published=SPRUNG)
    keep = np.arange(len(x)) % 5 != 0
    expected = Springs(x).lengths
    expected[~keep] = expected[:, ~keep] = 1
    sim.world.keep_only(keep[sim.world.get("id")])
    sim.step()
    rest = rest_lengths(sim)
    assert (rest[~keep] == 1).all() and np.abs(rest - expected).max() < 0.1 and (expected < 1).sum() > 1000


def test_poured_particles_get_theirs_and_others_keep_them():
    nozzle = {"material": "m", "shape": {"type": "sphere", "radius": 0.1}, "position": (0.0, 0.6, 0.0), "speed": 1.5}
    sim = Simulation(scene((5, 5, 5), {"k_spring": 0.1}, frames=12, emitter=[nozzle], gravity=(0, 0, 0)), "cpu")
    sim.solver.freeze(sim.world)
    before, capacity = rest_lengths(sim)[:125, :125], sim.world.capacity
    for _ in sim.frames(12):
        pass
    rest = rest_lengths(sim)
    assert sim.world.capacity > capacity and len(rest) > 300
    old = before < 1
    assert np.array_equal(rest[:125, :125][old], before[old]), "elastic: not a bit changes"
    assert (rest[125:, 125:] < 1).sum() > 1000


def test_a_failed_step_gives_them_back():
    sim = made(cloud(), published=SPRUNG)
    before = sim.solver.springs(sim.world)
    sim.world.remember()
    sim.solver.clear(sim.world)
    sim.world.go_back()
    assert all(np.array_equal(a, b) for a, b in zip(before, sim.solver.springs(sim.world), strict=True))


def test_restart_has_the_same_bits():
    def fresh():
        x = cloud()
        v = np.random.default_rng(2).uniform(-0.1, 0.1, x.shape)
        return made(x, v, published={**SPRUNG, "k_spring": 0.2, "sigma": 0.1})

    sim = fresh()
    for _ in sim.frames(6):
        pass
    kept = sim.state()
    again = fresh()
    again.restore(kept)
    assert all(np.array_equal(a, b) for a, b in zip(*(s.solver.springs(s.world) for s in (sim, again)), strict=True))
    for each in (sim, again):
        for _ in each.frames(14):
            pass
    assert sim.frame(["density"]).differences(again.frame(["density"])) == []
    assert all(np.array_equal(a, b) for a, b in zip(*(s.solver.springs(s.world) for s in (sim, again)), strict=True))
    forgetful = fresh()
    forgetful.restore({**kept, "carried/number": 0 * kept["carried/number"]})
    for _ in forgetful.frames(14):
        pass
    assert forgetful.frame().differences(sim.frame()) != [], "the springs are what makes the difference"
