"""The signed distances of ``sdf`` on the host, in NumPy: for drawing and exporting solids without a kernel compiler.

A solid is flattened into :class:`Part` rows exactly as ``assembly`` does it for the device; a test holds both together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.solids.figures import bear_parts


@dataclass(frozen=True)
class Part:
    """One primitive shape of a solid: its description without place, and the place in the solid's frame."""

    shape: dict[str, Any]
    rotation: np.ndarray  # (3, 3), from the part's frame to the solid's
    centre: np.ndarray  # (3,) [m]


def rotation_matrix(degrees: Any) -> np.ndarray:
    """Turned about x, then the new y, then the new z (degrees) -> 3×3 matrix."""
    turn = np.eye(3)
    for axis, angle in enumerate(np.radians(np.asarray(degrees, float))):
        c, s = np.cos(angle), np.sin(angle)
        u, v = (axis + 1) % 3, (axis + 2) % 3
        one = np.eye(3)
        one[u, u], one[u, v], one[v, u], one[v, v] = c, -s, s, c
        turn = turn @ one
    return turn


def flattened(shape: dict[str, Any]) -> tuple[list[Part], float]:
    """The primitive parts of ``shape`` in its own frame, and the length [m] over which they melt together."""
    parts, blend = _collect({**shape, "position": (0, 0, 0), "rotation": (0, 0, 0)}, np.eye(3), np.zeros(3))
    return parts, blend


def _collect(shape: dict[str, Any], rotation: np.ndarray, position: np.ndarray) -> tuple[list[Part], float]:
    turn = rotation @ rotation_matrix(shape.get("rotation", (0, 0, 0)))
    place = position + rotation @ np.asarray(shape.get("position", (0, 0, 0)), float)
    if shape["type"] == "bear":
        return _collect({"type": "union", **bear_union(shape["height"])}, turn, place)
    if shape["type"] != "union":
        return [Part(shape, turn, place)], 0.0
    found, blend = [], float(shape.get("blend", 0.0))
    for part in shape["parts"]:
        inner, melted = _collect(part, turn, place)
        found += inner
        blend = max(blend, melted)
    return found, blend


def bear_union(height: float) -> dict[str, Any]:
    """The gummy bear as the parts and blend of a union."""
    rows, blend = bear_parts(height)
    parts = []
    for kind, lengths, centre, rotation in rows:
        part = {"type": kind, "radius": lengths[0], "position": centre, "rotation": rotation}
        parts.append(part | ({"height": 2 * lengths[1]} if kind == "capsule" else {}))
    return {"parts": parts, "blend": blend}


def distance(parts: list[Part], blend: float, points: np.ndarray) -> np.ndarray:
    """φ [m] at points (n, 3) of the solid's frame: the minimum over the parts, blended within ``blend`` metres."""
    phi = np.full(len(points), 1e30)
    for part in parts:
        other = _FORMULAS[part.shape["type"]](part.shape, (points - part.centre) @ part.rotation)
        overlap = np.maximum(blend - np.abs(phi - other), 0.0) ** 2 / (4 * blend) if blend > 0 else 0.0
        phi = np.minimum(phi, other) - overlap
    return phi


def _plane(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    return q[:, 1]


def _box(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    rounding = shape.get("rounding", 0.0)
    beyond = np.abs(q) - np.asarray(shape["size"], float) / 2 + rounding
    return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0) - rounding


def _sphere(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    return np.linalg.norm(q, axis=1) - shape["radius"]


def _capsule(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    half = shape["height"] / 2
    y = q[:, 1] - np.clip(q[:, 1], -half, half)
    return np.sqrt(q[:, 0] ** 2 + y**2 + q[:, 2] ** 2) - shape["radius"]


def _cylinder(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    a, b = np.hypot(q[:, 0], q[:, 2]) - shape["radius"], np.abs(q[:, 1]) - shape["height"] / 2
    return np.hypot(np.maximum(a, 0.0), np.maximum(b, 0.0)) + np.minimum(np.maximum(a, b), 0.0)


def _to_side(rho: np.ndarray, y: np.ndarray, bottom: float, top: float, half: float) -> np.ndarray:
    """Distance to the slanted side from (bottom, -half) to (top, half) in the meridian plane."""
    slant = (top - bottom) ** 2 + 4 * half * half
    along = np.clip(((rho - bottom) * (top - bottom) + (y + half) * 2 * half) / slant, 0.0, 1.0)
    return np.hypot(rho - (bottom + along * (top - bottom)), y - (-half + along * 2 * half))


def _cone(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    bottom, top, half = shape["radius"], shape.get("top_radius", 0.0), shape["height"] / 2
    rho, y = np.hypot(q[:, 0], q[:, 2]), q[:, 1]
    cap = np.hypot(np.maximum(rho - np.where(y < 0, bottom, top), 0.0), np.abs(y) - half)
    away = np.minimum(_to_side(rho, y, bottom, top, half), cap)
    inside = ((rho - bottom) * 2 * half - (y + half) * (top - bottom) < 0) & (np.abs(y) < half)
    return np.where(inside, -away, away)


def _funnel(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    rho = np.hypot(q[:, 0], q[:, 2])
    away = _to_side(rho, q[:, 1], shape["bottom_radius"], shape["top_radius"], shape["height"] / 2)
    return away - shape["thickness"] / 2


def _torus(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    return np.hypot(np.hypot(q[:, 0], q[:, 2]) - shape["radius"], q[:, 1]) - shape["tube"]


def _bowl(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    rim, height = shape["radius"], shape["height"]
    ball = (rim * rim + height * height) / (2 * height)
    rho, y, cut = np.hypot(q[:, 0], q[:, 2]), q[:, 1] + height / 2 - ball, height - ball
    away = np.where(cut * rho < rim * y, np.hypot(rho - rim, y - cut), np.abs(np.hypot(rho, y) - ball))
    return away - shape["thickness"] / 2


def _cup(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    bottom, half, rho = shape["radius"], shape["height"] / 2, np.hypot(q[:, 0], q[:, 2])
    top = shape.get("top_radius")  # left out: as wide as below
    side = _to_side(rho, q[:, 1], bottom, bottom if top is None else top, half)
    floor = np.hypot(np.maximum(rho - bottom, 0.0), q[:, 1] + half)
    return np.minimum(side, floor) - shape["thickness"] / 2


def _mesh(shape: dict[str, Any], q: np.ndarray) -> np.ndarray:
    from viscoil.solids.mesh_grid import grid_of  # kept on disk; the first time it takes kernels to make

    return grid_of(shape["file"], shape.get("scale", 1.0)).interpolated(q)


_FORMULAS = {
    "plane": _plane, "box": _box, "sphere": _sphere, "capsule": _capsule, "cylinder": _cylinder, "cone": _cone,
    "funnel": _funnel, "torus": _torus, "bowl": _bowl, "cup": _cup, "mesh": _mesh,
}
