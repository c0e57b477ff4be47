"""Time of pictures: the coiling rope, traced and quick, with what the time goes to."""

import json as encoder
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from viscoil.bench import machine
from viscoil.io.frame import Frame
from viscoil.looks import PARTICLE_LOOKS
from viscoil.render.job import Settings, draw, scenery
from viscoil.render.specimen import coiling_rope

LOOKS_MEASURED = ("cream", "honey", "ellipsoids")
QUICK = ("cream", "honey", "particles", "ellipsoids")
ROPE_VOLUME = 3.85e-5  # [m³] of the specimen, which gives the spacing for a number of particles


def specimen(particles: int) -> Frame:
    """The coiling rope with about so many ``particles``."""
    return coiling_rope((ROPE_VOLUME / particles) ** (1 / 3))


def measure(frame: Frame, settings: Settings, rounds: int) -> dict[str, Any]:
    """Best of several pictures: seconds of each part, in all, and of processors. One before does not count: it compiles.

    Seconds of processors, summed over all cores, hardly depend on what else the machine does.
    """
    shared = scenery([frame], settings)
    draw(frame, replace(settings, samples=1), shared)
    best: dict[str, Any] = {}
    for _ in range(rounds):
        begin = process_time()
        parts = draw(frame, settings, shared).seconds
        used = process_time() - begin
        least = min(used, best.get("processors", used))
        if not best or sum(parts.values()) < best["total"]:
            best = parts | {"total": sum(parts.values())}
        best["processors"] = least
    return best


def main(
    particles: int = 100_000, settings: Settings | None = None, rounds: int = 3, traced: bool = True,
    json: Path | None = None, say: Callable[[str], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure everything; also written to ``json`` when given."""
    settings = settings or Settings(size=(800, 450))
    frame = specimen(particles)
    rows = []
    wanted = [(name, False) for name in LOOKS_MEASURED if traced] + [(name, True) for name in QUICK]
    for name, fast in wanted:
        chosen = replace(settings, look=name, fast=fast, draw=name if name in PARTICLE_LOOKS else "surface").checked()
        if say:
            say(f"{name}, {'quick' if fast else 'traced'}")
        rows.append({"look": name, "quick": fast} | measure(frame, chosen, rounds))
    about = machine.describe()
    notes = []
    if about["load"] > 0.5 * about["cores"]:
        notes.append(f"The machine was busy (load {about['load']:g} on {about['cores']} cores): times are too long.")
    result = {
        "particles": len(frame), "size": list(settings.size), "samples": settings.samples, "rows": rows, "machine": about,
        "notes": notes,
    }  # fmt: skip
    if json is not None:
        json.write_text(encoder.dumps(result, indent=2) + "\n")
    return result


def table(result: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """Title, column names and rows for printing."""
    parts = ["surface", "ellipsoids", "build", "trace", "denoise", "draw", "total", "processors"]
    width, height = result["size"]
    title = f"Seconds per picture, {result['particles']:,} particles, {width}x{height}, {result['samples']} samples when traced"
    rows = []
    for row in result["rows"]:
        cells = [f"{row[part]:.2f}" if part in row else "" for part in parts]
        rows.append([row["look"], "quick" if row["quick"] else "traced", *cells])
    return title, ["look", "way", *parts], rows
