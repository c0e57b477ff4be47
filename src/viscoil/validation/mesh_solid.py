"""A mesh file as a vessel: its distances are those of the shape it was made from, and it keeps what is shaken in it."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.solids.mesh_file import load
from viscoil.solids.meshes import mesh
from viscoil.validation.case import Case, Mutation, Outcome, Trial, at_most

SPACING = 0.01
INNER = 6 * SPACING  # radius of the hollow [m]
WALL = 1.0  # thickness of the wall, in spacings
SWING = 0.1  # to and fro [m]
PERIOD = 0.2  # [s]: eased in and out, the vessel is at most 1.5 · 2 · 0.1 m / 0.1 s = 3 m/s fast


def _file(folder: str) -> str:
    """A hollow ball as an STL file: two spheres, the inner one inside out."""
    (v, t), (w, u) = (mesh({"type": "sphere", "radius": r}, 96) for r in (INNER + WALL * SPACING, INNER))
    corners = np.concatenate([v[t], w[u[:, ::-1]]]).astype("<f4")
    rows = np.zeros(len(corners), np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("colour", "<u2")]))
    rows["corners"] = corners
    path = Path(folder) / "hollow_ball.stl"
    path.write_bytes(b"hollow ball".ljust(80) + np.uint32(len(rows)).tobytes() + rows.tobytes())
    return str(path)


def _scene(file: str, frames: int) -> dict[str, Any]:
    swings = np.arange(int(np.ceil(frames / 60 / (PERIOD / 2))) + 1)
    return {
        "spacing": SPACING,
        "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "pbf"},
        "fluid": [{"shape": {"type": "sphere", "radius": 0.8 * INNER}, "material": "water"}],
        "solid": [{
            "name": "vessel",
            "shape": {"type": "mesh", "file": file},
            "motion": [{"time": float(k) * PERIOD / 2, "position": (0.0, 0.0, 2 * SWING * (int(k) % 2))} for k in swings],
        }],
    }  # fmt: skip


def _exact(x: np.ndarray) -> np.ndarray:
    half = WALL * SPACING / 2
    return np.abs(np.linalg.norm(x, axis=1) - INNER - half) - half


def _measure(trial: Trial) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        file = _file(folder)
        sim = trial.simulation(_scene(file, 30 if trial.quick else 300))
        world = sim.world
        rng = np.random.default_rng(0)
        x = rng.normal(size=(20_000, 3))
        x *= (rng.uniform(0, 3 * INNER, (len(x), 1)) / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
        phi, exact = world.solids.distance(0, x), _exact(x)
        cell = float(world.solids.parts.size.to_numpy()[3])
        # In the middle of the wall distances have a ridge, which no grid carries.
        seen = (exact < SPACING + world.support) & (exact > -0.2 * SPACING)
        farthest, number, speed, last = [], sim.particles, 0.0, sim.frame()
        for last in sim.frames():
            place = np.asarray(last.solids[0]["pose"])[:3, 3]
            farthest.append(np.linalg.norm(last["position"] - place, axis=1).max() if len(last) else 0.0)
            speed = max(speed, float(np.linalg.norm(last["velocity"], axis=1).max()))
        outside = int((np.linalg.norm(last["position"] - place, axis=1) > INNER).sum()) + number - len(last)
        triangles = len(load(file).triangles)
    checks = [
        at_most("largest error of a distance a particle asks for, in cells", np.abs(phi - exact)[seen].max() / cell, 0.1),
        at_most("largest overestimate of distances farther away, in cells", (phi - exact)[exact > SPACING].max() / cell, 0.1),
        at_most("particles that left the shaken vessel", outside, 0),
        at_most("farthest particle from the vessel's middle, in inner radii", max(farthest) / INNER, 1.0),
    ]
    curves = {"distance": exact, "error": (phi - exact) / cell, "farthest": np.array(farthest) / INNER, "speed": speed}
    return Outcome(checks, {**curves, "triangles": triangles, "cell": cell})


def _plot(outcome: Outcome, figure: Any) -> None:
    from viscoil.validation.drawing import BLUE, GREY, axes

    d = outcome.data
    left = axes(figure, "distance [mm]", "error of the mesh's distance [cells]", (1, 2, 1))
    near = d["distance"] < 5 * SPACING
    left.plot(1000 * d["distance"][near], d["error"][near], ".", color=BLUE, ms=2)
    left.axvline(0, color=GREY)
    left.set_title(f"{d['triangles']} triangles, a cell is {1000 * d['cell']:.2g} mm", fontsize=9)
    right = axes(figure, "frame", "farthest particle [inner radii]", (1, 2, 2))
    right.plot(d["farthest"], color=BLUE)
    right.axhline(1, color=GREY)
    right.set_title(f"shaken at 3 m/s, particles up to {d['speed']:.2g} m/s", fontsize=9)


def _swollen(scene: dict[str, Any], number: int) -> None:
    scene["solid"][0]["shape"]["scale"] = 1.05


CASE = Case(
    name="mesh_solid",
    measures="Distances of a mesh file against those of the balls it was made from, and whether it holds water",
    source="closed form of the distance to a hollow ball; walls do not leak",
    measure=_measure,
    mutation=Mutation("the mesh five per cent too large", _swollen),
    plot=_plot,
)
