"""The run folder: atomic files, checkpoints that know whether they are whole, one writer, honest status."""

import errno
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fake_simulation import SCENE, make_frame

from viscoil.errors import RunFolderError, SimulationFailed
from viscoil.io import atomic, checkpoint
from viscoil.io.checkpoint import DamagedCheckpoint, ForeignCheckpoint
from viscoil.io.run import KEEP_CHECKPOINTS, Run, scene_hash

STATE = {
    "position": np.arange(12, dtype=np.float32).reshape(4, 3), "empty": np.zeros((0, 3), np.float32),
    "emitter/0/carry": 0.1, "inner": {"deep": {"ids": np.array([1, 2, 2**40])}, "name": "honey µ\0", "none": ""},
    "count": 4, "dt": 1 / 3, "flag": True,
}


@pytest.fixture
def run(tmp_path) -> Run:
    with Run.create(tmp_path / "run", SCENE, {"device": "cpu"}) as run:
        yield run


def assert_same_state(a: dict, b: dict) -> None:
    assert a.keys() == b.keys()
    for key, value in a.items():
        if isinstance(value, dict):
            assert_same_state(value, b[key])
        elif isinstance(value, np.ndarray):
            assert value.dtype == b[key].dtype and np.array_equal(value, b[key])
        else:
            assert type(value) is type(b[key]) and value == b[key]


# ---- atomic files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_crash_before_the_rename_leaves_the_old_file(step, tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic.write_atomic(path, b"old")

    def crash(*_):
        raise OSError(errno.EIO, "pulled the plug")

    monkeypatch.setattr(os, step, crash)
    with pytest.raises(RunFolderError, match="pulled the plug"):
        atomic.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_half_written_files_are_invisible_and_swept_up(run, monkeypatch):
    run.write_frame(make_frame(0))
    for folder in (run.path, run.frame_folder, run.checkpoint_folder):
        (folder / ".frame_00001.vtkhdf.123.part").write_bytes(b"half")
    run.close()
    again = Run.open(run.path)
    assert again.frames == [0] and again.checkpoints == []
    with again:
        assert list(run.path.rglob("*.part")) == []


@pytest.mark.parametrize("number, words", [(errno.ENOSPC, "disk is full"), (errno.EACCES, "no permission")])
def test_write_errors_are_said_in_words(number, words, run, monkeypatch):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunFolderError, match=words) as caught:
        run.write_frame(make_frame(0))
    assert "frame_00000.vtkhdf" in str(caught.value)
    assert run.frames == []


# ---- checkpoints ----------------------------------------------------------------------------------------------------


def test_state_comes_back_exactly(run):
    run.write_checkpoint(4, STATE)
    index, state = Run.open(run.path).latest_checkpoint()
    assert index == 4
    assert_same_state(STATE, state)
    assert run.write_checkpoint(4, STATE).read_bytes() == b"".join(checkpoint.encode(4, STATE, run.scene_hash))


def test_checkpoint_opens_in_plain_hdf5(run):
    import h5py

    with h5py.File(run.write_checkpoint(4, STATE)) as file:
        assert np.array_equal(file["state/position"], STATE["position"])
        assert file.userblock_size == 512


@pytest.mark.parametrize("bad", [{"a": object()}, {"a": [1, 2]}, {"a": np.array(["x"])}, {"a": 2**70}, {"a": None}])
def test_only_plain_values_can_be_saved(run, bad):
    with pytest.raises(TypeError, match="'a'"):
        run.write_checkpoint(1, bad)


