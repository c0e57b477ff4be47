"""Rigid bodies made of particles that hit fluid and ground: do they keep their shape, and the two together their momentum?

Shape matching makes a body rigid to the last rounding, if it comes last in an iteration; what it must not do is create
momentum. A turning block flies into a ball of fluid without gravity, and another falls into a pool and onto its ground.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most

D = 0.02  # spacing [m]
METHODS = ("pbf", "dcpbd")


def scene(method: str, gravity: float, frames: int, **more: Any) -> dict[str, Any]:
    """What the cases of particle solids share."""
    water = {"density": 1000.0, **({"viscosity": 0.5} if method == "dcpbd" else {})}
    return {
        "spacing": D, "gravity": (0, -gravity, 0), "solver": {"method": method}, "material": {"water": water},
        "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 4}, **more,
    }  # fmt: skip


def members(sim: Any, cluster: int, name: str) -> np.ndarray:
    """A field of a cluster's particles, by id."""
    order = np.argsort(sim.world.get("id"))
    return sim.world.get(name)[order][sim.world.get("cluster")[order] == cluster].astype(float)


def unlike(sim: Any, cluster: int = 0) -> float:
    """RMS distance of a body's particles from its shape, moved and turned to fit, in sizes of the body."""
    x, r = (members(sim, cluster, name) for name in ("position", "rest"))
    x, r = x - x.mean(0), r - r.mean(0)
    u, _, v = np.linalg.svd(x.T @ r)
    rotation = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ v))]) @ v
    return float(np.sqrt(((x - r @ rotation.T) ** 2).sum(1).mean()) / np.ptp(r, axis=0).max())


def _momentum(sim: Any) -> tuple[np.ndarray, np.ndarray]:
    """Linear [kg m/s] and angular momentum [kg m²/s] of everything."""
    density = np.array([m.density for m in sim.scene.used_materials().values()])
    mass = D**3 * density[sim.world.get("material")][:, None]
    x, v = (sim.world.get(name).astype(float) for name in ("position", "velocity"))
    return (mass * v).sum(0), (mass * np.cross(x, v)).sum(0)


def _collision(trial: Trial, method: str) -> dict[str, Any]:
    body = {
        "kind": "rigid", "density": 600.0, "velocity": (0.2, -2.0, 0.0), "angular_velocity": (0.0, 0.0, 6.0),
        "shape": {"type": "box", "size": (0.14, 0.1, 0.1), "position": (0.02, 0.23, 0.0), "rotation": (0, 0, 20)},
    }  # fmt: skip
    fluid = {"material": "water", "shape": {"type": "box", "size": (0.24, 0.24, 0.24)}}
    sim = trial.simulation(scene(method, 0.0, 12, fluid=[fluid], particle_solid=[body]))
    linear, angular = _momentum(sim)
    worst, speed, turning = 0.0, [], np.linalg.norm(angular)
    for _ in sim.frames():
        worst = max(worst, unlike(sim))
        speed.append(-members(sim, 0, "velocity")[:, 1].mean())
    end, turned = _momentum(sim)
    return {
        "shape": worst, "speed": speed, "linear": np.linalg.norm(end - linear) / np.linalg.norm(linear),
        "angular": np.linalg.norm(turned - angular) / max(turning, 1e-30),
    }  # fmt: skip


def _splash(trial: Trial, method: str) -> dict[str, Any]:
    side, depth = 0.28, 0.12
    body = {
        "kind": "rigid", "density": 2500.0, "velocity": (0.0, -3.0, 0.0),
        "shape": {"type": "box", "size": (0.12, 0.08, 0.1), "position": (0, 0.24, 0), "rotation": (15, 0, 35)},
    }  # fmt: skip
    fluid = {"material": "water", "shape": {"type": "box", "size": (side, depth, side), "position": (0, depth / 2, 0)}}
    tank = {"container": True, "shape": {"type": "box", "size": (side, 1.2, side), "position": (0, 0.6, 0)}}
    sim = trial.simulation(scene(method, 9.81, 24 if trial.quick else 60, fluid=[fluid], solid=[tank], particle_solid=[body]))
    worst, lowest = 0.0, np.inf
    for _ in sim.frames():
        worst = max(worst, unlike(sim))
        lowest = min(lowest, members(sim, 0, "position")[:, 1].min())
    return {"shape": worst, "lowest": lowest / D}


def _measure(trial: Trial) -> Outcome:
    checks, data = [], {}
    for method in METHODS:
        hit, splash = _collision(trial, method), _splash(trial, method)
        data[method] = hit["speed"]
        checks += [
            at_most(f"{method}: shape RMS while it hits fluid, in sizes of the body", hit["shape"], 0.01),
            at_most(f"{method}: speed left after 0.2 s [m/s]", hit["speed"][-1], 1.5),
            at_most(f"{method}: change of momentum, relative", hit["linear"], 1e-3),
            at_most(f"{method}: change of angular momentum, relative", hit["angular"], 0.1),
            at_most(f"{method}: shape RMS in a splash down to the ground", splash["shape"], 0.01),
            at_least(f"{method}: lowest particle of the body over the ground [spacings]", splash["lowest"], 0.25),
        ]
    return Outcome(checks, data)


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import axes

    drawing = axes(figure, "time [s]", "speed of the body towards the fluid [m/s]")
    for method, speed in outcome.data.items():
        drawing.plot(np.arange(len(speed)) / 60, speed, label=method)
    drawing.legend(fontsize=8)


def _jelly(scene: dict[str, Any], number: int) -> None:
    for body in scene["particle_solid"]:
        body |= {"kind": "soft", "young_modulus": 2e3}


CASE = Case(
    name="cluster_impact",
    measures="Rigid bodies made of particles in collisions: shape, momentum, ground",
    source="Conservation of momentum; a rigid body keeps its shape",
    measure=_measure,
    mutation=Mutation("the bodies are of soft jelly", _jelly),
    plot=_plot,
)
