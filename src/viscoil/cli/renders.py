"""`viscoil render` and `viscoil gallery`: their options and what they print."""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from viscoil.cli import show
from viscoil.errors import SceneError

LONG = 600  # s: who waits longer wants to know what is quicker
Switch = Annotated[bool, Parameter(negative=(), show_default=False)]

render = App(
    name="render",
    help_epilogue="Examples:\n  viscoil render runs/dam_break-1\n  viscoil render runs/dam_break-1 --fast --film dam.mp4\n"
    "  viscoil render runs/dam_break-1 --frames 20:40 --film dam.webp\n"
    "  viscoil render runs/honey --look syrup --azimuth 60 --elevation 10 --zoom 1.4 --samples 128\n"
    "  viscoil render runs/honey --look ellipsoids --size 1920x1080 -o pictures\n"
    '  viscoil render runs/honey --camera "0.3,0.2,0.4 -> 0,0.05,0"',
    result_action="return_value",
)
gallery = App(
    name="gallery",
    help_epilogue="Examples:\n  viscoil gallery\n  viscoil gallery dam_break bear_bath --samples 64\n"
    "  viscoil gallery --fast -o /tmp/gallery\n  viscoil gallery --looks docs/images/looks.jpg",
    result_action="return_value",
)


@Parameter(name="*")
@dataclass
class Aim:
    """From where the picture is taken; what is left out is as the scene says.

    Parameters
    ----------
    azimuth
        Where the camera stands, turned about the vertical from straight ahead [degrees].
    elevation
        How far it looks down [degrees].
    zoom
        Larger than 1: closer than what shows everything.
    field_of_view
        Of the picture's height [degrees].
    camera
        Where it stands and what it looks at in metres, "x,y,z -> x,y,z", instead of a place it finds itself.
    """

    azimuth: Annotated[float | None, Parameter(allow_leading_hyphen=True)] = None
    elevation: Annotated[float | None, Parameter(allow_leading_hyphen=True)] = None
    zoom: float | None = None
    field_of_view: float | None = None
    camera: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None


@Parameter(name="*")
@dataclass
class Quality:
    """How good, and how fast.

    Parameters
    ----------
    size
        WIDTHxHEIGHT in pixels.
    samples
        Light paths per pixel: 16 rough, 32 good, 128 for a title page.
    fast
        Draw in under a second instead of tracing light; needs no Mitsuba.
    variant
        Build of Mitsuba: llvm_ad_rgb or scalar_rgb (slower, needs nothing); by default the faster one that works here.
    """

    size: str = "960x540"
    samples: int = 32
    fast: Switch = False
    variant: str | None = None


@render.default
def pictures(
    run: Path, /, *, frames: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None, look: str | None = None,
    draw: str | None = None, aim: Aim | None = None, quality: Quality | None = None, film: Path | None = None,
    fps: float | None = None, output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    overwrite: Switch = False,
) -> int:  # fmt: skip
    """Make pictures of a run, and a film of them. Goes on where it was stopped.

    Parameters
    ----------
    run
        Run folder.
    frames
        12, 10:20, 10:, ::5, -1 for the last, or several with commas. By default the last one; all when there is a film.
    look
        honey, cream, syrup, clay, gel, water, ... (see viscoil list looks), or particles, ellipsoids.
        By default each material's own.
    draw
        surface, particles or ellipsoids.
    film
        Film to make of the pictures: .mp4, .webp or .gif.
    fps
        Pictures a second of the film; by default as many as make it real time.
    output
        Folder for the pictures, or a name.png for a single one; by default RUN/render.
    overwrite
        Draw pictures again that are up to date.
    """
    from viscoil.io.ranges import frame_range
    from viscoil.io.run import Run
    from viscoil.render.film import check_name, write_film
    from viscoil.render.job import frames_per_second, render_run

    quality, folder = quality or Quality(), Run.open(run)
    settings = _settings(folder, look, draw, aim or Aim(), quality)
    if film is not None:
        check_name(film)  # before the hours that the pictures may take
    if fps is not None and not fps > 0:
        raise SceneError(f"--fps: expected a number above 0; got {fps:g}", key="fps")
    chosen = frame_range(frames or (None if film else "-1"), folder.frames)
    try:
        with Progress(hint="" if quality.fast else "--fast takes a moment") as report:
            outcome = render_run(folder, chosen, settings, output, overwrite, report.frame)
    except KeyboardInterrupt:
        print("stopped; pictures made so far are kept, the same command goes on from there.", file=sys.stderr)
        raise
    if outcome.note:
        print(f"note: drawn with {outcome.variant}, which is slower: {outcome.note}", file=sys.stderr)
    print(summary(outcome))
    paths = list(outcome.paths.values())
    written: list[tuple[str, Any]] = [("pictures", paths[0].parent) if len(paths) > 1 else ("picture", paths[0])]
    if film is not None:
        rate = fps or frames_per_second(folder, chosen)
        written.append(("film", f"{write_film(paths, film, rate)} ({len(paths)} pictures, {rate:.3g} a second)"))
    show.pairs(written)
    return 0


