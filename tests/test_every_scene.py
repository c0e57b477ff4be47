"""Every shipped scene: loads in all its profiles, runs in the quick one, and keeps its promises."""

import numpy as np
import pytest

import viscoil as vc
from viscoil.scene.load import profiles, shipped

SCENES = sorted(shipped())


@pytest.mark.parametrize("name", SCENES)
def test_loads_in_every_profile_and_says_what_it_is(name):
    for quality in ["quick", *profiles(name)]:
        scene = vc.load(name, quality=quality)
        scene.check()
        assert scene.title
        assert scene.description
    assert vc.load(name).expect, "a shipped scene promises at least one measured number"


@pytest.mark.parametrize(
    ("name", "particles"),
    [("dam_break", 100_000), ("bear_bath", 128_000), ("bear_splash", 128_000), ("bear_drop", 80_000)],
)
def test_paper_profile_has_the_published_size(name, particles):
    scene = vc.load(name, quality="paper")
    sim = vc.Simulation(scene, device="cpu")
    assert sim.particles == pytest.approx(particles, rel=0.03)


@pytest.mark.parametrize("name", SCENES)
def test_keeps_its_promises(name):
    scene = vc.load(name)
    sim = vc.Simulation(scene, device="cpu")
    assert sim.particles >= 5000 or scene.emitter
    rows = []
    for frame in sim.frames():
        rows.append(sim.metrics())
        assert np.isfinite(frame["position"]).all()
    times = np.array([row["time"] for row in rows])
    for promise in scene.expect:
        at = scene.end_time if promise.time is None else promise.time
        row = rows[int(np.abs(times - at).argmin())]
        measured = row[promise.quantity]
        assert promise.accepts(measured), f"{promise.quantity} at {at} s is {measured}, promised {promise.value}"
    assert rows[-1]["compression"] < 0.01
