"""USD: valid for pxr's own validators, and read with pxr alone it is the run: points, meshes, motion, materials."""

import numpy as np
import pytest
from export_kit import COUNTS, FRAME_TIME, lively_frame, make_run, make_surface, use_made_up_surfaces
from pxr import Gf, Usd, UsdGeom, UsdShade, UsdValidation

from viscoil.io.columns import von_mises
from viscoil.io.export import export
from viscoil.io.read import read_export
from viscoil.io.run import Run
from viscoil.solids.meshes import mesh


def problems(stage) -> list[str]:
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 20
    return [f"{e.GetName()}: {e.GetMessage()}" for e in UsdValidation.ValidationContext(validators).Validate(stage)]


@pytest.fixture(params=[("y", 1), ("z", 2)], ids=["y-up, one material", "z-up, two materials"])
def opened(request, tmp_path, monkeypatch):
    """(run, stage of its export with everything)"""
    use_made_up_surfaces(monkeypatch)
    up, materials = request.param
    run = make_run(tmp_path / "run", up, materials)
    return run, Usd.Stage.Open(str(export(run, "usd", what="all")))


def test_valid_and_the_validators_do_look(opened):
    _, stage = opened
    assert problems(stage) == []
    stage.GetRootLayer().pseudoRoot.ClearInfo("metersPerUnit")
    assert any("metersPerUnit" in text for text in problems(stage))


def test_units_axis_and_clock(opened):
    run, stage = opened
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0 and UsdGeom.GetStageUpAxis(stage) == run.frame(0).up.upper()
    assert stage.GetTimeCodesPerSecond() == stage.GetFramesPerSecond() == 62.5
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0, len(COUNTS) - 1)
    assert stage.GetDefaultPrim().GetPath() == "/World"


def test_particles(opened):
    run, stage = opened
    points = UsdGeom.Points(stage.GetPrimAtPath("/World/Particles"))
    primvars = UsdGeom.PrimvarsAPI(points)
    assert points.GetPointsAttr().GetTimeSamples() == list(range(len(COUNTS)))
    assert list(points.GetWidthsAttr().Get()) == [np.float32(0.1)] and points.GetWidthsInterpolation() == "constant"
    for index, count in enumerate(COUNTS):
        frame = run.frame(index)
        assert np.array(points.GetPointsAttr().Get(index)).tobytes() == frame["position"].tobytes()
        assert np.array(points.GetVelocitiesAttr().Get(index)).tobytes() == frame["velocity"].tobytes()
        assert list(points.GetIdsAttr().Get(index)) == frame["id"].tolist()
        assert np.array(primvars.GetPrimvar("density").Get(index)).tobytes() == frame["density"].tobytes()
        assert list(primvars.GetPrimvar("id").Get(index)) == frame["id"].tolist()
        # Wide integers are no primvars: Blender would drop all others with them.
        assert list(points.GetPrim().GetAttribute("viscoil:born").Get(index)) == frame["born"].tolist()
        found = {str(primvar.GetTypeName()) for primvar in primvars.GetPrimvars()}
        assert found <= {"float[]", "int[]", "uchar[]", "vector3f[]", "color3f[]"}
        for k, axis in enumerate("xyz"):  # a tensor as three vectors: matrices are dropped by other programs
            row = primvars.GetPrimvar(f"stress_{axis}")
            assert row.GetInterpolation() == "vertex" and row.GetTypeName() == "vector3f[]"
            assert np.array_equal(np.array(row.Get(index)).reshape(-1, 3), frame["stress"][:, k])
        mises = np.array(primvars.GetPrimvar("stress_mises").Get(index))
        assert np.array_equal(mises, von_mises(frame["stress"])), "and as one number, to colour by"
        assert np.array_equal(np.array(primvars.GetPrimvar("conformation_5").Get(index)), frame["conformation"][:, 5])
        if count:
            low, high = np.array(points.GetExtentAttr().Get(index))
            assert np.all(low <= frame["position"].min(0) - 0.049) and np.all(high >= frame["position"].max(0) + 0.049)