def damage_cut(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def damage_byte(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def damage_checksum(content: bytes) -> bytes:
    at = content.index(b"sha256 ") + 7
    return content[:at] + (b"0" if content[at : at + 1] != b"0" else b"1") + content[at + 1 :]


def damage_version(content: bytes) -> bytes:
    return content.replace(b"viscoil checkpoint 1 ", b"viscoil checkpoint 3 ", 1)


@pytest.mark.parametrize(
    "damage",
    [
        damage_cut, damage_byte, damage_checksum, damage_version,
        lambda c: b"", lambda c: bytes(len(c)), lambda c: c + b"x",
    ],
    ids=["cut", "byte", "checksum", "version", "empty", "zeros", "longer"],
)
def test_damaged_checkpoint_is_named_and_passed_over(run, damage):
    run.write_checkpoint(4, STATE)
    path = run.write_checkpoint(8, STATE | {"count": 8})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedCheckpoint, match=r"checkpoint_00008\.h5 is damaged"):
        run.read_checkpoint(8)
    index, state = run.latest_checkpoint()
    assert index == 4 and state["count"] == 4
    assert "checkpoint_00008.h5 is damaged" in run.said[-1]
    assert "checkpoint_00008.h5" in (run.path / "log.txt").read_text()


def test_every_flipped_byte_is_noticed(run):
    """Wherever a bit changes in what is used: the padding of the first block is the only place that does not matter."""
    small = {"x": np.arange(3)}
    path = run.write_checkpoint(4, small)
    content = path.read_bytes()
    line = content.index(b"\n") + 1
    places = [*range(line), *np.random.default_rng(0).integers(512, len(content), 150)]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with pytest.raises(DamagedCheckpoint):
            run.read_checkpoint(4)


def test_foreign_checkpoints_are_refused_by_name(run, tmp_path, monkeypatch):
    with Run.create(tmp_path / "other", SCENE.replace("0.1", "0.2")) as other:
        source = other.write_checkpoint(4, STATE)
    target = run.checkpoint_path(4)
    target.write_bytes(source.read_bytes())
    with pytest.raises(ForeignCheckpoint, match=r"checkpoint_00004.h5 belongs to another scene"):
        run.latest_checkpoint()
    target.unlink()
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    run.write_checkpoint(4, STATE)
    monkeypatch.undo()
    with pytest.raises(ForeignCheckpoint, match=r"checkpoint_00004.h5 has checkpoint format 2"):
        run.latest_checkpoint()
    target.write_bytes(b"\x89HDF\r\n\x1a\n and so on")
    with pytest.raises(ForeignCheckpoint, match=r"checkpoint_00004.h5 .* not a checkpoint"):
        run.latest_checkpoint()
    run.write_checkpoint(5, STATE).rename(target)
    with pytest.raises(ForeignCheckpoint, match=r"checkpoint_00004\.h5 holds frame 5"):
        run.latest_checkpoint()


def test_only_the_newest_checkpoints_are_kept(run):
    for index in range(1, 8):
        run.write_checkpoint(index, {"i": index})
    assert run.checkpoints == list(range(8 - KEEP_CHECKPOINTS, 8))


def test_table_mismatch_in_words():
    fits = {"p": {"x": np.zeros((3, 3), np.float32)}, "n": 1}
    assert checkpoint.table_mismatch(fits, {"p/x": np.zeros((9, 3), np.float32), "n": 2}) == ""
    words = checkpoint.table_mismatch(
        fits | {"y": np.zeros(2)}, {"p": {"x": np.zeros((3, 2), np.float32)}, "z": np.zeros(2)}
    )
    assert words == "it lacks y; it has the unknown z; it differs in p/x (float32[2] instead of float32[3])"


# ---- frames and metrics ---------------------------------------------------------------------------------------------


def test_finished_frames_are_compared_not_rewritten(run):
    path = run.write_frame(make_frame(3))
    before = (path.stat().st_mtime_ns, path.read_bytes())
    assert run.write_frame(make_frame(3)) == path
    changed = make_frame(3)
    changed["position"][7, 1] = np.nextafter(changed["position"][7, 1], np.float32(9))
    with pytest.raises(RunFolderError, match=r"frame 3 .*position differ"):
        run.write_frame(changed)
    assert before == (path.stat().st_mtime_ns, path.read_bytes())
    path.write_bytes(b"junk")
    with pytest.raises(RunFolderError, match=r"frame_00003.vtkhdf is damaged.*computed again"):
        run.write_frame(make_frame(3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_never_reaches_a_file(run, value):
    frame = make_frame(2)
    frame["velocity"][5, 2] = value
    with pytest.raises(SimulationFailed, match="velocity of particle 15") as caught:
        run.write_frame(frame)
    assert caught.value.particle == 15 and caught.value.time == frame.time
    assert run.frames == []


def test_frames_by_number(run):
    for index in (0, 1, 100000):
        run.write_frame(make_frame(index))
    assert run.frames == [0, 1, 100000]
    assert run.frame(-1).index == 100000 and run.frame(-3).index == 0
    with pytest.raises(RunFolderError, match="frame_00007"):
        run.frame(7)
    with pytest.raises(RunFolderError, match="no frame -4"):
        run.frame(-4)


def test_series_is_rebuilt_when_it_was_lost(run):
    for index in range(3):
        run.write_frame(make_frame(index))
    series = run.frame_folder / "frames.vtkhdf.series"
    whole = json.loads(series.read_text())
    for broken in (b"", b"{", whole_without(whole, 1)):
        series.write_bytes(broken)
        run.close()
        run.write_frame(make_frame(2))
        assert json.loads(series.read_text()) == whole


def whole_without(whole: dict, index: int) -> bytes:
    return json.dumps(whole | {"files": [e for i, e in enumerate(whole["files"]) if i != index]}).encode()


def test_metrics_rows_are_replaced_not_duplicated(run):
    for index in range(4):
        run.write_metrics({"frame": index, "time": index / 3, "limited_by": "cfl, really", "seconds": np.float32(0.1)})
    run.write_metrics({"frame": 2, "time": 9.0, "retries": 1})
    table = run.metrics()
    assert table["frame"].tolist() == [0, 1, 2, 3]
    assert table["time"].tolist() == [0.0, 1 / 3, 9.0, 1.0]
    assert table["limited_by"].tolist() == ["cfl, really", "cfl, really", "", "cfl, really"]
    assert np.isnan(table["retries"][[0, 1, 3]]).all() and table["retries"][2] == 1
    assert table["seconds"][0] == 0.1


def test_metrics_survive_a_row_cut_in_the_middle(run):
    for index in range(3):
        run.write_metrics({"frame": index, "time": index * 0.5})
    path = run.path / "metrics.csv"
    path.write_bytes(path.read_bytes() + b"3,1")
    run.close()
    again = Run.open(run.path)
    assert again.metrics()["frame"].tolist() == [0, 1, 2]
    with again:
        again.write_metrics({"frame": 3, "time": 1.5})
    assert path.read_text().splitlines() == ["frame,time", "0,0.0", "1,0.5", "2,1.0", "3,1.5"]


# ---- the folder -----------------------------------------------------------------------------------------------------


def test_run_json_says_what_was_run(run):
    info = run.info
    assert info["format"] == 1 and info["device"] == "cpu" and info["scene_hash"] == scene_hash(SCENE)
    assert {"viscoil", "python", "quadrants", "created", "updated"} <= info.keys()
    run.set_status("failed", "it broke")
    assert run.status == "failed" and Run.open(run.path).info["message"] == "it broke"
    with pytest.raises(ValueError):
        run.set_status("sleeping")


def test_a_killed_run_counts_as_interrupted(run):
    assert run.status == "running" and Run.open(run.path).status == "running"
    run.close()
    assert Run.open(run.path).status == "interrupted"


def test_scene_hash_knows_what_matters():
    assert scene_hash(SCENE) == scene_hash(SCENE.replace("frames = 12", "frames = 99").replace("fake", "renamed"))
    assert scene_hash(SCENE) == scene_hash(SCENE.replace("checkpoint_every = 4", "checkpoint_every = 1"))
    assert scene_hash(SCENE) != scene_hash(SCENE.replace("0.1", "0.11"))


def test_existing_content_is_respected(run, tmp_path):
    run.write_frame(make_frame(0))
    run.write_checkpoint(0, STATE)
    (run.path / "mine.txt").write_text("keep")
    run.close()
    with pytest.raises(RunFolderError, match="already holds a run"):
        Run.create(run.path, SCENE)
    with Run.create(run.path, SCENE, overwrite=True) as new:
        assert new.frames == [] and new.checkpoints == [] and (run.path / "mine.txt").read_text() == "keep"
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    for overwrite in (False, True):
        with pytest.raises(RunFolderError, match=r"cat\.jpg"):
            Run.create(tmp_path / "photos", SCENE, overwrite=overwrite)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="is a file"):
        Run.create(tmp_path / "file", SCENE)


def test_creation_cut_short_can_be_repeated(tmp_path):
    Run.create(tmp_path / "run", SCENE).close()
    (tmp_path / "run" / "run.json").unlink()
    assert not Run.resumable(tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        Run.open(tmp_path / "run")
    Run.create(tmp_path / "run", SCENE).close()
    assert Run.resumable(tmp_path / "run")


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"format": 99}'])
def test_damaged_or_newer_run_json(run, content):
    (run.path / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match="run"):
        Run.open(run.path)


def test_missing_folder(tmp_path):
    with pytest.raises(RunFolderError, match="no run folder"):
        Run.open(tmp_path / "nothing")


HOLD = """
import sys
from viscoil.io.run import Run
run = Run.open(sys.argv[1])
run.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


def test_second_writer_is_refused_until_the_first_dies(run):
    run.write_frame(make_frame(0))
    run.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunFolderError, match=rf"being written by process {holder.pid} "):
            run.write_frame(make_frame(1))
        with pytest.raises(RunFolderError, match="being written"):
            Run.create(run.path, SCENE, overwrite=True)
        assert run.frame(0).index == 0 and run.frames == [0], "reading needs no lock"
    finally:
        holder.kill()
        holder.communicate()
    assert (run.path / "lock").exists(), "a killed process leaves its file behind"
    run.write_frame(make_frame(1))
    run.close()
    assert run.frames == [0, 1] and not (run.path / "lock").exists()


def test_lock_without_operating_system_support(run, monkeypatch):
    """Where files cannot be locked, the process id in the file decides."""
    from viscoil.io import lock

    run.close()
    monkeypatch.setattr(lock, "fcntl", None)
    me = {"pid": os.getppid(), "host": lock.socket.gethostname()}
    (run.path / "lock").write_text(json.dumps(me))
    with pytest.raises(RunFolderError, match=f"process {os.getppid()} "):
        run.acquire()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (run.path / "lock").write_text(json.dumps(me | {"pid": gone.pid}))
    run.acquire()
    run.close()


def test_frame_bytes_do_not_depend_on_when_they_are_written(run, monkeypatch):
    first = hashlib.sha256(run.write_frame(make_frame(1)).read_bytes()).hexdigest()
    run.frame_path(1).unlink()
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert hashlib.sha256(run.write_frame(make_frame(1)).read_bytes()).hexdigest() == first
