"""Numbers with a unit: what scene files and Python may write, checked and turned into SI.

``Length`` and its siblings are annotated types for pydantic models. Each accepts a plain number in SI units or a
string with a fitting unit (``"5 mm"``); everything else gets one sentence that says what was expected.
"""

import math
import operator
import re
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from viscoil.keys import did_you_mean, listed


@dataclass(frozen=True)
class Kind:
    """A physical dimension: how it is called, its SI unit, and the units that may be written instead."""

    one: str  # "a length"
    many: str  # "lengths"
    si: str  # SI unit, as printed
    example: str  # a good value, as it would be typed in a scene file
    units: dict[str, float] = field(default_factory=dict)  # unit -> factor to SI


KINDS: dict[str, Kind] = {
    "number": Kind("a number", "numbers", "", "0.5"),
    "length": Kind(
        "a length",
        "lengths",
        "metres",
        '0.05 or "5 cm"',
        {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "km": 1e3, "in": 0.0254, "ft": 0.3048},
    ),
    "time": Kind("a time", "times", "seconds", '0.002 or "2 ms"', {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}),
    "speed": Kind(
        "a speed", "speeds", "m/s", '0.5 or "50 cm/s"', {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3, "km/h": 1 / 3.6}
    ),
    "acceleration": Kind(
        "an acceleration", "accelerations", "m/s²", '9.81 or "981 cm/s2"', {"m/s2": 1.0, "cm/s2": 1e-2}
    ),
    "angle": Kind("an angle", "angles", "degrees", '90 or "1.57 rad"', {"deg": 1.0, "°": 1.0, "rad": 180 / math.pi}),
    "angular velocity": Kind(
        "an angular velocity",
        "angular velocities",
        "rad/s",
        '6.28 or "60 rpm"',
        {"rad/s": 1.0, "deg/s": math.pi / 180, "rpm": math.pi / 30},
    ),
    "density": Kind(
        "a density",
        "densities",
        "kg/m³",
        '1000 or "1 g/cm3"',
        {"kg/m3": 1.0, "g/cm3": 1e3, "g/ml": 1e3, "g/l": 1.0, "kg/l": 1e3},
    ),
    "viscosity": Kind(
        "a dynamic viscosity",
        "viscosities",
        "Pa s",
        '10 or "500 mPa s"',
        {"Pa s": 1.0, "mPa s": 1e-3, "kPa s": 1e3, "MPa s": 1e6, "P": 0.1, "cP": 1e-3},
    ),
    "modulus": Kind("a modulus", "moduli", "Pa", '500 or "2 kPa"', {"Pa": 1.0, "mPa": 1e-3, "kPa": 1e3, "MPa": 1e6}),
    "surface tension": Kind(
        "a surface tension", "surface tensions", "N/m", '0.072 or "72 mN/m"', {"N/m": 1.0, "mN/m": 1e-3, "dyn/cm": 1e-3}
    ),
    "mass": Kind("a mass", "masses", "kg", '0.2 or "200 g"', {"kg": 1.0, "g": 1e-3, "mg": 1e-6, "t": 1e3}),
    "spring stiffness": Kind(
        "a spring constant", "spring constants", "N/m", '500 or "0.5 kN/m"', {"N/m": 1.0, "kN/m": 1e3, "mN/m": 1e-3}
    ),
    "rate": Kind("a rate", "rates", "1/s", '30 or "30 1/s"', {"1/s": 1.0, "1/min": 1 / 60, "Hz": 1.0}),
    "rate squared": Kind("a squared rate", "squared rates", "1/s²", "270", {"1/s2": 1.0}),
    "per length": Kind("an inverse length", "inverse lengths", "1/m", '5 or "0.05 1/cm"', {"1/m": 1.0, "1/cm": 100.0}),
}

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# "5 mm", "1/30 s"; the divisor of a fraction ends where a space or a letter begins, and "1 1/s" and "1/s" have none.
_NUMBER_AND_UNIT = re.compile(rf"\s*([+-]?{_NUMBER})(?:\s*/\s*({_NUMBER}))?\s*(.*?)\s*")
_KINEMATIC = ("cst", "st", "m2/s", "mm2/s")
_EXAMPLE_VECTORS = {"acceleration": "[0, -9.81, 0]", "angle": "[0, 90, 0]"}


