"""The scene reference: complete, fresh, and every example in it is accepted."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from viscoil import solvers
from viscoil.cli import main
from viscoil.errors import SceneError
from viscoil.model import Model, models_in
from viscoil.scene import reference
from viscoil.scene.load import load
from viscoil.scene.schema import Scene
from viscoil.scene.shapes import SHAPES

DOCUMENT = Path(__file__).parents[1] / "docs" / "scene_reference.md"
TETRAHEDRON = "\n".join(["v 0 0 0", "v 90 0 0", "v 0 90 0", "v 0 0 90", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"])
ARM = """<mujoco><worldbody><body><joint name="elbow" type="hinge" axis="0 1 0"/><geom type="capsule" size=".02 .1"/></body>
</worldbody></mujoco>"""
ENOUGH = 'spacing = 0.002\n[[fluid]]\nmaterial = "water"\nshape = { type = "sphere", radius = 0.01 }\n'
TABLES = reference.tables()
ROWS = [(table, row) for table in TABLES for row in table.keys]


def name_of(value: Any) -> str:
    return f"{value.path}" if isinstance(value, reference.Table) else value.name


def reachable() -> set[type]:
    """Every model a scene file can contain."""
    found, todo = set(), [Scene, *SHAPES.values(), *map(solvers.params_class, solvers.SOLVERS)]
    while todo:
        model = todo.pop()
        if model not in found and model is not Model:
            found.add(model)
            todo += [inner for field in model.model_fields.values() for inner in models_in(field.annotation)]
    return {model for model in found if model.model_fields}


def test_the_document_is_what_the_program_says():
    assert DOCUMENT.read_text(encoding="utf-8") == reference.markdown(), (
        "run: python -m viscoil.scene.reference docs/scene_reference.md"
    )


def test_every_table_and_every_key_is_there():
    told = {reference.model_at(table.path): table for table in TABLES if table.path not in ("shape", "solver", "profiles")}
    assert set(told) == reachable()
    for model, table in told.items():
        keys = {row.name for row in table.keys}
        inherited = {row.name for row in reference.table(table.base).keys} if table.base else set()
        assert keys | inherited == set(model.model_fields) and keys <= set(model.model_fields)
        assert all(row.text for row in table.keys), f"{table.path}: keys without a meaning"


def test_methods_for_comparison_list_what_differs_from_their_base_only():
    assert {row.name for row in reference.table("solver.clavet_iisph").keys} == {"method", "correction", "reading"}


@pytest.mark.parametrize(
    ("key", "unit", "limits", "default"),
    [
        ("time.frames", "", "0 to 10,000,000", "`100`"),
        ("emitter.speed", "m/s", "> 0", "required"),
        ("emitter.end", "s", "> 0, or inf", "`inf`"),
        ("material.mobility", "", "0 to 0.5", "–"),
        ("material.extensibility", "", "> 3, at most 20", "–"),
        ("actor.heading", "°", "-720 to 720", "`0`"),
        ("solid.friction", "", "at least 0, or inf", "`0`"),
        ("shape.box.size", "m", "each > 0", "required"),
        ("solver.pbf.iterations", "", "1 to 1,000", "`4`"),
        ("solver.dcpbd.iterations", "", "1 to 1,000", "`5`"),
        ("gravity", "m/s²", "", "`[0, -9.81, 0]`"),
    ],
)
def test_rows_say_unit_range_and_default(key, unit, limits, default):
    _, ((_, row),) = reference.lookup(key)
    assert (row.unit, row.range, row.default) == (unit, limits, default)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("output.fields", "list of texts"),
        ("solid.body.range", "two numbers, or texts with a unit"),
        ("fluid", "list of tables"),
    ],
)
def test_rows_say_what_a_list_holds(key, kind):
    *table, name = key.split(".")
    assert {row.name: row.kind for row in reference.table(".".join(table) or "scene").keys}[name] == kind


@pytest.mark.parametrize("table", [table for table in TABLES if table.example], ids=name_of)
def test_every_example_of_a_table_is_a_scene(table, tmp_path):
    (tmp_path / "goblet.stl").with_suffix(".obj").write_text(TETRAHEDRON)
    (tmp_path / "arm.xml").write_text(ARM)
    text = table.example.replace("goblet.stl", "goblet.obj")
    data = tomllib.loads(text)
    if "shape" in data:
        text = f"[[solid]]\n{text}"
    if "spacing" in data:
        text = f"{text}\n{ENOUGH.partition(chr(10))[2]}"
    else:
        text = ENOUGH + text
    file = tmp_path / "scene.toml"
    file.write_text(text, encoding="utf-8")
    load(file)


@pytest.mark.parametrize(("table", "row"), [(t, r) for t, r in ROWS if not r.table], ids=name_of)
def test_every_example_of_a_key_is_accepted(table, row, tmp_path):
    field = reference.model_at(table.path).model_fields[row.name]
    value = tomllib.loads(f"x = {row.example}")["x"]
    if row.name != "file":  # that of a mesh or robot is read with the table's example
        TypeAdapter(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation).validate_python(value)
    assert row.example != '""'


def test_the_scene_it_begins_with_pours_into_the_bowl(tmp_path):
    file = tmp_path / "bowl.toml"
    file.write_text(reference.written()["example"], encoding="utf-8")
    scene = load(file)
    nozzle, bowl = scene.emitter[0], scene.solid[0].shape
    assert nozzle.position[1] > bowl.position[1] + bowl.height and nozzle.direction == (0, -1, 0)
    assert 2 * nozzle.shape.radius >= 5 * scene.spacing and bowl.thickness >= scene.spacing


# --- at a terminal ---------------------------------------------------------------------------------------------------
def said(capsys, *arguments: str) -> str:
    assert main(["help", *arguments]) == 0
    return capsys.readouterr().out


def test_help_says_what_there_is(capsys):
    text = said(capsys)
    assert "viscoil help scene KEY" in text and "  studio: " in text
    text = said(capsys, "scene")
    for table in TABLES:
        assert "." in table.path or f"\n  {table.path} " in text


def test_help_of_a_table_and_of_a_key(capsys):
    text = said(capsys, "scene", "emitter")
    assert "[[emitter]]" in text and "speed: speed [m/s], > 0; required" in text and "](" not in text
    text = said(capsys, "scene", "time.frames")
    assert text.startswith("time.frames: frames to simulate") and "0 to 10,000,000" in text and "frames = 240" in text
    assert said(capsys, "scene", "emitter.0.speed") == said(capsys, "scene", "emitter.speed")
    assert said(capsys, "scene", "material.honey.viscosity") == said(capsys, "scene", "material.viscosity")
    assert said(capsys, "scene", "solid.motion.time") == said(capsys, "scene", "emitter.motion.time")


def test_help_of_a_single_word_finds_it_wherever_it_is(capsys):
    text = said(capsys, "scene", "thickness")
    assert {"shape.bowl.thickness", "shape.cup.thickness", "shape.funnel.thickness"} <= set(text.replace(":", " ").split())
    text = said(capsys, "scene", "solver.iterations")
    assert "solver.pbf.iterations" in text and "solver.iisph.iterations" in text


def test_help_of_units_lists_them(capsys):
    text = said(capsys, "scene", "units")
    assert "m, cm, mm" in text and "Pa s, mPa s" in text and "`" not in text


@pytest.mark.parametrize(
    ("key", "meant"),
    [("emiter", "emitter"), ("emitter.sped", "speed"), ("time.fps", "frame_time"), ("solver.pdf", "pbf"),
     ("shape.bowel", "bowl"), ("viscocity", "viscosity"), ("solver.pbf.iteration", "iterations")],
)  # fmt: skip
def test_a_wrong_key_is_refused_with_what_was_meant(key, meant):
    with pytest.raises(SceneError) as refused:
        reference.lookup(key)
    assert f'Did you mean "{meant}"?' in str(refused.value) and "There are: " in str(refused.value)


def test_help_of_a_command_is_its_help(capsys):
    text = said(capsys, "run")
    assert text.startswith("Usage: viscoil run")
