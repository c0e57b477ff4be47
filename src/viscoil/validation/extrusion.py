"""Extrusion from a straight round tube without gravity, for the cases that measure how the jet swells.

The tube lies along y and ends at y = 0; fluid is pushed in by a nozzle at its other end and leaves as a jet, which is short
at the start and cut off by a sink. All lengths follow from the number of spacings across the tube.

The plane of no slip is where the particles are that the wall holds, about half a spacing inside the wall that is drawn
(constraints/wall_friction.py). R, the radius of the tube that swell and shear rate refer to, is therefore measured: it is the
mean distance of those particles from the axis. The flow Q is measured, too, from the particles that pass.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

RHO = 1000.0  # kg/m³
HELD = 0.75  # spacings from the wall as drawn within which particles are its first layer


@dataclass(frozen=True)
class Tube:
    """A tube and for how long it is watched. Lengths in radii as drawn, times in radii over mean speeds."""

    across: float
    """diameter as drawn, in spacings"""
    length: float
    """from the nozzle to the exit"""
    jet: float
    """from the exit to the sink"""
    duration: float
    settled: float
    """when it counts as steady"""
    window: tuple[float, float]
    """where behind the exit the jet is measured"""
    advance: float = 0.05
    """how far the fastest fluid moves in a step, in spacings"""
    slip: float = 0.0
    """how far from the nozzle the wall lets fluid slip"""
    reynolds: float = 0.5
    """ρUD/η"""
    radius: float = 0.01
    """as drawn [m]"""
    speed: float = 0.01
    """mean [m/s]"""

    @property
    def spacing(self) -> float:
        """Of the particles [m]."""
        return 2 * self.radius / self.across

    @property
    def viscosity(self) -> float:
        """The whole one [Pa s]."""
        return RHO * self.speed * 2 * self.radius / self.reynolds

    @property
    def unit(self) -> float:
        """Time in which fluid of mean speed moves by a radius [s]."""
        return self.radius / self.speed

    @property
    def shear_rate(self) -> float:
        """4U/R at the wall, as far as it is known beforehand [1/s]."""
        return 4 * self.speed / (self.radius - self.spacing / 2)


def oldroyd(tube: Tube, recoverable: float, solvent: float) -> dict[str, float]:
    """A fluid of the tube's viscosity, of which the share ``solvent`` has no memory, with the recoverable shear
    S = (1 − solvent) λ γ̇ at its wall; S = 0: Newton's."""
    if recoverable == 0:
        return {"viscosity": tube.viscosity}
    return {
        "viscosity": (1 - solvent) * tube.viscosity,
        "solvent_viscosity": solvent * tube.viscosity,
        "relaxation_time": recoverable / ((1 - solvent) * tube.shear_rate),
    }


def scene(tube: Tube, material: dict[str, float], solver: dict[str, Any], frames: int = 40) -> dict[str, Any]:
    """The scene; ``frames`` over the whole duration."""
    d, r = tube.spacing, tube.radius
    inlet, outside = -tube.length * r, 0.5 * r  # where the nozzle is, how far the jet reaches at the start
    wall, back = d, 4 * d  # thin, so that its round rim is, too; what of the tube is behind the nozzle's opening
    frame_time = tube.duration * tube.unit / frames
    filled = {"type": "cylinder", "radius": r, "height": outside - inlet, "position": (0, (outside + inlet) / 2, 0)}
    ends = [inlet - back, inlet + tube.slip * r, 0.0] if tube.slip else [inlet - back, 0.0]
    solids = [
        {
            "name": name, "friction": friction,
            "shape": {
                "type": "funnel", "top_radius": r + wall / 2, "bottom_radius": r + wall / 2, "thickness": wall,
                "height": end - begin, "position": (0, (begin + end) / 2, 0),
            },
        }
        for name, friction, begin, end in zip(
            ("inlet", "tube")[-len(ends) + 1 :], (0.0, "no-slip")[-len(ends) + 1 :], ends[:-1], ends[1:], strict=True
        )
    ]
    return {
        "spacing": d,
        "gravity": (0, 0, 0),
        "time": {
            "frames": frames, "frame_time": frame_time,
            "steps_per_frame": max(1, round(frame_time * 2 * tube.speed / (tube.advance * d))),
        },
        "solver": solver,
        "material": {"fluid": {"density": RHO, **material}},
        "fluid": [{"material": "fluid", "jitter": 0.1, "velocity": (0, tube.speed, 0), "shape": filled}],
        "emitter": [
            {
                "material": "fluid", "position": (0, inlet, 0), "direction": (0, 1, 0), "speed": tube.speed,
                "shape": {"type": "cylinder", "radius": r - d / 2, "height": d},
            }
        ],
        "solid": solids,
        "sink": [{"shape": {"type": "plane", "position": (0, tube.jet * r, 0), "rotation": (180, 0, 0)}}],
    }  # fmt: skip


