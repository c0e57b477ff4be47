"""The scene: everything a simulation is made of, checked, in SI units. TOML files and Python use the same classes."""

from typing import Any, Literal

from pydantic import BaseModel, Field, SerializeAsAny, StrictStr, field_validator
from pydantic_core import ValidationError

from viscoil import solvers
from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed
from viscoil.material import PRESETS, Material
from viscoil.model import Model, NestedProblems, Problem, joined, problems
from viscoil.scene.actors import Actor
from viscoil.scene.bodies import Body, Robot
from viscoil.scene.mesh_checks import mesh_problems
from viscoil.scene.particle_solids import ParticleSolid
from viscoil.scene.parts import Domain, Emitter, Expect, Figure, Fluid, Keyframe, Output, Picture, Sink, Solid, TimeSettings
from viscoil.scene.robots import robot_solids
from viscoil.scene.shapes import Shape, Union
from viscoil.scene.size import Estimate, check_size, estimate
from viscoil.scene.toml import write
from viscoil.units import Acceleration, Length, shown, wrong

__all__ = [
    "Actor", "Body", "Domain", "Emitter", "Expect", "Figure", "Fluid", "Keyframe", "Material", "Output", "ParticleSolid",
    "Picture", "Robot", "Scene", "Shape", "Sink", "Solid", "TimeSettings",
]  # fmt: skip


def _solver(value: Any) -> Any:
    """Turns a [solver] table into the parameters of its method."""
    if isinstance(value, BaseModel):
        return value
    names = list(solvers.SOLVERS)
    if not isinstance(value, dict):
        near = closest(str(value), names) or "pbf"
        raise wrong(f'expected a table with a method, e.g. solver = {{ method = "{near}" }}; got {shown(value)}')
    method = value.get("method", "pbf")
    if method not in names:
        text = f"unknown solver {shown(method)}.{did_you_mean(str(method), names)} Expected one of: {listed(names)}"
        raise NestedProblems([Problem("method", text, f"one of {listed(names)}", closest(str(method), names))])
    params = solvers.params_class(method)
    data = dict(value) if "method" in params.model_fields else {k: v for k, v in value.items() if k != "method"}
    try:
        # Checked here and not by the class itself, so that all wrong keys of a scene are reported together.
        return params.__pydantic_validator__.validate_python(data)
    except ValidationError as error:
        found = problems(params, error)
        for problem in found:
            problem.text = problem.text.replace("unknown key", f"the solver {method} has no key", 1)
            if closest(problem.key, ["method"]) and not problem.suggestion:
                problem.suggestion = "method"
                problem.text = problem.text.replace(" Expected", ' Did you mean "method"? Expected', 1)
        raise NestedProblems(found) from None