def test_surface_and_its_materials(opened):
    run, stage = opened
    prim = UsdGeom.Mesh(stage.GetPrimAtPath("/World/Surface"))
    primvars = UsdGeom.PrimvarsAPI(prim)
    for index in run.frames:
        surface = make_surface(run, index)
        assert np.array(prim.GetPointsAttr().Get(index)).tobytes() == surface.vertices.tobytes()
        assert np.array(prim.GetVelocitiesAttr().Get(index)).tobytes() == surface["velocity"].tobytes()
        assert np.array(prim.GetNormalsAttr().Get(index)).tobytes() == surface["normal"].tobytes()
        assert np.array(prim.GetFaceVertexIndicesAttr().Get(index)).tolist() == surface.triangles.ravel().tolist()
        assert np.array(primvars.GetPrimvar("density").Get(index)).tobytes() == surface["density"].tobytes()
        assert set(prim.GetFaceVertexCountsAttr().Get(index)) <= {3}
    materials = run.frame(0).materials
    bound, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    if len(materials) == 1:
        assert bound.GetPath().name == "honey"
        shader = UsdShade.Shader(stage.GetPrimAtPath("/World/Looks/honey/surface"))
        assert shader.GetInput("opacity").Get() < 1 and shader.GetInput("ior").Get() == pytest.approx(1.49)
        return
    subsets = {s.GetPrim().GetName(): s for s in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets()}
    assert set(subsets) == {"honey", "thick_mud"}
    owners = make_surface(run, 2)["material"][make_surface(run, 2).triangles[:, 0]]
    assert list(subsets["thick_mud"].GetIndicesAttr().Get(2)) == np.flatnonzero(owners == 1).tolist()
    bound, _ = UsdShade.MaterialBindingAPI(subsets["thick_mud"]).ComputeBoundMaterial()
    assert bound.GetPath().name == "thick_mud"


def test_solids_move_as_in_the_run(opened):
    run, stage = opened
    solids = {prim.GetDisplayName(): UsdGeom.Mesh(prim) for prim in stage.GetPrimAtPath("/World/Solids").GetChildren()}
    assert set(solids) == {"floor", "tank", "stirrer", "stirrer 2"}
    assert solids["tank"].GetPurposeAttr().Get() == "guide", "a closed tank must not hide the fluid"
    assert solids["floor"].GetPurposeAttr().Get() == "default"
    vertices, triangles = mesh({"type": "capsule", "radius": 0.1, "height": 0.5})
    assert np.array_equal(np.array(solids["stirrer"].GetPointsAttr().Get()), vertices)
    assert np.array_equal(np.array(solids["stirrer"].GetFaceVertexIndicesAttr().Get()), triangles.ravel())
    assert solids["stirrer"].GetNormalsInterpolation() == "faceVarying"
    for index in run.frames:
        pose = np.array(run.frame(index).solids[2]["pose"])
        found = solids["stirrer"].ComputeLocalToWorldTransform(index)
        point = found.Transform(Gf.Vec3d(0.3, -0.2, 0.7))
        assert np.allclose(point, pose[:3, :3] @ (0.3, -0.2, 0.7) + pose[:3, 3], atol=1e-12)
    halfway = solids["stirrer"].ComputeLocalToWorldTransform(0.5)
    assert halfway == solids["stirrer"].ComputeLocalToWorldTransform(0), "rest stays rest between samples"
    assert not solids["tank"].TransformMightBeTimeVarying()
    shown = [solids["stirrer 2"].ComputeVisibility(index) for index in run.frames]
    assert shown == ["invisible"] * 3 + ["inherited"] * 2
    assert {solids["stirrer"].ComputeVisibility(index) for index in run.frames} == {"inherited"}


def test_a_solid_that_leaves_is_hidden(tmp_path):
    run = Run.create(tmp_path / "run", "spacing = 0.1\n")
    for index in range(4):
        frame = lively_frame(index, 3)
        if index in (1, 2):
            frame.solids = frame.solids[:2]
        run.write_frame(frame)
    run.close()
    stage = Usd.Stage.Open(str(export(run, "usd")))
    stirrer = UsdGeom.Mesh(stage.GetPrimAtPath("/World/Solids/stirrer"))
    assert [stirrer.ComputeVisibility(k) for k in range(4)] == ["inherited", "invisible", "invisible", "inherited"]
    assert problems(stage) == []


def test_a_field_that_comes_and_goes_has_no_value_in_between(tmp_path):
    run = Run.create(tmp_path / "run", f"spacing = 0.1\n[time]\nframe_time = {FRAME_TIME}\n")
    for index in range(3):
        frame = lively_frame(index, 4)
        if index != 1:
            del frame.fields["density"]
        run.write_frame(frame)
    run.close()
    path = export(run, "usd")
    stage = Usd.Stage.Open(str(path))
    density = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/World/Particles")).GetPrimvar("density")
    assert density.Get(0) is None and len(density.Get(1)) == 4 and density.Get(2) is None
    assert ["density" in frame.names for frame in read_export(path)] == [False, True, False]