@dataclass(frozen=True)
class Jet:
    """What was measured of a steady extrusion. Profiles are over ``y`` [m], in slabs of one spacing."""

    y: np.ndarray
    speed: np.ndarray
    """mean velocity along the axis [m/s]"""
    filled: np.ndarray
    """radius of a disc whose area is that of the particles in the slab, d² each [m]"""
    outline: np.ndarray
    """radius of an evenly filled disc with the same mean square distance from the axis [m]"""
    radius: float
    """of the tube, where the particles are that its wall holds [m]"""
    zero: float
    """where u against r², fitted by a straight line inside the tube, is zero [m]"""
    centre: float
    """velocity on the axis of the tube, from that line [m/s]"""
    flow: float
    """through the tube [m³/s]"""
    last: np.ndarray
    """positions at the end [m]"""
    window: tuple[float, float]
    """where the jet is measured [m]"""

    @property
    def mean(self) -> float:
        """Mean velocity in the tube [m/s]."""
        return self.flow / (np.pi * self.radius**2)

    @property
    def shear_rate(self) -> float:
        """At the wall of the tube, of a parabola with the measured flow [1/s]."""
        return 4 * self.flow / (np.pi * self.radius**3)

    def _behind(self, values: np.ndarray) -> float:
        return float(values[(self.y > self.window[0]) & (self.y < self.window[1])].mean())

    @property
    def swell(self) -> float:
        """Radius of the jet's outline over that of the tube."""
        return self._behind(self.outline) / self.radius

    @property
    def slowed(self) -> float:
        """The same from volume: √(U/U_jet). Where this is less than the outline's, the jet is not quite filled."""
        return float(np.sqrt(self.mean / self._behind(self.speed)))


def watch(sim: Any, tube: Tube) -> Jet:
    """Runs the simulation and measures it from when it is steady."""
    d, r0, length = tube.spacing, tube.radius, tube.length * tube.radius
    edges = np.arange(-length, tube.jet * r0 - d, d)
    n, rows, samples, last = len(edges) - 1, [], [], np.empty((0, 3))
    for frame in sim.frames():
        last, u = frame["position"].astype(float), frame["velocity"][:, 1].astype(float)
        if frame.time < (tube.settled - 1e-6) * tube.unit:
            continue
        slab = np.digitize(last[:, 1], edges) - 1
        inside = (slab >= 0) & (slab < n)
        slab, x, u = slab[inside], last[inside], u[inside]
        count = np.maximum(np.bincount(slab, minlength=n), 1)
        cx, cz = (np.bincount(slab, x[:, k], n) / count for k in (0, 2))
        square = (x[:, 0] - cx[slab]) ** 2 + (x[:, 2] - cz[slab]) ** 2
        rows.append((count, np.bincount(slab, u, n) / count, np.bincount(slab, square, n) / count))
        within = np.abs(x[:, 1] + 0.4 * length) < 0.2 * length
        samples.append(np.stack([np.hypot(x[within, 0], x[within, 2]), u[within]]))
    count, speed, square = (np.mean(values, 0) for values in zip(*rows, strict=True))
    r, u = np.concatenate(samples, 1)
    slope, centre = np.polyfit(r[r < r0 - d] ** 2, u[r < r0 - d], 1)  # without what the wall holds
    y = (edges[1:] + edges[:-1]) / 2
    return Jet(
        y=y, speed=speed, filled=d * np.sqrt(count / np.pi), outline=np.sqrt(2 * square + d * d / 3),
        radius=float(r[r > r0 - HELD * d].mean()), zero=float(np.sqrt(max(-centre / slope, 0.0))), centre=float(centre),
        flow=float((count * speed)[(y > -0.6 * length) & (y < 0)].mean() * d * d), last=last,
        window=(tube.window[0] * r0, tube.window[1] * r0),
    )  # fmt: skip
