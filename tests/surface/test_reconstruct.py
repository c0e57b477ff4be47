"""Surfaces of bodies that are known: volume, thickness, flatness, where they lie, what lies on them."""

import numpy as np
import pytest
import trimesh
from bodies import RED_AND_BLUE, block, edge_counts, frame_of, sphere

from viscoil.errors import SceneError, SurfaceFailed
from viscoil.surface.options import Options, settings
from viscoil.surface.reconstruct import surface


def mean_radius(mesh) -> float:
    """Mean distance of the middle of a rope along x from its axis."""
    middle = np.abs(mesh.vertices[:, 0]) < 12
    return float(np.hypot(mesh.vertices[middle, 1], mesh.vertices[middle, 2]).mean())


BODIES = {
    "ball": (sphere(10, 0.2), 0.04),
    "drop": (sphere(4, 0.2), 0.06),
    "block": (block((16, 16, 16), 0.2), 0.03),
    "sheet of 2": (block((30, 2, 30), 0.2), 0.06),
    "sheet of 4": (block((30, 4, 30), 0.2), 0.04),
    "rope of 2x2": (block((40, 2, 2), 0.2), 0.05),
    "rope of 3x3": (block((40, 3, 3), 0.2), 0.05),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_mesh_has_the_volume_of_the_particles(name):
    x, tolerance = BODIES[name]
    mesh = surface(frame_of(x))
    assert mesh.particle_volume == len(x)
    assert mesh.volume_ratio() == pytest.approx(1, abs=tolerance)
    assert mesh.components == 1


@pytest.mark.parametrize("thick", [1, 2, 3])
def test_smoothing_keeps_ropes_as_thick_as_they_were(thick):
    frame = frame_of(block((40, thick, thick), 0.15))
    before, after = surface(frame, smoothing=0), surface(frame)
    assert after.volume() == pytest.approx(before.volume(), rel=0.02)
    assert mean_radius(after) == pytest.approx(mean_radius(before), rel=0.02)


def test_plain_laplacian_smoothing_would_halve_a_rope():
    """What the rest of smoothing.py is there for."""
    import pysplashsurf

    x = block((40, 2, 2)).astype(np.float32)
    mesh, _ = pysplashsurf.reconstruction_pipeline(
        x, particle_radius=0.5, smoothing_length=2.0, cube_size=0.75, iso_surface_threshold=0.55, mesh_cleanup=True,
        decimate_barnacles=True, mesh_smoothing_iters=25,
    )  # fmt: skip
    shrunk = trimesh.Trimesh(mesh.mesh.vertices, mesh.mesh.triangles.astype(int)).volume / len(x)
    ours = surface(frame_of(x)).volume_ratio()
    assert shrunk < 0.75 and ours > 0.97


def test_smoothing_removes_bumps_and_keeps_features():
    x = block((24, 8, 24), 0.2)
    ball = sphere(2.0) + np.array([0, 5, 0])
    frame = frame_of(np.concatenate([x, ball]))

    def tilt(mesh):
        """Root mean square angle between normals and the vertical on the flat part of the top."""
        v = mesh.vertices
        far = (np.abs(v[:, [0, 2]]).max(axis=1) < 9) & (np.hypot(v[:, 0], v[:, 2]) > 6) & (v[:, 1] > 2)
        return float(np.sqrt(np.mean(np.arccos(np.clip(mesh["normal"][far, 1], -1, 1)) ** 2)))

    rough, smooth = surface(frame, smoothing=0, normal_smoothing=0), surface(frame, normal_smoothing=0)
    assert tilt(rough) > np.radians(5) > np.radians(2.5) > tilt(smooth)
    assert smooth.vertices[:, 1].max() == pytest.approx(rough.vertices[:, 1].max(), abs=0.3)
    assert smooth.vertices[:, 1].max() > 6.3  # the ball on top is still there


@pytest.mark.parametrize("quality", ["film", "live"])
def test_fluid_at_rest_touches_its_walls_and_has_a_flat_top(quality):
    """Particles sit half a spacing from a wall; the surface must reach it, without a gap and without going through."""
    mesh = surface(frame_of(block((20, 12, 20), 0.1)), quality)
    for axis, half in enumerate((10, 6, 10)):
        inner = np.abs(np.delete(mesh.vertices, axis, axis=1)).max(axis=1) < 4
        for side in (-1, 1):
            face = side * mesh.vertices[inner & (side * mesh.vertices[:, axis] > 0), axis]
            assert np.abs(face - half).max() < 0.25
            assert face.std() < 0.05


@pytest.mark.parametrize("quality", ["film", "live"])
def test_meshes_are_closed_and_manifold_and_look_outwards(quality):
    rope = block((20, 1, 1), 0.1) + np.array([0, 6, 5])
    x = np.concatenate([block((12, 6, 12), 0.25), sphere(2.5) + np.array([0, 9, 0]), rope])
    mesh = surface(frame_of(x), quality)
    assert (edge_counts(mesh.triangles) == 2).all()
    solid = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    assert solid.is_watertight and solid.is_winding_consistent and solid.volume > 0
    facing = np.einsum("ij,ij->i", solid.face_normals, mesh["normal"][mesh.triangles].mean(axis=1))
    assert np.mean(facing < 0) < 2e-3
    assert np.allclose(np.linalg.norm(mesh["normal"], axis=1), 1, atol=1e-5)


def test_sizes_follow_the_spacing():
    x = sphere(5, 0.2)
    unit, small = surface(frame_of(x)), surface(frame_of(x, spacing=0.002))
    assert small.volume() == pytest.approx(unit.volume() * 0.002**3, rel=1e-4)
    assert len(small) == pytest.approx(len(unit), rel=0.01)


def test_quantities_are_interpolated():
    x = block((14, 14, 14), 0.1)
    tensor = np.einsum("i,ab->iab", x[:, 1], np.eye(3)).astype(np.float32)
    frame = frame_of(
        x, velocity=np.stack([x[:, 1], 2 * x[:, 0], np.full(len(x), 3.0)], 1).astype(np.float32),
        density=np.full(len(x), 1234.0), tensor=tensor, id=np.arange(len(x)),
    )  # fmt: skip
    mesh = surface(frame)
    v = mesh.vertices
    # A weighted mean of particles that all lie inside: right up to the distance to their middle, about half a spacing.
    assert np.abs(mesh["velocity"][:, 0] - v[:, 1]).max() < 1.3
    assert np.corrcoef(mesh["velocity"][:, 1], v[:, 0])[0, 1] > 0.998
    assert np.allclose(mesh["velocity"][:, 2], 3, atol=1e-4) and np.allclose(mesh["density"], 1234, rtol=1e-5)
    assert mesh["tensor"].shape == (len(mesh), 3, 3) and np.abs(mesh["tensor"][:, 0, 1]).max() == 0
    assert np.allclose(mesh["tensor"][:, 2, 2], mesh["velocity"][:, 0], atol=1e-4)
    assert "id" not in mesh.fields and "position" not in mesh.fields
    assert all(values.dtype == np.float32 for name, values in mesh.fields.items() if name != "material")
    assert list(surface(frame, fields=["density"]).fields) == ["normal", "density", "material", "colour"]


def test_materials_are_the_majority_and_colours_mix():
    x = block((16, 8, 8), 0.1)
    frame = frame_of(x, materials=RED_AND_BLUE, material=(x[:, 0] > 0).astype(np.int32))
    mesh = surface(frame)
    left, right = mesh.vertices[:, 0] < -2, mesh.vertices[:, 0] > 2
    assert mesh["material"].dtype == np.int32
    assert (mesh["material"][left] == 0).all() and (mesh["material"][right] == 1).all()
    assert np.allclose(mesh["colour"][left], [1, 0, 0], atol=1e-5) and np.allclose(mesh["colour"][right], [0, 0, 1], atol=1e-5)
    middle = np.abs(mesh.vertices[:, 0]) < 0.1
    assert middle.any() and np.all((mesh["colour"][middle, 0] > 0.15) & (mesh["colour"][middle, 0] < 0.85))
    assert np.allclose(mesh["colour"].sum(axis=1), 1, atol=1e-5)
    only_blue = surface(frame_of(sphere(3), materials=RED_AND_BLUE, material=np.ones(len(sphere(3)), np.int32)))
    assert (only_blue["material"] == 1).all() and np.allclose(only_blue["colour"], [0, 0, 1])


def test_drops_and_cavities_are_left_out_as_asked():
    hole = np.linalg.norm(block((12, 12, 12)), axis=1) > 2.2
    drops = [[12.0, 0, 0], [16.0, 0, 0], [16.7, 0, 0.3]]
    frame = frame_of(np.concatenate([block((12, 12, 12))[hole], drops]))
    everything = surface(frame, bubbles=0)
    assert everything.components == 4  # block, its cavity, a drop of one and a drop of two
    film = surface(frame)
    assert film.components == 3
    assert film.filled_volume == pytest.approx((~hole).sum(), rel=0.35)
    assert film.volume() - film.filled_volume == pytest.approx(everything.volume(), rel=1e-3)
    assert surface(frame, bubbles=10).components == 4  # larger than ten particles: kept
    only_block = surface(frame, stray=4)
    assert only_block.components == 1 and only_block.vertices[:, 0].max() < 7
    assert only_block.volume_ratio() < film.volume_ratio()


def test_runaways_cost_nothing():
    x = np.concatenate([block((6, 6, 6)), [[3e4, 0, 0], [0, -2e4, 1e4], [3e6, 0, 0]]])
    mesh = surface(frame_of(x))
    assert mesh.components == 3 and len(mesh) < 20_000  # the one that is millions of spacings away is left out


def test_nothing_gives_nothing():
    mesh = surface(frame_of(np.zeros((0, 3)), velocity=np.zeros((0, 3), np.float32)))
    assert len(mesh) == 0 and mesh.triangles.shape == (0, 3) and mesh.volume() == 0 and np.isnan(mesh.volume_ratio())
    assert {name: values.shape for name, values in mesh.fields.items()} == {
        "normal": (0, 3), "velocity": (0, 3), "material": (0,), "colour": (0, 3),
    }  # fmt: skip


def test_one_particle_is_a_ball():
    mesh = surface(frame_of(np.zeros((1, 3))))
    assert mesh.volume_ratio() == pytest.approx(1, abs=0.12)


def test_a_frame_knows_its_surface():
    frame = frame_of(sphere(3))
    mesh = frame.surface("live", stray=2)
    assert (mesh.index, mesh.time, mesh.spacing, mesh.up) == (7, 0.25, 1.0, "y") and mesh.materials == RED_AND_BLUE[:1]
    assert mesh.options == settings("live", stray=2).header() and mesh.seconds > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quality": "flim"}, 'quality "flim" is unknown. Did you mean "film"? Expected one of: film, live'),
        ({"method": "splish"}, 'method "splish" is unknown. Did you mean "splash"?'),
        ({"smothing": 3}, 'no option "smothing". Did you mean "smoothing"?'),
        ({"smoothing": 2.5}, "smoothing is 2.5; expected a whole number"),
        ({"smoothing": -1}, "smoothing is -1; expected a whole number"),
        ({"cube": "big"}, "cube is 'big'; expected a number of spacings from 0.05 to 2"),
        ({"cube": 0.0}, "cube is 0.0; expected"),
        ({"bubbles": float("nan")}, "bubbles is nan; expected"),
        ({"fields": ["velocty"]}, 'no quantity "velocty" to carry over. Did you mean "velocity"?'),
        ({"fields": 3}, "fields is 3; expected names"),
    ],
)
def test_wrong_options_are_explained(options, words):
    with pytest.raises(SceneError) as error:
        surface(frame_of(sphere(2), velocity=np.zeros((len(sphere(2)), 3), np.float32)), **options)
    assert words in str(error.value)


