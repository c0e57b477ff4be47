"""NumPy archives: one .npz per frame, one entry per field, plus ``time`` and the frame's header as JSON. No pickle."""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame

_HEADER, _TIME = "header", "time"


def write(frames: Iterable[Frame], folder: Path) -> None:
    """frame_00000.npz ..."""
    for frame in frames:
        write_if_changed(folder / f"frame_{frame.index:05d}.npz", encode(frame))


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .npz file. The same frame gives the same bytes."""
    content = io.BytesIO()
    extra = {_HEADER: np.array(json.dumps(frame.header())), _TIME: np.array(frame.time)}
    np.savez(content, allow_pickle=False, **frame.fields, **extra)
    return content.getvalue()


def read(path: Path) -> Frame:
    """The frame in a .npz file written by :func:`write`."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            fields = {name: archive[name] for name in archive.files if name not in (_HEADER, _TIME)}
            return Frame.from_header(json.loads(str(archive[_HEADER])), fields)
    except Exception as error:  # zipfile, zlib and numpy each have their own kinds
        raise RunFolderError(f"{path} cannot be read as a frame: {error}.") from error
