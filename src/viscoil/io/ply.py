"""PLY: one binary little-endian file per frame, vertices with every attribute.

A field with several components becomes one property each (``velocity_x``, ``velocity_y``, ``velocity_z``; ``stress_0``
... for nine). PLY has no 64-bit integers: ids are written as 32-bit ones, or as doubles when they do not fit. What PLY
cannot say (types, header) stands in comment lines, so that :func:`read` gives back the same frame.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame

_NAMES = {
    "i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
    "f4": "float", "f8": "double",
}
_TYPES = {name: kind for kind, name in _NAMES.items()}
_HEADER, _FIELD = "comment viscoil header ", "comment viscoil field "


def write(frames: Iterable[Frame], folder: Path) -> None:
    """frame_00000.ply ..."""
    for frame in frames:
        write_if_changed(folder / f"frame_{frame.index:05d}.ply", encode(frame))


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .ply file."""
    columns: list[tuple[str, np.ndarray]] = []
    comments = [_HEADER + json.dumps(frame.header())]
    for name, values in frame.fields.items():
        storable = _storable(name, values)
        shape = json.dumps(list(values.shape[1:]))
        comments.append(f"{_FIELD}{name} {values.dtype.name} {shape}")
        flat = storable.reshape(len(frame), int(np.prod(values.shape[1:])))
        columns += zip(_property_names(name, values.shape[1:]), flat.T, strict=True)
    kinds = [f"{column.dtype.kind}{column.dtype.itemsize}" for _, column in columns]
    table = np.empty(len(frame), dtype=[(name, "<" + kind) for (name, _), kind in zip(columns, kinds, strict=True)])
    for name, column in columns:
        table[name] = column
    properties = [f"property {_NAMES[kind]} {name}" for (name, _), kind in zip(columns, kinds, strict=True)]
    start = ["ply", "format binary_little_endian 1.0", *comments, f"element vertex {len(frame)}"]
    lines = [*start, *properties, "end_header"]
    return ("\n".join(lines) + "\n").encode() + table.tobytes()


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
