"""Every shipped scene at the size of its paper, its first 30 frames: nothing is crushed.

Density of the fluid at rest is what every method is there to keep. A mean compression beyond 3 %, or a particle at more than
1.5 times its density, is not a property of the fluid but something that does not work: at such sizes, far below a millimetre of
spacing in some scenes, density constraints once did nothing on GPUs while every other case held.

PVFS has no such limit, only numbers: its fluid is as soft as a scene makes it (docs/papers/clavet2005.md), and a drop at 9 m/s
squeezes it by a third. A GPU runs the largest profile of each scene, a CPU the quick one.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most

FRAMES, QUICK_FRAMES = 30, 6
QUICK = ("waffle", "dam_break", "press_springs")
MEAN, DENSEST = 0.03, 1.5
PROFILES = ("paper", "fine", "quick")  # the first of these that a scene has


def _crushed(trial: Trial, name: str, profile: str) -> list[Check]:
    """The most there was of both in any frame."""
    from viscoil.errors import ViscoilError
    from viscoil.scene.load import load

    scene = load(name, quality=profile)
    start = f"{name} ({profile})"
    rows = []
    try:
        sim = trial.simulation(scene.to_dict())
        for _ in sim.frames(min(QUICK_FRAMES if trial.quick else FRAMES, scene.time.frames)):
            row = sim.metrics()
            if row["particles"]:
                rows.append((row["compression"], row["density_max"]))
    except ViscoilError as error:
        return [at_most(f"{start}: stopped: {' '.join(str(error).split())}", np.nan, 0.0)]
    mean, densest = np.max(rows, axis=0)
    limits = (np.inf, np.inf) if scene.method == "pvfs" else (MEAN, DENSEST)
    return [
        at_most(f"{start}: largest mean compression [share]", mean, limits[0]),
        at_most(f"{start}: densest particle [densities at rest]", densest, limits[1]),
    ]


def _measure(trial: Trial) -> Outcome:
    from viscoil import backend
    from viscoil.scene.load import profiles, shipped

    gpu = backend.start(trial.device).is_gpu and not trial.quick
    checks: list[Check] = []
    for name in QUICK if trial.quick else sorted(shipped()):
        checks += _crushed(trial, name, next(p for p in PROFILES if p in profiles(name)) if gpu else "quick")
        if trial.noticed(checks):
            break
    return Outcome(checks)


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import differences

    differences(figure, outcome.checks, "mean compression [share]; densest particle [densities at rest]")


def _crush(scene: dict[str, Any], number: int) -> None:
    scene["gravity"] = tuple(50 * g for g in scene["gravity"])
    scene["solver"] |= {"iterations": 1}


CASE = Case(
    name="paper_scenes",
    measures="Compression of the shipped scenes in their first 30 frames, on GPUs at the papers' sizes",
    source="incompressibility: what the density constraint, the pressure or the relaxation is asked for",
    measure=_measure,
    mutation=Mutation("one iteration, under 50 times the weight", _crush),
    plot=_plot,
)
