"""Frames as VTKHDF files: plain HDF5 that ParaView opens as it is, and that we read back bit for bit.

Layout (VTK's file format 2.x, PolyData): one vertex cell per particle, fields under PointData, numbers about the
whole frame under FieldData. The group ``viscoil`` holds what VTK has no place for, as JSON.
"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.frame import Frame

SUFFIX = ".vtkhdf"
VERSION = (2, 3)  # of the VTKHDF layout
_EMPTY_CELLS = ("Lines", "Polygons", "Strips")


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .vtkhdf file. The same frame gives the same bytes."""
    # Built in memory: a full disk then fails in one plain write instead of inside the HDF5 library.
    with h5py.File("frame", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array(VERSION, dtype=np.int64)
        kind = b"PolyData"
        root.attrs.create("Type", kind, dtype=h5py.string_dtype("ascii", len(kind)))  # VTK wants a fixed length
        count = len(frame)
        root["NumberOfPoints"] = np.array([count], dtype=np.int64)
        root["Points"] = frame["position"]
        _write_cells(root.create_group("Vertices"), count)
        for name in _EMPTY_CELLS:
            _write_cells(root.create_group(name), 0)
        points = root.create_group("PointData")
        for name, values in frame.fields.items():
            if name != "position":
                points[name] = values.reshape(count, int(np.prod(values.shape[1:]))) if values.ndim > 2 else values
        data = root.create_group("FieldData")
        for name, value in _frame_numbers(frame).items():
            data[name] = value
        own = file.create_group("viscoil")
        own.attrs["format"] = 1
        own["header"] = np.bytes_(json.dumps(frame.header()).encode())
        own["shapes"] = np.bytes_(json.dumps({name: list(v.shape[1:]) for name, v in frame.fields.items()}).encode())
        file.flush()
        return file.id.get_file_image()


def _write_cells(group: h5py.Group, count: int) -> None:
    """``count`` cells of one point each."""
    group["NumberOfConnectivityIds"] = np.array([count], dtype=np.int64)
    group["NumberOfCells"] = np.array([count], dtype=np.int64)
    group["Connectivity"] = np.arange(count, dtype=np.int64)
    group["Offsets"] = np.arange(count + 1, dtype=np.int64)


def _frame_numbers(frame: Frame) -> dict[str, np.ndarray]:
    return {
        "time": np.array([frame.time]), "index": np.array([frame.index], dtype=np.int64),
        "step": np.array([frame.step], dtype=np.int64), "spacing": np.array([frame.spacing]),
        "up": np.array([frame.up_axis], dtype=np.int64),  # 0, 1, 2 = x, y, z
    }


def read(path: Path) -> Frame:
    """The frame stored in ``path``, bit for bit as it was written."""
    try:
        with h5py.File(path, "r") as file:
            root: Any = file["VTKHDF"]
            own: Any = file["viscoil"]
            header, shapes = json.loads(own["header"][()]), json.loads(own["shapes"][()])
            fields = {}
            for name, shape in shapes.items():
                values = root["Points"][()] if name == "position" else root["PointData"][name][()]
                fields[name] = values.reshape(len(values), *shape)
            return Frame.from_header(header, fields)
    except FileNotFoundError:
        raise RunFolderError(f"there is no frame file {path}.") from None
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise RunFolderError(f"{path} is damaged or was not written by viscoil ({_short(error)}).") from error


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
