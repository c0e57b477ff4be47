"""The studio: brings together the simulation's process, the surface's process, the picture and the page.

One thread (the conductor) does everything in order. Browsers, processes and scripts only post wishes to it, so nothing here
needs a lock, and a wish that goes wrong is told in the page instead of ending the studio.
"""

import copy
import math
import queue
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.controls import Ingredient
from viscoil.errors import SceneError, ViscoilError
from viscoil.io.frame import Frame
from viscoil.studio import colours, engine, server
from viscoil.studio import messages as m
from viscoil.studio.handles import Handles
from viscoil.studio.link import Link
from viscoil.studio.memory import keep_flat
from viscoil.studio.panel import Panel
from viscoil.studio.plots import History
from viscoil.studio.saving import Saving
from viscoil.studio.stage import Stage, framing, matrix, points_of, poses_of, quaternion
from viscoil.studio.status import Status
from viscoil.studio.surfaces import Surfaces
from viscoil.studio.views import Views
from viscoil.studio.wishes import Wishes
from viscoil.view.camera import Camera

TICK = 0.02  # seconds between two looks at what is due
BETWEEN = 1 / 15  # seconds between two frames while surfaces are shown
NUMBERS, CURVES = 0.25, 0.5  # seconds between two updates of the numbers and of the plots
DEFAULT_PORT = 8080


