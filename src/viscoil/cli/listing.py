"""What ``viscoil list`` shows. Reads plain files only, so that it answers at once."""

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
