"""What the documents say exists: commands and their options, scenes, cases, files, links, variables, keys of scenes."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from cyclopts import CycloptsError
from cyclopts.exceptions import MissingArgumentError

from viscoil import backend
from viscoil.cli.commands import _repeat_set, app
from viscoil.material import PRESETS
from viscoil.model import models_in
from viscoil.scene import reference
from viscoil.scene.load import load, shipped
from viscoil.solvers import SOLVERS
from viscoil.validation import CASES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = re.compile(r"<!-- bench:([\w-]+) -->.*?<!-- /bench:\1 -->", re.DOTALL)  # records of what was run, as it was then
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.cpp"), ROOT / "hatch_build.py"]
OF_SCENES = ("run", "studio", "gallery", "check")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    return GENERATED.sub("", page.read_text(encoding="utf-8"))


def commands_in(text: str) -> list[str]:
    """Everything that looks like a call of viscoil: lines of code blocks, and code in a line."""
    blocks = re.findall(r"^```(?:\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```(?:\w*)\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = [line.split(" #")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", rest) + re.findall(r"<code>([^<]+)</code>", rest)]
    pieces = [piece.strip() for code in found for piece in re.split(r";|&&| \| | > ", code)]
    pieces = [re.sub(r"^(?:[A-Z_]+=\S+\s+)+|^ssh .* (?=viscoil )", "", piece) for piece in pieces]
    return [piece for piece in pieces if re.match(r"viscoil( |$)", piece)]


def written_out(command: str) -> list[str]:
    """Tokens of a command, with what stands for something else replaced: [optional] parts, a|b, N, ... ."""
    command = re.sub(r"\[(--?[^\]]+)\]", r"\1", command).replace("…", "").replace("...", "")
    tokens = [re.sub(r"^([\w.-]+)\|.*", r"\1", token) for token in shlex.split(command)[1:]]
    return ["2" if token == "N" else token for token in tokens if token not in ("[SCENE]", "[KEY]")]


def problem_with(command: str) -> str:
    """What is wrong with a command, or nothing. Arguments that a sentence leaves out are not missed."""
    tokens = written_out(command)
    if not tokens or tokens[0] in ("COMMAND", "--help", "--version"):
        return ""
    try:
        app.parse_args(_repeat_set(tokens), exit_on_error=False, print_error=False)
    except MissingArgumentError:
        return "" if tokens[0] in list(app) else f"there is no command {tokens[0]}"
    except CycloptsError as error:
        return str(error)
    names = [token for token in tokens[1:] if re.fullmatch(r"[a-z][a-z0-9_]*", token)]
    if tokens[0] in OF_SCENES and names and tokens[1] == names[0] and names[0] not in shipped():
        return f"there is no scene {names[0]}"
    known = {*CASES, "plots", "report", *backend.DEVICES}
    if tokens[0] == "validate" and (wrong := [name for name in names if name not in known]):
        return f"there is no case {wrong}"
    if tokens[:2] == ["help", "scene"] and len(tokens) > 2 and tokens[2] != "KEY":
        reference.lookup(tokens[2])
    return ""


def test_the_check_of_commands_sees_what_is_wrong():
    text = "Say `VISCOIL_THREADS=2 viscoil run x; viscoil list` or\n```\nviscoil plot runs/x   # a plot\n```\n"
    assert commands_in(text) == ["viscoil plot runs/x", "viscoil run x", "viscoil list"]
    assert not problem_with("viscoil run dam_break --frames 3 --set a.b=2 c=3")
    assert not problem_with("viscoil validate [--quick]")
    assert problem_with("viscoil run dam_brake") and problem_with("viscoil validate column colum")
    assert problem_with("viscoil run dam_break --frame 3") and problem_with("viscoil rum dam_break")


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_commands_parse_and_name_what_exists(page):
    wrong = {command: said for command in commands_in(text_of(page)) if (said := problem_with(command))}
    assert not wrong


# --- files, links, lists ---------------------------------------------------------------------------------------------
def anchors(page: Path) -> set[str]:
    """Where links into a page may lead: its headings as GitHub names them, and ids."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)) for heading in headings]
    return {heading.strip().lower().replace(" ", "-") for heading in plain} | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if re.match(r"\w+:", target):
            continue
        name, _, place = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), f"{target} does not exist"
        assert not place or file.suffix != ".md" or place in anchors(file), f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_files_that_are_named_exist(page):
    inside = [ROOT, ROOT / "src", ROOT / "src" / "viscoil", page.parent]
    for name in re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|toml|cpp|json|md|cu))", text_of(page)):
        assert any((folder / name).is_file() for folder in inside), f"{name} does not exist"


