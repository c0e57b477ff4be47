"""Traced pictures: light that behaves, looks that are what they are called, whatever the frame holds."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scenery import SIZE, WATER, block, unlike

from viscoil.looks import LOOKS, Look
from viscoil.render import matter
from viscoil.render.job import Settings, draw, scenery
from viscoil.render.specimen import coiling_rope
from viscoil.render.stage import Stage
from viscoil.render.tracer import denoised, quaternions
from viscoil.render.variant import start
from viscoil.view.camera import View
from viscoil.view.lights import FLOOR


def taken(frame, look=None, samples=12, **more):
    settings = Settings(size=SIZE, samples=samples, look=look, view=View(20, 25, 1, 30), **more)
    return draw(frame, settings, scenery([frame], settings)).image.astype(int)


@pytest.fixture(scope="module")
def pool():
    """A layer of fluid that fills the middle of the picture."""
    return block((0, 0, 0), (12, 5, 12))


@pytest.fixture(scope="module")
def pictures(pool):
    return {name: taken(pool, name) for name in ("honey", "water", "cream", "clay", "chocolate")}


def middle(image):
    return image[24:38, 38:58].reshape(-1, 3).mean(axis=0)


def test_nothing_is_black_or_blown_out(pictures):
    for name, image in pictures.items():
        assert image.shape == (SIZE[1], SIZE[0], 3)
        assert 90 < image.mean() < 225, name
        assert (image.max(axis=2) >= 254).mean() < 0.05, f"{name}: too bright"
        assert (image.max(axis=2) <= 8).mean() < 0.02, f"{name}: too dark"


def test_taking_noise_out_draws_no_horizon():
    """A floor with noise below a backdrop without, equally bright; the row between them is half missed."""
    raw = np.zeros((120, 160, 9), np.float32)  # colour, albedo, normal
    raw[..., :3] = 0.65
    raw[60:, :, :3] *= np.random.default_rng(4).uniform(0.7, 1.3, (60, 160, 1))
    for rows, share in ((slice(60, None), 1.0), (59, 0.4)):
        raw[rows, :, 3:6], raw[rows, :, 7] = share * FLOOR, share
    level = denoised(raw).mean(axis=(1, 2))
    assert np.abs(np.diff(level))[50:70].max() < 0.01
    assert level == pytest.approx(0.65, abs=0.015)


def test_honey_lets_red_through_and_swallows_blue(pictures):
    red, green, blue = middle(pictures["honey"])
    assert red > green + 30 and green > blue + 15


def test_looks_differ_as_they_should(pictures):
    water, cream, clay, chocolate = (middle(pictures[name]) for name in ("water", "cream", "clay", "chocolate"))
    assert water[2] > water[0] + 15, "water is blue"
    assert cream.min() > 170 and np.ptp(cream) < 45, "cream is bright and nearly white"
    assert clay[0] > clay[2] + 40, "clay brings the colour of the preset of its name"
    assert chocolate.sum() < 0.6 * cream.sum()


def test_more_fluid_is_deeper_in_colour(pool):
    settings = Settings(size=SIZE, samples=12, look="honey", view=View(20, 25, 1, 30))
    shared = scenery([pool], settings)
    usual = middle(draw(pool, settings, shared).image.astype(int))
    pale = middle(draw(pool, settings, replace(shared, volume=27 * shared.volume)).image.astype(int))
    assert (pale > usual + 5).all() and pale.sum() > usual.sum() + 40, "the same block in a sea of it"


def test_same_picture_twice(pool):
    first, second = (taken(pool, "clay", samples=2) for _ in range(2))
    assert np.abs(first - second).max() <= 2, "but for the order of sums"


def test_particles_and_ellipsoids_stand_where_the_surface_does(pool, pictures):
    empty = taken(block(count=(0, 0, 0)), "clay", camera="1,1,6 -> 0.6,0.3,0.6")
    assert empty.mean() > 100, "an empty stage is a picture too"
    whole = middle(pictures["clay"])
    for look in ("particles", "ellipsoids"):
        image = taken(pool, look, samples=8)
        assert middle(image)[2] > middle(image)[0] + 20, "in the material's colour: blue"
        nothing = taken(block(count=(12, 5, 12), materials=[WATER | {"colour": tuple(whole / 255)}]), look, samples=8)
        assert unlike(image, nothing).mean() > 0.15


def test_two_clear_colours_mix_inside_one_surface(pool):
    frame = block((0, 0, 0), (12, 5, 12))
    frame.materials = [
        WATER | {"look": "gel", "colour": (0.1, 0.2, 0.9)}, {"name": "red", "look": "gel", "colour": (0.9, 0.1, 0.1)}
    ]
    frame["material"][frame["position"][:, 0] > 0.6] = 1
    assert len(matter.bodies(frame, matter.looks_of(frame.materials))) == 1, "no seam"
    image = taken(frame)
    left, right = image[28:42, 22:32].reshape(-1, 3).mean(axis=0), image[28:42, 64:73].reshape(-1, 3).mean(axis=0)
    assert left[2] > left[0] + 15 and right[0] > right[2] + 15


def test_mixed_colours_swallow_what_one_of_them_does():
    """Small things in a large picture, too: limits of what is swallowed per picture height made yellow jelly red."""
    near, far = block((0, 0, 0), (6, 6, 6)), block((1.2, 0, 0), (6, 6, 6))
    frame = block((0, 0, 0), (12, 6, 6))
    frame["position"][:] = np.concatenate([near["position"], far["position"]])
    frame["material"][:] = np.repeat([1, 0], len(near))
    frame.materials = [WATER, {"name": "jelly", "look": "gel", "colour": (0.94, 0.82, 0.13)}]
    looks = matter.looks_of(frame.materials)
    shared = scenery([frame], Settings(size=SIZE, view=View(20, 25, 0.5, 30)))
    set_up = Stage.before(shared.camera)
    mi, _ = start()
    inside = matter.mixed_filling(mi, frame, looks, shared.volume, set_up)
    grid = 1 - np.array(inside["albedo"]["grid"])
    yellow = grid.reshape(-1, 3)[np.argmax(grid[..., 2])] * inside["sigma_t"]
    assert yellow == pytest.approx(np.array(looks[1].absorption(shared.volume)) * set_up.unit, rel=0.05)


def test_two_opaque_colours_share_one_surface(pool):
    frame = block((0, 0, 0), (12, 5, 12))
    frame.materials = [
        WATER | {"look": "clay", "colour": (0.1, 0.2, 0.9)}, {"name": "red", "look": "cream", "colour": (0.9, 0.1, 0.1)}
    ]
    frame["material"][frame["position"][:, 0] > 0.6] = 1
    image = taken(frame)
    left, right = image[28:42, 22:32].reshape(-1, 3).mean(axis=0), image[28:42, 64:73].reshape(-1, 3).mean(axis=0)
    assert left[2] > left[0] + 30 and right.min() > 150, "cream has a colour of its own"


def test_clear_and_opaque_together(pool):
    frame = block((0, 0, 0), (12, 5, 12))
    frame.materials.append({"name": "milk", "look": "milk", "colour": (0.97, 0.96, 0.92)})
    frame["material"][frame["position"][:, 0] > 0.6] = 1
    parts = matter.bodies(frame, matter.looks_of(frame.materials))
    assert [clear for clear, _ in parts] == [True, False]
    assert sum(len(matter.part_of(frame, rows)) for _, rows in parts) == len(frame)
    image = taken(frame, samples=8)
    right = image[28:42, 64:73].reshape(-1, 3).mean(axis=0)
    assert right.min() > 140


def test_solids_are_seen_in_water_and_tanks_hide_nothing():
    pose = np.eye(4)
    pose[:3, 3] = 0.6, 0.35, 0.6
    ball = {"name": "ball", "shape": {"type": "sphere", "radius": 0.3}, "pose": pose, "colour": (0.9, 0.15, 0.1)}
    place = np.eye(4)
    place[:3, 3] = 0.6, 2.0, 0.6
    tank = {"name": "tank", "container": True, "shape": {"type": "box", "size": [1.2, 4.0, 1.2]}, "pose": place}
    glass = {"name": "glass", "container": True, "shape": {"type": "sphere", "radius": 1.1}, "pose": pose}
    frame = block((0, 0, 0), (12, 5, 12), solids=[ball, tank])
    inside = np.linalg.norm(frame["position"] - pose[:3, 3], axis=1) < 0.35
    frame = matter.part_of(frame, np.flatnonzero(~inside))
    red = middle(taken(frame))
    plain = middle(taken(block((0, 0, 0), (12, 5, 12), solids=[tank, glass])))
    assert plain[2] > plain[0] + 15, "water behind glass"
    assert red[0] / red[2] > 1.25 * plain[0] / plain[2], "the ball shows"


def test_plain_variant_draws_the_same():
    """In a process of its own: the variant stays for good."""
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_tracer import taken, middle\nfrom scenery import block\n"
        "from viscoil.render import variant\n"
        "image = taken(block((0, 0, 0), (12, 5, 12)), 'honey', samples=16)\n"
        "print(variant.start()[1].name, *middle(image))\n"
    )
    environment = {**os.environ, "VISCOIL_VARIANT": "scalar_rgb"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    name, *colour = done.stdout.split()
    assert name == "scalar_rgb"
    other = middle(taken(block((0, 0, 0), (12, 5, 12)), "honey", samples=16))
    assert np.allclose(np.array(colour, float), other, atol=12)


# ---- matter ---------------------------------------------------------------------------------------------------------------


def test_colours_of_looks():
    water, ink = WATER, {"name": "ink", "colour": (0.9, 0.1, 0.1), "look": "gel"}
    assert matter.looks_of([water])[0] == LOOKS["water"].coloured(WATER["colour"])
    assert matter.looks_of([water], "honey")[0].colour == LOOKS["honey"].colour
    assert matter.looks_of([water], "clay")[0].colour != WATER["colour"], "clay-coloured clay"
    assert [look.colour for look in matter.looks_of([water, ink], "clay")] == [WATER["colour"], ink["colour"]]
    assert matter.looks_of([])[0].colour is not None
    assert matter.looks_of([{"look": "unheard of"}])[0].kind == "clear"


def test_absorption_colours_light_after_its_depth():
    look = Look("clear", colour=(0.9, 0.5, 0.1), depth=0.5)
    left = np.exp(-np.array(look.absorption(8.0)) * 0.5 * 2.0)  # half the cube root of 8 m³
    assert np.allclose(left, [((c + 0.055) / 1.055) ** 2.4 for c in look.colour], rtol=1e-6)


def test_quaternions_are_the_rotations():
    random = np.random.default_rng(5)
    turns, _ = np.linalg.qr(random.normal(size=(200, 3, 3)))
    x, y, z, w = quaternions(turns).T
    columns = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
        [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
    ]
    for k, column in enumerate(columns):  # the third may be mirrored: the same ellipsoid
        assert np.allclose(np.stack(column, axis=1), turns[:, :, k], atol=1e-9)
    assert np.allclose(np.abs(quaternions(np.eye(3)[None])), [[0, 0, 0, 1]])


def test_the_specimen_is_one_coherent_thing():
    frame = coiling_rope(0.0015)
    position = frame["position"]
    assert 8_000 < len(frame) < 20_000 and position[:, 1].min() > 0
    finer = coiling_rope(0.0012)
    assert len(finer) * 0.0012**3 == pytest.approx(len(frame) * 0.0015**3, rel=0.05), "the same volume at any spacing"
    order = np.argsort(position[:, 0])
    near = position[order]
    gaps = [np.linalg.norm(near[k:] - near[:-k], axis=1).min() for k in range(1, 30)]
    assert min(gaps) > 0.5 * 0.0015, "no two particles in one place"
