"""Plots of a run's metrics over simulated time."""

from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.run import Run

BLUE, ORANGE, GREEN, GREY = "#2a6fbb", "#e07b39", "#4a9c6d", "#8a9099"
STAGE_COLOURS = ("#2a6fbb", "#58a4d8", "#9fd0ea", "#e9c46a", "#f4a261", "#e76f51", "#8d6cab", "#6b9080", "#b5b5b5")
MOST_STAGES = 8  # named in the picture; the rest is added up


def plot_run(run: Run, path: str | Path) -> Path:
    """Density, kinetic energy, particles and computing time of ``run`` in one picture at ``path`` (e.g. .png, .svg)."""
    table = run.metrics()
    if not len(table.get("frame", ())):
        raise RunFolderError(f"{run.path} has no metrics to plot yet.")
    # The object-oriented interface: leaves the caller's own pyplot figures and back end alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    time = np.asarray(table.get("time", table["frame"]), dtype=float)
    figure = Figure(figsize=(10, 6.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    density, energy, particles, seconds = figure.subplots(2, 2, sharex=True).ravel()
    _density(density, time, table)
    _line(energy, time, table, "kinetic_energy", "kinetic energy [J]")
    _line(particles, time, table, "particles", "particles")
    _seconds(seconds, time, table)
    for axes in (density, energy, particles, seconds):
        axes.grid(color="#e4e7ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(colors="#555b61", labelsize=9)
    for axes in (particles, seconds):
        axes.set_xlabel("simulated time [s]")
        axes.margins(x=0.01)
    title = run.setting("", "title", "") or run.path.name
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"the plot {path} could not be written: {error}.") from error
    return path


def _column(table: dict[str, np.ndarray], name: str) -> np.ndarray | None:
    """A numeric column, or None when it is missing or holds no number."""
    column = table.get(name)
    if column is None or column.dtype.kind not in "if" or not np.isfinite(column).any():
        return None
    return column.astype(float)


def _title(axes: Any, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10.5, color="#30353a")


def _nothing(axes: Any) -> None:
    axes.text(0.5, 0.5, "not recorded", transform=axes.transAxes, ha="center", va="center", color=GREY)


def _line(axes: Any, time: np.ndarray, table: dict[str, np.ndarray], name: str, title: str) -> None:
    _title(axes, title)
    values = _column(table, name)
    if values is None:
        _nothing(axes)
        return
    axes.plot(time, values, color=BLUE, linewidth=1.8)
    axes.fill_between(time, values, color=BLUE, alpha=0.10, linewidth=0)
    axes.set_ylim(bottom=0, top=max(float(np.nanmax(values)) * 1.08, 1e-12))


def _density(axes: Any, time: np.ndarray, table: dict[str, np.ndarray]) -> None:
    """Density over rest density, as recorded."""
    _title(axes, "density / rest density")
    found = [(name, _column(table, f"density_{name}"), colour) for name, colour in (("max", ORANGE), ("mean", BLUE))]
    found = [(name, values, colour) for name, values, colour in found if values is not None]
    for name, values, colour in found:
        dots = "." if np.isnan(values).any() else ""  # a frame between two gaps is no line
        axes.plot(time, values, color=colour, linewidth=1.8, marker=dots, markersize=3, label=name)
    volume = _column(table, "volume_ratio")
    if volume is not None:
        axes.plot(time, volume, color=GREEN, linewidth=1.5, marker=".", markersize=3, label="surface volume / particle volume")
    if not found and volume is None:
        _nothing(axes)
        return
    if all(0.1 < np.nanmedian(values) < 10 for _, values, _ in found):
        axes.axhline(1.0, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    else:
        _title(axes, "density [kg/m³]")
    axes.legend(frameon=False, fontsize=9, ncols=2)


def _seconds(axes: Any, time: np.ndarray, table: dict[str, np.ndarray]) -> None:
    """Computing time per frame, stacked by stage where stages were measured."""
    _title(axes, "computing time per frame [s]")
    total = _column(table, "seconds")
    names = [name for name in table if name.startswith("seconds_")]
    stages = {name[8:]: column for name in names if (column := _column(table, name)) is not None}
    stages = {name: np.nan_to_num(values) for name, values in stages.items() if np.nansum(values) > 0}
    by_cost = sorted(stages, key=lambda name: -stages[name].sum())
    rest = by_cost[MOST_STAGES:]
    bands = {name.replace("_", " "): stages[name] for name in by_cost[:MOST_STAGES]}
    if rest:
        bands["other"] = np.sum([stages[name] for name in rest], axis=0)
    if bands:
        axes.stackplot(time, *bands.values(), labels=list(bands), colors=STAGE_COLOURS[: len(bands)], linewidth=0)
    if total is not None:
        axes.plot(time, total, color="#30353a", linewidth=1.2, label="total")
    if not bands and total is None:
        _nothing(axes)
        return
    # The first frame holds the compilation of the kernels and would flatten everything after it.
    shown = total if total is not None else np.sum(list(bands.values()), axis=0)
    later = shown[1:] if len(shown) > 2 else shown
    axes.set_ylim(0, max(float(np.nanpercentile(later, 99)) * 1.5, 1e-9))
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
