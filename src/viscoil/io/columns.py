"""Fields as columns: numbers and 3-vectors only, which is what exchange formats and their readers understand.

A tensor (n, 3, 3) becomes three vectors, its rows: ``stress_x``, ``stress_y``, ``stress_z``. Anything else of several
components becomes one number each: ``conformation_0`` ... ``conformation_5``. The layout remembers what it was.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Layout = dict[str, dict[str, Any]]  # field -> {"type": name of the NumPy type, "shape": shape of one row}


def layout(fields: dict[str, np.ndarray]) -> Layout:
    """What :func:`join` needs to put the columns together again."""
    return {name: {"type": values.dtype.name, "shape": list(values.shape[1:])} for name, values in fields.items()}


def names(field: str, shape: tuple[int, ...] | list[int], vectors: bool = True) -> list[str]:
    """Names of the columns of a field. ``vectors``: its type may stand in columns of three (floats may)."""
    shape = tuple(shape)
    if shape == () or (shape == (3,) and vectors):
        return [field]
    if shape == (3,) or (shape == (3, 3) and vectors):
        return [f"{field}_{axis}" for axis in "xyz"]
    return [f"{field}_{k}" for k in range(int(np.prod(shape)))]


def split(field: str, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The columns of a field: (n,) numbers or, for floats, (n, 3) vectors."""
    vectors = values.dtype.kind == "f"
    found = names(field, values.shape[1:], vectors)
    if len(found) == 1:
        return [(found[0], values.reshape(len(values), -1)[:, 0] if values.shape[1:] == (1,) else values)]
    pieces = values.reshape(len(values), len(found), -1) if len(values) else values.reshape(0, len(found), 1)
    if values.shape[1:] != (3, 3) or not vectors:
        return [(name, np.ascontiguousarray(pieces[:, k, 0])) for k, name in enumerate(found)]
    return [(name, np.ascontiguousarray(values[:, k])) for k, name in enumerate(found)]


def join(about: Layout, column: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """The fields of a layout; ``column`` gives the values of a column by name."""
    fields = {}
    for name, form in about.items():
        kind, shape = np.dtype(form["type"]), tuple(form["shape"])
        pieces = [np.asarray(column(part)) for part in names(name, shape, kind.kind == "f")]
        values = pieces[0] if len(pieces) == 1 else np.stack(pieces, axis=1)
        fields[name] = np.ascontiguousarray(values.reshape(len(pieces[0]), *shape).astype(kind))
    return fields
