"""Solids as small discs on their surfaces, enough to see in a quick picture where they are."""

from dataclasses import dataclass

import numpy as np

from viscoil.io.frame import Frame
from viscoil.view.camera import Camera
from viscoil.view.shapes import edges, surface

EDGE_COLOUR = (0.35, 0.38, 0.42)
COLOUR = (0.72, 0.72, 0.72)


@dataclass
class Discs:
    """Discs in the world: one row each."""

    position: np.ndarray  # [m]
    radius: np.ndarray  # [m]
    colour: np.ndarray  # sRGB, 0 to 1
    normal: np.ndarray
    casts_shadow: np.ndarray


def discs(frame: Frame, camera: Camera, focal: float) -> Discs:
    """The discs of all solids: containers as their edges, planes not at all (they are the ground)."""
    found = []
    pixel = float(np.linalg.norm(np.subtract(camera.position, camera.target))) / focal  # size of one at the target [m]
    for solid in frame.solids:
        shape, pose = solid.get("shape", {}), np.asarray(solid.get("pose", np.eye(4)), dtype=float)
        container = bool(solid.get("container"))
        if container:
            points = edges(shape, 1.5 * pixel)
            normals, radius, colour = np.tile(camera.up, (len(points), 1)), 1.1 * pixel, EDGE_COLOUR
        else:
            points, normals = surface(shape, 5 * pixel)
            normals, radius, colour = normals @ pose[:3, :3].T, 4.2 * pixel, solid.get("colour") or COLOUR
        count = len(points)
        found.append((
            points @ pose[:3, :3].T + pose[:3, 3], np.full(count, radius),
            np.tile(np.asarray(colour, float), (count, 1)), normals, np.full(count, not container),
        ))
    nothing = (np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, bool))
    position, radius, colour, normal, shadow = (np.concatenate(rows) for rows in zip(nothing, *found, strict=True))
    single = np.float32
    return Discs(position.astype(single), radius.astype(single), colour.astype(single), normal.astype(single), shadow)
