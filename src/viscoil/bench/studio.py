"""How fast the studio reaches a browser, and whether it keeps its memory: measured with a real headless Chromium.

A stand-in for the simulation sends waves of particles as often as the fastest would, so that what is measured is everything
after the simulation: colours, surface, transport, page. Updates are counted where they arrive, as messages on the page's
own connection, by Chromium's developer tools.
"""

import contextlib
import multiprocessing
import shutil
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from viscoil.errors import ViscoilError
from viscoil.io.frame import Frame
from viscoil.studio import messages as m
from viscoil.studio.app import Studio
from viscoil.studio.engine import UPDATE
from viscoil.studio.link import leave_interrupts_to_the_parent

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
    "--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-dev-shm-usage",
)  # fmt: skip
FRAME_TIME = 1 / 60
SETTLE = 5.0  # seconds before counting
POINT_BYTES = 9  # half-precision position and colour of one point: a smaller message is no update of all of them
TARGETS = {("points", 15_000): 20.0, ("points", 100_000): 5.0, ("surface", 100_000): 2.0}  # updates/s asked for


# --- a simulation that costs nothing ---------------------------------------------------------------------------------
def waves(pipe: Connection, device: str, threads: int | None) -> None:
    """Speaks as the engine does. The scene's name is its number of particles."""
    leave_interrupts_to_the_parent()
    count, playing, credit, index, due = 0, False, True, 0, 0.0
    try:
        while True:
            while pipe.poll(max(0.0, due - time.perf_counter()) if playing and credit else 0.5):
                command = pipe.recv()
                if isinstance(command, m.Load):
                    count, index = int(command.source), 0
                    pipe.send(m.State("paused", "stand-in"))
                    pipe.send(m.Loaded(_info(count), True))
                    _send(pipe, count, 0)
                    credit = False
                elif isinstance(command, m.Play | m.Pause):
                    playing = isinstance(command, m.Play)
                    pipe.send(m.State("running" if playing else "paused", "stand-in"))
                elif isinstance(command, m.Taken):
                    credit = True
                elif isinstance(command, m.Quit):
                    return
            if playing and credit and time.perf_counter() >= due:
                due = time.perf_counter() + UPDATE
                index += 1
                _send(pipe, count, index)
                credit = False
    except (EOFError, OSError):
        return


