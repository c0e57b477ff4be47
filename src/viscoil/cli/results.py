"""Commands that look at runs and at the program itself: info, plot, export, validate."""

import json
import sys
from pathlib import Path
from typing import Any

from viscoil.cli import show
from viscoil.cli.running import check_machine
from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed


def info(path: Path) -> None:
    """Describe a run folder."""
    from viscoil.io.run import Run

    run = Run.open(path)
    details, frames = run.info, run.frames
    rows: list[tuple[str, Any]] = [("run", run.path), ("status", run.status), ("message", details.get("message"))]
    rows += [("scene", run.setting("", "title", "")), ("solver", run.setting("solver", "method", ""))]
    rows += [(key, details.get(key)) for key in ("device", "command", "created", "viscoil", "python")]
    last = details.get("frames", run.setting("time", "frames", "?"))
    rows.append(("frames", f"{frames[0]} to {frames[-1]} on disk, of {last}" if frames else f"none yet, of {last}"))
    rows.append(("checkpoints", ", ".join(map(str, run.checkpoints)) or "none"))
    for key, column in run.metrics().items():
        if len(column) and not key.startswith("seconds_") and str(column[-1]) != "nan":  # nan: this frame has no surface
            rows.append((f"last {key}", column[-1]))
    rows += [("note", text) for text in run.acted()]
    show.pairs(rows)


def plot(path: Path, output: Path | None) -> None:
    """Picture of the metrics."""
    from viscoil.io.run import Run

    run = Run.open(path)
    from viscoil.view.plot import plot_run  # after the folder was found: drawing takes a second to load

    print(plot_run(run, output or run.path / "plot.png"))


def export(path: Path, to: str, output: Path | None, what: str, frames: str | None) -> None:
    """Frames in another format."""
    from viscoil.cli.progress import counter
    from viscoil.io.export import export as write
    from viscoil.io.ranges import frame_range
    from viscoil.io.run import Run

    run = Run.open(path)
    with counter(len(frame_range(frames, run.frames)), f"exporting {to}") as count:
        found = write(run, to, output, count, what, frames, _surface_made)
    print(found)


def _surface_made(row: dict[str, Any], done: int, total: int) -> None:
    """About ten lines while missing surfaces are computed."""
    if done == total or done % max(1, total // 10) == 0:
        print(f"computing surfaces: {done}/{total} frames (frame {row['frame']})", file=sys.stderr)


def validate(cases: list[str], *, quick: bool, plots: Path | None, as_json: bool, machine: Any) -> int:
    """Run validation cases; 1 when one fails."""
    from dataclasses import asdict

    from viscoil import backend, validation

    for name in cases:
        if name not in validation.CASES:
            hint = did_you_mean(name, validation.CASES)
            raise SceneError(
                f'no validation case "{name}".{hint} Expected one of: {listed(validation.CASES)}',
                suggestion=closest(name, validation.CASES),
            )
    check_machine(machine)
    backend.start(machine.device, machine.threads)
    results = validation.run(cases or list(validation.CASES), quick=quick, device=machine.device, plots=plots)
    if as_json:
        print(json.dumps([asdict(result) for result in results], indent=2, default=str))
    else:
        rows = [
            (r.case, f"{r.measured:.6g}", f"{r.reference:.6g}", f"{r.tolerance:.3g}", "ok" if r.ok else "FAILED")
            for r in results
        ]
        show.table(("case", "measured", "reference", "tolerance", "result"), rows)
    return 0 if all(result.ok for result in results) else 1
