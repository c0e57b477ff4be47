"""Pictures of a run: one camera, nothing drawn twice, nothing half written, whatever happens on the way."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scenery import SIZE, block, small_run

from viscoil.errors import RunFolderError, SceneError
from viscoil.io.lock import Lock
from viscoil.render.job import Settings, frames_per_second, render_run, scenery, stamp
from viscoil.render.picture import Picture, stamp_of
from viscoil.surface import store

FAST = Settings(size=SIZE, fast=True)


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path / "run")


def image(outcome, index):
    with Image.open(outcome.paths[index]) as opened:
        return np.asarray(opened.convert("RGB")).astype(int)


def test_every_frame_once_from_one_camera(run):
    outcome = render_run(run, settings=FAST)
    assert [path.name for path in outcome.paths.values()] == ["frame_00000.png", "frame_00001.png", "frame_00002.png"]
    assert outcome.made == [0, 1, 2] and outcome.rows[0]["total"] > 0 and {"surface", "draw"} <= set(outcome.rows[0])
    shots = [image(outcome, index) for index in range(3)]
    assert all(shot.shape == (SIZE[1], SIZE[0], 3) for shot in shots)
    blue = [np.argwhere(shot[..., 2] - shot[..., 0] > 25)[:, 1].mean() for shot in shots]
    assert blue[0] + 5 < blue[1] < blue[2] - 5, "the camera stands still, the fluid moves right"
    assert sorted(file.name for file in (run.path / "render").iterdir()) == [path.name for path in outcome.paths.values()]


def test_a_single_picture_may_have_a_name_of_its_own(run, tmp_path):
    outcome = render_run(run, [1], FAST, tmp_path / "pictures" / "{last}.png")
    assert outcome.paths[1] == tmp_path / "pictures" / "{last}.png" and image(outcome, 1).shape == (SIZE[1], SIZE[0], 3)
    with pytest.raises(RunFolderError, match=r"many.png is one picture, and 3 frames were asked for"):
        render_run(run, settings=FAST, out=tmp_path / "many.png")


def test_resume_draws_only_what_is_missing_or_changed(run):
    first = render_run(run, settings=FAST)
    again = render_run(run, settings=FAST)
    assert again.made == [] and again.kept == [0, 1, 2]
    first.paths[1].unlink()
    first.paths[2].write_bytes(first.paths[2].read_bytes()[:20])  # damaged
    assert render_run(run, settings=FAST).made == [1, 2]
    assert render_run(run, settings=replace(FAST, look="honey")).made == [0, 1, 2]
    assert render_run(run, settings=replace(FAST, look="honey")).made == []
    assert render_run(run, [2], replace(FAST, look="honey"), overwrite=True).made == [2]
    # A frame that was computed anew is another frame.
    run.frame_path(0).unlink()
    run.write_frame(block((0, 0, 0), (5, 4, 5), index=0, title="computed anew"))
    run.close()
    assert render_run(run, settings=replace(FAST, look="honey")).made == [0, 2]


def test_pictures_of_one_frame_and_of_all_have_different_cameras(run):
    alone = scenery([run.frame(0)], FAST)
    together = scenery((run.frame(k) for k in range(3)), FAST)
    assert together.camera.height_at_target > 1.2 * alone.camera.height_at_target
    assert together.volume == pytest.approx(100 * 0.1**3) and together.top == pytest.approx(0.35)
    told = scenery([run.frame(0)], replace(FAST, camera="3,2,1 -> 0,0,0"))
    assert told.camera.position == (3, 2, 1)


def test_a_picture_that_cannot_be_written_leaves_nothing(run, monkeypatch):
    def crash(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(RunFolderError, match="disk is full"):
        render_run(run, [0], FAST)
    assert not list((run.path / "render").glob("*"))


def test_killed_in_the_middle_and_gone_on(run):
    """A process killed while it draws leaves whole pictures only; the next one goes on and tidies up."""
    code = (
        "import sys, time\nfrom viscoil.io.run import Run\nfrom viscoil.render import job, picture\n"
        "real = picture.Image.Image.save\n"
        "def slow(self, out, *a, **k):\n    real(self, out, *a, **k)\n"
        "    print('drawn', flush=True)\n    slow.count = getattr(slow, 'count', 0) + 1\n"
        "    time.sleep(60 if slow.count == 2 else 0)\n"
        "picture.Image.Image.save = slow\n"
        f"job.render_run(Run.open({str(run.path)!r}), settings=job.Settings(size={SIZE}, fast=True))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline().strip() for _ in range(2)] == ["drawn", "drawn"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = run.path / "render"
    assert [file.name for file in sorted(folder.glob("*.png"))] == ["frame_00000.png"]
    (folder / ".frame_00001.png.1.part").write_bytes(b"half a picture")  # as a kill during the write would leave it
    outcome = render_run(run, settings=FAST)
    assert outcome.kept == [0] and outcome.made == [1, 2]
    assert sorted(file.name for file in folder.iterdir()) == [path.name for path in outcome.paths.values()]


def test_one_writer_at_a_time(run):
    (run.path / "render").mkdir()
    lock = Lock(run.path / "render" / "lock")
    lock.acquire()
    with pytest.raises(RunFolderError, match="is being written by"):
        render_run(run, settings=FAST)
    lock.release()


def test_stamp_travels_in_the_picture(tmp_path):
    path = tmp_path / "one.png"
    Picture(np.zeros((4, 6, 3), np.uint8)).save(path, "made like this")
    assert stamp_of(path) == "made like this"
    Image.new("RGB", (2, 2)).save(tmp_path / "other.png")
    assert stamp_of(tmp_path / "other.png") == "" and stamp_of(tmp_path / "none.png") is None


def test_traced_pictures_follow_the_surface_they_show(run):
    """The stamp alone: nothing is traced here."""
    traced = Settings(size=SIZE)
    shared = scenery([run.frame(0)], traced)
    before = stamp(run, 0, traced, shared)
    store.load_or_make(run, 0)
    assert stamp(run, 0, traced, shared) == before, "the usual surface, made beforehand"
    store.load_or_make(run, 0, smoothing=3)
    assert stamp(run, 0, traced, shared) != before
    assert stamp(run, 0, replace(traced, variant="scalar_rgb"), shared) == stamp(run, 0, traced, shared)


def test_a_film_plays_in_real_time(run):
    assert frames_per_second(run, [0, 1, 2]) == pytest.approx(50)
    assert frames_per_second(run, [0, 2]) == pytest.approx(25)
    assert frames_per_second(run, [1]) == pytest.approx(50)


def test_wrong_settings_are_named(run):
    for settings, words in (
        (Settings(look="hony"), 'unknown look "hony". Did you mean "honey"'),
        (Settings(draw="surfaces"), 'Did you mean "surface"'),
        (Settings(size=(0, 10)), "size: expected"), (Settings(samples=0), "samples: expected"),
    ):  # fmt: skip
        with pytest.raises(SceneError, match=words):
            render_run(run, settings=replace(settings, fast=True))


def test_what_is_drawn(monkeypatch):
    assert Settings(look="particles").how() == "particles" and Settings(look="honey").how() == "surface"
    assert Settings(look="particles", draw="surface").how() == "surface"
    monkeypatch.setitem(sys.modules, "pysplashsurf", None)
    assert Settings(fast=True).how() == "particles", "a preview needs nothing to be installed"
    assert Settings().how() == "surface"


def test_no_frames_yet(tmp_path):
    empty = small_run(tmp_path / "run", frames=0)
    with pytest.raises(RunFolderError, match="no frames yet"):
        render_run(empty, settings=FAST)
