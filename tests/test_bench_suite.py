"""The suite of ``viscoil bench``: numbers fit each other, files keep their shape, tables and plots come from files."""

import importlib.util
import json
import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from viscoil import backend
from viscoil.bench import (
    cases,
    conformation,
    iisph,
    limits,
    machine,
    memory,
    paper,
    papers,
    plots,
    pvfs,
    report,
    scaling,
    scenes,
    stages,
    store,
    suite,
    traffic,
)
from viscoil.cli import main
from viscoil.errors import DeviceError, ViscoilError
from viscoil.scene.load import load
from viscoil.simulate import Simulation

ROOT = Path(__file__).resolve().parent.parent
SMALL = 1500


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """All solvers, small, as read back from the file."""
    patch = pytest.MonkeyPatch()
    patch.setattr(stages, "SECONDS_PER_ROUND", 0.02)
    patch.setattr(limits, "LARGEST_ON_CPU", 1 << 22)
    patch.setattr(limits, "MOVED", {True: 1 << 22, False: 1 << 22})
    file = tmp_path_factory.mktemp("bench") / "stages.json"
    said = []
    try:
        stages.main(None, [SMALL], "cpu", json=file, rounds=1, say=said.append)
    finally:
        patch.undo()
    assert said[:2] == ["copying", "pbf: 1,500 particles"]
    return store.read(file)


@pytest.fixture(scope="module")
def written(result, tmp_path_factory):
    """Results of three kinds in a folder of results, two machines."""
    folder = tmp_path_factory.mktemp("results")
    card = {**result, "machine": {**result["machine"], "gpu": "A card"}, "yardstick": None}
    for name, stored in (("cpu", result), ("card", card)):
        (folder / name).mkdir()
        for one in (stored, _papers(stored), _scaling(stored)):
            store.write(folder / name / f"{one['kind']}.json", one)
    return folder


def _papers(like):
    rows = [
        papers._row("A paper", "fast", "pbf", 1000, "4", "step", 0.001, asked=0.002, published=0.1, stages={"a": 1.0}),
        papers._row("A paper", "slow", "pbf", 1000, "4 iterations", "frame", 0.003, asked=0.002, stages={"a": 0.4, "b": 0.6}),
        papers._row("A paper", "rate", "pbf", 1000, "4 iterations", "rate", 2e9, asked=4e9, stages={"a": 1.0}),
    ]
    return {**like, "kind": "papers", "command": "viscoil bench papers", "rows": rows}


def _scaling(like):
    account = {"parts": dict.fromkeys(report.OWNERS, 10), "bytes": 70, "per_particle": 70.0}
    sizes = [
        {"what": "sizes", "solver": s, "particles": n, "built_s": 1.0, "step_ms": n / 1e4, "iteration_ms": {"iterations": 1.0},
         "cost_ns": 3.0, "memory": account, "taken_bytes": None, "steps": 5}
        for s in ("pbf", "dcpbd") for n in (1000, 10_000)
    ]  # fmt: skip
    threads = [
        {"what": "threads", "solver": s, "threads": n, "particles": 1000, "step_ms": 8 / n, "iteration_ms": {}, "copy": 1e9 * n}
        for s in ("pbf", "dcpbd") for n in (1, 2, 4)
    ]  # fmt: skip
    rows = sizes if like["machine"]["gpu"] else threads + sizes
    return {**like, "kind": "scaling", "command": "viscoil bench scaling", "rows": rows}


# --- what files hold -------------------------------------------------------------------------------------------------
def test_files_keep_their_shape(result):
    assert set(result) == {"format", "kind", "command", "machine", "copy", "yardstick", "rows", "notes"}
    assert result["format"] == store.FORMAT == 2 and result["command"].startswith("viscoil bench stages --device cpu")
    assert set(result["copy"]) == {"bytes", "rate", "memory", "hot", "cache"}
    assert [row["solver"] for row in result["rows"]] == ["pbf", "dcpbd", "pvfs", "iisph"]
    for row in result["rows"]:
        assert set(row) == {
            "solver", "particles", "neighbours", "ends", "counts", "iterations", "steps", "stages_ms", "stepwise_ms", "step_ms",
            "run_ms", "iteration_ms", "rate", "iteration_rate", "walk_ms", "traffic", "memory", "floors",
        }  # fmt: skip
        assert set(row["traffic"]) == {"stages", "step", "iteration", "walks"}
        assert set(row["memory"]) == {"parts", "bytes", "per_particle"}


