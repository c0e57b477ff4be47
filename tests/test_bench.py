"""The bench: its numbers fit each other, and the C++ yardstick computes what we compute. No times are judged."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from viscoil.bench import block, conformation, iisph, machine, paper, pvfs, report, stages, yardstick
from viscoil.cli import main
from viscoil.scene.fill import fill_shape
from viscoil.solvers.dcpbd import DCPBD
from viscoil.solvers.iisph import IISPH
from viscoil.solvers.iisph_matter import Stiffnesses, matter_of
from viscoil.solvers.pvfs import PVFS

ROOT = Path(__file__).resolve().parent.parent
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the yardstick needs g++")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A small measurement with everything in it, as read back from its file."""
    patch = pytest.MonkeyPatch()
    patch.setattr(stages, "ROUNDS", 1)
    patch.setattr(stages, "SECONDS_PER_ROUND", 0.05)
    patch.setattr(paper, "SCENES", (paper.PaperScene("Dam Break", 3000, 3, 4.3, (1, 6, 28, 51, 14)),))
    file = tmp_path_factory.mktemp("bench") / "result.json"
    said = []
    try:
        stages.main("pbf", [3000, 6000], "cpu", json=file, iterations=2, rounds=1, say=said.append)
    finally:
        patch.undo()
    assert "3,000 particles" in said[0]
    return json.loads(file.read_text())


def test_blocks_have_the_size_asked_for():
    for wanted in (3000, 20_000, 100_000, 128_000, 1_000_000, 10_000_000):
        assert abs(np.prod(block.edges(wanted)) / wanted - 1) < 0.03


def test_a_tank_keeps_all_its_particles_and_about_28_neighbours(result):
    for wanted, row in zip((3000, 6000), result["blocks"], strict=True):
        assert row["particles"] == np.prod(block.edges(wanted))
        assert 22 < row["neighbours"] < 30  # walls take some away in tanks this small


def test_stages_add_up_to_a_step(result):
    for row in result["blocks"]:
        assert list(row["stages_ms"]) == ["integrate", "sort", "list", "solve", "velocity"]
        assert all(value > 0 for value in row["stages_ms"].values())
        total = sum(row["stages_ms"].values())
        assert total <= row["stepwise_ms"] < 1.5 * total + 1.0  # the rest is Python between the stages
        assert row["iteration_ms"] * row["iterations"] == pytest.approx(row["stages_ms"]["solve"])


def test_rates_are_particles_times_iterations_over_time(result):
    for row in result["blocks"]:
        work = row["particles"] * row["iterations"]
        assert row["iterations"] == 2
        assert row["rate"] == pytest.approx(1e3 * work / row["step_ms"])
        assert row["iteration_rate"] == pytest.approx(1e3 * work / row["stages_ms"]["solve"])
        assert row["bandwidth"] == pytest.approx(row["bytes_per_iteration"] * row["iteration_rate"])


def test_the_papers_scenes_stand_beside_ours(result):
    (row,) = result["paper"]
    assert (row["scene"], row["iterations"], row["paper"]["step_ms"]) == ("Dam Break", 3, 4.3)
    assert sum(row["split"].values()) == pytest.approx(100)
    assert list(row["split"]) == list(row["paper"]["split"]) == list(paper.CATEGORIES)
    assert sum(paper.SCENES[1].split) == 100 and sum(paper.SCENES[0].split) == 100


def test_a_result_says_what_it_was_measured_with(result):
    about = result["machine"]
    assert about["device"] == "cpu" and about["gpu"] == "" and about["cpu"] and about["cores"] >= 1
    assert set(about["versions"]) == {"viscoil", "python", "quadrants", "numpy"}
    assert result["command"] == "viscoil bench stages --solver pbf --particles 3000,6000 --iterations 2 --device cpu"
    assert len(about["date"].split("-")) == 3
    assert machine.processor() in report.hardware(result)


def test_a_busy_machine_is_mentioned(monkeypatch):
    monkeypatch.setattr(machine, "load", lambda: 1000.0)
    monkeypatch.setattr(stages, "measure", lambda *arguments: {})
    assert "was busy (load 1000" in stages.run("pcisph", [3000], "cpu")["notes"][0]
    monkeypatch.setattr(machine, "load", lambda: 0.0)
    assert stages.run("pcisph", [3000], "cpu")["notes"] == []


@needs_compiler
def test_yardstick_rows_are_complete(result):
    measured = result["yardstick"]
    assert "-O3" in measured["flags"] and measured["compiler"]
    for wanted, row in zip((3000, 6000), measured["rows"], strict=True):
        assert row["particles"] == np.prod(block.edges(wanted))
        for side in ("ours", "yardstick"):
            times = row[side]
            assert times["search_ms"] == pytest.approx(times["sort_ms"] + times["list_ms"])
            assert times["iteration_ms"] == pytest.approx(times["multipliers_ms"] + times["corrections_ms"])
        assert row["iteration_ratio"] == pytest.approx(row["ours"]["iteration_ms"] / row["yardstick"]["iteration_ms"])


