"""What is to be seen: particles or surface, solids, floor and camera, as nodes of a viser scene.

A stage draws moments (:class:`Moment`), arrays ready for the wire. The same moments, drawn on a stage nobody watches, become
a playback page.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from viscoil.io.frame import Frame
from viscoil.solids.meshes import creased, mesh
from viscoil.studio.colours import LIGHT, Colouring, bounds, lit
from viscoil.studio.glb import glb
from viscoil.studio.messages import SceneInfo, Thing
from viscoil.view.camera import Camera

MOST_POINTS = 400_000  # drawn at once
LINES = (120, 128, 140)
CELLS = (62, 66, 73)
SECTIONS = (86, 92, 101)
GROUND = (44, 47, 52)
NOZZLE = (0.62, 0.66, 0.72)
ASPECT = 1.15  # width of a picture by its height, where no browser says
KEY, SKY, ROOM = 1.7, 0.7, 0.3  # how bright the lamp, the sky and the room are that surfaces reflect


@dataclass
class Moment:
    """Everything that changes, at one time [s]."""

    time: float
    points: np.ndarray | None = None  # (n, 3) float16, relative to ``centre``
    colours: np.ndarray | None = None  # (n, 3) uint8
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    every: int = 1  # only every such particle is among the points
    surface: bytes | None = None  # a .glb
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # thing -> (wxyz, position)

    def nbytes(self) -> int:
        """Memory it takes."""
        arrays = [a.nbytes for a in (self.points, self.colours) if a is not None]
        return sum(arrays) + len(self.surface or b"")


def points_of(frame: Frame, colouring: Colouring, shaded: bool) -> Moment:
    """The particles of a frame as points."""
    every = -(-len(frame) // MOST_POINTS)  # a browser has its limits: of millions, every second, third ... is drawn
    fields = frame.fields if every < 2 else {name: values[::every] for name, values in frame.fields.items()}
    position = fields["position"]
    colours = colouring.colours(fields, frame.materials)
    if shaded:
        colours = lit(colours, position, frame.spacing * max(every, 1) ** (1 / 3), frame.up_axis)
    # Half precision about the middle: a hundredth of a spacing in a scene a hundred particles across.
    low, high = bounds(position) if len(frame) else (np.zeros(3, np.float32),) * 2
    # Places and points reach the screen a picture apart, so the middle is a round one that seldom moves.
    step = 2.0 ** np.ceil(np.log2(max(float(np.max(high - low)), 1e-6))) / 2
    centre = (np.round((low + high) / 2 / step) * step).astype(np.float32)
    points = (position - centre).astype(np.float16)
    return Moment(frame.time, points, colours, tuple(centre.tolist()), poses=poses_of(frame), every=max(every, 1))


def surface_of(
    vertices: np.ndarray, triangles: np.ndarray, fields: dict[str, np.ndarray], materials: list[dict[str, Any]],
    time: float, colouring: Colouring,
) -> Moment:  # fmt: skip
    """A mesh as a surface."""
    if not len(triangles):
        return Moment(time, surface=b"")
    normals = fields.get("normal", np.zeros_like(vertices))
    return Moment(time, surface=glb(vertices, triangles, normals, colouring.colours(fields, materials)))


def poses_of(frame: Frame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Where the solids are."""
    found = {}
    for index, solid in enumerate(frame.solids):
        pose = np.asarray(solid["pose"], float)
        found[f"solid.{index}"] = quaternion(pose[:3, :3]), pose[:3, 3]
    return found


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation matrix."""
    from viser import transforms

    return np.asarray(transforms.SO3.from_matrix(np.asarray(rotation, float)).wxyz)


def matrix(wxyz: Any) -> np.ndarray:
    """Rotation matrix of (w, x, y, z)."""
    from viser import transforms

    return np.asarray(transforms.SO3(np.asarray(wxyz, float)).as_matrix())


class Stage:
    """The nodes of one viser server."""

    def __init__(self, server: Any):
        self.server = server
        self.camera: Camera | None = None
        self.size = 1.0  # of the whole [m]
        self._root: Any = None  # the node that all of the present scene hang on
        self._scenes = 0  # set so far
        self._up = ""  # the axis that pages have upright
        self._hidden: set[str] = set()  # kinds of things that are not shown
        self._things: dict[str, list[Any]] = {}
        self._points: Any = None
        self._surfaces: list[Any] = []  # two: one is shown while the other loads
        self._front = 0
        self._loading: Any = None  # the surface that waits to be shown
        self._show = "points"
        self.point_size = 1.0  # in spacings
        self._spacing = 0.01
        self.shadows = True  # where there is something to cast them
        self._lamps: tuple[bool, bool] | None = None
        server.scene.world_axes.visible = False
        self.light()

    # --- a scene -----------------------------------------------------------------------------------------------------
    def build(self, info: SceneInfo, frame: Frame, camera: Camera) -> None:
        """Clears the stage and sets it for a scene, seen by ``camera``.

        All names are new: browsers give a node that bears the name of an earlier one what they know of that, its place and
        whether it is shown, and are told nothing of what is as it usually is.
        """
        with self.atomic():
            self.clear()
            self._scenes += 1
            self._root = self.server.scene.add_frame(f"/scene {self._scenes}", show_axes=False)
            self._spacing = info.spacing
            self.camera, self.size = camera, _size(frame, camera)
            if self._up != info.up:  # not otherwise: whenever it is sent, pages go back to where they started
                self._up = info.up
                self.server.scene.set_up_direction(f"+{info.up}")
            self._lamps = None
            self.light()
            self._floor(info, camera)
            for thing in info.things:
                self._things[thing.key] = self._thing(thing)
            for kind in self._hidden:
                self.visible(kind, False)
            if info.box is not None:
                self._lines("/box", _box_edges(*info.box), LINES)
            dot, grey = np.zeros((1, 3), np.float16), np.full((1, 3), 128, np.uint8)
            self._points = self.server.scene.add_point_cloud(
                self._name("/fluid/points"), dot, grey, point_size=self.point_size * info.spacing, point_shape="circle",
                point_shading="gradient", visible=False,
            )  # fmt: skip

    def clear(self) -> None:
        """Removes everything of the scene."""
        if self._root is not None:
            self._root.remove()
        self._root = self._points = self._loading = None
        self._things, self._surfaces, self._front = {}, [], 0

    def _name(self, path: str) -> str:
        """Name of a node of the present scene."""
        return self._root.name + path

    def _floor(self, info: SceneInfo, camera: Camera) -> None:
        if camera.floor is None:
            return
        axis = "xyz".index(info.up)
        place = [round(x / _nice(self.size / 4)) * _nice(self.size / 4) for x in camera.target]
        place[axis] = camera.floor - 1e-3 * self.size
        cell = _nice(self.size / 20)
        self.server.scene.add_grid(
            self._name("/floor"), width=12 * self.size, height=12 * self.size, plane="xz" if axis == 1 else "xy",
            cell_size=cell, section_size=5 * cell, cell_color=CELLS, section_color=SECTIONS, infinite_grid=True,
            fade_distance=14 * self.size, fade_strength=1.5, shadow_opacity=0.55, plane_color=GROUND, plane_opacity=1.0,
            position=tuple(place),
        )  # fmt: skip

    def _thing(self, thing: Thing) -> list[Any]:
        """Nodes of a solid or nozzle, in its own frame."""
        name, scene = self._name(f"/things/{thing.kind} {thing.index}"), self.server.scene
        place = {"wxyz": quaternion(np.array(thing.rotation)), "position": thing.position}
        if thing.kind == "emitter":
            vertices, triangles = nozzle_mesh(thing.shape)
            return [scene.add_mesh_simple(name, *_smooth(vertices, triangles), color=NOZZLE, side="double", **place)]
        vertices, triangles = mesh(thing.shape, 48, 3 * self.size)
        if thing.shape.get("type") == "plane":
            upright = abs(np.array(thing.rotation)[:, 1] @ np.asarray(self.camera.up if self.camera else (0, 1, 0))) > 0.99
            if upright:
                return []  # it is the floor
            return [scene.add_mesh_simple(name, vertices, triangles, color=LINES, opacity=0.25, side="double", **place)]
        if not thing.container:
            return [scene.add_mesh_simple(name, *_smooth(vertices, triangles), color=thing.colour, **place)]
        edges = sharp_edges(vertices, triangles)
        if len(edges):  # a box says enough by its edges
            return [self._lines(f"/things/{thing.kind} {thing.index}", edges, LINES, **place)]
        return [
            scene.add_mesh_simple(
                name, vertices, triangles, color=LINES, opacity=0.14, side="back", cast_shadow=False, receive_shadow=False,
                **place,
            )
        ]  # fmt: skip

    def _lines(self, path: str, edges: np.ndarray, colour: tuple[int, int, int], **place: Any) -> Any:
        return self.server.scene.add_line_segments(
            self._name(path), edges.astype(np.float32), colour, thickness=1.5, thickness_units="screen", **place
        )

    # --- moments -----------------------------------------------------------------------------------------------------
    def show(self, what: str) -> None:
        """points or surface."""
        self._show = what
        self.light()
        if self._points is not None:
            with self.atomic():
                if what == "points":
                    for node in self._surfaces:
                        node.visible = False
                    self._loading = None
                else:
                    self._points.visible = False

    def light(self) -> None:
        """Lamps that suit what is shown: points neither reflect a room nor cast shadows, and without a graphics card both
        are dear."""
        surface = self._show == "surface"
        lamps = (surface, surface and self.shadows)
        if lamps == self._lamps:
            return
        self._lamps = lamps
        scene = self.server.scene
        scene.configure_default_lights(False)
        upright = self.camera is None or self.camera.up[1] > 0.5
        place = tuple((LIGHT if upright else LIGHT[[0, 2, 1]] * [1, -1, 1]).tolist())
        scene.add_light_directional("/lights/lamp", intensity=KEY, cast_shadow=lamps[1], position=place)
        scene.add_light_hemisphere("/lights/sky", sky_color=(235, 242, 255), ground_color=(90, 85, 80), intensity=SKY)
        scene.configure_environment_map("studio" if surface else None, environment_intensity=ROOM)

    def draw(self, moment: Moment) -> None:
        """Puts a moment on the stage. A surface appears when :meth:`reveal` is called: browsers load it first."""
        if self._points is None:
            return
        with self.atomic():
            self.pose(moment.poses)
            if moment.points is not None and self._show == "points":
                self._draw_points(moment)
            if moment.surface is not None and self._show == "surface":
                self._draw_surface(moment.surface)

    def pose(self, poses: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Moves solids and nozzles."""
        for key, (wxyz, position) in poses.items():
            for node in self._things.get(key, ()):
                if not np.array_equal(node.position, position):
                    node.position = position
                if not np.array_equal(node.wxyz, wxyz):
                    node.wxyz = wxyz

    def _draw_points(self, moment: Moment) -> None:
        node = self._points
        assert moment.points is not None and moment.colours is not None
        if len(moment.points):
            node.points, node.colors, node.position = moment.points, moment.colours, moment.centre
        node.point_size = self.point_size * self._spacing * moment.every ** (1 / 3)
        node.visible = bool(len(moment.points))

    def _draw_surface(self, data: bytes) -> None:
        self.reveal()
        if not data:
            for node in self._surfaces:
                node.visible = False
            return
        if len(self._surfaces) < 2:
            self._surfaces.append(
                self.server.scene.add_glb(self._name(f"/fluid/surface {len(self._surfaces)}"), data, visible=False)
            )
            self._loading = self._surfaces[-1]
            return
        back = self._surfaces[1 - self._front]
        back.glb_data = data
        self._loading = back

    def reveal(self) -> None:
        """Shows the surface that was sent last in place of the one before."""
        if self._loading is None:
            return
        with self.atomic():
            for index, node in enumerate(self._surfaces):
                node.visible = node is self._loading
                if node is self._loading:
                    self._front = index
        self._loading = None

    @property
    def waiting(self) -> bool:
        """Whether a surface was sent but is not shown yet."""
        return self._loading is not None

    def visible(self, kind: str, shown: bool) -> None:
        """Shows or hides all solids ("solid") or nozzles ("emitter"), those of later scenes too."""
        self._hidden = self._hidden - {kind} if shown else self._hidden | {kind}
        for key, nodes in self._things.items():
            for node in nodes if key.startswith(kind) else ():
                node.visible = shown

    def atomic(self) -> contextlib.AbstractContextManager[None]:
        """What is changed inside arrives together."""
        return self.server.atomic()


