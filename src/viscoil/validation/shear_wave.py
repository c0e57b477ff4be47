"""A decaying shear wave in a periodic box: viscosity and elasticity as asked for, with no wall and no surface in the way.

u_x = U sin(ky) decays as U A(t) sin(ky). Without initial stress, with kinematic viscosities ν₀ (whole) and ν_s (solvent),

    A(t) = e^(−αt/2λ) [cosh(rt/2λ) + ((α − 2λν_s k²)/r) sinh(rt/2λ)],   α = 1 + λν_s k²,   r² = α² − 4λν₀k²

which is e^(−ν₀k²t) for λ → 0 and oscillates for large λ.
"""

import cmath
from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most

RHO = 1000.0  # kg/m³
LENGTH = 0.4  # wavelength and edge of the box along y [m]
U = 0.05  # m/s
# name: relaxation time λ [s], whole and solvent viscosity [Pa s]
FLUIDS = {"Newtonian": (0.0, 20.0, 0.0), "Maxwell": (0.2, 20.0, 0.0), "Oldroyd-B": (0.2, 20.0, 4.0)}


def amplitude(t: np.ndarray, lam: float, whole: float, solvent: float, k: float) -> np.ndarray:
    """A(t) for viscosities in m²/s."""
    if lam == 0:
        return np.exp(-whole * k * k * t)
    a = 1 + lam * solvent * k * k
    r = cmath.sqrt(a * a - 4 * lam * whole * k * k)
    half = t / (2 * lam)
    return np.real(np.exp(-a * half) * (np.cosh(r * half) + (a - 2 * lam * solvent * k * k) / r * np.sinh(r * half)))


def scene(
    fluid: tuple[float, float, float], cells: int, step: float, frames: int, jitter: float = 0.2
) -> dict[str, Any]:
    """A box of ``cells`` particles along y, as deep as kernels need."""
    lam, whole, solvent = fluid
    d = LENGTH / cells
    size = (8 * d, LENGTH, 8 * d)
    material: dict[str, Any] = {"density": RHO, "viscosity": whole - solvent}
    if lam:
        material["relaxation_time"] = lam
    if solvent:
        material["solvent_viscosity"] = solvent
    return {
        "spacing": d,
        "gravity": (0, 0, 0),
        "domain": {"min": (0, 0, 0), "max": size, "periodic": "xyz"},
        "time": {"frames": frames, "frame_time": 4 * step, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"},
        "material": {"fluid": material},
        "fluid": [
            {"material": "fluid", "jitter": jitter, "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}
        ],
    }


def decay(sim: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times and amplitudes of the wave's first mode, started on the spot."""
    k = 2 * np.pi / LENGTH
    state = sim.state()
    velocity = np.zeros_like(state["particles/velocity"])
    velocity[:, 0] = U * np.sin(k * state["particles/position"][:, 1])
    state["particles/velocity"] = velocity
    sim.restore(state)
    times, amplitudes = [], []
    for frame in [sim.frame(), *sim.frames()]:
        wave = np.sin(k * frame["position"][:, 1].astype(float))
        times.append(frame.time)
        amplitudes.append(float((frame["velocity"][:, 0] * wave).sum() / (wave * wave).sum() / U))
    return np.array(times), np.array(amplitudes)


def _measure(trial: Trial) -> Outcome:
    k = 2 * np.pi / LENGTH
    cells, step, frames = (20, 1 / 240, 24) if trial.quick else (40, 1 / 480, 60)
    checks, curves = [], {}
    for name, fluid in FLUIDS.items():
        t, measured = decay(trial.simulation(scene(fluid, cells, step, frames)))
        exact = amplitude(t, fluid[0], fluid[1] / RHO, fluid[2] / RHO, k)
        checks.append(at_most(f"{name}: largest |ΔA|, in A(0)", np.abs(measured - exact).max(), 0.1))
        curves[name] = (t, measured, exact)
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, ORANGE, axes

    picture = axes(figure, "time [s]", "amplitude A(t)/A(0)")
    for (name, (t, measured, exact)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE, GREEN), strict=True):
        picture.plot(t, exact, color=colour, label=f"{name}, exact")
        picture.plot(t, measured, "o", color=colour, ms=3, label=f"{name}, measured")
    picture.legend()


def _thinner(scene: dict[str, Any], number: int) -> None:
    scene["material"]["fluid"]["viscosity"] /= 2


CASE = Case(
    name="shear_wave",
    measures="Decay of a shear wave in a periodic box: Newtonian, Maxwell, Oldroyd-B",
    source="linear response of an Oldroyd-B fluid to one transverse mode, closed form",
    measure=_measure,
    mutation=Mutation("half the viscosity", _thinner),
    plot=_plot,
)
