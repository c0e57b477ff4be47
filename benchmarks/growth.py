"""Cost of a particle's iteration by the number of particles, from the papers' loads and the sizes that were measured on a GPU.

Scenes are left out: what they have besides (bodies, nozzles, walls) would be taken for iterations.
What a step does besides its iterations is part of it. Loads differ in more than their size (neighbours, iterations per step,
what a step does besides), so that points of a method need not lie on a line."""

import re
from pathlib import Path
from typing import Any

COLUMNS = ["solver", "particles", "what", "iterations of a step", "ns per particle·iteration"]


def iterations(work: str) -> tuple[int, int]:
    """(steps, iterations of a step) of "10 × (8 + 8)", per frame, of "5 iterations", or of "36 springs each", without any."""
    if found := re.fullmatch(r"(\d+) × \((\d+) \+ (\d+)\)", work):
        steps, first, second = map(int, found.groups())
        return steps, first + second
    found = re.fullmatch(r"(\d+) iterations", work)
    return 1, int(found[1]) if found else 1


def points(results: list[dict[str, Any]]) -> list[tuple[str, int, str, int, float]]:
    """Rows of the table: solver by solver, small before large."""
    found = []
    for result in results:
        for row in result["rows"]:
            if result["kind"] == "scaling" and row["what"] == "sizes":
                each = round(1e6 * row["step_ms"] / (row["cost_ns"] * row["particles"]))
                found.append((row["solver"], row["particles"], "bench scaling", each, row["cost_ns"]))
            elif result["kind"] == "papers" and row["value"] is not None and not row["name"].endswith("iterations alone"):
                steps, each = iterations(row["work"])
                seconds = 1 / row["value"] if row["unit"] == "rate" else row["value"] / (steps * each * row["particles"])
                found.append((row["solver"], row["particles"], row["name"], each, 1e9 * seconds))
    return sorted(found)


def rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The table as text."""
    return [[solver, f"{n:,}", what, str(each), f"{cost:.3g}"] for solver, n, what, each, cost in points(results)]


def draw(results: list[dict[str, Any]], file: Path) -> None:
    """The same as a picture."""
    from matplotlib.figure import Figure

    from viscoil.bench.plots import COLOURS, tidy

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for solver, colour in COLOURS.items():
        own = [(n, cost) for name, n, _, _, cost in points(results) if name == solver]
        if own:
            axes.loglog(*zip(*own, strict=True), "o", color=colour, label=solver)
    axes.set_xlabel("particles")
    axes.set_ylabel("ns per particle·iteration, whole steps")
    axes.legend(frameon=False)
    tidy(axes, "cost by size, NVIDIA H200")
    figure.savefig(file, dpi=110)
