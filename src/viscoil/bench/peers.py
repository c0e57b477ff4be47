"""viscoil beside other simulators: the same scenes in the same run, taking turns, judged by one measure.

Each contest is one case (:mod:`viscoil.bench.peers_scenes`), a peer's method with the settings its own scenes have, and one or
more of ours. Both get the same number of threads. Wall times decide; the time of all cores stands beside them, because on
a busy machine it is what is left to compare.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viscoil.bench import peers_install, peers_race
from viscoil.bench.peers_install import GENESIS
from viscoil.bench.peers_scenes import BASIN, COLUMN, CUBE, DAM, Case, smaller, write_genesis, write_splish
from viscoil.bench.report import Table, number

HERE = Path(__file__).resolve().parent
SETTLED = 0.25  # share of the span after which compressions count: before, nothing has met anything


@dataclass(frozen=True)
class Runner:
    """One of ours: a name, and solver and time as in scene files."""

    name: str
    solver: dict[str, Any]
    time: dict[str, Any]


@dataclass(frozen=True)
class Contest:
    """A case, a peer's method, ours."""

    name: str
    case: Case
    label: str  # what the peer runs, for people
    method: str
    options: dict[str, Any]  # for the writer of its scene
    ours: tuple[Runner, ...]
    peer: peers_install.Peer = peers_install.SPLISH
    script: str = "peers_splish.py"  # run in its environment
    write: Callable[..., Path] = write_splish  # its scene file
    notes: tuple[str, ...] = field(default=())


# Without bonds momentum may carry the pressure's iterations.
LIQUID = {"method": "iisph", "tolerance": 2.5e-4, "iterations": 100, "acceleration": "momentum"}

CONTESTS = (
    Contest(
        "pbf", DAM, "PBF, 4 iterations, 2.5 ms", "PBF",
        {"step": 0.0025, "settings": {"minIterations": 4, "maxIterations": 4, "maxError": 0.0}},
        (Runner("PBF, 4 iterations, 2.5 ms", {"method": "pbf", "iterations": 4}, {"step": 0.0025}),),
    ),
    Contest(
        "dfsph", DAM, "DFSPH, CFL ≤ 5 ms, 0.05 %", "DFSPH", {"settings": {"maxError": 0.05, "maxErrorV": 0.1}},
        (
            Runner("IISPH, CFL ≤ 5 ms, 0.025 %", LIQUID, {"cfl": 0.4, "max_step": 0.005}),
            Runner("IISPH, CFL ≤ 5 ms, 0.01 %", LIQUID | {"tolerance": 1e-4}, {"cfl": 0.4, "max_step": 0.005}),
            Runner("PBF, 12 iterations, 5 ms", {"method": "pbf", "iterations": 12}, {"step": 0.005}),
        ),
        notes=("DFSPH with the tolerances of its own dam break; its defaults (0.01 %) took 1.7 times as long in a trial",),
    ),
    Contest(
        "viscous", CUBE, "DFSPH + Weiler 2018, CFL ≤ 5 ms", "DFSPH",
        {"settings": {"maxError": 0.1, "maxErrorV": 0.1}, "viscous": {"viscoMaxIter": 200, "viscoMaxError": 0.05}},
        (Runner("DC-PBD, 1/30 s", {"method": "dcpbd"}, {"step": 1 / 30}),),
        notes=("Weiler 2018 with the tolerances of SPlisHSPlasH's own viscous bunny scene",),
    ),
    Contest(
        "iisph", BASIN, "IISPH, CFL ≤ 5 ms, boundary particles", "IISPH", {"settings": {"maxError": 0.05}},
        (Runner("IISPH, CFL ≤ 5 ms, boundary particles", LIQUID, {"cfl": 0.4, "max_step": 0.005}),),
    ),
    Contest(
        "genesis", COLUMN, "PBD, 10 iterations, 2 ms", "PBD", {"step": 0.002, "substeps": 1, "iterations": 10},
        (Runner("PBF, 4 iterations, 4 ms", {"method": "pbf", "iterations": 4}, {"step": 0.004}),),
        GENESIS, "peers_genesis.py", write_genesis, ("Genesis PBD as in its own example (liquid of density 1)",),
    ),
    Contest(
        "genesis", COLUMN, "MPM, 10 substeps of 0.4 ms", "MPM", {"step": 0.004, "substeps": 10, "iterations": 1},
        (Runner("PBF, 4 iterations, 4 ms", {"method": "pbf", "iterations": 4}, {"step": 0.004}),),
        GENESIS, "peers_genesis.py", write_genesis,
    ),
)  # fmt: skip
NAMES = tuple(dict.fromkeys(contest.name for contest in CONTESTS))


