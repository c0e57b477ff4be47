"""Particles far from solids are not looked at by walls and contact: only right while their clearance is a lower bound."""

import numpy as np

import viscoil as vc
from viscoil.scene.schema import Scene


def test_clearance_never_exceeds_the_distance_to_any_solid():
    scene = Scene(
        spacing=0.05,
        time={"frames": 6, "frame_time": 0.016, "steps_per_frame": 2},
        solver={"method": "pbf", "iterations": 4, "support": 2.3},
        fluid=[{"material": "water", "shape": {"type": "box", "size": (0.6, 0.8, 0.6), "position": (-0.2, 0.4, 0)}}],
        solid=[
            {"container": True, "shape": {"type": "box", "size": (1.0, 3.0, 0.6), "position": (0, 1.5, 0)}},
            {"shape": {"type": "sphere", "radius": 0.12, "position": (0.3, 0.2, 0)}},
            {"shape": {"type": "bear", "height": 0.4, "position": (-0.1, 1.2, 0)}},
        ],
    )
    sim = vc.Simulation(scene, device="cpu")
    world, skipped = sim.world, 0
    for _ in range(12):
        sim.solver.step(world, 0.008)
        x = sim.solver.scratch.predicted.to_numpy()[: world.count]
        clear = sim.solver.scratch.clear.to_numpy()[: world.count]
        distance = np.min([world.solids.distance(k, x) for k in range(len(world.solids))], axis=0)
        far = clear >= world.support
        assert (clear[far] <= distance[far] + 1e-5).all()
        skipped += far.sum()
    assert skipped > 0.1 * 12 * world.count, "the test must see particles that are passed over"
