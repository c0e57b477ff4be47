"""The same scenes at spacings of 20 µm, 1 mm, 40 mm and 2 m, the same dimensionless numbers: the same motion in spacings.

Three comparisons with the run at 40 mm, for every scene of :mod:`features`:

*same bits*: at 4ᵏ times the size (39 µm, 2.56 m) lengths, times, speeds, masses, viscosities and moduli are all multiplied by
powers of two, which changes no digit of a float. So code in which every length is relative to another gives the same bits,
chaos or not, and any constant with a dimension, any sum that leaves the range of float32, shows at once. (Bodies that touch one
another are in no scene: MuJoCo's contacts have a time constant, and steps of a millisecond at most.)

*places*: at the other sizes digits differ, so results do by rounding. Root mean square over the particles of how far places
lie apart, in the root mean square of the way they travelled: at most 1e-3.

*measures*: where a rounding decides what happens next (:attr:`Feature.chaos` says why) places mean nothing after a while;
height, extents, energy (shares) and compression (the difference itself) of all particles still agree within 2 %.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most
from viscoil.validation.features import FEATURES, Feature, apart, measures
from viscoil.validation.similarity import scaled

REFERENCE = 0.04  # spacing [m]
SIZES = {"20 µm": 2e-5, "1 mm": 1e-3, "2 m": 2.0}
TWINS = {"39 µm": REFERENCE / 4**5, "2.56 m": REFERENCE * 4**3}
QUICK_SIZES = ("20 µm", "39 µm")
PLACES, MEASURES = 1e-3, 0.02


def _followed(trial: Trial, feature: Feature, size: float) -> dict[str, Any]:
    """What a run at a spacing of ``size`` [m] came to, in units in which the spacing is 1; ``stopped``: why it did not end."""
    from viscoil.errors import ViscoilError

    frames, steps = (5, 2) if trial.quick else (10, 4)
    try:
        sim = trial.simulation(scaled(feature.scene(5.0 if trial.quick else 6.0, frames, steps), size))
        places = [np.asarray(frame["position"], np.float64) / size for frame in sim.frames()]
    except (ViscoilError, ValueError) as error:  # ValueError: MuJoCo's compiler
        return {"stopped": " ".join(str(error).split())}
    bits = np.asarray(sim.frame()["position"])
    return {"stopped": "", "bits": bits, "first": places[0], "places": places[-1], "measures": measures(sim)}


def _places_apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Of the way; infinite if there are more particles in one than in the other."""
    if one["places"].shape != other["places"].shape:
        return np.inf
    number = len(one["first"])
    way = one["places"][:number] - one["first"]
    return float(np.sqrt(np.square(other["places"] - one["places"]).sum(1).mean() / np.square(way).sum(1).mean()))


def _different(one: dict[str, Any], other: dict[str, Any], factor: float) -> float:
    """Share of the coordinates that are not ``factor`` times those of ``one`` to the last bit."""
    if one["bits"].shape != other["bits"].shape:
        return 1.0
    return float((one["bits"] * np.float32(factor) != other["bits"]).mean())


def _compared(feature: Feature, name: str, one: dict[str, Any], other: dict[str, Any]) -> Any:
    """The check of one size."""
    start = f"{feature.name} at {name}"
    if stopped := one["stopped"] or other["stopped"]:
        return at_most(f"{start}: stopped: {stopped}", np.nan, 0.0)
    if name in TWINS:
        differing = _different(one, other, TWINS[name] / REFERENCE)
        return at_most(f"{start}: coordinates with other bits [share]", differing, 0.0)
    if feature.chaos:
        differing = apart(one["measures"], other["measures"])
        return at_most(f"{start}: height, extents, energy, compression differ by [share]", differing, MEASURES)
    return at_most(f"{start}: places differ by [of the way]", _places_apart(one, other), PLACES)


def compared(trial: Trial, feature: Feature) -> list[Any]:
    """The checks of one scene."""
    one = _followed(trial, feature, REFERENCE)
    checks = []
    for name, size in (SIZES | TWINS).items():
        if trial.quick and name not in QUICK_SIZES:
            continue
        checks.append(_compared(feature, name, one, _followed(trial, feature, size)))
        if trial.noticed(checks):
            break
    return checks


def _measure(trial: Trial) -> Outcome:
    checks: list[Any] = []
    for feature in FEATURES.values():
        if feature.quick or not trial.quick:
            checks += compared(trial, feature)
        if trial.noticed(checks):
            break
    return Outcome(checks)


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import differences

    differences(figure, outcome.checks, "difference from 40 mm, of the way or of the measure")


def _heavier(scene: dict[str, Any], number: int) -> None:
    if scene["spacing"] != REFERENCE:
        scene["gravity"] = (0.0, -9.9, 0.0)


CASE = Case(
    name="scale",
    measures="Scenes at spacings of 20 µm to 2 m with the same dimensionless numbers, in spacings",
    source="similarity (Froude, Reynolds, Weissenberg): the size is not among the dimensionless numbers of the motion",
    measure=_measure,
    mutation=Mutation("gravity 1 % stronger at all sizes but one", _heavier),
    plot=_plot,
)
