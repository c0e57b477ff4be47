"""Fields as columns: numbers and 3-vectors only, which is what exchange formats and their readers understand.

A tensor (n, 3, 3) becomes three vectors, its rows: ``stress_x``, ``stress_y``, ``stress_z``. Anything else of several
components becomes one number each: ``conformation_0`` ... ``conformation_5``. Where even vectors are too much, a vector
becomes ``velocity_x``, ``velocity_y``, ``velocity_z`` and a tensor nine numbers. The layout remembers what it was.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Layout = dict[str, dict[str, Any]]  # field -> {"type": name of the NumPy type, "shape": shape of one row}


def von_mises(stress: np.ndarray) -> np.ndarray:
    """√(3/2 s:s) with the deviator s of stresses (n, 3, 3): (n,) in the unit of the stress. Of a pressure alone it is 0."""
    symmetric = (stress + stress.transpose(0, 2, 1)) / 2
    mean = np.trace(symmetric, axis1=1, axis2=2)[:, None, None] / 3
    deviator = symmetric - mean * np.eye(3, dtype=symmetric.dtype)
    return np.sqrt(1.5 * np.einsum("nij,nij->n", deviator, deviator))


def with_scalars(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The fields, and beside a stress its von Mises equivalent: a number that programs without tensors can colour by."""
    stress = fields.get("stress")
    if stress is None or stress.shape[1:] != (3, 3) or "stress_mises" in fields:
        return fields
    return {**fields, "stress_mises": von_mises(stress)}


def layout(fields: dict[str, np.ndarray]) -> Layout:
    """What :func:`join` needs to put the columns together again."""
    return {name: {"type": values.dtype.name, "shape": list(values.shape[1:])} for name, values in fields.items()}


def names(field: str, form: dict[str, Any], vectors: bool = True) -> list[str]:
    """Names of the columns of a field. ``vectors``: columns of three floats are welcome."""
    shape = tuple(form["shape"])
    vectors = vectors and np.dtype(form["type"]).kind == "f"
    if shape == () or (shape == (3,) and vectors):
        return [field]
    if shape == (3,) or (shape == (3, 3) and vectors):
        return [f"{field}_{axis}" for axis in "xyz"]
    return [f"{field}_{k}" for k in range(int(np.prod(shape)))]


def split(field: str, values: np.ndarray, vectors: bool = True) -> list[tuple[str, np.ndarray]]:
    """The columns of a field: (n,) numbers or, for floats and with ``vectors``, (n, 3) vectors."""
    found = names(field, layout({field: values})[field], vectors)
    width = int(np.prod(values.shape[1:])) // len(found)
    pieces = values.reshape(len(values), len(found), width)
    return [(name, np.ascontiguousarray(pieces[:, k] if width > 1 else pieces[:, k, 0])) for k, name in enumerate(found)]


def join(about: Layout, column: Callable[[str], np.ndarray], vectors: bool = True) -> dict[str, np.ndarray]:
    """The fields of a layout; ``column`` gives the values of a column by name."""
    fields = {}
    for field, form in about.items():
        pieces = [np.asarray(column(part)) for part in names(field, form, vectors)]
        values = pieces[0] if len(pieces) == 1 else np.stack(pieces, axis=1)
        fields[field] = np.ascontiguousarray(values.reshape(len(pieces[0]), *form["shape"]).astype(form["type"]))
    return fields
