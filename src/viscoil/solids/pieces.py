"""Shapes of the scene format as convex pieces for contacts between bodies: what MuJoCo can collide.

Boxes, balls, capsules, cylinders and planes are themselves; rounded boxes and cones are convex hulls; rings, funnels, bowls and
other hollow things are cut into convex pieces. Fluid never sees these: it meets the exact shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from viscoil.solids.formulas import Part, flattened, rotation_matrix
from viscoil.solids.meshes import mesh

AROUND = 16  # pieces around the axis of a ring, funnel or bowl
BANDS = 5  # pieces of a bowl from the bottom to the rim
HULL_DETAIL = 24  # edges around a circle of a hull
WALL_DETAIL = 24  # planes around a round container
FAR = 50.0  # half an edge of the block that stands for a moving plane [m]
TURN = rotation_matrix((-90, 0, 0))  # from an axis along z, as MuJoCo has it, to one along y


@dataclass(frozen=True)
class Piece:
    """One convex piece in the solid's frame."""

    kind: str  # plane, box, sphere, capsule, cylinder (along local z) or hull
    size: tuple[float, ...] = ()  # as MuJoCo has it: half edges; radius and half length
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    vertices: np.ndarray | None = None  # (n, 3) of a hull, in the solid's frame


def pieces_of(shape: Any, moving: bool) -> tuple[list[Piece], str]:
    """Convex pieces of a shape in its own frame, and what is approximated ("" when nothing is)."""
    table = shape if isinstance(shape, dict) else shape.model_dump()
    parts, blend = flattened(table)
    found, notes = [], []
    for part in parts:
        pieces, note = _MAKERS[part.shape["type"]](part, moving)
        found += pieces
        notes += [note] if note and note not in notes else []
    if blend > 0 and len(parts) > 1:
        notes.append("the blend between its parts is left out")
    return found, "; ".join(notes)


def _plane(part: Part, moving: bool) -> tuple[list[Piece], str]:
    if moving:
        down = part.rotation @ np.array([0.0, -FAR, 0.0])
        return [Piece("box", (FAR, FAR, FAR), part.rotation, part.centre + down)], ""
    return [Piece("plane", (0.0, 0.0, 1.0), part.rotation @ TURN, part.centre)], ""


def _box(part: Part, moving: bool) -> tuple[list[Piece], str]:
    if part.shape.get("rounding"):
        return _hull(part, moving)
    return [Piece("box", tuple(a / 2 for a in part.shape["size"]), part.rotation, part.centre)], ""


def _sphere(part: Part, moving: bool) -> tuple[list[Piece], str]:
    return [Piece("sphere", (part.shape["radius"],), part.rotation, part.centre)], ""


def _capsule(part: Part, moving: bool) -> tuple[list[Piece], str]:
    radius, half = part.shape["radius"], part.shape["height"] / 2
    if half == 0:
        return _sphere(part, moving)
    return [Piece("capsule", (radius, half), part.rotation @ TURN, part.centre)], ""


def _cylinder(part: Part, moving: bool) -> tuple[list[Piece], str]:
    size = (part.shape["radius"], part.shape["height"] / 2)
    return [Piece("cylinder", size, part.rotation @ TURN, part.centre)], ""


def _hull(part: Part, moving: bool) -> tuple[list[Piece], str]:
    vertices = mesh(part.shape, HULL_DETAIL)[0].astype(float)
    return [Piece("hull", vertices=vertices @ part.rotation.T + part.centre)], ""


def _mesh(part: Part, moving: bool) -> tuple[list[Piece], str]:
    from viscoil.solids.convex import mesh_pieces  # only scenes with meshes pay for it

    hulls = mesh_pieces(part.shape["file"], part.shape.get("scale", 1.0))
    found = [Piece("hull", vertices=points @ part.rotation.T + part.centre) for points in hulls]
    return found, "" if len(found) == 1 else f"a mesh touches other solids as {len(found)} convex pieces"


def _torus(part: Part, moving: bool) -> tuple[list[Piece], str]:
    """A ring of capsules."""
    big, tube = part.shape["radius"], part.shape["tube"]
    found = []
    for k in range(AROUND):
        angle = 360.0 * k / AROUND
        turn = rotation_matrix((0, angle, 0))
        half = big * np.tan(np.pi / AROUND)  # their middles touch the ring
        place = part.centre + part.rotation @ turn @ np.array([big, 0.0, 0.0])
        found.append(Piece("capsule", (tube, float(half)), part.rotation @ turn, place))
    return found, f"a ring touches other solids as {AROUND} capsules"


