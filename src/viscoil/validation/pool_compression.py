"""How far a pool compresses, against what was asked for (Clavet et al. 2005, §4: stiffness is the user's choice).

In SI units: h = 5 cm under 9.81 m/s². A pool in a box without side walls (periodic) rests; its density (eq. 1) rises with
depth, and the line through it, from the surface down to the floor, tells the compression at the bottom.

The pool as a whole sinks by more than that: at the floor and at the surface, where neighbours are missing, particles lie closer
than inside; about one layer is lost so, however deep the pool.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.clavet import density

SUPPORT = 0.05  # h [m]
SPACING = SUPPORT / 2.7
WIDTH = 10  # particles across the periodic box
G = 9.81


def _scene(deep: int, asked: float, frames: int) -> dict[str, Any]:
    size = (WIDTH * SPACING, deep * SPACING, WIDTH * SPACING)
    return {
        "spacing": SPACING,
        "gravity": (0.0, -G, 0.0),
        "domain": {"min": (0, -1, 0), "max": (size[0], 10, size[2]), "periodic": "xz"},
        "time": {"frames": frames, "frame_time": 1 / 30, "steps_per_frame": 1},
        "solver": {"method": "pvfs", "compressibility": asked, "quadratic_viscosity": 0.3 / SUPPORT},
        "material": {"m": {"density": 1000.0}},
        "fluid": [
            {
                "material": "m", "jitter": 0.02,
                "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]},
            }
        ],
        "solid": [{"name": "floor", "shape": {"type": "plane"}}],
    }  # fmt: skip


def profile(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights [h] and densities (eq. 1) of the particles that are farther than h from floor and surface."""
    width = WIDTH * SPACING / SUPPORT
    rho = density(x, np.array([width, np.inf, width]))
    inside = (x[:, 1] > 1.1) & (x[:, 1] < np.percentile(x[:, 1], 98) - 1.1)
    return x[inside, 1], rho[inside]


def _rested(trial: Trial, deep: int, asked: float, frames: int) -> dict[str, Any]:
    sim = trial.simulation(_scene(deep, asked, frames))
    x = []
    for frame in sim.frames():
        x.append(frame["position"].astype(float) / SUPPORT)
    y, rho = profile(x[-1])
    slope, bottom = np.polyfit(y, rho, 1)
    surface = float(np.percentile(x[-1][:, 1], 98))
    top = bottom + slope * surface
    speed = np.linalg.norm(frame["velocity"], axis=1)
    return {
        "compression": bottom / top - 1, "height": surface, "start": float(np.percentile(x[0][:, 1], 98)),
        "profile": (y, rho), "line": (np.array([0, surface]), np.array([bottom, top])), "metrics": sim.metrics(),
        "calm": float(np.sqrt((speed * speed).mean())) / (30 * SUPPORT),
    }  # fmt: skip


def _measure(trial: Trial) -> Outcome:
    deep, frames = (12, 45) if trial.quick else (28, 90)
    pools = {asked: _rested(trial, deep, asked, frames) for asked in (0.1, 0.05)}
    checks = []
    for asked, pool in pools.items():
        checks += [
            Check(
                f"asked {100 * asked:g} %: density at the floor over that at the surface − 1",
                pool["compression"], asked, 0.1 * asked, "at most",
            ),
            at_least(f"asked {100 * asked:g} %: the same, in what was asked", pool["compression"] / asked, 0.25),
            at_least(f"asked {100 * asked:g} %: height, in that of the start", pool["height"] / pool["start"], 0.85),
            at_most(f"asked {100 * asked:g} %: speed (rms) at the end [h/τ]", pool["calm"], 0.05),
        ]
    return Outcome(checks, {"pools": pools})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, ORANGE, axes

    picture = axes(figure, "density, eq. 1", "height over the floor [h]")
    for (asked, pool), colour in zip(outcome.data["pools"].items(), (BLUE, ORANGE), strict=True):
        y, rho = pool["profile"]
        picture.plot(rho, y, ".", color=colour, ms=2)
        picture.plot(*pool["line"][::-1], color=colour, label=f"asked {100 * asked:g} %: {100 * pool['compression']:.1f} %")
    picture.legend()


def _heavy(scene: dict[str, Any], number: int) -> None:
    scene["solver"]["depth"] = 0.2 * scene["fluid"][0]["shape"]["size"][1]


CASE = Case(
    name="pool_compression",
    measures="Compression at the bottom of a pool, against the asked one",
    source="linear equation of state (eq. 2) under hydrostatic pressure; the asked compressibility is the limit",
    measure=_measure,
    mutation=Mutation("stiffness chosen for a fifth of the depth", _heavy),
    plot=_plot,
)
