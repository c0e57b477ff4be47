"""Rigid and soft bodies made of particles among fluids: shape, momentum, contact, clinging, restarts, messages."""

from typing import Any

import numpy as np
import pytest

from viscoil.errors import SceneError
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
METHODS = ("pbf", "dcpbd")


def scene(method: str, *bodies: dict[str, Any], frames: int = 4, steps: int = 4, **more: Any) -> Scene:
    table = {
        "spacing": D, "gravity": (0, 0, 0), "solver": {"method": method},
        "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": steps},
        "material": {"water": {"density": 1000, "viscosity": 1.0 if method == "dcpbd" else None}},
        "particle_solid": list(bodies),
    }  # fmt: skip
    return Scene(**{**table, **more})


def run(scene: Scene) -> Simulation:
    sim = Simulation(scene, device="cpu")
    for _ in sim.frames():
        pass
    return sim


def sorted_by_id(sim: Simulation, name: str) -> np.ndarray:
    return sim.world.get(name)[np.argsort(sim.world.get("id"))]


def unlike(sim: Simulation, cluster: int = 0) -> float:
    """RMS distance from the rest shape, in sizes of the body."""
    mine = sorted_by_id(sim, "cluster") == cluster
    x, r = (sorted_by_id(sim, name)[mine].astype(float) for name in ("position", "rest"))
    x, r = x - x.mean(0), r - r.mean(0)
    u, _, v = np.linalg.svd(x.T @ r)
    rotation = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ v))]) @ v
    return float(np.sqrt(((x - r @ rotation.T) ** 2).sum(1).mean()) / np.ptp(r, axis=0).max())


def momentum(sim: Simulation) -> np.ndarray:
    mass = D**3 * np.array([m.density for m in sim.scene.used_materials().values()])[sim.world.get("material")]
    return (mass[:, None] * sim.world.get("velocity").astype(float)).sum(0)


def cube(n: int, y: float = 0.0, **more: Any) -> dict[str, Any]:
    shape = {"type": "box", "size": [n * D] * 3, "position": [0, y, 0]}
    return {"kind": "rigid", "shape": shape, **more}


def pool(n: int = 8) -> list[dict[str, Any]]:
    return [{"shape": {"type": "box", "size": [n * D] * 3}, "material": "water"}]


@pytest.mark.parametrize("method", METHODS)
def test_a_body_that_hits_fluid_keeps_its_shape_and_the_momentum(method):
    body = cube(5, 7 * D, density=600, velocity=[0.3, -2, 0], angular_velocity=[0, 0, 8])
    sim = Simulation(scene(method, body, fluid=pool(), frames=5), device="cpu")
    before = momentum(sim)
    slowest = 2.0
    for _ in sim.frames():
        body = sorted_by_id(sim, "cluster") == 0
        slowest = min(slowest, -sorted_by_id(sim, "velocity")[body, 1].mean())
    assert slowest < 1.6  # it was braked
    assert unlike(sim) < 1e-5
    assert np.abs(momentum(sim) - before).max() < 1e-4 * np.linalg.norm(before)


def test_a_body_keeps_spinning():
    body = cube(4, angular_velocity=[0, 20, 0], velocity=[0.1, 0, 0])
    sim = run(scene("pbf", body, frames=20))
    x, v = (sorted_by_id(sim, name).astype(float) for name in ("position", "velocity"))
    x, v = x - x.mean(0), v - v.mean(0)
    spin = np.cross(x, v).sum(0)[1] / (x[:, [0, 2]] ** 2).sum()
    assert spin == pytest.approx(20, rel=1e-3)  # chords would have lost a seventh of it
    assert sorted_by_id(sim, "velocity")[:, 0].mean() == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_a_body_comes_to_rest_on_the_ground(method):
    body = cube(6, 5 * D, density=2000)
    ground = [{"shape": {"type": "plane"}, "friction": 0.5}]
    sim = run(scene(method, body, frames=30, solid=ground, gravity=(0, -9.81, 0)))
    lowest = sim.world.get("position")[:, 1].min()
    assert 0.4 * D < lowest < 0.6 * D  # contact is half a spacing off
    assert np.abs(sim.world.get("velocity")).max() < 0.05
    assert unlike(sim) < 1e-5


