"""The loop that fills a run folder: frames, metrics, checkpoints, and what happens on Ctrl-C, failure and resume."""

import contextlib
import shlex
import signal
import threading
import time
from dataclasses import dataclass
from typing import Any

from viscoil.errors import RunFolderError, ViscoilError
from viscoil.io.acted import Watch, rows_of
from viscoil.io.checkpoint import table_mismatch
from viscoil.io.frame import Frame
from viscoil.io.run import Run, scene_hash

# A checkpoint is also due when computing again what came after the last one would take this long [s].
CHECKPOINT_SECONDS = 120.0


class Progress:
    """What :func:`execute` tells its caller. Override what you want to show."""

    watch: Watch | None = None  # what of the asked acts, up to the frame that is told; set by execute

    def start(self, first: int, last: int) -> None:
        """The run begins or goes on: ``first`` is the frame already there (-1: none), ``last`` the one to reach."""

    def frame(self, frame: Frame, metrics: dict[str, Any]) -> None:
        """A frame and its row of metrics are on disk."""

    def note(self, text: str) -> None:
        """Something worth reading: resumed from where, damaged files, limits of the solver, how to stop."""


@dataclass(frozen=True)
class Outcome:
    """How an execution ended without an error."""

    status: str  # "finished" or "interrupted"
    frame: int  # number of the last frame on disk
    time: float  # its simulated time [s]
    resumed_from: int | None  # checkpoint it continued from, None when it began at the start
    message: str  # one sentence, with how to go on
    acted: tuple[str, ...] = ()  # sentences about what did not act as asked, see io/acted.py


def execute(sim: Any, run: Run, frames: int | None = None, progress: Progress | None = None) -> Outcome:
    """Simulate until frame number ``frames`` is on disk (default: time.frames of the scene), resuming what is there.

    Frame 0 is the initial state. The run continues from its last good checkpoint, or from the start when it has none;
    frames that exist already are compared with the computed ones, never rewritten. ``sim`` is a fresh Simulation of
    the run's scene.

    Ctrl-C or SIGTERM finishes the present frame, saves a checkpoint of it and returns with status "interrupted". A
    second one stops at once with KeyboardInterrupt; the folder then resumes from the last checkpoint. States are only
    ever saved at frame boundaries, so a resumed run equals an uninterrupted one; run.json says which instructions computed
    it, and those go on.
    """
    progress = progress or Progress()
    last = int(run.setting("time", "frames", 100) if frames is None else frames)
    _refuse_other_scene(sim, run)
    passes = _passes(sim, run)
    with run, _Signals(progress) as signals, sim.computing_by(passes) if passes else contextlib.nullcontext():
        try:
            resumed = _restore(sim, run, progress)
            run.set_status("running", frames=last, **({"passes": passes} if passes else {}))
            progress.watch = _watch(run, -1 if resumed is None else resumed)
            progress.start(-1 if resumed is None else resumed, last)
            stopped = _simulate(sim, run, last, progress, signals) if (resumed is None or resumed < last) else False
            outcome = _outcome(run, last, resumed, stopped, progress.watch)
            run.set_status(outcome.status, outcome.message)
            for text in (outcome.message, *outcome.acted):
                run.log(text)
            return outcome
        except KeyboardInterrupt:
            _record(run, "interrupted", f"stopped at once by the user. Go on with: {how_to_resume(run, last)}")
            raise
        except Exception as error:
            text = str(error) if isinstance(error, ViscoilError) else f"{type(error).__name__}: {error}"
            _record(run, "failed", text)
            raise


def how_to_resume(run: Run, last: int) -> str:
    """The command that continues a run up to frame ``last``."""
    more = "" if last == run.setting("time", "frames", last) else f" --frames {last}"
    return f"viscoil run {shlex.quote(str(run.path))} --resume{more}"


