"""Handles in the picture: arrows and arcs on solids and nozzles that can be dragged while it runs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from viscoil.studio.messages import Thing
from viscoil.studio.stage import matrix, quaternion

FOLDER = "/handles"  # the node they hang on
NEAR = 1e-3  # a thing this close (in sizes of the stage) to where it is wanted has arrived


class Handles:
    """Gizmos of one server. ``moved(thing, position, rotation)`` is called while they are dragged, in order."""

    def __init__(self, server: Any, moved: Callable[[Thing, np.ndarray, np.ndarray], None]):
        self._server = server
        self._moved = moved
        self._things: dict[str, Thing] = {}
        self._gizmos: dict[str, Any] = {}
        self._made = 0  # gizmos so far: each has a name of its own, see Stage.build
        self._held: set[str] = set()  # being dragged now
        self._wanted: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # dragged there (wxyz, position), not arrived yet
        self._size = 1.0

    def build(self, things: tuple[Thing, ...], size: float) -> None:
        """Forgets the old scene's handles and learns the new scene's things; none is shown yet."""
        for key in list(self._gizmos):
            self.show(key, False)
        self._things, self._size = {thing.key: thing for thing in things}, size
        self._held.clear()
        self._wanted.clear()

    def show(self, key: str, shown: bool, pose: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Shows or removes the handle of a thing, which stands at ``pose`` (wxyz, position)."""
        gizmo = self._gizmos.pop(key, None)
        if gizmo is not None:
            gizmo.remove()
        thing = self._things.get(key)
        if not shown or thing is None:
            return
        wxyz, position = pose if pose is not None else (quaternion(np.array(thing.rotation)), np.array(thing.position))
        self._made += 1
        gizmo = self._server.scene.add_transform_controls(
            f"{FOLDER}/{key} {self._made}", scale=0.32 * self._size, line_width=3.0, depth_test=False, wxyz=wxyz,
            position=position, disable_sliders=False, opacity=0.9,
        )  # fmt: skip
        self._gizmos[key] = gizmo

        @gizmo.on_update
        async def _(event: Any) -> None:  # async: in order, on the server's own loop
            if event.phase == "start":
                self._held.add(key)
            turn, target = np.array(event.target.wxyz, float), np.array(event.target.position, float)
            if event.phase == "update":
                self._wanted[key] = turn, target
                self._moved(thing, target, matrix(turn))
            if event.phase == "end":
                self._held.discard(key)

    def follow(self, poses: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Moves handles with their things, but not away from under a hand, nor before what was wanted is reached."""
        for key, (wxyz, position) in poses.items():
            gizmo = self._gizmos.get(key)
            if gizmo is None or key in self._held:
                continue
            if key in self._wanted:
                turn, target = self._wanted[key]
                far = np.linalg.norm(target - position) > NEAR * self._size or abs(float(np.dot(turn, wxyz))) < 1 - NEAR
                if far:
                    continue
                del self._wanted[key]
            if not np.allclose(gizmo.position, position, atol=1e-6 * self._size):
                gizmo.position = position
            if abs(float(np.dot(gizmo.wxyz, wxyz))) < 1 - 1e-9:
                gizmo.wxyz = wxyz

    def place(self, key: str, wxyz: np.ndarray, position: np.ndarray) -> None:
        """Puts a handle where a script wants its thing."""
        self._wanted[key] = np.asarray(wxyz, float), np.asarray(position, float)
        gizmo = self._gizmos.get(key)
        if gizmo is not None and key not in self._held:
            gizmo.position, gizmo.wxyz = position, wxyz

    @property
    def shown(self) -> list[str]:
        """Keys of the things that have a handle."""
        return list(self._gizmos)


@contextlib.contextmanager
def without_handles(client: Any) -> Iterator[None]:
    """One browser shows no handles meanwhile: a hidden node of its own stands before the one they hang on."""
    cover = client.scene.add_frame(FOLDER, show_axes=False, visible=False)
    try:
        yield
    finally:
        cover.remove()
