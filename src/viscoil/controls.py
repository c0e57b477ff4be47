"""Live controls: which numbers of a scene can be changed while it runs, found from the declarations beside the fields.

A field of a model becomes a control by a ``Slider`` in its annotation; nothing else has to be written anywhere. A control
knows its scale, so that whatever shows it (a slider in a page, a knob of a notebook) only has to offer whole positions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

from pydantic import BaseModel

from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed
from viscoil.material import MAXWELL, PRESETS, Material
from viscoil.properties import CHANGING, changed_names
from viscoil.units import KINDS, Count, Quantity, Slider

_WORDS = {"preset", "source"}  # say where a material is from, not what it is
_STICKY = {"stick_distance", "stick_stiffness"}  # keys of solids for methods whose materials have a stickiness
POSITIONS = 200  # of a slider over a continuous range
GRAVITY = {  # controls of the gravity vector, which scenes write as three numbers
    "strength": ("m/s²", 0.0, 30.0, "how strong gravity is"),
    "tilt sideways": ("degrees", -90.0, 90.0, "gravity turned towards +x: like a tank that is tilted"),
    "tilt away": ("degrees", -90.0, 90.0, "gravity turned towards the depth of the picture"),
}


def readable(value: float) -> str:
    """Three digits, without powers of ten where people would not write them: 1420, 0.015, 2e+06."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e5 else f"{value:.3g}".replace("inf", "∞")


@dataclass(frozen=True)
class Control:
    """One number that may be changed while a simulation runs."""

    path: str  # dotted key of the scene, e.g. "material.honey.viscosity"
    name: str  # the field's name, in words
    unit: str  # SI, "" for plain numbers
    help: str
    low: float
    high: float
    log: bool
    off: bool  # the lowest position means 0
    whole: bool  # a whole number
    value: float | None  # now; None: not set
    optional: bool = False  # may be left to the method: None
    words: tuple[tuple[str, float], ...] = ()  # names of values beyond the range, e.g. no-slip

    def _before(self) -> list[float | None]:
        """Values of the positions below the range."""
        return [*([None] if self.optional else []), *([0.0] if self.off and self.low > 0 else [])]

    def _range(self) -> tuple[float, float]:
        """The range, wide enough for the present value."""
        value = self.value if self.value is not None and math.isfinite(self.value) else self.low
        usable = value > 0 if self.log else True
        return (min(self.low, value), max(self.high, value)) if usable else (self.low, self.high)

    def _steps(self) -> int:
        low, high = self._range()
        return min(POSITIONS, round(high - low)) if self.whole and not self.log else POSITIONS

    @property
    def last(self) -> int:
        """The highest position; the lowest is 0."""
        return len(self._before()) + self._steps() + len(self.words)

    def at(self, position: int) -> float | None:
        """The value of a slider's position, rounded to three digits as people would write it."""
        before = self._before()
        position = min(max(int(position), 0), self.last)
        if position < len(before):
            return before[position]
        beyond = position - len(before) - self._steps()
        if beyond > 0:
            return self.words[beyond - 1][1]
        share, (low, high) = (position - len(before)) / self._steps(), self._range()
        value = low * (high / low) ** share if self.log else low + share * (high - low)
        return float(round(value)) if self.whole else float(f"{value:.3g}")

    def position(self, value: float | None) -> int:
        """The position that is nearest to a value."""
        before, (low, high) = self._before(), self._range()
        if value is None:
            return 0
        names = [special for _, special in self.words]
        if value in names:
            return len(before) + self._steps() + 1 + names.index(value)
        if value in before or value < low:
            return before.index(value) if value in before else len(before)
        value = min(value, high)
        share = math.log(value / low) / math.log(high / low) if self.log else (value - low) / (high - low)
        return len(before) + round(share * self._steps())

    def text(self, value: float | None) -> str:
        """A value as people read it, with its unit."""
        if value is None:
            return "automatic"
        for word, special in self.words:
            if value == special:
                return word
        if value == 0 and self.off:
            return "off"
        number = f"{value:.0f}" if self.whole else readable(value)
        return f"{number} {self.unit}".strip().replace(" degrees", "°")

    def with_value(self, value: float | None) -> "Control":
        """The same control of another moment."""
        return replace(self, value=value)


