"""glTF 2.0 in one binary file per frame: particles as points, the surface with its material, solids in their places.

glTF is y-up; a z-up scene is turned by its root node, so that all numbers stay the run's. Vertex attributes of our own
begin with an underscore (``_DENSITY``, ``_VELOCITY_X``) and are 32-bit floats, the widest type glTF has: doubles are
rounded, integers beyond 2^24 are split into ``_ID_HIGH`` · 2^24 + ``_ID``. All are single numbers: Blender's importer
mixes up attributes of different widths.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import viscoil
from viscoil.errors import RunFolderError
from viscoil.io import columns
from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Body, Moment, Target, colour_of, face_materials, linear, look_of, particle_colours
from viscoil.looks import Look
from viscoil.surface.mesh import SurfaceMesh

_POINTS, _FLOAT, _UINT8, _UINT32, _VERTICES, _INDICES = 0, 5126, 5121, 5125, 34962, 34963
_SPLIT = 2**24  # largest whole number up to which 32-bit floats know all
_WIDTHS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


def write(moments: Iterable[Moment], target: Target) -> Path:
    """frame_00000.glb ..."""
    bodies = Bodies()
    for moment in moments:
        content = encode(moment, bodies.of(moment.frame), target.particles)
        write_if_changed(target.folder / f"frame_{moment.frame.index:05d}.glb", content)
    return target.folder


def encode(moment: Moment, bodies: list[Body], particles: bool = True) -> bytes:
    """One moment as the content of a .glb file."""
    frame, file = moment.frame, _File()
    parts = []
    if particles:
        parts.append(file.node("particles", _particles(file, frame)))
    if moment.surface is not None:
        parts.append(file.node("surface", _surface(file, moment.surface)))
    for body in bodies:
        parts.append(file.node(body.name, _body(file, body), matrix=body.pose.T.ravel().tolist()))
    turn = {"rotation": [-0.5**0.5, 0.0, 0.0, 0.5**0.5]} if frame.up == "z" else {}
    root = file.node(frame.title or "viscoil", None, children=parts, **turn)
    about = {"header": frame.header(), "fields": columns.layout(frame.fields) if particles else {}}
    return file.finish(root, {"viscoil": json.dumps(about)})  # as text: JSON proper has no infinite friction


def _particles(file: "_File", frame: Frame) -> list[dict[str, Any]]:
    if not len(frame):
        return []  # glTF has no empty arrays
    attributes = {"POSITION": file.array(frame["position"], bounds=True)}
    if len(frame.materials) > 1:
        attributes["COLOR_0"] = file.colours(particle_colours(frame))
    attributes |= _own(file, {name: values for name, values in frame.fields.items() if name != "position"})
    colour = colour_of(frame.materials[0]) if len(frame.materials) == 1 else (1.0, 1.0, 1.0)
    material = file.material("particles", {"baseColorFactor": [*linear(colour).tolist(), 1.0], "roughnessFactor": 0.6})
    return [{"attributes": attributes, "mode": _POINTS, "material": material}]


def _own(file: "_File", fields: dict[str, np.ndarray]) -> dict[str, int]:
    """Attributes for fields that glTF has no name for."""
    found = {}
    for field, values in columns.with_scalars(fields).items():
        for name, column in columns.split(field, values, vectors=False):
            for ending, numbers in _floats(name, column):
                found[_semantic(name) + ending] = file.array(numbers)
    return found


def _floats(name: str, column: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(ending of the attribute's name, float32 values), with the part beyond 2^24 apart."""
    if column.dtype.kind == "f":
        return [("", column.astype(np.float32))]
    high, low = np.divmod(column.astype(np.int64), _SPLIT)
    if not len(column) or (column.min() >= -_SPLIT and column.max() <= _SPLIT):
        return [("", column.astype(np.float32))]
    if np.abs(high).max() > _SPLIT:
        raise RunFolderError(f"glTF cannot hold the field '{name}': its integers are larger than 2^48.")
    return [("", low.astype(np.float32)), ("_HIGH", high.astype(np.float32))]


def _semantic(name: str) -> str:
    return "_" + name.upper()


