"""Loading, overriding and writing scenes."""

import json
import math
from pathlib import Path

import pytest

from viscoil.errors import SceneError
from viscoil.material import PRESETS
from viscoil.scene.emitters import Nozzle
from viscoil.scene.load import line_numbers, load, profiles, shipped
from viscoil.scene.schema import Emitter, Fluid, Keyframe, Scene, Sink, Solid, TimeSettings
from viscoil.scene.shapes import SHAPES, Bear, Box, Capsule, Cone, Cylinder, Funnel, Plane, Sphere, Torus, Union
from viscoil.scene.size import particle_steps
from viscoil.solvers import SOLVERS

EVERYTHING = """
title = "Everything with \\"quotes\\" and ümläuts"
spacing = "2 cm"
gravity = [0, 0, -9.81]
up = "z"

[domain]
min = [-1, -1, -1]
max = [1, 1, 1]
periodic = "zx"

[time]
frames = 12
frame_time = "20 ms"
cfl = 0.4
max_step = 0.01

[solver]
method = "pbf"
iterations = 7

[material.goo]
preset = "slime"
density = 1100

[material."thin goo"]
density = 900
viscosity = "20 mPa s"
colour = "amber"

[[fluid]]
material = "goo"
velocity = [0, 1, 0]
jitter = 0.1
seed = 3
[fluid.shape]
type = "union"
blend = 0.05
parts = [{ type = "sphere", radius = 0.3 }, { type = "box", size = [1, 0.2, 0.2], rotation = [0, 45, 0] }]

[[emitter]]
material = "thin goo"
shape = { type = "cylinder", radius = 0.1, height = 0.1 }
direction = [3, 0, -4]
speed = 2
start = 0.1
motion = [{ time = 0, position = [0, 0, 0] }, { time = 1, position = [1, 0, 0], rotation = [0, 90, 0] }]

[[sink]]
shape = { type = "plane", position = [0, -1, 0] }

[[solid]]
name = "cup"
container = true
friction = "no-slip"
shape = { type = "cylinder", radius = 1, height = 2 }

[output]
checkpoint_every = 5

[[expect]]
quantity = "height"
time = 0.2
value = 0.3
relative = 0.1

[figure]
paper = "A"
number = "1"

[profiles.fine]
spacing = "1 cm"
time.frames = 20
"solver.iterations" = 9
fluid.0.jitter = 0.2

[profiles.other]
fluid = [{ material = "water", shape = { type = "bear", height = 0.5 } }]

[profiles.longer]
extends = "fine"
time.frames = 40
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "everything.toml"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


def test_file_becomes_a_scene_in_si_units(file):
    scene = load(file)
    assert scene.spacing == pytest.approx(0.02)
    assert scene.time.frame_time == pytest.approx(0.02)
    assert scene.time.cfl == 0.4 and scene.time.steps_per_frame is None
    assert scene.solver.iterations == 7 and scene.method == "pbf"
    assert scene.emitter[0].direction == pytest.approx((0.6, 0, -0.8))
    assert scene.solid[0].friction == math.inf
    assert scene.domain.periodic == "xz"
    assert list(scene.used_materials()) == ["goo", "thin goo"]
    assert scene.material["goo"].modulus == PRESETS["slime"].modulus
    assert scene.end_time == pytest.approx(0.24)


@pytest.mark.parametrize("quality", ["quick", "fine", "other", "longer"])
def test_a_written_scene_loads_to_the_same_scene(file, tmp_path, quality):
    scene = load(file, quality=quality)
    written = tmp_path / "as_run.toml"
    written.write_text(scene.to_toml(), encoding="utf-8")
    again = load(written)
    assert again == scene
    assert again.to_toml() == scene.to_toml()


def test_overrides_survive_writing_although_a_profile_was_applied(file, tmp_path):
    scene = load(file, {"spacing": 0.015}, quality="fine")
    written = tmp_path / "as_run.toml"
    written.write_text(scene.to_toml(), encoding="utf-8")
    assert load(written).spacing == 0.015
    assert load(written, quality="fine").spacing == 0.015
    with pytest.raises(SceneError, match='no profile called "other"'):
        load(written, quality="other")


def test_a_material_that_lost_a_preset_value_keeps_losing_it(file, tmp_path):
    scene = load(file)
    scene.material["goo"].relaxation_time = None
    written = tmp_path / "as_run.toml"
    written.write_text(scene.to_toml(), encoding="utf-8")
    assert load(written).material["goo"].relaxation_time is None


def test_profiles_change_tables_items_and_lists(file):
    assert profiles(file) == ["quick", "fine", "other", "longer"]
    fine = load(file, quality="fine")
    assert fine.spacing == pytest.approx(0.01) and fine.quality == "fine"
    assert fine.time.frames == 20 and fine.time.cfl == 0.4
    assert fine.solver.iterations == 9
    assert fine.fluid[0].jitter == 0.2 and fine.fluid[0].seed == 3
    assert [type(f.shape) for f in load(file, quality="other").fluid] == [Bear]
    longer = load(file, quality="longer")
    assert (longer.spacing, longer.solver.iterations, longer.time.frames) == (fine.spacing, 9, 40), "as fine, but for the time"


def test_order_is_file_profile_overrides(file):
    assert load(file, quality="fine", time__frames=3).time.frames == 3
    assert load(file, set_strings=["quality=fine", "time.frames=3"]).time.frames == 3
    assert load(file, {"time.frames": 3}, set_strings=["time.frames=4"]).time.frames == 4


@pytest.mark.parametrize(
    ("setting", "read"),
    [
        ("time.frames=5", lambda s: s.time.frames == 5),
        ("title=plain words", lambda s: s.title == "plain words"),
        ("spacing=5 mm", lambda s: s.spacing == pytest.approx(0.005)),
        ("spacing='5 mm'", lambda s: s.spacing == pytest.approx(0.005)),
        ("gravity=[0, 0, 0]", lambda s: s.gravity == (0, 0, 0)),
        ("solid.0.container=false", lambda s: s.solid[0].container is False),
        ("solid.0.friction=0.5", lambda s: s.solid[0].friction == 0.5),
        ("fluid.0.shape.parts.0.radius=0.2", lambda s: s.fluid[0].shape.parts[0].radius == 0.2),
        ('material."thin goo".density=950', lambda s: s.material["thin goo"].density == 950),
        ("material.water.viscosity=1", lambda s: s.material["water"].viscosity == 1),
        ("time.step=1 ms", lambda s: s.time.step == pytest.approx(0.001) and s.time.cfl is None),
        ("time.steps_per_frame=2", lambda s: s.time.steps_per_frame == 2 and s.time.max_step is None),
        ("solver.method=pcisph", lambda s: s.method == "pcisph"),
    ],
)
def test_settings(file, setting, read):
    assert read(load(file, set_strings=[setting]))


def test_changing_a_shape_leaves_the_old_keys_behind(file):
    scene = load(file, {"solid.0.shape": {"type": "sphere", "radius": 0.5}})
    assert scene.solid[0].shape == Sphere(radius=0.5)


def test_every_shipped_scene_loads_in_every_quality():
    assert "dam_break" in shipped()
    for name in shipped():
        for quality in profiles(name):
            scene = load(name, quality=quality)
            fewest = 2500 if scene.emitter else 4500  # a rope is thin; as in test_every_scene
            fewest = 1000 if scene.method == "pvfs" else fewest  # as many as the paper's interactive scenes
            assert scene.estimate().particles >= fewest, (name, quality)
            assert scene.title and scene.description, name


def test_scene_built_in_python_equals_the_one_from_a_file(tmp_path):
    scene = Scene(
        spacing=0.05,
        fluid=[Fluid(shape=Box(size=(1, 1, 1)), material="water")],
        emitter=[Emitter(shape=Sphere(radius=0.1), material="honey", speed=1.0, direction=(0, -2, 0), end=3.0)],
        sink=[Sink(shape=Plane())],
        solid=[
            Solid(shape=Torus(radius=1, tube=0.2), motion=[Keyframe(time=0), Keyframe(time=1, rotation=(0, 90, 0))])
        ],
        time=TimeSettings(step=0.001),
    )
    scene.check()
    path = tmp_path / "python.toml"
    path.write_text(scene.to_toml(), encoding="utf-8")
    assert load(path) == scene


def test_python_lists_are_checked_again_before_a_run():
    scene = Scene(spacing=0.05, fluid=[Fluid(shape=Box(size=(1, 1, 1)), material="water")])
    scene.fluid[0].material = "watr"
    with pytest.raises(SceneError, match=r'fluid.0.material: unknown material "watr". Did you mean "water"'):
        scene.check_size()
    scene.fluid[0].material = "water"
    scene.fluid.append("junk")
    with pytest.raises(SceneError, match=r"fluid.1: expected"):
        scene.check_size()


def test_choosing_a_step_rule_from_python_leaves_the_others():
    time = TimeSettings(cfl=0.4, max_step=0.01)
    time.step = 0.002
    assert (time.step, time.cfl, time.max_step, time.steps_per_frame) == (0.002, None, None, None)
    with pytest.raises(SceneError, match="steps_per_frame: expected a whole number"):
        time.steps_per_frame = 0
    assert time.step == 0.002
    assert TimeSettings().steps_per_frame == 4


def test_quality_is_chosen_when_loading():
    scene = Scene(spacing=0.1)
    with pytest.raises(SceneError, match="quality: cannot be changed"):
        scene.quality = "paper"


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (Box(size=(1, 2, 3)), 6.0),
        (Sphere(radius=1), 4.18879),
        (Cylinder(radius=1, height=2), 6.28319),
        (Capsule(radius=1, height=2), 10.47198),
        (Cone(radius=1, height=3), 3.14159),
        (Torus(radius=2, tube=0.5), 9.8696),
        (Union(parts=[Sphere(radius=1), Sphere(radius=1, position=(5, 0, 0))]), 8.37758),
    ],
)
def test_volumes(shape, volume):
    assert shape.volume() == pytest.approx(volume, rel=1e-5)


@pytest.mark.parametrize(
    "shape",
    [
        Box(size=(1, 2, 0.5), rounding=0.1, rotation=(20, 30, 40)),
        Sphere(radius=0.5),
        Capsule(radius=0.3, height=0.7, position=(3, 2, 1)),
        Cylinder(radius=0.4, height=1.0),
        Cone(radius=0.5, top_radius=0.2, height=1.0),
        Funnel(top_radius=0.8, bottom_radius=0.3, height=0.8, thickness=0.15),
        Torus(radius=0.6, tube=0.2),
        Bear(height=1.5),
        Union(parts=[Sphere(radius=0.4), Capsule(radius=0.3, height=0.5, position=(0.5, 1, 0), rotation=(0, 0, 45))]),
        Union(parts=[Sphere(radius=0.4), Sphere(radius=0.4, position=(0.7, 0, 0))], blend=0.3, position=(1, 1, 1)),
        Union(parts=[Bear(height=1, position=(2, 0, 0)), Union(parts=[Box(size=(1, 1, 1), position=(0, 0, 1))])]),
    ],
    ids=lambda shape: shape.type,
)
def test_estimates_hold_the_particles_that_really_fit(shape):
    """Upper estimates of volume and box, against the filled shape; not wasteful either."""
    import numpy as np

    from viscoil import backend
    from viscoil.solids.assembly import signed_distance

    backend.start("cpu")
    spacing = 0.03
    own_frame = shape.model_copy(update={"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0)})
    middle, half = np.array(shape.middle()), np.array(shape.extent()) / 2
    axes = [np.arange(m - 1.4 * h, m + 1.4 * h, spacing) for m, h in zip(middle, half, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)  # reaches well beyond the box
    inside = points[signed_distance(own_frame, points) < 0]
    assert (np.abs(inside - middle) <= half + 1e-6).all()
    estimate = shape.volume() / spacing**3
    assert 0.45 * estimate < len(inside) < 1.03 * estimate


def test_estimate_counts_fluids_and_emitters():
    scene = Scene(
        spacing=0.1,
        fluid=[Fluid(shape=Box(size=(1, 1, 1)), material="water")],
        emitter=[Emitter(shape=Box(size=(1, 1, 1)), material="water", speed=2.0, start=0.5, end=1.0)],
        time=TimeSettings(frames=60, frame_time=0.1),
    )
    assert scene.estimate().particles == pytest.approx(2000, rel=0.05)
    scene.emitter[0].max_particles = 10
    assert scene.estimate().particles == pytest.approx(1010, rel=0.05)


def test_too_much_memory_is_refused_with_numbers():
    scene = Scene(spacing=0.01, fluid=[Fluid(shape=Box(size=(1, 1, 1)), material="water")])
    with pytest.raises(SceneError, match=r"about 1,020,000 particles, 660 MB of memory, but only 1 MB are free"):
        scene.check_size(available=1_000_000)
    assert scene.check_size(available=10**10).particles == pytest.approx(1e6, rel=0.05)


def test_json_schema_knows_every_shape_and_solver():
    schema = Scene.model_json_schema()
    text = json.dumps(schema)
    for shape in SHAPES:
        assert f'"const": "{shape}"' in text
    methods = [table["properties"]["method"]["const"] for table in schema["properties"]["solver"]["anyOf"]]
    assert methods == list(SOLVERS) and {"pbf", "dcpbd", "pcisph"} <= set(methods)
    assert schema["additionalProperties"] is False
    assert "[m]" in schema["properties"]["spacing"]["description"]


def test_line_numbers_follow_headers_and_lists():
    text = 'a = 1\n[t]\nb = 2\n[[f]]\nc = 3\n[f.s]\nd = 4\n[[f]]\nc = 5\n[m."x y"]\ne = 6\n'
    lines = line_numbers(text)
    assert lines["a"] == 1 and lines["t.b"] == 3 and lines["f.0.c"] == 5 and lines["f.0.s.d"] == 7
    assert lines["f.1.c"] == 9 and lines["m.x y.e"] == 11


JUNK = [None, True, -1, 0, 10**30, 1.5, math.nan, math.inf, "", "x", "3 parsecs", b"bytes", [], [1], [[1, 2, 3]], {},
        {"a": 1},
        object(), ["a", "b", "c"], [math.nan] * 3]  # fmt: skip


def paths(value, prefix=""):
    """Every key of nested tables and lists, dotted."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        path = f"{prefix}.{key}" if prefix else str(key)
        yield path
        if isinstance(inner, (dict, list)):
            yield from paths(inner, path)


