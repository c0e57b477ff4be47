"""Boxes of several densities in a tank, in every solver: how deep they float (Archimedes), and that heavy ones sink.

A free body at rest displaces its own weight of fluid, so the share of a box below the level is its density over the fluid's.
Particles know that to about the size of one over that of the box: fluid keeps half a spacing off bodies and arranges itself
along them. PVFS has three more such effects. Its fluid has surface tension, γ/(ρgd²) ≈ 0.02 (depth/d)/compressibility, and wets
nothing by itself, so that menisci carry a box of width L by 4γ/(ρgLH) of its height H; its walls add nothing to densities, so
that fluid under pressure crowds along them and bodies displace less; and under its weight it is denser than it should be.
The first two fall with 1/L, hence its boxes are wider here, and they are wetted a little; a support of 2.8 spacings makes up
for the third.
"""

from typing import Any

import numpy as np

from viscoil.validation.case import Case, Check, Mutation, Outcome, Trial, at_least, at_most

D = 0.02  # spacing [m]
RHO = 1000.0  # kg/m³
FRAME = 1 / 30  # s
# Steps per frame (at least), size of a box [h] and what else is set.
SOLVERS: dict[str, tuple[int, tuple[float, float, float], dict[str, Any]]] = {
    "pbf": (4, (3.9, 3.05, 3.9), {}),
    "pvfs": (1, (5.7, 3.05, 5.7), {"support": 2.8, "compressibility": 0.12}),
    "iisph": (10, (3.9, 3.05, 3.9), {}),
    "dcpbd": (8, (3.9, 3.05, 3.9), {"iterations": 12}),
}
WETTED = {"stick_distance": 0.8 * D, "stick_stiffness": 3000.0}  # of PVFS's boxes [m, 1/s²]: water half clings to them
SUPPORTS = {"pbf": 2.5, "pvfs": 2.8, "iisph": 2.0, "dcpbd": 2.5}  # h [spacings]
DENSITIES = (0.3, 0.6, 0.9, 1.5, 3.0)  # in the fluid's
QUICK = (0.6, 1.5)
RIM = 2.0  # columns closer than this to a wall or a body do not tell the level [spacings]


def _scene(method: str, densities: tuple[float, ...], scale: float) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """(scene, size of the tank, size of a box [m]). Those that float begin somewhat too high, those that sink half out."""
    steps, size, more = SOLVERS[method]
    box = np.array(size) * SUPPORTS[method] * scale * D
    gap, depth = 5 * scale * D, D * np.ceil(1.5 * box[1] / D)
    tank = np.array([len(densities) * (box[0] + gap) + gap, depth + 1.5 * box[1], box[2] + 2 * gap])
    tank = D * np.ceil(tank / D - 1e-6)  # whole layers of particles
    solids: list[Any] = [
        {"name": "tank", "container": True, "shape": {"type": "box", "size": tuple(tank), "position": (0.0, tank[1] / 2, 0.0)}}
    ]
    for number, density in enumerate(densities):
        x = (number - (len(densities) - 1) / 2) * (box[0] + gap)
        y = depth + box[1] * (0.5 - 0.9 * density if density < 1 else 0.0)
        shape = {"type": "box", "size": tuple(box), "position": (x, y, 0.0)}
        wetted = {**WETTED, "stick_stiffness": scale * WETTED["stick_stiffness"]} if method == "pvfs" else {}
        solids.append({"name": f"box {density:g}", "shape": shape, "body": {"density": RHO * density}, **wetted})
    water = {"type": "box", "size": (tank[0], depth, tank[2]), "position": (0.0, depth / 2, 0.0)}
    table = {
        "spacing": D,
        "time": {"frames": 10_000, "frame_time": FRAME, "steps_per_frame": steps},
        "solver": {"method": method, "support": SUPPORTS[method], **more},
        "material": {"water": {"density": RHO}},
        "fluid": [{"material": "water", "shape": water}],
        "solid": solids,
    }
    return table, tank, box


