"""Stress on SPH: Q under rotation, shear and rest against closed forms, waves, momentum, the stable step, restart."""

import numpy as np
import pytest

from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.validation import shear_wave

D = 0.025


def block(material, cells=(6, 6, 6), **changes):
    size = tuple(n * D for n in cells)
    values = {
        "spacing": D, "gravity": (0, 0, 0), "time": {"frames": 10, "frame_time": 0.002, "steps_per_frame": 2},
        "solver": {"method": "ucm_sph"}, "material": {"m": {"density": 1000, **material}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": (0, size[1] / 2, 0)}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def advanced(scene, velocity=None, conformation=None, frames=10):
    sim = Simulation(scene, "cpu")
    if velocity is not None:
        sim.world.set("velocity", velocity(sim.world.get("position").astype(float)))
    if conformation is not None:
        sim.world.set("conformation", conformation)
    before = sim.frame(["conformation"])
    for _ in sim.frames(frames):
        pass
    return before, sim.frame(["conformation"]), sim


def test_a_stretched_polymer_relaxes_to_rest():
    """Next to no modulus, so nothing moves: Q − I decays as e^(−t/λ), by (1 − Δt/λ) per step."""
    stretched = np.diag([1.5, 0.9, 1.2]).astype(np.float32)
    _, after, _ = advanced(block({"modulus": 1e-6, "relaxation_time": 0.02}), conformation=stretched)
    expected = np.eye(3) + (stretched - np.eye(3)) * (1 - 0.001 / 0.02) ** 20
    assert np.allclose(after["conformation"], expected, atol=1e-4)


def test_rotation_carries_the_polymer_along():
    """A quarter turn about y takes diag(1.2, 1, 0.9) to diag(0.9, 1, 1.2); forward Euler adds 2ω²Δt·t = 2.5 %."""
    scene = block({"modulus": 1e-6}, cells=(5, 5, 5), time={"frames": 10, "frame_time": 0.01, "steps_per_frame": 20})
    turn = np.array([0, np.pi / 2 / 0.1, 0])
    sim = Simulation(scene, "cpu")
    sim.world.set("conformation", np.diag([1.2, 1.0, 0.9]))

    def rigid(simulation):  # the beam of straight steps would come apart: velocities are led
        x = simulation.world.get("position").astype(float)
        simulation.world.set("velocity", np.cross(turn, x - x.mean(0)))

    sim.callback = rigid
    rigid(sim)
    for _ in sim.frames():
        pass
    found = sim.frame(["conformation"])["conformation"].mean(0)
    assert np.allclose(found, np.diag([0.9, 1.0, 1.2]), atol=0.04)


def test_small_shear_makes_the_stress_of_the_formula():
    """Simple shear u_x = γ̇y for a time ≪ λ: Q_xy = γ̇λ(1 − e^(−t/λ)), far from surfaces and from Q = I by little."""
    scene = block({"modulus": 1e-6, "relaxation_time": 0.05}, cells=(7, 7, 7))
    rate = 0.5
    _, after, sim = advanced(scene, velocity=lambda x: rate * x[:, 1:2] * (1, 0, 0))
    exact = rate * 0.05 * (1 - np.exp(-sim.time / 0.05))
    q = after["conformation"]
    assert q[:, 0, 1].mean() == pytest.approx(exact, rel=0.05)
    assert np.abs(q - np.swapaxes(q, 1, 2)).max() < 1e-6


@pytest.mark.parametrize(("name", "limit"), [("Newtonian", 0.1), ("Maxwell", 0.15)])
def test_a_shear_wave_decays_as_it_should(name, limit):
    """Twice differentiating on 16 particles per wave costs a fifth of the viscosity: the limit is that, not rounding."""
    fluid = shear_wave.FLUIDS[name]
    scene = shear_wave.scene(fluid, 16, 1 / 200, 12, jitter=0.0)
    scene["solver"], scene["time"]["steps_per_frame"] = {"method": "ucm_sph"}, 10
    t, measured = shear_wave.decay(Simulation(Scene(**scene), "cpu"))
    exact = shear_wave.amplitude(t, fluid[0], fluid[1] / 1000, fluid[2] / 1000, 2 * np.pi / shear_wave.LENGTH)
    assert np.abs(measured - exact).max() < limit and exact[-1] < 0.75


@pytest.mark.parametrize("material", [{"modulus": 1e4}, {"viscosity": 20, "relaxation_time": 0.02}, {"viscosity": 20}])
def test_momentum_is_kept(material):
    before, after, _ = advanced(block(material), lambda x: 0.2 * np.random.default_rng(0).normal(size=x.shape) + 0.3, frames=4)
    first, second = before["velocity"].astype(float), after["velocity"].astype(float)
    assert np.abs(first.sum(0) - second.sum(0)).max() < 1e-5 * np.linalg.norm(first, axis=1).sum()
    assert second.std() < first.std()


def test_steps_longer_than_a_wave_needs_explode():
    """c = √(G/ρ) = 10 m/s crosses a support in 5.8 ms: half a millisecond is stable, twelve are not."""
    retries = {}
    for step in (0.0005, 0.012):
        scene = block({"modulus": 1e5}, time={"frames": 4, "frame_time": 0.012, "step": step})
        sim = Simulation(scene, "cpu")
        sim.world.set("velocity", 0.05 * np.random.default_rng(0).normal(size=(sim.particles, 3)))
        retries[step] = 0
        energy = [sim.metrics()["kinetic_energy"]]
        for _ in sim.frames():
            retries[step] += sim.metrics()["retries"]
            energy.append(sim.metrics()["kinetic_energy"])
        calm = max(energy[1:]) < 216 * D**3 * 1000 * 0.5 * 3 * 0.05**2
        assert calm is (step < 0.001)


def test_restart_has_the_same_bits():
    def made():
        floor = [{"friction": "no-slip", "shape": {"type": "plane"}}]
        return Simulation(block({"viscosity": 100, "relaxation_time": 0.02}, solid=floor, gravity=(1, -9.81, 0)), "cpu")

    sim = made()
    for _ in sim.frames(4):
        pass
    state = sim.state()
    again = made()
    again.restore(state)
    for each in (sim, again):
        for _ in each.frames(10):
            pass
    assert np.abs(sim.frame(["conformation"])["conformation"] - np.eye(3)).max() > 1e-3
    assert sim.frame(["density", "conformation"]).differences(again.frame(["density", "conformation"])) == []
