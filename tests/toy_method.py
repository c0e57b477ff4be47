"""A method in one file: particles fall and stop at solids, and nothing holds them apart."""

from dataclasses import dataclass
from typing import Any, Literal

import quadrants as qd

from viscoil.constraints.contact import contact
from viscoil.particles import Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import Method, SolverParams, StepNumbers, step_numbers
from viscoil.steps.integrate import predict


class ToyParams(SolverParams):
    """[solver] method = "toy"."""

    method: Literal["toy"] = "toy"


@dataclass(frozen=True)
class Scratch:
    """Memory of one step."""

    predicted: Vectors  # x* [m]


@qd.kernel(fastcache=True)
def _fall(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch):
    """x ← x + Δt v + Δt² g, put out of solids; v ← Δx/Δt."""
    n = k.count[0]
    predict(p, n, k.dt[0], k.gx[0], k.gy[0], k.gz[0], solids, s.predicted)
    contact(s.predicted, p.position, p.inverse_mass, n, k.radius[0], k.solids[0], solids, parts)
    for i in range(n):
        p.velocity[i] = (s.predicted[i] - p.position[i]) / k.dt[0]
        p.position[i] = s.predicted[i]


class Toy(Method):
    """The solver."""

    stages = ("fall",)

    def __init__(self, params: ToyParams, world: Any):
        self.params = params
        self.counter = allocate_array(qd.i32, 2)
        self._numbers = Uploaded(StepNumbers)
        self.resize(max(world.capacity, 1))

    def resize(self, capacity: int) -> None:
        """Memory for ``capacity`` particles."""
        self._scratch = Scratch(allocate_array(vec3, capacity))

    def step(self, world: Any, dt: float) -> None:
        """Everything falls."""
        numbers = step_numbers(self._numbers, world, self.params, dt)
        with world.stages("fall"):
            _fall(world.particles, numbers, world.solids.device, world.solids.parts, self._scratch)
