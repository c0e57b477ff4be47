"""The scene reference: every table and key of a scene file, read from the models that check it.

``docs/scene_reference.md`` and ``viscoil help scene`` show the same rows. Only titles, the order, explanations between tables
and one example per table are written down (``reference.toml``); types, units, ranges, defaults and meanings are the models'.
"""

import math
import re
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, StrictStr
from pydantic_core import PydanticUndefined

from viscoil import solvers
from viscoil.errors import SceneError
from viscoil.keys import closest, listed
from viscoil.material import Colour
from viscoil.model import models_in
from viscoil.scene.schema import Scene
from viscoil.scene.shapes import SHAPES
from viscoil.scene.toml import write
from viscoil.units import KINDS, Count, Quantity, Vector

SYMBOLS = {"metres": "m", "seconds": "s", "degrees": "°"}
REQUIRED = "required"
UNSET = "–"  # left out, and then the meaning says what happens


@dataclass(frozen=True)
class Key:
    """One key of a table, in words."""

    name: str
    kind: str  # what is written there: "length", "text", "one of ..."
    unit: str  # SI, "" where there is none
    range: str  # "> 0", "0 to 1", "" where anything goes
    default: str  # as it would be written, REQUIRED or UNSET
    example: str  # as it would be written
    text: str  # what it means
    table: str = ""  # path of the table it holds, e.g. "emitter.motion"; "" for plain values


@dataclass(frozen=True)
class Table:
    """One table of a scene file with its keys."""

    path: str  # "emitter", "solid.body", "shape.box", "solver.pbf"; "scene" for the keys outside all tables
    header: str  # as it is written: "[[emitter]]"
    title: str
    text: str
    example: str  # TOML
    keys: tuple[Key, ...]
    base: str = ""  # path of the table whose keys it has as well


@cache
def written() -> dict[str, Any]:
    """reference.toml."""
    return tomllib.loads(Path(__file__).with_name("reference.toml").read_text(encoding="utf-8"))


# --- one key ---------------------------------------------------------------------------------------------------------
def _metadata(annotation: Any) -> Iterator[Any]:
    """Everything in the Annotated parts of a type such as ``Annotated[float, ...] | None``."""
    yield from getattr(annotation, "__metadata__", ())
    if get_origin(annotation) in (Union, types.UnionType) or hasattr(annotation, "__metadata__"):
        for part in get_args(annotation):
            yield from _metadata(part)


def _unit(kind: str) -> str:
    return SYMBOLS.get(KINDS[kind].si, KINDS[kind].si)


def _range(known: Quantity | Count) -> str:
    """What a number may be, in words."""
    low, high, above = known.at_least, known.at_most, getattr(known, "above", None)
    least, most = (None if limit is None else f"{limit:,}".removesuffix(".0") for limit in (low, high))
    if above is not None:
        words = f"> {above:g}" + (f", at most {most}" if most else "")
    elif least and most:
        words = f"{least} to {most}"
    else:
        words = f"at least {least}" if least else f"at most {most}" if most else ""
    return f"{words}, or inf" if getattr(known, "infinite", False) else words


def _value(value: Any) -> str:
    """A value as a scene file has it; numbers with at most six digits."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}" if abs(value) < 1e6 else repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return write({"x": [value]})[len("x = [") : -2] if not isinstance(value, dict) else write({"x": [[value]]})[6:-3]


def _described(annotation: Any, metadata: list[Any]) -> tuple[str, str, str, str]:
    """(kind, unit, range, example) of a field's type."""
    found = [*metadata, *_metadata(annotation)]
    known = next((item for item in found if isinstance(item, Quantity | Vector | Count)), None)
    if isinstance(known, Count):
        return "whole number", "", _range(known), known.example
    if isinstance(known, Vector):
        limit = f"each > {known.above:g}" if known.above is not None else "not all 0" if known.nonzero else ""
        return f"three {KINDS[known.kind].many}", _unit(known.kind), limit, known.example
    if isinstance(known, Quantity):
        words = "".join(f' or "{word}"' for word, _ in known.words)
        example = KINDS["angle"].example.split(" or ")[0] if known.kind == "angle" else known.example
        return known.kind + words, _unit(known.kind), _range(known), example
    if any(item in Colour.__metadata__ for item in found):
        return "colour", "", "", '"amber"'
    parts = [part for part in (annotation, *get_args(annotation)) if part is not types.NoneType]
    choices = next((get_args(part) for part in parts if get_origin(part) is Literal), None)
    if choices:
        words = ("one of " if len(choices) > 1 else "") + listed(f"`{_value(choice)}`" for choice in choices)
        return words, "", "", _value(choices[-1])
    bare = [getattr(part, "__origin__", part) if hasattr(part, "__metadata__") else part for part in parts]
    holder = next((part for part in bare if get_origin(part) in (list, dict)), None)
    models, origin = models_in(annotation), get_origin(holder)
    if models or origin is dict:
        return {list: "list of tables", dict: "named tables"}.get(origin, "table"), "", "", ""
    if origin is list:
        return "list of texts" if get_args(holder) == (StrictStr,) else "two numbers, or texts with a unit", "", "", "[]"
    simple = next((part for part in parts if part in (bool, str, float)), str)
    known_words = {bool: ("true or false", "true"), str: ("text", '""'), float: ("number, or text with a unit", "30")}
    return known_words[simple][0], "", "", known_words[simple][1]


