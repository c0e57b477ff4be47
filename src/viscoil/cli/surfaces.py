"""`viscoil surface`: its options and what it prints."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import App, Parameter

from viscoil.cli import show
from viscoil.errors import SceneError, SurfaceFailed

surface = App(
    name="surface",
    help_epilogue="Examples:\n  viscoil surface runs/dam_break-1\n  viscoil surface runs/dam_break-1 --frames 10:20\n"
    "  viscoil surface runs/dam_break-1 --frames -1 --quality live\n"
    "  viscoil surface runs/honey --stray 3 --smoothing 40 --workers 4\n"
    "  viscoil surface runs/honey --method anisotropic --frames ::10",
)


@Parameter(name="*")
@dataclass
class Shape:
    """How the surface is made. Lengths are in particle spacings.

    Parameters
    ----------
    quality
        film (fine, smooth) or live (coarse, quick).
    method
        splash, anisotropic (kernels of Yu & Turk) or clavet (eq. 13 of Clavet et al.).
    smoothing
        Iterations of smoothing that removes bumps and keeps volume; 25 for film, 8 for live.
    normal_smoothing
        Iterations that smooth the normals; 4 for film, 2 for live.
    cube
        Edge of a marching cube; 0.4 for film, 0.8 for live.
    support
        Radius in which a particle shapes the surface.
    threshold
        Value of the field on the surface; lower is thicker.
    stray
        Leave out drops smaller than this many particles.
    bubbles
        Fill closed cavities smaller than this many particles; 1000 for film, 0 (none) for live.
    """

    quality: str = "film"
    method: str = "splash"
    smoothing: int | None = None
    normal_smoothing: int | None = None
    cube: float | None = None
    support: float | None = None
    threshold: float | None = None
    stray: float | None = None
    bubbles: float | None = None


@surface.default
def make(
    run: Path, /, *, frames: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    shape: Shape | None = None, workers: int | None = None,
    overwrite: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> int:  # fmt: skip
    """Compute the surface of the fluid for the frames of a run, into RUN/surface. Goes on where it was stopped.

    Parameters
    ----------
    run
        Run folder.
    frames
        12, 10:20, 10:, ::5, -1 for the last, or several with commas; all when left out.
    workers
        Processes that work at the same time; by default as many as there are cores, if memory allows.
    overwrite
        Compute surfaces again that are there already.
    """
    from viscoil.io.ranges import frame_range
    from viscoil.io.run import Run
    from viscoil.surface import store
    from viscoil.surface.job import surface_run

    options = {key: value for key, value in vars(shape or Shape()).items() if value is not None}
    folder = Run.open(run)
    chosen = frame_range(frames, folder.frames)
    try:
        with _report() as report:
            outcome = surface_run(folder, chosen, workers, report.frame, overwrite, **options)
    except KeyboardInterrupt:
        print("stopped; surfaces made so far are kept, the same command goes on from there.", file=sys.stderr)
        raise
    for number, why in outcome.failed.items():
        print(f"frame {number} has no surface: {why}", file=sys.stderr)
    print(summary(outcome))
    show.pairs([("surfaces", store.folder(folder) / store.SERIES), ("numbers", store.folder(folder) / "metrics.csv")])
    if outcome.failed and not outcome.made:
        raise SurfaceFailed("no surface could be made.")
    return 1 if outcome.failed else 0


def summary(outcome: Any) -> str:
    """One line: how many, how long, how much of the particles' volume the meshes have."""
    parts = [f"{len(outcome.made)} surfaces made in {outcome.seconds:.1f} s"]
    if outcome.made:
        each = [float(outcome.rows[number]["seconds"]) for number in outcome.made]
        parts.append(f"{np.mean(each):.2f} s each on {outcome.workers} worker{'s' if outcome.workers > 1 else ''}")
    if outcome.kept:
        parts.append(f"{len(outcome.kept)} were there")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    ratios = [float(row["volume_ratio"]) for row in outcome.rows.values()]
    ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
    if ratios:
        parts.append(f"mesh volume / particle volume {np.mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    return "; ".join(parts) + "."


class _Lines:
    """One line per surface on stderr."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()

    def frame(self, row: dict[str, Any], done: int, total: int) -> None:
        """One more surface is on disk, or could not be made."""
        left = (time.perf_counter() - self.begin) / done * (total - done)
        if "error" in row:
            words = ["failed"]
        else:
            words = [f"{row['vertices']:,} vertices", f"volume {row['volume_ratio']:.3f}", f"{row['seconds']:.2f} s"]
        self.show(done, total, "  ".join([f"frame {row['frame']}", *words, *([f"ETA {show.duration(left)}"] if left else [])]))

    def show(self, done: int, total: int, text: str) -> None:
        """Print it."""
        print(f"surface {done}/{total}  {text}", file=sys.stderr)

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to tidy up after plain lines."""


class _Bar(_Lines):
    """The same with a bar that stays on its line."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.bar = Progress(
            TextColumn("surface {task.completed:.0f}/{task.total:.0f}"), BarColumn(), TextColumn("{task.description}"),
            console=Console(stderr=True),
        )  # fmt: skip
        self.task: Any = None

    def show(self, done: int, total: int, text: str) -> None:
        if self.task is None:
            self.task = self.bar.add_task(text, total=total)
        self.bar.update(self.task, completed=done, total=total, description=text)

    def __enter__(self) -> "_Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _report() -> _Lines:
    return _Bar() if show.is_terminal(sys.stderr) else _Lines()


bench = App(
    name="surface",
    help_epilogue="Examples:\n  viscoil bench surface\n  viscoil bench surface --particles 15000,100000 --json surfaces.json\n"
    "  viscoil bench surface --particles 13000000 --qualities live",
)


@bench.default
def measure(
    *, particles: str = "", qualities: str = "film,live", rounds: int = 3, json: Path | None = None,
) -> None:  # fmt: skip
    """Time surfaces with all their quantities, and the ellipsoids of anisotropic kernels.

    Parameters
    ----------
    particles
        Particle counts, separated by commas; left out: 15000, 100000 and a million.
    qualities
        film, live or both.
    rounds
        Repetitions; the best one counts. Beyond two million particles once is enough.
    json
        File for the results.
    """
    from viscoil.surface.options import settings

    try:
        counts = [int(text.replace("_", "")) for text in particles.split(",")] if particles else None
    except ValueError:
        counts = [0]
    if counts is not None and min(counts) < 1:
        raise SceneError(f'--particles: expected counts separated by commas, e.g. 15000,100000; got "{particles}"')
    if rounds < 1:
        raise SceneError(f"--rounds: expected a whole number, at least 1; got {rounds}")
    if json is not None and not json.absolute().parent.is_dir():
        raise SceneError(f"--json: there is no folder {json.absolute().parent}; expected a file in an existing folder")
    chosen = [settings(name.strip()).quality for name in qualities.split(",")]
    from viscoil.bench import surface as measuring

    result = measuring.main(counts, chosen, json, rounds, say=lambda text: print(text, file=sys.stderr))
    title, columns, rows = measuring.table(result)
    show.table(columns, rows, title)
    for note in result["notes"]:
        print(f"\n{note}")