def test_the_index_lists_every_page_once():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = [(ROOT / "docs" / name).resolve() for name in re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", index, re.MULTILINE)]
    pages = {page.resolve() for page in PAGES} - {(ROOT / "docs" / "README.md").resolve()}
    assert len(listed) == len(set(listed)) and set(listed) == pages | {(ROOT / "CHANGELOG.md").resolve()}


def test_environment_variables_are_on_their_page_and_nowhere_else():
    name = re.compile(r"VISCOIL_[A-Z]+(?:_[A-Z]+)*")
    read = {found for file in SOURCES for found in name.findall(file.read_text(encoding="utf-8"))}
    page = ROOT / "docs" / "environment.md"
    assert set(name.findall(page.read_text(encoding="utf-8"))) == read
    for other in PAGES:
        assert set(name.findall(text_of(other))) <= read, f"{title(other)} names a variable that nothing reads"


# --- what scenes are made of -----------------------------------------------------------------------------------------
def keys_of(path: str) -> set[str]:
    return {row.name for row in reference.table(path).keys}


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_tables_of_scenes_have_the_keys_that_are_shown(page):
    """Fragments are not whole scenes, but every key in them must exist (shipped scenes are loaded by other tests)."""
    for block in re.findall(r"^```toml\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE):
        for name, value in tomllib.loads(block).items():
            if name == "profiles":
                continue
            assert name in keys_of("scene") | {"shape"}, f"{name} is no key of a scene"
            path = "scene" if name == "shape" else name
            for table in value if isinstance(value, list) else [value]:
                if isinstance(table, dict):
                    rows = table.values() if name == "material" else [table]
                    for row in rows:
                        check_keys(row, model_of(path, name, row), f"{title(page)}: {name}")


def model_of(path, name, row):
    if name == "shape":
        return reference.model_at(f"shape.{row['type']}")
    return reference.model_at(f"solver.{row.get('method', 'pbf')}" if name == "solver" else path)


def check_keys(row, model, where):
    """Every key of a table and of the tables in it is one of the model's."""
    for key, value in row.items():
        assert key in model.model_fields, f"{where}: there is no key {key}"
        inner = models_in(model.model_fields[key].annotation)
        inside = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        for item in inside:
            if len(inner) > 1:
                check_keys(item, reference.model_at(f"shape.{item['type']}"), f"{where}.{key}")
            elif key == "materials":
                for bonding in item.values():
                    check_keys(bonding, inner[0], f"{where}.{key}")
            else:
                check_keys(item, inner[0], f"{where}.{key}")


def test_solver_keys_in_sentences_exist():
    every = {key for method in SOLVERS for key in reference.model_at(f"solver.{method}").model_fields}
    for page in PAGES:
        for key in re.findall(r"`solver\.(\w+)(?: = [^`]*)?`", text_of(page)):
            assert key in every | set(SOLVERS), f"{title(page)}: no method has a key {key}"


def test_every_scene_and_preset_is_in_a_table():
    scenes = (ROOT / "docs" / "scenes.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", scenes, re.MULTILINE))
    assert named <= set(shipped())
    gallery = (ROOT / "docs" / "gallery" / "README.md").read_text(encoding="utf-8")
    assert not [name for name in shipped() if not re.search(rf"\b{name}\b", gallery)]
    materials = (ROOT / "docs" / "materials.md").read_text(encoding="utf-8")
    assert all(f"\n| {name} | density" in materials for name in PRESETS)


def test_the_readme_is_short_its_examples_are_whole_and_nothing_is_called_complete(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 130 and "<!-- bench:" not in text
    blocks = re.findall(r"^```(toml|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert [language for language, _ in blocks].count("toml") == 1
    for language, block in blocks:
        if language == "python":
            compile(block, "README.md", "exec")
            continue
        (tmp_path / "my.toml").write_text(block, encoding="utf-8")
        load(tmp_path / "my.toml")
    assert "make demo" in text and "make test" in text and "git clone " in text
    assert "| complete" not in text
