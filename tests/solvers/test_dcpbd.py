"""Conformation constraints in whole simulations: momentum, nozzles that hold on, contact, restart, live changes."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.io.execute import execute
from viscoil.io.run import Run
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.validation.ropes import largest_gap


def block(material, **changes):
    size = (0.2, 0.2, 0.2)
    values = {
        "spacing": 0.025, "time": {"frames": 10, "frame_time": 0.016, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"}, "material": {"m": {"density": 1000, **material}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": (0, 0.1, 0)}}],
        "solid": [{"name": "floor", "friction": "no-slip", "shape": {"type": "plane"}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def jet(**changes):
    return Scene(
        **{
            "spacing": 0.004, "time": {"frames": 20, "frame_time": 1 / 60, "steps_per_frame": 4},
            "solver": {"method": "dcpbd"}, "material": {"m": {"density": 1400, "viscosity": 100}},
            "emitter": [
                {"material": "m", "speed": 0.1, "position": (0, 0.3, 0), "direction": (0, -1, 0),
                 "shape": {"type": "cylinder", "radius": 0.012, "height": 0.02}}
            ],
            **changes,
        }
    )  # fmt: skip


@pytest.mark.parametrize("material", [{"viscosity": 1000}, {"modulus": 1e5}, {"modulus": 1e4, "relaxation_time": 0.1}])
def test_a_free_block_falls_with_g(material):
    sim = Simulation(block(material, solid=[]), "cpu")
    for _ in sim.frames():
        pass
    v = sim.frame()["velocity"].astype(float).mean(0)
    assert v[1] == pytest.approx(-9.81 * 0.16, rel=1e-3) and np.abs(v[[0, 2]]).max() < 1e-4


def test_momentum_of_random_motion_is_kept_however_few_iterations():
    scene = block({"viscosity": 500}, solid=[], gravity=(0, 0, 0))
    scene.solver.velocity_iterations = 2
    sim = Simulation(scene, "cpu")
    rng = np.random.default_rng(0)
    sim.world.set("velocity", rng.normal(size=(sim.particles, 3)) + 0.3)
    before = sim.frame()["velocity"].astype(float)
    for _ in sim.frames(3):
        pass
    after = sim.frame()["velocity"].astype(float)
    assert np.abs(after.sum(0) - before.sum(0)).max() < 1e-5 * np.linalg.norm(before, axis=1).sum()


def test_a_nozzle_holds_on_to_what_it_pours():
    """Without a grip the jet falls freely: 0.55 m in this time. Honey of 100 Pa s hangs on."""
    sim = Simulation(jet(), "cpu")
    frames = list(sim.frames())
    drop = 0.3 - frames[-1]["position"][:, 1].min()
    assert 0.033 < drop < 0.12
    led = sim.world.get("inverse_mass") < 0
    assert led.any() and np.allclose(sim.world.get("velocity")[led], (0, -0.1, 0), atol=1e-6)
    assert sim.world.get("position")[led][:, 1].min() > 0.3 - 1e-4
    loose = sim.world.get("position")[~led]
    assert loose[:, 1].max() < 0.3 + 1e-4


def test_a_rope_stretches_without_tearing():
    sim = Simulation(jet(time={"frames": 45, "frame_time": 1 / 60, "steps_per_frame": 4}), "cpu")
    *_, last = sim.frames()
    heights = np.sort(last["position"][:, 1])
    assert 0.3 - heights[0] > 0.15, "stretched to more than twice what was poured"
    assert np.diff(heights).max() < 1.5 * 0.004, "no gap anywhere along it"


def test_spreading_leaves_rest_alone():
    sim = Simulation(block({"viscosity": 100}, solid=[], gravity=(0, 0, 0)), "cpu")
    start = sim.frame()["position"]
    for _ in sim.frames(5):
        pass
    assert np.array_equal(sim.frame()["position"], start)


def test_no_slip_holds_and_ice_does_not():
    moved = {}
    for friction in ("no-slip", 0.0):
        solid = [{"friction": friction, "shape": {"type": "plane"}}]
        sim = Simulation(block({"viscosity": 2000}, solid=solid, gravity=(3, -9.81, 0)), "cpu")
        start = sim.frame()["position"]
        for _ in sim.frames(10):
            pass
        lowest = start[:, 1] < 0.02
        moved[friction] = (sim.frame()["position"] - start)[lowest][:, 0].mean()
    assert abs(moved["no-slip"]) < 1e-4 and moved[0.0] > 0.02


def test_thicker_is_slower_and_says_when_it_does_not_converge():
    heights = {}
    for viscosity in (20, 200, 2000):
        sim = Simulation(block({"viscosity": viscosity}), "cpu")
        for _ in sim.frames(15):
            pass
        heights[viscosity] = sim.metrics()["height"]
        assert sim.metrics()["viscosity_share"] > 0.9 and sim.metrics()["residual"] < 0.02
    assert heights[20] < heights[200] < heights[2000]
    starved = block({"viscosity": 1e5})
    starved.solver.velocity_iterations, starved.solver.contact_rounds = 1, 1
    sim = Simulation(starved, "cpu")
    sim.advance_frame()
    assert sim.metrics()["residual"] > 0.02


@pytest.mark.parametrize(("iterations", "said"), [(1, 1), (None, 0)])
def test_a_run_says_that_less_than_the_asked_viscosity_acted(iterations, said, tmp_path):
    """With the default's iterations all of it acts, and nothing is said."""
    scene = block({"viscosity": 2000})
    scene.time.frames = 3
    scene.solver.velocity_iterations = iterations or scene.solver.velocity_iterations
    run = Run.create(tmp_path / "run", scene)
    assert len(execute(Simulation(scene, "cpu"), run).acted) == said
    share = "of the asked viscosity or modulus acted in"
    for text in (" ".join(run.acted()), (run.path / "log.txt").read_text()):
        assert (share in text and "velocity_iterations = 400 (now 1)" in text) == bool(said)


