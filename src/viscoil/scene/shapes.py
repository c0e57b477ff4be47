"""Shapes: what a scene may write under ``shape``. Pure description; distances live in ``solids``, filling in ``fill``.

Every shape has its own frame, moved by ``position`` and turned by ``rotation``; the local y axis is the axis of
revolution. ``volume`` and ``extent`` are upper estimates that let a scene say how many particles it needs before
anything is allocated.
"""

import math
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from viscoil.model import Model
from viscoil.units import Length, NonNegativeLength, Position, PositiveNumber, Rotation, Size, shown, wrong

MESH_SUFFIXES = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")


class ShapeBase(Model):
    """What all shapes share."""

    position: Position = (0.0, 0.0, 0.0)
    """centre [m]"""
    rotation: Rotation = (0.0, 0.0, 0.0)
    """turned about x, then the new y, then the new z [degrees]"""

    @abstractmethod
    def extent(self) -> tuple[float, float, float]:
        """Full edge lengths of the box around the shape in its own frame [m]."""

    def middle(self) -> tuple[float, float, float]:
        """Centre of that box in the shape's own frame [m]."""
        return 0.0, 0.0, 0.0

    def volume(self) -> float:
        """Volume [m³], never too small."""
        return math.prod(self.extent())

    def section(self) -> float:
        """Area of the cut through local y = 0 [m²], never too small: the opening of a nozzle."""
        x, _, z = self.extent()
        return x * z

    def thinnest(self) -> float:
        """Smallest extent [m]: below one particle spacing nothing fits inside."""
        return min(self.extent())


class Box(ShapeBase):
    """A box, optionally with rounded edges."""

    type: Literal["box"] = "box"
    size: Size
    """full edge lengths [m]"""
    rounding: NonNegativeLength = 0.0
    """radius of the edges [m]"""

    @model_validator(mode="after")
    def _rounding_fits(self) -> "Box":
        if self.rounding > min(self.size) / 2:
            raise wrong(
                f"rounding is {self.rounding:g} m, expected at most half the shortest edge, {min(self.size) / 2:g} m"
            )
        return self

    def extent(self) -> tuple[float, float, float]:
        return self.size


class Sphere(ShapeBase):
    """A ball."""

    type: Literal["sphere"] = "sphere"
    radius: Length
    """radius [m]"""

    def extent(self) -> tuple[float, float, float]:
        return 2 * self.radius, 2 * self.radius, 2 * self.radius

    def volume(self) -> float:
        return 4 / 3 * math.pi * self.radius**3

    def section(self) -> float:
        return math.pi * self.radius**2


class Capsule(ShapeBase):
    """A cylinder with round ends."""

    type: Literal["capsule"] = "capsule"
    radius: Length
    """radius [m]"""
    height: NonNegativeLength
    """distance between the centres of the round ends [m]"""

    def extent(self) -> tuple[float, float, float]:
        return 2 * self.radius, self.height + 2 * self.radius, 2 * self.radius

    def volume(self) -> float:
        return math.pi * self.radius**2 * (self.height + 4 / 3 * self.radius)

    def section(self) -> float:
        return math.pi * self.radius**2


class Cylinder(ShapeBase):
    """A cylinder standing on local y."""

    type: Literal["cylinder"] = "cylinder"
    radius: Length
    """radius [m]"""
    height: Length
    """full height [m]"""

    def extent(self) -> tuple[float, float, float]:
        return 2 * self.radius, self.height, 2 * self.radius

    def volume(self) -> float:
        return math.pi * self.radius**2 * self.height

    def section(self) -> float:
        return math.pi * self.radius**2


class Cone(ShapeBase):
    """A cone, or a frustum when ``top_radius`` is given."""

    type: Literal["cone"] = "cone"
    radius: NonNegativeLength
    """radius at the bottom [m]"""
    top_radius: NonNegativeLength = 0.0
    """radius at the top [m]"""
    height: Length
    """full height [m]"""

    @model_validator(mode="after")
    def _not_a_line(self) -> "Cone":
        if max(self.radius, self.top_radius) == 0:
            raise wrong("radius and top_radius are both 0, expected at least one greater than 0")
        return self

    def extent(self) -> tuple[float, float, float]:
        width = 2 * max(self.radius, self.top_radius)
        return width, self.height, width

    def volume(self) -> float:
        a, b = self.radius, self.top_radius
        return math.pi / 3 * self.height * (a * a + a * b + b * b)

    def section(self) -> float:
        return math.pi * ((self.radius + self.top_radius) / 2) ** 2


