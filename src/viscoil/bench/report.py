"""Measured values as tables: (title, columns, rows of text), for the terminal and for the README."""

from typing import Any

from viscoil.bench import paper

Table = tuple[str, list[str], list[list[str]]]


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def hardware(result: dict[str, Any]) -> str:
    """One line: what it ran on."""
    about = result["machine"]
    cores = f"{about['cores']} core{'s' if about['cores'] != 1 else ''}"
    return about["gpu"] or f"{about['cpu']}, {cores}"


def stage_table(result: dict[str, Any]) -> Table:
    """Milliseconds per stage and throughput of every block."""
    stages = list(result["blocks"][0]["stages_ms"])
    columns = [
        "particles", "neighbours", "iterations", *stages, "one iteration", "whole step", "in a run", "Mp·it/s",
        "iterations only",
    ]  # fmt: skip
    rows = []
    for b in result["blocks"]:
        times = [*b["stages_ms"].values(), b["iteration_ms"], b["step_ms"], b["run_ms"]]
        rates = [b["rate"] / 1e6, b["iteration_rate"] / 1e6]
        counts = [f"{b['particles']:,}", f"{b['neighbours']:.1f}", str(b["iterations"])]
        rows.append([*counts, *map(number, times), *map(number, rates)])
    return f"Time of a step in ms, {result['solver']}, {hardware(result)}", columns, rows


def paper_table(result: dict[str, Any]) -> Table:
    """The paper's scenes' sizes, here and there."""
    columns = ["size of", "particles", "iterations", "ms/step", f"paper, {paper.HARDWARE}", "ratio"]
    rows = []
    for row in result["paper"]:
        theirs = row["paper"]["step_ms"]
        rows.append(
            [
                row["scene"], f"{row['particles']:,}", str(row["iterations"]), number(row["step_ms"]), number(theirs),
                f"{theirs / row['step_ms']:.3g}×",
            ]
        )  # fmt: skip
    return f"The paper's table: full tanks of the same size, {hardware(result)}", columns, rows


def split_table(result: dict[str, Any]) -> Table:
    """Cost split of a step in the paper's categories."""
    columns = ["share of a step in %", *paper.CATEGORIES]
    rows = []
    for row in result["paper"]:
        rows.append([f"{row['scene']}, here", *(f"{row['split'][name]:.0f}" for name in paper.CATEGORIES)])
        if row["paper"]["split"]:
            rows.append([f"{row['scene']}, paper", *(str(row["paper"]["split"][name]) for name in paper.CATEGORIES)])
    return "Where the time goes", columns, rows


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
    title = f"Beside plain C++ with OpenMP, ms ({hardware(result)}; C++ with {threads} threads; search = sort + list)"
    return title, columns, rows


def tables(result: dict[str, Any]) -> list[Table]:
    """All tables the result has values for."""
    found = [stage_table(result)]
    if result["paper"]:
        found += [paper_table(result), split_table(result)]
    if result["yardstick"]:
        found.append(yardstick_table(result))
    return found
