"""How large a scene will be, before anything is allocated."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viscoil.errors import SceneError

MOST_PARTICLES = 2_000_000_000  # particle indices are 32-bit integers
# Measured on the CPU, PBF and PCISPH alike: 600 to 680 B per particle at the peak of a first step (185k and 564k
# particles), most of it neighbour lists and the copies that sorting needs. Rounded up by a tenth, because refusing a
# scene that would just fit is better than a process killed in the night; boundary samples are not counted.
BYTES_PER_PARTICLE = 750


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
    return Estimate(particles, particles * BYTES_PER_PARTICLE)


def check_size(scene: Any, available: int | None = None) -> Estimate:
    """The estimate, or ``SceneError`` when it cannot work."""
    size = estimate(scene)
    advice = f"expected a larger spacing (now {scene.spacing:g} m) or smaller shapes"
    if size.particles > MOST_PARTICLES:
        text = f"about {size.particles:.3g} particles, more than the limit of {MOST_PARTICLES:,}; {advice}"
        raise SceneError(f"{scene.title or 'scene'}: spacing: {text}", key="spacing", expected="a larger spacing")
    room = available if available is not None else available_memory()
    if room is not None and size.bytes > room:
        text = f"{size} of memory, but only {readable(room)} are free; {advice}"
        raise SceneError(f"{scene.title or 'scene'}: spacing: {text}", key="spacing", expected="a larger spacing")
    return size


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
