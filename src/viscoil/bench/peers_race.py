"""Taking turns: every contestant simulates the same stretch of time, one after the other, until all are through.

A busy moment of the machine then meets all alike, and medians of the turns forget it.
"""

import contextlib
import json
import re
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from viscoil.bench import peers_measure
from viscoil.bench.peers_install import PeerMissing, python_of, variables
from viscoil.bench.peers_scenes import Case, ours

WARM_UP = 2  # steps of a copy that compile everything before ours is timed


@dataclass
class Turns:
    """What a contestant did, turn by turn."""

    simulated: list[float] = field(default_factory=list)  # [s]
    wall: list[float] = field(default_factory=list)  # [s]
    cpu: list[float] = field(default_factory=list)  # [s], all threads
    steps: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)  # [s] at the end of the turn
    own_mean: list[float | None] = field(default_factory=list)  # None: it does not say
    own_max: list[float | None] = field(default_factory=list)
    compression: list[peers_measure.Compression] = field(default_factory=list)
    narrow: list[peers_measure.Compression] = field(default_factory=list)  # by the narrow kernel
    height: list[float] = field(default_factory=list)  # [m]

    def look(self, positions: np.ndarray, case: Case) -> None:
        """Measures what lies there now."""
        self.compression.append(peers_measure.compression(positions, case))
        self.narrow.append(peers_measure.compression(positions, case, peers_measure.NARROW))
        self.height.append(peers_measure.height(positions, case.spacing))

    def add(self, **values: float | None) -> None:
        """One turn's numbers."""
        for name, value in values.items():
            getattr(self, name).append(value)


class Ours:
    """viscoil with one choice of solver and step."""

    code = "viscoil"

    def __init__(self, case: Case, method: str, solver: dict[str, Any], time: dict[str, Any], device: str, threads: int | None):
        from viscoil.simulate import Simulation

        self.case, self.method, self.turns = case, method, Turns()
        self.settings = {**{key: value for key, value in solver.items() if key != "method"}, **time}
        warm = Simulation(ours(case, solver, time), device=device, threads=threads)
        for _ in range(WARM_UP):
            warm.step()
        self.simulation = Simulation(ours(case, solver, time), device=device, threads=threads)
        self.particles = self.simulation.particles
        self.boundary = self.simulation.world.boundary_count

    def take_turn(self, until: float) -> None:
        """Simulates one frame, which ends at ``until`` [s]."""
        from viscoil import backend

        sim = self.simulation
        steps = sim.step_count
        backend.synchronise()
        begin, cpu = perf_counter(), process_time()
        sim.advance_frame()
        backend.synchronise()
        wall, cpu = perf_counter() - begin, process_time() - cpu
        told = sim.metrics()
        self.turns.add(
            simulated=self.case.turn, wall=wall, cpu=cpu, steps=sim.step_count - steps, iterations=told["iterations"],
            time=sim.time, own_mean=told["compression"], own_max=told["density_max"] - 1.0,
        )  # fmt: skip
        self.turns.look(sim.frame()["position"], self.case)

    def close(self) -> None:
        """Lets the memory go."""
        self.simulation = None


