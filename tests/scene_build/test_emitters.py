"""Nozzles: exact layers at any time step, exact flow, any cross section, moving, changed while they run."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.errors import SceneError
from viscoil.scene.build import Built
from viscoil.scene.emitters import Nozzle, flow_frame
from viscoil.scene.parts import Emitter
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
DISC = {"type": "cylinder", "radius": 0.07, "height": 0.1}


def emitter(**changes):
    return Emitter(**{"shape": DISC, "material": "water", "speed": 1.7, "direction": (0, -1, 0), **changes})


def fly(nozzle, dt, end):
    """Where everything emitted is at ``end`` when it flies freely, having been stepped by ``dt``."""
    x, v = np.empty((0, 3)), np.empty((0, 3))
    steps = int(np.ceil(end / dt - 1e-9))
    for k in range(steps + 1):
        now = min(k * dt, end)
        x = x + v * (now - min(max(k - 1, 0) * dt, end))
        more, speed, _ = nozzle.release(now)
        x, v = np.concatenate([x, more.astype(float)]), np.concatenate([v, speed.astype(float)])
    return x, v


@pytest.mark.parametrize("dt", [1e-3, 4e-3, 17e-3, 0.11])
@pytest.mark.parametrize("direction", [(0, -1, 0), (1, 0, 0), (1, 2, -2)])
def test_layers_are_one_spacing_apart_at_any_step(dt, direction):
    nozzle = Nozzle(emitter(direction=direction), D)
    x, v = fly(nozzle, dt, 0.5)
    along = np.asarray(direction) / np.linalg.norm(direction)
    assert np.allclose(v, 1.7 * along, atol=1e-5)
    levels = np.unique(np.round(x @ along / D * 1e3) / 1e3)
    assert np.allclose(np.diff(levels), 1, atol=2e-3), "no gaps, no overlaps"
    assert levels[-1] * D == pytest.approx(1.7 * 0.5, abs=1e-4), "the first layer flew from the opening on"
    assert len(levels) == int(1.7 * 0.5 / D) + 1
    across = x - np.outer(x @ along, along)
    assert np.linalg.norm(across, axis=1).max() < 0.07


@pytest.mark.parametrize("dt", [1e-3, 17e-3])
@pytest.mark.parametrize("velocity", [(0.4, 0, 0), (0, -0.5, 0), (0.2, 0.3, -0.4)])
def test_a_moving_nozzle_leaves_no_gaps(dt, velocity):
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 2, "position": tuple(2 * c for c in velocity)}]
    nozzle = Nozzle(emitter(motion=motion, interpolation="linear"), D)
    x, v = fly(nozzle, dt, 0.4)
    x, v = x[len(nozzle.section) :], v[len(nozzle.section) :]  # the first layer left while it stood still before t = 0
    assert np.allclose(v, np.array([0, -1.7, 0]) + velocity, atol=1e-3)
    layers = x.reshape(-1, len(nozzle.section), 3).mean(1)
    assert np.allclose(np.diff(layers, axis=0), (0, D, 0), atol=1e-4), "seen from the nozzle, a straight column"


SHAPES = {
    "box": ({"type": "box", "size": (0.2, 0.1, 0.1)}, 0.02),
    "sphere": ({"type": "sphere", "radius": 0.1}, np.pi * 0.01),
    "sphere cut off-centre": ({"type": "sphere", "radius": 0.1, "position": (0.05, 0.06, 0)}, np.pi * 0.0064),
    "cylinder": (DISC, np.pi * 0.0049),
    "lying capsule": ({"type": "capsule", "radius": 0.05, "height": 0.2, "rotation": (0, 0, 90)}, np.pi * 0.0025 + 0.02),
    "cone": ({"type": "cone", "radius": 0.2, "height": 0.1}, np.pi * 0.01),
    "torus": ({"type": "torus", "radius": 0.1, "tube": 0.04}, np.pi * (0.14**2 - 0.06**2)),
    "funnel": ({"type": "funnel", "top_radius": 0.2, "bottom_radius": 0.1, "height": 0.1, "thickness": 0.05}, None),
    "two holes to one side": (
        {"type": "union", "parts": [{"type": "sphere", "radius": 0.07, "position": (a, 0, 0.3)} for a in (0.3, 0.6)]},
        2 * np.pi * 0.0049,
    ),
    "turned box": ({"type": "box", "size": (0.2, 0.1, 0.2), "rotation": (0, 45, 0)}, 0.04),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_any_cross_section(name):
    shape, area = SHAPES[name]
    d = 0.01
    section = Nozzle(emitter(shape=shape), d).section
    assert np.all(section[:, 1] == 0)
    if area is None:
        shell = np.hypot(section[:, 0], section[:, 2])
        assert np.all(np.abs(shell - 0.15) < 0.05) and len(section) > 100
    else:
        assert len(section) * d * d == pytest.approx(area, rel=0.06)


def test_start_end_and_most_particles():
    nozzle = Nozzle(emitter(start=0.1, end=0.3, speed=1.0), D)
    assert len(nozzle.release(0.0999)[0]) == 0
    x, *_ = nozzle.release(10.0)
    per = len(nozzle.section)
    assert len(x) == per * 10, "layers leave at 0.1, 0.12, … 0.28"
    assert len(nozzle.release(20.0)[0]) == 0
    nozzle = Nozzle(emitter(max_particles=per + 3), D)
    assert len(nozzle.release(5.0)[0]) == per + 3
    assert len(nozzle.release(9.0)[0]) == 0 and nozzle.released == per + 3


def test_flow_frame_is_a_rotation():
    for direction in [*np.random.default_rng(0).normal(size=(20, 3)), [0, -1, 0], [0, 1, 0], [1e-5, -1, 0]]:
        direction = np.array(direction) / np.linalg.norm(direction)
        turn = flow_frame(direction)
        assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-6) and np.linalg.det(turn) == pytest.approx(1)
        assert np.allclose(turn @ [0, 1, 0], direction, atol=2e-5)


def test_speed_changed_while_running():
    """Layers stay one spacing apart across a change of the speed, and nothing bursts out."""
    nozzle = Nozzle(emitter(speed=1.0), D)
    nozzle.release(0.105)  # layers at 0, 0.02, … 0.1
    before = nozzle.layers
    nozzle.emitter.speed = 4.0
    nozzle.change(0.105)
    assert nozzle.moment() == pytest.approx(0.105 + 0.015 / 4), "three quarters of a spacing were left to go"
    nozzle.release(0.205)
    assert nozzle.layers - before == int((0.1 - 0.015 / 4) / 0.005) + 1


def scene_with(emitters, **changes):
    time = {"frames": 10, "frame_time": 0.02, "steps_per_frame": 2}
    return Scene(spacing=D, gravity=(0, 0, 0), emitter=emitters, time=time, **changes)


def test_flow_rate_in_a_simulation():
    """section · speed · time, without gravity and in free space; ids in order of birth."""
    sim = Simulation(
        scene_with([emitter(speed=1.3, position=(0, 1, 0)), emitter(position=(1, 1, 0), start=0.1)]), "cpu"
    )
    per = len(sim.nozzles[0].section)
    assert sim.particles == per, "the first layer stands in the opening"
    for frame in sim.frames(10):
        layers = int(1.3 * frame.time / D + 1e-9) + 1
        late = int(1.7 * (frame.time - 0.1) / D + 1e-9) + 1 if frame.time >= 0.1 else 0
        assert len(frame) == per * (layers + late)
    assert np.array_equal(frame["id"], np.arange(len(frame)))


def test_emitter_alone_starting_late():
    sim = Simulation(scene_with([emitter(start=0.05)]), "cpu")
    counts = [len(frame) for frame in sim.frames(4)]
    assert counts[0] == counts[2] == 0 and counts[3] > 0
    assert sim.metrics()["particles"] == counts[-1]


def test_overlapping_emitters_are_refused():
    with pytest.raises(SceneError, match=r"emitter\.1 overlaps emitter\.0"):
        Simulation(scene_with([emitter(), emitter(position=(0.05, 0, 0))]), "cpu")
    Simulation(scene_with([emitter(end=0.1), emitter(start=0.1)]), "cpu")
    Simulation(scene_with([emitter(), emitter(position=(0.15, 0, 0))]), "cpu")


def test_a_nozzle_that_opens_inside_a_solid_is_said():
    rock = {"name": "rock", "shape": {"type": "sphere", "radius": 0.2}}
    moving = {**rock, "motion": [{"time": 0}, {"time": 1, "position": (1, 0, 0)}]}

    def said(solid, **where):
        return [note for note in Built(scene_with([emitter(**where)], solid=[solid])).notes if "opens inside" in note]

    assert said(rock) == ['emitter.0 opens inside solid.0 ("rock"); expected some spacings away from it']
    assert said(rock, position=(0, 0.19, 0)) == said(rock, position=(0, 0.3, 0)) == said(moving) == []
    assert said({**rock, "container": True}) == [], "inside a tank is where a nozzle may be"


def test_sink_removes_exactly_what_enters():
    sink = {"shape": {"type": "box", "size": (1, 0.1, 1), "position": (0, -0.4, 0)}, "start": 0.0}
    sim = Simulation(scene_with([emitter(end=0.05)], sink=[sink]), "cpu")
    born = None
    for frame in sim.frames(30):
        assert not np.any(np.abs(frame["position"][:, 1] + 0.4) < 0.05 - 1e-6)
        born = max(born or 0, len(frame))
    assert born > 100 and sim.particles == 0, "all of it passed the sink"
    assert sim.metrics()["particles"] == 0
    sim.step()


def test_sink_waits_for_its_time():
    scene = box_scene(D, gravity=(0, 0, 0), sink=[{"shape": {"type": "plane", "position": (0, 9, 0)}, "start": 0.03}])
    sim = Simulation(scene, "cpu")
    assert [len(frame) for frame in sim.frames(3)] == [216, 216, 0, 0]


def led(frames: int = 4) -> Scene:
    """Two nozzles with pipes that end, and a particle solid that comes later."""
    nozzles = [
        {
            "material": "syrup", "position": (x, 0.2, 0), "direction": (0, -1, 0), "speed": speed, "end": 0.05,
            "shape": {"type": "cylinder", "radius": 0.03, "height": 0.02},
        }
        for x, speed in ((0.0, 0.9), (0.2, 0.7))
    ]  # fmt: skip
    late = {"kind": "rigid", "start": 0.031, "shape": {"type": "box", "size": (0.04, 0.04, 0.04), "position": (0, 0.4, 0)}}
    return Scene(
        spacing=0.02, solver={"method": "dcpbd", "velocity_iterations": 3, "iterations": 2}, emitter=nozzles,
        particle_solid=[late], material={"syrup": {"density": 1000, "viscosity": 5.0}},
        time={"frames": frames, "frame_time": 1 / 50, "steps_per_frame": 9},
    )  # fmt: skip


def test_steps_up_to_the_next_layer_need_no_host(monkeypatch):
    """Launched ahead, as a GPU does it: the same particles at the same moments, led as long, and fewer looks."""

    def run(stop=None, state=None):
        sim = Simulation(led(), device="cpu")
        if state is not None:
            sim.restore(state)
        looks = []
        monkeypatch.setattr(sim, "_advance", lambda dt, steps: looks.append(steps) or type(sim)._advance(sim, dt, steps))
        for _ in sim.frames(stop):
            pass
        order = np.argsort(sim.world.get("id"))
        return sim, {name: sim.world.get(name)[order] for name in ("position", "free_at", "inverse_mass", "cluster")}, looks

    _, plain, every = run()
    monkeypatch.setattr(Simulation, "_ahead", Simulation._idle_steps)
    _, ahead, looks = run()
    assert set(every) == {1} and sum(looks) == sum(every) == 36 and len(looks) < 27
    for name in ("free_at", "inverse_mass", "cluster"):
        assert np.array_equal(plain[name], ahead[name]), name
    assert np.abs(plain["position"] - ahead["position"]).max() < 1e-5
    first, _, _ = run(2)
    assert (first.world.get("inverse_mass") < 0).any()
    _, again, _ = run(state=first.state())
    assert all(np.array_equal(ahead[name], again[name]) for name in ahead)


def test_steps_that_are_taken_back_lead_again(monkeypatch):
    """A batch that fails is done again in shorter steps: who left the pipe in it is led at its start as before."""
    monkeypatch.setattr(Simulation, "_ahead", Simulation._idle_steps)
    sim = Simulation(led(), device="cpu")
    sim.advance_frame()
    read_status, remember, ends, starts = sim.world.read_status, sim.world.remember, [], []

    def who_is_led():
        return np.sort(sim.world.get("id")[sim.world.get("inverse_mass") < 0]).tolist()

    def trouble():
        ends.append(who_is_led())
        bad, speed = read_status()
        return (0 if len(ends) == 1 else bad), speed

    monkeypatch.setattr(sim.world, "read_status", trouble)
    monkeypatch.setattr(sim.world, "remember", lambda: (starts.append(who_is_led()), remember()))
    sim.advance_frame()
    assert sim.metrics()["retries"] == 1
    assert starts[0] == starts[1] and ends[0] == ends[1] and len(ends[0]) < len(starts[0])
    assert np.array_equal(sim.world.get("inverse_mass") < 0, sim.world.get("free_at") > np.float32(sim.time))
