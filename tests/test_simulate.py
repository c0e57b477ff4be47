"""The time loop: exact frames, steps that adapt, states that come back bit for bit, changes between steps, failures."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.errors import SceneError, SimulationFailed
from viscoil.io.run import Run
from viscoil.scene.load import load
from viscoil.scene.parts import Emitter, Fluid, Sink, Solid
from viscoil.simulate import HALVINGS, Simulation

D = 0.05
BALL = {"type": "sphere", "radius": 0.06}


def busy_scene():
    """Emission, removal, a moving solid and boundary samples."""
    scene = box_scene(D, (8, 5, 6))
    scene.emitter.append(Emitter(shape=BALL, material="honey", position=(0.1, 0.42, 0.1), speed=1.5))
    scene.sink.append(Sink(shape={"type": "box", "size": (0.1, 0.1, 1), "position": (0.35, 0.05, 0)}))
    motion = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 0.1, "position": (0.05, 0.1, 0)}]
    scene.solid.append(Solid(shape={**BALL, "position": (0.2, 0.3, 0.2)}, motion=motion, boundary="particles"))
    return scene


def same(a, b):
    return all(np.array_equal(a[name], b[name]) for name in ("id", "position", "velocity", "density", "material"))


@pytest.fixture(scope="module")
def busy():
    sim = Simulation(busy_scene(), "cpu")
    frames, states = [], []
    for frame in sim.frames(6):
        frames.append(frame)
        states.append(sim.state())
    return sim, frames, states


# --- frames and steps ------------------------------------------------------------------------------------------------


def test_frame_times_are_exact(busy):
    _, frames, _ = busy
    assert [f.index for f in frames] == list(range(7))
    assert [f.time for f in frames] == [k * 0.016 for k in range(7)], "products, not sums"
    assert [f.step for f in frames] == [4 * k for k in range(7)]


def test_a_quick_look_has_the_same_particles_in_any_order(busy):
    sim, frames, _ = busy
    quick = sim.frame(["density"], by_id=False)
    order = [np.lexsort(f["position"].T) for f in (quick, frames[-1])]
    for name in quick.names:
        assert np.array_equal(quick[name][order[0]], frames[-1][name][order[1]])
    assert "id" not in quick.names and len(quick) == sim.particles < sim.world.count, "no boundary samples"


@pytest.mark.parametrize("rule, steps", [({"steps_per_frame": 3}, 3), ({"step": 0.005}, 4), ({"step": 0.016}, 1)])
def test_fixed_steps(rule, steps):
    sim = Simulation(box_scene(D, time={"frames": 2, "frame_time": 0.016, **rule}), "cpu")
    for _ in sim.frames():
        pass
    assert sim.frame_index == 2 and sim.time == 0.032 and sim.step_count == 2 * steps
    assert sim.metrics()["dt"] == pytest.approx(0.016 / steps)
    assert sim.metrics()["limited_by"] == ("frame time" if rule == {"step": 0.005} else "fixed step")
    assert list(sim.frames()) == [], "nothing is left to do"


def test_step_by_step_is_the_same_as_by_frames(busy):
    """step() meets the same frames with the same bits."""
    _, frames, _ = busy
    sim = Simulation(busy_scene(), "cpu")
    for index in range(1, 4):
        reports = [sim.step() for _ in range(4)]
        assert sim.frame_index == index
        assert reports[-1]["time"] == pytest.approx(index * 0.016)
        assert same(sim.frame(), frames[index])


def test_cfl_chooses_the_step_and_says_why():
    time = {"frames": 5, "frame_time": 0.02, "cfl": 0.4, "max_step": 0.008, "min_step": 0.001}
    scene = box_scene(D, gravity=(0, 0, 0), solid=[], time=time)
    sim = Simulation(scene, "cpu")
    seen = {}
    for speed, reason in ((0.1, "max_step"), (4.0, "CFL 0.4"), (100.0, "min_step")):
        sim.world.set("velocity", (speed, 0, 0))
        sim._largest_speed = speed
        dt = sim.step()["dt"]
        seen[speed] = dt
        assert reason in sim._limited_by
    assert seen[0.1] <= 0.008 and seen[100.0] == pytest.approx(0.001, rel=0.3)
    assert seen[4.0] == pytest.approx(0.4 * D / 4, rel=0.35)


def test_cfl_knows_what_is_about_to_move():
    """Inflow and solids move before any particle does."""
    time = {"frames": 5, "frame_time": 0.02, "cfl": 0.4}
    scene = box_scene(D, gravity=(0, 0, 0), time=time)
    scene.emitter.append(Emitter(shape=BALL, material="water", position=(0.1, 0.5, 0.1), speed=8.0))
    assert Simulation(scene, "cpu").step()["dt"] <= 0.4 * D / 8 * 1.001
    scene = box_scene(D, gravity=(0, 0, 0), time=time)
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (5, 0, 0)}]
    scene.solid.append(Solid(shape={**BALL, "position": (-1, 0.5, 0.1)}, motion=motion, interpolation="linear"))
    assert Simulation(scene, "cpu").step()["dt"] <= 0.4 * D / 5 * 1.001


def test_callback_sees_every_step():
    times = []
    sim = Simulation(box_scene(D), "cpu", callback=lambda s: times.append((s.step_count, s.time)))
    sim.advance_frame()
    assert [n for n, _ in times] == [1, 2, 3, 4]
    assert np.allclose([t for _, t in times], np.arange(1, 5) * 0.004)


def test_metrics_agree_with_the_frame(busy):
    sim, frames, _ = busy
    m, frame = sim.metrics(), frames[-1]
    x, v = frame["position"].astype(float), frame["velocity"].astype(float)
    mass = np.array([k["density"] for k in frame.materials])[frame["material"]] * D**3
    assert m["particles"] == len(frame) == sim.particles
    assert m["kinetic_energy"] == pytest.approx(0.5 * (mass * (v**2).sum(1)).sum(), rel=1e-6)
    assert m["momentum_y"] == pytest.approx((mass * v[:, 1]).sum(), rel=1e-5)
    assert m["height"] == pytest.approx(x[:, 1].max()) and m["front_x"] == pytest.approx(x[:, 0].max())
    assert m["extent_z"] == pytest.approx(np.ptp(x[:, 2])) and m["speed_max"] == pytest.approx(np.linalg.norm(v, axis=1).max())
    assert m["centre_of_mass_x"] == pytest.approx((mass * x[:, 0]).sum() / mass.sum(), rel=1e-6)
    assert m["steps"] == 4 and m["retries"] == 0 and m["frame"] == 6
    assert any(key.startswith("seconds_") for key in m)


def test_nobody_has_no_mean():
    """Means and extremes of no particles are NaN, sums are zero; a single particle is nowhere inside the fluid."""
    late = {"material": "water", "shape": BALL, "position": (0.1, 0.3, 0.1), "start": 0.02, "speed": 1.0}
    scene = box_scene(D, fluid=[], emitter=[late])
    empty = Simulation(scene, "cpu").metrics()
    gaps = {name for name, value in empty.items() if value != value}
    middle = {f"centre_of_mass_{axis}" for axis in "xyz"} | {f"extent_{axis}" for axis in "xyz"}
    assert gaps == middle | {"density_mean", "density_max", "compression", "speed_max", "height", "front_x"}
    assert empty["particles"] == 0 and empty["kinetic_energy"] == 0 and empty["momentum_y"] == 0
    few = Simulation(box_scene(D, (2, 2, 2)), "cpu").metrics()
    assert {name for name, value in few.items() if value != value} == {"density_mean"}, "all are at the surface"


def test_scenes_may_be_given_by_name_path_or_tables(tmp_path):
    scene = box_scene(D)
    (path := tmp_path / "box.toml").write_text(scene.to_toml())
    for given in (scene, path, str(path), scene.to_dict()):
        assert Simulation(given, "cpu").particles == 216
    assert Simulation("dam_break", "cpu").scene.title == load("dam_break").title
    with pytest.raises(SceneError, match='Did you mean "dam_break"'):
        Simulation("dam_brake")
    with pytest.raises(TypeError, match=r'expected a Scene, the name of a shipped scene \("dam_break"\).*got 5'):
        Simulation(5)


def test_one_line_says_what_it_is(tmp_path):
    sim = Simulation(box_scene(D, title="Bath"), "cpu")
    *_, frame = sim.frames(2)
    assert repr(sim) == '<Simulation "Bath": pbf, 216 particles, frame 2 of 4 at 0.032 s, step 8>'
    fields = "position, velocity, id, material, density"
    assert repr(frame) == f'<Frame 2 of "Bath": 216 particles at 0.032 s, step 8; {fields}>'
    kinds = "1 fluid, 1 solid"
    assert repr(sim.scene) == str(sim.scene) == f'<Scene "Bath": pbf, spacing 0.05 m, 0.064 s in 4 frames; {kinds}>'
    with Run.create(tmp_path / "run", sim.scene) as run:
        assert repr(run) == f'<Run {run.path}: "Bath", pbf, no frames yet, running>'
        run.write_frame(frame)
        run.write_metrics(sim.metrics())
        run.set_status("finished")
        assert repr(run) == f'<Run {run.path}: "Bath", pbf, 216 particles, 1 frame to 0.032 s, finished>'
    untitled = box_scene(D)
    assert repr(untitled).startswith("<Scene: pbf, ") and repr(Simulation(untitled, "cpu")).startswith("<Simulation: pbf, ")
    assert repr(Run(tmp_path / "nothing")) == f"<Run {tmp_path / 'nothing'}: no run yet>"


def test_things_said_once(busy):
    sim, _, _ = busy
    assert any("viscosity" in note for note in sim.notes), "what the solver cannot honour"
    assert len(set(sim.notes)) == len(sim.notes)


# --- restart ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [0, 2, 5])
def test_restored_in_a_fresh_simulation(busy, begin):
    _, frames, states = busy
    sim = Simulation(busy_scene(), "cpu")
    sim.restore(states[begin])
    assert same(sim.frame(), frames[begin])
    for frame in sim.frames(6):
        assert same(frame, frames[frame.index]), frame.index
    assert frame.index == 6


def test_going_back_in_the_same_simulation(busy):
    sim, frames, states = busy
    sim.restore(states[1])
    assert sim.frame_index == 1
    for frame in sim.frames(4):
        assert same(frame, frames[frame.index])
    assert sim.state().keys() == states[4].keys()
    for name, value in sim.state().items():
        assert np.array_equal(value, states[4][name]), name


def test_the_busy_scene_is_busy(busy):
    """Otherwise the tests above would prove little."""
    _, frames, states = busy
    assert set(frames[-1]["material"]) == {0, 1}
    assert len(np.setdiff1d(frames[0]["id"], frames[-1]["id"])) > 0, "something sank"
    assert states[-1]["capacity"] >= states[0]["capacity"] and states[-1]["boundary_count"] > 0
    assert frames[-1].solids[1]["pose"] != frames[0].solids[1]["pose"]


def test_periodic_and_open_worlds_alternate():
    """Several simulations in one process, with different kernels, stepped in turn: each as if alone."""

    def make(kind):
        domain = {"min": (0, 0, 0), "max": (8 * D, 9, 8 * D), "periodic": "xz"} if kind == "periodic" else None
        floor = [{"shape": {"type": "plane"}}]
        return Simulation(box_scene(D, (8, 4, 8), domain=domain, solid=floor), "cpu")

    alone = {kind: list(make(kind).frames(3))[-1] for kind in ("periodic", "open")}
    a, b = make("periodic"), make("open")
    for _ in range(12):
        a.step()
        b.step()
    assert same(a.frame(), alone["periodic"]) and same(b.frame(), alone["open"])
    x = a.frame()["position"]
    assert x[:, [0, 2]].min() >= 0 and x[:, [0, 2]].max() <= 8 * D
    assert not same(a.frame(), b.frame())


# --- changes between steps -------------------------------------------------------------------------------------------


@pytest.fixture
def calm():
    sim = Simulation(box_scene(D, gravity=(0, 0, 0), solver={"method": "pbf", "unilateral": True}), "cpu")
    sim.advance_frame()
    return sim


def test_gravity(calm):
    calm.scene.gravity = (0, 9.81, 0)
    calm.update()
    before = calm.metrics()["momentum_y"]
    calm.advance_frame()
    assert calm.metrics()["momentum_y"] - before == pytest.approx(calm.particles * D**3 * 998 * 9.81 * 0.016, rel=0.05)


def test_solids_added_moved_and_removed(calm):
    calm.scene.solid.append(Solid(name="plate", shape={"type": "box", "size": (1, 0.1, 1), "position": (0.15, 0.4, 0.15)}))
    calm.update()
    calm.scene.gravity = (0, 30, 0)
    calm.update()
    for _ in range(12):
        calm.advance_frame()
    assert calm.metrics()["height"] < 0.35, "the new lid holds"
    assert [s["name"] for s in calm.frame().solids] == ["tank", "plate"]
    calm.scene.solid.pop()
    calm.update()
    for _ in range(10):
        calm.advance_frame()
    assert calm.metrics()["height"] > 0.4, "the lid is gone"


def test_boundary_samples_follow_the_list_of_solids(calm):
    assert calm.world.boundary_count == 0
    calm.scene.solid.append(Solid(boundary="particles", shape={**BALL, "position": (0.15, 0.5, 0.15)}))
    calm.update()
    number = calm.world.boundary_count
    assert number > 0 and calm.particles == 216
    calm.advance_frame()
    calm.scene.solid[-1].friction = 0.3
    calm.update()
    assert calm.world.boundary_count == number
    calm.scene.solid.pop()
    calm.update()
    assert calm.world.boundary_count == 0 and calm.particles == 216
    calm.advance_frame()


def test_friction(calm):
    calm.scene.solid[0].friction = "no-slip"
    calm.update()
    assert calm.world.solids.device.friction.to_numpy()[0] > 1e20


def test_a_moving_solid_stays_where_it_is_when_something_else_changes():
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (1, 0, 0)}]
    scene = box_scene(D, gravity=(0, 0, 0))
    scene.solid.append(Solid(shape={**BALL, "position": (0, 2, 0)}, motion=motion, interpolation="linear"))
    sim = Simulation(scene, "cpu")
    sim.advance_frame()
    sim.update()
    assert sim.world.solids.device.position.to_numpy()[1, 0] == pytest.approx(0.016, abs=1e-6)


def test_emitters_and_sinks(calm):
    calm.scene.emitter.append(Emitter(shape=BALL, material="honey", position=(0.15, 0.5, 0.15), speed=1.0))
    calm.update()
    layer = len(calm.nozzles[0].section)
    calm.advance_frame()
    assert calm.particles == 216 + layer, "it starts now: what would have flown before does not burst out"
    assert calm.frame().materials[1]["name"] == "honey"
    calm.scene.emitter[0].speed = 5.0
    calm.update()
    for _ in range(5):
        calm.advance_frame()
    assert calm.particles - 216 == pytest.approx(layer * (1 + 5.0 * 0.08 / D), abs=1.5 * layer)
    calm.scene.emitter.clear()
    calm.scene.sink.append(Sink(shape={"type": "plane", "position": (0, 9, 0)}))
    calm.update()
    calm.step()
    assert calm.particles == 0


def test_material_density(calm):
    calm.scene.material = {"water": {"density": 500.0}}
    calm.update()
    calm.advance_frame()
    assert calm.frame().materials[0]["density"] == 500
    assert calm.frame()["density"].max() < 520


def test_fluid_dropped_in(calm):
    ball = Fluid(shape={"type": "sphere", "radius": 0.1, "position": (0.15, 0.45, 0.15)}, material="honey", velocity=(0, -1, 0))
    calm.add_fluid(ball)
    added = calm.particles - 216
    assert added * D**3 == pytest.approx(4 / 3 * np.pi * 0.001, rel=0.3)
    frame = calm.frame()
    assert np.array_equal(frame["id"], np.arange(216 + added))
    assert np.allclose(frame["velocity"][216:], (0, -1, 0))
    for _ in range(4):
        calm.advance_frame()
    with pytest.raises(SceneError, match="overlaps fluid that is already there"):
        calm.add_fluid(Fluid(shape={"type": "sphere", "radius": 0.1, "position": (0.15, 0.1, 0.15)}, material="water"))
    assert calm.particles == 216 + added and len(calm.scene.fluid) == 2


def test_another_solver(calm):
    calm.scene.solver = {"method": "pcisph"}
    calm.update()
    calm.scene.time.steps_per_frame = 16
    calm.advance_frame()
    assert type(calm.solver).__name__ == "PCISPH" and calm.metrics()["steps"] == 16


@pytest.mark.parametrize("key, value", [("spacing", 0.04), ("solver.support", 2.9), ("solver.kernels", "paper")])
def test_what_cannot_be_changed_is_said(calm, key, value):
    setattr(calm.scene.solver if "." in key else calm.scene, key.split(".")[-1], value)
    with pytest.raises(SceneError, match=f"{key} cannot be changed while a simulation runs"):
        calm.update()


def test_wrong_changes_are_refused_like_wrong_scenes(calm):
    calm.scene.emitter.append(Emitter(shape=BALL, material="watr", speed=1.0))
    with pytest.raises(SceneError, match=r'unknown material "watr"'):
        calm.update()


# --- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_a_broken_state_ends_with_a_message(bad):
    sim = Simulation(box_scene(D), "cpu")
    sim.advance_frame()
    kept = sim.frame()
    v = sim.world.get("velocity")
    where = np.nonzero(sim.world.get("id") == 77)[0][0]
    v[where] = bad
    sim.world.set("velocity", v)
    with pytest.raises(SimulationFailed) as caught:
        sim.advance_frame()
    error = caught.value
    assert error.time == pytest.approx(0.016) and error.cause in str(error)
    assert f"{2**HALVINGS} times shorter steps" in str(error) and "0.016 s" in str(error)
    assert np.isfinite(kept["position"]).all() and sim.frame_index == 1
    if bad == 1e30:
        assert error.particle == 77 and "particle 77" in str(error)


def test_a_step_too_long_is_repeated_with_shorter_ones():
    """Far too fast for the step, fine for a shorter one: the frame is reached and the retries are counted."""
    scene = box_scene(D, solid=[], gravity=(0, 0, 0), time={"frames": 2, "frame_time": 0.016, "steps_per_frame": 1})
    sim = Simulation(scene, "cpu")
    sim.world.set("velocity", (25 * 2.3 * D / 0.016, 0, 0))
    sim.advance_frame()
    m = sim.metrics()
    assert m["retries"] == 1 and m["steps"] == 2 and m["dt"] == pytest.approx(0.008)
    assert sim.time == 0.016 and m["centre_of_mass_x"] == pytest.approx(0.15 + 25 * 2.3 * D, rel=1e-3)
    assert any("more than one support radius" in note for note in sim.notes)


def test_coincident_particles_recover():
    sim = Simulation(box_scene(D), "cpu")
    x = sim.world.get("position")
    x[:20] = x[0]
    sim.world.set("position", x)
    for frame in sim.frames(5):
        assert np.isfinite(frame["position"]).all()
    x = frame["position"].astype(float)
    gap = np.linalg.norm(x[:, None] - x[None], axis=2) + np.eye(len(x))
    assert gap.min() > 0.02 * D


def test_a_crowd_makes_the_lists_longer():
    """Ten times as many neighbours as expected: nothing is dropped, the step is repeated with longer lists."""
    sim = Simulation(box_scene(D, solid=[], gravity=(0, 0, 0)), "cpu")
    sim.world.set("position", 0.15 + (sim.world.get("position") - 0.15) * 0.3)
    before = sim.world.neighbors.width
    sim.step()
    assert sim.world.neighbors.width > before and sim.world.neighbors.width >= 200


def test_a_runaway_costs_nothing():
    sim = Simulation(box_scene(D, solid=[]), "cpu")
    x = sim.world.get("position")
    x[0] = (1e7, 3e7, -2e7)
    sim.world.set("position", x)
    for frame in sim.frames(2):
        assert len(frame) == 216
    assert np.prod(sim.world.neighbors.dims) <= 4096


def test_a_turning_solid_warns():
    motion = [{"time": 0, "rotation": (0, 0, 0)}, {"time": 1, "rotation": (0, 36000, 0)}]
    scene = box_scene(D)
    scene.solid.append(
        Solid(
            shape={"type": "box", "size": (0.2, 0.02, 0.02), "position": (0.15, 0.5, 0.15)},
            motion=motion,
            interpolation="linear",
        )
    )
    sim = Simulation(scene, "cpu")
    sim.advance_frame()
    sim.advance_frame()
    assert sum("half a radian" in note for note in sim.notes) == 1
