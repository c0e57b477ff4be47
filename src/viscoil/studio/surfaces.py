"""The live surface: asks its process for one mesh at a time, always of the latest frame."""

from time import perf_counter
from typing import Any

import numpy as np

from viscoil.studio import mesher
from viscoil.studio import messages as m
from viscoil.studio.link import Link
from viscoil.studio.stage import surface_of

LOADING = 0.12  # seconds a browser gets to load a surface before it is shown


class Surfaces:
    """The surface's process and what it made last."""

    def __init__(self, studio: Any):
        self._studio = studio
        self._link: Link | None = None
        self._serial = 0  # counts scenes: meshes of an older one are not shown
        self._busy: tuple[int, float] | None = None  # (scene, time) of the frame being meshed
        self._done: tuple[int, float] | None = None
        self._last: tuple[Any, ...] | None = None  # what the last surface was made of
        self._reveal = 0.0  # when it is shown

    def forget(self) -> None:
        """The scene or the view is another one."""
        self._serial += 1
        self._done = self._last = None

    def ask(self) -> None:
        """Sends the latest frame to be meshed, if the last one is done."""
        frame = self._studio.frame
        if frame is None or self._busy is not None or (self._serial, frame.time) == self._done:
            return
        if self._link is None:
            self._link = Link(mesher.main, (), self._receive, "surface")
        self._busy = self._serial, frame.time
        wanted, fields = mesher.Wanted(frame.header(), self._serial), frame.fields
        self._link.send_with(lambda pipe: m.send_arrays(pipe, wanted, fields))

    def _receive(self, link: Link, message: Any, arrays: dict[str, np.ndarray]) -> None:
        self._studio.post(lambda: self._hear(message, arrays) if link is self._link else None)

    def _hear(self, message: Any, arrays: dict[str, np.ndarray]) -> None:
        studio = self._studio
        asked, self._busy = self._busy, None
        if isinstance(message, m.Ended):
            self._link = None
            if not studio.closing:
                studio.problem("The process that computes surfaces ended unexpectedly; the next frame starts it again.")
        elif isinstance(message, m.Problem):
            studio.set_view(show="points")
            studio.problem(message.text)
        elif message.serial != self._serial or studio.showing != "surface":
            self.ask()
        else:
            self._done = asked
            self._last = arrays["vertices"], arrays["triangles"], mesher.fields_of(arrays), message.header
            self.put(fresh=True)
            self.ask()

    def put(self, fresh: bool = False) -> bool:
        """Draws the last surface (again); False when there is none."""
        if self._last is None:
            return False
        studio = self._studio
        vertices, triangles, fields, header = self._last
        moment = surface_of(vertices, triangles, fields, header["materials"], header["time"], studio.colouring)
        moment.poses = studio.poses
        studio.stage.draw(moment)
        self._reveal = perf_counter() + LOADING
        if fresh:
            studio.count_mesh()
            studio.saving.record(moment)
        return True

    def tick(self, now: float) -> None:
        """Shows what browsers have had time to load."""
        if self._studio.stage.waiting and now >= self._reveal:
            self._studio.stage.reveal()

    def stop(self) -> None:
        """Ends the process."""
        if self._link is not None:
            self._link.stop(m.Quit())
