"""Scenes at other sizes: every quantity follows as its unit says."""

import numpy as np
import pytest

from viscoil.scene.schema import Scene
from viscoil.units import KINDS
from viscoil.validation.features import FEATURES, apart
from viscoil.validation.similarity import EXPONENTS, scaled

# Exponents of kilogram, metre and second. With gravity and density as they are, kg ~ L³ and s ~ L^½.
BASE = {
    "number": (0, 0, 0), "angle": (0, 0, 0), "length": (0, 1, 0), "time": (0, 0, 1), "speed": (0, 1, -1),
    "acceleration": (0, 1, -2), "angular velocity": (0, 0, -1), "density": (1, -3, 0), "viscosity": (1, -1, -1),
    "modulus": (1, -1, -2), "surface tension": (1, 0, -2), "mass": (1, 0, 0), "spring stiffness": (1, 0, -2),
    "rate": (0, 0, -1), "rate squared": (0, 0, -2), "per length": (0, -1, 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_quantity_follows_its_unit(kind):
    mass, length, time = BASE[kind]
    assert EXPONENTS[kind] == 3 * mass + length + time / 2


def numbers(table):
    """All numbers of a scene, in order."""
    if isinstance(table, dict):
        return [number for key in sorted(table) for number in numbers(table[key])]
    if isinstance(table, (list, tuple)):
        return [number for item in table for number in numbers(item)]
    return [float(table)] if isinstance(table, (int, float)) else []


@pytest.mark.parametrize("name", FEATURES)
def test_there_and_back(name):
    scene = FEATURES[name].scene()
    there = scaled(scene, 4.0**-5)
    assert there["spacing"] == 4.0**-5
    assert numbers(scaled(there, 4.0**5)) == numbers(scaled(scene, 1.0)) != numbers(there)


def test_dimensionless_numbers_stay():
    def found(scene):
        drop, fluid = scene.fluid[0], scene.material["fluid"]
        length, speed = drop.shape.size[0], drop.velocity[1]
        weissenberg = fluid.relaxation_time * speed / length
        return [speed**2 / (9.81 * length), fluid.density * speed * length / fluid.viscosity, weissenberg]

    scene = FEATURES["dcpbd_drop"].scene()
    assert found(Scene(**scaled(scene, 2e-5))) == pytest.approx(found(Scene(**scene)), rel=1e-12)


def test_keys_whose_unit_depends_on_others_are_refused():
    scene = FEATURES["pbf_bodies"].scene()
    scene["solid"][1]["body"] |= {"joint": "hinge", "axis": (0, 0, 1), "damping": 0.1}
    with pytest.raises(ValueError, match=r"Body\.damping: its unit depends on other keys"):
        scaled(scene, 0.5)


def test_measures_of_a_single_layer_can_be_compared():
    flat = np.array([10.0, 4.0, 0.0, 4.0, 0.5, 0.001])  # height, extents, energy [spacings], compression
    assert apart(flat, flat) == 0.0
    assert apart(flat, np.add(flat, [0.3, 0, 0, 0, 0, 0])) == pytest.approx(0.03)
    assert apart(flat, np.add(flat, [0, 0, 0.05, 0, 0, 0])) == pytest.approx(0.05)
    assert apart(flat, np.add(flat, [0, 0, 0, 0, 0, 0.04])) == pytest.approx(0.04)
    assert np.isnan(apart(flat, flat * [1, 1, np.nan, 1, 1, 1]))


def test_between_them_the_scenes_hold_everything():
    scenes = [Scene(**feature.scene()) for feature in FEATURES.values()]
    assert {scene.method for scene in scenes} == {"pbf", "dcpbd", "iisph", "pvfs"}
    for key in ("domain", "emitter", "particle_solid", "solid"):
        assert any(getattr(scene, key) for scene in scenes)
    assert any(solid.body for scene in scenes for solid in scene.solid)
    assert any(solid.motion for scene in scenes for solid in scene.solid)
    assert any(solid.boundary == "particles" for scene in scenes for solid in scene.solid)
    assert any(len(scene.material) > 1 for scene in scenes)
