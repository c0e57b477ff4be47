"""What ``viscoil list`` shows. Reads plain files only, so that it answers at once."""

import ast
import tomllib
from pathlib import Path

import viscoil
from viscoil.looks import LOOKS
from viscoil.solvers import SOLVERS

PACKAGE = Path(viscoil.__file__).parent


def scenes() -> list[tuple[str, str]]:
    """Names and titles of the shipped scenes."""
    rows = []
    for path in sorted((PACKAGE / "scene" / "library").glob("*.toml")):
        rows.append((path.stem, str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))))
    return rows


def materials() -> list[tuple[str, str]]:
    """Names of the presets and their numbers."""
    tables = tomllib.loads((PACKAGE / "presets.toml").read_text(encoding="utf-8"))
    units = {
        "density": "kg/m³", "viscosity": "Pa s", "relaxation_time": "s", "modulus": "Pa", "yield_strain": "", "mobility": "",
        "extensibility": "",
    }  # fmt: skip
    return [
        (name, ", ".join(f"{key} {table[key]:g} {unit}".strip() for key, unit in units.items() if key in table))
        for name, table in tables.items()
    ]


def solvers() -> list[tuple[str, str]]:
    """Names of the methods and where they come from."""
    return [(name, info.summary) for name, info in SOLVERS.items()]


def looks() -> list[tuple[str, str]]:
    """Names of the looks for `viscoil render` and what they are like."""
    rows = [(name, look.kind) for name, look in LOOKS.items()]
    return [*rows, ("particles", "every particle as a ball"), ("ellipsoids", "every particle as an ellipsoid")]


def cases() -> list[tuple[str, str]]:
    """Names of the validation cases and what they measure, as their files say: importing them would load the kernels."""
    rows = []
    for path in sorted((PACKAGE / "validation").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CASE" and isinstance(node.value, ast.Call):
                said = {key.arg: ast.literal_eval(key.value) for key in node.value.keywords if key.arg in ("name", "measures")}
                rows.append((said["name"], said["measures"]))
    return sorted(rows)
