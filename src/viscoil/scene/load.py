"""Reading scenes: a shipped name or a TOML file, then its profile, then overrides, then every check."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import ValidationError

from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed
from viscoil.model import Problem, joined, problems
from viscoil.scene.merge import dotted_paths, merge, nested
from viscoil.scene.schema import Scene
from viscoil.scene.toml import quoted
from viscoil.units import KINDS, shown

LIBRARY = Path(__file__).with_name("library")
LARGEST_FILE = 20_000_000  # bytes; a scene is text written by people


@dataclass
class _Source:
    """One scene file as read, and where overrides came from."""

    path: Path
    title: str  # how messages call the file
    text: str
    data: dict[str, Any]
    overridden: dict[str, str] = field(default_factory=dict)  # dotted path -> "--set" or "override"


def shipped() -> dict[str, Path]:
    """Names and files of the scenes that come with the package."""
    return {path.stem: path for path in sorted(LIBRARY.glob("*.toml"))}


def load(
    name_or_path: str | Path,
    overrides: dict[str, Any] | None = None,
    *,
    set_strings: Iterable[str] = (),
    **keywords: Any,
) -> Scene:
    """The scene of that (shipped) name or file, with its profile and overrides applied and every check done.

    Overrides are dotted keys: ``load("dam_break", {"time.frames": 10})`` or, with ``__`` for the dot,
    ``load("dam_break", time__frames=10, quality="paper")``. ``set_strings`` takes ``"key=value"`` texts as the
    command line gives them. Order: file, then profile, then overrides.
    """
    source = _read(find(name_or_path))
    layers: list[tuple[str, dict[str, Any]]] = []
    plain = {**(overrides or {}), **{key.replace("__", "."): value for key, value in keywords.items()}}
    if plain:
        layers.append(("override", nested(plain)))
    layers += [("--set", _parse_setting(setting)) for setting in set_strings]
    data = _layered(source, layers)
    try:
        scene = Scene.__pydantic_validator__.validate_python(data, context={"folder": source.path.parent})
        found = scene.problems()
    except ValidationError as error:
        scene, found = None, problems(Scene, error)
    if scene is None or found:
        raise _located(found, source)
    return scene


def as_scene(given: Any) -> Scene:
    """A scene from whatever stands for one: itself, a shipped name, a path, or its tables as a dict."""
    if isinstance(given, Scene):
        return given
    if isinstance(given, (str, Path)):
        return load(given)
    if isinstance(given, dict):
        return Scene(**given)
    raise TypeError(
        f'expected a Scene, the name of a shipped scene ("dam_break"), the path of a .toml file or a dict of its tables; '
        f"got {shown(given)}"
    )


def profiles(name_or_path: str | Path) -> list[str]:
    """Names of the qualities a scene offers; "quick" is the file as written."""
    return ["quick", *_profile_tables(_read(find(name_or_path)))]


def find(name_or_path: str | Path) -> Path:
    """The file of a scene: a shipped name first, then a path."""
    names = shipped()
    if isinstance(name_or_path, str) and name_or_path in names:
        return names[name_or_path]
    if not isinstance(name_or_path, (str, Path)) or not str(name_or_path).strip():
        raise SceneError(f"scene: expected the name of a shipped scene or a .toml file; got {shown(name_or_path)}")
    path = Path(name_or_path).expanduser()
    try:
        if path.is_file():
            return path
        is_folder = path.is_dir()
    except OSError:  # a name too long for the file system cannot exist
        is_folder = False
    if is_folder:
        inside = sorted(file.name for file in path.glob("*.toml"))
        hint = f" Did you mean {path / inside[0]}?" if inside else ""
        raise SceneError(f"{path}: is a directory; expected a scene file (.toml).{hint}", file=str(path))
    stem = path.stem if path.suffix == ".toml" else str(name_or_path)
    near = closest(stem, names)
    here = [file.name for file in path.parent.glob("*.toml")] if path.parent.is_dir() else []
    beside = closest(path.name, here)
    hint = did_you_mean(stem, names) if near else f' Did you mean "{path.with_name(beside)}"?' if beside else ""
    if path.suffix == ".toml" or len(path.parts) > 1:
        message = f"{shown(str(path))}: no such file.{hint}"
    else:
        message = f"no scene called {shown(str(path))}.{hint}"
    raise SceneError(
        f"{message} Expected the path of a .toml file or a shipped scene: {listed(names)}",
        file=str(path), expected="a shipped scene or a .toml file", suggestion=near or beside,
    )  # fmt: skip


def _read(path: Path) -> _Source:
    """Text and tables of a scene file; nothing in it is ever executed."""
    title = path.name if path.parent == LIBRARY else str(path)
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST_FILE else b"\0"
        if b"\0" in content:
            raise UnicodeError
        text = content.decode("utf-8")
    except OSError as error:
        raise SceneError(f"{title}: cannot be read ({error.strerror})", file=title) from error
    except UnicodeError:
        raise SceneError(f"{title}: not a scene; expected a TOML text file in UTF-8", file=title) from None
    try:
        return _Source(path, title, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        message = re.sub(r"\s*\(at (.*)\)$", "", str(error))
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        where = f":{place[1]}:{place[2]}" if place else f":{text.count(chr(10)) + 1}"
        message += _bare_quantity(text.split("\n")[int(place[1]) - 1]) if place else ""
        raise SceneError(f"{title}{where}: not valid TOML: {message}", file=title, expected="TOML") from None
    except RecursionError:
        raise SceneError(f"{title}: not a scene; tables are nested too deeply", file=title) from None


def _bare_quantity(line: str) -> str:
    """What helps where a number has a unit but not the quotes that make it text."""
    units = sorted({unit for kind in KINDS.values() for unit in kind.units}, key=len, reverse=True)
    plain = re.sub(r'"[^"]*"|#.*', "", line)
    found = re.search(rf"(?<![\w.])[-+]?\d[\d.]*\s*(?:{'|'.join(map(re.escape, units))})(?![\w/])", plain)
    return f'. A value with a unit is text: "{found[0]}"' if found else ""


def _parse_setting(setting: str) -> dict[str, Any]:
    """``key=value`` with the value in TOML; a value that is not TOML (paper, 2 cm) is taken as text."""
    key, equals, value = setting.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key or not value:
        raise SceneError(
            f"--set {setting}: expected key=value, e.g. --set time.frames=10", key=key or None, expected="key=value"
        )
    try:
        tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        raise SceneError(
            f'--set {setting}: "{key}" is not a key; expected names joined by dots, e.g. solid.0.friction',
            key=key, expected="a dotted key",
        ) from None  # fmt: skip
    try:
        return tomllib.loads(f"{key} = {value}")
    except tomllib.TOMLDecodeError:
        return tomllib.loads(f"{key} = {quoted(value)}")


def _profile_tables(source: _Source) -> dict[str, dict[str, Any]]:
    tables = source.data.get("profiles", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        problem = Problem("profiles", f"expected tables, e.g. [profiles.paper]; got {shown(tables)}", "tables")
        raise _located([problem], source)
    return tables


def _layered(source: _Source, layers: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """File, profile and overrides merged into one table."""
    found: list[Problem] = []
    tables = _profile_tables(source)
    data = {key: value for key, value in source.data.items() if key != "profiles"}
    chosen = [(label, layer["quality"]) for label, layer in layers if "quality" in layer]
    label, quality = chosen[-1] if chosen else ("", data.get("quality", "quick"))
    # A scene as it was run carries the name of its quality but no profiles: they are already in it.
    already_applied = not tables and data.get("quality", "quick") == quality
    if isinstance(quality, str) and quality in tables:
        for name in _extended(quality, tables, source):
            before = len(found)
            data = merge(data, nested({key: value for key, value in tables[name].items() if key != "extends"}), found)
            for problem in found[before:]:
                problem.key = f"profiles.{name}.{problem.key}"
    elif quality != "quick" and not already_applied:
        names = ["quick", *tables]
        text = (
            f"no profile called {shown(quality)}.{did_you_mean(str(quality), names)} Expected one of: {listed(names)}"
        )
        problem = Problem("quality", text, f"one of {listed(names)}", closest(str(quality), names))
        problem.source = label
        found.append(problem)
    for label, layer in layers:
        before = len(found)
        data = merge(data, layer, found)
        for problem in found[before:]:
            problem.source = label
        source.overridden.update(dict.fromkeys(dotted_paths(layer), label))
    if found:
        raise _located(found, source)
    data["quality"] = quality
    return data


def _extended(name: str, tables: dict[str, dict[str, Any]], source: _Source) -> list[str]:
    """The profile and those that it ``extends``, in the order in which they are laid over the file."""
    names = [name]
    while (base := tables[names[0]].get("extends")) is not None:
        others = [other for other in tables if other not in names]
        if base not in others:
            text = (
                f"no other profile called {shown(base)}.{did_you_mean(str(base), others)} "
                f"Expected {f'one of: {listed(others)}' if others else 'no extends: there is none'}"
            )
            key = f"profiles.{names[0]}.extends"
            raise _located([Problem(key, text, "another profile", closest(str(base), others))], source)
        names.insert(0, base)
    return names


def _located(found: list[Problem], source: _Source) -> SceneError:
    """The error for these problems, each with its line in the file or the override it came from."""
    lines = line_numbers(source.text)
    for problem in found:
        if not problem.key:
            continue
        for path, label in source.overridden.items():
            if f"{problem.key}.".startswith(f"{path}.") or f"{path}.".startswith(f"{problem.key}."):
                problem.source = label
        if not problem.source:
            problem.line = _line_of(problem.key, lines)
    found.sort(key=lambda problem: problem.line or 0)
    return joined(found, source.title, source.title)


def _line_of(key: str, lines: dict[str, int]) -> int | None:
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in lines:
            return lines[prefix]
    return None


def line_numbers(text: str) -> dict[str, int]:
    """Dotted path -> line, for headers and keys at the start of a line. A help for messages, not a parser."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    prefix = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]", line)
        key = re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*=""", line)
        if header:
            parts = re.findall(r'[\w-]+|"[^"]*"', header[2])
            prefix = ""
            for part in parts:
                prefix = f"{prefix}.{part.strip(chr(34))}" if prefix else part.strip(chr(34))
                if prefix in counts and not (header[1] == "[[" and part is parts[-1]):
                    prefix = f"{prefix}.{counts[prefix]}"
            if header[1] == "[[":
                counts[prefix] = counts.get(prefix, -1) + 1
                prefix = f"{prefix}.{counts[prefix]}"
            found.setdefault(prefix, number)
        elif key:
            name = ".".join(part.strip("\"'") for part in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", key[1]))
            found.setdefault(f"{prefix}.{name}" if prefix else name, number)
    return found
