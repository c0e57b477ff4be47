"""Colours of particles and vertices: by material, or by any quantity they carry, with a legend that says what it means."""

import html
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from viscoil.controls import readable
from viscoil.io.columns import von_mises

MATERIAL = "material"
FADE = 0.97  # an automatic range shrinks by this factor per update at most: no flicker
MAPS = {"speed": "speed", "density": "coolwarm", "stress": "inferno", "conformation": "viridis"}
OTHER_MAP = "plasma"
TITLES = {"stress": "stress (von Mises)"}  # above the legend, where the choice's own name does not say which number it is
# Deep water to foam: dark where the fluid rests, bright where it is fast.
SPEED = ((0.07, 0.16, 0.36), (0.10, 0.36, 0.66), (0.16, 0.60, 0.80), (0.55, 0.85, 0.86), (1.0, 1.0, 0.96))
CELL, MOST_CELLS = 1.6, 96  # edge of a cell in spacings; cells along the longest edge, at most
LIGHT = np.array([-0.6, 1.0, 0.3])  # where it comes from, y up


@cache
def table(name: str) -> np.ndarray:
    """(256, 3) uint8 colours of a map."""
    if name == "speed":
        ends = np.linspace(0, 1, len(SPEED))
        rows = np.stack([np.interp(np.linspace(0, 1, 256), ends, channel) for channel in zip(*SPEED, strict=True)], axis=1)
    else:
        from matplotlib import colormaps  # here: it takes a moment to load

        rows = colormaps[name](np.linspace(0, 1, 256))[:, :3]
    return np.round(rows * 255).astype(np.uint8)


def choices(fields: dict[str, str]) -> list[str]:
    """What can be coloured by, given the quantities (name -> unit) that frames can carry."""
    return [MATERIAL, *("speed" if name == "velocity" else name for name in fields)]


def carried(choice: str) -> tuple[str, ...]:
    """The fields a frame must carry for this choice."""
    return () if choice in (MATERIAL, "speed") else (choice,)


def unit_of(choice: str, fields: dict[str, str]) -> str:
    """Unit of the numbers shown."""
    if choice == "density":
        return "relative to rest"
    return "m/s" if choice == "speed" else fields.get(choice, "").replace("^3", "³").replace("^2", "²")


def scalars(choice: str, fields: dict[str, np.ndarray], materials: list[dict[str, Any]]) -> np.ndarray | None:
    """One number per particle: itself, the length of a vector, the size of a tensor; None when the field is not there.

    Of a stress that is von Mises' equivalent √(3/2 s:s) with the deviator s, of any other tensor its largest principal
    value (of a conformation, the square of the largest stretch). Densities are relative to those at rest.
    """
    name = "velocity" if choice == "speed" else choice
    if name not in fields:
        return None
    values = np.asarray(fields[name], np.float32)
    if choice == "density":
        rest = np.array([float(m.get("density", 1.0)) for m in materials] or [1.0], np.float32)
        which = np.asarray(fields.get(MATERIAL, np.zeros(len(values), int)), int)
        return values / rest[np.clip(which, 0, len(rest) - 1)]
    if values.ndim == 1:
        return values
    tensors = _tensors(values)
    if tensors is None:
        return np.linalg.norm(values.reshape(len(values), -1), axis=1)
    if "stress" in name:
        return von_mises(tensors)
    return np.linalg.eigvalsh(tensors)[:, -1].astype(np.float32)


def _tensors(values: np.ndarray) -> np.ndarray | None:
    """(n, 3, 3) symmetric tensors out of (n, 3, 3), (n, 9) or (n, 6: xx yy zz xy yz zx); None for vectors."""
    if values.ndim == 3 and values.shape[1:] == (3, 3):
        full = values
    elif values.ndim == 2 and values.shape[1] == 9:
        full = values.reshape(-1, 3, 3)
    elif values.ndim == 2 and values.shape[1] == 6:
        xx, yy, zz, xy, yz, zx = values.T
        full = np.stack([xx, xy, zx, xy, yy, yz, zx, yz, zz], axis=1).reshape(-1, 3, 3)
    else:
        return None
    return (full + full.transpose(0, 2, 1)) / 2


