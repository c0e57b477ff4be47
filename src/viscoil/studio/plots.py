"""Curves of what the frames measured, over simulated time."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

AHEAD = 0.1  # time [s] an empty plot shows
LEAST_PERCENT = 0.1  # the highest number of an axis in per cent, at least
PREFIXES = ((1.0, ""), (1e3, "m"), (1e6, "µ"), (1e9, "n"))
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
MOST = 1200  # points kept; when there are more, every second one is dropped
CURVES = {  # name -> column of the metrics, factor, unit, colour
    "height": ("height", 1.0, "m", "#5cc8ff"),
    "kinetic energy": ("kinetic_energy", 1.0, "J", "#ffb454"),
    "compression": ("compression", 100.0, "%", "#ff6b81"),
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
        """(1 + curves, n) float64: times, then one row per curve. At least two, for plots that want a line; of those that
        are not there yet the numbers are nan, which is not drawn."""
        start = self.rows[0][0] if self.rows else 0.0
        none = ((start + k * AHEAD, *(np.nan,) * len(CURVES)) for k in range(len(self.rows), 2))
        return np.array([*self.rows, *none], float).T


@dataclass(frozen=True)
class Axis:
    """How one curve is drawn: its numbers times ``factor``, from ``low`` to ``high``, in ``unit``."""

    factor: float
    unit: str
    low: float  # in that unit
    high: float


def axis_of(values: np.ndarray, unit: str) -> Axis:
    """An axis from zero to a round number above all values, in a unit in which its ticks need few digits.

    From zero, because what a jet does to the highest point is nothing beside the height; and held until a value leaves it.
    """
    finite = values[np.isfinite(values)]
    top = float(max(np.max(finite, initial=0.0), 0.0))
    bottom = float(max(-np.min(finite, initial=0.0), 0.0))
    largest = max(top, bottom)
    factor, prefix = 1.0, ""
    if unit == "%":
        top = max(top, LEAST_PERCENT)
    elif largest > 0:
        factor, prefix = next((p for p in PREFIXES if largest * p[0] >= 0.1), PREFIXES[-1])
    return Axis(factor, prefix + unit, -_round_up(bottom * factor), _round_up(top * factor) or 1.0 * (bottom == 0))


def _round_up(value: float) -> float:
    """The next larger round number; 0 stays 0."""
    if value <= 0:
        return 0.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(n * power for n in ROUND if n * power >= value * (1 - 1e-9)))


class Plots:
    """The charts of a page."""

    def __init__(self, gui: Any):
        axis = {"stroke": "#9aa3ad", "grid": {"stroke": "#2f343b", "width": 1}, "ticks": {"show": False}, "size": 46}
        self._charts = []
        for name, (_, _, unit, colour) in CURVES.items():
            line = {"label": name, "stroke": colour, "width": 1.5, "points": {"show": False}}
            chart = gui.add_uplot(
                (np.zeros(2), np.zeros(2)), ({"label": "time, s"}, line), title=f"{name}, {unit}", legend={"show": False},
                axes=({**axis, "size": 24}, axis), height=150, padding=(10, 12, 0, 0),
            )  # fmt: skip
            self._charts.append(chart)
        self._axes: list[tuple[Axis, float] | None] = [None] * len(self._charts)
        self._drawn: Any = None
        self.draw(History())

    def draw(self, history: History) -> None:
        """Shows the history, if it has changed."""
        latest = (len(history.rows), history.rows[-1:])
        if latest == self._drawn:
            return
        self._drawn = latest
        columns = history.columns()
        # Told, not left to the browser: that keeps the share of the time it showed before, whatever came since.
        end = _round_up(columns[0, -1])
        for k, (chart, (name, (_, _, unit, _))) in enumerate(zip(self._charts, CURVES.items(), strict=True)):
            values = columns[k + 1]
            axis = axis_of(values, unit)
            if (axis, end) != self._axes[k]:
                self._axes[k] = axis, end
                chart.title = f"{name}, {axis.unit}"
                chart.scales = {"x": {"time": False, "range": (0.0, end)}, "y": {"range": (axis.low, axis.high)}}
            chart.data = (columns[0], values * axis.factor)
