"""Commands that look at runs and at the program itself: info, plot, export, validate."""

import json
import sys
from pathlib import Path
from typing import Any

from viscoil.cli import show
from viscoil.cli.running import check_machine
from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean, listed

STEP_KEYS = ("steps_per_frame", "step", "cfl")  # of [time]: one of them says how long steps are


def info(path: Path) -> None:
    """Describe a run folder."""
    from viscoil.io.run import Run

    run = Run.open(path)
    acted = [("what acted", [("note", text) for text in run.acted()])]
    show.groups([("scene", _scene(run)), ("method", _method(run)), ("state", _state(run)), *_measures(run), *acted])


def _scene(run: Any) -> list[tuple[str, Any]]:
    step = next((f"{key} = {value:g}" for key in STEP_KEYS if (value := run.setting("time", key, None))), "")
    spacing, frame_time = run.setting("", "spacing", None), run.setting("time", "frame_time", None)
    used = [item.get("material", "") for kind in ("fluid", "emitter") for item in run.setting("", kind, [])]
    return [
        ("title", run.setting("", "title", "")), ("quality", run.setting("", "quality", "")),
        ("spacing", spacing and show.quantity(spacing, "m")),
        ("frame time", frame_time and ", ".join(filter(None, [show.quantity(frame_time, "s"), step]))),
        ("materials", ", ".join(dict.fromkeys(used))), ("file", run.path / "scene.toml"),
    ]  # fmt: skip


def _method(run: Any) -> list[tuple[str, Any]]:
    details, versions = run.info, ("viscoil", "python", "quadrants")
    made = ", ".join(f"{name} {details[name]}" for name in versions if details.get(name))
    return [
        ("solver", run.setting("solver", "method", "")), ("device", details.get("device")), ("command", details.get("command")),
        ("made with", made),
    ]  # fmt: skip


def _state(run: Any) -> list[tuple[str, Any]]:
    details, frames, times = run.info, run.frames, run.frame_times()
    last = details.get("frames", run.setting("time", "frames", "?"))
    until = f" ({show.quantity(max(times.values()), 's')})" if times else ""
    return [
        ("run", run.path), ("status", run.status), ("message", details.get("message")), ("created", details.get("created")),
        ("frames", f"{frames[0]} to {frames[-1]} on disk{until}, of {last}" if frames else f"none yet, of {last}"),
        ("checkpoints", ", ".join(map(str, run.checkpoints)) or "none"),
    ]  # fmt: skip


def _measures(run: Any) -> list[tuple[str, list[tuple[str, Any]]]]:
    """The last row of metrics.csv under a heading; nan (a mean of nothing, a frame without surface) is left out."""
    from viscoil.io.metrics import unit_of

    found = {name: column[-1] for name, column in run.metrics().items() if len(column) and str(column[-1]) not in ("nan", "")}
    frame, time = found.pop("frame", None), found.pop("time", None)
    if frame is None:
        return []
    rows = []
    for name, value in found.items():
        stem, _, axis = name.rpartition("_")
        vector = [found[f"{stem}_{x}"] for x in "xyz" if f"{stem}_{x}" in found]
        if axis == "x" and len(vector) == 3:
            rows.append((f"{stem} x, y, z", show.quantity(vector, unit_of(name))))
        elif not (axis in "yz" and len(vector) == 3) and stem != "seconds":
            rows.append((name, show.quantity(value, unit_of(name))))
    return [(f"measures of frame {frame}" + ("" if time is None else f", at {show.quantity(time, 's')}"), rows)]


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
        rows = [{key: None if value != value else value for key, value in asdict(result).items()} for result in results]
        print(json.dumps(rows, indent=2, default=str))  # JSON has no NaN
    else:
        rows = [
            (r.case, f"{r.measured:.6g}", f"{r.reference:.6g}", f"{r.tolerance:.3g}", "ok" if r.ok else "FAILED")
            for r in results
        ]
        show.table(("case", "measured", "reference", "tolerance", "result"), rows)
    return 0 if all(result.ok for result in results) else 1