@dataclass(frozen=True)
class Group:
    """The controls of one thing in the scene."""

    title: str
    controls: list[Control]


def declared(model: type[BaseModel]) -> Iterator[tuple[str, Slider, Quantity | Count]]:
    """(field, slider, quantity) of all fields of ``model`` that may be changed live."""
    for name, field in model.model_fields.items():
        found = [*field.metadata, *_metadata(field.annotation)]
        slider = next((item for item in found if isinstance(item, Slider)), None)
        quantity = next((item for item in found if isinstance(item, Quantity | Count)), None)
        if slider and quantity:
            yield name, slider, quantity


def _metadata(annotation: Any) -> list[Any]:
    """Everything in the Annotated parts of a type such as ``Annotated[float, ...] | None``."""
    found = list(getattr(annotation, "__metadata__", ()))
    for part in get_args(annotation):
        if hasattr(part, "__metadata__"):
            found += _metadata(part)
    return found


def controls(item: BaseModel, path: str, only: frozenset[str] | None = None) -> list[Control]:
    """The controls of one model instance, in the order of its fields; ``only`` these fields when given."""
    rows = []
    for name, slider, quantity in declared(type(item)):
        if only is not None and name not in only:
            continue
        whole = isinstance(quantity, Count)
        unit = "" if isinstance(quantity, Count) else ("s" if quantity.kind == "time" else KINDS[quantity.kind].si)
        field = type(item).model_fields[name]
        value = getattr(item, name)
        rows.append(
            Control(
                f"{path}.{name}" if path else name, name.replace("_", " "), unit, field.description or "", slider.low,
                slider.high, slider.log, slider.off, whole, None if value is None else float(value),
                optional=field.default is None and not field.is_required(),
                words=() if isinstance(quantity, Count) else quantity.words,
            )
        )  # fmt: skip
    return rows


@dataclass(frozen=True)
class Ingredient:
    """A material of a scene, as a palette shows it."""

    name: str  # in the scene
    preset: str  # that it is, unchanged; "" when it is none
    colour: tuple[float, float, float]
    text: str  # its numbers


def ingredients(scene: Any) -> tuple[Ingredient, ...]:
    """The materials of a scene."""
    units = {"density": "kg/m³", "viscosity": "Pa s", "relaxation_time": "s", "modulus": "Pa"}
    found = []
    for name, material in scene.fluid_materials().items():
        known = PRESETS.get(material.preset or name)
        same = known is not None and known.model_dump(exclude=_WORDS) == material.model_dump(exclude=_WORDS)
        numbers = [f"{readable(value)} {unit}" for key, unit in units.items() if (value := getattr(material, key)) is not None]
        found.append(Ingredient(name, (material.preset or name) if same else "", material.colour, " · ".join(numbers)))
    return tuple(found)


# --- a whole scene ---------------------------------------------------------------------------------------------------
def scene_controls(scene: Any) -> list[Group]:
    """Everything that can be changed while ``scene`` runs, by what it belongs to."""
    from viscoil.solvers import solver_class  # here: it loads the kernel compiler

    honours = frozenset(solver_class(scene.method).honours)
    groups = [Group("gravity", _gravity_controls(scene)), Group(scene.method, controls(scene.solver, "solver"))]
    for name, material in scene.fluid_materials().items():
        groups.append(Group(name, _material_controls(material, f"material.{name}", honours)))
    groups += [Group(f"nozzle {k}", controls(e, f"emitter.{k}")) for k, e in enumerate(scene.emitter)]
    for k, solid in enumerate(scene.solid):  # nothing to drag that the method leaves out
        acted_on = frozenset(type(solid).model_fields) - (frozenset() if "stickiness" in honours else _STICKY)
        groups.append(Group(solid.name or f"solid {k}", controls(solid, f"solid.{k}", acted_on)))
    return [group for group in groups if group.controls]