def _simulate(sim: Any, run: Run, last: int, progress: Progress, signals: "_Signals") -> bool:
    """Frames up to ``last``; True when a signal ended it before."""
    every = max(1, int(run.setting("output", "checkpoint_every", 10)))
    watch = progress.watch or _watch(run, -1)
    notes_said, judged, saved_at = 0, len(watch.sentences()), time.monotonic()
    for frame in sim.frames(last):
        run.write_frame(frame)
        metrics = {"frame": frame.index} | sim.metrics()
        run.write_metrics(metrics)
        watch.add(metrics)
        stop = signals.received and frame.index < last
        due = frame.index > 0 and frame.index % every == 0
        # Only after frame and metrics: a checkpoint promises that all before it is on disk.
        if due or stop or frame.index >= last or time.monotonic() - saved_at > CHECKPOINT_SECONDS:
            run.write_checkpoint(frame.index, sim.state())
            saved_at = time.monotonic()
        for note in sim.notes[notes_said:]:
            run.log(note)
            progress.note(note)
        notes_said = len(sim.notes)
        if watch.words() and len(found := watch.sentences()) > judged:  # at the end again, with what it came to
            judged = len(found)
            for text in found:
                _say(run, progress, text)
        progress.frame(frame, metrics)
        if stop:
            return True
        if frame.index >= last:
            return False
    return False


def _restore(sim: Any, run: Run, progress: Progress) -> int | None:
    """Bring ``sim`` to the last good checkpoint; its frame number, or None to begin at the start."""
    said = len(run.said)
    found = run.latest_checkpoint()
    for text in run.said[said:]:  # damaged checkpoints
        progress.note(text)
    existing = run.frames
    if found is None:
        if existing:
            _say(run, progress, f"no usable checkpoint: computing again from the start; the {len(existing)} finished "
                                f"frames are compared, not rewritten.")
        return None
    index, state = found
    path = run.checkpoint_path(index)
    mismatch = table_mismatch(sim.state(), state)
    if mismatch:
        raise RunFolderError(f"{path} was written by another version of viscoil: {mismatch}.")
    try:
        sim.restore(state)
    except (KeyError, ValueError, TypeError) as error:
        raise RunFolderError(f"{path} does not fit this version of viscoil: {error}.") from error
    missing = sorted(set(range(index + 1)) - set(existing))
    if missing:
        _say(run, progress, f"frame {missing[0]} ({len(missing)} in all) is missing and lies before the checkpoint: "
                            f"it is not computed again.")
    _say(run, progress, f"resumed from {path.name}.")
    return index


def _watch(run: Run, known: int) -> Watch:
    """Judges what acted in ``run``, whose frames up to ``known`` are not computed again."""
    watch = Watch(run.settings)
    for row in rows_of(run.metrics()):
        if row["frame"] <= known:
            watch.add(row)
    return watch


def _outcome(run: Run, last: int, resumed: int | None, stopped: bool, watch: Watch) -> Outcome:
    index = run.frames[-1]
    moment = run.frame(index).time
    status, text = "finished", f"finished: {index} frames, {moment:.6g} s, in {run.path}."
    if stopped:
        how = how_to_resume(run, last)
        status, text = "interrupted", f"stopped by the user after frame {index} of {last} ({moment:.6g} s). Go on with: {how}"
    return Outcome(status, index, moment, resumed, text, tuple(watch.sentences()))


def _passes(sim: Any, run: Run) -> str:
    """What computes: as the run's first frames were, since other instructions round otherwise; "" if ``sim`` has no choice."""
    own = getattr(sim, "passes", "")
    began = run.frames or run.checkpoints
    return own and (run.info.get("passes", "not in use") if began else own)


def _refuse_other_scene(sim: Any, run: Run) -> None:
    scene = getattr(sim, "scene", None)
    if scene is not None and scene_hash(scene.to_toml()) != run.scene_hash:
        raise RunFolderError(
            f"{run.path} was made from another scene. Resume it with its own scene.toml, or choose another folder."
        )


def _say(run: Run, progress: Progress, text: str) -> None:
    run.log(text)
    progress.note(text)


def _record(run: Run, status: str, text: str) -> None:
    """Note the end of a run that is being left by an exception; a second error here must not hide the first."""
    run.log(text)
    with contextlib.suppress(RunFolderError):
        run.set_status(status, text)


class _Signals:
    """Turns the first SIGINT or SIGTERM into a wish to stop, the second into KeyboardInterrupt.

    Only the main thread may set signal handlers; elsewhere this does nothing.
    """

    def __init__(self, progress: Progress) -> None:
        self.received = False
        self._progress = progress
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: object) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = True
        self._progress.note("finishing this frame and saving; once more to stop at once.")
