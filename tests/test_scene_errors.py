"""Wrong inputs and what is said about them. One row each: the change to a good scene, the key, parts of the message."""

import pytest

from viscoil.errors import SceneError
from viscoil.scene.load import load

GOOD = """
title = "Good"
spacing = 0.05

[time]
frames = 10

[solver]
method = "pbf"
iterations = 4

[material.goo]
density = 1000
viscosity = 5

[[fluid]]
material = "goo"
shape = { type = "box", size = [1, 1, 1] }

[[solid]]
name = "tank"
container = true
shape = { type = "box", size = [2, 2, 2] }

[profiles.paper]
spacing = 0.02
"""

EMITTER = '[[emitter]]\nmaterial = "goo"\nspeed = 1\nshape = { type = "sphere", radius = 0.2 }\n'
SHAPE = 'shape = { type = "box", size = [1, 1, 1] }'

# (text to replace, or None to append; replacement; dotted key; parts of the message)
WRONG = {
    # --- keys
    "unknown top key": ("spacing = 0.05", "spacing = 0.05\nspaceing = 1", "spaceing", ['Did you mean "spacing"?']),
    "foreign word": ("frames = 10", "frames = 10\ndt = 0.01", "time.dt", ['unknown key "dt"', 'Did you mean "step"?']),
    "unknown table": (None, "[tim]\nframes = 3", "tim", ['Did you mean "time"?']),
    "plural table": (None, "[[solids]]\nx = 1", "solids", ['Did you mean "solid"?']),
    "american colour": (
        "viscosity = 5", 'viscosity = 5\ncolor = "red"', "material.goo.color", ['Did you mean "colour"?']
    ),
    "key of another shape": (
        SHAPE, 'shape = { type = "box", size = [1, 1, 1], radius = 2 }', "fluid.0.shape.radius",
        ['unknown key "radius"', "Expected one of: position, rotation, type, size, rounding"],
    ),
    "missing spacing": ("spacing = 0.05", "", "spacing", ["missing", "a length in metres"]),
    "missing size": (SHAPE, 'shape = { type = "box" }', "fluid.0.shape.size", ["missing", "three lengths in metres"]),
    "missing material": ('material = "goo"', "", "fluid.0.material", ["missing", "expected text"]),
    "missing density": ("density = 1000", "", "material.goo.density", ["missing", "a density in kg/m³"]),
    "missing shape": (SHAPE, "", "fluid.0.shape", ["missing"]),
    "missing speed": (None, EMITTER.replace("speed = 1\n", ""), "emitter.0.speed", ["missing", "a speed in m/s"]),
    # --- types
    "text for a length": ("spacing = 0.05", 'spacing = "big"', "spacing", ["a length in metres", 'got "big"']),
    "text for a vector": (
        SHAPE, 'shape = { type = "box", size = "big" }', "fluid.0.shape.size",
        ["expected three lengths in metres", "e.g. [1.0, 2.0, 1.0]", 'got "big"'],
    ),
    "two components": (
        SHAPE, 'shape = { type = "box", size = [1, 2] }', "fluid.0.shape.size", ["three lengths", "got [1, 2]"]
    ),
    "wrong component": (
        SHAPE, 'shape = { type = "box", size = [1, 2, "x"] }', "fluid.0.shape.size", ["three lengths", '"x"']
    ),
    "fraction of a frame": ("frames = 10", "frames = 1.5", "time.frames", ["a whole number", "got 1.5"]),
    "true for a count": ("frames = 10", "frames = true", "time.frames", ["a whole number", "got true"]),
    "true for a length": ("spacing = 0.05", "spacing = true", "spacing", ["a length in metres", "got true"]),
    "text for a flag": (
        "container = true", 'container = "yes"', "solid.0.container", ["expected true or false", 'got "yes"']
    ),
    "number for a name": ('material = "goo"', "material = 3", "fluid.0.material", ["expected text", "got 3"]),
    "number for a title": ('title = "Good"', "title = 3", "title", ["expected text", "got 3"]),
    "one table where a list is expected": (
        "[[fluid]]", "[fluid]", "fluid", ["expected a list of tables"]
    ),
    "list where a table is expected": ("[time]", "[[time]]", "time", ["expected a table"]),
    "number for a shape": (SHAPE, "shape = 3", "fluid.0.shape", ["a table with a type", "got 3"]),
    "quoted number": ("spacing = 0.05", 'spacing = "0.05"', "spacing", ["leave out the quotes or add a unit"]),
    # --- ranges
    "negative spacing": ("spacing = 0.05", "spacing = -1", "spacing", ["greater than 0", "got -1"]),
    "zero spacing": ("spacing = 0.05", "spacing = 0", "spacing", ["greater than 0", "got 0"]),
    "nan": ("spacing = 0.05", "spacing = nan", "spacing", ["got nan", "not a finite number"]),
    "infinite size": (
        SHAPE, 'shape = { type = "box", size = [1, inf, 1] }', "fluid.0.shape.size", ["inf", "not a finite number"]
    ),
    "nan in a vector": ("spacing = 0.05", "spacing = 0.05\ngravity = [0, nan, 0]", "gravity", ["accelerations", "nan"]),
    "negative radius": (
        SHAPE, 'shape = { type = "sphere", radius = -0.5 }', "fluid.0.shape.radius", ["greater than 0", "got -0.5"]
    ),
    "negative viscosity": ("viscosity = 5", "viscosity = -5", "material.goo.viscosity", ["at least 0", "got -5"]),
    "zero density": ("density = 1000", "density = 0", "material.goo.density", ["greater than 0", "got 0"]),
    "negative friction": (
        "container = true", "container = true\nfriction = -1", "solid.0.friction", ["at least 0", "no-slip"]
    ),
    "negative frames": ("frames = 10", "frames = -1", "time.frames", ["at least 0", "got -1"]),
    "no steps": ("frames = 10", "frames = 10\nsteps_per_frame = 0", "time.steps_per_frame", ["at least 1", "got 0"]),
    "large jitter": (SHAPE, SHAPE + "\njitter = 3", "fluid.0.jitter", ["at most 0.5", "got 3"]),
    "flat component": (
        SHAPE, 'shape = { type = "box", size = [1, 0, 1] }', "fluid.0.shape.size", ["each greater than 0"]
    ),
    "colour out of range": (
        "viscosity = 5", "viscosity = 5\ncolour = [255, 0, 0]", "material.goo.colour", ["from 0 to 1", "[255, 0, 0]"]
    ),
    "rounding": (
        SHAPE, 'shape = { type = "box", size = [1, 1, 1], rounding = 0.7 }', "fluid.0.shape",
        ["rounding is 0.7 m", "half the shortest edge, 0.5 m"],
    ),
    # --- units
    "unit of something else": (
        "spacing = 0.05", 'spacing = "5 kg/m3"', "spacing", ["a length in metres", "kg/m3 is a unit of density"]
    ),
    "time for a length": ("spacing = 0.05", 'spacing = "5 s"', "spacing", ["s is a unit of time"]),
    "unknown unit": (
        "spacing = 0.05", 'spacing = "5 furlongs"', "spacing", ['unknown unit "furlongs"', "known: m, cm, mm"]
    ),
    "kinematic viscosity": (
        "viscosity = 5", 'viscosity = "100 cSt"', "material.goo.viscosity",
        ["a dynamic viscosity in Pa s", "kinematic viscosity: multiply it by the density"],
    ),
    "unit on a plain number": (SHAPE, SHAPE + '\njitter = "1 mm"', "fluid.0.jitter", ["mm is a unit of length"]),
    # --- names
    "unknown material": ('material = "goo"', 'material = "goop"', "fluid.0.material", ['Did you mean "goo"?']),
    "unknown preset material": ('material = "goo"', 'material = "hony"', "fluid.0.material", ['Did you mean "honey"?']),
    "unknown preset": (
        "density = 1000", 'preset = "hunny"', "material.goo.preset",
        ['unknown preset "hunny"', "Expected one of: water"],
    ),
    "unknown solver": (
        'method = "pbf"', 'method = "pfb"', "solver.method", ['unknown solver "pfb"', 'Did you mean "pbf"?', "pcisph"]
    ),
    "unknown solver key": (
        "iterations = 4", "iteratons = 4", "solver.iteratons",
        ['the solver pbf has no key "iteratons"', 'Did you mean "iterations"?'],
    ),
    "solver key out of range": ("iterations = 4", "iterations = 0", "solver.iterations", ["expected", "got 0"]),
    "solver key of wrong type": (
        "iterations = 4", 'iterations = "many"', "solver.iterations", ["whole number", '"many"']
    ),
    "misspelt method": ('method = "pbf"', 'methd = "pbf"', "solver.methd", ['Did you mean "method"?']),
    "unknown shape": (
        SHAPE, 'shape = { type = "bax", size = [1, 1, 1] }', "fluid.0.shape.type",
        ['unknown type "bax"', 'Did you mean "box"?', "sphere"],
    ),
    "shape without type": (SHAPE, "shape = { size = [1, 1, 1] }", "fluid.0.shape.type", ["missing", "one of box"]),
    "wrong shape inside a union": (
        SHAPE, 'shape = { type = "union", parts = [{ type = "sphere", radius = "x" }] }',
        "fluid.0.shape.parts.0.radius", ["a length in metres", 'got "x"'],
    ),
    "empty union": (SHAPE, 'shape = { type = "union", parts = [] }', "fluid.0.shape.parts", ["at least 1 item"]),
    "unknown axis": ("spacing = 0.05", 'spacing = 0.05\nup = "x"', "up", ['one of "y", "z"', 'got "x"']),
    "unknown boundary": (
        "container = true", 'container = true\nboundary = "particle"', "solid.0.boundary", ['Did you mean "particles"?']
    ),
    "unknown colour": ("viscosity = 5", 'viscosity = 5\ncolour = "bleu"', "material.goo.colour", ['mean "blue"?']),
    "friction by a wrong word": (
        "container = true", 'container = true\nfriction = "noslip"', "solid.0.friction", ['Did you mean "no-slip"?']
    ),
    "unknown quantity": (
        None, '[[expect]]\nquantity = "hight"\nvalue = 1\nrelative = 0.1', "expect.0.quantity", ['mean "height"?']
    ),
    "unknown output field": (None, '[output]\nfields = ["densty"]', "output.fields.0", ['Did you mean "density"?']),
    "two solids of one name": (
        None, '[[solid]]\nname = "tank"\nshape = { type = "plane" }', "solid", ["different names"]
    ),
    "unknown profile": ('title = "Good"', 'quality = "papr"', "quality", ['no profile called "papr"', 'mean "paper"?']),
    # --- what belongs together
    "viscosity, relaxation time and modulus": (
        "viscosity = 5", "viscosity = 5\nrelaxation_time = 1\nmodulus = 5", "material.goo",
        ["at most two of viscosity, relaxation_time and modulus", "got all three"],
    ),
    "relaxation time alone": (
        "viscosity = 5", "relaxation_time = 1", "material.goo", ["expected viscosity or modulus beside it"]
    ),
    "infinite viscosity by relaxation": (
        "viscosity = 5", "viscosity = 5\nrelaxation_time = inf", "material.goo",
        ["expected modulus instead of viscosity"],
    ),
    "step and cfl": (
        "frames = 10", "frames = 10\nstep = 0.001\ncfl = 0.4", "time", ["only one of steps_per_frame, step and cfl"]
    ),
    "limit without cfl": ("frames = 10", "frames = 10\nmax_step = 0.001", "time", ["expected cfl beside it"]),
    "limits crossed": (
        "frames = 10", "frames = 10\ncfl = 0.4\nmax_step = 0.001\nmin_step = 0.01", "time",
        ["min_step is 0.01 s", "at most max_step (0.001 s)"],
    ),
    "step longer than a frame": ("frames = 10", "frames = 10\nstep = 1", "time", ["step is 1 s", "at most frame_time"]),
    "two tolerances": (
        None, '[[expect]]\nquantity = "height"\nvalue = 1\nrelative = 0.1\ntolerance = 1', "expect.0",
        ["exactly one of tolerance and relative", "got tolerance and relative"],
    ),
    "no tolerance": (None, '[[expect]]\nquantity = "height"\nvalue = 1', "expect.0", ["exactly one", "got neither"]),
    "keyframes out of order": (
        "container = true", "container = true\nmotion = [{ time = 1 }, { time = 0.5 }]", "solid.0.motion",
        ["keyframes in order of time", "keyframe 1 is at 0.5 s"],
    ),
    "keyframe before the start": (
        "container = true", "container = true\nmotion = [{ time = -1 }]", "solid.0.motion.0.time", ["at least 0"]
    ),
    "ends before it starts": (None, EMITTER + "start = 2\nend = 1", "emitter.0", ["end is 1 s", "after start (2 s)"]),
    "direction of no length": (None, EMITTER + "direction = [0, 0, 0]", "emitter.0.direction", ["not zero"]),
    "box upside down": (
        None, '[domain]\nmin = [0, 0, 0]\nmax = [1, -1, 1]\nperiodic = "x"', "domain", ["min below max", "on y"]
    ),
    "axis that does not exist": (
        None, '[domain]\nmin = [0, 0, 0]\nmax = [1, 1, 1]\nperiodic = "xw"', "domain.periodic", ["x, y and z", '"xw"']
    ),
    "endless fluid": (SHAPE, 'shape = { type = "plane" }', "fluid.0.shape", ["a plane has no end", "e.g. box"]),
    "endless part of a fluid": (
        SHAPE, 'shape = { type = "union", parts = [{ type = "plane" }] }', "fluid.0.shape", ["a plane has no end"]
    ),
    "endless samples": (
        None, '[[solid]]\nboundary = "particles"\nshape = { type = "plane" }', "solid.1", ["a plane has no end"]
    ),
    "missing mesh": (
        SHAPE, 'shape = { type = "mesh", file = "teapot.stl" }', "fluid.0.shape.file", ["teapot.stl does not exist"]
    ),
    "not a mesh": (SHAPE, 'shape = { type = "mesh", file = "teapot.png" }', "fluid.0.shape.file", ["ending in .stl"]),
    # --- the scene as a whole
    "empty scene": (
        '[[fluid]]\nmaterial = "goo"\n' + SHAPE, "", "",
        ["no particles", "at least one [[fluid]], [[emitter]] or [[particle_solid]]"],
    ),
    "thinner than a particle": (
        SHAPE, 'shape = { type = "box", size = [1, 0.01, 1] }', "fluid.0.shape",
        ["0.01 m thick", "spacing 0.05 m", "hold no particles"],
    ),
    "emitter that never starts": (
        '[[fluid]]\nmaterial = "goo"\n' + SHAPE, EMITTER + "start = 99", "emitter.0.start", ["no emitter starts before"]
    ),
    "profiles that are no tables": (
        "[profiles.paper]\nspacing = 0.02", "[profiles]\npaper = 3", "profiles", ["[profiles.paper]"]
    ),
}  # fmt: skip


