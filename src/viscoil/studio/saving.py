"""What the studio writes: pictures, scenes, recordings. Always into its own folder, never over anything."""

import contextlib
import re
import threading
from pathlib import Path
from typing import Any

from viscoil.errors import ViscoilError
from viscoil.io.atomic import explain, write_atomic
from viscoil.studio.handles import without_handles
from viscoil.studio.playback import MOST_BYTES, Recorder
from viscoil.studio.stage import Moment

PATIENCE = 30.0  # seconds a browser may take to hand over its picture


class Saving:
    """Files of one studio."""

    def __init__(self, studio: Any, folder: Path):
        self._studio = studio
        self.folder = folder
        self.lines: list[str] = []  # what was said about files
        self._recorder: Recorder | None = None
        self._visitor: Any = None  # the browser that records
        self._lock = threading.Lock()  # names are given out to several threads

    def new_path(self, what: str, suffix: str) -> Path:
        """A name nobody has: FOLDER/SCENE-WHAT-NUMBER."""
        info = self._studio.info
        stem = re.sub(r"[^\w-]+", "_", Path(info.source if info else "scene").stem) or "scene"
        with self._lock:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                taken = {entry.stem for entry in self.folder.iterdir()}
            except OSError as error:
                raise ViscoilError(explain(error, self.folder)) from error
            number = 1
            while f"{stem}-{what}-{number}" in taken:
                number += 1
            return self.folder / f"{stem}-{what}-{number}{suffix}"

    def _write(self, path: Path, content: bytes, client: Any) -> None:
        write_atomic(path, content)
        if client is not None:
            client.send_file_download(path.name, content, save_immediately=True)
        self._studio.post(lambda: self._studio.written(path))

    # --- scene and picture -------------------------------------------------------------------------------------------
    def scene(self, client: Any) -> Path:
        """The scene as it was edited."""
        if not self._studio.toml:
            raise ViscoilError("there is no scene to save.")
        path = self.new_path("scene", ".toml")
        self._write(path, self._studio.toml.encode(), client)
        return path

    def picture(self, client: Any) -> Path:
        """What a browser sees; without one, the frame as `viscoil render --fast` would draw it."""
        studio = self._studio
        if studio.frame is None:
            raise ViscoilError("there is nothing to see yet.")
        path = self.new_path("picture", ".png")
        client = client or next(iter(studio.server.get_clients().values()), None)
        if client is None:
            from viscoil.view.preview import picture

            picture(studio.frame, path)
            studio.post(lambda: studio.written(path))
            return path
        import io

        from PIL import Image

        view = client.camera
        with contextlib.suppress(RuntimeError), without_handles(client):  # a browser that left while it was asked
            image = client.get_render(view.image_height, view.image_width, transport_format="png", timeout=PATIENCE)
            page = Image.new("RGBA", (image.shape[1], image.shape[0]), (20, 21, 23, 255))
            drawn = Image.fromarray(image)
            page.alpha_composite(drawn.convert("RGBA"))
            target = io.BytesIO()
            page.convert("RGB").save(target, "PNG")
            self._write(path, target.getvalue(), client)
        return path

    # --- recordings --------------------------------------------------------------------------------------------------
    @property
    def recorded(self) -> float | None:
        """Simulated seconds recorded so far; None when not recording."""
        return None if self._recorder is None else self._recorder.seconds

    def toggle_recording(self, client: Any) -> None:
        """Starts to record what is shown, or ends it and writes the page."""
        studio = self._studio
        if self._recorder is None:
            if studio.info is None or studio.frame is None:
                raise ViscoilError("there is nothing to record: no scene is loaded.")
            camera, view = studio.stage.camera, studio.views.of(client, studio.stage.camera)
            self._visitor = client
            self._recorder = Recorder(studio.info, studio.frame, camera, studio.showing, studio.stage.point_size, view)
            studio.watch()
            studio.redraw()
            return
        recorder, self._recorder = self._recorder, None
        recorder.view = studio.views.of(self._visitor, recorder.camera) or recorder.view
        studio.watch()
        if not recorder.moments:
            raise ViscoilError("nothing was recorded: the simulation did not move on.")
        path = self.new_path("playback", ".html")
        threading.Thread(target=self._write_page, args=(recorder, path, client), name="playback", daemon=True).start()

    def _write_page(self, recorder: Recorder, path: Path, client: Any) -> None:
        """In a thread of its own: compressing takes seconds."""
        try:
            self._write(path, recorder.page().encode(), client)
        except (ViscoilError, OSError) as error:
            text = str(error)
            self._studio.post(lambda: self._studio.problem(f"the playback page was not written: {text}"))

    def record(self, moment: Moment) -> None:
        """Keeps a moment while recording; ends the recording when it is full."""
        if self._recorder is not None and not self._recorder.add(moment):
            self._studio.note(f"the recording ended at {MOST_BYTES / 1e6:.0f} MB: larger pages do not open well")
            self.toggle_recording(None)

    def drop_recording(self) -> None:
        """Ends a recording because what it showed is gone; keeps what there is."""
        if self._recorder is not None and self._recorder.moments:
            self.toggle_recording(None)
        self._recorder = None
