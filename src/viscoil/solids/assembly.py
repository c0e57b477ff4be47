"""From shapes as users write them to the rows the kernels read, and back to answers on the host.

:class:`SolidSet` is every solid of a world with its motion; :func:`signed_distance` asks a single shape.
"""

import itertools
import math
from bisect import bisect_right
from dataclasses import replace
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.errors import SceneError
from viscoil.particles import allocate_array, mat3, vec3
from viscoil.solids import sdf
from viscoil.solids.coupling import BodySet, nobody
from viscoil.solids.drag import Drag, degrees_of, drag
from viscoil.solids.figures import bear_parts, bear_radius

UNBOUNDED = 1e30
STANDOFF = {"distance": 1.0, "particles": 0.2}
CHUNK = 1 << 20  # points evaluated at a time


def rotation_matrix(degrees: Any) -> np.ndarray:
    """Turned about x, then the new y, then the new z (degrees) -> 3×3 matrix."""
    x, y, z = (math.radians(float(a)) for a in degrees)
    about_x = np.array([[1, 0, 0], [0, math.cos(x), -math.sin(x)], [0, math.sin(x), math.cos(x)]])
    about_y = np.array([[math.cos(y), 0, math.sin(y)], [0, 1, 0], [-math.sin(y), 0, math.cos(y)]])
    about_z = np.array([[math.cos(z), -math.sin(z), 0], [math.sin(z), math.cos(z), 0], [0, 0, 1]])
    return about_x @ about_y @ about_z


def _lengths(shape: Any) -> tuple[tuple[float, ...], float]:
    """The kernel's lengths of a primitive shape, and the radius of a ball about its centre that holds it."""
    kind = shape.type
    if kind == "plane":
        return (), UNBOUNDED
    if kind == "box":
        half = [a / 2 for a in shape.size]
        return (*half, shape.rounding), math.hypot(*half)
    if kind == "sphere":
        return (shape.radius,), shape.radius
    if kind == "capsule":
        return (shape.radius, shape.height / 2), shape.radius + shape.height / 2
    if kind == "cylinder":
        return (shape.radius, shape.height / 2), math.hypot(shape.radius, shape.height / 2)
    if kind == "cone":
        return (shape.radius, shape.top_radius, shape.height / 2), math.hypot(
            max(shape.radius, shape.top_radius), shape.height / 2
        )
    if kind == "funnel":
        widest = max(shape.top_radius, shape.bottom_radius)
        return (shape.bottom_radius, shape.top_radius, shape.height / 2, shape.thickness), (
            math.hypot(widest, shape.height / 2) + shape.thickness
        )
    if kind == "bowl":
        return (shape.radius, shape.height, shape.ball(), shape.thickness), math.hypot(*shape.extent()) / 2
    if kind == "cup":
        return (shape.radius, shape.top, shape.height / 2, shape.thickness), (
            math.hypot(max(shape.radius, shape.top), shape.height / 2) + shape.thickness / 2
        )
    return (shape.radius, shape.tube), shape.radius + shape.tube  # torus


