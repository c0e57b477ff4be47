"""Kernels know a launch by the identity of its arguments: dataclasses of rows must outlive the sorting of memory."""

import pytest

from kit import box_scene
from viscoil.simulate import Simulation

D = 0.04
SOLVERS = {
    "iisph": {"method": "iisph", "correction": "springs", "spring_stiffness": 500.0},
    "pvfs": {"method": "pvfs", "spring_stiffness": 0.3},
}


def rows_of(sim):
    return sim.solver.held.rows(sim.world) if sim.scene.solver.method == "iisph" else sim.solver._rows(sim.world)


@pytest.mark.parametrize("method", SOLVERS)
def test_rows_of_the_same_arrays_are_the_same_object(method):
    sim = Simulation(box_scene(D, (4, 4, 4), solver=SOLVERS[method]), "cpu")
    sim.step()
    seen = [rows_of(sim)]
    for _ in range(2):
        sim.world.reorder()
        seen.append(rows_of(sim))
    assert seen[1] is not seen[0], "rows and their spare have changed places"
    assert seen[2] is seen[0], "another object might have the identity of one that died, and its launches"
