"""``viscoil help``: what there is, and every key of a scene (the rows of docs/scene_reference.md) at a terminal."""

import re
import shutil
import textwrap
from typing import TYPE_CHECKING

from viscoil.cli import show
from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed

if TYPE_CHECKING:
    from viscoil.scene.reference import Key, Table

WIDEST = 110  # columns; longer lines are hard to read


def overview() -> None:
    """What there is to ask for."""
    print("help:")
    show.pairs([
        ("  viscoil help scene", "how a scene is written: all its tables"),
        ("  viscoil help scene KEY", "one of them, or one key: emitter, time.frames, shape.bowl, solver.pbf.iterations"),
        ("  viscoil help COMMAND", "options and examples of a command, as viscoil COMMAND --help"),
        ("  viscoil list", "names of scenes, materials, solvers, looks"),
        ("  docs/README.md", "all pages, in the repository"),
    ])  # fmt: skip
    print()


def unknown(topic: str, commands: list[str]) -> SceneError:
    """Neither a topic nor a command."""
    names = ["scene", *commands]
    return SceneError(f'help: there is nothing about "{topic}".{did_you_mean(topic, names)} Expected one of: {listed(names)}')


def scene(key: str | None) -> None:
    """The tables of a scene, one of them, or a key."""
    from viscoil.scene import reference

    if key is None:
        _contents(reference.tables())
        return
    if key == "units":
        _units()
        return
    table, keys = reference.lookup(key)
    if keys:
        for number, (owner, row) in enumerate(keys):
            print("\n" * bool(number), end="")
            _one_key(owner, row)
    else:
        _one_table(table, [other for other in reference.tables() if other.path.startswith(f"{table.path}.")])


def _contents(tables: list["Table"]) -> None:
    from viscoil.scene.reference import written

    print("A scene is a TOML file. This one pours honey into a bowl:\n")
    print(textwrap.indent(written()["example"].strip(), "  "))
    print("\ntables:")
    show.pairs([(f"  {table.path}", f"{table.header}  {table.title}") for table in tables if "." not in table.path])
    print("\nviscoil help scene KEY says more, e.g. viscoil help scene emitter; viscoil help scene units lists the units")


def _units() -> None:
    from viscoil.scene.reference import written
    from viscoil.units import KINDS

    print(_wrapped(written()["units"].strip().replace("`", ""), ""), end="\n\n")
    show.pairs([(f"  {name}", ", ".join(kind.units)) for name, kind in KINDS.items() if kind.units])


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def _wrapped(text: str, indent: str) -> str:
    """Text in lines that fit; its tables and paragraphs stay."""
    parts = [
        line if line.startswith("|") else textwrap.fill(line, _width(), initial_indent=indent, subsequent_indent=indent)
        for line in text.split("\n")
    ]
    return "\n".join(parts)


def _value(row: "Key") -> str:
    """What is written there, in one line."""
    unit = f" [{row.unit}]" if row.unit else ""
    limits = f", {row.range}" if row.range else ""
    return f"{row.kind}{unit}{limits}".replace("`", "")


def _one_table(table: "Table", inside: list["Table"]) -> None:
    print(f"{table.title}: {table.header}\n")
    print(_wrapped(re.sub(r"\[([^\[\]]+)\]\([^)]+\)", r"\1", table.text), ""))  # links say where they lead
    if table.example:
        print(f"\n{textwrap.indent(table.example, '  ')}")
    if table.base:
        print(f"\nBesides these it has all keys of {table.base}.")
    for row in table.keys:
        default = row.default.strip("`")
        state = default if default == "required" else "" if default == "–" else f"default {default}"
        print(f"\n  {row.name}: {_value(row)}{'; ' if state else ''}{state}")
        if row.text:
            print(_wrapped(row.text, "      "))
    if inside:
        print("\ninside it:")
        show.pairs([(f"  {other.path}", f"{other.header}  {other.title}") for other in inside])


def _one_key(table: "Table", row: "Key") -> None:
    owner = "" if table.path == "scene" else f"{table.path}."
    print(f"{owner}{row.name}: {row.text}")
    example = f"{row.name} = {row.example}" if row.example else ""
    rows = [("in", table.header), ("value", _value(row)), ("default", row.default.strip("`").replace("–", "none"))]
    rows += [("e.g.", example), ("table", f"viscoil help scene {row.table}" if row.table else "")]
    show.pairs([(f"  {name}", value) for name, value in rows])
