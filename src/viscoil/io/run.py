"""The run folder: what a simulation leaves on disk, and what it continues from.

    scene.toml      the scene as it was run, overrides applied
    run.json        format, versions, device, command, status (running, finished, interrupted, failed) and message
    frames/         frame_00000.vtkhdf ... and frames.vtkhdf.series, the index that ParaView opens as a film
    checkpoints/    checkpoint_00010.h5 ..., the newest few
    metrics.csv     one row per frame
    log.txt         what was said, with times
    lock            the writer's process id, only while there is one

Every file is written beside its place, flushed and renamed, so a process killed at any moment leaves whole files.
A finished frame is never written again: a frame computed a second time is compared with the file instead.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import viscoil
from viscoil.errors import RunFolderError, SimulationFailed
from viscoil.io import checkpoint, vtkhdf
from viscoil.io.acted import judged
from viscoil.io.atomic import explain, remove_leftovers, write_atomic, write_if_changed
from viscoil.io.checkpoint import DamagedCheckpoint, ForeignCheckpoint
from viscoil.io.frame import Frame, plain
from viscoil.io.lock import Lock
from viscoil.io.metrics import MetricsTable

FORMAT = 1  # of the folder as a whole
STATUSES = ("running", "finished", "interrupted", "failed")
KEEP_CHECKPOINTS = 3  # newest ones kept; older ones only cost disk space
_FRAME = re.compile(r"frame_(\d{5,})\.vtkhdf")
_CHECKPOINT = re.compile(r"checkpoint_(\d{5,})\.h5")
# Parts of a scene that do not change where a particle goes: they may differ between a run and its continuation.
_NOT_PHYSICS = ("title", "description", "output", "expect", "figure", "picture", "profiles", "quality")
_APPEARANCE = ("colour", "look", "source")  # nor do these keys of materials and solids


def scene_hash(toml: str) -> str:
    """Fingerprint of what a scene computes: the same for other titles, outputs, expectations and numbers of frames."""
    tables = {key: value for key, value in tomllib.loads(toml).items() if key not in _NOT_PHYSICS}
    if isinstance(tables.get("time"), dict):
        tables["time"] = {key: value for key, value in tables["time"].items() if key != "frames"}
    for table in [*tables.get("material", {}).values(), *tables.get("solid", [])]:
        for key in _APPEARANCE:
            table.pop(key, None)
    return hashlib.sha256(json.dumps(tables, sort_keys=True, default=str).encode()).hexdigest()


class Run:
    """A run folder. Reading needs no lock; the first write takes it, :meth:`close` gives it back."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.frame_folder = self.path / "frames"
        self.checkpoint_folder = self.path / "checkpoints"
        self.said: list[str] = []  # what :meth:`log` was told by this object
        self._lock = Lock(self.path / "lock")
        self._times: dict[int, float] | None = None
        self._table: MetricsTable | None = None

    def __repr__(self) -> str:
        if not self.resumable(self.path):
            return f"<Run {self.path}: no run yet>"
        try:
            times, method = self.frame_times(), self.setting("solver", "method", "pbf")
            title, status = self.setting("", "title", ""), self.status
        except RunFolderError as error:
            return f"<Run {self.path}: {error}>"
        last = f"{len(times)} frame{'s' if len(times) > 1 else ''} to {max(times.values()):.6g} s" if times else "no frames yet"
        counts = self.metrics().get("particles", np.zeros(0))
        particles = f", {int(counts[-1])} particles" if len(counts) else ""
        title = f'"{title}", ' if title else ""
        return f'<Run {self.path}: {title}{method}{particles}, {last}, {status}>'

    # ---- opening ------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: str | os.PathLike, scene: Any, info: dict[str, Any] | None = None, overwrite: bool = False
    ) -> "Run":
        """A new run folder for ``scene`` (a Scene, or the text of one), locked for this process.

        ``info`` is added to run.json (device, command, ...). An existing run is only replaced with ``overwrite``; a
        folder that holds anything else is always refused.
        """
        run = cls(path)
        toml = scene if isinstance(scene, str) else scene.to_toml()
        try:
            run._refuse_other_content(overwrite)
            run.path.mkdir(parents=True, exist_ok=True)
            run._lock.acquire()
            run._refuse_other_content(overwrite)  # again: someone may have been faster
            run._clear()
            run.frame_folder.mkdir(exist_ok=True)
            run.checkpoint_folder.mkdir(exist_ok=True)
            write_atomic(run.path / "scene.toml", toml.encode())
            # Last, because it is what makes the folder a run folder: see `resumable`.
            run._write_info(_versions() | plain(info or {}) | {"created": _now(), "status": "running", "message": ""})
        except OSError as error:
            run.close()
            raise RunFolderError(explain(error, run.path)) from error
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Run":
        """The run folder at ``path``."""
        run = cls(path)
        if not run.path.is_dir():
            if run.path.is_file():
                raise RunFolderError(f"{run.path} is a file; expected a run folder, as viscoil run makes one of a scene.")
            raise RunFolderError(f"there is no run folder {run.path}.")
        if not (run.path / "run.json").is_file():
            raise RunFolderError(f"{run.path} is not a run folder: it has no run.json.")
        found = run.info.get("format")
        if found != FORMAT:
            raise RunFolderError(f"{run.path} has run format {found}, this version of viscoil reads {FORMAT}.")
        return run

    @staticmethod
    def resumable(path: str | os.PathLike) -> bool:
        """Whether ``path`` holds a run. A folder whose creation was cut short does not: create it again."""
        return (Path(path) / "run.json").is_file()

    def acquire(self) -> None:
        """Become the folder's one writer, or raise RunFolderError naming who is."""
        if not self._lock.held:
            self._lock.acquire()
            self._times = self._table = None  # someone else may have written since we read
            for folder in (self.path, self.frame_folder, self.checkpoint_folder):
                remove_leftovers(folder)

    def close(self) -> None:
        """Let others write."""
        self._lock.release()

    def __enter__(self) -> "Run":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_other_content(self, overwrite: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; a run needs a folder.")
        if self.resumable(self.path):
            if not overwrite:
                raise RunFolderError(
                    f"{self.path} already holds a run. Continue it with --resume, choose another, or overwrite it."
                )
            return
        ours = {"lock", "scene.toml", "frames", "checkpoints"}  # what a creation cut short leaves
        found = {file.name for file in self.path.iterdir()} - ours if self.path.is_dir() else set()
        others = sorted(name for name in found if not name.endswith(".part"))
        if others:
            raise RunFolderError(f"{self.path} is no run folder and not empty (it holds {others[0]}); choose another.")

    def _clear(self) -> None:
        """Delete an older run: only files that we wrote, checkpoints first so that none is left without its scene."""
        for folder, pattern in ((self.checkpoint_folder, _CHECKPOINT), (self.frame_folder, _FRAME)):
            for index in _indices(folder, pattern):
                (folder / _name(pattern, index)).unlink(missing_ok=True)
            remove_leftovers(folder)
        for name in ("frames/frames.vtkhdf.series", "metrics.csv", "surface/metrics.csv", "log.txt", "run.json"):
            (self.path / name).unlink(missing_ok=True)
        remove_leftovers(self.path)

    # ---- scene and status ---------------------------------------------------------------------------------------

    @property
    def scene_text(self) -> str:
        """scene.toml as it was run."""
        try:
            return (self.path / "scene.toml").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunFolderError(f"{self.path / 'scene.toml'} cannot be read: {error}.") from error

    def scene(self) -> Any:
        """The Scene as it was run."""
        from viscoil.scene.load import load  # here: reading frames must not need the scene machinery

        return load(self.path / "scene.toml")

    @property
    def scene_hash(self) -> str:
        """Fingerprint of the scene; checkpoints carry it too."""
        try:
            return scene_hash(self.scene_text)
        except tomllib.TOMLDecodeError as error:
            raise RunFolderError(f"{self.path / 'scene.toml'} is damaged: {error}.") from error

    def setting(self, table: str, key: str, default: Any) -> Any:
        """A value of scene.toml by table ("" for the top level) and key, without building the scene."""
        tables = self.settings
        return (tables.get(table, {}) if table else tables).get(key, default)

    @property
    def settings(self) -> dict[str, Any]:
        """scene.toml as tables, in which nothing is left to defaults."""
        try:
            return tomllib.loads(self.scene_text)
        except tomllib.TOMLDecodeError as error:
            raise RunFolderError(f"{self.path / 'scene.toml'} is damaged: {error}.") from error

    @property
    def info(self) -> dict[str, Any]:
        """run.json."""
        path = self.path / "run.json"
        try:
            info = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path} is damaged or cannot be read: {error}.") from error
        if not isinstance(info, dict):
            raise RunFolderError(f"{path} is damaged: it holds no table.")
        return info

    @property
    def status(self) -> str:
        """running, finished, interrupted or failed. A run whose process was killed counts as interrupted."""
        status = self.info.get("status", "interrupted")
        if status == "running" and not self._lock.held and self._lock.owner() is None:
            return "interrupted"
        return status

    def set_status(self, status: str, message: str = "", **more: Any) -> None:
        """Record how the run stands; ``more`` is added to run.json."""
        if status not in STATUSES:
            raise ValueError(f"status {status!r} is not one of {', '.join(STATUSES)}")
        self._write_info(self.info | plain(more) | {"status": status, "message": message})

    def _write_info(self, info: dict[str, Any]) -> None:
        self.acquire()
        info = {"format": FORMAT} | info | {"scene_hash": self.scene_hash, "updated": _now()}
        write_atomic(self.path / "run.json", (json.dumps(info, indent=2) + "\n").encode())

    def log(self, message: str) -> None:
        """Append a line to log.txt and remember it in ``said``. Never fails: a log must not stop a run."""
        self.said.append(message)
        with contextlib.suppress(OSError), open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{_now()}  {' '.join(message.split())}\n")

    # ---- frames -------------------------------------------------------------------------------------------------

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames on disk, ascending."""
        return _indices(self.frame_folder, _FRAME)

    def frame_path(self, index: int) -> Path:
        """Where frame ``index`` is or will be."""
        return self.frame_folder / _name(_FRAME, index)

    def frame(self, index: int) -> Frame:
        """Frame ``index``; negative numbers count from the last one."""
        if index < 0:
            existing = self.frames
            if -index > len(existing):
                raise RunFolderError(f"{self.path} has {len(existing)} frames; there is no frame {index}.")
            index = existing[index]
        return vtkhdf.read(self.frame_path(index))

    def write_frame(self, frame: Frame) -> Path:
        """Write a frame, or compare it with the one already there: a finished frame is never written again."""
        self._refuse_not_finite(frame)
        self.acquire()
        path = self.frame_path(frame.index)
        if path.exists():
            try:
                differing = frame.differences(vtkhdf.read(path))
            except RunFolderError as error:
                raise RunFolderError(f"{error} Delete it and resume: the frame will be computed again.") from error
            if differing:
                raise RunFolderError(
                    f"frame {frame.index} came out differently from {path} ({', '.join(differing)} differ). Frames are "
                    f"never rewritten; this run was made on another device or version: delete its later frames to "
                    f"continue from here, or start in a new folder."
                )
        else:
            write_atomic(path, vtkhdf.encode(frame))
        self._index_frame(frame.index, frame.time)
        return path

    @staticmethod
    def _refuse_not_finite(frame: Frame) -> None:
        found = frame.first_not_finite()
        if found is None:
            return
        name, row = found
        particle = int(frame["id"][row]) if "id" in frame.names else row
        raise SimulationFailed(
            f"frame {frame.index} at {frame.time:.6g} s was not written: {name} of particle {particle} is not finite.",
            time=frame.time, particle=particle, cause=f"{name} is not finite",
        )

    def _index_frame(self, index: int, moment: float) -> None:
        if self._times is None:
            self._times = self._read_times()
        self._times[index] = moment
        self._write_series()

    def frame_times(self) -> dict[int, float]:
        """Number -> time [s] of the frames on disk, without reading them where the index knows."""
        return self._read_times()

    def _read_times(self) -> dict[int, float]:
        """Frame number -> time from the series file; from the frames themselves where it has gaps."""
        known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            listed = json.loads((self.frame_folder / "frames.vtkhdf.series").read_bytes())["files"]
            known = {entry["name"]: float(entry["time"]) for entry in listed}
        times = {}
        for index in self.frames:
            name = _name(_FRAME, index)
            if name not in known:
                with contextlib.suppress(RunFolderError):
                    known[name] = self.frame(index).time
            if name in known:
                times[index] = known[name]
        return times

    def _write_series(self) -> None:
        entries = [{"name": _name(_FRAME, i), "time": t} for i, t in sorted((self._times or {}).items())]
        lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
        text = f'{{\n  "file-series-version": "1.0",\n  "files": [\n{lines}\n  ]\n}}\n'
        write_if_changed(self.frame_folder / "frames.vtkhdf.series", text.encode())

    # ---- checkpoints --------------------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> list[int]:
        """Frame numbers of the checkpoints on disk, ascending."""
        return _indices(self.checkpoint_folder, _CHECKPOINT)

    def checkpoint_path(self, index: int) -> Path:
        """Where the checkpoint of frame ``index`` is or will be."""
        return self.checkpoint_folder / _name(_CHECKPOINT, index)

    def write_checkpoint(self, frame_index: int, state: dict[str, Any]) -> Path:
        """Write the state at a frame boundary and drop all but the newest checkpoints."""
        self.acquire()
        content = checkpoint.encode(frame_index, state, self.scene_hash)
        path = write_atomic(self.checkpoint_path(frame_index), *content)
        for old in [index for index in self.checkpoints if index <= frame_index][:-KEEP_CHECKPOINTS]:
            with contextlib.suppress(OSError):
                self.checkpoint_path(old).unlink()
        return path

    def read_checkpoint(self, index: int) -> dict[str, Any]:
        """The state at frame ``index``; DamagedCheckpoint or ForeignCheckpoint when it cannot be used here."""
        path = self.checkpoint_path(index)
        try:
            found = checkpoint.decode(path.read_bytes(), path)
        except OSError as error:
            raise DamagedCheckpoint(f"{path} cannot be read: {error.strerror or error}.") from error
        if found.scene_hash != self.scene_hash:
            raise ForeignCheckpoint(
                f"{path} belongs to another scene than {self.path / 'scene.toml'}: one of them was changed or "
                f"exchanged. Put the right one back, or start in a new folder."
            )
        if found.frame != index:
            raise ForeignCheckpoint(f"{path} holds frame {found.frame}: it was renamed. Give it its name back.")
        return found.state

    def latest_checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        """The newest good checkpoint as (frame, state). Damaged ones are named in the log and passed over."""
        for index in reversed(self.checkpoints):
            try:
                return index, self.read_checkpoint(index)
            except DamagedCheckpoint as error:
                self.log(f"{error} It is passed over.")
        return None

    # ---- metrics ------------------------------------------------------------------------------------------------

    def write_metrics(self, values: dict[str, Any]) -> None:
        """One row of metrics.csv; a row for a frame that has one replaces it."""
        self.acquire()
        if self._table is None:
            self._table = MetricsTable(self.path / "metrics.csv")
        self._table.add(values)

    def metrics(self) -> dict[str, np.ndarray]:
        """metrics.csv by column, one entry per frame; and what surface/metrics.csv says of the surfaces of those frames."""
        columns = MetricsTable(self.path / "metrics.csv").columns()
        surfaces = MetricsTable(self.path / "surface" / "metrics.csv")
        if not surfaces.rows:
            return columns
        rows = [surfaces.rows.get(int(frame), {}) for frame in columns.get("frame", ())]
        for name in surfaces.names:
            if name != "frame":  # a frame without a surface has nan
                numbers = np.array([float(row.get(name) or "nan") for row in rows])
                columns[f"surface_{name}" if name in columns else name] = numbers
        return columns

    def acted(self) -> list[str]:
        """Sentences about viscosity and volume that were asked for and did not act; none where all is well."""
        return judged(self.metrics(), self.settings)


def _name(pattern: re.Pattern[str], index: int) -> str:
    return f"frame_{index:05d}.vtkhdf" if pattern is _FRAME else f"checkpoint_{index:05d}.h5"


def _indices(folder: Path, pattern: re.Pattern[str]) -> list[int]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _versions() -> dict[str, str]:
    versions = {"viscoil": viscoil.__version__, "python": platform.python_version(), "numpy": np.__version__}
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["quadrants"] = metadata.version("quadrants")
    return versions