def scene_file(tmp_path, text: str):
    path = tmp_path / "scene.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(*arguments, **keywords) -> SceneError:
    with pytest.raises(SceneError) as caught:
        load(*arguments, **keywords)
    error = caught.value
    assert error.exit_code == 2
    text = str(error)
    assert "pydantic" not in text and "Traceback" not in text and "Input should" not in text
    return error


def test_the_good_scene_is_good(tmp_path):
    assert load(scene_file(tmp_path, GOOD)).fluid[0].material == "goo"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_scene(name, tmp_path):
    old, new, key, parts = WRONG[name]
    text = GOOD + new if old is None else GOOD.replace(old, new, 1)
    assert text != GOOD
    path = scene_file(tmp_path, text)
    error = complaint(path)
    message = str(error)
    assert "\n" not in message, f"more than one complaint: {message}"
    assert message.startswith(str(path))
    assert error.file == str(path)
    assert error.key == key
    assert f"{key}: " in message
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [(3, "spacing = 0.05", "spacing = -1"), (6, "frames = 10", "frames = -1"), (18, SHAPE, "shape = 3")],
)
def test_the_line_is_named(line, old, new, tmp_path):
    path = scene_file(tmp_path, GOOD.replace(old, new))
    assert str(complaint(path)).startswith(f"{path}:{line}: ")


