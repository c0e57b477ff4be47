"""Surfaces on disk: RUN/surface/surface_00012.vtkhdf, the index that ParaView opens as a film, and metrics.csv.

VTKHDF PolyData with triangles, one array per quantity under PointData, numbers about the whole under FieldData. The group
``viscoil`` holds the JSON header: facts, the options it was made with, and a fingerprint of the frame it shows, so that a
surface of other options or of a frame that was computed anew is never taken for the right one.
"""

import contextlib
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import explain, remove_leftovers, write_atomic, write_if_changed
from viscoil.io.frame import plain
from viscoil.io.lock import Lock
from viscoil.io.metrics import MetricsTable
from viscoil.io.run import Run
from viscoil.surface.mesh import SurfaceMesh
from viscoil.surface.options import Options, settings

FORMAT = 1
SERIES = "surface.vtkhdf.series"
_NAME = re.compile(r"surface_(\d{5,})\.vtkhdf")
_SQUEEZED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}  # numbers that count up: a tenth of the size


def folder(run: Run) -> Path:
    """Where the surfaces of ``run`` are."""
    return run.path / "surface"


def path(run: Run, index: int) -> Path:
    """Where the surface of frame ``index`` is or will be."""
    return folder(run) / f"surface_{index:05d}.vtkhdf"


def indices(run: Run) -> list[int]:
    """Numbers of the frames that have a surface on disk, ascending."""
    try:
        names = [file.name for file in folder(run).iterdir()]
    except FileNotFoundError:
        return []
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def fingerprint(run: Run, index: int) -> str:
    """Of the content of a frame's file."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(run.frame_path(index), "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    except FileNotFoundError:
        raise RunFolderError(f"there is no frame {index} in {run.path}.") from None
    return digest.hexdigest()


# ---- one file -------------------------------------------------------------------------------------------------------
def encode(mesh: SurfaceMesh, frame: str = "") -> bytes:
    """The mesh as the content of a .vtkhdf file; ``frame``: fingerprint of the frame it was made from."""
    with h5py.File("surface", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array((2, 3), dtype=np.int64)
        kind = b"PolyData"
        root.attrs.create("Type", kind, dtype=h5py.string_dtype("ascii", len(kind)))  # VTK wants a fixed length
        root["NumberOfPoints"] = np.array([len(mesh)], dtype=np.int64)
        root["Points"] = np.asarray(mesh.vertices, np.float32)
        _cells(root.create_group("Polygons"), mesh.triangles)
        for name in ("Vertices", "Lines", "Strips"):
            _cells(root.create_group(name), np.zeros((0, 3), np.int64))
        points = root.create_group("PointData")
        for name, values in mesh.fields.items():
            points[name] = values.reshape(len(values), int(np.prod(values.shape[1:]))) if values.ndim > 2 else values
        if "normal" in mesh.fields:
            points["normal"].attrs.create("Attribute", b"Normals", dtype=h5py.string_dtype("ascii", 7))  # to shade with
        data = root.create_group("FieldData")
        data["time"], data["index"] = np.array([mesh.time]), np.array([mesh.index], dtype=np.int64)
        own = file.create_group("viscoil")
        own.attrs["format"] = FORMAT
        header = plain(mesh.header()) | {"frame": frame, "metrics": row(mesh)}
        own["header"] = np.bytes_(json.dumps(header).encode())
        shapes = {name: list(values.shape[1:]) for name, values in mesh.fields.items()}
        own["shapes"] = np.bytes_(json.dumps(shapes).encode())
        file.flush()
        return file.id.get_file_image()


def _cells(group: h5py.Group, triangles: np.ndarray) -> None:
    count = len(triangles)
    group["NumberOfConnectivityIds"] = np.array([3 * count], dtype=np.int64)
    group["NumberOfCells"] = np.array([count], dtype=np.int64)
    squeezed = _SQUEEZED if count else {}
    group.create_dataset("Connectivity", data=triangles.reshape(-1).astype(np.int64), **squeezed)
    group.create_dataset("Offsets", data=3 * np.arange(count + 1, dtype=np.int64), **squeezed)


def write(mesh: SurfaceMesh, path: Path | str, frame: str = "") -> Path:
    """Write ``mesh`` to a .vtkhdf file, whole or not at all."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(explain(error, path)) from error
    return write_atomic(path, encode(mesh, frame))


def read(path: Path | str) -> SurfaceMesh:
    """The mesh stored in ``path``, bit for bit as it was written."""
    with _opened(path) as file:
        root: Any = file["VTKHDF"]
        header, shapes = _header(file), json.loads(file["viscoil/shapes"][()])
        fields = {name: root["PointData"][name][()] for name in shapes}
        fields = {name: values.reshape(len(values), *shapes[name]) for name, values in fields.items()}
        triangles = root["Polygons/Connectivity"][()].reshape(-1, 3).astype(np.int32)
        facts = {key: value for key, value in header.items() if key not in ("frame", "metrics")}
        return SurfaceMesh(root["Points"][()], triangles, fields, **facts)


