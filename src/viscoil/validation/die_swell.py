"""Die swell (Barus effect): a jet of polymer solution is wider than the tube it leaves.

In the tube the polymer is stretched along the wall; outside nothing holds it, it shortens, and the jet grows wider. A jet of
Newton's fluid swells as well, by 13 % when inertia is small, because its surface has to catch up with its middle. Tanner's
formula adds both. For a round tube,

    B = D_jet/D = 0.13 + (1 + S²/2)^(1/6),   S = N₁/2τ at the wall

S, the recoverable shear, is (1 − β) λ γ̇ for an Oldroyd-B fluid with the share β of solvent, γ̇ = 4Q/(πR³). Tanner lets the
strain recoil at once, against nothing but itself; the formula is good to some ten per cent.

The radius of the jet is measured from its outline and from its speed, in slabs behind the exit; radius of the tube and flow are
measured, see extrusion.py. Against the tube as drawn, half a spacing wider, swell and S are smaller; that is checked, too.

β = 1/3: without solvent the flow is not smooth (particles alternate where elastic stress alone holds them), and the largest
eigenvalue of the conformation, 1 + 2(S/(1 − β))² at the wall, is limited to 20, which is reached at S = 2. ``spreading`` is
off: it moves places and not velocities, and beside a wall without slip that strains the fluid without end.
"""

from typing import Any

import numpy as np

from viscoil.validation import extrusion
from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most
from viscoil.validation.extrusion import Tube

SOLVENT = 1 / 3
SMALL = Tube(across=10, length=3.0, jet=2.2, duration=4.2, settled=3.6, window=(1.0, 1.5), advance=0.06)
LARGE = Tube(across=22, length=4.5, jet=4.5, duration=10.5, settled=9.5, window=(2.0, 3.0))
ASKED = {True: (0.0, 1.5), False: (0.0, 1.0, 2.0)}  # S, quick and full
TOLERANCE = {True: 0.12, False: 0.1}  # of B; in a coarse tube the layers beside the wall are a good part of it


def tanner(s: Any) -> Any:
    """B of the docstring."""
    return 0.13 + (1 + np.square(s) / 2) ** (1 / 6)


def _measure(trial: Trial) -> Outcome:
    tube, tolerance = (SMALL, TOLERANCE[True]) if trial.quick else (LARGE, TOLERANCE[False])
    checks = [at_most("Reynolds number ρUD/η", tube.reynolds, 1.0)]
    jets = []
    for asked in reversed(ASKED[trial.quick]):  # the fault shows in the most elastic one
        material = extrusion.oldroyd(tube, asked, SOLVENT)
        sim = trial.simulation(extrusion.scene(tube, material, {"method": "dcpbd", "spreading": 0.0}))
        jet = extrusion.watch(sim, tube)
        s = asked * jet.shear_rate / tube.shear_rate
        drawn = jet.radius / tube.radius
        expected, wider = float(tanner(s)), float(tanner(s * drawn**3))
        name = "Newtonian" if asked == 0 else f"S = {asked:g} (measured {s:.2f})"
        checks[1:1] = [
            Check(f"{name}: swell, from the outline", jet.swell, expected, tolerance * expected),
            Check(f"{name}: swell, from the speed", jet.slowed, expected, tolerance * expected),
            Check(f"{name}: swell, from the outline, with the tube as drawn", jet.swell * drawn, wider, tolerance * wider),
            Check(f"{name}: velocity on the tube's axis, in mean velocities", jet.centre / jet.mean, 2.0, 0.4),
        ]
        jets.insert(0, (s, name, jet))
        if trial.noticed(checks):
            return Outcome(checks, {"jets": jets, "tube": tube})
    first, last = jets[0], jets[-1]
    gained = (last[2].swell - first[2].swell) / float(tanner(last[0]) - tanner(0.0))
    checks.append(at_least("swell by elasticity alone, share of Tanner's", gained, 0.5))
    return Outcome(checks, {"jets": jets, "tube": tube})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, ORANGE, axes

    jets, tube = outcome.data["jets"], outcome.data["tube"]
    left = axes(figure, "behind the exit [R]", "radius of the jet [R]", (1, 2, 1))
    left.axvspan(*tube.window, color=GREY, alpha=0.15)
    left.axvline(0, color=GREY, linewidth=0.8)
    for k, (s, name, jet) in enumerate(jets):
        shade = 0.35 + 0.65 * k / max(len(jets) - 1, 1)
        left.plot(jet.y / jet.radius, jet.outline / jet.radius, color=BLUE if s == 0 else ORANGE, alpha=shade, label=name)
    left.set_xlim(-1.5, tube.jet)
    left.legend(fontsize=8)
    right = axes(figure, "recoverable shear S", "swell B", (1, 2, 2))
    s = np.linspace(0, max(2.2, jets[-1][0]), 100)
    right.plot(s, tanner(s), color=GREY, label="Tanner")
    right.fill_between(s, 0.9 * tanner(s), 1.1 * tanner(s), color=GREY, alpha=0.15, label="± 10 %")
    right.plot([row[0] for row in jets], [row[2].swell for row in jets], "o", color=ORANGE, label="from the outline")
    right.plot([row[0] for row in jets], [row[2].slowed for row in jets], "s", color=BLUE, label="from the speed")
    right.legend(fontsize=8)


def _forgetful(scene: dict[str, Any], number: int) -> None:
    scene["material"]["fluid"].pop("relaxation_time", None)


CASE = Case(
    name="die_swell",
    measures="Die swell: how much wider a jet is than the tube it leaves, Newtonian and Oldroyd-B",
    source="Tanner 1970, J. Polym. Sci. A-2 8, 2067, with the Newtonian 0.13; N₁ and τ of the Oldroyd-B fluid",
    measure=_measure,
    mutation=Mutation("forgets at once", _forgetful),
    plot=_plot,
)
