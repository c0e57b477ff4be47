"""Materials that change in time: keyframes in scenes, their values, their messages, and what a simulation makes of them."""

import math

import numpy as np
import pytest

import kit  # noqa: F401  starts the backend
from viscoil.errors import SceneError
from viscoil.material import Material
from viscoil.scene.load import load
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

MELTING = """
spacing = 0.005
[time]
frames = 30
frame_time = 0.016666666666666666
steps_per_frame = 4
[solver]
method = "dcpbd"
[material.ice]
preset = "ice cream"
changes = [{ time = "200 ms" }, { time = 0.3, viscosity = "0.3 Pa s", yield_strain = 0.001 }]
[[fluid]]
material = "ice"
shape = { type = "box", size = [0.04, 0.04, 0.04], position = [0, 0.02, 0] }
[[solid]]
friction = "no-slip"
shape = { type = "plane" }
"""


def block(own, frames=12, **changes):
    values = {
        "spacing": 0.005, "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"}, "material": {"m": {"density": 1000, **own}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": (0.04, 0.04, 0.04), "position": (0, 0.02, 0)}}],
        "solid": [{"friction": "no-slip", "shape": {"type": "plane"}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def finished(sim, frames=None):
    for _ in sim.frames(frames):
        pass
    return sim


# --- values ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("interpolation", "time", "viscosity"),
    [
        ("log", 0.0, 100.0), ("log", 2.0, 100.0), ("log", 3.0, 10.0), ("log", 4.0, 1.0), ("log", 99.0, 1.0),
        ("linear", 3.0, 50.5), ("smooth", 3.0, 10.0), ("smooth", 2.5, 100 * 0.01**0.15625),
    ],
)  # fmt: skip
def test_viscosity_between_keyframes(interpolation, time, viscosity):
    changes = [{"time": 2}, {"time": "4 s", "viscosity": "1000 mPa s"}]
    material = Material(density=1000, viscosity=100, changes=changes, interpolation=interpolation)
    assert material.at(time).viscosity == pytest.approx(viscosity, rel=1e-12)


def test_the_material_itself_is_the_first_keyframe():
    material = Material(density=1, viscosity=100, changes=[{"time": 2, "viscosity": 1}])
    assert [material.at(t).viscosity for t in (0, 1, 2)] == pytest.approx([100, 10, 1])
    assert Material(density=1, viscosity=7, changes=[{"time": 0, "viscosity": 3}]).at(0).viscosity == 3


def test_each_property_goes_its_own_way():
    material = Material(
        density=1, modulus=100, relaxation_time=1, mobility=0.1,
        changes=[{"time": 1, "modulus": 1}, {"time": 2, "mobility": 0.5, "relaxation_time": 0}],
    )  # fmt: skip
    now = material.at(1.5)
    assert (now.modulus, now.mobility, now.relaxation_time) == pytest.approx((1, 0.3, 0.5)), "to 0 there are no factors"
    assert now.maxwell() == pytest.approx((0.5, 0.5, 1)) and material.modulus == 100


def test_a_solid_becomes_a_fluid_at_a_keyframe():
    material = Material(density=1, modulus=100, relaxation_time=math.inf, changes=[{"time": 2, "relaxation_time": 0.1}])
    assert material.at(1.999).relaxation_time == math.inf and material.at(2).relaxation_time == 0.1


def test_without_keyframes_it_is_itself():
    material = Material(preset="honey")
    assert material.at(3.0) is material


# --- messages ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "key", "text"),
    [
        ([{"time": 1, "viscocity": 1}], "changes.0.viscocity", 'Did you mean "viscosity"?'),
        ([{"time": 1, "density": 1}], "changes.0.density", 'unknown key "density"'),
        ([{"viscosity": 1}], "changes.0.time", "missing; expected a time in seconds"),
        ([{"time": "2 m", "viscosity": 1}], "changes.0.time", "m is a unit of length"),
        ([{"time": 1, "viscosity": -1}], "changes.0.viscosity", "expected a dynamic viscosity in Pa s, at least 0"),
        ([{"time": 1, "viscosity": "3 cSt"}], "changes.0.viscosity", "multiply it by the density"),
        ([{"time": 2}, {"time": 1, "viscosity": 1}], "changes.1.time", "in order of time; got 1 s after 2 s"),
        ([{"time": 1, "yield_strain": 1}], "changes.0.yield_strain", "the material has none at the start"),
        ([{"time": 1, "relaxation_time": math.inf}], "changes.0.relaxation_time", "expected a material with modulus"),
        (3, "changes", "expected a list of tables; got 3"),
    ],
)
def test_what_is_wrong_is_said(changes, key, text):
    with pytest.raises(SceneError) as error:
        Scene(spacing=1, material={"m": {"density": 1, "viscosity": 1, "relaxation_time": 1, "changes": changes}})
    assert error.value.key == f"material.m.{key}" and text in str(error.value)


def test_a_wrong_way_between_is_said():
    with pytest.raises(SceneError, match=r'interpolation: expected one of "log", "linear", "smooth"; got "lienar".*"linear"'):
        Material(density=1, viscosity=1, interpolation="lienar")


def test_a_file_names_the_line(tmp_path):
    path = tmp_path / "melting.toml"
    path.write_text(MELTING.replace('viscosity = "0.3 Pa s"', 'viscosity = "0.3 blob"'))
    with pytest.raises(SceneError, match=r'melting.toml:11: material.ice.changes.1.viscosity: .*unknown unit "blob"'):
        load(path)


def test_keyframes_are_written_and_read_again(tmp_path):
    path = tmp_path / "melting.toml"
    path.write_text(MELTING)
    scene = load(path)
    path.write_text(scene.to_toml())
    assert load(path) == scene and scene.material["ice"].at(0.25).viscosity == pytest.approx(math.sqrt(60 * 0.3))
    assert "changes" not in block({"viscosity": 1}).to_toml(), "nothing is written where nothing changes"


def test_tables_do_as_well(tmp_path):
    path = tmp_path / "melting.toml"
    header = "[[material.ice.changes]]\n"
    lines = f"{header}time = 0.2\n{header}time = 0.3\nviscosity = 0.3\nyield_strain = 0.001\n"
    head, tail = MELTING.split("changes = ")[0], MELTING.split("\n[[fluid]]")[1]
    path.write_text(f"{head}{lines}[[fluid]]{tail}")
    assert load(path).material["ice"].at(0.25).viscosity == pytest.approx(math.sqrt(60 * 0.3))


# --- simulations -------------------------------------------------------------------------------------------------------
def test_ice_cream_melts(tmp_path):
    """Stands until its keyframe, then runs away; the frames say what it was like."""
    path = tmp_path / "melting.toml"
    path.write_text(MELTING)
    sim = Simulation(load(path), "cpu")
    frames = list(sim.frames())
    height = {frame.index: frame["position"][:, 1].max() for frame in frames}
    assert height[12] > 0.93 * height[0] and height[30] < 0.5 * height[0]
    assert frames[12].materials[0]["viscosity"] == pytest.approx(60, rel=0.01)
    assert frames[30].materials[0]["viscosity"] == 0.3 and "modulus" not in frames[0].materials[0]


def by_hand(sim, material):
    """Sets what the keyframes say, after every step for the next one."""
    now = material.at(sim.time)
    sim.update({"material.m.viscosity": now.viscosity, "material.m.relaxation_time": now.relaxation_time})


def test_keyframes_are_the_same_as_a_hand_on_the_numbers():
    fluid = {"viscosity": 50.0, "relaxation_time": 0.2}
    changes = [{"time": 0.05}, {"time": 0.15, "viscosity": 1.0, "relaxation_time": 0.01}]
    keyed = finished(Simulation(block({**fluid, "changes": changes}), "cpu"))
    material = keyed.scene.material["m"]
    hand = finished(Simulation(block(fluid), "cpu", callback=lambda sim: by_hand(sim, material)))
    assert keyed.frame(["conformation"]).differences(hand.frame(["conformation"])) == []
    left = finished(Simulation(block(fluid), "cpu"))
    assert "position" in keyed.frame().differences(left.frame())


def test_a_restart_in_the_middle_of_a_change_has_the_same_bits():
    material = {"viscosity": 50.0, "changes": [{"time": 0.15, "viscosity": 1.0}]}
    sim = finished(Simulation(block(material), "cpu"), 5)
    state = sim.state()
    finished(sim, 9)
    again = Simulation(block(material), "cpu")
    again.restore(state)
    finished(again, 9)
    assert sim.frame().differences(again.frame()) == []


def test_a_steady_material_is_handed_over_once():
    sim = Simulation(block({"viscosity": 50.0, "changes": [{"time": 0.03, "viscosity": 1.0}]}), "cpu")
    taken, take = [], sim.solver.take_materials
    sim.solver.take_materials = lambda materials: (taken.append(materials[0].viscosity), take(materials))
    finished(sim, 6)
    assert len(taken) == 8 and taken[-1] == 1.0, "one per step of 1/240 s until 0.03 s, then none"


def test_update_takes_all_keys_or_none():
    sim = Simulation(block({"viscosity": 50.0}), "cpu")
    with pytest.raises(SceneError, match='Did you mean "viscosity"'):
        sim.update({"material.m.viscosity": "2 Pa s", "material.m.viscocity": 1})
    assert sim.scene.material["m"].viscosity == 50.0
    sim.update({"material.m.viscosity": "2 Pa s", "gravity": (0.0, 0.0, 0.0)})
    assert sim.scene.material["m"].viscosity == 2.0 and sim.world.gravity == (0.0, 0.0, 0.0)


def test_a_hand_on_a_number_ends_its_keyframes():
    scene = block({"viscosity": 50.0, "mobility": 0.0, "changes": [{"time": 1, "viscosity": 1.0, "mobility": 0.5}]})
    sim = Simulation(scene, "cpu")
    sim.update({"material.m.viscosity": 7.0})
    assert scene.material["m"].at(1.0).viscosity == 7.0 and scene.material["m"].at(1.0).mobility == 0.5


def test_what_became_a_plain_fluid_has_forgotten_its_strain():
    sim = finished(Simulation(block({"modulus": 500.0}), "cpu"), 6)
    assert np.abs(sim.world.get("conformation") - np.eye(3)).max() > 0.2
    sim.update({"material.m.preset": "honey"})
    assert np.abs(sim.world.get("conformation") - np.eye(3)).max() == 0
    finished(sim, 8)
    sim.update({"material.m.preset": "jelly"})
    finished(sim, 9)
    assert sim.metrics()["speed_max"] < 1.0, "jelly does not spring back to where it was before it was honey"


def test_two_materials_in_one_scene_keep_their_own_numbers():
    """Same viscosity, different memory: a soft solid springs back to its height, its neighbour flows away."""
    boxes = [
        {"material": name, "shape": {"type": "box", "size": (0.04, 0.04, 0.04), "position": (x, 0.02, 0)}}
        for name, x in (("firm", -0.1), ("m", 0.0), ("quick", 0.1))
    ]
    materials = {
        "m": {"density": 1000, "modulus": 3000, "relaxation_time": 0.01},
        "firm": {"density": 1000, "modulus": 3000},
        "quick": {"density": 1000, "modulus": 3000, "relaxation_time": 0.001},
    }
    frame = finished(Simulation(block({}, frames=20, material=materials, fluid=boxes), "cpu")).frame()
    names = [material["name"] for material in frame.materials]
    height = {n: frame["position"][frame["material"] == k, 1].max() for k, n in enumerate(names)}
    assert height["firm"] > 0.036 and height["firm"] - 0.006 > height["m"] > height["quick"] + 0.006
    assert np.isfinite(frame["position"]).all()
