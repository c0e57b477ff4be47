"""A quick picture of a frame: shaded balls in soft light on a plain ground. NumPy only, no display, no GPU.

Each particle is a ball; light and shade come from a coarse grid of how much fluid there is (soft shadows, dark
hollows, the large shape of the surface), so that a body of particles reads as one thing.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from viscoil.errors import SceneError
from viscoil.io.frame import Frame
from viscoil.view.camera import Camera
from viscoil.view.occupancy import Occupancy
from viscoil.view.solids import Discs, discs
from viscoil.view.splat import Seen, splat

COLOUR_BY = ("material", "speed", "density")
BALL = 0.56  # radius of a ball in particle spacings: neighbours just overlap
SAMPLES = 2  # per pixel and axis: smooth edges
KEY = np.array([-0.45, 0.80, 0.40])  # where the light comes from: left, above, from behind the camera
KEY_COLOUR = np.array([1.00, 0.96, 0.90], np.float32) * 1.15
SKY_COLOUR = np.array([0.80, 0.90, 1.00], np.float32) * 0.55
BOUNCE_COLOUR = np.array([0.95, 0.90, 0.84], np.float32) * 0.26  # light thrown back by the ground
BACKGROUND = np.array([[0.93, 0.95, 0.97], [0.70, 0.75, 0.80]], np.float32)  # horizon, top (linear)
GROUND = np.array([0.80, 0.80, 0.79], np.float32)
DEFAULT_COLOUR = (0.25, 0.56, 0.82)
# Speed and density from low to high: deep blue, blue, light blue, white, warm (sRGB).
RAMP = np.array([[0.05, 0.10, 0.35], [0.08, 0.32, 0.72], [0.25, 0.65, 0.90], [0.90, 0.96, 0.98], [1.0, 0.62, 0.22]])


def picture(
    frame: Frame, path: str | Path | None = None, size: tuple[int, int] = (960, 540), camera: Camera | None = None,
    colour_by: str = "material", limits: tuple[float, float] | None = None,
) -> Image.Image:
    """Draw ``frame`` and save it to ``path`` when given.

    The camera frames the particles by itself; pass ``Camera.framing(frames)`` for the pictures of a film.
    ``colour_by`` is "material", "speed" [m/s] or "density" [kg/m³]; ``limits`` are the values at both ends of the
    colours (default: those of this frame).
    """
    if colour_by not in COLOUR_BY:
        raise SceneError(f'a picture cannot be coloured by "{colour_by}"; there are {", ".join(COLOUR_BY)}.')
    camera = camera or Camera.framing([frame], size)
    fine = (size[0] * SAMPLES, size[1] * SAMPLES)
    spacing = frame.spacing or _guess_spacing(frame["position"])
    key = _key_light(camera)
    things = _Things(frame, spacing, _colours(frame, colour_by, limits), discs(frame, camera, camera.focal(fine)))
    filled = Occupancy(things.position[things.casts_shadow], spacing)
    seen = splat(camera.project(things.position, fine), things.radius, camera.focal(fine), fine, things.flat)
    image = np.repeat(np.repeat(_ground(camera, size, filled, key), SAMPLES, 0), SAMPLES, 1).reshape(-1, 3)
    image[seen.pixel] = _shade(seen, things, filled, camera, key)
    image = image.reshape(size[1], SAMPLES, size[0], SAMPLES, 3)
    image = sum(image[:, i, :, j] for i in range(SAMPLES) for j in range(SAMPLES)) * np.float32(255 / SAMPLES**2)
    result = Image.fromarray((image + 0.5).astype(np.uint8))
    if path is not None:
        result.save(path)
    return result


def film(
    frames: Iterable[Frame], path: str | Path, fps: float = 30.0, size: tuple[int, int] = (640, 360),
    camera: Camera | None = None, colour_by: str = "material",
) -> Path:
    """Pictures of all ``frames`` as an animated .gif or .webp that plays at ``fps`` frames a second, forever.

    Without a ``camera`` all frames are looked at first, to find one that sees them all.
    """
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".webp"):
        raise SceneError(f'a film is written as .gif or .webp, not as "{path.suffix or path.name}".')
    if camera is None:
        frames = list(frames)
        camera = Camera.framing(frames, size)
    images = [picture(frame, size=size, camera=camera, colour_by=colour_by) for frame in frames]
    if not images:
        raise SceneError("a film needs at least one frame.")
    options: dict[str, Any] = {"quality": 80, "method": 4} if path.suffix.lower() == ".webp" else {"optimize": True}
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / fps), loop=0, **options)
    return path


class _Things:
    """All splats of a picture: balls of fluid, then discs on solids."""

    def __init__(self, frame: Frame, spacing: float, colour: np.ndarray, solid: Discs) -> None:
        count, extra = len(frame), len(solid.position)
        self.fluid = Occupancy(frame["position"], spacing)
        self.position = np.concatenate([np.asarray(frame["position"], np.float32), solid.position])
        self.radius = np.concatenate([np.full(count, BALL * spacing, np.float32), solid.radius])
        self.colour = np.concatenate([colour, _linear(solid.colour)])
        self.normal = np.concatenate([np.zeros((count, 3), np.float32), solid.normal])
        self.flat = np.arange(count + extra) >= count
        self.casts_shadow = np.concatenate([np.ones(count, bool), solid.casts_shadow])


def _shade(seen: Seen, things: _Things, filled: Occupancy, camera: Camera, key: np.ndarray) -> np.ndarray:
    """Colours (sRGB, 0 to 1) of the covered pixels."""
    if not len(seen.pixel):
        return np.zeros((0, 3), np.float32)
    right, above, forward = (axis.astype(np.float32) for axis in camera.axes())
    up = np.asarray(camera.up, np.float32)
    used, inverse = np.unique(seen.splat, return_inverse=True)
    position, flat = things.position[used], things.flat[used]
    surface = np.where(flat[:, None], things.normal[used], things.fluid.normals(position)).astype(np.float32)
    lit = filled.light(position, key, start=1.8, smooth=bool(flat.any()))  # smooth solids show every step
    open_sky = np.mean([
        filled.light(position, (up + side) / np.sqrt(2), start=1.5, steps=6)
        for side in (right, -right, np.cross(up, right), -np.cross(up, right))
    ], axis=0)
    z = np.sqrt(np.maximum(0, 1 - seen.x**2 - seen.y**2))
    # The ball's own normal shows the particles, the fluid's normal shows the form: a mixture of both.
    ball = seen.x[:, None] * right + seen.y[:, None] * above - z[:, None] * forward
    of_fluid = np.where(flat, np.float32(0), np.float32(1))[inverse][:, None]
    normal = of_fluid * 0.62 * ball + surface[inverse] * np.where(of_fluid > 0, np.float32(0.75), np.float32(1))
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    toward = normal @ key.astype(np.float32)
    diffuse = np.clip(toward * 0.85 + 0.15, 0, 1) * lit[inverse]
    sky = (normal @ up) * 0.5 + 0.5
    rim = 1 - of_fluid[:, 0] * 0.30 * (1 - z) ** 2  # the gap between two balls is darker
    ambient = open_sky[inverse] * rim
    half = key - forward
    half = (half / np.linalg.norm(half)).astype(np.float32)
    gloss = np.clip(normal @ half, 0, 1) ** 48 * lit[inverse] * (0.05 + 0.30 * of_fluid[:, 0])
    light = diffuse[:, None] * KEY_COLOUR + (sky * ambient)[:, None] * SKY_COLOUR
    light += ((1 - sky) * (0.35 + 0.65 * ambient))[:, None] * BOUNCE_COLOUR + np.float32(0.05)
    return _display(things.colour[seen.splat] * light + gloss[:, None] * KEY_COLOUR)


def _ground(camera: Camera, size: tuple[int, int], filled: Occupancy, key: np.ndarray) -> np.ndarray:
    """Background and ground with the fluid's shadow (sRGB, 0 to 1), one sample per pixel."""
    rays = camera.rays(size)
    up = np.asarray(camera.up, np.float32)
    slope = rays @ up
    image = np.clip(slope * 2.2, 0, 1)[:, :, None] * (BACKGROUND[1] - BACKGROUND[0]) + BACKGROUND[0]
    height = float(np.dot(camera.position, camera.up)) - (camera.floor if camera.floor is not None else np.inf)
    if height <= 0:
        return _display(image)
    below = slope < -1e-4
    spot = np.asarray(camera.position, np.float32) + rays[below] * (height / -slope[below])[:, None]
    offset = spot - np.asarray(camera.target, np.float32)
    view = np.float32(np.linalg.norm(np.subtract(camera.position, camera.target)))
    away = np.sqrt(np.einsum("ij,ij->i", offset, offset)) / view
    haze = np.clip(away / 2.2, 0, 1)[:, None] ** 1.5
    bright = (1.04 - 0.16 * np.clip(away, 0, 1)) * _ground_light(camera, size, filled, key, height)[below]
    image[below] = GROUND * bright[:, None] * (1 - haze) + BACKGROUND[0] * haze
    return _display(image)


