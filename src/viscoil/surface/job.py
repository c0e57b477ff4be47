"""Surfaces of all frames of a run: several processes, one frame each at a time; what is finished is never lost.

Each worker is a fresh process (kernel compilers and thread pools do not survive a fork) with its share of the cores; a
thread here feeds it and waits for its answers. A worker that dies takes only its frame with it: the frame is tried again
alone, when nobody else needs memory, and reported if that fails too.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import viscoil
from viscoil.errors import RunFolderError, SceneError
from viscoil.extras import require
from viscoil.io.atomic import remove_leftovers
from viscoil.io.run import Run
from viscoil.surface import store
from viscoil.surface.options import Options, settings

# Peak memory of a surface, measured with 94 thousand to 12 million particles. Vertices of film meshes of compact bodies are
# 88 n^(2/3), of live meshes a quarter of that; sheets and spray have more.
BYTES_PER_VERTEX, BYTES_PER_PARTICLE, BYTES_PER_WORKER = 1000, 120, 200e6
COMPACT, RAGGED = 90.0, 270.0  # vertices of a film mesh over n^(2/3)
BYTES_ON_DISK = 36  # of a particle in a frame: position, velocity, density, id and material

Progress = Callable[[dict[str, Any], int, int], None]


@dataclass
class Outcome:
    """What a job did."""

    made: list[int] = field(default_factory=list)  # frames whose surface was computed
    kept: list[int] = field(default_factory=list)  # frames that had the right one already
    failed: dict[int, str] = field(default_factory=dict)  # frame -> why it has none
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)  # frame -> its row of metrics.csv
    seconds: float = 0.0  # wall time
    workers: int = 1


def surface_run(
    run: Run, frames: Iterable[int] | None = None, workers: int | None = None, progress: Progress | None = None,
    overwrite: bool = False, **options: Any,
) -> Outcome:  # fmt: skip
    """Make the surfaces of ``frames`` (default all), ``workers`` at a time (default: cores, if memory allows).

    Frames that have one of the same options are left alone unless ``overwrite``. ``progress`` is called in this thread
    with the row of each new surface (or {"frame", "error"}), how many are done and how many there are to make. Ctrl-C
    stops at once; the next call goes on where this one stopped.
    """
    require("pysplashsurf", "to compute surfaces")
    begin = perf_counter()
    wanted = settings(**options)
    chosen = run.frames if frames is None else sorted(set(frames))
    if not chosen:
        raise RunFolderError(f"{run.path} has no frames yet.")
    if workers is not None and workers < 1:
        raise SceneError(f"workers: expected a whole number, at least 1; got {workers}", key="workers")
    outcome = Outcome()
    with store.Index(run) as index:
        for number in chosen:
            found = None if overwrite else store.usable(run, number, wanted)
            if found is not None:
                outcome.kept.append(number)
                outcome.rows[number] = found["metrics"]
                index.add(found["metrics"], found["time"])
        todo = [number for number in chosen if number not in outcome.rows]
        outcome.workers = min(workers or default_workers(run, todo, wanted), max(1, len(todo)))
        team = Team(run, wanted, outcome.workers)
        try:
            for done, answer in enumerate(team.answers(todo), 1):
                _record(answer, outcome, index)
                if progress is not None:
                    progress(answer.get("row") or answer, done, len(todo))
        finally:
            team.stop()
            remove_leftovers(index.folder)
    outcome.made.sort()
    outcome.seconds = perf_counter() - begin
    return outcome


def _record(answer: dict[str, Any], outcome: Outcome, index: store.Index) -> None:
    number = answer["frame"]
    if "error" in answer:
        outcome.failed[number] = answer["error"]
        return
    outcome.made.append(number)
    outcome.rows[number] = answer["row"]
    index.add(answer["row"], answer["time"])


def default_workers(run: Run, frames: list[int], options: Options) -> int:
    """As many as there are cores, fewer where their memory would not fit into what is free."""
    from viscoil.scene.size import available_memory

    count = cores()
    room = available_memory()
    if frames and room is not None:
        particles = max(_size(run.frame_path(number)) for number in frames) / BYTES_ON_DISK
        count = int(min(count, max(1, 0.8 * room / memory_needed(particles, options.quality))))
    return count


def memory_needed(particles: float, quality: str, shape: float = RAGGED) -> float:
    """Bytes a process needs at its peak for a surface of so many particles; ``shape`` as COMPACT or RAGGED."""
    vertices = shape * particles ** (2 / 3) * (1.0 if quality == "film" else 0.25)
    return BYTES_PER_WORKER + BYTES_PER_PARTICLE * particles + BYTES_PER_VERTEX * vertices


def cores() -> int:
    """Cores this process may use. As in viscoil.backend, which would load the kernel compiler for it."""
    return max(1, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Team:
    """Workers that make surfaces of frames, and the threads that talk to them."""

    def __init__(self, run: Run, options: Options, workers: int) -> None:
        self._run, self._options, self._count = run, options, workers
        self._tasks: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._alive: set[Worker] = set()
        self._guard = threading.Lock()
        self._stopped = False
        self._threads: list[threading.Thread] = []

    def answers(self, frames: list[int]) -> Iterable[dict[str, Any]]:
        """Answers of the workers as they come: {"frame", "row", "time"} or {"frame", "error"}."""
        suspects: dict[int, str] = {}
        for answer in self._round(frames, self._count):
            if "died" in answer:
                suspects[answer["frame"]] = answer["died"]
            else:
                yield answer
        for frame in suspects:  # alone, with all the memory there is
            for answer in self._round([frame], 1):
                if "died" in answer:
                    yield {"frame": frame, "error": f"the process died twice while making it: {answer['died']}"}
                else:
                    yield answer

    def _round(self, frames: list[int], workers: int) -> Iterable[dict[str, Any]]:
        for frame in frames:
            self._tasks.put(frame)
        workers = min(workers, len(frames))
        self._threads = [threading.Thread(target=self._serve, args=(workers,), daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()
        running = workers
        while running:
            answer = self._answers.get()
            if answer is None:
                running -= 1
            else:
                yield answer

    def _serve(self, workers: int) -> None:
        """One thread: feeds one worker, and a new one should that die."""
        worker: Worker | None = None
        frame = -1
        try:
            while not self._stopped:
                try:
                    frame = self._tasks.get_nowait()
                except queue.Empty:
                    break
                worker = worker or self._hire(workers)
                answer = worker.ask(frame)
                if answer is None:
                    self._answers.put({"frame": frame, "died": worker.obituary()})
                    self._dismiss(worker)
                    worker = None
                else:
                    self._answers.put(answer)
        except Exception as error:  # a process that cannot be started; the others may be luckier
            self._answers.put({"frame": frame, "error": f"{type(error).__name__}: {error}"})
        finally:
            if worker is not None:
                self._dismiss(worker)
            self._answers.put(None)

    def _hire(self, workers: int) -> "Worker":
        with self._guard:
            if self._stopped:
                raise RuntimeError("stopped")
            worker = Worker(self._run, self._options, workers)
            self._alive.add(worker)
            return worker

    def _dismiss(self, worker: "Worker") -> None:
        worker.close()
        with self._guard:
            self._alive.discard(worker)

    def stop(self) -> None:
        """End all workers now. Their files are whole or not there."""
        self._stopped = True
        with self._guard:
            for worker in self._alive:
                worker.kill()
        for thread in self._threads:
            thread.join()


class Worker:
    """A process running :mod:`viscoil.surface.worker`."""

    def __init__(self, run: Run, options: Options, workers: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "viscoil.surface.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, env=_environment(workers), encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for us to handle
        )  # fmt: skip
        self._send({"run": str(run.path.absolute()), "options": options.header()})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: reading its answer will tell
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def ask(self, frame: int) -> dict[str, Any] | None:
        """The answer about one frame, None when the process died of it."""
        assert self._process.stdout is not None
        self._send({"frame": frame})
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def obituary(self) -> str:
        """How the process ended, in words."""
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f"; it last said: {said[-1].strip()[:200]}" if said else ""
        if code >= 0:
            return f"exit code {code}{last}"
        hint = " (out of memory?)" if -code == getattr(signal, "SIGKILL", 9) else ""
        return f"killed by {signal.Signals(-code).name}{hint}{last}"

    def kill(self) -> None:
        """End it now."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """Let it finish and go."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()


def _environment(workers: int) -> dict[str, str]:
    """Of a worker: its share of the cores, the CPU for its kernels (a GPU is not shared), and our own code."""
    threads = str(max(1, cores() // workers))
    source = str(Path(viscoil.__file__).parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {
        "RAYON_NUM_THREADS": threads, "VISCOIL_THREADS": threads, "VISCOIL_DEVICE": "cpu", "PYTHONPATH": path,
    }  # fmt: skip
