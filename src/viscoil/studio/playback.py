"""Recordings: moments that were shown, as one page that plays them anywhere, without a server or a network."""

from collections.abc import Callable, Iterable

from viscoil.io.frame import Frame
from viscoil.studio import server as web
from viscoil.studio.messages import SceneInfo
from viscoil.studio.stage import Moment, Stage
from viscoil.studio.views import start_from
from viscoil.view.camera import Camera

MOST_BYTES = 400_000_000  # of a recording: larger pages do not open in browsers


class Recorder:
    """Collects moments until it is stopped or full."""

    def __init__(
        self, info: SceneInfo, frame: Frame, camera: Camera, show: str, point_size: float, view: Camera | None = None
    ):
        """camera: sees everything. view: where the page looks from when it is opened, if not from there."""
        self.info, self.frame, self.camera, self.view = info, frame, camera, view
        self.show, self.point_size = show, point_size
        self.moments: list[Moment] = []
        self.bytes = 0

    def add(self, moment: Moment) -> bool:
        """Keeps a moment if time has moved on; False when the recording is full."""
        shown = moment.surface if self.show == "surface" else moment.points
        if shown is None or (self.moments and moment.time <= self.moments[-1].time):
            return True
        self.moments.append(moment)
        self.bytes += moment.nbytes()
        return self.bytes < MOST_BYTES

    @property
    def seconds(self) -> float:
        """Simulated time it spans [s]."""
        return self.moments[-1].time - self.moments[0].time if self.moments else 0.0

    def page(self) -> str:
        """The finished page."""
        return page(self.info, self.frame, self.camera, self.moments, self.show, self.point_size, self.view)


def page(
    info: SceneInfo, frame: Frame, camera: Camera, moments: Iterable[Moment], show: str, point_size: float,
    view: Camera | None = None, progress: Callable[[int], None] | None = None,
) -> str:  # fmt: skip
    """HTML that plays ``moments`` at the speed of their times, seen from ``view`` (None: ``camera``).

    Drawn by a server nobody can reach, which then ends.
    """
    server = web.start(web.LOCAL, 0)
    try:
        server.gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False)
        stage = Stage(server)
        stage.point_size = point_size
        stage.build(info, frame, camera)
        start_from(server, view or camera)
        stage.show(show)
        record = None
        last: Moment | None = None
        for number, moment in enumerate(moments):
            if record is not None and last is not None:
                record.insert_sleep(max(moment.time - last.time, 0.0))
            stage.draw(moment)
            if record is None:
                stage.reveal()  # the first surface is there from the start
                record = server.get_scene_serializer()
            last = moment
            if progress is not None:
                progress(number)
        stage.reveal()
        if record is None:
            record = server.get_scene_serializer()
        record.insert_sleep(info.frame_time)
        return _titled(record.as_html(dark_mode=True), info)
    finally:
        server.stop()


def _titled(text: str, info: SceneInfo) -> str:
    """The page under the scene's name."""
    import html
    import re

    name = html.escape(info.title)
    return re.sub(r"<title>.*?</title>", f"<title>{name}</title>", text, count=1, flags=re.DOTALL)