def shown(value: Any) -> str:
    """A value as the user would have typed it in TOML, cut to a readable length."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:60]}…"' if len(value) > 60 else f'"{value}"'
    if isinstance(value, dict):
        return f"a table with the keys {listed(value, 5)}" if value else "an empty table"
    if isinstance(value, (list, tuple)):
        text = "[" + ", ".join(shown(item) for item in value[:6]) + (", …]" if len(value) > 6 else "]")
        return text if len(text) <= 100 else f"a list of {len(value)} values"
    if value is None:
        return "nothing"
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"a Python {type(value).__name__}"


def wrong(message: str) -> PydanticCustomError:
    """An error whose text is already in our words (braces would be read as a template)."""
    return PydanticCustomError("viscoil", "{text}", {"text": message})


_LONG_NAMES = {
    "metre": "m", "metres": "m", "meter": "m", "meters": "m", "second": "s", "seconds": "s", "sec": "s",
    "inch": "in", "degrees": "deg", "degree": "deg", "radians": "rad", "g/cc": "g/cm3",
}  # fmt: skip


def _tidy_unit(unit: str) -> str:
    unit = unit.replace("²", "2").replace("³", "3").replace("µ", "u").replace("μ", "u")
    unit = re.sub(r"[\s·*.^]", "", unit)
    return _LONG_NAMES.get(unit.lower(), unit)


def _factor(unit: str, kind: Kind) -> float | None:
    """Factor from ``unit`` to SI; case matters only where it must (mPa and MPa)."""
    tidy = _tidy_unit(unit)
    exact = {_tidy_unit(name): factor for name, factor in kind.units.items()}
    if tidy in exact:
        return exact[tidy]
    similar = [factor for name, factor in exact.items() if name.lower() == tidy.lower()]
    return similar[0] if len(similar) == 1 else None


def _unit_factor(text: str, unit: str, kind: Kind, expected: str) -> float:
    """Factor from ``unit`` to SI, or an error that says what kind of unit it is instead."""
    factor = _factor(unit, kind)
    if factor is not None:
        return factor
    if kind is KINDS["viscosity"] and _tidy_unit(unit).lower() in _KINEMATIC:
        raise wrong(f'expected {expected}; got "{text}", a kinematic viscosity: multiply it by the density')
    for name, other in KINDS.items():
        if _factor(unit, other) is not None:
            raise wrong(f'expected {expected}; got "{text}", but {unit} is a unit of {name}')
    known = listed(kind.units) if kind.units else "none, a plain number"
    raise wrong(f'expected {expected}; got "{text}" with the unknown unit "{unit}" (known: {known})')


@dataclass(frozen=True)
class Quantity:
    """Annotation for one number of a physical kind, with its range. Use as ``Annotated[float, Quantity("length")]``."""

    kind: str
    above: float | None = None  # exclusive lower limit
    at_least: float | None = None  # inclusive lower limit
    at_most: float | None = None  # inclusive upper limit
    infinite: bool = False  # inf is meaningful here
    words: tuple[tuple[str, float], ...] = ()  # names for special values, e.g. no-slip

    @property
    def expected(self) -> str:
        """What may be written, in words."""
        kind = KINDS[self.kind]
        limits = []
        if self.above is not None:
            limits.append(f"greater than {self.above:g}")
        if self.at_least is not None:
            limits.append(f"at least {self.at_least:g}")
        if self.at_most is not None:
            limits.append(f"at most {self.at_most:g}")
        unit = f" in {kind.si}" if kind.si else ""
        words = "".join(f' or "{word}"' for word, _ in self.words)
        range_text = f", {' and '.join(limits)}" if limits else ""
        return f"{kind.one}{unit}{range_text}, e.g. {self._examples()}{words}"

    @property
    def example(self) -> str:
        """A value that would be accepted, as it is typed in a scene file; with a unit where that fits."""
        return self._examples().split(" or ")[-1]

    def _examples(self) -> str:
        """Values that would be accepted: the kind's own, or the middle of a range that lies elsewhere."""
        low, high = max(self.above or 0.0, self.at_least or 0.0), self.at_most
        usual = float(KINDS[self.kind].example.split()[0])
        if high is None:
            return KINDS[self.kind].example if usual > low else f"{2 * low:g}"
        return KINDS[self.kind].example if low < usual <= high else f"{(low + high) / 2:g}"

    def __call__(self, value: Any) -> float:
        """The value in SI units; raises with our wording when it is not one."""
        if isinstance(value, str):
            value = self._from_text(value)
        if isinstance(value, bool) or not hasattr(value, "__float__") or getattr(value, "ndim", 0):
            raise wrong(f"expected {self.expected}; got {shown(value)}")
        number = float(value)
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            finite = "a number" if self.infinite else "a finite number"
            raise wrong(f"expected {self.expected}; got {number}, which is not {finite}")
        too_low = number <= self.above if self.above is not None else False
        too_low = too_low or (self.at_least is not None and number < self.at_least)
        if too_low or (self.at_most is not None and number > self.at_most):
            raise wrong(f"expected {self.expected}; got {number:g}")
        return number

    def _from_text(self, text: str) -> float:
        for word, special in self.words:
            if text.strip().lower().replace("_", "-").replace(" ", "-") == word:
                return special
        kind = KINDS[self.kind]
        match = _NUMBER_AND_UNIT.fullmatch(text)
        if not match:
            near = did_you_mean(text, [word for word, _ in self.words])
            raise wrong(f"expected {self.expected}; got {shown(text)}{'.' if near else ''}{near}")
        divisor = float(match[2]) if match[2] else 1.0
        if divisor == 0.0:
            raise wrong(f"expected {self.expected}; got {shown(text)}, which divides by zero")
        if not match[3]:
            hint = "leave out the quotes or add a unit"
            if match[2]:  # TOML has no fractions without quotes
                example = f'"{text.strip()} {next(iter(kind.units))}"' if kind.units else f"{float(match[1]) / divisor:.6g}"
                hint = f"write {example}"
            raise wrong(f"expected {self.expected}; got the text {shown(text)}: {hint}")
        return float(match[1]) / divisor * _unit_factor(text, match[3], kind, self.expected)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number: dict[str, Any] = {"type": "number"}
        for name, limit in (("exclusiveMinimum", self.above), ("minimum", self.at_least), ("maximum", self.at_most)):
            if limit is not None:
                number[name] = limit
        text: dict[str, Any] = {"type": "string"}
        if self.words and not KINDS[self.kind].units:
            text["enum"] = [word for word, _ in self.words]
        elif not KINDS[self.kind].units:
            return {**number, "description": self.expected}
        return {"anyOf": [number, text], "description": self.expected}


