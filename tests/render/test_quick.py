"""Quick surfaces: the rasteriser against exact shapes, and fluids that look like what they are."""

import numpy as np
import pytest
from scenery import block, unlike

from viscoil.looks import LOOKS
from viscoil.render.fast import draw
from viscoil.render.matter import looks_of
from viscoil.solids.meshes import creased, mesh
from viscoil.surface.mesh import SurfaceMesh
from viscoil.view import lights, quick, raster
from viscoil.view.camera import Camera
from viscoil.view.raster import Projected, cut, nearest, samples

SIZE = (160, 90)


def solid(shape, at=(0, 0, 0)):
    vertices, triangles, normals = creased(*mesh(shape, 64))
    return (vertices + np.asarray(at, np.float32)).astype(np.float32), triangles, normals


def as_fluid(shape, at=(0, 0, 0)):
    vertices, triangles, normals = solid(shape, at)
    return SurfaceMesh(vertices, triangles, {"normal": normals.astype(np.float32)}, spacing=0.1)


CAMERA = Camera((0, 1.0, 6.0), (0, 1.0, 0), field_of_view=30, floor=0.0)


def test_pixels_of_a_triangle_are_those_whose_centre_is_inside():
    random = np.random.default_rng(4)
    for _ in range(20):
        x, y = random.uniform(-10, 50, (2, 3)).astype(np.float32)
        found = samples(Projected(x, y, np.ones(3, np.float32)), np.array([[0, 1, 2]]), (40, 30), 0.1)
        px, py = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
        signs = [
            (x[b] - x[a]) * (py - y[a]) - (y[b] - y[a]) * (px - x[a]) for a, b in ((0, 1), (1, 2), (2, 0))
        ]
        expected = np.all([s > 0 for s in signs], axis=0) | np.all([s < 0 for s in signs], axis=0)
        edge = np.min(np.abs(signs), axis=0) < 1e-2
        drawn = np.zeros((30, 40), bool)
        drawn.reshape(-1)[found.pixel] = True
        assert (drawn == expected)[~edge].all()
        assert len(np.unique(found.pixel)) == len(found.pixel)
        assert np.allclose(found.weights.sum(axis=1), 1, atol=1e-5)
        assert np.allclose(found.weights @ x, found.pixel % 40 + 0.5, atol=2e-2), "shares reproduce the place"


