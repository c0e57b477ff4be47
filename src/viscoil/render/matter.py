"""What fluids are made of, for Mitsuba: a Look becomes a surface and, for clear fluids, what fills it.

Fluids that are in one picture are drawn as at most two surfaces: everything clear, and everything that is not. Within each,
colours and roughness vary from vertex to vertex (or from place to place inside), so that there are no seams where materials
meet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.io.frame import Frame
from viscoil.looks import DEFAULT_LOOK, LOOKS, Colour, Look, linear
from viscoil.material import PRESETS
from viscoil.surface.mesh import SurfaceMesh

GREY = (0.7, 0.7, 0.7)
MOST_EVENTS = 60.0  # per picture height: what swallows more than this is black all the same, down to a fifteenth of it
STRAIGHT_ON = 0.999  # anisotropy of scattering; closer to 1, single precision fails
MOST_CELLS = 72  # along the longest edge of the grid that holds the colours inside mixed clear fluids


def looks_of(materials: list[dict[str, Any]], name: str | None = None) -> list[Look]:
    """The look of each material, with its colour: its own one, or the look ``name`` for all.

    A look that is asked for by name brings the colour of the preset of that name, unless that would make different
    materials look the same.
    """
    found = []
    several = len({tuple(material.get("colour") or GREY) for material in materials}) > 1
    for material in materials:
        own = str(material.get("look") or DEFAULT_LOOK)
        look = LOOKS.get(name or own, LOOKS[DEFAULT_LOOK])
        colour = tuple(material.get("colour") or GREY)
        if name and name in PRESETS and name != own and not several:
            colour = PRESETS[name].colour
        found.append(look.coloured((colour[0], colour[1], colour[2])))
    return found or [LOOKS[name or DEFAULT_LOOK].coloured(GREY)]


def bodies(frame: Frame, looks: list[Look]) -> list[tuple[bool, np.ndarray | None]]:
    """What is drawn as one surface each: (is it clear?, its particles or None for all)."""
    clear = np.array([look.kind == "clear" for look in looks])
    which = np.clip(frame["material"], 0, len(looks) - 1) if "material" in frame.names else np.zeros(len(frame), int)
    transparent = clear[which]
    if not len(frame) or transparent.all() or not transparent.any():
        return [(bool(len(frame) and transparent.all()), None)]
    return [(True, np.flatnonzero(transparent)), (False, np.flatnonzero(~transparent))]


def part_of(frame: Frame, rows: np.ndarray | None) -> Frame:
    """The particles ``rows`` of a frame as a frame."""
    if rows is None:
        return frame
    return Frame.from_header(frame.header(), {name: values[rows] for name, values in frame.fields.items()})


# ---- opaque ---------------------------------------------------------------------------------------------------------------


def opaque(look: Look, colour: dict[str, Any] | None = None) -> dict[str, Any]:
    """The surface of milky and matt matter; ``colour``: a texture instead of the look's own colour."""
    return {
        "type": "principled", "base_color": colour or rgb(look.colour or GREY), "roughness": look.roughness,
        "specular": look.sheen, "flatness": look.translucency,
    }


def rgb(colour: Colour) -> dict[str, Any]:
    """An sRGB colour."""
    return {"type": "rgb", "value": [linear(part) for part in colour]}


@dataclass
class Painted:
    """Opaque matter that varies along a surface: the attributes its vertices need, and the surface that reads them."""

    attributes: dict[str, np.ndarray]
    surface: dict[str, Any]


def painted(mesh: SurfaceMesh, looks: list[Look]) -> Painted:
    """Opaque looks on one mesh: colours interpolated between vertices."""
    present = used(mesh, looks)
    if len(present) == 1:
        return Painted({}, opaque(looks[present[0]]))
    which = np.clip(mesh["material"], 0, len(looks) - 1)
    table = np.array([[linear(part) for part in look.colour or GREY] for look in looks], np.float32)
    attributes = {"vertex_paint": _blended(table[which], mesh.triangles)}
    surface: dict[str, Any] = {
        "type": "principled", "base_color": {"type": "mesh_attribute", "name": "vertex_paint"},
        "specular": float(np.mean([looks[k].sheen for k in present])),  # cannot vary along a surface
    }  # fmt: skip
    for name, key in {"roughness": "roughness", "flatness": "translucency"}.items():
        values = np.array([getattr(look, key) for look in looks], np.float32)
        attributes[f"vertex_{name}"] = _blended(values[which][:, None], mesh.triangles)
        surface[name] = {"type": "mesh_attribute", "name": f"vertex_{name}"}
    return Painted(attributes, surface)


def _blended(values: np.ndarray, triangles: np.ndarray, times: int = 3) -> np.ndarray:
    """Values (v, k) averaged with those of neighbouring vertices: where two materials meet, no saw teeth."""
    count = np.bincount(triangles.ravel(), minlength=len(values))[:, None] + 1.0
    for _ in range(times):
        faces = values[triangles].mean(axis=1)
        total = [np.bincount(triangles.ravel(), np.repeat(column, 3), len(values)) for column in faces.T]
        values = ((values + np.stack(total, axis=1)) / count).astype(np.float32)
    return values


