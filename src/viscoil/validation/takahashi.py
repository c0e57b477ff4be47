"""What the cases of Takahashi et al. 2014 share: balls and plates in the paper's proportions, waves in a periodic block.

Nothing of the paper's units is known but the number of particles; these cases use spacings of 4 cm, steps of 2 ms and water's
density, a particle then weighs 64 g, and a ball of 8217 particles (the paper's 8.2k) is one metre wide.
"""

from typing import Any

import numpy as np

D = 0.04  # spacing [m]
STEP = 0.002  # Δt [s]
RHO = 1000.0  # kg/m³
MASS = RHO * D**3  # kg
NEVER = {"iterations": 50, "tolerance": 1e-3}


def ball(radius: float, height: float, **more: Any) -> dict[str, Any]:
    """A fluid: ball of ``radius`` spacings whose lowest point is ``height`` [m] above the origin."""
    shape = {"type": "sphere", "radius": radius * D, "position": (0.0, height + radius * D, 0.0)}
    return {"material": "m", "shape": shape, **more}


def plate(name: str, half: float, face: float, upwards: bool, **more: Any) -> dict[str, Any]:
    """A solid of boundary particles, ``half`` its width [m], whose horizontal face is at height ``face`` [m].

    It is four spacings thick: of two layers of samples only one may be seen from a side.
    """
    thick = 4 * D
    wide = 2 * D * round(half / D)
    shape = {"type": "box", "size": (wide, thick, wide), "position": (0.0, face + (-0.5 if upwards else 0.5) * thick, 0.0)}
    return {"name": name, "boundary": "particles", "shape": shape, **more}


def scene(frames: int, every: int, solver: dict[str, Any], fluid: list[Any], solid: list[Any], **more: Any) -> dict[str, Any]:
    """Frames of ``every`` steps."""
    return {
        "spacing": D,
        "time": {"frames": frames, "frame_time": every * STEP, "steps_per_frame": every},
        "solver": {"method": "iisph", **solver},
        "material": {"m": {"density": RHO}},
        "fluid": fluid,
        "solid": solid,
        **more,
    }


def block(cells: tuple[int, int, int], solver: dict[str, Any], material: dict[str, Any], step: float = STEP) -> dict[str, Any]:
    """A periodic block on a perfect lattice, filled to the last place; a frame is 4 ms."""
    size = [n * D for n in cells]
    every = max(1, round(2 * STEP / step))
    return {
        "spacing": D,
        "gravity": (0, 0, 0),
        "domain": {"min": (0, 0, 0), "max": size, "periodic": "xyz"},
        "time": {"frames": 10_000, "frame_time": 2 * STEP, "steps_per_frame": every},
        "solver": {"method": "iisph", "xsph": 0.0, **solver},
        "material": {"m": {"density": RHO, **material}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}],
    }


def wave(sim: Any, number: tuple[float, float, float], along: tuple[float, float, float], speed: float, until: float) -> Any:
    """Times [s] and amplitudes of u = ``speed`` sin(k·x) along ``along``, in its start, up to ``until`` [s].

    number: the wave's k [1/m]. The first mode alone is looked at, by the places particles had at the start.
    """
    way = np.asarray(along, float) / np.linalg.norm(along)
    world = sim.world
    shape = np.sin(world.get("position").astype(float) @ np.asarray(number, float))
    world.set("velocity", (speed * shape[:, None] * way).astype(np.float32))
    first = sim.frame()
    shape = np.sin(first["position"].astype(float) @ np.asarray(number, float))
    times, amplitudes = [], []
    for frame in [first, *sim.frames(round(until / sim.scene.time.frame_time))]:
        times.append(frame.time)
        amplitudes.append(float((frame["velocity"].astype(float) @ way * shape).sum() / (shape * shape).sum() / speed))
    return np.array(times), np.array(amplitudes)


def frequency(t: np.ndarray, a: np.ndarray) -> float:
    """Angular frequency [1/s] from the first two zeros of a swinging amplitude; 0 if there are none."""
    below = np.nonzero(a[:-1] * a[1:] <= 0)[0]
    zeros = [t[n] + (t[n + 1] - t[n]) * a[n] / (a[n] - a[n + 1]) for n in below[:2]]
    return float(np.pi / (zeros[1] - zeros[0])) if len(zeros) == 2 else 0.0


def pressures(sim: Any) -> np.ndarray:
    """p [Pa] of the fluid by id, as the last step left it."""
    world = sim.world
    return world.carried["pressure"].get(world.count)[world.fluid_order(), 0].astype(float) * RHO


def spread(x: np.ndarray) -> float:
    """Root of the mean square distance from the vertical axis through the centre [m]."""
    d = x[:, [0, 2]].astype(float) - x[:, [0, 2]].mean(0)
    return float(np.sqrt((d * d).sum(1).mean()))


def per_step(row: dict[str, Any]) -> float:
    """Pressure iterations per step of a frame."""
    return row["iterations"] / max(row["steps"], 1)