class Funnel(ShapeBase):
    """An open conical shell with rounded rims, usually wide at the top. Lengths are those of the middle of its wall."""

    type: Literal["funnel"] = "funnel"
    top_radius: Length
    """radius of the upper rim [m]"""
    bottom_radius: Length
    """radius of the lower rim [m]"""
    height: Length
    """distance between the rims [m]"""
    thickness: Length
    """thickness of the wall [m]"""

    def extent(self) -> tuple[float, float, float]:
        width = 2 * max(self.top_radius, self.bottom_radius) + self.thickness
        return width, self.height + self.thickness, width

    def volume(self) -> float:
        # Pappus: a strip as long as the slant, and half a disc on each rim, carried around the axis.
        around = math.pi * (self.top_radius + self.bottom_radius)
        slant = math.hypot(self.height, self.top_radius - self.bottom_radius)
        return around * (slant * self.thickness + math.pi * self.thickness**2 / 4)

    def thinnest(self) -> float:
        return min(self.height, self.thickness)


class Torus(ShapeBase):
    """A ring around local y."""

    type: Literal["torus"] = "torus"
    radius: Length
    """from the centre to the middle of the tube [m]"""
    tube: Length
    """radius of the tube [m]"""

    def extent(self) -> tuple[float, float, float]:
        width = 2 * (self.radius + self.tube)
        return width, 2 * self.tube, width

    def volume(self) -> float:
        return 2 * math.pi**2 * self.radius * self.tube**2

    def section(self) -> float:
        return 4 * math.pi * self.radius * self.tube


class Bowl(ShapeBase):
    """A bowl: part of a hollow ball with a rounded rim, open at the top. Lengths are those of the middle of its wall."""

    type: Literal["bowl"] = "bowl"
    radius: Length
    """radius of the rim [m]"""
    height: Length
    """from the bottom to the rim [m]"""
    thickness: Length
    """thickness of the wall [m]"""

    def ball(self) -> float:
        """Radius of the ball the bowl is part of [m]."""
        return (self.radius**2 + self.height**2) / (2 * self.height)

    def extent(self) -> tuple[float, float, float]:
        widest = self.radius if self.height < self.radius else self.ball()
        return 2 * widest + self.thickness, self.height + self.thickness, 2 * widest + self.thickness

    def volume(self) -> float:
        # Archimedes: the wall's middle is as large as the belt of a cylinder; half a disc is carried around the rim. The
        # shell between two balls has a little more than area times thickness.
        shell = 2 * math.pi * self.ball() * self.height * self.thickness + math.pi * self.thickness**3 / 3
        return shell + math.pi**2 * self.thickness**2 / 4 * (self.radius + self.thickness)

    def section(self) -> float:
        width = self.extent()[0]
        return math.pi * width**2 / 4

    def thinnest(self) -> float:
        return min(self.height, self.thickness)


class Cup(ShapeBase):
    """A cup: a floor and a wall with a rounded rim, open at the top. Lengths are those of the middle of its wall."""

    type: Literal["cup"] = "cup"
    radius: Length
    """radius of the floor [m]"""
    height: Length
    """from the floor to the rim [m]"""
    thickness: Length
    """thickness of wall and floor [m]"""
    top_radius: Length | None = None
    """radius of the rim [m]; left out: as the floor"""

    @model_validator(mode="after")
    def _hollow(self) -> "Cup":
        if self.thickness >= (least := min(self.radius, self.top, self.height)):
            raise wrong(f"thickness is {self.thickness:g} m, expected less than radii and height ({least:g} m)")
        return self

    @property
    def top(self) -> float:
        """Radius of the rim [m]."""
        return self.radius if self.top_radius is None else self.top_radius

    def extent(self) -> tuple[float, float, float]:
        widest = 2 * max(self.radius, self.top) + self.thickness
        return widest, self.height + self.thickness, widest

    def volume(self) -> float:
        # Pappus: wall, floor, and half discs carried around edge and rim (the edge counted whole).
        slant = math.hypot(self.height, self.top - self.radius)
        wall = math.pi * (self.radius + self.top) * slant * self.thickness
        edges = math.pi**2 * self.thickness**2 / 4 * (self.radius + self.top + self.thickness)
        return wall + math.pi * self.radius**2 * self.thickness + edges

    def section(self) -> float:
        return math.pi * self.extent()[0] ** 2 / 4

    def thinnest(self) -> float:
        return self.thickness


class Plane(ShapeBase):
    """The half-space below local y = 0. Only for solids and sinks: it has no end."""

    type: Literal["plane"] = "plane"

    def extent(self) -> tuple[float, float, float]:
        return math.inf, math.inf, math.inf


