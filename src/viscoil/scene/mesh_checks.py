"""Looks at the shapes of a scene before and after it is built: broken files, wrong units, walls that are too thin."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.model import Problem
from viscoil.scene.shapes import Mesh, Plane

ODD = 100.0  # times as long as everything else in the scene: the file's unit is not what the scene says
LONGEST = 3000.0  # spacings: nothing that is filled or walled with particles is longer


def meshes(scene: Any, solids: list[Any]) -> Iterator[tuple[str, Any, Mesh]]:
    """(where, the fluid, emitter, sink or solid, its mesh) for every mesh of a scene, also those within unions."""
    fluids = ("fluid", scene.fluid), ("particle_solid", scene.particle_solid)
    for kind, things in (*fluids, ("emitter", scene.emitter), ("sink", scene.sink), ("solid", solids)):
        for number, thing in enumerate(things):
            for shape in _primitives(thing.shape):
                if isinstance(shape, Mesh):
                    yield f"{kind}.{number}", thing, shape


def _primitives(shape: Any) -> Iterator[Any]:
    parts = getattr(shape, "parts", None)
    if parts is None:
        yield shape
    else:
        for part in parts:
            yield from _primitives(part)


def mesh_problems(scene: Any) -> list[Problem]:
    """One sentence about every mesh of a scene that cannot be what its author meant. Reads files, runs no kernels."""
    found: dict[str, Problem] = {}
    for where, thing, shape in meshes(scene, scene.solid):
        key, text = f"{where}.shape", None
        try:
            loaded = shape.loaded()
        except SceneError as error:
            key, text = f"{key}.file", str(error)
        else:
            problem = _scale(scene, shape) or (_cut(thing.shape, loaded) if where.startswith("emitter") else None)
            text = f"mesh file '{shape.file}' {problem}" if problem else None
        if text:
            found.setdefault(key, Problem(key, text, "a closed triangle mesh of the right size"))
    return list(found.values())


def _named(where: str, thing: Any) -> str:
    name = getattr(thing, "name", "")
    return f'{where} ("{name}")' if name else where


def _scale(scene: Any, shape: Mesh) -> str | None:
    """What is wrong with the unit of a mesh."""
    length, spacing = max(shape.extent()), scene.spacing
    others = [max(other.extent()) for other in _others(scene)]
    size = f"is {length:.3g} m long at scale = {shape.scale:g}"
    if length < spacing:
        factor = _nicer(length, 1000.0, others, spacing)
        hint = f"try scale = {factor * shape.scale:g}" if factor else "expected a larger scale or a smaller spacing"
        return f"{size}, shorter than one particle spacing ({spacing:g} m); is it written in another unit? {hint}"
    usual = max(others) if others else LONGEST / ODD * spacing
    if length > ODD * usual and length > LONGEST / 10 * spacing:
        beside = f"{length / usual:.0f} times as long as anything else in the scene" if others else (
            f"{length / spacing:.0f} particle spacings")  # fmt: skip
        factor = _nicer(length, 0.001, others, spacing)
        unit = " (from millimetres)" if factor and abs(factor * shape.scale / 0.001 - 1) < 1e-9 else ""
        hint = f"try scale = {factor * shape.scale:g}{unit}" if factor else "expected a smaller scale"
        return f"{size}, {beside}; is it written in another unit? {hint}"
    return None


def _others(scene: Any) -> Iterator[Any]:
    """What is not a mesh and has an end."""
    for kind in ("fluid", "emitter", "solid"):
        for thing in getattr(scene, kind):
            for shape in _primitives(thing.shape):
                if not isinstance(shape, (Mesh, Plane)):
                    yield shape


def _nicer(length: float, factor: float, others: list[float], spacing: float) -> float | None:
    """``factor`` if it makes a mesh of ``length`` [m] fit the rest of the scene."""
    usual = max(others) if others else 50 * spacing
    return factor if usual / ODD < length * factor < ODD * usual and length * factor > spacing else None


def _cut(shape: Any, loaded: Any) -> str | None:
    """Of an emitter: whether its mesh is cut by y = 0 at all."""
    if not isinstance(shape, Mesh) or any(shape.rotation):
        return None
    low, high = (float(corner[1]) + shape.position[1] for corner in (loaded.low, loaded.high))
    if low < 0 < high:
        return None
    return (f"has no cross section at y = 0, where an emitter's opening is cut: it reaches from y = {low:.3g} to {high:.3g} m; "
            "expected a shape.position that moves it across 0")  # fmt: skip


def mesh_notes(scene: Any, support: float) -> list[str]:
    """What the user should know about the meshes of a scene with this ``support`` radius [m]; makes their grids."""
    from viscoil.solids.mesh_grid import grid_of
    from viscoil.solids.mesh_tree import tree_of

    notes: list[str] = []
    for where, thing, shape in meshes(scene, scene.every_solid()):
        loaded, name = shape.loaded(), f"{_named(where, thing)}: mesh file '{shape.file}'"
        notes += [f"{_named(where, thing)}: {note}" for note in loaded.notes]
        if where.startswith("solid"):  # also those of robots, which count on
            grid = grid_of(shape.file, shape.scale, scene.spacing, support, thing.stick_distance)
            crossings = grid.crossings
            notes += [f"{name} {text}" for text in _about_grid(grid, thing.container, scene.spacing)]
        else:
            crossings = tree_of(loaded).crossings()
        if crossings:
            notes.append(
                f"{name} cuts itself ({crossings} edges run through triangles): what it winds around at least once is taken as "
                "its inside. Where its own surface lies inside it, distances end there; joined into one surface (boolean "
                "union) it has none"
            )
    return list(dict.fromkeys(notes))


def _about_grid(grid: Any, container: bool, spacing: float) -> list[str]:
    """Notes on walls that are too thin and grids that are too coarse."""
    notes = []
    if grid.cell > 1.01 * min(grid.wanted, spacing / 2):
        notes.append(
            f"is large: its distances are kept every {grid.cell:.3g} m instead of every {grid.wanted:.3g} m to spare memory "
            f"({grid.phi.size / 1e6:.0f} million nodes); edges are rounded by about a third of that"
        )
    if container or not np.isfinite(grid.thickness):
        return notes
    if grid.thickness < 2 * grid.cell:
        notes.append(
            f"has walls {grid.thickness:.3g} m thin, less than two cells of its distances ({2 * grid.cell:.3g} m): fluid can "
            "leak through them. Expected thicker walls, or the mesh in smaller pieces"
        )
    elif grid.thickness < spacing:
        notes.append(f"has a wall {_thin(grid.thickness, spacing)}")
    return notes


def _thin(thickness: float, spacing: float) -> str:
    """What is to be said about a solid that thin [m]."""
    return (
        f"{thickness:.3g} m thin, less than one particle spacing ({spacing:g} m): it holds, but particles on both sides see "
        f"each other, so fluid on one side presses on, drags or holds that on the other. Expected a spacing of at most "
        f"{thickness:.2g} m or a thicker one"
    )


def thin_notes(scene: Any) -> list[str]:
    """A note on every solid drawn thinner than a spacing; on its own meshes see :func:`mesh_notes`, which measures walls.

    Of the parts of figures and robots, which may be many, on the thinnest."""
    found = []
    for number, solid in enumerate(scene.every_solid()):
        shapes = () if solid.container else _primitives(solid.shape)  # outside of a container there is no end to the solid
        thickness = min((shape.thinnest() for shape in shapes if not isinstance(shape, Mesh)), default=np.inf)
        if thickness * (1 + 1e-9) < scene.spacing:
            found.append((number >= len(scene.solid), thickness, _named(f"solid.{number}", solid)))
    drawn = [(thickness, name) for made, thickness, name in found if not made]
    made = sorted((thickness, name) for made, thickness, name in found if made)[:1]
    return [f"{name} is {_thin(thickness, scene.spacing)}" for thickness, name in drawn + made]
