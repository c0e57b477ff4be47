"""One picture by path tracing: build the stage, trace, take the noise out, develop."""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.extras import require
from viscoil.io.frame import Frame
from viscoil.looks import Look
from viscoil.render import matter, props, stage
from viscoil.render.contact import laid
from viscoil.render.variant import start
from viscoil.surface.mesh import SurfaceMesh
from viscoil.view import lights
from viscoil.view.camera import Camera

BOUNCES = {"opaque": 7, "clear": 18}  # a path through a drop in a tank of water changes sides often


@dataclass
class Body:
    """One surface to be drawn and the particles it encloses."""

    mesh: SurfaceMesh
    frame: Frame
    clear: bool


@dataclass
class Picture:
    """What came out: sRGB (height, width, 3) uint8, and the seconds each part took."""

    image: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)


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
    set_up = stage.Stage.before(camera)
    volume = volume or len(frame) * frame.spacing**3
    up = frame.up_axis
    top = top if top is not None else float(frame["position"][:, up].max()) if len(frame) else 0.0
    things: dict[str, Any] = {"type": "scene", "lights": stage.lights(mi), "sensor": stage.sensor(mi, set_up, size)}
    things |= stage.floor(mi, set_up)
    for number, prop in enumerate(props.props(frame, camera, top)):
        things[f"prop{number}"] = _prop(mi, prop, set_up)
    for number, body in enumerate(bodies):
        if len(body.mesh):
            things[f"fluid{number}"] = _fluid(mi, body, looks, set_up, volume, frame.solids)
    clear = any(body.clear and len(body.mesh) for body in bodies)
    things["integrator"] = _integrator(clear)
    scene = mi.load_dict(things)
    built = perf_counter()
    raw = np.array(mi.render(scene, spp=samples, seed=seed), np.float32)
    traced = perf_counter()
    light = denoised(raw)
    return Picture(lights.bytes_of(lights.display(light)), {"build": built - clock, "trace": traced - built, "denoise": perf_counter() - traced})


def _integrator(clear: bool) -> dict[str, Any]:
    kind = {"type": "volpathmis", "max_depth": BOUNCES["clear"], "rr_depth": 12} if clear else {"type": "path"}
    if not clear:
        kind |= {"max_depth": BOUNCES["opaque"]}
    return {"type": "aov", "aovs": "albedo:albedo,normal:sh_normal", "image": kind}


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
    same = len({(look.colour, look.depth) for look in shown}) == 1
    inside = (
        matter.filling(shown[0], volume, set_up.unit) if same else matter.mixed_filling(mi, body.frame, looks, volume, set_up)
    )
    return matter.triangles(mi, "fluid", points, mesh.triangles, normals, matter.glassy(shown[0]), inside=inside)


def denoised(raw: np.ndarray) -> np.ndarray:
    """Linear light (height, width, 3) from what was traced: colour, ..., albedo, normal."""
    colour, albedo, normal = raw[..., :3], np.clip(raw[..., -6:-3], 0, 1), np.clip(raw[..., -3:], -1, 1)
    colour, albedo, normal = (np.ascontiguousarray(np.nan_to_num(part), np.float32) for part in (colour, albedo, normal))
    return require("pyoidn", "to take the noise out of traced pictures").denoise(np.maximum(colour, 0), albedo, normal, hdr=True)
