"""A block of fluid hits a free body of half its mass, beside its centre, without gravity: what is kept, in every solver.

Whatever particles get from a body, the body receives with the opposite sign at the same place, so linear momentum of both
together is exact up to rounding, and angular momentum up to what the solver loses by itself (pairs are pushed along predicted
lines). The exchange published for PVFS (Clavet et al. 2005, Algorithm 6) stops particles as if the body were infinitely heavy
and lets it answer with the mass it has, which creates momentum: it is measured beside the others, and shown, not repaired.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_least, at_most

D = 0.02  # spacing [m]
RHO = 1000.0  # kg/m³
SPEED = 1.0  # of the block [m/s]
OFFSET = np.array([0.0, 0.03, 0.015])  # of the body's centre from the block's path [m]
PUBLISHED = "pvfs, as published"
SOLVERS: dict[str, dict[str, Any]] = {
    "pbf": {"method": "pbf"},
    "pvfs": {"method": "pvfs"},
    PUBLISHED: {"method": "pvfs", "coupling": "explicit"},
    "iisph": {"method": "iisph"},
    "dcpbd": {"method": "dcpbd"},
}


def _scene(cells: int, solver: dict[str, Any]) -> dict[str, Any]:
    edge = cells * D
    away = np.array([edge + 1.5 * D, 0.0, 0.0]) + OFFSET * cells / 8
    block = {"type": "box", "size": (edge,) * 3, "position": (0.0, 0.0, 0.0)}
    box = {"type": "box", "size": (edge,) * 3, "position": tuple(away.tolist())}
    return {
        "spacing": D,
        "gravity": (0.0, 0.0, 0.0),
        "time": {"frames": 10_000, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": solver,
        "material": {"water": {"density": RHO}},
        "fluid": [{"material": "water", "shape": block, "velocity": (SPEED, 0.0, 0.0)}],
        "solid": [{"name": "box", "shape": box, "body": {"density": RHO / 2}}],
    }


def _state(sim: Any, mass: float, inertia: float) -> np.ndarray:
    """(P, L about the origin, kinetic energy) of fluid and body, and the body's twist: SI, 13 numbers."""
    rigid = sim.world.solids.bodies.rigid
    frame = sim.frame()
    x, v = (frame[name].astype(float) for name in ("position", "velocity"))
    m = RHO * D**3
    twist, centre = rigid.twists()[0], rigid.centres()[0]
    body = mass * twist[:3]
    energy = 0.5 * m * (v * v).sum() + 0.5 * body @ twist[:3] + 0.5 * inertia * twist[3:] @ twist[3:]
    turning = m * np.cross(x, v).sum(0) + np.cross(centre, body) + inertia * twist[3:]
    return np.concatenate([m * v.sum(0) + body, turning, [energy], twist])


def _followed(trial: Trial, solver: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and states."""
    cells, frames = (8, 36) if trial.quick else (20, 120)
    edge = cells * D
    mass = RHO / 2 * edge**3
    sim = trial.simulation(_scene(cells, solver))
    states, times = [_state(sim, mass, mass * edge**2 / 6)], [0.0]
    for _ in range(frames):
        sim.advance_frame()
        states.append(_state(sim, mass, mass * edge**2 / 6))
        times.append(sim.time)
    return np.array(times), np.array(states)


def _measure(trial: Trial) -> Outcome:
    checks, curves = [], {}
    for name, solver in SOLVERS.items():
        t, s = _followed(trial, solver)
        whole = np.linalg.norm(s[0, :3])
        made = np.linalg.norm(s[:, :3] - s[0, :3], axis=1) / whole
        # lever: from the path of the block to the body's centre
        lever = np.linalg.norm(OFFSET) * (1 if trial.quick else 20 / 8)
        turned = np.linalg.norm(s[:, 3:6] - s[0, 3:6], axis=1) / (whole * lever)
        energy = s[:, 6] / s[0, 6]
        spin = np.linalg.norm(s[-1, 10:13]) * D * (8 if trial.quick else 20) / SPEED
        curves[name] = (t, made, turned, energy, s[:, 7] / SPEED)
        if name == PUBLISHED:
            checks.append(at_least(f"{name}: linear momentum made, share of the block's", made.max(), 0.01))
            continue
        checks += [
            at_most(f"{name}: linear momentum made or lost, share of the block's", made.max(), 1e-3),
            at_most(f"{name}: angular momentum made or lost, share of impact × lever", turned.max(), 0.01),
            at_most(f"{name}: kinetic energy, highest, share of the start", energy.max(), 1.005),
            at_least(f"{name}: velocity the body gets, share of the block's", s[-1, 7] / SPEED, 0.4),
            at_least(f"{name}: spin the body gets, × edge / the block's velocity", spin, 0.04),
        ]
        if trial.noticed(checks):
            break
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    left = axes(figure, "time [s]", "linear momentum made or lost / block's", (1, 2, 1))
    right = axes(figure, "time [s]", "velocity of the body / block's (—), kinetic energy (- -)", (1, 2, 2))
    colours = (BLUE, ORANGE, RED, GREEN, "#7a5aa6")
    for (name, (t, made, _, energy, speed)), colour in zip(outcome.data["curves"].items(), colours, strict=False):
        left.semilogy(t, np.maximum(made, 1e-9), color=colour, label=name)
        right.plot(t, speed, color=colour, label=name)
        right.plot(t, energy, color=colour, linestyle="--", linewidth=1)
    left.axhline(1e-3, color=GREY, linestyle=":", label="at most")
    left.legend(fontsize=8)


def _published(scene: dict[str, Any], number: int) -> None:
    if scene["solver"]["method"] == "pvfs":
        scene["solver"]["coupling"] = "explicit"


CASE = Case(
    name="body_collision",
    measures="Momentum of a block of fluid and the free body it hits beside its centre",
    source="Newton's third law; Clavet et al. 2005, Algorithm 6, for what the published exchange makes of it",
    measure=_measure,
    mutation=Mutation("PVFS exchanges impulses as published", _published),
    plot=_plot,
)
