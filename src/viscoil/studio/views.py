"""Where the browsers look from. Each shows everything, as its width and height need, until a hand turns it."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from viscoil.view.camera import Camera

LAST = 4  # positions given to a page that are remembered
NEAR, FAR = 1 / 200, 200.0  # nearest and farthest that is drawn, in distances to what is looked at


class Views:
    """The cameras of one server's pages. ``fit(aspect)``: what sees everything; ``later(wish)`` does something in its turn."""

    def __init__(self, server: Any, fit: Callable[[float], Camera | None], later: Callable[[Callable[[], None]], None]):
        self._server, self._fit, self._later = server, fit, later
        self._start: Camera | None = None  # where pages are opened
        # By page: the last positions it was given (what it tells may be older than the last), and for what width by height.
        self._given: dict[int, tuple[deque[Any], float]] = {}

        @server.on_client_connect
        async def _(client: Any) -> None:
            self._meet(client)

        @server.on_client_disconnect
        async def _(client: Any) -> None:
            self._given.pop(client.client_id, None)

    def start(self, camera: Camera) -> None:
        """Pages opened from now on look from there, until their width and height are known."""
        self._start = camera
        start_from(self._server, camera)

    def show_all(self, client: Any = None) -> None:
        """One page, or all, look at everything."""
        for one in [client] if client is not None else self._server.get_clients().values():
            aspect = one.camera.aspect
            camera = self._fit(aspect)
            if camera is not None:
                self._give(one, camera, aspect)
                aim(one, camera)

    def of(self, client: Any, camera: Camera) -> Camera | None:
        """``camera`` as a page has it now; that of the first page, when none is named; None when it is not open."""
        pages = self._server.get_clients()
        client = next(iter(pages.values()), None) if client is None else pages.get(client.client_id)
        return seen_by(client, camera) if client is not None else None

    def _meet(self, client: Any) -> None:
        """Follows the size of a page: panels and windows are moved, and the first size told is from before the panels."""
        if self._start is not None:
            self._give(client, self._start, 0.0)

        @client.camera.on_update
        async def _(camera: Any) -> None:
            self._resized(client)

        self._resized(client)

    def _give(self, client: Any, camera: Camera, aspect: float) -> None:
        positions, _ = self._given.get(client.client_id, (deque(maxlen=LAST), 0.0))
        positions.append(np.array(camera.position))
        self._given[client.client_id] = positions, aspect

    def _resized(self, client: Any) -> None:
        positions, aspect = self._given.get(client.client_id, (deque([np.full(3, np.inf)]), 0.0))
        view = client.camera
        close = 1e-3 * np.linalg.norm(view.position - view.look_at)
        near = lambda position: np.linalg.norm(view.position - position) < close  # noqa: E731
        untouched = any(near(position) for position in positions.copy())
        # A page may also have gone back to where pages start: as it does when another axis becomes upright.
        back = self._start is not None and near(self._start.position) and not near(positions[-1])
        if back or (untouched and abs(view.aspect - aspect) > 1e-3):
            self._given[client.client_id] = positions, view.aspect
            self._later(lambda: self.show_all(client))


def start_from(server: Any, camera: Camera) -> None:
    """Pages look from there when they are opened."""
    start = server.initial_camera
    start.position, start.look_at, start.up = camera.position, camera.target, camera.up
    start.fov = float(np.radians(camera.field_of_view))
    start.near, start.far = _depths(camera)


def aim(client: Any, camera: Camera) -> None:
    """Makes one page look as ``camera`` does."""
    with client.atomic():
        view = client.camera
        view.up_direction, view.fov = camera.up, float(np.radians(camera.field_of_view))
        view.position, view.look_at = camera.position, camera.target
        view.near, view.far = _depths(camera)


def seen_by(client: Any, camera: Camera) -> Camera:
    """``camera`` where one page looks from."""
    view = client.camera
    position, target, up = (tuple(np.asarray(v, float).tolist()) for v in (view.position, view.look_at, view.up_direction))
    return replace(camera, position=position, target=target, up=up, field_of_view=float(np.degrees(view.fov)))


def _depths(camera: Camera) -> tuple[float, float]:
    far = float(np.linalg.norm(np.subtract(camera.position, camera.target)))
    return NEAR * far, FAR * far