def _default(field: Any) -> str:
    if field.is_required():
        return REQUIRED
    value = field.default if field.default is not PydanticUndefined else field.default_factory()
    if value is None or value == "" or isinstance(value, BaseModel) or value in ([], {}):
        return UNSET
    return f"`{_value(value)}`"


def _key(name: str, field: Any, shown: dict[str, Any], table: str) -> Key:
    """A field as a row; ``shown`` is the table's own example."""
    kind, unit, limits, example = _described(field.annotation, field.metadata)
    text = " ".join((field.description or "").split())
    for spelt in (unit or "1", "degrees" if unit == "°" else "1"):
        text = text.replace(f" [{spelt}]", "")  # the unit has a column of its own
    default = _default(field)
    if name in shown:
        example = _value(shown[name])
    elif name in written()["examples"]:
        example = _value(written()["examples"][name])
    elif kind == "true or false" and field.default is True:
        example = "false"
    elif kind in ("number", "whole number", "text") and default not in (REQUIRED, UNSET, "`0`"):
        example = default.strip("`")
    if name in ("type", "method"):  # what chooses among tables
        default, text = (REQUIRED if field.default != "pbf" else default), "chooses this one"
    return Key(name, kind, unit, limits, default, example, text.replace("``", "`"), table)


# --- one table -------------------------------------------------------------------------------------------------------
def model_at(path: str) -> type[BaseModel]:
    """The model of a table, by its path in a scene: "emitter.motion", "shape.box", "solver.pbf.events"."""
    first, *rest = path.split(".")
    if first == "scene":
        return Scene
    if first == "shape":
        return SHAPES[rest[0]]
    model, names = (solvers.params_class(rest[0]), rest[1:]) if first == "solver" else (Scene, [first, *rest])
    for name in names:
        (model,) = models_in(model.model_fields[name].annotation)
    return model


def _example_table(path: str, example: str) -> dict[str, Any]:
    """The table an example is about, as plain values."""
    parts = ["solver", *path.split(".")[2:]] if path.startswith("solver.") else path.split(".")
    parts = ["shape"] if parts[0] == "shape" else [] if parts == ["scene"] else parts
    found: Any = tomllib.loads(example)
    for part in parts:
        found = found[part]
        found = found[0] if isinstance(found, list) else found
        if part in ("material", "materials"):
            found = next(iter(found.values()))
    return found


def _header(path: str) -> str:
    first, *rest = path.split(".")
    if path == "scene":
        return "(before all tables)"
    if first == "shape":
        return f'shape = {{ type = "{rest[0]}" }}'
    if first == "solver" and len(rest) == 1:
        return f'[solver] method = "{rest[0]}"'
    names = ["solver", *rest[1:]] if first == "solver" else [first, *rest]
    owner = model_at(path.rpartition(".")[0] or "scene")
    annotation = owner.model_fields[names[-1]].annotation
    kinds = {get_origin(part) for part in (annotation, *get_args(annotation))}
    name = ".".join(names)
    return f"[[{name}]]" if list in kinds else f"[{name}.NAME]" if dict in kinds else f"[{name}]"


def _links(path: str, name: str, field: Any) -> str:
    """Path of the table a key holds, as the reference calls it."""
    models = models_in(field.annotation)
    if path == "scene" and name == "solver":
        return "solver"
    if not models:
        return ""
    if len(models) > 1:
        return "shape"
    same = [p for p in written()["table"] if p not in ("shape", "solver", "profiles") and model_at(p) is models[0]]
    if not same:
        raise LookupError(f"reference.toml has no table for {path}.{name}")
    own = f"{path}.{name}"
    return own if own in same else same[0]


@cache
def table(path: str) -> Table:
    """The table of that path, as reference.toml names it."""
    words = written()["table"][path]
    if path in ("shape", "solver", "profiles"):
        return Table(path, {"shape": "shape = { type = … }"}.get(path, f"[{path}]"), words["title"], words.get("text", ""),
                     words.get("example", "").strip(), ())  # fmt: skip
    model, example = model_at(path), words.get("example", "").strip()
    shown = _example_table(path, example) if example else {}
    base = words.get("base", "")
    known = model_at(base).model_fields if base else {}
    keys = []
    for name, field in model.model_fields.items():
        was = known.get(name)
        if was is None or (was.annotation, was.default, was.metadata) != (field.annotation, field.default, field.metadata):
            keys.append(_key(name, field, shown, _links(path, name, field)))
    keys.sort(key=lambda key: (key.name not in ("type", "method"), key.default != REQUIRED))  # what must be there comes first
    doc = " ".join((model.__doc__ or "").split()) if path != "scene" else ""
    summary = solvers.SOLVERS[path.split(".")[1]].summary + "." if re.fullmatch(r"solver\.\w+", path) else doc
    text = f"{summary} {words.get('text', '').strip()}".strip().replace("``", "`")
    return Table(path, _header(path), words["title"], text, example, tuple(keys), base)


