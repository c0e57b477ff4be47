"""The only time loop: step, check, emit, remove, and hand frames to whoever watches."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend, native, quantities, restart
from viscoil.accounts import Accounts
from viscoil.controls import apply_all, only_properties
from viscoil.errors import ViscoilError
from viscoil.failure import failure_report
from viscoil.io.frame import Frame
from viscoil.particles import Ints, Particles, allocate_array
from viscoil.properties import changed_names
from viscoil.scene.build import Built
from viscoil.scene.load import as_scene
from viscoil.solids.drag import as_matrix, limits, named
from viscoil.solids.sdf import Parts, Solids, distance
from viscoil.steps.integrate import lead
from viscoil.transfer import read

REORDER_EVERY = 8  # steps between two passes that bring memory into cell order
HALVINGS = 6  # a failing step is tried with up to 2⁶ shorter ones


@qd.kernel(fastcache=True)
def _mark_sunk(p: Particles, n: qd.i32, sink: qd.i32, solids: Solids, parts: Parts, gone: Ints, number: Ints):
    """gone[i] = 1 for fluid particles whose centre is inside a sink. Particle solids stay whole."""
    for i in range(n):
        if p.solid[i] < 0 and p.cluster[i] < 0:
            local = solids.rotation[sink].transpose() @ (p.position[i] - solids.position[sink])
            if distance(sink, local, solids, parts) < 0.0:
                gone[i] = 1
                qd.atomic_add(number[0], 1)


class Simulation:
    """A scene being simulated.

    >>> sim = Simulation("dam_break")
    >>> for frame in sim.frames(10):
    ...     print(frame.time, frame["position"].max())
    """

    @backend.turn
    def __init__(
        self,
        scene: Any,
        device: str = "auto",
        threads: int | None = None,
        callback: Callable[["Simulation"], None] | None = None,
    ):
        """scene: a Scene, or what :func:`viscoil.load` takes; callback: called after every step with the simulation."""
        scene = as_scene(scene)
        backend.start(device, threads)
        scene.check()
        scene.check_size()
        self.scene = scene
        self.callback = callback
        self._built = Built(scene)
        self.world = self._built.world
        self.notes: list[str] = []
        self.frame_index = 0
        self._started = False  # frame 0 was handed out
        self._largest_speed = float(np.linalg.norm(self.world.get("velocity"), axis=1).max(initial=0.0))
        self._limited_by = ""
        self._retries = 0
        self._steps_in_frame = 0
        self._last_dt = 0.0
        self._led_until = -math.inf  # when the last particle leaves the pipe of a nozzle [s]
        self._metrics: dict[str, Any] = {}
        self._read_scene()
        self._release()
        self.world.fit_cells()
        self._measure(0.0)

    def _read_scene(self) -> None:
        self.solver = self._built.solver
        self.nozzles = self._built.nozzles
        self._open_accounts()
        self._sinks = self._sink_solids()
        self._take_notes()

    def _take_notes(self) -> None:
        """What scene and solver have to say, each thing once."""
        self.notes += [note for note in dict.fromkeys([*self._built.notes, *self.solver.notes]) if note not in self.notes]

    # --- changes between steps ---------------------------------------------------------------------------------------
    @backend.turn
    def update(self, changes: dict[str, Any] | None = None) -> None:
        """Takes over everything that was changed in :attr:`scene` since the last step, and these ``changes`` first.

        Gravity, solids, emitters, sinks, materials, time settings and the solver's parameters can be changed, added and
        removed at any time; spacing, periodic box, support and kernels cannot, and are refused with a message. ``changes``
        are dotted keys as in files, all or none; those of materials are cheap: a callback may set them after every step.

        >>> sim.scene.solid.append(Solid(shape=Sphere(radius=0.1)))
        >>> sim.update({"material.honey.viscosity": "2 Pa s", "gravity": (0.0, 0.0, 0.0)})
        """
        back = apply_all(self.scene, changes or {})
        if changes and only_properties(changes):
            self._built.take_present(self.scene)
            return
        try:
            self.scene.check()
            self._built.update(self.scene)
        except ViscoilError:
            if changes:  # as if nothing had been asked
                back()
                self._built.update(self.scene)
                self._read_scene()
            raise
        self._read_scene()

    @backend.turn
    def add_fluid(self, fluid: Any) -> None:
        """Fills one more :class:`Fluid` into the running simulation, as it would have been at the start."""
        number = len(self.scene.fluid)
        self.scene.fluid.append(fluid)
        try:
            self.update()
            self._built.add_fluid(fluid, number)
        except ViscoilError:
            self.scene.fluid.pop()
            raise
        self._open_accounts()

    def move_solid(self, which: int | str, position: Any = None, rotation: Any = None, over: float = 0.0) -> float:
        """Moves a solid by hand: it travels to ``position`` [m] and ``rotation`` and pushes the fluid on its way.

        ``which`` is its name or number; ``rotation`` three angles [degrees] as in scenes, or a matrix (3, 3). The way takes
        ``over`` seconds, or longer: see ``viscoil.solids.drag.limits``. A new call replaces the target. Returns the moment
        of arrival [s]. The scene follows: the solid's place is where it is, its keyframes are gone.
        """
        index = named(which, [solid.name for solid in self.scene.solid], "solid")
        matrix = None if rotation is None else as_matrix(rotation)
        place = None if position is None else np.asarray(position, float)
        return self.world.solids.drag(index, (matrix, place), self.world.time, over, limits(self.scene))

    def move_emitter(self, which: int, position: Any = None, direction: Any = None, over: float = 0.0) -> float:
        """Moves a nozzle (its number) by hand to ``position`` [m] and flow ``direction``; as :meth:`move_solid`."""
        index = named(which, [""] * len(self.nozzles), "emitter")
        place, flow = (None if values is None else np.asarray(values, float) for values in (position, direction))
        return self.nozzles[index].drag(flow, place, self.world.time, over, limits(self.scene))

    def __repr__(self) -> str:
        frame = f"frame {self.frame_index} of {self.scene.time.frames} at {self.time:.6g} s, step {self.step_count}"
        title = f' "{self.scene.title}"' if self.scene.title else ""
        return f'<Simulation{title}: {self.scene.method}, {self.particles} particles, {frame}>'

    # --- what users look at ------------------------------------------------------------------------------------------
    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.world.time

    @property
    def step_count(self) -> int:
        """Time steps since the start."""
        return self.world.steps

    @property
    def particles(self) -> int:
        """Fluid particles."""
        return self.world.fluid_count

    def metrics(self) -> dict[str, Any]:
        """Numbers of the last finished frame."""
        return dict(self._metrics)

    @backend.turn
    def frame(self, fields: Iterable[str] | None = None, by_id: bool = True) -> Frame:
        """A host copy of the fluid as it is now, with ``fields`` besides the usual ones (default: the scene's).

        ``by_id`` = False leaves the particles in any order, which is faster and enough for a look.
        """
        world, scene = self.world, self.scene
        order = world.fluid_order() if by_id else world.fluid_rows()
        wanted = ["position", "velocity", *(["id"] if by_id else []), "material"]
        wanted += scene.output.fields if fields is None else fields
        fields = {name: quantities.values(self, name)[order] for name in dict.fromkeys(wanted)}
        materials = [
            {"name": name, "colour": list(m.colour), "density": m.density, "look": m.look}
            | {key: getattr(m, key) for key in changed_names(self._built.materials[name].changes)}
            for name, m in self._built.present().items()
        ]
        solids = []
        for index, solid in enumerate(world.solids.solids):
            rotation, position = world.solids.pose(index, world.time)
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = rotation, position
            shape = solid.shape.model_dump(exclude={"position", "rotation"})
            solids.append(
                {
                    "name": solid.name or f"solid {index}",
                    "pose": pose.tolist(),
                    "shape": shape,
                    "container": solid.container,
                    "colour": list(solid.colour),
                }
            )
        return Frame(
            index=self.frame_index, time=world.time, step=world.steps, fields=fields, spacing=scene.spacing, up=scene.up,
            materials=materials, solids=solids, title=scene.title, more=quantities.later(self) if by_id else None,
        )  # fmt: skip

    def quantities(self) -> dict[str, str]:
        """Names and units of the quantities that frames can carry."""
        return quantities.units(self.solver)

    # --- going on ----------------------------------------------------------------------------------------------------
    def frames(self, count: int | None = None) -> Iterator[Frame]:
        """Yields frame 0 (once, when fresh), then simulates and yields frames up to number ``count``."""
        last = self.scene.time.frames if count is None else count
        if not self._started:
            self._started = True
            if self.frame_index == 0:
                yield self.frame()
        while self.frame_index < last:
            self.advance_frame()
            yield self.frame()

    def step(self) -> dict[str, Any]:
        """One time step of the length the scene asks for, cut at the next frame; returns its length and speed."""
        end = (self.frame_index + 1) * self.scene.time.frame_time
        dt, _ = self._next_step(end - self.world.time)
        self._advance(dt, 1)
        if self.callback:
            self.callback(self)
        if self.world.time >= end - 1e-9 * self.scene.time.frame_time:
            self._finish_frame(0.0)
        return {"dt": dt, "time": self.world.time, "speed_max": self._largest_speed}

    def advance_frame(self) -> None:
        """Simulates up to the next frame."""
        begin = perf_counter()
        end = (self.frame_index + 1) * self.scene.time.frame_time
        while self.world.time < end - 1e-9 * self.scene.time.frame_time:
            dt, steps = self._next_step(end - self.world.time)
            self._advance(dt, steps)
            if self.callback:
                self.callback(self)
        self._finish_frame(perf_counter() - begin)

    @backend.turn
    def _finish_frame(self, seconds: float) -> None:
        self.frame_index += 1
        self._started = True
        self.world.time = self.frame_index * self.scene.time.frame_time  # no drift from adding many small steps
        self._take_notes()
        self._measure(seconds)
        backend.keep_kernels()  # one that is stopped by force has not compiled in vain

    def _next_step(self, remaining: float) -> tuple[float, int]:
        """(Δt [s], steps that may be launched without looking) for what remains of the frame."""
        t = self.scene.time
        if t.cfl is None:
            wanted = t.frame_time / t.steps_per_frame if t.steps_per_frame else t.step
            self._limited_by = "fixed step"
        else:
            speed = self._fastest(remaining)
            wanted = t.cfl * self.scene.spacing / speed
            self._limited_by = f"CFL {t.cfl:g} at {speed:.3g} m/s"
            if t.max_step and wanted > t.max_step:
                wanted, self._limited_by = t.max_step, "max_step"
            if t.min_step and wanted < t.min_step:
                wanted, self._limited_by = t.min_step, "min_step"
        longest, why = self.solver.longest_step(self.world)
        if limited := longest < min(wanted, t.frame_time) * (1 - 1e-6):
            wanted, self._limited_by = longest, why
        steps = max(1, math.ceil(remaining / wanted - 1e-6))
        if steps == 1 and wanted > remaining and not limited:
            self._limited_by = "frame time"
        return remaining / steps, min(steps, self._ahead(remaining / steps))

    def _fastest(self, remaining: float) -> float:
        """Largest speed [m/s] of anything that moves in what remains of the frame: particles, inflow, solids."""
        now = self.world.time
        open_nozzles = [n for n in self.nozzles if n.emitter.start <= now + remaining and n.moment() < n.emitter.end]
        inflow = max((n.speed + float(np.linalg.norm(n.velocity(now))) for n in open_nozzles), default=0.0)
        solids = self.world.solids.motion(now, now + remaining)[0] if self.world.solids.moving else 0.0
        return max(self._largest_speed, inflow, solids, 1e-6)

    def _ahead(self, dt: float) -> int:
        """Steps of ``dt`` [s] until the host has something to do, so that a GPU need not wait for it before."""
        return self._idle_steps(dt) if backend.current().is_gpu else 1

    def _idle_steps(self, dt: float) -> int:
        """The same whatever the device: after that many steps a nozzle or a particle solid is due."""
        built, moving = self._built, self.world.solids.moving
        if self._sinks or moving or self.callback or built.keyed or self.solver.busy or self.scene.time.cfl is not None:
            return 1
        due = min((part.due() for part in (*self.nozzles, built.particle_bodies)), default=math.inf)
        return max(1, math.ceil(min((due - self.world.time) / dt, 1e6) - 1e-6))

    # --- one or more steps, safely -----------------------------------------------------------------------------------
    @backend.turn
    def _advance(self, dt: float, steps: int) -> None:
        """``steps`` steps of ``dt``; shorter ones where the state explodes, more room where it is short."""
        world = self.world
        parts = 1
        if self._steps_in_frame == 0:
            self.solver.begin_frame()
        if self._built.keyed:
            self._built.take_present()
        self.solver.prepare(world, world.time, self._moment_after(steps * dt))
        while True:
            world.remember()
            world.reset_status()
            self._launch(dt / parts, steps, parts)
            needed, short = world.neighbors.overflow(), self.solver.short_of_room()
            if needed or short:
                self._go_back()
                if needed:
                    world.neighbors.widen(needed)
                if short:
                    self.solver.make_room(world, short)
                continue
            bad, speed = world.read_status()
            if bad is None:
                break
            self._go_back()
            self._retries += 1
            parts *= 2
            if parts > 2**HALVINGS:
                raise failure_report(self.world, self._largest_speed, bad, dt, 2**HALVINGS)
        self._largest_speed = speed
        self._last_dt = dt / parts
        self._steps_in_frame += steps * parts
        world.steps += steps * parts
        world.time += steps * dt
        self._warn_about_speed(dt / parts)
        self._after_steps(steps * parts)

    def _launch(self, dt: float, steps: int, parts: int) -> None:
        """``steps`` steps of ``parts`` parts each, of ``dt`` [s]."""
        world = self.world
        if not world.solids.moving and self._led_until < world.time:  # nothing for the host to do in between
            if world.count:
                self.solver.steps(world, dt, steps * parts)
            return
        for k in range(steps * parts):
            begin, world.part = world.time + k * dt, k
            if world.solids.moving:
                world.solids.place(begin, begin + dt)
            if world.count:
                self.solver.step(world, dt)
            world.solids.commit(begin, begin + dt)
            if (k + 1) % parts == 0 and self._led_until >= begin + (1 - parts) * dt:
                lead(world.particles, world.count, begin + dt)

    def _go_back(self) -> None:
        """As it was before the steps; who has left a nozzle's pipe since is led again."""
        self.world.go_back()
        if self._led_until >= self.world.time:
            lead(self.world.particles, self.world.count, self.world.time)

    def _moment_after(self, duration: float) -> float:
        """The time [s] it will be: a frame's exact one where it ends one, as :meth:`_finish_frame` sets it."""
        moment, end = self.world.time + duration, (self.frame_index + 1) * self.scene.time.frame_time
        return end if moment >= end - 1e-9 * self.scene.time.frame_time else moment

    def _after_steps(self, number: int) -> None:
        world = self.world
        ends_frame = world.time >= (self.frame_index + 1 - 1e-9) * self.scene.time.frame_time  # then it comes anyway
        if world.count and not ends_frame and world.steps // REORDER_EVERY > (world.steps - number) // REORDER_EVERY:
            world.reorder()
        self._remove_sunk()
        self._release()
        world.solids.settle(world.time)
        for nozzle in self.nozzles:
            nozzle.settle(world.time)

    def _release(self) -> None:
        """Lets the nozzles emit, and particle solids appear, up to now."""
        if self._built.particle_bodies.release(self.world, self.world.time, self._built.fluid_values):
            self.solver.resize(self.world.capacity)
            self._open_accounts()
        streams = []
        for nozzle in self.nozzles:
            x, v, moments = nozzle.release(self.world.time)
            if len(x):
                values = self._built.fluid_values(x, v, list(self._built.materials).index(nozzle.emitter.material))
                values["inverse_mass"] = np.where(moments > self.world.time, -1, 1) * values["inverse_mass"]
                self._led_until = max(self._led_until, float(moments.max()))
                streams.append({**values, "free_at": moments})
        # All at once: every message to the device costs more than what it carries.
        if streams and self.world.add({name: np.concatenate([stream[name] for stream in streams]) for name in streams[0]}):
            self.solver.resize(self.world.capacity)
            self._open_accounts()

    def _sink_solids(self) -> Any:
        from viscoil.scene.parts import Solid
        from viscoil.solids.assembly import SolidSet

        solids = [Solid(shape=s.shape) for s in self.scene.sink]
        return SolidSet(solids, spacing=self.scene.spacing) if solids else None

    def _remove_sunk(self) -> None:
        world = self.world
        if not self._sinks or not world.count:
            return
        gone, number = allocate_array(qd.i32, world.count), allocate_array(qd.i32, 1)
        for index, sink in enumerate(self.scene.sink):
            if sink.start <= world.time < sink.end:
                _mark_sunk(
                    world.particles, world.count, index, self._sinks.device, self._sinks.parts, gone, number
                )
        if read(number)[0]:
            world.keep_only(read(gone, world.count) == 0)

    def _warn_about_speed(self, dt: float) -> None:
        moved = self._largest_speed * dt / self.world.support
        text = "particles move more than one support radius per step"
        if moved > 1 and not any(text in note for note in self.notes):
            self.notes.append(
                f"t = {self.world.time:.4g} s: {text} ({moved:.2g} of it at {self._largest_speed:.3g} m/s); walls still "
                "hold (paths are traced), but neighbours can pass through each other: shorter steps are better, e.g. "
                "time.cfl = 0.4 instead of a fixed step"
            )
        if self.world.solids.moving:
            turn = self.world.solids.motion(self.world.time - dt, self.world.time, 1)[1] * dt
            text = "a solid turns by more than half a radian per step"
            if turn > 0.5 and not any(text in note for note in self.notes):
                self.notes.append(
                    f"t = {self.world.time:.4g} s: {text} ({turn:.2g}); particles can pass through it: "
                    "expected shorter steps"
                )

    def _open_accounts(self) -> None:
        wanted = self.scene.output.volume
        if wanted == "auto":
            wanted = "estimate" if self.solver.measures_volume else "none"
        densities = [m.density for m in self._built.materials.values()]
        self._accounts = Accounts(self.world, densities, self.scene.up, wanted)

    @backend.turn
    def stress(self) -> np.ndarray:
        """Extra stress of all particles (n, 3, 3) [Pa] as they are now, in array order; of methods that have one."""
        return self._accounts.stress(list(self._built.present().values()), self._last_dt)

    # --- measuring ---------------------------------------------------------------------------------------------------
    def _measure(self, seconds: float) -> None:
        """The frame's row of metrics; also brings memory into order for the next frame."""
        world = self.world
        with world.stages("measure"):
            row = {
                "frame": self.frame_index,
                "time": world.time,
                "steps": self._steps_in_frame,
                "dt": self._last_dt,
                "limited_by": self._limited_by,
                "iterations": self.solver.iterations_used(),
                **self.solver.metrics(),
                "retries": self._retries,
                **self._accounts.row(),
            }
            world.reorder()
        stages = {f"seconds_{name}": value for name, value in world.stages.taken().items()}
        self._metrics = {**row, "seconds": seconds, **stages}
        self._steps_in_frame = self._retries = 0

    # --- restart -----------------------------------------------------------------------------------------------------
    @property
    def passes(self) -> str:
        """What computes the pairs of particles on a CPU; part of a result's bits, so runs write it down."""
        return native.describe()

    def computing_by(self, passes: str) -> AbstractContextManager[None]:
        """Inside, the passes that :attr:`passes` named are used, or it is noted that they cannot be."""
        by_kernels = passes.startswith("not")
        if not by_kernels and passes != native.describe():
            self.notes.append(
                f"the run was computed with passes compiled for {passes}, and goes on with: {native.describe()}; results agree "
                "but for rounding, not bit by bit"
            )
        return native.use(not by_kernels)

    @backend.turn
    def state(self) -> dict[str, Any]:
        """Everything a restart needs, at a frame boundary: a resumed run then has the same bits."""
        return restart.state_of(self)

    @backend.turn
    def restore(self, state: dict[str, Any]) -> None:
        """Continues from what :meth:`state` returned for the same scene."""
        restart.restore(self, state)
