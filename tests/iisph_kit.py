"""Small IISPH simulations with particles where a test wants them, and the same as the slow reference sees it. SI units."""

import numpy as np

import kit  # starts the backend
from iisph_reference import Setting, Walls
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D, DT, RHO = 0.04, 0.002, 1000.0
H = 2 * D


def cloud(cells=(6, 5, 5), jitter=0.15, squeezed=0.95, seed=1):
    """A shaken lattice, a little too dense, so that there is pressure everywhere."""
    return (kit.lattice(cells, 1.0, jitter, seed) * D * squeezed).astype(np.float32).astype(float)


def noise(x, size=0.3, seed=3):
    return np.random.default_rng(seed).uniform(-size, size, x.shape).astype(np.float32).astype(float)


# Steps are taken as they are asked for, whether calm or not.
QUIET = {"correction": "none", "xsph": 0.0, "tolerance": 0.0, "iterations": 5, "stability": 4.0}


def scene(cells, frames=20, steps=1, solver=None, **changes):
    """A block from the origin on, without gravity, walls and bonds unless asked for."""
    size = [n * D for n in cells]
    values = {
        "spacing": D, "gravity": (0, 0, 0),
        "time": {"frames": frames, "frame_time": steps * DT, "steps_per_frame": steps},
        "solver": {"method": "iisph", **QUIET, **(solver or {})},
        "material": {"m": {"density": RHO}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


FAR = (0.0, 50.0, 0.0)  # where fluid is filled in before a test puts it elsewhere, away from all solids


def made(x, v=None, solver=None, **changes):
    """A simulation with particle number i at ``x[i]``, moving with ``v[i]``, bonded there where the solver bonds."""
    # Nothing is frozen by itself: what a test moves afterwards would be bonded anew in the first step.
    table = scene((len(x), 1, 1), solver={"freeze_at_start": False, **(solver or {})}, **changes)
    table.fluid[0].shape.position = FAR
    sim = Simulation(table, "cpu")
    fluid = np.nonzero(sim.world.get("solid") < 0)[0]
    order = fluid[np.argsort(sim.world.get("id")[fluid])]
    for name, values in (("position", x), ("velocity", np.zeros_like(x) if v is None else v)):
        field = sim.world.get(name)
        field[order] = values
        sim.world.set(name, field)
    sim.world.fit_cells()
    sim.solver.clear(sim.world)
    if table.solver.correction != "none":
        sim.solver.freeze(sim.world)
    return sim


def fluid_order(sim):
    return sim.world.fluid_order()


def state(sim):
    """Positions [m] and velocities [m/s] by id."""
    order = fluid_order(sim)
    return sim.world.get("position")[order].astype(float), sim.world.get("velocity")[order].astype(float)


def press(sim, push):
    """Adds velocities [m/s], by id."""
    v = sim.world.get("velocity")
    v[fluid_order(sim)] += push.astype(np.float32)
    sim.world.set("velocity", v)


def pressure(sim):
    """p [Pa] by id."""
    world = sim.world
    return world.carried["pressure"].get(world.count)[fluid_order(sim), 0].astype(float) * RHO


def setting(sim, **more):
    """The simulation's constants for the reference."""
    volume = float(sim.world.get("volume")[fluid_order(sim)][0])
    solver = sim.scene.solver
    given = {"iterations": solver.iterations, "warm": solver.warm_start, "xsph": solver.xsph, "gravity": sim.world.gravity}
    return Setting(mass=RHO * volume, rho0=RHO, h=float(sim.world.support), dt=DT, **{**given, **more})


def walls(sim, velocity=(0.0, 0.0, 0.0)):
    """The boundary samples as they are now, all with one ``velocity``."""
    samples = sim.world.get("solid") >= 0
    x = sim.world.get("position")[samples].astype(float)
    volume = sim.world.get("volume")[samples].astype(float)
    return Walls(x, RHO * volume, np.tile(np.asarray(velocity, float), (len(x), 1)))


PLATE = {
    "name": "floor", "boundary": "particles",
    "shape": {"type": "box", "size": (0.5, 0.16, 0.5), "position": (0.1, -0.08, 0.1)},
}  # fmt: skip