def _material_controls(material: Any, path: str, honours: frozenset[str]) -> list[Control]:
    """All that the method acts on; of viscosity, relaxation time and modulus all three, because they follow from two."""
    found = controls(material, path, honours)
    derived = dict(zip(MAXWELL, material.maxwell(), strict=True))
    if material.relaxation_time is None and math.isinf(derived["modulus"]):
        derived = {}  # Newtonian: nothing follows
    for index, control in enumerate(found):
        key = control.path.rsplit(".", 1)[1]
        if control.value is None and key in derived:
            found[index] = control.with_value(derived[key])
    return found


def _gravity_controls(scene: Any) -> list[Control]:
    values = _tilted(scene)
    return [
        Control(f"gravity.{name}", name, unit, text, low, high, False, False, False, value)
        for (name, (unit, low, high, text)), value in zip(GRAVITY.items(), values, strict=True)
    ]


def _axes(scene: Any) -> tuple[int, int]:
    """(axis that points up, horizontal axis that is not x)."""
    return (1, 2) if scene.up == "y" else (2, 1)


def _tilted(scene: Any) -> tuple[float, float, float]:
    """Strength [m/s²] and the two tilts [degrees] of gravity."""
    up, depth = _axes(scene)
    g = scene.gravity
    strength = math.hypot(*g)
    if strength == 0:
        return 0.0, 0.0, 0.0
    sideways = math.degrees(math.asin(max(-1.0, min(1.0, g[0] / strength))))
    return strength, sideways, math.degrees(math.atan2(g[depth], -g[up]))


def _with_gravity(scene: Any, name: str, value: float) -> tuple[float, float, float]:
    if name not in GRAVITY:
        raise SceneError(f'gravity has no "{name}".{did_you_mean(name, GRAVITY)} Expected one of: {listed(GRAVITY)}')
    numbers = dict(zip(GRAVITY, _tilted(scene), strict=True)) | {name: float(value)}
    strength, sideways, away = numbers.values()
    a, b = math.radians(sideways), math.radians(away)
    up, depth = _axes(scene)
    vector = [0.0, 0.0, 0.0]
    vector[0], vector[up], vector[depth] = math.sin(a), -math.cos(a) * math.cos(b), math.cos(a) * math.sin(b)
    return tuple(round(strength * part, 9) + 0.0 for part in vector)  # type: ignore[return-value]


def apply(scene: Any, path: str, value: Any) -> Callable[[], None]:
    """Changes one key of a scene, checked as in a file; returns what takes the change back.

    ``path`` is a dotted key (``solver.xsph``, ``material.honey.viscosity``, ``solid.0.friction``) or one of the three
    controls of gravity. Materials that are presets become the scene's own first.
    """
    if path.startswith("gravity."):
        before = scene.gravity
        scene.gravity = _with_gravity(scene, path.split(".", 1)[1], value)
        return lambda: setattr(scene, "gravity", before)
    *parents, last = path.split(".")
    if parents[:1] == ["material"] and ".".join(parents[1:]) not in scene.material:
        name = ".".join(parents[1:])
        own = scene.material_named(name).model_copy(deep=True)
        _set(own, last, value, path)
        scene.material[name] = own
        return lambda: scene.material.pop(name, None)
    return _set(_owner(scene, parents, path), last, value, path)


