"""Results as tables: (title, columns, rows of text), for the terminal, for the README and for docs/performance.md."""

from importlib import import_module
from typing import Any

from viscoil.bench import paper

Table = tuple[str, list[str], list[list[str]]]
COUNTED = {"iterations": "iteration", "velocity_iterations": "velocity iteration"}
OWNERS = ("fields", "spare", "list", "cells", "rows", "scratch", "else")


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def size(count: float) -> str:
    """Bytes in a unit people read."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def hardware(result: dict[str, Any]) -> str:
    """One line: what it ran on."""
    about = result["machine"]
    cores = f"{about['cores']} core{'s' if about['cores'] != 1 else ''}"
    return about["gpu"] or f"{about['cpu']}, {cores}{', compiled loops' if about.get('native') else ''}"


def _solvers(result: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["solver"] for row in result["rows"]))


# --- stages ------------------------------------------------------------------------------------------------------------
def _each_iteration(row: dict[str, Any]) -> str:
    """Milliseconds of one iteration; of both kinds where there are two."""
    return " + ".join(number(value) for value in row["iteration_ms"].values()) or "–"


def stage_table(result: dict[str, Any], solver: str) -> Table:
    """Milliseconds per stage and throughput of one solver, all sizes."""
    rows = [row for row in result["rows"] if row["solver"] == solver]
    names = list(rows[0]["stages_ms"])
    columns = ["particles", "neighbours", "iterations", *names, "one iteration", "whole step", "in a run", "Mp·it/s"]
    columns.append("iterations only")
    lines = []
    for row in rows:
        counts = " + ".join(str(row["counts"][key]) for key in row["iteration_ms"]) or "1"
        times = [number(row["stages_ms"].get(name, 0.0)) for name in names]
        whole = [number(row["step_ms"]), number(row["run_ms"])]
        rates = [number(row["rate"] / 1e6), number(row["iteration_rate"] / 1e6)]
        about = [f"{row['particles']:,}", f"{row['neighbours']:.1f}", counts]
        lines.append([*about, *times, _each_iteration(row), *whole, *rates])
    return f"Time of a step in ms, {solver}, {hardware(result)}", columns, lines


def roofline_table(result: dict[str, Any]) -> Table:
    """Bytes, least times and shares of them, of steps and of iterations."""
    columns = [
        "solver", "particles", "what", "bytes each", "working set", "took ms", "floor, memory", "share", "floor, own size",
        "share", "floor, list walk", "share",
    ]  # fmt: skip
    lines = []
    for row in result["rows"]:
        model, least = row["traffic"], row["floors"]
        for key in ("step", *row["iteration_ms"]):
            each = model["step"] if key == "step" else model["iteration"][key]
            took = row["step_ms"] if key == "step" else row["iteration_ms"][key]
            walk = [number(least["walk_ms"][key]), f"{100 * least['walk_share'][key]:.0f} %"] if key != "step" else ["", ""]
            lines.append(
                [
                    row["solver"], f"{row['particles']:,}", COUNTED.get(key, key), f"{each:,.0f}",
                    size(each * row["particles"]), number(took), number(least["memory_ms"][key]),
                    f"{100 * least['share'][key]:.0f} %", number(least["hot_ms"][key]),
                    f"{100 * least['hot_share'][key]:.0f} %", *walk,
                ]
            )  # fmt: skip
    copy = result["copy"]
    title = f"Roofline, {hardware(result)}: copies from memory {copy['memory'] / 1e9:,.0f} GB/s, of what fits a cache up to "
    cache = f" (last cache {size(copy['cache'])})" if copy["cache"] else ""
    return f"{title}{copy['hot'] / 1e9:,.0f} GB/s{cache}", columns, lines


def copy_table(result: dict[str, Any]) -> Table:
    """Copy rates by working set."""
    copy = result["copy"]
    rows = [[f"{rate / 1e9:,.0f}" for rate in copy["rate"]]]
    return f"Copying, GB/s read and written, {hardware(result)}", [size(count) for count in copy["bytes"]], rows


def memory_table(result: dict[str, Any]) -> Table:
    """Bytes per particle of the largest size of every solver, by owner."""
    lines = []
    for solver in _solvers(result):
        row = max((row for row in result["rows"] if row["solver"] == solver and "memory" in row), key=lambda r: r["particles"])
        parts = [f"{row['memory']['parts'][name] / row['particles']:.0f}" for name in OWNERS]
        lines.append([solver, f"{row['particles']:,}", *parts, f"{row['memory']['per_particle']:.0f}"])
    columns = ["solver", "particles", *OWNERS, "together"]
    return f"Memory per particle in bytes, as allocated, {hardware(result)}", columns, lines


def yardstick_table(result: dict[str, Any]) -> Table:
    """Ours and plain C++ side by side."""
    measured = result["yardstick"]
    columns = ["particles", "search", "C++", "ratio", "iteration", "C++", "ratio"]
    rows = []
    for row in measured["rows"]:
        cells = [f"{row['particles']:,}"]
        for part in ("search", "iteration"):
            cells += [number(row[side][f"{part}_ms"]) for side in ("ours", "yardstick")]
            cells.append(f"{row[f'{part}_ratio']:.2f}")
        rows.append(cells)
    threads = " or ".join(map(str, measured["rows"][0]["threads"]))
    title = f"Beside plain C++ with OpenMP, ms ({hardware(result)}; C++ with {threads} threads; search = sort + list, "
    title += "iteration by our kernels)"
    return title, columns, rows


def _stages(result: dict[str, Any]) -> list[Table]:
    found = [stage_table(result, solver) for solver in _solvers(result)]
    found += [roofline_table(result), copy_table(result), memory_table(result)]
    if result["yardstick"]:
        found.append(yardstick_table(result))
    return found


# --- papers ------------------------------------------------------------------------------------------------------------
def amount(value: float | None, unit: str) -> str:
    """A row's value in its unit."""
    if value is None:
        return ""
    if unit == "rate":
        return f"{value / 1e9:.2f} G/s"
    return f"{value:.3g} s" if value >= 1 else f"{number(1e3 * value)} ms"


