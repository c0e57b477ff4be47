"""What the commands of ``viscoil bench`` do: check their options, measure, print tables, keep files."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from viscoil.cli import show
from viscoil.cli.running import check_machine
from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed


def _aside(text: str) -> None:
    """What is being done, beside the results."""
    print(text, file=sys.stderr, flush=True)


def _some_of(text: str, known: list[str], option: str, what: str = "") -> list[str]:
    """Names separated by commas, or all."""
    names = known if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            hint, kind = did_you_mean(name, known), f"{what} " if what else ""
            raise SceneError(f'{option}: no {kind}"{name}".{hint} Expected some of: {listed(known)}, or all')
    return names


def _counts(text: str, option: str = "--particles") -> list[int] | None:
    """Counts separated by commas; none: an empty list; "": as the command chooses."""
    if not text:
        return None
    if text == "none":
        return []
    try:
        counts = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        example = "20000,100000" if option == "--particles" else "1,4,16"
        raise SceneError(f'{option}: expected counts separated by commas, e.g. {example}; got "{text}"')
    return counts


def _check_folder(file: Path | None, option: str = "--json") -> None:
    """Before anything is measured: results will have a place."""
    if file is not None and not file.absolute().parent.is_dir():
        raise SceneError(f"{option}: there is no folder {file.absolute().parent}; expected a file in an existing folder")


def _check(files: Any, machine: Any) -> None:
    _check_folder(files.json)
    _check_folder(files.plot, "--plot")
    check_machine(machine)


def _keep(file: Path | None, result: Any) -> None:
    """Results into a file, where one was asked for."""
    if file is not None:
        from viscoil.io.atomic import write_atomic

        write_atomic(file, json.dumps(result, indent=2).encode())


def _show(result: dict[str, Any], picture: Path | None) -> int:
    """Hardware, tables, notes, and the picture where one was asked for."""
    from viscoil.bench import report

    about = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    print(f"{report.hardware(result)} ({about['system']}, {about['memory']}, {versions}), {about['date']}")
    print(result["command"])
    for title, columns, rows in report.tables(result):
        show.table(columns, rows, title)
    for note in result["notes"]:
        print(f"\n{note}")
    if picture is not None:
        from viscoil.bench import plots

        print(plots.draw(result, picture))
    return 0


def stages(
    solver: str, particles: str, iterations: int | None, beside: bool, rounds: int, files: Any, machine: Any
) -> int:  # fmt: skip
    """Time the stages of a step."""
    counts = _counts(particles)
    for option, number in (("iterations", iterations), ("rounds", rounds)):
        if number is not None and number < 1:
            raise SceneError(f"--{option}: expected a whole number, at least 1; got {number}")
    _check(files, machine)
    from viscoil.bench import cases
    from viscoil.bench import stages as bench

    names = _some_of(solver, list(cases.CASES), "--solver", "solver")
    result = bench.main(
        None if solver == "all" else names, counts, machine.device, machine.threads, files.json, iterations, rounds,
        say=_aside, beside=beside,
    )  # fmt: skip
    return _show(result, files.plot)


def loops(solver: str, particles: str, iterations: int | None, whole: bool, files: Any, machine: Any) -> int:
    """Time the loops of a step."""
    counts = _counts(particles)
    if iterations is not None and iterations < 1:
        raise SceneError(f"--iterations: expected a whole number, at least 1; got {iterations}")
    _check(files, machine)
    from viscoil.bench import cases
    from viscoil.bench import loops as bench

    names = _some_of(solver, list(cases.CASES), "--solver", "solver")
    result = bench.main(names, counts, machine.device, machine.threads, files.json, iterations, whole, say=_aside)
    return _show(result, files.plot)


def papers(loads: str, quick: bool, frames: int | None, lead: int | None, files: Any, machine: Any) -> int:
    """The papers' scenes and loads."""
    for option, value in (("--frames", frames), ("--lead", lead)):
        if value is not None and value < 1:
            raise SceneError(f"{option}: expected a whole number of at least 1; got {value}")
    _check(files, machine)
    from viscoil.bench import papers as bench

    names = _some_of(loads, list(bench.loads()), "--loads", "load") if loads else None
    how = bench.How(machine.device, machine.threads, quick, frames, lead)
    return _show(bench.main(names, how, files.json, say=_aside), files.plot)


