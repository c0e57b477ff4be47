"""Volume, centre and inertia of shapes of the scene format, for bodies of uniform density. NumPy on the host.

Primitives by formula; other closed shapes by integrals over their triangles (Gauss), scaled to the formula's volume where
there is one; unions by counting cells of a grid, those at the surface by the share that lies inside.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.solids.formulas import Part, distance, flattened
from viscoil.solids.mass import mass_properties
from viscoil.solids.meshes import mesh

FINE = 192  # edges around a circle for integrals over triangles: a volume is right to 2e-4 before it is scaled
CELLS = 96  # along the longest edge of a union


@dataclass(frozen=True)
class Bulk:
    """What a shape weighs per unit of density, in the shape's own frame."""

    volume: float  # [m³]
    centre: np.ndarray  # (3,) centre of mass [m]
    inertia: np.ndarray  # (3, 3) about the centre, divided by density [m⁵]

    def moved(self, rotation: np.ndarray, position: np.ndarray) -> "Bulk":
        """The same, seen from a frame in which this one has that pose."""
        return Bulk(self.volume, position + rotation @ self.centre, rotation @ self.inertia @ rotation.T)


def bulk_of(shape: Any) -> Bulk:
    """Of a shape model or its dictionary, in its own frame (position and rotation left out)."""
    table = shape if isinstance(shape, dict) else shape.model_dump()
    if table["type"] in ("union", "bear"):
        return _union(table, *flattened(table))
    return _single(table)


def _about_axes(volume: float, xx: float, yy: float, zz: float) -> Bulk:
    """From the mean squares of the coordinates."""
    return Bulk(volume, np.zeros(3), volume * np.diag([yy + zz, xx + zz, xx + yy]))


def _box(shape: dict[str, Any]) -> Bulk:
    x, y, z = (float(a) for a in shape["size"])
    return _about_axes(x * y * z, x * x / 12, y * y / 12, z * z / 12)


def _sphere(shape: dict[str, Any]) -> Bulk:
    r = shape["radius"]
    return _about_axes(4 / 3 * math.pi * r**3, r * r / 5, r * r / 5, r * r / 5)


def _cylinder(shape: dict[str, Any]) -> Bulk:
    r, h = shape["radius"], shape["height"]
    return _about_axes(math.pi * r * r * h, r * r / 4, h * h / 12, r * r / 4)


def _capsule(shape: dict[str, Any]) -> Bulk:
    """A cylinder and two half balls, whose centres of mass lie 3/8 r outside its ends."""
    r, h = shape["radius"], shape["height"]
    tube, ball = math.pi * r * r * h, 4 / 3 * math.pi * r**3
    along = tube * h * h / 12 + ball * (r * r / 5 + h * h / 4 + 3 / 8 * r * h)
    across = tube * r * r / 4 + ball * r * r / 5
    volume = tube + ball
    return _about_axes(volume, across / volume, along / volume, across / volume)


def _cone(shape: dict[str, Any]) -> Bulk:
    """Integrals over y of powers of the radius, by Gauss–Legendre, exact for these polynomials."""
    a, b, h = shape["radius"], shape.get("top_radius", 0.0), shape["height"]
    node, weight = np.polynomial.legendre.leggauss(6)
    y, weight = node * h / 2, weight * h / 2
    square = (a + (b - a) * (y / h + 0.5)) ** 2
    volume = math.pi * float(weight @ square)
    middle = math.pi * float(weight @ (square * y)) / volume
    across = math.pi / 4 * float(weight @ square**2) / volume
    along = math.pi * float(weight @ (square * (y - middle) ** 2)) / volume
    found = _about_axes(volume, across, along, across)
    return Bulk(volume, np.array([0.0, middle, 0.0]), found.inertia)


def _torus(shape: dict[str, Any]) -> Bulk:
    big, r = shape["radius"], shape["tube"]
    across = (4 * big * big + 3 * r * r) / 8
    return _about_axes(2 * math.pi**2 * big * r * r, across, r * r / 4, across)


def _rounded_volume(shape: dict[str, Any]) -> float:
    """Steiner: an inner box, its faces, edges and corners pushed out by the rounding."""
    r = shape["rounding"]
    x, y, z = (a - 2 * r for a in shape["size"])
    return x * y * z + 2 * r * (x * y + y * z + z * x) + math.pi * r * r * (x + y + z) + 4 / 3 * math.pi * r**3


