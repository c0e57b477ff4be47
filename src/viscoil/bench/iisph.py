"""Whole steps of velocity-corrected IISPH, with every correction, beside the times of Takahashi et al. 2014.

"press" is the ball of Figs. 3 and 5 (8.2k particles, plates of 13.4k boundary particles as in Table 1), measured while it is
held between the plates, a quarter of its height pressed away (without bonds it would flow off: as it touches them); "1m" a ball
of a million that sinks into itself on a plane. All iterations of the pressure are made. Corrections have the same modulus, so
that they do the same work; "springs_plastic" are springs whose bonds weaken, break and are made anew. "in a run" is a frame of
a simulation, with checks, sorting of memory and metrics; "solver" its steps alone; "CPU" the time of all cores together, which
other programs on a busy machine disturb less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from viscoil import backend
from viscoil.bench import rounds

ROUNDS = 5  # measured per row; the median counts
STEPS = 10  # per round, and per frame
SPACING = 0.04  # [m]
STEP = 0.002  # [s]
MODULUS = 16e3  # [Pa]: springs of 490 N/m; longer steps would boil
SHARE = 0.25  # of a step: what corrections may cost, we asked
CORRECTIONS: dict[str, dict[str, Any]] = {
    "none": {"correction": "none"},
    "springs": {"correction": "springs"},
    "springs_plastic": {
        "correction": "springs", "weakening": 0.5, "lower_limit": 0.1, "merge_ratio": 0.6, "split_ratio": 0.4,
    },
    "position_based": {"correction": "position_based"},
    "shape_matching": {"correction": "shape_matching"},
}  # fmt: skip
PAPER = (
    "Fig. 3, 8.2k particles, 5 iterations: 1.94 s (Takamatsu & Kanai) and 2.03 s (shape matching) per frame of a number of "
    "steps that is not told; corrections take 16.4 % of the time with 2 iterations (Takahashi et al. 2014, 4 cores at 3.5 GHz)"
)


@dataclass(frozen=True)
class Load:
    """What is simulated."""

    name: str
    radius: float  # of the ball, in spacings
    plates: int  # their edge, in spacings; 0: a plane, no plates
    pressed: float  # share of the ball's height that the upper plate takes before times are taken
    gravity: float  # [m/s²]
    wanted: float | None  # [ms] per step: what we asked for, on two CPU cores, or on an H200 for the million


LOADS = [Load("press", 12.5, 56, 0.25, 9.81, 1e3 / 60), Load("1m", 62.05, 0, 0.0, 1.0, 6.0)]


def way(load: Load, correction: str) -> float:
    """How far the upper plate goes down [m], at 1 m/s."""
    return load.pressed * 2 * load.radius * SPACING if correction != "none" else 0.0


def pressing(load: Load, correction: str) -> int:
    """Frames until times are taken: until the upper plate stands, and as long again for the ball to calm down."""
    return max(1, round(2 * way(load, correction) / (STEPS * STEP)))


def scene(load: Load, correction: str = "springs", iterations: int = 5) -> Any:
    """A ball between plates, or on a plane."""
    from viscoil.scene.schema import Scene

    radius, edge, thick = load.radius * SPACING, load.plates * SPACING, 4 * SPACING
    solids: list[dict[str, Any]] = [{"name": "floor", "shape": {"type": "plane"}}]
    if load.plates:
        down = way(load, correction)
        box = {"type": "box", "size": [edge, thick, edge]}
        solids = [
            {"name": "floor", "boundary": "particles", "shape": {**box, "position": [0, -thick / 2, 0]}},
            {
                "name": "plate", "boundary": "particles", "shape": {**box, "position": [0, 2 * radius + thick / 2, 0]},
                "motion": [{"time": 0, "position": [0, 0, 0]}, {"time": down, "position": [0, -down, 0]}] if down else [],
            },
        ]  # fmt: skip
    return Scene(
        title=load.name,
        spacing=SPACING,
        gravity=(0.0, -load.gravity, 0.0),
        time={"frame_time": STEPS * STEP, "steps_per_frame": STEPS},
        solver={"method": "iisph", "tolerance": 0.0, "iterations": iterations, **CORRECTIONS[correction]},
        material={"ball": {"density": 1000.0, "modulus": MODULUS}},
        fluid=[{"material": "ball", "shape": {"type": "sphere", "radius": radius, "position": [0, radius, 0]}}],
        solid=solids,
    )


def measure(load: Load, correction: str, iterations: int, device: str, threads: int | None) -> dict[str, Any]:
    """Seconds per step of a run and of the solver alone, and the split; medians of several rounds."""
    from viscoil.simulate import Simulation

    sim = Simulation(scene(load, correction, iterations), device=device, threads=threads)
    for _ in range(pressing(load, correction)):  # compiles, makes lists and rows long enough; then the plate stands
        sim.advance_frame()
    times = rounds.timed(sim, STEPS, STEP, ROUNDS)
    world, neighbours = sim.world, rounds.listed_neighbours(sim)
    bonds = sim.solver.metrics().get("bonds", 0.0)
    return {
        "name": load.name, "correction": correction, "particles": world.fluid_count, "boundary": world.boundary_count,
        "iterations": iterations, "neighbours": neighbours, "bonds": bonds, **times,
        "share": times["stages"]["correction"] / sum(times["stages"].values()),
        "rate": world.fluid_count * iterations / times["seconds"], "wanted": load.wanted,
        "bytes": rounds.moved(sim, {"iterations": iterations}),
    }  # fmt: skip


def main(
    names: list[str], device: str, threads: int | None, corrections: list[str] | None = None, iterations: int = 5,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """All rows asked for."""
    from viscoil.bench import machine

    backend.start(device, threads)
    about, rows = machine.describe(), []
    for load in LOADS:
        for correction in corrections or list(CORRECTIONS):
            if load.name in names:
                say(f"{load.name}: {correction}")
                rows.append(measure(load, correction, iterations, device, threads))
    return {"machine": about, "rows": rows, "paper": PAPER}


def table(result: dict[str, Any]) -> str:
    """The rows as text, and what stands beside them."""
    lines = [
        f"{'load':6} {'correction':15} {'particles':>9} {'boundary':>8} {'iterations':>10} {'neighbours':>10} {'bonds':>5} "
        f"{'ms/step':>8} {'steps/s':>8} {'solver ms':>9} {'steps/s':>8} {'CPU ms':>7} {'asked ms':>8} {'Mp·it/s':>8} "
        f"{'TB/s':>5}  share of stages"
    ]
    for row in result["rows"]:
        wanted = f"{row['wanted']:.1f}" if row["wanted"] else ""
        moved = f"{row['bytes'] / row['step'] / 1e12:.2f}" if row["bytes"] else ""
        lines.append(
            f"{row['name']:6} {row['correction']:15} {row['particles']:>9,} {row['boundary']:>8,} {row['iterations']:>10} "
            f"{row['neighbours']:>10.1f} {row['bonds']:>5.1f} {1e3 * row['seconds']:>8.2f} {1 / row['seconds']:>8.1f} "
            f"{1e3 * row['step']:>9.2f} {1 / row['step']:>8.1f} {1e3 * row['cpu']:>7.1f} {wanted:>8} "
            f"{row['rate'] / 1e6:>8.2f} {moved:>5}  {rounds.shares(row['stages'])}"
        )
    for row in result["rows"]:
        if row["correction"] != "none":
            verdict = "less" if row["share"] < SHARE else "not less"
            lines.append(
                f"{row['name']}, {row['correction']}: {100 * row['share']:.1f} % of a step, {verdict} than the "
                f"{100 * SHARE:.0f} % we asked for"
            )
    lines.append("ms/step: in a run, median of frames; CPU ms: of all cores together; bonds: per particle, each counted once")
    lines += rounds.busy(result["machine"])
    lines.append(f"beside: {result['paper']}")
    return "\n".join(lines)