def header(path: Path | str) -> dict[str, Any]:
    """Facts of a stored mesh without its arrays: those of SurfaceMesh.header, "frame" and "metrics"."""
    with _opened(path) as file:
        return _header(file)


@contextlib.contextmanager
def _opened(path: Path | str):
    try:
        with h5py.File(path, "r") as file:
            yield file
    except FileNotFoundError:
        raise RunFolderError(f"there is no surface file {path}.") from None
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        short = " ".join(str(error).split())[:160]
        raise RunFolderError(f"{path} is damaged or was not written by viscoil ({short}).") from error


def _header(file: Any) -> dict[str, Any]:
    if file["viscoil"].attrs["format"] != FORMAT:
        raise ValueError(f"surface format {file['viscoil'].attrs['format']}, expected {FORMAT}")
    return json.loads(file["viscoil/header"][()])


# ---- all files of a run ---------------------------------------------------------------------------------------------
def row(mesh: SurfaceMesh) -> dict[str, Any]:
    """The mesh's row of metrics.csv. mesh_volume is fluid: filled cavities are not counted."""
    fluid = mesh.volume() - mesh.filled_volume
    return {
        "frame": int(mesh.index), "mesh_volume": fluid, "particle_volume": float(mesh.particle_volume),
        "volume_ratio": fluid / mesh.particle_volume if mesh.particle_volume > 0 else float("nan"), "area": mesh.area(),
        "vertices": len(mesh), "triangles": len(mesh.triangles), "components": int(mesh.components),
        "seconds": round(float(mesh.seconds), 4),
    }  # fmt: skip


def usable(run: Run, index: int, options: Options | None) -> dict[str, Any] | None:
    """Header of the surface of frame ``index`` if it is whole, shows the frame as it is now and has these options.

    ``options`` None: any will do.
    """
    if not path(run, index).is_file():
        return None
    with contextlib.suppress(RunFolderError):
        found = header(path(run, index))
        same = options is None or found["options"] == options.header()
        if same and found["frame"] == fingerprint(run, index):
            return found
    return None


def make(run: Run, index: int, options: Options) -> SurfaceMesh:
    """Compute the surface of frame ``index`` and write its file."""
    from viscoil.surface.reconstruct import reconstruct

    mesh = reconstruct(run.frame(index), options)
    write(mesh, path(run, index), fingerprint(run, index))
    return mesh


def load_or_make(run: Run, index: int, **options: Any) -> SurfaceMesh:
    """The surface of frame ``index``: from its file if that was made with the same options, else computed and written.

    Without options whatever surface the frame has is right, and a missing one is made in film quality.
    """
    if index < 0:
        index = run.frame(index).index
    wanted = settings(**options)
    if usable(run, index, wanted if options else None) is not None:
        with contextlib.suppress(RunFolderError):  # someone replaced it meanwhile
            return read(path(run, index))
    mesh = make(run, index, wanted)
    with contextlib.suppress(RunFolderError), Index(run) as found:  # taken: the other one's index will be complete later
        found.add(row(mesh), mesh.time)
    return mesh


class Index:
    """metrics.csv and the series file of a run's surfaces, held by one writer at a time."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.folder = folder(run)
        self._lock = Lock(self.folder / "lock")

    def __enter__(self) -> "Index":
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(explain(error, self.folder)) from error
        self._lock.acquire()
        remove_leftovers(self.folder)
        self._table = MetricsTable(self.folder / "metrics.csv")
        self._times = self._known_times()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._write_series()
        finally:
            self._lock.release()

    def add(self, values: dict[str, Any], time: float) -> None:
        """A surface is on disk; ``values`` is its row."""
        index = int(values["frame"])
        self._times[index] = time
        if self._table.rows.get(index, {}).get("mesh_volume") != str(values["mesh_volume"]):
            self._table.add(values)

    def _known_times(self) -> dict[int, float]:
        known: dict[int, float] = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            for entry in json.loads((self.folder / SERIES).read_bytes())["files"]:
                if match := _NAME.fullmatch(entry["name"]):
                    known[int(match[1])] = float(entry["time"])
        return known

    def _write_series(self) -> None:
        entries = []
        for index in indices(self.run):
            if index not in self._times:
                with contextlib.suppress(RunFolderError):
                    self._times[index] = header(path(self.run, index))["time"]
            if index in self._times:
                entries.append({"name": path(self.run, index).name, "time": self._times[index]})
        lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
        text = f'{{\n  "file-series-version": "1.0",\n  "files": [\n{lines}\n  ]\n}}\n'
        write_if_changed(self.folder / SERIES, text.encode())
