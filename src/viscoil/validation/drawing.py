"""The look all validation plots share. Matplotlib loads only when something is drawn."""

from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, RED, GREY = "#2a6fbb", "#e07b39", "#4d9a5b", "#c0392b", "#8a9099"


def sheet(title: str) -> Any:
    """An empty figure with the case's title."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left", wrap=True)
    return figure


def axes(figure: Any, horizontal: str, vertical: str, place: tuple[int, int, int] = (1, 1, 1)) -> Any:
    """Axes with labels, a quiet grid and no box; ``place`` is rows, columns, index."""
    result = figure.add_subplot(*place)
    result.set_xlabel(horizontal)
    result.set_ylabel(vertical)
    result.grid(color="#e4e7ea", linewidth=0.8)
    result.set_axisbelow(True)
    result.spines[["top", "right"]].set_visible(False)
    return result


def plain_numbers(picture: Any, *names: str) -> None:
    """1, 2, 5 instead of powers of ten on the named axes ("x", "y") of a logarithmic plot."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in names:
        axis = getattr(picture, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def differences(figure: Any, checks: list[Any], label: str) -> None:
    """Checks of the kind "at most" as dots, one above the other, beside their limits."""
    rows = [check for check in checks if check.reference]
    picture = axes(figure, label, "")
    for place, check in enumerate(rows):
        picture.plot(max(check.measured, 1e-8), place, "o", color=BLUE if check.ok else RED)
        if check.reference < float("inf"):
            picture.plot(check.reference, place, "|", color=GREY)
    picture.set_xscale("log")
    names = [check.quantity.split(":")[0] for check in rows]
    if len(names) > 20:  # a name for each scene
        names = [name.replace(" at ", ",").split(",")[0] for name in names]
        names = ["" if name == before else name for name, before in zip(names, ["", *names], strict=False)]
    picture.set_yticks(range(len(rows)), names, fontsize=6 if len(names) > 20 else 8)


def save(figure: Any, path: Path) -> Path:
    """Writes the picture; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