def in_a_run(row: dict[str, Any]) -> float:
    """Seconds per unit in a run, or of steps alone, or their rate, where nothing else is known."""
    return row["value"] if row["run"] is None else row["run"]


def verdict(row: dict[str, Any]) -> str:
    """Whether what was asked for was reached, and by how much it was not."""
    if row["asked"] is None:
        return ""
    if row["met"]:
        return "yes"
    ratio = row["asked"] / row["value"] if row["unit"] == "rate" else in_a_run(row) / row["asked"]
    return f"no, {ratio:.2f}×"


def percent(row: dict[str, Any], key: str) -> str:
    """A share that was measured, else nothing."""
    return f"{100 * row[key]:.3g} %" if key in row else ""


def faster(row: dict[str, Any]) -> float | None:
    """How many times faster than published a run was; None where no run was measured."""
    return row["published"] / row["run"] if row["published"] and row["run"] else None


def papers_table(result: dict[str, Any]) -> Table:
    """All rows: steps alone and in a run, how much of what was asked acted, asked and published times."""
    columns = [
        "paper", "what", "particles", "work", "per", "steps alone", "in a run", "compression", "viscosity that acted", "asked",
        "met", "published", "faster in a run",
    ]  # fmt: skip
    lines = []
    for row in result["rows"]:
        gain = faster(row)
        asked = f"{amount(row['asked'], row['unit'])} ({row['asked_of']})" if row["asked"] is not None else ""
        met = verdict(row) if result["machine"]["gpu"] or row["asked_of"] != "H200" else ""
        per = {"rate": "p·it/s"}.get(row["unit"], row["unit"])
        lines.append(
            [
                row["paper"], row["name"], f"{row['particles']:,}", row["work"], per, amount(row["value"], row["unit"]),
                amount(row["run"], row["unit"]), percent(row, "compression"), percent(row, "viscosity_share"), asked, met,
                amount(row["published"], row["unit"]), f"{gain:.3g}×" if gain else "",
            ]
        )  # fmt: skip
    return f"The papers' scenes and loads of their sizes, {hardware(result)}", columns, lines


