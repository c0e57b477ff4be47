"""Compiled densities and pressures of IISPH against the kernels', in a ball between samples and on a plane."""

import numpy as np
import pytest

from viscoil import native
from viscoil.bench import iisph
from viscoil.simulate import Simulation
from viscoil.solvers import iisph as solver

BETWEEN = iisph.Load("ball", 4.5, 12, 0.0, 9.81, None)
PLANE = iisph.Load("drop", 4.5, 0, 0.0, 9.81, None)


def after(load, compiled, steps=1, **more):
    """(velocities, pressures, densities, iterations) after a step of a ball that was pressed together, by id."""
    scene = iisph.scene(load, "none")
    for name, value in more.items():
        setattr(scene.solver, name, value)
    with native.use(compiled):
        sim = Simulation(scene, "cpu")
        fluid = (sim.world.get("solid") < 0)[:, None]
        x = sim.world.get("position")
        sim.world.set("position", np.where(fluid, 0.95 * x, x))
        for _ in range(steps):
            sim.step()
        order = sim.world.fluid_order()
        field = sim.solver.field
        arrays = (sim.world.particles.velocity, field.pressure, field.density)
        return *(array.to_numpy()[order] for array in arrays), sim.solver.iterations_used()


@pytest.mark.parametrize("large", [0, 10**9], ids=["iterated by hand", "iterated by kernels"])
@pytest.mark.parametrize("case", ["samples", "plane"])
def test_the_kernels_pressures(case, large, instructions, monkeypatch):
    monkeypatch.setattr(solver, "LARGE", large)
    more = {"tolerance": 1e-4, "iterations": 60} if case == "plane" else {"wall_viscosity": 0.01}
    load = PLANE if case == "plane" else BETWEEN
    ours, kernels = after(load, True, **more), after(load, False, **more)
    assert ours[3] == kernels[3] > 0
    for mine, theirs in zip(ours[:3], kernels[:3], strict=True):
        assert np.abs(theirs).max() > 0
        assert np.abs(mine - theirs).max() < 3e-4 * np.abs(theirs).max()


def test_bodies_and_mixtures_are_left_to_the_kernels():
    scene = iisph.scene(PLANE, "none")
    sim = Simulation(scene, "cpu")
    sim.step()
    assert sim.solver._by_hand
    sim.world.forget_uniform()
    sim.step()
    assert not sim.solver._by_hand
