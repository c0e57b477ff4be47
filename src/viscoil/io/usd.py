"""USD: one .usdc with time samples for particles, surface, solids and materials, written frame by frame.

Saving after every few frames hands the samples to the file, so memory does not grow with the length of the run.

    /World                     metres, up-axis and frame rate of the run; ``viscoil:frame`` = all but the arrays, as JSON
    /World/Particles           Points: points, velocities, ids, widths, primvars for every other field; wide numbers (see
                               _TYPES) are plain attributes ``viscoil:NAME``
    /World/Surface             Mesh with velocities, normals and primvars; one GeomSubset per material when there are several
    /World/Solids/NAME         Mesh with its motion; containers have the purpose "guide", so that they hide nothing
    /World/Looks/NAME          UsdPreviewSurface per material
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.extras import require
from viscoil.io import columns
from viscoil.io.atomic import atomic_path
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Body, Moment, Target, face_materials, linear, particle_colours
from viscoil.io.usd_looks import Looks
from viscoil.surface.mesh import SurfaceMesh

SUFFIXES = (".usdc", ".usd")
PURPOSE = "to write USD"
_SAVE_AFTER = 32e6  # bytes of samples kept in memory before they are handed to the file
_OWN = ("position", "velocity", "id", "normal")  # fields that USD has a place for


def write(moments: Iterable[Moment], target: Target) -> Path:
    """NAME.usdc. Left alone when it already holds just this."""
    Sdf = require("pxr.Sdf", PURPOSE)
    path = target.file or target.folder / f"{target.name}.usdc"
    if _stamp_of(path) == target.stamp:
        return path
    with atomic_path(path) as temporary:
        layer = Sdf.Layer.CreateNew(str(temporary), args={"format": "usdc"})
        stage = _Stage(layer, target)
        for moment in moments:
            stage.add(moment)
        stage.finish()
    return path


def _stamp_of(path: Path) -> str | None:
    if not path.is_file():
        return None
    Sdf, Tf = require("pxr.Sdf", PURPOSE), require("pxr.Tf", PURPOSE)
    try:
        layer = Sdf.Layer.OpenAsAnonymous(str(path))  # not cached: the file may be replaced later
        return layer.customLayerData.get("viscoil", {}).get("stamp") if layer else None
    except Tf.ErrorException:  # damaged
        return None


class _Stage:
    """The stage being written."""

    def __init__(self, layer: Any, target: Target) -> None:
        self.Gf, self.Sdf, self.Usd, self.UsdGeom, self.Vt = (
            require(f"pxr.{name}", PURPOSE) for name in ("Gf", "Sdf", "Usd", "UsdGeom", "Vt")
        )
        self.layer, self.target = layer, target
        self.stage = self.Usd.Stage.Open(layer)
        self.world = self.UsdGeom.Xform.Define(self.stage, "/World")
        self.stage.SetDefaultPrim(self.world.GetPrim())
        self.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetTimeCodesPerSecond(target.rate)
        self.stage.SetFramesPerSecond(target.rate)
        self.about = self.world.GetPrim().CreateAttribute("viscoil:frame", self.Sdf.ValueTypeNames.String, custom=True)
        self.times: list[float] = []
        self.looks = Looks(self.stage, "/World/Looks")
        self.bodies = _BodyPrims(self)
        self.samples: dict[Any, _Samples] = {}
        self.subsets: dict[int, Any] = {}
        self.pending = 0.0

    def add(self, moment: Moment) -> None:
        """Author one frame."""
        frame = moment.frame
        code = round(frame.time * self.target.rate, 6)
        if not self.times:
            self._first(frame)
        # The layout too: numbers and vectors are all that other programs keep, so fields become columns.
        self.about.Set(json.dumps({"header": frame.header(), "fields": columns.layout(frame.fields)}), code)
        if self.target.particles:
            self._particles(frame, code)
        if self.target.surface and moment.surface is not None:
            self._surface(moment.surface, code)
        self.bodies.add(frame, code)
        self.times.append(code)
        if self.pending > _SAVE_AFTER:
            self.layer.Save()
            self.pending = 0.0

    def finish(self) -> None:
        """Metadata that is known last, and all that is still in memory."""
        if self.times:
            self.stage.SetStartTimeCode(self.times[0])
            self.stage.SetEndTimeCode(self.times[-1])
        self.layer.customLayerData = {"viscoil": {"stamp": self.target.stamp, "format": 1}}
        self.layer.Save()

    def _first(self, frame: Frame) -> None:
        axis = self.UsdGeom.Tokens.z if frame.up == "z" else self.UsdGeom.Tokens.y
        self.UsdGeom.SetStageUpAxis(self.stage, axis)
        self.layer.documentation = frame.title
        if self.target.particles:
            points = self.UsdGeom.Points.Define(self.stage, "/World/Particles")
            points.CreateWidthsAttr(self.Vt.FloatArray([frame.spacing]))
            points.SetWidthsInterpolation(self.UsdGeom.Tokens.constant)
            self._dress(points, frame.materials)
            self.samples["particles"] = _Samples(self, points)
        if self.target.surface:
            surface = self.UsdGeom.Mesh.Define(self.stage, "/World/Surface")
            surface.CreateSubdivisionSchemeAttr(self.UsdGeom.Tokens.none)
            self._dress(surface, frame.materials)
            if len(frame.materials) > 1:
                self._make_subsets(surface, frame.materials)
            self.samples["surface"] = _Samples(self, surface)

    def _dress(self, prim: Any, materials: list[dict[str, Any]]) -> None:
        """Bind the only material, or one that takes its colour from the particles or vertices."""
        if len(materials) == 1:
            self.looks.bind(prim, materials[0])
            prim.CreateDisplayColorAttr(self.Vt.Vec3fArray.FromNumpy(linear([self.looks.colour(materials[0])])))
        elif materials:
            self.looks.bind(prim, None)

    def _make_subsets(self, mesh: Any, materials: list[dict[str, Any]]) -> None:
        UsdShade = require("pxr.UsdShade", PURPOSE)
        for k, material in enumerate(materials):
            path = mesh.GetPath().AppendChild(self.looks.prim_name(material))
            subset = self.UsdGeom.Subset.Define(self.stage, path)
            subset.CreateElementTypeAttr(self.UsdGeom.Tokens.face)
            subset.CreateFamilyNameAttr(UsdShade.Tokens.materialBind)
            self.looks.bind(subset, material)
            self.subsets[k] = subset.CreateIndicesAttr()
        self.UsdGeom.Subset.SetFamilyType(mesh, UsdShade.Tokens.materialBind, self.UsdGeom.Tokens.partition)

    def _particles(self, frame: Frame, code: float) -> None:
        samples = self.samples["particles"]
        values = dict(frame.fields)
        if len(frame.materials) > 1:
            values["displayColor"] = particle_colours(frame)
        self.pending += samples.set(values, code, frame.spacing / 2)

    def _surface(self, surface: SurfaceMesh, code: float) -> None:
        values = {"position": surface.vertices, **surface.fields}
        colour = values.pop("colour", None)
        if colour is not None and len(surface.materials) > 1:
            values["displayColor"] = linear(colour)
        samples = self.samples["surface"]
        self.pending += samples.set(values, code, 0.0)
        self.pending += samples.topology(surface.triangles, code)
        if self.subsets:
            owner = face_materials(surface)
            for k, indices in self.subsets.items():
                indices.Set(self.Vt.IntArray.FromNumpy(np.flatnonzero(owner == k).astype(np.int32)), code)


class _Samples:
    """Time samples of one Points or Mesh: attributes are made when a field first appears."""

    def __init__(self, stage: _Stage, prim: Any) -> None:
        self.s, self.prim = stage, prim
        self.primvars = stage.UsdGeom.PrimvarsAPI(prim)
        self.attributes: dict[str, tuple[Any, Any, Any]] = {}  # column -> (attribute, Vt array class, NumPy type)
        self.extent = prim.CreateExtentAttr()
        self.numbered = hasattr(prim, "CreateIdsAttr")  # points have ids, meshes have none

    def set(self, fields: dict[str, np.ndarray], code: float, margin: float) -> int:
        """Author all columns of all fields; the bytes they take."""
        written, size = set(), 0
        for field, values in columns.with_scalars(fields).items():
            pieces = [(field, values)] if field in _OWN or field == "displayColor" else columns.split(field, values)
            if field == "id" and values.dtype == np.int32 and self.numbered:
                pieces = [("ids", values), ("id", values)]  # twice: Blender takes the primvar only
            for name, column in pieces:
                attribute, array, kind = self._attribute(name, column)
                attribute.Set(array.FromNumpy(np.ascontiguousarray(column, kind)), code)
                written.add(name)
                size += column.nbytes
        for name in self.attributes.keys() - written:  # a field that this frame does not have
            self.attributes[name][0].Set(self.s.Sdf.ValueBlock(), code)
        position = fields["position"]
        corners = (position.min(axis=0) - margin, position.max(axis=0) + margin) if len(position) else np.zeros((2, 3))
        self.extent.Set(self.s.Vt.Vec3fArray.FromNumpy(np.asarray(corners, np.float32)), code)
        return size

    def topology(self, triangles: np.ndarray, code: float) -> int:
        """Author the faces of a mesh."""
        Vt = self.s.Vt
        self.prim.GetFaceVertexCountsAttr().Set(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)), code)
        self.prim.GetFaceVertexIndicesAttr().Set(Vt.IntArray.FromNumpy(np.ascontiguousarray(triangles, np.int32).ravel()), code)
        return 16 * len(triangles)

    def _attribute(self, name: str, column: np.ndarray) -> tuple[Any, Any, Any]:
        if name not in self.attributes:
            self.attributes[name] = self._create(name, column)
            if self.s.times:  # a field that earlier frames do not have: else they would show its first values
                self.attributes[name][0].Set(self.s.Sdf.ValueBlock(), self.s.times[0])
        return self.attributes[name]

    def _create(self, name: str, column: np.ndarray) -> tuple[Any, Any, Any]:
        Vt, tokens = self.s.Vt, self.s.UsdGeom.Tokens
        if name in ("position", "velocity"):
            made = self.prim.CreatePointsAttr() if name == "position" else self.prim.CreateVelocitiesAttr()
            return made, Vt.Vec3fArray, np.float32
        if name == "normal":
            self.prim.SetNormalsInterpolation(tokens.vertex)
            return self.prim.CreateNormalsAttr(), Vt.Vec3fArray, np.float32
        if name == "ids" or (name == "id" and column.dtype != np.int32 and self.numbered):
            return self.prim.CreateIdsAttr(), Vt.Int64Array, np.int64
        if name == "displayColor":
            primvar = self.primvars.CreatePrimvar(name, self.s.Sdf.ValueTypeNames.Color3fArray, tokens.vertex)
            return primvar.GetAttr(), Vt.Vec3fArray, np.float32
        kind = column.dtype if column.dtype.name in _TYPES else np.dtype(np.int32)  # small integers are widened
        scalar, vector = _TYPES[kind.name]
        usd, array = vector if column.ndim > 1 else scalar
        if column.ndim == 1 and kind.name in _WIDE:
            own = self.prim.GetPrim().CreateAttribute(f"viscoil:{name}", getattr(self.s.Sdf.ValueTypeNames, usd), custom=True)
            return own, getattr(Vt, array), kind
        primvar = self.primvars.CreatePrimvar(name, getattr(self.s.Sdf.ValueTypeNames, usd), tokens.vertex)
        return primvar.GetAttr(), getattr(Vt, array), kind


# Blender 5 gives up on all primvars of a prim that has one of such a type.
_WIDE = ("float64", "int64", "uint32", "uint64")
# NumPy type -> (USD type, array class) of numbers and of 3-vectors.
_TYPES: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "float32": (("FloatArray", "FloatArray"), ("Vector3fArray", "Vec3fArray")),
    "float64": (("DoubleArray", "DoubleArray"), ("Vector3dArray", "Vec3dArray")),
    "int32": (("IntArray", "IntArray"), ("", "")),
    "int64": (("Int64Array", "Int64Array"), ("", "")),
    "uint8": (("UCharArray", "UCharArray"), ("", "")),
    "uint32": (("UIntArray", "UIntArray"), ("", "")),
    "uint64": (("UInt64Array", "UInt64Array"), ("", "")),
}


class _BodyPrims:
    """Solids: a mesh each, a transform that has time samples only when the solid moves, visibility when it comes and goes."""

    def __init__(self, stage: _Stage) -> None:
        self.s = stage
        self.bodies = Bodies()
        self.known: dict[str, dict[str, Any]] = {}

    def add(self, frame: Frame, code: float) -> None:
        """Author the poses of one frame."""
        present = self.bodies.of(frame)
        for body in present:
            if body.name not in self.known:
                self._define(body)
            self._pose(self.known[body.name], body.pose, code)
        names = {body.name for body in present}
        for name, entry in self.known.items():
            self._show(entry, name in names, code)

    def _define(self, body: Body) -> None:
        s, tokens = self.s, self.s.UsdGeom.Tokens
        if not self.known:
            s.UsdGeom.Scope.Define(s.stage, "/World/Solids")
        taken = [entry["mesh"].GetPrim().GetName() for entry in self.known.values()]
        mesh = s.UsdGeom.Mesh.Define(s.stage, f"/World/Solids/{s.looks.valid(body.name, taken)}")
        mesh.GetPrim().SetDisplayName(body.name)
        mesh.CreateSubdivisionSchemeAttr(tokens.none)
        mesh.CreatePointsAttr(s.Vt.Vec3fArray.FromNumpy(np.array(body.vertices)))
        mesh.CreateFaceVertexCountsAttr(s.Vt.IntArray.FromNumpy(np.full(len(body.triangles), 3, np.int32)))
        mesh.CreateFaceVertexIndicesAttr(s.Vt.IntArray.FromNumpy(np.array(body.triangles).ravel()))
        mesh.CreateNormalsAttr(s.Vt.Vec3fArray.FromNumpy(body.geometry.corner_normals()))
        mesh.SetNormalsInterpolation(tokens.faceVarying)
        mesh.CreateExtentAttr(s.Vt.Vec3fArray.FromNumpy(np.stack([body.vertices.min(0), body.vertices.max(0)])))
        mesh.CreateDisplayColorAttr(s.Vt.Vec3fArray.FromNumpy(linear([body.colour])))
        if body.container:
            mesh.CreatePurposeAttr(tokens.guide)
            mesh.CreateDisplayOpacityAttr(s.Vt.FloatArray([0.15]))
        s.looks.bind_solid(mesh, body)
        transform = mesh.AddTransformOp()
        self.known[body.name] = {"mesh": mesh, "op": transform, "first": None, "moves": False, "shown": None}

    def _pose(self, entry: dict[str, Any], pose: np.ndarray, code: float) -> None:
        matrix = self.s.Gf.Matrix4d(*np.asarray(pose, float).T.ravel().tolist())  # USD multiplies rows from the left
        if entry["first"] is None:
            entry["first"] = matrix
            entry["op"].Set(matrix)
        if matrix != entry["first"] and not entry["moves"]:
            entry["moves"] = True
            for earlier in self.s.times:  # it rested until now; samples are interpolated, so rest has to be said
                entry["op"].Set(entry["first"], earlier)
        if entry["moves"]:
            entry["op"].Set(matrix, code)

    def _show(self, entry: dict[str, Any], present: bool, code: float) -> None:
        tokens = self.s.UsdGeom.Tokens
        before = entry["shown"] if entry["shown"] is not None else not self.s.times
        if present != before:
            visibility = entry["mesh"].GetVisibilityAttr()
            if entry["shown"] is None:  # it was not there from the start
                visibility.Set(tokens.invisible, self.s.times[0])
            elif not visibility.HasAuthoredValue():
                visibility.Set(tokens.inherited, self.s.times[0])
            visibility.Set(tokens.inherited if present else tokens.invisible, code)
        entry["shown"] = present


def read(path: Path) -> Iterator[Frame]:
    """The frames of a file written by :func:`write`."""
    Sdf, Tf, Usd, UsdGeom = (require(f"pxr.{name}", "to read USD") for name in ("Sdf", "Tf", "Usd", "UsdGeom"))
    try:
        stage = Usd.Stage.Open(Sdf.Layer.OpenAsAnonymous(str(path)))  # the file as it is now, not as USD remembers it
    except Tf.ErrorException as error:
        raise RunFolderError(f"{path} cannot be read as USD: {' '.join(str(error).split())[:200]}") from error
    world = stage.GetPrimAtPath("/World")
    points = UsdGeom.Points(stage.GetPrimAtPath("/World/Particles"))
    about = world.GetAttribute("viscoil:frame") if world else None
    if not about or not points:
        raise RunFolderError(f"{path} holds no particles written by viscoil.")
    own = {"position": points.GetPointsAttr(), "velocity": points.GetVelocitiesAttr(), "id": points.GetIdsAttr()}
    primvars = UsdGeom.PrimvarsAPI(points)
    for code in about.GetTimeSamples():
        known = json.loads(about.Get(code))

        def column(name: str, code: float = code) -> np.ndarray:
            wide = points.GetPrim().GetAttribute(f"viscoil:{name}")
            return np.array((own.get(name) or wide or primvars.GetPrimvar(name)).Get(code))

        yield Frame.from_header(known["header"], columns.join(known["fields"], column))
