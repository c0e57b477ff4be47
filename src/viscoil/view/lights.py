"""The light of the studio in which pictures are taken: soft boxes in a dim room, as a panorama.

Directions are in the axes of the stage: x to the camera's right, y up, z towards the camera. The panorama is scaled so that
a white matt sheet lying on the floor has radiance BRIGHTNESS; both the path tracer and the quick pictures use it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

WIDTH, HEIGHT = 512, 256  # of the panorama; its boxes are soft, more would show nothing new
BRIGHTNESS = 1.2  # a little over 1: highlights roll off, and white should be white
KNEE = 0.55  # linear light above which it does
DIM = np.array([0.070, 0.078, 0.088])  # the room at the horizon, before scaling
FLOOR = np.array([0.54, 0.54, 0.536])  # light that the floor throws back (linear)


@dataclass(frozen=True)
class SoftBox:
    """A rectangle of light far away. Angles in degrees; azimuth 0 is behind the camera, positive to the right."""

    azimuth: float
    elevation: float
    half_width: float
    half_height: float
    radiance: tuple[float, float, float]


BOXES = (
    SoftBox(-48, 44, 13, 11, (33.0, 31.7, 30.0)),  # key: left, above, from behind the camera
    SoftBox(64, 42, 6, 27, (3.6, 3.9, 4.2)),  # a strip on the right draws long highlights
    SoftBox(-158, 34, 20, 10, (7.0, 7.0, 6.8)),  # from behind: edges light up, clear fluids glow
    SoftBox(135, 58, 12, 12, (2.6, 2.7, 2.9)),
)


def directions(width: int = WIDTH, height: int = HEIGHT) -> tuple[np.ndarray, np.ndarray]:
    """Azimuth and elevation [degrees] of the pixels (height, width); the first column looks away from the camera."""
    azimuth = 180 - 360 * (np.arange(width) + 0.5) / width
    elevation = 90 - 180 * (np.arange(height) + 0.5) / height
    across, up = np.meshgrid(azimuth, elevation)
    return across, up


@lru_cache(maxsize=1)
def panorama() -> np.ndarray:
    """Radiance (HEIGHT, WIDTH, 3) float32 from all directions, top row = zenith."""
    azimuth, elevation = directions()
    up = np.clip(np.sin(np.radians(elevation)), 0, 1)[..., None]
    room = DIM * (1 + 0.9 * up)
    for box in BOXES:
        room = room + _glow(box, azimuth, elevation)[..., None] * np.asarray(box.radiance)
    facing = np.clip(np.sin(np.radians(elevation)), 0, None) * np.cos(np.radians(elevation))
    received = (room * facing[..., None]).sum(axis=(0, 1)).mean() * (np.pi / HEIGHT) * (2 * np.pi / WIDTH) / np.pi
    room = room * (BRIGHTNESS / received)
    # What stands behind the scene: a backdrop in the floor's own colour, brightest in the middle, so that the far
    # floor melts into it. Below the horizon there is only floor.
    away = np.abs((azimuth - 180 + 180) % 360 - 180)[..., None]
    backdrop = BRIGHTNESS * FLOOR * (0.93 + 0.09 * np.exp(-((away / 60) ** 2)))
    rise = _smooth((elevation - 2) / 18)[..., None]
    return (backdrop * (1 - rise) + room * rise).astype(np.float32)


def seen(directions: np.ndarray, blur: int = 0, smooth: bool = False) -> np.ndarray:
    """Radiance (n, 3) that arrives from stage ``directions`` (n, 3).

    ``blur`` 1 to 3: as rough surfaces mix it; ``smooth``: interpolated, for large areas of backdrop.
    """
    image = _blurred(blur)
    height, width = image.shape[:2]
    unit = directions / np.maximum(np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, None], 1e-12)
    column = (np.arctan2(unit[:, 0], -unit[:, 2]) * (0.5 / np.pi)) % 1.0 * width
    row = np.arccos(np.clip(unit[:, 1], -1, 1)) * (height / np.pi)
    if not smooth:
        return image[np.minimum(row.astype(np.int32), height - 1), np.minimum(column.astype(np.int32), width - 1)]
    column, row = column - 0.5, np.clip(row - 0.5, 0, height - 1.001)
    i, j = row.astype(np.int32), np.floor(column).astype(np.int32)
    down, across = (row - i)[:, None].astype(np.float32), (column - j)[:, None].astype(np.float32)
    upper, lower = (image[k, j % width] * (1 - across) + image[k, (j + 1) % width] * across for k in (i, i + 1))
    return upper * (1 - down) + lower * down


@lru_cache(maxsize=4)
def _blurred(level: int) -> np.ndarray:
    """The panorama averaged over cells of 2^(level + 1) pixels and smoothed."""
    image = panorama()
    for _ in range(level and level + 2):
        image = image.reshape(image.shape[0] // 2, 2, image.shape[1] // 2, 2, 3).mean(axis=(1, 3))
    for _ in range(3 if level else 0):
        image = (np.roll(image, 1, 1) + image + np.roll(image, -1, 1)) / 3
        padded = np.pad(image, ((1, 1), (0, 0), (0, 0)), mode="edge")
        image = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    for _ in range(level and level + 2):  # back to full size: looking up needs no interpolation
        image = np.asarray(image).repeat(2, 0).repeat(2, 1)
        padded = np.pad(np.concatenate([image[:, -1:], image, image[:, :1]], axis=1), ((1, 1), (0, 0), (0, 0)), mode="edge")
        image = sum(padded[i : i + image.shape[0], j : j + image.shape[1]] for i in range(3) for j in range(3)) / 9
    return np.ascontiguousarray(image, np.float32)


def key_direction() -> np.ndarray:
    """Unit vector to the strongest light, on the stage."""
    a, e = np.radians([BOXES[0].azimuth, BOXES[0].elevation])
    return np.array([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)])


@lru_cache(maxsize=1)
def _matt_parts() -> tuple[np.ndarray, np.ndarray]:
    """(3,) light of the key on a sheet that faces it, and (9, 3) coefficients of all other light on matt sheets."""
    azimuth, elevation = directions()
    a, e = np.radians(azimuth), np.radians(elevation)
    x, y, z = np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)
    weight = (np.cos(e) * (np.pi / HEIGHT) * (2 * np.pi / WIDTH))[..., None] / np.pi
    in_key = _glow(BOXES[0], azimuth, elevation)[..., None]
    facing = np.clip(np.stack([x, y, z], -1) @ key_direction(), 0, None)[..., None]
    key = (panorama() * in_key * facing * weight).sum(axis=(0, 1))
    rest = panorama() * (1 - in_key) * weight
    # Real spherical harmonics up to the second order; the factors fold in the cosine of matt reflection (1, 2/3, 1/4).
    norms = [0.282095, *[0.488603] * 3, *[1.092548] * 3, 0.315392, 0.546274]
    bands = [np.pi, *[2 * np.pi / 3] * 3, *[np.pi / 4] * 5]
    basis = np.stack(_polynomials(x, y, z))
    coefficients = np.einsum("khw,hwc->kc", basis, rest) * (np.square(norms) * bands)[:, None]
    return key.astype(np.float32), coefficients.astype(np.float32)


def _polynomials(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    return [np.ones_like(x), x, y, z, x * y, y * z, x * z, 3 * y * y - 1, x * x - z * z]


def matt(normals: np.ndarray, lit: np.ndarray, open_sky: np.ndarray, wrap: float = 0.0) -> np.ndarray:
    """Light (n, 3) that a white matt surface with stage ``normals`` throws back.

    ``lit``: share of the key light that arrives; ``open_sky``: of the rest. ``wrap`` lets light creep around edges, as in
    things that it can enter. A horizontal surface in the open has BRIGHTNESS.
    """
    key, rest = _matt_parts()
    toward = normals @ key_direction().astype(np.float32)
    diffuse = np.clip((toward + wrap) / (1 + wrap), 0, 1) * lit
    x, y, z = normals.T
    around = np.stack(_polynomials(x, y, z), axis=1).astype(np.float32) @ rest
    return diffuse[:, None] * key + np.maximum(around, 0) * open_sky[:, None]


def _glow(box: SoftBox, azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    """1 inside the box, 0 outside, soft at its edges."""
    across = np.abs((azimuth - box.azimuth + 180) % 360 - 180) * np.cos(np.radians(box.elevation)) / box.half_width
    along = np.abs(elevation - box.elevation) / box.half_height
    outside = np.maximum(np.maximum(across, along), (across**6 + along**6) ** (1 / 6))  # round corners
    return 1 / (1 + np.exp(np.clip((outside - 1) / 0.05, -60, 60)))


def _smooth(t: np.ndarray) -> np.ndarray:
    t = np.clip(t, 0, 1)
    return t * t * (3 - 2 * t)


def floor_shares() -> tuple[np.ndarray, np.ndarray]:
    """Light of the key and of all the rest (3,) on a horizontal surface in the open."""
    up = np.array([[0, 1, 0]], np.float32)
    none, all_ = np.zeros(1, np.float32), np.ones(1, np.float32)
    return matt(up, all_, none)[0], matt(up, none, all_)[0]


def display(light: np.ndarray, knee: float = KNEE) -> np.ndarray:
    """Linear light to sRGB, 0 to 1; what is brighter than ``knee`` rolls off instead of clipping."""
    light = np.maximum(light, 0)
    light = np.where(light > knee, knee + (1 - knee) * (1 - np.exp(-(light - knee) / (1 - knee))), light)
    shown = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-8) ** (1 / 2.4) - 0.055)
    return np.clip(shown, 0, 1).astype(np.float32)


def bytes_of(shown: np.ndarray) -> np.ndarray:
    """sRGB 0 to 1 as bytes."""
    return (shown * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def linear(colour: np.ndarray) -> np.ndarray:
    """Amount of light of sRGB values, both 0 to 1."""
    colour = np.asarray(colour, np.float32)
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4).astype(np.float32)
