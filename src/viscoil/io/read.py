"""Exports read back: the same frames from whatever :func:`viscoil.io.export.export` wrote."""

from collections.abc import Callable, Iterator
from pathlib import Path

from viscoil.errors import RunFolderError
from viscoil.io import alembic, glb, npz, ply, usd, vtk, vtkhdf
from viscoil.io.frame import Frame

# Ending -> reader of the one frame in a file, or of all of them.
_ONE: dict[str, Callable[[Path], Frame]] = {
    ".npz": npz.read, ".ply": ply.read, ".vtp": vtk.read, ".glb": glb.read, ".vtkhdf": vtkhdf.read,
}
_MANY: dict[str, Callable[[Path], Iterator[Frame]]] = {".usdc": usd.read, ".usd": usd.read, ".abc": alembic.read}


def read_export(path: Path | str) -> Iterator[Frame]:
    """The frames in an exported file, or in a folder of them, one after the other and in order.

    Every number is the run's, bit for bit (glTF rounds doubles to single precision, the widest it has).
    """
    place = Path(path)
    if place.is_dir():
        found = sorted(file for file in place.iterdir() if _is_export(file))
        if not found:
            raise RunFolderError(f"{place} holds no exported frames.")
        for file in found:
            yield from read_export(file)
    elif not place.exists():
        raise RunFolderError(f"there is no file {place}.")
    elif place.suffix in _ONE:
        yield _ONE[place.suffix](place)
    elif place.suffix in _MANY:
        yield from _MANY[place.suffix](place)
    else:
        known = ", ".join([*_ONE, *_MANY])
        raise RunFolderError(f"{place} is no export that can be read back; expected a file ending in {known}.")


def _is_export(file: Path) -> bool:
    return file.suffix in _MANY or (file.suffix in _ONE and file.name.startswith("frame_"))
