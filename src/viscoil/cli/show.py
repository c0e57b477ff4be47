"""Printing: tables for people at a terminal, plain lines for everything else."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any


def is_terminal(stream: Any = None) -> bool:
    """Is anybody looking?"""
    stream = stream or sys.stdout
    return bool(getattr(stream, "isatty", lambda: False)())


def names(rows: Iterable[tuple[str, str]], heading: str = "") -> None:
    """Names with a summary each; piped, the names alone, one per line."""
    rows = list(rows)
    if not is_terminal():
        for name, _ in rows:
            print(name)
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
