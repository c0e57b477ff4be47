"""The passes of implicit incompressible SPH over the neighbour list, on the arrays that the kernels use."""

from collections.abc import Callable
from typing import Any

import numpy as np

from viscoil.native import address, run, tasks


class PressurePasses:
    """Densities and pressures (constraints/pressure.py) where all of the fluid shares one volume and mass, no axis is periodic
    and no body is moved by it; lists hold fluid only. Holds 36 bytes per particle beyond the solver's own memory.
    """

    def __init__(self) -> None:
        self._room = 0
        self._memory: Any = None
        self._excess: Any = None
        self._vectors: list[int] = []

    def _reserve(self, capacity: int) -> None:
        if capacity > self._room:
            line, size = 64, -(-capacity // 4) * 64
            self._memory = np.zeros(2 * size + line, np.uint8)
            first = -(-self._memory.ctypes.data // line) * line
            self._vectors = [first, first + size]
            self._excess = np.zeros(capacity, np.float32)
            self._room = capacity

    def _task(
        self, world: Any, x: Any, velocity: Any, f: Any, c: dict[str, float], enclosed: bool, advected: bool, keeping: bool
    ) -> Any:  # fmt: skip
        self._reserve(world.capacity)
        p, near = world.particles, world.neighbors.list
        return tasks.PressureTask(
            near_count=address(near.count), near_index=address(near.index), near_row=world.neighbors.width, x=address(x),
            volume=address(p.volume), inverse_mass=address(p.inverse_mass), wall=address(f.wall), toward=address(f.toward),
            flux=address(f.flux), before=address(world.carried["pressure"].array), velocity=address(velocity),
            density=address(f.density), gradient=address(f.gradient), diagonal=address(f.diagonal), source=address(f.source),
            pressure=address(f.pressure), change=address(f.change),
            acceleration=address(f.acceleration), excess=self._excess.ctypes.data,
            slope_x=address(f.slope_x), slope_y=address(f.slope_y), slope_z=address(f.slope_z), places=self._vectors[0],
            motions=self._vectors[1], support=c["support"], dt=c["dt"], relaxation=c["relaxation"], warm=c["warm"],
            brake=c["dt"] * c["wall_viscosity"], enclosed=enclosed, advected=advected, keeping=keeping,
        )  # fmt: skip

    def weigh(
        self, world: Any, x: Any, velocity: Any, f: Any, c: dict[str, float], enclosed: bool, keeping: bool
    ) -> None:  # fmt: skip
        """δ, G and the diagonal at ``x``, and Akinci's friction on ``velocity``, after walls were felt where there are any.

        ``keeping``: with the slopes of all pairs, for kernels to go on.
        """
        run("weigh", world.count, self._task(world, x, velocity, f, c, enclosed, False, keeping))

    def solve(
        self, world: Any, x: Any, velocity: Any, f: Any, c: dict[str, float], enclosed: bool, advected: bool,
        pace_of: Callable[[int], tuple[float, float]],
    ) -> None:  # fmt: skip
        """Pressures and accelerations at ``x``: iterates as ``c`` says (PressureNumbers), and notes how often it did.

        ``pace_of``: constraints.acceleration.pace_of.
        """
        task, count, used = self._task(world, x, velocity, f, c, enclosed, advected, False), world.count, 0
        run("sources", count, task)
        error = 0.0
        while used < c["iterations"]:
            used += 1
            if c["stride"] > 0:  # momentum
                task.momentum, pace = pace_of(used)
                task.relaxation = pace * c["stride"]
            run("iterate", count, task)
            error = float(self._excess[:count].sum(dtype=np.float64)) / max(c["movers"], 1)
            if c["tolerance"] > 0 and used >= c["least"] and error <= c["tolerance"]:
                break
        run("accelerate", count, task)
        noted, told = f.used.to_numpy(copy=False), f.error.to_numpy(copy=False)
        noted[0], noted[1], told[0] = used, noted[1] + used, error