def test_a_body_that_sticks_takes_fluid_along_and_one_that_slides_does_not():
    speeds = []
    for stickiness in ("no-slip", "slip"):
        body = cube(6, 6 * D, density=1000, velocity=[0.5, 0, 0], stickiness=stickiness)
        thick = {"water": {"density": 1000, "viscosity": 30.0}}
        sim = run(scene("dcpbd", body, fluid=pool(6), frames=6, material=thick))
        fluid = sorted_by_id(sim, "cluster") < 0
        speeds.append(sorted_by_id(sim, "velocity")[fluid, 0].mean())
        assert momentum(sim)[0] == pytest.approx(0.5 * 216 * D**3 * 1000, rel=1e-3)
    assert speeds[0] > 0.05 and abs(speeds[1]) < 0.2 * speeds[0]


def test_stickiness_of_pbf_does_not_depend_on_the_step():
    speeds = []
    for steps in (4, 8):
        body = cube(6, 6 * D, density=1000, velocity=[0.5, 0, 0], stickiness=0.3)
        sim = run(scene("pbf", body, fluid=pool(6), frames=8, steps=steps))
        fluid = sorted_by_id(sim, "cluster") < 0
        speeds.append(sorted_by_id(sim, "velocity")[fluid, 0].mean())
    assert speeds[0] > 0.005 and speeds[1] == pytest.approx(speeds[0], rel=0.15)


def test_a_stretched_soft_body_recovers():
    body = cube(5, density=1000, young_modulus=2e4, damping_time=0.02) | {"kind": "soft"}
    sim = Simulation(scene("pbf", body, frames=25), device="cpu")
    sim.world.set("position", sim.world.get("position") * np.array([1.3, 0.9, 0.9], np.float32))
    for _ in sim.frames():
        pass
    x, r = (sorted_by_id(sim, name) for name in ("position", "rest"))
    assert np.abs(np.ptp(x, axis=0) / np.ptp(r, axis=0) - 1).max() < 0.01
    assert np.abs(momentum(sim)).max() < 1e-4 * len(x) * D**3 * 1000


def test_a_run_that_is_resumed_has_the_same_bits():
    soft = cube(4, 9 * D, young_modulus=1e4) | {"kind": "soft", "name": "pudding"}
    late = cube(3, 15 * D, start=0.045, velocity=[0, -2, 0], name="late")
    table = scene("dcpbd", soft, late, fluid=pool(6), frames=6, gravity=(0, -9.81, 0))
    whole = run(table)
    first = Simulation(table, device="cpu")
    for frame in first.frames(2):
        assert set(np.unique(frame["material"])) == {0, 1}  # the other has still to come
    second = Simulation(table, device="cpu")
    second.restore(first.state())
    for _ in second.frames():
        pass
    assert whole.frame().materials[2]["name"] == "late" and (whole.frame()["material"] == 2).sum() == 27
    for name in ("id", "position", "velocity", "cluster", "rest"):
        assert (whole.world.get(name) == second.world.get(name)).all(), name
    with pytest.raises(Exception, match="clusters"):
        run_other = Simulation(scene("dcpbd", soft, fluid=pool(6)), device="cpu")
        run_other.restore(first.state())


def test_fluid_leaves_room_for_bodies_and_both_are_counted():
    sim = Simulation(scene("pbf", cube(4), fluid=pool(8)), device="cpu")
    assert (sim.world.get("cluster") == 0).sum() == 64 and sim.world.count == 8**3
    assert sim.world.clusters.mix(1e-3) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"young_modulus": 1e4}, "no meaning for a rigid body"),
        ({"kind": "soft"}, "needs young_modulus"),
        ({"name": "water"}, "taken by a material"),
        ({"shape": {"type": "plane"}}, "closed shape"),
        ({"stickiness": "glue"}, "no-slip"),
    ],
)
def test_messages(change, message):
    with pytest.raises(SceneError, match=message):
        scene("pbf", {**cube(4), **change}, fluid=pool()).check()


def test_a_method_without_particle_solids_says_so():
    with pytest.raises(SceneError, match=r"pvfs.*does not know particle solids.*pbf"):
        scene("pvfs", cube(4), fluid=pool()).check()