def test_several_errors_are_listed_in_the_order_of_the_file(tmp_path):
    text = (
        GOOD.replace("spacing = 0.05", "spacing = -1")
        .replace("frames = 10", "frames = 1.5")
        .replace("[1, 1, 1]", "[1]")
    )
    lines = str(complaint(scene_file(tmp_path, text))).splitlines()
    assert lines[0].endswith("scene.toml: 3 errors")
    assert [line.split(": ")[:2] for line in lines[1:]] == [
        ["  line 3", "spacing"], ["  line 6", "time.frames"], ["  line 18", "fluid.0.shape.size"],
    ]  # fmt: skip


def test_a_flood_of_errors_is_cut(tmp_path):
    text = GOOD + "".join(f'[[solid]]\nname = "{i}"\nshape = {i}\n' for i in range(25))
    lines = str(complaint(scene_file(tmp_path, text))).splitlines()
    assert lines[0].endswith("25 errors") and len(lines) == 12 and lines[-1] == "  … and 15 more"


# --- files that are no scenes ----------------------------------------------------------------------------------------
def test_missing_file():
    error = complaint("no/such/scene.toml")
    assert "no such file" in str(error) and "dam_break" in str(error)


def test_unknown_name():
    error = complaint("dam_brake")
    assert 'no scene called "dam_brake". Did you mean "dam_break"?' in str(error)
    assert error.suggestion == "dam_break"


