"""Extrusion from a straight round tube without gravity, for the cases that measure how the jet swells.

The tube lies along y and ends at y = 0; fluid is pushed in by a nozzle at its other end and leaves as a jet, which begins
short and is cut off by a sink. All lengths follow from the spacing d and the number of spacings across the tube.

The plane of no slip is where the particles are that the wall holds, half a spacing or so inside the wall that is drawn
(constraints/wall_friction.py). R, the radius of the tube that swell and shear rate refer to, is therefore measured: it is the
mean distance of those particles from the axis. The flow is measured, too, from the particles that pass.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

RHO = 1000.0  # kg/m³


@dataclass(frozen=True)
class Tube:
    """A tube, what flows through it and for how long. Lengths are in radii as drawn, times in radii over mean speeds."""

    across: float
    """diameter as drawn, in spacings"""
    length: float = 5.0
    """from the nozzle to the exit"""
    jet: float = 7.0
    """from the exit to the sink"""
    duration: float = 10.0
    settled: float = 7.0
    """when it counts as steady"""
    advance: float = 0.1
    """how far the fastest fluid moves in a step, in spacings"""
    reynolds: float = 0.5
    """ρUD/η"""
    radius: float = 0.01
    """as drawn [m]"""
    speed: float = 0.01
    """mean, of the tube as drawn [m/s]"""

    @property
    def spacing(self) -> float:
        return 2 * self.radius / self.across

    @property
    def viscosity(self) -> float:
        """The whole one [Pa s]."""
        return RHO * self.speed * 2 * self.radius / self.reynolds

    @property
    def unit(self) -> float:
        """Time in which fluid of mean speed moves by a radius [s]."""
        return self.radius / self.speed


def scene(tube: Tube, material: dict[str, Any], solver: dict[str, Any], frames: int = 40) -> dict[str, Any]:
    """The scene; ``frames`` over the whole duration."""
    d, r = tube.spacing, tube.radius
    inlet, end = -tube.length * r, tube.jet * r
    wall = d  # thin, so that its round rim is, too
    back = 4 * d  # of the tube behind the nozzle's opening
    total = tube.duration * tube.unit
    step = tube.advance * d / (2 * tube.speed)
    per = max(1, round(total / frames / step))
    short = 0.5 * r  # jet at the start
    return {
        "spacing": d,
        "gravity": (0, 0, 0),
        "time": {"frames": frames, "frame_time": total / frames, "steps_per_frame": per},
        "solver": solver,
        "material": {"fluid": {"density": RHO, **material}},
        "fluid": [
            {
                "material": "fluid", "jitter": 0.1, "velocity": (0, tube.speed, 0),
                "shape": {
                    "type": "cylinder", "radius": r, "height": short - inlet, "position": (0, (short + inlet) / 2, 0)
                },
            }
        ],
        "emitter": [
            {
                "material": "fluid", "position": (0, inlet, 0), "direction": (0, 1, 0), "speed": tube.speed,
                "shape": {"type": "cylinder", "radius": r - 0.5 * d, "height": d},
            }
        ],
        "solid": [
            {
                "name": "tube", "friction": "no-slip",
                "shape": {
                    "type": "funnel", "top_radius": r + wall / 2, "bottom_radius": r + wall / 2, "thickness": wall,
                    "height": back - inlet, "position": (0, (inlet - back) / 2, 0),
                },
            }
        ],
        "sink": [{"shape": {"type": "plane", "position": (0, end, 0), "rotation": (180, 0, 0)}}],
    }  # fmt: skip


@dataclass(frozen=True)
class Jet:
    """What was measured of a steady extrusion. Profiles are over ``y`` [m], slabs of one spacing each."""

    y: np.ndarray
    speed: np.ndarray
    """mean axial velocity of each slab [m/s]"""
    filled: np.ndarray
    """radius of the disc that the slab's particles fill at rest density [m]"""
    outline: np.ndarray
    """radius of the uniform disc with the same mean square distance from the axis [m]"""
    edge: np.ndarray
    """radius from the distance that 95 % of the particles keep [m]"""
    r: np.ndarray
    u: np.ndarray
    """velocity profile in the tube, half a length before the exit [m], [m/s]"""
    radius: float
    """of the tube, where the particles are that its wall holds [m]"""
    zero: float
    """where the straight line through u against r² is zero [m]: another measure of the same"""
    centre: float
    """velocity on the axis of the tube, from that line [m/s]"""
    flow: float
    """m³/s"""
    last: np.ndarray
    """positions at the end [m]"""