@dataclass
class Colouring:
    """A choice of colours, and the range it has seen."""

    choice: str = MATERIAL
    unit: str = ""
    fixed: tuple[float, float] | None = None  # a range that was asked for
    low: float = 0.0
    high: float = 0.0
    materials: list[dict[str, Any]] = field(default_factory=list)

    def colours(self, fields: dict[str, np.ndarray], materials: list[dict[str, Any]]) -> np.ndarray:
        """(n, 3) uint8."""
        self.materials = materials
        count = len(next(iter(fields.values()))) if fields else 0
        values = None if self.choice == MATERIAL else scalars(self.choice, fields, materials)
        if values is None:
            return _by_material(fields, materials, count)
        self._widen(values)
        share = (values - self.low) / max(self.high - self.low, 1e-30)
        where = (np.clip(np.nan_to_num(share), 0, 1) * 255).astype(np.uint8)
        return table(MAPS.get(self.choice, OTHER_MAP))[where]

    def _widen(self, values: np.ndarray) -> None:
        """Follows the values: outwards at once, inwards slowly. Densities keep 1 in the middle of their map."""
        if self.fixed is not None:
            self.low, self.high = self.fixed
            return
        finite = values[np.isfinite(values)]
        if not len(finite):
            return
        if self.choice == "density":
            reach = max(float(np.quantile(np.abs(finite - 1), 0.98)), 0.02, (self.high - 1) * FADE)
            self.low, self.high = 1 - reach, 1 + reach
            return
        low, high = (float(q) for q in np.quantile(finite, [0.01, 0.995]))
        low = min(low, 0.0) if low > 0 and low < 0.5 * high else low  # most things are counted from zero
        self.low = min(low, self.low * FADE) if self.low else low
        self.high = max(high, self.low + (self.high - self.low) * FADE, self.low + 1e-12)

    def forget(self) -> None:
        """Starts again with the range."""
        self.low = self.high = 0.0

    def legend(self, made_of: dict[str, str] | None = None) -> str:
        """HTML of a bar with its numbers, or of the materials' names. made_of: material -> preset that it is now."""
        if self.choice == MATERIAL:
            rows = "".join(
                f'<span style="display:inline-block;margin-right:0.9em"><span style="{_swatch(m)}"></span>'
                f"{html.escape(_called(str(m.get('name', '')), made_of or {}))}</span>"
                for m in self.materials
            )
            return f'<div style="{_BOX}">{rows}</div>'
        stops = ",".join("rgb({},{},{})".format(*row) for row in table(MAPS.get(self.choice, OTHER_MAP))[::15])
        middle = (self.low + self.high) / 2
        numbers = "".join(f"<span>{readable(value)}</span>" for value in (self.low, middle, self.high))
        name = TITLES.get(self.choice, self.choice.replace("_", " "))
        title = html.escape(f"{name}, {self.unit}" if self.unit else name)
        return (
            f'<div style="{_BOX}"><div style="opacity:0.75;margin-bottom:0.25em">{title}</div>'
            f'<div style="height:0.7em;border-radius:3px;background:linear-gradient(90deg,{stops})"></div>'
            f'<div style="display:flex;justify-content:space-between;margin-top:0.15em">{numbers}</div></div>'
        )


_BOX = "padding:0 0.75em 0.6em 0.75em;font-size:0.85em;line-height:1.3"


def _called(name: str, made_of: dict[str, str]) -> str:
    """A material by its name, and by what it is made of where that says something else."""
    preset = made_of.get(name, "")
    return f"{name}: {preset}" if preset and preset != name else name


def _swatch(material: dict[str, Any]) -> str:
    red, green, blue = (round(255 * float(c)) for c in material.get("colour", (0.5, 0.5, 0.5)))
    return (
        f"display:inline-block;width:0.7em;height:0.7em;border-radius:50%;margin-right:0.35em;"
        f"background:rgb({red},{green},{blue})"
    )


def _by_material(fields: dict[str, np.ndarray], materials: list[dict[str, Any]], count: int) -> np.ndarray:
    rows = np.array([m.get("colour", (0.3, 0.6, 0.9)) for m in materials] or [(0.3, 0.6, 0.9)], float)
    colours = np.round(255 * rows).astype(np.uint8)
    which = np.asarray(fields.get(MATERIAL, np.zeros(count, int)), int)
    return colours[np.clip(which, 0, len(colours) - 1)]


def lit(colours: np.ndarray, position: np.ndarray, spacing: float, up_axis: int) -> np.ndarray:
    """Colours as under a lamp: points have no surface, but the fluid they are part of has.

    The outside is where the particles thin out on a coarse grid; one look-up per particle, so that it keeps up.
    """
    if len(position) < 8 or spacing <= 0:
        return colours
    low, high = bounds(position)
    cell = float(max(CELL * spacing, np.max(high - low) / MOST_CELLS))
    cells = ((position - (low - 2.5 * cell)) * np.float32(1 / cell)).astype(np.int32)
    shape = tuple(int(n) for n in np.ceil((high - low) / cell) + 6)
    flat = (cells[:, 0] * shape[1] + cells[:, 1]) * shape[2] + cells[:, 2]
    counts = np.bincount(flat, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)
    near = _blurred(np.minimum(counts * np.float32((spacing / cell) ** 3), 1).astype(np.float32))
    wide = _blurred(_blurred(near))
    slope = np.stack(np.gradient(near + wide), axis=-1)
    length = np.sqrt(np.einsum("...i,...i->...", slope, slope))
    light = LIGHT if up_axis == 1 else LIGHT[[0, 2, 1]] * [1, -1, 1]
    facing = -(slope @ (light / np.linalg.norm(light)).astype(np.float32)) / np.maximum(length, 0.08)
    brightness = np.clip(0.78 + 0.34 * facing - 0.10 * np.minimum(wide, 1), 0.25, 1.25)
    shade = (brightness * 200).astype(np.uint16).reshape(-1)[flat]
    return np.minimum(colours * shade[:, None] // 200, 255).astype(np.uint8)


def bounds(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box around points (n, 3); by columns, which is ten times faster than along the rows."""
    columns = np.ascontiguousarray(position.T)
    return columns.min(axis=1), columns.max(axis=1)


def _blurred(grid: np.ndarray) -> np.ndarray:
    """Mean over three cells along each axis; empty outside."""
    for axis in range(3):
        total = grid.copy()
        front, back = [slice(None)] * 3, [slice(None)] * 3
        front[axis], back[axis] = slice(1, None), slice(None, -1)
        total[tuple(front)] += grid[tuple(back)]
        total[tuple(back)] += grid[tuple(front)]
        grid = total / np.float32(3)
    return grid