def _surface(file: "_File", surface: SurfaceMesh) -> list[dict[str, Any]]:
    if not len(surface.triangles):
        return []
    attributes = {"POSITION": file.array(surface.vertices, bounds=True)}
    if "normal" in surface.fields:
        attributes["NORMAL"] = file.array(_unit(surface["normal"]))
    attributes |= _own(file, {name: values for name, values in surface.fields.items() if name not in ("normal", "colour")})
    owner, primitives = face_materials(surface), []
    for k, description in enumerate(surface.materials or [{}]):
        chosen = surface.triangles[owner == k]
        if len(chosen):
            material = file.look(str(description.get("name") or "fluid"), look_of(description), surface.particle_volume)
            primitives.append({"attributes": attributes, "indices": file.indices(chosen), "material": material})
    return primitives


def _unit(normal: np.ndarray) -> np.ndarray:
    """glTF wants unit normals; where there is none, any direction."""
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.where(length > 1e-12, normal / np.maximum(length, 1e-12), [0.0, 1.0, 0.0]).astype(np.float32)


def _body(file: "_File", body: Body) -> list[dict[str, Any]]:
    vertices, triangles, normals = body.geometry.creased
    attributes = {"POSITION": file.array(vertices, bounds=True), "NORMAL": file.array(_unit(normals))}
    alpha = 0.12 if body.container else 1.0
    colour = {"baseColorFactor": [*linear(body.colour).tolist(), alpha], "roughnessFactor": 0.1 if body.container else 0.6}
    glass = {"alphaMode": "BLEND", "doubleSided": True} if body.container else {}
    material = file.material(body.name, colour, **glass)
    return [{"attributes": attributes, "indices": file.indices(triangles), "material": material}]