class _Rows:
    """Collects parts of one solid, in the solid's frame. ``fineness``: what grids of meshes are made for, see ``grid_of``."""

    def __init__(self, fineness: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> None:
        self.fineness = fineness
        self.kind: list[int] = []
        self.size: list[list[float]] = []
        self.rotation: list[np.ndarray] = []
        self.centre: list[np.ndarray] = []
        self.grid: list[Any] = []  # of parts that are meshes, otherwise None
        self.blend = 0.0
        self.bound = 0.0

    def add(self, shape: Any, rotation: np.ndarray, position: np.ndarray) -> None:
        turn = rotation @ rotation_matrix(shape.rotation)
        place = position + rotation @ np.asarray(shape.position, float)
        if shape.type == "union":
            self.blend = max(self.blend, shape.blend)
            for part in shape.parts:
                self.add(part, turn, place)
        elif shape.type == "bear":
            parts, blend = bear_parts(shape.height)
            self.blend = max(self.blend, blend)
            for kind, lengths, centre, degrees in parts:
                self._row(kind, lengths, turn @ rotation_matrix(degrees), place + turn @ np.array(centre))
            self.bound = max(self.bound, float(np.linalg.norm(place)) + bear_radius(shape.height))
        elif shape.type == "mesh":
            from viscoil.solids.mesh_grid import grid_of  # only scenes with meshes pay for it

            grid = grid_of(shape.file, shape.scale, *self.fineness)
            self._row("mesh", (*grid.origin, grid.cell), turn, place, grid)
            self.bound = max(self.bound, float(np.linalg.norm(place)) + _farthest(shape))
        else:
            lengths, radius = _lengths(shape)
            self._row(shape.type, lengths, turn, place)
            self.bound = max(self.bound, float(np.linalg.norm(place)) + radius)

    def _row(
        self, kind: str, lengths: tuple[float, ...], rotation: np.ndarray, centre: np.ndarray, grid: Any = None
    ) -> None:
        self.grid.append(grid)
        self.kind.append(sdf.KINDS[kind])
        self.size.append([*lengths, *([0.0] * (4 - len(lengths)))])
        self.rotation.append(rotation)
        self.centre.append(centre)


def _farthest(shape: Any) -> float:
    """Of a mesh's vertices from its own origin [m]."""
    from viscoil.solids.mesh_file import load

    return float(np.linalg.norm(load(shape.file, shape.scale).vertices, axis=1).max())


def _grids(rows: list[_Rows]) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, grid) of ``sdf.Parts``: every mesh's grid once, however often it is used."""
    nodes, kept, begins, total = [], [], {}, 0
    for grid in (g for r in rows for g in r.grid):
        if grid is None:
            nodes.append((0, 0, 0, 0))
            continue
        if id(grid) not in begins:
            begins[id(grid)] = total
            kept.append(grid.phi.ravel())
            total += grid.phi.size
        nodes.append((begins[id(grid)], *grid.phi.shape))
    if total >= 2**31:
        raise SceneError("the grids of all mesh solids together are too large; expected fewer meshes or a larger spacing")
    return np.array(nodes, np.int32).reshape(-1), np.concatenate(kept) if kept else np.zeros(0, np.float32)


def _knows_all() -> bool:
    """Whether kernels have the formulas of all shapes: a CPU's take no longer for it, a GPU's steps 9 %."""
    return backend.current().device == "cpu"


def _shapes(rows: list[_Rows], container: list[bool]) -> int:
    """``sdf.Parts.shapes``: what there is."""
    if _knows_all():
        return sdf.EVERYTHING
    shapes = 0
    for row, filled in zip(rows, container, strict=True):
        for kind in row.kind:
            shapes |= 1 << kind
        if len(row.kind) > 1:
            shapes |= sdf.bit("compound")
        shapes |= sdf.bit("vessel") if filled and row.kind == [sdf.KINDS["box"]] else sdf.bit("other")
    return shapes


def _device(kind: Any, values: np.ndarray) -> Any:
    array = allocate_array(kind, len(values))
    if len(values):
        transfer.write(array, values)
    return array


def _friction(value: float) -> float:
    return 1e30 if math.isinf(value) else float(value)


def path_of(solid: Any) -> Any:
    """Who says where a solid is that does not follow keyframes (``pose(time)``, ``fastest(lever)``); None otherwise."""
    return getattr(solid, "_path", None)


