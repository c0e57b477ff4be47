"""The layout holds: imports go one way, files stay small, and looking at viscoil loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import viscoil

ROOT = Path(viscoil.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# Lower layers first. A module may import (at its top level) from its own layer and from those before it.
LAYERS = [
    {"errors", "failure", "keys", "units", "model", "looks", "extras", "turns"},
    {"cache", "compiler", "backend", "native", "properties", "material", "presets", "controls"},
    {"transfer"},
    {"particles", "bundles", "carried"},
    {"sph", "solids", "measure"},
    {"constraints", "steps", "surface"},
    {"solvers"},
    {"world", "accounts"},
    {"scene"},
    {"simulate", "restart", "quantities"},
    {"warm"},
    {"validation", "bench", "render", "studio"},
    {"cli"},
]
LEVEL = {name: number for number, layer in enumerate(LAYERS) for name in layer}
BESIDE = {"io", "view"}  # know frames, not worlds


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path, inside_functions=False):
    """viscoil modules a file imports, without the leading package."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if inside_functions else tree.body
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "viscoil":
            inner = (node.module or "").split(".")[1:]
            found += [".".join(inner)] if inner else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [a.name.split(".", 1)[1] for a in node.names if a.name.startswith("viscoil.")]
    return [name for name in found if name and not name.startswith("__")]


def every_file(check):
    """One test for all files, which names those that break the rule: a test each would take longer than reading them."""

    def test():
        broken = []
        for path in FILES:
            try:
                check(path)
            except AssertionError as error:
                broken.append(f"{name_of(path)}: {str(error).splitlines()[0]}")
        assert not broken

    test.__name__ = check.__name__
    return test


@every_file
def test_imports_go_one_way(path):
    own = name_of(path).split(".")[0]
    if own in ("__init__", "__main__"):
        return
    for target in imports(path):
        other = target.split(".")[0]
        if own in BESIDE:
            allowed = {"errors", "keys", "units", "model", "looks", "extras", "io", own}
            assert other in allowed or target in ("scene.load", "solids.figures", "solids.meshes", "surface.mesh"), (
                f"{name_of(path)} imports {target}: it should know frames only"
            )
        elif other in BESIDE:
            known = ("simulate", "quantities", "cli", "validation", "bench", "surface", "render", "studio")
            assert own in known, f"{name_of(path)} imports {target}"
        else:
            assert other in LEVEL, f"{target} has no layer: add it to this test"
            assert own in LEVEL, f"{own} has no layer: add it to this test"
            assert LEVEL[other] <= LEVEL[own], f"{name_of(path)} imports {target}, which is built on it"


@every_file
def test_views_and_writers_never_hold_a_world(path):
    writers = ("frame", "vtkhdf", "moment", "columns", "vtk", "ply", "npz", "glb", "usd", "usd_looks", "alembic")
    if name_of(path).split(".")[0] == "view" or name_of(path) in [f"io.{name}" for name in writers]:
        heavy = {"world", "simulate", "solvers", "particles", "sph", "constraints", "steps", "backend"}
        assert not {t.split(".")[0] for t in imports(path, inside_functions=True)} & heavy


@every_file
def test_kernel_modules_know_neither_files_nor_scenes(path):
    if name_of(path).split(".")[0] in ("sph", "constraints", "steps"):
        found = {t.split(".")[0] for t in imports(path, inside_functions=True)}
        assert not found & {"io", "scene", "cli", "view", "simulate", "solvers"}


@every_file
def test_rules_of_writing(path):
    text = path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) < 500, "split it"
    assert ast.get_docstring(tree) or not tree.body, "a line that says what the module is for"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called != "print" or name_of(path).startswith("cli"), f"line {node.lineno}: no print in the library"
            assert called not in ("qd.init", "quadrants.init") or path.name == "backend.py"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno - node.lineno < 80, f"{node.name} is too long"
        if isinstance(node, ast.Name):
            assert node.id != "NotImplementedError"
    for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
        assert word not in text


def test_importing_viscoil_is_light():
    heavy = {"quadrants", "pydantic", "h5py", "matplotlib", "numpy"}
    code = f"import sys, viscoil; print({heavy} & set(sys.modules) or '')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_public_names_exist():
    for name in viscoil.__all__:
        assert getattr(viscoil, name) is not None
    with pytest.raises(AttributeError):
        _ = viscoil.nothing
