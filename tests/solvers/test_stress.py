"""The stress that frames offer: against the formula, flows and a weight; asked for or not, nothing else changes."""

import copy
import pickle
import threading

import numpy as np
import pytest

from kit import box_scene
from viscoil import quantities
from viscoil.errors import SceneError
from viscoil.io.columns import von_mises
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.turns import turn
from viscoil.validation import channel

ETA, HEIGHT, LAYERS, SPEED = 20.0, 0.08, 10, 0.1  # Pa s, m, layers of particles, m/s
D = HEIGHT / LAYERS


def honey_box(**changes) -> Scene:
    return box_scene(cells=(4, 4, 4), solver={"method": "dcpbd"}, **changes)


def block(material) -> Simulation:
    """A free block of 6³ particles."""
    shape = {"type": "box", "size": (0.06, 0.06, 0.06)}
    return Simulation(Scene(
        spacing=0.01, solver={"method": "dcpbd"}, material={"stuff": {"density": 1200.0, **material}},
        fluid=[{"material": "stuff", "jitter": 0.2, "shape": shape}],
    ))  # fmt: skip


@pytest.mark.parametrize("material, modulus, viscosity, limit", [
    ({"viscosity": 3.0}, 0.0, 3.0, 0.0),
    ({"viscosity": 3.0, "relaxation_time": 0.1, "solvent_viscosity": 0.5}, 30.0, 0.5, 0.0),
    ({"modulus": 400.0, "solvent_viscosity": 0.5}, 400.0, 0.5, 0.0),
    ({"viscosity": 3.0, "relaxation_time": 0.1, "extensibility": 12.0}, 30.0, 0.0, 12.0),
    ({"viscosity": 3.0, "relaxation_time": 1e-5}, 0.0, 3.0, 0.0),  # a hundredth of a step and less: no memory
    ({"viscosity": 3.0, "modulus": 600.0, "yield_strain": 0.1}, 600.0, 0.0, 0.0),
])  # fmt: skip
def test_constitutive_law(material, modulus, viscosity, limit):
    sim, random = block(material), np.random.default_rng(1)
    gradient = random.normal(size=(3, 3))
    strain = random.normal(size=(3, 3)) * 0.1
    conformation = np.eye(3) + strain @ strain.T + 0.1 * (strain + strain.T)
    sim.world.set("velocity", sim.world.get("position") @ gradient.T)
    sim.world.set("conformation", np.tile(conformation, (sim.world.count, 1, 1)))
    sim._last_dt = 2e-3
    f = (limit - 3) / (limit - np.trace(conformation)) if limit else 1.0
    expected = modulus * (f * conformation - np.eye(3)) + viscosity * (gradient + gradient.T)
    frame = sim.frame(["stress", "stress_mises"])
    assert frame["stress"].shape == (sim.particles, 3, 3) and frame["stress"].dtype == np.float32
    assert np.abs(frame["stress"] - expected).max() < 2e-4 * np.abs(expected).max()
    assert frame["stress_mises"] == pytest.approx(von_mises(expected[None])[0], rel=2e-4)


def couette(lam: float, solvent: float) -> Simulation:
    """Between plates of which the upper one moves; it starts with the velocities of steady flow."""
    motion = [{"time": 0, "position": (0, 0, 0)}, {"time": 1.0, "position": (SPEED, 0, 0)}]
    scene = channel.scene((lam, ETA, solvent), LAYERS, HEIGHT, 1 / 480, 18, motion=motion)
    sim = Simulation(Scene(**scene))
    x = sim.world.get("position")
    sim.world.set("velocity", x[:, 1:2] * np.array([[SPEED / HEIGHT, 0, 0]]))
    return sim


@pytest.mark.parametrize("lam, solvent", [(0.0, 0.0), (0.02, 0.0), (0.02, 8.0)], ids=["newton", "maxwell", "oldroyd"])
def test_couette(lam, solvent):
    """σ_xy = η du/dy within 3 %, whatever of it the polymer carries."""
    sim = couette(lam, solvent)
    *_, frame = sim.frames()  # 0.15 s: plates' speeds diffuse in 0.03 s, stress builds up in 0.02 s
    y = frame["position"][:, 1]
    middle = (y > 0.25 * HEIGHT) & (y < 0.75 * HEIGHT)
    rate = np.polyfit(y[middle], frame["velocity"][middle, 0], 1)[0]
    stress = frame["stress"][middle].mean(0)
    assert rate == pytest.approx(SPEED / (HEIGHT - D), rel=0.08), "the outermost layers go with the plates"
    assert stress[0, 1] == pytest.approx(ETA * rate, rel=0.03)


