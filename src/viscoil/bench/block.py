"""The block of fluid that is measured: a full tank at rest, or the same block floating freely."""

from typing import Any

SPACING = 0.02  # [m]
SUPPORT = 1.95  # spacings: 26 neighbours on the lattice, about 28 once it is disturbed
JITTER = 0.1  # spacings
STEP = 0.004  # [s]


def edges(particles: int) -> tuple[int, int, int]:
    """Particles along x, y and z of a nearly cubic block of about ``particles``."""
    x = max(3, round(particles ** (1 / 3)))
    y = max(3, round((particles / x) ** 0.5))
    return x, y, max(3, round(particles / (x * y)))


def scene(particles: int, solver: str = "pbf", iterations: int = 4, tank: bool = True, vorticity: float = 0.0) -> Any:
    """A block at rest. ``tank``: inside a closed box, under gravity; otherwise alone and weightless."""
    from viscoil.scene.schema import Scene

    size = [SPACING * edge for edge in edges(particles)]
    method: dict[str, Any] = {"method": solver, "support": SUPPORT}
    method |= {"iterations": iterations, "tolerance": 0.0}  # always all iterations
    if vorticity:
        method["vorticity"] = vorticity
    box = {"type": "box", "size": size, "position": [edge / 2 for edge in size]}
    return Scene(
        title=f"block of {particles}",
        spacing=SPACING,
        gravity=(0.0, -9.81 if tank else 0.0, 0.0),
        time={"frame_time": STEP, "steps_per_frame": 1},
        solver=method,
        fluid=[{"material": "water", "shape": box, "jitter": JITTER}],
        solid=[{"name": "tank", "container": True, "shape": box}] if tank else [],
    )
