"""Commands that measure speed: their options and help; :mod:`viscoil.cli.measuring` does what they say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from viscoil.cli.commands import Machine

Beside = Annotated[bool, Parameter(negative="--no-beside")]

bench = App(
    name="bench",
    help="Measure speed.",
    help_epilogue="Examples:\n  viscoil bench stages --particles 20000,100000\n  viscoil bench papers --device cuda\n"
    "  viscoil bench all --device cuda --json results",
)


@Parameter(name="*")
@dataclass
class Files:
    """Where results go.

    Parameters
    ----------
    json
        File for the results, written while they come in.
    plot
        Picture of them (.png, .svg); later: viscoil bench plot FILE.json.
    """

    json: Path | None = None
    plot: Path | None = None


@bench.command(
    help_epilogue="Examples:\n  viscoil bench stages\n  viscoil bench stages --solver pbf,dcpbd --particles 20000,100000\n"
    "  viscoil bench stages --device cuda --json speed.json --plot speed.png"
)
def stages(
    *, solver: str = "all", particles: str = "", iterations: int | None = None, beside: Beside = True, rounds: int = 5,
    files: Files | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Time every stage of a step of each solver, beside what the machine's memory allows and (on CPUs) plain C++.

    Parameters
    ----------
    solver
        pbf, dcpbd, pvfs, iisph, separated by commas, or all.
    particles
        Particle counts, separated by commas; left out: 20000 to 500000 on a CPU, to 1 or 10 million on a GPU.
    iterations
        Iterations per step, of each kind; left out: 4 (pbf), 8 + 8 (dcpbd), 5 (iisph).
    beside
        Compare PBF with the C++ yardstick on CPUs, where g++ is present.
    rounds
        How often everything is timed; the best counts.
    """
    from viscoil.cli import measuring

    return measuring.stages(solver, particles, iterations, beside, rounds, files or Files(), machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench loops --solver pbf --particles 1000000 --device cuda\n"
    "  viscoil bench loops --solver dcpbd --whole"
)
def loops(
    *, solver: str = "all", particles: str = "", iterations: int | None = None, whole: bool = False,
    files: Files | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Time every single loop of a step: where exactly the time goes.

    Parameters
    ----------
    solver
        pbf, dcpbd, pvfs, iisph, separated by commas, or all.
    particles
        Particle counts, separated by commas; left out: 100000.
    iterations
        Iterations per step, of each kind; left out: as ``stages``.
    whole
        The step as the one kernel that GPUs run, instead of one kernel per stage.
    """
    from viscoil.cli import measuring

    return measuring.loops(solver, particles, iterations, whole, files or Files(), machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench papers --device cuda\n"
    "  viscoil bench papers --loads honey,cube_honey --device cuda\n  viscoil bench papers --quick --loads honey,tank_dam_break"
)
def papers(
    *, loads: str = "", quick: bool = False, frames: int | None = None, lead: int | None = None, files: Files | None = None,
    machine: Machine | None = None,
) -> int:  # fmt: skip
    """The papers' scenes in a run, and loads of their sizes, beside what they published and what we ask for.

    Parameters
    ----------
    loads
        Names, separated by commas, or all; left out: loads that take seconds on a CPU; on a GPU the scenes and the large loads.
        Scenes: blocks, ice_cream, hand_and_bowl, coiling, waffle, honey, cake, gummy_bears, bear_bath, bear_splash, dam_break,
        bear_drop, plastic_blocks, ball_press. Loads: tank_armadillo_splash, tank_dam_break, tank_bunny_drop, tank_million;
        block_1k, block_20k, block_20k_liquid, block_million; pressed_ball, ball_million; cube_interactive, cube_honey,
        cube_waffle, cube_million, cube_bears.
    quick
        Scenes as they are written, loads of a thousand particles, a few frames: to see that it works. Nothing is compared.
    frames
        Frames of a scene that are timed; left out: 20.
    lead
        Frames of a scene before those; left out: until its nozzles have emitted all, or until the moment of its picture.
    """
    from viscoil.cli import measuring

    return measuring.papers(loads, quick, frames, lead, files or Files(), machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench scaling --device cpu\n"
    "  viscoil bench scaling --device cuda --solver pbf --largest"
)
def scaling(
    *, solver: str = "all", particles: str = "", largest: bool = False, thread_particles: int = 100_000,
    thread_counts: str = "",
    files: Files | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """How cost grows with particles, up to what fits the device, and how it falls with the threads of a CPU.

    Parameters
    ----------
    solver
        pbf, dcpbd, pvfs, iisph, separated by commas, or all.
    particles
        Particle counts, separated by commas, or none; left out: 10000 to 300000 on a CPU, to 10 million on a GPU.
    largest
        Also 100 million of pbf and 50 million of dcpbd, or as many as fit.
    thread_particles
        Particles of the comparison of threads, on CPUs; 0: no such comparison.
    thread_counts
        Numbers of threads to compare, separated by commas; left out: 1, 2, 4 … up to twice the cores.
    """
    from viscoil.cli import measuring

    return measuring.scaling(
        solver, particles, largest, thread_particles, thread_counts, files or Files(), machine or Machine()
    )


@bench.command(help_epilogue="Examples:\n  viscoil bench peers --threads 2\n  viscoil bench peers --quick --json peers.json")
def peers(
    *, contests: str = "all", seconds: float | None = None, quick: bool = False, folder: Path | None = None,
    files: Files | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Other simulators on the same scenes in the same run, side by side with ours.

    Parameters
    ----------
    contests
        Which, separated by commas: pbf, dfsph, viscous, iisph, genesis, or all.
    seconds
        Simulated span of every contest [s]; left out: each one's own.
    quick
        Tiny sizes, to see that it works.
    folder
        Where the peers' virtual environments live; left out: ~/.cache/viscoil/peers.
    """
    from viscoil.cli import measuring

    options = {"contests": contests, "seconds": seconds, "quick": quick, "folder": folder}
    return measuring.other("peers", options, files or Files(), machine or Machine())


@bench.command(help_epilogue="Examples:\n  viscoil bench convergence\n  viscoil bench convergence --quick --plot error.png")
def convergence(
    *, cases: str = "all", quick: bool = False, files: Files | None = None, machine: Machine | None = None
) -> int:  # fmt: skip
    """Error against wall time of the ways to iterate: what a second of computing buys.

    Parameters
    ----------
    cases
        Which, separated by commas: column, dam, blow, cube, coil, or all.
    quick
        Smaller and shorter: a first look.
    """
    from viscoil.cli import measuring

    options = {"cases": cases, "quick": quick}
    return measuring.other("convergence", options, files or Files(), machine or Machine())


@bench.command(
    name="all",
    help_epilogue="Examples:\n  viscoil bench all --device cuda --json results/h200\n"
    "  viscoil bench all --json results --parts stages,papers --budget 500",
)
def everything(
    *, json: Path, parts: str = "", budget: float | None = None, machine: Machine | None = None
) -> int:  # fmt: skip
    """Every part in turn, each in a process of its own, into one folder: a machine's whole record.

    Parameters
    ----------
    json
        Folder for stages.json, papers.json, scaling.json, convergence.json and (CPUs) peers.json.
    parts
        Which, separated by commas; left out: all.
    budget
        Seconds after which no more is measured; what was is kept.
    """
    from viscoil.cli import measuring

    return measuring.everything(json, parts, budget, machine or Machine())


@bench.command(help_epilogue="Examples:\n  viscoil bench plot speed.json\n  viscoil bench plot speed.json -o speed.svg")
def plot(file: Path, *, output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None) -> int:
    """Tables and a picture of stored results, also of another machine.

    Parameters
    ----------
    file
        What ``--json`` wrote.
    output
        The picture; left out: beside the file, as .png.
    """
    from viscoil.cli import measuring

    return measuring.plot(file, output)


@bench.command(
    help_epilogue="Examples:\n  viscoil bench conformation --device cuda\n"
    "  viscoil bench conformation --loads interactive --compare",
)
def conformation(
    *, loads: str = "interactive", density: int | None = None, projection: str = "cg", compare: bool = False,
    json: Path | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Frames at the sizes of Barreiro et al. 2017 in other variants than ``papers`` measures.

    Parameters
    ----------
    loads
        Which, separated by commas: interactive (15k particles), honey (105k), waffle (80k), million, bears (12M), or all.
    density
        Iterations of the density constraint per step; left out: as many as of the velocity projection.
    projection
        cg, chebyshev or jacobi.
    compare
        Also how long each projection takes until its residual is a hundredth.
    json
        File for the results.
    """
    from viscoil.cli import measuring

    return measuring.conformation(loads, density, projection, compare, json, machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench pvfs\n  viscoil bench pvfs --loads 1m --device cuda\n"
    "  viscoil bench pvfs --loads 20k --relaxation coloured,sequential,jacobi",
)
def pvfs(
    *, loads: str = "1k,20k", relaxation: str = "auto", json: Path | None = None, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Steps of PVFS (Clavet et al. 2005) with springs, all relaxations, beside the fastest CPU code known.

    Parameters
    ----------
    loads
        Which, separated by commas: 1k, 20k (both with springs), 20k_liquid (without), 1m (a million with springs), or all.
    relaxation
        auto, coloured, sequential or jacobi; several, separated by commas, are measured one after the other.
    json
        File for the results.
    """
    from viscoil.cli import measuring

    return measuring.pvfs(loads, relaxation, json, machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench iisph --threads 2\n  viscoil bench iisph --loads 1m --device cuda\n"
    "  viscoil bench iisph --corrections springs,shape_matching --iterations 2",
)
def iisph(
    *, loads: str = "press", corrections: str = "all", iterations: int = 5, json: Path | None = None,
    machine: Machine | None = None,
) -> int:  # fmt: skip
    """Steps of velocity-corrected IISPH (Takahashi et al. 2014): every correction, its share of a step.

    Parameters
    ----------
    loads
        Which, separated by commas: press (a ball of 8.2k particles between plates), 1m (a million on a plane), or all.
    corrections
        none, springs, springs_plastic, position_based, shape_matching, separated by commas, or all.
    iterations
        Pressure iterations per step, all of them made; the paper has 5 in Fig. 3 and mostly 2 else.
    json
        File for the results.
    """
    from viscoil.cli import measuring

    return measuring.iisph(loads, corrections, iterations, json, machine or Machine())


@bench.command(
    help_epilogue="Examples:\n  viscoil bench export\n  viscoil bench export --particles 20000 --frames 50 --formats usd,abc",
)
def export(
    *, particles: int = 100_000, frames: int = 100, formats: str = "", what: str = "particles", json: Path | None = None
) -> int:
    """Time, size and memory of exports, each format in a process of its own.

    Parameters
    ----------
    particles
        Particles of the made-up run.
    frames
        Its frames.
    formats
        Formats, separated by commas; all when left out.
    what
        particles, surface or all.
    json
        File for the results.
    """
    from viscoil.cli import measuring

    return measuring.export(particles, frames, formats, what, json)


bench.command("viscoil.cli.surfaces:bench", name="surface", help="Time surfaces and ellipsoids.")
bench.command("viscoil.cli.renders:bench", name="render", help="Time pictures, traced and quick.")
bench.command("viscoil.cli.live:bench_studio", name="studio", help="Count what the studio gets to a browser, watch its memory.")
