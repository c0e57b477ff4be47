"""The floor of quick pictures: the studio's floor and backdrop with soft shadows, in linear light."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from viscoil.view import lights
from viscoil.view.camera import Camera
from viscoil.view.occupancy import Occupancy

NEAR, FAR = 1.6, 8.0  # where the floor begins to melt into the backdrop and where it has, in picture heights
COARSE = 4  # shadows are soft: every fourth pixel is enough


@dataclass
class Shade:
    """What stands in the light: opaque things, and clear fluid that colours what passes."""

    opaque: Occupancy
    clear: Occupancy | None = None
    tint: np.ndarray | None = None  # (3,) what is left of light that has passed much clear fluid

    def key(self, points: np.ndarray, direction: np.ndarray, start: float, steps: int = 12) -> np.ndarray:
        """Share of the key light (n, 3) at ``points``."""
        light = self.opaque.light(points, direction, start, steps, smooth=True)[:, None]
        return light * self._tinted(self.clear.light(points, direction, start, steps, smooth=True)) if self.clear else light

    def near(self, points: np.ndarray, up: np.ndarray) -> np.ndarray:
        """How much (n, 1) of the sky is missing right above ``points`` of the floor."""
        found = self.opaque.at(points + up * np.float32(0.8 * self.opaque.cell), wide=True, smooth=True)[:, None]
        if self.clear:
            found = found + 0.35 * self.clear.at(points + up * np.float32(0.8 * self.clear.cell), True, True)[:, None]
        return found

    def _tinted(self, light: np.ndarray) -> np.ndarray:
        left = self.tint if self.tint is not None else np.zeros(3)
        return light[:, None] + (1 - light[:, None]) * np.asarray(left, np.float32)


def toward_key(camera: Camera) -> np.ndarray:
    """World direction to the key light: it stands still with respect to the camera."""
    return lights.key_direction() @ camera.stage_axes()


def backdrop(camera: Camera, rays: np.ndarray) -> np.ndarray:
    """Light (n, 3) from world directions ``rays`` (n, 3)."""
    return lights.seen(rays @ camera.stage_axes().T.astype(np.float32), smooth=True)


def ground(camera: Camera, size: tuple[int, int], shade: Shade) -> np.ndarray:
    """Linear light (height, width, 3) of floor and backdrop. All of it is soft, so a fourth of the pixels is enough."""
    small = (max(size[0] // COARSE, 1), max(size[1] // COARSE, 1))
    rays = camera.rays(small).reshape(-1, 3)
    up = np.asarray(camera.up, np.float32)
    slope = rays @ up
    image = backdrop(camera, rays)
    height = float(np.dot(camera.position, camera.up)) - (camera.floor if camera.floor is not None else np.inf)
    if height > 0:
        below = np.flatnonzero(slope < -1e-4)
        spot = np.asarray(camera.position, np.float32) + rays[below] * (height / -slope[below])[:, None]
        offset = spot - np.asarray(camera.target, np.float32)
        away = np.sqrt(np.einsum("ij,ij->i", offset, offset)) / np.float32(camera.height_at_target)
        fade = np.clip((FAR - away) / (FAR - NEAR), 0, 1)
        fade = (fade * fade * (3 - 2 * fade)).astype(np.float32)[:, None]
        light = _light_on_floor(camera, shade, spot, up)
        image[below] += (lights.FLOOR.astype(np.float32) * light - image[below]) * fade
    parts = image.reshape(small[1], small[0], 3)
    soft = [np.asarray(Image.fromarray(parts[..., k]).resize(size, Image.Resampling.BICUBIC)) for k in range(3)]
    return np.stack(soft, axis=-1)


def _light_on_floor(camera: Camera, shade: Shade, spot: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Light (n, 3) at points of the floor."""
    key, rest = lights.floor_shares()
    direct = shade.key(spot, toward_key(camera), start=0.4, steps=14)
    return direct * key + rest * (1 - 0.75 * np.clip(shade.near(spot, up) * 2.2, 0, 1))
