"""How materials look: the table of looks. Numbers only; what draws them is in ``render`` and ``view``.

A look is one of three kinds of matter, each with its colour and numbers:

``clear``  light passes and bends, colour comes from what is swallowed on the way (water, honey, syrup, gel)
``milky``  light enters, scatters and comes back: soft and bright (cream, milk, dough)
``matt``   light stays at the surface (clay, mud, chocolate)
"""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Look:
    """Optical properties. Lengths are in particle spacings, so that a look suits a thimble and a swimming pool."""

    kind: Literal["clear", "milky", "matt"]
    colour: tuple[float, float, float] | None = None  # sRGB, 0 to 1; None: the material's own
    index: float = 1.4  # of refraction
    depth: float = 20.0  # clear: particle spacings after which light has taken on the colour
    haze: float = 0.0  # clear: share of the light that is scattered, not swallowed; 0 = perfectly clear
    roughness: float = 0.1  # 0 mirror, 1 chalk
    translucency: float = 0.0  # milky: share of light that travels inside
    sheen: float = 0.5  # strength of the reflection of matt and milky surfaces

    def coloured(self, colour: tuple[float, float, float]) -> "Look":
        """The look with ``colour`` where it has none of its own."""
        return self if self.colour is not None else replace(self, colour=colour)


LOOKS: dict[str, Look] = {
    "water": Look("clear", index=1.33, depth=60.0, roughness=0.0),
    "oil": Look("clear", index=1.47, depth=25.0, roughness=0.0),
    "honey": Look("clear", colour=(0.89, 0.54, 0.05), index=1.49, depth=14.0, haze=0.15, roughness=0.0),
    "syrup": Look("clear", colour=(0.62, 0.20, 0.07), index=1.49, depth=10.0, roughness=0.0),
    "gel": Look("clear", index=1.37, depth=14.0, haze=0.1, roughness=0.05),
    "cream": Look("milky", colour=(0.985, 0.955, 0.88), index=1.38, roughness=0.35, translucency=0.6),
    "milk": Look("milky", index=1.35, roughness=0.12, translucency=0.5),
    "paint": Look("milky", index=1.5, roughness=0.15, translucency=0.1, sheen=0.8),
    "slime": Look("clear", index=1.4, depth=8.0, haze=0.5, roughness=0.05),
    "dough": Look("milky", index=1.4, roughness=0.6, translucency=0.35, sheen=0.25),
    "chocolate": Look("matt", index=1.46, roughness=0.25, sheen=0.7),
    "clay": Look("matt", index=1.5, roughness=0.75, sheen=0.2),
    "mud": Look("matt", index=1.4, roughness=0.45, sheen=0.5),
    "lava": Look("matt", index=1.5, roughness=0.6, sheen=0.3),
}
# Looks that draw every particle instead of a surface.
PARTICLE_LOOKS = ("particles", "ellipsoids")
DEFAULT_LOOK = "gel"
