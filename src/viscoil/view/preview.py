"""A quick picture of a frame: shaded balls or ellipsoids in soft light. NumPy only, no display, no GPU.

Each particle is a ball; light and shade come from a coarse grid of how much fluid there is (soft shadows, dark hollows, the
large shape of the surface), so that a body of particles reads as one thing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from viscoil.errors import SceneError
from viscoil.io.frame import Frame
from viscoil.view import lights
from viscoil.view.camera import Camera
from viscoil.view.ground import Shade, ground, toward_key
from viscoil.view.occupancy import Occupancy
from viscoil.view.solids import Discs, discs
from viscoil.view.splat import Forms, Seen, splat

COLOUR_BY = ("material", "speed", "density")
BALL = 0.56  # radius of a ball in particle spacings: neighbours just overlap
DEEP = 0.86  # filled share of the wider surroundings from which a particle cannot be seen
SAMPLES = 2  # per pixel and axis: smooth edges
DEFAULT_COLOUR = (0.25, 0.56, 0.82)
# Speed and density from low to high: deep blue, blue, light blue, white, warm (sRGB).
RAMP = np.array([[0.05, 0.10, 0.35], [0.08, 0.32, 0.72], [0.25, 0.65, 0.90], [0.90, 0.96, 0.98], [1.0, 0.62, 0.22]])


def picture(
    frame: Frame, path: str | Path | None = None, size: tuple[int, int] = (960, 540), camera: Camera | None = None,
    colour_by: str = "material", limits: tuple[float, float] | None = None, ellipsoids: Any = None,
) -> Image.Image:  # fmt: skip
    """Draw ``frame`` and save it to ``path`` when given.

    The camera frames the particles by itself; pass ``Camera.framing(frames)`` for the pictures of a film.
    ``colour_by`` is "material", "speed" [m/s] or "density" [kg/m³]; ``limits`` are the values at both ends of the
    colours (default: those of this frame). ``ellipsoids`` (``viscoil.surface.anisotropy.ellipsoids``): drawn instead
    of balls.
    """
    if colour_by not in COLOUR_BY:
        raise SceneError(f'a picture cannot be coloured by "{colour_by}"; there are {", ".join(COLOUR_BY)}.')
    camera = camera or Camera.framing([frame], size)
    fine = (size[0] * SAMPLES, size[1] * SAMPLES)
    spacing = frame.spacing or _guess_spacing(frame["position"])
    things = _Things(frame, spacing, _colours(frame, colour_by, limits), discs(frame, camera, camera.focal(fine)), ellipsoids)
    filled = Occupancy(things.position[things.casts_shadow], spacing)
    forms = None
    if ellipsoids is not None:
        right, above, forward = camera.axes()
        forms = Forms.of(ellipsoids.axes, ellipsoids.radii, np.stack([right, above, -forward]))
    at = camera.project(things.position, fine)
    seen = _pixels(splat(at, things.radius, camera.focal(fine), fine, things.flat, forms), size)
    image = ground(camera, size, Shade(filled)).reshape(-1, 3)
    image[seen.pixel] += (_shade(seen, things, filled, camera) - image[seen.pixel]) * seen.cover[:, None]
    result = Image.fromarray(lights.bytes_of(lights.display(image)).reshape(size[1], size[0], 3))
    if path is not None:
        result.save(path)
    return result


@dataclass
class _Pixels:
    """What is seen, at the picture's own resolution."""

    pixel: np.ndarray  # flat index
    cover: np.ndarray  # share of the pixel, 0 to 1
    splat: np.ndarray  # one that is seen there
    normal: np.ndarray  # (n, 3) mean over the pixel: right, up, towards the camera


