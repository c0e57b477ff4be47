"""Time of surfaces: a rope that coils on a puddle, of any number of particles, with all its quantities carried over."""

import gc
import json as encoder
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import machine
from viscoil.io.frame import Frame
from viscoil.scene.size import available_memory, readable
from viscoil.surface.anisotropy import measure as measure_spread
from viscoil.surface.job import COMPACT, memory_needed
from viscoil.surface.reconstruct import surface

COUNTS = [15_000, 100_000, 1_000_000]
ROUNDS = 3
LARGE = 2_000_000  # particles from which once is enough
QUALITIES = ("film", "live")
# The body in units of the cube root of the number of particles: the same shape for all of them.
PUDDLE_RADIUS, PUDDLE_HEIGHT = 0.846, 0.2
COIL_RADIUS, ROPE_RADIUS, TURNS, PITCH = 0.35, 0.11, 6.0, 0.23
THREAD_RADIUS, THREAD_HEIGHT = 0.05, 1.0
JITTER = 0.2  # spacings


def body(particles: int) -> Frame:
    """About ``particles`` particles, one unit apart: a puddle, a rope coiled up on it, a thread that feeds the coil."""
    s = particles ** (1 / 3)
    top = PUDDLE_HEIGHT + TURNS * PITCH + THREAD_HEIGHT
    across = np.arange(-np.ceil(PUDDLE_RADIUS * s), np.ceil(PUDDLE_RADIUS * s) + 1, dtype=np.float32)
    x, z = np.meshgrid(across, across, indexing="ij")
    around = (np.arctan2(z, x) / (2 * np.pi)) % 1
    out = np.hypot(x, z)
    found = []
    for y in np.arange(0.5, top * s, 1.0, dtype=np.float32):  # slice by slice: the box around it is eight times as large
        turn = (y / s - PUDDLE_HEIGHT) / PITCH - around
        from_rope = np.hypot(out / s - COIL_RADIUS, (turn - np.clip(np.round(turn), 0, TURNS - 1)) * PITCH)
        inside = (from_rope < ROPE_RADIUS) | ((y < PUDDLE_HEIGHT * s) & (out < PUDDLE_RADIUS * s))
        inside |= (np.hypot(x / s - COIL_RADIUS, z / s) < THREAD_RADIUS) & (y > (PUDDLE_HEIGHT + TURNS * PITCH - PITCH) * s)
        found.append(np.stack([x[inside], np.full(inside.sum(), y), z[inside]], axis=1))
    position = np.concatenate(found)
    random = np.random.default_rng(0)
    position += random.uniform(-JITTER, JITTER, position.shape).astype(np.float32)
    velocity = np.stack([-position[:, 2], -position[:, 1], position[:, 0]], axis=1)
    materials = [{"name": "rope", "colour": [0.9, 0.6, 0.2]}, {"name": "puddle", "colour": [0.8, 0.7, 0.5]}]
    fields = {
        "position": position, "velocity": velocity, "density": np.full(len(position), 1400, np.float32),
        "material": (position[:, 1] < PUDDLE_HEIGHT * s).astype(np.int32),
    }  # fmt: skip
    return Frame(0, 0.0, 0, fields, spacing=1.0, materials=materials)


def measure(particles: int, qualities: list[str], rounds: int) -> dict[str, Any]:
    """Best times of one size [s]; what does not fit into the free memory is left out and named under "left_out"."""
    frame = body(particles)
    row: dict[str, Any] = {"particles": len(frame), "left_out": []}
    rounds = rounds if len(frame) < LARGE else 1
    for quality in qualities:
        need, room = memory_needed(len(frame), quality, COMPACT), available_memory()
        if room is not None and need > room:
            row["left_out"].append(f"{quality} needs about {readable(need)}, {readable(room)} are free")
            continue
        taken, mesh = [], None
        for _ in range(rounds):
            mesh = None  # before the next one is made: two would need twice the memory
            begin = perf_counter()
            mesh = surface(frame, quality)
            taken.append(perf_counter() - begin)
        assert mesh is not None
        row[quality] = {"seconds": min(taken), "vertices": len(mesh), "volume_ratio": mesh.volume_ratio()}
        del mesh
        gc.collect()
    taken = []
    for _ in range(rounds + 1):  # the first time compiles
        begin = perf_counter()
        measure_spread(frame["position"], frame.spacing)
        taken.append(perf_counter() - begin)
    row["ellipsoids"] = {"seconds": min(taken)}
    return row


def run(
    particles: list[int] | None = None, qualities: list[str] | None = None, rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Everything that is measured, as plain values; ``say`` hears what is going on."""
    backend.current()
    result: dict[str, Any] = {"format": 1, "kind": "surface", "machine": machine.describe(), "rows": [], "notes": []}
    for count in particles or COUNTS:
        say(f"{count:,} particles")
        row = measure(count, list(qualities or QUALITIES), rounds)
        result["rows"].append(row)
        result["notes"] += [f"{row['particles']:,} particles: {text}: left out." for text in row["left_out"]]
        gc.collect()
    load = result["machine"]["load"]
    if load > 0.5 * backend.cores():
        result["notes"].append(f"The machine was busy (load {load:g} on {backend.cores()} cores): times are too long.")
    return result


def main(
    particles: list[int] | None = None, qualities: list[str] | None = None, json: Path | None = None, rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Measures, writes ``json`` if a file is given, and returns what was measured."""
    result = run(particles, qualities, rounds, say)
    if json is not None:
        Path(json).write_text(encoder.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def table(result: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """(title, columns, rows of text)."""
    qualities = [name for name in QUALITIES if any(name in row for row in result["rows"])]
    columns = ["particles"]
    for name in qualities:
        columns += [f"{name} [s]", "vertices", "volume"]
    rows = []
    for row in result["rows"]:
        cells = [f"{row['particles']:,}"]
        for name in qualities:
            if found := row.get(name):
                cells += [f"{found['seconds']:.2f}", f"{found['vertices']:,}", f"{found['volume_ratio']:.3f}"]
            else:
                cells += ["-"] * 3
        rows.append([*cells, f"{row['ellipsoids']['seconds']:.3f}"])
    about = result["machine"]
    hardware = about["gpu"] or f"{about['cpu']}, {about['cores']} cores"
    return f"Surfaces with their quantities, {hardware}", [*columns, "ellipsoids [s]"], rows
