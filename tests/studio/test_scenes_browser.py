"""One scene after the other in the same page: each as a page sees it that was opened on it.

Needs Chromium, as ``test_browser.py`` does, and is skipped or fails without it in the same way.
"""

from collections import Counter

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from studio.test_browser import CHROMIUM, FLAGS, PATIENCE, Errors, Patient, picture, press, tab, wait_until
from viscoil.studio.stage import nozzle_mesh
from viscoil.studio.views import seen_by

SCENES = (
    "coiling", "honey", "waffle", "dam_break", "merging_balls", "ball_drop_springs", "drip_under_sphere", "rotating_beam",
    "funnel", "coiling",
)  # fmt: skip
WATCH = """window.seen = [];
window.__THREE_DEVTOOLS__ = new EventTarget();
window.__THREE_DEVTOOLS__.addEventListener("observe", event => event.detail.isScene && window.seen.push(event.detail));"""
# What is drawn: kind, points, colour and where it stands in the world, of all that is visible. The backdrop,
# which hangs on the camera, is left out.
DRAWN = """() => {
  const found = [];
  for (const scene of window.seen) scene.traverse(node => {
    if (!node.geometry || !node.geometry.attributes.position || node.material?.uniforms?.colorMap) return;
    for (let above = node; above; above = above.parent) if (!above.visible) return;
    const colour = node.material?.color ? node.material.color.getHexString() : "";
    const place = node.matrixWorld.elements.map(x => (Math.round(x * 2e3) / 2e3 + 0).toFixed(4)).join(" ");
    found.push([node.type, node.geometry.attributes.position.count, colour, place].join(" | "));
  });
  return found.sort();
}"""

# Where the backdrop is: just before the camera.
BACKDROP = """() => {
  let place = null;
  for (const scene of window.seen) scene.traverse(node => {
    if (node.material?.uniforms?.colorMap) place = node.matrixWorld.elements.slice(12, 15);
  });
  return place;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scenes")


@pytest.fixture(scope="module")
def studio(folder):
    with Patient(port=0, device="cpu", output=folder / "saved") as studio:
        yield studio


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def opened(browser, studio, errors, width=1000):
    before = set(studio.server.get_clients())
    page = browser.new_page(viewport={"width": width, "height": 420}, device_scale_factor=0.5)
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.add_init_script(WATCH)
    errors.watch(page, studio.url).goto(studio.url)
    studio.wait(lambda s: set(studio.server.get_clients()) - before)
    return page


@pytest.fixture(scope="module")
def errors():
    return Errors()


@pytest.fixture(scope="module")
def page(browser, studio, errors):
    page = opened(browser, studio, errors)
    yield page
    page.close()
    assert errors == []


def load(studio, name):
    before = studio.status.scenes
    studio.load(name)
    studio.wait(lambda s: s.problem or (s.scenes > before and s.state == "paused" and s.updates > 0))
    assert not studio.status.problem


def test_without_a_scene_nothing_can_be_played(page, studio):
    for name in ("Play", "Record"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    load(studio, "coiling")
    for name in ("Play", "Record"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_enabled()


def test_nothing_of_the_last_scene_stays(page, browser, studio, errors):
    for name in SCENES:
        load(studio, name)
        fresh = opened(browser, studio, errors)
        found = {}

        def same(fresh=fresh, found=found):
            page.wait_for_timeout(100)
            found.update(old=page.evaluate(DRAWN), new=fresh.evaluate(DRAWN))
            pages = [client.camera for client in studio.server.get_clients().values()]
            here, there = ((camera.position, camera.look_at, camera.near) for camera in pages)
            close = 0.01 * np.linalg.norm(here[0] - here[1])
            alike = all(np.linalg.norm(a - b) < close for a, b in zip(here, there, strict=True))
            return len(found["new"]) > 3 and found["old"] == found["new"] and alike

        try:
            wait_until(same, name, tries=100)
        except AssertionError:
            old, new = Counter(found["old"]), Counter(found["new"])
            surplus, missing = sorted((old - new).elements()), sorted((new - old).elements())
            raise AssertionError(f"{name}: after other scenes, not in a fresh page: {surplus}; missing: {missing}") from None
        fresh.close()
        studio.wait(lambda s: len(studio.server.get_clients()) == 1)


def newest(studio):
    clients = studio.server.get_clients()
    return clients[max(clients)]


def shares(studio, points):
    """Where points of the scene are in the newest page's picture, in shares of its width and height."""
    client = newest(studio)
    size = client.camera.image_width, client.camera.image_height
    x, y, _ = seen_by(client, studio.stage.camera).project(points, size)
    return np.stack([x, y], axis=1) / size


