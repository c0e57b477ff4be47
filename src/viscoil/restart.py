"""What a simulation is at a frame boundary, as arrays and numbers, and a simulation that continues from there.

Nothing else influences results, so a run that was resumed has the same bits as one that was never interrupted.
"""

from typing import Any

import numpy as np

from viscoil.errors import RunFolderError
from viscoil.particles import FIELDS


def state_of(sim: Any) -> dict[str, Any]:
    """Everything a restart of the Simulation ``sim`` needs."""
    world = sim.world
    values: dict[str, Any] = {f"particles/{name}": world.get(name) for name, field in FIELDS.items() if field.saved}
    values |= {f"carried/{name}": rows.get(world.count) for name, rows in world.carried.items()}
    values |= {
        "time": world.time, "steps": world.steps, "frame": sim.frame_index, "next_id": world.next_id,
        "capacity": world.capacity, "boundary_count": world.boundary_count, "largest_speed": sim._largest_speed,
        "uniform": int(world.uniform),
        "layers": np.array([n.layers for n in sim.nozzles], np.int64),
        "since": np.array([n.since for n in sim.nozzles], np.float64),
        "base": np.array([n.base for n in sim.nozzles], np.int64),
        "released": np.array([n.released for n in sim.nozzles], np.int64),
    }  # fmt: skip
    if len(world.clusters):
        values["clusters"] = np.array(world.clusters.first_ids, np.int64)
    if world.solids.bodies:
        values["bodies"] = world.solids.bodies.rigid.state()
    return values


def restore(sim: Any, state: dict[str, Any]) -> None:
    """Lets ``sim`` continue from what :func:`state_of` returned for the same scene."""
    world = sim.world
    missing = [n for n, f in FIELDS.items() if f.saved and f"particles/{n}" not in state]
    missing += [name for name in world.carried if f"carried/{name}" not in state]
    missing += ["bodies"] if world.solids.bodies and "bodies" not in state else []
    missing += ["clusters"] if len(np.atleast_1d(state.get("clusters", []))) != len(world.clusters) else []
    if missing or len(np.atleast_1d(state["layers"])) != len(sim.nozzles):
        raise RunFolderError(
            "the checkpoint does not fit this scene: "
            + (f"it lacks the field {', '.join(missing)}" if missing else "it has other emitters")
        )
    world.count = world.capacity = 0  # exactly as much memory as then: the search cells depend on it
    world.reserve(int(state["capacity"]))
    count = len(state["particles/id"])
    world.count = count
    for name, field in FIELDS.items():
        if field.saved and count:
            world.set(name, state[f"particles/{name}"])
    for name, rows in world.carried.items():
        rows.set(state[f"carried/{name}"])  # as wide as they were
    if int(state["uniform"]):
        world.learn_uniform()
    world.time, world.steps, world.next_id = float(state["time"]), int(state["steps"]), int(state["next_id"])
    world.boundary_count = int(state["boundary_count"])
    sim.frame_index, sim._started = int(state["frame"]), True
    sim._largest_speed = float(state["largest_speed"])
    sim._steps_in_frame = sim._retries = 0
    for k, nozzle in enumerate(sim.nozzles):
        nozzle.layers, nozzle.released = int(state["layers"][k]), int(state["released"][k])
        nozzle.since, nozzle.base = float(state["since"][k]), int(state["base"][k])
    sim._led_until = float(np.max(state["particles/free_at"], initial=-np.inf)) if sim.nozzles else -np.inf
    if len(world.clusters):
        world.clusters.set_first_ids(np.atleast_1d(state["clusters"]).tolist())
    if world.solids.bodies:
        world.solids.bodies.rigid.restore(state["bodies"])
    sim.solver.resize(world.capacity)
    sim._open_accounts()
    world.fit_cells()
    if world.solids.moving:
        world.solids.place(world.time, world.time)
