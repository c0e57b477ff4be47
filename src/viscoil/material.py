"""Materials in physical units, named presets, and what a solver has to say when it cannot honour a property.

η = G λ ties viscosity η [Pa s], relaxation time λ [s] and modulus G [Pa] together, so at most two are given: a
fluid gives η (and λ when it is elastic), a solid gives G with λ = inf. All three is an error.
"""

import math
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, StrictStr, field_validator, model_validator
from pydantic_core import core_schema

from viscoil.keys import did_you_mean, listed
from viscoil.looks import DEFAULT_LOOK, LOOKS
from viscoil.model import Model, NestedProblems
from viscoil.properties import (
    Change,
    Extensibility,
    Friction,
    Interpolation,
    Mobility,
    Modulus,
    RelaxationTime,
    SolventViscosity,
    Stickiness,
    SurfaceTension,
    Viscosity,
    YieldStrain,
    problems_of,
    values_at,
)
from viscoil.units import KINDS, Quantity, Slider, shown, wrong

MAXWELL = ("viscosity", "relaxation_time", "modulus")  # tied by η = Gλ
COLOURS = {
    "white": "#ffffff", "black": "#000000", "grey": "#808080", "gray": "#808080", "red": "#d02020",
    "green": "#2e9e3f", "blue": "#2060d0", "yellow": "#f0d020", "orange": "#f08020", "purple": "#8030b0",
    "pink": "#f080a8", "brown": "#7a4a20", "cyan": "#20c0d0", "magenta": "#c020b0", "amber": "#d98a12",
    "gold": "#d4af37", "silver": "#c0c0c0", "cream": "#fbf3df",
}  # fmt: skip


class _Colour:
    """Annotation: a colour name, ``#rrggbb`` or three numbers from 0 to 1; stored as three numbers."""

    expected = 'a colour: a name, "#rrggbb" or three numbers from 0 to 1, e.g. "amber" or [0.9, 0.6, 0.1]'

    def __call__(self, value: Any) -> tuple[float, float, float]:
        if isinstance(value, str):
            text = COLOURS.get(value.strip().lower(), value.strip())
            digits = text[1:] if text.startswith("#") else ""
            try:
                if len(digits) == 6:
                    red, green, blue = bytes.fromhex(digits)
                    return red / 255, green / 255, blue / 255
            except ValueError:
                pass  # not hexadecimal: falls through to the message
            near = did_you_mean(value, COLOURS)
            raise wrong(f"expected {self.expected}; got {shown(value)}{'.' if near else ''}{near}")
        numbers = list(value) if isinstance(value, (list, tuple)) else []
        good = [isinstance(n, (int, float)) and not isinstance(n, bool) and 0 <= n <= 1 for n in numbers]
        if len(numbers) != 3 or not all(good):
            raise wrong(f"expected {self.expected}; got {shown(value)}")
        return float(numbers[0]), float(numbers[1]), float(numbers[2])

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        three = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 3, "maxItems": 3}
        return {"anyOf": [{"type": "string"}, three], "description": self.expected}


Colour = Annotated[tuple[float, float, float], _Colour()]


