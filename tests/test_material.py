"""Materials: presets, η = Gλ, what a solver cannot honour."""

import math

import pytest

from viscoil.errors import SceneError
from viscoil.material import PRESETS, Material, unsupported


def test_every_preset_says_where_its_numbers_are_from():
    for name, material in PRESETS.items():
        assert len(material.source) > 40, name
        assert material.density > 0 and (material.viscosity is not None or material.modulus is not None), name


def test_presets_cover_the_range_from_water_to_clay():
    assert {"water", "honey", "runny honey", "syrup", "cream", "whipped cream", "paint", "oil", "glycerol", "jelly",
            "toothpaste", "ketchup", "slime", "clay", "dough", "mud"} <= set(PRESETS)  # fmt: skip
    assert PRESETS["water"].viscosity < PRESETS["oil"].viscosity < PRESETS["honey"].viscosity
    assert PRESETS["runny honey"].viscosity < PRESETS["honey"].viscosity
    assert PRESETS["jelly"].relaxation_time == math.inf


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (0.0, 0.0, math.inf)),
        ({"viscosity": 2.0}, (2.0, 0.0, math.inf)),
        ({"viscosity": 2.0, "relaxation_time": 0.5}, (2.0, 0.5, 4.0)),
        ({"viscosity": 2.0, "modulus": 8.0}, (2.0, 0.25, 8.0)),
        ({"modulus": 8.0, "relaxation_time": 0.5}, (4.0, 0.5, 8.0)),
        ({"modulus": 8.0}, (math.inf, math.inf, 8.0)),
    ],
)
def test_maxwell_completes_the_three(given, expected):
    assert Material(density=1000, **given).maxwell() == expected


def test_all_three_contradict_each_other():
    with pytest.raises(SceneError, match="at most two of viscosity, relaxation_time and modulus"):
        Material(density=1000, viscosity=1, relaxation_time=1, modulus=1)


def test_preset_is_a_start_and_keys_override_it():
    thick = Material(preset="honey", viscosity="50 Pa s")
    assert thick.viscosity == 50 and thick.density == PRESETS["honey"].density


def test_two_of_the_three_replace_what_the_preset_says_about_flow():
    changed = Material(preset="shampoo", modulus=100, relaxation_time=2)
    assert changed.viscosity is None and changed.maxwell() == (200, 2, 100)


def test_one_more_than_the_preset_has_is_refused():
    with pytest.raises(SceneError, match=r'all three \(the preset "shampoo" counts\)'):
        Material(preset="shampoo", modulus=5)


def test_a_refused_assignment_changes_nothing():
    material = Material(preset="shampoo")
    before = material.model_dump()
    with pytest.raises(SceneError, match="at most two"):
        material.modulus = 5
    with pytest.raises(SceneError, match="density: expected a density in kg/m³"):
        material.density = -1
    assert material.model_dump() == before


def test_assignment_understands_units_and_suggests_names():
    material = Material(preset="water")
    material.viscosity = "2 mPa s"
    assert material.viscosity == pytest.approx(0.002)
    with pytest.raises(SceneError, match='Did you mean "viscosity"'):
        material.viscocity = 1


def test_a_property_taken_away_stays_away():
    material = Material(preset="honey")
    material.surface_tension = None
    material.density = 1500  # the next assignment must not bring the preset's value back
    assert material.surface_tension is None


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("#ff0000", (1, 0, 0)),
        ("white", (1, 1, 1)),
        ([0, 0.5, 1], (0, 0.5, 1)),
        ("Amber", (217 / 255, 138 / 255, 18 / 255)),
    ],
)
def test_colours(given, stored):
    assert Material(density=1, colour=given).colour == pytest.approx(stored)


def test_unsupported_names_each_property_with_its_value_and_unit():
    messages = unsupported(PRESETS["whipped cream"], {"viscosity"})
    assert messages == ["modulus = 800 Pa has no effect", "yield_strain = 0.08 has no effect"]


def test_unsupported_is_silent_about_what_is_honoured_or_zero():
    assert unsupported(Material(density=1, viscosity=0, surface_tension=0.07), {"surface_tension"}) == []


def test_unsupported_rejects_names_that_are_no_properties():
    with pytest.raises(KeyError, match="viscocity"):
        unsupported(PRESETS["water"], {"viscocity"})
