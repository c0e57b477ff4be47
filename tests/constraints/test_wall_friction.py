"""Fluid clings to no-slip walls without being pressed against them, and is not glued to them."""

import numpy as np
import pytest

import kit  # noqa: F401  starts the backend
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
STEP = 1 / 240


def slab(friction="no-slip", velocity=(0.0, 0.0, 0.0), wall_speed=0.0, gap=0.0, material=None):
    """A slab of 8 x 6 x 8 particles on (or ``gap`` above) a plane, weightless, endless along x and z."""
    size = (8 * D, 6 * D, 8 * D)
    return Scene(
        spacing=D,
        gravity=(0, 0, 0),
        domain={"min": (0, -1, 0), "max": (size[0], 1, size[2]), "periodic": "xz"},
        time={"frames": 6, "frame_time": STEP, "steps_per_frame": 1},
        solver={"method": "dcpbd"},
        material={"m": material or {"density": 1000.0, "viscosity": 2.0}},
        fluid=[
            {
                "material": "m",
                "velocity": velocity,
                "shape": {"type": "box", "size": size, "position": (size[0] / 2, gap + size[1] / 2, size[2] / 2)},
            }
        ],
        solid=[
            {
                "shape": {"type": "plane"},
                "friction": friction,
                "interpolation": "linear",
                "motion": [{"time": 0.0}, {"time": 1.0, "position": (wall_speed, 0, 0)}],
            }
        ],
    )


def layers(scene):
    """Mean velocities (6, 3) of the layers at the end, from the bottom up."""
    *_, frame = Simulation(scene, "cpu").frames()
    order = np.argsort(frame["position"][:, 1], kind="stable")
    return frame["velocity"][order].reshape(6, 64, 3).mean(1)


@pytest.mark.parametrize("material", [None, {"density": 1000.0, "viscosity": 20.0, "relaxation_time": 0.2}])
def test_a_moving_wall_takes_the_first_layer_along(material):
    u = layers(slab(wall_speed=0.3, material=material))
    assert u[0, 0] == pytest.approx(0.3, rel=1e-3)
    assert 0 < u[2, 0] < u[1, 0] < 0.3


def test_a_smooth_wall_does_not():
    assert np.abs(layers(slab(friction=0.0, wall_speed=0.3))[:, 0]).max() < 1e-4


def test_a_wall_holds_the_first_layer_of_a_flow():
    u = layers(slab(velocity=(0.2, 0, 0)))
    assert abs(u[0, 0]) < 1e-4 and 0.1 < u[5, 0] < 0.2


def test_nothing_is_glued():
    """Normal velocities stay free: a slab that leaves keeps its momentum."""
    u = layers(slab(velocity=(0, 0.2, 0)))
    assert u[:, 1].mean() == pytest.approx(0.2, rel=0.01)


def test_beyond_the_first_layer_there_is_no_wall():
    u = layers(slab(velocity=(0.2, 0, 0), gap=0.5 * D))
    assert u[:, 0] == pytest.approx(0.2, rel=1e-4)
