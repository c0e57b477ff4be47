"""Peer's viscosity: rotation is left alone, shear is halved whatever its length, momentum stays, restart has the same bits."""

import numpy as np
import pytest

from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.025


def block(cells=(8, 6, 5), **changes):
    size = tuple(n * D for n in cells)
    values = {
        "spacing": D, "gravity": (0, 0, 0), "time": {"frames": 10, "frame_time": 0.004, "steps_per_frame": 1},
        "solver": {"method": "peer_pbf", "velocity_tolerance": 1e-4},
        "fluid": [{"material": "water", "shape": {"type": "box", "size": size, "position": (0, 0.1, 0)}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def stepped(scene, velocity):
    """Velocities (by id) before and after one step that starts with ``velocity`` of positions [m/s]."""
    sim = Simulation(scene, "cpu")
    sim.world.set("velocity", velocity(sim.world.get("position").astype(float)))
    before = sim.frame()
    sim.advance_frame()
    return before, sim.frame()


def spun(turn):
    return lambda x: np.cross(turn, x - x.mean(0)) + np.array([0.3, -0.2, 0.1])


@pytest.mark.parametrize("turn", [(0, 3, 0), (1, -2, 2)])
def test_rotation_is_left_alone(turn):
    scene = block()
    scene.time.frame_time = 1e-4  # the step's own straight lines are not what is tested
    before, after = stepped(scene, spun(turn))
    assert np.abs(after["velocity"] - before["velocity"]).max() < 2e-3 * np.abs(before["velocity"]).max()


def test_plain_gradients_brake_it():
    scene = block()
    scene.solver.gradients = "plain"
    before, after = stepped(scene, spun((0, 3, 0)))
    left, right = (np.cross(f["position"] - f["position"].mean(0), f["velocity"]).sum(0)[1] for f in (before, after))
    assert right < 0.9 * left


@pytest.mark.parametrize(("shear", "waves"), [(0.0, 1), (0.0, 2), (0.5, 1)])
def test_a_shear_wave_loses_half_of_what_is_not_kept(shear, waves):
    """u_x = sin(ky): R and S are half of L each, so the fitted gradient is (1 + ξ)/2 of it, at any wave length."""
    length = 24 * D
    box = {"min": (0, 0, 0), "max": (8 * D, length, 8 * D), "periodic": "xyz"}
    shape = {"type": "box", "size": (8 * D, length, 8 * D), "position": (4 * D, length / 2, 4 * D)}
    scene = block(domain=box, fluid=[{"material": "water", "shape": shape}])
    scene.solver.shear, scene.time.frame_time = shear, 1e-4
    k = 2 * np.pi * waves / length
    before, after = stepped(scene, lambda x: np.sin(k * x[:, 1:2]) * (1, 0, 0))
    mode = np.sin(k * before["position"][:, 1].astype(float))
    amplitude = (after["velocity"][:, 0] * mode).sum() / (mode * mode).sum()
    assert amplitude == pytest.approx((1 + shear) / 2, rel=0.08)


def test_everything_is_kept_without_a_fit():
    scene = block()
    scene.solver.shear, scene.time.frame_time = 1.0, 1e-4
    before, after = stepped(scene, lambda x: 5 * (x[:, 1:2] - 0.1) * (1, 0, 0))
    assert np.allclose(after["velocity"], before["velocity"], atol=2e-3)


def test_momentum_is_kept_however_few_iterations():
    scene = block()
    scene.solver.velocity_iterations = 3
    before, after = stepped(scene, lambda x: np.random.default_rng(0).normal(size=x.shape) + 0.5)
    first, second = before["velocity"].astype(float), after["velocity"].astype(float)
    assert np.abs(first.sum(0) - second.sum(0)).max() < 1e-5 * np.linalg.norm(first, axis=1).sum()
    assert second.std() < 0.5 * first.std()


def test_no_slip_holds_the_lowest_layer():
    floor = [{"friction": "no-slip", "shape": {"type": "plane"}}]
    scene = block(solid=floor, gravity=(3, -9.81, 0))
    scene.fluid[0].shape.position = (0, 3 * D, 0)
    sim = Simulation(scene, "cpu")
    lowest = sim.frame()["position"][:, 1] < D
    *_, last = sim.frames(10)
    assert np.abs(last["velocity"][lowest]).max() < 0.05 * 3 * 0.04


def test_restart_has_the_same_bits():
    def made():
        return Simulation(block(solid=[{"shape": {"type": "plane"}}], gravity=(1, -9.81, 0)), "cpu")

    sim = made()
    for _ in sim.frames(3):
        pass
    state = sim.state()
    again = made()
    again.restore(state)
    for each in (sim, again):
        for _ in each.frames(9):
            pass
    assert sim.frame(["density"]).differences(again.frame(["density"])) == []
