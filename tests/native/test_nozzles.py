"""Fluid that a nozzle leads has a negative inverse mass: compiled passes and kernels have to mean the same by it."""

import numpy as np
import pytest

from viscoil import native
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solvers import iisph

SPACING = 0.02
IISPH, HURRIED = {"method": "iisph"}, {"method": "iisph", "acceleration": "momentum"}
CASES = {  # solver, from how many particles on IISPH iterates by hand
    "dcpbd": ({"method": "dcpbd"}, 0),
    "pvfs": ({"method": "pvfs"}, 0),
    "iisph, iterated by kernels": (IISPH, 10**9),
    "iisph, iterated by hand": (IISPH, 0),
    "iisph with momentum, by kernels": (HURRIED, 10**9),
    "iisph with momentum, by hand": (HURRIED, 0),
}


def scene(solver, samples=False):
    """A nozzle pushes into a box of fluid that begins where its pipe ends. ``samples``: it stands on those, not on a plane."""
    filled = {"type": "box", "size": (0.2, 0.2, 0.2), "position": (0, 0.14, 0)}
    block = {"boundary": "particles", "shape": {"type": "box", "size": (0.4, 0.08, 0.4), "position": (0, 0, 0)}}
    return Scene(
        spacing=SPACING,
        solver=solver,
        material={"fluid": {"density": 1000.0, "viscosity": 1.0}},
        fluid=[{"material": "fluid", "jitter": 0.1, "shape": filled}],
        emitter=[
            {
                "material": "fluid", "position": (0, 0.24, 0), "direction": (0, -1, 0), "speed": 1.0,
                "shape": {"type": "cylinder", "radius": 0.05, "height": SPACING},
            }
        ],
        solid=[block if samples else {"shape": {"type": "plane", "position": (0, 0.04, 0)}}],
    )  # fmt: skip


def after(solver, compiled, steps, samples=False):
    """(x, inverse masses, pressures or None) of all fluid by id."""
    with native.use(compiled):
        sim = Simulation(scene(solver, samples), device="cpu")
        for _ in range(steps):
            sim.step()
        order = sim.world.fluid_order()
        x, w = (sim.world.get(name)[order] for name in ("position", "inverse_mass"))
        return x, w, sim.solver.field.pressure.to_numpy()[order] if solver["method"] == "iisph" else None


@pytest.mark.parametrize("case", CASES)
def test_both_forms_agree(case, monkeypatch):
    solver, large = CASES[case]
    monkeypatch.setattr(iisph, "LARGE", large)
    (x, w, _), (expected, _, _) = (after(solver, compiled, steps=3) for compiled in (True, False))
    assert (w < 0).any() and (w > 0).any()
    assert np.abs(x - expected).max() < 1e-3 * SPACING


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "kernels"])
@pytest.mark.parametrize("samples", [True, False], ids=["samples", "plane"])
def test_what_is_led_has_no_pressure(samples, compiled):
    _, w, pressure = after(IISPH, compiled, steps=1, samples=samples)
    assert (w < 0).any() and not pressure[w < 0].any()
    assert pressure[w > 0].max() > 0