def used(mesh: SurfaceMesh, looks: list[Look]) -> list[int]:
    """Numbers of the materials that ``mesh`` shows."""
    if "material" not in mesh.fields or len(looks) == 1:
        return [0]
    return sorted({int(k) for k in np.unique(np.clip(mesh["material"], 0, len(looks) - 1))}) or [0]


# ---- clear ----------------------------------------------------------------------------------------------------------------


def glassy(look: Look) -> dict[str, Any]:
    """The surface of clear matter: bends light, and throws back the share that is haze."""
    if look.roughness > 0.1:
        skin: dict[str, Any] = {"type": "roughdielectric", "int_ior": look.index, "ext_ior": 1.0, "alpha": look.roughness**2}
    else:
        skin = {"type": "dielectric", "int_ior": look.index, "ext_ior": 1.0}
    if look.haze <= 0:
        return skin
    body = {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": rgb(look.colour or GREY)}}
    return {"type": "blendbsdf", "weight": float(look.haze), "clear": skin, "body": body}


def filling(look: Look, volume: float, unit: float) -> dict[str, Any]:
    """What is inside clear matter of one colour: it swallows light. ``volume`` [m³] sets how deep the colour is."""
    swallowed = np.array(look.absorption(volume)) * unit
    most = float(swallowed.max())
    # Coefficients have to lie in [0, 1]: the magnitude goes into the scale.
    return {
        "type": "homogeneous", "scale": most, "albedo": {"type": "rgb", "value": [0.0, 0.0, 0.0]},
        "sigma_t": {"type": "rgb", "value": (swallowed / most).tolist()},
    }


def mixed_filling(mi: Any, frame: Frame, looks: list[Look], volume: float, stage: Any) -> dict[str, Any]:
    """What is inside clear matter of several colours: a grid of what is swallowed where, from the particles."""
    swallowed = np.array([look.absorption(volume) for look in looks]) * stage.unit
    which = np.clip(frame["material"], 0, len(looks) - 1)
    at = stage.points(frame["position"])
    low, high = at.min(axis=0), at.max(axis=0)
    cell = max(1.5 * frame.spacing / stage.unit, float((high - low).max()) / MOST_CELLS)
    low = low - 2 * cell
    shape = np.ceil((high - low) / cell).astype(int) + 3
    flat = np.ravel_multi_index(((at - low) / cell).astype(int).T, shape)
    weight = _spread(np.bincount(flat, minlength=int(shape.prod())).reshape(shape).astype(float))
    mean = swallowed[which].mean(axis=0)
    channels = []
    for k in range(3):
        total = np.bincount(flat, weights=swallowed[which][:, k], minlength=int(shape.prod())).reshape(shape)
        channels.append((_spread(total) + 1e-3 * mean[k]) / (weight + 1e-3))
    swallowing = np.stack(channels, axis=-1)
    # Light is "scattered" straight on, and each time loses what is swallowed there: on average exactly exp(-σ x), and unlike
    # sampling where a path ends, as good for the colour that passes as for the one that does not.
    rate = float(min(swallowing.max(), MOST_EVENTS))
    kept = 1 - np.minimum(swallowing, rate) / rate
    grid = np.ascontiguousarray(kept.transpose(2, 1, 0, 3), np.float32)  # Mitsuba's order: z, y, x, channel
    place = mi.ScalarTransform4f().translate(low.tolist()).scale((shape * cell).tolist())
    return {
        "type": "homogeneous", "sigma_t": rate, "phase": {"type": "hg", "g": STRAIGHT_ON},
        "albedo": {"type": "gridvolume", "grid": mi.VolumeGrid(grid), "to_world": place, "raw": True, "wrap_mode": "clamp"},
    }


def _spread(grid: np.ndarray) -> np.ndarray:
    """Mean over three cells along each axis: no cell inside the fluid is left without a colour."""
    for axis in range(3):
        padded = np.pad(grid, [(1, 1) if k == axis else (0, 0) for k in range(3)], mode="edge")
        n = grid.shape[axis]
        grid = (padded.take(range(n), axis) + grid + padded.take(range(2, n + 2), axis)) / 3
    return grid


def triangles(
    mi: Any, name: str, vertices: np.ndarray, faces: np.ndarray, normals: np.ndarray | None, surface: dict[str, Any],
    attributes: dict[str, np.ndarray] | None = None, inside: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """A Mitsuba mesh from arrays in stage coordinates, with its surface and what is ``inside``."""
    properties = mi.Properties()
    properties["bsdf"] = mi.load_dict(surface)
    if inside is not None:
        properties["interior"] = mi.load_dict(inside)
    made = mi.Mesh(name, len(vertices), len(faces), has_vertex_normals=normals is not None, props=properties)
    for key, values in (attributes or {}).items():
        made.add_attribute(key, values.shape[1], np.ascontiguousarray(values, np.float32).ravel())
    parameters = mi.traverse(made)
    parameters["vertex_positions"] = np.ascontiguousarray(vertices, np.float32).ravel()
    parameters["faces"] = np.ascontiguousarray(faces, np.uint32).ravel()
    if normals is not None:
        parameters["vertex_normals"] = np.ascontiguousarray(normals, np.float32).ravel()
    parameters.update()
    return made
