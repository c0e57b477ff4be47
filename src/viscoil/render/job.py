"""Pictures of a run's frames: one camera for all, each written when it is done, none drawn twice."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.errors import MissingExtra, RunFolderError, SceneError
from viscoil.extras import require
from viscoil.io.atomic import explain, remove_leftovers
from viscoil.io.frame import Frame
from viscoil.io.lock import Lock
from viscoil.io.run import Run
from viscoil.keys import did_you_mean, listed
from viscoil.looks import LOOKS, PARTICLE_LOOKS, known
from viscoil.render import fast, matter
from viscoil.render.picture import Picture, stamp_of
from viscoil.surface import store
from viscoil.surface.options import settings as usual_surface
from viscoil.view.camera import Camera, View

RECIPE = 3  # counts changes of how pictures are made: older ones are drawn again
DRAWN = ("surface", "particles", "ellipsoids")
LARGEST = 16384  # pixels along an edge
Progress = Callable[[dict[str, Any], int, int], None]


@dataclass(frozen=True)
class Settings:
    """How pictures are made. ``None``: what suits."""

    size: tuple[int, int] = (960, 540)
    samples: int = 32  # light paths per pixel
    look: str | None = None  # one look for all materials
    draw: str | None = None  # one of DRAWN
    fast: bool = False  # drawn in a moment instead of traced
    view: View = field(default_factory=lambda: View(35.0, 20.0, 1.0, 35.0))
    camera: str | None = None  # "x,y,z -> x,y,z" instead of a camera that finds its place
    variant: str | None = None  # of Mitsuba

    def checked(self) -> "Settings":
        """The settings, or SceneError naming what is wrong with them."""
        if len(self.size) != 2 or not all(8 <= length <= LARGEST for length in self.size):
            raise SceneError(f"size: expected WIDTHxHEIGHT, each 8 to {LARGEST} pixels; got {self.size}", key="size")
        if not 1 <= self.samples <= 65536:
            raise SceneError(f"samples: expected a whole number from 1 to 65536; got {self.samples}", key="samples")
        if self.look is not None:
            known(self.look)
        if self.draw is not None and self.draw not in DRAWN:
            text = f'draw: there is no "{self.draw}".{did_you_mean(self.draw, DRAWN)} Expected one of: {listed(DRAWN)}'
            raise SceneError(text, key="draw")
        return self

    def how(self) -> str:
        """What is drawn: as asked, as the look says, or a surface where that can be made."""
        if self.draw is not None:
            return self.draw
        if self.look in PARTICLE_LOOKS:
            return str(self.look)
        if self.fast:  # a preview should come without anything being installed
            try:
                require("pysplashsurf", "to compute surfaces")
            except MissingExtra:
                return "particles"
        return "surface"


@dataclass
class Outcome:
    """What a job did."""

    paths: dict[int, Path] = field(default_factory=dict)  # frame -> its picture, ascending
    made: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)  # were up to date
    rows: list[dict[str, Any]] = field(default_factory=list)  # of pictures made: frame and seconds of each part
    seconds: float = 0.0
    variant: str = ""  # of Mitsuba; empty for quick pictures
    note: str = ""  # why it is not the fast variant


@dataclass(frozen=True)
class Scenery:
    """What all pictures of a job share."""

    camera: Camera
    volume: float  # [m³] most fluid of any frame: what the depth of colours is meant for
    top: float  # [m] highest fluid of any frame


def scenery(frames: Iterable[Frame], settings: Settings) -> Scenery:
    """One look at all frames: a camera that sees them all, and what else must not change from picture to picture."""
    volume, top, first = 0.0, -np.inf, None

    def watched() -> Iterator[Frame]:
        nonlocal volume, top, first
        for frame in frames:
            first = first or frame
            volume = max(volume, len(frame) * frame.spacing**3)
            if len(frame):
                top = max(top, float(np.percentile(frame["position"][:, frame.up_axis], 99.8)))
            yield frame

    camera = Camera.framing(watched(), settings.size, **asdict(settings.view))
    if settings.camera is not None:
        camera = Camera.placed(settings.camera, first, settings.view.field_of_view) if first else camera
    return Scenery(camera, volume, top if np.isfinite(top) else 0.0)


def draw(frame: Frame, settings: Settings, shared: Scenery, surfaces: Callable[[], Any] | None = None) -> Picture:
    """One picture. ``surfaces``: gives the surface of the whole frame where it is known already."""
    looks = matter.looks_of(frame.materials, settings.look if settings.look in LOOKS else None)
    how = settings.how()
    if settings.fast:
        return fast.draw(frame, how, looks, shared.camera, settings.size, shared.volume, shared.top)
    from viscoil.render import tracer

    options = {"volume": shared.volume, "top": shared.top, "variant": settings.variant, "seed": frame.index}
    if how != "surface":
        return tracer.grains(frame, how, looks, shared.camera, settings.size, settings.samples, **options)
    clock = perf_counter()
    bodies = []
    for clear, rows in matter.bodies(frame, looks):
        part = matter.part_of(frame, rows)
        mesh = surfaces() if surfaces and rows is None else part.surface()
        bodies.append(tracer.Body(mesh, part, clear))
    surfaced = perf_counter() - clock
    result = tracer.trace(frame, bodies, looks, shared.camera, settings.size, settings.samples, **options)
    result.seconds = {"surface": surfaced, **result.seconds}
    return result


def render_run(
    run: Run, frames: Iterable[int] | None = None, settings: Settings | None = None, out: Path | None = None,
    overwrite: bool = False, progress: Progress | None = None,
) -> Outcome:  # fmt: skip
    """Pictures of ``frames`` (default all) of ``run`` as ``out``/frame_00012.png (default: in RUN/render); of a single frame
    also as ``out`` itself, if that is a name.png.

    A picture that was made with the same settings from the same frame is kept, unless ``overwrite``. ``progress`` is
    called with the seconds of each picture, how many are done and how many there are. Whenever this is stopped, what is
    finished stays, and the next call goes on.
    """
    begin = perf_counter()
    settings = (settings or Settings()).checked()
    chosen = run.frames if frames is None else sorted(set(frames))
    if not chosen:
        raise RunFolderError(f"{run.path} has no frames yet.")
    outcome = Outcome()
    if not settings.fast:
        from viscoil.render.variant import start

        _, variant = start(settings.variant)
        require("pyoidn", "to take the noise out of traced pictures")
        outcome.variant, outcome.note = variant.name, variant.reason
    folder = out or run.path / "render"
    single = ""
    if folder.suffix == ".png" and not folder.is_dir():
        if len(chosen) > 1:
            raise RunFolderError(f"{folder} is one picture, and {len(chosen)} frames were asked for; expected a folder")
        folder, single = folder.parent, folder.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(explain(error, folder)) from error
    shared = scenery((run.frame(index) for index in chosen), settings)
    lock = Lock(folder / "lock")
    lock.acquire()
    try:
        remove_leftovers(folder)
        stamps = {index: stamp(run, index, settings, shared) for index in chosen}
        todo = []
        for index in chosen:
            outcome.paths[index] = folder / (single or f"frame_{index:05d}.png")
            kept = not overwrite and stamp_of(outcome.paths[index]) == stamps[index]
            (outcome.kept if kept else todo).append(index)
        for index in todo:
            _one(run, index, settings, shared, outcome, stamps[index])
            if progress:
                progress(outcome.rows[-1], len(outcome.made), len(todo))
    finally:
        lock.release()
    outcome.seconds = perf_counter() - begin
    return outcome


def _one(run: Run, index: int, settings: Settings, shared: Scenery, outcome: Outcome, stamp: str) -> None:
    clock = perf_counter()
    picture = draw(run.frame(index), settings, shared, lambda: store.load_or_make(run, index))
    picture.save(outcome.paths[index], stamp)
    outcome.made.append(index)
    outcome.rows.append({"frame": index, **picture.seconds, "total": perf_counter() - clock})


def stamp(run: Run, index: int, settings: Settings, shared: Scenery) -> str:
    """Fingerprint of everything a picture depends on. The variant of Mitsuba is not: all draw the same."""
    values = asdict(settings) | asdict(shared) | {"how": settings.how(), "recipe": RECIPE}
    for key in ("variant", "view", "draw"):  # the camera follows from the view
        del values[key]
    if settings.fast:
        del values["samples"]
    elif settings.how() == "surface":  # whatever surface the frame has is drawn, and a missing one made as usual
        found = store.usable(run, index, None)
        values["surface"] = found["options"] if found else usual_surface().header()
    values["looks"] = [asdict(look) for look in LOOKS.values()]
    values["frame"] = store.fingerprint(run, index)
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def frames_per_second(run: Run, frames: list[int]) -> float:
    """At which a film of ``frames`` shows the run in real time."""
    time = float(run.setting("time", "frame_time", 1 / 60))
    step = float(np.median(np.diff(frames))) if len(frames) > 1 else 1.0
    return 1 / (time * step)
