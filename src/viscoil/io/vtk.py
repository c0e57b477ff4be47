"""VTK's XML files: one .vtp (PolyData, appended raw binary) per frame and a .pvd that lists them with their times."""

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame

_TYPES = {"f4": "Float32", "f8": "Float64"} | {
    f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}


def write(frames: Iterable[Frame], folder: Path) -> None:
    """frame_00000.vtp ... and frames.pvd."""
    entries = []
    for frame in frames:
        path = folder / f"frame_{frame.index:05d}.vtp"
        write_if_changed(path, encode(frame))
        entries.append(f'    <DataSet timestep="{frame.time!r}" part="0" file={quoteattr(path.name)}/>\n')
    write_if_changed(folder / "frames.pvd", (
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
        + "".join(entries) + "  </Collection>\n</VTKFile>\n"
    ).encode())


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


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .vtp file."""
    data, count = _Appended(), len(frame)
    numbers = "".join([
        data.array("TimeValue", np.array([frame.time]), tuples=True),  # the name ParaView looks for
        data.array("index", np.array([frame.index], dtype=np.int64), tuples=True),
        data.array("step", np.array([frame.step], dtype=np.int64), tuples=True),
        data.array("spacing", np.array([frame.spacing]), tuples=True),
    ])
    fields = "".join(data.array(name, values) for name, values in frame.fields.items() if name != "position")
    points = data.array("Points", frame["position"])
    cells = data.array("connectivity", np.arange(count, dtype=np.int64))
    cells += data.array("offsets", np.arange(1, count + 1, dtype=np.int64))
    head = (
        '<?xml version="1.0"?>\n'
        '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n<PolyData>\n'
        f"<FieldData>\n{numbers}</FieldData>\n"
        f'<Piece NumberOfPoints="{count}" NumberOfVerts="{count}" NumberOfLines="0" NumberOfStrips="0"'
        ' NumberOfPolys="0">\n'
        f"<PointData>\n{fields}</PointData>\n<Points>\n{points}</Points>\n<Verts>\n{cells}</Verts>\n"
        '</Piece>\n</PolyData>\n<AppendedData encoding="raw">\n_'
    )
    return b"".join([head.encode(), *data.blocks, b"\n</AppendedData>\n</VTKFile>\n"])
