"""Scenes at other sizes with the same dimensionless numbers: the one rule by which quantities follow the size.

Gravity g and densities stay what they are. Froude's number U²/(gL) then asks for speeds U ~ L^½ and times L/U ~ L^½, and all
others follow: Reynolds' ρUL/η for viscosities η ~ ρUL ~ L^(3/2), Weissenberg's λU/L for relaxation times λ ~ L^½, the ratio of
stress to weight G/(ρgL) for moduli G ~ L, Bond's ρgL²/σ for surface tensions σ ~ L². So each *kind* of quantity
(viscoil.units.KINDS) has one exponent, and which kind a key of a scene is, its model says.
"""

from typing import Any, get_args

# Of the length L, for every kind of quantity.
EXPONENTS = {
    "number": 0.0, "angle": 0.0, "acceleration": 0.0, "density": 0.0, "length": 1.0, "time": 0.5, "speed": 0.5,
    "angular velocity": -0.5, "rate": -0.5, "rate squared": -1.0, "per length": -1.0, "viscosity": 1.5, "modulus": 1.0,
    "surface tension": 2.0, "spring stiffness": 2.0, "mass": 3.0,
}  # fmt: skip
# Plain numbers of the models whose unit depends on other keys: nobody could say how they follow.
AMBIGUOUS = {
    ("Body", "damping"), ("Body", "stiffness"), ("Body", "range"), ("Body", "drive"), ("Expect", "value"),
    ("IISPHParams", "wall_viscosity"), ("Scene", "robot"), ("Scene", "actor"), ("Mesh", "scale"),
}  # fmt: skip


def scaled(scene: Any, size: float) -> dict[str, Any]:
    """A scene (nested tables, as in a TOML file, or a Scene) with all lengths times ``size`` and everything else following.

    Only what the scene says is changed: a default with a dimension that does not follow the size by itself shows.
    """
    from viscoil.scene.schema import Scene

    return _scaled(Scene(**scene) if isinstance(scene, dict) else scene, size)


def _scaled(model: Any, size: float) -> dict[str, Any]:
    """The keys of a model that were set, and those that say which model it is."""
    table = {}
    for name in sorted(model.model_fields_set | ({"type", "method"} & set(type(model).model_fields))):
        if (type(model).__name__, name) in AMBIGUOUS:
            raise ValueError(f"{type(model).__name__}.{name}: its unit depends on other keys, so it cannot follow the size")
        field = type(model).model_fields[name]
        kinds = {meta.kind for meta in _metadata(field) if hasattr(meta, "kind")}
        factor = size ** EXPONENTS[kinds.pop()] if kinds else 1.0
        table[name] = _times(getattr(model, name), factor, size)
    return table


def _metadata(field: Any) -> list[Any]:
    """Of a field's annotation, also where it may be left out: ``Annotated[float, Quantity("length")] | None``."""
    return [*field.metadata, *(meta for part in get_args(field.annotation) for meta in getattr(part, "__metadata__", ()))]


def _times(value: Any, factor: float, size: float) -> Any:
    """A value of the scene, models inside of it included."""
    if hasattr(value, "model_fields_set"):
        return _scaled(value, size)
    if isinstance(value, dict):
        return {key: _times(item, factor, size) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_times(item, factor, size) for item in value)
    if isinstance(value, float) and factor != 1.0:
        return value * factor
    return value
