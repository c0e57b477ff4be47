"""One picture by path tracing: build the stage, trace, take the noise out, develop."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.extras import require
from viscoil.io.frame import Frame
from viscoil.looks import Look
from viscoil.render import matter, props, stage
from viscoil.render.contact import laid
from viscoil.render.picture import Picture
from viscoil.render.variant import start
from viscoil.surface.mesh import SurfaceMesh
from viscoil.view import lights
from viscoil.view.camera import Camera

BALL = 0.5  # radius of a ball in particle spacings
BOUNCES = {"opaque": 7, "clear": 18, "mixed": 160}  # a path through a drop in a tank of water changes sides often


@dataclass
class Body:
    """One surface to be drawn and the particles it encloses."""

    mesh: SurfaceMesh
    frame: Frame
    clear: bool


def trace(
    frame: Frame, bodies: list[Body], looks: list[Look], camera: Camera, size: tuple[int, int] = (960, 540),
    samples: int = 32, volume: float | None = None, top: float | None = None, variant: str | None = None, seed: int = 0,
) -> Picture:  # fmt: skip
    """Draw ``frame`` with its fluid as ``bodies``.

    ``volume`` [m³]: how much fluid the depth of colours is meant for (default: this frame's); ``top`` [m]: up to where
    containers are shown. Both are given once for all pictures of a film.
    """
    mi, _ = start(variant)
    clock = perf_counter()
    shot = _Shot(mi, frame, camera, size, top)
    volume = volume or len(frame) * frame.spacing**3
    for number, body in enumerate(bodies):
        if len(body.mesh):
            shot.things[f"fluid{number}"] = _fluid(mi, body, looks, shot.stage, volume, frame.solids)
    clear = [body for body in bodies if body.clear and len(body.mesh)]
    kind = "opaque" if not clear else "mixed" if len(_clear_colours(clear[0], looks)) > 1 else "clear"
    return shot.taken(kind, samples, seed, clock)


def grains(
    frame: Frame, how: str, looks: list[Look], camera: Camera, size: tuple[int, int] = (960, 540), samples: int = 32,
    volume: float | None = None, top: float | None = None, variant: str | None = None, seed: int = 0,
) -> Picture:  # fmt: skip
    """Draw every particle of ``frame`` as a ball ("particles") or as its ellipsoid ("ellipsoids"), in its look's colour."""
    mi, _ = start(variant)
    clock = perf_counter()
    form = None
    if how == "ellipsoids" and len(frame):
        from viscoil.surface.anisotropy import ellipsoids  # here: it needs the kernel compiler

        form = ellipsoids(frame)
    formed = perf_counter()
    shot = _Shot(mi, frame, camera, size, top)
    which = np.clip(frame["material"], 0, len(looks) - 1) if "material" in frame.names else np.zeros(len(frame), int)
    for number, look in enumerate(looks):
        rows = np.flatnonzero(which == number)
        if len(rows):
            shot.things[f"grains{number}"] = _grains(mi, frame, rows, form, look, shot.stage)
    picture = shot.taken("opaque", samples, seed, formed)
    if form is not None:
        picture.seconds = {"ellipsoids": formed - clock, **picture.seconds}
    return picture


class _Shot:
    """A stage with its props, waiting for the fluid."""

    def __init__(self, mi: Any, frame: Frame, camera: Camera, size: tuple[int, int], top: float | None) -> None:
        self.mi, self.stage = mi, stage.Stage.before(camera)
        if top is None:
            top = float(frame["position"][:, frame.up_axis].max()) if len(frame) else 0.0
        self.things: dict[str, Any] = {
            "type": "scene", "lights": stage.lights(mi), "sensor": stage.sensor(mi, self.stage, size),
            **stage.floor(mi, self.stage),
        }  # fmt: skip
        for number, prop in enumerate(props.props(frame, camera, top)):
            self.things[f"prop{number}"] = _prop(mi, prop, self.stage)

    def taken(self, kind: str, samples: int, seed: int, clock: float) -> Picture:
        """Trace, denoise, develop. ``kind``: a key of BOUNCES; ``clock``: when building began."""
        self.things["integrator"] = _integrator(kind)
        scene = self.mi.load_dict(self.things)
        built = perf_counter()
        raw = np.array(self.mi.render(scene, spp=samples, seed=seed), np.float32)
        traced = perf_counter()
        image = lights.bytes_of(lights.display(denoised(raw)))
        return Picture(image, {"build": built - clock, "trace": traced - built, "denoise": perf_counter() - traced})


def _integrator(kind: str) -> dict[str, Any]:
    # Where absorption differs between colours, paths have to be weighed for all three at once (volpathmis); mixed fillings
    # have a grey rate of events and do without.
    method = {"opaque": "path", "clear": "volpathmis", "mixed": "volpath"}[kind]
    image = {"type": method, "max_depth": BOUNCES[kind], "rr_depth": 5 if kind == "opaque" else 12}
    return {"type": "aov", "aovs": "albedo:albedo,normal:sh_normal", "image": image}


def _clear_colours(body: Body, looks: list[Look]) -> set[Any]:
    """What swallows light in ``body``."""
    return {(looks[k].colour, looks[k].depth) for k in matter.used(body.mesh, looks)}


def _prop(mi: Any, prop: props.Prop, set_up: stage.Stage) -> Any:
    colour = matter.rgb(prop.colour)
    if prop.kind == "glass":
        paint: dict[str, Any] = {"type": "thindielectric", "int_ior": 1.5}
    elif prop.kind == "rail":
        paint = {"type": "principled", "base_color": colour, "roughness": 0.35, "metallic": 0.6}
    else:  # insides of funnels and undersides of planes are seen too
        paint = {"type": "twosided", "bsdf": {"type": "principled", "base_color": colour, "roughness": 0.32, "specular": 0.5}}
    points, normals = set_up.points(prop.vertices), set_up.directions(prop.normals)
    return matter.triangles(mi, prop.kind, points, prop.triangles, normals, paint)


def _fluid(mi: Any, body: Body, looks: list[Look], set_up: stage.Stage, volume: float, solids: list[dict[str, Any]]) -> Any:
    mesh = laid(body.mesh, solids)
    points, normals = set_up.points(mesh.vertices), set_up.directions(mesh["normal"])
    shown = [looks[k] for k in matter.used(mesh, looks)]
    if not body.clear:
        paint = matter.painted(mesh, looks)
        return matter.triangles(mi, "fluid", points, mesh.triangles, normals, paint.surface, paint.attributes)
    if len(_clear_colours(body, looks)) == 1:
        inside = matter.filling(shown[0], volume, set_up.unit)
    else:
        inside = matter.mixed_filling(mi, body.frame, looks, volume, set_up)
    return matter.triangles(mi, "fluid", points, mesh.triangles, normals, matter.glassy(shown[0]), inside=inside)


def _grains(mi: Any, frame: Frame, rows: np.ndarray, form: Any, look: Look, set_up: stage.Stage) -> dict[str, Any]:
    """Balls or ellipsoids of one material."""
    if form is None:
        centre, radii = frame["position"][rows], np.full((len(rows), 3), BALL * frame.spacing)
        turn = np.tile([0.0, 0, 0, 1], (len(rows), 1))
    else:
        centre, radii = form.centre[rows], form.radii[rows]
        turn = quaternions(set_up.axes @ form.axes[rows])
    tensors = (np.ascontiguousarray(part, np.float32) for part in (set_up.points(centre), radii / set_up.unit, turn))
    centres, scales, turns = (mi.TensorXf(part) for part in tensors)
    paint = matter.opaque(look if look.kind != "clear" else replace(look, roughness=0.3, sheen=0.5))
    return {"type": "ellipsoids", "centers": centres, "scales": scales, "quaternions": turns, "extent": 1.0, "bsdf": paint}


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) as x, y, z, w (n, 4). Mirrored axes are the same ellipsoid and are turned right."""
    turn = np.array(rotations, float)
    turn[np.linalg.det(turn) < 0, :, 2] *= -1
    m = turn.transpose(1, 2, 0)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    # The largest of the four components is found without cancellation, the others by dividing by it.
    squares = np.stack([1 + 2 * m[0, 0] - trace, 1 + 2 * m[1, 1] - trace, 1 + 2 * m[2, 2] - trace, 1 + trace])
    products = np.stack([
        np.stack([squares[0], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]]),
        np.stack([m[0, 1] + m[1, 0], squares[1], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]]),
        np.stack([m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[2], m[1, 0] - m[0, 1]]),
        np.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], squares[3]]),
    ])  # fmt: skip
    best = products[squares.argmax(axis=0), :, np.arange(len(turn))]
    return best / np.linalg.norm(best, axis=1, keepdims=True)


def denoised(raw: np.ndarray) -> np.ndarray:
    """Linear light (height, width, 3) from what was traced: colour, ..., albedo, normal."""
    colour, albedo, normal = raw[..., :3], np.clip(raw[..., -6:-3], 0, 1), np.clip(raw[..., -3:], -1, 1)
    colour, albedo, normal = (np.ascontiguousarray(np.nan_to_num(part), np.float32) for part in (colour, albedo, normal))
    # The floor melts into the backdrop, which therefore counts as floor: an edge in these guides would be drawn as a horizon.
    missed = 1 - np.minimum(np.linalg.norm(normal, axis=2, keepdims=True), 1)
    albedo += missed * lights.FLOOR.astype(np.float32)
    normal += missed * np.array([0, 1, 0], np.float32)
    pyoidn = require("pyoidn", "to take the noise out of traced pictures")
    return pyoidn.denoise(np.maximum(colour, 0), albedo, normal, hdr=True)
