"""NumPy archives: one .npz per frame, one entry per field, plus ``time`` and the frame's header as JSON. No pickle.

Surfaces are archives of their own (surface_00000.npz) with ``vertices``, ``triangles`` and one entry per vertex field.
"""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import write_if_changed
from viscoil.io.frame import Frame, plain
from viscoil.io.moment import Moment, Target
from viscoil.surface.mesh import SurfaceMesh

_HEADER, _TIME = "header", "time"


def write(moments: Iterable[Moment], target: Target) -> Path:
    """frame_00000.npz ... and surface_00000.npz ..."""
    for moment in moments:
        if target.particles:
            write_if_changed(target.folder / f"frame_{moment.frame.index:05d}.npz", encode(moment.frame))
        if moment.surface is not None:
            write_if_changed(target.folder / f"surface_{moment.frame.index:05d}.npz", encode_surface(moment.surface))
    return target.folder


def encode(frame: Frame) -> bytes:
    """The frame as the content of a .npz file. The same frame gives the same bytes."""
    content = io.BytesIO()
    extra = {_HEADER: np.array(json.dumps(frame.header())), _TIME: np.array(frame.time)}
    np.savez(content, allow_pickle=False, **frame.fields, **extra)
    return content.getvalue()


def encode_surface(surface: SurfaceMesh) -> bytes:
    """A surface as the content of a .npz file."""
    content = io.BytesIO()
    header = {"index": surface.index, "spacing": surface.spacing, "up": surface.up, "materials": plain(surface.materials)}
    header["particle_volume"] = float(surface.particle_volume)
    extra = {_HEADER: np.array(json.dumps(header)), _TIME: np.array(surface.time)}
    arrays = {"vertices": surface.vertices, "triangles": surface.triangles, **surface.fields}
    np.savez(content, allow_pickle=False, **arrays, **extra)
    return content.getvalue()


def read(path: Path) -> Frame:
    """The frame in a .npz file written by :func:`write`."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            fields = {name: archive[name] for name in archive.files if name not in (_HEADER, _TIME)}
            return Frame.from_header(json.loads(str(archive[_HEADER])), fields)
    except Exception as error:  # zipfile, zlib and numpy each have their own kinds
        raise RunFolderError(f"{path} cannot be read as a frame: {error}.") from error
