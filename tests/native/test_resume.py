"""A run goes on the way it began: by the kernels if they computed its first frames."""

import json

from kit import box_scene
from viscoil import native
from viscoil.cli import main
from viscoil.io.execute import execute
from viscoil.io.run import Run
from viscoil.simulate import Simulation


def run(*arguments):
    assert main(["run", *map(str, arguments), "--device", "cpu"]) in (0, None)


def frames(folder):
    opened = Run.open(folder)
    return {index: opened.frame_path(index).read_bytes() for index in opened.frames}


def test_resumed_runs_keep_to_their_way(tmp_path, capsys):
    scene = tmp_path / "scene.toml"
    scene.write_text(box_scene(0.05, (6, 6, 6), solver={"method": "pbf"}).to_toml())
    with native.use(False):
        run(scene, "-o", tmp_path / "whole", "--frames", 3)
        run(scene, "-o", tmp_path / "parts", "--frames", 1)
    run(tmp_path / "parts", "--resume", "--frames", 3)
    assert frames(tmp_path / "parts") == frames(tmp_path / "whole")
    run(scene, "-o", tmp_path / "compiled", "--frames", 3)
    assert frames(tmp_path / "compiled") != frames(tmp_path / "whole")
    assert json.loads((tmp_path / "compiled" / "run.json").read_text())["passes"].startswith("AVX")


def test_another_way_is_told(tmp_path, capsys):
    scene = tmp_path / "scene.toml"
    scene.write_text(box_scene(0.05, (4, 4, 4), solver={"method": "pbf"}).to_toml())
    run(scene, "-o", tmp_path / "run", "--frames", 1)
    native._load()[0].viscoil_restrict(0)
    info = tmp_path / "run" / "run.json"
    info.write_text(info.read_text().replace(native.describe(), "something older"))
    run(tmp_path / "run", "--resume", "--frames", 2)
    assert "not bit by bit" in (tmp_path / "run" / "log.txt").read_text()


def test_runs_made_in_python_keep_to_theirs_too(tmp_path, capsys):
    """Begun with execute, gone on with from the command line: the passes compute all of it."""
    scene = box_scene(0.05, (6, 6, 6), solver={"method": "pbf"})
    scene.time.frames = 3
    for name, frame in (("whole", 3), ("parts", 1)):
        execute(Simulation(scene, "cpu"), Run.create(tmp_path / name, scene), frame)
    run(tmp_path / "parts", "--resume")
    assert frames(tmp_path / "parts") == frames(tmp_path / "whole")
    assert Run.open(tmp_path / "parts").info["passes"] == native.describe()