def _pixels(seen: Seen, size: tuple[int, int]) -> _Pixels:
    """From fine samples to pixels."""
    row, column = np.divmod(seen.pixel, size[0] * SAMPLES)
    pixel = (row // SAMPLES) * size[0] + column // SAMPLES
    count = np.bincount(pixel, minlength=size[0] * size[1])
    covered = np.flatnonzero(count)
    one = np.zeros(len(count), np.int64)
    one[pixel] = seen.splat
    total = [np.bincount(pixel, weights=seen.normal[:, k], minlength=len(count))[covered] for k in range(3)]
    normal = (np.stack(total, axis=1) / count[covered][:, None]).astype(np.float32)
    return _Pixels(covered, (count[covered] / SAMPLES**2).astype(np.float32), one[covered], normal)


class _Things:
    """All splats of a picture: balls of fluid, then discs on solids."""

    def __init__(self, frame: Frame, spacing: float, colour: np.ndarray, solid: Discs, ellipsoids: Any) -> None:
        count, extra = len(frame), len(solid.position)
        place = frame["position"] if ellipsoids is None else ellipsoids.centre
        radius = np.full(count, BALL * spacing, np.float32) if ellipsoids is None else ellipsoids.radii.max(axis=1)
        self.fluid = Occupancy(frame["position"], spacing)
        self.position = np.concatenate([np.asarray(place, np.float32), solid.position])
        self.radius = np.concatenate([radius.astype(np.float32), solid.radius])
        self.colour = np.concatenate([colour, lights.linear(solid.colour)])
        self.normal = np.concatenate([np.zeros((count, 3), np.float32), solid.normal])
        self.flat = np.arange(count + extra) >= count
        self.casts_shadow = np.concatenate([np.ones(count, bool), solid.casts_shadow])
        if ellipsoids is not None:  # their own test for what others hide is weak: those deep inside are left out here
            deep = self.fluid.at(frame["position"], wide=True) > DEEP
            self.radius[:count][deep] = 0
        self.own_normal = 0.62 if ellipsoids is None else 1.0  # ellipsoids lie in the surface already


def _shade(seen: _Pixels, things: _Things, filled: Occupancy, camera: Camera) -> np.ndarray:
    """Linear light (n, 3) of the covered pixels."""
    if not len(seen.pixel):
        return np.zeros((0, 3), np.float32)
    axes = camera.stage_axes().T.astype(np.float32)
    right, above, forward = (axis.astype(np.float32) for axis in camera.axes())
    up = np.asarray(camera.up, np.float32)
    mask = np.zeros(len(things.flat), np.int32)
    mask[seen.splat] = 1
    used = np.flatnonzero(mask)
    mask[used] = np.arange(len(used))
    inverse = mask[seen.splat]
    position, flat = things.position[used], things.flat[used]
    surface = np.where(flat[:, None], things.normal[used], things.fluid.normals(position)).astype(np.float32)
    lit = filled.light(position, toward_key(camera), start=1.8, smooth=bool(flat.any()))  # smooth solids show every step
    open_sky = np.mean([
        filled.light(position, (up + side) / np.sqrt(2), start=1.5, steps=6)
        for side in (right, -right, np.cross(up, right), -np.cross(up, right))
    ], axis=0)
    # The ball's own normal shows the particles, the fluid's normal shows the form: a mixture of both.
    stage_own = seen.normal @ (np.stack([right, above, -forward]) @ axes)
    own = np.where(flat, np.float32(0), np.float32(things.own_normal))[inverse][:, None]
    normal = own * stage_own + (surface @ axes)[inverse] * np.where(own > 0, np.float32(0.75), np.float32(1))
    normal /= np.maximum(np.sqrt(np.einsum("ij,ij->i", normal, normal))[:, None], 1e-6)
    edge = 1 - np.where(own[:, 0] > 0, 0.34, 0) * (1 - seen.normal[:, 2]) ** 2  # the gap between two balls is darker
    light = things.colour[seen.splat] * lights.matt(normal, lit[inverse], (0.2 + 0.8 * open_sky[inverse]) * edge)
    half = toward_key(camera) - forward
    half = (axes.T @ (half / np.linalg.norm(half))).astype(np.float32)
    gloss = np.clip(normal @ half, 0, 1) ** 40 * lit[inverse] * np.where(own[:, 0] > 0, 0.30, 0.06)
    return light + gloss[:, None].astype(np.float32)


def _colours(frame: Frame, colour_by: str, limits: tuple[float, float] | None) -> np.ndarray:
    """Linear colour of each particle."""
    if colour_by == "material" or (colour_by == "density" and "density" not in frame.names):
        palette = [_parse_colour(material.get("colour")) for material in frame.materials] or [DEFAULT_COLOUR]
        which = frame["material"] if "material" in frame.names else np.zeros(len(frame), int)
        return lights.linear(np.array(palette))[np.clip(which, 0, len(palette) - 1)]
    if colour_by == "speed":
        values = np.linalg.norm(frame["velocity"], axis=1)
        low, high = limits or (0.0, float(np.percentile(values, 99)) if len(values) else 1.0)
    else:
        values = frame["density"]
        low, high = limits or (np.percentile(values, [1, 99]) if len(values) else (0.0, 1.0))
    t = np.clip((values - low) / max(high - low, 1e-12), 0, 1) * (len(RAMP) - 1)
    return lights.linear(np.stack([np.interp(t, np.arange(len(RAMP)), RAMP[:, c]) for c in range(3)], axis=1))


def _parse_colour(colour: object) -> tuple[float, float, float]:
    """Three numbers from 0 to 1 or "#rrggbb"; anything else is drawn in the default colour."""
    if isinstance(colour, str) and colour.startswith("#") and len(colour) == 7:
        red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        return red, green, blue
    if isinstance(colour, list | tuple | np.ndarray) and len(colour) == 3:
        return float(colour[0]), float(colour[1]), float(colour[2])
    return DEFAULT_COLOUR


def _guess_spacing(position: np.ndarray) -> float:
    """For frames that do not say: as if the particles filled a third of their box."""
    if len(position) < 2:
        return 1.0
    box = np.prod(np.maximum(np.ptp(position, axis=0), 1e-6))
    return float((box / (3 * len(position))) ** (1 / 3))