class _File:
    """A glTF document and its binary part, as it grows."""

    def __init__(self) -> None:
        self.binary: list[bytes] = []
        self.size = 0
        self.json: dict[str, Any] = {
            name: [] for name in ("nodes", "meshes", "materials", "accessors", "bufferViews")
        }
        self.extensions: set[str] = set()

    def _add(self, kind: str, entry: dict[str, Any]) -> int:
        self.json[kind].append(entry)
        return len(self.json[kind]) - 1

    def _view(self, values: np.ndarray, target: int) -> int:
        content = values.tobytes()
        padding = -len(content) % 4
        view = {"buffer": 0, "byteOffset": self.size, "byteLength": len(content), "target": target}
        self.binary += [content, b"\0" * padding]
        self.size += len(content) + padding
        return self._add("bufferViews", view)

    def array(self, values: np.ndarray, bounds: bool = False) -> int:
        """Accessor of float32 numbers or vectors."""
        values = np.ascontiguousarray(values, "<f4")
        width = 1 if values.ndim == 1 else values.shape[1]
        entry = {"bufferView": self._view(values, _VERTICES), "componentType": _FLOAT, "count": len(values)}
        if bounds:
            entry |= {"min": values.min(axis=0).tolist(), "max": values.max(axis=0).tolist()}
        return self._add("accessors", entry | {"type": _WIDTHS[width]})

    def colours(self, colour: np.ndarray) -> int:
        """Accessor of linear colours as bytes."""
        rgba = np.full((len(colour), 4), 255, np.uint8)
        rgba[:, :3] = np.round(255 * np.clip(colour, 0, 1))
        view = self._view(rgba, _VERTICES)
        entry = {"bufferView": view, "componentType": _UINT8, "normalized": True, "count": len(rgba), "type": "VEC4"}
        return self._add("accessors", entry)

    def indices(self, triangles: np.ndarray) -> int:
        """Accessor of the corners of triangles."""
        view = self._view(np.ascontiguousarray(triangles, "<u4"), _INDICES)
        entry = {"bufferView": view, "componentType": _UINT32, "count": 3 * len(triangles), "type": "SCALAR"}
        return self._add("accessors", entry)

    def material(self, name: str, colour: dict[str, Any], **more: Any) -> int:
        """A plain material; ``colour`` are its metallic-roughness numbers."""
        return self._add("materials", {"name": name, "pbrMetallicRoughness": {"metallicFactor": 0.0, **colour}, **more})

    def look(self, name: str, look: Look, volume: float) -> int:
        """A material for this much fluid [m³]: clear ones let light through and swallow it on the way."""
        colour = linear(look.colour or (0.7, 0.7, 0.7)).tolist()
        glow = {"emissiveFactor": [min(1.0, look.glow * part) for part in colour]} if look.glow else {}
        if look.kind != "clear":
            return self.material(name, {"baseColorFactor": [*colour, 1.0], "roughnessFactor": look.roughness}, **glow)
        depth = look.depth * max(volume, 1e-12) ** (1 / 3)
        # Light of a colour that is exactly 0 would be swallowed at once.
        attenuation = {"attenuationDistance": depth, "attenuationColor": [min(max(part, 0.004), 0.985) for part in colour]}
        used = {
            "KHR_materials_transmission": {"transmissionFactor": 1.0 - look.haze},
            "KHR_materials_ior": {"ior": look.index},
            "KHR_materials_volume": {"thicknessFactor": 0.5 * depth, **attenuation},
        }
        self.extensions.update(used)
        # Half of the colour at the surface: viewers that cannot show what is inside then do not show chalk.
        base = [*(part**0.5 for part in colour), 1.0]
        surface = {"baseColorFactor": base, "roughnessFactor": look.roughness}
        return self.material(name, surface, extensions=used, **glow)

    def node(self, name: str, primitives: list[dict[str, Any]] | None, children: list[int] | None = None, **more: Any) -> int:
        """A node, with a mesh when there are primitives."""
        entry: dict[str, Any] = {"name": name, **more}
        if primitives:
            entry["mesh"] = self._add("meshes", {"name": name, "primitives": primitives})
        if children:
            entry["children"] = children
        return self._add("nodes", entry)

    def finish(self, root: int, extras: dict[str, Any]) -> bytes:
        """The file: header, JSON chunk, binary chunk."""
        document = {name: entries for name, entries in self.json.items() if entries}
        document["asset"] = {"version": "2.0", "generator": f"viscoil {viscoil.__version__}", "extras": extras}
        document["scenes"], document["scene"] = [{"nodes": [root]}], 0
        if self.size:
            document["buffers"] = [{"byteLength": self.size}]
        if self.extensions:
            document["extensionsUsed"] = sorted(self.extensions)
        text = json.dumps(document, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        chunks = [len(text).to_bytes(4, "little"), b"JSON", text]
        if self.size:
            chunks += [self.size.to_bytes(4, "little"), b"BIN\0", *self.binary]
        length = 12 + sum(len(chunk) for chunk in chunks)
        return b"".join([b"glTF", (2).to_bytes(4, "little"), length.to_bytes(4, "little"), *chunks])


def read(path: Path) -> Frame:
    """The frame in a .glb written by :func:`write` with particles."""
    try:
        content = path.read_bytes()
        if content[:4] != b"glTF" or int.from_bytes(content[8:12], "little") != len(content):
            raise ValueError("not a whole glTF file")
        size = int.from_bytes(content[12:16], "little")
        document = json.loads(content[20 : 20 + size])
        about = json.loads(document["asset"]["extras"]["viscoil"])
        if not about["fields"]:
            raise ValueError("it holds no particles")
        meshes = [mesh for mesh in document.get("meshes", []) if mesh["name"] == "particles"]
        attributes = meshes[0]["primitives"][0]["attributes"] if meshes else {}

        def floats(semantic: str) -> np.ndarray:
            accessor = document["accessors"][attributes[semantic]]
            width = {name: number for number, name in _WIDTHS.items()}[accessor["type"]]
            at = 28 + size + document["bufferViews"][accessor["bufferView"]]["byteOffset"]
            values = np.frombuffer(content, "<f4", accessor["count"] * width, at)
            return values.reshape(-1, width) if width > 1 else values

        def column(name: str) -> np.ndarray:
            if not attributes:
                return np.zeros(0, np.float32)
            high = _semantic(name) + "_HIGH"
            if high not in attributes:
                return floats(_semantic(name))
            return floats(_semantic(name)).astype(np.int64) + floats(high).astype(np.int64) * _SPLIT

        fields = {"position": floats("POSITION") if attributes else np.zeros((0, 3), np.float32)}
        others = {name: form for name, form in about["fields"].items() if name != "position"}
        return Frame.from_header(about["header"], fields | columns.join(others, column, vectors=False))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise RunFolderError(f"{path} cannot be read as a frame: {error}.") from error
