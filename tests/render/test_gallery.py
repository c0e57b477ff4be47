"""The gallery: one picture per scene, small, made again only when something changed, and a page that shows them."""

import pytest
from PIL import Image

from viscoil.render import gallery
from viscoil.render.job import Settings
from viscoil.scene.load import load, shipped

SETTINGS = Settings(size=(160, 90), fast=True)
SCENE = """
title = "Small block"
description = "A block falls."
spacing = 0.1

[figure]
paper = "Nobody 1900"
number = "7"
caption = "A block."

[picture]
time = 0.04
azimuth = 10

[time]
frames = 4
frame_time = 0.02
steps_per_frame = 2

[[fluid]]
material = "water"
shape = { type = "box", size = [0.6, 0.6, 0.6], position = [0, 0.5, 0] }

[[solid]]
name = "ground"
colour = [0.5, 0.5, 0.5]
shape = { type = "plane" }
"""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "small_block.toml"
    path.write_text(SCENE)
    return path


def made(scene, tmp_path, settings=SETTINGS, **more):
    """Names of what was drawn."""
    drawn = []
    gallery.make(
        [str(scene)], tmp_path / "gallery", tmp_path / "runs", settings, device="cpu",
        said=lambda entry, seconds: drawn.append(entry.name) if seconds is not None else None, **more,
    )  # fmt: skip
    return drawn


def test_only_what_changed_is_made_again(scene, tmp_path):
    assert made(scene, tmp_path) == ["small_block"]
    frames = sorted((tmp_path / "runs" / "small_block" / "frames").glob("frame_*"))
    assert [file.name for file in frames] == [f"frame_0000{k}.vtkhdf" for k in range(3)], "up to the telling moment"
    assert made(scene, tmp_path) == []
    scene.write_text(SCENE.replace('title = "Small block"', 'title = "Another name"'))
    assert made(scene, tmp_path) == [], "words change the page, not the picture"
    assert "## Another name" in (tmp_path / "gallery" / "README.md").read_text()
    scene.write_text(SCENE.replace("azimuth = 10", "azimuth = 20"))
    written = [file.stat().st_mtime_ns for file in frames]
    assert made(scene, tmp_path) == ["small_block"], "another view is another picture"
    assert [file.stat().st_mtime_ns for file in frames] == written, "of the same run"
    scene.write_text(SCENE.replace("spacing = 0.1", "spacing = 0.12"))
    assert made(scene, tmp_path) == ["small_block"], "another scene is another run"
    assert made(scene, tmp_path, Settings(size=(96, 54), fast=True)) == ["small_block"]
    assert made(scene, tmp_path, Settings(size=(96, 54), fast=True), overwrite=True) == ["small_block"]


def test_colours_may_change_without_a_new_run(scene, tmp_path):
    made(scene, tmp_path)
    scene.write_text(SCENE + '\n[material.water]\ncolour = "red"\nlook = "paint"\n')
    assert made(scene, tmp_path) == ["small_block"]
    with Image.open(tmp_path / "gallery" / "small_block.jpg") as image:
        red, _, blue = image.convert("RGB").resize((16, 9)).getpixel((8, 5))
    assert red > blue + 60


def test_page_and_picture(scene, tmp_path):
    made(scene, tmp_path)
    folder = tmp_path / "gallery"
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "small_block.jpg"]
    with Image.open(folder / "small_block.jpg") as image:
        assert image.size == SETTINGS.size
    page = (folder / "README.md").read_text()
    for words in (
        "![Small block](small_block.jpg)", "A block falls.", "After figure 7 of Nobody 1900: a block.",
        "viscoil run small_block --frames 2", "viscoil render runs/small_block",
    ):  # fmt: skip
        assert words in page


def test_pictures_stay_small(tmp_path):
    import numpy as np

    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3)).astype(np.uint8)
    large = gallery.write_small(noise, tmp_path / "large.jpg").stat().st_size
    path = gallery.write_small(noise, tmp_path / "noise.jpg", "a stamp", limit=large // 2)
    assert 0.3 * large < path.stat().st_size <= large // 2
    with Image.open(path) as image:
        assert image.size == (400, 300) and image.info["comment"] == b"a stamp"


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_scene_says_which_picture_stands_for_it(name):
    scene = load(name)
    assert scene.picture is not None and scene.picture.time is not None
    entry = gallery.entries([name], gallery.Path("nowhere"), SETTINGS)[0]
    assert 1 <= entry.frame <= entry.scene.time.frames
    assert entry.settings.view.azimuth == scene.picture.azimuth