def test_misspelt_file_beside_the_right_one(tmp_path):
    scene_file(tmp_path, GOOD)
    assert f'Did you mean "{tmp_path / "scene.toml"}"?' in str(complaint(tmp_path / "scnee.toml"))


def test_name_longer_than_a_file_name_can_be():
    assert "no scene called" in str(complaint("x" * 5000))


def test_empty_name():
    assert "expected the name of a shipped scene" in str(complaint(""))


def test_directory(tmp_path):
    scene_file(tmp_path, GOOD)
    message = str(complaint(tmp_path))
    assert "is a directory" in message and str(tmp_path / "scene.toml") in message


@pytest.mark.parametrize("junk", [bytes(range(256)), b"\xff\xfe\x00s", b"\x89PNG\r\n\x1a\n\xde\xad"])
def test_binary_junk(junk, tmp_path):
    path = tmp_path / "junk.toml"
    path.write_bytes(junk)
    assert "not a scene; expected a TOML text file in UTF-8" in str(complaint(path))


@pytest.mark.parametrize(
    ("text", "place"),
    [("spacing = ", ":1: "), ("spacing = 1\n[time\nframes = 3", ":2:6: "), ("a = 1\na = 2\n", ":2:6: ")],
)
def test_bad_toml(text, place, tmp_path):
    path = scene_file(tmp_path, text)
    assert f"{path}{place}not valid TOML" in str(complaint(path))


