"""Signed distances φ [m] of the shapes solids are made of: negative inside, positive outside.

A solid is a list of parts; its distance is the (smooth) minimum over them, or the negative of that for a container.
All formulas are written for a shape at the origin with y as its axis; parts carry their own rotation and centre.

Every kernel that asks for a distance holds all formulas, wherever it asks. On a GPU that is a hundred kilobytes of machine code
for the contact of a few particles with a box. So kernels know, as a constant, which shapes there are (``Parts.shapes``), and
hold the formulas of those: a million particles of PBF iterate faster by it (docs/performance.md). A CPU's kernels hold all:
there a new set of shapes would cost more seconds of compiling than it ever saves.
"""

from dataclasses import dataclass, field

import quadrants as qd
from quadrants.lang._fast_caching import FIELD_METADATA_CACHE_VALUE

from viscoil.particles import Floats, Ints, Longs, Matrices, Vectors, vec3

KINDS = {"plane": 0, "box": 1, "sphere": 2, "capsule": 3, "cylinder": 4, "cone": 5, "funnel": 6, "torus": 7, "bowl": 8,
         "mesh": 9, "cup": 10}  # fmt: skip
TRAITS = {
    **KINDS,
    "compound": 11,  # some solid has several parts
    "vessel": 12,  # some solid is one box to be filled
    "other": 13,  # some solid is not
}
EVERYTHING = (1 << len(TRAITS)) - 1
KNOWN_NORMAL = ("plane", "box", "sphere")  # what has one when it is a solid by itself


def bit(trait: str) -> int:
    """Of a trait in ``Parts.shapes``."""
    return 1 << TRAITS[trait]


def among(shapes: int, *traits: str) -> bool:
    """Whether any of the traits is there; for ``qd.static``."""
    return any(shapes & bit(trait) for trait in traits)


def normals_known(shapes: int) -> str:
    """Of which solids formulas know the normal: "all", "some" or "none"; for ``qd.static``."""
    if not among(shapes, *KNOWN_NORMAL):
        return "none"
    return "some" if among(shapes, "compound", *(kind for kind in KINDS if kind not in KNOWN_NORMAL)) else "all"


@dataclass(frozen=True)
class Parts:
    """The primitive shapes of all solids, one row each."""

    kind: Ints  # [part] number out of KINDS
    size: Floats  # [4 part] lengths [m], meaning by kind; of a mesh: first node of its grid and the distance of nodes
    rotation: Matrices  # [part] from the part's frame to the solid's
    centre: Vectors  # [part] in the solid's frame [m]
    nodes: Ints  # [4 part] of a mesh: where its grid begins in ``grid``, and the numbers of nodes along x, y, z
    grid: Floats  # φ [m] at the nodes of all meshes' grids, z runs fastest
    # What there is: a bit for each of TRAITS; a constant of kernels, which the memory of compiled ones is told of.
    shapes: qd.template() = field(metadata={FIELD_METADATA_CACHE_VALUE: True})


@dataclass(frozen=True)
class Solids:
    """All solids of a world, one row each. Poses map the solid's frame to the world's."""

    first: Ints  # [solid] first part
    last: Ints  # [solid] one past its last part
    sign: Floats  # [solid] 1, or -1 for a container
    blend: Floats  # [solid] smoothing length of the union [m]
    bound: Floats  # [solid] radius of a sphere around the frame's origin that holds it [m]; huge for the unbounded
    standoff: Floats  # [solid] contact radius relative to the solver's: less where boundary samples already push
    wall: Floats  # [solid] strength of its density as a continuous wall; 0 where boundary samples do the work
    friction: Floats  # [solid] Coulomb coefficient; 1e30 = no-slip
    stick_distance: Floats  # [solid] how far it attracts, from where contact begins [m]; 0: not at all
    stick_stiffness: Floats  # [solid] how strongly [1/s²]
    rotation: Matrices  # [solid] pose at the end of the step
    position: Vectors
    rotation0: Matrices  # [solid] pose at its start
    position0: Vectors
    erosion: Floats  # [solid] thinner by this much than it is drawn [m]
    body: Ints  # [solid] its number among the bodies that fluid can move; -1: it moves as it was told
    heart: Vectors  # [solid] centre of mass in its frame [m]
    push: Longs  # [6 body] impulses that fluid got from bodies in this step, see coupling.py
    per_spacing: Floats  # [1] 1/d [1/m]


@qd.func
def _outside2(a: qd.f32, b: qd.f32) -> qd.f32:
    """Distance to a rectangle's corner region: exact outside, largest face distance inside."""
    u = qd.max(a, 0.0)
    v = qd.max(b, 0.0)
    return qd.sqrt(u * u + v * v) + qd.min(qd.max(a, b), 0.0)


