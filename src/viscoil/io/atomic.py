"""Files that are either whole or not there: written beside their place, flushed to disk, then renamed."""

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from viscoil.errors import RunFolderError

# Leading dot: hidden from listings and from ParaView's grouping of numbered files.
_PREFIX, _SUFFIX = ".", ".part"
_NUMBERS = itertools.count()


def write_atomic(path: Path, *parts: bytes | bytearray | memoryview) -> Path:
    """Write the concatenated ``parts`` to ``path`` so that no one ever sees half a file, and return ``path``."""
    temporary = path.with_name(f"{_PREFIX}{path.name}.{os.getpid()}{_SUFFIX}")
    try:
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise RunFolderError(explain(error, path)) from error
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return path


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A name beside ``path`` (same ending) for libraries that write files themselves; it becomes ``path`` at the end.

    Nothing is left of it when the block ends with an error. Libraries report a full disk as RuntimeError.
    """
    # Numbered, because a library may remember a file by its name.
    temporary = path.with_name(f"{_PREFIX}{path.stem}.{os.getpid()}.{next(_NUMBERS)}{_SUFFIX}{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        raise RunFolderError(explain(error, path)) from error
    except RuntimeError as error:
        why = " ".join(str(error).split())[:300]
        raise RunFolderError(f"{path} could not be written (is the disk full?): {why}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_if_changed(path: Path, content: bytes) -> bool:
    """Like :func:`write_atomic`, but leave a file with the same content alone. Says whether it wrote."""
    try:
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    except OSError:
        pass  # not there or not readable: write it
    write_atomic(path, content)
    return True


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed process left half written in ``folder``. Only for the one who holds the lock."""
    for pattern in (f"{_PREFIX}*{_SUFFIX}", f"{_PREFIX}*{_SUFFIX}.*"):
        for file in folder.glob(pattern):
            with contextlib.suppress(OSError):
                file.unlink()


def explain(error: OSError, path: Path) -> str:
    """One sentence for people about a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full: {path} could not be written. Free some space; what was finished before is safe."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path} could not be written: no permission to write there."
    return f"{path} could not be written: {error.strerror or error}."


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut (not possible, and not needed, on Windows)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse to flush folders
            os.fsync(handle)
    finally:
        os.close(handle)
