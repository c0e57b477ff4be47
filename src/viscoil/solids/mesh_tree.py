"""A closed mesh as a tree of boxes, and what is asked of it: distance, winding number, rays, crossings.

The tree is a complete binary one in heap order (children of n are 2n and 2n + 1) over triangles sorted along a Morton curve, so
that it needs neither pointers nor a stack: after the subtree of n comes n + 1, halved while it is even.

Inside is where the mesh winds around a point more than half a time (Jacobson et al. 2013): overlapping and nested parts are
solid, cavities are not, and no single ray decides. Far nodes count by their dipole alone (Barill et al. 2018):

    w(q) = 1/4π Σ Ω(q, triangle) ≈ 1/4π Σ_far A·r/|r|³ + Σ_near Ω/4π,    A = Σ area vectors, r from q to their centre
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.particles import Floats, Ints, Vectors, allocate_array, vec3
from viscoil.solids.mesh_file import Loaded

LEAF = 4  # triangles in a leaf; also written as a literal in the kernels


@dataclass(frozen=True)
class Tree:
    """Nodes in heap order from 1 on, and the triangles of the leaves. Lengths relative to the mesh's middle [m]."""

    low: Vectors  # [node] box
    high: Vectors
    middle: Vectors  # [node] mean place of its area
    dipole: Vectors  # [node] sum of area vectors [m²]
    radius: Floats  # [node] of a ball about the middle that holds it [m]
    corner: Vectors  # [12 leaf] corners of four triangles; missing ones are points
    name: Ints  # [12 leaf] the corners' vertices; -1 of missing triangles


@qd.func
def _edge2(p: vec3, along: vec3) -> qd.f32:
    """Squared distance to the segment 0 → along."""
    t = qd.min(qd.max(p.dot(along) / qd.max(along.dot(along), 1e-30), 0.0), 1.0)
    away = p - t * along
    return away.dot(away)


@qd.func
def _triangle2(q: vec3, slot: qd.i32, tree: Tree) -> qd.f32:
    """Squared distance to a triangle: to its plane where q is above it, otherwise to the nearest edge."""
    a = tree.corner[3 * slot]
    b = tree.corner[3 * slot + 1]
    c = tree.corner[3 * slot + 2]
    pa = q - a
    pb = q - b
    pc = q - c
    n = (b - a).cross(c - a)
    result = qd.min(_edge2(pa, b - a), qd.min(_edge2(pb, c - b), _edge2(pc, a - c)))
    u = (b - a).cross(n).dot(pa)
    v = (c - b).cross(n).dot(pb)
    w = (a - c).cross(n).dot(pc)
    if qd.max(u, qd.max(v, w)) <= 0.0:  # n = 0 of an empty triangle: then its edges are as near
        area2 = n.dot(n)
        if area2 > 0.0:
            above = n.dot(pa)
            result = qd.min(result, above * above / area2)
    return result


@qd.func
def _after(node: qd.i32) -> qd.i32:
    """The node that follows when the subtree of ``node`` is done; 0 at the end."""
    n = node + 1
    while n % 2 == 0:
        n = n // 2
    return qd.select(n == 1, 0, n)


@qd.func
def nearest(q: vec3, guess: qd.i32, band: qd.f32, leaves: qd.i32, tree: Tree):
    """(distance to the mesh, the triangle found); ``guess``: a triangle that may be near.

    Exact up to ``band`` [m]. Beyond it a lower bound, by up to a fifth of what lies beyond: with f(d) = d + (d − band)/4, boxes
    are left out whose f(gap) is no less than the distance D found so far, so that no triangle is nearer than f⁻¹(D). In the
    middle of a ball, where all of its surface is equally near, that saves looking at all of it.
    """
    best = _triangle2(q, guess, tree)
    found = guess
    distance = qd.sqrt(best)
    node = 1
    while node > 0:
        apart = qd.max(qd.max(tree.low[node] - q, q - tree.high[node]), 0.0)
        gap = apart.norm()
        following = 0
        if gap + 0.25 * qd.max(gap - band, 0.0) < distance:
            if node >= leaves:
                for k in range(4):
                    slot = 4 * (node - leaves) + k
                    other = _triangle2(q, slot, tree)
                    if other < best:
                        best = other
                        found = slot
                distance = qd.sqrt(best)
            else:
                following = 2 * node
        if following == 0:
            following = _after(node)
        node = following
    return distance - 0.2 * qd.max(distance - band, 0.0), found


