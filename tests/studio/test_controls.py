"""Controls: found from their declarations alone, on the right scale, checked like a file, and taken back when refused."""

import asyncio
import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Annotated, Literal

import pytest

from kit import box_scene
from viscoil import solvers
from viscoil.controls import Control, apply, controls, ingredients, scene_controls
from viscoil.errors import SceneError
from viscoil.material import MAXWELL, PRESETS, Material
from viscoil.scene.load import load
from viscoil.scene.parts import Emitter
from viscoil.solvers.solver import SolverParams
from viscoil.studio import server
from viscoil.studio.sliders import Sliders
from viscoil.units import Quantity, Slider


def control(low=0.01, high=100.0, log=True, off=False, whole=False, value=1.0, **more):
    return Control("a.b", "b", "Pa s", "", low, high, log, off, whole, value, **more)


def by_path(scene):
    return {c.path: c for group in scene_controls(scene) for c in group.controls}


# --- scale -----------------------------------------------------------------------------------------------------------


def test_a_log_slider_has_equal_factors_at_equal_distances():
    c = control()
    assert c.at(0) == 0.01 and c.at(c.last) == 100.0 and c.at(c.last // 2) == 1.0
    assert c.position(1.0) == c.last // 2 and c.position(10.0) == 3 * c.last // 4
    assert c.at(c.last // 4) / c.at(0) == pytest.approx(c.at(c.last // 2) / c.at(c.last // 4), rel=0.01)


def test_every_position_comes_back():
    for c in (control(), control(0.0, 2.0, log=False), control(off=True), control(optional=True, off=True)):
        positions = [c.position(c.at(k)) for k in range(c.last + 1)]
        assert positions == list(range(c.last + 1))


def test_the_lowest_positions_can_mean_off_and_automatic():
    c = control(off=True, optional=True)
    assert c.at(0) is None and c.at(1) == 0.0 and c.at(2) == 0.01
    assert (c.text(None), c.text(0.0), c.text(12.5)) == ("automatic", "off", "12.5 Pa s")
    assert c.position(None) == 0 and c.position(0.0) == 1


def test_words_stand_beyond_the_range():
    c = control(0.0, 2.0, log=False, words=(("no-slip", math.inf),), value=0.5)
    assert c.at(c.last) == math.inf and c.at(c.last - 1) == 2.0
    assert c.position(math.inf) == c.last and c.text(math.inf) == "no-slip"


def test_a_value_outside_widens_the_range():
    c = control(value=5000.0)
    assert c.at(c.last) == 5000.0 and c.at(0) == 0.01
    assert control(0.0, 30.0, log=False, value=-3.0).at(0) == -3.0


def test_whole_numbers_have_whole_positions():
    c = control(1, 30, log=False, whole=True, value=4)
    assert [c.at(k) for k in range(c.last + 1)] == [float(n) for n in range(1, 31)]
    assert c.text(7.0) == "7 Pa s"


# --- declarations ----------------------------------------------------------------------------------------------------


class StickyParams(SolverParams):
    """Parameters of a method that does not exist."""

    method: Literal["sticky"] = "sticky"
    grip: Annotated[float, Quantity("modulus", above=0), Slider(10, 1e5, log=True)] = 500.0
    """how hard it holds on"""
    hidden: Annotated[float, Quantity("number")] = 1.0
    """not for the hand"""


class Sticky:
    """Its solver."""

    honours = frozenset({"density", "viscosity", "relaxation_time", "yield_strain", "stickiness", "shine"})


class Shiny(Material):
    """A material with a property of its own."""

    shine: Annotated[float, Quantity("length", above=0), Slider(1e-3, 1.0, log=True)] = 0.1
    """how far it shines"""


@pytest.fixture
def sticky(monkeypatch):
    """A solver registered as later methods will be."""
    module = ModuleType("sticky_solver")
    module.Sticky, module.StickyParams = Sticky, StickyParams
    monkeypatch.setitem(sys.modules, "sticky_solver", module)
    monkeypatch.setitem(solvers.SOLVERS, "sticky", solvers.SolverInfo("sticky", "sticky_solver", "Sticky"))
    return box_scene(solver={"method": "sticky"})


def test_a_new_methods_sliders_appear_by_themselves(sticky):
    sticky.material["water"] = Shiny(density=1000.0, viscosity=3.0, relaxation_time=0.5)
    found = by_path(sticky)
    grip, shine = found["solver.grip"], found["material.water.shine"]
    assert (grip.unit, grip.low, grip.high, grip.log, grip.value) == ("Pa", 10, 1e5, True, 500.0)
    assert grip.help == "how hard it holds on" and "solver.hidden" not in found
    assert (shine.unit, shine.value, shine.name) == ("metres", 0.1, "shine")
    assert found["material.water.viscosity"].value == 3.0 and found["material.water.relaxation_time"].off
    assert found["material.water.yield_strain"].value is None, "not set, but it can be"
    assert "material.water.modulus" not in found, "it follows from the two others"
    assert "material.water.surface_tension" not in found, "this method does not honour it"
    assert [g.title for g in scene_controls(sticky)][:3] == ["gravity", "sticky", "water"]


def test_solids_offer_stickiness_where_the_method_knows_it(sticky):
    keys = {"solid.0.stick_distance", "solid.0.stick_stiffness"}
    assert keys <= set(by_path(sticky)) and by_path(sticky)["solid.0.stick_stiffness"].unit == "1/s²"
    assert not keys & set(by_path(box_scene())) and "solid.0.friction" in by_path(box_scene())


def test_their_changes_reach_the_scene(sticky):
    apply(sticky, "solver.grip", 1234.0)
    apply(sticky, "material.water.viscosity", 7.0)
    assert sticky.solver.grip == 1234.0 and sticky.material["water"].viscosity == 7.0
    with pytest.raises(SceneError, match="greater than 0"):
        apply(sticky, "solver.grip", -1.0)


def test_they_become_sliders_of_the_page(sticky):
    """Label, hint, scale and what a hand does to them: nothing was written for this method anywhere."""
    web = server.start(server.LOCAL, 0)
    try:
        changes = []
        sliders = Sliders(web.gui, web.gui.add_folder("physics"), lambda path, value: changes.append((path, value)))
        sliders.build(tuple(scene_controls(sticky)))
        handle = sliders._handles["solver.grip"]
        assert handle.label == "grip: 500 Pa" and "how hard it holds on" in handle.hint
        (moved,) = handle._impl.update_cb
        handle._impl.value = handle.max
        asyncio.run(moved(SimpleNamespace(client=object(), target=handle)))
        assert changes == [("solver.grip", 1e5)] and handle.label == "grip: 1e+05 Pa"
        handle.value = 0
        assert len(changes) == 1, "what the program does is not taken for a hand"
        sliders.refused("solver.grip")
        sliders.show({"solver.grip": 500.0})
        assert handle.label == "grip: 500 Pa" and handle.value == found_position(sticky, 500.0)
    finally:
        web.stop()


def test_what_the_scene_says_is_shown_at_once_or_when_the_hand_is_still(sticky, monkeypatch):
    """Also on sliders that were made a moment ago, which nobody has touched."""
    web = server.start(server.LOCAL, 0)
    try:
        now = [100.0]
        monkeypatch.setattr("viscoil.studio.sliders.time.perf_counter", lambda: now[0])
        sliders = Sliders(web.gui, web.gui.add_folder("physics"), lambda path, value: None)
        sliders.build(tuple(scene_controls(sticky)))
        handle = sliders._handles["solver.grip"]
        sliders.show({"solver.grip": 1000.0})
        assert handle.label == "grip: 1000 Pa"
        (moved,) = handle._impl.update_cb
        handle._impl.value = handle.max
        asyncio.run(moved(SimpleNamespace(client=object(), target=handle)))
        sliders.show({"solver.grip": 500.0})
        sliders.settle()
        assert handle.label == "grip: 1e+05 Pa", "not from under a hand"
        now[0] += 2.0
        sliders.settle()
        assert handle.label == "grip: 500 Pa" and handle.value == found_position(sticky, 500.0)
    finally:
        web.stop()


def found_position(scene, value):
    return by_path(scene)["solver.grip"].position(value)


def test_all_three_of_viscosity_relaxation_time_and_modulus_are_offered(sticky, monkeypatch):
    sticky.material["water"] = Material(density=1000.0, modulus=500.0)
    monkeypatch.setattr(Sticky, "honours", Sticky.honours | {"modulus"})
    values = [by_path(sticky)[f"material.water.{key}"].value for key in MAXWELL]
    assert values == [math.inf, math.inf, 500.0]
    sticky.material["water"] = Material(density=1000.0, modulus=500.0, viscosity=100.0)
    assert [by_path(sticky)[f"material.water.{key}"].value for key in MAXWELL] == [100.0, 0.2, 500.0]
    sticky.material["water"] = Material(density=1000.0, viscosity=100.0)
    assert [by_path(sticky)[f"material.water.{key}"].value for key in MAXWELL] == [100.0, None, None]


@pytest.mark.parametrize(
    ("given", "key", "value", "then"),
    [
        ({"viscosity": 10}, "viscosity", "2 Pa s", (2, None, None)),
        ({"viscosity": 10}, "relaxation_time", 2, (10, 2, None)),
        ({"viscosity": 10}, "modulus", 5, (10, None, 5)),
        ({"viscosity": 10, "relaxation_time": 2}, "modulus", 50, (None, 2, 50)),
        ({"viscosity": 10, "modulus": 5}, "viscosity", 20, (20, None, 5)),
        ({"viscosity": 10, "modulus": 5}, "relaxation_time", 1, (10, 1, None)),
        ({"modulus": 5, "relaxation_time": 2}, "viscosity", 20, (20, 2, None)),
        ({"modulus": 5, "relaxation_time": 2}, "relaxation_time", 1, (None, 1, 5)),
        ({"modulus": 5, "relaxation_time": 2}, "relaxation_time", 0, (10, 0, None)),
        ({"modulus": 5, "relaxation_time": math.inf}, "viscosity", 20, (20, None, 5)),
        ({"modulus": 5}, "relaxation_time", 3, (None, 3, 5)),
    ],
)
def test_one_of_the_three_follows_from_the_two_others(given, key, value, then):
    scene = box_scene(0.05, material={"water": {"density": 1000, **given}})
    before = scene.material["water"].model_dump()
    undo = apply(scene, f"material.water.{key}", value)
    assert tuple(getattr(scene.material["water"], name) for name in MAXWELL) == then
    undo()
    assert scene.material["water"].model_dump() == before
    with pytest.raises(SceneError, match=f"{key}: expected"):
        apply(scene, f"material.water.{key}", "much")
    assert scene.material["water"].model_dump() == before


def test_a_preset_makes_another_material_of_it_and_can_be_taken_back():
    scene = box_scene(0.05, material={"water": {"preset": "honey", "viscosity": 3, "changes": [{"time": 1, "viscosity": 1}]}})
    before = scene.material["water"].model_dump()
    assert ingredients(scene)[0].preset == "" and ingredients(scene)[0].text == "1420 kg/m³ · 3 Pa s"
    undo = apply(scene, "material.water.preset", "slime")
    assert scene.material["water"].model_dump(exclude={"source"}) == {
        **PRESETS["slime"].model_dump(exclude={"source"}), "preset": "slime"
    }  # fmt: skip
    assert ingredients(scene)[0].preset == "slime" and ingredients(scene)[0].colour == PRESETS["slime"].colour
    undo()
    assert scene.material["water"].model_dump() == before
    with pytest.raises(SceneError, match=r'unknown preset "honney".*Did you mean "honey"'):
        apply(scene, "material.water.preset", "honney")
    assert scene.material["water"].model_dump() == before


def test_a_preset_that_a_scene_only_names_is_its_own_after_a_change():
    scene = box_scene(0.05)
    assert ingredients(scene)[0].preset == "water"
    undo = apply(scene, "material.water.preset", "jelly")
    assert ingredients(scene)[0].preset == "jelly" and PRESETS["water"].modulus is None
    undo()
    assert scene.material == {}


# --- scenes ----------------------------------------------------------------------------------------------------------


def test_a_shipped_scene_offers_what_its_solver_and_materials_declare():
    scene = load("dam_break")
    found = by_path(scene)
    assert {"gravity.strength", "solver.iterations", "solver.xsph", "solver.vorticity", "solid.0.friction"} <= set(found)
    assert found["solver.iterations"].whole and found["solver.vorticity"].off and found["solver.vorticity"].unit == "m/s"
    assert {path for path in found if path.startswith("material")} == {"material.water.density"}, "all that PBF honours"


def test_nozzles_are_there():
    scene = box_scene()
    scene.emitter.append(Emitter(shape={"type": "sphere", "radius": 0.1}, material="honey", speed=2.0))
    assert by_path(scene)["emitter.0.speed"].value == 2.0
    assert controls(scene.emitter[0], "")[0].path == "speed"


@pytest.mark.parametrize("up, down", [("y", (0, -9.81, 0)), ("z", (0, 0, -9.81))])
def test_gravity_has_a_strength_and_two_tilts(up, down):
    scene = box_scene(up=up, gravity=down)
    assert [c.value for c in scene_controls(scene)[0].controls] == pytest.approx([9.81, 0, 0])
    apply(scene, "gravity.strength", 20.0)
    assert scene.gravity == pytest.approx(tuple(2 * 10 / 9.81 * g for g in down))
    apply(scene, "gravity.tilt sideways", 30.0)
    apply(scene, "gravity.tilt away", -20.0)
    assert [c.value for c in scene_controls(scene)[0].controls] == pytest.approx([20, 30, -20])
    assert scene.gravity[0] == pytest.approx(10.0) and math.hypot(*scene.gravity) == pytest.approx(20.0)
    with pytest.raises(SceneError, match="strength"):
        apply(scene, "gravity.strenght", 1.0)


def test_a_preset_becomes_the_scenes_own_and_stays_itself():
    scene = box_scene()
    undo = apply(scene, "material.water.density", 1500.0)
    assert scene.material["water"].density == 1500.0 and PRESETS["water"].density != 1500.0
    assert "density = 1500.0" in scene.to_toml()
    undo()
    assert scene.material == {}


def test_changes_are_checked_and_can_be_taken_back():
    scene = box_scene()
    undo = apply(scene, "solid.0.friction", 0.7)
    assert scene.solid[0].friction == 0.7
    undo()
    assert scene.solid[0].friction == 0.0
    for path, text in (
        ("solver.itterations", 'Did you mean "iterations"'),
        ("solid.4.friction", "counted from 0"),
        ("nonsense.key", 'no key "nonsense"'),
        ("material.gold.density", "unknown material"),
    ):
        with pytest.raises(SceneError, match=text):
            apply(scene, path, 1.0)