def _sectors(part: Part, profiles: list[np.ndarray]) -> list[Piece]:
    """Every closed convex profile of (radius, height) points, turned about y, in pieces around the axis."""
    found = []
    for profile in profiles:
        for k in range(AROUND):
            angles = 2 * np.pi * np.array([k, k + 1]) / AROUND
            points = np.concatenate(
                [np.stack([profile[:, 0] * np.cos(a), profile[:, 1], profile[:, 0] * np.sin(a)], 1) for a in angles]
            )
            found.append(Piece("hull", vertices=points @ part.rotation.T + part.centre))
    return found


def _rim(radius: float, height: float, wall: float) -> np.ndarray:
    angle = 2 * np.pi * np.arange(8) / 8
    return np.stack([np.maximum(radius + wall * np.cos(angle), 0.0), height + wall * np.sin(angle)], 1)


def _funnel(part: Part, moving: bool) -> tuple[list[Piece], str]:
    s, half, wall = part.shape, part.shape["height"] / 2, part.shape["thickness"] / 2
    profile = np.concatenate([_rim(s["bottom_radius"], -half, wall), _rim(s["top_radius"], half, wall)])
    return _sectors(part, [profile]), f"a funnel touches other solids as {AROUND} staves"


def _bowl(part: Part, moving: bool) -> tuple[list[Piece], str]:
    rim, height, wall = part.shape["radius"], part.shape["height"], part.shape["thickness"] / 2
    ball = (rim * rim + height * height) / (2 * height)
    edge = np.arctan2(rim, ball - height)  # from straight down to the rim
    profiles = []
    for low, high in zip(np.linspace(0, edge, BANDS + 1)[:-1], np.linspace(0, edge, BANDS + 1)[1:], strict=True):
        ends = [_rim(ball * np.sin(a), ball - height / 2 - ball * np.cos(a), wall) for a in (low, high)]
        profiles.append(np.concatenate(ends))
    return _sectors(part, profiles), f"a bowl touches other solids as {AROUND * BANDS} shards"


def _cup(part: Part, moving: bool) -> tuple[list[Piece], str]:
    s, half, wall = part.shape, part.shape["height"] / 2, part.shape["thickness"] / 2
    top = s["radius"] if s.get("top_radius") is None else s["top_radius"]
    staves = _sectors(part, [np.concatenate([_rim(s["radius"], -half, wall), _rim(top, half, wall)])])
    under = part.centre - half * part.rotation[:, 1]
    floor = Piece("cylinder", (float(s["radius"]), float(wall)), part.rotation @ TURN, under)
    return [*staves, floor], f"a cup touches other solids as {AROUND} staves and a floor"


_MAKERS: dict[str, Callable[[Part, bool], tuple[list[Piece], str]]] = {
    "plane": _plane, "box": _box, "sphere": _sphere, "capsule": _capsule, "cylinder": _cylinder, "cone": _hull,
    "torus": _torus, "funnel": _funnel, "bowl": _bowl, "cup": _cup, "mesh": _mesh,
}


# --- containers -------------------------------------------------------------------------------------------------------
def walls_of(shape: Any) -> tuple[list[Piece], str]:
    """Thick blocks around a hollow shape, one on every plane that touches it; the hollow is taken to be convex."""
    table = shape if isinstance(shape, dict) else shape.model_dump()
    vertices, triangles = mesh(table, WALL_DETAIL)
    vertices = vertices.astype(float)
    size = float(np.ptp(vertices, axis=0).max())
    found = []
    for normal in _outwards(table, vertices, triangles):
        reach = float((vertices @ normal).max())
        side = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
        side /= np.linalg.norm(side)
        frame = np.stack([side, np.cross(normal, side), normal], 1)
        flat = vertices @ frame[:, :2]
        low, high = flat.min(0), flat.max(0)
        half = (high - low) / 2 + size / 2
        centre = frame @ np.array([*((low + high) / 2), reach + size / 2])
        found.append(Piece("box", (*map(float, half), size / 2), frame, centre))
    if table["type"] in ("torus", "union", "bear", "funnel", "bowl", "cup", "mesh"):
        return found, "bodies inside it meet the convex hull of the hollow"
    return found, ""


def _outwards(table: dict[str, Any], vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Unit normals of the planes around a shape, each once."""
    if table["type"] == "box":
        return np.concatenate([np.eye(3), -np.eye(3)])
    corner = vertices[triangles]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(normal, axis=1)
    normal = normal[length > 1e-12 * length.max()] / length[length > 1e-12 * length.max(), None]
    step = 0.1 if len(normal) > 200 else 1e-6  # of round shapes, nearly equal planes count once
    _, first = np.unique(np.round(normal / step).astype(np.int64), axis=0, return_index=True)
    return normal[np.sort(first)]
