"""The simulation's process: obeys commands between two steps, sends frames when somebody took the last one.

It knows nothing of browsers. Whatever goes wrong in a scene or a step becomes a message; only a crash of the process itself
(or the end of its parent) ends it.
"""

import gc
import tempfile
import traceback
from collections import deque
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from viscoil.controls import apply, ingredients, scene_controls
from viscoil.errors import SimulationFailed, ViscoilError
from viscoil.studio import messages as m
from viscoil.studio.keeping import Keeper, at_frame
from viscoil.studio.link import leave_interrupts_to_the_parent
from viscoil.studio.memory import keep_flat

UPDATE = 1 / 60  # shortest time between two frames sent [s]
SHARE = 0.3  # of the time that looking may take from computing
IDLE = 0.25  # seconds between two looks around while nothing runs
WINDOW = 2.0  # seconds over which rates are taken
HAND = 0.075  # seconds, at real-time speed, in which a solid follows the hand: a little more than between two messages
ROW = (
    "frame", "time", "particles", "height", "kinetic_energy", "compression", "density_mean", "density_max", "speed_max",
    "momentum_x", "momentum_y", "momentum_z", "centre_of_mass_x", "centre_of_mass_y", "centre_of_mass_z", "steps", "dt",
)  # fmt: skip


def main(pipe: Connection, device: str, threads: int | None) -> None:
    """The process."""
    leave_interrupts_to_the_parent()
    keep_flat()
    Engine(pipe, device, threads).run()


