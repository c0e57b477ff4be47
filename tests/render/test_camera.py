"""The camera: sees every frame of a film, stands where it is told, and explains itself."""

import numpy as np
import pytest
from scenery import SIZE, block

from viscoil.errors import SceneError
from viscoil.view.camera import Camera


def moving():
    """A block that crosses the stage; made anew each time, as frames on disk are."""
    return (block((0.5 * k, 0.3 * k, 0), (4, 4, 4), index=k) for k in range(6))


@pytest.mark.parametrize(("azimuth", "elevation", "field_of_view"), [(0, 0, 30), (35, 20, 35), (-120, 60, 50), (200, -10, 15)])
def test_all_particles_of_all_frames_are_in_the_picture(azimuth, elevation, field_of_view):
    camera = Camera.framing(moving(), SIZE, azimuth, elevation, field_of_view=field_of_view)
    points = np.concatenate([frame["position"] for frame in moving()])
    x, y, depth = camera.project(points, SIZE)
    assert (depth > 0).all()
    assert x.min() > 0 and x.max() < SIZE[0] and y.min() > 0 and y.max() < SIZE[1]
    assert np.ptp(x) > 0.6 * SIZE[0] or np.ptp(y) > 0.6 * SIZE[1], "and they fill it"


def test_azimuth_turns_towards_x_and_elevation_looks_down():
    ahead, right = (Camera.framing([block()], SIZE, azimuth, 20) for azimuth in (0, 90))
    assert ahead.position[2] > ahead.target[2] and abs(ahead.position[0] - ahead.target[0]) < 1e-6
    assert right.position[0] > right.target[0] and abs(right.position[2] - right.target[2]) < 1e-6
    assert ahead.position[1] > ahead.target[1]


def test_zoom_goes_closer_and_keeps_the_direction():
    far, near = (Camera.framing([block()], SIZE, zoom=zoom) for zoom in (1, 2))
    assert near.height_at_target == pytest.approx(far.height_at_target / 2)
    assert near.target == far.target


def test_placed_in_words():
    camera = Camera.placed("2, 1.5, -3e0 -> 0,.5,0", block())
    assert camera.position == (2, 1.5, -3) and camera.target == (0, 0.5, 0) and camera.floor == pytest.approx(0, abs=1e-6)
    for text in ("1,2,3", "1,2 -> 3,4,5", "here -> there", "1,2,3 -> 1,2,3", "1,2,3 -> 4,5,six"):
        with pytest.raises(SceneError, match="--camera"):
            Camera.placed(text, block())


@pytest.mark.parametrize("up", ["y", "z"])
def test_stage_axes_are_a_rotation_with_up_in_the_middle(up):
    camera = Camera.framing([block(up=up)], SIZE, 40, 30)
    axes = camera.stage_axes()
    assert np.allclose(axes @ axes.T, np.eye(3)) and np.linalg.det(axes) == pytest.approx(1)
    assert np.allclose(axes[1], camera.up)
    assert axes[2] @ np.subtract(camera.position, camera.target) > 0, "the third points to the camera"