class Material(Model):
    """What a fluid is made of. ``preset`` starts from a named material; every other key overrides it."""

    preset: StrictStr | None = None
    """name of the preset the values started from (see `viscoil list materials`)"""
    density: Annotated[float, Quantity("density", above=0, at_most=1e5), Slider(300, 3000, log=True)]
    """mass per volume at rest [kg/m³]"""
    viscosity: Viscosity | None = None
    """dynamic viscosity η at low shear rate [Pa s]"""
    relaxation_time: RelaxationTime | None = None
    """time λ after which stress has decayed to 1/e [s]; inf for a solid"""
    modulus: Modulus | None = None
    """shear modulus G [Pa]"""
    solvent_viscosity: SolventViscosity | None = None
    """additional Newtonian viscosity η_s beside the elastic part [Pa s]"""
    yield_strain: YieldStrain | None = None
    """elastic strain above which the material flows [1]"""
    mobility: Mobility | None = None
    """Giesekus' anisotropy of friction [1]: stretched polymer slips, the fluid thins under shear"""
    extensibility: Extensibility | None = None
    """FENE-P: trace of the conformation at which the polymer is taut [1]; it stiffens before"""
    surface_tension: SurfaceTension | None = None
    """surface tension against air [N/m]"""
    friction: Friction | None = None
    """Coulomb coefficient at solids [1], replaces the solid's own; "no-slip" = inf"""
    stickiness: Stickiness | None = None
    """how strongly the material clings to solids, 0 to 1"""
    changes: list[Change] = Field(default_factory=list)
    """keyframes of the properties above, in order of time"""
    interpolation: Interpolation = "log"
    """between keyframes: by factors where a property spans decades, linear, or smooth (as log, without kinks)"""
    colour: Colour = (0.25, 0.56, 0.82)
    """display colour"""
    look: StrictStr = DEFAULT_LOOK
    """how it is drawn: honey, cream, clay, ... (see `viscoil list looks`)"""
    source: StrictStr = ""
    """where the numbers are from"""

    @model_validator(mode="before")
    @classmethod
    def _start_from_preset(cls, data: Any) -> Any:
        """Fill in what the preset knows and the user did not say."""
        name = data.get("preset") if isinstance(data, dict) else None
        if not isinstance(name, str):
            return data
        if name not in _tables():
            return {"density": 1.0, **data}  # the preset is the mistake; a missing density only follows from it
        values = {key: value for key, value in _tables()[name].items() if key != "source"}
        if sum(data.get(key) is not None for key in MAXWELL) > 1:  # a full description replaces the preset's
            for key in MAXWELL:
                values.pop(key, None)
        return {**values, **data}

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name: str | None) -> str | None:
        if name is not None and name not in _tables():
            raise wrong(f'unknown preset "{name}".{did_you_mean(name, _tables())} Expected one of: {listed(_tables())}')
        return name

    @field_validator("look")
    @classmethod
    def _known_look(cls, name: str) -> str:
        if name not in LOOKS:
            raise wrong(f'unknown look "{name}".{did_you_mean(name, LOOKS)} Expected one of: {listed(LOOKS)}')
        return name

    @model_validator(mode="after")
    def _at_most_two(self) -> "Material":
        given = [key for key in MAXWELL if getattr(self, key) is not None]
        if len(given) == 3:
            start = f' (the preset "{self.preset}" counts)' if self.preset else ""
            raise wrong(
                f"give at most two of viscosity, relaxation_time and modulus, because viscosity = modulus x "
                f"relaxation_time; got all three{start}"
            )
        if given == ["relaxation_time"]:
            raise wrong("relaxation_time alone says nothing about stress: expected viscosity or modulus beside it")
        if self.modulus is None and self.relaxation_time == math.inf:
            raise wrong("an infinite relaxation_time is an elastic solid: expected modulus instead of viscosity")
        if self.changes and (found := problems_of(self, self.changes)):
            raise NestedProblems(found)
        return self

    def at(self, time: float) -> "Material":
        """The material as it is at a moment [s]: itself, unless it has keyframes."""
        if not self.changes:
            return self
        return self.model_copy(update=values_at(self, self.changes, self.interpolation, time) | {"changes": []})

    def maxwell(self) -> tuple[float, float, float]:
        """Viscosity η [Pa s], relaxation time λ [s] and modulus G [Pa], with the missing one from η = Gλ.

        Newtonian: λ = 0 and G = inf (no elasticity). Elastic solid: λ = η = inf. Nothing given: η = λ = 0.
        """
        eta, lam, modulus = self.viscosity, self.relaxation_time, self.modulus
        if modulus is None:
            eta, lam = eta or 0.0, lam or 0.0
            return eta, lam, eta / lam if lam > 0 else math.inf
        if eta is not None:
            return eta, eta / modulus, modulus
        lam = math.inf if lam is None else lam
        return modulus * lam, lam, modulus


PROPERTY_KINDS = {
    "viscosity": "viscosity", "relaxation_time": "time", "modulus": "modulus", "solvent_viscosity": "viscosity",
    "yield_strain": "number", "mobility": "number", "extensibility": "number", "surface_tension": "surface tension",
    "friction": "number", "stickiness": "number",
}  # fmt: skip


def unsupported(material: Material, honoured: Iterable[str]) -> list[str]:
    """One sentence for each property the material has and a solver does not act on.

    ``honoured`` names the fields of Material the solver uses. Density and colour are always used; a property
    that is zero has no effect anyway and is not mentioned.
    """
    honoured = set(honoured)
    unknown = honoured - set(Material.model_fields)
    if unknown:
        raise KeyError(f"not material properties: {sorted(unknown)}")
    messages = []
    for name, kind in PROPERTY_KINDS.items():
        value = getattr(material, name)
        if value and name not in honoured:
            unit = "s" if kind == "time" else KINDS[kind].si
            messages.append(f"{name} = {value:g}{' ' + unit if unit else ''} has no effect")
    return messages


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """The presets as written in presets.toml."""
    return tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8"))


PRESETS: dict[str, Material] = {name: Material(**table) for name, table in _tables().items()}
