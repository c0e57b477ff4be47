"""Surfaces on disk: bit for bit, read by VTK as well, never mistaken for those of other options or other frames."""

import json

import numpy as np
import pytest
from bodies import RED_AND_BLUE, block, frame_of
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOHDF import vtkHDFReader

from viscoil.errors import RunFolderError
from viscoil.io.run import Run
from viscoil.surface import store
from viscoil.surface.reconstruct import surface

SCENE = 'title = "bodies"\nspacing = 1.0\n[time]\nframes = 3\n'


def body(index, count=6):
    x = block((count, 3, 3), 0.2, seed=index)
    frame = frame_of(x, materials=RED_AND_BLUE, material=(x[:, 0] > 0).astype(np.int32), velocity=x.astype(np.float32))
    frame.index, frame.time = index, index / 10
    return frame


@pytest.fixture
def run(tmp_path) -> Run:
    with Run.create(tmp_path / "run", SCENE) as run:
        for index in range(4):
            run.write_frame(body(index))
            run.write_metrics({"frame": index, "time": index / 10, "seconds": 2.5})
    return run


def assert_same(a, b):
    assert np.array_equal(a.vertices, b.vertices) and np.array_equal(a.triangles, b.triangles)
    assert a.triangles.dtype == b.triangles.dtype == np.int32
    assert list(a.fields) == list(b.fields)
    for name, values in a.fields.items():
        assert values.dtype == b[name].dtype and np.array_equal(values, b[name])
    assert a.header() == b.header()


@pytest.mark.parametrize("frame", [body(2), frame_of(np.zeros((0, 3)), velocity=np.zeros((0, 3), np.float32))])
def test_written_and_read_bit_for_bit(frame, tmp_path):
    mesh = surface(frame, "live", bubbles=float("inf"))
    mesh.fields["tensor"] = np.random.default_rng(0).normal(size=(len(mesh), 3, 3)).astype(np.float32)
    path = store.write(mesh, tmp_path / "deep" / "mesh.vtkhdf")
    assert_same(store.read(path), mesh)
    assert store.encode(mesh) == store.encode(mesh)


def test_vtk_reads_the_same_mesh(tmp_path):
    mesh = surface(body(1))
    reader = vtkHDFReader()
    reader.SetFileName(str(store.write(mesh, tmp_path / "mesh.vtkhdf")))
    reader.Update()
    found = reader.GetOutput()
    assert np.array_equal(vtk_to_numpy(found.GetPoints().GetData()), mesh.vertices)
    assert np.array_equal(vtk_to_numpy(found.GetPolys().GetConnectivityArray()).reshape(-1, 3), mesh.triangles)
    assert found.GetNumberOfCells() == len(mesh.triangles)
    for name, values in mesh.fields.items():
        assert np.array_equal(vtk_to_numpy(found.GetPointData().GetArray(name)), values)
    assert found.GetPointData().GetNormals().GetName() == "normal"


def test_made_once_then_loaded(run, monkeypatch):
    first = store.load_or_make(run, 2, quality="live")
    assert store.path(run, 2).name == "surface_00002.vtkhdf" and store.indices(run) == [2]
    monkeypatch.setattr(store, "make", lambda *_: pytest.fail("it was there"))
    assert_same(store.load_or_make(run, 2, quality="live"), first)
    assert_same(store.load_or_make(run, 2), first)  # no wishes: whatever there is


def test_other_options_or_another_frame_are_noticed(run):
    coarse = store.load_or_make(run, 2, quality="live")
    fine = store.load_or_make(run, 2, quality="film")
    assert len(fine) > 2 * len(coarse)
    assert_same(store.read(store.path(run, 2)), fine)
    run.frame_path(2).unlink()
    with run:
        changed = body(2, count=9)
        run.write_frame(changed)
    assert store.load_or_make(run, 2).particle_volume == len(changed) != fine.particle_volume


def test_negative_numbers_count_from_the_end(run):
    assert store.load_or_make(run, -1, quality="live").index == 3
    with pytest.raises(RunFolderError, match="no frame"):
        store.load_or_make(run, 9)


def test_damaged_files_are_made_again(run):
    good = store.load_or_make(run, 1, quality="live")
    path = store.path(run, 1)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(RunFolderError, match="damaged or was not written by viscoil"):
        store.read(path)
    again = store.load_or_make(run, 1, quality="live")
    assert len(again) == len(good) and again.volume() == pytest.approx(good.volume(), rel=1e-4)
    with pytest.raises(RunFolderError, match="there is no surface file"):
        store.read(path.with_name("other.vtkhdf"))


def test_series_lists_what_is_there(run):
    for index in (3, 1):
        store.load_or_make(run, index, quality="live")
    listed = json.loads((store.folder(run) / store.SERIES).read_text())["files"]
    assert listed == [{"name": "surface_00001.vtkhdf", "time": 0.1}, {"name": "surface_00003.vtkhdf", "time": 0.3}]


def test_metrics_of_surfaces_join_those_of_the_run(run):
    assert "volume_ratio" not in run.metrics()
    mesh = store.load_or_make(run, 2)
    table = run.metrics()
    assert table["frame"].tolist() == [0, 1, 2, 3] and table["seconds"].tolist() == [2.5] * 4
    assert np.isnan(table["volume_ratio"]).tolist() == [True, True, False, True]
    assert table["volume_ratio"][2] == mesh.volume_ratio() and table["mesh_volume"][2] == mesh.volume()
    assert table["vertices"][2] == len(mesh) and table["triangles"][2] == len(mesh.triangles)
    assert table["area"][2] == mesh.area() and table["components"][2] == 1
    assert table["particle_volume"][2] == 54.0 and table["surface_seconds"][2] > 0


def test_a_run_started_again_forgets_its_surfaces_numbers(run):
    store.load_or_make(run, 2)
    with Run.create(run.path, SCENE, overwrite=True) as again:
        again.write_metrics({"frame": 2})
        assert "volume_ratio" not in again.metrics()


def test_someone_else_writing_the_index_does_not_stop_loading(run):
    with store.Index(run):
        mesh = store.load_or_make(run, 0, quality="live")
    assert len(mesh) and store.indices(run) == [0]
    assert store.usable(run, 0, None)["metrics"]["vertices"] == len(mesh)
    assert json.loads((store.folder(run) / store.SERIES).read_text())["files"][0]["name"] == "surface_00000.vtkhdf"


def test_filled_cavities_are_not_counted_as_fluid(tmp_path):
    x = block((10, 10, 10))
    mesh = surface(frame_of(x[np.linalg.norm(x, axis=1) > 2.2]))
    values = store.row(mesh)
    assert mesh.filled_volume > 20 and values["mesh_volume"] == pytest.approx(mesh.volume() - mesh.filled_volume)
    assert values["volume_ratio"] == pytest.approx(1, abs=0.05)
