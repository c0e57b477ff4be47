"""Small scenes that between them hold every feature, in every method: what sizes (scale) and devices (parity) are compared on.

All are written for a spacing of one metre and are to be brought to another one by :func:`similarity.scaled`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RHO = 1000.0  # kg/m³
# [s]; what falls at 5 m/s moves by a tenth of a spacing, with PVFS by half of that.
STEPS = {"pbf": 0.02, "dcpbd": 0.02, "iisph": 0.02, "pvfs": 0.01}
# Reynolds' number of things ten spacings wide at 5 m/s: 5 for honey, 50 for syrup.
HONEY, SYRUP = {"density": RHO, "viscosity": 1e4}, {"density": RHO, "viscosity": 1e3}


@dataclass(frozen=True)
class Feature:
    """A scene for comparisons."""

    name: str
    method: str
    holds: str
    """in words, what is in it"""
    build: Callable[[float], dict[str, Any]]
    """width of the fluid [spacings] -> scene"""
    chaos: str = ""
    """why places of single particles cannot agree for long; "": they do"""
    quick: bool = False
    """part of quick comparisons"""

    def scene(self, width: float = 6.0, frames: int = 10, steps: int = 4) -> dict[str, Any]:
        """About ``width``³ particles, ``frames`` of ``steps`` steps."""
        time = {"frames": frames, "frame_time": STEPS[self.method] * steps, "steps_per_frame": steps}
        table = self.build(width)
        solver = {"method": self.method, **table.get("solver", {})}
        return {"spacing": 1.0, "time": time, **table, "solver": solver}


def measures(sim: Any) -> np.ndarray:
    """What stays comparable where places do not, in units of spacing and gravity: height of the centre, root mean square
    extents along x, y and z, energy of a particle (kinetic and potential), mean compression.

    Sums over all particles: the highest of a splash would be a matter of chance.
    """
    frame, row, d = sim.frame(), sim.metrics(), sim.scene.spacing
    x = np.asarray(frame["position"], np.float64) / d
    speed2 = np.square(np.asarray(frame["velocity"], np.float64)).sum(1).mean() / (9.81 * d)
    height = x[:, 1].mean()
    return np.array([height, *x.std(0), height + speed2 / 2, row["compression"]])


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """How far measures differ: the largest share (of what is less than a spacing, the difference in spacings; of compression,
    the difference itself)."""
    shares = np.abs(other - one) / np.maximum(np.abs(one), 1.0)
    return float(shares.max())


def _block(width: float, bottom: float, material: str = "fluid", **more: Any) -> dict[str, Any]:
    shape = {"type": "box", "size": (width, width, width), "position": (0.0, bottom + width / 2, 0.0)}
    return {"material": material, "shape": shape, "jitter": 0.1, **more}


def _plate(**more: Any) -> dict[str, Any]:
    return {"name": "plate", "shape": {"type": "plane"}, **more}


def _pool(width: float, depth: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """(fluid, the tank around it): not quite full, or rounding would decide which particles touch walls at the start."""
    low, wide = 0.2, 1.5 * width
    fluid = {"type": "box", "size": (wide, depth, wide), "position": (0.0, low + depth / 2, 0.0)}
    tank = {"type": "box", "size": (wide + 0.5, 3 * width, wide + 0.5), "position": (0.0, 1.5 * width, 0.0)}
    return {"material": "fluid", "shape": fluid, "jitter": 0.1}, {"name": "tank", "container": True, "shape": tank}


def _drop(material: dict[str, Any], **plate: Any) -> Callable[[float], dict[str, Any]]:
    """A block that falls on a plate."""

    def build(width: float) -> dict[str, Any]:
        fluid = _block(width, 0.5, velocity=(0.5, -3.0, 0.0), angular_velocity=(0.0, 0.5, 0.3))
        return {"material": {"fluid": material}, "fluid": [fluid], "solid": [_plate(**plate)]}

    return build


def _layers(**solver: Any) -> Callable[[float], dict[str, Any]]:
    """Heavy fluid on light fluid, in a box that repeats in x and z."""

    def build(width: float) -> dict[str, Any]:
        width = max(2 * round(width / 2), 12)  # at least three supports
        half = width / 2
        materials = {"light": {**SYRUP, "density": 0.5 * RHO}, "heavy": SYRUP}
        fluids = []
        for number, name in enumerate(materials):
            shape = {"type": "box", "size": (width, 3.0, width), "position": (0.0, 1.5 + 3.0 * number, 0.0)}
            fluids.append({"material": name, "shape": shape, "jitter": 0.1, "seed": number})
        domain = {"min": (-half, -1.0, -half), "max": (half, 10.0, half), "periodic": "xz"}
        return {"material": materials, "fluid": fluids, "domain": domain, "solid": [_plate()], "solver": solver}

    return build


def _pour(material: dict[str, Any], **solver: Any) -> Callable[[float], dict[str, Any]]:
    """A nozzle above a small tank in which a paddle moves."""

    def build(width: float) -> dict[str, Any]:
        nozzle = {"material": "fluid", "shape": {"type": "cylinder", "radius": width / 4, "height": 2.0}, "speed": 4.0,
                  "position": (0.0, width + 2.0, 0.0)}  # fmt: skip
        keys = [{"time": 0.0}, {"time": 1.0, "position": (width / 2, 0.0, 0.0), "rotation": (0.0, 45.0, 0.0)}]
        paddle = {"name": "paddle", "shape": {"type": "box", "size": (1.5, width, width / 2),
                  "position": (-width / 4, width / 2, 0.0)}, "motion": keys}  # fmt: skip
        fluid, tank = _pool(width, 3.0)
        return {
            "material": {"fluid": material}, "fluid": [fluid], "emitter": [nozzle], "solid": [tank, paddle], "solver": solver,
        }

    return build


def _bodies(material: dict[str, Any]) -> Callable[[float], dict[str, Any]]:
    """A light ball and a heavy box fall into a tank."""

    def build(width: float) -> dict[str, Any]:
        fluid, tank = _pool(width, 4.0)
        ball = {"type": "sphere", "radius": width / 5, "position": (-width / 4, 5.2 + width / 5, 0.0)}
        box = {"type": "box", "size": (width / 3,) * 3, "position": (width / 4, 5.2 + width / 5, 0.5)}
        solids = [
            tank, {"name": "ball", "shape": ball, "body": {"density": 0.3 * RHO}},
            {"name": "box", "shape": box, "body": {"density": 3 * RHO, "velocity": (0.0, -2.0, 0.0)}},
        ]  # fmt: skip
        return {"material": {"fluid": material}, "fluid": [fluid], "solid": solids}

    return build


def _particle_solids(material: dict[str, Any]) -> Callable[[float], dict[str, Any]]:
    """A rigid and a soft body made of particles fall into a pool, two densities besides the fluid's."""

    def build(width: float) -> dict[str, Any]:
        fluid, tank = _pool(width, 3.0)
        edge = width / 2
        bodies = [
            {"name": "rigid", "kind": "rigid", "density": 2 * RHO, "velocity": (0.0, -2.0, 0.0),
             "shape": {"type": "box", "size": (edge,) * 3, "position": (-edge, 4.5 + edge / 2, 0.0)}},
            {"name": "soft", "kind": "soft", "density": 0.7 * RHO, "young_modulus": 5e5, "damping_time": 0.01,
             "shape": {"type": "box", "size": (edge,) * 3, "position": (edge, 4.5 + edge / 2, 0.0)}},
        ]  # fmt: skip
        return {"material": {"fluid": material}, "fluid": [fluid], "solid": [tank], "particle_solid": bodies}

    return build