def chosen(contests: str) -> list[Contest]:
    """Contests by name, separated by commas, or all."""
    from viscoil.errors import SceneError
    from viscoil.keys import did_you_mean

    names = list(NAMES) if contests == "all" else [name.strip() for name in contests.split(",") if name.strip()]
    for name in names:
        if name not in NAMES:
            raise SceneError(
                f"contests: there is no contest called '{name}'; expected {', '.join(NAMES)} or all.{did_you_mean(name, NAMES)}"
            )
    return [contest for contest in CONTESTS if contest.name in names]


def sized(contest: Contest, seconds: float | None, quick: bool) -> Contest:
    """The contest with the span and size asked for."""
    case = smaller(contest.case) if quick else contest.case
    if seconds:
        case = replace(case, seconds=seconds, turn=min(case.turn, seconds))
    return replace(contest, case=case)


def hold(
    contest: Contest, folder: Path | None, device: str, threads: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """One contest: rows of the peer (first) and of ours."""
    case, everyone = contest.case, []
    environment, version = peers_install.install(contest.peer, folder, say)
    # Volume maps take a minute and are kept beside the scenes.
    place = environment / "scenes"
    scene = contest.write(case, contest.method, place, **contest.options)
    try:
        everyone.append(
            peers_race.start_theirs(
                case, contest.peer.name, contest.label, contest.options, HERE / contest.script, scene, environment, threads
            )
        )
        for runner in contest.ours:
            everyone.append(peers_race.Ours(case, runner.name, runner.solver, runner.time, device, threads))
        peers_race.race(everyone, case, say)
        rows = [peers_race.summary(one, case, SETTLED) for one in everyone]
    finally:
        for one in everyone:
            one.close()
    for row in rows:
        row |= {"contest": contest.name, "version": version if row["code"] == contest.peer.name else ""}
        row["ratio"] = peers_race.ratio(rows[0], row)
        row["cpu_ratio"] = peers_race.ratio(rows[0], row, "cpu")
        row["step_ratio"] = rows[0]["ms_per_step"] / row["ms_per_step"] if row["ms_per_step"] else None
    return rows


def main(
    device: str = "auto",
    threads: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    contests: str = "all",
    seconds: float | None = None,
    quick: bool = False,
    folder: Path | None = None,
    json: Path | None = None,
) -> dict[str, Any]:
    """Holds the contests and returns rows, one per contestant; ``json`` is rewritten after every contest.

    ``contests``: names out of NAMES, separated by commas. ``seconds``: span to simulate. ``quick``: tiny sizes. ``folder``:
    where the peers' environments live.
    """
    from viscoil import backend
    from viscoil.bench import store

    wanted = [sized(contest, seconds, quick) for contest in chosen(contests)]
    backend.start(device, threads)
    workers = threads or backend.cores()
    command = "viscoil bench peers" + (" --quick" if quick else "") + f" --threads {workers}"
    command += (f" --contests {contests}" if contests != "all" else "") + (f" --seconds {seconds:g}" if seconds else "")
    result = store.opened("peers", command)
    result["machine"]["threads"] = workers
    for contest in wanted:
        try:
            result["rows"] += hold(contest, folder, device, workers, say)
            result["notes"] += contest.notes
        except peers_install.PeerMissing as error:
            result["notes"].append(f"{contest.name} ({contest.label}): not run. {error}")
            say(result["notes"][-1])
        store.write(json, result)
    return result


# --- for people ------------------------------------------------------------------------------------------------------------
def _percent(value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.3f}" if abs(value) < 0.1 else f"{100 * value:.1f}"


def tables(result: dict[str, Any]) -> list[Table]:
    """Who took how long and kept what volume; and how the viscous cube sank."""
    columns = [
        "contest", "code", "method", "particles", "steps", "iterations", "ms/step", "s per simulated s",
        "CPU s per simulated s", "times faster", "by CPU time", "compression mean %", "highest %", "by 2 spacings %",
        "own mean %", "own max %",
    ]  # fmt: skip
    rows = []
    for row in result["rows"]:
        faster, cpu = (f"{row[key]:.2f}×" if row[key] else "" for key in ("ratio", "cpu_ratio"))
        theirs = bool(row["version"])
        rows.append([
            row["title"], f"{row['code']} {row['version']}".strip(), row["method"], f"{row['particles']:,}", str(row["steps"]),
            f"{row['iterations']:.1f}", number(row["ms_per_step"]), number(row["seconds_per_second"] or 0.0),
            number(row["cpu_per_second"] or 0.0), "" if theirs else faster, "" if theirs else cpu,
            _percent(row["compression_mean"]), _percent(row["compression_max"]),
            _percent(row.get("narrow_mean")), _percent(row["own_mean"]),
            _percent(row["own_max"]),
        ])  # fmt: skip
    about = result["machine"]
    title = f"Beside others, taking turns: {about['gpu'] or about['cpu']}, {about['threads']} threads each"
    found: list[Table] = [(title, columns, rows)]
    heaps = [row for row in result["rows"] if row["contest"] == "viscous" and row["turns"]["time"]]
    if heaps:
        moments = [f"{moment:.2f} s" for moment in heaps[-1]["turns"]["time"]]
        heights = [[f"{row['code']}, {row['method']}", *(f"{h:.3f}" for h in row["turns"]["height"])] for row in heaps]
        heights = [line + [""] * (len(moments) + 1 - len(line)) for line in heights]
        found.append(("Equal viscosity: height of the cube over time, in m", ["", *moments], heights))
    return found


def draw(result: dict[str, Any], figure: Any) -> None:
    """Bars: seconds per simulated second; compression; how the cube sinks."""
    from matplotlib import ticker

    rows = [row for row in result["rows"] if row["seconds_per_second"]]
    heaps = [row for row in rows if row["contest"] == "viscous"]
    panes = figure.subplots(1, 3 if heaps else 2)
    names = [f"{row['title']}\n{row['code']}: {row['method']}" for row in rows]
    colours = ["tab:grey" if row["version"] else "tab:blue" for row in rows]
    places = range(len(rows))
    for axes, values, what in (
        (panes[0], [row["seconds_per_second"] for row in rows], "seconds per simulated second"),
        (panes[1], [max(100 * row["compression_mean"], 1e-4) for row in rows], "mean compression [%]"),
    ):
        axes.barh(places, values, color=colours)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))  # decades alone may be none
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
        axes.tick_params(axis="x", labelrotation=45)
        axes.set_xlabel(what)
        axes.invert_yaxis()
        axes.set_yticks(places, names if axes is panes[0] else [""] * len(rows), fontsize=7)
    for place, row in enumerate(rows):
        if not row["version"] and row["ratio"]:
            where = (row["seconds_per_second"], place)
            panes[0].annotate(f"{row['ratio']:.1f}×", where, xytext=(3, 0), textcoords="offset points", va="center")
    if heaps:
        for row in heaps:
            t = row["turns"]
            panes[2].plot(t["time"], t["height"], "--" if row["version"] else "-", marker=".", label=row["code"])
        panes[2].set_xlabel("time [s]")
        panes[2].set_ylabel("height of the viscous cube [m]")
        panes[2].legend()
