"""Flow between two plates, for the cases that measure it: the scene, what it should do, and what it did.

Between plates at y = 0 and y = H, far from any end, the equations of an Oldroyd-B fluid are linear and one-dimensional
however strong the flow is:

    ∂u/∂t = f + ∂(ν_s ∂u/∂y + τ)/∂y,    λ ∂τ/∂t + τ = ν_p ∂u/∂y,    u(0) = 0,  u(H) = U(t)

with kinematic viscosities ν_s of the solvent and ν_p of the polymer, and τ = ν_p ∂u/∂y at once for λ = 0 (Newton).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

RHO = 1000.0  # kg/m³
# name: relaxation time λ [s], whole and solvent viscosity [Pa s]
Fluid = tuple[float, float, float]


def reference(
    fluid: Fluid, height: float, force: float, wall: Callable[[float], float], times: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """u(t, y) [m/s] at ascending ``times`` [s]; ``force`` f [m/s²], ``wall`` U(t).

    Finite differences on 160 intervals, implicit Euler extrapolated to second order from two step lengths.
    """
    coarse, fine = (_march(fluid, height, force, wall, times, y, steps) for steps in (400, 800))
    return 2 * fine - coarse


def _march(
    fluid: Fluid, height: float, force: float, wall: Callable[[float], float], times: np.ndarray, y: np.ndarray, steps: int
) -> np.ndarray:
    lam, whole, solvent = fluid[0], fluid[1] / RHO, fluid[2] / RHO
    n = 160
    dy, dt = height / n, times[-1] / steps
    down = np.zeros((n, n + 1))  # ∂/∂y from nodes to the middles of intervals
    down[np.arange(n), np.arange(n)], down[np.arange(n), np.arange(1, n + 1)] = -1 / dy, 1 / dy
    implicit = solvent + (whole - solvent) * dt / (lam + dt)
    keep = lam / (lam + dt)
    matrix = np.eye(n + 1)
    matrix[1:-1] += dt * implicit * (down.T @ down)[1:-1]
    inverse = np.linalg.inv(matrix)
    u, stress = np.zeros(n + 1), np.zeros(n)
    rows, now = [u], [0.0]
    for step in range(1, steps + 1):
        right = u + dt * force - dt * keep * (down.T @ stress)
        right[0], right[-1] = 0.0, wall(step * dt)
        u = inverse @ right
        stress = keep * stress + (whole - solvent) / (lam + dt) * dt * (down @ u)
        rows.append(u)
        now.append(step * dt)
    nodes, rows = np.linspace(0, height, n + 1), np.array(rows)
    at = np.array([np.interp(times, now, column) for column in rows.T]).T
    return np.array([np.interp(y, nodes, row) for row in at])


def scene(
    fluid: Fluid, layers: int, height: float, step: float, frames: int, force: float = 0.0,
    motion: list[dict[str, Any]] | None = None, steps_per_frame: int = 4,
) -> dict[str, Any]:  # fmt: skip
    """``layers`` of particles between two plates, endless along x and z; the upper plate follows ``motion``."""
    lam, whole, solvent = fluid
    d = height / layers
    size = (8 * d, height, 8 * d)
    material: dict[str, Any] = {"density": RHO, "viscosity": whole - solvent}
    if lam:
        material["relaxation_time"] = lam
    if solvent:
        material["solvent_viscosity"] = solvent
    middle = [s / 2 for s in size]
    return {
        "spacing": d,
        "gravity": (force, 0, 0),
        "domain": {"min": (0, -d, 0), "max": (size[0], height + d, size[2]), "periodic": "xz"},
        "time": {"frames": frames, "frame_time": steps_per_frame * step, "steps_per_frame": steps_per_frame},
        "solver": {"method": "dcpbd"},
        "material": {"fluid": material},
        "fluid": [{"material": "fluid", "jitter": 0.2, "shape": {"type": "box", "size": size, "position": middle}}],
        "solid": [
            {"name": "lower", "friction": "no-slip", "shape": {"type": "plane"}},
            {
                "name": "upper", "friction": "no-slip", "interpolation": "linear", "motion": motion or [],
                "shape": {"type": "plane", "position": (0, height, 0), "rotation": (180, 0, 0)},
            },
        ],
    }  # fmt: skip


def profiles(sim: Any, height: float, layers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times [s], heights of the slabs [m], mean u_x in each slab at each time [m/s]), one slab per layer of particles."""
    edges = np.linspace(0, height, layers + 1)
    times, rows, heights = [], [], []
    for frame in sim.frames():
        y = frame["position"][:, 1].astype(float)
        slab = np.clip(np.digitize(y, edges) - 1, 0, layers - 1)
        count = np.maximum(np.bincount(slab, minlength=layers), 1)
        rows.append(np.bincount(slab, frame["velocity"][:, 0], layers) / count)
        heights.append(np.bincount(slab, y, layers) / count)
        times.append(frame.time)
    return np.array(times), np.array(heights), np.array(rows)
