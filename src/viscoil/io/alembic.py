"""Alembic: one .abc with particles, surface and solids, written frame by frame (Ogawa, through alembic3d).

    /world                    turned upright when the scene is z-up: Alembic files are y-up; ``viscoil`` = header as JSON
    /world/particles/points   points with velocities, ids, widths and one parameter per other column
    /world/surface/mesh       polygons with velocities, normals, Cd and parameters
    /world/solids/NAME/mesh   under a transform with its motion; containers are hidden

Every shape has a transform of its own, because programs name what they import after it.

Alembic's faces run clockwise. The bindings know 32-bit integers only: longer ones become doubles, exact up to 2^53.
"""

import ctypes
import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.extras import require
from viscoil.io import columns
from viscoil.io.atomic import atomic_path
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Body, Moment, Target, linear, particle_colours
from viscoil.surface.mesh import SurfaceMesh

SUFFIXES = (".abc",)
PURPOSE = "to write Alembic"
_APPLICATION = "viscoil"


def write(moments: Iterable[Moment], target: Target) -> Path:
    """NAME.abc. Left alone when it already holds just this."""
    path = target.file or target.folder / f"{target.name}.abc"
    if _stamp_of(path) == target.stamp:
        return path
    with atomic_path(path) as temporary:
        archive = _Archive(temporary, target)
        try:
            for moment in moments:
                archive.add(moment)
            archive.close()
        except RuntimeError as error:
            # Alembic could not write (a full disk). Its destructors would try again and abort the whole process, so they
            # must never run: neither of the archive's objects nor of those that the traceback still holds.
            for kept in (archive, error):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
            raise
    return path


def _stamp_of(path: Path) -> str | None:
    if not path.is_file():
        return None
    Abc = require("alembic3d.Abc", PURPOSE)
    try:
        about = Abc.GetArchiveInfo(Abc.IArchive(str(path)))
        return json.loads(about["userDescription"])["stamp"] if about["appName"] == _APPLICATION else None
    except (RuntimeError, ValueError, KeyError):  # damaged, or someone else's
        return None


class _Kit:
    """The bindings, and NumPy arrays as theirs. Buffers are shared, not copied; empty ones they refuse."""

    def __init__(self, purpose: str = PURPOSE) -> None:
        self.Abc, self.Geom, self.Core = (
            require(f"alembic3d.{name}", purpose) for name in ("Abc", "AbcGeom", "AbcCoreAbstract")
        )
        self.imath: Any = import_module("imath")  # comes with alembic3d
        self.vertex, self.constant = self.Geom.GeometryScope.kVertexScope, self.Geom.GeometryScope.kConstantScope
        self.corner = self.Geom.GeometryScope.kFacevaryingScope

    def array(self, values: np.ndarray) -> Any:
        """float32, float64 and int32 numbers, or vectors of the first two."""
        kind = {"float32": "Float", "float64": "Double", "int32": "Int"}[values.dtype.name]
        if values.ndim > 1:
            kind = {"Float": "V3f", "Double": "V3d"}[kind]
        if not len(values):
            return getattr(self.imath, f"{kind}Array")(0)
        return getattr(self.imath, f"{kind}ArrayFromBuffer")(np.ascontiguousarray(values))

    def box(self, points: np.ndarray) -> Any:
        low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else np.zeros((2, 3))
        return self.imath.Box3d(self.imath.V3d(*map(float, low)), self.imath.V3d(*map(float, high)))

    def matrix(self, pose: np.ndarray) -> Any:
        return self.imath.M44d(*np.asarray(pose, float).T.ravel().tolist())  # rows multiply from the left


