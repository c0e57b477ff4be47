"""Small PVFS simulations with particles where a test wants them. Lengths in h, times in τ = 1/30 s, as in the paper."""

import numpy as np
import quadrants as qd

import kit  # starts the backend
from viscoil.particles import allocate_array
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solvers.pvfs import PVFSParams
from viscoil.sph.schedule import Schedule, hits_for, induced_order, line_schedule
from viscoil.sph.search import Neighbors

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


class Swept:
    """Points with their lists, and the two ways to go through them: coloured, or in any given order by one thread."""

    def __init__(self, x, box=None, **fields):
        """x [h]; lists reach 1.25 h."""
        self.n = len(x)
        self.particles = kit.make_particles(x, **fields)
        self.neighbors = Neighbors(1.25, 160, self.n, box)
        self.neighbors.multiple = 4
        self.neighbors.fit(np.min(x, axis=0), np.max(x, axis=0))
        self.neighbors.find(self.particles.position, self.particles, self.n)
        while needed := self.neighbors.overflow():
            self.neighbors.widen(needed)
            self.neighbors.find(self.particles.position, self.particles, self.n)
        self.colour, self.backwards = allocate_array(qd.i32, 2), allocate_array(qd.i32, 1)

    @property
    def coloured(self):
        cells = self.neighbors.cells
        return Schedule(cells.order, cells.start, self.neighbors.torus.whole, self.colour, self.backwards)

    def induced(self):
        """The order in which the coloured sweep goes, on the host."""
        cells = self.neighbors.cells
        return induced_order(cells.order.to_numpy()[: self.n], cells.start.to_numpy(), self.neighbors.dims)

    def in_turn(self, order):
        """A sweep in this order."""
        schedule = line_schedule(self.n, self.colour, self.backwards)
        schedule.order.from_numpy(np.asarray(order, np.int32))
        schedule.start.from_numpy(np.array([0, self.n], np.int32))
        return schedule

    @property
    def hits(self):
        return hits_for(self.neighbors.width, None)
