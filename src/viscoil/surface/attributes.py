"""What lies on a surface: quantities of the particles, interpolated to its vertices."""

from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.extras import require
from viscoil.io.frame import Frame
from viscoil.keys import closest, did_you_mean, listed

MOST_COLUMNS = 9  # in one pass of the library
# Made by the surface itself, or meaningless between particles.
NOT_CARRIED = ("position", "id", "material")


def carried(frame: Frame, wanted: tuple[str, ...] | None) -> list[str]:
    """Names of the quantities that go onto the surface."""
    possible = [name for name in frame.names if name not in NOT_CARRIED and frame[name].dtype.kind == "f"]
    if wanted is None:
        return possible
    for name in wanted:
        if name not in possible:
            raise SceneError(
                f'surface: this frame has no quantity "{name}" to carry over.{did_you_mean(name, possible)} '
                f"There are {listed(possible) or 'none'}",
                key="fields", suggestion=closest(name, possible),
            )  # fmt: skip
    return list(wanted)


class Interpolation:
    """Values of particles at other points: Σ_j W_j f_j / Σ_j W_j with a cubic spline of radius ``support`` [m]."""

    def __init__(self, position: np.ndarray, support: float):
        splash = require("pysplashsurf", "to compute surfaces")
        density = np.ones(len(position), np.float32)  # equal volumes: they cancel in the quotient
        self._at = splash.SphInterpolator(np.ascontiguousarray(position, np.float32), density, 1.0, support)

    def __call__(self, values: np.ndarray, points: np.ndarray) -> np.ndarray:
        """values (n, k) float32 of the particles at points (p, 3): (p, k) float32; zero where no particle is near."""
        points = np.ascontiguousarray(points, np.float32)
        found = [
            self._at.interpolate_quantity(np.ascontiguousarray(part, np.float32), points, first_order_correction=True)
            for part in np.split(values, range(MOST_COLUMNS, values.shape[1], MOST_COLUMNS), axis=1)
        ]
        return np.nan_to_num(np.concatenate(found, axis=1), nan=0.0, posinf=0.0, neginf=0.0)


def on_surface(
    frame: Frame, names: list[str], at: Interpolation | None, vertices: np.ndarray, fullness: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The quantities ``names`` of ``frame`` at the vertices, with material (majority) and colour (mixed); and fullness.

    All together: finding the particles around each vertex is the expensive part.
    """
    columns: list[np.ndarray] = [fullness[:, None], *(_flat(frame[name]) for name in names)]
    present, member = _materials(frame)
    if len(present) > 1:
        columns.append((member[:, None] == np.arange(len(present))).astype(np.float32))
    width = [column.shape[1] for column in columns]
    if at is None or not len(vertices):
        values = np.zeros((len(vertices), sum(width)), np.float32)
    else:
        values = at(np.concatenate(columns, axis=1, dtype=np.float32), vertices)
    full, *parts = np.split(values, np.cumsum(width)[:-1], axis=1)
    fields = {
        name: part.reshape(len(vertices), *frame[name].shape[1:]) for name, part in zip(names, parts, strict=False)
    }
    share = parts[-1] if len(present) > 1 else np.ones((len(vertices), 1), np.float32)
    fields["material"] = present[np.argmax(share, axis=1)].astype(np.int32)
    colours = _colours(frame, present)
    if colours is not None:
        total = np.maximum(share.sum(axis=1, keepdims=True), 1e-6)
        fields["colour"] = np.clip(share / total @ colours, 0, 1).astype(np.float32)
    return fields, full[:, 0]


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), int(np.prod(values.shape[1:])))


def _materials(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """(materials that occur, for each particle which of those it is)."""
    if "material" not in frame.names or not len(frame):
        return np.zeros(1, np.int64), np.zeros(len(frame), np.int64)
    return np.unique(frame["material"], return_inverse=True)


def _colours(frame: Frame, present: np.ndarray) -> np.ndarray | None:
    """Colours (k, 3) of the materials that occur, None when the frame does not know any."""
    found: list[Any] = [frame.materials[k].get("colour") if 0 <= k < len(frame.materials) else None for k in present]
    return None if any(colour is None for colour in found) else np.array(found, np.float32)