def level(x: np.ndarray, tank: np.ndarray, centres: np.ndarray, reach: float) -> float:
    """Height of the surface [m]: median top of columns away from walls and bodies (``reach`` about their centres).

    The highest particle of a column of 1.5 spacings, and half a spacing.
    """
    cell = 1.5 * D
    place = np.floor((x[:, [0, 2]] + tank[[0, 2]] / 2) / cell).astype(int)
    shape = np.ceil(tank[[0, 2]] / cell).astype(int) + 1
    top = np.full(shape, np.nan)
    np.fmax.at(top, tuple(np.clip(place, 0, shape - 1).T), x[:, 1])
    middle = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) * cell for n in shape], indexing="ij"), -1) - tank[[0, 2]] / 2
    far = (np.abs(middle) < tank[[0, 2]] / 2 - RIM * D).all(-1)
    for centre in centres:
        far &= np.abs(middle - centre[[0, 2]]).max(-1) > reach + RIM * D
    return float(np.nanmedian(top[far])) + 0.5 * D


def _floated(trial: Trial, name: str) -> dict[str, Any]:
    """Share of every box below the level and height of its lowest point [spacings], over time."""
    densities, scale, seconds = (QUICK, 1.0, 1.2) if trial.quick else (DENSITIES, 2.0, 4.0)
    table, tank, box = _scene(name, densities, scale)
    sim = trial.simulation(table)
    rigid = sim.world.solids.bodies.rigid
    cuts = [(np.arange(n) + 0.5) / n - 0.5 for n in (8, 64, 8)]
    points = np.stack(np.meshgrid(*cuts, indexing="ij"), -1).reshape(-1, 3) * box
    times, shares, lowest = [], [], []
    for _ in range(round(seconds / FRAME)):
        sim.advance_frame()
        rotation, position = rigid.poses()
        heights = np.einsum("bj,pj->bp", rotation[:, 1], points) + position[:, 1:2]
        surface = level(sim.frame()["position"].astype(float), tank, position, box[0] / 2)
        times.append(sim.time)
        shares.append((heights < surface).mean(1))
        lowest.append(heights.min(1) / D)
    return {"time": np.array(times), "share": np.array(shares), "lowest": np.array(lowest), "densities": densities}


def _measure(trial: Trial) -> Outcome:
    checks, curves = [], {}
    for name in SOLVERS:
        found = curves[name] = _floated(trial, name)
        end = found["time"] > 0.7 * found["time"][-1]
        for number, density in enumerate(found["densities"]):
            share = float(found["share"][end, number].mean())
            label = f"{name}: box of {density:g} times the fluid's density"
            if density < 1:
                checks.append(Check(f"{label}, share below the level", share, density, 0.1))
                continue
            checks += [
                at_least(f"{label}, share below the level", share, 0.99),
                at_most(f"{label}, lowest point above the floor [spacings]", found["lowest"][-1, number], 3.0),
            ]
        if trial.noticed(checks):
            break
    return Outcome(checks, {"curves": curves})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREEN, GREY, ORANGE, RED, axes

    curves = outcome.data["curves"]
    for place, (name, found) in enumerate(curves.items(), 1):
        picture = axes(figure, "time [s]", "share below the level", (1, len(curves), place))
        picture.set_title(name, fontsize=9)
        picture.set_ylim(-0.03, 1.05)
        colours = (BLUE, GREEN, ORANGE, RED, "#7a5aa6")
        for number, (density, colour) in enumerate(zip(found["densities"], colours, strict=False)):
            picture.plot(found["time"], found["share"][:, number], color=colour, label=f"{density:g}")
            picture.axhline(min(density, 1.0), color=GREY if density < 1 else "none", linestyle=":", linewidth=1)
        picture.legend(fontsize=7, title="density", title_fontsize=7)


def _heavier(scene: dict[str, Any], number: int) -> None:
    for solid in scene["solid"]:
        if "body" in solid:
            solid["body"]["density"] *= 1.5


CASE = Case(
    name="floating",
    measures="Share of floating boxes below the level, by density, and boxes that sink",
    source="Archimedes: a floating body displaces its weight",
    measure=_measure,
    mutation=Mutation("bodies half as heavy again", _heavier),
    plot=_plot,
)
