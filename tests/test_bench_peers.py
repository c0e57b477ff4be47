"""Comparison with other simulators: the same scene for all, one measure, fair turns. The peers themselves are not needed."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh

from viscoil import backend
from viscoil.bench import peers, peers_install, peers_measure, peers_race, peers_scenes
from viscoil.errors import SceneError

SMALL = [peers_scenes.smaller(case) for case in peers_scenes.CASES.values()]

# Answers as peers_splish.py does, and moves all its particles down a little in every step of 10 ms.
FAKE = """
import json, sys
import numpy as np
start = np.load(sys.argv[1])
step = steps = 0
told = lambda: print(json.dumps(dict(
    time=0.01 * steps, simulated=0.01 * steps, steps=steps, iterations=3 * steps, wall=0.5 * steps, cpu=0.9 * steps,
    particles=len(start), boundary=7, own_mean=0.001, own_max=0.02)), flush=True)
told()
for line in sys.stdin:
    _, until, file = line.split(maxsplit=2)
    while 0.01 * steps < float(until) - 1e-9:
        steps += 1
        if steps > int(sys.argv[2]):
            sys.exit("out of breath")
    np.save(file.strip(), start - [0, 0.0001 * steps, 0])
    told()
"""


@pytest.fixture(autouse=True)
def _started():
    backend.start("cpu")


def fake(case, folder, steps=1000):
    script, start = folder / "fake.py", folder / "start.npy"
    script.write_text(FAKE)
    np.save(start, case.positions())
    command = [sys.executable, str(script), str(start), str(steps)]
    return peers_race.Theirs(case, "Fake", "method", {}, command, None, folder)


def as_rows(x):
    return np.array(sorted(map(tuple, np.round(x, 5).tolist())))


# --- the same scene for all ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_both_begin_with_the_same_particles(case):
    from viscoil.simulate import Simulation

    solver = {"dam": "pbf", "cube": "dcpbd", "iisph": "iisph", "column": "pbf"}[case.name]
    sim = Simulation(peers_scenes.ours(case, {"method": solver}, {"steps_per_frame": 2}))
    wanted = as_rows(case.positions())
    assert sim.particles == case.particles == len(wanted)
    np.testing.assert_allclose(as_rows(sim.frame()["position"]), wanted, atol=2e-5)
    assert (sim.world.boundary_count > 0) == case.samples

    scene = peers_scenes.splish(case, "DFSPH")
    (block,) = scene["FluidBlocks"]
    d = 2 * scene["Configuration"]["particleRadius"]
    axes = []
    for low, high in zip(block["start"], block["end"], strict=True):  # what SPlisHSPlasH's sampler does with a block
        axes.append(low + d + d * np.arange(round((high - low) / d) - 1))
    theirs = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    np.testing.assert_allclose(as_rows(theirs), wanted, atol=2e-5)


@pytest.mark.parametrize("case", peers_scenes.CASES.values(), ids=lambda case: case.name)
def test_both_have_the_same_walls_and_gravity(case):
    ours, theirs = peers_scenes.ours(case, {"method": "pbf"}, {"steps_per_frame": 2}), peers_scenes.splish(case, "PBF")
    (wall,), (body,) = ours.solid, theirs["RigidBodies"]
    assert list(ours.gravity) == theirs["Configuration"]["gravitation"]
    assert ours.spacing == 2 * theirs["Configuration"]["particleRadius"]
    if case.box is None:
        assert wall.shape.type == "plane" and not body["mapInvert"]
        assert body["translation"][1] + body["scale"][1] / 2 == 0.0  # both floors are at y = 0
        assert theirs["Materials"][0]["Weiler et al. 2018"]["viscosity"] * 1000 == ours.material["paste"].viscosity
    else:
        assert wall.container and body["mapInvert"]
        assert list(wall.shape.size) == body["scale"] and list(wall.shape.position) == body["translation"]
        corner, size = np.array(case.corner), np.array(case.size)
        assert np.all(corner > 0) and np.all(corner + size < np.array(case.box) - 0.5 * case.spacing)


def test_cases_have_the_sizes_they_are_named_for():
    assert 95_000 < peers_scenes.DAM.particles < 105_000
    assert peers_scenes.CUBE.particles == 32**3
    assert 16_000 < peers_scenes.BASIN.particles < 18_000


def test_the_box_for_their_walls_is_closed_and_faces_outwards(tmp_path):
    file = peers_scenes.write_splish(SMALL[0], "PBF", tmp_path, step=0.0025, settings={"maxIterations": 4})
    box = trimesh.load(tmp_path / "box.obj")
    assert box.is_watertight and box.volume == pytest.approx(1.0)
    told = json.loads(file.read_text())["Configuration"]
    assert told["PBF"] == {"maxIterations": 4} and told["cflMethod"] == 0 and told["timeStepSize"] == 0.0025


# --- the measure -----------------------------------------------------------------------------------------------------------
def test_a_resting_lattice_is_not_compressed():
    case = replace(peers_scenes.DAM, edges=(16, 16, 16))
    found = peers_measure.compression(case.positions(), case)
    assert found.mean < 1e-6 and found.largest < 1e-5 and 0.4 < found.counted < 1.0
    inside = np.all(np.abs(case.positions() - case.positions().mean(0)) < 4 * case.spacing, axis=1)
    np.testing.assert_allclose(peers_measure.densities(case.positions(), case.spacing)[inside], 1.0, atol=1e-5)


def test_a_lattice_squeezed_by_a_hundredth_is():
    case = replace(peers_scenes.DAM, edges=(20, 20, 20), box=None)
    x = case.positions()
    middle = x.mean(0)
    squeezed = (x - middle) * 0.99 + middle
    dense = peers_measure.densities(squeezed, case.spacing)
    inside = np.all(np.abs(x - middle) < 6 * case.spacing, axis=1)
    np.testing.assert_allclose(dense[inside] - 1, 0.99**-3 - 1, rtol=0.05)
    assert peers_measure.compression(squeezed, case).largest == pytest.approx(0.99**-3 - 1, rel=0.05)


def test_the_width_of_the_measure_is_a_choice_and_both_are_told(result):
    assert peers_measure.NARROW < peers_measure.SUPPORT
    assert all(row["narrow_mean"] >= 0 and row["narrow_max"] >= row["narrow_mean"] for row in result["rows"])


def test_what_is_near_walls_is_left_out():
    case = replace(peers_scenes.DAM, edges=(4, 4, 4))  # all of it lies near the corner
    squeezed = 0.5 * case.positions()
    assert peers_measure.compression(squeezed, case) == peers_measure.Compression(0.0, 0.0, 0.0, 0.0)


def test_the_height_is_that_of_the_heap_and_not_of_a_drop():
    x = peers_scenes.CUBE.positions()
    assert peers_measure.height(x, 0.01) == pytest.approx(0.33)
    x[0, 1] = 5.0
    assert peers_measure.height(x, 0.01) == pytest.approx(0.33, abs=0.02)


# --- turns -----------------------------------------------------------------------------------------------------------------
def test_everybody_has_the_same_turns(tmp_path):
    case = replace(SMALL[0], seconds=0.04, turn=0.02)
    theirs = fake(case, tmp_path)
    mine = peers_race.Ours(case, "PBF", {"method": "pbf", "iterations": 2}, {"step": 0.01}, "cpu", None)
    said = []
    peers_race.race([theirs, mine], case, said.append)
    a, b = (peers_race.summary(one, case) for one in (theirs, mine))
    theirs.close(), mine.close()
    assert a["steps"] == b["steps"] == 4 and a["turns"]["time"] == pytest.approx(b["turns"]["time"]) and len(said) == 4
    assert a["simulated"] == pytest.approx(b["simulated"]) and b["simulated"] == pytest.approx(0.04)
    assert a["seconds_per_second"] == pytest.approx(50.0) and a["ms_per_step"] == pytest.approx(500.0)
    assert a["cpu_ms_per_step"] == pytest.approx(900.0) and a["iterations"] == 3.0 and b["iterations"] == 2.0
    assert a["boundary"] == 7 and a["particles"] == b["particles"] == case.particles
    assert a["turns"]["height"][0] > a["turns"]["height"][1]
    assert peers_race.ratio(a, a) == 1.0 and peers_race.ratio(a, b) > 1.0 and peers_race.ratio(a, b, "cpu") > 1.0


def test_a_peer_need_not_know_its_densities(tmp_path):
    case = replace(SMALL[0], seconds=0.02, turn=0.02)
    theirs = fake(case, tmp_path)
    peers_race.race([theirs], case)
    theirs.turns.own_mean, theirs.turns.own_max = [None], [None]
    row = peers_race.summary(theirs, case)
    theirs.close()
    assert row["own_mean"] is None and row["own_max"] is None and peers._percent(None) == ""


def test_a_peer_that_dies_keeps_its_turns_and_says_why(tmp_path):
    case = replace(SMALL[0], seconds=0.04, turn=0.02)
    theirs = fake(case, tmp_path, steps=3)
    peers_race.race([theirs], case)
    row = peers_race.summary(theirs, case)
    theirs.close()
    assert "out of breath" in row["failed"] and "exit 1" in row["failed"] and row["steps"] == 2


def test_a_peer_that_does_not_start_is_missing(tmp_path):
    with pytest.raises(peers_install.PeerMissing, match=r"exit 3.*it said nothing"):
        command = [sys.executable, "-c", "raise SystemExit(3)"]
        peers_race.Theirs(SMALL[0], "Fake", "method", {}, command, None, tmp_path)


# --- the whole -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """All contests with an impostor, as read back from a file."""
    folder = tmp_path_factory.mktemp("peers")
    patch = pytest.MonkeyPatch()

    def install(peer, *_):
        if peer is peers_install.GENESIS:
            raise peers_install.PeerMissing("Genesis: no wheel for this machine")
        return folder, "9.9"

    patch.setattr(peers_install, "install", install)
    patch.setattr(peers_race, "start_theirs", lambda case, code, *_: _named(fake(case, folder), code))
    file = folder / "result.json"
    try:
        peers.main("cpu", quick=True, json=file)
    finally:
        patch.undo()
    return json.loads(file.read_text())


def _named(one, code):
    one.code = code
    return one


def test_every_contest_gives_its_rows(result):
    assert result["kind"] == "peers" and result["rows"] and result["command"].startswith("viscoil bench peers --quick")
    for name in ("pbf", "dfsph", "viscous", "iisph"):
        rows = [row for row in result["rows"] if row["contest"] == name]
        assert len(rows) >= 2 and rows[0]["version"] == "9.9" and rows[0]["ratio"] == 1.0
        assert all(row["particles"] == rows[0]["particles"] and row["code"] == "viscoil" for row in rows[1:])
        assert all(row["ratio"] > 0 and row["seconds_per_second"] > 0 for row in rows[1:])
    assert any("no wheel" in note for note in result["notes"])


def test_the_result_can_be_shown(result):
    (title, columns, rows), (_, moments, heights) = peers.tables(result)
    assert result["machine"]["cpu"] in title and all(len(row) == len(columns) for row in rows)
    assert all(len(row) == len(moments) for row in heights)
    from matplotlib.figure import Figure

    figure = Figure()
    peers.draw(result, figure)
    assert len(figure.axes) == 3


def test_a_contest_that_does_not_exist_is_named():
    with pytest.raises(SceneError, match='Did you mean "dfsph"'):
        peers.main("cpu", contests="dfshp")


# --- installing ------------------------------------------------------------------------------------------------------------
def test_a_peer_goes_into_an_environment_of_its_own_and_says_so(tmp_path, monkeypatch):
    ran, said = [], []

    def run(command, what, env=None):
        ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            Path(command[3]).mkdir()
        return "2.19.0"

    monkeypatch.setattr(peers_install, "_run", run)
    environment, version = peers_install.install(peers_install.SPLISH, tmp_path, say=said.append)
    assert environment == tmp_path / "pysplishsplash" and version == "2.19.0"
    assert str(environment) in said[0] and "virtual environment" in said[0]
    assert ran[0][1:3] == ["-m", "venv"] and ran[1][0] == str(peers_install.python_of(environment))
    peers_install.install(peers_install.SPLISH, tmp_path, say=said.append)
    assert len(said) == 1 and len(ran) == 3  # nothing is done twice


def test_what_pip_says_is_passed_on(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('WARNING: first\\nERROR: no such wheel')"]
    with pytest.raises(peers_install.PeerMissing, match="pip failed: ERROR: no such wheel"):
        peers_install._run(command, "pip")


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_their_own_library_stands_in_for_the_systems(tmp_path):
    libraries = tmp_path / "lib" / "python3.11" / "site-packages" / "pysplishsplash.libs"
    assert not peers_install.lay_shim(tmp_path) and "LD_LIBRARY_PATH" not in (
        set(peers_install.variables(tmp_path, 2)) - set(os.environ)
    )
    libraries.mkdir(parents=True)
    (libraries / "libOpenGL-123.so.0.0.0").write_text("")
    assert peers_install.lay_shim(tmp_path) and peers_install.lay_shim(tmp_path)
    assert (tmp_path / "shim" / "libGL.so.1").resolve() == (libraries / "libOpenGL-123.so.0.0.0").resolve()
    told = peers_install.variables(tmp_path, 3)
    assert told["OMP_NUM_THREADS"] == "3" and told["LD_LIBRARY_PATH"].split(":")[0] == str(tmp_path / "shim")
    assert "PYTHONPATH" not in told


def test_scripts_for_peers_import_nothing_of_ours():
    for script in Path(peers.__file__).parent.glob("peers_*.py"):
        if script.name in {contest.script for contest in peers.CONTESTS}:
            assert "viscoil" not in script.read_text()
