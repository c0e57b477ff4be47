"""Compiled kernels on disk: where they are, how large, and how old ones go."""

import contextlib
import hashlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

STALE = 14 * 24 * 3600  # seconds after which compiled kernels of other versions are removed


@dataclass(frozen=True)
class Contents:
    """What lies in a cache."""

    folder: Path  # of the present sources
    bytes: int  # of the present sources' kernels
    kernels: int  # compiled, variants counted one by one
    others: int  # folders of other versions
    other_bytes: int


def base() -> Path:
    """The folder of all versions: ``VISCOIL_CACHE``, or one below the home folder."""
    return Path(os.environ.get("VISCOIL_CACHE") or Path.home() / ".cache" / "viscoil" / "kernels")


def digest() -> str:
    """Names the present state of all sources that hold kernels, and what else decides about their code (sph/records.py)."""
    found = hashlib.sha256(os.environ.get("VISCOIL_RECORDS", "").encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        text = source.read_bytes()
        if b"quadrants" in text:
            found.update(text)
    for linked in sorted(Path(__file__).parent.rglob("*.bc")):
        found.update(linked.read_bytes())
    return found.hexdigest()[:16]


def folder() -> Path:
    """Folder of compiled kernels, one per state of our sources; made, and old ones removed, by asking for it.

    The compiler looks sources up when it compiles, not when they were imported: editing while a process runs would file
    old code under the new text. A folder named after what was there at the start cannot mix them up.
    """
    place = base() / digest()
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        os.utime(place)
        for old in base().iterdir():
            if time.time() - old.stat().st_mtime > STALE:
                shutil.rmtree(old, ignore_errors=True)
    return place


def _versions() -> list[Path]:
    """Folders that :func:`folder` made: other things may lie beside them."""
    place = base()
    return sorted(p for p in place.iterdir() if re.fullmatch(r"[0-9a-f]{16}", p.name)) if place.is_dir() else []


def _bytes(place: Path) -> int:
    total = 0
    for path in place.rglob("*"):
        with contextlib.suppress(OSError):  # another process may be tidying up
            total += path.stat().st_size if path.is_file() else 0
    return total


def contents() -> Contents:
    """Looks at the disk; nothing is made or removed."""
    present = base() / digest()
    others = [place for place in _versions() if place != present]
    return Contents(
        folder=present,
        bytes=_bytes(present),
        kernels=len(list(present.rglob("*.tic"))) + len(list(present.rglob("*.qdc"))),
        others=len(others),
        other_bytes=sum(map(_bytes, others)),
    )


def clear() -> int:
    """Removes the compiled kernels of all versions; bytes freed. Processes that run keep what they have loaded."""
    freed = 0
    for place in _versions():
        freed += _bytes(place)
        shutil.rmtree(place, ignore_errors=True)
    return freed
