"""Commands that look at runs and at the program itself: info, plot, export, validate, bench."""

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


def bench_stages(solver: str, particles: str, iterations: int, file: Path | None, machine: Any) -> int:
    """Time the stages of a step."""
    from viscoil.solvers import SOLVERS

    if solver not in SOLVERS:
        raise SceneError(f'no solver "{solver}".{did_you_mean(solver, SOLVERS)} Expected one of: {listed(SOLVERS)}')
    try:
        counts = [int(text.replace("_", "")) for text in particles.split(",")] if particles else None
    except ValueError:
        counts = [0]
    if counts is not None and min(counts) < 1:
        raise SceneError(f'--particles: expected counts separated by commas, e.g. 20000,100000; got "{particles}"')
    if iterations < 1:
        raise SceneError(f"--iterations: expected a whole number, at least 1; got {iterations}")
    _check_folder(file)
    check_machine(machine)
    from viscoil.bench import report, stages

    result = stages.main(
        solver=solver, particles=counts, device=machine.device, threads=machine.threads, json=file,
        iterations=iterations, say=_aside,
    )  # fmt: skip
    for title, columns, rows in report.tables(result):
        show.table(columns, rows, title)
    for note in result["notes"]:
        print(f"\n{note}")
    return 0


def _chosen_loads(text: str, known: list[str]) -> list[str]:
    """Names of loads, separated by commas, or all."""
    names = known if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise SceneError(f'--loads: no load "{name}".{did_you_mean(name, known)} Expected one of: {listed(known)}, or all')
    return names


def _some_of(text: str, known: list[str], option: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise SceneError(f'{option}: no "{name}".{did_you_mean(name, known)} Expected some of: {listed(known)}')
    return names


def _check_folder(file: Path | None) -> None:
    """Before anything is measured: results will have a place."""
    if file is not None and not file.absolute().parent.is_dir():
        raise SceneError(f"--json: there is no folder {file.absolute().parent}; expected a file in an existing folder")


def _aside(text: str) -> None:
    """What is being done, beside the results."""
    print(text, file=sys.stderr)


def _keep(file: Path | None, result: Any) -> None:
    """Results into a file, where one was asked for."""
    if file is not None:
        from viscoil.io.atomic import write_atomic

        write_atomic(file, json.dumps(result, indent=2).encode())


def bench_conformation(
    loads: str, density: int | None, projection: str, compare: bool, file: Path | None, machine: Any
) -> int:
    """Whole frames of viscoelastic fluid."""
    check_machine(machine)
    from viscoil.bench import conformation as bench

    names = _chosen_loads(loads, [load.name for load in bench.LOADS])
    result = bench.main(names, machine.device, machine.threads, density, projection, compare, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def bench_pvfs(loads: str, relaxation: str, file: Path | None, machine: Any) -> int:
    """Steps of PVFS."""
    from viscoil.bench import pvfs as bench

    names = _chosen_loads(loads, [load.name for load in bench.LOADS])
    forms = _some_of(relaxation, ["auto", "coloured", "sequential", "jacobi"], "--relaxation")
    _check_folder(file)
    check_machine(machine)
    result = bench.main(names, machine.device, machine.threads, forms, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def bench_iisph(loads: str, corrections: str, iterations: int, file: Path | None, machine: Any) -> int:
    """Steps of IISPH."""
    from viscoil.bench import iisph as bench

    names = _chosen_loads(loads, [load.name for load in bench.LOADS])
    known = list(bench.CORRECTIONS)
    chosen = known if corrections == "all" else _some_of(corrections, known, "--corrections")
    if iterations < 2:
        raise SceneError(f"--iterations: expected a whole number, at least 2; got {iterations}")
    _check_folder(file)
    check_machine(machine)
    result = bench.main(names, machine.device, machine.threads, chosen, iterations, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def bench_export(particles: int, frames: int, formats: str, what: str, file: Path | None) -> int:
    """Time, size and memory of exports."""
    from viscoil.bench import export as bench
    from viscoil.io.export import check

    if particles < 1 or frames < 1:
        raise SceneError(f"expected at least one particle and one frame; got {particles} and {frames}")
    chosen = [name.strip() for name in formats.split(",") if name.strip()]
    for name in chosen or [""]:
        check(name or "vtk", what)
    result = bench.main(particles, frames, chosen, what, say=_aside)
    title, columns, rows = bench.table(result)
    show.table(columns, rows, title)
    _keep(file, result)
    return 1 if any("error" in row for row in result["rows"]) else 0
