"""Quick pictures: the right things are where they should be, in the right colours, whatever the frame holds."""

import numpy as np
import pytest
from PIL import Image

from viscoil.errors import SceneError
from viscoil.io.frame import Frame
from viscoil.view import splat as splatting
from viscoil.view.camera import Camera
from viscoil.view.occupancy import Occupancy
from viscoil.view.preview import picture
from viscoil.view.shapes import rotation_matrix, surface

SIZE = (160, 90)


def block(count=(8, 8, 8), spacing=0.1, up="y", **more) -> Frame:
    position = np.stack(np.meshgrid(*[np.arange(n) for n in count], indexing="ij"), -1).reshape(-1, 3) * spacing
    n = len(position)
    fields = {
        "position": position.astype(np.float32), "velocity": (position * [1, 0, 0]).astype(np.float32),
        "id": np.arange(n, dtype=np.int32), "material": np.zeros(n, np.int32),
        "density": np.linspace(990, 1010, n).astype(np.float32),
    }
    materials = [{"name": "red", "colour": (0.9, 0.1, 0.1)}, {"name": "green", "colour": "#10c020"}]
    return Frame(0, 0.0, 0, fields, spacing, up, materials=materials, **more)


def pixels(frame: Frame, **more) -> np.ndarray:
    return np.asarray(picture(frame, size=SIZE, **more)).astype(int)


def coloured(image: np.ndarray) -> np.ndarray:
    """Where the picture is clearly not grey: there is fluid."""
    return image.max(axis=2) - image.min(axis=2) > 60


@pytest.mark.parametrize("up", ["y", "z"])
def test_camera_frames_the_fluid(up):
    mask = coloured(pixels(block(up=up)))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    assert mask.mean() > 0.15
    assert rows[0] > 0 and rows[-1] < SIZE[1] - 1, "not cut off"
    assert columns[0] > 0 and columns[-1] < SIZE[0] - 1
    assert abs((rows[0] + rows[-1]) / 2 - SIZE[1] / 2) < 0.1 * SIZE[1], "in the middle"
    assert rows[-1] - rows[0] > 0.6 * SIZE[1], "and large"


def test_material_colours_are_seen_on_their_side():
    frame = block((16, 4, 4))
    frame["material"][frame["position"][:, 0] > 0.75] = 1
    image = pixels(frame)
    red = np.argwhere(image[..., 0] - image[..., 1] > 60)[:, 1]
    green = np.argwhere(image[..., 1] - image[..., 0] > 60)[:, 1]
    assert len(red) > 300 and len(green) > 300
    assert red.mean() < SIZE[0] / 2 < green.mean(), "x points to the right"


def test_nearer_hides_farther():
    """A green wall between camera and red wall: no red is left."""
    frame = block((10, 10, 3), spacing=0.1)
    frame["material"][frame["position"][:, 2] > 0.15] = 1
    frame.spacing = 0.15  # balls large enough to leave no holes between them
    image = pixels(frame, camera=Camera((0.45, 0.45, 5.0), (0.45, 0.45, 0.0)))
    assert (image[..., 1] - image[..., 0] > 60).sum() > 500
    assert (image[..., 0] - image[..., 1] > 60).sum() == 0


def test_dropping_hidden_balls_changes_nothing(monkeypatch):
    random = np.random.default_rng(3)
    frame = block((24, 20, 20), spacing=0.05)
    frame["position"][:] += random.normal(0, 0.008, frame["position"].shape)
    frame["position"][::50, 1] += 0.4
    kept = []
    real = splatting._maybe_visible
    monkeypatch.setattr(splatting, "_maybe_visible", lambda *a: kept.append(real(*a)) or kept[-1])
    tank = {"name": "tank", "pose": np.eye(4), "shape": {"type": "box", "size": [3, 3, 3]}, "container": True}
    frame.solids.append(tank)  # its edges are many tiny splats
    size = (480, 270)
    fast = np.asarray(picture(frame, size=size))
    assert kept[0].mean() < 0.75, "much of a block is hidden"
    monkeypatch.setattr(splatting, "_maybe_visible", lambda at, *_: np.ones(len(at[0]), bool))
    assert np.array_equal(fast, np.asarray(picture(frame, size=size)))


def test_colour_by_speed_and_density():
    frame = block((16, 4, 4))
    image = pixels(frame, colour_by="speed")
    mask = coloured(image)
    columns = np.flatnonzero(mask.any(axis=0))
    left, right = image[:, columns[:15]][mask[:, columns[:15]]], image[:, columns[-15:]][mask[:, columns[-15:]]]
    assert left[:, 2].mean() > left[:, 0].mean() + 40, "slow is blue"
    assert right[:, 0].mean() > right[:, 2].mean() + 40, "fast is warm"
    assert not np.array_equal(pixels(frame, colour_by="density"), image)
    narrow = pixels(frame, colour_by="speed", limits=(0, 100))
    assert (narrow[..., 0] - narrow[..., 2] > 40).sum() == 0, "far below the upper limit all is blue"
    with pytest.raises(SceneError, match="coloured by"):
        picture(frame, colour_by="taste")


