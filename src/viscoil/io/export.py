"""Exports of a whole run, one frame at a time. A new format is one module with ``write`` and one line in FORMATS."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from viscoil.errors import RunFolderError, SceneError
from viscoil.io import npz, ply, vtk
from viscoil.io.atomic import explain, remove_leftovers
from viscoil.io.frame import Frame
from viscoil.io.run import Run
from viscoil.keys import did_you_mean

# Name -> write(frames, folder). A writer takes the frames as they come, keeps none, writes each file atomically and
# leaves files alone that already have the right content.
FORMATS: dict[str, Callable[[Iterable[Frame], Path], None]] = {
    "vtk": vtk.write,
    "ply": ply.write,
    "npz": npz.write,
}


def export(run: Run, format: str, out: Path | str | None = None, progress: Callable[[int], None] | None = None) -> Path:
    """Write all frames of ``run`` in ``format`` to the folder ``out`` (default RUN/export/FORMAT) and return it.

    ``progress`` is called with the number of each frame read. Positions and all other numbers are exactly the run's.
    """
    if format not in FORMATS:
        raise SceneError(
            f'there is no export format "{format}"; there are {", ".join(FORMATS)}.{did_you_mean(format, FORMATS)}',
            expected="one of " + ", ".join(FORMATS),
        )
    indices = run.frames
    if not indices:
        raise RunFolderError(f"{run.path} has no frames to export yet.")
    folder = Path(out) if out is not None else run.path / "export" / format
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(explain(error, folder)) from error
    remove_leftovers(folder)
    FORMATS[format](_read(run, indices, progress), folder)
    return folder


def _read(run: Run, indices: list[int], progress: Callable[[int], None] | None) -> Iterator[Frame]:
    for index in indices:
        yield run.frame(index)
        if progress is not None:
            progress(index)
