"""Scenes after the papers' figures in a run: their own geometry, nozzles and solids, at the papers' sizes.

What a run takes, with its checks, sorting of memory and metrics, not a load made for measuring. A scene with nozzles is run
until they have emitted everything (to its end where they never stop), one without to the moment of its picture; the frames
after that are timed one by one, and their mean counts. Materials are those of the shipped scenes (docs/scenes.md), not the
papers' numbers in units of their own.
"""

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import paper

FRAMES = 20  # that are timed
QUICK = 2  # frames that are timed, and frames before them, of scenes as they are written
ACTED = ("compression", "viscosity_share")  # what a method's numbers of a frame say about how much of it acted


@dataclass(frozen=True)
class Figure:
    """A scene and its row in a paper's table."""

    scene: str
    published: float | None  # [s] per ``unit``
    unit: str = "frame"  # or "step"
    asked: float | None = None  # [s] per ``unit`` on an H200


BARREIRO = (
    Figure("blocks", 0.16),
    Figure("ice_cream", 0.03, asked=0.0015),
    Figure("hand_and_bowl", 0.03, asked=0.0015),
    Figure("coiling", 1.08),
    Figure("waffle", 1.42, asked=0.045),
    Figure("honey", 0.15, asked=0.008),
    Figure("cake", 1.13, asked=0.045),
    Figure("gummy_bears", 19.0, asked=0.6),
)
MACKLIN = (
    Figure("bear_bath", None, "step"),
    Figure("bear_splash", 1e-3 * paper.SCENES[0].step_ms, "step"),
    Figure("dam_break", 1e-3 * paper.SCENES[1].step_ms, "step"),
    Figure("bear_drop", 1e-3 * paper.SCENES[2].step_ms, "step"),
)
CLAVET = (Figure("plastic_blocks", 2.0),)  # "20,000 particles": with surface and display
TAKAHASHI = (Figure("ball_press", None, "step"),)


def acted(metrics: dict[str, Any]) -> dict[str, float]:
    """Compression and share of the asked viscosity of a frame, as far as the method tells."""
    return {name: float(metrics[name]) for name in ACTED if name in metrics}


def first_timed(scene: Any, frames: int) -> int:
    """Frames that come before those that are timed; at least one, which compiles."""
    if scene.emitter:
        moment = max(emitter.end for emitter in scene.emitter)
    else:
        moment = scene.picture.time if scene.picture and scene.picture.time is not None else math.inf
    last = scene.time.frames - frames
    return max(1, last if moment > last * scene.time.frame_time else math.ceil(moment / scene.time.frame_time - 1e-9))


def _per_step(metrics: list[dict[str, Any]], limit: int | None) -> str:
    """Iterations of a step as they were made; of the velocity projection also how many were allowed (``limit``)."""
    steps = sum(row["steps"] for row in metrics)
    density = f"{sum(row['iterations'] for row in metrics) / steps:.3g}"
    if limit is None:
        return density
    return f"{sum(row['velocity_iterations'] for row in metrics) / steps:.3g} of {limit} + {density}"


def _stages(sim: Any, metrics: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds by stage: of the timed frames where every stage is waited for anyway, of one more frame on a GPU."""
    if not sim.world.stages.precise:
        sim.world.stages.precise = True
        for _ in range(2):  # the first one compiles
            sim.advance_frame()
        metrics = [sim.metrics()]
    names = [name for name in metrics[-1] if name.startswith("seconds_")]
    return {name[8:]: sum(row.get(name, 0.0) for row in metrics) for name in names}


def measure(
    figure: Figure, device: str, threads: int | None, frames: int | None = None, lead: int | None = None, quick: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Seconds per frame or step of a run, what acted in it, and where the time goes.

    ``frames`` are timed after ``lead`` frames (left out: see the module); ``quick``: the scene as it is written, a few frames.
    """
    from viscoil.scene.load import load
    from viscoil.simulate import Simulation

    scene = load(figure.scene) if quick else load(figure.scene, quality="paper")
    frames = frames or (QUICK if quick else FRAMES)
    lead = lead or (QUICK if quick else first_timed(scene, frames))
    sim = Simulation(scene, device=device, threads=threads)
    taken, metrics = [], []
    while sim.frame_index < lead + frames:
        backend.synchronise()
        begin = perf_counter()
        sim.advance_frame()
        backend.synchronise()
        taken.append(perf_counter() - begin)
        metrics.append(sim.metrics())
    taken, metrics = taken[lead:], metrics[lead:]
    steps = sum(row["steps"] for row in metrics)
    limit = sim.solver.params.velocity_iterations if "velocity_iterations" in metrics[-1] else None
    made = sum(row["velocity_iterations"] for row in metrics) / (steps * limit) if limit else None
    each = [acted(row) for row in metrics]
    return {
        "particles": sim.particles, "seconds": sum(taken) / (frames if figure.unit == "frame" else steps),
        "work": f"{steps / frames:.3g} × ({_per_step(metrics, limit)})", "frames": [lead, lead + frames, scene.time.frames],
        "density_max": max(row["density_max"] for row in metrics), **({"made": made} if limit else {}),
        **{name: float(np.mean([row[name] for row in each])) for name in each[-1]}, "stages": _stages(sim, metrics),
    }  # fmt: skip
