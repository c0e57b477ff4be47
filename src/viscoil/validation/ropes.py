"""Measuring ropes of fluid that fall, coil and pile up: from particles to radii, turns and frequencies.

y is up, the rope falls along the y axis. Everything works on plain arrays: positions (n, 3) [m], velocities (n, 3) [m/s].
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slices:
    """A body of particles cut into horizontal slices, from the bottom up; empty slices hold NaN."""

    y: np.ndarray  # middle of the slice [m]
    centre: np.ndarray  # (slices, 2): x and z of the centroid [m]
    spread: np.ndarray  # radius of a full disc with the same second moment [m]
    radius: np.ndarray  # radius of a disc with the same volume [m]
    speed: np.ndarray  # mean velocity downwards [m/s]


def slices(position: np.ndarray, velocity: np.ndarray, spacing: float, top: float, thickness: float) -> Slices:
    """Cuts what lies between 0 and ``top`` [m]."""
    count = int(top / thickness)
    slot = np.floor(position[:, 1] / thickness).astype(int)
    inside = (slot >= 0) & (slot < count)
    slot, x, v = slot[inside], position[inside].astype(float), velocity[inside].astype(float)
    number = np.bincount(slot, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.stack([np.bincount(slot, x[:, a], count) / number for a in (0, 2)], 1)
        off = (x[:, 0] - centre[slot, 0]) ** 2 + (x[:, 2] - centre[slot, 1]) ** 2
        # A particle stands for a cube: its own second moment is d²/12 along each axis. A disc's is a²/2.
        spread = np.sqrt(2 * (np.bincount(slot, off, count) / number + spacing**2 / 6))
        speed = -np.bincount(slot, v[:, 1], count) / number
    radius = np.sqrt(number * spacing**3 / (np.pi * thickness))
    return Slices((np.arange(count) + 0.5) * thickness, centre, spread, radius, speed)


def pile_height(cut: Slices, wider: float = 1.6) -> float:
    """Where the falling rope ends and the pile begins [m]: the highest slice ``wider`` than the rope above it is on average."""
    full = np.isfinite(cut.spread)
    upper = full & (cut.y > 0.5 * cut.y[-1])
    rope = np.median(cut.spread[upper]) if upper.any() else np.inf
    wide = np.nonzero(full & ~upper & (cut.spread > wider * rope))[0]
    return float(cut.y[wide[-1]]) if len(wide) else 0.0


def largest_gap(position: np.ndarray, low: float, high: float) -> float:
    """The longest stretch of height between ``low`` and ``high`` [m] that holds no particle [m]: a torn rope has one."""
    y = np.sort(position[:, 1])
    y = np.concatenate([[low], y[(y > low) & (y < high)], [high]])
    return float(np.diff(y).max())


def turns(angle: np.ndarray, slack: float = 0.5) -> tuple[float, int, int]:
    """(turns of the longest winding in one direction, its first and last index) of angles [rad] over time.

    A winding ends when it has gone back by more than ``slack`` turns: a rope that wobbles still winds, one that folds to and
    fro does not. Angles may be NaN where nothing was measured; between two measurements at most half a turn is possible.
    """
    known = np.nonzero(np.isfinite(angle))[0]
    if len(known) < 2:
        return 0.0, 0, 0
    phase = np.unwrap(angle[known]) / (2 * np.pi)
    best = (0.0, int(known[0]), int(known[0]))
    for sign in (1, -1):
        start = peak = 0
        for k in range(len(phase)):
            p = sign * phase
            if p[k] < p[start] or p[peak] - p[k] > slack:
                start = peak = k
            elif p[k] > p[peak]:
                peak = k
            if p[peak] - p[start] > best[0]:
                best = (float(p[peak] - p[start]), int(known[start]), int(known[peak]))
    return best


def frequency(time: np.ndarray, angle: np.ndarray) -> float:
    """Angular frequency [rad/s], without its sign: the slope of the unwrapped angle."""
    known = np.isfinite(angle)
    return float(abs(np.polyfit(time[known], np.unwrap(angle[known]), 1)[0]))


def landing(
    before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], speed: float, below: float
) -> np.ndarray:
    """Places (k, 3) [m] of the particles that have just come to rest: between two moments, each given as (positions,
    velocities) in order of birth, they became slower than ``speed`` [m/s], below the height ``below`` [m]."""
    n = len(before[0])
    fast, slow = (np.linalg.norm(v[:n], axis=1) for v in (before[1], after[1]))
    place = after[0][:n]
    return place[(fast > speed) & (slow <= speed) & (place[:, 1] < below)]


def scales(flow: float, viscosity: float, radius: float, height: float, gravity: float = 9.81) -> dict[str, float]:
    """Frequencies [rad/s] of the regimes of coiling (Ribe 2004, Proc. R. Soc. A 460, 3223), without prefactors.

    From flow rate Q [m³/s], kinematic viscosity ν [m²/s], radius a₁ of the rope in the coil and fall height H [m]: bending is
    resisted by viscosity and driven by the feeding (viscous), the rope's weight (gravitational) or inertia (inertial).
    """
    return {
        "viscous": flow / (height * radius**2),
        "gravitational": (gravity * flow**3 / (viscosity * radius**8)) ** 0.25,
        "inertial": (flow**4 / (viscosity * radius**10)) ** (1 / 3),
    }


def forces(speed: float, viscosity: float, radius: float, coil: float, gravity: float = 9.81) -> dict[str, float]:
    """Forces per length and density [m³/s²] on the bent part of the rope (the same paper): which one balances viscosity?

    ``speed`` U₁ of the rope and its ``radius`` a₁ at the coil, ``coil`` R its radius of curvature.
    """
    return {
        "viscous": viscosity * radius**4 * speed / coil**4,
        "gravitational": gravity * radius**2,
        "inertial": radius**2 * speed**2 / coil,
    }
