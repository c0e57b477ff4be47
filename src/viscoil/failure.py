"""What is said of a simulation that exploded."""

from typing import Any

import numpy as np

from viscoil.errors import SimulationFailed


def failure_report(world: Any, speed: float, particle: int, dt: float, shorter: int) -> SimulationFailed:
    """The error for a ``particle`` (its id) that left all bounds or whose numbers were lost, with the likely cause.

    speed [m/s]: the largest there was; dt [s]: of the step that failed; shorter: how much shorter the last step tried was.
    """
    where = np.nonzero(world.get("id") == particle)[0]
    place = world.get("position")[where[0]] if len(where) else np.full(3, np.nan)
    cause = "particles started too close together or inside a solid"
    if speed * dt > world.support:
        cause = f"the time step is too long for speeds of {speed:.3g} m/s: nothing should move farther than h per step"
    elif world.steps > 10:
        cause = "a solid moves through the fluid too fast or squeezes it, or the time step is too long"
    return SimulationFailed(
        f"the simulation exploded at t = {world.time:.6g} s (step {world.steps}): particle {particle} near "
        f"({place[0]:.4g}, {place[1]:.4g}, {place[2]:.4g}) m left all bounds, and {shorter} times shorter steps "
        f"did not help. Likely cause: {cause}. Every finished frame is kept.",
        time=world.time, particle=particle, cause=cause,
    )  # fmt: skip
