"""How large a scene will be, before anything is allocated."""

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viscoil.errors import SceneError

MOST_PARTICLES = 2_000_000_000  # particle indices are 32-bit integers
# Bytes per particle besides the neighbour list, by method: fields, room to sort them, what a retry needs, cells, and the
# method's own arrays and rows. Measured; tests/test_memory.py compares. Boundary samples are not counted.
OWN_BYTES = {
    "pbf": 267, "dcpbd": 532, "dcpbd_jacobi": 495, "pvfs": 1960, "iisph": 2025, "takamatsu_iisph": 4745, "clavet_iisph": 2040,
    "pcisph": 215, "peer_pbf": 355, "viscous_pbf": 1320, "ucm_sph": 430,
}  # fmt: skip
# The same of records (sph/records.py), where CUDA runs: two per particle for these methods, and one for all to be listed by.
RECORDS_BYTES = {"pbf": 48, "dcpbd": 48}
LISTED_BYTES = 16
# While a scene is filled its positions and velocities are on the host as well.
FILLING_BYTES = 60


@dataclass(frozen=True)
class Estimate:
    """Upper estimate of a scene's size."""

    particles: int
    bytes: int

    def __str__(self) -> str:
        return f"about {self.particles:,} particles, {readable(self.bytes)}"


def readable(count: float) -> str:
    """Bytes in a unit people read: ``3.2 GB``."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def estimate(scene: Any) -> Estimate:
    """Particles from volumes and flow rates divided by spacing³, for the whole scene."""
    cell = scene.spacing**3
    total = sum(fluid.shape.volume() / cell for fluid in [*scene.fluid, *scene.particle_solid])
    for emitter in scene.emitter:
        active = max(0.0, min(emitter.end, scene.end_time) - emitter.start)
        count = emitter.shape.section() * emitter.speed * active / cell
        total += min(count, emitter.max_particles) if emitter.max_particles else count
    # Cells and layers at the surface round up: a shell of half a particle, small for anything worth simulating.
    particles = int(min(total * 1.02 + 1, 1e30))
    return Estimate(particles, particles * bytes_per_particle(scene))


def particle_steps(scene: Any) -> float | None:
    """How often a particle is moved on in the whole scene, ∫ N dt/Δt: what a run's time is proportional to.

    None where the length of steps is only known while it runs.
    """
    time, cell, end = scene.time, scene.spacing**3, scene.end_time
    if time.cfl is not None:
        return None
    steps = time.frames * (time.steps_per_frame or math.ceil(time.frame_time / time.step))
    alive = sum(fluid.shape.volume() / cell for fluid in [*scene.fluid, *scene.particle_solid])
    for emitter in scene.emitter:
        active = max(0.0, min(emitter.end, end) - emitter.start)
        count = emitter.shape.section() * emitter.speed * active / cell
        alive += count * (1 - (emitter.start + active / 2) / end) if count else 0.0  # they arrive one after the other
    return alive * steps


def bytes_per_particle(scene: Any) -> int:
    """Memory of the device per particle, with lists as long as they start: most never need longer ones."""
    reach = math.ceil(scene.solver.support)
    axis = range(-reach, reach + 1)
    near = sum(0 < x * x + y * y + z * z < scene.solver.support**2 for x in axis for y in axis for z in axis)
    width = 4 * math.ceil((1.25 * near + 6) / 4) + 4
    method = scene.solver.method
    records = RECORDS_BYTES.get(method, LISTED_BYTES) if device_memory() is not None else 0
    return 4 * width + OWN_BYTES.get(method, max(OWN_BYTES.values())) + records


def check_size(scene: Any, available: int | None = None) -> Estimate:
    """The estimate, or ``SceneError`` when it cannot work."""
    size = estimate(scene)
    advice = f"expected a larger spacing (now {scene.spacing:g} m) or smaller shapes"
    if size.particles > MOST_PARTICLES:
        text = f"about {size.particles:.3g} particles, more than the limit of {MOST_PARTICLES:,}; {advice}"
        raise SceneError(f"{scene.title or 'scene'}: spacing: {text}", key="spacing", expected="a larger spacing")
    device = device_memory() if available is None else None
    rooms = [(size.bytes, device), (size.particles * FILLING_BYTES, available_memory())]
    if device is None:  # one memory for both
        room = available if available is not None else available_memory()
        rooms = [(size.bytes + size.particles * FILLING_BYTES, room)]
    for wanted, room in rooms:
        if room is not None and wanted > room:
            text = f"about {size.particles:,} particles, {readable(wanted)} of memory, but only {readable(room)} are free"
            text = f"{text}; {advice}"
            raise SceneError(f"{scene.title or 'scene'}: spacing: {text}", key="spacing", expected="a larger spacing")
    return size


def device_memory() -> int | None:
    """Bytes that are free on the GPU this process runs on; None where it runs on none, or none that says."""
    if (backend := sys.modules.get("viscoil.backend")) is None:  # nothing was started, and looking at scenes starts nothing
        return None
    return backend.free_memory()


def available_memory() -> int | None:
    """Bytes of main memory that can still be used, or None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass  # not Linux: ask in the next way
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None  # Windows: no check is better than a wrong one
