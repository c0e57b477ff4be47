"""A sum that is not finite stops a run, although places, velocities and what is clamped still look as if nothing happened."""

import numpy as np
import pytest
import quadrants as qd

from viscoil import backend, native, transfer
from viscoil.constraints.density import DensityNumbers, _multiplier
from viscoil.errors import SimulationFailed
from viscoil.particles import Floats, Uploaded, allocate_array
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.sph.descent import strides

D = 0.01


def scene(method, solver):
    return Scene.model_validate({
        "spacing": D, "solver": {"method": method, **solver}, "time": {"frames": 2, "frame_time": 0.004, "steps_per_frame": 4},
        "material": {"stuff": {"density": 1000, "viscosity": 1.0 if method == "dcpbd" else 0.0}},
        "fluid": [{"material": "stuff", "shape": {"type": "box", "size": (6 * D,) * 3, "position": (0, 4 * D, 0)}}],
        "solid": [{"shape": {"type": "plane"}}],
    })  # fmt: skip


CASES = {
    "pbf with momentum": ("pbf", {}), "pbf as published": ("pbf", {"acceleration": "none"}), "dcpbd": ("dcpbd", {}),
    "iisph": ("iisph", {}),
}  # fmt: skip


@qd.kernel
def _of_lost_sums(lost: Floats, c: DensityNumbers, out: Floats):
    """Multipliers of eq. 11 and strides of conjugate gradients, of sums of which one is lost."""
    for _ in range(1):
        a, _a = _multiplier(lost[0], 1.0, 1.0, c)
        b, _b = _multiplier(1.5, lost[0], 1.0, c)
        out[0] = a
        out[1] = b
        out[2] = strides(lost[0], 1.0, 0.0, 0.0)[0]
        out[3] = strides(1.0, lost[0], 2.0, 0.5)[0]
        out[4] = strides(1.0, 2.0, 0.0, 0.0)[0]


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_what_is_made_of_a_lost_sum_is_lost(lost):
    backend.start("cpu")
    uploaded = Uploaded(DensityNumbers)
    numbers = {"support": 1.0, "softness": 0.1, "repulsion": 0.0, "reference": 1.0, "unilateral": 1, "share": 0.1}
    given, out = allocate_array(qd.f32, 1), allocate_array(qd.f32, 5)
    transfer.write(given, [lost])
    _of_lost_sums(given, uploaded.set(**numbers), out)
    found = transfer.read(out)
    assert np.isnan(found[:4]).all(), found
    assert found[4] == 0.5


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_a_lost_sum_stops_the_run(case, compiled):
    """One particle's volume is NaN, no place is."""
    if compiled and not native.active():
        pytest.skip("no compiled passes here")
    with native.use(compiled):
        sim = Simulation(scene(*CASES[case]), "cpu")
        sim.step()
        volume = sim.world.get("volume").copy()
        volume[len(volume) // 2] = np.nan
        sim.world.set("volume", volume)
        with pytest.raises(SimulationFailed, match="particle"):
            for _ in range(3):
                sim.step()
