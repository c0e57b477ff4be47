"""The passes over the neighbour list that position-based fluids need, on the arrays that the kernels use.

All of them are for particles that share one volume and mass, in a box that is not periodic.
"""

from typing import Any

import numpy as np

from viscoil.native import active, address, run, tasks

MOST = 2**27  # particles: offsets into records of 32 bytes have 32 bits
LINE = 64  # bytes that travel together


def suits(world: Any, clusters: int) -> bool:
    """Whether the passes can do the work of a step: no bodies made of particles (``clusters``: ClusterSet.mix), one mass."""
    return active() and world.uniform and not world.neighbors.periodic and clusters == 0 and world.capacity < MOST


class _Memory:
    """Plain memory for some vectors of four or eight floats per particle; each array begins with a cache line."""

    def __init__(self) -> None:
        self._room = 0
        self._bytes: Any = None

    def arrays(self, capacity: int, *sizes: int) -> list[int]:
        """Where arrays of that many bytes per particle lie; the same places until there are more particles."""
        steps = [-(-capacity * size // LINE) * LINE for size in sizes]
        if sum(steps) + LINE > self._room:
            self._room = sum(steps) + LINE
            self._bytes = np.zeros(self._room, np.uint8)
        first = -(-self._bytes.ctypes.data // LINE) * LINE
        return [first + sum(steps[:k]) for k in range(len(steps))]


class FluidPasses:
    """λ and Δx of the density constraint, and XSPH. Needs 32 bytes per particle besides the solver's own memory."""

    def __init__(self) -> None:
        self._memory = _Memory()

    def density(self, world: Any, s: Any, numbers: dict[str, float], kernel: int, power: int, walled: bool) -> None:
        """One Jacobi iteration: multipliers, errors and new places of the scratch ``s``, and how clear of solids they are.

        ``numbers``: those of DensityNumbers; ``kernel``, ``power``: as in constraints/density.py; ``walled``: walls add what
        the scratch holds for those near them (constraints/density_iteration.py: weigh and shift). With momentum ``numbers``
        also tell its pace and how many iterations were ``done`` (constraints/acceleration.py).
        """
        p, (places, with_multipliers) = world.particles, self._memory.arrays(world.capacity, 16, 16)
        task = tasks.DensityTask(
            **_near(world.neighbors), x=address(s.predicted), clear=address(s.clear), volume=address(p.volume),
            inverse_mass=address(p.inverse_mass), wall=address(s.wall), wall_gradient=address(s.wall_gradient),
            id=address(p.id), error=address(s.error) if hasattr(s, "error") else None, multiplier=address(s.multiplier),
            places=places, with_multipliers=with_multipliers, kernel=kernel, power=power, walled=walled,
            pressure=address(world.carried["pressure"].array), **({"done": -1} | numbers),
        )  # fmt: skip
        run("density", world.count, task)

    def xsph_and_commit(self, world: Any, x: Any, velocity: Any, strength: float) -> None:
        """Velocities smoothed by XSPH and positions ``x``, as the end of a step leaves them (steps/viscosity.py)."""
        p, (places, motions) = world.particles, self._memory.arrays(world.capacity, 16, 16)
        task = tasks.XsphTask(
            **_near(world.neighbors), x=address(x), v=address(velocity), volume=address(p.volume),
            inverse_mass=address(p.inverse_mass), velocity=address(p.velocity), position=address(p.position),
            places=places, motions=motions, strength=strength, support=world.support,
        )  # fmt: skip
        run("xsph", world.count, task)


class VelocityPasses:
    """The velocity projection of DC-PBD by conjugate gradients, a whole round at once. Needs 64 bytes per particle."""

    def __init__(self) -> None:
        self._memory = _Memory()

    def project(self, world: Any, x: Any, v: Any, bulk: Any, dt: float, even: bool, numbers: dict[str, float]) -> None:
        """One round: u, residual and progress of the Projection ``v``, who is held being known.

        bulk: resistance to changes of volume of each material; even: one viscosity for all; numbers: iterations, rounds,
        tolerance and pairs of ProjectionNumbers.
        """
        p, (before, after, partial) = world.particles, self._memory.arrays(world.capacity, 32, 32, 1)
        own = ("free", "normal", "viscosity", "held", "u", "residual", "search", "image", "direction", "direction_image")
        task = tasks.ProjectTask(
            **_near(world.neighbors), **{name: address(getattr(v, name)) for name in (*own, "scalars", "progress")},
            x=address(x), inverse_mass=address(p.inverse_mass), volume=address(p.volume), material=address(p.material),
            bulk=address(bulk), before=before, after=after, partial=partial, dt=dt, support=world.support, even=even, **numbers,
        )  # fmt: skip
        run("project", world.count, task)


def _near(search: Any) -> dict[str, int]:
    return {
        "near_count": address(search.list.count), "near_index": address(search.list.index), "near_row": search.width,
    }  # fmt: skip
