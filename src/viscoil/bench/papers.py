"""The tables of the papers, measured here: the same sizes, steps and iterations, beside what was published and what we ask for.

Macklin & Müller 2013    full tanks of the sizes of their scenes, confinement and XSPH included (paper.py)
Clavet et al. 2005       blocks with springs (pvfs.py)
Takahashi et al. 2014    a ball between plates, and a million (iisph.py)
Barreiro et al. 2017     cubes of the sizes of Table 1 (conformation.py), and the cake of their Fig. 1 as a scene

What we ask for is meant for one H200, small loads of PVFS and IISPH for two cores of a CPU; on anything else the figure is
there to compare with.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import block, conformation, iisph, limits, paper, pvfs, stages, store
from viscoil.bench.cases import CASES

MACKLIN, CLAVET = "Macklin & Müller 2013", "Clavet et al. 2005"
TAKAHASHI, BARREIRO = "Takahashi et al. 2014", "Barreiro et al. 2017"
MILLION = "a million"  # PBF, 4 iterations, 28 neighbours
ASKED_RATES = {"whole steps": 3.2e9, "iterations alone": 5.0e9}  # particles·iterations/s of that
CAKE = {"asked": 0.045, "published": 1.13}  # [s] per frame
ENOUGH = 0.95  # share of the iterations that are to be made; who falls freely needs none
LAST = 20  # frames of the cake that count: everything is on it by then
SMALL = ("1k", "20k_liquid", "press")  # asked of CPUs; a GPU has the same kernels to compile and nothing to do
HEAVY = ("pbf_million", "1m_springs", "1m_bonds", "million", "bears", "cake")  # minutes on a CPU: only when named


def _row(
    source: str, name: str, solver: str, particles: int, work: str, unit: str, value: float, **more: Any
) -> dict[str, Any]:  # fmt: skip
    """One row; ``value`` in seconds per ``unit`` ("step", "frame"), or particles·iterations/s ("rate")."""
    row = {
        "paper": source, "name": name, "solver": solver, "particles": particles, "work": work, "unit": unit, "value": value,
        "run": None, "published": None, "hardware": "", "asked": None, "asked_of": "H200", "stages": {}, **more,
    }  # fmt: skip
    if row["asked"] is not None:
        row["met"] = value >= row["asked"] if unit == "rate" else value <= row["asked"]
    return row


def _shares(taken: dict[str, float]) -> dict[str, float]:
    whole = sum(taken.values()) or 1.0
    return {name: value / whole for name, value in taken.items()}


def _macklin(scene: paper.PaperScene, device: str, threads: int | None) -> list[dict[str, Any]]:
    def tank(particles: int, counts: dict[str, int]) -> Any:
        return block.scene(particles, "pbf", counts["iterations"], vorticity=paper.VORTICITY)

    case = replace(CASES["pbf"], scene=tank, counts={"iterations": scene.iterations})
    times = stages.timed(case, scene.particles, device, threads)
    found = _row(
        MACKLIN, scene.name, "pbf", times["particles"], f"{scene.iterations} iterations", "step", 1e-3 * times["step_ms"],
        run=1e-3 * times["run_ms"], published=1e-3 * scene.step_ms, hardware=paper.HARDWARE,
        stages=_shares(times["stages_ms"]), split=paper.split(times["stages_ms"]),
        published_split=dict(zip(paper.CATEGORIES, scene.split, strict=True)) if scene.split else None,
    )  # fmt: skip
    return [found]


def _million(device: str, threads: int | None) -> list[dict[str, Any]]:
    times = stages.timed(CASES["pbf"], 1_000_000, device, threads)
    rates = {"whole steps": times["rate"], "iterations alone": times["iteration_rate"]}
    return [
        _row(
            MACKLIN, f"{MILLION}, {what}", "pbf", times["particles"], "4 iterations", "rate", rate, asked=ASKED_RATES[what],
            stages=_shares(times["stages_ms"]),
        )
        for what, rate in rates.items()
    ]  # fmt: skip


def _clavet(load: pvfs.Load, device: str, threads: int | None) -> list[dict[str, Any]]:
    times = pvfs.measure(load, device, threads)
    asked = 1e-3 * load.wanted if load.wanted else None
    work = f"{times['springs']:.0f} springs each" if load.springs else "no springs"
    found = _row(
        CLAVET, load.name, "pvfs", times["particles"], work, "step", times["seconds"], run=times["seconds"],
        steps_alone=times["step"], published=1e-3 * load.paper if load.paper else None, hardware="a CPU of 2005", asked=asked,
        asked_of="H200" if load.name == "1m" else "2 cores", stages=_shares(times["stages"]),
    )  # fmt: skip
    return [found]


def _takahashi(load: iisph.Load, device: str, threads: int | None) -> list[dict[str, Any]]:
    rows = []
    for correction in ("none", "springs", "position_based", "shape_matching") if load.plates else ("springs", "shape_matching"):
        times = iisph.measure(load, correction, 5, device, threads)
        asked = 1e-3 * load.wanted if load.wanted and correction != "none" else None
        rows.append(
            _row(
                TAKAHASHI, f"{load.name}, {correction}", "iisph", times["particles"], "5 iterations", "step", times["seconds"],
                run=times["seconds"], steps_alone=times["step"], asked=asked, hardware=iisph.PAPER,
                asked_of="2 cores" if load.plates else "H200", stages=_shares(times["stages"]), share=times["share"],
            )
        )  # fmt: skip
    return rows


def _barreiro(load: conformation.Load, device: str, threads: int | None) -> list[dict[str, Any]]:
    times = conformation.measure(load, device, threads)
    found = _row(
        BARREIRO, load.name, "dcpbd", times["particles"], f"{load.steps} × ({times['iterations']})", "frame", times["seconds"],
        run=times["run"], published=load.paper, hardware="GTX 1070", asked=load.wanted, stages=_shares(times["stages"]),
        neighbours=times["neighbours"], residual=times["residual"], made=times["made"],
    )  # fmt: skip
    return [found]


def _cake(device: str, threads: int | None) -> list[dict[str, Any]]:
    """The scene as published, from its first frame to its last; the last ones count, with everything on the cake."""
    from viscoil.scene.load import load
    from viscoil.simulate import Simulation

    sim = Simulation(load("cake", quality="as_published"), device=device, threads=threads)
    taken = []
    while sim.frame_index < sim.scene.time.frames:
        begin = perf_counter()
        sim.advance_frame()
        backend.synchronise()
        taken.append(perf_counter() - begin)
    last = float(np.mean(taken[-LAST:]))
    sim.world.stages.precise = True
    for _ in range(2):  # the first one compiles
        sim.advance_frame()
    parts = {name[8:]: value for name, value in sim.metrics().items() if name.startswith("seconds_")}
    found = _row(
        BARREIRO, "cake", "dcpbd", sim.particles, f"{sim.scene.time.steps_per_frame} × (15 + 5)", "frame", last, run=last,
        mean=float(np.mean(taken[1:])), hardware="GTX 1070", **CAKE,
        stages=_shares(parts),
    )  # fmt: skip
    return [found]


def loads() -> dict[str, Callable[[str, int | None], list[dict[str, Any]]]]:
    """What can be measured, by name: small before large."""
    found: dict[str, Any] = {}
    for scene in paper.SCENES:
        found[scene.name.lower().replace(" ", "_")] = lambda d, t, scene=scene: _macklin(scene, d, t)
    found["pbf_million"] = _million
    for load in pvfs.LOADS:
        found["1m_springs" if load.name == "1m" else load.name] = lambda d, t, load=load: _clavet(load, d, t)
    for load in iisph.LOADS:
        found["1m_bonds" if load.name == "1m" else load.name] = lambda d, t, load=load: _takahashi(load, d, t)
    for load in conformation.LOADS:
        found[load.name] = lambda d, t, load=load: _barreiro(load, d, t)
    found["cake"] = _cake
    return found


def default_loads() -> list[str]:
    """What each kind of device is asked for."""
    left_out = SMALL if backend.current().is_gpu else HEAVY
    return [name for name in loads() if name not in left_out]


def _rows(names: list[str], device: str, threads: int | None, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    known = loads()
    for name in names:
        say(name)
        yield from known[name](device, threads)
        gc.collect()


def main(
    names: list[str] | None = None, device: str = "auto", threads: int | None = None, json: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Measures the named loads (default: see :func:`default_loads`); ``json`` is written after every row."""
    running = backend.start(device, threads)
    chosen = names or default_loads()
    command = f"viscoil bench papers --device {running.device}" + (f" --loads {','.join(names)}" if names else "")
    result = store.opened("papers", command + (f" --threads {threads}" if threads else ""), copy=limits.copying())
    for row in _rows(chosen, device, threads, say):
        result["rows"].append(row)
        if row.get("made", 1.0) < ENOUGH:
            result["notes"].append(f"{row['name']}: {row['made']:.0%} of the iterations of the velocity projection were made")
        store.write(json, result)
    store.write(json, result)
    return result
