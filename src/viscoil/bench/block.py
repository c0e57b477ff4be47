"""The block of fluid that is measured: a full tank at rest, or the same block floating freely."""

from typing import Any

SPACING = 0.02  # [m]
SUPPORT = 1.95  # spacings: 26 neighbours on the lattice, about 28 in a disturbed one
JITTER = 0.25  # spacings
STEPS_PER_FRAME = 4
STEP = {"pbf": 0.004, "pcisph": 0.001}  # [s]


def edges(particles: int) -> tuple[int, int, int]:
    """Particles along x, y and z of a nearly cubic block of about ``particles``."""
    x = max(3, round(particles ** (1 / 3)))
    y = max(3, round((particles / x) ** 0.5))
    return x, y, max(3, round(particles / (x * y)))


def step_length(solver: str) -> float:
    """Δt [s] of the measured steps."""
    return STEP.get(solver, min(STEP.values()))


def scene(particles: int, solver: str = "pbf", iterations: int = 4, tank: bool = True, vorticity: float = 0.0) -> Any:
    """A block at rest, about ``particles`` large. ``tank``: in a closed box, under gravity; else alone, weightless."""
    from viscoil.scene.schema import Scene

    size = [SPACING * edge for edge in edges(particles)]
    method: dict[str, Any] = {"method": solver, "support": SUPPORT}
    if solver == "pbf":
        method["unilateral"] = False  # the published method, with its artificial pressure: all the work there can be
    method |= {"iterations": iterations, "tolerance": 0.0}  # always all iterations
    if vorticity:
        method["vorticity"] = vorticity
    box = {"type": "box", "size": size, "position": [edge / 2 for edge in size]}
    # Room for the disturbance: particles that start too close to a wall would be left out.
    around = {**box, "size": [edge + 2 * JITTER * SPACING for edge in size]}
    return Scene(
        title=f"block of {particles}",
        spacing=SPACING,
        gravity=(0.0, -9.81 if tank else 0.0, 0.0),
        time={"frame_time": STEPS_PER_FRAME * step_length(solver), "steps_per_frame": STEPS_PER_FRAME},
        solver=method,
        fluid=[{"material": "water", "shape": box, "jitter": JITTER}],
        solid=[{"name": "tank", "container": True, "shape": around}] if tank else [],
    )
