"""The device beside the CPU: every method with every feature, on both sides of what the code does differently.

A process runs on one device, so the CPU's numbers come from a process of their own (parity_reference.py), computed by kernels.
On a CPU the compiled passes are compared with those kernels; where there are none, kernels with kernels that read neighbours
as records, which CPUs can do that are x86-64. On others nothing but the restart is left to compare.

*A step*: the CPU's state before each of five steps, from the free fall to the impact, is given to the device, which takes that
step; no particle may then be farther than 1e-5 supports from where the CPU has it. A particle that a solid holds or a bond that
breaks is a decision that rounding can turn: of scenes with such (:attr:`Feature.chaos`) one particle in fifty may differ more.

*The end*: after 1 s at a spacing of 40 mm, and as many steps at other sizes, height, extents, energy and compression agree
within 2 % (quick: after 20 steps).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from platform import machine
from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.features import FEATURES, STEPS, apart, measures
from viscoil.validation.similarity import scaled

MOMENTS = (0, 6, 10, 14, 18)  # steps before which the device is given the CPU's state; things touch at about the eighth
STEP_LIMIT, DECIDED, END = 1e-5, 0.02, 0.02
QUICK_STEPS = 20
SMALL, MIDDLE, LARGE = 2e-4, 1e-3, 0.04  # spacings [m]
SIZES = (SMALL, LARGE)


@dataclass(frozen=True)
class Load:
    """A scene at a size, and the way the device is to take."""

    feature: str
    spacing: float
    """[m]"""
    width: float = 6.0
    """of the fluid [spacings]"""
    solver: dict[str, Any] = field(default_factory=dict)
    """parameters of the method besides the scene's"""
    ways: dict[str, str] = field(default_factory=dict)
    """how the device's side is told to go: TEAM, TORN"""
    lasting: bool = True
    """whether the end is compared as well"""
    gpu: bool = False
    """whether it says something on GPUs only"""

    @property
    def name(self) -> str:
        """All that tells it from others."""
        parts = [self.feature, f"{1000 * self.spacing:g} mm", "" if self.width == 6 else f"{self.width:g} wide"]
        parts += [f"{key} {value}" for key, value in (self.solver | self.ways).items()]
        return ", ".join(part for part in parts if part)

    def scene(self, quick: bool) -> dict[str, Any]:
        """A step is a frame, because a state is what a frame ends with."""
        feature = FEATURES[self.feature]
        second = round(1.0 / (STEPS[feature.method] * LARGE**0.5))
        table = feature.scene(self.width, second if self.lasting and not quick else QUICK_STEPS, 1)
        table["solver"] = {**table["solver"], **FIXED.get(feature.method, {}), **self.solver}
        return scaled(table, self.spacing)


# Iterations that end by a tolerance may end one earlier on one of two devices.
FIXED = {"dcpbd": {"velocity_tolerance": 1e-6, "velocity_iterations": 30}, "iisph": {"tolerance": 0.0, "iterations": 20},
         "pvfs": {"relaxation": "jacobi"}}  # fmt: skip
TORN = "torn"  # lists of several pieces, as beyond 2³¹ entries
TEAM = "team"  # threads per particle
DROPS = ("pbf_drop", "dcpbd_drop", "iisph_drop", "pvfs_drop")


def loads(quick: bool, gpu: bool) -> list[Load]:
    """Features × sizes, and pairs of loads on both sides of each threshold at which the code takes another way."""
    if quick:
        found = [Load(name, SMALL, 5.0) for name in DROPS]
        teams = [{TEAM: team} for team in "18" if gpu]
        return found + [Load("pbf_drop", SMALL, 5.0, ways=ways, lasting=False, gpu=True) for ways in teams]
    found = [Load(name, size) for name in FEATURES for size in SIZES]
    for drop in DROPS:
        # Teams of threads per particle (sph/search.py: team_size).
        found += [Load(drop, SMALL, ways={TEAM: team}, lasting=False, gpu=True) for team in "1248"]
        # Lengths of lists: teams (64 entries), baskets of 44, 76, 92 entries per thread and more than fits (sph/depth.py).
        found += [Load(drop, SMALL, 8.0, {"support": support}, lasting=False) for support in (1.8, 2.1, 2.4, 2.8, 3.2, 3.6)]
        # Particles: teams below 40,000 and 100,000, small launches, smaller tables of cells below 300,000 (sph/search.py).
        found += [Load(drop, MIDDLE, width, lasting=False, gpu=True) for width in (34.0, 35.0, 46.0, 47.0, 66.0, 67.0)]
    found += [Load(drop, SMALL, ways={TORN: "yes"}, lasting=False, gpu=True) for drop in ("pbf_drop", "dcpbd_drop")]
    return [load for load in found if gpu or not load.gpu]


