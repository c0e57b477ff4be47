"""The shear modulus bonded particles have, against the one their material asked for: standing shear waves in a periodic block.

Bonds on a cubic lattice are not equally stiff in all directions. A wave u_y(x) feels C₄₄, one along the diagonal of a face
(C₁₁ − C₁₂)/2; an isotropic body made of such crystals has G = [(C₁₁ − C₁₂) + 3 C₄₄]/5, which is what the material means. Each
wave swings with ω² = C k²/ρ. For springs that also push, the sums over neighbours are known exactly: C₄₄ is 0.897 and the other
1.154 of G, less what the particles' distance takes off short waves.
"""

from itertools import product
from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial
from viscoil.validation.takahashi import RHO, STEP, D, block, frequency, wave

MODULUS = 2000.0  # Pa
STRAIN = 0.01  # of the wave
SCHEMES: dict[str, dict[str, Any]] = {
    "springs, two-sided": {"correction": "springs", "two_sided": True},
    "springs": {"correction": "springs"},
    "position-based": {"correction": "position_based"},
    "shape matching": {"correction": "shape_matching"},
}
# name: direction of k in waves per box, polarisation, share of the isotropic mean
WAVES = {"axis": ((0, 1, 0), (1, 0, 0), 0.6), "diagonal": ((1, 1, 0), (1, -1, 0), 0.4)}


def springs_exactly(number: np.ndarray, along: np.ndarray) -> float:
    """G of a wave over two-sided springs, in the asked one: the lattice's own dispersion, neighbours up to two spacings."""
    offsets = np.array([o for o in product(range(-2, 3), repeat=3) if 0 < np.dot(o, o) <= 4], float)
    r = np.linalg.norm(offsets, axis=1)
    way = along / np.linalg.norm(along)
    stiffness = ((offsets @ way / r) ** 2 * (1 - np.cos(offsets @ number * D))).sum()  # in k
    return float(stiffness / (number @ number * D * D) / 2.6)  # G = 2.6 k/d


def _ratio(trial: Trial, solver: dict[str, Any], name: str, step: float = STEP) -> tuple[float, Any]:
    """Modulus a wave feels, in the asked one, and the wave."""
    cells = 12 if trial.quick else 24
    numbers, along, _ = WAVES[name]
    box = (cells, cells, 7) if name == "diagonal" else (7, cells, 7)
    k = 2 * np.pi / (cells * D) * np.array(numbers, float)
    swing = np.linalg.norm(k) * np.sqrt(MODULUS / RHO)
    settings = {"tolerance": 0.0, "iterations": 4, **solver}
    sim = trial.simulation(block(box, settings, {"modulus": MODULUS, "relaxation_time": np.inf}, step))
    speed = STRAIN * np.sqrt(MODULUS / RHO)
    t, a = wave(sim, k, along, speed, 1.9 * np.pi / swing)
    return (frequency(t, a) / swing) ** 2, (t * swing / (2 * np.pi), a)


def _measure(trial: Trial) -> Outcome:
    checks, curves, found = [], {}, {}
    for scheme, solver in SCHEMES.items():
        for name in WAVES:
            found[scheme, name], curves[f"{scheme}, {name}"] = _ratio(trial, solver, name)
        mean = sum(share * found[scheme, name] for name, (*_, share) in WAVES.items())
        checks.append(Check(f"{scheme}: isotropic modulus, in the asked one", mean, 1.0, 0.06))
    cells = 12 if trial.quick else 24
    for name, (numbers, along, _) in WAVES.items():
        exact = springs_exactly(2 * np.pi / (cells * D) * np.array(numbers, float), np.array(along, float))
        checks.append(Check(f"two-sided springs, wave along the {name}: modulus, in the lattice's own",
                            found["springs, two-sided", name] / exact, 1.0, 0.02))  # fmt: skip
    for scheme in ("position-based", "shape matching"):
        half = _ratio(trial, SCHEMES[scheme], "axis", STEP / 2)[0] / found[scheme, "axis"]
        checks.append(Check(f"{scheme}: modulus at half the step, in the one at the whole", half, 1.0, 0.05))
    return Outcome(checks, {"curves": curves, "found": found})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.clavet import curves
    from viscoil.validation.drawing import GREY, axes

    for place, name in enumerate(WAVES, 1):
        picture = axes(figure, "time, in periods of the asked modulus", f"amplitude, wave along the {name}", (1, 2, place))
        shown = [(label.rsplit(",", 1)[0], *curve) for label, curve in outcome.data["curves"].items() if label.endswith(name)]
        t = shown[0][1]
        picture.plot(t, np.cos(2 * np.pi * t), "--", color=GREY, label="asked for")
        curves(picture, shown)


def _heavier(scene: dict[str, Any], number: int) -> None:
    scene["material"]["m"]["density"] *= 1.25


CASE = Case(
    name="iisph_modulus",
    measures="Shear modulus of bonded particles against the material's, from standing waves in a periodic block",
    source="transverse waves of a cubic crystal, ω² = C k²/ρ, averaged over orientations (Voigt); central forces for springs",
    measure=_measure,
    mutation=Mutation("1.25 times the density", _heavier),
    plot=_plot,
)