@dataclass(frozen=True)
class Vector:
    """Annotation for three numbers of one kind; stored as a tuple."""

    kind: str
    above: float | None = None  # exclusive lower limit of every component
    nonzero: bool = False  # a direction: may not vanish

    @property
    def expected(self) -> str:
        """What may be written, in words."""
        kind = KINDS[self.kind]
        unit = f" in {kind.si}" if kind.si else ""
        limit = f", each greater than {self.above:g}" if self.above is not None else ""
        return f"three {kind.many}{unit}{limit}, e.g. {self.example}"

    @property
    def example(self) -> str:
        """A value that would be accepted, as it is typed in a scene file."""
        return _EXAMPLE_VECTORS.get(self.kind, "[1.0, 2.0, 1.0]")

    def __call__(self, value: Any) -> tuple[float, float, float]:
        """The three components in SI units."""
        if hasattr(value, "tolist"):
            value = value.tolist()
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            raise wrong(f"expected {self.expected}; got {shown(value)}")
        component = Quantity(self.kind)
        numbers = []
        for item in value:
            try:
                numbers.append(component(item))
            except PydanticCustomError as error:
                detail = error.message().split("; got ", 1)[-1]
                raise wrong(f"expected {self.expected}; got {shown(value)} (the component {detail})") from None
        if self.above is not None and min(numbers) <= self.above:
            raise wrong(f"expected {self.expected}; got {shown(value)}")
        if self.nonzero and not any(numbers):
            raise wrong(f"expected a direction that is not zero, e.g. [0, -1, 0]; got {shown(value)}")
        return numbers[0], numbers[1], numbers[2]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "number"}
        if self.above is not None:
            item["exclusiveMinimum"] = self.above
        if KINDS[self.kind].units:
            item = {"anyOf": [item, {"type": "string"}]}
        return {"type": "array", "items": item, "minItems": 3, "maxItems": 3, "description": self.expected}