def test_junk_anywhere_is_either_understood_or_explained(file):
    """No value of any kind at any key may end in anything but a scene or a SceneError in our words."""
    keys = [key for key in paths(load(file).to_dict()) if not key.startswith("profiles")]
    assert len(keys) > 100
    explained = 0
    for key in keys:
        for junk in JUNK:
            try:
                load(file, {key: junk})
            except SceneError as error:
                explained += 1
                text = str(error)
                assert "Input should" not in text and "validation error" not in text, (key, junk, text)
    assert explained > 10 * len(keys)


def test_work_is_particles_times_steps(tmp_path):
    """∫ N dt/Δt against what a nozzle has released by each frame."""
    scene = load("coiling")
    nozzle, alive, total = Nozzle(scene.emitter[0], scene.spacing, 0.0), 0, 0
    for index in range(scene.time.frames):
        alive += len(nozzle.release(index * scene.time.frame_time)[0])
        total += scene.time.steps_per_frame * alive
    assert particle_steps(scene) == pytest.approx(total, rel=0.05)
    late = load("coiling", {"emitter.0.start": 2.0, "emitter.0.end": 3.0})
    assert particle_steps(late) == pytest.approx(particle_steps(scene) * (1.0 * 1.5) / (4.0 * 2.0), rel=1e-3)
    tank = load("dam_break")
    assert particle_steps(tank) == pytest.approx(0.4 * 0.8 * 0.3 / tank.spacing**3 * tank.time.frames * 4)
    path = tmp_path / "stepped.toml"
    path.write_text('spacing = 0.1\n[[fluid]]\nmaterial = "water"\nshape = { type = "box", size = [1, 1, 1] }\n')
    step = {"time.frames": 10, "time.step": 0.004, "time.frame_time": 0.01}
    assert particle_steps(load(path, step)) == pytest.approx(1000 * 30), "the last step of a frame is shortened"
    assert particle_steps(load(path, {"time.cfl": 0.4})) is None
