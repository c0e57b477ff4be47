"""Results as pictures, from what was measured just now or from a stored file. Only here matplotlib is loaded."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.bench.report import faster, hardware, in_a_run, speed_ups
from viscoil.errors import ViscoilError

COLOURS = {"pbf": "#2a6fbb", "dcpbd": "#e07b39", "pvfs": "#4a9c6d", "iisph": "#8d6cab"}
STAGE_COLOURS = ("#2a6fbb", "#58a4d8", "#9fd0ea", "#e9c46a", "#f4a261", "#e76f51", "#8d6cab", "#6b9080", "#b5b5b5")
GREY = "#8a9099"
SHAPES = {"stages": (11, 4.6), "papers": (10, 7.5), "scaling": (11, 4.6)}


def tidy(axes: Any, title: str) -> None:
    """Title, grid and colours that all pictures share."""
    axes.set_title(title, loc="left", fontsize=10.5, color="#30353a")
    axes.grid(color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors="#555b61", labelsize=9)


def _stages(result: dict[str, Any], figure: Any) -> None:
    """Where a step's time goes at the largest size of each solver; iterations against their floors."""
    left, right = figure.subplots(1, 2)
    largest = {}
    for row in result["rows"]:
        if row["particles"] <= 1.1e6 and row["particles"] >= largest.get(row["solver"], {"particles": 0})["particles"]:
            largest[row["solver"]] = row
    names = list(dict.fromkeys(name for row in largest.values() for name in row["stages_ms"]))
    for place, row in enumerate(largest.values()):
        start, whole = 0.0, sum(row["stages_ms"].values())
        for name, value in row["stages_ms"].items():
            share = 100 * value / whole
            colour = STAGE_COLOURS[names.index(name) % len(STAGE_COLOURS)]
            left.barh(place, share, left=start, color=colour, edgecolor="white", linewidth=0.6)
            if share > 9:
                left.text(start + share / 2, place, name, ha="center", va="center", fontsize=8)
            start += share
    labels = [f"{row['solver']}\n{row['particles']:,}\n{row['step_ms']:.3g} ms" for row in largest.values()]
    left.set_yticks(range(len(largest)), labels)
    left.invert_yaxis()
    left.set_xlabel("% of a step")
    tidy(left, "stages")
    for row in result["rows"]:
        for key, took in row["iteration_ms"].items():
            moved = row["traffic"]["iteration"][key]
            rate = moved * row["particles"] / (1e-3 * took)
            marker = "o" if key == "iterations" else "s"
            right.plot(moved * row["particles"], rate, marker, color=COLOURS.get(row["solver"], GREY), markersize=7)
    for solver in largest:
        right.plot([], [], "o", color=COLOURS.get(solver, GREY), label=solver)
    copy = result["copy"]
    right.plot(copy["bytes"], copy["rate"], color="#30353a", linewidth=1.6, label="copies of this size")
    right.axhline(copy["memory"], color="#30353a", linewidth=1, linestyle=":", label="copies from memory")
    if copy["cache"]:
        right.axvline(copy["cache"], color=GREY, linewidth=1, linestyle="--", label="last cache")
    right.set(xscale="log", yscale="log", xlabel="bytes of one iteration of all particles", ylabel="bytes/s (model)")
    right.legend(fontsize=8, frameon=False)
    tidy(right, "roofline: iterations (■ velocity) beside copies")