def watch(sim: Any, tube: Tube) -> Jet:
    """Runs the simulation and measures it from when it is steady."""
    d, r0 = tube.spacing, tube.radius
    edges = np.arange(-tube.length * r0, tube.jet * r0 - d, d)
    rows, samples, last = [], [], None
    for frame in sim.frames():
        last = frame["position"].astype(float)
        if frame.time < (tube.settled - 1e-6) * tube.unit:
            continue
        u = frame["velocity"][:, 1].astype(float)
        slab = np.digitize(last[:, 1], edges) - 1
        n = len(edges) - 1
        inside = (slab >= 0) & (slab < n)
        slab, x, u = slab[inside], last[inside], u[inside]
        count = np.maximum(np.bincount(slab, minlength=n), 1)
        cx, cz = (np.bincount(slab, x[:, k], n) / count for k in (0, 2))
        square = (x[:, 0] - cx[slab]) ** 2 + (x[:, 2] - cz[slab]) ** 2
        order = np.lexsort((square, slab))
        ends = np.searchsorted(slab[order], np.arange(n), "right") - 1
        starts = np.searchsorted(slab[order], np.arange(n), "left")
        at = np.clip(starts + np.round(0.95 * (ends - starts)).astype(int), 0, len(order) - 1)
        rows.append((count, np.bincount(slab, u, n) / count, np.bincount(slab, square, n) / count, square[order[at]]))
        middle = np.abs(x[:, 1] + 0.4 * tube.length * r0) < 0.2 * tube.length * r0
        samples.append(np.stack([np.hypot(x[middle, 0], x[middle, 2]), u[middle]]))
    count, speed, square, far = (np.mean(values, 0) for values in zip(*rows, strict=True))
    r, u = np.concatenate(samples, 1)
    free = r < r0 - d  # without what the wall holds
    slope, centre = np.polyfit(r[free] ** 2, u[free], 1)
    bins = np.linspace(0, r0, max(8, int(tube.across / 2)) + 1)
    of = np.clip(np.digitize(r, bins) - 1, 0, len(bins) - 2)
    held = np.maximum(np.bincount(of, minlength=len(bins) - 1), 1)
    y = (edges[1:] + edges[:-1]) / 2
    within = (y > -0.6 * tube.length * r0) & (y < 0)
    return Jet(
        y=y, speed=speed, filled=d * np.sqrt(count / np.pi),
        outline=np.sqrt(2 * square + d * d / 3), edge=np.sqrt(far / 0.95) + 0.0 * d,
        r=np.bincount(of, r, len(bins) - 1) / held, u=np.bincount(of, u, len(bins) - 1) / held,
        radius=float(r[r > r0 - 0.75 * d].mean()), zero=float(np.sqrt(-centre / slope)), centre=float(centre), flow=float((count * speed)[within].mean() * d * d), last=last,
    )  # fmt: skip


def swell(jet: Jet, tube: Tube, begin: float = 3.0, end: float = 5.0) -> dict[str, float]:
    """Radius of the jet over that of the tube, measured between ``begin`` and ``end`` radii behind the exit, in four ways:
    from the outline, from the number of particles, from what 95 % keep, and from how much slower the jet is (B² = U/U_jet)."""
    steady = (jet.y > begin * tube.radius) & (jet.y < end * tube.radius)
    mean = jet.flow / (np.pi * jet.radius**2)
    return {
        "outline": float(jet.outline[steady].mean() / jet.radius),
        "filled": float(jet.filled[steady].mean() / jet.radius),
        "edge": float(jet.edge[steady].mean() / jet.radius),
        "slowed": float(np.sqrt(mean / jet.speed[steady].mean())),
    }
