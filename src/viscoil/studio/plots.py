"""Curves of what the frames measured, over simulated time."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST = 1200  # points kept; when there are more, every second one is dropped
CURVES = {  # name -> column of the metrics, factor, unit, colour
    "height": ("height", 1.0, "m", "#5cc8ff"),
    "kinetic energy": ("kinetic_energy", 1.0, "J", "#ffb454"),
    "density error": ("compression", 100.0, "%", "#ff6b81"),
}


@dataclass
class History:
    """Rows of metrics, thinned out as they grow, so that an endless run takes bounded memory."""

    rows: list[tuple[float, ...]] = field(default_factory=list)  # time and one number per curve
    _every: int = 1
    _seen: int = 0

    def add(self, row: dict[str, Any]) -> None:
        """One frame's metrics."""
        if self._seen % self._every == 0:
            numbers = [float(row.get(column, 0.0)) * factor for column, factor, *_ in CURVES.values()]
            self.rows.append((float(row["time"]), *numbers))
        self._seen += 1
        if len(self.rows) > MOST:
            self.rows = self.rows[::2]
            self._every *= 2

    def clear(self) -> None:
        """Forgets everything."""
        self.rows, self._every, self._seen = [], 1, 0

    def columns(self) -> np.ndarray:
        """(1 + curves, n) float64: times, then one row per curve; two points at least, for plots that want a line."""
        rows = self.rows or [(0.0,) * (1 + len(CURVES))]
        rows = rows if len(rows) > 1 else [*rows, (rows[0][0] + 1e-9, *rows[0][1:])]
        return np.nan_to_num(np.array(rows, float).T)


class Plots:
    """The charts of a page."""

    def __init__(self, gui: Any):
        axis = {"stroke": "#9aa3ad", "grid": {"stroke": "#2f343b", "width": 1}, "ticks": {"show": False}, "size": 46}
        self._charts = []
        for name, (_, _, unit, colour) in CURVES.items():
            line = {"label": f"{name}, {unit}", "stroke": colour, "width": 1.5, "points": {"show": False}}
            self._charts.append(
                gui.add_uplot(
                    (np.zeros(2), np.zeros(2)), ({"label": "time, s"}, line),
                    title=f"{name}, {unit}", scales={"x": {"time": False}}, legend={"show": False},
                    axes=({**axis, "size": 24}, axis), height=150, padding=(4, 12, 0, 0),
                )
            )  # fmt: skip
        self._drawn: tuple[int, float] | None = None

    def draw(self, history: History) -> None:
        """Shows the history, if it has changed."""
        latest = (len(history.rows), history.rows[-1][0] if history.rows else 0.0)
        if latest == self._drawn:
            return
        self._drawn = latest
        columns = history.columns()
        for row, chart in enumerate(self._charts, 1):
            chart.data = (columns[0], columns[row])
