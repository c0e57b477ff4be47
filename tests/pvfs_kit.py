"""Small PVFS simulations with particles where a test wants them. Lengths in h, times in τ = 1/30 s, as in the paper."""

import numpy as np

import kit
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solvers.pvfs import PVFSParams

H, TAU = 0.1, 1 / 30
D = 0.38 * H


def cloud(cells=(6, 5, 5), jitter=0.2, seed=1):
    """Positions of a shaken lattice [h]."""
    return kit.lattice(cells, 0.38, jitter, seed).astype(np.float32).astype(float)


def scene(cells=(6, 5, 5), published=None, substeps=1, frames=20, **changes):
    """A block without gravity at the published constants; ``published``: other ones (clavet)."""
    size = [n * D for n in cells]
    values = {
        "spacing": D, "gravity": (0, 0, 0),
        "time": {"frames": frames, "frame_time": TAU, "steps_per_frame": substeps},
        "solver": PVFSParams.clavet(H, **{"substeps": substeps, "freeze_at_start": False, **(published or {})}),
        "material": {"m": {"density": 1000.0}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def made(x, v=None, freeze=True, **more):
    """A simulation with particle number i at ``x[i]`` [h], moving with ``v[i]`` [h/τ], its springs frozen there."""
    sim = Simulation(scene((len(x), 1, 1), **more), "cpu")
    ids = sim.world.get("id")
    sim.world.set("position", (np.asarray(x)[ids] * H).astype(np.float32))
    if v is not None:
        sim.world.set("velocity", (np.asarray(v)[ids] * H / TAU).astype(np.float32))
    sim.world.fit_cells()
    if freeze:
        sim.solver.freeze(sim.world)
    else:
        sim.solver.clear(sim.world)
    return sim


def state(sim):
    """Positions [h] and velocities [h/τ] by id."""
    order = np.argsort(sim.world.get("id"))
    return sim.world.get("position")[order].astype(float) / H, sim.world.get("velocity")[order].astype(float) * TAU / H


def rest_lengths(sim):
    """(n, n) matrix of rest lengths by id [h]; 1 where there is no spring, for one as long as h does nothing."""
    i, j, length = sim.solver.springs(sim.world)
    result = np.ones((sim.world.next_id,) * 2)
    result[i, j] = result[j, i] = np.asarray(length, float) / H
    assert (np.asarray(i) < np.asarray(j)).all() and len(set(zip(i, j, strict=True))) == len(i), "every spring once"
    return result
