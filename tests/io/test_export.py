"""Exports of runs: the run's numbers in every format, whole files or none, nothing written twice, memory that stays flat."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import pytest
from export_kit import COUNTS, FRAME_TIME, make_run, use_made_up_surfaces

from viscoil.bench import export as bench
from viscoil.cli import main
from viscoil.errors import MissingExtra, RunFolderError, SceneError
from viscoil.io import npz, vtk
from viscoil.io.export import FORMATS, export
from viscoil.io.lock import Lock
from viscoil.io.read import read_export
from viscoil.io.run import Run

SINGLE = [name for name, form in FORMATS.items() if form.files]
SERIES = [name for name, form in FORMATS.items() if not form.files]
SUFFIX = {"vtk": ".vtp"}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return make_run(tmp_path_factory.mktemp("export") / "run")


def contents(folder) -> dict:
    return {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir()}


@pytest.mark.parametrize("up", ["y", "z"])
@pytest.mark.parametrize("materials", [1, 2])
@pytest.mark.parametrize("format", FORMATS)
def test_every_number_comes_back(format, materials, up, tmp_path):
    run = make_run(tmp_path / "run", up, materials)
    found = list(read_export(export(run, format)))
    assert len(found) == len(COUNTS)
    for frame in found:
        original = run.frame(frame.index)
        assert frame["position"].tobytes() == original["position"].tobytes()
        assert frame.differences(original) == []
        assert frame.header() == original.header() and frame.names == original.names


@pytest.mark.parametrize("format", FORMATS)
def test_doubles_and_long_integers(format, tmp_path):
    run = Run.create(tmp_path / "run", "spacing = 0.1\n")
    from fake_simulation import make_frame

    frame = make_frame(0, 6)
    frame.fields["id"] = frame["id"] + 2**33
    run.write_frame(frame)
    run.close()
    (found,) = read_export(export(run, format))
    if format == "glb":  # 32-bit floats are all it has
        assert (found["stress"] == frame["stress"].astype("f4")).all()
        found.fields["stress"] = frame["stress"]
    assert found.differences(frame) == []


@pytest.mark.parametrize("format", SERIES)
def test_series_have_a_file_per_frame_and_leave_equal_ones_alone(format, run):
    folder = export(run, format)
    assert folder == run.path / "export" / format
    suffix = SUFFIX.get(format, f".{format}")
    names = [f"frame_{index:05d}{suffix}" for index in range(len(COUNTS))]
    assert sorted(p.name for p in folder.glob("frame_*")) == names
    before = contents(folder)
    (folder / names[1]).write_bytes(b"damaged")
    (folder / f".{names[2]}.1.part").write_bytes(b"left by a killed export")
    seen = []
    export(run, format, progress=seen.append)
    assert seen == run.frames
    after = contents(folder)
    assert {name for name in after if after[name][0] != before[name][0]} == {names[1]}, "only the damaged file is written again"
    assert {name: content for name, (_, content) in after.items()} == {name: content for name, (_, content) in before.items()}


@pytest.mark.parametrize("format", SINGLE)
def test_single_files_are_left_alone_while_they_are_right(format, tmp_path):
    run = make_run(tmp_path / "run", counts=(3, 4))
    path = export(run, format)
    assert path.parent == run.path / "export" / format and path.name.startswith("run.")
    before = path.stat().st_mtime_ns
    assert export(run, format) == path and path.stat().st_mtime_ns == before
    assert len(list(read_export(export(run, format, frames="1")))) == 1, "another range is another content"
    path.write_bytes(path.read_bytes()[:1000])
    export(run, format)
    assert len(list(read_export(path))) == 2, "a damaged file is replaced"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    named = export(run, format, tmp_path / f"film{FORMATS[format].files[0]}")
    assert named == tmp_path / f"film{FORMATS[format].files[0]}" and len(list(read_export(named))) == 2


@pytest.mark.parametrize("format", SINGLE)
def test_an_error_half_way_leaves_nothing(format, tmp_path):
    run = make_run(tmp_path / "run", counts=(3, 4, 5))
    run.frame_path(2).write_bytes(b"damaged")
    with pytest.raises(RunFolderError, match="frame_00002"):
        export(run, format)
    assert list((run.path / "export" / format).iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="limits the size of files, which only Unix can")
@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_said_and_leaves_nothing_half(format, tmp_path):
    run = make_run(tmp_path / "run", counts=(10, 3000, 3000))
    code = (
        "import resource, sys; from viscoil.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        f"sys.exit(main(['export', {str(run.path)!r}, '--to', {format!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and ("could not be written" in done.stderr or "disk is full" in done.stderr), done.stderr
    left = [p.name for p in (run.path / "export" / format).iterdir()]
    assert not any(".part" in name for name in left)
    assert left == [] if format in SINGLE else {frame.index for frame in read_export(run.path / "export" / format)} == {0}


@pytest.mark.parametrize("format", SINGLE)
def test_killed_half_way_leaves_no_file_under_the_final_name(format, tmp_path):
    run = make_run(tmp_path / "run", counts=(2000,) * 30)
    code = (
        "import sys, time; from viscoil.io.export import export; from viscoil.io.run import Run\n"
        f"def seen(index):\n    sys.stdout.write(f'{{index}}\\n'); sys.stdout.flush(); time.sleep(0.05)\n"
        f"export(Run.open({str(run.path)!r}), {format!r}, progress=seen)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) == 10:
                break
        os.kill(process.pid, signal.SIGKILL)
    folder = run.path / "export" / format
    assert all(p.name.startswith(".") for p in folder.iterdir()) and any(".part" in p.name for p in folder.iterdir())
    path = export(run, format)
    assert [p.name for p in folder.iterdir()] == [path.name], "what the killed one left is gone"
    assert [frame.index for frame in read_export(path)] == run.frames


def test_two_exports_into_one_folder_do_not_disturb_each_other(run, tmp_path):
    (tmp_path / "out").mkdir()
    other = Lock(tmp_path / "out" / ".lock")
    other.acquire()
    with pytest.raises(RunFolderError, match="being written by process"):
        export(run, "npz", tmp_path / "out")
    other.release()
    export(run, "npz", tmp_path / "out")


def test_ranges_of_frames(run, tmp_path):
    for format in FORMATS:
        found = list(read_export(export(run, format, tmp_path / format, frames="0:4:2,3")))
        assert [frame.index for frame in found] == [0, 2, 3, 4]
        assert [frame.time for frame in found] == [k * FRAME_TIME for k in (0, 2, 3, 4)]


def test_pvd_lists_files_with_their_times(run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    folder = export(run, "vtk", tmp_path / "elsewhere", what="all")
    listed = {}
    for name in ("frames", "surface", "solids", "containers"):
        entries = ElementTree.parse(folder / f"{name}.pvd").getroot().findall(".//DataSet")
        assert [float(e.get("timestep")) for e in entries] == [k * FRAME_TIME for k in range(len(COUNTS))]
        listed[name] = [e.get("file") for e in entries]
    assert listed["frames"] == [f"frame_{k:05d}.vtp" for k in range(len(COUNTS))]
    assert listed["containers"] == ["containers_00000.vtp"] * len(COUNTS), "what rests is written once"
    assert listed["solids"] == [f"solids_{k:05d}.vtp" for k in (0, 0, 2, 3, 4)]


@pytest.mark.parametrize("what", ["particles", "surface", "all"])
def test_what_is_written(what, run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    for format in ("npz", "ply", "vtk"):
        names = {p.name.split("_")[0] for p in export(run, format, tmp_path / format, what=what).glob("*_00000.*")}
        assert ("frame" in names, "surface" in names) == (what != "surface", what != "particles")
    if what == "surface":
        for format in (*SINGLE, "glb"):
            with pytest.raises(RunFolderError, match="no particles"):
                list(read_export(export(run, format, tmp_path / format, what=what)))


def test_wrong_names_and_empty_runs_are_said(run, tmp_path):
    with pytest.raises(SceneError, match='Did you mean "ply"'):
        export(run, "pyl")
    with pytest.raises(SceneError, match='Did you mean "particles"'):
        export(run, "ply", what="particle")
    with pytest.raises(SceneError, match="no frame 9"):
        export(run, "ply", frames="9")
    empty = Run.create(tmp_path / "empty", "spacing = 0.1\n")
    with pytest.raises(RunFolderError, match="no frames"):
        export(empty, "vtk")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file"):
        export(run, "vtk", tmp_path / "file")


@pytest.mark.parametrize(("format", "module", "extra"), [("usd", "pxr", "usd"), ("abc", "alembic3d", "alembic")])
def test_missing_packages_are_named_before_anything_is_done(format, module, extra, run, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf'pip install "\.\[{extra}\]"'):
        export(run, format, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert main(["export", str(run.path), "--to", format]) == 2
    assert f'pip install ".[{extra}]"' in capsys.readouterr().err


def test_reading_what_is_no_export(tmp_path):
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "a.usdc").write_bytes(b"nonsense")
    (tmp_path / "a.abc").write_bytes(b"nonsense")
    (tmp_path / "a.glb").write_bytes(b"nonsense")
    for name in ("a.txt", "b.npz", "a.usdc", "a.abc", "a.glb"):
        with pytest.raises(RunFolderError, match=name):
            list(read_export(tmp_path / name))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunFolderError, match="holds no exported frames"):
        list(read_export(tmp_path / "empty"))


def test_from_the_command_line(run, tmp_path, capsys):
    assert main(["export", str(run.path), "--to", "usd", "--frames", "2:3", "-o", str(tmp_path / "a.usdc")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "a.usdc")
    assert [frame.index for frame in read_export(tmp_path / "a.usdc")] == [2, 3]


def test_series_index_is_what_paraview_reads(run):
    index = json.loads((run.frame_folder / "frames.vtkhdf.series").read_text())
    assert index["file-series-version"] == "1.0"
    assert index["files"] == [{"name": f"frame_{k:05d}.vtkhdf", "time": k * FRAME_TIME} for k in range(len(COUNTS))]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory) -> Run:
    return bench.make_run(tmp_path_factory.mktemp("long") / "run", 50_000, 60)


@pytest.mark.parametrize("format", FORMATS)
def test_memory_does_not_grow_with_the_number_of_frames(format, long_run, tmp_path):
    """40 frames of 50,000 particles are 72 MB: an exporter that kept them would exceed the bound."""
    found = bench.measure(long_run.path, format, "particles", tmp_path / "out")
    assert found["frames"] == 60 and found["bytes"] > 60e6
    assert max(found["resident"][20:]) - max(found["resident"][:20]) < 40e6


def test_equal_frames_give_equal_files_whatever_the_time(run, tmp_path):
    first = export(run, "npz", tmp_path / "a")
    time.sleep(1.1)  # archives that stamp their entries do so in seconds
    second = export(run, "npz", tmp_path / "b")
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes()
    assert npz.read(first / "frame_00000.npz").differences(vtk.read(export(run, "vtk") / "frame_00000.vtp")) == []


def test_surfaces_are_computed_when_missing_and_kept_when_there(tmp_path):
    import numpy as np
    import trimesh

    from viscoil.io.frame import Frame
    from viscoil.surface import store

    block = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.float32) * np.float32(0.1)
    run = Run.create(tmp_path / "run", "spacing = 0.1\n")
    fields = {"position": block, "velocity": np.ones_like(block), "material": np.zeros(len(block), np.int32)}
    for index in range(2):
        run.write_frame(Frame(index, index / 60, index, dict(fields), 0.1, materials=[{"name": "goo"}]))
    run.close()
    own = store.load_or_make(run, 0, smoothing=0)  # someone's own choice of options
    seen = []
    folder = export(run, "ply", what="surface", surface_progress=lambda row, done, total: seen.append((row["frame"], total)))
    assert seen == [(1, 1)], "only the missing one"
    first, second = (trimesh.load(folder / f"surface_0000{k}.ply", process=False) for k in (0, 1))
    assert np.array_equal(np.asarray(first.vertices, np.float32), own.vertices)
    assert second.is_watertight and second.volume == pytest.approx(0.8**3, rel=0.1)
    data = second.metadata["_ply_raw"]["vertex"]["data"]
    assert np.allclose(data["velocity_y"], 1)


def test_benchmark_from_the_command_line(tmp_path, capsys):
    options = ["--particles", "300", "--frames", "3", "--formats", "npz,abc", "--json", str(tmp_path / "a.json")]
    assert main(["bench", "export", *options]) == 0
    assert "peak memory MB" in capsys.readouterr().out
    found = json.loads((tmp_path / "a.json").read_text())
    assert [(row["format"], row["frames"]) for row in found["rows"]] == [("npz", 3), ("abc", 3)]
    assert all(row["bytes"] > 3 * 300 * 28 and row["peak"] > 20e6 for row in found["rows"])
    assert main(["bench", "export", "--formats", "vtp"]) == 2
