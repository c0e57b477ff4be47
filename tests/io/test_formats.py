"""Every format gives back exactly the numbers it was given."""

import io
import json
import xml.etree.ElementTree as ElementTree

import h5py
import numpy as np
import pytest
import trimesh
from fake_simulation import make_frame

from viscoil.errors import RunFolderError, SceneError
from viscoil.io import npz, ply, vtk, vtkhdf
from viscoil.io.export import FORMATS, export
from viscoil.io.frame import Frame
from viscoil.io.run import Run

SIZES = [0, 1, 50]


def assert_same(a: Frame, b: Frame) -> None:
    assert a.differences(b) == []
    assert a.header() == b.header()
    assert a.names == b.names


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("module", [npz, ply, vtkhdf], ids=["npz", "ply", "vtkhdf"])
def test_round_trip(module, count, tmp_path):
    frame = make_frame(count=count)
    path = tmp_path / "frame"
    path.write_bytes(module.encode(frame))
    assert_same(module.read(path), frame)
    assert module.encode(frame) == module.encode(make_frame(count=count)), "same frame, same bytes"


@pytest.mark.parametrize("module", [npz, ply, vtkhdf], ids=["npz", "ply", "vtkhdf"])
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
    types = {"Float32": "<f4", "Float64": "<f8", "Int32": "<i4", "Int64": "<i8"}
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


@pytest.fixture
def run(tmp_path) -> Run:
    run = Run.create(tmp_path / "run", 'title = "x"\nspacing = 0.1\n')
    for index in range(3):
        run.write_frame(make_frame(index, 20 + index, seed=index))
    run.close()
    return run


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_export_writes_every_frame_and_leaves_equal_files_alone(format, run):
    folder = export(run, format)
    assert folder == run.path / "export" / format
    suffix = {"vtk": "vtp"}.get(format, format)
    names = [f"frame_{index:05d}.{suffix}" for index in range(3)]
    assert sorted(p.name for p in folder.iterdir() if p.suffix != ".pvd") == names
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    (folder / names[1]).write_bytes(b"damaged")
    seen = []
    export(run, format, progress=seen.append)
    assert seen == [0, 1, 2]
    changed = [p.name for p, when in before.items() if p.stat().st_mtime_ns != when]
    assert changed == [names[1]], "only the damaged file is written again"
    assert (folder / names[1]).read_bytes() != b"damaged"


def test_pvd_lists_frames_with_their_times(run, tmp_path):
    folder = export(run, "vtk", tmp_path / "elsewhere")
    entries = ElementTree.parse(folder / "frames.pvd").getroot().findall(".//DataSet")
    assert [e.get("file") for e in entries] == [f"frame_{i:05d}.vtp" for i in range(3)]
    assert [float(e.get("timestep")) for e in entries] == [i / 60 for i in range(3)]
    for index, entry in enumerate(entries):
        _, arrays = read_vtp((folder / entry.get("file")).read_bytes())
        assert arrays["Points"].tobytes() == run.frame(index)["position"].tobytes()


def test_exports_match_the_run(run):
    for format, module in {"npz": npz, "ply": ply}.items():
        folder = export(run, format)
        for index in run.frames:
            assert_same(module.read(folder / f"frame_{index:05d}.{format}"), run.frame(index))


def test_wrong_format_and_empty_run_are_said(run, tmp_path):
    with pytest.raises(SceneError, match='Did you mean "ply"'):
        export(run, "pyl")
    empty = Run.create(tmp_path / "empty", "spacing = 0.1\n")
    with pytest.raises(RunFolderError, match="no frames"):
        export(empty, "vtk")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file"):
        export(run, "vtk", tmp_path / "file")


def test_series_index_is_what_paraview_reads(run):
    index = json.loads((run.frame_folder / "frames.vtkhdf.series").read_text())
    assert index["file-series-version"] == "1.0"
    assert index["files"] == [{"name": f"frame_{i:05d}.vtkhdf", "time": i / 60} for i in range(3)]


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
