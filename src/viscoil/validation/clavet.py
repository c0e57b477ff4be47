"""What the cases of Clavet et al. 2005 share: scenes in the paper's numbers, and numbers taken from particles.

The paper counts lengths in supports h and times in steps of τ = 1/30 s; so do these cases, whatever h is in metres.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

H = 0.1  # support h [m]; nothing may depend on it
TAU = 1 / 30  # the paper's unit of time [s]
REST = 0.37  # spacing at rest [h]
SPACING = REST * H
ROWS = 512  # particles compared with all others at a time


def solver(relaxation: str = "auto", **published: float) -> dict[str, Any]:
    """The [solver] table of the published constants, and of others where they are given (all in h and τ)."""
    from viscoil.solvers.pvfs import PVFSParams

    return PVFSParams.clavet(H, **published).model_dump() | {"relaxation": relaxation, "support": 1 / REST}


def gravity(ghat: float) -> tuple[float, float, float]:
    """Downwards, ``ghat`` in h/τ²."""
    return (0.0, -ghat * H / TAU**2, 0.0)


def scene(
    cells: tuple[int, int, int], frames: int, settings: dict[str, Any], ghat: float = 0.0, bottom: float | None = None,
    every: int = 4, substeps: int = 1, friction: float = 0.3, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """A box of ``cells`` particles, a frame every ``every`` τ; ``bottom``: its height over a floor [h], None: no floor."""
    size = [n * SPACING for n in cells]
    position = (0.0, 0.0 if bottom is None else bottom * H + size[1] / 2, 0.0)
    return {
        "spacing": SPACING,
        "gravity": gravity(ghat),
        "time": {"frames": frames, "frame_time": every * TAU, "steps_per_frame": every * substeps},
        "solver": settings,
        "material": {"m": {"density": 1000.0}},
        "fluid": [{"material": "m", "jitter": 0.02, "shape": {"type": "box", "size": size, "position": position}}],
        "solid": [] if bottom is None else [{"name": "floor", "friction": friction, "shape": {"type": "plane"}}],
        **more,
    }


def spread(sim: Any, spacing: float) -> Any:
    """The simulation with all distances scaled so that particles start ``spacing`` apart [h]."""
    sim.world.set("position", sim.world.get("position") * np.float32(spacing / REST))
    sim.world.fit_cells()
    return sim


def followed(sim: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times [τ] and positions (frames, particles, 3) [h] of a whole run."""
    frames = list(sim.frames())
    return np.array([f.time for f in frames]) / TAU, np.array([f["position"] for f in frames], float) / H


def aspect(x: np.ndarray) -> float:
    """Longest over shortest axis: the root of the ratio of the second moments."""
    moments = np.linalg.eigvalsh(np.cov((x - x.mean(0)).T))
    return float(np.sqrt(moments[-1] / moments[0]))


def unevenness(x: np.ndarray, directions: int = 150) -> float:
    """Standard deviation over mean of the hull's radius, seen from the centre in ``directions`` that cover the sphere evenly.

    The radius in a direction is how far the outermost particle within 20° of it reaches along it.
    """
    k = np.arange(directions) + 0.5
    height, turn = 1 - 2 * k / directions, k * np.pi * (3 - 5**0.5)
    around = np.sqrt(1 - height * height)
    ways = np.stack([around * np.cos(turn), height, around * np.sin(turn)], 1)
    d = x - x.mean(0)
    along = d @ ways.T
    cone = along > np.cos(np.radians(20)) * np.linalg.norm(d, axis=1)[:, None]
    reach = np.where(cone, along, 0.0).max(0)
    return float(reach.std() / reach.mean())


def density(x: np.ndarray, period: np.ndarray | None = None) -> np.ndarray:
    """ρ_i = Σ_j (1 − r/h)² (eq. 1) of all particles at ``x`` [h], all pairs; ``period`` [h], inf where there is none."""
    result = np.empty(len(x))
    for begin in range(0, len(x), ROWS):
        d = x[begin : begin + ROWS, None] - x[None]
        if period is not None:
            d -= np.where(np.isfinite(period), period, 0) * np.round(d / period)
        r = np.sqrt((d * d).sum(2))
        result[begin : begin + ROWS] = (np.maximum(1 - r, 0) ** 2).sum(1) - 1  # the particle itself
    return result


def core_density(x: np.ndarray) -> float:
    """Mean of eq. 1 over the half of a drop's particles that is nearest to its centre."""
    r = np.linalg.norm(x - x.mean(0), axis=1)
    return float(density(x)[r < np.median(r)].mean())


def maxima(times: np.ndarray, values: np.ndarray, above: float = 1.03, apart: float = 20.0) -> list[tuple[float, float]]:
    """(time, value) of the largest values of a curve within ±``apart``, the first and the last point left out."""
    found = []
    for n in range(1, len(values) - 1):
        near = np.abs(times - times[n]) <= apart
        if values[n] >= values[near].max() and values[n] > above:
            found.append((float(times[n]), float(values[n])))
    return found


def rounds(times: np.ndarray, values: np.ndarray) -> list[float]:
    """The moments between following maxima at which a swinging drop is round: where its aspect ratio is smallest."""
    tops = [time for time, _ in maxima(times, values)]
    between = [(times > a) & (times < b) for a, b in pairwise(tops)]
    return [float(times[part][values[part].argmin()]) for part in between]


def height(x: np.ndarray) -> float:
    """Height of a heap [h]: from the second to the 98th of a hundred particles, ordered by height."""
    low, high = np.percentile(x[:, 1], (2, 98))
    return float(high - low)


def curves(picture: Any, named: Iterable[tuple[str, Any, Any]]) -> None:
    """Lines with names, in the sheet's colours."""
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED

    colours = (BLUE, ORANGE, GREEN, RED, "#8e5aa8", GREY, "#3aa6a0", "#b58900", "#444444")
    for (name, t, values), colour in zip(named, colours, strict=False):
        picture.plot(t, values, color=colour, label=name, linewidth=1.4)
    picture.legend(fontsize=8)