class SolidSet:
    """All solids of a world on the device.

    A solid's frame has its origin where the scene placed the shape, so that it turns about its own centre.
    """

    def __init__(self, solids: list[Any], wall_factor: float = 1.0, spacing: float = 0.0, support: float = 0.0):
        """spacing, support [m]: of the particles that will meet the solids, for the grids of meshes; 0: not known."""
        backend.start()
        self._particles = spacing, support
        self.solids = list(solids)
        self.wall_factor = wall_factor
        self.bodies: BodySet | None = None  # those of them that fluid can move, see couple
        self._nobody = nobody()
        self._drags: dict[int, tuple[Any, Drag]] = {}  # id of a solid that is being moved by hand -> it and its way
        self.rebuild()

    def __len__(self) -> int:
        return len(self.solids)

    def _wall_of(self, solid: Any) -> float:
        return self.wall_factor if solid.boundary == "distance" else 0.0

    def rebuild(self, time: float = 0.0) -> None:
        """Reads all shapes again, at a moment [s]: after a solid was added, removed or reshaped.

        Bodies are to be coupled anew.
        """
        self.bodies = None
        rows, first, last, bound, blend = [], [], [], [], []
        self._radius = []  # of a ball about the frame's origin that holds the shape [m], also of containers
        for solid in self.solids:
            collected = _Rows((*self._particles, solid.stick_distance))
            bare = solid.shape.model_copy(update={"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0)})
            collected.add(bare, np.eye(3), np.zeros(3))
            first.append(sum(len(r.kind) for r in rows))
            rows.append(collected)
            last.append(first[-1] + len(collected.kind))
            # Blending lets a solid bulge beyond its parts by at most 5/4 of the blend length, however many there are.
            reach = collected.bound + 1.25 * collected.blend
            self._radius.append(reach)
            bound.append(UNBOUNDED if solid.container or collected.bound >= UNBOUNDED else reach)
            blend.append(collected.blend)
        number = len(self.solids)
        nodes, grid = _grids(rows)
        self.parts = sdf.Parts(
            kind=_device(qd.i32, np.array([k for r in rows for k in r.kind], np.int32)),
            size=_device(qd.f32, np.array([s for r in rows for row in r.size for s in row], np.float32)),
            rotation=_device(mat3, np.array([m for r in rows for m in r.rotation], np.float32).reshape(-1, 3, 3)),
            centre=_device(vec3, np.array([c for r in rows for c in r.centre], np.float32).reshape(-1, 3)),
            nodes=_device(qd.i32, nodes),
            grid=_device(qd.f32, grid),
            shapes=_shapes(rows, [solid.container for solid in self.solids]),
        )
        # For questions of the host, which come in kernels of their own: one for all shapes is enough.
        self.whole_parts = replace(self.parts, shapes=sdf.EVERYTHING)
        self.device = sdf.Solids(
            first=_device(qd.i32, np.array(first, np.int32)),
            last=_device(qd.i32, np.array(last, np.int32)),
            sign=_device(qd.f32, np.array([-1.0 if s.container else 1.0 for s in self.solids], np.float32)),
            blend=_device(qd.f32, np.array(blend, np.float32)),
            bound=_device(qd.f32, np.array(bound, np.float32)),
            standoff=_device(qd.f32, np.array([STANDOFF[s.boundary] for s in self.solids], np.float32)),
            wall=_device(qd.f32, np.array([self._wall_of(s) for s in self.solids], np.float32)),
            friction=_device(qd.f32, np.array([_friction(s.friction) for s in self.solids], np.float32)),
            stick_distance=_device(qd.f32, np.array([s.stick_distance for s in self.solids], np.float32)),
            stick_stiffness=_device(qd.f32, np.array([s.stick_stiffness for s in self.solids], np.float32)),
            rotation=allocate_array(mat3, number),
            position=allocate_array(vec3, number),
            rotation0=allocate_array(mat3, number),
            position0=allocate_array(vec3, number),
            erosion=allocate_array(qd.f32, number),
            body=_device(qd.i32, np.full(number, -1, np.int32)),
            heart=allocate_array(vec3, number),
            push=allocate_array(qd.i64, 6),
            per_spacing=allocate_array(qd.f32, 1),
        )
        present = {id(solid) for solid in self.solids}
        self._drags = {key: value for key, value in self._drags.items() if key in present}
        self.place(time, time)

    # --- bodies that fluid can move ----------------------------------------------------------------------------------
    def couple(self, rigid: Any, spacing: float, mass: float, erosion: float) -> None:
        """Hands the solids that are bodies to a rigid world; mass: of a particle of the first material [kg].

        ``erosion`` [m] makes them thinner for the fluid than they are drawn, so that they displace what they should.
        """
        self.bodies = BodySet(rigid, self, spacing, mass)
        number = len(self.solids)
        body, heart = np.full(number, -1, np.int32), np.zeros((number, 3), np.float32)
        for row, solid in enumerate(rigid.solid):
            heart[solid] = rigid.hearts[row]
            body[solid] = row if rigid.follows[row] else -1  # those are only placed, as what keyframes move
        eroded = np.where(body >= 0, erosion, 0.0).astype(np.float32)
        rows = {
            "body": _device(qd.i32, body), "heart": _device(vec3, heart), "erosion": _device(qd.f32, eroded),
            "push": allocate_array(qd.i64, 6 * len(rigid.solid)),
            "per_spacing": _device(qd.f32, np.array([1 / spacing], np.float32)),
        }  # fmt: skip
        self.device = replace(self.device, **rows)

    @property
    def coupled(self) -> bool:
        """Whether fluid can move any of them."""
        return self.bodies is not None and bool(np.any(self.bodies.rigid.follows))

    @property
    def bodies_device(self) -> Any:
        """Rows of the bodies for kernels, also where there are none."""
        return self.bodies.device if self.bodies else self._nobody

    def commit(self, before: float, now: float) -> None:
        """After a step: bodies take what the fluid gave them."""
        if self.bodies:
            self.bodies.commit(before, now - before)

    @property
    def dragging(self) -> bool:
        """Whether something is on its way by hand."""
        return bool(self._drags)

    @property
    def moving(self) -> bool:
        """Whether poses have to be looked at every step."""
        return self.bodies is not None or self._led

    def drag(
        self, index: int, target: tuple[np.ndarray | None, np.ndarray | None], now: float, over: float,
        limits: tuple[float, float],
    ) -> float:  # fmt: skip
        """Sends a solid on its way to a rotation matrix and position (None: as it is); returns when it arrives [s].

        From now on it stands where hands put it: its keyframes are forgotten.
        """
        solid = self.solids[index]
        if self.bodies and index in self.bodies.index:
            name = solid.name or f"solid {index}"
            raise SceneError(f"{name} is a body that fluid and contacts move; to place it by hand, take its `body` away first")
        start = self.pose(index, now)
        wanted = self._drags[id(solid)][1].target if id(solid) in self._drags else start
        rotation, position = (new if new is not None else old for new, old in zip(target, wanted, strict=True))
        solid.motion = []
        lever = self._radius[index] if self._radius[index] < UNBOUNDED else 0.0
        way = drag(now, start, (rotation, position), over, limits, lever)
        self._drags[id(solid)] = solid, way
        return way.end

    def settle(self, now: float) -> None:
        """Writes down in the scene how far hands have moved things, and lets go of what has arrived."""
        for key, (solid, way) in list(self._drags.items()):
            rotation, position = way.pose(now)
            solid.shape.position = tuple(float(x) for x in position)
            solid.shape.rotation = degrees_of(rotation)
            if now >= way.end:
                del self._drags[key]
                self.place(now, now)  # at rest: the next step must not repeat the last stretch

    def pose(self, index: int, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Rotation matrix and position of one solid at a moment [s]."""
        solid = self.solids[index]
        if self.bodies and index in self.bodies.index:
            rotation, position = self.bodies.rigid.poses()
            return rotation[self.bodies.index[index]], position[self.bodies.index[index]]
        if id(solid) in self._drags:
            return self._drags[id(solid)][1].pose(time)
        if path := path_of(solid):
            return path.pose(time)
        turn, shift = rotation_matrix(solid.shape.rotation), np.asarray(solid.shape.position, float)
        moved, turned = keyframed(solid.motion, solid.interpolation, time)
        return rotation_matrix(turned) @ turn, shift + moved

    def place(self, before: float, now: float) -> None:
        """Poses at the start and the end of a step [s]; of bodies, where they would get without fluid."""
        if not self.solids:
            return
        if now == before or self._led:
            for time, rotation, position in (
                (before, self.device.rotation0, self.device.position0),
                (now, self.device.rotation, self.device.position),
            ):
                poses = [self.pose(index, time) for index in range(len(self.solids))]
                transfer.write(rotation, np.array([p[0] for p in poses], np.float32))
                transfer.write(position, np.array([p[1] for p in poses], np.float32))
        if self.bodies and now > before:
            self.bodies.predict(before, now - before)

    @property
    def _led(self) -> bool:
        """Whether anything moves as it is told."""
        return bool(self._drags) or any(solid.motion or path_of(solid) for solid in self.solids)

    def motion(self, begin: float, end: float, stretches: int = 8) -> tuple[float, float]:
        """(fastest speed of any surface point [m/s], fastest turn [rad/s]) between two moments [s]."""
        speed, turn = self._body_motion()
        for index, solid in enumerate(self.solids):
            if end <= begin or not (solid.motion or path_of(solid) or id(solid) in self._drags):
                continue
            lever = self._radius[index] if self._radius[index] < UNBOUNDED else 0.0
            if (path := path_of(solid)) and id(solid) not in self._drags:
                fastest = path.fastest(lever)
                speed, turn = max(speed, fastest[0]), max(turn, fastest[1])
                continue
            moments = np.linspace(begin, end, stretches + 1)  # several see what starts slowly
            poses = [self.pose(index, float(t)) for t in moments]
            for (r0, p0), (r1, p1) in itertools.pairwise(poses):
                angle = math.acos(min(1.0, max(-1.0, (np.trace(r0.T @ r1) - 1) / 2)))
                speed = max(speed, (float(np.linalg.norm(p1 - p0)) + angle * lever) * stretches / (end - begin))
                turn = max(turn, angle * stretches / (end - begin))
        return speed, turn

    def _body_motion(self) -> tuple[float, float]:
        """The same of bodies, as they move now."""
        speed, turn = 0.0, 0.0
        for twist, solid in zip(self.bodies.rigid.twists(), self.bodies.rigid.solid, strict=True) if self.bodies else ():
            spin = float(np.linalg.norm(twist[3:]))
            speed, turn = max(speed, float(np.linalg.norm(twist[:3])) + spin * self._radius[solid]), max(turn, spin)
        return speed, turn

    def distance(self, index: int, points: np.ndarray) -> np.ndarray:
        """φ [m] of one solid at world points (n, 3), in its present pose."""
        return _evaluated(self, index, points)

    def normals(self, index: int, points: np.ndarray, step: float) -> np.ndarray:
        """Outward unit normals (n, 3) of one solid at world points; ``step`` [m] is the probe length."""
        result = np.empty((len(points), 3), np.float32)
        for begin in range(0, len(points), CHUNK):
            piece = _device(vec3, np.asarray(points[begin : begin + CHUNK], np.float32))
            out = allocate_array(vec3, piece.shape[0])
            sdf.evaluate_normal(index, piece, piece.shape[0], step, self.device, self.whole_parts, out)
            result[begin : begin + CHUNK] = transfer.read(out)
        return result


def _evaluated(solids: SolidSet, index: int, points: np.ndarray) -> np.ndarray:
    result = np.empty(len(points), np.float32)
    for begin in range(0, len(points), CHUNK):
        piece = _device(vec3, np.asarray(points[begin : begin + CHUNK], np.float32))
        phi = allocate_array(qd.f32, piece.shape[0])
        sdf.evaluate(index, piece, piece.shape[0], solids.device, solids.whole_parts, phi)
        result[begin : begin + CHUNK] = transfer.read(phi)
    return result


def signed_distance(shape: Any, points: np.ndarray, spacing: float = 0.0) -> np.ndarray:
    """φ [m] of any shape of the scene format at points (n, 3) of the frame it is placed in.

    Meshes exactly; as parts of unions between the nodes of a grid, which ``spacing`` [m] makes fine enough for particles.
    """
    from viscoil.scene.parts import Solid

    if shape.type == "mesh":
        from viscoil.solids.mesh_file import load
        from viscoil.solids.mesh_tree import tree_of

        local = (np.asarray(points, float) - np.asarray(shape.position, float)) @ rotation_matrix(shape.rotation)
        return tree_of(load(shape.file, shape.scale)).distance(local)
    return SolidSet([Solid(shape=shape)], spacing=spacing).distance(0, points)


def keyframed(motion: list[Any], interpolation: str, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacement [m] and turn [degrees] of a keyframed thing at a moment [s]; both zero without keyframes.

    "smooth" eases every stretch in and out (3s² − 2s³), so the velocity has no jumps.
    """
    if not motion:
        return np.zeros(3), np.zeros(3)
    after = bisect_right(motion, time, key=lambda key: key.time)
    if after in (0, len(motion)):
        return _stop(motion, max(after - 1, 0))
    (p0, r0), (p1, r1) = _stop(motion, after - 1), _stop(motion, after)
    t0, t1 = motion[after - 1].time, motion[after].time
    s = (time - t0) / (t1 - t0)
    s = s * s * (3 - 2 * s) if interpolation == "smooth" else s
    return p0 + s * (p1 - p0), r0 + s * (r1 - r0)


def _stop(motion: list[Any], index: int) -> tuple[np.ndarray, np.ndarray]:
    """Displacement and turn at a keyframe; what it leaves out is as in the one before."""
    moved = next((key.position for key in reversed(motion[: index + 1]) if key.position is not None), (0.0, 0.0, 0.0))
    turned = next((key.rotation for key in reversed(motion[: index + 1]) if key.rotation is not None), (0.0, 0.0, 0.0))
    return np.asarray(moved, float), np.asarray(turned, float)