def shares_table(result: dict[str, Any]) -> Table:
    """Where the time goes."""
    lines = []
    for row in result["rows"]:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["stages"].items() if share >= 0.005)
        lines.append([row["name"], row["solver"], shares])
    return f"Where the time goes, {hardware(result)}", ["what", "solver", "share of the stages"], lines


def split_table(result: dict[str, Any]) -> Table:
    """Cost split of a step in the categories of Macklin & Müller."""
    lines = []
    for row in result["rows"]:
        if row.get("split"):
            lines.append([f"{row['name']}, here", *(f"{row['split'][name]:.0f}" for name in paper.CATEGORIES)])
            if row["published_split"]:
                lines.append([f"{row['name']}, paper", *(str(row["published_split"][name]) for name in paper.CATEGORIES)])
    return "Macklin & Müller's split of a step", ["share of a step in %", *paper.CATEGORIES], lines


def _papers(result: dict[str, Any]) -> list[Table]:
    found = [papers_table(result), shares_table(result)]
    return found + ([split_table(result)] if any(row.get("split") for row in result["rows"]) else [])


# --- scaling -----------------------------------------------------------------------------------------------------------
def speed_ups(rows: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    """By solver: how many times faster than with one thread, by number of threads."""
    result: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["what"] == "threads":
            result.setdefault(row["solver"], {})[row["threads"]] = row["step_ms"]
    return {name: {n: ms[min(ms)] / value for n, value in ms.items()} for name, ms in result.items()}


def threads_table(result: dict[str, Any]) -> Table:
    """Speed-ups over one thread."""
    rows = [row for row in result["rows"] if row["what"] == "threads"]
    counts = sorted({row["threads"] for row in rows})
    lines = []
    for solver, ups in speed_ups(rows).items():
        times = {row["threads"]: row["step_ms"] for row in rows if row["solver"] == solver}
        cells = [f"{ups[n]:.2f}× ({number(times[n])} ms)" if n in ups else "" for n in counts]
        lines.append([solver, f"{rows[0]['particles']:,}", *cells])
    copies = {row["threads"]: row["copy"] for row in rows}
    lines.append(["copying", "", *(f"{copies[n] / copies[counts[0]]:.2f}× ({copies[n] / 1e9:.0f} GB/s)" for n in counts)])
    columns = ["solver", "particles", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts)]
    return f"Times faster than with one thread (ms per step), {hardware(result)}", columns, lines


def sizes_table(result: dict[str, Any]) -> Table:
    """Cost and memory by size."""
    columns = [
        "solver", "particles", "ms/step", "ms per iteration", "ns per particle·iteration", "bytes per particle", "together",
        "built and compiled in s",
    ]  # fmt: skip
    lines = []
    for row in result["rows"]:
        if row["what"] == "sizes":
            account = row["memory"]
            lines.append(
                [
                    row["solver"], f"{row['particles']:,}", number(row["step_ms"]), _each_iteration(row),
                    number(row["cost_ns"]), f"{account['per_particle']:.0f}", size(account["bytes"]), number(row["built_s"]),
                ]
            )  # fmt: skip
    return f"Cost by number of particles, {hardware(result)}", columns, lines


def _scaling(result: dict[str, Any]) -> list[Table]:
    kinds = {row["what"] for row in result["rows"]}
    found = [threads_table(result)] if "threads" in kinds else []
    return found + ([sizes_table(result)] if "sizes" in kinds else [])


def tables(result: dict[str, Any]) -> list[Table]:
    """All tables of a result of any kind."""
    if not result["rows"]:
        return []
    known = {"stages": _stages, "papers": _papers, "scaling": _scaling}
    if result["kind"] in known:
        return known[result["kind"]](result)
    return import_module(f"viscoil.bench.{result['kind']}").tables(result)
