"""What is compared: a block of fluid, described once and told to every simulator in its own words.

All get the same particles at the same places, the same walls, gravity and span of time. Between the block and the walls one
spacing is left free: how far from a wall fluid rests is each one's own affair, and nobody should start compressed. How walls
act is each one's own, too: SPlisHSPlasH has its default (volume maps, Bender et al. 2019), or boundary particles (Akinci et
al. 2012) where a case asks for them.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

GRAVITY = 9.81  # [m/s²], down y
DENSITY = 1000.0  # [kg/m³]
GAP = 1.0  # spacings between the block and walls
VOLUME_MAPS, BOUNDARY_PARTICLES = 2, 0  # SPlisHSPlasH's boundaryHandlingMethod
METHODS = {"PBF": 2, "IISPH": 3, "DFSPH": 4}  # its simulationMethod


@dataclass(frozen=True)
class Case:
    """A block of fluid in a box, or on a floor."""

    name: str
    title: str
    edges: tuple[int, int, int]  # particles along x, y, z
    spacing: float  # [m]
    box: tuple[float, float, float] | None  # inner size [m], from the origin on; None: a floor at y = 0
    viscosity: float  # kinematic [m²/s]
    seconds: float  # simulated
    turn: float  # [s] simulated before the others have their turn
    samples: bool = False  # walls of particles, for all

    @property
    def particles(self) -> int:
        """Of the fluid."""
        return int(np.prod(self.edges))

    @property
    def size(self) -> tuple[float, float, float]:
        """Of the block [m]."""
        x, y, z = (self.spacing * edge for edge in self.edges)
        return x, y, z

    @property
    def corner(self) -> tuple[float, float, float]:
        """Lowest corner of the block [m]."""
        gap = GAP * self.spacing
        if self.box is None:
            return -self.size[0] / 2, gap, -self.size[2] / 2
        return gap, gap, gap

    def positions(self) -> np.ndarray:
        """Where particles begin (n, 3) [m]."""
        axes = [(np.arange(n) + 0.5) * self.spacing + low for n, low in zip(self.edges, self.corner, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)


def dam_break(name: str, title: str, edges: tuple[int, int, int], spacing: float, seconds: float, **more: Any) -> Case:
    """A column at one end of a box three times as long."""
    x, y, z = (spacing * edge for edge in edges)
    gaps = 2 * GAP * spacing
    return Case(name, title, edges, spacing, (3 * x, 1.25 * y, z + gaps), 0.0, seconds, seconds / 10, **more)


DAM = dam_break("dam", "dam break", (40, 64, 40), 0.02, 0.5)
CUBE = Case("cube", "viscous cube", (32, 32, 32), 0.01, None, 0.5, 1.0, 0.1)
BASIN = dam_break("iisph", "dam break between boundary particles", (20, 42, 20), 0.02, 0.5, samples=True)
COLUMN = dam_break("column", "small dam break", (20, 50, 20), 0.02, 0.5)
CASES = {case.name: case for case in (DAM, CUBE, BASIN, COLUMN)}


def smaller(case: Case) -> Case:
    """The same at a fortieth of the particles and a few steps only: to see that everything works."""
    edges = (max(3, case.edges[0] // 4), max(3, case.edges[1] // 4), max(3, case.edges[2] // 3))
    if case.box is None:
        return replace(case, edges=edges, seconds=0.05, turn=0.025)
    return replace(dam_break(case.name, case.title, edges, case.spacing, 0.05, samples=case.samples), turn=0.025)


# --- ours ------------------------------------------------------------------------------------------------------------------
def ours(case: Case, solver: dict[str, Any], time: dict[str, Any]) -> Any:
    """The case as a scene of ours, one frame per turn. ``solver`` and ``time`` as in scene files."""
    from viscoil.scene.schema import Scene

    size = case.size
    middle = [low + edge / 2 for low, edge in zip(case.corner, size, strict=True)]
    material: dict[str, Any] = {"density": DENSITY, "viscosity": case.viscosity * DENSITY} if case.viscosity else {}
    solid: dict[str, Any] = {"name": "walls"}
    if case.box is None:
        solid |= {"friction": "no-slip", "shape": {"type": "plane"}}
    else:
        solid |= {"container": True, "shape": {"type": "box", "size": case.box, "position": [a / 2 for a in case.box]}}
    if case.samples:
        solid["boundary"] = "particles"
    return Scene(
        title=case.title,
        spacing=case.spacing,
        gravity=(0.0, -GRAVITY, 0.0),
        time={"frame_time": case.turn, **time} | ({"step": min(time["step"], case.turn)} if "step" in time else {}),
        solver=solver,
        material={"paste": material} if material else {},
        fluid=[{"material": "paste" if material else "water", "shape": {"type": "box", "size": size, "position": middle}}],
        solid=[solid],
        output={"volume": "none"},
    )


# --- theirs ----------------------------------------------------------------------------------------------------------------
def splish(case: Case, method: str, **more: Any) -> dict[str, Any]:
    """The case as a scene of SPlisHSPlasH ≥ 2.16 (method-specific keys sit in blocks; flat ones are ignored silently).

    ``more``: "step" [s] fixed (else its CFL rule with the factor 1 and at most 5 ms), "settings" the method's block,
    "viscous" more of the block of its implicit viscosity.
    """
    step = more.get("step")
    spacing = case.spacing
    box = case.box
    if box is None:  # a slab under the fluid, four times as wide
        across, thick = 4 * case.size[0], 10 * spacing
        scale, centre = [across, thick, across], [0.0, -thick / 2, 0.0]
    else:
        scale, centre = list(box), [a / 2 for a in box]
    body = {
        "geometryFile": "box.obj", "translation": centre, "rotationAxis": [1, 0, 0], "rotationAngle": 0.0, "scale": scale,
        "isDynamic": False, "isWall": box is not None, "mapInvert": box is not None, "mapThickness": 0.0,
        "mapResolution": [max(10, round(edge / (2 * spacing))) for edge in scale], "samplingMode": 1,
    }  # fmt: skip
    # Its sampler leaves out half a spacing on every side and one more at the end.
    start = [low - spacing / 2 for low in case.corner]
    end = [a + (n + 1) * spacing for a, n in zip(start, case.edges, strict=True)]
    material: dict[str, Any] = {"id": "Fluid", "density0": DENSITY}
    if case.viscosity:
        nu = {"viscosity": case.viscosity, "viscosityBoundary": case.viscosity}
        material |= {"viscosityMethod": 6, "Weiler et al. 2018": nu | more.get("viscous", {})}
    else:  # what its own dam break has
        material |= {"viscosityMethod": 1, "Standard viscosity": {"viscosity": 0.01, "viscosityBoundary": 0.0}}
    return {
        "Configuration": {
            "particleRadius": spacing / 2, "simulationMethod": METHODS[method], "gravitation": [0.0, -GRAVITY, 0.0],
            "timeStepSize": step or 0.001, "cflMethod": 0 if step else 1, "cflFactor": 1, "cflMaxTimeStepSize": 0.005,
            "boundaryHandlingMethod": BOUNDARY_PARTICLES if case.samples else VOLUME_MAPS,
            method: more.get("settings", {}),
        },
        "Materials": [material],
        "RigidBodies": [body],
        "FluidBlocks": [{"denseMode": 0, "start": start, "end": end, "translation": [0, 0, 0], "scale": [1, 1, 1]}],
    }  # fmt: skip


def write_splish(case: Case, method: str, folder: Path, **more: Any) -> Path:
    """Scene file and the box it needs, in ``folder``; volume maps are kept in a folder beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "box.obj").write_text(unit_box())
    file = folder / f"{case.name}_{method.lower()}.json"
    file.write_text(json.dumps(splish(case, method, **more), indent=1))
    return file


def write_genesis(case: Case, method: str, folder: Path, **more: Any) -> Path:
    """The case in numbers, for peers_genesis.py. ``more``: "step" [s], "substeps", "iterations"."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {"spacing": case.spacing, "corner": case.corner, "size": case.size, "box": case.box, "method": method}
    file = folder / f"{case.name}_{method.lower()}.json"
    file.write_text(json.dumps(told | more, indent=1))
    return file


def unit_box() -> str:
    """A cube of edge 1 around the origin, triangles counter-clockwise from outside, as OBJ."""
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    for a, b, c, d in faces:
        lines += [f"f {a} {b} {c}", f"f {a} {c} {d}"]
    return "\n".join(lines) + "\n"