@pytest.mark.parametrize(
    ("text", "hint"),
    [("spacing = 20 ms", '. A value with a unit is text: "20 ms"'), ("x = { a = 8 mm, b = 1 }", 'text: "8 mm"'),
     ("x = 0.5 Pa s", 'text: "0.5 Pa s"'), ('x = "8 mm" y # 5 mm', ""), ("x = 3 minutes", "")],
)  # fmt: skip
def test_a_number_with_a_unit_wants_quotes(text, hint, tmp_path):
    message = str(complaint(scene_file(tmp_path, text)))
    assert "not valid TOML" in message and message.endswith(hint)
    assert hint or "with a unit" not in message


def test_single_brackets_where_there_may_be_several(tmp_path):
    message = str(complaint(scene_file(tmp_path, 'spacing = 0.1\n[solid]\nshape = { type = "plane" }')))
    assert "solid: expected a list of tables, each under [[solid]] in double brackets; got a table" in message


def test_a_method_alone_where_a_table_is_wanted(tmp_path):
    message = str(complaint(scene_file(tmp_path, 'spacing = 0.1\nsolver = "dcpdb"')))
    assert 'expected a table with a method, e.g. solver = { method = "dcpbd" }; got "dcpdb"' in message


def test_unreadably_nested(tmp_path):
    error = complaint(scene_file(tmp_path, "a = " + "[" * 100_000))
    assert "scene.toml" in str(error)


