"""Solids as they are shown: tools and obstacles in their colour, containers as slender frames that hide nothing."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from viscoil.io.frame import Frame
from viscoil.solids.meshes import creased, mesh
from viscoil.view.camera import Camera

RAIL = 0.0026  # radius of a container's edges, in picture heights
STEEL = (0.52, 0.54, 0.57)  # their colour, sRGB
HEADROOM = 0.06  # of a container above what it holds, in picture heights: the rest would only be empty air
REACH = 1.6  # radius of the disc that stands for a plane, in picture heights
AROUND = 8  # sides of a rail


@dataclass
class Prop:
    """A surface in the world [m], seen from outside anticlockwise."""

    vertices: np.ndarray  # (v, 3) float32
    triangles: np.ndarray  # (t, 3) int32
    normals: np.ndarray  # (v, 3) float32
    colour: tuple[float, float, float]  # sRGB
    kind: Literal["solid", "rail", "glass"]


def props(frame: Frame, camera: Camera, top: float, detail: int = 96) -> list[Prop]:
    """What is shown of the solids of ``frame``. ``top`` [m]: highest fluid, which decides how much of a tank is shown."""
    found = []
    for solid in frame.solids:
        shape, pose = solid.get("shape", {}), np.asarray(solid.get("pose", np.eye(4)), float)
        colour = tuple(float(part) for part in solid.get("colour") or (0.7, 0.7, 0.7))
        if solid.get("container"):
            found += _container(shape, pose, camera, top, detail)
        elif shape.get("type") == "plane":
            found += _plane(pose, camera, (colour[0], colour[1], colour[2]), detail)
        else:
            vertices, triangles, normals = creased(*mesh(shape, detail))
            found.append(_placed(vertices, triangles, normals, pose, (colour[0], colour[1], colour[2]), "solid"))
    return found


def _placed(vertices: Any, triangles: Any, normals: Any, pose: np.ndarray, colour: Any, kind: Any) -> Prop:
    world = np.asarray(vertices, float) @ pose[:3, :3].T + pose[:3, 3]
    turned = np.asarray(normals, float) @ pose[:3, :3].T
    return Prop(world.astype(np.float32), np.asarray(triangles, np.int32), turned.astype(np.float32), colour, kind)


def _plane(pose: np.ndarray, camera: Camera, colour: tuple[float, float, float], detail: int) -> list[Prop]:
    """A plane that is not the floor: a disc around its point nearest to what the camera looks at."""
    normal, up = pose[:3, 1], np.asarray(camera.up)
    height = camera.height_at_target
    if normal @ up > 0.99 and camera.floor is not None and abs(pose[:3, 3] @ up - camera.floor) < 1e-3 * height:
        return []
    target = np.asarray(camera.target)
    centre = target - normal * (normal @ (target - pose[:3, 3]))
    angle = np.linspace(0, 2 * np.pi, detail, endpoint=False)
    rim = REACH * height * np.stack([np.cos(angle), np.zeros(detail), -np.sin(angle)], axis=1)
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = pose[:3, :3], centre
    fan = np.stack([np.zeros(detail), 1 + np.arange(detail), 1 + (np.arange(detail) + 1) % detail], axis=1)
    vertices = np.concatenate([np.zeros((1, 3)), rim])
    return [_placed(vertices, fan, np.tile([0.0, 1, 0], (len(vertices), 1)), place, colour, "solid")]


def _container(shape: dict[str, Any], pose: np.ndarray, camera: Camera, top: float, detail: int) -> list[Prop]:
    """Boxes: their edges; cylinders: two rings; both end a little above the fluid. Other shapes: thin glass."""
    height = camera.height_at_target
    radius = RAIL * height
    up = np.asarray(camera.up, float)
    if shape.get("type") == "box":
        half = np.asarray(shape["size"], float) / 2 + 1.02 * radius
        signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)
        whole = (signs * half) @ pose[:3, :3].T + pose[:3, 3]
        corners = _ended(whole, pose, up, top, height)
        cut = (whole - corners) @ up > 0.5 * radius  # where walls go on out of sight there is no rim
        lines = [corners[[a, b]] for a, b in _EDGES if not (cut[a] and cut[b])]
    elif shape.get("type") == "cylinder":
        angle = np.linspace(0, 2 * np.pi, detail + 1)
        ring = (shape["radius"] + 1.02 * radius) * np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
        ends = [ring + np.array([0, side * shape["height"] / 2, 0]) for side in (-1, 1)]
        both = _ended(np.concatenate(ends) @ pose[:3, :3].T + pose[:3, 3], pose, up, top, height)
        lines = [both[: len(angle)], both[len(angle) :]]
    else:
        vertices, triangles, normals = creased(*mesh(shape, detail))
        return [_placed(vertices, triangles, normals, pose, (1.0, 1.0, 1.0), "glass")]
    return [_rail(line, radius) for line in lines]


# Corners of a box are numbered by their sides in x, y and z: 4 i + 2 j + k. Edges join those that differ in one.
_EDGES = [(a, a | bit) for bit in (1, 2, 4) for a in range(8) if not a & bit]


def _ended(points: np.ndarray, pose: np.ndarray, up: np.ndarray, top: float, height: float) -> np.ndarray:
    """Points of an upright container no higher than a little above the fluid, and not below where it stands."""
    upright = float(np.max(np.abs(up @ pose[:3, :3]))) > 0.999
    if not upright:
        return points
    level = points @ up
    allowed = np.clip(level, level.min() + RAIL * height, max(top + HEADROOM * height, level.min() + 4 * RAIL * height))
    return points + (allowed - level)[:, None] * up


def _rail(line: np.ndarray, radius: float) -> Prop:
    """A round bar along the points ``line``, with round ends."""
    along = np.gradient(line, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    helper = np.eye(3)[int(np.argmin(np.abs(along).sum(axis=0)))]
    side = np.cross(along, helper)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    other = np.cross(along, side)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    out = np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * other[:, None]
    vertices = (line[:, None] + radius * out).reshape(-1, 3)
    here = AROUND * np.arange(len(line) - 1)[:, None] + np.arange(AROUND)[None]
    after = here - np.arange(AROUND)[None] + (np.arange(AROUND) + 1)[None] % AROUND
    faces = np.concatenate([
        np.stack([here, after, here + AROUND], axis=2).reshape(-1, 3),
        np.stack([after, after + AROUND, here + AROUND], axis=2).reshape(-1, 3),
    ])  # fmt: skip
    caps = []
    for end, sign in ((0, -1.0), (len(line) - 1, 1.0)):
        tip = len(vertices)
        vertices = np.concatenate([vertices, (line[end] + sign * radius * along[end])[None]])
        ring = end * AROUND + np.arange(AROUND)
        turn = (ring, np.roll(ring, -1)) if sign > 0 else (np.roll(ring, -1), ring)
        caps.append(np.stack([*turn, np.full(AROUND, tip)], axis=1))
        out = np.concatenate([out.reshape(-1, 3), sign * along[end][None]])
    faces = np.concatenate([faces, *caps])
    return Prop(vertices.astype(np.float32), faces.astype(np.int32), out.astype(np.float32), STEEL, "rail")
