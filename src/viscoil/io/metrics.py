"""The metrics table: one row per frame in a plain CSV file, safe against being cut off in the middle of a row."""

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.io.atomic import explain, write_atomic

UNITS = {  # of the columns of metrics.csv; a name also stands for what begins with it (centre_of_mass_x); else a plain number
    "time": "s", "dt": "s", "seconds": "s", "height": "m", "front_x": "m", "extent": "m", "centre_of_mass": "m", "body": "m",
    "speed_max": "m/s", "kinetic_energy": "J", "friction_energy": "J", "momentum": "kg m/s",
    "density_mean": "of rest", "density_max": "of rest", "compression": "%", "density_error": "%", "viscosity_share": "%",
    "volume": "m³", "mesh_volume": "m³",
    "particle_volume": "m³", "volume_ratio": "of particles' volume", "area": "m²", "springs": "per particle",
    "bonds": "per particle", "stiffness": "m/s²",
}  # fmt: skip


def unit_of(column: str) -> str:
    """Unit of a column of metrics.csv, "" for plain numbers. Shares are stored as such, "%" is how to read them."""
    if column in UNITS:
        return UNITS[column]
    stem = next((name for name in UNITS if column.startswith(f"{name}_")), "")
    return UNITS.get(stem, "")


class MetricsTable:
    """Rows by frame number. New rows are appended; a row for a known frame replaces the old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = ["frame"]
        self.rows: dict[int, dict[str, str]] = {}
        self._whole = False  # whether the file holds exactly these rows, ready for appending
        self._load()

    def _load(self) -> None:
        try:
            text = self.path.read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return
        # A row that does not end in a newline was cut off by a crash: its frame will be computed again.
        complete = text[: text.rfind("\n") + 1]
        lines = [line for line in csv.reader(io.StringIO(complete)) if line]
        if not lines or "frame" not in lines[0]:
            return
        self.names = lines[0]
        kept = [line for line in lines[1:] if len(line) == len(self.names)]
        for line in kept:
            row = dict(zip(self.names, line, strict=True))
            if row["frame"].isdigit():
                self.rows[int(row["frame"])] = row
        self._whole = complete == text and len(self.rows) == len(lines) - 1

    def add(self, values: dict[str, Any]) -> None:
        """Write one row; ``values`` needs "frame". Unknown names become new columns, None and NaN empty fields."""
        frame = int(values["frame"])
        row = {str(name): _text(value) for name, value in values.items()}
        new_names = [name for name in row if name not in self.names]
        append = self._whole and not new_names and frame > max(self.rows, default=-1)
        self.names += new_names
        self.rows[frame] = row
        if not append:
            write_atomic(self.path, self._csv(self.names, *self._sorted()).encode())
            self._whole = True
            return
        try:
            with open(self.path, "ab") as file:
                file.write(self._csv(self._line(row)).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._whole = False
            raise RunFolderError(explain(error, self.path)) from error

    def columns(self) -> dict[str, np.ndarray]:
        """One array per column, ordered by frame: integers or floats (nan where a value is missing), else strings."""
        ordered = [self.rows[frame] for frame in sorted(self.rows)]
        return {name: _column([row.get(name, "") for row in ordered]) for name in self.names}

    def _sorted(self) -> list[list[str]]:
        return [self._line(self.rows[frame]) for frame in sorted(self.rows)]

    def _line(self, row: dict[str, str]) -> list[str]:
        return [row.get(name, "") for name in self.names]

    @staticmethod
    def _csv(*lines: list[str]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        return text.getvalue()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return ""
        return str(value)  # the shortest digits that give the same number back, also for float32
    return " ".join(str(value).split())


def _column(texts: list[str]) -> np.ndarray:
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(text) if text else np.nan for text in texts], dtype=np.float64)
    except ValueError:
        return np.array(texts, dtype=str)