@qd.func
def box(q: vec3, hx: qd.f32, hy: qd.f32, hz: qd.f32, rounding: qd.f32) -> qd.f32:
    """Box of half edges (hx, hy, hz), edges rounded with a radius inside those lengths."""
    a = qd.abs(q[0]) - hx + rounding
    b = qd.abs(q[1]) - hy + rounding
    c = qd.abs(q[2]) - hz + rounding
    u = qd.max(a, 0.0)
    v = qd.max(b, 0.0)
    w = qd.max(c, 0.0)
    return qd.sqrt(u * u + v * v + w * w) + qd.min(qd.max(a, qd.max(b, c)), 0.0) - rounding


@qd.func
def capsule(q: vec3, radius: qd.f32, half: qd.f32) -> qd.f32:
    """All points closer than ``radius`` to the axis between y = ±half."""
    y = q[1] - qd.min(qd.max(q[1], -half), half)
    return qd.sqrt(q[0] * q[0] + y * y + q[2] * q[2]) - radius


@qd.func
def cylinder(rho: qd.f32, y: qd.f32, radius: qd.f32, half: qd.f32) -> qd.f32:
    """Closed cylinder, in the meridian plane (rho = distance from the axis)."""
    return _outside2(rho - radius, qd.abs(y) - half)


@qd.func
def cone(rho: qd.f32, y: qd.f32, bottom: qd.f32, top: qd.f32, half: qd.f32) -> qd.f32:
    """Closed truncated cone: the smaller distance to its cap and to its side, signed by being inside both."""
    # The side runs from (bottom, -half) to (top, half).
    along = qd.min(qd.max(((rho - bottom) * (top - bottom) + (y + half) * 2.0 * half)
                          / ((top - bottom) ** 2 + 4.0 * half * half), 0.0), 1.0)  # fmt: skip
    side_r = rho - (bottom + along * (top - bottom))
    side_y = y - (-half + along * 2.0 * half)
    cap_r = qd.max(rho - qd.select(y < 0.0, bottom, top), 0.0)
    cap_y = qd.abs(y) - half
    distance = qd.sqrt(qd.min(side_r * side_r + side_y * side_y, cap_r * cap_r + cap_y * cap_y))
    # Inside: under the side line and between the caps.
    inside = (rho - bottom) * 2.0 * half - (y + half) * (top - bottom) < 0.0 and cap_y < 0.0
    return qd.select(inside, -distance, distance)


@qd.func
def funnel(rho: qd.f32, y: qd.f32, bottom: qd.f32, top: qd.f32, half: qd.f32, thickness: qd.f32) -> qd.f32:
    """Open conical shell: everything closer than half the thickness to the side of a cone."""
    along = qd.min(qd.max(((rho - bottom) * (top - bottom) + (y + half) * 2.0 * half)
                          / ((top - bottom) ** 2 + 4.0 * half * half), 0.0), 1.0)  # fmt: skip
    dr = rho - (bottom + along * (top - bottom))
    dy = y - (-half + along * 2.0 * half)
    return qd.sqrt(dr * dr + dy * dy) - 0.5 * thickness


@qd.func
def bowl(rho: qd.f32, y: qd.f32, rim: qd.f32, ball: qd.f32, cut: qd.f32, thickness: qd.f32) -> qd.f32:
    """Part of a hollow ball below y = ``cut`` over its centre: everything closer than half the thickness to it.

    Seen from the centre, what lies above the direction of the rim (rim, cut) is nearest to the rim itself.
    """
    away = qd.abs(qd.sqrt(rho * rho + y * y) - ball)
    if cut * rho < rim * y:
        away = qd.sqrt((rho - rim) ** 2 + (y - cut) ** 2)
    return away - 0.5 * thickness


@qd.func
def cup(rho: qd.f32, y: qd.f32, bottom: qd.f32, top: qd.f32, half: qd.f32, thickness: qd.f32) -> qd.f32:
    """A funnel with a floor: everything closer than half the thickness to its side or to the disc at y = −half."""
    floor = qd.sqrt(qd.max(rho - bottom, 0.0) ** 2 + (y + half) ** 2) - 0.5 * thickness
    return qd.min(floor, funnel(rho, y, bottom, top, half, thickness))