def _ground_light(
    camera: Camera, size: tuple[int, int], filled: Occupancy, key: np.ndarray, height: float
) -> np.ndarray:
    """How bright the ground is, 0 to 1. Shadows are soft, so every fourth pixel is enough."""
    small = (max(size[0] // 4, 1), max(size[1] // 4, 1))
    rays = camera.rays(small).reshape(-1, 3)
    up = np.asarray(camera.up, np.float32)
    slope = rays @ up
    light = np.ones(len(rays), np.float32)
    below = np.flatnonzero(slope < -1e-3)
    spot = np.asarray(camera.position, np.float32) + rays[below] * (height / -slope[below])[:, None]
    shadow = filled.light(spot, key, start=0.4, steps=14, smooth=True)
    contact = filled.at(spot + up * np.float32(0.8 * filled.cell), wide=True, smooth=True)
    light[below] = (0.30 + 0.70 * shadow) * (1 - 0.55 * np.clip(contact * 2.5, 0, 1))
    soft = Image.fromarray(light.reshape(small[1], small[0])).resize(size, Image.Resampling.BICUBIC)
    return np.asarray(soft)


def _key_light(camera: Camera) -> np.ndarray:
    """Direction to the light, fixed to the camera's right and the world's up."""
    right, _, forward = camera.axes()
    up = np.asarray(camera.up)
    back = -(forward - up * (forward @ up))
    back = back / max(float(np.linalg.norm(back)), 1e-9)
    key = KEY[0] * right + KEY[1] * up + KEY[2] * back
    return key / np.linalg.norm(key)


def _colours(frame: Frame, colour_by: str, limits: tuple[float, float] | None) -> np.ndarray:
    """Linear colour of each particle."""
    if colour_by == "material" or (colour_by == "density" and "density" not in frame.names):
        palette = [_parse_colour(material.get("colour")) for material in frame.materials] or [DEFAULT_COLOUR]
        which = frame["material"] if "material" in frame.names else np.zeros(len(frame), int)
        return _linear(np.array(palette))[np.clip(which, 0, len(palette) - 1)]
    if colour_by == "speed":
        values = np.linalg.norm(frame["velocity"], axis=1)
        low, high = limits or (0.0, float(np.percentile(values, 99)) if len(values) else 1.0)
    else:
        values = frame["density"]
        low, high = limits or (np.percentile(values, [1, 99]) if len(values) else (0.0, 1.0))
    t = np.clip((values - low) / max(high - low, 1e-12), 0, 1) * (len(RAMP) - 1)
    return _linear(np.stack([np.interp(t, np.arange(len(RAMP)), RAMP[:, c]) for c in range(3)], axis=1))


def _parse_colour(colour: object) -> tuple[float, float, float]:
    """Three numbers from 0 to 1 or "#rrggbb"; anything else is drawn in the default colour."""
    if isinstance(colour, str) and colour.startswith("#") and len(colour) == 7:
        red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        return red, green, blue
    if isinstance(colour, list | tuple | np.ndarray) and len(colour) == 3:
        return float(colour[0]), float(colour[1]), float(colour[2])
    return DEFAULT_COLOUR


def _linear(colour: np.ndarray) -> np.ndarray:
    colour = np.asarray(colour, np.float32)
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _display(light: np.ndarray) -> np.ndarray:
    """Linear light to sRGB; what is too bright rolls off instead of clipping."""
    light = np.where(light > 0.8, 1 - 0.2 * np.exp(-(light - 0.8) / 0.2), light)
    return np.clip(1.055 * np.maximum(light, 0) ** (1 / 2.4) - 0.055, 0, 1).astype(np.float32)


def _guess_spacing(position: np.ndarray) -> float:
    """For frames that do not say: as if the particles filled a third of their box."""
    if len(position) < 2:
        return 1.0
    box = np.prod(np.maximum(np.ptp(position, axis=0), 1e-6))
    return float((box / (3 * len(position))) ** (1 / 3))