def test_left_out_options_come_from_quality_and_method():
    assert settings("live").cube > settings("film").cube
    assert settings(cube=None) == settings() and settings().support is not None
    assert set(settings().header()) == set(Options.__dataclass_fields__)


def test_frames_that_cannot_have_a_surface():
    frame = frame_of(sphere(2))
    frame.spacing = 0.0
    with pytest.raises(SceneError, match="does not say its particle spacing"):
        surface(frame)
    frame.spacing, frame.fields["position"][5, 1] = 1.0, np.nan
    with pytest.raises(SurfaceFailed, match="frame 7: position of particle 5 is not finite"):
        surface(frame)


@pytest.mark.parametrize("method", ["splash", "anisotropic", "clavet"])
@pytest.mark.parametrize("spacing", [1e-6, 10.0])
def test_surfaces_do_not_know_how_large_they_are(method, spacing):
    """The same mesh in spacings, of micrometres and of metres; the order of its vertices is the threads'."""
    x = np.concatenate([sphere(4.2, 0.1), block((8, 2, 2), 0.1) + np.array([0, 7, 0])])
    known, found = (surface(frame_of(x, size), "live", method) for size in (1.0, spacing))
    assert len(found.vertices) == len(known.vertices) > 100 and len(found.triangles) == len(known.triangles)
    ordered = [np.sort(np.asarray(mesh.vertices) / size, axis=0) for mesh, size in ((known, 1.0), (found, spacing))]
    assert np.abs(ordered[0] - ordered[1]).max() < 1e-4
    assert np.isfinite(found.fields["normal"]).all()