@qd.func
def _solid_angle(q: vec3, slot: qd.i32, tree: Tree) -> qd.f32:
    """Ω/2 of a triangle seen from q (van Oosterom and Strackee 1983)."""
    a = tree.corner[3 * slot] - q
    b = tree.corner[3 * slot + 1] - q
    c = tree.corner[3 * slot + 2] - q
    la = a.norm()
    lb = b.norm()
    lc = c.norm()
    under = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb
    above = a.dot(b.cross(c))
    result = 0.0
    if above != 0.0:
        result = qd.atan2(above, under)
    return result


@qd.func
def winding(q: vec3, leaves: qd.i32, tree: Tree) -> qd.f32:
    """How often the mesh winds around q."""
    total = 0.0
    node = 1
    while node > 0:
        r = tree.middle[node] - q
        far = r.dot(r)
        reach = 2.5 * tree.radius[node]
        following = 0
        if far > reach * reach:
            total += 0.5 * tree.dipole[node].dot(r) / (far * qd.sqrt(far))
        elif node >= leaves:
            for k in range(4):
                total += _solid_angle(q, 4 * (node - leaves) + k, tree)
        else:
            following = 2 * node
        if following == 0:
            following = _after(node)
        node = following
    return total / 6.2831853


@qd.kernel(fastcache=True)
def _grid(nx: qd.i32, ny: qd.i32, nz: qd.i32, x: qd.f32, y: qd.f32, z: qd.f32, cell: qd.f32, band: qd.f32, leaves: qd.i32,
          tree: Tree, phi: Floats):  # fmt: skip
    """φ at the nodes of a grid, one row along z after the other.

    The nearest triangle of the node before is near this one too. The surface cannot lie between two nodes whose
    distances add up to more than a cell: the sign is asked for near the surface only.
    """
    for row in range(nx * ny):
        last = 0.0
        inside = 0
        triangle = 0
        for k in range(nz):
            q = vec3(x + (row // ny) * cell, y + (row % ny) * cell, z + k * cell)
            d, triangle = nearest(q, triangle, band, leaves, tree)
            if k == 0 or d + last < 1.001 * cell:
                inside = qd.select(winding(q, leaves, tree) > 0.5, 1, 0)
            phi[row * nz + k] = qd.select(inside == 1, -d, d)
            last = d


@qd.kernel(fastcache=True)
def _points(points: Vectors, count: qd.i32, leaves: qd.i32, tree: Tree, phi: Floats):
    """φ at single points."""
    for i in range(count):
        d, _ = nearest(points[i], 0, 1e30, leaves, tree)
        phi[i] = qd.select(winding(points[i], leaves, tree) > 0.5, -d, d)


@qd.func
def _hit(q: vec3, way: vec3, slot: qd.i32, tree: Tree) -> qd.f32:
    """Share of ``way`` from q after which a triangle is met, 1e30 when it is not (Möller and Trumbore 1997)."""
    a = tree.corner[3 * slot]
    ab = tree.corner[3 * slot + 1] - a
    ac = tree.corner[3 * slot + 2] - a
    p = way.cross(ac)
    det = ab.dot(p)
    result = 1e30
    if det != 0.0:
        s = q - a
        r = s.cross(ab)
        u = s.dot(p) / det
        v = way.dot(r) / det
        if u >= 0.0 and v >= 0.0 and u + v <= 1.0:
            result = ac.dot(r) / det
    return result


@qd.func
def _meets_box(q: vec3, way: vec3, end: qd.f32, node: qd.i32, tree: Tree) -> qd.i32:
    """Whether q + t way is in a node's box for some t between 0 and ``end``."""
    begin = 0.0
    finish = end
    for axis in qd.static(range(3)):
        step = qd.select(qd.abs(way[axis]) > 1e-20, way[axis], 1e-20)
        one = (tree.low[node][axis] - q[axis]) / step
        two = (tree.high[node][axis] - q[axis]) / step
        begin = qd.max(begin, qd.min(one, two))
        finish = qd.min(finish, qd.max(one, two))
    return qd.cast(begin <= finish * 1.00001, qd.i32)


@qd.kernel(fastcache=True)
def _rays(points: Vectors, ways: Vectors, count: qd.i32, near: qd.f32, leaves: qd.i32, tree: Tree, length: Floats,
          facing: Floats):  # fmt: skip
    """How far from each point along its unit way the mesh is left again [m], and the cosine between way and outward normal."""
    for i in range(count):
        q = points[i]
        way = ways[i]
        best = 1e15
        cosine = 0.0
        node = 1
        while node > 0:
            following = 0
            if _meets_box(q, way, best, node, tree) == 1:
                if node >= leaves:
                    for k in range(4):
                        slot = 4 * (node - leaves) + k
                        t = _hit(q, way, slot, tree)
                        if t > near and t < best:
                            a = tree.corner[3 * slot]
                            n = (tree.corner[3 * slot + 1] - a).cross(tree.corner[3 * slot + 2] - a)
                            if n.dot(way) > 0.0:  # outwards: what is entered again on the way belongs to the inside
                                best = t
                                cosine = n.dot(way) / n.norm()
                else:
                    following = 2 * node
            if following == 0:
                following = _after(node)
            node = following
        length[i] = best
        facing[i] = cosine


@qd.kernel(fastcache=True)
def _crossed(begin: Vectors, end: Vectors, first: Ints, second: Ints, count: qd.i32, leaves: qd.i32, tree: Tree, out: Ints):
    """1 for every edge that runs through a triangle it has no corner in common with."""
    for i in range(count):
        q = begin[i]
        way = end[i] - q
        found = 0
        node = 1
        while node > 0:
            following = 0
            if found == 0 and _meets_box(q, way, 1.0, node, tree) == 1:
                if node >= leaves:
                    for k in range(4):
                        slot = 4 * (node - leaves) + k
                        shared = 0
                        for j in range(3):
                            name = tree.name[3 * slot + j]
                            if name == first[i] or name == second[i] or name < 0:
                                shared = 1
                        if shared == 0:
                            t = _hit(q, way, slot, tree)
                            if t > 1e-4 and t < 0.9999:  # edges that only touch are common in modelled meshes
                                found = 1
                else:
                    following = 2 * node
            if following == 0:
                following = _after(node)
            node = following
        out[i] = found


class MeshTree:
    """The tree of one closed mesh on the device."""

    def __init__(self, vertices: np.ndarray, triangles: np.ndarray):
        backend.start()
        self.middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2  # near it, 32 bits are the finest
        self.vertices = np.asarray(vertices, float) - self.middle
        self.triangles = np.asarray(triangles, np.int64)
        self.leaves, rows = _built(self.vertices, self.triangles)
        self.device = Tree(**{name: _sent(values) for name, values in rows.items()})

    def grid(self, origin: np.ndarray, cell: float, counts: tuple[int, int, int], band: float) -> np.ndarray:
        """φ [m] at the nodes (x, y, z) of a regular grid, float32; beyond ``band`` [m] |φ| is a lower bound."""
        x, y, z = (float(v) for v in np.asarray(origin, float) - self.middle)
        phi = allocate_array(qd.f32, int(np.prod(counts)))
        _grid(*(int(n) for n in counts), x, y, z, float(cell), float(band), self.leaves, self.device, phi)
        return transfer.read(phi).reshape(counts)

    def distance(self, points: np.ndarray) -> np.ndarray:
        """φ [m] at points (n, 3)."""
        if len(points) == 0:
            return np.empty(0, np.float32)
        phi = allocate_array(qd.f32, len(points))
        _points(_sent(np.asarray(points, float) - self.middle), len(points), self.leaves, self.device, phi)
        return transfer.read(phi)

    def thickness(self, samples: int = 4096) -> float:
        """Thickness of the thinnest hundredth of the walls [m]: from points on the surface straight in until the mesh ends.

        Only where it ends on a side that looks the other way (within 60°): edges and tips are thin by nature.
        """
        a, b, c = (self.vertices[self.triangles[:, k]] for k in range(3))
        area = np.cross(b - a, c - a)
        weight = np.linalg.norm(area, axis=1)
        rng = np.random.default_rng(0)
        chosen = rng.choice(len(weight), samples, p=weight / weight.sum())
        u, v = np.sqrt(rng.random(samples)), rng.random(samples)
        points = (1 - u)[:, None] * a[chosen] + (u * (1 - v))[:, None] * b[chosen] + (u * v)[:, None] * c[chosen]
        ways = -area[chosen] / weight[chosen][:, None]
        length, facing = (allocate_array(qd.f32, samples) for _ in range(2))
        near = 1e-5 * float(np.ptp(self.vertices, axis=0).max())
        _rays(_sent(points), _sent(ways), samples, near, self.leaves, self.device, length, facing)
        length, wall = transfer.read(length), (transfer.read(facing) > 0.5)
        length = np.where(wall, length, np.inf)
        return float(np.quantile(length, 0.01, method="lower"))

    def crossings(self) -> int:
        """Number of edges that run through a triangle: 0 unless the mesh cuts itself."""
        edges = np.concatenate([self.triangles[:, [0, 1]], self.triangles[:, [1, 2]], self.triangles[:, [2, 0]]])
        edges = edges[edges[:, 0] < edges[:, 1]]  # the other triangle has it in the other direction
        found = allocate_array(qd.i32, len(edges))
        begin, end = (_sent(self.vertices[edges[:, k]]) for k in range(2))
        first, second = (_sent(edges[:, k].astype(np.int32)) for k in range(2))
        _crossed(begin, end, first, second, len(edges), self.leaves, self.device, found)
        return int(transfer.read(found, len(edges)).sum())


@lru_cache(maxsize=4)
def tree_of(mesh: Loaded) -> MeshTree:
    """The tree of a loaded mesh; the last few are kept."""
    return MeshTree(mesh.vertices, mesh.triangles)


def _sent(values: np.ndarray) -> Any:
    kind = qd.i32 if values.dtype == np.int32 else vec3 if values.ndim == 2 else qd.f32
    array = allocate_array(kind, len(values))
    transfer.write(array, np.asarray(values, np.int32 if kind is qd.i32 else np.float32))
    return array


def _morton(points: np.ndarray) -> np.ndarray:
    """Position along a curve that keeps neighbours together, from 10 bits per axis."""
    low, high = points.min(axis=0), points.max(axis=0)
    grid = ((points - low) / np.maximum((high - low).max(), 1e-300) * 1023).astype(np.int64)
    code = np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= (grid[:, axis] >> bit & 1) << (3 * bit + axis)
    return code


def _built(vertices: np.ndarray, triangles: np.ndarray) -> tuple[int, dict[str, np.ndarray]]:
    """(number of leaves, arrays of :class:`Tree`)."""
    triangles = triangles[np.argsort(_morton(vertices[triangles].mean(axis=1)), kind="stable")]
    number = len(triangles)
    leaves = 1 << max(0, int(np.ceil(np.log2(max(1, number / LEAF)))))
    # Triangles are dealt out evenly; a place that is left over holds a corner of the leaf's first triangle.
    begin = np.arange(leaves) * number // leaves
    end = (np.arange(leaves) + 1) * number // leaves
    place = begin[:, None] + np.arange(LEAF)
    filled = place < end[:, None]
    chosen = triangles[np.where(filled, place, np.minimum(begin, number - 1)[:, None])]
    name = np.where(filled[..., None], chosen, chosen[..., :1])
    corner = vertices[name]  # (leaf, 4, 3 corners, 3)
    area = np.cross(corner[:, :, 1] - corner[:, :, 0], corner[:, :, 2] - corner[:, :, 0]) / 2
    weight = np.linalg.norm(area, axis=2)
    nodes = 2 * leaves
    low, high, dipole, moment, mass = (np.zeros((nodes, 3)) for _ in range(5))
    low[leaves:], high[leaves:] = corner.min(axis=(1, 2)), corner.max(axis=(1, 2))
    dipole[leaves:] = area.sum(axis=1)
    moment[leaves:] = (corner.mean(axis=2) * weight[..., None]).sum(axis=1)
    mass[leaves:] = weight.sum(axis=1)[:, None]
    level = leaves // 2
    while level >= 1:
        at, left, right = (slice(level, 2 * level), slice(2 * level, 4 * level, 2), slice(2 * level + 1, 4 * level, 2))
        low[at], high[at] = np.minimum(low[left], low[right]), np.maximum(high[left], high[right])
        for rows in (dipole, moment, mass):
            rows[at] = rows[left] + rows[right]
        level //= 2
    middle = np.where(mass > 0, moment / np.maximum(mass, 1e-300), (low + high) / 2)
    radius = np.linalg.norm(np.maximum(high - middle, middle - low), axis=1)
    # 32-bit boxes must not be smaller than what they hold.
    hair = 1e-6 * float(np.abs(vertices).max())
    name = np.where(filled[..., None], name, -1)
    return leaves, {
        "low": low - hair, "high": high + hair, "middle": middle, "dipole": dipole, "radius": radius,
        "corner": corner.reshape(-1, 3), "name": name.reshape(-1).astype(np.int32),
    }  # fmt: skip
