"""Checkpoints: everything a restart needs in one HDF5 file that knows whether it is whole.

The first 512 bytes are a line of text with the format version and the SHA-256 of all that follows (HDF5 allows such a
block in front, so the files open in any HDF5 tool). The checksum is compared before HDF5 looks at a single byte. There
is no pickle: a state is a dict of arrays, numbers and strings, and may hold such dicts.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import viscoil
from viscoil.errors import RunFolderError

FORMAT = 1
_BLOCK = 512  # HDF5 looks for its signature at 0, 512, 1024, ...
_HDF5 = b"\x89HDF\r\n\x1a\n"
_LINE = re.compile(rb"viscoil checkpoint (\d+) sha256 ([0-9a-f]{64})\n")


class DamagedCheckpoint(RunFolderError):
    """Not what was once written: cut short, bytes changed, or empty. An older checkpoint may still be good."""


class ForeignCheckpoint(RunFolderError):
    """Whole, but of another scene, another program or another version of this one."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint read back."""

    frame: int  # the frame boundary it was taken at
    scene_hash: str  # of the scene it belongs to
    version: str  # of viscoil
    state: dict[str, Any]


def encode(frame: int, state: dict[str, Any], scene_hash: str) -> tuple[bytes, bytes]:
    """The content of a checkpoint file, in two parts to be written one after the other."""
    with h5py.File("checkpoint", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        file.attrs["frame"] = int(frame)
        file.attrs["scene_hash"] = scene_hash
        file.attrs["viscoil"] = viscoil.__version__
        _store(file.create_group("state"), state)
        file.flush()
        body = file.id.get_file_image()
    return _first_block(FORMAT, body), body


def decode(content: bytes, path: Path) -> Checkpoint:
    """The checkpoint in ``content``; ``path`` is only named in messages."""
    _check(content, path)
    handle = h5py.h5f.open_file_image(content[_BLOCK:])
    with h5py.File(handle) as file:
        about: Any = file.attrs
        state: Any = file["state"]
        return Checkpoint(int(about["frame"]), str(about["scene_hash"]), str(about["viscoil"]), _fetch(state))


def _digest(version: int, body: bytes) -> str:
    return hashlib.sha256(b"%d\n" % version + hashlib.sha256(body).digest()).hexdigest()


def _first_block(version: int, body: bytes) -> bytes:
    line = f"viscoil checkpoint {version} sha256 {_digest(version, body)}\n"
    return line.encode().ljust(_BLOCK, b"\0")


def _check(content: bytes, path: Path) -> None:
    line = _LINE.match(content)
    if line is None and content.startswith(_HDF5):
        raise ForeignCheckpoint(f"{path} is an HDF5 file, but not a checkpoint of viscoil.")
    if line is None:
        raise DamagedCheckpoint(f"{path} is damaged: it does not begin like a checkpoint ({len(content)} bytes).")
    version = int(line[1])
    if _digest(version, content[_BLOCK:]).encode() != line[2]:
        raise DamagedCheckpoint(f"{path} is damaged: its checksum does not fit its {len(content)} bytes.")
    if version != FORMAT:
        raise ForeignCheckpoint(
            f"{path} has checkpoint format {version}, this version of viscoil ({viscoil.__version__}) reads {FORMAT}."
        )


def _store(group: h5py.Group, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict):
            inner = group.create_group(key)
            inner.attrs["kind"] = "dict"
            _store(inner, value)
            continue
        kind, array = _as_array(key, value)
        group.create_dataset(key, data=array).attrs["kind"] = kind


def _as_array(key: str, value: Any) -> tuple[str, np.ndarray]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        return "array", value
    if isinstance(value, str):
        return "str", np.frombuffer(value.encode(), dtype=np.uint8)
    if isinstance(value, bool | np.bool_):
        return "bool", np.array(bool(value))
    if isinstance(value, int | np.integer) and -(2**63) <= value < 2**63:
        return "int", np.array(int(value), dtype=np.int64)
    if isinstance(value, float | np.floating):
        return "float", np.array(float(value))
    raise TypeError(f"a checkpoint cannot hold {key!r}: {type(value).__name__} is no number, string or numeric array")


_BACK = {"array": np.asarray, "str": lambda a: a.tobytes().decode(), "bool": bool, "int": int, "float": float}


def _fetch(group: h5py.Group, prefix: str = "") -> dict[str, Any]:
    """Keys with "/" come back as they were: only groups marked as dicts become dicts again."""
    values: dict[str, Any] = {}
    for name, item in group.items():
        if not isinstance(item, h5py.Group):
            values[prefix + name] = _BACK[item.attrs["kind"]](item[()])
        elif "kind" in item.attrs:
            values[prefix + name] = _fetch(item)
        else:
            values.update(_fetch(item, f"{prefix}{name}/"))
    return values


def flatten(state: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The state with nested dicts spread out as "outer/inner"."""
    flat: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}/"))
        else:
            flat[prefix + key] = value
    return flat


def _width(name: str, array: np.ndarray) -> tuple[int, ...] | int:
    """What must be the same in two states; rows that are carried along grow while a simulation runs."""
    return array.ndim if name.startswith("carried/") else array.shape[1:]


def table_mismatch(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """In words, how the arrays of two states differ in name, type or width; "" when they fit each other."""
    mine, theirs = ({k: v for k, v in flatten(s).items() if isinstance(v, np.ndarray)} for s in (expected, found))
    lacking, unknown = sorted(mine.keys() - theirs.keys()), sorted(theirs.keys() - mine.keys())
    other = [
        f"{k} ({theirs[k].dtype}{list(theirs[k].shape[1:])} instead of {mine[k].dtype}{list(mine[k].shape[1:])})"
        for k in sorted(mine.keys() & theirs.keys())
        if (mine[k].dtype, _width(k, mine[k])) != (theirs[k].dtype, _width(k, theirs[k]))
    ]
    parts = [("lacks", lacking), ("has the unknown", unknown), ("differs in", other)]
    return "; ".join(f"it {what} {', '.join(names)}" for what, names in parts if names)