def tables() -> list[Table]:
    """All tables, in the order of the reference."""
    return [table(path) for path in written()["table"]]


# --- finding ---------------------------------------------------------------------------------------------------------
def lookup(key: str) -> tuple[Table, list[tuple[Table, Key]]]:
    """The table ``key`` names, or the one that holds it with the key itself; a single word may be a key of several tables.

    Numbers and names of one's own are skipped: "emitter.0.speed", "material.honey.viscosity".
    """
    paths = [found.path for found in tables()]
    if key in paths:
        return table(key), []
    parts = [word for word in key.split(".") if not word.isdigit()]
    here, place = None, "scene"
    for number, word in enumerate(parts):
        path = place if place != "scene" else ""
        direct = f"{path}.{word}".strip(".")
        row = next((row for row in table(place).keys if row.name == word), None)
        if direct in paths:
            place = direct
        elif row is not None and number == len(parts) - 1 and not row.table:
            here = row
        elif row is not None and row.table:
            place = row.table
        elif number and parts[number - 1] in ("material", "materials"):
            continue  # a material's own name
        else:
            elsewhere = _everywhere(parts[-1], place if number else "")
            if elsewhere:
                return elsewhere[0][0], elsewhere
            raise _unknown(key, word, place)
    return table(place), [(table(place), here)] if here else []


def _everywhere(word: str, below: str) -> list[tuple[Table, Key]]:
    """All keys of that name, in all tables or in those below one."""
    return [
        (found, row) for found in tables() for row in found.keys
        if row.name == word and (not below or found.path.startswith(f"{below}."))
    ]  # fmt: skip


def _unknown(key: str, word: str, place: str) -> SceneError:
    """What there is instead."""
    names = [row.name for row in table(place).keys]
    names += [found.path.removeprefix(f"{place}.") for found in tables() if found.path.startswith(f"{place}.")]
    if place == "scene":
        names += [found.path for found in tables() if "." not in found.path]
    every = {row.name for found in tables() for row in found.keys}
    near = closest(word, names) or closest(word, sorted(every))
    where = "" if place == "scene" else f" in {place}"
    hint = f' Did you mean "{near}"?' if near else ""
    message = f'help scene: scenes have no key "{word}"{where}.{hint} There are: {listed(dict.fromkeys(names))}'
    return SceneError(message, key=key, expected="a key of a scene", suggestion=near)


# --- the document ----------------------------------------------------------------------------------------------------
def anchor(path: str) -> str:
    """The id of a table in the document."""
    return path.replace(".", "-").replace("_", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|") if text else ""


def _row(key: Key) -> str:
    kind = f"{key.kind}: [{key.table}](#{anchor(key.table)})" if key.table else key.kind
    limits = ": ".join(part for part in (key.unit, key.range) if part)
    written = f"`{key.example}`" if key.example else ""
    cells = (f"`{key.name}`", kind, limits, key.default, written, key.text)
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _section(found: Table) -> list[str]:
    level = "##" if "." not in found.path else "###"
    heading = found.title if found.path in ("scene", "shape", "solver", "profiles") else f"{found.title}: `{found.header}`"
    lines = ["", f'<a id="{anchor(found.path)}"></a>', "", f"{level} {heading}", "", found.text]
    if found.example:
        lines += ["", "```toml", found.example, "```"]
    if found.base:
        lines += ["", f"Besides these it has all keys of [{found.base}](#{anchor(found.base)})."]
    if found.keys:
        lines += ["", "| key | value | unit, range | default | e.g. | |", "|---|---|---|---|---|---|", *map(_row, found.keys)]
    return lines


def markdown() -> str:
    """docs/scene_reference.md."""
    words = written()
    lines = [f"# {words['title']}", "", words["introduction"].strip(), "", "```toml", words["example"].strip(), "```", "",
             words["after"].strip(), ""]  # fmt: skip
    for found in tables():
        if "." not in found.path:
            header = f": `{found.header}`" if found.path not in ("scene", "shape", "solver", "profiles") else ""
            lines.append(f"- [{found.title}](#{anchor(found.path)}){header}")
    lines.append("- [Numbers and units](#units)")
    for found in tables():
        lines += _section(found)
    lines += ["", '<a id="units"></a>', "", "## Numbers and units", "", words["units"].strip(), "", *unit_rows()]
    return "\n".join(lines).rstrip() + "\n"


def unit_rows() -> list[str]:
    """Kinds of numbers, their SI unit and the units that may be written instead, as a table."""
    rows = ["| | without a unit it is in | units that may be written | e.g. |", "|---|---|---|---|"]
    for name, kind in KINDS.items():
        if kind.units:
            example = kind.example.split(" or ")[-1]
            rows.append(f"| {name} | {_unit(name)} | {', '.join(f'`{unit}`' for unit in kind.units)} | `{example}` |")
    return rows


if __name__ == "__main__":
    import sys

    Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
