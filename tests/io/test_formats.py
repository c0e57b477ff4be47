"""Every format gives back exactly the numbers it was given."""

import io
import xml.etree.ElementTree as ElementTree

import h5py
import numpy as np
import pytest
import trimesh
from fake_simulation import make_frame

from viscoil.errors import RunFolderError
from viscoil.io import npz, ply, vtk, vtkhdf
from viscoil.io.frame import Frame

SIZES = [0, 1, 50]


def assert_same(a: Frame, b: Frame) -> None:
    assert a.differences(b) == []
    assert a.header() == b.header()
    assert a.names == b.names


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("module", [npz, ply, vtk, vtkhdf], ids=["npz", "ply", "vtk", "vtkhdf"])
def test_round_trip(module, count, tmp_path):
    frame = make_frame(count=count)
    path = tmp_path / "frame"
    path.write_bytes(module.encode(frame))
    assert_same(module.read(path), frame)
    assert module.encode(frame) == module.encode(make_frame(count=count)), "same frame, same bytes"


@pytest.mark.parametrize("module", [npz, ply, vtk, vtkhdf], ids=["npz", "ply", "vtk", "vtkhdf"])
@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, 0.999])
def test_cut_file_is_an_error_naming_it(module, cut, tmp_path):
    content = module.encode(make_frame())
    path = tmp_path / "broken_frame"
    path.write_bytes(content[: int(cut * len(content)) if isinstance(cut, float) else cut])
    with pytest.raises(RunFolderError, match="broken_frame"):
        module.read(path)


@pytest.mark.parametrize("count", SIZES)
def test_vtkhdf_has_the_layout_paraview_expects(count, tmp_path):
    frame = make_frame(count=count)
    (tmp_path / "f.vtkhdf").write_bytes(vtkhdf.encode(frame))
    with h5py.File(tmp_path / "f.vtkhdf") as file:
        root = file["VTKHDF"]
        assert bytes(root.attrs["Type"]) == b"PolyData"
        assert root.attrs.get_id("Type").dtype == np.dtype("S8"), "fixed length, as VTK's reader demands"
        assert list(root.attrs["Version"]) == [2, 3]
        assert list(root["NumberOfPoints"]) == [count]
        assert root["Points"].shape == (count, 3)
        for name, cells in {"Vertices": count, "Lines": 0, "Polygons": 0, "Strips": 0}.items():
            assert list(root[name]["NumberOfCells"]) == [cells] == list(root[name]["NumberOfConnectivityIds"])
            assert list(root[name]["Offsets"]) == list(range(cells + 1))
            assert list(root[name]["Connectivity"]) == list(range(cells))
        assert root["PointData/stress"].shape == (count, 9)
        assert root["FieldData/time"][0] == frame.time
        assert root["FieldData/up"][0] == 2


def read_vtp(content: bytes) -> tuple[ElementTree.Element, dict[str, np.ndarray]]:
    """A reader of our own for the appended raw encoding, following VTK's description of the format."""
    marker = content.index(b'<AppendedData encoding="raw">')
    start = content.index(b"_", marker) + 1
    tree = ElementTree.fromstring(content[:marker] + b"</VTKFile>")
    types = {"Float32": "<f4", "Float64": "<f8", "Int32": "<i4", "Int64": "<i8", "UInt8": "<u1"}
    arrays = {}
    for element in tree.iter("DataArray"):
        at = start + int(element.get("offset"))
        size = int.from_bytes(content[at : at + 8], "little")
        values = np.frombuffer(content[at + 8 : at + 8 + size], types[element.get("type")])
        width = int(element.get("NumberOfComponents"))
        arrays[element.get("Name")] = values.reshape(-1, width) if width > 1 else values
    return tree, arrays


@pytest.mark.parametrize("count", SIZES)
def test_vtp_holds_the_same_numbers(count):
    frame = make_frame(count=count)
    tree, arrays = read_vtp(vtk.encode(frame))
    assert tree.get("header_type") == "UInt64"
    assert tree.find(".//Piece").get("NumberOfPoints") == str(count) == tree.find(".//Piece").get("NumberOfVerts")
    assert arrays["Points"].tobytes() == frame["position"].tobytes()
    for name in frame.names[1:]:
        assert arrays[name].tobytes() == frame[name].tobytes()
    assert list(arrays["connectivity"]) == list(range(count))
    assert list(arrays["offsets"]) == list(range(1, count + 1))
    assert arrays["TimeValue"][0] == frame.time


def test_ply_is_read_by_trimesh():
    frame = make_frame()
    cloud = trimesh.load(io.BytesIO(ply.encode(frame)), file_type="ply")
    assert np.array_equal(np.asarray(cloud.vertices, np.float32), frame["position"])
    data = cloud.metadata["_ply_raw"]["vertex"]["data"]
    assert np.array_equal(np.ravel(data["density"]), frame["density"])
    assert np.array_equal(np.ravel(data["velocity_y"]), frame["velocity"][:, 1])
    assert np.array_equal(np.ravel(data["id"]), frame["id"])


def test_ply_keeps_large_integers_or_refuses():
    frame = make_frame(count=2)
    frame.fields["id"] = np.array([5, 2**40], dtype=np.int64)
    assert b"property double id" in ply.encode(frame)
    frame.fields["id"] = np.array([5, 2**60 + 1], dtype=np.int64)
    with pytest.raises(RunFolderError, match="'id'"):
        ply.encode(frame)


def test_frame_refuses_what_it_cannot_hold():
    position = np.zeros((3, 3), np.float32)
    with pytest.raises(ValueError, match="position"):
        Frame(0, 0.0, 0, {})
    with pytest.raises(ValueError, match="'id'"):
        Frame(0, 0.0, 0, {"position": position, "id": np.arange(2)})
    with pytest.raises(ValueError, match="'name'"):
        Frame(0, 0.0, 0, {"position": position, "name": np.array(["a", "b", "c"])})
    frame = Frame(0, 0.0, 0, {"position": position, "wet": np.array([True, False, True])})
    assert frame["wet"].dtype == np.uint8 and len(frame) == 3
    with pytest.raises(KeyError, match="density"):
        frame["density"]
