"""A ball between floor and plate, pressed flat and let go (Takahashi et al. 2014, Figs. 1 and 3 to 6): what the cases share.

The plate moves at constant speed to 62 % of the ball's height, waits and goes back up. Volume is measured twice: by the paper's
estimate from SPH densities, and as what a surface mesh encloses.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Trial
from viscoil.validation.takahashi import D, ball, per_step, plate, scene, spread

SQUEEZED = 0.62  # height of the pressed ball, in its own
WAIT = 0.1  # s


def radius(trial: Trial) -> float:
    """Of the ball, in spacings: 8217 particles, or 251 for a quick look."""
    return 4.0 if trial.quick else 12.5


def table(size: float, solver: dict[str, Any], speed: float = 1.0, release: bool = True, **more: Any) -> dict[str, Any]:
    """The scene: a ball of ``size`` spacings, a plate of ``speed`` [m/s]; ``release``: it goes up again."""
    high = 2 * size * D
    way = (1 - SQUEEZED) * high
    down = way / speed
    moments = [(0.0, 0.0), (down, -way), (down + WAIT, -way)]
    if release:
        moments += [(2 * down + WAIT, 0.0)]
    keys = [{"time": time, "position": (0.0, height, 0.0)} for time, height in moments]
    half = 1.8 * size * D
    solids = [plate("floor", half, 0.0, True), plate("plate", half, high, False, motion=keys, interpolation="linear")]
    end = moments[-1][0] + (WAIT if release else 0.0)
    return scene(round(end / 0.01), 5, {"xsph": 0.05, **solver}, [ball(size, 0.0)], solids, **more)


def pressed(sim: Any, every: int = 4) -> dict[str, Any]:
    """A run: time, volumes in the first one, spreading in the first one, iterations per step, speed; until it fails.

    Meshes are made of every ``every``-th frame.
    """
    from viscoil.errors import SimulationFailed
    from viscoil.surface.volume import mesh_volume

    names = ("time", "volume", "spread", "iterations", "speed", "energy", "retries")
    rows: dict[str, list[float]] = {name: [] for name in names}
    meshes: list[tuple[float, float]] = []
    failed = np.nan
    try:
        for frame in sim.frames():
            row = sim.metrics()
            outward, count = spread(frame["position"]), per_step(row)
            found = (row["time"], row["volume"], outward, count, row["speed_max"], row["kinetic_energy"], row["retries"])
            for name, value in zip(rows, found, strict=True):
                rows[name].append(float(value))
            if frame.index % every == 0:
                meshes.append((frame.time, mesh_volume(frame)))
    except SimulationFailed as error:
        failed = error.time
    result: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
    for name in ("volume", "spread"):
        result[name] = result[name] / result[name][0]
    t, volume = np.array(meshes).T
    down = result["time"] <= sim.scene.solid[1].motion[2].time + 1e-9
    return result | {
        "mesh_time": t, "mesh": volume / volume[0], "failed": failed, "pressing": down,
        "mean": float(result["iterations"][1:].mean()), "most": float(result["iterations"].max()),
        "working": float(result["iterations"][down][1:].mean()),
    }  # fmt: skip


def loss(run: dict[str, Any], pressed_only: bool = True) -> tuple[float, float]:
    """Largest loss of volume by the paper's estimate and by meshes, in the first volume; until the plate goes back up."""
    last = run["time"][run["pressing"]][-1] + 1e-9 if pressed_only else np.inf
    return float(1 - run["volume"][run["time"] <= last].min()), float(1 - run["mesh"][run["mesh_time"] <= last].min())


def draw_volume(picture: Any, runs: dict[str, Any]) -> None:
    """Curves of Fig. 4: lines by the estimate, dots by meshes."""
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, RED

    for (name, run), colour in zip(runs.items(), (BLUE, ORANGE, GREEN, RED), strict=False):
        picture.plot(run["time"], run["volume"], color=colour, label=name)
        picture.plot(run["mesh_time"], run["mesh"], ".", color=colour, ms=4)
    picture.axhline(0.99, color="#444444", linestyle=":", linewidth=1)
    picture.legend(fontsize=7)
