"""A specimen to show looks with: a rope of fluid that coils onto its own puddle. Made by a formula, not simulated."""

from typing import Any

import numpy as np

from viscoil.io.frame import Frame

ROPE = 0.0036  # radius of the rope where it lies [m]
COIL = 0.0125  # radius of the lowest loop [m]
LOOPS = 6
HEIGHT = 0.085  # of the nozzle above the ground [m]
PUDDLE = (0.034, 0.0062)  # radius and thickness [m]


def coiling_rope(spacing: float = 0.0012, material: dict[str, Any] | None = None) -> Frame:
    """Particles ``spacing`` [m] apart that fill a coiling rope and its puddle: 8k at 1.5 mm, 100k at 0.64 mm."""
    line, radius = _rope()
    cells = np.concatenate([_swept(line, radius, spacing), _puddle(spacing)])
    cells = np.unique(cells, axis=0)
    random = np.random.default_rng(7)  # a perfect lattice would show in the surface
    position = (cells + 0.5 + random.uniform(-0.12, 0.12, cells.shape)) * spacing
    count = len(position)
    velocity = np.zeros((count, 3), np.float32)
    velocity[:, 1] = np.where(position[:, 1] > 0.045, -0.3, 0)
    fields = {
        "position": position.astype(np.float32), "velocity": velocity,
        "id": np.arange(count, dtype=np.int32), "material": np.zeros(count, np.int32),
    }
    look = material or {"name": "honey", "colour": (0.85, 0.54, 0.07), "look": "honey", "density": 1420.0}
    ground = {"name": "ground", "pose": np.eye(4), "shape": {"type": "plane"}, "container": False, "colour": (0.7, 0.7, 0.7)}
    return Frame(0, 0.0, 0, fields, spacing, "y", materials=[look], solids=[ground], title="A coiling rope")


def _rope() -> tuple[np.ndarray, np.ndarray]:
    """Centre line (n, 3) and radius (n,) [m]: loops that sink into each other, then the falling thread."""
    turn = np.linspace(0, 2 * np.pi * LOOPS, 900)
    part = turn / turn[-1]
    wide = COIL * (1 - 0.30 * part) * (1 + 0.05 * np.sin(1.7 * turn))  # no two loops alike
    height = PUDDLE[1] * 0.55 + ROPE + 0.033 * part**0.85
    drift = 0.0013 * np.stack([np.sin(0.31 * turn), np.zeros_like(turn), np.cos(0.23 * turn)], 1)
    loops = np.stack([wide * np.cos(turn), height, wide * np.sin(turn)], 1) + drift
    top = np.array([0.0, HEIGHT, 0.0])
    t = np.linspace(0, 1, 400)[1:, None]
    start, along = loops[-1], (loops[-1] - loops[-2]) / np.linalg.norm(loops[-1] - loops[-2])
    # A cubic that leaves the last loop in its direction and arrives at the nozzle vertically.
    first, second = start + 0.012 * along + [0, 0.004, 0], top - [0, 0.045, 0]
    thread = (1 - t) ** 3 * start + 3 * (1 - t) ** 2 * t * first + 3 * (1 - t) * t**2 * second + t**3 * top
    thin = ROPE * (0.72 + 0.55 * t[:, 0] ** 3)  # it stretches as it falls
    lying = ROPE * (1.12 - 0.40 * part**4)
    return np.concatenate([loops, thread]), np.concatenate([lying, thin])


def _swept(line: np.ndarray, radius: np.ndarray, spacing: float) -> np.ndarray:
    """Lattice cells whose centre is within ``radius`` of the ``line``."""
    reach = int(np.ceil(radius.max() / spacing)) + 1
    around = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    step = max(1, int(0.5 * spacing / np.median(np.linalg.norm(np.diff(line, axis=0), axis=1))))
    found = []
    for centre, r in zip(line[::step], radius[::step], strict=True):
        cells = np.floor(centre / spacing).astype(int) + around
        found.append(cells[np.linalg.norm((cells + 0.5) * spacing - centre, axis=1) < r])
        if len(found) > 64:
            found = [np.unique(np.concatenate(found), axis=0)]
    cells = np.concatenate(found)
    return cells[cells[:, 1] >= 0]


def _puddle(spacing: float) -> np.ndarray:
    """Lattice cells of a round puddle with a rolled edge."""
    radius, thick = PUDDLE
    n, m = int(radius * 1.1 / spacing) + 1, int(thick * 1.3 / spacing) + 1
    axes = np.arange(-n, n), np.arange(m), np.arange(-n, n)
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    x, y, z = ((cells + 0.5) * spacing).T
    angle = np.arctan2(z, x)
    away = np.hypot(x, z) / (radius * (1 + 0.03 * np.sin(3 * angle + 1) + 0.015 * np.sin(5 * angle)))
    surface = thick * np.sqrt(np.clip(1 - away**6, 0, 1)) * (1 + 0.12 * np.exp(-((away / 0.5) ** 2)))
    return cells[(y < surface) & (away < 1)]
