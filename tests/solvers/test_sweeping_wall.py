"""A thin wall that moves by many times its thickness in a step takes all fluid along, whatever the method."""

import pytest

import viscoil as vc
from viscoil.scene.schema import Scene

D = 0.05


@pytest.mark.parametrize("method", ["pbf", "dcpbd", "pvfs", "iisph"])
@pytest.mark.parametrize("spacings", [3, 8])
def test_a_wall_sweeps_up_what_rests(method, spacings):
    """At the start of its step the wall is out of sight, at the end it is far behind."""
    way = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 0.06, "position": (6 * spacings * D, 0, 0)}]
    scene = Scene(
        spacing=D, gravity=(0, 0, 0), time={"frames": 6, "frame_time": 0.01, "steps_per_frame": 1}, solver={"method": method},
        material={"water": {"density": 1000}},
        fluid=[{"material": "water", "shape": {"type": "box", "size": (3 * D, 3 * D, 3 * D)}}],
        solid=[{"shape": {"type": "box", "size": (D, 4, 4), "position": (-(2.5 * spacings + 4) * D, 0, 0)}, "motion": way,
                "interpolation": "linear"}],
    )  # fmt: skip
    *_, last = vc.Simulation(scene, device="cpu").frames()
    front = last.solids[0]["pose"][0][3] + D / 2
    assert len(last) == 27
    assert last["position"][:, 0].min() > front
