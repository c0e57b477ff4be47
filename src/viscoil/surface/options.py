"""Every option of a surface, its two presets, and what is said about wrong ones. Lengths in particle spacings d."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed

QUALITIES = ("film", "live")
METHODS = ("splash", "anisotropic", "clavet")


@dataclass(frozen=True)
class Options:
    """How a surface is made. ``None`` means: what suits the method."""

    quality: str = "film"
    """film: fine and smooth. live: coarse and quick."""
    method: str = "splash"
    """splash: SPH colour field through pysplashsurf. anisotropic: kernels of Yu & Turk. clavet: eq. 13 of PVFS."""
    cube: float = 0.4
    """Edge of a marching cube [d]."""
    support: float | None = None
    """Radius in which a particle shapes the field [d]."""
    threshold: float | None = None
    """Value of the field on the surface; lower is thicker."""
    smoothing: int = 25
    """Iterations of weighted smoothing: removes bumps, keeps volume."""
    normal_smoothing: int = 4
    """Iterations that smooth the normals, which is what light sees."""
    stray: float = 0.0
    """Drops smaller than this many particles are left out."""
    bubbles: float = 1000.0
    """Closed cavities smaller than this many particles are filled: vacancies would glitter in clear fluids."""
    fields: tuple[str, ...] | None = None
    """Quantities of the frame to carry over; None: all that are real numbers, besides material and colour."""
    stretch: float = 4.0
    """anisotropic: longest over shortest axis of an ellipsoid, at most (k_r of Yu & Turk)."""
    centring: float = 0.1
    """anisotropic: how far centres move towards the mean of their neighbours (λ of Yu & Turk), 0 to 1.

    Theirs is 0.9, which smooths but draws surfaces in by half a spacing; smoothing the mesh does not."""

    def header(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        values = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


PRESETS = {
    "film": Options(),
    "live": Options(quality="live", cube=0.8, smoothing=8, normal_smoothing=2, bubbles=0.0),
}

# What each method takes when support or threshold are not given: values for which the volume of drops, sheets and ropes
# comes out right (docs/surfaces.md has the table).
SUPPORT = {"splash": 2.0, "anisotropic": 2.0, "clavet": 1.5}
THRESHOLD = {"splash": 0.55, "anisotropic": 0.5, "clavet": 0.75}

# name -> (lowest, highest, words)
_LIMITS: dict[str, tuple[float, float, str]] = {
    "cube": (0.05, 2.0, "a number of spacings from 0.05 to 2"),
    "support": (1.0, 4.0, "a number of spacings from 1 to 4"),
    "threshold": (1e-3, 10.0, "a number above 0, typically 0.4 to 1"),
    "smoothing": (0, 1000, "a whole number from 0 to 1000"),
    "normal_smoothing": (0, 1000, "a whole number from 0 to 1000"),
    "stray": (0.0, math.inf, "a number of particles, 0 or more"),
    "bubbles": (0.0, math.inf, "a number of particles, 0 or more"),
    "stretch": (1.0, 20.0, "a ratio from 1 to 20"),
    "centring": (0.0, 1.0, "a number from 0 to 1"),
}


def settings(quality: str = "film", method: str = "splash", **given: Any) -> Options:
    """The options asked for, checked; those left out come from the quality. Raises SceneError naming what is wrong."""
    _one_of("quality", quality, QUALITIES)
    _one_of("method", method, METHODS)
    names = [field.name for field in fields(Options)]
    values = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in names:
            raise SceneError(
                f'surface: there is no option "{name}".{did_you_mean(name, names)} There are {listed(names)}',
                key=name, expected="one of " + listed(names), suggestion=closest(name, names),
            )  # fmt: skip
    for name, value in values.items():
        values[name] = _names(value) if name == "fields" else _number(name, value)
    options = replace(PRESETS[quality], method=method, **values)
    support = SUPPORT[method] if options.support is None else options.support
    threshold = THRESHOLD[method] if options.threshold is None else options.threshold
    return replace(options, support=support, threshold=threshold)


def _one_of(key: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise SceneError(
            f'surface: {key} "{value}" is unknown.{did_you_mean(str(value), allowed)} Expected one of: {listed(allowed)}',
            key=key, expected="one of " + listed(allowed), suggestion=closest(str(value), allowed),
        )  # fmt: skip


def _number(name: str, value: Any) -> float | int:
    low, high, words = _LIMITS[name]
    whole = name in ("smoothing", "normal_smoothing")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not low <= number <= high or (whole and number != int(number)):
        raise SceneError(f"surface: {name} is {value!r}; expected {words}", key=name, expected=words)
    return int(number) if whole else number


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    try:
        return tuple(sorted(str(name) for name in value))
    except TypeError:
        raise SceneError(
            f"surface: fields is {value!r}; expected names of quantities, e.g. ['velocity', 'density']", key="fields"
        ) from None
