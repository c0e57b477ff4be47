"""Surfaces drawn quickly: rasterised in NumPy with soft shadows, and, for clear fluids, bent and coloured views through them.

The picture a path tracer would make is approached with what one pass over the triangles knows: the front of the surface, how
much fluid lies behind it, and the same lights. No display, no GPU, no optional packages.
"""

from dataclasses import dataclass

import numpy as np

from viscoil.looks import Look
from viscoil.surface.mesh import SurfaceMesh
from viscoil.view import lights
from viscoil.view.camera import Camera
from viscoil.view.ground import Shade, backdrop, ground, toward_key
from viscoil.view.occupancy import Occupancy
from viscoil.view.raster import Projected, cut, nearest, samples

FINE = 2  # samples per pixel and axis: smooth edges
BENT = 0.15  # picture heights over which bent light may stray: further on, surfaces behind would bend it again
BORDER = 6  # rounds of averaging that soften the border between two fluids: about two triangles to each side
SOLID = Look("matt", roughness=0.35, sheen=0.5)


@dataclass
class Thing:
    """An opaque solid: triangles [m] with normals, in one colour (sRGB). Slender ones do not show through fluid."""

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colour: tuple[float, float, float]
    slender: bool = False


@dataclass
class _Pixels:
    """What is seen of a surface, at the picture's own resolution. Only covered pixels."""

    pixel: np.ndarray  # flat index
    cover: np.ndarray  # share of the pixel, 0 to 1
    depth: np.ndarray  # [m]
    position: np.ndarray  # (n, 3) [m]
    view: np.ndarray  # (n, 3) unit vectors from the camera
    values: list[np.ndarray]  # (n, k) whatever was carried by the vertices; (1, k) where it is the same for all


