"""Particle solids: rigid and soft bodies made of particles, which live in the same array as the fluid.

    [[particle_solid]]
    name = "letter"
    kind = "rigid"
    density = 1200
    shape = { type = "box", size = [0.02, 0.01, 0.01] }

Each is a material of its own in frames and pictures.
"""

from typing import Annotated, Any, Literal

from pydantic import StrictStr, field_validator, model_validator

from viscoil.looks import DEFAULT_LOOK
from viscoil.material import Colour, Material
from viscoil.model import Model
from viscoil.scene.parts import _closed_shape
from viscoil.scene.shapes import Shape
from viscoil.units import AngularVelocity, Quantity, Time, Velocity, wrong

SOFT_KEYS = ("young_modulus", "poisson_ratio", "damping_time")


class ParticleSolid(Model):
    """A rigid or soft body made of particles: it moves, floats and collides among fluids as they do among themselves."""

    name: StrictStr = ""
    """its material's name in frames and pictures; left out: "particle solid" and its number"""
    kind: Literal["rigid", "soft"]
    """rigid: keeps its shape; soft: an elastic lattice"""
    shape: Shape
    """what is filled with particles"""
    density: Annotated[float, Quantity("density", above=0, at_most=1e5)] = 1000.0
    """mass per volume [kg/m³]"""
    velocity: Velocity = (0.0, 0.0, 0.0)
    """at the start [m/s]"""
    angular_velocity: AngularVelocity = (0.0, 0.0, 0.0)
    """at the start, about the shape's centre [rad/s]"""
    start: Time = 0.0
    """when it appears [s]; its place should be free of fluid then"""
    stickiness: Annotated[
        float, Quantity("number", at_least=0, at_most=1, words=(("no-slip", 1.0), ("slip", 0.0)))
    ] = 1.0
    """how fluid clings to it: "no-slip" = 1 as to itself, "slip" = 0 not at all. dcpbd: the share of the fluid's viscosity
    that acts between them; pbf: the share of the sliding speed lost in 1/30 s of contact, all of it at 1"""
    young_modulus: Annotated[float, Quantity("modulus", above=0)] | None = None
    """soft: Young's modulus E [Pa]"""
    poisson_ratio: Annotated[float, Quantity("number", at_least=0.25, at_most=0.49)] | None = None
    """soft: 0.25 is what a lattice of springs has; above that volumes are kept as well, and 0.49 nearly keeps them. Left
    out: 0.4"""
    damping_time: Annotated[float, Quantity("time", at_least=0.0)] | None = None
    """soft: viscosity over Young's modulus [s], after which a stretch has crept to where it ends; left out: 0"""
    colour: Colour = (0.7, 0.4, 0.3)
    """display colour"""
    look: StrictStr = DEFAULT_LOOK
    """how it is drawn (see `viscoil list looks`)"""

    @field_validator("shape")
    @classmethod
    def _fillable(cls, shape: Any) -> Any:
        return _closed_shape(shape, "a particle solid")

    @field_validator("look")
    @classmethod
    def _known_look(cls, name: str) -> str:
        return Material._known_look(name)

    @model_validator(mode="after")
    def _stiffness_belongs_to_soft(self) -> "ParticleSolid":
        given = [key for key in SOFT_KEYS if getattr(self, key) is not None]
        if self.kind == "rigid" and given:
            raise wrong(f'{given[0]} has no meaning for a rigid body; expected kind = "soft"')
        if self.kind == "soft" and self.young_modulus is None:
            raise wrong('a soft body needs young_modulus, e.g. "20 kPa"')
        return self

    def called(self, number: int) -> str:
        """Its name, or one made from its number."""
        return self.name or f"particle solid {number}"

    def material(self) -> Material:
        """What its particles are, to everything that knows materials."""
        return Material(density=self.density, colour=self.colour, look=self.look, stickiness=self.stickiness)

    def moduli(self) -> tuple[float, float]:
        """(shear modulus μ [Pa], bulk modulus [Pa] beyond the 5μ/3 that a lattice of springs has) of a soft body."""
        young, ratio = self.young_modulus or 0.0, 0.4 if self.poisson_ratio is None else self.poisson_ratio
        shear = young / (2 * (1 + ratio))
        return shear, max(young / (3 * (1 - 2 * ratio)) - 5 * shear / 3, 0.0)