def wave(count: int, index: int) -> Frame:
    """A frame of about ``count`` particles under a travelling wave."""
    spacing = (0.5 / count) ** (1 / 3)
    axis = np.arange(0.0, 1.0, spacing)
    x = np.stack(np.meshgrid(axis, axis[: len(axis) // 2 + 1], axis, indexing="ij"), -1).reshape(-1, 3)[:count]
    phase = 7 * x[:, 0] - 4 * index * FRAME_TIME
    position, velocity = x.astype(np.float32), np.zeros((len(x), 3), np.float32)
    position[:, 1] *= 1 + 0.25 * np.sin(phase)
    velocity[:, 1] = -np.cos(phase)
    fields = {
        "position": position, "velocity": velocity, "material": np.zeros(len(x), np.int32),
        "id": np.arange(len(x), dtype=np.int32), "density": np.full(len(x), 1000, np.float32),
    }  # fmt: skip
    materials = [{"name": "water", "colour": (0.2, 0.45, 0.8), "density": 1000.0, "look": "water"}]
    return Frame(index, index * FRAME_TIME, index, fields, spacing, "y", materials)


def _info(count: int) -> m.SceneInfo:
    return m.SceneInfo(
        source=str(count), title=f"{count:,} particles", description="", quality="quick", qualities=(), method="none",
        spacing=(0.5 / count) ** (1 / 3), up="y", frame_time=FRAME_TIME, groups=(), things=(), materials=(),
        fields={"velocity": "m/s", "density": "kg/m^3"}, box=None, toml="", notes=(),
    )  # fmt: skip


def _send(pipe: Connection, count: int, index: int) -> None:
    frame = wave(count, index)
    row = {"frame": index, "time": frame.time, "height": 1.0, "kinetic_energy": 1.0, "compression": 0.0}
    rates = {"steps": 60.0, "frames": 60.0, "speed": 1.0}
    m.send_arrays(pipe, m.FrameSent(frame.header(), rates, [row], True, []), frame.fields)


class StandIn(Studio):
    """A studio whose simulation is the waves."""

    simulation = staticmethod(waves)


# --- a browser in a process of its own: what it costs to count is not the studio's ------------------------------------
def visitor(pipe: Connection, path: str) -> None:
    """Opens the address it is sent; for a number of seconds it is sent, answers with the sizes of all messages in them."""
    leave_interrupts_to_the_parent()
    with _playwright()() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        sizes: list[int] = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sizes.append(len(data))))
        pipe.send(browser.version)
        try:
            while (wish := pipe.recv()) is not None:
                if isinstance(wish, str):
                    page.goto(wish)
                    pipe.send(None)
                    continue
                sizes.clear()
                begin = time.perf_counter()
                page.wait_for_timeout(1000 * wish)
                pipe.send((time.perf_counter() - begin, list(sizes)))
        except (EOFError, OSError):
            return
        finally:
            browser.close()


class Visitor:
    """The other end of :func:`visitor`."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        path = find_browser()
        _playwright()
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=visitor, args=(theirs, path), daemon=True)
        self.process.start()
        theirs.close()
        self.version = self._pipe.recv()

    def open(self, url: str) -> None:
        """Goes to a page."""
        self._pipe.send(url)
        self._pipe.recv()

    def count(self, seconds: float) -> tuple[float, list[int]]:
        """(seconds it took, sizes of the messages that came in them)."""
        self._pipe.send(seconds)
        return self._pipe.recv()

    def close(self) -> None:
        """Ends the browser."""
        self._pipe.send(None)
        self.process.join(20.0)


# --- measuring -------------------------------------------------------------------------------------------------------
def main(
    cases: list[tuple[str, int]] | None = None, seconds: float = 10.0, minutes: float = 0.0,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Updates per second of each (what is shown, particles), then memory over ``minutes`` of 15k points."""
    guest = Visitor()
    result: dict[str, Any] = {"browser": guest.version, "rates": [], "memory": None}
    with StandIn(port=0, output="studio") as studio:
        guest.open(studio.url)
        for show, count in cases or list(TARGETS):
            say(f"{show}, {count:,} particles")
            result["rates"].append(_rate(studio, guest, show, count, seconds))
        if minutes > 0:
            result["memory"] = _memory(studio, guest, minutes, say)
        guest.close()
    return result


def _rate(studio: Studio, guest: Visitor, show: str, count: int, seconds: float) -> dict[str, Any]:
    scenes = studio.status.scenes
    studio.show(show)
    studio.load(str(count))
    studio.wait(lambda s: s.scenes > scenes and s.updates > 0)
    studio.play()
    made = studio.status.meshes
    if show == "surface":
        studio.wait(lambda s: s.meshes > made + 1, 120)
    guest.count(SETTLE)
    first = studio.status
    span, sizes = guest.count(seconds)
    last = studio.status
    smallest = POINT_BYTES * first.particles if show == "points" else 100_000
    large = [size for size in sizes if size >= smallest]
    drawn = last.updates - first.updates if show == "points" else last.meshes - first.meshes
    studio.pause()
    return {
        "show": show, "particles": first.particles, "drawn": drawn / span, "received": len(large) / span,
        "megabytes": float(np.mean(large)) / 1e6 if large else 0.0, "target": TARGETS.get((show, count)),
    }  # fmt: skip


def _memory(studio: Studio, guest: Visitor, minutes: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Resident memory [MB] of the studio's processes and of the browser while 15k points play."""
    try:
        import psutil
    except ImportError:
        raise ViscoilError("psutil is needed to measure memory. Install it with: pip install psutil") from None
    scenes = studio.status.scenes
    studio.show("points")
    studio.load("15000")
    studio.wait(lambda s: s.scenes > scenes and s.updates > 0)
    studio.play()
    own, theirs = psutil.Process(), psutil.Process(guest.process.pid)
    rows = []
    begin = time.perf_counter()
    while (now := time.perf_counter() - begin) < 60 * minutes:
        guest.count(5.0)
        strangers = {theirs.pid, *(child.pid for child in theirs.children(recursive=True))}
        ours = [own, *(child for child in own.children(recursive=True) if child.pid not in strangers)]
        pages = [child for child in theirs.children(recursive=True) if "chrom" in child.name().lower()]
        rows.append((now, _resident(ours) / 1e6, _resident(pages) / 1e6))
        say("{:5.1f} min  studio {:6.1f} MB  browser {:6.0f} MB".format(now / 60, *rows[-1][1:]))
    updates = studio.status.updates
    studio.pause()
    table = np.array(rows)
    late = table[len(table) // 3 :]
    slopes = np.polyfit(late[:, 0] / 60, late[:, 1:], 1)[0]
    return {
        "minutes": minutes, "updates": updates, "studio_first": table[0, 1], "studio_last": table[-1, 1],
        "browser_first": table[0, 2], "browser_last": table[-1, 2], "studio_per_minute": float(slopes[0]),
        "browser_per_minute": float(slopes[1]),
    }  # fmt: skip


def _resident(processes: list[Any]) -> int:
    """Bytes of all of them that are still there."""
    total = 0
    for process in processes:
        with contextlib.suppress(Exception):  # gone in between
            total += process.memory_info().rss
    return total


def find_browser() -> str:
    """Path of a Chromium of the system."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise ViscoilError("no Chromium was found; install it from your system's packages, e.g. apt install chromium")
    return found


def _playwright() -> Any:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ViscoilError("playwright is needed to drive a browser. Install it with: pip install playwright") from None
    return sync_playwright
