"""The tables of the papers, measured here, beside what was published and what we ask for: the scenes themselves, and loads.

A *scene* is the shipped one after a paper's figure, at the paper's size and in a run (scenes.py). A *load* has a paper's size,
steps and iterations, but is made for measuring, and is called what it is:

tank at rest             of the sizes of Macklin & Müller's scenes, confinement and XSPH included (paper.py)
block on a floor         with Clavet et al.'s springs (pvfs.py)
ball                     between plates or on a plane, with Takahashi et al.'s bonds (iisph.py)
cube on a table          of the sizes of Barreiro et al.'s Table 1 (conformation.py)

What we ask for is meant for one H200, small loads of PVFS and IISPH for two cores of a CPU; on anything else the figure is
there to compare with.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from viscoil import backend
from viscoil.bench import block, conformation, iisph, limits, paper, pvfs, report, scenes, stages, store
from viscoil.bench.cases import CASES

MACKLIN, CLAVET = "Macklin & Müller 2013", "Clavet et al. 2005"
TAKAHASHI, BARREIRO = "Takahashi et al. 2014", "Barreiro et al. 2017"
MILLION = "a million"  # PBF, 4 iterations, 28 neighbours
SMALLEST = 1000  # particles of quick loads
ASKED_RATES = {"whole steps": 3.2e9, "iterations alone": 5.0e9}  # particles·iterations/s of that
ENOUGH = 0.95  # share of the iterations that are to be made; who falls freely needs none
SMALL = ("block_1k", "block_20k_liquid", "pressed_ball")  # asked of CPUs; a GPU has the same kernels to compile, nothing to do
HEAVY = ("tank_million", "block_million", "ball_million", "cube_million", "cube_bears")  # minutes on a CPU: only when named
SIZES = {"interactive": "the interactive scenes' size", "honey": "honey's size", "waffle": "the waffle's size",
         "million": "a million", "bears": "the bears' size"}  # fmt: skip
BLOCKS = {"20k_liquid": "20k, no springs", "1m": "a million"}
RESTING = {"press": "ball between plates", "1m": "ball on a plane, a million"}
FIGURES = {
    figure.scene: (source, solver, hardware, figure)
    for source, solver, hardware, figures in (
        (BARREIRO, "dcpbd", "GTX 1070", scenes.BARREIRO), (MACKLIN, "pbf", paper.HARDWARE, scenes.MACKLIN),
        (CLAVET, "pvfs", "a CPU of 2005", scenes.CLAVET), (TAKAHASHI, "iisph", "", scenes.TAKAHASHI),
    )
    for figure in figures
}  # fmt: skip


@dataclass(frozen=True)
class How:
    """What is measured on, and how long."""

    device: str
    threads: int | None = None
    quick: bool = False  # small sizes, to see that it works: nothing is compared
    frames: int | None = None  # of a scene that are timed
    lead: int | None = None  # frames of a scene before those


def tank_name(scene: str) -> str:
    """What the load of the size of a scene of Macklin & Müller's is called; the others' names follow."""
    return f"tank at rest, {scene}'s size"


def block_name(load: str) -> str:
    """Of PVFS."""
    return f"block on a floor, {BLOCKS.get(load, load)}"


def ball_name(load: str, correction: str) -> str:
    """Of IISPH."""
    return f"{RESTING.get(load, load)}, {correction}"


def cube_name(load: str) -> str:
    """Of DC-PBD."""
    return f"cube on a table, {SIZES.get(load, load)}"


def _row(
    source: str, name: str, solver: str, particles: int, work: str, unit: str, value: float | None, **more: Any
) -> dict[str, Any]:  # fmt: skip
    """One row. ``value``: steps alone, without what a run has besides, in seconds per ``unit`` ("step", "frame"), or
    particles·iterations/s ("rate"); None of scenes. ``run``: seconds per unit in a run, which counts where it is known."""
    row = {
        "paper": source, "name": name, "solver": solver, "particles": particles, "work": work, "unit": unit, "value": value,
        "run": None, "published": None, "hardware": "", "asked": None, "asked_of": "H200", "stages": {}, **more,
    }  # fmt: skip
    if row["asked"] is not None:
        took = report.in_a_run(row)
        row["met"] = took >= row["asked"] if unit == "rate" else took <= row["asked"]
    return row


def _shares(taken: dict[str, float]) -> dict[str, float]:
    whole = sum(taken.values()) or 1.0
    return {name: value / whole for name, value in taken.items()}


def _macklin(scene: paper.PaperScene, how: How) -> list[dict[str, Any]]:
    def tank(particles: int, counts: dict[str, int]) -> Any:
        return block.scene(particles, "pbf", counts["iterations"], vorticity=paper.VORTICITY)

    case = replace(CASES["pbf"], scene=tank, counts={"iterations": scene.iterations})
    times = stages.timed(case, scene.particles, how.device, how.threads)
    found = _row(
        MACKLIN, tank_name(scene.name), "pbf", times["particles"], f"{scene.iterations} iterations", "step",
        1e-3 * times["step_ms"], run=1e-3 * times["run_ms"], published=1e-3 * scene.step_ms, hardware=paper.HARDWARE,
        compression=times["compression"], stages=_shares(times["stages_ms"]), split=paper.split(times["stages_ms"]),
        published_split=dict(zip(paper.CATEGORIES, scene.split, strict=True)) if scene.split else None,
    )  # fmt: skip
    return [found]


def _million(how: How) -> list[dict[str, Any]]:
    times = stages.timed(CASES["pbf"], SMALLEST if how.quick else 1_000_000, how.device, how.threads)
    rates = {"whole steps": times["rate"], "iterations alone": times["iteration_rate"]}
    return [
        _row(
            MACKLIN, f"tank at rest, {MILLION}, {what}", "pbf", times["particles"], "4 iterations", "rate", rate,
            asked=ASKED_RATES[what], compression=times["compression"], stages=_shares(times["stages_ms"]),
        )
        for what, rate in rates.items()
    ]  # fmt: skip


def _clavet(load: pvfs.Load, how: How) -> list[dict[str, Any]]:
    times = pvfs.measure(load, how.device, how.threads)
    asked = 1e-3 * load.wanted if load.wanted else None
    work = f"{times['springs']:.0f} springs each" if load.springs else "no springs"
    found = _row(
        CLAVET, block_name(load.name), "pvfs", times["particles"], work, "step", times["step"], run=times["seconds"],
        published=1e-3 * load.paper if load.paper else None, hardware="a CPU of 2005", asked=asked,
        asked_of="H200" if load.name == "1m" else "2 cores", compression=times["compression"], stages=_shares(times["stages"]),
    )  # fmt: skip
    return [found]


def _takahashi(load: iisph.Load, how: How) -> list[dict[str, Any]]:
    rows = []
    for correction in ("none", "springs", "position_based", "shape_matching") if load.plates else ("springs", "shape_matching"):
        times = iisph.measure(load, correction, 5, how.device, how.threads)
        asked = 1e-3 * load.wanted if load.wanted and correction != "none" else None
        rows.append(
            _row(
                TAKAHASHI, ball_name(load.name, correction), "iisph", times["particles"], "5 iterations", "step", times["step"],
                run=times["seconds"], asked=asked, hardware=iisph.PAPER, asked_of="2 cores" if load.plates else "H200",
                compression=times["compression"], stages=_shares(times["stages"]), share=times["share"],
            )
        )  # fmt: skip
    return rows


def _barreiro(load: conformation.Load, how: How) -> list[dict[str, Any]]:
    times = conformation.measure(load, how.device, how.threads)
    found = _row(
        BARREIRO, cube_name(load.name), "dcpbd", times["particles"], f"{load.steps} × ({times['iterations']})", "frame",
        times["seconds"], run=times["run"], published=load.paper, hardware="GTX 1070", asked=load.wanted,
        stages=_shares(times["stages"]), neighbours=times["neighbours"], residual=times["residual"], made=times["made"],
        compression=times["compression"], viscosity_share=times["viscosity_share"],
    )  # fmt: skip
    return [found]


def _scene(name: str, how: How) -> list[dict[str, Any]]:
    """A shipped scene in a run."""
    source, solver, hardware, figure = FIGURES[name]
    times = scenes.measure(figure, how.device, how.threads, how.frames, how.lead, how.quick)
    more = {key: value for key, value in times.items() if key not in ("particles", "work", "seconds", "stages")}
    found = _row(
        source, f"scene {name}", solver, times["particles"], times["work"], figure.unit, None, run=times["seconds"],
        published=figure.published, asked=figure.asked, hardware=hardware, stages=_shares(times["stages"]), **more,
    )  # fmt: skip
    return [found]


def _smaller(load: Any) -> Any:
    """The same with a thousand particles."""
    if isinstance(load, pvfs.Load):
        return replace(load, edges=(10, 10, 10))
    return replace(load, radius=6.0, plates=24 if load.plates else 0) if isinstance(load, iisph.Load) else replace(
        load, particles=SMALLEST
    )  # fmt: skip


def loads() -> dict[str, Callable[[How], list[dict[str, Any]]]]:
    """What can be measured, by name: scenes, then loads, small before large."""
    found: dict[str, Any] = {name: lambda how, name=name: _scene(name, how) for name in FIGURES}
    named: list[tuple[str, Any, Any]] = [
        *((f"tank_{scene.name.lower().replace(' ', '_')}", _macklin, scene) for scene in paper.SCENES),
        *(("block_million" if load.name == "1m" else f"block_{load.name}", _clavet, load) for load in pvfs.LOADS),
        *(("ball_million" if load.name == "1m" else "pressed_ball", _takahashi, load) for load in iisph.LOADS),
        *((f"cube_{load.name}", _barreiro, load) for load in conformation.LOADS),
    ]
    for name, measure, load in named:
        found[name] = lambda how, measure=measure, load=load: measure(_smaller(load) if how.quick else load, how)
    found["tank_million"] = _million
    return found


def default_loads(quick: bool = False) -> list[str]:
    """What each kind of device is asked for."""
    left_out = () if quick else SMALL if backend.current().is_gpu else (*HEAVY, *FIGURES)
    return [name for name in loads() if name not in left_out]


def _rows(names: list[str], how: How, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    known = loads()
    for name in names:
        say(name)
        for row in known[name](how):
            if how.quick:  # other sizes than the papers'
                row |= {"name": f"{row['name']}, quick", "published": None, "asked": None}
                row.pop("met", None)
            yield row
        gc.collect()


def _command(names: list[str] | None, running: str, how: How) -> str:
    options = {"loads": ",".join(names or []), "threads": how.threads, "frames": how.frames, "lead": how.lead}
    words = [f"--{name} {value}" for name, value in options.items() if value]
    return " ".join(["viscoil bench papers", f"--device {running}", *words, *(["--quick"] if how.quick else [])])


def main(
    names: list[str] | None = None, how: How = How("auto"), json: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Measures the named loads (default: see :func:`default_loads`); ``json`` is written after every row."""
    running = backend.start(how.device, how.threads)
    chosen = names or default_loads(how.quick)
    result = store.opened("papers", _command(names, running.device, how), copy=limits.copying())
    for row in _rows(chosen, how, say):
        result["rows"].append(row)
        if row.get("made", 1.0) < ENOUGH:
            result["notes"].append(f"{row['name']}: {row['made']:.0%} of the iterations of the velocity projection were made")
        store.write(json, result)
    store.write(json, result)
    return result