def draw(
    bodies: list[tuple[SurfaceMesh, bool]], looks: list[Look], things: list[Thing], particles: np.ndarray, camera: Camera,
    size: tuple[int, int], volume: float, blockers: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """sRGB picture (height, width, 3) uint8.

    ``bodies``: meshes, and whether each is clear; ``looks``: of the materials, with colours; ``particles`` (n, 3) [m]:
    what casts shadows; ``blockers``: points on solids that cast shadows too; ``volume`` [m³]: sets how deep colours are.
    """
    spacing = max([mesh.spacing for mesh, _ in bodies], default=0.0) or camera.height_at_target / 60
    shade = _shade(bodies, looks, particles, blockers, spacing)
    image = ground(camera, size, shade).reshape(-1, 3)
    depth = np.full(size[0] * size[1], np.inf, np.float32)
    filled = Occupancy(np.concatenate([particles, *([blockers] if blockers is not None else [])]), spacing)
    for thing in things:
        if not thing.slender:
            _solid(image, depth, thing, shade, camera, size)
    for mesh, clear in sorted(bodies, key=lambda body: body[1]):  # what is not clear first: it is seen through the rest
        if len(mesh) and clear:
            _clear(image, depth, mesh, looks, camera, size, volume)
        elif len(mesh):
            _opaque(image, depth, mesh.vertices, mesh.triangles, mesh["normal"], _many(mesh, looks), filled, camera, size)
    for thing in things:
        if thing.slender:
            _solid(image, depth, thing, shade, camera, size)
    return lights.bytes_of(lights.display(image)).reshape(size[1], size[0], 3)


def _shade(
    bodies: list[tuple[SurfaceMesh, bool]], looks: list[Look], particles: np.ndarray, blockers: np.ndarray | None,
    spacing: float,
) -> Shade:  # fmt: skip
    """Clear fluids colour the light that passes, everything else stops it."""
    solid = blockers if blockers is not None else np.zeros((0, 3), np.float32)
    if not any(clear for _, clear in bodies):
        return Shade(Occupancy(np.concatenate([particles, solid]), spacing))
    colours = [look.colour or (1, 1, 1) for look in looks if look.kind == "clear"]
    tint = 0.25 + 0.6 * lights.linear(np.array(colours).mean(axis=0))
    if all(clear for _, clear in bodies):
        return Shade(Occupancy(solid, spacing), Occupancy(particles, spacing), tint)
    return Shade(Occupancy(np.concatenate([particles, solid]), spacing))


# ---- opaque -----------------------------------------------------------------------------------------------------------------


def _solid(image: np.ndarray, depth: np.ndarray, thing: Thing, shade: Shade, camera: Camera, size: tuple[int, int]) -> None:
    paint = lights.linear(np.asarray(thing.colour))[None], SOLID
    _opaque(image, depth, thing.vertices, thing.triangles, _unit(thing.normals), paint, shade.opaque, camera, size)


def _many(mesh: SurfaceMesh, looks: list[Look]) -> tuple[np.ndarray, Look]:
    """Colour of each vertex (one row: of all), and the look most of them have."""
    shares = _shares(mesh, len(looks))
    table = lights.linear(np.array([look.colour or (0.7, 0.7, 0.7) for look in looks]))
    return shares @ table, looks[int(shares.sum(axis=0).argmax())]


def _shares(mesh: SurfaceMesh, count: int) -> np.ndarray:
    """Of each of ``count`` materials around each vertex, (v, count) adding up to 1 (one row: the same everywhere).

    Averaged over neighbours, because a border from vertex to vertex would show the triangles.
    """
    if count == 1 or "material" not in mesh.fields:
        return np.eye(count, dtype=np.float32)[:1]
    shares = np.eye(count, dtype=np.float32)[np.clip(mesh["material"], 0, count - 1)]
    begin, end = mesh.triangles[:, [0, 1, 2]].reshape(-1), mesh.triangles[:, [1, 2, 0]].reshape(-1)  # every edge both ways
    degree = np.maximum(np.bincount(begin, minlength=len(mesh)), 1)
    for _ in range(BORDER):
        around = [np.bincount(begin, weights=shares[end, k], minlength=len(mesh)) / degree for k in range(count)]
        shares = ((shares + np.stack(around, axis=1)) / 2).astype(np.float32)
    return shares / shares.sum(axis=1, keepdims=True)


def _opaque(image, depth, vertices, triangles, normals, paint, filled, camera, size) -> None:
    """Draw over ``image`` and ``depth`` what is in front."""
    colour, look = paint
    axes = camera.stage_axes().T.astype(np.float32)
    lit = filled.light(vertices, toward_key(camera), start=1.8, smooth=True)
    up, side = np.asarray(camera.up, np.float32), np.cross(camera.up, (0.6, 0.5, 0.62)).astype(np.float32)
    side /= np.linalg.norm(side)
    around = (side, -side, np.cross(up, side), -np.cross(up, side))
    sky = np.mean([filled.light(vertices, (up + way) / np.sqrt(2), 1.5, 6, smooth=True) for way in around], axis=0)
    seen = _pixels(vertices, [normals @ axes, lit[:, None], sky[:, None], colour], triangles, camera, size, depth)
    if not len(seen.pixel):
        return
    normal, light, open_, paint_ = _unit(seen.values[0]), *seen.values[1:]
    view = seen.view @ axes
    facing = np.clip(-np.einsum("ij,ij->i", normal, view), 0, 1)[:, None]
    wrap = 0.45 * look.translucency
    body = paint_ * lights.matt(normal, light.reshape(-1), 0.25 + 0.75 * open_.reshape(-1), wrap)
    body += paint_ * look.glow
    mirrored = view + 2 * facing * normal
    blur = 1 if look.roughness < 0.2 else 2 if look.roughness < 0.5 else 3
    strength = 0.08 * look.sheen * (1 - 0.6 * look.roughness)
    fresnel = strength + (1 - facing) ** 5 * (0.55 * look.sheen * (1 - look.roughness))
    body += fresnel * lights.seen(mirrored, blur) * (0.3 + 0.7 * open_)
    _lay_over(image, depth, seen, body)


def _lay_over(image: np.ndarray, depth: np.ndarray, seen: _Pixels, colour: np.ndarray) -> None:
    image[seen.pixel] += (colour - image[seen.pixel]) * seen.cover[:, None]
    solid = seen.cover > 0.5
    depth[seen.pixel[solid]] = np.minimum(depth[seen.pixel[solid]], seen.depth[solid])


# ---- clear ------------------------------------------------------------------------------------------------------------------


def _clear(image, depth, mesh, looks, camera, size, volume) -> None:
    """Draw clear fluid over ``image``: what is behind it bent and coloured, and the lights mirrored in it."""
    shares = _shares(mesh, len(looks))
    swallowed = shares @ np.array([look.absorption(volume) for look in looks], np.float32)
    haze = shares @ np.array([[look.haze] for look in looks], np.float32)
    colour = shares @ lights.linear(np.array([look.colour or (1, 1, 1) for look in looks]))
    index = float(np.mean([look.index for look in looks if look.kind == "clear"]))
    axes = camera.stage_axes().T.astype(np.float32)
    seen = _pixels(mesh.vertices, [mesh["normal"], swallowed, haze, colour], mesh.triangles, camera, size, depth)
    if not len(seen.pixel):
        return
    at, view = seen.position, seen.view
    normal, sigma, hazy, tint = _unit(seen.values[0]), *seen.values[1:]
    facing = np.clip(-np.einsum("ij,ij->i", normal, view), 0.02, 1)[:, None]
    thick = _thickness(mesh, camera, size, depth)[seen.pixel][:, None] * np.sqrt(1 + _slant(camera, view))[:, None]
    ratio = np.float32(1 / index)
    inside = ratio * view + (ratio * facing - np.sqrt(np.maximum(1 - ratio**2 * (1 - facing**2), 0))) * normal
    behind = _behind(image.reshape(size[1], size[0], 3), depth, camera, size, at, view, inside, thick)
    passed = behind * np.exp(-sigma * np.maximum(thick, 0))
    upward = (normal @ np.asarray(camera.up, np.float32))[:, None]
    body = tint * (lights.BRIGHTNESS * (0.65 + 0.35 * upward))  # even clear fluids throw a little light back
    passed += np.minimum(hazy + 0.05, 1) * (body - passed)
    base = ((index - 1) / (index + 1)) ** 2
    fresnel = base + (1 - base) * (1 - facing) ** 5
    mirrored = lights.seen((view + 2 * facing * normal) @ axes)
    _lay_over(image, depth, seen, passed * (1 - fresnel) + mirrored * fresnel)


def _slant(camera: Camera, view: np.ndarray) -> np.ndarray:
    """tan² of the angle between rays and the view axis: depths are along the axis, light travels along the ray."""
    along = np.clip(view @ camera.axes()[2].astype(np.float32), 0.1, 1)
    return 1 / along**2 - 1


def _behind(image, depth, camera, size, at, view, inside, thick) -> np.ndarray:
    """Light from behind the fluid: the ray runs on inside, leaves, and meets the floor, a solid or the backdrop."""
    # Between the bent and the straight direction: the far side bends it back about as much.
    onward = _unit(0.45 * inside + 0.55 * view)
    leaves = at + onward * np.minimum(thick, BENT * camera.height_at_target)
    up = np.asarray(camera.up, np.float32)
    slope = onward @ up
    floor = camera.floor if camera.floor is not None else -np.inf
    above = leaves @ up - np.float32(floor)
    reach = np.where(slope < -1e-3, above / np.maximum(-slope, 1e-3), np.float32(2 * camera.height_at_target))
    spot = leaves + onward * np.clip(reach, 0, 2 * camera.height_at_target)[:, None]
    x, y, far = camera.project(spot, size)
    column, row = np.clip(x, 0, size[0] - 1).astype(np.int32), np.clip(y, 0, size[1] - 1).astype(np.int32)
    light = image[row, column]
    lost = (slope > 0.02) | (x < 0) | (y < 0) | (x >= size[0]) | (y >= size[1]) | (far <= 0)
    light[lost] = backdrop(camera, onward[lost])
    # A solid that stands in the straight line of sight is seen through the fluid, whatever the floor says.
    x, y, _ = camera.project(leaves, size)
    column, row = np.clip(x, 0, size[0] - 1).astype(np.int32), np.clip(y, 0, size[1] - 1).astype(np.int32)
    beyond = depth.reshape(size[1], size[0])[row, column]
    solid = np.isfinite(beyond) & (beyond > camera.project(at, size)[2])
    light[solid] = image[row[solid], column[solid]]
    return light


def _thickness(mesh: SurfaceMesh, camera: Camera, size: tuple[int, int], depth: np.ndarray) -> np.ndarray:
    """Length [m] of fluid along the view axis for every pixel, up to the solid it sees: fronts minus backs, all layers."""
    at = Projected.of(mesh.vertices, camera, size)
    found = samples(at, mesh.triangles, size, 1e-6)
    sign = np.where(at.turned(mesh.triangles) > 0, -1.0, 1.0)[found.triangle]
    ends = np.minimum(found.depth, depth[found.pixel])
    total = np.bincount(found.pixel, weights=sign * ends, minlength=size[0] * size[1])
    # A ray through an edge may count both of its triangles, or none: there fronts and backs do not pair up.
    paired = np.bincount(found.pixel, weights=sign, minlength=len(total)).reshape(size[::-1]) == 0
    around = np.pad(np.stack([total.reshape(paired.shape) * paired, paired]), ((0, 0), (1, 1), (1, 1)))
    length, number = around[:, :-2, 1:-1] + around[:, 2:, 1:-1] + around[:, 1:-1, :-2] + around[:, 1:-1, 2:]
    total = np.where(paired, total.reshape(paired.shape), length / np.maximum(number, 1)).reshape(-1)
    return np.clip(total, 0, None).astype(np.float32)


# ---- shared -----------------------------------------------------------------------------------------------------------------


def _pixels(
    vertices: np.ndarray, carried: list[np.ndarray], triangles: np.ndarray, camera: Camera, size: tuple[int, int],
    depth: np.ndarray,
) -> _Pixels:  # fmt: skip
    """Fronts that are nearer than ``depth``, with what the vertices carry."""
    fine = (size[0] * FINE, size[1] * FINE)
    varying = [values for values in carried if len(values) > 1]
    ends = np.cumsum([3, *(values.shape[1] for values in varying)])
    corners, triangles = cut(np.concatenate([vertices, *varying], axis=1).astype(np.float32), triangles, camera, fine)
    at = Projected.of(corners[:, :3], camera, fine)
    triangles = triangles[at.turned(triangles) > 0]
    found = samples(at, triangles, fine, 1e-6)
    _, rows = nearest(found, fine[0] * fine[1])
    down, across = np.divmod(found.pixel[rows], fine[0])
    pixel = (down // FINE) * size[0] + across // FINE
    in_front = found.depth[rows] < depth[pixel]
    rows, pixel = rows[in_front], pixel[in_front]
    count = np.bincount(pixel, minlength=size[0] * size[1])
    seen = np.flatnonzero(count)
    # Surfaces are smooth: one of a pixel's fine samples stands for all, they only differ in how much is covered.
    one = np.zeros(len(count), np.int64)
    one[pixel] = rows
    rows = one[seen]
    chosen, weights = triangles[found.triangle[rows]], found.weights[rows]
    values = sum(weights[:, k, None] * corners[chosen[:, k], 3:] for k in range(3))
    split = iter(np.split(values, ends[1:-1] - 3, axis=1))
    deep = found.depth[rows]
    rays = camera.rays(size).reshape(-1, 3)[seen]
    position = np.asarray(camera.position, np.float32) + rays * deep[:, None]
    result = [next(split) if len(array) > 1 else array for array in carried]
    return _Pixels(seen, (count[seen] / FINE**2).astype(np.float32), deep, position, _unit(rays), result)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None], 1e-9)