# --- the camera ------------------------------------------------------------------------------------------------------
def framing(frame: Frame, info: SceneInfo, aspect: float = ASPECT) -> Camera:
    """A camera that sees the fluid, the solids, the nozzles and where all that will get to, in a picture that is ``aspect``
    times as wide as it is high."""
    spouts = [
        nozzle_mesh(thing.shape)[0] @ np.array(thing.rotation).T + np.array(thing.position)
        for thing in info.things
        if thing.kind == "emitter"
    ]
    also = np.concatenate([*spouts, np.array(info.reach, float).reshape(-1, 3), _room(frame, info.things)])
    return Camera.framing([frame], (round(1000 * aspect), 1000), elevation=18.0, also=also)


def _room(frame: Frame, things: tuple[Thing, ...]) -> np.ndarray:
    """Points (n, 3) of the containers around the fluid, of huge ones what is near."""
    if not len(frame):
        return np.zeros((0, 3))
    low, high = bounds(frame["position"])
    reach = 2.0 * float(np.max(high - low)) + 4 * frame.spacing
    above = high + reach
    above[frame.up_axis] = high[frame.up_axis] + 0.1 * (high - low)[frame.up_axis]
    found = [np.zeros((0, 3))]
    for thing in things:
        if thing.container and thing.shape.get("type") == "box":
            corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, 8).T * thing.shape["size"]
            corners = corners @ np.array(thing.rotation).T + np.array(thing.position)
            found.append(np.clip(corners, low - reach, above))
    return np.concatenate(found)