def test_weight_of_a_jelly():
    """A block that stands on a slippery floor and may spread: σ_yy − σ_xx carries all of ρg(top − y)."""
    d, wide, high, rho = 0.01, 0.08, 0.1, 1000.0
    sim = Simulation(Scene(
        spacing=d, time={"frames": 20, "frame_time": 0.02, "steps_per_frame": 8}, solver={"method": "dcpbd"},
        material={"jelly": {"density": rho, "modulus": 6000.0, "solvent_viscosity": 20.0}},
        fluid=[{"material": "jelly", "shape": {"type": "box", "size": (wide, high, wide), "position": (0, high / 2, 0)}}],
        solid=[{"shape": {"type": "plane"}, "friction": 0.0}],
    ))  # fmt: skip
    *_, frame = sim.frames()
    y, s = frame["position"][:, 1], frame["stress"]
    carried = s[:, 1, 1] - (s[:, 0, 0] + s[:, 2, 2]) / 2
    weight = -rho * 9.81 * (y.max() + d / 2 - y)
    middle = (y > 0.2 * high) & (y < 0.8 * high)  # a kernel's radius from the floor and from the top
    assert carried[middle].mean() == pytest.approx(weight[middle].mean(), rel=0.05)
    assert np.polyfit(y[middle], carried[middle], 1)[0] == pytest.approx(rho * 9.81, rel=0.15)
    assert np.abs(s[:, 0, 1].mean()) < 0.02 * np.abs(weight.mean())


def test_asking_changes_nothing():
    """Neighbours are searched once more; frames are the same bits, with nozzles that open in between."""
    emitter = {"material": "honey", "position": (0.1, 0.35, 0.1), "direction": (0, -1, 0), "speed": 1.0, "start": 0.02,
               "shape": {"type": "cylinder", "radius": 0.06, "height": 0.05}}  # fmt: skip
    honey = {"viscosity": 5.0, "relaxation_time": 0.05, "density": 1400.0}
    scene = honey_box(material={"honey": honey}, emitter=[emitter])
    for fluid in scene.fluid:
        fluid.material = "honey"
    quiet, asked = Simulation(scene), Simulation(scene, callback=lambda sim: sim.frame(["stress"], by_id=False))
    for one, two in zip(quiet.frames(), asked.frames(), strict=True):
        assert "stress" not in two.names and np.abs(two["stress"]).max() >= 0
        assert one.differences(two) == []
    assert len(one) > 64, "the nozzle has opened"


def test_frames_that_were_made_without():
    sim = Simulation(honey_box())
    frames = sim.frames()
    first = next(frames)
    kept = first["stress"]
    second = next(frames)
    assert first["stress"] is kept, "what was looked at stays"
    with pytest.raises(KeyError, match=r"without 'conformation', and its simulation has gone on.*\[output\] fields"):
        first["conformation"]
    assert second["stress"].shape == (len(second), 3, 3)
    with pytest.raises(KeyError, match=r'no quantity "stres".*Did you mean "stress"'):
        second["stres"]
    with pytest.raises(KeyError, match=r"no field 'stress'.*\[output\] fields"):
        copy.deepcopy(second)["stress"]
    assert pickle.loads(pickle.dumps(second)).differences(second) == []
    del sim, frames
    with pytest.raises(KeyError, match="no longer there"):
        second["conformation"]


def test_what_a_frame_computes_takes_one_turn(monkeypatch):
    """Or a step in another thread would come between its passes."""
    sim, held, values = Simulation(honey_box()), [], quantities.values
    monkeypatch.setattr(quantities, "values", lambda *a: held.append(turn._owner == threading.get_ident()) or values(*a))
    assert next(sim.frames())["stress"].shape == (sim.particles, 3, 3)
    assert held[-1] is True and turn._owner == 0


@pytest.mark.parametrize("method", ["pvfs", "iisph", "pbf"])
def test_methods_without_a_stress(method):
    scene = box_scene(cells=(4, 4, 4), solver={"method": method})
    sim = Simulation(scene)
    with pytest.raises(KeyError, match=rf'"stress": method "{method}" has no stress tensor.*: dcpbd'):
        sim.frame()["stress"]
    assert "stress" not in sim.quantities()
    scene.output.fields = ["stress_mises"]
    with pytest.raises(SceneError, match=rf'output.fields.0: "stress_mises": method "{method}" has no stress tensor'):
        scene.check()


def test_scenes_ask_for_it():
    scene = honey_box(output={"fields": ["stress", "density"]})
    sim = Simulation(scene)
    frame = list(sim.frames(1))[-1]
    assert frame.names[-2:] == ["stress", "density"]
    assert sim.quantities()["stress"] == "Pa"


def test_resumed_with_the_same_bits():
    scene = honey_box(output={"fields": ["stress"]})
    whole = Simulation(scene)
    *_, frame = whole.frames(2)
    again = Simulation(scene)
    again.restore(whole.state())
    last, other = ([*sim.frames(4)][-1] for sim in (whole, again))
    assert (frame.index, last.index) == (2, 4) and last.differences(other) == []
