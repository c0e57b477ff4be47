"""Cups of honey that are carried about, tilted and shaken lose nothing through their walls.

Every cup has a lid, of one piece with it, so that whatever is outside has come through a wall. Nine of them stand far apart in
one scene: walls of 1, 1.5 and 2 particle spacings, each moved with strokes of 10 cm that reach 1, 2 and 3 m/s, up to 80° from
upright. With 100 steps per second a wall sweeps over as much as the whole hollow in a step. Outside is who is beyond the
middle of the wall, from where the nearest way out is the wrong one.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most

RADIUS, HEIGHT = 0.03, 0.07  # of the hollow [m]
APART = 0.5  # [m]
STROKE = 0.1  # [m]
TILT = 80.0  # [degrees]
REST = 0.04  # [s] before the first stroke
SPEEDS, THICKNESS = (1.0, 2.0, 3.0), (1.0, 1.5, 2.0)  # [m/s], [spacings]
STEPS = {"pbf": 100, "dcpbd": 100, "pvfs": 100, "iisph": 2000}  # per second; pressures of IISPH need short ones


def strokes(speed: float, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Keyframes of a cup that is shaken: straight strokes in all directions within 12 cm, eased in and out."""
    random = np.random.default_rng(seed)
    place, moment = np.zeros(3), REST
    found: list[dict[str, Any]] = [{"time": REST, "position": [0.0, 0.0, 0.0], "rotation": [0.0, 0.0, 0.0]}]
    while moment < seconds:
        step = random.normal(size=3)
        step *= STROKE / np.linalg.norm(step)
        if np.linalg.norm(place + step) > 0.12:
            step -= 2 * place * (place @ step) / (place @ place)  # back, from a wall that is not there
        place = place + step
        moment += 1.5 * STROKE / speed  # 3s² − 2s³ is fastest in the middle, 3/2 of the mean
        turned = random.uniform(-TILT, TILT, 3)
        found.append({"time": moment, "position": place.tolist(), "rotation": turned.tolist()})
    return found


def cup(place: np.ndarray, thick: float, motion: list[dict[str, Any]]) -> dict[str, Any]:
    """A closed cup, its hollow centred at ``place``; ``thick`` [m]."""
    wall = RADIUS + thick / 2
    parts = [
        {"type": "cup", "radius": wall, "height": HEIGHT + thick, "thickness": thick},
        {"type": "cylinder", "radius": wall, "height": thick, "position": [0.0, (HEIGHT + thick) / 2, 0.0]},
    ]
    return {"friction": 0.5, "shape": {"type": "union", "parts": parts, "position": place.tolist()}, "motion": motion}


def scene(method: str, cups: list[tuple[float, float]], spacing: float, seconds: float, fill: float) -> dict[str, Any]:
    """Cups of (speed [m/s], thickness [spacings]) in a row, filled up to a share of their height."""
    rate = STEPS[method] if fill > 0.4 else min(STEPS[method], 500)  # what flies about alone has no pressures
    places = [np.array([APART * k, 0.0, 0.0]) for k in range(len(cups))]
    honey = {"type": "cylinder", "radius": RADIUS - 0.4 * spacing, "height": fill * HEIGHT}
    under = np.array([0.0, -(0.48 - fill / 2) * HEIGHT, 0.0])
    return {
        "spacing": spacing,
        "time": {"frames": round(50 * seconds), "frame_time": 0.02, "steps_per_frame": rate // 50},
        "solver": {"method": method},
        "fluid": [{"material": "honey", "shape": {**honey, "position": (x + under).tolist()}} for x in places],
        "solid": [
            cup(x, thick * spacing, strokes(speed, seconds, k))
            for k, (x, (speed, thick)) in enumerate(zip(places, cups, strict=True))
        ],
    }


def outside(frame: Any, cups: list[tuple[float, float]], owner: np.ndarray) -> np.ndarray:
    """Who has left the cup he belongs to."""
    gone = np.zeros(len(frame), bool)
    for k, (_, thick) in enumerate(cups):
        pose, half = np.array(frame.solids[k]["pose"]), thick * frame.spacing / 2
        x = (frame["position"] - pose[:3, 3]) @ pose[:3, :3]
        left = (np.hypot(x[:, 0], x[:, 2]) > RADIUS + half) | (np.abs(x[:, 1]) > HEIGHT / 2 + half)
        gone |= left & (owner == k)
    return gone


def lost(trial: Trial, method: str, cups: list[tuple[float, float]], spacing: float, seconds: float, fill: float) -> Any:
    """Particles of every cup, and how many of them were ever seen outside."""
    sim = trial.simulation(scene(method, cups, spacing, seconds, fill))
    owner, ever = np.zeros(0, int), np.zeros(0, bool)
    for frame in sim.frames():
        if not len(owner):
            owner = np.round(frame["position"][:, 0] / APART).astype(int)
            ever = np.zeros(len(owner), bool)
        ever |= outside(frame, cups, owner)
    number = np.bincount(owner, minlength=len(cups))
    return number, np.bincount(owner, ever, minlength=len(cups)).astype(int)


def _measure(trial: Trial) -> Outcome:
    cups = [(speed, thick) for speed in SPEEDS for thick in THICKNESS]
    spacing, seconds, fill = 0.004, 10.0, 0.5
    if trial.quick:
        cups, spacing, seconds, fill = cups[-3:], 0.006, 0.3, 0.3
    found = {method: lost(trial, method, cups, spacing, seconds, fill) for method in STEPS}
    checks = [
        at_most(f"{method}, {speed:g} m/s, wall of {thick:g} spacings: particles through it", gone[k], 0.0)
        for method, (_, gone) in found.items()
        for k, (speed, thick) in enumerate(cups)
    ]
    return Outcome(checks, {"found": found, "cups": cups, "seconds": seconds})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import axes

    found, cups = outcome.data["found"], outcome.data["cups"]
    seconds = outcome.data["seconds"]
    panel = axes(figure, "cup", f"particles through its walls in {seconds:g} s")
    for k, (method, (number, gone)) in enumerate(found.items()):
        panel.bar(np.arange(len(cups)) + 0.2 * (k - 1.5), gone, 0.18, label=f"{method} (of {int(number.sum())})")
    panel.set_xticks(np.arange(len(cups)), [f"{speed:g} m/s\n{thick:g} d" for speed, thick in cups])
    panel.set_ylim(0, max(1.0, 1.1 * max(gone.max() for _, gone in found.values())))
    panel.legend(frameon=False)


def _open(scene: dict[str, Any], number: int) -> None:
    """Cups without lids, which lose what they hold over the rim: whoever is outside is seen."""
    for solid in scene["solid"]:
        solid["shape"]["parts"] = solid["shape"]["parts"][:1]


CASE = Case(
    name="leaks",
    measures="Honey in closed cups that are shaken: particles that come through the walls",
    source="a solid wall: none",
    measure=_measure,
    mutation=Mutation("no lids", _open),
    plot=_plot,
)
