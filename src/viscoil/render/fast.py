"""One picture in a moment, without a path tracer: particles, ellipsoids or a coarse surface."""

from dataclasses import replace
from time import perf_counter

import numpy as np

from viscoil.io.frame import Frame
from viscoil.looks import Look
from viscoil.render import matter
from viscoil.render.contact import laid
from viscoil.render.picture import Picture
from viscoil.render.props import props
from viscoil.view import preview, quick
from viscoil.view.camera import Camera
from viscoil.view.shapes import surface as points_on

DETAIL = 40  # edges around a circle of a solid


def draw(
    frame: Frame, how: str, looks: list[Look], camera: Camera, size: tuple[int, int], volume: float, top: float
) -> Picture:
    """Draw ``frame`` as "surface", "particles" or "ellipsoids"; ``volume`` and ``top`` as for :func:`tracer.trace`."""
    clock = perf_counter()
    if how != "surface":
        return _particles(frame, how, looks, camera, size)
    bodies = []
    for clear, rows in matter.bodies(frame, looks):
        mesh = matter.part_of(frame, rows).surface(quality="live", fields=())
        bodies.append((laid(mesh, frame.solids), clear))
    ready = perf_counter()
    shown = [thing for thing in props(frame, camera, top, DETAIL) if thing.kind != "glass"]
    things = [
        quick.Thing(thing.vertices, thing.triangles, thing.normals, thing.colour, thing.kind == "rail") for thing in shown
    ]
    position = np.asarray(frame["position"], np.float32)
    image = quick.draw(bodies, looks, things, position, camera, size, volume, _blockers(frame))
    return Picture(image, {"surface": ready - clock, "draw": perf_counter() - ready})


def _particles(frame: Frame, how: str, looks: list[Look], camera: Camera, size: tuple[int, int]) -> Picture:
    clock = perf_counter()
    painted = [material | {"colour": look.colour} for material, look in zip(frame.materials, looks, strict=False)]
    coloured = replace(frame, materials=painted or frame.materials)
    form = None
    if how == "ellipsoids" and len(frame):
        from viscoil.surface.anisotropy import ellipsoids  # here: it needs the kernel compiler

        form = ellipsoids(frame)
    ready = perf_counter()
    image = np.asarray(preview.picture(coloured, size=size, camera=camera, ellipsoids=form))
    seconds = {"draw": perf_counter() - ready}
    return Picture(image, ({"ellipsoids": ready - clock} if form is not None else {}) | seconds)


def _blockers(frame: Frame) -> np.ndarray | None:
    """Points on solids, dense enough to cast a shadow."""
    found = []
    for solid in frame.solids:
        if not solid.get("container"):
            points, _ = points_on(solid.get("shape", {}), frame.spacing)
            pose = np.asarray(solid.get("pose", np.eye(4)), float)
            found.append((points @ pose[:3, :3].T + pose[:3, 3]).astype(np.float32))
    return np.concatenate(found) if found else None
