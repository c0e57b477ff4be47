"""Exports of a whole run, one frame at a time. A new format is one module with ``write`` and one line in FORMATS."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import viscoil
from viscoil.errors import RunFolderError, SceneError, SurfaceFailed
from viscoil.extras import require
from viscoil.io import alembic, glb, npz, ply, usd, vtk
from viscoil.io.atomic import explain, remove_leftovers
from viscoil.io.lock import Lock
from viscoil.io.moment import Moment, Target
from viscoil.io.ranges import frame_range
from viscoil.io.run import Run
from viscoil.keys import did_you_mean
from viscoil.surface.mesh import SurfaceMesh

WHAT = ("particles", "surface", "all")
_LAYOUT = 1  # of what exporters write: a new number makes old single files be written again


@dataclass(frozen=True)
class Format:
    """A way out. The writer takes moments as they come, keeps none and writes files that are whole or not there."""

    write: Callable[[Iterable[Moment], Target], Path]  # returns what to open
    files: tuple[str, ...] = ()  # endings of the one file it writes; empty: a folder of files, one or more per frame
    needs: tuple[str, str] | None = None  # optional module and what for


FORMATS: dict[str, Format] = {
    "usd": Format(usd.write, usd.SUFFIXES, ("pxr", usd.PURPOSE)),
    "vtk": Format(vtk.write),
    "ply": Format(ply.write),
    "npz": Format(npz.write),
    "glb": Format(glb.write),
    "abc": Format(alembic.write, alembic.SUFFIXES, ("alembic3d", alembic.PURPOSE)),
}


def export(
    run: Run, format: str, out: Path | str | None = None, progress: Callable[[int], None] | None = None,
    what: str = "particles", frames: str | None = None,
    surface_progress: Callable[[dict[str, Any], int, int], None] | None = None,
) -> Path:  # fmt: skip
    """Write frames of ``run`` in ``format`` and return the file or folder to open.

    ``out`` is a folder (default RUN/export/FORMAT), or the file itself for formats that write one. ``what`` is
    "particles", "surface" or "all"; solids come with each. ``frames`` is a range such as "10:50:2". ``progress`` is
    called with the number of each frame read, ``surface_progress`` as by ``surface_run`` while missing surfaces are made.
    Positions and all other numbers are exactly the run's. Files that already
    hold the right content are left alone; an export that was cut short is continued or written anew.
    """
    check(format, what)
    chosen = FORMATS[format]
    if chosen.needs:
        require(*chosen.needs)
    if not run.frames:
        raise RunFolderError(f"{run.path} has no frames to export yet.")
    indices = frame_range(frames, run.frames)
    if what != "particles":
        _make_surfaces(run, indices, surface_progress)
    target = _target(run, format, out, what, indices)
    try:
        target.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(explain(error, target.folder)) from error
    lock = Lock(target.folder / ".lock")
    lock.acquire()
    try:
        remove_leftovers(target.folder)
        return chosen.write(_read(run, target, progress), target)
    finally:
        lock.release()


def check(format: str, what: str = "particles") -> None:
    """Raise SceneError when there is no such format or no such thing to export."""
    if format not in FORMATS:
        raise SceneError(
            f'there is no export format "{format}"; there are {", ".join(FORMATS)}.{did_you_mean(format, FORMATS)}',
            expected="one of " + ", ".join(FORMATS),
        )
    if what not in WHAT:
        raise SceneError(
            f'"{what}" cannot be exported; there are {", ".join(WHAT)}.{did_you_mean(what, WHAT)}',
            expected="one of " + ", ".join(WHAT),
        )


def _target(run: Run, format: str, out: Path | str | None, what: str, indices: list[int]) -> Target:
    place = Path(out) if out is not None else run.path / "export" / format
    single = place.suffix.lower() in FORMATS[format].files
    known = run.frame_times()
    times = [known[index] if index in known else run.frame(index).time for index in indices]
    surface = what != "particles"
    return Target(
        folder=place.parent if single else place, file=place if single else None, name=run.path.resolve().name,
        particles=what != "surface", surface=surface, indices=indices, times=times, frame_time=_frame_time(run, known),
        stamp=_stamp(run, indices, what) if FORMATS[format].files else "",
    )  # fmt: skip


def _frame_time(run: Run, times: dict[int, float]) -> float:
    """Time between two frames [s], from the frames themselves where there are two."""
    if len(times) > 1:
        first, last = min(times), max(times)
        if times[last] > times[first]:
            return (times[last] - times[first]) / (last - first)
    return float(run.setting("time", "frame_time", 1 / 60))


def _stamp(run: Run, indices: list[int], what: str) -> str:
    """Fingerprint of what goes into an export: frames are never rewritten, so their names, sizes and times are enough."""
    files = [run.frame_path(index) for index in indices]
    if what != "particles":
        files += [_surface_file(run, index) for index in indices]
    marks = [(file.name, (found := file.stat()).st_size, found.st_mtime_ns) for file in files]
    about = [viscoil.__version__, _LAYOUT, what, run.scene_hash, marks]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _read(run: Run, target: Target, progress: Callable[[int], None] | None) -> Iterator[Moment]:
    for index in target.indices:
        yield Moment(run.frame(index), _surface(run, index) if target.surface else None)
        if progress is not None:
            progress(index)


# Surfaces are computed by a layer above this one, so it is only loaded when they are asked for.
def _make_surfaces(run: Run, indices: list[int], progress: Any = None) -> None:
    """Compute, in parallel, those that are not on disk yet. Whatever surface a frame has is right."""
    from viscoil.surface import store
    from viscoil.surface.job import surface_run

    missing = [index for index in indices if store.usable(run, index, None) is None]
    if not missing:
        return
    for index, why in surface_run(run, missing, progress=progress).failed.items():
        raise SurfaceFailed(f"nothing was exported: frame {index} has no surface: {why}")


def _surface(run: Run, index: int) -> SurfaceMesh:
    from viscoil.surface.store import load_or_make

    return load_or_make(run, index)


def _surface_file(run: Run, index: int) -> Path:
    from viscoil.surface import store

    return store.path(run, index)
