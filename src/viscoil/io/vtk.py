"""VTK's XML files: .vtp (PolyData, appended raw binary) and .pvd files that list them with their times.

    frames.pvd       frame_00000.vtp ...       the particles, with every field
    surface.pvd      surface_00000.vtp ...     the fluid's surface
    solids.pvd       solids_00000.vtp ...      solid things where they are; a file is only written when something moved
    containers.pvd   containers_00000.vtp ...  tanks and bowls: apart, because closed ones hide what they hold
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Body, Moment, Target
from viscoil.surface.mesh import SurfaceMesh

_TYPES = {"f4": "Float32", "f8": "Float64"} | {
    f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}
_KINDS = {name: kind for kind, name in _TYPES.items()}
_END = b"\n</AppendedData>\n</VTKFile>\n"
_ABOUT = "viscoil"  # field data: what VTK has no place for, as JSON in bytes


def write(moments: Iterable[Moment], target: Target) -> Path:
    """All series that there is something for; the .pvd to open first."""
    series, bodies = _Series(target.folder), Bodies()
    for moment in moments:
        frame = moment.frame
        if target.particles:
            series.add("frames", "frame", frame, encode(frame))
        if moment.surface is not None:
            series.add("surface", "surface", frame, encode_surface(moment.surface))
        present = bodies.of(frame)
        for name, container in (("solids", False), ("containers", True)):
            chosen = [body for body in present if body.container == container]
            if chosen or name in series.entries:
                series.add(name, name, frame, encode_bodies(chosen), reuse=True)
    series.finish()
    return target.folder


class _Series:
    """Files with the same beginning, and the .pvd that gives each its time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, list[str]] = {}
        self._last: dict[str, tuple[str, bytes]] = {}  # file and content of the latest of each

    def add(self, series: str, stem: str, frame: Frame, content: bytes, reuse: bool = False) -> None:
        name, before = self._last.get(series, ("", b""))
        if not (reuse and content == before):
            name = f"{stem}_{frame.index:05d}.vtp"
            write_if_changed(self.folder / name, content)
            self._last[series] = (name, content if reuse else b"")
        line = f'    <DataSet timestep="{frame.time!r}" part="0" file={quoteattr(name)}/>\n'
        self.entries.setdefault(series, []).append(line)

    def finish(self) -> None:
        for series, lines in self.entries.items():
            start = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n'
            text = "".join([start, "  <Collection>\n", *lines, "  </Collection>\n</VTKFile>\n"])
            write_if_changed(self.folder / f"{series}.pvd", text.encode())


class _Appended:
    """Arrays gathered behind the XML; each is its length in bytes (8-byte integer) followed by its values."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.size = 0

    def array(self, name: str, values: np.ndarray, tuples: bool = False) -> str:
        """The XML element of an array. ``tuples`` is for data about the whole file."""
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        kind = _TYPES[f"{little.dtype.kind}{little.dtype.itemsize}"]
        width = int(np.prod(values.shape[1:]))
        extra = f' NumberOfTuples="{len(values)}"' if tuples else ""
        element = (
            f'<DataArray type="{kind}" Name={quoteattr(name)} NumberOfComponents="{width}"{extra}'
            f' format="appended" offset="{self.size}"/>\n'
        )
        content = little.tobytes()
        self.blocks += [len(content).to_bytes(8, "little"), content]
        self.size += 8 + len(content)
        return element

    def numbers(self, about: dict, **values: float | int) -> str:
        """Data about the whole file: numbers, and ``about`` as JSON."""
        found = [self.array(name, np.array([value]), tuples=True) for name, value in values.items()]
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        return "".join([*found, self.array(_ABOUT, text, tuples=True)])

    def file(self, numbers: str, points: np.ndarray, fields: dict[str, np.ndarray], kind: str, cells: np.ndarray,
             cell_fields: dict[str, np.ndarray] | None = None) -> bytes:  # fmt: skip
        """A whole file with cells (c, corners) of one ``kind``: Verts or Polys."""
        count, corners = cells.shape
        of_points = "".join(self.array(name, values) for name, values in fields.items())
        of_cells = "".join(self.array(name, values) for name, values in (cell_fields or {}).items())
        place = self.array("Points", points)
        topology = self.array("connectivity", cells.astype(np.int64).reshape(-1))
        topology += self.array("offsets", np.arange(1, count + 1, dtype=np.int64) * corners)
        numbers_of = {name: count if name == kind else 0 for name in ("Verts", "Lines", "Strips", "Polys")}
        head = (
            '<?xml version="1.0"?>\n'
            '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n<PolyData>\n'
            f'<FieldData>\n{numbers}</FieldData>\n<Piece NumberOfPoints="{len(points)}"'
            + "".join(f' NumberOf{name}="{number}"' for name, number in numbers_of.items())
            + f">\n<PointData>\n{of_points}</PointData>\n<CellData>\n{of_cells}</CellData>\n<Points>\n{place}</Points>\n"
            f'<{kind}>\n{topology}</{kind}>\n</Piece>\n</PolyData>\n<AppendedData encoding="raw">\n_'
        )
        return b"".join([head.encode(), *self.blocks, _END])


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .vtp file."""
    data = _Appended()
    about = {"header": frame.header(), "shapes": {name: list(values.shape[1:]) for name, values in frame.fields.items()}}
    # TimeValue is the name ParaView looks for.
    numbers = data.numbers(about, TimeValue=float(frame.time), index=frame.index, step=frame.step, spacing=float(frame.spacing))
    fields = {name: values for name, values in frame.fields.items() if name != "position"}
    return data.file(numbers, frame["position"], fields, "Verts", np.arange(len(frame)).reshape(-1, 1))