def _settings(run: Any, look: str | None, draw: str | None, aim: Aim, quality: Quality) -> Any:
    """What was asked for, on top of what the scene says about its picture."""
    from viscoil.render.job import Settings
    from viscoil.view.camera import View

    said = {key: run.setting("picture", key, None) for key in ("azimuth", "elevation", "zoom", "field_of_view", "look")}
    usual = Settings().view
    chosen = {}
    for key in ("azimuth", "elevation", "zoom", "field_of_view"):
        asked = getattr(aim, key)
        chosen[key] = float(next(v for v in (asked, said[key], getattr(usual, key)) if v is not None))
    if not -89.9 <= chosen["elevation"] <= 89.9:
        raise SceneError(f"--elevation: expected degrees from -89.9 to 89.9; got {chosen['elevation']:g}", key="elevation")
    if not 0 < chosen["field_of_view"] <= 120:
        raise SceneError(f"--field-of-view: expected degrees, above 0 up to 120; got {chosen['field_of_view']:g}")
    if not chosen["zoom"] > 0:
        raise SceneError(f"--zoom: expected a number above 0; got {chosen['zoom']:g}", key="zoom")
    return Settings(
        size=parse_size(quality.size), samples=quality.samples, look=look or said["look"], draw=draw, fast=quality.fast,
        view=View(**chosen), camera=aim.camera, variant=quality.variant,
    ).checked()  # fmt: skip


def parse_size(text: str) -> tuple[int, int]:
    """``960x540`` -> (960, 540)."""
    match = re.fullmatch(r"\s*(\d+)\s*[x×*,]\s*(\d+)\s*", text)
    if not match:
        raise SceneError(f'--size: expected WIDTHxHEIGHT in pixels, e.g. 960x540; got "{text}"', key="size")
    return int(match[1]), int(match[2])


def summary(outcome: Any) -> str:
    """One line: how many, how long, and what took the time."""
    count = len(outcome.made)
    parts = []
    if count:
        names = [name for name in outcome.rows[0] if name not in ("frame", "total")]
        each = {name: sum(row.get(name, 0.0) for row in outcome.rows) / count for name in [*names, "total"]}
        split = ", ".join(f"{name} {each[name]:.2f}" for name in names)
        parts.append(f"{count} picture{'s' if count > 1 else ''} made in {outcome.seconds:.1f} s")
        parts.append(f"{each['total']:.2f} s each ({split})")
    if outcome.kept:
        parts.append(f"{len(outcome.kept)} {'was' if len(outcome.kept) == 1 else 'were'} up to date")
    return "; ".join(parts) + "."