# --- the device's side -----------------------------------------------------------------------------------------------
def arranged(state: dict[str, Any]) -> np.ndarray:
    """Places of a state by id [m] (n, 3)."""
    return np.asarray(state["particles/position"], np.float64)[np.argsort(state["particles/id"])]


def _reference(tables: list[dict[str, Any]], folder: Path, records: str) -> None:
    """Has the CPU's numbers written into ``folder`` by a process of its own."""
    (folder / "scenes.json").write_text(dumps(tables))
    environment = os.environ | {"VISCOIL_NATIVE": "0", "VISCOIL_RECORDS": records}
    environment.pop("VISCOIL_DEVICE", None)
    program = "import sys; from viscoil.validation.parity_reference import main; main(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(folder)], env=environment, check=True)


@contextmanager
def _way(ways: dict[str, str]) -> Iterator[None]:
    """The device takes this way inside."""
    from viscoil.scene import build
    from viscoil.sph import search

    most, size = search.MOST_ELEMENTS, build.team_size
    if TEAM in ways:
        build.team_size = lambda *_: int(ways[TEAM])
    search.MOST_ELEMENTS = 4000 if TORN in ways else most
    try:
        yield
    finally:
        search.MOST_ELEMENTS, build.team_size = most, size


def _step_apart(sim: Any, before: dict[str, Any], after: dict[str, Any], allowed: float) -> float:
    """Where the device's step leads from where the CPU's does [h]: the farthest particle but a share that is ``allowed``."""
    sim.restore(before)
    sim.advance_frame()
    here, there = arranged(sim.state()), arranged(after)
    if here.shape != there.shape:
        return np.inf
    away = np.sort(np.linalg.norm(here - there, axis=1))
    return float(away[max(0, len(away) - 1 - int(allowed * len(away)))] / sim.world.support)


def _beside(trial: Trial, load: Load, table: dict[str, Any], folder: Path) -> list[Check]:
    """The checks of one load, whose CPU's side is in ``folder``."""
    from viscoil.errors import ViscoilError
    from viscoil.io.checkpoint import decode

    def state(step: int) -> dict[str, Any]:
        path = folder / f"{step}"
        return decode(path.read_bytes(), path).state

    try:
        with _way(load.ways):
            sim = trial.simulation(table)
            allowed = DECIDED if FEATURES[load.feature].chaos else 0.0
            away = [_step_apart(sim, state(k), state(k + 1), allowed) for k in MOMENTS]
            checks = [at_most(f"{load.name}: a step leads elsewhere by [h]", max(away, key=_worst), STEP_LIMIT)]
            if load.lasting:
                sim.restore(state(0))
                for _ in sim.frames():
                    pass
                differing = apart(np.load(folder / "measures.npy"), measures(sim))
                checks.append(at_most(f"{load.name}: height, extents, energy, compression at the end [share]", differing, END))
    except ViscoilError as error:
        return [at_most(f"{load.name}: stopped: {' '.join(str(error).split())}", np.nan, 0.0)]
    return checks


def _worst(value: float) -> float:
    """NaN counts as more than anything."""
    return np.inf if np.isnan(value) else value


def _measure(trial: Trial) -> Outcome:
    from viscoil import backend, native

    running = backend.start(trial.device)
    another_way = not running.is_gpu and not native.active() and machine() in ("x86_64", "AMD64")
    records = "wide" if another_way else ""
    asked = loads(trial.quick, running.is_gpu)
    tables = [load.scene(trial.quick) for load in asked]
    checks: list[Check] = []
    with tempfile.TemporaryDirectory() as place:
        _reference(tables, Path(place), records)
        for number, (load, table) in enumerate(zip(asked, tables, strict=True)):
            checks += _beside(trial, load, table, Path(place) / str(number))
            if trial.noticed(checks):
                break
    return Outcome(checks)


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import differences

    differences(figure, outcome.checks, "difference from the CPU [h in a step, share at the end]")


def _stronger(scene: dict[str, Any], number: int) -> None:
    scene["gravity"] = (0.0, -10.0, 0.0)


CASE = Case(
    name="parity",
    measures="Steps of the device beside those of a CPU, every method and feature, at 0.2 mm and 40 mm",
    source="the same arithmetic: results of two devices differ by rounding",
    measure=_measure,
    mutation=Mutation("gravity 2 % stronger on the device", _stronger),
    plot=_plot,
)