@needs_compiler
@pytest.mark.parametrize("uniform", [True, False])
def test_the_yardstick_computes_what_we_compute(uniform):
    sim = yardstick.floating_block(3000, "cpu", None)
    world = sim.world
    if not uniform:
        noise = np.random.default_rng(1).uniform(0.7, 1.3, world.count)
        world.set("volume", world.get("volume") * noise)
    assert world.uniform is uniform
    ours = yardstick.Ours(world, sim.solver)
    with yardstick.Yardstick(yardstick.build(), world, sim.solver, 2) as theirs:
        for side in (ours, theirs):
            assert min(side.list()) > 0 and min(side.iterate()) > 0
        mine, other = ours.results(), theirs.results()
    assert np.array_equal(mine[0], other[0])
    for a, b in zip(mine[1:], other[1:], strict=True):
        assert np.abs(a - b).max() < 1e-4 * np.abs(a).max()
        assert np.abs(a).max() > 0


@needs_compiler
def test_the_yardstick_refuses_nonsense(tmp_path):
    (tmp_path / "bad").write_bytes(b"1234")
    for arguments in (["missing", "2"], ["bad", "2"], ["bad"]):
        done = subprocess.run([yardstick.build(), *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and "usage" in done.stderr


def test_without_a_compiler_the_comparison_is_left_out_and_said(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    rows, notes = stages._yardstick_rows([3000], "cpu", None, 1, lambda text: None)
    assert rows is None and "g++ was not found" in notes[0]


def test_an_invalid_compiler_is_no_compiler(monkeypatch, tmp_path):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(yardstick, "compiler", lambda: str(broken))
    rows, notes = stages._yardstick_rows([3000], "cpu", None, 1, lambda text: None)
    assert rows is None and "could not compile" in notes[0]


def test_the_command_prints_tables(result, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(stages, "run", lambda *arguments, **options: {**result, "notes": ["something to know"]})
    assert main(["bench", "stages", "--device", "cpu", "--json", str(tmp_path / "speed.json")]) == 0
    out = capsys.readouterr().out
    assert "Time of a step in ms" in out and "Dam Break" in out and "something to know" in out
    assert f"{result['blocks'][0]['particles']:,}" in out
    assert json.loads((tmp_path / "speed.json").read_text())["blocks"] == result["blocks"]


def test_a_missing_folder_is_noticed_before_measuring(capsys, tmp_path):
    assert main(["bench", "stages", "--json", str(tmp_path / "no" / "speed.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_only_light_packages_are_needed():
    """Servers without plotting and mesh packages can be measured too."""
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'trimesh', 'PIL', 'scipy'): sys.modules[name] = None\n"
        "import viscoil.bench.stages, viscoil.bench.report, viscoil.simulate, viscoil.cli\n"
        "from viscoil.bench import block, iisph, pvfs\n"
        "block.scene(3000)\n"
        "pvfs.scene(pvfs.LOADS[0])\n"
        "iisph.scene(iisph.LOADS[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- tables in the README --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readmes_tables_are_up_to_date(tables):
    assert tables.main(["--check"]) == 0


def test_tables_are_written_between_the_markers(tables, result, tmp_path, capsys):
    readme, results = tmp_path / "README.md", tmp_path / "results"
    results.mkdir()
    arguments = ["--readme", str(readme), "--results", str(results)]
    readme.write_text("before\n")
    assert tables.main(arguments) == 1 and "to fill" in capsys.readouterr().err
    readme.write_text("before\n<!-- bench:stages -->\nold\n<!-- /bench:stages -->\nafter\n")
    assert tables.main(arguments) == 1 and "holds no results" in capsys.readouterr().err
    card = {**result, "machine": {**result["machine"], "gpu": "A card"}, "yardstick": None}
    (results / "a.json").write_text(json.dumps(card))
    (results / "b.json").write_text(json.dumps(result))
    assert tables.main([*arguments, "--check"]) == 1 and "out of date" in capsys.readouterr().err
    assert tables.main(arguments) == 0 and tables.main([*arguments, "--check"]) == 0
    text = readme.read_text()
    assert text.startswith("before\n<!-- bench:stages -->\n") and text.endswith("<!-- /bench:stages -->\nafter\n")
    assert "old" not in text and "A card" in text
    assert text.index(result["machine"]["cpu"]) < text.index("A card")  # CPUs first
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_frames_of_viscoelastic_fluid_are_timed():
    load = conformation.Load("tiny", 400, 2, 1 / 200, 3, 2, 20.0, 0.1, 1.0, 2.0)
    row = conformation.measure(load, "cpu", None)
    assert row["velocity_iterations"] == 3 * 2 * conformation.FRAMES  # tolerances save nothing
    assert 0 < row["seconds"] <= row["median"] and set(row["stages"]) == set(DCPBD.stages)
    assert row["iterations"] == "3 + 2" and 10 < row["neighbours"] < 80
    text = conformation.table({"rows": [row], "convergence": {}})
    assert "tiny" in text and "3 + 2" in text


def test_projections_are_compared():
    load = conformation.Load("tiny", 300, 2, 1 / 200, 40, 2, 20.0, 0.0, 1.0, None)
    rows = {row["projection"]: row for row in conformation.convergence(load, "cpu", None)}
    assert rows["cg"]["iterations"] <= rows["chebyshev"]["iterations"] <= rows["jacobi"]["iterations"]
    assert all(row["residual"] < 0.01 for row in rows.values())


def test_an_unknown_load_is_named(capsys):
    assert main(["bench", "conformation", "--loads", "milion", "--device", "cpu"]) == 2
    assert 'no load "milion"' in (err := capsys.readouterr().err) and "million" in err


# --- springs and plasticity --------------------------------------------------------------------------------------------
def test_steps_with_springs_are_timed(monkeypatch):
    monkeypatch.setattr(pvfs, "ROUNDS", 1)
    monkeypatch.setattr(pvfs, "STEPS", 2)
    tiny, wet = pvfs.Load("tiny", (6, 6, 6), True, 10.0, 100.0), pvfs.Load("wet", (6, 6, 6), False, None, None)
    monkeypatch.setattr(pvfs, "LOADS", [tiny, wet])
    result = pvfs.main(["tiny", "wet"], "cpu", None, ["coloured", "jacobi"])
    assert [(row["name"], row["relaxation"]) for row in result["rows"]] == [
        ("tiny", "coloured"), ("tiny", "jacobi"), ("wet", "coloured"), ("wet", "jacobi")
    ]  # fmt: skip
    for row in result["rows"]:
        assert row["particles"] == 216 and row["seconds"] >= row["fastest"] > 0 and row["cpu"] > 0 and row["bytes"] is None
        assert row["rate"] == pytest.approx(216 / row["seconds"]) and 40 < row["neighbours"] < 140
        assert list(row["stages"]) == list(PVFS.stages)
        springy = row["name"] == "tiny"
        assert (row["springs"] > 15) is springy and (row["stages"]["springs"] > 0) is springy
    text = pvfs.table({**result, "machine": {**result["machine"], "load": 1000.0}})
    assert "tiny, jacobi: springs cost" in text and "wet, jacobi" not in text and "was busy (load 1000" in text
    assert "10.5 Mp·st/s" in text and "39.8 Mp·st/s" in text and "viscoelastic_cpu" in text
    assert "was busy" not in pvfs.table({**result, "machine": {**result["machine"], "load": 0.0}})


def test_loads_of_springs_are_the_papers():
    by_name = {load.name: load for load in pvfs.LOADS}
    assert [int(np.prod(load.edges)) for load in pvfs.LOADS] == [1000, 20384, 20384, 1_000_000]
    assert by_name["1k"].paper == 100 and by_name["20k"].paper == 2000  # 10 frames/s and 0.5 frames/s
    assert [load.springs for load in pvfs.LOADS] == [True, True, False, True]
    scene = pvfs.scene(by_name["20k"])
    assert scene.solver.spring_stiffness == pytest.approx(0.3 * 900) and scene.solver.substeps == 1
    assert pvfs.scene(by_name["20k_liquid"]).solver.spring_stiffness == 0
    listed = pvfs.bytes_per_step(140, 0)
    assert pvfs.bytes_per_step(140, 60) == listed + 4 * 140 + 32 * 60


def test_the_command_for_springs_writes_a_file_and_names_mistakes(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(pvfs, "ROUNDS", 1)
    monkeypatch.setattr(pvfs, "STEPS", 1)
    monkeypatch.setattr(pvfs, "LOADS", [pvfs.Load("1k", (5, 5, 5), True, None, None)])
    file = tmp_path / "springs.json"
    assert main(["bench", "pvfs", "--loads", "1k", "--device", "cpu", "--json", str(file)]) == 0
    assert "springs cost" in capsys.readouterr().out and json.loads(file.read_text())["rows"][0]["particles"] == 125
    for arguments, message in (
        (["--loads", "2k"], 'no load "2k"'), (["--loads", "1k", "--relaxation", "colored"], 'no "colored"'),
        (["--loads", "1k", "--json", str(tmp_path / "no" / "file.json")], "there is no folder"),
    ):  # fmt: skip
        assert main(["bench", "pvfs", *arguments]) == 2
        assert message in capsys.readouterr().err


# --- velocity-corrected IISPH ------------------------------------------------------------------------------------------
def test_steps_with_corrections_are_timed(monkeypatch):
    monkeypatch.setattr(iisph, "ROUNDS", 1)
    monkeypatch.setattr(iisph, "STEPS", 2)
    small, lone = iisph.Load("small", 3.0, 12, 0.05, 9.81, 10.0), iisph.Load("lone", 3.0, 0, 0.0, 1.0, None)
    monkeypatch.setattr(iisph, "LOADS", [small, lone])
    chosen = ["none", "springs_plastic", "shape_matching"]
    result = iisph.main(["small", "lone"], "cpu", None, chosen, 3)
    rows = result["rows"]
    assert [(row["name"], row["correction"]) for row in rows] == [(name, c) for name in ("small", "lone") for c in chosen]
    for row in rows:
        assert row["particles"] > 100 and (row["boundary"] > 0) is (row["name"] == "small") and row["iterations"] == 3
        assert row["seconds"] >= row["fastest"] > 0 and row["cpu"] > 0 and row["bytes"] is None
        assert row["rate"] == pytest.approx(3 * row["particles"] / row["seconds"]) and 10 < row["neighbours"] < 40
        assert list(row["stages"]) == list(IISPH.stages)
        assert row["share"] == pytest.approx(row["stages"]["correction"] / sum(row["stages"].values()))
        assert (row["bonds"] > 5) is (row["correction"] != "none")
    text = iisph.table({**result, "machine": {**result["machine"], "load": 1000.0}})
    assert "small, springs_plastic:" in text and "small, none:" not in text and "was busy (load 1000" in text
    assert "16.4 %" in text and "pressure" in text
    cheap = {**rows[1], "share": 0.2}
    assert "20.0 % of a step, less than the 25 %" in iisph.table({**result, "rows": [cheap]})
    assert "30.0 % of a step, not less than" in iisph.table({**result, "rows": [{**cheap, "share": 0.3}]})


def test_loads_of_corrections_are_the_papers():
    press, million = iisph.LOADS
    assert press.wanted == pytest.approx(1e3 / 60) and million.wanted == 8
    scene = iisph.scene(press)
    ball = fill_shape(scene.fluid[0].shape, scene.spacing)
    assert len(ball) == 8217 and scene.solver.iterations == 5 and scene.solver.tolerance == 0
    assert [solid.boundary for solid in scene.solid] == ["particles", "particles"]
    plate = scene.solid[1]  # stands when times are taken
    assert plate.motion[-1].time < iisph.pressing(press, "springs") * scene.time.frame_time
    assert plate.motion[-1].position[1] == pytest.approx(-0.25)
    assert not iisph.scene(press, "none").solid[1].motion and iisph.pressing(press, "none") == 1  # a liquid would flow off
    assert len(fill_shape(iisph.scene(million).fluid[0].shape, scene.spacing)) == pytest.approx(1e6, rel=1e-3)
    for correction in iisph.CORRECTIONS:  # none of them has to shorten its steps
        params = iisph.scene(press, correction).solver
        if correction != "none":
            stiffness = Stiffnesses(scene.spacing, params.support * scene.spacing, params)
            assert stiffness.longest_step(matter_of(scene.material["ball"], params, "ball")) > iisph.STEP
    plain = iisph.bytes_per_step(30, 0, 5, "none")
    assert iisph.bytes_per_step(30, 0, 6, "none") - plain == 2 * 4 * 30 + 110
    assert iisph.bytes_per_step(30, 28, 5, "springs") - plain == 12 * 28 + 160


def test_the_command_for_corrections_writes_a_file_and_names_mistakes(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(iisph, "ROUNDS", 1)
    monkeypatch.setattr(iisph, "STEPS", 1)
    monkeypatch.setattr(iisph, "LOADS", [iisph.Load("press", 2.5, 0, 0.0, 9.81, None)])
    file = tmp_path / "corrections.json"
    arguments = ["--corrections", "springs", "--iterations", "2", "--device", "cpu", "--json", str(file)]
    assert main(["bench", "iisph", *arguments]) == 0
    assert "press, springs:" in capsys.readouterr().out
    assert [row["correction"] for row in json.loads(file.read_text())["rows"]] == ["springs"]
    for arguments, message in (
        (["--loads", "pres"], 'no load "pres"'), (["--corrections", "spring"], 'no "spring"'),
        (["--iterations", "1"], "at least 2"), (["--json", str(tmp_path / "no" / "file.json")], "there is no folder"),
    ):  # fmt: skip
        assert main(["bench", "iisph", *arguments]) == 2
        assert message in capsys.readouterr().err
