"""The loads of the bench, and the C++ yardstick, which computes what we compute. No times are judged."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from viscoil.bench import block, conformation, iisph, pvfs, stages, yardstick
from viscoil.cli import main
from viscoil.scene.fill import fill_shape
from viscoil.solvers.dcpbd import DCPBD
from viscoil.solvers.iisph import IISPH
from viscoil.solvers.iisph_matter import Stiffnesses, matter_of
from viscoil.solvers.pvfs import PVFS

ROOT = Path(__file__).resolve().parent.parent
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the yardstick needs g++")


def test_blocks_have_the_size_asked_for():
    for wanted in (3000, 20_000, 100_000, 128_000, 1_000_000, 10_000_000):
        assert abs(np.prod(block.edges(wanted)) / wanted - 1) < 0.03


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


def test_only_light_packages_are_needed():
    """Servers without plotting and mesh packages can be measured too."""
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'trimesh', 'PIL', 'scipy'): sys.modules[name] = None\n"
        "import viscoil.simulate, viscoil.cli.benches, viscoil.cli.measuring\n"
        "from viscoil.bench import cases, papers, plots, report, scaling, stages, suite\n"
        "for case in cases.CASES.values(): case.scene(3000, case.counts)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_frames_of_viscoelastic_fluid_are_timed():
    load = conformation.Load("tiny", 400, 2, 1 / 200, 3, 2, 20.0, 0.1, 1.0, 2.0)
    row = conformation.measure(load, "cpu", None)
    assert row["velocity_iterations"] == 3 * 2 * conformation.FRAMES and row["made"] == 1  # tolerances save nothing
    assert 0 < row["seconds"] <= row["median"] and set(row["stages"]) == set(DCPBD.stages)
    assert row["iterations"] == "3 + 2" and 10 < row["neighbours"] < 80
    text = conformation.table({"rows": [row], "convergence": {}})
    assert "tiny" in text and "3 + 2" in text


def test_who_has_converged_iterates_on():
    """A stiff cube at rest needs a dozen iterations to 1e-7; the paper's number is made all the same."""
    load = conformation.Load("stiff", 400, 2, 1 / 300, 40, 2, 100.0, 0.1, 1.0, 2.0)
    row = conformation.measure(load, "cpu", None)
    assert row["residual"] < 1e-7 and row["made"] > 0.95


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
        assert row["particles"] == 216 and row["seconds"] >= row["fastest"] > 0 and row["cpu"] > 0 and row["bytes"] > 0
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
        assert row["seconds"] >= row["fastest"] > 0 and row["cpu"] > 0 and row["bytes"] > 0
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
    assert press.wanted == pytest.approx(1e3 / 60) and million.wanted == 6
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