@pytest.mark.parametrize("width", [760, 1500])
def test_it_opens_on_the_nozzle_and_on_what_is_poured_on(browser, studio, errors, width):
    """In narrow pages and in wide ones: the whole spout, the floor below it and where the heap grows."""
    load(studio, "coiling")
    page = opened(browser, studio, errors, width)
    spout = nozzle_mesh({"type": "cylinder", "radius": 0.01, "height": 0.02})[0] * [1, -1, 1] + [0, 0.2, 0]
    heap = np.array([[0.0, 0, 0], [0.02, 0, 0.02], [-0.02, 0, -0.02]])

    def inside():
        page.wait_for_timeout(100)
        found = shares(studio, np.concatenate([spout, heap]))
        reach = np.ptp(found, axis=0)
        return (found > 0.02).all() and (found < 0.98).all() and reach.max() > 0.4

    wait_until(inside, "nozzle and table in the picture", tries=100)
    assert f"{studio.stage._root.name}/floor" in studio.server.scene._handle_from_node_name
    assert studio.stage.camera.floor == pytest.approx(0.0, abs=1e-6)
    page.close()


def turned(page):
    """The view turned by hand, and where the page's camera is then."""
    box = page.locator("canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 0.85 * box["height"]
    before = page.evaluate(BACKDROP)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y - 10, steps=4)
    page.mouse.up()
    page.wait_for_timeout(1500)
    after = page.evaluate(BACKDROP)
    assert np.linalg.norm(np.subtract(after, before)) > 0.2 * np.linalg.norm(after)
    return np.array(after)


def test_a_recording_opens_in_the_view_of_who_recorded(page, browser, studio, errors, folder):
    """Of two pages, each with a view of its own; the second records. Loading the scene again leaves both views alone."""
    load(studio, "coiling")
    other = opened(browser, studio, errors)
    other.wait_for_timeout(1000)
    view = turned(other)
    load(studio, "coiling")
    other.wait_for_timeout(500)
    assert np.allclose(other.evaluate(BACKDROP), view, rtol=1e-3), "the same scene again: who looks keeps the view"
    press(other, "Record")
    studio.wait(lambda s: s.recording is not None)
    studio.pace(None)
    press(other, "Play")
    studio.wait(lambda s: (s.recording or 0) > 0.05)
    known = len(studio.status.saved)
    press(other, "Stop recording")
    studio.pause()
    target = studio.wait(lambda s: len(s.saved) > known).saved[-1]
    assert not np.allclose(page.evaluate(BACKDROP), view, rtol=0.1)
    box = other.locator("canvas").first.bounding_box()
    context = browser.new_context(
        offline=True, viewport={"width": round(box["width"]), "height": round(box["height"]) + 40}, device_scale_factor=0.5
    )
    alone = errors.watch(context.new_page(), "file:")
    alone.set_default_timeout(PATIENCE)
    alone.add_init_script(WATCH)
    alone.goto(f"file://{target}")
    alone.locator("canvas").first.wait_for()

    def there():
        alone.wait_for_timeout(100)
        found = alone.evaluate(BACKDROP)
        return found and np.allclose(found, view, rtol=0.03)

    wait_until(there, "the playback looks from where the visitor looked", tries=100)
    context.close()
    other.close()


def green(pixels):
    """How many pixels have the colour of a handle's arrow; nothing else in this scene is green."""
    return int(((pixels[..., 1] > 120) & (pixels[..., 1] > pixels[..., 0] + 40)).sum())


def test_a_picture_has_no_handles(page, studio, folder):
    load(studio, "coiling")
    tab(page, "Save")
    with page.expect_download() as download:
        press(page, "Picture")
    saved = np.asarray(Image.open(download.value.path()).convert("RGB"), float)
    assert saved.std() > 4 and green(saved) == 0
    wait_until(lambda: green(picture(page, folder / "handles.png")) > 5, "handles in the page, before and after")


def test_the_curves_have_ticks_that_say_something(page, studio):
    load(studio, "coiling")
    for number in range(1, 10):
        studio.step_frame()
        studio.wait(lambda s, number=number: s.frame == number)
    ticks = """() => Object.values(window.__viserTestpoints.uplots).map(({chart}) => chart.axes.map(axis => axis._values))"""
    found = []

    def different():
        page.wait_for_timeout(100)
        found[:] = page.evaluate(ticks)
        every = [axis for chart in found for axis in chart if axis is not None]
        drawn = len(found) == 3 and len(every) == 6 and all(len(axis) == len(set(axis)) >= 2 for axis in every)
        # The browser draws one after the other, and the last frame's numbers come last.
        return drawn and all(chart[0] == found[0][0] for chart in found) and 0.1 <= float(found[0][0][-1]) <= 0.2

    wait_until(different, "no number twice along an axis, the same 0.15 s under all", tries=100)
    expect(page.get_by_text("kinetic energy, µJ")).to_be_visible()
    assert all(chart[1][0] == "0" for chart in found), "heights and energies are seen from zero"
