"""What the time loop asks of a solver: how long a step may be, what happens at a moment, whether there was room enough."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import quadrants as qd

from kit import box_scene
from viscoil import backend, solvers
from viscoil.carried import Carried
from viscoil.simulate import Simulation
from viscoil.solvers.pbf import PBF

D = 0.05


class Diary(PBF):
    """Every particle writes down the length of every step [ms]; the pages are too few at first."""

    longest = math.inf  # [s]
    striped = False

    def __init__(self, params, world):
        super().__init__(params, world)
        self.carried = {**self.carried, "diary": Carried(qd.i32, 2, -1, striped=self.striped)}
        self.notes = ["a diary is kept"]
        self.intervals, self.taken, self.repeated = [], 0, 0
        self._short = 0

    def longest_step(self, world):
        return self.longest, "the pen's speed"

    def prepare(self, world, begin, end):
        self.intervals.append((begin, end))

    def step(self, world, dt):
        super().step(world, dt)
        self.taken += 1
        rows = self.carried["diary"]
        pages = rows.get(world.count)
        used = (pages >= 0).sum(1)
        if (most := int(used.max()) + 1) > rows.width:
            self._short = max(self._short, most)
            return
        pages[np.arange(world.count), used] = round(1000 * dt)
        rows.set(pages)

    def short_of_room(self):
        short, self._short = self._short, 0
        return short

    def make_room(self, world, needed):
        self.repeated += 1
        self.carried["diary"].widen(needed + 2, world.count)


def plain(**changes):
    return box_scene(D, solver={"method": "pbf"}, **changes)


def kept(monkeypatch, scene=None, **attributes):
    """A simulation whose solver keeps a diary."""
    monkeypatch.setattr(solvers, "solver_class", lambda method: type("Diary", (Diary,), attributes))
    return Simulation(scene or plain(), "cpu")


@pytest.mark.parametrize("rule", [{"steps_per_frame": 2}, {"step": 0.01}, {"cfl": 0.4}])
def test_the_solver_shortens_steps_and_is_named(monkeypatch, rule):
    time = {"frames": 2, "frame_time": 0.016, **rule}
    sim = kept(monkeypatch, plain(time=time), longest=0.003)
    sim.advance_frame()
    m = sim.metrics()
    assert m["steps"] == 6 and m["dt"] == pytest.approx(0.016 / 6) and m["limited_by"] == "the pen's speed"
    assert sim.time == 0.016


@pytest.mark.parametrize("longest", [0.004, 0.004 * (1 - 1e-9), 0.1])
def test_a_solver_that_allows_the_step_changes_nothing(monkeypatch, longest):
    sim = kept(monkeypatch, longest=longest)
    sim.advance_frame()
    assert sim.metrics()["steps"] == 4 and sim.metrics()["limited_by"] == "fixed step"


def test_a_frame_shorter_than_the_longest_step_is_what_limits(monkeypatch):
    sim = kept(monkeypatch, plain(time={"frames": 2, "frame_time": 0.004, "cfl": 0.4}), longest=0.006)
    sim.advance_frame()
    assert sim.metrics()["steps"] == 1 and sim.metrics()["limited_by"] == "frame time"


RULES = [(0.016, {"steps_per_frame": 7}), (1 / 30, {"cfl": 0.02}), (0.1 / 3, {"step": 0.01})]


@pytest.mark.parametrize("frame_time, rule", RULES)
def test_moments_are_covered_without_gap_or_overlap(monkeypatch, frame_time, rule):
    """To the last bit, although frames end at exact times: nothing that is due happens twice or never."""
    sim = kept(monkeypatch, plain(time={"frames": 5, "frame_time": frame_time, **rule}))
    for _ in sim.frames():
        pass
    intervals = sim.solver.intervals
    assert intervals[0][0] == 0.0 and intervals[-1][1] == 5 * frame_time
    assert all(before[1] == after[0] and after[0] < after[1] for before, after in itertools.pairwise(intervals))
    for moment in [k * frame_time for k in range(5)] + [0.0123, intervals[3][0]]:
        assert sum(begin <= moment < end for begin, end in intervals) == 1


def test_moments_come_once_when_a_step_is_repeated(monkeypatch):
    """Too fast for the step: the loop tries shorter ones, within the same interval."""
    time = {"frames": 2, "frame_time": 0.016, "steps_per_frame": 1}
    sim = kept(monkeypatch, plain(solid=[], gravity=(0, 0, 0), time=time))
    sim.world.set("velocity", (25 * 2.3 * D / 0.016, 0, 0))
    sim.advance_frame()
    assert sim.metrics()["retries"] == 1 and sim.solver.intervals == [(0.0, 0.016)]
    assert (sim.world.carried["diary"].get(sim.world.count) == [8, 8]).all(), "the failed step is not in it"


@pytest.mark.parametrize("striped", [False, True])
def test_a_step_without_room_is_repeated_with_more(monkeypatch, striped):
    without = Simulation(plain(), "cpu")
    sim = kept(monkeypatch, striped=striped)
    for _ in range(2):
        without.advance_frame()
        sim.advance_frame()
    assert sim.solver.repeated == 2 and sim.solver.taken == 8 + 2, "room for 2, then 5, then 8"
    assert sim.world.carried["diary"].width == 8 and (sim.world.carried["diary"].get(sim.world.count) == 4).all()
    assert sim.metrics()["retries"] == 0 and sim.step_count == without.step_count
    for name in ("position", "velocity"):
        assert np.array_equal(sim.frame()[name], without.frame()[name]), "the same result"


@pytest.mark.parametrize("striped", [False, True])
def test_rows_that_became_wider_are_restored(monkeypatch, striped):
    sim = kept(monkeypatch, striped=striped)
    sim.advance_frame()
    early = sim.state()
    sim.advance_frame()
    late = sim.state()
    assert early["carried/diary"].shape[1] == 5 and late["carried/diary"].shape[1] == 8
    other = kept(monkeypatch, striped=not striped)  # as on another device
    for state in (late, early):
        other.restore(state)
        again = other.state()
        assert all(np.array_equal(again[key], state[key]) for key in state)
    other.advance_frame()
    again = other.state()
    assert all(np.array_equal(again[key], late[key]) for key in late)


def test_notes_arrive(monkeypatch):
    sim = kept(monkeypatch)
    assert sim.notes.count("a diary is kept") == 1
    sim.solver.notes.append("a page was torn")
    sim.advance_frame()
    sim.update()
    assert sim.notes[-1] == "a page was torn" and sim.notes.count("a diary is kept") == 1
    assert solvers.solver_class("pbf").notes == (), "a solver's notes are its own"


def test_notes_of_a_solver_chosen_later(monkeypatch):
    sim = Simulation(plain(), "cpu")
    assert "a diary is kept" not in sim.notes
    monkeypatch.setattr(solvers, "solver_class", lambda method: Diary)
    sim.update()
    assert "a diary is kept" in sim.notes


def test_cells_are_as_the_solver_needs_them(monkeypatch):
    class Coloured(Diary):
        def __init__(self, params, world):
            super().__init__(params, world)
            world.neighbors.multiple = 3

    sim = Simulation(plain(), "cpu")
    usual = sim.world.neighbors.dims
    with monkeypatch.context() as patched:
        patched.setattr(solvers, "solver_class", lambda method: Coloured)
        sim.update()
        assert all(d % 3 == 0 for d in sim.world.neighbors.dims)
        sim.advance_frame()
        assert all(d % 3 == 0 for d in sim.world.neighbors.dims)
    sim.update()
    assert sim.world.neighbors.multiple == 1 and sim.world.neighbors.dims == usual, "the next one has its own wishes"


def test_a_busy_solver_is_looked_at_after_every_step(monkeypatch):
    sim = Simulation(plain(), "cpu")
    monkeypatch.setattr(backend, "current", lambda: SimpleNamespace(is_gpu=True))
    assert sim._next_step(0.016)[1] == 4
    sim.solver.busy = True
    assert sim._next_step(0.016)[1] == 1


@pytest.mark.parametrize("name", sorted(solvers.SOLVERS))
def test_every_solver_answers(name):
    sim = Simulation(box_scene(D, solver={"method": name}), "cpu")
    longest, why = sim.solver.longest_step(sim.world)
    assert longest > 0 and isinstance(why, str) and (why or longest == math.inf)
    assert sim.solver.short_of_room() == 0 and sim.solver.busy in (True, False)
