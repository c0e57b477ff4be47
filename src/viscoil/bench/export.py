"""Time, size and memory of exports: a made-up run written by the real frame writer, then every format in its own process."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.bench.block import SPACING, edges
from viscoil.io.export import FORMATS, export
from viscoil.io.frame import Frame
from viscoil.io.run import Run

FRAME_TIME = 1 / 60  # [s]
_SCENE = f'title = "export benchmark"\nspacing = {SPACING}\n[time]\nframe_time = {FRAME_TIME!r}\n'
_CHILD = """\
import json, sys
from viscoil.bench.export import measure_here
sys.stdout.write(json.dumps(measure_here(*sys.argv[1:])))
"""


def make_run(folder: Path, particles: int, frames: int) -> Run:
    """A wobbling block of ``particles`` with a ball that moves through it, ``frames`` frames long."""
    run = Run.create(folder, _SCENE)
    random = np.random.default_rng(1)
    x, y, z = edges(particles)
    grid = np.stack(np.meshgrid(np.arange(x), np.arange(y), np.arange(z + 1), indexing="ij"), -1).reshape(-1, 3)
    grid = grid[np.argsort(grid[:, 2], kind="stable")][:particles]
    start = (grid * SPACING + random.uniform(-0.2, 0.2, grid.shape) * SPACING).astype(np.float32)
    spin = random.standard_normal(start.shape).astype(np.float32)
    for index in range(frames):
        run.write_frame(_frame(index, start, spin))
    run.set_status("finished")
    run.close()
    return run


def _frame(index: int, start: np.ndarray, spin: np.ndarray) -> Frame:
    phase = np.float32(0.3 * index)
    count = len(start)
    fields = {
        "position": start + np.float32(0.2 * SPACING) * np.sin(phase + spin),
        "velocity": np.cos(phase + spin),
        "id": np.arange(count, dtype=np.int32),
        "material": np.zeros(count, np.int32),
        "density": 1000 + np.sin(phase + spin[:, 0]),
    }
    pose = np.eye(4)
    pose[0, 3] = 0.01 * index
    ball = {"name": "ball", "pose": pose.tolist(), "shape": {"type": "sphere", "radius": 5 * SPACING}}
    return Frame(
        index, index * FRAME_TIME, 4 * index, fields, SPACING, solids=[ball],
        materials=[{"name": "honey", "colour": [0.9, 0.6, 0.1], "density": 1400.0, "look": "honey"}],
    )  # fmt: skip


def measure_here(folder: str, format: str, what: str, out: str, frames: str = "") -> dict[str, Any]:
    """Export once in this process: seconds, bytes, and the largest and growing memory of the process."""
    run = Run.open(folder)
    memory: list[int] = []
    begin = perf_counter()
    written = export(run, format, out, lambda _: memory.append(_resident()), what, frames or None)
    seconds = perf_counter() - begin
    files = [file for file in (written.rglob("*") if written.is_dir() else [written]) if file.is_file()]
    return {
        "format": format, "frames": len(memory), "seconds": seconds, "bytes": sum(file.stat().st_size for file in files),
        "files": len(files), "peak": max(_peak(), max(memory, default=0)), "resident": memory,
    }  # fmt: skip


def _resident() -> int:
    """Memory of this process now [bytes], 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0
    import resource

    return int(status.read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    """Largest memory of this process so far [bytes]; getrusage would count what ran here before exec too."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(folder: Path, format: str, what: str, out: Path, frames: str = "") -> dict[str, Any]:
    """The same in a process of its own, whose memory is nobody else's."""
    command = [sys.executable, "-c", _CHILD, str(folder), format, what, str(out), frames]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"format": format, "error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout)


def main(
    particles: int = 100_000, frames: int = 100, formats: list[str] | None = None, what: str = "particles",
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Measure every format; a row each."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="viscoil-export-") as place:
        say(f"writing {frames} frames of {particles:,} particles")
        run = make_run(Path(place) / "run", particles, frames)
        if what != "particles":
            say("computing the surfaces (not measured)")
            measure(run.path, "npz", what, Path(place) / "warm")
        for format in formats or list(FORMATS):
            say(f"exporting {format}")
            rows.append(measure(run.path, format, what, Path(place) / format))
    return {"particles": particles, "frames": frames, "what": what, "rows": rows}


def table(result: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """The result as (title, columns, rows of text)."""
    rows = []
    for row in result["rows"]:
        if "error" in row:
            rows.append([row["format"], row["error"], "", "", "", ""])
            continue
        growth = row["resident"][-1] - row["resident"][len(row["resident"]) // 5] if row["resident"] else 0
        rows.append(
            [
                row["format"], f"{1e3 * row['seconds'] / row['frames']:.1f}", f"{row['bytes'] / row['frames'] / 1e6:.2f}",
                f"{row['files']}", f"{row['peak'] / 1e6:.0f}", f"{growth / 1e6:+.1f}",
            ]
        )  # fmt: skip
    title = f"Export of {result['frames']} frames of {result['particles']:,} particles ({result['what']})"
    return title, ["format", "ms/frame", "MB/frame", "files", "peak memory MB", "growth MB"], rows