# --- shapes ----------------------------------------------------------------------------------------------------------
def _smooth(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With vertices doubled along sharp edges, so that browsers shade boxes as boxes and balls as balls."""
    points, faces, _ = creased(vertices, triangles)
    return points, faces


def nozzle_mesh(shape: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A short spout that ends at the opening; the flow is local +y."""
    if shape.get("type") == "box":
        x, _, z = shape["size"]
        vertices, triangles = mesh({"type": "box", "size": (1.1 * x, 1.2 * max(x, z), 1.1 * z)}, 32)
    else:
        wide = np.ptp(mesh(shape)[0], axis=0)[[0, 2]].max() / 2 if shape.get("type") == "mesh" else 0.0
        radius = float(wide or shape.get("radius") or shape.get("top_radius") or shape.get("height", 0.1) / 2)
        body = {"bottom_radius": 1.35 * radius, "top_radius": radius, "height": 2.0 * radius, "thickness": 0.2 * radius}
        vertices, triangles = mesh({"type": "funnel", **body}, 32)
    return vertices - np.array([0, vertices[:, 1].max(), 0], np.float32), triangles


def sharp_edges(vertices: np.ndarray, triangles: np.ndarray, angle: float = 35.0) -> np.ndarray:
    """(e, 2, 3) edges at which two faces meet at more than ``angle`` degrees."""
    corner = np.asarray(vertices, float)[triangles]
    face = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    face /= np.maximum(np.linalg.norm(face, axis=1, keepdims=True), 1e-30)
    pairs = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(len(triangles)), 3)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, owner = pairs[order], owner[order]
    twin = np.nonzero((pairs[1:] == pairs[:-1]).all(axis=1))[0]
    sharp = np.einsum("ij,ij->i", face[owner[twin]], face[owner[twin + 1]]) < np.cos(np.radians(angle))
    return np.asarray(vertices)[pairs[twin[sharp]]]


def _box_edges(low: Any, high: Any) -> np.ndarray:
    corners = np.array([[low[0], low[1], low[2]], [high[0], high[1], high[2]]], float)
    found = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for a in (0, 1):
            for b in (0, 1):
                ends = np.zeros((2, 3))
                ends[:, axis], ends[:, u], ends[:, v] = corners[:, axis], corners[a, u], corners[b, v]
                found.append(ends)
    return np.array(found)


def _size(frame: Frame, camera: Camera) -> float:
    """A length that says how large the scene is: half the height of what the camera sees at its target [m]."""
    far = float(np.linalg.norm(np.subtract(camera.position, camera.target)))
    return max(far * float(np.tan(np.radians(camera.field_of_view) / 2)), 4 * frame.spacing, 1e-6)


def _nice(length: float) -> float:
    """The next smaller of 1, 2, 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(max(length, 1e-12)))
    return float(power * max(n for n in (1, 2, 5) if n * power <= length * (1 + 1e-9)))