def encode_surface(surface: SurfaceMesh) -> bytes:
    """A surface as the content of a .vtp file."""
    data = _Appended()
    names = [str(material.get("name", "")) for material in surface.materials]
    numbers = data.numbers({"materials": names, "up": surface.up}, TimeValue=float(surface.time), index=surface.index)
    return data.file(numbers, surface.vertices, surface.fields, "Polys", surface.triangles.reshape(-1, 3))


def encode_bodies(bodies: list[Body]) -> bytes:
    """Solids at one moment, in one file: cells know the number of their solid and its colour (sRGB, 0 to 255)."""
    data = _Appended()
    numbers = data.numbers({"solids": [body.name for body in bodies]})
    points = np.concatenate([np.zeros((0, 3), np.float32), *(body.placed() for body in bodies)])
    first = np.cumsum([0, *(len(body.vertices) for body in bodies)])
    faces = [body.triangles + start for body, start in zip(bodies, first, strict=False)]
    cells = np.concatenate([np.zeros((0, 3), np.int64), *faces])
    owner = np.repeat(np.arange(len(bodies), dtype=np.int32), [len(body.triangles) for body in bodies])
    palette = np.array([[round(255 * c) for c in body.colour] for body in bodies] or np.zeros((0, 3)), np.uint8)
    return data.file(numbers, points, {}, "Polys", cells, {"solid": owner, "colour": palette[owner]})


def read(path: Path) -> Frame:
    """The frame in a frame_*.vtp written by :func:`write`."""
    try:
        content = path.read_bytes()
        if not content.endswith(_END):
            raise ValueError("it ends too early")
        marker = content.index(b'<AppendedData encoding="raw">')
        start = content.index(b"_", marker) + 1
        arrays: dict[str, np.ndarray] = {}
        for element in ElementTree.fromstring(content[:marker] + b"</VTKFile>").iter("DataArray"):
            at = start + int(element.attrib["offset"])
            size = int.from_bytes(content[at : at + 8], "little")
            kind = np.dtype("<" + _KINDS[element.attrib["type"]])
            arrays[element.attrib["Name"]] = np.frombuffer(content, kind, size // kind.itemsize, at + 8)
        about = json.loads(arrays[_ABOUT].tobytes())
        fields = {}
        for name, shape in about["shapes"].items():
            values = arrays["Points" if name == "position" else name]
            fields[name] = values.reshape(-1, *shape).copy() if shape else values.copy()
        return Frame.from_header(about["header"], fields)
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        raise RunFolderError(f"{path} cannot be read as a frame: {error}.") from error
