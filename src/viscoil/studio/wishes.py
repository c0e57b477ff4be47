"""What may be asked of a studio, by its page or by a script. Everything returns at once and is done in its turn."""

from pathlib import Path
from typing import Any

from viscoil.studio import messages as m
from viscoil.studio.status import BADGES


class Wishes:
    """The studio's methods. Each posts what is to be done; the conductor does it (see ``viscoil.studio.app``)."""

    def __repr__(self) -> str:
        s = self.status
        scene = f'"{s.title}", {s.particles} particles at {s.time:.6g} s, ' if s.title else ""
        return f"<Studio at {self.url}: {scene}{BADGES[s.state][0]}>"

    def load(self, scene: str | Path | None, quality: str | None = None) -> None:
        """Builds a scene: a shipped name or a .toml file; None: the present one again (in another quality)."""
        self.post(lambda: self._load(scene, quality))

    def load_upload(self, name: str, content: bytes) -> None:
        """Builds a scene from the content of a TOML file."""
        self.post(lambda: self._load_text(name, content))

    def play(self) -> None:
        """Goes on."""
        self.post(lambda: self._command(m.Play()))

    def pause(self) -> None:
        """Stops after the present step."""
        self.post(lambda: self._command(m.Pause()))

    def toggle(self) -> None:
        """Play or pause, whichever it is not."""
        playing = ("running", "compiling")
        self.post(lambda: self._command(m.Pause() if self.status.state in playing else m.Play()))

    def step(self) -> None:
        """One time step, then a pause."""
        self.post(lambda: self._command(m.Advance()))

    def step_frame(self) -> None:
        """To the end of the frame, then a pause."""
        self.post(lambda: self._command(m.Advance(frame=True)))

    def reset(self) -> None:
        """Back to the start, keeping all changes."""
        self.post(lambda: self._command(m.Reset()))

    def reload(self) -> None:
        """Reads the file again, as it is now, and starts with it."""
        self.post(lambda: self._load(None, None))

    def pace(self, factor: float | None) -> None:
        """Simulated seconds per second at most; None: as fast as it can."""
        self.post(lambda: self._set_pace(factor))

    def set(self, path: str, value: Any) -> None:
        """Changes a key of the scene while it runs, e.g. ``set("gravity.strength", 20)``."""
        self.post(lambda: self._command(m.Change(path, value)))

    def set_text(self, text: str) -> None:
        """Changes a key of the scene as written in a file: ``solver.xsph = 0.1``."""
        self.post(lambda: self._set_text(text))

    def move(self, name: str, position: Any = None, rotation: Any = None) -> None:
        """Drags a solid or nozzle by name, to ``position`` [m] and ``rotation`` (angles in degrees, or a matrix)."""
        self.post(lambda: self._move(name, position, rotation))

    def show(self, what: str) -> None:
        """points or surface."""
        self.post(lambda: self.set_view(show=what))

    def colour_by(self, choice: str) -> None:
        """material, speed, density or any other quantity the particles carry."""
        self.post(lambda: self.set_view(choice=choice))

    def colour_range(self, follow: bool) -> None:
        """Whether the colours' range follows the values."""
        self.post(lambda: self._set_range(follow))

    def point_size(self, spacings: float) -> None:
        """Size of the points in particle spacings."""
        self.post(lambda: self._set_points(size=float(spacings)))

    def lit(self, shaded: bool) -> None:
        """Whether points are shaded."""
        self.post(lambda: self._set_points(shaded=bool(shaded)))

    def shadows(self, cast: bool) -> None:
        """Whether surfaces and solids cast shadows."""
        self.post(lambda: self._set_shadows(bool(cast)))

    def show_solids(self, shown: bool) -> None:
        """Whether solids and nozzles are drawn."""
        self.post(lambda: [self.stage.visible(kind, shown) for kind in ("solid", "emitter")])

    def handle(self, key: str, shown: bool) -> None:
        """Shows or hides the handle of ``solid.0`` or ``emitter.0``."""
        self.post(lambda: self._set_handle(key, shown))

    def look(self, client: Any = None) -> None:
        """Aims the camera of one browser (or of all) at the scene as it is now."""
        self.post(lambda: self.views.show_all(client))

    def toggle_recording(self, client: Any = None) -> None:
        """Starts a recording, or ends it and writes its page."""
        self.post(lambda: self.saving.toggle_recording(client))

    def save_scene(self, client: Any = None) -> None:
        """The scene with all changes as a TOML file (and as a download of ``client``)."""
        self.post(lambda: self.saving.scene(client))

    def save_checkpoint(self) -> None:
        """A run folder that `viscoil run --resume` continues."""
        self.post(lambda: self._command(m.Save(str(self.saving.new_path("checkpoint", "")))))

    def toggle_keeping(self) -> None:
        """Starts to write every frame to a run folder, for `viscoil render` and `viscoil export`, or ends it."""
        self.post(lambda: self._command(m.Keep(None if self.status.keeping else str(self.saving.new_path("frames", "")))))

    def save_picture(self, client: Any = None) -> Path:
        """A PNG of what ``client`` (or any open browser) sees, otherwise drawn without one; waits, returns its path."""
        return self.saving.picture(client)