class _Archive:
    """The file being written."""

    def __init__(self, path: Path, target: Target) -> None:
        self.kit, self.target = _Kit(), target
        kit = self.kit
        about = json.dumps({"stamp": target.stamp, "format": 1, "unit": "metre"})
        self.archive: Any = kit.Abc.CreateArchiveWithInfo(str(path), target.rate, _APPLICATION, about)
        self.clock = self.archive.addTimeSampling(_time_sampling(kit, target))
        self.world: Any = None
        self.about: Any = None  # property with the header
        self.group: Any = None  # of the solids, made with the first
        self.parts: dict[str, _Geometry] = {}
        self.bodies = Bodies()
        self.solids: dict[str, dict[str, Any]] = {}
        self.count = 0  # frames written

    def add(self, moment: Moment) -> None:
        """Write one frame."""
        frame, kit = moment.frame, self.kit
        if self.world is None:
            self._first(frame)
        about = {"header": frame.header(), "fields": columns.layout(frame.fields) if self.target.particles else {}}
        self.about.setValue(json.dumps(about))
        if self.target.particles:
            self._particles(frame)
        if moment.surface is not None:
            self._surface(moment.surface)
        present = self.bodies.of(frame)
        for body in present:
            if body.name not in self.solids:
                self._define(body)
        for name, solid in self.solids.items():
            pose = next((body.pose for body in present if body.name == name), None)
            if pose is not None:
                solid["pose"] = pose
            sample = kit.Geom.XformSample()
            sample.setMatrix(kit.matrix(solid["pose"]))
            solid["transform"].set(sample)
            solid["visible"].setValue(-1 if pose is not None and not solid["container"] else 0)
        self.count += 1

    def close(self) -> None:
        """Alembic finishes a file when the last of its objects is gone."""
        self.parts.clear()
        self.solids.clear()
        self.world = self.about = self.group = None
        self.archive.reset()
        self.archive = None

    def _first(self, frame: Frame) -> None:
        kit = self.kit
        self.world = kit.Geom.OXform(self.archive.getTop(), "world")
        sample = kit.Geom.XformSample()
        upright = np.eye(4)
        if frame.up == "z":
            upright[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
        sample.setMatrix(kit.matrix(upright))
        schema = self.world.getSchema()
        schema.set(sample)
        self.about = kit.Abc.OStringProperty(schema.getUserProperties(), "viscoil", self.clock)
        if self.target.particles:
            points = kit.Geom.OPoints(self._node("particles"), "points", self.clock)
            self.parts["particles"] = _Geometry(kit, points, self.clock)
        if self.target.surface:
            polygons = kit.Geom.OPolyMesh(self._node("surface"), "mesh", self.clock)
            self.parts["surface"] = _Geometry(kit, polygons, self.clock)

    def _node(self, name: str) -> Any:
        node = self.kit.Geom.OXform(self.world, name)
        node.getSchema().set(self.kit.Geom.XformSample())
        return node

    def _particles(self, frame: Frame) -> None:
        kit, fields = self.kit, dict(frame.fields)
        sample = kit.Geom.OPointsSchemaSample()
        position = fields.pop("position")
        sample.setPositions(kit.array(position))
        sample.setSelfBounds(kit.box(position))
        ids = fields.get("id", np.arange(len(frame), dtype=np.int32))
        if ids.dtype == np.int32:
            fields.pop("id", None)
        else:  # whole in a parameter of their own
            ids = (ids % 2**31).astype(np.int32)
        sample.setIds(kit.array(ids))
        sample.setVelocities(kit.array(fields.pop("velocity", np.zeros_like(position))))
        width = np.array([frame.spacing], np.float32)
        sample.setWidths(kit.Geom.OFloatGeomParamSample(kit.array(width), kit.constant))
        part = self.parts["particles"]
        part.schema.set(sample)
        if len(frame.materials) > 1:
            part.colours(particle_colours(frame))
        part.parameters(fields)

    def _surface(self, surface: SurfaceMesh) -> None:
        kit, fields = self.kit, dict(surface.fields)
        corners = np.ascontiguousarray(surface.triangles[:, ::-1], np.int32).ravel()
        sample = _polygons(kit, surface.vertices, corners)
        normal, velocity, colour = (fields.pop(name, None) for name in ("normal", "velocity", "colour"))
        if normal is not None:
            sample.setNormals(kit.Geom.ON3fGeomParamSample(kit.array(normal), kit.vertex))
        if velocity is not None:
            sample.setVelocities(kit.array(velocity))
        part = self.parts["surface"]
        part.schema.set(sample)
        if colour is not None:
            part.colours(linear(colour))
        part.parameters(fields)

    def _define(self, body: Body) -> None:
        kit = self.kit
        if self.group is None:
            self.group = self._node("solids")
        node = kit.Geom.OXform(self.group, body.name.replace("/", " "), self.clock)
        visible = kit.Geom.CreateVisibilityProperty(node, self.clock)
        transform = node.getSchema()
        for _ in range(self.count):  # it was not there until now
            rest = kit.Geom.XformSample()
            rest.setMatrix(kit.matrix(body.pose))
            transform.set(rest)
            visible.setValue(0)
        shape = kit.Geom.OPolyMesh(node, "mesh")
        corners = np.ascontiguousarray(body.triangles[:, ::-1], np.int32).ravel()
        sample = _polygons(kit, np.array(body.vertices), corners)
        normals = np.ascontiguousarray(body.geometry.corner_normals().reshape(-1, 3, 3)[:, ::-1]).reshape(-1, 3)
        sample.setNormals(kit.Geom.ON3fGeomParamSample(kit.array(normals), kit.corner))
        shape.getSchema().set(sample)
        self.solids[body.name] = {"transform": transform, "visible": visible, "container": body.container, "pose": body.pose}


def _polygons(kit: _Kit, vertices: np.ndarray, corners: np.ndarray) -> Any:
    sample = kit.Geom.OPolyMeshSchemaSample(
        kit.array(vertices), kit.array(corners), kit.array(np.full(len(corners) // 3, 3, np.int32))
    )
    sample.setSelfBounds(kit.box(vertices))
    return sample


def _time_sampling(kit: _Kit, target: Target) -> Any:
    """Even steps where the frames are evenly spaced, else a list of times."""
    times = target.times or [0.0]
    steps = np.diff(times)
    if len(steps) == 0 or np.allclose(steps, steps[0], rtol=1e-6, atol=0):
        return kit.Core.TimeSampling(float(steps.mean()) if len(steps) else target.frame_time, times[0])
    moments = kit.Core.TimeVector()
    for moment in times:
        moments.append(moment)
    return kit.Core.TimeSampling(kit.Core.TimeSamplingType(kit.Core.AcyclicFlag.kAcyclic), moments)


class _Geometry:
    """Points or polygons, with one parameter per column."""

    def __init__(self, kit: _Kit, thing: Any, clock: int) -> None:
        self.kit, self.schema, self.clock = kit, thing.getSchema(), clock
        self.made: dict[str, Any] = {}
        self.number = 0  # samples of parameters so far

    def parameters(self, fields: dict[str, np.ndarray]) -> None:
        """One sample of every column of every field."""
        for field, values in columns.with_scalars(fields).items():
            for name, column in columns.split(field, values):
                column = _storable(name, column)
                self._set(name, _KINDS[column.dtype.name][column.ndim > 1], column)
        self.number += 1

    def colours(self, colour: np.ndarray) -> None:
        """Linear colours under the name that other programs look for."""
        self._set("Cd", "C3f", np.ascontiguousarray(colour, np.float32))

    def _set(self, name: str, kind: str, column: np.ndarray) -> None:
        kit = self.kit
        make, sample = getattr(kit.Geom, f"O{kind}GeomParam"), getattr(kit.Geom, f"O{kind}GeomParamSample")
        wrap = kit.imath.C3fArray if kind == "C3f" else lambda array: array
        if name not in self.made:
            self.made[name] = make(self.schema.getArbGeomParams(), name, False, kit.vertex, 1, self.clock)
            for _ in range(self.number):  # a field that earlier frames did not have
                self.made[name].set(sample(wrap(kit.array(column[:0])), kit.vertex))
        self.made[name].set(sample(wrap(kit.array(column)), kit.vertex))


_KINDS = {"float32": ("Float", "V3f"), "float64": ("Double", "V3d"), "int32": ("Int32", "")}  # of parameters


def _stored(kind: np.dtype) -> np.dtype:
    """The type a column is written in."""
    if kind.kind == "f" or kind == np.int32:
        return kind
    return np.dtype(np.int32 if kind.itemsize < 4 else np.float64)


def _storable(name: str, column: np.ndarray) -> np.ndarray:
    kind = _stored(column.dtype)
    if kind.kind == "f" and column.dtype.kind != "f" and len(column) and max(int(column.max()), -int(column.min())) > 2**53:
        raise RunFolderError(f"Alembic cannot hold the field '{name}': its integers are larger than 2^53.")
    return column.astype(kind, copy=False)


def read(path: Path) -> Iterator[Frame]:
    """The frames of a file written by :func:`write`."""
    kit = _Kit("to read Alembic")
    try:
        archive = kit.Abc.IArchive(str(path))
        world = kit.Geom.IXform(archive.getTop(), "world")
        about = kit.Abc.IStringProperty(world.getSchema().getUserProperties(), "viscoil")
        points = kit.Geom.IPoints(kit.Geom.IXform(world, "particles"), "points").getSchema()
        parameters = points.getArbGeomParams()
    except RuntimeError as error:
        raise RunFolderError(f"{path} holds no particles written by viscoil ({' '.join(str(error).split())[:200]}).") from error
    for k in range(about.getNumSamples()):
        # A selector made of a number means seconds, not samples.
        when = kit.Abc.ISampleSelector(points.getTimeSampling().getSampleTime(k))
        known = json.loads(about.getValue(when))
        own = points.getValue(when)
        arrays = {"position": own.getPositions, "velocity": own.getVelocities}
        if known["fields"].get("id", {}).get("type") == "int32":
            arrays["id"] = own.getIds

        def column(name: str, known: Any = known, when: Any = when, arrays: Any = arrays) -> np.ndarray:
            values = arrays[name]() if name in arrays else _parameter(kit, parameters, name, known["fields"], when)
            return np.array(values) if len(values) else np.zeros(0)

        yield Frame.from_header(known["header"], columns.join(known["fields"], column))


def _parameter(kit: _Kit, parameters: Any, column: str, about: columns.Layout, when: Any) -> Any:
    for field, form in about.items():
        kind = np.dtype(form["type"])
        if column in columns.names(field, form):
            vector = kind.kind == "f" and tuple(form["shape"]) in ((3,), (3, 3))
            reader = getattr(kit.Geom, f"I{_KINDS[_stored(kind).name][vector]}GeomParam")
            return reader(parameters, column).getExpandedValue(when).getVals()
    raise KeyError(column)
