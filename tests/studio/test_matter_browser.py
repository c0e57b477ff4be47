"""Materials in the studio's page: their sliders act while it runs, the palette makes one material another.

Needs Chromium, as ``test_browser.py`` does, and is skipped or fails without it in the same way.
"""

import re

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from kit import box_scene
from studio.test_browser import CHROMIUM, FLAGS, PATIENCE, Errors, Patient, picture, press, slider, tab, wait_until
from viscoil.material import PRESETS
from viscoil.scene.load import load

TITLE = "Honey block"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("matter")


@pytest.fixture(scope="module")
def studio(folder):
    floor = [{"friction": "no-slip", "shape": {"type": "plane"}}]
    block = [{"material": "honey", "shape": {"type": "box", "size": (0.08, 0.08, 0.08), "position": (0, 0.04, 0)}}]
    scene = box_scene(0.01, title=TITLE, solver={"method": "dcpbd"}, solid=floor, fluid=block)
    scene.time.frames, scene.time.frame_time = 60, 1 / 60
    path = folder / "block.toml"
    path.write_text(scene.to_toml())
    with Patient(path, port=0, device="cpu", output=folder / "saved") as studio:
        studio.wait(lambda s: s.updates > 0)
        studio.shadows(False)
        yield studio


@pytest.fixture(scope="module")
def page(studio):
    errors = Errors()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1160, "height": 900}, device_scale_factor=0.5)
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        errors.watch(page, studio.url)
        page.goto(studio.url)
        expect(page.get_by_text("paused")).to_be_visible()
        tab(page, "Physics")
        yield page
        browser.close()
    assert errors == []


def restarted(page, studio):
    scenes = studio.status.scenes
    press(page, "Reset")
    studio.wait(lambda s: s.scenes > scenes and s.time == 0.0 and s.state == "paused" and s.updates > 0)


def height_after(page, studio, monkeypatch, seconds=0.2):
    """Height of the block at this moment of a run, everything done in the page."""
    rows, keep = [], studio.history.add
    restarted(page, studio)
    with monkeypatch.context() as patch:
        patch.setattr(studio.history, "add", lambda row: (rows.append(row), keep(row)))
        press(page, "Play")
        studio.wait(lambda s: rows and rows[-1]["time"] > seconds)
        press(page, "Pause")
        studio.wait(lambda s: s.state == "paused")
    return next(row["height"] for row in rows if row["time"] > seconds - 1e-6)


def choose(page, name, preset):
    page.get_by_label(name, exact=True).click()
    page.get_by_role("option", name=preset, exact=True).click()


def test_all_three_numbers_of_flow_are_there(page):
    expect(slider(page, "viscosity")[1]).to_have_text("viscosity: 10 Pa s")
    expect(slider(page, "relaxation time")[1]).to_have_text("relaxation time: automatic")
    expect(slider(page, "modulus")[1]).to_have_text("modulus: automatic")
    for name, end in (("viscosity", "10000 Pa s"), ("relaxation time", "10 s")):
        thumb, label = slider(page, name)
        thumb.focus()
        page.keyboard.press("End")
        expect(label).to_have_text(f"{name}: {end}")
    press(page, "Reload")
    expect(slider(page, "viscosity")[1]).to_have_text("viscosity: 10 Pa s")


def test_honey_of_1000_pascal_seconds_stands_higher_than_of_1(page, studio, monkeypatch):
    """Slider by keyboard: 200 positions over five decades, 40 to a decade; before the first, "automatic"."""
    heights = {}
    for text, start, key, presses in (("1000 Pa s", "End", "ArrowLeft", 40), ("1 Pa s", "Home", "ArrowRight", 41)):
        thumb, label = slider(page, "viscosity")
        thumb.focus()
        page.keyboard.press(start)
        for _ in range(presses):
            page.keyboard.press(key)
        expect(label).to_have_text(f"viscosity: {text}")
        number = f"viscosity = {float(text.split()[0])}"
        studio.wait(lambda s, number=number: number in studio.toml)
        heights[text] = height_after(page, studio, monkeypatch)
    assert heights["1000 Pa s"] > 0.06 > 0.045 > heights["1 Pa s"]


def test_a_slider_acts_while_it_runs(page, studio):
    """Thin honey is running away; thickened to 10 kPa s it stands still."""
    restarted(page, studio)
    press(page, "Play")
    studio.wait(lambda s: s.frame >= 3)
    thumb, label = slider(page, "viscosity")
    thumb.focus()
    page.keyboard.press("End")
    expect(label).to_have_text("viscosity: 10000 Pa s")
    studio.wait(lambda s: s.metrics.get("speed_max", 1.0) < 0.02 and s.frame > 4)
    press(page, "Pause")
    studio.wait(lambda s: s.state == "paused")


def test_the_palette_changes_the_material_and_its_colour(page, studio, folder, monkeypatch):
    press(page, "Reload")
    expect(page.get_by_label("honey", exact=True)).to_have_value("honey")
    studio.wait(lambda s: s.time == 0.0 and s.updates > 0 and s.state == "paused")

    def redness():
        """Of the coloured pixels, how much more red than green."""
        pixels = picture(page, folder / "page.png")
        strong = pixels[..., 0] > pixels[..., 2] + 40
        return (pixels[strong, 0] / np.maximum(pixels[strong, 1], 1)).mean() if strong.sum() > 200 else 0.0

    wait_until(lambda: 1.2 < redness() < 2.2, "honey is amber")
    choose(page, "honey", "jelly")
    expect(slider(page, "modulus")[1]).to_have_text("modulus: 2000 Pa")
    expect(slider(page, "relaxation time")[1]).to_have_text("relaxation time: ∞ s")
    expect(page.locator(".vs-swatch")).to_contain_text("1020 kg/m³")
    studio.wait(lambda s: 'preset = "jelly"' in studio.toml)
    jelly = PRESETS["jelly"]
    red, green, blue = (round(255 * part) for part in jelly.colour)
    expect(page.locator(".vs-dot")).to_have_attribute("style", re.compile(rf"rgb\({red},\s*{green},\s*{blue}\)"))
    wait_until(lambda: redness() > 3, "jelly is crimson")
    page.screenshot(path=folder / "palette.png")
    assert height_after(page, studio, monkeypatch) > 0.065, "jelly stands where honey flows"
    assert studio.frame.materials[0]["density"] == jelly.density and studio.frame.materials[0]["look"] == jelly.look


def test_what_the_palette_chose_is_in_the_saved_scene(page, studio, folder):
    path = folder / "chosen.toml"
    path.write_text(studio.toml)
    material = load(path).material["honey"]
    assert material.preset == "jelly" and material.modulus == PRESETS["jelly"].modulus and material.viscosity is None


def test_a_changed_number_is_no_longer_the_preset(page, studio):
    thumb, label = slider(page, "modulus")
    thumb.focus()
    page.keyboard.press("End")
    expect(label).to_have_text("modulus: 1e+06 Pa")
    expect(page.get_by_label("honey", exact=True)).to_have_value("its own numbers")
    press(page, "Reload")
    expect(page.get_by_label("honey", exact=True)).to_have_value("honey")
    expect(slider(page, "viscosity")[1]).to_have_text("viscosity: 10 Pa s")
