"""What a running simulation shows: a bar at a terminal, one line per frame otherwise."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from viscoil.cli.show import duration, is_terminal
from viscoil.io.execute import Progress

SMOOTHING = 0.7  # weight of the past in the running mean of seconds per frame


class Report(Progress):
    """Counts frames and knows how fast they come. Progress goes to stderr, results to stdout."""

    def __init__(self) -> None:
        self.first = 0  # frame the run began with
        self.last = 0  # frame to reach
        self.seconds_per_frame: float | None = None  # smoothed, because costs change as a scene develops
        self.seconds = 0.0  # of all frames but the first, which compiles kernels
        self.particle_steps = 0  # in these: particles times steps
        self._clock = time.perf_counter()
        self._steps: int | None = None

    def start(self, first: int, last: int) -> None:
        """The run begins after frame ``first`` (-1: from nothing)."""
        self.first, self.last, self._clock = first, last, time.perf_counter()

    def frame(self, frame: Any, metrics: dict[str, Any]) -> None:
        """One more frame is on disk."""
        now = time.perf_counter()
        took, self._clock = now - self._clock, now
        steps, self._steps = (frame.step - self._steps if self._steps is not None else 0), frame.step
        if frame.index > 0:  # frame 0 is the initial state: no steps, but the kernels were compiled
            past = self.seconds_per_frame
            self.seconds_per_frame = took if past is None else SMOOTHING * past + (1 - SMOOTHING) * took
            if past is not None:
                self.seconds += took
                self.particle_steps += steps * len(frame)
        self.show(frame, self.words(frame, metrics, steps / took if took > 0 else 0.0))

    def words(self, frame: Any, metrics: dict[str, Any], steps_per_second: float) -> dict[str, str]:
        """The numbers worth seeing, as text."""
        words = {"particles": f"{len(frame):,} particles"}
        if steps_per_second:
            words["speed"] = f"{steps_per_second:.1f} steps/s"
        if metrics.get("dt"):
            words["step"] = f"Δt {1e3 * float(metrics['dt']):.3g} ms ({metrics.get('limited_by') or 'as asked'})"
        density = metrics.get("density_mean")
        if isinstance(density, (int, float)) and density > 0:  # NaN: nobody is inside the fluid yet
            words["density"] = f"density error {100 * (float(density) - 1):+.2f} %"
        words |= self.watch.words() if self.watch else {}
        if self.seconds_per_frame is not None and frame.index < self.last:
            words["left"] = f"ETA {duration(self.seconds_per_frame * (self.last - frame.index))}"
        return words

    def show(self, frame: Any, words: dict[str, str]) -> None:
        """Print one plain line."""
        print(f"frame {frame.index}/{self.last}  {frame.time:.4g} s  {'  '.join(words.values())}", file=sys.stderr)

    def note(self, text: str) -> None:
        """Something to read, once."""
        print(f"note: {text}", file=sys.stderr)

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to tidy up after plain lines."""


class Bar(Report):
    """The same with a bar that stays on its line."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.bar = Progress(
            TextColumn("frame {task.completed:.0f}/{task.total:.0f}"), BarColumn(), TextColumn("{task.description}"),
            console=Console(stderr=True), transient=False,
        )  # fmt: skip
        self.task: Any = None

    def start(self, first: int, last: int) -> None:
        super().start(first, last)
        self.task = self.bar.add_task("compiling kernels", total=max(last, 1), completed=max(first, 0))

    def show(self, frame: Any, words: dict[str, str]) -> None:
        self.bar.update(self.task, completed=frame.index, description="  ".join(words.values()))

    def note(self, text: str) -> None:
        self.bar.console.print(f"note: {text}", highlight=False, markup=False)

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def report() -> Report:
    """A bar when somebody is looking, lines otherwise."""
    return Bar() if is_terminal(sys.stderr) else Report()


@contextlib.contextmanager
def counter(total: int, doing: str) -> Iterator[Callable[[int], None]]:
    """A function to be called once per finished frame: a bar at a terminal, about ten lines otherwise."""
    done = 0
    if is_terminal(sys.stderr):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda _: bar.advance(task)
        return

    def line(index: int) -> None:
        nonlocal done
        done += 1
        if done == total or done % max(1, total // 10) == 0:
            print(f"{doing}: {done}/{total} frames (frame {index})", file=sys.stderr)

    yield line