def _meshed(shape: dict[str, Any]) -> Bulk:
    if shape["type"] == "mesh":
        from viscoil.solids.mesh_file import load

        loaded = load(shape["file"], shape.get("scale", 1.0))
        whole = mass_properties(loaded.vertices, loaded.triangles)
    else:
        whole = mass_properties(*mesh(shape, FINE))
    found = Bulk(whole.volume, whole.centre, whole.inertia)
    exact = None
    if shape["type"] == "box":
        exact = _rounded_volume(shape)
    elif shape["type"] == "funnel":
        slant = math.hypot(shape["height"], shape["top_radius"] - shape["bottom_radius"])
        wall = shape["thickness"]
        if min(shape["top_radius"], shape["bottom_radius"]) >= wall / 2:  # Pappus, while the wall does not cross the axis
            exact = math.pi * (shape["top_radius"] + shape["bottom_radius"]) * (slant * wall + math.pi * wall**2 / 4)
    if exact is None:
        return found
    return Bulk(exact, found.centre, found.inertia * exact / found.volume)


_SINGLE = {"sphere": _sphere, "cylinder": _cylinder, "capsule": _capsule, "cone": _cone, "torus": _torus}


def _single(shape: dict[str, Any]) -> Bulk:
    if shape["type"] == "box" and not shape.get("rounding"):
        return _box(shape)
    if shape["type"] == "torus" and shape["tube"] > shape["radius"]:
        return _meshed(shape)  # its tube meets itself
    return _SINGLE.get(shape["type"], _meshed)(shape)


def together(parts: list[Bulk]) -> Bulk:
    """Several that do not overlap, as one."""
    volume = sum(p.volume for p in parts)
    centre = sum(p.volume * p.centre for p in parts) / volume
    inertia = np.zeros((3, 3))
    for part in parts:
        away = part.centre - centre
        inertia += part.inertia + part.volume * (away @ away * np.eye(3) - np.outer(away, away))
    return Bulk(volume, centre, inertia)


def _box_around(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box around a part, in the solid's frame."""
    vertices = mesh(part.shape, 24)[0] @ part.rotation.T + part.centre
    return vertices.min(0), vertices.max(0)


def _inside(table: dict[str, Any], parts: list[Part], blend: float) -> Callable[[np.ndarray], np.ndarray]:
    """Signed distance of a union; meshes have no formula and are asked for where the fluid asks."""
    if any(part.shape["type"] == "mesh" for part in parts):
        from viscoil.solids.assembly import signed_distance

        return lambda points: signed_distance({**table, "position": (0, 0, 0), "rotation": (0, 0, 0)}, points)
    return lambda points: distance(parts, blend, points)


def _union(table: dict[str, Any], parts: list[Part], blend: float) -> Bulk:
    boxes = [_box_around(part) for part in parts]
    apart = all(
        np.any(boxes[i][0] > boxes[j][1]) or np.any(boxes[j][0] > boxes[i][1]) for i in range(len(boxes)) for j in range(i)
    )
    if len(parts) == 1 or (apart and blend == 0):
        return together([_single(part.shape).moved(part.rotation, part.centre) for part in parts])
    low = np.min([b[0] for b in boxes], 0) - 1.25 * blend
    high = np.max([b[1] for b in boxes], 0) + 1.25 * blend
    cell = float((high - low).max()) / CELLS
    low, high = low - cell, high + cell
    axes = [np.arange(a + cell / 2, b, cell) for a, b in zip(low, high, strict=True)]
    phi = _inside(table, parts, blend)
    first, second, volume = np.zeros(3), np.zeros((3, 3)), 0.0
    for x in axes[0]:
        points = np.stack(np.meshgrid([x], *axes[1:], indexing="ij"), -1).reshape(-1, 3)
        share = np.clip(0.5 - phi(points) / cell, 0.0, 1.0)
        volume += share.sum()
        first += share @ points
        second += np.einsum("p,pi,pj->ij", share, points, points)
    centre = first / volume
    spread = second / volume - np.outer(centre, centre) + np.eye(3) * cell**2 / 12
    volume *= cell**3
    return Bulk(volume, centre, volume * (np.trace(spread) * np.eye(3) - spread))