def _sampled() -> Callable[[float], dict[str, Any]]:
    """A block with bonds that yield falls on a box whose boundary is particles."""

    def build(width: float) -> dict[str, Any]:
        table = {"name": "table", "boundary": "particles", "shape": {"type": "box", "size": (2 * width, 2.0, 2 * width),
                 "position": (0.0, 1.0, 0.0)}}  # fmt: skip
        matter = {**JELLY, "yield_strain": 0.05}
        solver = {"weakening": 1.0, "lower_limit": 0.5}
        return {"material": {"fluid": matter}, "fluid": [_block(width, 2.5)], "solid": [_plate(), table], "solver": solver}

    return build


def _sticky() -> Callable[[float], dict[str, Any]]:
    """A block with springs that flow touches a ceiling that holds some of it."""

    def build(width: float) -> dict[str, Any]:
        ceiling = {"type": "box", "size": (2 * width, 2.0, 2 * width), "position": (0.0, width + 4.3, 0.0)}
        sticky = {"name": "ceiling", "shape": ceiling, "stick_distance": 0.8, "stick_stiffness": 100.0}
        matter = {"density": RHO, "viscosity": 5e4, "relaxation_time": 0.3}
        return {"material": {"fluid": matter}, "fluid": [_block(width, 2.7)], "solid": [_plate(), sticky]}

    return build