class Theirs:
    """A peer's script in a process of its own; between its turns it waits for a line."""

    def __init__(
        self, case: Case, code: str, method: str, settings: dict[str, Any], command: list[str], env: dict[str, str] | None,
        folder: Path, patience: float = 900.0,
    ):  # fmt: skip
        self.case, self.code, self.method, self.settings, self.turns = case, code, method, settings, Turns()
        name = re.sub(r"\W+", "_", f"{case.name} {method}".lower())
        self._file, self._log = folder / f"{name}.npy", folder / f"{name}.log"
        self.patience = patience  # [s] for one answer
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=folder
            )
        self._last = self._answer()
        self.particles, self.boundary = self._last["particles"], self._last.get("boundary", 0)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        watch = threading.Timer(self.patience, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if not line:
            code = self._process.wait()
            told = self._log.read_text(errors="replace").strip().splitlines()
            why = told[-1] if told else "it said nothing"
            raise PeerMissing(f"{self.code} ended ({f'signal {-code}' if code < 0 else f'exit {code}'}): {why}")
        return json.loads(line)

    def take_turn(self, until: float) -> None:
        """Simulates up to ``until`` [s], or a little further: its steps end where they end."""
        assert self._process.stdin
        self._process.stdin.write(f"advance {until!r} {self._file}\n")
        self._process.stdin.flush()
        now, last = self._answer(), self._last
        differences = {key: now[key] - last[key] for key in ("simulated", "wall", "cpu", "steps", "iterations")}
        self.turns.add(**differences, time=now["time"], own_mean=now["own_mean"], own_max=now["own_max"])
        self.turns.look(np.load(self._file), self.case)
        self._last = now

    def close(self) -> None:
        """Ends its process."""
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def start_theirs(
    case: Case, code: str, method: str, settings: dict[str, Any], script: Path, scene: Path, environment: Path, threads: int
) -> Theirs:
    """Starts a peer's script from its environment on a scene file."""
    command = [str(python_of(environment)), str(script), str(scene)]
    return Theirs(case, code, method, settings, command, variables(environment, threads), scene.parent)


def race(contestants: list[Any], case: Case, say: Callable[[str], None] = lambda text: None) -> None:
    """All turns of all contestants. Who fails is closed and keeps the turns it made; ``failed`` says why."""
    number = max(1, round(case.seconds / case.turn))
    for k in range(1, number + 1):
        for one in contestants:
            if getattr(one, "failed", ""):
                continue
            try:
                one.take_turn(k * case.turn)
            except PeerMissing as error:
                one.failed = str(error)
                continue
            wall, simulated = sum(one.turns.wall), sum(one.turns.simulated)
            say(
                f"{case.title}, {k * case.turn:.3g} of {case.seconds:g} s: {one.code} {one.method} "
                f"{wall / max(simulated, 1e-9):.1f} s per simulated second, "
                f"compression {100 * one.turns.compression[-1].mean:.3f} %"
            )


def summary(one: Any, case: Case, settled: float = 0.0) -> dict[str, Any]:
    """A contestant's row. Compressions count after the share ``settled`` of the span. Ratios are for whoever knows whom to
    compare with."""
    t = one.turns
    late = [k for k, moment in enumerate(t.time) if moment > settled * case.seconds]
    wall, simulated, steps = sum(t.wall), sum(t.simulated), max(sum(t.steps), 1)
    return {
        "case": case.name, "title": case.title, "code": one.code, "method": one.method, "settings": one.settings,
        "particles": one.particles, "boundary": one.boundary, "simulated": simulated, "steps": sum(t.steps),
        "iterations": sum(t.iterations) / steps, "wall": wall, "cpu": sum(t.cpu),
        "seconds_per_second": wall / simulated if simulated else None,
        "cpu_per_second": sum(t.cpu) / simulated if simulated else None,
        "ms_per_step": 1e3 * wall / steps, "cpu_ms_per_step": 1e3 * sum(t.cpu) / steps,
        "fastest_ms_per_step": 1e3 * min((w / n for w, n in zip(t.wall, t.steps, strict=True) if n), default=0.0),
        "compression_mean": _mean([t.compression[k].mean for k in late]),
        "narrow_mean": _mean([t.narrow[k].mean for k in late]),
        "narrow_max": max((t.narrow[k].largest for k in late), default=0.0),
        "compression_high": max((t.compression[k].percentile for k in late), default=0.0),
        "compression_max": max((t.compression[k].largest for k in late), default=0.0),
        "own_mean": _mean(own) if (own := [t.own_mean[k] for k in late if t.own_mean[k] is not None]) else None,
        "own_max": max((t.own_max[k] for k in late if t.own_max[k] is not None), default=None),
        "turns": {
            "time": t.time, "wall": t.wall, "cpu": t.cpu, "simulated": t.simulated, "steps": t.steps,
            "compression": [c.mean for c in t.compression], "height": t.height,
        },
        "failed": getattr(one, "failed", ""),
    }  # fmt: skip


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def ratio(theirs: dict[str, Any], mine: dict[str, Any], clock: str = "wall") -> float | None:
    """How many times longer they take for the same simulated time: median over the turns both made.

    ``clock``: "wall", or "cpu", the time of all cores, which other programs disturb less.
    """
    rates = []
    for row in (theirs, mine):
        t = row["turns"]
        rates.append([w / s for w, s in zip(t[clock], t["simulated"], strict=True) if s > 0])
    pairs = list(zip(*rates, strict=False))
    return float(np.median([a / b for a, b in pairs])) if pairs else None
