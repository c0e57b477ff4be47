"""What tests of pictures share: small frames and runs, and questions about images."""

from pathlib import Path
from typing import Any

import numpy as np

from viscoil.io.frame import Frame
from viscoil.io.run import Run

SIZE = (96, 54)
SCENE = """
title = "Two blocks"
spacing = 0.1

[time]
frames = 3
frame_time = 0.02

[[fluid]]
material = "water"
shape = { type = "box", size = [1, 1, 1], position = [0, 0.5, 0] }
"""
WATER = {"name": "water", "colour": (0.25, 0.56, 0.82), "look": "water", "density": 998.0}


def block(
    low: tuple[float, float, float] = (0, 0, 0), count: tuple[int, int, int] = (8, 8, 8), spacing: float = 0.1,
    index: int = 0, **more: Any,
) -> Frame:  # fmt: skip
    """A block of particles that stands on ``low``."""
    position = np.stack(np.meshgrid(*[np.arange(n) + 0.5 for n in count], indexing="ij"), -1).reshape(-1, 3) * spacing + low
    n = len(position)
    fields = {
        "position": position.astype(np.float32), "velocity": np.zeros((n, 3), np.float32),
        "id": np.arange(n, dtype=np.int32), "material": np.zeros(n, np.int32),
    }  # fmt: skip
    more = {"materials": [dict(WATER)]} | more
    return Frame(index, 0.02 * index, index, fields, spacing, **more)


def small_run(folder: Path, frames: int = 3) -> Run:
    """A run whose block moves to the right."""
    run = Run.create(folder, SCENE)
    for index in range(frames):
        run.write_frame(block((0.4 * index, 0, 0), (5, 4, 5), index=index))
    run.set_status("finished")
    run.close()
    return run


def unlike(image: np.ndarray, empty: np.ndarray, by: int = 12) -> np.ndarray:
    """Where ``image`` differs clearly from the ``empty`` stage."""
    return np.abs(image.astype(int) - empty.astype(int)).max(axis=2) > by
