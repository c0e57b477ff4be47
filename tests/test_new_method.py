"""A new method is one file and one line: its scenes are checked, run, resumed and measured like any other's."""

import numpy as np
import pytest

from viscoil import solvers
from viscoil.errors import SceneError
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

TABLE = {
    "spacing": 0.02, "solver": {"method": "toy"}, "time": {"frames": 4, "frame_time": 0.05, "steps_per_frame": 5},
    "material": {"stuff": {"density": 1000}},
    "fluid": [{"material": "stuff", "shape": {"type": "box", "size": (0.1, 0.1, 0.1), "position": (0, 0.15, 0)}}],
    "solid": [{"shape": {"type": "plane"}}],
}  # fmt: skip


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(solvers.SOLVERS, "toy", solvers.SolverInfo("falls", "toy_method", "Toy"))


def test_a_file_and_a_line_are_all_it_takes(toy):
    sim = Simulation(Scene.model_validate(TABLE), "cpu")
    began = sim.frame()["position"]
    sim.advance_frame()
    assert np.allclose(sim.frame()["velocity"][:, 1], -9.81 * 0.05, rtol=1e-4)
    kept = sim.state()
    for _ in range(3):
        sim.advance_frame()
    found = sim.frame()["position"]
    assert np.allclose(found[:, [0, 2]], began[:, [0, 2]], atol=1e-6)
    assert found[:, 1].min() == pytest.approx(0.01, abs=1e-4), "a contact radius above the floor"
    assert sim.metrics()["density_max"] > 1.5, "nothing holds them apart"
    again = Simulation(Scene.model_validate(TABLE), "cpu")
    again.restore(kept)
    for _ in range(3):
        again.advance_frame()
    assert np.array_equal(again.frame()["position"], found)


def test_its_parameters_are_checked_like_any_others(toy):
    with pytest.raises(SceneError, match="suport"):
        Scene.model_validate({**TABLE, "solver": {"method": "toy", "suport": 2.0}})
