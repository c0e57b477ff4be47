"""The studio as its users meet it: in a real browser, by mouse and keyboard.

Needs Chromium from the system's packages (``apt install chromium``). Without it these tests are skipped, and say so; with
VISCOIL_REQUIRE_BROWSER=1 they fail instead, so that a test run cannot quietly leave them out.
"""

import os
import re
import shutil
import warnings

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from kit import box_scene
from viscoil.scene.parts import Solid
from viscoil.studio import Studio

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = [
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
    "--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-dev-shm-usage",
]  # fmt: skip
PATIENCE = 90_000  # ms: a busy machine that draws in software is slow, not wrong

if CHROMIUM is None:
    missing = "no Chromium found: THE BROWSER TESTS OF THE STUDIO DID NOT RUN (install chromium)"
    if os.environ.get("VISCOIL_REQUIRE_BROWSER"):
        pytest.fail(missing, pytrace=False)
    warnings.warn(missing, stacklevel=1)
    pytest.skip(missing, allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Patient(Studio):
    """A studio whose kernels may have to be compiled first, on a machine that draws pages at the same time."""

    def wait(self, condition, timeout=240.0):
        return super().wait(condition, timeout)


@pytest.fixture(scope="module")
def studio(folder):
    scene = box_scene(0.05, (16, 5, 8), title="Pool")
    paddle = {"type": "box", "size": (0.06, 0.5, 0.3), "position": (0.4, 0.3, 0.2)}
    scene.solid.append(Solid(name="paddle", shape=paddle, colour=(0.9, 0.3, 0.2)))
    path = folder / "pool.toml"
    path.write_text(scene.to_toml())
    with Patient(path, port=0, device="cpu", output=folder / "saved") as studio:
        studio.wait(lambda s: s.updates > 0)
        studio.shadows(False)  # drawn in software
        yield studio


class Errors(list):
    """What a page complains about: console errors, exceptions, requests that fail or go elsewhere."""

    def watch(self, page, home):
        page.on("console", lambda message: message.type == "error" and self.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.append(f"exception: {error}"))
        page.on("request", lambda request: request.url.startswith(("blob:", "data:", home)) or self.append(request.url))
        return page


@pytest.fixture(scope="module")
def errors():
    return Errors()


@pytest.fixture(scope="module")
def page(browser, studio, errors):
    page = browser.new_page(viewport={"width": 1160, "height": 640}, device_scale_factor=0.5, accept_downloads=True)
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    errors.watch(page, studio.url)
    page.goto(studio.url)
    expect(page.get_by_text("paused")).to_be_visible()
    yield page
    page.close()


@pytest.fixture(autouse=True)
def no_complaints(errors):
    yield
    assert errors == []


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def slider(page, name):
    """The thumb of the slider under this label."""
    label = page.locator("label", has_text=re.compile(rf"^{name}: "))
    return page.locator(f'[id="{label.get_attribute("for")}"] [role=slider]'), label


def picture(page, path):
    """Pixels (h, w, 3) of the 3D view."""
    page.locator("canvas").first.screenshot(path=path, timeout=PATIENCE)
    return np.asarray(Image.open(path).convert("RGB"), float)


def pixel_of(studio, page, point):
    """Where a point of the scene is on the page: through the browser's own camera, as it told the server."""
    (client,) = studio.server.get_clients().values()
    camera = client.camera
    import viser.transforms as tf

    seen = tf.SO3(camera.wxyz).inverse().apply(np.asarray(point, float) - camera.position)
    box = page.locator("canvas").first.bounding_box()
    focal = box["height"] / 2 / np.tan(camera.fov / 2)
    return (
        box["x"] + box["width"] / 2 + focal * seen[0] / seen[2],
        box["y"] + box["height"] / 2 + focal * seen[1] / seen[2],
    )


# --- tests, in the order a visit takes ---------------------------------------------------------------------------------


def test_the_page_shows_the_scene_and_what_is_always_visible(page, studio, folder):
    expect(page.locator(".vs-title")).to_have_text("Pool")
    for text in ("592", "particles", "steps/s", "frames/s", "cpu"):
        expect(page.locator(".vs-status").get_by_text(text, exact=True)).to_be_visible()
    for title in ("height, m", "kinetic energy, J", "compression, %"):
        expect(page.get_by_text(title)).to_be_visible()
    studio.wait(lambda s: len(studio.server.get_clients()) == 1)

    def drawn():
        pixels = picture(page, folder / "page.png")
        blue = (pixels[..., 2] > 90) & (pixels[..., 2] > pixels[..., 0] + 40)
        red = (pixels[..., 0] > 90) & (pixels[..., 0] > pixels[..., 2] + 40)
        return blue.mean() > 0.02 and red.sum() > 100

    wait_until(drawn, "water is blue, the paddle red")


def wait_until(condition, what, tries=40):
    for _ in range(tries):
        if condition():
            return
    raise AssertionError(f"never: {what}")


def test_a_slider_changes_the_simulation(page, studio):
    """Gravity up, kinetic energy up: measured at the same frame of two runs, everything done in the page."""
    tab(page, "Physics")
    energies = []
    for key, text in (("", "strength: 9.81 m/s²"), ("End", "strength: 30 m/s²")):
        thumb, label = slider(page, "strength")
        if key:
            thumb.focus()
            page.keyboard.press(key)
        expect(label).to_have_text(text)
        if key:
            studio.wait(lambda s: "30" in studio.toml.split("gravity")[1].splitlines()[0])
        press(page, "Reset")
        scenes = studio.status.scenes
        studio.wait(lambda s, scenes=scenes: s.time == 0.0 and s.state == "paused" and s.updates > 0 and s.scenes >= scenes)
        for number in (1, 2):
            press(page, "Frame")
            studio.wait(lambda s, number=number: s.frame == number)
        energies.append(studio.status.metrics["kinetic_energy"])
    assert energies[1] > 2 * energies[0] > 0
    press(page, "Reload")
    expect(slider(page, "strength")[1]).to_have_text("strength: 9.81 m/s²")


def test_play_and_pause(page, studio):
    press(page, "Play")
    studio.wait(lambda s: s.frame >= 3)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    press(page, "Pause")
    expect(page.get_by_text("paused")).to_be_visible()
    studio.wait(lambda s: s.state == "paused")


def test_a_dragged_handle_pushes_the_fluid(page, studio, monkeypatch):
    """The red arrow of the paddle's handle, pulled along x with the mouse while it runs."""
    rows = []
    keep = studio.history.add
    monkeypatch.setattr(studio.history, "add", lambda row: (rows.append(row), keep(row)))
    press(page, "Reset")
    studio.wait(lambda s: s.time == 0.0 and s.state == "paused")
    press(page, "Play")
    studio.wait(lambda s: s.frame >= 4)
    calm = max(abs(row["momentum_x"]) for row in rows)
    rows.clear()
    place = studio.poses["solid.1"][1].copy()
    arrow = 0.32 * studio.stage.size
    start, end = (pixel_of(studio, page, place + np.array([x, 0, 0])) for x in (0.8 * arrow, 0.8 * arrow + 0.25))
    page.mouse.move(*start)
    page.mouse.down()
    for share in np.linspace(0, 1, 6)[1:]:
        page.mouse.move(*(a + share * (b - a) for a, b in zip(start, end, strict=True)))
    page.mouse.up()
    studio.wait(lambda s: studio.poses["solid.1"][1][0] > place[0] + 0.15)
    moved = studio.poses["solid.1"][1] - place
    assert abs(moved[1]) < 0.02 and abs(moved[2]) < 0.02, "along the arrow"
    frame = studio.status.frame
    studio.wait(lambda s: s.frame > frame + 1)
    pushed = max(row["momentum_x"] for row in rows)
    assert pushed > 10 * calm + 1.0, "the fluid goes where the paddle goes"
    press(page, "Pause")
    studio.wait(lambda s: s.state == "paused")


def test_colours_and_the_surface(page, studio, folder):
    tab(page, "View")
    for label, choice in (("colour by", "speed"), ("show", "surface")):
        page.get_by_label(label, exact=True).click()
        page.get_by_role("option", name=choice, exact=True).click()
    expect(page.get_by_text("speed, m/s")).to_be_visible()
    studio.wait(lambda s: s.meshes > 0)
    page.get_by_label("show", exact=True).click()
    page.get_by_role("option", name="points", exact=True).click()
    studio.wait(lambda s: studio.showing == "points")


def test_a_picture_is_saved(page, studio):
    tab(page, "Save")
    with page.expect_download() as download:
        press(page, "Picture")
    image = np.asarray(Image.open(download.value.path()).convert("RGB"), float)
    assert image.std() > 8 and download.value.suggested_filename.endswith(".png")


def test_the_scene_is_downloaded_and_loads_again(page, studio, folder):
    """As it was edited: with gravity as its slider says, and the paddle where it was dragged to, if it was."""
    from viscoil.scene.load import load

    tab(page, "Physics")
    thumb, label = slider(page, "strength")
    thumb.focus()
    page.keyboard.press("End")
    expect(label).to_have_text("strength: 30 m/s²")
    studio.wait(lambda s: "30" in studio.toml.split("gravity")[1].splitlines()[0])
    tab(page, "Save")
    with page.expect_download() as download:
        press(page, "Scene as TOML")
    target = folder / "downloaded.toml"
    download.value.save_as(target)
    scene = load(target)
    assert scene.gravity == pytest.approx((0, -30, 0))
    assert scene.solid[1].shape.position == pytest.approx(studio.poses["solid.1"][1], abs=1e-6)


def test_a_recording_plays_offline(page, browser, studio, errors, folder):
    tab(page, "Save")
    press(page, "Record")
    studio.wait(lambda s: s.recording is not None)
    press(page, "Play")
    studio.wait(lambda s: (s.recording or 0) > 0.06)
    with page.expect_download() as download:
        press(page, "Stop recording")
    press(page, "Pause")
    target = folder / "playback.html"
    download.value.save_as(target)
    context = browser.new_context(offline=True, viewport={"width": 700, "height": 500}, device_scale_factor=0.5)
    alone = errors.watch(context.new_page(), "file:")
    alone.goto(f"file://{target}")
    alone.locator("canvas").first.wait_for(timeout=PATIENCE)

    def drawn():
        pixels = picture(alone, folder / "alone.png")
        return ((pixels[..., 0] > 90) & (pixels[..., 0] > pixels[..., 2] + 40)).sum() > 50

    wait_until(drawn, "the paddle in the playback")
    context.close()


def test_an_error_shows_in_the_page_and_the_studio_lives_on(page, studio, folder):
    wrong = folder / "wrong.toml"
    wrong.write_text('spacing = 0.1\n[[fluid]]\nmaterial = "wotar"\nshape = { type = "box", size = [1, 1, 1] }\n')
    tab(page, "Scene")
    page.get_by_text("from a file").click()
    page.locator('label:text-is("path")').locator("xpath=ancestor::div[3]").locator("input").fill(str(wrong))
    studio.wait(lambda s: studio.panel.path.value == str(wrong))
    press(page, "Open")
    expect(page.locator(".vs-problem")).to_contain_text('unknown material "wotar"')
    step = studio.status.step
    press(page, "Step")
    studio.wait(lambda s: s.step == step + 1)


def test_two_browsers_see_the_same(page, browser, studio, errors):
    other = browser.new_page(viewport={"width": 900, "height": 600}, device_scale_factor=0.5)
    other.set_default_timeout(PATIENCE)
    errors.watch(other, studio.url)
    other.goto(studio.url)
    expect(other.locator(".vs-title")).to_have_text("Pool")
    tab(other, "Physics")
    tab(page, "Physics")
    thumb, label = slider(page, "xsph")
    thumb.focus()
    page.keyboard.press("End")
    expect(label).to_have_text("xsph: 1")
    expect(slider(other, "xsph")[1]).to_have_text("xsph: 1")
    other.close()


def test_a_scene_is_uploaded(page, studio, folder):
    scene = box_scene(0.05, (5, 4, 4), title="Brought along")
    target = folder / "mine.toml"
    target.write_text(scene.to_toml())
    tab(page, "Scene")
    upload = page.get_by_role("button", name="Upload a .toml", exact=True)
    if not upload.is_visible():
        page.get_by_text("from a file").click()
    with page.expect_file_chooser() as chooser:
        upload.click()
    chooser.value.set_files(target)
    expect(page.locator(".vs-title")).to_have_text("Brought along")
    studio.wait(lambda s: s.particles == 80 and s.state == "paused")


def test_without_any_browser_it_goes_on(page, studio):
    press(page, "Play")
    studio.wait(lambda s: s.state == "running")
    page.close()
    studio.wait(lambda s: not studio.server.get_clients())
    step = studio.status.step
    studio.wait(lambda s: s.step > step + 8)