class Union(ShapeBase):
    """Several shapes as one, smoothly blended when ``blend`` is given."""

    type: Literal["union"] = "union"
    parts: "list[Shape]" = Field(min_length=1)
    """the shapes, placed relative to the union's own frame"""
    blend: NonNegativeLength = 0.0
    """radius over which neighbouring parts melt together [m]"""

    def _corners(self) -> tuple[list[float], list[float]]:
        """Corners of the box around all parts, in the union's own frame [m]."""
        low, high = [math.inf] * 3, [-math.inf] * 3
        for part in self.parts:
            size, middle = part.extent(), part.middle()
            if any(part.rotation):  # turned any way, a part stays inside the ball around its place
                ball = math.hypot(*size) / 2 + math.hypot(*middle)
                size, middle = (2 * ball, 2 * ball, 2 * ball), (0.0, 0.0, 0.0)
            for axis in range(3):
                centre = part.position[axis] + middle[axis]
                low[axis] = min(low[axis], centre - size[axis] / 2 - self.blend)
                high[axis] = max(high[axis], centre + size[axis] / 2 + self.blend)
        return low, high

    def extent(self) -> tuple[float, float, float]:
        low, high = self._corners()
        return high[0] - low[0], high[1] - low[1], high[2] - low[2]

    def middle(self) -> tuple[float, float, float]:
        low, high = self._corners()
        return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2

    def volume(self) -> float:
        parts = sum(part.volume() for part in self.parts)
        # Blending fills the gaps between parts; twice their volume covers it for any radius up to their size.
        return min(math.prod(self.extent()), parts * (2 if self.blend else 1))

    def section(self) -> float:
        total = 0.0
        for part in self.parts:
            x, y, z = part.extent()
            if any(part.rotation):
                total += x * x + y * y + z * z  # no cut through it is larger than a square on its diagonal
            else:
                total += part.section() if part.position[1] == 0 else x * z
        width, _, depth = self.extent()
        return min(width * depth, total * (2 if self.blend else 1))

    def thinnest(self) -> float:
        return max(part.thinnest() for part in self.parts)


class Bear(ShapeBase):
    """The gummy bear."""

    type: Literal["bear"] = "bear"
    height: Length
    """from the feet to the tips of the ears [m]"""

    def extent(self) -> tuple[float, float, float]:
        return 0.75 * self.height, self.height, 0.6 * self.height

    def volume(self) -> float:
        # Counted with 360,000 particles: 0.1039 height³.
        return 0.1045 * self.height**3


class Mesh(ShapeBase):
    """A closed triangle mesh from a file."""

    type: Literal["mesh"] = "mesh"
    file: str
    """mesh file (stl, obj, ply, off, glb), relative to the scene file"""
    scale: PositiveNumber = 1.0
    """factor from the file's unit to metres"""

    @field_validator("file", mode="before")
    @classmethod
    def _existing_file(cls, value: Any, info: ValidationInfo) -> str:
        if not isinstance(value, (str, Path)) or not str(value):
            raise wrong(f'expected the name of a mesh file, e.g. "teapot.stl"; got {shown(value)}')
        folder = (info.context or {}).get("folder", ".")
        path = (Path(folder) / Path(value).expanduser()).resolve()
        if path.suffix.lower() not in MESH_SUFFIXES:
            raise wrong(f"expected a mesh file ending in {', '.join(MESH_SUFFIXES)}; got {shown(str(value))}")
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            raise wrong(f"expected an existing mesh file; {path} {what}")
        return str(path)

    def loaded(self) -> Any:
        """The checked mesh in metres (``solids.mesh_file.Loaded``), or the one message that says what is wrong with it."""
        from viscoil.solids.mesh_file import load  # only scenes with meshes pay for it

        return load(self.file, self.scale)

    def extent(self) -> tuple[float, float, float]:
        mesh = self.loaded()
        x, y, z = (float(a) for a in mesh.high - mesh.low)
        return x, y, z

    def middle(self) -> tuple[float, float, float]:
        mesh = self.loaded()
        x, y, z = (float(a) for a in (mesh.low + mesh.high) / 2)
        return x, y, z

    def volume(self) -> float:
        from viscoil.solids.mass import mass_properties

        mesh = self.loaded()
        return min(math.prod(self.extent()), 1.05 * mass_properties(mesh.vertices, mesh.triangles).volume)


Shape = Annotated[
    Box | Sphere | Capsule | Cylinder | Cone | Funnel | Torus | Bowl | Cup | Plane | Union | Bear | Mesh,
    Field(discriminator="type"),
]
Union.model_rebuild()

SHAPES: dict[str, type[ShapeBase]] = {
    model.model_fields["type"].default: model
    for model in (Box, Sphere, Capsule, Cylinder, Cone, Funnel, Torus, Bowl, Cup, Plane, Union, Bear, Mesh)
}
