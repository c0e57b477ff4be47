"""The fluid that each solver is measured with, at any size, and what counts as one of its iterations.

pbf      a full tank at rest (block.py), 4 iterations, 28 neighbours
dcpbd    a viscoelastic cube on a table (conformation.py), 8 iterations of the velocity projection and 8 of the density
pvfs     a block with springs on a floor (pvfs.py); a step is one relaxation
iisph    a ball with bonds on a plane (iisph.py), 5 pressure iterations
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from viscoil.bench import block, conformation, iisph, pvfs


@dataclass(frozen=True)
class Case:
    """One solver's load."""

    solver: str
    scene: Callable[[int, dict[str, int]], Any]  # (particles, iterations) -> Scene
    dt: float  # [s]
    counts: dict[str, int]  # iterations of a step, by the solver's own key
    steps: int  # of a frame
    stage_of: dict[str, str]  # the stage that holds them

    def with_iterations(self, number: int | None) -> "Case":
        """So many iterations of each kind; None leaves them as they are."""
        return replace(self, counts=dict.fromkeys(self.counts, number)) if number else self

    @property
    def iterations(self) -> int:
        """Of all kinds together; a method without any has one."""
        return sum(self.counts.values()) or 1


def _tank(particles: int, counts: dict[str, int]) -> Any:
    return block.scene(particles, "pbf", counts["iterations"])


def _cube(particles: int, counts: dict[str, int]) -> Any:
    velocity, density = counts["velocity_iterations"], counts["iterations"]
    return conformation.scene(conformation.Load("cube", particles, 4, 1 / 200, velocity, density, 50.0, 0.1, None, None))


def _springs(particles: int, counts: dict[str, int]) -> Any:
    return pvfs.scene(pvfs.Load("block", block.edges(particles), True, None, None))


def _ball(particles: int, counts: dict[str, int]) -> Any:
    radius = (3 * particles / (4 * math.pi)) ** (1 / 3)
    return iisph.scene(iisph.Load("ball", radius, 0, 0.0, 1.0, None), "springs", counts["iterations"])


CASES = {
    "pbf": Case("pbf", _tank, block.STEP["pbf"], {"iterations": 4}, block.STEPS_PER_FRAME, {"iterations": "solve"}),
    "dcpbd": Case(
        "dcpbd", _cube, 1 / 200, {"velocity_iterations": 8, "iterations": 8}, 4,
        {"velocity_iterations": "project", "iterations": "solve"},
    ),
    "pvfs": Case("pvfs", _springs, 1 / 30, {}, pvfs.STEPS, {}),
    "iisph": Case("iisph", _ball, iisph.STEP, {"iterations": 5}, iisph.STEPS, {"iterations": "pressure"}),
}  # fmt: skip


def simulation(case: Case, particles: int, device: str, threads: int | None) -> Any:
    """The load, one frame old: compiled, settled, its lists and rows long enough."""
    from viscoil.simulate import Simulation

    sim = Simulation(case.scene(particles, case.counts), device=device, threads=threads)
    sim.advance_frame()
    return sim


def repeats(sim: Any, case: Case) -> dict[str, int]:
    """How often repeated passes run in a step: iterations, and rounds where the method has such."""
    rounds = getattr(sim.solver, "rounds", None)
    return {**case.counts, **({"rounds": rounds(sim.world, case.dt)} if rounds else {})}
