"""What the README shows works as it stands there."""

import re
from pathlib import Path

import numpy as np
import pytest

import viscoil as vc
from viscoil.material import unsupported
from viscoil.solvers import solver_class

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The one block of code in ``language``."""
    found = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_its_scene_pours_honey_over_a_bear(tmp_path):
    path = tmp_path / "bear.toml"
    path.write_text(block("toml"), encoding="utf-8")
    scene = vc.load(path)
    (honey,) = scene.fluid_materials().values()
    assert not any("viscosity" in message for message in unsupported(honey, solver_class(scene.method).honours))
    assert 10_000 < scene.estimate().particles < 40_000, "smooth, and done in two minutes on two cores"
    # As coarse as a test can afford: what is poured reaches the bear and stays in one piece around the axis.
    sim = vc.Simulation(vc.load(path, spacing=0.004, time__frames=24), device="cpu")
    *_, frame = sim.frames()
    x = frame["position"]
    assert x[:, 1].min() < 0.11
    assert np.hypot(x[:, 0], x[:, 2]).max() < 0.05
    assert frame["velocity"][x[:, 1] < 0.12, 1].min() > -0.3, "honey that meets the bear is slowed down"


def test_its_python_runs(capsys):
    code = block("python")
    assert "time__frames=60" in code
    exec(compile(code.replace("time__frames=60", "time__frames=32"), "README.md", "exec"), {})
    told = capsys.readouterr().out.splitlines()
    assert len([line for line in told if "front" in line]) == 33
    assert float(told[-1].split("front ")[1].split()[0]) == pytest.approx(1.59, abs=0.05), "it has met the far wall"
