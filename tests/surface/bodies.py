"""Bodies of particles whose surface is known, as frames. One spacing apart, so that lengths read in spacings."""

import numpy as np

from viscoil.io.frame import Frame

RED_AND_BLUE = [
    {"name": "red", "colour": [1.0, 0.0, 0.0], "density": 1000.0},
    {"name": "blue", "colour": [0.0, 0.0, 1.0], "density": 1000.0},
]


def frame_of(x, spacing=1.0, materials=None, **fields) -> Frame:
    """A frame of particles at ``x`` (in spacings)."""
    values = {"position": (np.asarray(x) * spacing).astype(np.float32).reshape(-1, 3), **fields}
    values.setdefault("material", np.zeros(len(values["position"]), np.int32))
    return Frame(7, 0.25, 70, values, spacing=spacing, materials=materials or RED_AND_BLUE[:1])


def block(counts, jitter=0.0, seed=3) -> np.ndarray:
    """A lattice block around the origin that fills counts[0] x counts[1] x counts[2] spacings."""
    axes = [np.arange(n) + 0.5 - n / 2 for n in counts]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    return x + np.random.default_rng(seed).uniform(-jitter, jitter, x.shape)


def sphere(radius, jitter=0.0) -> np.ndarray:
    """Particles inside a ball around the origin."""
    x = block([2 * int(radius) + 2] * 3)
    x = x[np.linalg.norm(x, axis=1) < radius]
    return x + np.random.default_rng(1).uniform(-jitter, jitter, x.shape)


def edge_counts(triangles) -> np.ndarray:
    """How many triangles each edge has: 2 everywhere on a closed manifold."""
    edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    return np.unique(edges, axis=0, return_counts=True)[1]
