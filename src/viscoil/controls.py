"""Live controls: which numbers of a scene can be changed while it runs, found from the declarations beside the fields.

A field of a model becomes a control by a ``Slider`` in its annotation; nothing else has to be written anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from viscoil.units import KINDS, Count, Quantity, Slider


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
        text = type(item).model_fields[name].description or ""
        value = getattr(item, name)
        rows.append(
            Control(
                f"{path}.{name}" if path else name, name.replace("_", " "), unit, text, slider.low, slider.high,
                slider.log, slider.off, whole, None if value is None else float(value),
            )
        )  # fmt: skip
    return rows