def _set(owner: Any, key: str, value: Any, path: str) -> Callable[[], None]:
    """Sets a key of a part of the scene; returns what takes the change back."""
    if isinstance(owner, BaseModel) and key not in type(owner).model_fields:
        known = list(type(owner).model_fields)
        raise SceneError(f'{path}: no key "{key}".{did_you_mean(key, known)} Expected one of: {listed(known)}', key=path)
    if isinstance(owner, Material):
        return _set_preset(owner, value) if key == "preset" and value is not None else _set_property(owner, key, value)
    before = getattr(owner, key)
    setattr(owner, key, value)
    return lambda: setattr(owner, key, before)


def _set_preset(material: Material, name: Any) -> Callable[[], None]:
    """Makes a material another one altogether, colour and look included; its keyframes are gone."""
    before = dict(vars(material))
    vars(material).update(vars(type(material).model_validate({"preset": name}).model_copy(deep=True)))
    return lambda: vars(material).update(before)


def _set_property(material: Material, key: str, value: Any) -> Callable[[], None]:
    """Sets a number of a material by hand: its keyframes are gone, and of viscosity, relaxation time and modulus one follows.

    Viscosity and relaxation time are what fluids are described by, so modulus follows; a solid, or a fluid that was given a
    modulus by hand, keeps its modulus.
    """
    before = dict(vars(material))

    def back() -> None:
        vars(material).update(before)

    changed = dict(before) | {key: value}
    gone = {key}
    if key in MAXWELL and value is not None:
        eta, lam, modulus = (before[name] for name in MAXWELL)
        solid = modulus is not None and eta is None and lam in (None, math.inf)
        if key == "relaxation_time" and value == 0 and eta is None and modulus and not solid:
            changed["viscosity"], eta = modulus * lam, modulus * lam  # forgetting at once, it flows as before
        follows = {
            "viscosity": "relaxation_time" if solid or not lam else "modulus",
            "relaxation_time": "viscosity" if modulus is not None and eta is None else "modulus",
            "modulus": "relaxation_time" if eta is not None and not lam else "viscosity",
        }[key]
        changed[follows] = None
        gone.add(follows)
    kept = [change.model_copy(update=dict.fromkeys(gone & set(CHANGING))) for change in material.changes]
    changed["changes"] = kept if changed_names(kept) else []
    fresh = type(material).model_validate({name: changed[name] for name in type(material).model_fields if name != "preset"})
    vars(material).update({name: getattr(fresh, name) for name in type(material).model_fields if name != "preset"})
    return back


def apply_all(scene: Any, changes: dict[str, Any]) -> Callable[[], None]:
    """Changes several keys of a scene, all or none; returns what takes them back."""
    undo: list[Callable[[], None]] = []

    def back() -> None:
        while undo:
            undo.pop()()

    try:
        for path, value in changes.items():
            undo.append(apply(scene, path, value))
    except SceneError:
        back()
        raise
    return back


def only_properties(changes: dict[str, Any]) -> bool:
    """Whether these keys are numbers of materials that solvers take over without anything being built anew."""
    return all(path.startswith("material.") and path.rsplit(".", 1)[-1] in CHANGING for path in changes)


def _owner(scene: Any, parts: list[str], path: str) -> Any:
    """The model that holds the last key of a path."""
    item, rest = scene, list(parts)
    while rest:
        if isinstance(item, list):
            index = rest.pop(0)
            if not index.isdigit() or int(index) >= len(item):
                raise SceneError(f"{path}: there is no item {index} (there are {len(item)}, counted from 0)", key=path)
            item = item[int(index)]
        elif isinstance(item, dict):  # names of materials may hold dots themselves
            name = ".".join(rest)
            if name not in item:
                raise SceneError(f'{path}: no "{name}".{did_you_mean(name, item)} Expected one of: {listed(item)}', key=path)
            item, rest = item[name], []
        else:
            name = rest.pop(0)
            if not isinstance(item, BaseModel) or name not in type(item).model_fields:
                known = list(type(item).model_fields) if isinstance(item, BaseModel) else []
                raise SceneError(f'{path}: no key "{name}".{did_you_mean(name, known)}', key=path)
            item = getattr(item, name)
    return item