def _papers(result: dict[str, Any], figure: Any) -> None:
    """Measured times over those asked for and published, in a run where one was measured."""
    axes = figure.subplots()
    rows = [row for row in result["rows"] if row["asked"] is not None or faster(row)]
    places = np.arange(len(rows))
    drawn = set()
    for place, row in zip(places, rows, strict=True):
        for key, colour, label in (("asked", "#e07b39", "asked / here"), ("published", "#2a6fbb", "published / here")):
            if row[key] is not None and (key == "asked" or faster(row)):
                ratio = row["value"] / row[key] if row["unit"] == "rate" else row[key] / in_a_run(row)
                up = place - 0.18 if key == "asked" else place + 0.18
                axes.barh(up, ratio, 0.34, color=colour, label=label if label not in drawn else None)
                axes.text(ratio, up, f" {ratio:.3g}×", va="center", fontsize=8)
                drawn.add(label)
    axes.axvline(1, color="#30353a", linewidth=1)
    axes.set_yticks(places, [f"{row['name']}, {row['particles']:,}" for row in rows])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="times faster than asked (on an H200) or published, in a run where one was measured")
    if rows:
        axes.legend(fontsize=9, frameon=False)
    tidy(axes, "the papers' scenes, and loads of their sizes")


def _threads(axes: Any, rows: list[dict[str, Any]]) -> None:
    ups = speed_ups(rows)
    for solver, by_count in ups.items():
        counts = sorted(by_count)
        axes.plot(counts, [by_count[n] for n in counts], "o-", color=COLOURS.get(solver, GREY), label=solver)
    counts = sorted({n for by_count in ups.values() for n in by_count})
    axes.plot(counts, counts, color=GREY, linewidth=1, linestyle=":", label="ideal")
    copies = {row["threads"]: row["copy"] for row in rows}
    axes.plot(counts, [copies[n] / copies[counts[0]] for n in counts], "--", color="#30353a", linewidth=1, label="copying")
    axes.set(xscale="log", yscale="log", xlabel="threads", ylabel="times faster than one thread")
    for ticks in (axes.set_xticks, axes.set_yticks):
        ticks(counts, [str(n) for n in counts])
    axes.minorticks_off()
    axes.legend(fontsize=9, frameon=False)
    tidy(axes, "threads")


def _scaling(result: dict[str, Any], figure: Any) -> None:
    """Speed-up by threads where there is one, cost and memory by size."""
    threads = [row for row in result["rows"] if row["what"] == "threads"]
    sizes = [row for row in result["rows"] if row["what"] == "sizes"]
    parts = figure.subplots(1, 2 * bool(sizes) + bool(threads), squeeze=False)[0]
    if threads:
        _threads(parts[0], threads)
    if sizes:
        _sizes(*parts[-2:], sizes)


def _sizes(cost: Any, room: Any, sizes: list[dict[str, Any]]) -> None:
    for solver in dict.fromkeys(row["solver"] for row in sizes):
        rows = [row for row in sizes if row["solver"] == solver]
        counts, colour = [row["particles"] for row in rows], COLOURS.get(solver, GREY)
        cost.plot(counts, [row["cost_ns"] for row in rows], "o-", color=colour, label=solver)
        room.plot(counts, [row["memory"]["per_particle"] for row in rows], "o-", color=colour, label=solver)
    cost.set(xscale="log", yscale="log", xlabel="particles", ylabel="ns per particle·iteration")
    room.set(xscale="log", xlabel="particles", ylabel="bytes per particle")
    room.set_ylim(bottom=0)
    cost.legend(fontsize=9, frameon=False)
    cost.yaxis.set_minor_formatter("")
    tidy(cost, "cost of whole steps")
    tidy(room, "memory, as allocated")


def draw(result: dict[str, Any], file: str | Path) -> Path:
    """The picture of a result of any kind at ``file`` (.png, .svg)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not result["rows"]:
        raise ViscoilError("there is nothing to draw: the result has no rows")
    figure = Figure(figsize=SHAPES.get(result["kind"], (10, 5)), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    known = {"stages": _stages, "papers": _papers, "scaling": _scaling}
    drawer = known.get(result["kind"]) or import_module(f"viscoil.bench.{result['kind']}").draw
    drawer(result, figure)
    about = result["machine"]
    figure.suptitle(f"{result['kind']}: {hardware(result)}, {about['date']}", fontsize=12, x=0.01, ha="left")
    file = Path(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=110)
    except (OSError, ValueError) as error:
        raise ViscoilError(f"the plot {file} could not be written: {error}") from error
    return file