class Studio(Wishes):
    """A scene in the browser. Methods may be called from any thread; they return at once, unless they say that they wait.

    >>> with Studio("dam_break") as studio:
    ...     print(studio.url)
    ...     studio.play()
    ...     studio.wait(lambda status: status.time > 0.5)
    """

    simulation = staticmethod(engine.main)  # what runs in the simulation's process

    def __init__(
        self, scene: str | Path | None = None, *, host: str = server.LOCAL, port: int = DEFAULT_PORT,
        exact_port: bool = False, device: str = "auto", threads: int | None = None, output: str | Path = "studio",
    ):  # fmt: skip
        """scene: shipped name or file, loaded but not yet played. output: folder for what is saved."""
        keep_flat()
        self._machine = (device, threads)
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._status = Status()
        self._snapshot = Status()
        self.closing = False
        self._engine: Link | None = None
        self._pace: float | None = 1.0
        self._source: m.Load | None = None  # what was asked for last
        self._running: m.Load | None = None  # what was built last
        self.info: m.SceneInfo | None = None
        self.toml = ""  # the scene as edited
        self.frame: Frame | None = None
        self.poses: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._set_stage = False  # the next frame is the first of a scene that was loaded
        self._another = True  # and that scene is another one than before
        self.history = History()
        self.colouring = colours.Colouring()
        self._made_of: dict[str, str] = {}  # material -> preset that it is, if it is one
        self.showing, self._lit = "points", True  # points or surface
        self._due = {"numbers": 0.0, "curves": 0.0, "thanks": math.inf}
        self.server = server.start(host, server.free_port(host, port, exact_port))
        self.stage = Stage(self.server)
        self.views = Views(self.server, self._fit, self.post)
        self.surfaces = Surfaces(self)
        self.handles = Handles(self.server, self._dragged)
        self.saving = Saving(self, Path(output))
        self.panel = Panel(self.server, self)
        self._thread = threading.Thread(target=self._conduct, name="studio", daemon=True)
        self._thread.start()
        if scene is not None:
            self.load(scene)

    # --- for scripts -------------------------------------------------------------------------------------------------
    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where the page is."""
        host = self.server.get_host()
        host = {"0.0.0.0": server.LOCAL, "::": "::1"}.get(host, host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server.get_port()}"

    @property
    def status(self) -> Status:
        """A snapshot: state, numbers, metrics, the last problem."""
        with self._changed:
            return self._snapshot

    def wait(self, condition: Callable[[Status], Any], timeout: float = 60.0) -> Status:
        """Waits until ``condition(status)`` holds; raises TimeoutError with the last status when it does not."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self._snapshot), timeout):
                raise TimeoutError(f"waited {timeout:g} s in vain; the studio is at {self._snapshot}")
            return self._snapshot

    def close(self) -> None:
        """Ends the processes and the server; waits for them."""
        if self.closing:
            return
        self.closing = True
        self.post(lambda: None)
        self._thread.join(10.0)
        self.surfaces.stop()
        if self._engine is not None:
            self._engine.stop(m.Quit())
        self.server.stop()

    def post(self, wish: Callable[[], Any]) -> None:
        """Lets the conductor do something in its turn."""
        self._queue.put(wish)

    # --- the conductor -----------------------------------------------------------------------------------------------
    def _conduct(self) -> None:
        while not self.closing:
            try:
                wish: Callable[[], Any] = self._queue.get(timeout=TICK)
            except queue.Empty:
                wish = self._tick
            try:
                wish()
                self._tick()
            except ViscoilError as error:
                self.problem(str(error))
            except Exception as error:  # whatever it is, the page says it and the studio goes on
                traceback.print_exc()
                self.problem(f"{type(error).__name__}: {error}")
            self._share()

    def _tick(self) -> None:
        """What is due now and then."""
        now = time.perf_counter()
        self.surfaces.tick(now)
        if now >= self._due["thanks"]:
            self._due["thanks"] = math.inf
            self._engine_send(m.Taken())
        if now >= self._due["numbers"]:
            self._due["numbers"] = now + NUMBERS
            self._status.recording = self.saving.recorded
            self.panel.status(self._status)
            self.panel.sliders.settle()
            self.panel.legend(self.colouring.legend(self._made_of))
        if now >= self._due["curves"]:
            self._due["curves"] = now + CURVES
            self.panel.plots.draw(self.history)

    def _share(self) -> None:
        """Lets everybody else see the status as it is."""
        with self._changed:
            self._snapshot = copy.copy(self._status)
            self._changed.notify_all()

    def problem(self, text: str) -> None:
        """Says that something is wrong; it stays in the page until something else went well."""
        self._status.problem = text
        self._due["numbers"] = 0.0
        self.panel.tell("Something is wrong", text[:400], "red")

    def count_mesh(self) -> None:
        """One more surface was drawn."""
        self._status.meshes += 1

    def note(self, text: str) -> None:
        """Says something worth reading."""
        self._status.notes = (*self._status.notes[-20:], text)

    def written(self, path: Path | str, text: str = "") -> None:
        """Says what was saved where."""
        self._status.saved = (*self._status.saved, str(path))
        self.panel.saved([*self.saving.lines, text or f"saved {path}"])
        self.saving.lines.append(text or f"saved {path}")
        self.panel.tell("Saved", text or str(path), "green")

    # --- the simulation's process ------------------------------------------------------------------------------------
    def _command(self, command: Any) -> None:
        """Sends a command; a process that ended is started again with the scene as it was edited."""
        if self._engine is None:
            if self._source is None and not isinstance(command, m.Load):
                raise SceneError("no scene is loaded: choose one first")
            self._start_engine()
            if not isinstance(command, m.Load) and self._source is not None:
                edited = (self.toml, None) if self.toml else (self._source.text, self._source.quality)
                self._engine_send(m.Load(self._source.source, *edited))
                if isinstance(command, m.Reset):
                    return
        if isinstance(command, m.Load | m.Reset | m.Play | m.Change):
            self._status.problem = ""
        self._engine_send(command)

    def _start_engine(self) -> None:
        self._due["thanks"] = math.inf
        self._engine = Link(self.simulation, self._machine, self._from_engine, "simulation")
        self._engine_send(m.Pace(self._pace))
        self.watch()

    def _engine_send(self, command: Any) -> None:
        if self._engine is not None:
            self._engine.send(command)

    def watch(self) -> None:
        """Says which fields frames should carry, and whether all are wanted."""
        self._engine_send(m.Watch(colours.carried(self.colouring.choice), self.saving.recorded is not None))

    def _from_engine(self, link: Link, message: Any, arrays: dict[str, np.ndarray]) -> None:
        self.post(lambda: self._hear(message, arrays) if link is self._engine else None)

    def _hear(self, message: Any, arrays: dict[str, np.ndarray]) -> None:
        match message:
            case m.FrameSent():
                try:
                    self._take(message, arrays)
                finally:
                    # Surfaces take longer than frames: what nobody would see need not be copied.
                    pause = BETWEEN if self.showing == "surface" and self.saving.recorded is None else 0.0
                    self._due["thanks"] = time.perf_counter() + pause
            case m.Loaded():
                self._loaded(message)
            case m.Edited(toml=toml, values=values, ingredients=ingredients):
                self.toml = toml
                self.panel.sliders.show(values)
                self._show_ingredients(ingredients)
            case m.State(name=name, device=device):
                self._status.state, self._status.device = name, device or self._status.device
                self._due["numbers"] = 0.0
            case m.Problem(text=text, about=about):
                self.panel.sliders.refused(about)
                self.problem(text)
            case m.Note(text=text):
                self.note(text)
            case m.Saved(folder=folder, frame=frame, command=command, frames=frames):
                what = f"frame {frame}" if frames == 1 else f"{frames} frames"
                self.written(folder, f"{what} in {folder}; go on with: {command}")
            case m.Keeping(on=on):
                self._status.keeping = on
                self._due["numbers"] = 0.0
            case m.Ended(exit_code=code):
                self._lost(code)

    def _lost(self, code: int | None) -> None:
        """The simulation's process is gone; everything else goes on."""
        self._engine = None
        if self.closing:
            return
        self._status.state, self._status.keeping = "ended", False
        self._status.steps_per_second = self._status.frames_per_second = self._status.speed = 0.0
        how = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
        self.problem(
            f"The simulation's process ended unexpectedly ({how}); too little memory is the usual reason. "
            "Reset starts it again with the scene as it was."
        )

    def _loaded(self, message: m.Loaded) -> None:
        info = message.info
        self._another = self.info is None or self.info.source != info.source
        self.info, self.toml = info, info.toml
        self._set_stage = self._set_stage or message.fresh
        self._status.title, self._status.problem = info.title, ""
        self._status.notes = info.notes
        self._status.scenes += 1
        self._status.metrics = {}
        self._status.updates = 0
        self.surfaces.forget()
        self.history.clear()
        self.colouring.forget()
        self.panel.scene(info, message.fresh)
        self._show_ingredients(info.ingredients)
        if message.fresh:
            self._running = self._source
            self.saving.drop_recording()
            if self.colouring.choice not in colours.choices(info.fields):
                self.set_view(choice=colours.MATERIAL)

    def _show_ingredients(self, ingredients: tuple[Ingredient, ...]) -> None:
        self._made_of = {ingredient.name: ingredient.preset for ingredient in ingredients}
        self.panel.palette.show(ingredients)

    # --- frames ------------------------------------------------------------------------------------------------------
    def _take(self, sent: m.FrameSent, arrays: dict[str, np.ndarray]) -> None:
        frame = Frame.from_header(sent.header, arrays)
        self.frame = frame
        self.poses = poses_of(frame)
        for index, (rotation, position) in enumerate(sent.nozzles):
            self.poses[f"emitter.{index}"] = quaternion(rotation), position
        for row in sent.rows:
            self.history.add(row)
            self._status.metrics = row
        status = self._status
        status.time, status.frame, status.step, status.particles = frame.time, frame.index, frame.step, len(frame)
        status.steps_per_second, status.frames_per_second = sent.rates["steps"], sent.rates["frames"]
        status.speed = sent.rates["speed"]
        if self._set_stage:
            self._raise_curtain(frame)
        self._draw(frame, sent.whole)
        self.handles.follow(self.poses)
        status.updates += 1

    def _raise_curtain(self, frame: Frame) -> None:
        """Sets the stage for another scene."""
        assert self.info is not None
        self._set_stage = False
        camera = framing(frame, self.info)
        self.stage.build(self.info, frame, camera)
        self.views.start(camera)
        self.stage.show(self.showing)
        things = tuple(thing for thing in self.info.things if not thing.by_itself)
        self.handles.build(things, self.stage.size)
        shown = [t.key for t in things if not t.container and t.shape.get("type") != "plane"]
        for key in shown:
            self.handles.show(key, True)
        self.panel.handles(things, shown)
        if self._another:  # whoever loads the same file again keeps the view
            self.views.show_all()

    def _fit(self, aspect: float) -> Camera | None:
        """What sees everything there is now, in a page that has a width and a height."""
        if self.frame is None or self.info is None or self._set_stage or not 0 < aspect < math.inf:
            return None
        return framing(self.frame, self.info, aspect)

    def _draw(self, frame: Frame, whole: bool) -> None:
        if self.showing == "surface":
            with self.stage.atomic():
                self.stage.pose(self.poses)
            self.surfaces.ask()
            return
        moment = points_of(frame, self.colouring, self._lit)
        moment.poses = self.poses
        self.stage.draw(moment)
        if whole:
            self.saving.record(moment)

    def redraw(self) -> None:
        """The present frame again, after the view was changed."""
        if self.frame is None or self._set_stage:
            return
        if self.showing != "surface" or not self.surfaces.put():
            self._draw(self.frame, False)

    # --- the rest of the wishes --------------------------------------------------------------------------------------
    def _load(self, scene: str | Path | None, quality: str | None) -> None:
        if scene is None:  # again what was asked for, or in another quality what runs
            again = self._source if quality is None else self._running
            if again is None:
                raise SceneError("no scene is loaded: choose one first")
            source = m.Load(again.source, again.text, quality or again.quality)
        else:
            source = m.Load(str(scene), None, quality)
        self._command(source)
        self._source = source

    def _load_text(self, name: str, content: bytes) -> None:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise SceneError(f"{name}: not a scene; expected a TOML text file in UTF-8", file=name) from None
        source = m.Load(name or "upload.toml", text)
        self._command(source)
        self._source = source

    def _set_text(self, text: str) -> None:
        import tomllib

        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise SceneError(f'"{text}": expected key = value, e.g. solver.xsph = 0.1')
        try:
            parsed = tomllib.loads(f"value = {value.strip()}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = value.strip()  # 20 Pa s without quotes
        self._command(m.Change(key.strip(), parsed))

    def _move(self, name: str, position: Any, rotation: Any) -> None:
        from viscoil.solids.drag import as_matrix, named

        things = [thing for thing in self.info.things if not thing.by_itself] if self.info else []
        thing = things[named(name, [t.name for t in things], "solid or nozzle")]
        wxyz, place = self.poses.get(thing.key, (quaternion(np.array(thing.rotation)), np.array(thing.position)))
        if rotation is not None:
            wxyz = quaternion(as_matrix(rotation))
        place = place if position is None else np.asarray(position, float)
        self.handles.place(thing.key, wxyz, place)
        self._dragged(thing, place, matrix(wxyz))

    def _dragged(self, thing: m.Thing, position: np.ndarray, rotation: np.ndarray) -> None:
        move = m.Move(thing.kind, thing.index, tuple(position.tolist()), tuple(map(tuple, rotation.tolist())))
        self.post(lambda: self._engine_send(move))

    def _set_handle(self, key: str, shown: bool) -> None:
        self.handles.show(key, shown, self.poses.get(key))

    def set_view(self, show: str | None = None, choice: str | None = None) -> None:
        known = colours.choices(self.info.fields if self.info else {})
        if choice is not None and choice not in known:
            raise SceneError(f'nothing to colour by is called "{choice}"; expected one of: {", ".join(known)}')
        if choice is not None and choice != self.colouring.choice:
            unit = colours.unit_of(choice, self.info.fields if self.info else {})
            self.colouring = colours.Colouring(choice, unit, materials=self.colouring.materials)
            self.watch()
        if show is not None and show != self.showing:
            self.showing = show
            self.surfaces.forget()
            self.stage.show(show)
            self.saving.drop_recording()
        self.panel.view(self.showing, self.colouring.choice)
        self._due["numbers"] = 0.0
        self.redraw()

    def _set_points(self, size: float | None = None, shaded: bool | None = None) -> None:
        self.stage.point_size = self.stage.point_size if size is None else size
        self._lit = self._lit if shaded is None else shaded
        self.redraw()

    def _set_pace(self, factor: float | None) -> None:
        self._pace = factor
        self._engine_send(m.Pace(factor))

    def _set_shadows(self, cast: bool) -> None:
        self.stage.shadows = cast
        self.stage.light()

    def _set_range(self, follow: bool) -> None:
        now = self.colouring
        now.fixed = None if follow else (now.low, now.high)