@dataclass(frozen=True)
class Count:
    """Annotation for a whole number with its range."""

    at_least: int | None = None
    at_most: int | None = None

    @property
    def expected(self) -> str:
        """What may be written, in words."""
        limits = []
        if self.at_least is not None:
            limits.append(f"at least {self.at_least}")
        if self.at_most is not None:
            limits.append(f"at most {self.at_most:,}")
        return f"a whole number{', ' if limits else ''}{' and '.join(limits)}, e.g. {self.example}"

    @property
    def example(self) -> str:
        """A value that would be accepted, as it is typed in a scene file."""
        return str(max(self.at_least or 0, min(4, self.at_most if self.at_most is not None else 4)))

    def __call__(self, value: Any) -> int:
        """The value as a Python int."""
        try:
            if isinstance(value, bool):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise wrong(f"expected {self.expected}; got {shown(value)}") from None
        if (self.at_least is not None and number < self.at_least) or (
            self.at_most is not None and number > self.at_most
        ):
            raise wrong(f"expected {self.expected}; got {number}")
        return number

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "integer", "description": self.expected}
        if self.at_least is not None:
            result["minimum"] = self.at_least
        if self.at_most is not None:
            result["maximum"] = self.at_most
        return result


@dataclass(frozen=True)
class Slider:
    """Annotation beside a Quantity or Count: the parameter may be changed while a simulation runs, within this range.

    This is the one declaration of a live control: its name is the field's, its unit the quantity's, its help the field's
    docstring. ``low`` and ``high`` are in SI units and say what is sensible to drag through, not what is allowed.
    """

    low: float
    high: float
    log: bool = False  # equal distances on the slider are equal factors
    off: bool = False  # the slider's lowest position means 0 (switched off); natural for log scales that include 0

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a slider from {self.low} to {self.high}{' on a log scale' if self.log else ''}")


# --- the types models use -------------------------------------------------------------------------------------------
Number = Annotated[float, Quantity("number")]  # any finite number
PositiveNumber = Annotated[float, Quantity("number", above=0)]
NonNegativeNumber = Annotated[float, Quantity("number", at_least=0)]
Length = Annotated[float, Quantity("length", above=0)]  # [m] > 0
NonNegativeLength = Annotated[float, Quantity("length", at_least=0)]  # [m]
Time = Annotated[float, Quantity("time", at_least=0)]  # [s]
PositiveTime = Annotated[float, Quantity("time", above=0)]  # [s] > 0
EndTime = Annotated[float, Quantity("time", above=0, infinite=True)]  # [s], inf = never
Position = Annotated[tuple[float, float, float], Vector("length")]  # [m]
Size = Annotated[tuple[float, float, float], Vector("length", above=0)]  # [m] > 0
Rotation = Annotated[tuple[float, float, float], Vector("angle")]  # [degrees], intrinsic x-y-z
Velocity = Annotated[tuple[float, float, float], Vector("speed")]  # [m/s]
AngularVelocity = Annotated[tuple[float, float, float], Vector("angular velocity")]  # [rad/s]
Acceleration = Annotated[tuple[float, float, float], Vector("acceleration")]  # [m/s²]
Direction = Annotated[tuple[float, float, float], Vector("number", nonzero=True)]  # normalised by its model
