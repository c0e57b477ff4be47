"""Printing: tables for people at a terminal, plain lines for everything else."""

import math
import numbers
import sys
from collections.abc import Iterable, Sequence
from typing import Any

DIGITS = 4  # that count, of numbers for people


def is_terminal(stream: Any = None) -> bool:
    """Is anybody looking?"""
    stream = stream or sys.stdout
    return bool(getattr(stream, "isatty", lambda: False)())


def names(rows: Iterable[tuple[str, str]], heading: str = "") -> None:
    """Names with a summary each; piped, the names alone, one per line, and indented where they stand under a heading."""
    rows = list(rows)
    if not is_terminal():
        if heading:
            print(f"{heading}:")
        for name, _ in rows:
            print(f"  {name}" if heading else name)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=heading or None, title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column()
    for name, summary in rows:
        table.add_row(name, summary)
    Console().print(table)


def pairs(rows: Iterable[tuple[str, Any]], stream: Any = None) -> None:
    """``key  value`` lines, aligned; on stdout, or on ``stream``."""
    rows = [(key, str(value)) for key, value in rows if value not in (None, "")]
    width = max((len(key) for key, _ in rows), default=0)
    for key, value in rows:
        print(f"{key:<{width}}  {value}", file=stream)


def groups(found: Iterable[tuple[str, Iterable[tuple[str, Any]]]]) -> None:
    """Headings with ``key  value`` lines below, all aligned; empty values and groups are left out."""
    kept = [(title, [(key, str(value)) for key, value in rows if value not in (None, "")]) for title, rows in found]
    width = max((len(key) for _, rows in kept for key, _ in rows), default=0)
    for title, rows in kept:
        if rows:
            print(title)
        for key, value in rows:
            print(f"  {key:<{width}}  {value}")


_SCALES = {  # unit -> (factor from SI, unit people read), the largest first
    "s": ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")), "m": ((1.0, "m"), (1e-3, "mm"), (1e-6, "µm")),
    "m/s": ((1.0, "m/s"), (1e-3, "mm/s"), (1e-6, "µm/s")), "J": ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ")),
    "m³": ((1.0, "m³"), (1e-3, "l"), (1e-6, "ml"), (1e-9, "µl")), "m²": ((1.0, "m²"), (1e-4, "cm²"), (1e-6, "mm²")),
    "kg m/s": ((1.0, "kg m/s"), (1e-3, "g m/s"), (1e-6, "mg m/s")), "%": ((0.01, "%"),),
}  # fmt: skip


def quantity(value: Any, unit: str = "") -> str:
    """A number of SI ``unit`` as people read it: ``12.5 mm``, ``4,096``, ``1.02 of rest``; a share with unit "%" in percent.

    Of several numbers the largest says the unit and how many digits count: ``0, 193.9, 0.2 mm``.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return f"{int(value):,} {unit}".strip()
    given = [float(number) for number in (value if isinstance(value, (list, tuple)) else [value])]
    largest = max(map(abs, given))
    scales = _SCALES.get(unit, ((1.0, unit),))
    factor, name = next((scale for scale in scales if largest >= 0.9995 * scale[0]), scales[-1] if largest else scales[0])
    decimals = DIGITS - 1 - math.floor(math.log10(largest / factor)) if 0 < largest < math.inf else 0
    rounded = [round(number / factor, decimals) + 0.0 for number in given]  # + 0.0: no "-0"
    texts = [f"{number:,.0f}" if number.is_integer() else f"{number:,.{DIGITS}g}" for number in rounded]
    return f"{', '.join(texts)} {name}".strip()


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """A table with a header; piped, its columns are aligned with spaces, so it also reads well in a file."""
    cells = [[str(column) for column in columns], *([str(cell) for cell in row] for row in rows)]
    if is_terminal():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        drawn = Table(*cells[0], title=title or None, title_justify="left", box=SIMPLE_HEAD)
        for row in cells[1:]:
            drawn.add_row(*row)
        Console().print(drawn)
        return
    if title:
        print(f"\n{title}")
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def duration(seconds: float) -> str:
    """``1:05`` or ``2:03:10``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def about(seconds: float) -> str:
    """An estimate in words: ``40 s``, ``6 min``, ``1 h 34 min``."""
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