class Engine:
    """A simulation that listens."""

    def __init__(self, pipe: Connection, device: str, threads: int | None):
        self._pipe = pipe
        self._machine = (device, threads)
        self._done = False
        self._state = ""
        self._source: m.Load | None = None
        self._qualities: tuple[str, ...] = ()
        self.scene: Any = None
        self.sim: Any = None
        self._playing = False
        self._placed_at: float | None = None  # when something was placed by hand before the first step
        self._fields: tuple[str, ...] = ()
        self._every_frame = False
        self._owing = False  # a recording waits for this frame: not a step before it is sent
        self._credit = True  # the last frame was taken
        self._wanted = False  # a frame should be sent even though nothing moves
        self._sent, self._cost = 0.0, 0.0
        self._rows: list[dict[str, Any]] = []
        self._said = 0  # notes of the simulation that were passed on
        self._edited_at: float | None = None
        self._keeper: Keeper | None = None
        self._pace: float | None = 1.0
        self._origin = (0.0, 0.0)  # clock and simulated time from which the pace is kept
        self._marks: deque[tuple[float, int, int, float]] = deque()

    # --- the loop ----------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until told to quit or the parent is gone."""
        self._say_state("empty")
        while not self._done:
            self.turn(self._patience())

    def turn(self, wait: float) -> None:
        """Once around: obey, go on by a step, tell."""
        for command in self._commands(wait):
            self._guarded(self._obey, command)
        if self._done:
            return
        if self._placed_at is not None and (self._playing or perf_counter() - self._placed_at > 2 * IDLE):
            self._guarded(self._build, False)
        if self._playing and not self._owing and self._ahead() <= 0:
            self._guarded(self._go_on)
        self._tell_edits()
        self._publish()

    def _patience(self) -> float:
        """Seconds to wait for commands."""
        if not self._playing or self._owing:
            return 0.02 if self._wanted and self._credit else IDLE
        return min(max(self._ahead(), 0.0), UPDATE)

    def _commands(self, wait: float) -> list[Any]:
        """What arrived; of several changes of the same thing only the last."""
        found: dict[Any, Any] = {}
        try:
            while self._pipe.poll(wait):
                command = self._pipe.recv()
                key: Any = len(found), type(command)
                if isinstance(command, m.Change):
                    key = command.path
                elif isinstance(command, m.Move):
                    key = command.kind, command.index
                found.pop(key, None)  # the last one counts, and in its own turn
                found[key] = command
                wait = 0.0
        except (EOFError, OSError):
            self._done = True
        return list(found.values())

    def _guarded(self, action: Any, *arguments: Any) -> None:
        """Runs ``action``; what it raises is told, not died of."""
        try:
            action(*arguments)
        except ViscoilError as error:
            self._fail(str(error), getattr(error, "key", "") or "", isinstance(error, SimulationFailed))
        except Exception as error:  # a bug of ours or of a library: the studio has to live on and say so
            traceback.print_exc()
            self._fail(f"{type(error).__name__}: {error}", "", action == self._go_on)

    def _fail(self, text: str, about: str, broken: bool) -> None:
        self._send(m.Problem(text, about))
        self._playing = self._playing and not broken and self.sim is not None
        state = "empty" if self.sim is None else "failed" if broken else "running" if self._playing else "paused"
        self._say_state(state)
        self._wanted = True

    def _send(self, message: Any) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            self._done = True

    def _say_state(self, name: str) -> None:
        if name != self._state:
            self._state = name
            self._send(m.State(name, self._device()))

    def _device(self) -> str:
        if self.sim is None:
            return ""
        from viscoil import backend

        found = backend.current()
        return found.device if found.is_gpu else f"{found.device}, {found.threads} threads"

    # --- commands ----------------------------------------------------------------------------------------------------
    def _obey(self, command: Any) -> None:
        match command:
            case m.Load():
                self._load(command)
            case m.Play():
                self._set_playing(True)
            case m.Pause():
                self._set_playing(False)
            case m.Advance(frame=frame):
                self._advance(frame)
            case m.Reset():
                self._reset()
            case m.Change(path=path, value=value):
                self._change(path, value)
            case m.Move():
                self._move(command)
            case m.Pace(factor=factor):
                self._pace = factor
                self._keep_time()
            case m.Watch(fields=fields, every_frame=every):
                self._wanted = self._wanted or fields != self._fields
                self._fields, self._every_frame = fields, every
                self._owing = self._owing and every
            case m.Taken():
                self._credit = True
            case m.Save(folder=folder):
                self._save(Path(folder))
            case m.Keep(folder=folder):
                self._keep(Path(folder) if folder else None)
            case m.Quit():
                if self._keeper is not None and self.sim is not None:
                    self._guarded(self._keep, None)
                self._done = True

    def _load(self, command: m.Load) -> None:
        from viscoil.scene.load import load, profiles

        with tempfile.TemporaryDirectory() as folder:
            source: str | Path = command.source
            if command.text is not None:
                source = Path(folder) / (Path(command.source).name or "scene.toml")
                source.write_text(command.text, encoding="utf-8")
            overrides = {} if command.quality is None else {"quality": command.quality}
            scene = load(source, overrides)
            qualities = tuple(profiles(source))
        scene.check_size()
        self._source, self._qualities = command, qualities
        self.scene = scene
        self._playing = False
        self._build(True)

    def _reset(self) -> None:
        if self.scene is not None:
            was_playing = self._playing
            self._build(False)
            self._set_playing(was_playing)

    def _build(self, fresh: bool) -> None:
        """A new simulation of the scene as it is."""
        from viscoil.simulate import Simulation

        self._placed_at = None
        if self._keeper is not None and self.sim is not None:
            self._guarded(self._keep, None)
        self._say_state("building")
        self.sim = None
        gc.collect()  # the old one's arrays, before the new one's
        device, threads = self._machine
        try:
            self.sim = Simulation(self.scene, device=device, threads=threads)
        finally:
            self._rows, self._said, self._owing = [], 0, False
            self._marks.clear()
            self._keep_time()
        self._rows.append(self._row())
        self._send(m.Loaded(self._info(), fresh))
        self._said = len(self.sim.notes)
        self._wanted = True
        self._say_state("running" if self._playing else "paused")

    def _info(self) -> m.SceneInfo:
        from viscoil.studio.reach import reach

        scene, source = self.scene, self._source
        assert source is not None
        usual = ("position", "id", "material", "stress_mises")  # the last one is what "stress" is shown by
        return m.SceneInfo(
            source=source.source, title=scene.title or Path(source.source).stem, description=scene.description,
            quality=scene.quality, qualities=self._qualities, method=scene.method, spacing=scene.spacing, up=scene.up,
            frame_time=scene.time.frame_time, groups=tuple(scene_controls(scene)), things=tuple(self._things()),
            materials=tuple(self.sim.frame().materials),
            fields={name: unit for name, unit in self.sim.quantities().items() if name not in usual},
            box=(scene.domain.min, scene.domain.max) if scene.domain else None,
            toml=scene.to_toml(), notes=tuple(self.sim.notes), ingredients=ingredients(scene),
            reach=tuple(map(tuple, reach(self.sim).tolist())),
        )  # fmt: skip

    def _things(self) -> list[m.Thing]:
        found = []
        for index, solid in enumerate(self.scene.every_solid()):
            rotation, position = self.sim.world.solids.pose(index, self.sim.time)
            shape = solid.shape.model_dump(exclude={"position", "rotation"})
            by_itself = index >= len(self.scene.solid) or solid.body is not None
            found.append(
                m.Thing("solid", index, solid.name or f"solid {index}", shape, solid.container, solid.colour,
                        tuple(position.tolist()), tuple(map(tuple, rotation.tolist())), by_itself)
            )  # fmt: skip
        for index, nozzle in enumerate(self.sim.nozzles):
            rotation, position = nozzle.pose(self.sim.time)
            found.append(
                m.Thing("emitter", index, f"nozzle {index}", nozzle.emitter.shape.model_dump(), False, (0.85, 0.85, 0.88),
                        tuple(position.tolist()), tuple(map(tuple, rotation.tolist())))
            )  # fmt: skip
        return found

    def _set_playing(self, playing: bool) -> None:
        if self.sim is None:
            return
        self._playing = playing
        self._keep_time()
        self._marks.clear()
        self._wanted = True
        self._say_state("running" if playing else "paused")

    def _advance(self, frame: bool) -> None:
        """One step or the rest of the frame, then a pause."""
        if self.sim is None:
            return
        self._set_playing(False)
        if self._placed_at is not None:
            self._build(False)
        index = self.sim.frame_index
        self._go_on()
        while frame and self.sim.frame_index == index:
            self._go_on()
        self._say_state("paused")

    def _change(self, path: str, value: Any) -> None:
        """Sets a key of the scene while it runs; takes it back when the simulation cannot follow."""
        if self.scene is None:
            return
        try:
            if self.sim is None:
                apply(self.scene, path, value)
            else:
                self.sim.update({path: value})
        finally:
            self._edited_at = 0.0
            self._wanted = True

    def _move(self, command: m.Move) -> None:
        if self.sim is None:
            return
        rotation = np.array(command.rotation)
        if self.sim.step_count == 0 and not self._playing:
            self._place(command, rotation)
            return
        rate = min(1.0, self._rates().get("speed", 1.0) or 1.0)
        over = max(HAND * rate, self.scene.time.frame_time / 4)
        if command.kind == "solid":
            self.sim.move_solid(command.index, command.position, rotation, over)
        else:
            self.sim.move_emitter(command.index, command.position, rotation[:, 1], over)

    def _place(self, command: m.Move, rotation: np.ndarray) -> None:
        """Before the first step things need not travel: the scene is built again around where they are put."""
        from viscoil.solids.drag import degrees_of

        if command.kind == "solid":
            solid = self.scene.solid[command.index]
            solid.motion = []
            solid.shape.position, solid.shape.rotation = command.position, degrees_of(rotation)
            self.sim.world.solids.rebuild(0.0)
        else:
            nozzle = self.sim.nozzles[command.index]
            nozzle.emitter.motion = []
            nozzle.emitter.position, nozzle.emitter.direction = command.position, tuple(rotation[:, 1].tolist())
        self._placed_at = perf_counter()
        self._edited_at = self._edited_at or perf_counter()
        self._wanted = True

    def _save(self, folder: Path) -> None:
        """The present state as a run folder, at the end of the frame."""
        self._finish_frame()
        keeper = Keeper(self.sim, folder, self._device())
        self._send(m.Saved(str(folder), self.sim.frame_index, keeper.finish(self.sim)))

    def _keep(self, folder: Path | None) -> None:
        """Starts to write every frame to a run folder, or ends it."""
        self._finish_frame()
        if self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            self._send(m.Saved(str(keeper.folder), self.sim.frame_index, keeper.finish(self.sim), keeper.frames))
        elif folder is not None:
            self._keeper = Keeper(self.sim, folder, self._device())
        self._send(m.Keeping(self._keeper is not None))

    def _finish_frame(self) -> None:
        if self.sim is None:
            raise ViscoilError("there is nothing to save: no scene is running.")
        while not at_frame(self.sim):
            self._go_on()

    # --- going on ----------------------------------------------------------------------------------------------------
    def _go_on(self) -> None:
        """One step."""
        sim = self.sim
        if sim.step_count == 0:
            self._say_state("compiling")
        index = sim.frame_index
        # Before the step: the last one of a drag has news too.
        dragged = sim.world.solids.dragging or any(nozzle.dragging for nozzle in sim.nozzles)
        sim.step()
        if self._playing:
            self._say_state("running")
        self._wanted = True
        now = perf_counter()
        if not self._marks:
            self._keep_time()
        self._marks.append((now, sim.step_count, sim.frame_index, sim.time))
        while now - self._marks[0][0] > WINDOW and len(self._marks) > 2:
            self._marks.popleft()
        for note in sim.notes[self._said :]:
            self._send(m.Note(note))
        self._said = len(sim.notes)
        if dragged:
            self._edited_at = self._edited_at or now
        if sim.frame_index > index:
            self._rows.append(self._row())
            self._owing = self._every_frame
            if self._keeper is not None:
                self._guarded(self._write_frame)

    def _write_frame(self) -> None:
        """The frame just finished; a folder that cannot be written is let go of, the simulation goes on."""
        assert self._keeper is not None
        try:
            self._keeper.add(self.sim)
        except ViscoilError:
            self._keeper.drop()
            self._keeper = None
            self._send(m.Keeping(False))
            raise

    def _row(self) -> dict[str, Any]:
        metrics = self.sim.metrics()
        return {name: metrics[name] for name in ROW if name in metrics}

    def _keep_time(self) -> None:
        self._origin = perf_counter(), self.sim.time if self.sim is not None else 0.0

    def _ahead(self) -> float:
        """Seconds by which the simulation is ahead of the pace it should keep; lost time is not made up for."""
        if self._pace is None or self.sim is None:
            return 0.0
        clock, start = self._origin
        late = perf_counter() - clock - (self.sim.time - start) / self._pace
        if late > 0.25:
            self._keep_time()
        return -late

    def _rates(self) -> dict[str, float]:
        """Steps, frames and simulated seconds per second."""
        if len(self._marks) < 2 or not self._playing:
            return {"steps": 0.0, "frames": 0.0, "speed": 0.0}
        (t0, s0, f0, x0), (t1, s1, f1, x1) = self._marks[0], self._marks[-1]
        span = max(t1 - t0, 1e-9)
        return {"steps": (s1 - s0) / span, "frames": (f1 - f0) / span, "speed": (x1 - x0) / span}

    # --- telling -----------------------------------------------------------------------------------------------------
    def _tell_edits(self) -> None:
        """The scene's text and values, at once after a change, now and then while something is dragged."""
        if self._edited_at is None or self.scene is None or perf_counter() - self._edited_at < IDLE:
            return
        self._edited_at = None
        values = {c.path: c.value for group in scene_controls(self.scene) for c in group.controls}
        self._send(m.Edited(self.scene.to_toml(), values, ingredients(self.scene)))

    def _interval(self) -> float:
        """Seconds between two frames: what looking costs should stay small beside computing, but not for ever after the
        first look, which compiles."""
        return max(UPDATE, min(self._cost / SHARE, max(IDLE, self._cost)))

    def _publish(self) -> None:
        """Sends the present state if somebody waits for it and it is time."""
        if self.sim is None or not self._wanted or not self._credit or self._done:
            return
        begin = perf_counter()
        if self._playing and not self._owing and begin - self._sent < self._interval():
            return
        watched = self.sim.quantities().keys() & self._fields  # a page may still ask for what the last scene had
        frame = self.sim.frame(dict.fromkeys([*self.scene.output.fields, *watched]), by_id=False)
        whole = at_frame(self.sim)
        nozzles = [nozzle.pose(frame.time) for nozzle in self.sim.nozzles]
        content = m.FrameSent(frame.header(), self._rates(), self._rows, whole, nozzles)
        self._rows, self._wanted, self._credit, self._owing = [], False, False, False
        try:
            m.send_arrays(self._pipe, content, frame.fields)
        except OSError:
            self._done = True
        self._sent = perf_counter()
        self._cost = self._sent - begin