# --- overrides -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("time.frames", ["--set time.frames: expected key=value"]),
        ("=3", ["expected key=value"]),
        ("time.frames=", ["expected key=value"]),
        ("time..frames=3", ["is not a key", "names joined by dots"]),
        ("time frames=3", ["is not a key"]),
        ("time.frames=many", ["--set time.frames: expected a whole number", 'got "many"']),
        ("time.frams=3", ["--set time.frams: unknown key", 'Did you mean "frames"?']),
        ("tim.frames=3", ["--set tim: unknown key", 'Did you mean "time"?']),
        ("solid.7.friction=1", ["--set solid.7: no item 7 in solid", "there are 1"]),
        ("solid.friction=1", ["solid is a list", "e.g. solid.0.friction"]),
        ("sink.0.start=1", ["--set sink: expected a list of tables"]),
        ("quality=papr", ["--set quality: no profile called", 'Did you mean "paper"?', "quick, paper"]),
        ("quality=3", ["--set quality: no profile called 3"]),
        ("spacing=2 kg/m3", ["--set spacing: expected a length", "unit of density"]),
        ("fluid.0.shape.size=[1,2", ["--set fluid.0.shape.size: expected three lengths", "[1,2"]),
        ("solver.method=sph", ["--set solver.method: unknown solver"]),
        ("time=3", ["--set time: expected a table", "got 3"]),
    ],
)
def test_wrong_setting(setting, parts, tmp_path):
    message = str(complaint(scene_file(tmp_path, GOOD), set_strings=[setting]))
    for part in parts:
        assert part in message, message


def test_wrong_override_from_python(tmp_path):
    path = scene_file(tmp_path, GOOD)
    assert f"{path}: override time.frames: expected a whole number" in str(complaint(path, time__frames=2.5))
    assert 'Did you mean "spacing"?' in str(complaint(path, {"spacng": 1}))


def test_wrong_profile_item(tmp_path):
    path = scene_file(tmp_path, GOOD + "fluid.4.jitter = 0.1\n")
    assert "profiles.paper.fluid.4: no item 4 in fluid" in str(complaint(path, quality="paper"))


@pytest.mark.parametrize(
    ("base", "more", "part"),
    [
        ('"papper"', "[profiles.paper]", 'Did you mean "paper"?'),
        ("3", "[profiles.paper]", 'no other profile called 3. Expected one of: paper'),
        ('"paper"', '[profiles.paper]\nextends = "published"', 'no other profile called "published". Expected no extends'),
        ('"published"', "", "there is none"),
    ],
)  # fmt: skip
def test_a_profile_extends_another_one(base, more, part, tmp_path):
    text = GOOD[: GOOD.index("[profiles")] + f"[profiles.published]\nextends = {base}\n{more}\n"
    error = complaint(scene_file(tmp_path, text), quality="published")
    assert ".extends: no other profile" in str(error) and part in str(error)
    assert error.key.startswith("profiles.") and error.key.endswith(".extends")


# --- sizes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("spacing", ["1 mm", "1 um", "1e-9"])
def test_absurd_counts(spacing, tmp_path):
    scene = load(scene_file(tmp_path, GOOD), set_strings=[f"spacing={spacing}", "fluid.0.shape.size=[10, 10, 10]"])
    with pytest.raises(SceneError, match=r"spacing: about .* particles, more than the limit of 2,000,000,000"):
        scene.check_size()


def test_more_than_memory_holds(tmp_path):
    scene = load(scene_file(tmp_path, GOOD))
    with pytest.raises(SceneError, match="but only 1 kB are free; expected a larger spacing"):
        scene.check_size(available=1000)