def test_materials_change_while_it_runs():
    sim = Simulation(block({"viscosity": 5000}), "cpu")
    for _ in sim.frames(5):
        pass
    stiff = sim.metrics()["height"]
    sim.scene.material["m"].viscosity = 1.0
    sim.update()
    for _ in sim.frames(20):
        pass
    assert stiff > 0.18 and sim.metrics()["height"] < 0.1


@pytest.mark.parametrize("scene", [jet, lambda: block({"modulus": 1e4, "relaxation_time": 0.1})])
def test_restart_has_the_same_bits(scene):
    sim = Simulation(scene(), "cpu")
    for _ in sim.frames(5):
        pass
    state = sim.state()
    for _ in sim.frames(8):
        pass
    again = Simulation(scene(), "cpu")
    again.restore(state)
    for _ in again.frames(8):
        pass
    assert sim.frame(["density", "conformation"]).differences(again.frame(["density", "conformation"])) == []


def test_a_failed_step_gives_the_conformation_back():
    scene = box_scene(0.05, solver={"method": "dcpbd"}, material={"water": {"density": 1000, "modulus": 1e4}})
    sim = Simulation(scene, "cpu")
    stretched = np.tile(np.diag([1.5, 0.9, 0.9]).astype(np.float32), (sim.particles, 1, 1))
    sim.world.set("conformation", stretched)
    sim.world.remember()
    sim.world.set("conformation", 7 * stretched)
    sim.world.go_back()
    assert np.array_equal(sim.world.get("conformation"), stretched)


def projected(projection, iterations, step=0.004):
    """Velocities after one step of a block with random motion, and the metrics of the projection."""
    scene = block({"viscosity": 20}, gravity=(0, 0, 0))
    scene.solver.projection, scene.solver.velocity_iterations, scene.solver.velocity_tolerance = projection, iterations, 1e-6
    sim = Simulation(scene, "cpu")
    sim.world.set("velocity", np.random.default_rng(0).normal(size=(sim.particles, 3)) * 0.1)
    sim.solver.begin_frame()
    sim.solver.step(sim.world, step)
    return sim.frame()["velocity"].astype(float), sim.solver.metrics()


def test_all_projections_find_the_same_velocities():
    exact, numbers = projected("cg", 200)
    assert numbers["residual"] < 1e-4
    for name, iterations in (("chebyshev", 120), ("jacobi", 600)):
        found, numbers = projected(name, iterations)
        assert np.abs(found - exact).max() < 2e-3 * np.abs(exact).max(), name
        assert numbers["residual"] < 1e-3


def test_conjugate_gradients_need_fewest_iterations_and_jacobi_most():
    left = {name: projected(name, 12)[1]["residual"] for name in ("cg", "chebyshev", "jacobi")}
    assert left["cg"] < left["chebyshev"] < left["jacobi"] < 1


@pytest.mark.parametrize("by_frames", [True, False])
def test_chebyshev_restarts_with_the_same_bits(by_frames):
    """Also when somebody goes on step by step, as the studio does."""

    def go_on(sim, frames):
        for _ in range(frames * (1 if by_frames else sim.scene.time.steps_per_frame)):
            sim.advance_frame() if by_frames else sim.step()

    scene = block({"viscosity": 20})
    scene.solver.projection, scene.solver.velocity_iterations = "chebyshev", 10
    first, resumed = Simulation(scene, "cpu"), Simulation(scene, "cpu")
    go_on(first, 2)
    resumed.restore(first.state())
    go_on(first, 2)
    go_on(resumed, 2)
    assert first.frame_index == resumed.frame_index == 4
    for name in ("position", "velocity"):
        assert np.array_equal(first.frame()[name], resumed.frame()[name])


def test_a_taut_polymer_pulls_harder():
    """FENE-P: the same stretch, with a limit close by, gives f times the stress."""
    speeds = {}
    for name, limit in (("free", None), ("taut", 6.0)):
        material = {"modulus": 1e4, "relaxation_time": 10.0} | ({"extensibility": limit} if limit else {})
        sim = Simulation(block(material, solid=[], gravity=(0, 0, 0)), "cpu")
        stretched = np.tile(np.diag([2.25, 0.7, 0.7]), (sim.particles, 1, 1))
        sim.world.set("conformation", stretched)
        sim.solver.step(sim.world, 1e-4)
        speeds[name] = np.abs(sim.frame()["velocity"][:, 0]).max()
    spring = (6 - 3) / (6 - 3.65)
    # The stress along x is fQ − 1; the step is too short for anything else to matter.
    assert speeds["taut"] / speeds["free"] == pytest.approx((spring * 2.25 - 1) / 1.25, rel=0.05)


def test_a_rope_of_toothpaste_holds():
    """Spread like a fluid, what yields tore within a second: a gap of six spacings."""
    scene = jet(
        material={"m": {"preset": "toothpaste"}},
        emitter=[
            {"material": "m", "speed": 0.12, "position": (0, 0.06, 0), "direction": (0, -1, 0),
             "shape": {"type": "cylinder", "radius": 0.01, "height": 0.02}}
        ],
        solid=[{"name": "floor", "friction": "no-slip", "shape": {"type": "plane"}}],
        time={"frames": 45, "frame_time": 1 / 60, "steps_per_frame": 4},
    )  # fmt: skip
    frame = list(Simulation(scene, "cpu").frames())[-1]
    x = frame["position"]
    assert largest_gap(x, 0.01, 0.05) < 2 * 0.004
    assert x[:, 1].min() > 0 and frame["velocity"].max() < 2