class Scene(Model):
    """A complete simulation. Made by ``viscoil.load`` or in Python; ``check()`` looks at the whole."""

    title: StrictStr = ""
    """one line"""
    description: StrictStr = ""
    """what is to be seen"""
    quality: StrictStr = Field(default="quick", frozen=True)
    """name of the profile that was applied; "quick" is the file as written"""
    spacing: Length
    """distance d between particles at rest [m]"""
    gravity: Acceleration = (0.0, -9.81, 0.0)
    """acceleration of gravity [m/s²]"""
    up: Literal["y", "z"] = "y"
    """for pictures and exported files"""
    domain: Domain | None = None
    """periodic box; left out: unbounded"""
    time: TimeSettings = Field(default_factory=TimeSettings)
    """frames and time steps"""
    solver: SerializeAsAny[BaseModel] = Field(default_factory=dict, validate_default=True)
    """method and its own parameters"""
    material: dict[str, Material] = Field(default_factory=dict)
    """[material.NAME] tables"""
    fluid: list[Fluid] = Field(default_factory=list)
    """[[fluid]] volumes filled at the start"""
    emitter: list[Emitter] = Field(default_factory=list)
    """[[emitter]] nozzles"""
    sink: list[Sink] = Field(default_factory=list)
    """[[sink]] volumes in which particles disappear"""
    solid: list[Solid] = Field(default_factory=list)
    """[[solid]] obstacles, containers and bodies"""
    robot: list[Robot] = Field(default_factory=list)
    """[[robot]] mechanisms from MJCF or URDF files"""
    actor: list[Actor] = Field(default_factory=list)
    """[[actor]] figures that stand, wave, step and walk"""
    particle_solid: list[ParticleSolid] = Field(default_factory=list)
    """[[particle_solid]] rigid and soft bodies made of particles"""
    output: Output = Field(default_factory=Output)
    """what is written to disk"""
    expect: list[Expect] = Field(default_factory=list)
    """[[expect]] numbers the scene promises"""
    figure: Figure | None = None
    """the published figure the scene follows"""
    picture: Picture | None = None
    """the moment and the view that stand for the scene"""

    @field_validator("material", mode="before")
    @classmethod
    def _named_after_preset(cls, value: Any) -> Any:
        """[material.honey] without a density means the preset honey, changed."""
        if not isinstance(value, dict):
            return value
        return {
            name: {"preset": name, **table}
            if isinstance(table, dict) and name in PRESETS and not {"preset", "density"} & set(table)
            else table
            for name, table in value.items()
        }

    @field_validator("solver", mode="before")
    @classmethod
    def _method_parameters(cls, value: Any) -> Any:
        return _solver(value)

    @property
    def method(self) -> str:
        """Name of the solver in the registry."""
        for name, info in solvers.SOLVERS.items():
            if type(self.solver) is solvers.params_class(name) or type(self.solver).__name__ == info.name + "Params":
                return name
        raise SceneError(f"solver: {type(self.solver).__name__} does not belong to a known solver", key="solver")

    def __repr__(self) -> str:
        if "spacing" not in vars(self):
            return "<Scene: not made yet>"  # what debuggers see while its keys are being checked
        kinds = ("fluid", "emitter", "particle_solid", "solid", "robot", "actor", "sink")
        counts = [f"{len(found)} {kind}{'s' if len(found) > 1 else ''}" for kind in kinds if (found := getattr(self, kind))]
        holds = ", ".join(counts).replace("_", " ") or "empty"
        time = f"{self.end_time:.6g} s in {self.time.frames} frames"
        title = f' "{self.title}"' if self.title else ""
        return f'<Scene{title}: {self.method}, spacing {self.spacing:g} m, {time}; {holds}>'

    __str__ = __repr__  # pydantic's would print every key

    def material_named(self, name: str) -> Material:
        """The material a fluid or emitter refers to: the scene's own, else the preset of that name."""
        if name in self.material:
            return self.material[name]
        if name in PRESETS:
            return PRESETS[name]
        for number, solid in enumerate(self.particle_solid):
            if name == solid.called(number):
                return solid.material()
        problem = _material_problem(name, self.material, "material")
        raise joined([problem], self.title or "scene")

    def fluid_materials(self) -> dict[str, Material]:
        """Materials in the order in which fluids, then emitters, first name them."""
        return {item.material: self.material_named(item.material) for item in [*self.fluid, *self.emitter]}

    def used_materials(self) -> dict[str, Material]:
        """Materials in the order in which fluids, then emitters, first name them; then one for each particle solid."""
        bodies = {solid.called(number): solid.material() for number, solid in enumerate(self.particle_solid)}
        return self.fluid_materials() | bodies

    def every_solid(self) -> list[Solid]:
        """The scene's own solids and those its figures and robots are made of: the same objects until one of them changes."""
        limbs = [limb for k, actor in enumerate(self.actor) for limb in actor.limbs(self.up, k)]
        return [*self.solid, *limbs, *(robot_solids(self) if self.robot else ())]

    def problems(self) -> list[Problem]:
        """What is wrong with the scene as a whole: references, emptiness, sizes that cannot work."""
        found = []
        if not self.fluid and not self.emitter and not self.particle_solid:
            text = "the scene has no particles; expected at least one [[fluid]], [[emitter]] or [[particle_solid]]"
            found.append(Problem("", text))
        if broken := mesh_problems(self):
            return found + broken  # sizes of what cannot be read need not be asked for
        found += self._particle_solid_problems()
        for kind, items in (("fluid", self.fluid), ("emitter", self.emitter)):
            for index, item in enumerate(items):
                if item.material not in self.material and item.material not in PRESETS:
                    found.append(_material_problem(item.material, self.material, f"{kind}.{index}.material"))
                found += _too_small(f"{kind}.{index}.shape", item.shape, self.spacing, section=kind == "emitter")
        if not self.fluid and self.emitter and all(e.start >= self.end_time for e in self.emitter):
            found.append(Problem("emitter.0.start", f"no emitter starts before the end at {self.end_time:g} s"))
        names = [solid.name for solid in self.solid if solid.name]
        for name in sorted({name for name in names if names.count(name) > 1}):
            found.append(Problem("solid", f'two solids are called "{name}"; expected different names'))
        found += _parent_problems(self.solid)
        titles = [robot.title for robot in self.robot]
        for title in sorted({title for title in titles if titles.count(title) > 1}):
            found.append(Problem("robot", f'two robots are called "{title}"; expected different names'))
        from viscoil.particles import DERIVED, FIELDS  # here: it starts the kernel compiler, as the solver's keys did before

        known = [name for name, row in {**FIELDS, **DERIVED}.items() if row.exported]
        for index, name in enumerate(self.output.fields):
            if name in DERIVED and not solvers.solver_class(self.method).has_stress:
                text = f'"{name}": {solvers.without_stress(self.method)}'
                found.append(Problem(f"output.fields.{index}", text, "a quantity that the method has"))
            if name not in known:
                text = f'no quantity called "{name}".{did_you_mean(name, known)} Expected one of: {listed(known)}'
                found.append(Problem(f"output.fields.{index}", text, "a known quantity", closest(name, known)))
        return found

    def _particle_solid_problems(self) -> list[Problem]:
        """Names that mean something else, shapes too thin, methods that cannot hold bodies together."""
        found, names = [], [solid.called(number) for number, solid in enumerate(self.particle_solid)]
        for number, (solid, name) in enumerate(zip(self.particle_solid, names, strict=True)):
            if name in self.material or name in PRESETS or names.index(name) != number:
                text = f'the name "{name}" is taken by a material or another particle solid; expected a name of its own'
                found.append(Problem(f"particle_solid.{number}.name", text))
            found += _too_small(f"particle_solid.{number}.shape", solid.shape, self.spacing, section=False)
        if names and not solvers.solver_class(self.method).holds_clusters:
            able = [name for name in solvers.SOLVERS if solvers.solver_class(name).holds_clusters]
            text = f'method "{self.method}" does not know particle solids; expected one of: {listed(able)}'
            found.append(Problem("solver.method", text, f"one of {listed(able)}"))
        return found

    @property
    def end_time(self) -> float:
        """Simulated time at the last frame [s]."""
        return self.time.frames * self.time.frame_time

    def check(self, file: str | None = None) -> None:
        """Raises ``SceneError`` naming everything that is wrong with the scene as a whole."""
        fresh = self.to_dict()
        found = []
        try:
            # Lists can be changed in place from Python without any check: look at everything again.
            type(self).__pydantic_validator__.validate_python(fresh)
        except ValidationError as error:
            found = problems(type(self), error)
        found = found or self.problems()
        if found:
            raise joined(found, file or self.title or "scene", file)

    def estimate(self) -> Estimate:
        """Upper estimate of particles and memory, from volumes alone; nothing is allocated."""
        return estimate(self)

    def check_size(self, available: int | None = None) -> Estimate:
        """Refuses, with numbers, a scene that cannot fit into memory; ``available`` in bytes (None: ask the system)."""
        self.check()
        return check_size(self, available)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a TOML file would hold them: nothing is left to defaults, unset keys are left out."""
        data = self.model_dump(exclude_none=True, warnings=False)
        data = {key: value for key, value in data.items() if value not in ([], {}, "")}
        data["solver"] = {"method": self.method, **data["solver"]}
        for name, material in self.material.items():
            if not material.changes:
                del data["material"][name]["changes"], data["material"][name]["interpolation"]
            if material.preset and any(
                getattr(material, key) is None and getattr(PRESETS[material.preset], key) is not None
                for key in Material.model_fields
                if key != "preset"
            ):
                del data["material"][name]["preset"]  # reading it again would bring back what was removed
        return data

    def to_toml(self) -> str:
        """The scene as a file that loads to the same scene."""
        return write(self.to_dict())

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        """JSON Schema of scene files, with every solver's own keys and the profiles table."""
        schema = super().model_json_schema(**options)
        schema.get("$defs", {}).pop("BaseModel", None)  # stands for "any solver's parameters", spelt out below
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        tables = []
        for name in solvers.SOLVERS:
            table = solvers.params_class(name).model_json_schema()
            schema.setdefault("$defs", {}).update(table.pop("$defs", {}))
            method = {"const": name, "type": "string"}
            table["properties"] = {**table.get("properties", {}), "method": method}
            tables.append({**table, "required": [*table.get("required", []), "method"]})
        schema["properties"]["solver"] = {"anyOf": tables, "description": "method and its own parameters"}
        schema["properties"]["profiles"] = {
            "type": "object", "additionalProperties": {"type": "object"},
            "description": "named tables of changes, applied with quality = NAME; extends = the profile that is applied first",
        }  # fmt: skip
        return schema


