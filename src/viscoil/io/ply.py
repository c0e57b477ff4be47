"""PLY: one binary little-endian file per frame, vertices with every attribute.

A field with several components becomes one property each (``velocity_x``, ``velocity_y``, ``velocity_z``; ``stress_0``
... for nine). PLY has no 64-bit integers: ids are written as 32-bit ones, or as doubles when they do not fit. What PLY
cannot say (types, header) stands in comment lines, so that :func:`read` gives back the same frame.

Surfaces (surface_00000.ply) are vertices with every field and red, green, blue, and triangles; solids and containers
(solids_00000.ply, containers_00000.ply) are meshes in the world, written when something moved.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import write_if_changed
from viscoil.io.columns import with_scalars
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Body, Moment, Target
from viscoil.surface.mesh import SurfaceMesh

_NAMES = {
    "i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
    "f4": "float", "f8": "double",
}
_TYPES = {name: kind for kind, name in _NAMES.items()}
_HEADER, _FIELD = "comment viscoil header ", "comment viscoil field "


def write(moments: Iterable[Moment], target: Target) -> Path:
    """frame_00000.ply ..., with the surface also surface_00000.ply ... and the solids."""
    bodies, last = Bodies(), {}
    for moment in moments:
        number = f"{moment.frame.index:05d}.ply"
        if target.particles:
            write_if_changed(target.folder / f"frame_{number}", encode(moment.frame))
        if moment.surface is None:
            continue
        write_if_changed(target.folder / f"surface_{number}", encode_surface(moment.surface))
        present = bodies.of(moment.frame)
        for stem, container in (("solids", False), ("containers", True)):
            chosen = [body for body in present if body.container == container]
            content = encode_bodies(chosen) if chosen else b""
            if content and content != last.get(stem):
                write_if_changed(target.folder / f"{stem}_{number}", content)
            last[stem] = content
    return target.folder


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .ply file."""
    comments = [_HEADER + json.dumps(frame.header())]
    for name, values in frame.fields.items():
        comments.append(f"{_FIELD}{name} {values.dtype.name} {json.dumps(list(values.shape[1:]))}")
    return _encode(comments, _columns(frame.fields), len(frame))


def encode_surface(surface: SurfaceMesh) -> bytes:
    """A surface as the content of a .ply file. Normals and colours have the names that every program knows."""
    fields = dict(surface.fields)
    columns = _columns({"position": surface.vertices})
    if "normal" in fields:
        columns += zip(("nx", "ny", "nz"), fields.pop("normal").T, strict=True)
    if "colour" in fields:
        columns += _red_green_blue(fields["colour"])
    comments = [f"comment viscoil surface of frame {surface.index} at {surface.time!r} s"]
    return _encode(comments, columns + _columns(fields), len(surface), surface.triangles)


def encode_bodies(bodies: list[Body]) -> bytes:
    """Solids where they are, as one mesh with colours and the number of the solid."""
    points = np.concatenate([body.placed() for body in bodies])
    first = np.cumsum([0, *(len(body.vertices) for body in bodies)])
    triangles = np.concatenate([body.triangles + start for body, start in zip(bodies, first, strict=False)])
    owner = np.repeat(np.arange(len(bodies), dtype=np.int32), [len(body.vertices) for body in bodies])
    columns = _columns({"position": points}) + _red_green_blue(np.array([body.colour for body in bodies])[owner])
    comments = [f"comment viscoil solid {k}: {' '.join(body.name.split())}" for k, body in enumerate(bodies)]
    return _encode(comments, [*columns, ("solid", owner)], len(points), triangles)


def _red_green_blue(colour: np.ndarray) -> list[tuple[str, np.ndarray]]:
    bytes_ = np.round(255 * np.clip(colour, 0, 1)).astype(np.uint8)
    return list(zip(("red", "green", "blue"), bytes_.T, strict=True))


def _columns(fields: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    found: list[tuple[str, np.ndarray]] = []
    for name, values in with_scalars(fields).items():
        flat = _storable(name, values).reshape(len(values), int(np.prod(values.shape[1:])))
        found += zip(_property_names(name, values.shape[1:]), flat.T, strict=True)
    return found


def _encode(
    comments: list[str], columns: list[tuple[str, np.ndarray]], count: int, triangles: np.ndarray | None = None
) -> bytes:
    kinds = [f"{column.dtype.kind}{column.dtype.itemsize}" for _, column in columns]
    table = np.empty(count, dtype=[(name, "<" + kind) for (name, _), kind in zip(columns, kinds, strict=True)])
    for name, column in columns:
        table[name] = column
    properties = [f"property {_NAMES[kind]} {name}" for (name, _), kind in zip(columns, kinds, strict=True)]
    lines = ["ply", "format binary_little_endian 1.0", *comments, f"element vertex {count}", *properties]
    faces = np.empty(0 if triangles is None else len(triangles), dtype=[("number", "u1"), ("corner", "<i4", 3)])
    if triangles is not None:
        faces["number"], faces["corner"] = 3, triangles
        lines += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    return ("\n".join([*lines, "end_header"]) + "\n").encode() + table.tobytes() + faces.tobytes()


def _property_names(field: str, shape: tuple[int, ...]) -> list[str]:
    if field == "position":
        return ["x", "y", "z"]
    if shape == ():
        return [field]
    if shape == (3,):
        return [f"{field}_{axis}" for axis in "xyz"]
    return [f"{field}_{k}" for k in range(int(np.prod(shape)))]


def _storable(name: str, values: np.ndarray) -> np.ndarray:
    if f"{values.dtype.kind}{values.dtype.itemsize}" in _NAMES:
        return values
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for smaller in (np.int32, np.uint32):
        if np.iinfo(smaller).min <= low and high <= np.iinfo(smaller).max:
            return values.astype(smaller)
    if max(-low, high) > 2**53:
        raise RunFolderError(f"PLY cannot hold the field '{name}': its integers are larger than 2^53.")
    return values.astype(np.float64)


def read(path: Path) -> Frame:
    """The frame in a .ply file written by :func:`write`."""
    try:
        content = path.read_bytes()
        end = content.index(b"end_header\n") + len(b"end_header\n")
        lines = content[:end].decode().splitlines()
        header = next(json.loads(line[len(_HEADER):]) for line in lines if line.startswith(_HEADER))
        count = next(int(line.split()[2]) for line in lines if line.startswith("element vertex "))
        properties = [line.split()[1:] for line in lines if line.startswith("property ")]
        table = np.frombuffer(content, [(name, "<" + _TYPES[kind]) for kind, name in properties], count, end)
        fields = {}
        for line in lines:
            if line.startswith(_FIELD):
                name, kind, shape = line[len(_FIELD):].split(" ", 2)
                shape = tuple(json.loads(shape))
                columns = [table[column] for column in _property_names(name, shape)]
                fields[name] = np.stack(columns, axis=-1).reshape(count, *shape).astype(kind)
        return Frame.from_header(header, fields)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        raise RunFolderError(f"{path} cannot be read as a frame: {error}.") from error
