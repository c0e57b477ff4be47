"""A sum that is not finite stops a run, although places, velocities and what is clamped still look as if nothing happened."""

import numpy as np
import pytest

import lost_sums
from viscoil import native, transfer
from viscoil.errors import SimulationFailed
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.01


def scene(method, solver):
    return Scene.model_validate({
        "spacing": D, "solver": {"method": method, **solver}, "time": {"frames": 2, "frame_time": 0.004, "steps_per_frame": 4},
        "material": {"stuff": {"density": 1000, "viscosity": 1.0 if method == "dcpbd" else 0.0}},
        "fluid": [{"material": "stuff", "shape": {"type": "box", "size": (6 * D,) * 3, "position": (0, 4 * D, 0)}}],
        "solid": [{"shape": {"type": "plane"}}],
    })  # fmt: skip


def lose_a_volume(sim):
    """Of one particle: it reaches places by way of the displacements too."""
    volume = sim.world.get("volume").copy()
    volume[len(volume) // 2] = np.nan
    sim.world.set("volume", volume)


def lose_the_viscosity(sim):
    """It reaches the sums of conjugate gradients alone, and those would end before the first iteration."""
    transfer.write(sim.solver.substances.viscosity, [np.nan])


CASES = {"pbf": lose_a_volume, "iisph": lose_a_volume, "dcpbd": lose_the_viscosity}


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_what_is_made_of_a_lost_sum_is_lost(lost):
    lost_sums.check("cpu", lost)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", CASES)
def test_a_lost_sum_stops_the_run(method, compiled):
    if compiled and not native.active():
        pytest.skip("no compiled passes here")
    with native.use(compiled):
        sim = Simulation(scene(method, {}), "cpu")
        sim.step()
        CASES[method](sim)
        with pytest.raises(SimulationFailed, match="particle"):
            for _ in range(3):
                sim.step()
