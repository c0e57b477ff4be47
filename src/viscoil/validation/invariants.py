"""What must hold whatever the material: Newton's laws, and a conformation tensor that is carried and forgets as it should.

Two kinds of runs. Free blocks move by themselves. In *led* flows every step starts from the same lattice, with velocities
written into the particles that take it where the flow dx/dt = L x would within the step, so that only the conformation lives
on: the flow is homogeneous, and Q is known exactly (upper-convected Maxwell, Q(0) = I, Wi = λγ̇ or λε̇):

    shear       Q_xy = Wi(1 − e^(−t/λ)),   Q_xx = 1 + 2Wi²[1 − e^(−t/λ)(1 + t/λ)]
    extension   Q_xx = [1 − 2Wi e^(−(1−2Wi)t/λ)]/(1 − 2Wi),   Q_yy = [1 + Wi e^(−(1+Wi)t/λ)]/(1 + Wi)
    rotation    Q = R Q₀ Rᵀ without relaxation

Led material is so soft (10⁻³ Pa) that its stress changes no velocity.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_most

SPACING = 0.02
SOFT = 1e-3  # Pa
LAM = 0.5  # s
SHEAR, EXTENSION = 3.0, 0.6  # 1/s
DURATION = 0.7  # s
G = 9.81


def _scene(cells: int, material: dict[str, Any], step: float, **more: Any) -> dict[str, Any]:
    return {
        "spacing": SPACING,
        "gravity": (0, 0, 0),
        "time": {"frames": 1000, "frame_time": step, "steps_per_frame": 1},
        "solver": {"method": "dcpbd"},
        "material": {"m": {"density": 1000.0, **material}},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": (cells * SPACING,) * 3}}],
        **more,
    }


def _displacement(gradient: np.ndarray, step: float) -> np.ndarray:
    """(e^(ΔtL) − 1)/Δt [1/s]: the velocities that lead to where the flow does; ΔtL is small, so a series is enough."""
    term, total = gradient.copy(), gradient.copy()
    for k in range(2, 8):
        term = term @ gradient * (step / k)
        total += term
    return total


def led(sim: Any, gradient: np.ndarray, steps: int, drift: np.ndarray | None = None, start: Any = None) -> np.ndarray:
    """Q of all particles after each step of the flow L x + drift, (steps, particles, 3, 3) in order of birth."""
    world = sim.world
    order = np.argsort(world.get("id"))
    home = world.get("position")[order]
    turn = _displacement(gradient, sim.scene.time.frame_time)
    velocity = (home.astype(float) @ turn.T + (0 if drift is None else drift)).astype(np.float32)
    if start is not None:
        world.set("conformation", np.broadcast_to(np.asarray(start, np.float32), (world.count, 3, 3)).copy())
    result = []
    for _ in range(steps):
        now = world.get("id")
        world.set("position", home[now])
        world.set("velocity", velocity[now])
        sim.advance_frame()
        result.append(world.get("conformation")[np.argsort(world.get("id"))])
    world.set("position", home[world.get("id")])
    return np.array(result, float)


def _spin(rate: float) -> np.ndarray:
    return np.array([[0, -rate, 0], [rate, 0, 0], [0, 0, 0.0]])


def _gradients(trial: Trial) -> list[Check]:
    """What one step makes of Q = I when all particles move alike, and when they turn about an axis."""
    step, rate, drift = 1e-3, 100.0, np.array([1.0, -2.0, 0.5])
    sim = trial.simulation(_scene(6, {"modulus": SOFT}, step))
    strain = [0.5 * (q + q.swapaxes(-1, -2)) - np.eye(3) for q in (
        led(sim, np.zeros((3, 3)), 1, drift)[-1],
        led(sim, _spin(rate), 1, start=np.eye(3))[-1],
    )]  # fmt: skip
    # A rotation leaves F Fᵀ = I + (a multiple of (ωΔt)² in the plane): what is none of that is a wrong gradient.
    plane = np.diag([1.0, 1, 0])
    second = strain[1] - plane * (strain[1][:, :1, :1] + strain[1][:, 1:2, 1:2]) / 2
    return [
        at_most(
            "velocity gradient of a translation u, in u/d",
            np.abs(strain[0]).max() / (np.linalg.norm(drift) * step / SPACING),
            1e-5,
        ),
        at_most("strain rate of a rotation ω (corrected gradients), in ω", np.abs(second).max() / (rate * step), 1e-5),
    ]


def _forms(trial: Trial, steps: int) -> tuple[list[Check], dict[str, Any]]:
    """Q in led shear, extension and rotation."""
    t = np.arange(1, steps + 1) * DURATION / steps
    fluid = {"viscosity": SOFT * LAM, "relaxation_time": LAM}
    wi, we = LAM * SHEAR, LAM * EXTENSION
    shear = np.zeros((3, 3))
    shear[0, 1] = SHEAR
    q = led(trial.simulation(_scene(5, fluid, DURATION / steps)), shear, steps)
    p = led(trial.simulation(_scene(5, fluid, DURATION / steps)), EXTENSION * np.diag([1, -0.5, -0.5]), steps)
    fade = np.exp(-t / LAM)
    curves = {
        "shear: Q_xy": (t, q[..., 0, 1], wi * (1 - fade)),
        "shear: Q_xx": (t, q[..., 0, 0], 1 + 2 * wi**2 * (1 - fade * (1 + t / LAM))),
        "extension: Q_xx": (t, p[..., 0, 0], (1 - 2 * we * np.exp(-(1 - 2 * we) * t / LAM)) / (1 - 2 * we)),
        "extension: Q_yy": (t, p[..., 1, 1], (1 + we * np.exp(-(1 + we) * t / LAM)) / (1 + we)),
    }
    checks = [
        at_most(f"{name}, largest error, share of the exact value at the end", np.abs(m - e[:, None]).max() / e[-1], 0.02)
        for name, (_, m, e) in curves.items()
    ]
    long = np.diag([2.0, 1, 1])
    rest = trial.simulation(_scene(5, {"modulus": SOFT}, DURATION / steps))
    turned = led(rest, _spin(np.pi / 4 / DURATION), steps, start=long)[-1]
    still = led(rest, _spin(np.pi / 4 / DURATION), steps, start=np.eye(3))[-1]
    r = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    checks += [
        at_most("Q₀ = diag(2, 1, 1) turned by 45°: distance to R Q₀ Rᵀ", np.abs(turned - r @ long @ r.T).max(), 0.02),
        at_most("Q₀ = I turned by 45°: distance to I", np.abs(still - np.eye(3)).max(), 0.02),
    ]
    return checks, curves


def _free(trial: Trial, steps: int) -> tuple[list[Check], np.ndarray]:
    """A shaken elastic block falls with g, and a shaken block of either kind keeps its momentum."""
    step = 1 / 240
    checks = []
    rng = np.random.default_rng(2)
    for name, material in (("elastic", {"modulus": 1e4}), ("viscoelastic", {"viscosity": 100.0, "relaxation_time": 0.1})):
        fall = np.array([0.0, -G, 0.0]) if name == "elastic" else np.zeros(3)
        sim = trial.simulation(_scene(7, material, step, gravity=tuple(fall)))
        state = sim.state()
        shaken = 0.3 * rng.uniform(-1, 1, state["particles/velocity"].shape) + (0.2, 0.1, -0.1)
        state["particles/velocity"] = shaken.astype(np.float32)
        sim.restore(state)
        frames = [sim.frame()]
        for _ in range(steps):
            sim.advance_frame()
            frames.append(sim.frame())
        t = np.array([f.time for f in frames])
        mean = np.array([f["velocity"].astype(float).mean(0) for f in frames])
        moving = np.array([np.linalg.norm(f["velocity"], axis=1).mean() for f in frames])  # fast ones are rounded more
        change = np.linalg.norm(mean - mean[0] - t[:, None] * fall, axis=1) / np.maximum(moving, moving[0])
        if name == "elastic":
            height = np.array([f["position"][:, 1].astype(float).mean() for f in frames])
            falling = np.stack([t, height], 1)
            checks.append(Check("elastic: acceleration of the centre [m/s²]", 2 * np.polyfit(t, height, 2)[0], -G, 0.01 * G))
        checks.append(at_most(f"{name}: momentum gained besides Σ m g t, in Σ m|v|", change.max(), 1e-5))
    return checks, falling


def _measure(trial: Trial) -> Outcome:
    forms, curves = _forms(trial, 140 if trial.quick else 280)
    free, falling = _free(trial, 48 if trial.quick else 120)
    return Outcome([*free, *_gradients(trial), *forms], {"curves": curves, "fall": falling})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    left = axes(figure, "time [s]", "Q", (1, 2, 1))
    for (name, (t, measured, exact)), colour in zip(outcome.data["curves"].items(), (BLUE, ORANGE, RED, GREEN), strict=True):
        left.plot(t, exact, color=colour, label=name)
        every = slice(None, None, max(len(t) // 14, 1))
        left.plot(t[every], measured[every].mean(1), "o", color=colour, ms=3)
    left.legend(fontsize=8, title="lines: exact", title_fontsize=8)
    t, height = outcome.data["fall"].T
    right = axes(figure, "time [s]", "height of the shaken elastic block [m]", (1, 2, 2))
    pull = -0.5 * G * t * (t + t[1])  # symplectic Euler
    right.plot(t, height[0] + (height[-1] - height[0] - pull[-1]) / t[-1] * t + pull, color=GREY, label="parabola")
    right.plot(t, height, "o", color=BLUE, ms=3, label="centre of mass")
    right.legend(fontsize=8)


def _slow(scene: dict[str, Any], number: int) -> None:
    if "relaxation_time" in scene["material"]["m"]:
        scene["material"]["m"]["relaxation_time"] *= 1.1


CASE = Case(
    name="invariants",
    measures="Momentum, free fall, rigid motion, and Q in shear, extension and rotation",
    source="Newton's laws; upper-convected Maxwell fluid in homogeneous flows, closed form (Bird, Armstrong & Hassager 1987)",
    measure=_measure,
    mutation=Mutation("relaxation time 10 % too long", _slow),
    plot=_plot,
)