def test_ground_has_a_shadow_and_light_comes_from_above():
    frame = block()
    image = pixels(frame)
    mask = coloured(image)
    ground = image[SIZE[1] * 3 // 4 :][~mask[SIZE[1] * 3 // 4 :]].mean(axis=1)
    assert ground.max() - ground.min() > 40
    rows = np.flatnonzero(mask.any(axis=1))
    top, bottom = (image[r][mask[r]].mean() for r in (rows[len(rows) // 8], rows[-len(rows) // 8]))
    assert top > bottom


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_particles(count):
    frame = Frame(0, 0.0, 0, {"position": np.full((count, 3), 0.3, np.float32)}, spacing=0.1)
    assert coloured(pixels(frame)).any() == (count > 0)


def test_strays_do_not_make_the_rest_small():
    frame = block((10, 10, 10))
    usual = coloured(pixels(frame)).mean()
    frame["position"][0] = 1e6
    frame["position"][1] = -1e6
    assert coloured(pixels(frame)).mean() > 0.9 * usual


def test_frames_without_spacing_or_materials():
    frame = Frame(0, 0.0, 0, {"position": block()["position"]})
    assert coloured(pixels(frame)).mean() > 0.05


def test_same_frame_same_picture():
    assert np.array_equal(pixels(block()), pixels(block()))


@pytest.mark.parametrize(
    "shape",
    [
        {"type": "sphere", "radius": 0.3}, {"type": "capsule", "radius": 0.2, "height": 0.3},
        {"type": "cylinder", "radius": 0.2, "height": 0.5}, {"type": "cone", "radius": 0.3, "height": 0.5},
        {"type": "torus", "radius": 0.3, "tube": 0.1}, {"type": "box", "size": [0.3, 0.4, 0.5]},
        {"type": "funnel", "top_radius": 0.4, "bottom_radius": 0.1, "height": 0.4, "thickness": 0.03},
        {"type": "bowl", "radius": 0.4, "height": 0.3, "thickness": 0.03}, {"type": "bear", "height": 0.6},
        {"type": "cup", "radius": 0.3, "height": 0.4, "thickness": 0.05, "top_radius": 0.35},
        {"type": "union", "parts": [{"type": "sphere", "radius": 0.2, "position": [0.1, 0.2, 0]}]},
    ],
    ids=lambda shape: shape["type"],
)
def test_solids_are_drawn(shape):
    pose = np.eye(4)
    pose[:3, 3] = [2.0, 0.4, 0.4]
    solid = {"name": "thing", "pose": pose, "shape": shape, "colour": (0.1, 0.2, 0.9)}
    image = pixels(block(solids=[solid]))
    assert (image[..., 2] - image[..., 0] > 60).sum() > 100
    points, normals = surface(shape, 0.05)
    assert np.allclose(np.linalg.norm(normals, axis=1), 1)
    if shape["type"] not in ("torus", "funnel", "bowl", "cup", "union", "bear"):
        assert ((points * normals).sum(axis=1) > 0).all(), "normals point outward"


def test_containers_are_edges_and_unknown_shapes_are_left_out():
    pose = np.eye(4)
    pose[:3, 3] = 0.35
    container = {"name": "tank", "pose": pose, "shape": {"type": "box", "size": [1, 1, 1]}, "container": True}
    others = [{"name": "floor", "pose": np.eye(4), "shape": {"type": "plane"}}, {"name": "x", "shape": {"type": "hat"}}]
    image, bare = pixels(block(solids=[container, *others])), pixels(block(solids=others))
    dark = (image.max(axis=2) < 150) & ~coloured(image)
    assert 50 < dark.sum() < 3000
    assert not np.array_equal(image, bare)


def test_rotation_order_is_x_then_new_y_then_new_z():
    assert np.allclose(rotation_matrix((90, 0, 0)) @ [0, 1, 0], [0, 0, 1])
    assert np.allclose(rotation_matrix((90, 90, 0)) @ [1, 0, 0], [0, 1, 0])


def test_picture_is_saved(tmp_path):
    image = picture(block((4, 4, 4)), tmp_path / "one.png", size=SIZE)
    assert Image.open(tmp_path / "one.png").size == SIZE == image.size


def test_occupancy_inside_outside_and_light():
    frame = block((20, 20, 20), spacing=0.05)
    filled = Occupancy(frame["position"], 0.05)
    inside, outside = np.full((1, 3), 0.5, np.float32), np.full((1, 3), 3.0, np.float32)
    for smooth in (False, True):
        assert filled.at(inside, smooth=smooth)[0] > 0.7 and filled.at(outside, smooth=smooth)[0] == 0
        up = np.array([0.0, 1.0, 0.0])
        below, above = (np.array([[0.5, y, 0.5]], np.float32) for y in (-0.2, 1.6))
        assert filled.light(below, up, 0.5, smooth=smooth)[0] < 0.1
        assert filled.light(above, up, 0.5, smooth=smooth)[0] == 1
    top = np.array([[0.5, 0.95, 0.5]], np.float32)
    assert filled.normals(top)[0] @ [0, 1, 0] > 0.9
