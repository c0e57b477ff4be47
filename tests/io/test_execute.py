"""The loop: what lands in the folder, resuming, extending, stopping by signal, and being killed at any moment."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from fake_simulation import SCENE, FakeSimulation

from viscoil.errors import RunFolderError, SimulationFailed
from viscoil.io import execute as module
from viscoil.io.execute import Progress, execute
from viscoil.io.run import Run


class Recorder(Progress):
    def __init__(self, at: int = -1, action=None):
        self.started, self.indices, self.notes = None, [], []
        self.at, self.action = at, action

    def start(self, first, last):
        self.started = (first, last)

    def frame(self, frame, metrics):
        self.indices.append(frame.index)
        assert metrics["frame"] == frame.index
        if frame.index == self.at:
            self.action()

    def note(self, text):
        self.notes.append(text)


def marks(run: Run) -> dict:
    return {i: (run.frame_path(i).stat().st_mtime_ns, run.frame_path(i).read_bytes()) for i in run.frames}


def contents(run: Run) -> dict:
    return {index: content for index, (_, content) in marks(run).items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Run:
    """Twelve frames without interruption."""
    run = Run.create(tmp_path_factory.mktemp("whole") / "run", SCENE)
    execute(FakeSimulation(toml=SCENE), run)
    return run


def test_whole_run(whole):
    assert whole.frames == list(range(13)) and whole.status == "finished"
    assert whole.checkpoints == [4, 8, 12]
    table = whole.metrics()
    assert table["frame"].tolist() == list(range(13)) and table["particles"].tolist() == list(range(40, 65, 2))
    assert "finished: 12 frames" in (whole.path / "log.txt").read_text()
    assert not (whole.path / "lock").exists()


@pytest.mark.parametrize("stop_at", [0, 1, 5, 8])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_saves_and_the_resumed_run_is_the_same(stop_at, number, whole, tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    # Sent while frame stop_at is being reported: the frame after it is the one in progress.
    recorder = Recorder(stop_at, lambda: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    outcome = execute(FakeSimulation(), run, progress=recorder)
    assert signal.getsignal(number) is before
    assert outcome.status == "interrupted" == run.status and outcome.frame == stop_at + 1
    assert "--resume" in outcome.message and str(run.path) in outcome.message
    assert run.checkpoints[-1] == stop_at + 1
    assert any("finishing this frame" in note for note in recorder.notes)
    finished = marks(run)
    sim = FakeSimulation(toml=SCENE)
    again = execute(sim, Run.open(run.path))
    assert again.status == "finished" and again.resumed_from == stop_at + 1
    assert sim.frames_computed == list(range(stop_at + 2, 13)), "nothing is computed twice"
    assert contents(run) == contents(whole)
    assert all(marks(run)[index] == mark for index, mark in finished.items())
    assert run.metrics()["kinetic_energy"].tolist() == whole.metrics()["kinetic_energy"].tolist()


def test_second_signal_stops_at_once(whole, tmp_path):
    class Stubborn(FakeSimulation):
        def step(self):
            if self.frame_index == 6:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
            super().step()

    run = Run.create(tmp_path / "run", SCENE)
    with pytest.raises(KeyboardInterrupt):
        execute(Stubborn(), run)
    assert run.status == "interrupted" and run.frames[-1] == 6 and run.checkpoints == [4]
    assert "--resume" in run.info["message"]
    execute(FakeSimulation(), Run.open(run.path))
    assert contents(run) == contents(whole)


def test_in_another_thread_signals_are_left_alone(tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    results = []
    thread = threading.Thread(target=lambda: results.append(execute(FakeSimulation(), run, 2)))
    thread.start()
    thread.join()
    assert results[0].status == "finished"


def test_without_checkpoint_it_starts_again_and_leaves_frames_alone(whole, tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    for frame in FakeSimulation().frames(3):
        run.write_frame(frame)
    run.close()
    finished = marks(run)
    recorder = Recorder()
    execute(FakeSimulation(), Run.open(run.path), progress=recorder)
    assert recorder.started == (-1, 12) and "no usable checkpoint" in recorder.notes[0]
    assert contents(run) == contents(whole)
    assert all(marks(run)[index] == mark for index, mark in finished.items())


def test_extending_a_finished_run(whole, tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    execute(FakeSimulation(), run, 5)
    sim = FakeSimulation()
    assert execute(sim, Run.open(run.path), 12).resumed_from == 5
    assert sim.frames_computed == list(range(6, 13)) and contents(run) == contents(whole)
    sim = FakeSimulation()
    outcome = execute(sim, Run.open(run.path), 12)
    assert outcome.status == "finished" and sim.frames_computed == [], "nothing left to do"
    assert execute(FakeSimulation(), Run.open(run.path), 3).frame == 12
    stop = Recorder(13, lambda: os.kill(os.getpid(), signal.SIGINT))
    longer = execute(FakeSimulation(), Run.open(run.path), 20, stop)
    assert longer.status == "interrupted" and longer.message.endswith("--resume --frames 20")


def test_damaged_checkpoints_fall_back_one_by_one(whole, tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    execute(FakeSimulation(), run)
    finished = marks(run)
    for left, index in ((8, 12), (4, 8), (None, 4)):
        path = run.checkpoint_path(index)
        path.write_bytes(path.read_bytes()[:-1])
        recorder = Recorder()
        sim = FakeSimulation()
        assert execute(sim, Run.open(run.path), 12, recorder).resumed_from == left
        assert any(f"checkpoint_{index:05d}.h5 is damaged" in note for note in recorder.notes)
        assert sim.frames_computed == list(range(0 if left is None else left + 1, 13))
        for later in run.checkpoints:  # what the recomputation repaired is damaged again for the next round
            if later >= index:
                run.checkpoint_path(later).write_bytes(b"")
    assert marks(run) == finished
    assert run.metrics()["frame"].tolist() == list(range(13))


def test_other_outcome_of_a_finished_frame_is_refused(tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    execute(FakeSimulation(), run, 6)
    run.checkpoint_path(6).unlink()

    class Different(FakeSimulation):
        def step(self):
            super().step()
            self.velocity[3] += np.float32(1e-6)

    finished = marks(run)
    with pytest.raises(RunFolderError, match="frame 5 came out differently"):
        execute(Different(), Run.open(run.path), 6)
    assert marks(run) == finished and run.status == "failed"


def test_state_of_another_version_is_refused(tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    execute(FakeSimulation(), run, 4)

    class Newer(FakeSimulation):
        def state(self):
            state = super().state()
            state["particles"]["stress"] = np.zeros((len(self.position), 6), np.float32)
            return state

    with pytest.raises(RunFolderError, match=r"checkpoint_00004.h5 .*another version.*lacks particles/stress"):
        execute(Newer(), Run.open(run.path), 8)


def test_other_scene_is_refused(tmp_path):
    run = Run.create(tmp_path / "run", SCENE)
    with pytest.raises(RunFolderError, match="another scene"):
        execute(FakeSimulation(toml=SCENE.replace("0.1", "0.3")), run)


def test_failure_keeps_finished_frames_and_says_why(tmp_path):
    class Exploding(FakeSimulation):
        def step(self):
            super().step()
            if self.frame_index == 5:
                raise SimulationFailed("particle 7 flew away", time=self.time, particle=7)

    run = Run.create(tmp_path / "run", SCENE)
    with pytest.raises(SimulationFailed):
        execute(Exploding(), run)
    assert run.frames == list(range(6)) and run.status == "failed"
    assert run.info["message"] == "particle 7 flew away" and not (run.path / "lock").exists()


def test_not_finite_state_reaches_no_file(tmp_path):
    class Nan(FakeSimulation):
        def step(self):
            super().step()
            if self.frame_index == 3:
                self.velocity[1] = np.nan

    run = Run.create(tmp_path / "run", SCENE)
    with pytest.raises(SimulationFailed, match="position of particle 1"):
        execute(Nan(), run)
    assert run.frames == [0, 1, 2, 3] and run.metrics()["frame"].tolist() == [0, 1, 2, 3]


def test_notes_are_said_once_and_logged(tmp_path):
    class Talking(FakeSimulation):
        def step(self):
            super().step()
            if self.step_count in (1, 9):
                self.notes.append(f"note at step {self.step_count}")

    run = Run.create(tmp_path / "run", SCENE)
    recorder = Recorder()
    execute(Talking(), run, progress=recorder)
    assert recorder.notes == ["note at step 1", "note at step 9"]
    assert len(re.findall("note at step", (run.path / "log.txt").read_text())) == 2


def test_slow_frames_are_checkpointed_more_often(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)
    run = Run.create(tmp_path / "run", SCENE)
    execute(FakeSimulation(), run, 3)
    assert run.checkpoints == [1, 2, 3]


@pytest.mark.parametrize("mode, seeds", [("call", range(12)), ("time", range(4))])
def test_killed_at_any_moment(mode, seeds, tmp_path):
    """kill -9 between any two file operations, or at any time: finished frames stay, the result is the same bits."""
    driver = Path(__file__).parent / "crash_driver.py"
    command = [sys.executable, str(driver), str(tmp_path), mode, *map(str, seeds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kills = [int(count) for count in re.findall(r"killed (\d+) times", done.stdout)]
    assert len(kills) == len(seeds) and min(kills) >= 1, done.stdout
