"""Modulus and viscosity a block of springs and a fluid of impulses have, against what their material asked for.

A shear wave u_x = U sin(ky) in a periodic box, as in ``shear_wave``. Frozen springs make it swing: ω² = Gk²/ρ. Impulses between
approaching pairs make it decay: e^(−ηk²t/ρ). Particles at rest lie in a packing that resists small shear without any spring; a
liquid run beside the solid one tells how much, and the two moduli are subtracted.

G and η are turned into spring stiffness and σ by sums over a continuum of neighbours that all move with the flow. Particles
move out of each other's way instead, so that less comes out than that estimate says. How much less is what this case measures.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most
from viscoil.validation.clavet import SPACING, TAU, H, curves, solver

RHO = 1000.0  # kg/m³


def _scene(cells: int, material: dict[str, Any], frames: int, substeps: int, settings: dict[str, Any]) -> dict[str, Any]:
    length = cells * SPACING
    size = (10 * SPACING, length, 10 * SPACING)
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "domain": {"min": (0, 0, 0), "max": size, "periodic": "xyz"},
        "time": {"frames": frames, "frame_time": TAU, "steps_per_frame": substeps},
        "solver": settings,
        "material": {"m": {"density": RHO, **material}},
        "fluid": [
            {"material": "m", "jitter": 0.1, "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}
        ],
    }


def _wave(trial: Trial, cells: int, material: dict[str, Any], speed: float, frames: int, substeps: int) -> Any:
    """Times [τ] and amplitudes of the wave's first mode, in its start; packed calmly and frozen before it starts."""
    rest = 40
    sim = trial.simulation(_scene(cells, {}, rest + frames, substeps, solver(sigma=0.5, substeps=substeps)))
    for _ in sim.frames(rest):
        pass
    k = 2 * np.pi / (cells * SPACING)
    sim.update({f"material.m.{name}": value for name, value in material.items()} | {"solver.linear_viscosity": 0.0})
    sim.solver.freeze(sim.world)
    world = sim.world
    wave = np.zeros((world.count, 3), np.float32)
    wave[:, 0] = speed * H / TAU * np.sin(k * world.get("position")[:, 1])
    world.set("velocity", wave)
    times, amplitudes = [], []
    for frame in [sim.frame(), *sim.frames()]:
        shape = np.sin(k * frame["position"][:, 1].astype(float))
        times.append(frame.time / TAU - rest)
        amplitudes.append(float((frame["velocity"][:, 0] * shape).sum() / (shape * shape).sum() * TAU / H / speed))
    return np.array(times), np.array(amplitudes)


def _frequency(t: np.ndarray, a: np.ndarray) -> float:
    """Angular frequency [1/τ] from the first time the amplitude is zero; 0 if it never is."""
    below = np.nonzero(a <= 0)[0]
    if not len(below):
        return 0.0
    n = below[0]
    zero = t[n - 1] + (t[n] - t[n - 1]) * a[n - 1] / (a[n - 1] - a[n])
    return float(np.pi / 2 / zero)


def _rate(t: np.ndarray, a: np.ndarray) -> float:
    """Rate of decay [1/τ] until the amplitude is 0.4."""
    end = np.nonzero(a < 0.4)[0]
    used = slice(0, end[0] if len(end) else len(a))
    return float(-np.polyfit(t[used], np.log(a[used]), 1)[0])


def _measure(trial: Trial) -> Outcome:
    cells, substeps = (16, 2) if trial.quick else (28, 4)
    k = 2 * np.pi * H / (cells * SPACING)  # [1/h]
    unit = RHO * (H / TAU) ** 2  # Pa in one ρh²/τ²
    asked = {"modulus": 0.03, "viscosity": 0.03}
    frames = 60 if trial.quick else 120
    waves = {
        "packing alone": _wave(trial, cells, {}, 0.01, frames, substeps),
        "springs": _wave(trial, cells, {"modulus": asked["modulus"] * unit, "relaxation_time": np.inf}, 0.01, frames, substeps),
        "no viscosity": _wave(trial, cells, {}, 0.2, frames, substeps),
        "viscosity": _wave(trial, cells, {"viscosity": asked["viscosity"] * unit * TAU}, 0.2, frames, substeps),
    }
    packing, solid = ((_frequency(*waves[name]) / k) ** 2 for name in ("packing alone", "springs"))
    own, viscous, slow = (_rate(*waves[name]) / k**2 for name in ("no viscosity", "viscosity", "packing alone"))
    checks = [
        Check("modulus of frozen springs, in the asked one", (solid - packing) / asked["modulus"], 1.0, 0.25),
        Check("viscosity of impulses, in the asked one", (viscous - own) / asked["viscosity"], 1.0, 0.25),
        at_most("viscosity nobody asked for, in fast shear [h²/τ]", own, 0.003),
        at_most("viscosity nobody asked for, in slow shear [h²/τ]", slow, 0.03),
    ]
    return Outcome(checks, {"curves": waves, "packing": packing, "solid": solid, "own": own, "viscous": viscous, "slow": slow})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import axes

    picture = axes(figure, "time [τ = 1/30 s]", "amplitude of the shear wave / its start")
    curves(picture, [(name, *curve) for name, curve in outcome.data["curves"].items()])


def _double(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"]["density"] *= 2


CASE = Case(
    name="pvfs_material",
    measures="Modulus of frozen springs and viscosity of pair impulses, from shear waves in a periodic box",
    source="one transverse mode of an elastic solid, ω² = Gk²/ρ, and of a Newtonian fluid, e^(−ηk²t/ρ)",
    measure=_measure,
    mutation=Mutation("twice the density", _double),
    plot=_plot,
)