def test_a_result_says_what_it_was_measured_with(result):
    about = result["machine"]
    assert about["device"] == "cpu" and about["gpu"] == "" and about["cpu"] and about["cores"] >= 1
    assert set(about["versions"]) == {"viscoil", "python", "quadrants", "numpy"} and len(about["date"].split("-")) == 3
    assert machine.processor() in report.hardware(result)


def test_a_busy_machine_is_mentioned():
    assert "was busy (load 9" in machine.notes({"load": 9.0, "cores": 2})[0]
    assert machine.notes({"load": 0.5, "cores": 2}) == []


def test_load_is_what_others_do_now(monkeypatch):
    """Not what this process did in the last minute: parts of a record would call each other a busy machine."""
    times = iter([(1000, 400), (1060, 415)])
    monkeypatch.setattr(machine, "_times", lambda: next(times))
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(machine, "sleep", lambda seconds: None)
    assert machine.load() == pytest.approx(4 * 15 / 60)


def test_what_is_no_result_is_refused(tmp_path):
    for text in ("{", "[]", '{"kind": "surface", "rows": []}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ViscoilError, match=r"cannot be read|holds no results"):
            store.read(tmp_path / "other.json")


# --- stages ----------------------------------------------------------------------------------------------------------
def test_stages_add_up_to_a_step(result):
    for row in result["rows"]:
        assert {"sort", "list"} < set(row["stages_ms"]) and all(value > 0 for value in row["stages_ms"].values())
        total = sum(row["stages_ms"].values())
        assert total <= row["stepwise_ms"] * (1 + 1e-9)
        assert set(row["iteration_ms"]) == set(cases.CASES[row["solver"]].counts)
        assert abs(row["particles"] / SMALL - 1) < 0.15 and 15 < row["neighbours"] < 130


def test_rates_are_particles_times_iterations_over_time(result):
    for row in result["rows"]:
        counts = {key: row["counts"][key] for key in row["iteration_ms"]}
        work = row["particles"] * (sum(counts.values()) or 1)
        assert row["rate"] == pytest.approx(1e3 * work / row["step_ms"])
        alone = sum(n * row["iteration_ms"][key] for key, n in counts.items()) or row["step_ms"]
        assert row["iteration_rate"] == pytest.approx(1e3 * work / alone)


def test_floors_are_bytes_over_copy_rates(result):
    for row in result["rows"]:
        least = row["floors"]
        moved = row["traffic"]["step"] * row["particles"]
        assert least["memory_ms"]["step"] == pytest.approx(1e3 * moved / result["copy"]["memory"])
        for key, took in row["iteration_ms"].items():
            assert least["share"][key] == pytest.approx(least["memory_ms"][key] / took)
            assert least["hot_ms"][key] <= least["memory_ms"][key] * (1 + 1e-9)
            assert least["walk_ms"][key] == pytest.approx(2 * row["walk_ms"])  # two passes over the list each


def test_copies_are_measured_in_all_sizes(result):
    copy = result["copy"]
    assert copy["bytes"] == [1 << 20, 1 << 22] and min(copy["rate"]) > 0
    assert copy["memory"] == copy["rate"][-1] and copy["hot"] == max(copy["rate"])
    steps = {"bytes": [10, 1000], "rate": [8.0, 4.0], "memory": 4.0}
    assert limits.rate_at(steps, 1) == 8 and limits.rate_at(steps, 100) == pytest.approx(6) and limits.rate_at(steps, 1e9) == 4
    assert limits.rate_at({**steps, "rate": [1.0, 4.0]}, 10) == 4  # tiny copies are bound by launches, not by memory
    assert limits.cache_size() >= 0


@pytest.mark.parametrize("solver", [*cases.CASES, "pvfs_at_once", "shape_matching", "pbf_records", "dcpbd_records"])
def test_the_model_names_arrays_that_are_there(solver, monkeypatch):
    """And counts them with the size they have."""
    case = cases.CASES["iisph" if solver == "shape_matching" else solver.split("_")[0]]
    scene = case.scene(300, case.counts)
    if solver == "pvfs_at_once":  # as on GPUs
        scene = pvfs.scene(pvfs.Load("block", (6, 6, 6), True, None, None), "jacobi")
    elif solver == "shape_matching":
        scene = iisph.scene(iisph.Load("ball", 4.0, 0, 0.0, 1.0, None), "shape_matching")
    if solver.endswith("records"):
        monkeypatch.setenv("VISCOIL_RECORDS", "wide")
    sim = Simulation(scene, device="cpu")
    if not solver.endswith("records"):
        sim.advance_frame()
    passes, names = traffic.passes_of(sim)
    assert ("words" in "".join(names.values())) is solver.endswith("records")
    assert {each.stage for each in passes} <= set(sim.solver.stages) and len(passes) > 8
    assert {each.times for each in passes} <= {"", *cases.repeats(sim, case)}
    for each in passes:
        own = 0.0
        for name in f"{each.reads} {each.writes}".format(**names).split():
            array = traffic.array_named(sim, name)
            values = array.to_numpy()
            own += values.nbytes / len(values) * (sim.world.carried["pressure"].width if name == "r.pressure" else 1)
            assert len(values) >= sim.world.count, f"{each.name}: {name} is no array of particles"
        if "r.rotation" not in each.reads:  # four numbers each
            assert traffic.bytes_of(sim, each, names, 0.0, 0.0) == pytest.approx(own)
        for name in each.entries.format(**names).split():
            assert traffic.array_named(sim, name).shape == sim.world.neighbors.list.index.shape
        one, two = (traffic.bytes_of(sim, each, names, n, 0.0) for n in (10, 11))
        assert (two > one) is bool(each.lists)
    model = traffic.account(sim, cases.repeats(sim, case), 30.0, 20.0)
    assert model["step"] == pytest.approx(sum(model["stages"].values()))
    more = traffic.account(sim, {key: n + 1 for key, n in cases.repeats(sim, case).items()}, 30.0, 20.0)
    assert more["step"] - model["step"] == pytest.approx(sum(model["iteration"].values()))


def test_memory_is_counted_once(result):
    sim = Simulation(cases.CASES["pbf"].scene(300, {"iterations": 2}), device="cpu")
    account = memory.account(sim)
    held = (sim.world.particles, sim.world.neighbors.list)
    particles, listed = (sum(getattr(one, f.name).to_numpy().nbytes for f in fields(one)) for one in held)
    assert account["parts"]["fields"] == particles and account["parts"]["list"] == listed
    every = memory.arrays([sim.world, sim.solver])
    assert account["bytes"] == sum(account["parts"].values()) == sum(map(memory.array_bytes, every.values()))
    assert account["per_particle"] == account["bytes"] / sim.world.count
    for row in result["rows"]:
        assert 200 < row["memory"]["per_particle"] < 20_000


# --- papers ----------------------------------------------------------------------------------------------------------
def test_the_papers_loads_are_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(paper, "SCENES", (paper.PaperScene("Dam Break", 900, 3, 4.3, (1, 6, 28, 51, 14)),))
    monkeypatch.setattr(pvfs, "LOADS", [pvfs.Load("1k", (5, 5, 5), True, 10.0, 100.0)])
    monkeypatch.setattr(iisph, "LOADS", [iisph.Load("1m", 3.0, 0, 0.0, 1.0, 6.0)])
    monkeypatch.setattr(conformation, "LOADS", [conformation.Load("interactive", 300, 2, 1 / 200, 3, 2, 20.0, 0.1, 1e-9, 2.0)])
    for module, name, value in (
        (stages, "SECONDS_PER_ROUND", 0.01), (stages, "ROUNDS", 1), (pvfs, "ROUNDS", 1), (pvfs, "STEPS", 2),
        (iisph, "ROUNDS", 1), (iisph, "STEPS", 2), (limits, "LARGEST_ON_CPU", 1 << 20),
        (limits, "MOVED", {True: 1 << 20, False: 1 << 20}),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    small = ["tank_dam_break", "block_1k", "ball_million", "cube_interactive"]
    assert [name for name in papers.loads() if name not in papers.FIGURES] == [*small, "tank_million"]
    assert papers.default_loads() == ["tank_dam_break", "block_1k", "cube_interactive"]
    assert papers.default_loads(quick=True) == list(papers.loads())
    found = papers.main(names := small, papers.How("cpu"), json=tmp_path / "papers.json")
    assert found == store.read(tmp_path / "papers.json") and found["command"].endswith(f"--loads {','.join(names)}")
    rows = {row["name"]: row for row in found["rows"]}
    tank, block, springs, shapes, cube = rows
    assert tank == "tank at rest, Dam Break's size" and block == "block on a floor, 1k"
    assert springs == "ball on a plane, a million, springs" and shapes == "ball on a plane, a million, shape_matching"
    assert cube == "cube on a table, the interactive scenes' size"
    for row in rows.values():
        assert row["value"] > 0 and row["run"] > 0 and row["particles"] > 100
        assert sum(row["stages"].values()) == pytest.approx(1)
        assert 0 <= row["compression"] < 1
    assert 0 < rows[cube]["viscosity_share"] <= 1
    assert rows[tank]["published"] == pytest.approx(0.0043) and rows[tank]["asked"] is None
    assert sum(rows[tank]["split"].values()) == pytest.approx(100)
    assert list(rows[tank]["split"]) == list(rows[tank]["published_split"]) == list(paper.CATEGORIES)
    assert rows[cube]["met"] is False and rows[cube]["unit"] == "frame"
    assert rows[springs]["asked"] == pytest.approx(0.006)
    assert rows[cube]["made"] == 1 and not any("were made" in note for note in found["notes"])
    measure = conformation.measure
    monkeypatch.setattr(conformation, "measure", lambda *arguments: measure(*arguments) | {"made": 0.28})
    noted = papers.main(["cube_interactive"], papers.How("cpu"))["notes"]
    assert f"{cube}: 28% of the iterations of the velocity projection were made" in noted


def test_a_scene_is_measured_as_it_runs(monkeypatch, tmp_path):
    """Its own nozzle and solids; what acted stands beside the time, and small sizes are compared with nothing."""
    monkeypatch.setattr(limits, "LARGEST_ON_CPU", 1 << 20)
    monkeypatch.setattr(limits, "MOVED", {True: 1 << 20, False: 1 << 20})
    found = papers.main(["honey"], papers.How("cpu", quick=True), json=tmp_path / "papers.json")
    assert found == store.read(tmp_path / "papers.json") and found["command"].endswith("--loads honey --quick")
    (row,) = found["rows"]
    sim = Simulation(load("honey"), device="cpu")
    for _ in range(4):
        sim.advance_frame()
    assert row["name"] == "scene honey, quick" and row["frames"] == [2, 4, 75] and row["particles"] == sim.particles > 200
    assert row["compression"] < sim.metrics()["compression"] + 0.01 and row["density_max"] >= sim.metrics()["density_max"]
    assert 0.9 < row["viscosity_share"] <= 1 and row["run"] > 0 and row["value"] is None
    assert row["published"] is row["asked"] is None and "met" not in row
    assert {"project", "measure"} < set(row["stages"]) and sum(row["stages"].values()) == pytest.approx(1)
    assert row["made"] < papers.ENOUGH and any(note.startswith("scene honey, quick: ") for note in found["notes"])
    ((line,),) = [table[2] for table in report.tables(found)[:1]]
    assert line[5] == "" and line[6].endswith("ms") and line[7].endswith(" %") and line[8].endswith(" %") and line[-1] == ""


def test_scenes_are_measured_at_the_papers_sizes():
    figure, scene = papers.FIGURES["honey"][3], load("honey", quality="paper")
    row = scenes.measure(figure, "cpu", None, frames=1, lead=1)
    assert row["frames"] == [1, 2, scene.time.frames] and row["work"].startswith(f"{scene.time.steps_per_frame} × (")
    assert f" of {scene.solver.velocity_iterations} + " in row["work"]
    for name, (_, method, _, figure) in papers.FIGURES.items():
        assert load(name, quality="paper").solver.method == method and figure.unit in ("frame", "step")


def test_scenes_are_timed_when_they_hold_most_of_their_particles():
    """When nozzles are done, or at the end where they never are; without nozzles when the picture is taken."""
    found = {name: scenes.first_timed(load(name, quality="paper"), 20) for name in ("honey", "ice_cream", "dam_break")}
    melting = load("ice_cream", quality="paper")
    assert found == {"honey": 130, "ice_cream": math.ceil(melting.emitter[0].end / melting.time.frame_time), "dam_break": 38}
    short = load("dam_break", {"time.frames": 10})
    assert scenes.first_timed(short, 4) == 6 and scenes.first_timed(short, 10) == 1
    short.picture = None
    assert scenes.first_timed(short, 4) == 6


def test_only_a_run_is_faster_than_what_was_published():
    alone = papers._row("p", "n", "dcpbd", 1, "", "frame", 0.01, asked=0.02, published=0.1)
    ran = papers._row("p", "n", "dcpbd", 1, "", "frame", 0.01, run=0.025, asked=0.02, published=0.1)
    assert report.faster(alone) is None and alone["met"] is True
    assert report.faster(ran) == pytest.approx(4) and ran["met"] is False and report.verdict(ran) == "no, 1.25×"


def test_loops_are_timed_one_by_one(tmp_path):
    """In a process of its own: the profiler has to be there from the start."""
    file = tmp_path / "loops.json"
    command = [sys.executable, "-m", "viscoil", "bench", "loops", "--solver", "pbf", "--particles", "300", "--iterations", "3"]
    done = subprocess.run(
        [*command, "--whole", "--device", "cpu", "--json", str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    (row,) = store.read(file)["rows"]
    launches = {loop["loop"]: loop["launches"] for loop in row["loops"]}
    assert {name.split()[0] for name in launches} == {"whole_step"}
    assert sorted(launches.values()) == [1] * (len(launches) - 3) + [3] * 3, "λ, Δx and contact in every iteration"
    between = [loop for loop in row["loops"] if loop["kind"] == "serial" and loop["launches"] > 1]
    assert not between, "nothing is read anew between the loops of an iteration"
    assert all(loop["ms"] >= 0 for loop in row["loops"]) and "3 iterations" in done.stdout
    figure = tmp_path / "loops.png"
    assert plots.draw(store.read(file), figure) == figure and figure.stat().st_size > 1000


def test_a_running_compiler_gets_no_profiler():
    with pytest.raises(DeviceError, match="start another process"):
        backend.start("cpu", profiled=True)


def test_asked_figures_are_those_of_the_project():
    asked = {figure.scene: figure.asked for figure in scenes.BARREIRO if figure.asked}
    assert asked == {
        "ice_cream": 0.0015, "hand_and_bowl": 0.0015, "honey": 0.008, "waffle": 0.045, "cake": 0.045, "gummy_bears": 0.6
    }  # fmt: skip
    asked = {load.name: load.wanted for load in conformation.LOADS}
    assert asked == {"interactive": 0.0015, "honey": 0.008, "waffle": 0.045, "million": 0.025, "bears": 0.6}
    assert papers.ASKED_RATES == {"whole steps": 3.2e9, "iterations alone": 5e9}
    assert {load.name: load.wanted for load in pvfs.LOADS}["1m"] == 8 and iisph.LOADS[1].wanted == 6
    assert sum(paper.SCENES[1].split) == 100 and sum(paper.SCENES[0].split) == 100


def test_verdicts():
    row = papers._row("p", "n", "pbf", 1, "", "step", 0.003, asked=0.002)
    assert row["met"] is False and report.verdict(row) == "no, 1.50×"
    assert report.verdict(papers._row("p", "n", "pbf", 1, "", "rate", 3e9, asked=2e9)) == "yes"
    assert report.verdict(papers._row("p", "n", "pbf", 1, "", "rate", 1e9, asked=2e9)) == "no, 2.00×"
    assert report.verdict(papers._row("p", "n", "pbf", 1, "", "rate", 1e9)) == ""


# --- scaling ---------------------------------------------------------------------------------------------------------
def test_threads_are_compared_and_sizes_measured(monkeypatch, tmp_path, result):
    monkeypatch.setattr(stages, "SECONDS_PER_ROUND", 0.01)
    monkeypatch.setattr(limits, "LARGEST_ON_CPU", 1 << 20)
    monkeypatch.setattr(scaling, "thread_counts", lambda: [1, 2])
    asked = []

    def run(command, **options):
        asked.append(command)
        row = {**result["rows"][0], "step_ms": 10.0 / int(command[command.index("--threads") + 1])}
        Path(command[-1]).write_text(json.dumps({**result, "rows": [row]}))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(scaling.subprocess, "run", run)
    found = scaling.main(["pbf"], "cpu", None, tmp_path / "scaling.json", [500], thread_particles=800)
    assert store.read(tmp_path / "scaling.json") == found and len(asked) == 2
    assert found["command"] == "viscoil bench scaling --device cpu --solver pbf --particles 500 --thread-particles 800"
    assert report.speed_ups(found["rows"]) == {"pbf": {1: 1.0, 2: 2.0}}
    again = scaling.main(["pbf"], "cpu", None, None, [], thread_particles=800, counts=[1, 4])
    assert report.speed_ups(again["rows"]) == {"pbf": {1: 1.0, 4: 4.0}} and again["command"].endswith(" --thread-counts 1,4")
    (row,) = [row for row in found["rows"] if row["what"] == "sizes"]
    assert row["cost_ns"] == pytest.approx(1e6 * row["step_ms"] / (4 * row["particles"])) and row["memory"]["bytes"] > 0
    monkeypatch.setattr(scaling.subprocess, "run", lambda c, **o: subprocess.CompletedProcess(c, 1, "", "it broke"))
    with pytest.raises(ViscoilError, match="it broke"):
        scaling._with_threads(1, ["pbf"], 500)


def test_the_largest_run_fits_the_free_memory(monkeypatch):
    monkeypatch.setattr(machine, "free_graphics_memory", lambda: 1e11)
    assert scaling._fitting(10_000_000, 1000.0) == 10_000_000 and scaling._fitting(10**9, 1000.0) == 94_000_000
    monkeypatch.setattr(machine, "free_graphics_memory", lambda: 0.0)
    assert scaling._fitting(100, 1000.0) == 100
    monkeypatch.setattr(scaling, "_size_row", lambda s, n, *a: {"particles": n, "memory": {"per_particle": 600.0}})
    rows = list(scaling.size_rows(["pbf", "iisph"], [10], True, "cpu", None, lambda text: None))
    assert [row["particles"] for row in rows] == [10, scaling.LARGEST["pbf"], 10]


# --- everything ------------------------------------------------------------------------------------------------------
def test_all_parts_run_one_after_the_other(monkeypatch, tmp_path, capfd):
    asked = []

    def run(command, timeout=None):
        asked.append((command[3:], timeout))
        if "papers" in command:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(suite.subprocess, "run", run)
    folder = tmp_path / "results"
    assert main(["bench", "all", "--device", "cpu", "--threads", "2", "--json", str(folder), "--parts", "stages,papers"]) == 1
    assert "out of time" in capfd.readouterr().out and folder.is_dir()
    assert asked[0][0] == ["bench", "stages", "--device", "cpu", "--threads", "2", "--json", str(folder / "stages.json")]
    done = suite.main(folder, "cpu", None, ("stages", "scaling"), budget=0.0)
    assert [row["code"] for row in done.values()] == [None, None] and len(asked) == 2
    assert "peers" in suite.default_parts(False) and "peers" not in suite.default_parts(True)


# --- tables and plots ------------------------------------------------------------------------------------------------
def test_the_command_prints_tables_and_draws(result, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(stages, "main", lambda *arguments, **options: {**result, "notes": ["something to know"]})
    picture = tmp_path / "stages.png"
    assert main(["bench", "stages", "--device", "cpu", "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    for text in ("Time of a step in ms, dcpbd", "Roofline", "Memory per particle", "something to know", result["command"]):
        assert text in out
    assert f"{result['rows'][0]['particles']:,}" in out and picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("kind", ["stages", "papers", "scaling"])
@pytest.mark.parametrize("where", ["cpu", "card"])
def test_stored_results_are_shown_and_drawn(written, kind, where, capsys, tmp_path):
    picture = tmp_path / "picture.png"
    assert main(["bench", "plot", str(written / where / f"{kind}.json"), "-o", str(picture)]) == 0
    out = capsys.readouterr().out
    assert ("A card" in out) is (where == "card") and picture.stat().st_size > 5000
    if kind == "papers" and where == "card":
        assert "no, 1.50×" in out and "no, 2.00×" in out and "yes" in out
    if kind == "scaling" and where == "cpu":
        assert "4.00× (2.00 ms)" in out


def test_an_empty_result_has_nothing_to_draw(result, tmp_path):
    assert report.tables({**result, "rows": []}) == []
    with pytest.raises(ViscoilError, match="no rows"):
        plots.draw({**result, "rows": []}, tmp_path / "nothing.png")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stages", "--json", "no/such/speed.json"], "there is no folder"),
        (["stages", "--plot", "no/such/speed.png"], "--plot: there is no folder"),
        (["papers", "--loads", "milion"], 'no load "milion"'),
        (["papers", "--frames", "0"], "--frames: expected a whole number of at least 1; got 0"),
        (["scaling", "--solver", "pdf"], 'no solver "pdf"'),
        (["all", "--json", "x", "--parts", "stage"], 'no part "stage"'),
    ],
)
def test_mistakes_are_named_before_measuring(arguments, message, capsys):
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_tables_are_up_to_date(tables):
    assert tables.main(["--check"]) == 0


def test_pictures_of_the_documents_are_there(tables):
    for name, _, _ in tables.pictures(tables.read(ROOT / "benchmarks" / "results")):
        assert (ROOT / "docs" / "performance" / name).exists()


def test_cost_by_size_is_told_per_iteration(tables):
    """Of frames of several steps, of rates, of methods that do not iterate, and of sizes; small before large."""
    known = {"solver": "dcpbd", "name": "some", "unit": "frame", "work": "3 × (8 + 8)", "particles": 1000, "value": 0.0024}
    rate = {"solver": "pbf", "name": "a million", "unit": "rate", "work": "4 iterations", "particles": 10, "value": 2e9}
    alone, cake = rate | {"name": "a million, iterations alone"}, known | {"name": "scene cake", "value": None}
    springs = known | {"solver": "pvfs", "unit": "step", "work": "41 springs each", "value": 0.002}
    size = {"what": "sizes", "solver": "pbf", "particles": 5, "step_ms": 1e-4, "cost_ns": 5.0}
    results = [
        {"kind": "papers", "rows": [known, rate, alone, cake, springs]},
        {"kind": "scaling", "rows": [size, {"what": "threads", "solver": "pbf"}]},
    ]
    found = [(solver, n, each, round(cost, 6)) for solver, n, _, each, cost in tables.growth.points(results)]
    assert found == [("dcpbd", 1000, 16, 50.0), ("pbf", 5, 4, 5.0), ("pbf", 10, 4, 0.5), ("pvfs", 1000, 1, 2000.0)]


def test_tables_are_written_between_the_markers(tables, written, tmp_path, capsys):
    page = tmp_path / "page.md"
    arguments = ["--files", str(page), "--results", str(written), "--pictures", str(tmp_path / "pictures")]
    page.write_text("before\n")
    assert tables.main(arguments) == 1 and "to fill" in capsys.readouterr().err
    marked = [f"<!-- bench:{name} -->\nold\n<!-- /bench:{name} -->" for name in tables.BLOCKS]
    page.write_text("\n".join(["before", *marked, "after", ""]))
    assert tables.main([*arguments[:3], str(tmp_path), "--check"]) == 1 and "holds no results" in capsys.readouterr().err
    assert tables.main([*arguments, "--check"]) == 1 and "out of date" in capsys.readouterr().err
    assert tables.main(arguments) == 0 and tables.main([*arguments, "--check"]) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- bench:pbf -->\n") and text.endswith("-->\nafter\n") and "old" not in text
    assert text.index(store.read(written / "cpu" / "stages.json")["machine"]["cpu"]) < text.index("A card")  # CPUs first
    assert all(line.endswith("|") for line in text.splitlines() if line.startswith("|"))
    assert "Not measured yet." in text  # peers
    assert np.all([file.stat().st_size > 5000 for file in (tmp_path / "pictures").iterdir()])
    page.write_text("<!-- bench:nothing -->\n<!-- /bench:nothing -->\n")
    with pytest.raises(SystemExit, match="no block bench:nothing"):
        tables.main(arguments)