def scaling(
    solver: str, particles: str, largest: bool, thread_particles: int, thread_counts: str, files: Any, machine: Any
) -> int:  # fmt: skip
    """Threads and sizes."""
    counts = _counts(particles)
    _check(files, machine)
    from viscoil.bench import cases
    from viscoil.bench import scaling as bench

    names = _some_of(solver, list(cases.CASES), "--solver", "solver")
    result = bench.main(
        None if solver == "all" else names, machine.device, machine.threads, files.json, counts, largest, thread_particles,
        _counts(thread_counts, "--thread-counts"), say=_aside,
    )  # fmt: skip
    return _show(result, files.plot)


def other(kind: str, options: dict[str, Any], files: Any, machine: Any) -> int:
    """Peers and convergence: modules with ``main``, ``tables`` and ``draw`` of their own."""
    _check(files, machine)
    from viscoil.bench import store

    bench = import_module(f"viscoil.bench.{kind}")
    result = bench.main(device=machine.device, threads=machine.threads, json=files.json, say=_aside, **options)
    store.write(files.json, result)
    return _show(result, files.plot)


def everything(folder: Path, parts: str, budget: float | None, machine: Any) -> int:
    """All parts, one after the other; 1 when one failed or was left out."""
    check_machine(machine)
    from viscoil import backend
    from viscoil.bench import suite

    device = backend.choose(machine.device)
    chosen = _some_of(parts, list(suite.PARTS), "--parts", "part") if parts else suite.default_parts(device != "cpu")
    done = suite.main(folder, device, machine.threads, tuple(chosen), budget, say=_aside)
    ends = {name: "out of time" if row["code"] is None else row["code"] for name, row in done.items()}
    rows = [(name, f"{row['seconds']:.0f}", ends[name]) for name, row in done.items()]
    show.table(("part", "seconds", "exit code"), rows, f"Results in {folder}")
    return int(any(row["code"] != 0 for row in done.values()))


def plot(file: Path, output: Path | None) -> int:
    """Stored results as tables and a picture."""
    from viscoil.bench import store

    result = store.read(file)
    return _show(result, output or Path(file).with_suffix(".png"))


def conformation(loads: str, density: int | None, projection: str, compare: bool, file: Path | None, machine: Any) -> int:
    """Whole frames of viscoelastic fluid."""
    from viscoil.bench import conformation as bench

    names = _some_of(loads, [load.name for load in bench.LOADS], "--loads", "load")
    _check_folder(file)
    check_machine(machine)
    result = bench.main(names, machine.device, machine.threads, density, projection, compare, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def pvfs(loads: str, relaxation: str, file: Path | None, machine: Any) -> int:
    """Steps of PVFS."""
    from viscoil.bench import pvfs as bench

    names = _some_of(loads, [load.name for load in bench.LOADS], "--loads", "load")
    forms = _some_of(relaxation, ["auto", "coloured", "sequential", "jacobi"], "--relaxation")
    _check_folder(file)
    check_machine(machine)
    result = bench.main(names, machine.device, machine.threads, forms, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def iisph(loads: str, corrections: str, iterations: int, file: Path | None, machine: Any) -> int:
    """Steps of IISPH."""
    from viscoil.bench import iisph as bench

    names = _some_of(loads, [load.name for load in bench.LOADS], "--loads", "load")
    chosen = _some_of(corrections, list(bench.CORRECTIONS), "--corrections")
    if iterations < 2:
        raise SceneError(f"--iterations: expected a whole number, at least 2; got {iterations}")
    _check_folder(file)
    check_machine(machine)
    result = bench.main(names, machine.device, machine.threads, chosen, iterations, say=_aside)
    print(bench.table(result))
    _keep(file, result)
    return 0


def export(particles: int, frames: int, formats: str, what: str, file: Path | None) -> int:
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