@qd.func
def mesh(q: vec3, part: qd.i32, parts: Parts) -> qd.f32:
    """φ of a mesh, linear between the nodes of its grid. Outside the grid a lower bound.

    The nearest point c of the grid's box is between x and any point m of the mesh: (x − c)·(c − m) ≥ 0, and therefore
    |x − m|² ≥ |x − c|² + |c − m|². A tenth of a cell is taken off what was interpolated at c, which may be a little too much.
    """
    cell = parts.size[4 * part + 3]
    first = parts.nodes[4 * part]
    n = parts.nodes[4 * part + 2]
    m = parts.nodes[4 * part + 3]
    inner = (q - vec3(parts.size[4 * part], parts.size[4 * part + 1], parts.size[4 * part + 2])) / cell
    last = vec3(parts.nodes[4 * part + 1] - 1, n - 1, m - 1)
    held = qd.max(qd.min(inner, last), 0.0)
    low = qd.min(qd.floor(held), last - 1.0)
    share = held - low
    begin = first + (qd.cast(low[0], qd.i32) * n + qd.cast(low[1], qd.i32)) * m + qd.cast(low[2], qd.i32)
    phi = 0.0
    for row in range(4):  # a loop, not eight copies: this is compiled into every kernel that asks for a distance
        i = row // 2
        j = row % 2
        at = begin + (i * n + j) * m
        along = parts.grid[at] + share[2] * (parts.grid[at + 1] - parts.grid[at])
        phi += qd.select(i == 1, share[0], 1.0 - share[0]) * qd.select(j == 1, share[1], 1.0 - share[1]) * along
    beyond = cell * (inner - held).norm()
    if beyond > 0.0:
        held_back = qd.max(phi - 0.1 * cell, 0.0)
        phi = qd.sqrt(held_back * held_back + beyond * beyond)
    return phi


@qd.func
def part_distance(part: qd.i32, point: vec3, parts: Parts) -> qd.f32:
    """φ of one part at a point of the solid's frame."""
    q = parts.rotation[part].transpose() @ (point - parts.centre[part])
    a = parts.size[4 * part]
    b = parts.size[4 * part + 1]
    c = parts.size[4 * part + 2]
    d = parts.size[4 * part + 3]
    rho = qd.sqrt(q[0] * q[0] + q[2] * q[2])
    kind = parts.kind[part]
    phi = q[1]
    if qd.static(among(parts.shapes, "box")):  # noqa: SIM102 (decided when compiled, as all of them)
        if kind == 1:
            phi = box(q, a, b, c, d)
    if qd.static(among(parts.shapes, "sphere")):  # noqa: SIM102
        if kind == 2:
            phi = q.norm() - a
    if qd.static(among(parts.shapes, "capsule")):  # noqa: SIM102
        if kind == 3:
            phi = capsule(q, a, b)
    if qd.static(among(parts.shapes, "cylinder")):  # noqa: SIM102
        if kind == 4:
            phi = cylinder(rho, q[1], a, b)
    if qd.static(among(parts.shapes, "cone")):  # noqa: SIM102
        if kind == 5:
            phi = cone(rho, q[1], a, b, c)
    if qd.static(among(parts.shapes, "funnel")):  # noqa: SIM102
        if kind == 6:
            phi = funnel(rho, q[1], a, b, c, d)
    if qd.static(among(parts.shapes, "torus")):  # noqa: SIM102
        if kind == 7:
            phi = qd.sqrt((rho - a) ** 2 + q[1] * q[1]) - b
    if qd.static(among(parts.shapes, "bowl")):  # noqa: SIM102
        if kind == 8:  # the lengths are those of the rim: its radius, the bowl's height, the ball's radius
            phi = bowl(rho, q[1] + 0.5 * b - c, a, c, b - c, d)
    if qd.static(among(parts.shapes, "mesh")):  # noqa: SIM102
        if kind == 9:
            phi = mesh(q, part, parts)
    if qd.static(among(parts.shapes, "cup")):  # noqa: SIM102
        if kind == 10:
            phi = cup(rho, q[1], a, b, c, d)
    return phi


@qd.func
def is_vessel(solid: qd.i32, solids: Solids, parts: Parts) -> bool:
    """Whether a solid is one box to be filled."""
    result = False
    if qd.static(among(parts.shapes, "vessel")):
        if qd.static(among(parts.shapes, "other")):
            first = solids.first[solid]
            result = solids.sign[solid] < 0.0 and solids.last[solid] == first + 1 and parts.kind[first] == 1
        else:
            result = True
    return result