def _material_problem(name: str, own: dict[str, Material], key: str) -> Problem:
    names = [*own, *PRESETS]
    text = f'unknown material "{name}".{did_you_mean(name, names)} Expected a [material.NAME] of the scene or a preset'
    return Problem(key, f"{text}: {listed(names)}", "a known material", closest(name, names))


def _parent_problems(solids: list[Solid]) -> list[Problem]:
    """Bodies fastened to solids that do not exist, or to themselves."""
    found, parents = [], {}
    names = [solid.name for solid in solids if solid.name]
    for index, solid in enumerate(solids):
        parent = solid.body.parent if solid.body else None
        if parent is None:
            continue
        parents[solid.name] = parent
        if parent not in names:
            text = f'no solid called "{parent}".{did_you_mean(parent, names)} Expected the name of another solid'
            text += f": {listed(names)}" if names else "; none has a name"
            found.append(Problem(f"solid.{index}.body.parent", text, "the name of another solid", closest(parent, names)))
        seen = {solid.name}
        while parent in parents and parent not in seen:
            seen.add(parent)
            parent = parents[parent]
        if solid.name and parent == solid.name:
            found.append(Problem(f"solid.{index}.body.parent", "fastened to itself, directly or through others; expected a "
                                 "chain that ends at a body without parent"))  # fmt: skip
    return found


def _too_small(key: str, shape: Any, spacing: float, section: bool) -> list[Problem]:
    """A shape thinner than one particle holds none."""
    if not isinstance(shape, Union):
        size = shape.extent()
        thin = min(size[0], size[2]) if section else shape.thinnest()
    else:
        thin = shape.thinnest()
    if thin * (1 + 1e-9) >= spacing:
        return []
    text = f"{thin:g} m thick, thinner than one particle (spacing {spacing:g} m), so it would hold no particles"
    return [Problem(key, f"{text}; expected a larger shape or a smaller spacing", "a larger shape")]
