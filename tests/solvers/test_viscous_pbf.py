"""Viscous PBF: links hold a body together, keep momentum, flow, come and go, and survive restart, sorting and failed steps."""

import numpy as np
import pytest

from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.025


def block(cells=(6, 6, 6), height=0.0, **changes):
    size = tuple(n * D for n in cells)
    values = {
        "spacing": D, "time": {"frames": 12, "frame_time": 0.01, "steps_per_frame": 4},
        "solver": {"method": "viscous_pbf", "iterations": 8, "stiffness": 1.0},
        "fluid": [{"material": "water", "shape": {"type": "box", "size": size, "position": (0, size[1] / 2 + height, 0)}}],
        "solid": [{"friction": "no-slip", "shape": {"type": "plane"}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def linked(sim):
    """Links by id: {(a, b): length at rest}, as both ends tell them."""
    ids, partner, rest = sim.world.get("id"), *(sim.world.carried[name].get(sim.world.count) for name in ("partner", "rest"))
    pairs = np.argwhere(partner >= 0)
    return {(int(ids[i]), int(partner[i, a])): float(rest[i, a]) for i, a in pairs}


def test_every_link_has_two_ends_after_an_impact():
    sim = Simulation(block(height=0.02, solver={"method": "viscous_pbf", "flow_time": 0.02, "cut_strain": 0.05}), "cpu")
    sim.advance_frame()
    first = linked(sim)
    for _ in sim.frames(12):
        pass
    links = linked(sim)
    assert len(links) > 1000 and links != first
    assert all(links.get((b, a)) == length for (a, b), length in links.items())
    assert sim.metrics()["links"] == len(links) // 2


def test_stiff_links_stand_where_water_flows():
    heights = {}
    for stiffness in (0.0, 1.0):
        sim = Simulation(block(), "cpu")
        sim.scene.solver.stiffness = stiffness
        for _ in sim.frames(12):
            pass
        heights[stiffness] = sim.metrics()["height"]
    assert heights[1.0] > 5.2 * D > 4.5 * D > heights[0.0]


@pytest.mark.parametrize("stiffness", [0.2, 1.0])
def test_momentum_and_rigid_rotation(stiffness):
    scene = block(solid=[], gravity=(0, 0, 0))
    scene.solver.stiffness = stiffness
    sim = Simulation(scene, "cpu")
    x = sim.world.get("position").astype(float)
    spun = np.cross((0, 2.0, 0), x - x.mean(0)) + np.array([0.5, -0.2, 0.1])
    sim.world.set("velocity", spun)
    before = sim.frame()
    for _ in sim.frames(4):
        pass
    after = sim.frame()
    moved = (after["velocity"].astype(float) - before["velocity"]).sum(0)
    assert np.abs(moved).max() < 1e-5 * np.linalg.norm(spun, axis=1).sum()
    turning = [np.cross(f["position"] - f["position"].mean(0), f["velocity"].astype(float)).sum(0)[1] for f in (before, after)]
    assert turning[1] == pytest.approx(turning[0], rel=0.02)


def test_restart_has_the_same_bits():
    def made():
        return Simulation(block(height=0.02, gravity=(2, -9.81, 0)), "cpu")

    sim = made()
    for _ in sim.frames(5):
        pass
    state = sim.state()
    again = made()
    again.restore(state)
    for each in (sim, again):
        for _ in each.frames(11):
            pass
    assert sim.frame(["density"]).differences(again.frame(["density"])) == []
    assert linked(sim) == linked(again)
    forgetful = made()
    forgetful.restore({**state, "carried/partner": np.full_like(state["carried/partner"], -1)})
    for _ in forgetful.frames(11):
        pass
    assert forgetful.frame().differences(sim.frame()) != [], "the links are what makes the difference"


def test_a_failed_step_gives_the_links_back():
    sim = Simulation(block(), "cpu")
    sim.advance_frame()
    links = linked(sim)
    sim.world.remember()
    sim.world.carried["rest"].clear(0, sim.world.count)
    assert linked(sim) != links
    sim.world.go_back()
    assert linked(sim) == links


def test_what_is_poured_and_drained_leaves_no_loose_ends():
    scene = block((4, 4, 4))
    scene.emitter = [{"material": "water", "shape": {"type": "sphere", "radius": 0.06}, "position": (0, 0.3, 0), "speed": 2.0}]
    scene.sink = [{"shape": {"type": "box", "size": (0.04, 0.05, 1.0), "position": (0.05, 0.02, 0)}, "start": 0.05}]
    sim = Simulation(Scene(**scene.to_dict()), "cpu")
    before = sim.world.capacity
    for _ in sim.frames(12):
        pass
    for _ in range(2):
        sim.step()
    links, alive = linked(sim), set(sim.world.get("id").tolist())
    assert sim.world.capacity > before and sim.world.next_id > len(alive)
    assert {a for a, _ in links} <= alive
    gone = {b for _, b in links} - alive
    assert len(gone) < 20 and all(links.get((b, a)) == length for (a, b), length in links.items() if b not in gone)


def test_another_method_does_not_carry_them():
    sim = Simulation(block(), "cpu")
    sim.advance_frame()
    sim.scene.solver = {"method": "pbf"}
    sim.update()
    sim.advance_frame()
    assert set(sim.world.carried) == {"pressure"}, "its own, and no links"
    assert [key for key in sim.state() if key.startswith("carried")] == ["carried/pressure"]