@qd.func
def distance(solid: qd.i32, point: vec3, solids: Solids, parts: Parts) -> qd.f32:
    """φ of a solid at a point of its own frame: the minimum over its parts, blended within ``blend`` metres."""
    phi = 1e30
    if qd.static(among(parts.shapes, "compound")):
        blend = solids.blend[solid]
        for part in range(solids.first[solid], solids.last[solid]):
            other = part_distance(part, point, parts)
            overlap = 0.0
            if blend > 0.0:
                overlap = qd.max(blend - qd.abs(phi - other), 0.0)
                overlap = 0.25 * overlap * overlap / blend
            phi = qd.min(phi, other) - overlap
    else:
        phi = part_distance(solids.first[solid], point, parts)
    return solids.sign[solid] * phi + solids.erosion[solid]


@qd.func
def _box_normal(q: vec3, hx: qd.f32, hy: qd.f32, hz: qd.f32, rounding: qd.f32) -> vec3:
    """∇φ of :func:`box`: away from its nearest point outside, towards its nearest face inside, or between those as near."""
    inner = qd.abs(q) - vec3(hx, hy, hz) + rounding
    n = qd.max(inner, 0.0)
    if n.dot(n) == 0.0:
        nearest = qd.max(inner[0], qd.max(inner[1], inner[2]))
        n = qd.select(inner == nearest, 1.0, 0.0)
    return n.normalized() * qd.select(q < 0.0, -1.0, 1.0)


@qd.func
def _measured_normal(solid: qd.i32, point: vec3, step: qd.f32, solids: Solids, parts: Parts) -> vec3:
    """∇φ, normalised, by central differences over ±``step``.

    Four corners of a tetrahedron would be cheaper, but across an edge they lean along it: particles resting in a corner
    of a box were driven along its edges.
    """
    n = vec3(0.0)
    for k in range(6):  # a loop, not six copies of all distance formulas: kernels compile three times faster
        side = 1.0 - 2.0 * (k % 2)
        towards = side * vec3(qd.select(k < 2, 1.0, 0.0), qd.select(k // 2 == 1, 1.0, 0.0), qd.select(k > 3, 1.0, 0.0))
        n += distance(solid, point + step * towards, solids, parts) * towards
    length = n.norm()
    result = vec3(0.0, 1.0, 0.0)
    if length > 0.0:
        result = n / length
    return result


@qd.func
def normal(solid: qd.i32, point: vec3, step: qd.f32, solids: Solids, parts: Parts) -> vec3:
    """∇φ, normalised. Of a plane, a box or a ball by itself it is known, of everything else measured over ±``step``."""
    result = vec3(0.0, 1.0, 0.0)
    if qd.static(normals_known(parts.shapes) == "all"):
        result = _known_normal(solid, point, solids, parts)
    elif qd.static(normals_known(parts.shapes) == "none"):
        result = _measured_normal(solid, point, step, solids, parts)
    elif _has_formula(solid, solids, parts):
        result = _known_normal(solid, point, solids, parts)
    else:
        result = _measured_normal(solid, point, step, solids, parts)
    return result


@qd.func
def _has_formula(solid: qd.i32, solids: Solids, parts: Parts) -> bool:
    """Whether a solid is a plane, a box or a ball by itself."""
    first = solids.first[solid]
    return solids.last[solid] == first + 1 and parts.kind[first] <= 2


@qd.func
def _known_normal(solid: qd.i32, point: vec3, solids: Solids, parts: Parts) -> vec3:
    """∇φ of a plane, a box or a ball."""
    first = solids.first[solid]
    kind = parts.kind[first]
    q = parts.rotation[first].transpose() @ (point - parts.centre[first])
    n = vec3(0.0, 1.0, 0.0)
    if kind == 1:
        at = 4 * first
        n = _box_normal(q, parts.size[at], parts.size[at + 1], parts.size[at + 2], parts.size[at + 3])
    elif kind == 2 and q.norm() > 0.0:
        n = q.normalized()
    return solids.sign[solid] * (parts.rotation[first] @ n)


@qd.kernel(fastcache=True)
def evaluate(solid: qd.i32, points: Vectors, count: qd.i32, solids: Solids, parts: Parts, phi: Floats):
    """φ at world points, for filling shapes, sampling surfaces and tests."""
    for i in range(count):
        local = solids.rotation[solid].transpose() @ (points[i] - solids.position[solid])
        phi[i] = distance(solid, local, solids, parts)


@qd.kernel(fastcache=True)
def evaluate_normal(solid: qd.i32, points: Vectors, count: qd.i32, step: qd.f32, solids: Solids, parts: Parts, out: Vectors):
    """Outward unit normals at world points."""
    for i in range(count):
        local = solids.rotation[solid].transpose() @ (points[i] - solids.position[solid])
        out[i] = solids.rotation[solid] @ normal(solid, local, step, solids, parts)
