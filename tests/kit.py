"""What tests of the core share: particles from arrays, neighbour searches, small scenes, and slow truths to compare with."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from viscoil import backend
from viscoil import particles as table
from viscoil.scene.schema import Scene
from viscoil.sph.search import Neighbors

backend.start("cpu")


def lattice(counts: tuple[int, int, int], spacing: float, jitter: float = 0.0, seed: int = 0) -> np.ndarray:
    """A block of particles from the origin on, displaced by at most ``jitter`` spacings."""
    axes = [(np.arange(n) + 0.5) * spacing for n in counts]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    return x + np.random.default_rng(seed).uniform(-jitter, jitter, x.shape) * spacing


def make_particles(x: np.ndarray, **fields: Any) -> Any:
    """Device particles at ``x`` with ids in order unless given."""
    particles = table.allocate(len(x))
    table.append(particles, 0, {"position": x, "id": np.arange(len(x)), **fields})
    return particles


def periodic_box(low: Any, high: Any, axes: str) -> Any:
    """What the search wants to know of a Domain."""
    return SimpleNamespace(min=tuple(low), max=tuple(high), periodic=axes)


def search(x: np.ndarray, reach: float, box: Any = None, particles: Any = None, expected: int = 60) -> Neighbors:
    """Finished neighbour lists of the points ``x``."""
    particles = particles if particles is not None else make_particles(x)
    neighbors = Neighbors(reach, expected, len(x), box)
    neighbors.fit(np.min(x, axis=0), np.max(x, axis=0))
    neighbors.find(particles.position, particles, len(x))
    while needed := neighbors.overflow():
        neighbors.widen(needed)
        neighbors.find(particles.position, particles, len(x))
    return neighbors


def differences(x: np.ndarray, box: Any = None) -> np.ndarray:
    """x_i − x_j (n, n, 3), shortest images, in double precision of the float32 positions."""
    x = np.asarray(x, np.float32).astype(float)
    d = x[:, None] - x[None]
    if box is not None:
        for axis, name in enumerate("xyz"):
            if name in box.periodic:
                period = box.max[axis] - box.min[axis]
                d[..., axis] -= period * np.round(d[..., axis] / period)
    return d


def spiky(r: np.ndarray, h: float) -> np.ndarray:
    return 15 / (np.pi * h**6) * np.maximum(h - r, 0) ** 3


def spiky_gradient(d: np.ndarray, h: float) -> np.ndarray:
    """∇W for differences (..., 3); zero for coincident points."""
    r = np.linalg.norm(d, axis=-1)
    factor = -45 / (np.pi * h**6) * np.maximum(h - r, 0) ** 2 / np.where(r > 0, r, 1)
    return factor[..., None] * d


def poly6(r: np.ndarray, h: float) -> np.ndarray:
    return 315 / (64 * np.pi * h**9) * np.maximum(h**2 - r**2, 0) ** 3


def cubic(r: np.ndarray, h: float) -> np.ndarray:
    q = r / h
    return 8 / (np.pi * h**3) * np.where(q <= 0.5, 6 * (q**3 - q**2) + 1, 2 * np.maximum(1 - q, 0) ** 3)


def cubic_gradient(d: np.ndarray, h: float) -> np.ndarray:
    r = np.linalg.norm(d, axis=-1)
    q = r / h
    s = 8 / (np.pi * h**4)
    slope = np.where(q <= 0.5, 6 * (3 * q**2 - 2 * q), -6 * np.maximum(1 - q, 0) ** 2) * s
    return (slope / np.where(r > 0, r, 1))[..., None] * d


def box_scene(spacing: float = 0.05, cells: tuple[int, int, int] = (6, 6, 6), **changes: Any) -> Scene:
    """A block of water that fills the lower part of a box twice as high."""
    size = tuple(n * spacing for n in cells)
    tank = (size[0], 2 * size[1], size[2])
    values: dict[str, Any] = {
        "spacing": spacing,
        "time": {"frames": 4, "frame_time": 0.016, "steps_per_frame": 4},
        "fluid": [
            {"material": "water", "shape": {"type": "box", "size": size, "position": tuple(s / 2 for s in size)}}
        ],
        "solid": [
            {
                "name": "tank",
                "container": True,
                "shape": {"type": "box", "size": tank, "position": tuple(s / 2 for s in tank)},
            }
        ],
    }
    return Scene(**{**values, **changes})