def test_weights_are_corrected_for_perspective():
    points = np.array([[-1, 0, 3], [1, 0, -3], [0, 2, 0]], float)
    found = samples(Projected.of(points, CAMERA, SIZE), np.array([[0, 1, 2]]), SIZE, 1e-3)
    x, y, depth = CAMERA.project(found.weights @ points, SIZE)
    assert np.abs(x - (found.pixel % SIZE[0] + 0.5)).max() < 0.02 and np.abs(y - (found.pixel // SIZE[0] + 0.5)).max() < 0.02
    assert np.allclose(depth, found.depth, rtol=1e-4)


def test_nearest_wins_and_cutting_changes_nothing(monkeypatch):
    monkeypatch.setattr(raster, "LARGE", 6)
    vertices, triangles, _ = solid({"type": "box", "size": [1, 1, 1]}, (0, 1, 0))
    whole, _ = nearest(samples(Projected.of(vertices, CAMERA, SIZE), triangles, SIZE, 1e-3), SIZE[0] * SIZE[1])
    more, finer = cut(vertices, triangles, CAMERA, SIZE)
    assert len(finer) > len(triangles)
    parts, rows = nearest(samples(Projected.of(more, CAMERA, SIZE), finer, SIZE, 1e-3), SIZE[0] * SIZE[1])
    both = np.isfinite(whole) & np.isfinite(parts)
    assert (np.isfinite(whole) ^ np.isfinite(parts)).sum() <= 0.01 * both.sum()
    assert np.allclose(whole[both], parts[both], rtol=1e-4)
    middle = (SIZE[1] // 2) * SIZE[0] + SIZE[0] // 2
    assert whole[middle] == pytest.approx(5.5, abs=0.01), "the front of the box, not its back"
    assert len(rows) == np.isfinite(parts).sum()


def test_thickness_is_the_length_of_fluid_up_to_a_solid():
    fluid = as_fluid({"type": "sphere", "radius": 0.5}, (0, 1, 0))
    nothing = np.full(SIZE[0] * SIZE[1], np.inf, np.float32)
    middle = (SIZE[1] // 2) * SIZE[0] + SIZE[0] // 2
    assert quick._thickness(fluid, CAMERA, SIZE, nothing)[middle] == pytest.approx(1.0, abs=0.02)
    wall = np.full(SIZE[0] * SIZE[1], 5.8, np.float32)
    assert quick._thickness(fluid, CAMERA, SIZE, wall)[middle] == pytest.approx(0.3, abs=0.02)
    assert quick._thickness(fluid, CAMERA, SIZE, nothing)[0] == 0


def test_rays_through_edges_count_each_layer_once(monkeypatch):
    size = (161, 97)  # the middle pixel looks along the axis, at a diagonal of the front and one of the back
    box = as_fluid({"type": "box", "size": [1, 1, 1]}, (0, 1, 0))
    nothing = np.full(size[0] * size[1], np.inf, np.float32)
    at = Projected.of(box.vertices, CAMERA, size)
    layers = np.bincount(samples(at, box.triangles, size, 1e-3).pixel)
    assert layers[size[1] // 2 * size[0] + size[0] // 2] == 2, "the box has one front and one back"
    assert quick._thickness(box, CAMERA, size, nothing).max() < 1.05

    def torn(*arguments):  # as rounding may leave it: one pixel misses its front
        found = samples(*arguments)
        lost = np.flatnonzero(found.pixel == size[1] // 2 * size[0] + 70)
        kept = np.arange(len(found.pixel)) != lost[found.depth[lost].argmin()]
        return raster.Samples(found.pixel[kept], found.triangle[kept], found.weights[kept], found.depth[kept])

    whole = quick._thickness(box, CAMERA, size, nothing)
    monkeypatch.setattr(quick, "samples", torn)
    assert np.allclose(quick._thickness(box, CAMERA, size, nothing), whole, atol=0.02)


def picture(look, colour=(0.25, 0.56, 0.82), things=(), shape=None):
    fluid = as_fluid(shape or {"type": "sphere", "radius": 0.7}, (0, 0.9, 0))
    chosen = [LOOKS[look].coloured(colour)]
    clear = chosen[0].kind == "clear"
    return quick.draw([(fluid, clear)], chosen, list(things), fluid.vertices, CAMERA, SIZE, 1.4).astype(int)


def inside(image):
    """The middle of the ball."""
    return image[38:58, 70:90].reshape(-1, 3).mean(axis=0)


def test_looks_have_their_colours():
    honey, cream, syrup, clay = (inside(picture(name)) for name in ("honey", "cream", "syrup", "clay"))
    assert honey[0] > honey[1] + 20 and honey[1] > honey[2] + 40, "honey lets red through, little green, hardly any blue"
    assert syrup.sum() < honey.sum(), "syrup is darker"
    assert cream.min() > 150 and np.ptp(cream) < 50, "cream is bright and nearly white"
    assert clay[2] > clay[0], "clay has the material's colour here: blue"


def test_more_fluid_swallows_more():
    small, large = (inside(picture("honey", shape={"type": "sphere", "radius": r})) for r in (0.35, 0.85))
    assert large[2] < small[2] - 10 and large.sum() < small.sum()


def test_a_solid_is_seen_through_clear_fluid_only():
    red = quick.Thing(*solid({"type": "box", "size": [0.5, 0.5, 0.2]}, (0, 0.9, -1.0)), (0.9, 0.1, 0.1))
    through, plain = inside(picture("water", things=[red])), inside(picture("water"))
    blocked = inside(picture("cream", things=[red]))
    assert through[0] - through[2] > plain[0] - plain[2] + 40
    assert blocked[0] - blocked[2] < 40


def test_slender_things_stay_behind_fluid():
    rail = quick.Thing(*solid({"type": "cylinder", "radius": 0.03, "height": 1.5}, (0, 0.9, -1.0)), (0.1, 0.1, 0.1), True)
    assert np.abs(inside(picture("water", things=[rail])) - inside(picture("water"))).max() < 1


def test_light_agrees_with_the_panorama_it_stands_for():
    """Matt light by nine numbers against the sum over all directions."""
    azimuth, elevation = lights.directions()
    a, e = np.radians(azimuth), np.radians(elevation)
    ways = np.stack([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)], axis=-1)
    weight = np.cos(e) * (np.pi / lights.HEIGHT) * (2 * np.pi / lights.WIDTH) / np.pi
    normals = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    whole = np.ones(12, np.float32)
    for normal, found in zip(normals, lights.matt(normals, whole, whole), strict=True):
        expected = (lights.panorama() * (np.clip(ways @ normal, 0, None) * weight)[..., None]).sum(axis=(0, 1))
        assert np.allclose(found, expected, atol=0.06)
    sheet = lights.matt(np.array([[0, 1, 0]], np.float32), whole[:1], whole[:1])
    assert sheet.mean() == pytest.approx(lights.BRIGHTNESS, abs=0.05)
    assert np.allclose(lights.seen(ways.reshape(-1, 3)).reshape(lights.panorama().shape), lights.panorama())
    some = ways[::9, ::9].reshape(-1, 3)
    assert np.allclose(lights.seen(some, smooth=True), lights.panorama()[::9, ::9].reshape(-1, 3), atol=1e-2)


def test_display_is_srgb_below_the_knee_and_never_clips_hard():
    shown = lights.display(np.array([0.0, 0.18, 0.5, 1.0, 4.0]))
    assert shown[1] == pytest.approx(0.4613, abs=1e-3) and shown[0] == 0
    assert (np.diff(shown) > 0).all() and shown[-1] <= 1
    assert np.allclose(lights.linear(lights.display(np.array([0.01, 0.2, 0.5]))), [0.01, 0.2, 0.5], atol=1e-4)


@pytest.mark.parametrize("how", ["surface", "particles", "ellipsoids"])
def test_frames_are_drawn_in_every_way(how):
    frame, empty = block(count=(10, 6, 6)), block(count=(0, 0, 0))
    camera = Camera.framing([frame], SIZE, 35, 20)
    images = [draw(f, how, looks_of(f.materials, "cream"), camera, SIZE, 0.4, 0.6).image for f in (frame, empty)]
    seen = unlike(*images)
    assert 0.1 < seen.mean() < 0.6
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    x, y, _ = camera.project(frame["position"], SIZE)
    assert columns[0] < x.min() + 4 and columns[-1] > x.max() - 4 and rows[0] < y.min() + 4, "all of it"
    assert columns[0] > x.min() - 12 and rows[0] > y.min() - 12, "and, but for a shadow on the right, nothing else"


def test_two_materials_are_told_apart():
    frame = block(count=(12, 5, 5))
    frame.materials.append({"name": "ink", "colour": (0.85, 0.1, 0.1), "look": "gel"})
    frame["material"][frame["position"][:, 0] > 0.6] = 1
    camera = Camera.framing([frame], SIZE, 0, 20)
    for look in (None, "clay"):
        image = draw(frame, "surface", looks_of(frame.materials, look), camera, SIZE, 0.3, 0.5).image.astype(int)
        left, right = image[40:60, 35:60].reshape(-1, 3).mean(axis=0), image[40:60, 100:125].reshape(-1, 3).mean(axis=0)
        assert left[2] > left[0] and right[0] > right[2] + 40


def test_the_border_between_two_materials_is_soft_and_shows_no_triangles():
    ball = as_fluid({"type": "sphere", "radius": 1})
    alone = ball.vertices[:, 0].astype(float)
    ball.fields["material"] = (alone > 0).astype(np.int32)
    shares = quick._shares(ball, 2)
    assert shares.sum(axis=1) == pytest.approx(1, abs=1e-5)
    edges = ball.triangles[:, [0, 1]]
    assert np.abs(np.diff(shares[edges, 1], axis=1)).max() < 0.35, "no step within a triangle"
    assert shares[alone > 0.6, 1].min() > 0.99 and shares[alone < -0.6, 1].max() < 0.01, "far from it nothing mixes"
    assert shares[ball.fields["material"] == 1, 1].min() > 0.3
    assert quick._shares(ball, 1).shape == (1, 1)
