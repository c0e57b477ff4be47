"""The other formats, opened by the programs that are made for them: VTK, trimesh, Alembic."""

import json

import imath
import numpy as np
import pytest
import trimesh
from alembic3d import Abc, AbcGeom
from export_kit import COUNTS, FRAME_TIME, MATERIALS, make_run, make_surface, use_made_up_surfaces
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

from viscoil.io.export import export
from viscoil.io.run import Run
from viscoil.solids.meshes import mesh


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return make_run(tmp_path_factory.mktemp("readers") / "run", up="z")


def placed(run: Run, index: int, solid: int) -> np.ndarray:
    """Vertices of a solid in the world."""
    description = run.frame(index).solids[solid]
    pose = np.array(description["pose"])
    return mesh(description["shape"])[0] @ pose[:3, :3].T + pose[:3, 3]


# ---- VTK ------------------------------------------------------------------------------------------------------------


def opened(path):
    reader = vtkXMLPolyDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutput()


def arrays(data) -> dict[str, np.ndarray]:
    return {data.GetArrayName(k): vtk_to_numpy(data.GetArray(k)) for k in range(data.GetNumberOfArrays())}


@pytest.mark.parametrize("index", range(len(COUNTS)))
def test_vtk_opens_particles_surfaces_and_solids(index, run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    folder = export(run, "vtk", tmp_path, what="all", frames=str(index))
    frame, found = run.frame(index), opened(folder / f"frame_{index:05d}.vtp")
    assert found.GetNumberOfPoints() == found.GetNumberOfVerts() == len(frame)
    assert vtk_to_numpy(found.GetFieldData().GetArray("TimeValue"))[0] == frame.time
    if len(frame):
        assert vtk_to_numpy(found.GetPoints().GetData()).tobytes() == frame["position"].tobytes()
        values = arrays(found.GetPointData())
        for name in frame.names[1:]:
            assert values[name].tobytes() == frame[name].tobytes() and values[name].dtype == frame[name].dtype
    surface, found = make_surface(run, index), opened(folder / f"surface_{index:05d}.vtp")
    assert found.GetNumberOfPolys() == len(surface.triangles)
    if len(surface):
        assert vtk_to_numpy(found.GetPoints().GetData()).tobytes() == surface.vertices.tobytes()
        assert vtk_to_numpy(found.GetPolys().GetConnectivityArray()).tolist() == surface.triangles.ravel().tolist()
        assert {k: v.tobytes() for k, v in arrays(found.GetPointData()).items()} == {
            k: v.tobytes() for k, v in surface.fields.items()
        }
    solids = opened(folder / f"solids_{index:05d}.vtp")
    points, owner = vtk_to_numpy(solids.GetPoints().GetData()), arrays(solids.GetCellData())["solid"]
    floor, stirrer = placed(run, index, 0), placed(run, index, 2)
    assert np.allclose(points[len(floor) : len(floor) + len(stirrer)], stirrer, atol=1e-6)
    assert set(owner) == set(range(len(frame.solids) - 1)), "all but the tank"
    tank = opened(folder / f"containers_{index:05d}.vtp")
    assert np.allclose(vtk_to_numpy(tank.GetPoints().GetData()), placed(run, index, 1))


# ---- PLY ------------------------------------------------------------------------------------------------------------


def test_trimesh_opens_ply_surfaces_and_solids(run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    folder = export(run, "ply", tmp_path, what="all")
    surface = make_surface(run, 2)
    found = trimesh.load(folder / "surface_00002.ply", process=False)
    assert np.array_equal(np.asarray(found.vertices, np.float32), surface.vertices) and found.is_watertight
    assert np.array_equal(found.faces, surface.triangles)
    assert np.allclose(found.visual.vertex_colors[:, :3], 255 * surface["colour"], atol=0.51)
    data = found.metadata["_ply_raw"]["vertex"]["data"]
    assert np.array_equal(data["density"].ravel(), surface["density"])
    assert np.array_equal(data["nx"].ravel(), surface["normal"][:, 0])
    assert np.array_equal(data["stress_4"].ravel(), surface["stress"][:, 1, 1])
    solids = trimesh.load(folder / "solids_00004.ply", process=False)
    expected = np.concatenate([placed(run, 4, k) for k in (0, 2, 3)])
    assert np.allclose(solids.vertices[4:], expected[4:], atol=1e-6)
    assert np.ptp(solids.vertices[:4], axis=0).min() == 0 and np.ptp(solids.vertices[:4]) > 10, "the floor, wide enough"
    assert (folder / "containers_00000.ply").exists() and not (folder / "containers_00001.ply").exists(), "it rests"
    assert not (folder / "solids_00001.ply").exists() and (folder / "solids_00002.ply").exists()


# ---- glTF -----------------------------------------------------------------------------------------------------------


def document(path) -> tuple[dict, bytes]:
    content = path.read_bytes()
    size = int.from_bytes(content[12:16], "little")
    return json.loads(content[20 : 20 + size]), content[28 + size :]


def test_trimesh_opens_glb(run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    folder = export(run, "glb", tmp_path, what="all")
    for index, count in enumerate(COUNTS):
        scene = trimesh.load(folder / f"frame_{index:05d}.glb")
        frame, surface = run.frame(index), make_surface(run, index)
        upright = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])  # z-up turned to glTF's y-up
        transform, name = scene.graph["stirrer"]
        assert np.allclose(transform[:3], upright @ np.array(frame.solids[2]["pose"])[:3], atol=1e-7)
        assert scene.geometry[name].is_watertight or scene.geometry[name].volume > 0
        if not count:
            assert "particles" not in scene.geometry
            continue
        assert np.array_equal(np.asarray(scene.geometry["particles"].vertices, np.float32), frame["position"])
        pieces = [scene.geometry[n] for n in scene.geometry if n.startswith("surface")]
        assert len(pieces) == 2, "one primitive per material"
        corners = np.concatenate([np.asarray(p.vertices, np.float32)[p.faces].reshape(-1, 9) for p in pieces])
        owner = surface["material"][surface.triangles[:, 0]]
        order = np.argsort(owner, kind="stable")
        assert np.array_equal(corners, surface.vertices[surface.triangles[order]].reshape(-1, 9))


def test_glb_keeps_the_rules_of_gltf(run, tmp_path, monkeypatch):
    """Those that viewers insist on: alignment, ranges, bounds, no integers wider than 16 bits in attributes."""
    use_made_up_surfaces(monkeypatch)
    for index in range(len(COUNTS)):
        gltf, binary = document(export(run, "glb", tmp_path, what="all", frames=str(index)) / f"frame_{index:05d}.glb")
        assert gltf["asset"]["version"] == "2.0" and gltf["buffers"][0]["byteLength"] == len(binary)
        for accessor in gltf["accessors"]:
            view = gltf["bufferViews"][accessor["bufferView"]]
            parts = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
            width = parts * {5126: 4, 5125: 4, 5121: 1}[accessor["componentType"]]
            assert accessor["count"] > 0 and view["byteLength"] == width * accessor["count"]
            assert view["byteOffset"] % 4 == 0 and view["byteOffset"] + view["byteLength"] <= len(binary)
        for shape in gltf["meshes"]:
            for primitive in shape["primitives"]:
                counts = {gltf["accessors"][k]["count"] for k in primitive["attributes"].values()}
                assert len(counts) == 1
                assert all(gltf["accessors"][k]["componentType"] != 5125 for k in primitive["attributes"].values())
                assert {"min", "max"} <= gltf["accessors"][primitive["attributes"]["POSITION"]].keys()
        used = {name for material in gltf["materials"] for name in material.get("extensions", {})}
        assert used == set(gltf.get("extensionsUsed", []))


def test_glb_of_clear_and_matt_looks(run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    gltf, _ = document(export(run, "glb", tmp_path, what="surface", frames="2") / "frame_00002.glb")
    materials = {material["name"]: material for material in gltf["materials"]}
    honey = materials["honey"]["extensions"]
    assert honey["KHR_materials_ior"]["ior"] == 1.49 and honey["KHR_materials_transmission"]["transmissionFactor"] > 0.5
    red, green, blue = honey["KHR_materials_volume"]["attenuationColor"]
    assert red > green > blue > 0 and honey["KHR_materials_volume"]["attenuationDistance"] > 0
    assert "extensions" not in materials["thick mud"]
    assert materials["tank"]["alphaMode"] == "BLEND" and materials["tank"]["pbrMetallicRoughness"]["baseColorFactor"][3] < 0.5
    assert not any(shape["name"] == "particles" for shape in gltf["meshes"])
    assert MATERIALS[0]["look"] == "honey"


# ---- Alembic --------------------------------------------------------------------------------------------------------


def at(schema, index):
    """A selector made of a number means seconds."""
    return Abc.ISampleSelector(schema.getTimeSampling().getSampleTime(index))


def test_alembic_opens_everything(run, tmp_path, monkeypatch):
    use_made_up_surfaces(monkeypatch)
    archive = Abc.IArchive(str(export(run, "abc", tmp_path / "all.abc", what="all")))
    assert Abc.GetArchiveInfo(archive)["dccFPS"] == 62.5
    world = AbcGeom.IXform(archive.getTop(), "world")
    upright = world.getSchema().getValue().getMatrix()
    assert tuple(imath.V3d(1, 2, 3) * upright) == (1, 3, -2), "z-up turned to Alembic's y-up"
    points = AbcGeom.IPoints(AbcGeom.IXform(world, "particles"), "points").getSchema()
    shape = AbcGeom.IPolyMesh(AbcGeom.IXform(world, "surface"), "mesh").getSchema()
    assert points.getNumSamples() == shape.getNumSamples() == len(COUNTS)
    for index, count in enumerate(COUNTS):
        assert points.getTimeSampling().getSampleTime(index) == pytest.approx(index * FRAME_TIME)
        frame, surface = run.frame(index), make_surface(run, index)
        cloud, skin = points.getValue(at(points, index)), shape.getValue(at(shape, index))
        assert len(cloud.getPositions()) == count and len(skin.getPositions()) == len(surface)
        if not count:
            continue
        assert np.array(cloud.getPositions()).tobytes() == frame["position"].tobytes()
        assert np.array(cloud.getVelocities()).tobytes() == frame["velocity"].tobytes()
        assert list(cloud.getIds()) == frame["id"].tolist()
        assert np.array(skin.getPositions()).tobytes() == surface.vertices.tobytes()
        assert np.array(skin.getVelocities()).tobytes() == surface["velocity"].tobytes()
        faces = np.array(skin.getFaceIndices()).reshape(-1, 3)
        assert np.array_equal(faces[:, ::-1], surface.triangles), "Alembic's faces run clockwise"
        density = AbcGeom.IFloatGeomParam(shape.getArbGeomParams(), "density").getExpandedValue(at(shape, index)).getVals()
        assert np.array(density).tobytes() == surface["density"].tobytes()
    solids = AbcGeom.IXform(world, "solids")
    stirrer = AbcGeom.IXform(solids, "stirrer")
    for index in range(len(COUNTS)):
        schema = stirrer.getSchema()
        found = schema.getValue(at(schema, index)).getMatrix()
        pose = np.array(run.frame(index).solids[2]["pose"])
        assert np.allclose([[found[i][j] for i in range(4)] for j in range(4)], pose)
    seen = {k: AbcGeom.GetVisibility(AbcGeom.IXform(solids, "stirrer 2"), at(stirrer.getSchema(), k)) for k in (0, 2, 3, 4)}
    assert [int(seen[k]) for k in (0, 2, 3, 4)] == [0, 0, -1, -1]
    assert int(AbcGeom.GetVisibility(AbcGeom.IXform(solids, "tank"), at(stirrer.getSchema(), 0))) == 0


def test_alembic_with_uneven_times(run, tmp_path):
    archive = Abc.IArchive(str(export(run, "abc", tmp_path / "some.abc", frames="0,2,3")))
    world = AbcGeom.IXform(archive.getTop(), "world")
    schema = AbcGeom.IPoints(AbcGeom.IXform(world, "particles"), "points").getSchema()
    times = [schema.getTimeSampling().getSampleTime(k) for k in range(schema.getNumSamples())]
    assert times == [k * FRAME_TIME for k in (0, 2, 3)]