ELASTIC = {"density": RHO, "viscosity": 5e4, "relaxation_time": 0.3, "solvent_viscosity": 3e3}
JELLY = {"density": RHO, "modulus": 2e5}
WATER = {"density": RHO}
SPLASH = "a splash: particles that part at a distance of a rounding end up elsewhere"
HELD = "which particles a solid holds is decided one by one, some of it by rounding"
TOUCHED = "which boundary particles hold a particle back is decided one by one, some of it by rounding"

FEATURES = {
    feature.name: feature
    for feature in (
        Feature("pbf_drop", "pbf", "walls", _drop(WATER), SPLASH, quick=True),
        Feature("pbf_layers", "pbf", "two materials, periodic box", _layers(), SPLASH),
        Feature("pbf_pour", "pbf", "nozzle, moving solid, vorticity", _pour(WATER, vorticity=0.3), SPLASH),
        Feature("pbf_bodies", "pbf", "bodies", _bodies(WATER), SPLASH),
        Feature("pbf_particle_solids", "pbf", "bodies made of particles", _particle_solids(WATER), SPLASH),
        Feature("dcpbd_drop", "dcpbd", "walls, viscoelastic", _drop(ELASTIC, friction="no-slip"), quick=True),
        Feature("dcpbd_slip", "dcpbd", "walls with friction, viscous", _drop(HONEY, friction=0.3)),
        Feature("dcpbd_layers", "dcpbd", "two materials, periodic box", _layers()),
        Feature("dcpbd_pour", "dcpbd", "nozzle, moving solid", _pour(HONEY), HELD),
        Feature("dcpbd_bodies", "dcpbd", "bodies", _bodies(HONEY), HELD),
        Feature("dcpbd_particle_solids", "dcpbd", "bodies made of particles", _particle_solids(HONEY), HELD),
        Feature("iisph_drop", "iisph", "walls, bonds", _drop(JELLY), quick=True),
        Feature("iisph_samples", "iisph", "walls made of particles, bonds that yield", _sampled(), TOUCHED),
        Feature("iisph_layers", "iisph", "two materials, periodic box", _layers(), SPLASH),
        Feature("iisph_pour", "iisph", "nozzle, moving solid", _pour(HONEY)),
        Feature("iisph_bodies", "iisph", "bodies", _bodies(HONEY)),
        Feature("pvfs_drop", "pvfs", "walls, springs", _drop(JELLY), quick=True),
        Feature("pvfs_sticky", "pvfs", "sticky walls, springs that flow", _sticky()),
        Feature("pvfs_layers", "pvfs", "two materials, periodic box", _layers(), SPLASH),
        Feature("pvfs_pour", "pvfs", "nozzle, moving solid", _pour(HONEY)),
        Feature("pvfs_bodies", "pvfs", "bodies", _bodies(HONEY)),
    )
}
