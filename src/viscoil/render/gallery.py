"""The gallery: every shipped scene at its telling moment, as a small picture, and a page that shows them all.

A picture knows what it was made from (scene, moment, view, recipe), so that only what changed is simulated and drawn again.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from viscoil.errors import RunFolderError
from viscoil.io.atomic import explain, write_atomic, write_if_changed
from viscoil.io.execute import Progress, execute
from viscoil.io.run import Run, scene_hash
from viscoil.looks import LOOKS
from viscoil.render.job import RECIPE, Settings, draw, scenery
from viscoil.scene.load import find, load, shipped
from viscoil.scene.schema import Picture, Scene
from viscoil.view.camera import View

LIMIT = 200_000  # bytes of a picture
TITLE = "# Gallery\n\nEvery shipped scene at one telling moment, made by `viscoil gallery`.\n"


@dataclass
class Entry:
    """One scene of the gallery."""

    name: str
    scene: Scene
    picture: Picture
    frame: int  # the telling moment
    image: Path
    settings: Settings

    @property
    def stamp(self) -> str:
        """Fingerprint of all that the picture shows."""
        scene = self.scene.to_dict()
        looks = {name: [table.get(key) for key in ("colour", "look")] for name, table in scene.get("material", {}).items()}
        solids = [solid.get("colour") for solid in scene.get("solid", [])]
        values = [
            scene_hash(self.scene.to_toml()), self.frame, asdict(self.settings), looks, solids, RECIPE,
            [asdict(look) for look in LOOKS.values()],
        ]  # fmt: skip
        return hashlib.blake2b(json.dumps(values, default=str).encode(), digest_size=16).hexdigest()

    @property
    def current(self) -> bool:
        """Whether the picture is there and shows what it should."""
        try:
            with Image.open(self.image) as image:
                return image.info.get("comment", b"") == self.stamp.encode()
        except (OSError, SyntaxError):
            return False


def entries(names: Iterable[str] | None, folder: Path, settings: Settings) -> list[Entry]:
    """The scenes (default: all shipped ones) as entries of the gallery in ``folder``."""
    found = []
    for name in names or shipped():
        stem = find(name).stem
        view = load(name).picture or Picture()
        scene = load(name, quality=view.quality)
        view = scene.picture or view
        moment = scene.end_time if view.time is None else min(view.time, scene.end_time)
        own = View(view.azimuth, view.elevation, view.zoom, view.field_of_view)
        chosen = replace(settings, view=own, look=settings.look or view.look).checked()
        frame = max(1, round(moment / scene.time.frame_time))
        found.append(Entry(stem, scene, view, frame, folder / f"{stem}.jpg", chosen))
    return found


def simulated(entry: Entry, runs: Path, device: str, threads: int | None, progress: Progress | None) -> Run:
    """The run of ``entry`` with its telling frame on disk; goes on with an older one of the same scene."""
    path = runs / entry.name
    run = Run.open(path) if Run.resumable(path) else None
    if run is not None and run.scene_hash != scene_hash(entry.scene.to_toml()):
        run = None
    if run is None or entry.frame not in run.frames:
        from viscoil.simulate import Simulation  # here: pictures of finished runs need no kernels

        simulation = Simulation(entry.scene, device=device, threads=threads)
        run = run or Run.create(path, entry.scene, overwrite=True)
        outcome = execute(simulation, run, entry.frame, progress)
        if outcome.status != "finished":
            raise KeyboardInterrupt
    return run


def drawn(entry: Entry, run: Run) -> dict[str, float]:
    """Draw the telling frame into the gallery; the seconds of each part."""
    frame = run.frame(entry.frame)
    solid = {solid.name: solid.colour for solid in entry.scene.solid}
    for row in frame.solids:  # colours and looks may have changed since the run was made
        row["colour"] = solid.get(row.get("name", ""), row.get("colour"))
    own = entry.scene.used_materials()
    frame.materials = [row | _appearance(own.get(str(row.get("name")))) for row in frame.materials]
    picture = draw(frame, entry.settings, scenery([frame], entry.settings))
    write_small(picture.image, entry.image, entry.stamp)
    return picture.seconds


def _appearance(material: Any) -> dict[str, Any]:
    return {} if material is None else {"colour": material.colour, "look": material.look}


def write_small(image: np.ndarray, path: Path, stamp: str = "", limit: int = LIMIT) -> Path:
    """Write a JPEG of at most ``limit`` bytes, as good as that allows, with ``stamp`` as its comment."""
    content = b""
    for quality in (93, 90, 86, 82, 76, 70, 60, 50, 35):
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "jpeg", quality=quality, subsampling=0, comment=stamp.encode())
        content = buffer.getvalue()
        if len(content) <= limit:
            break
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(explain(error, path)) from error
    return write_atomic(path, content)


def write_page(folder: Path, found: list[Entry]) -> Path:
    """README.md of the gallery: each scene that has a picture, in the order of their names."""
    parts = [TITLE, *(_section(entry) for entry in sorted(found, key=lambda entry: entry.name) if entry.image.is_file())]
    path = folder / "README.md"
    write_if_changed(path, "\n".join(parts).encode())
    return path


def _section(entry: Entry) -> str:
    scene, figure = entry.scene, entry.scene.figure
    lines = [f"\n## {scene.title or entry.name}\n", f"![{scene.title or entry.name}]({entry.image.name})\n", scene.description]
    if figure:
        lines.append(f"After figure {figure.number} of {figure.paper}: {_sentence(figure.caption)}")
    quality = f" --set quality={scene.quality}" if scene.quality != "quick" else ""
    lines.append(
        f"\n```\nviscoil run {entry.name}{quality} --frames {entry.frame} -o runs/{entry.name}\n"
        f"viscoil render runs/{entry.name}\n```\n"
    )
    return "\n".join(lines)


def _sentence(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text[:1].lower() + text[1:] if text else "the same set-up."


def make(
    names: Iterable[str] | None, folder: Path, runs: Path, settings: Settings, overwrite: bool = False,
    device: str = "auto", threads: int | None = None, progress: Progress | None = None,
    said: Callable[[Entry, dict[str, float] | None], None] | None = None,
) -> list[Entry]:  # fmt: skip
    """Bring the gallery in ``folder`` up to date; ``said`` is told of each entry and its seconds (None: was current)."""
    found = entries(names, folder, settings)
    for entry in found:
        if entry.current and not overwrite:
            seconds = None
        else:
            seconds = drawn(entry, simulated(entry, runs, device, threads, progress))
        if said:
            said(entry, seconds)
    every = found if names is None else entries(None, folder, settings)
    extra = [entry for entry in found if entry.name not in {other.name for other in every}]
    write_page(folder, [*every, *extra])
    return found