class Progress:
    """One line per picture on stderr; a bar when somebody is looking.

    With a ``hint`` of what would be quicker, the first picture tells how long all will take; beyond ``LONG`` comes the hint.
    """

    def __init__(self, hint: str = "") -> None:
        self.hint = hint
        self.begin = time.perf_counter()
        self.bar: Any = None
        self.task: Any = None
        if show.is_terminal(sys.stderr):
            from rich import progress
            from rich.console import Console

            counter = progress.TextColumn("picture {task.completed:.0f}/{task.total:.0f}")
            words = progress.TextColumn("{task.description}")
            self.bar = progress.Progress(counter, progress.BarColumn(), words, console=Console(stderr=True))

    def frame(self, row: dict[str, Any], done: int, total: int) -> None:
        """One more picture is on disk."""
        if self.hint and done == 1 < total:
            every = row["total"] * total
            words = f"{show.about(row['total'])} a picture: about {show.about(every)} for {total}"
            self.note(f"{words}; {self.hint}" if every > LONG else words)
        left = (time.perf_counter() - self.begin) / done * (total - done)
        split = "  ".join(f"{name} {value:.2f} s" for name, value in row.items() if name not in ("frame", "total"))
        text = f"frame {row['frame']}  {row['total']:.2f} s  ({split})" + (f"  ETA {show.duration(left)}" if left else "")
        if self.bar is None:
            print(f"picture {done}/{total}  {text}", file=sys.stderr)
            return
        if self.task is None:
            self.task = self.bar.add_task(text, total=total)
        self.bar.update(self.task, completed=done, total=total, description=text)

    def note(self, text: str) -> None:
        """Something to read, once."""
        if self.bar is None:
            print(f"note: {text}", file=sys.stderr)
        else:
            self.bar.console.print(f"note: {text}", highlight=False, markup=False)

    def __enter__(self) -> "Progress":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


@gallery.default
def make_gallery(
    *scenes: str, output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("docs/gallery"),
    runs: Path = Path("build/gallery"), look: str | None = None, quality: Quality | None = None, looks: Path | None = None,
    overwrite: Switch = False, device: str = "auto", threads: int | None = None,
) -> int:  # fmt: skip
    """Simulate every shipped scene up to its telling moment and draw it, with a page that shows them all.

    Scenes whose picture is up to date are left alone.

    Parameters
    ----------
    scenes
        Names or .toml files; all shipped scenes when left out.
    output
        Folder for the pictures and README.md.
    runs
        Folder for the runs, which are kept to be gone on with.
    look
        One look for all; by default as the scenes say.
    looks
        Draw a sheet of looks to this file instead.
    overwrite
        Draw again what is up to date.
    device
        auto, cpu, cuda, amdgpu, metal or vulkan.
    threads
        CPU threads; twice the cores by default.
    """
    from viscoil.render.job import Settings

    quality = quality or Quality()
    settings = Settings(
        size=parse_size(quality.size), samples=quality.samples, look=look, fast=quality.fast, variant=quality.variant
    ).checked()
    if looks is not None:
        from viscoil.render.sheet import write_sheet

        show.pairs([("looks", write_sheet(looks, settings))])
        return 0
    from viscoil.cli.progress import report
    from viscoil.render.gallery import make

    def said(entry: Any, seconds: dict[str, float] | None) -> None:
        if seconds is None:
            print(f"{entry.name}: up to date")
        else:
            split = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
            print(f"{entry.name}: frame {entry.frame} drawn ({split}) to {entry.image}")

    with report() as progress:
        make(scenes or None, output, runs, settings, overwrite, device, threads, progress, said)
    show.pairs([("page", output / "README.md")])
    return 0


bench = App(
    name="render",
    help_epilogue="Examples:\n  viscoil bench render\n  viscoil bench render --particles 15000 --fast --size 960x540",
    result_action="return_value",
)


@bench.default
def measure(
    *, particles: int = 100_000, rounds: int = 3, quality: Quality | None = None, json: Path | None = None
) -> None:
    """Time pictures of a coiling rope, traced and quick, with what the time goes to.

    Parameters
    ----------
    particles
        How many particles, about.
    rounds
        Pictures of each kind; the best one counts.
    json
        File for the results.
    """
    from viscoil.bench import render as measuring
    from viscoil.render.job import Settings

    quality = quality or Quality(size="800x450")
    if particles < 100 or rounds < 1:
        raise SceneError("--particles: expected at least 100, and --rounds at least 1")
    if json is not None and not json.absolute().parent.is_dir():
        raise SceneError(f"--json: there is no folder {json.absolute().parent}; expected a file in an existing folder")
    settings = Settings(size=parse_size(quality.size), samples=quality.samples, variant=quality.variant)
    result = measuring.main(
        particles, settings, rounds, not quality.fast, json, say=lambda text: print(text, file=sys.stderr)
    )
    title, columns, rows = measuring.table(result)
    show.table(columns, rows, title)
    for note in result["notes"]:
        print(f"\n{note}")
