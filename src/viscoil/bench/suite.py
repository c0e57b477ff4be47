"""The whole record of a machine: every part in a process of its own, one after the other, each with its file.

Times of a GPU are taken while nothing else runs on it. What one part has compiled is read from the cache by the next. A part
that fails or runs out of time keeps the rows it had written, and the others go on.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

PARTS = ("papers", "stages", "scaling", "convergence", "peers")  # what was asked for first
ON_GPU = ("papers", "stages", "scaling", "convergence")


def default_parts(gpu: bool) -> tuple[str, ...]:
    """Peers run on CPUs only."""
    return ON_GPU if gpu else PARTS


def command_of(part: str, folder: Path, device: str, threads: int | None) -> list[str]:
    """Arguments behind ``viscoil`` that measure a part."""
    more = ["--threads", str(threads)] if threads else []
    return ["bench", part, "--device", device, *more, "--json", str(folder / f"{part}.json")]


def main(
    folder: Path, device: str, threads: int | None, parts: tuple[str, ...], budget: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Runs ``parts`` into ``folder``, within ``budget`` seconds if given. {part: {"seconds", "code"}}; None: out of time."""
    folder.mkdir(parents=True, exist_ok=True)
    begin, done = perf_counter(), {}
    for part in parts:
        left = None if budget is None else budget - (perf_counter() - begin)
        start = perf_counter()
        code: int | None = None
        if left is None or left > 0:
            say(f"--- {part}" + (f", {left:.0f} s left" if left is not None else ""))
            try:
                code = subprocess.run(
                    [sys.executable, "-m", "viscoil", *command_of(part, folder, device, threads)], timeout=left
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        done[part] = {"seconds": perf_counter() - start, "code": code}
        say(f"--- {part}: {'out of time' if code is None else f'exit code {code}'}, {done[part]['seconds']:.0f} s")
    return done
