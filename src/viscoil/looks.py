"""How materials look: the table of looks. Numbers only; what draws them is in ``render`` and ``view``.

A look is one of three kinds of matter, each with its colour and numbers:

``clear``  light passes and bends, colour comes from what is swallowed on the way (water, honey, syrup, gel)
``milky``  light enters, scatters and comes back: soft and bright (cream, milk, dough)
``matt``   light stays at the surface (clay, mud, chocolate)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """Optical properties. Lengths are in sizes of the fluid, so that a look suits a thimble and a swimming pool."""

    kind: Literal["clear", "milky", "matt"]
    colour: Colour | None = None  # sRGB, 0 to 1; None: the material's own
    index: float = 1.4  # of refraction
    depth: float = 0.4  # clear: cube roots of the fluid's volume after which light has taken on the colour
    haze: float = 0.0  # clear: share of the light that is thrown back at the surface; 0 = perfectly clear
    roughness: float = 0.1  # 0 mirror, 1 chalk
    translucency: float = 0.0  # milky: share of light that travels inside
    sheen: float = 0.5  # strength of the reflection of matt and milky surfaces
    glow: float = 0.0  # light of its own, as a multiple of its colour

    def coloured(self, colour: Colour) -> "Look":
        """The look with ``colour`` where it has none of its own."""
        return self if self.colour is not None else replace(self, colour=colour)

    def absorption(self, volume: float) -> Colour:
        """Absorption coefficients σ [1/m] for red, green and blue of this much fluid [m³]: light fades as exp(-σ x)."""
        length = self.depth * max(volume, 1e-30) ** (1 / 3)
        red, green, blue = (-math.log(min(max(linear(part), 0.004), 0.985)) / length for part in self.colour or (1, 1, 1))
        return red, green, blue


def linear(value: float) -> float:
    """Amount of light of an sRGB value, both 0 to 1."""
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


LOOKS: dict[str, Look] = {
    "water": Look("clear", index=1.33, depth=1.9, roughness=0.0),
    "oil": Look("clear", index=1.47, depth=0.6, roughness=0.0),
    "honey": Look("clear", colour=(0.97, 0.60, 0.10), index=1.49, depth=0.55, roughness=0.0),
    "syrup": Look("clear", colour=(0.66, 0.27, 0.11), index=1.49, depth=0.42, roughness=0.0),
    "gel": Look("clear", index=1.37, depth=0.3, roughness=0.0),
    "cream": Look("milky", colour=(0.965, 0.93, 0.85), index=1.38, roughness=0.35, translucency=0.6),
    "milk": Look("milky", index=1.35, roughness=0.12, translucency=0.5),
    "paint": Look("milky", index=1.5, roughness=0.15, translucency=0.1, sheen=0.8),
    "slime": Look("clear", index=1.4, depth=0.25, haze=0.12, roughness=0.05),
    "dough": Look("milky", index=1.4, roughness=0.6, translucency=0.35, sheen=0.25),
    "chocolate": Look("matt", index=1.46, roughness=0.25, sheen=0.7),
    "clay": Look("matt", index=1.5, roughness=0.75, sheen=0.2),
    "mud": Look("matt", index=1.4, roughness=0.45, sheen=0.5),
    "lava": Look("matt", index=1.5, roughness=0.6, sheen=0.3, glow=0.6),
}
# Looks that draw every particle instead of a surface.
PARTICLE_LOOKS = ("particles", "ellipsoids")
DEFAULT_LOOK = "gel"


def known(name: str, more: Iterable[str] = PARTICLE_LOOKS) -> str:
    """``name`` if there is such a look (or it is one of ``more``), otherwise SceneError with what was probably meant."""
    names = [*LOOKS, *more]
    if name in names:
        return name
    text = f'unknown look "{name}".{did_you_mean(name, names)} Expected one of: {listed(names)}'
    raise SceneError(text, key="look", suggestion=closest(name, names))
