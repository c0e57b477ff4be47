"""The simulation's process, from the other end of its pipe: every command, and what happens when things go wrong."""

from multiprocessing import Pipe
from time import monotonic

import numpy as np
import pytest

from kit import box_scene
from viscoil.cli import main
from viscoil.io.run import Run
from viscoil.scene.load import load
from viscoil.scene.parts import Emitter, Solid
from viscoil.studio import engine as engine_module
from viscoil.studio import messages as m
from viscoil.studio.engine import Engine

D = 0.05


class Partner:
    """The parent's side: sends commands, collects events, takes frames as fast as they come unless told not to."""

    def __init__(self):
        self.pipe, theirs = Pipe()
        self.engine = Engine(theirs, "cpu", None)
        self.engine._pace = None
        self.events = []
        self.frames = []
        self.greedy = True

    def send(self, *commands):
        for command in commands:
            self.pipe.send(command)

    def until(self, condition, timeout=240.0):
        """Reads events until ``condition(event)`` holds; returns that event."""
        end = monotonic() + timeout
        while monotonic() < end:
            if not self.pipe.poll(0):
                self.engine.turn(0.0)  # kernels run in the main thread only, so both sides take turns
                continue
            event = self.pipe.recv()
            if isinstance(event, m.Arrays):
                arrays = m.receive_arrays(self.pipe, event)
                event = event.content
                self.frames.append((event, arrays))
                if self.greedy:
                    self.send(m.Taken())
            self.events.append(event)
            if condition(event):
                return event
        raise AssertionError(f"nothing of the kind in {timeout} s; last: {self.events[-3:]}")

    def a(self, kind, **values):
        return self.until(lambda e: isinstance(e, kind) and all(getattr(e, k) == v for k, v in values.items()))

    def frame(self, condition=lambda sent: True):
        self.until(lambda e: isinstance(e, m.FrameSent) and condition(e))
        return self.frames[-1]


@pytest.fixture
def partner():
    return Partner()


@pytest.fixture
def file(tmp_path):
    scene = box_scene(D, (8, 5, 5))
    ball = {"type": "sphere", "radius": 0.08, "position": (0.3, 0.35, 0.12)}
    scene.solid.append(Solid(name="ball", shape=ball))
    path = tmp_path / "pool.toml"
    path.write_text(scene.to_toml())
    return path


def loaded(partner, file, **more):
    partner.send(m.Load(str(file), **more))
    event = partner.a(m.Loaded)
    partner.frame()
    return event.info


def test_a_scene_is_built_and_described(partner, file):
    info = loaded(partner, file)
    assert info.method == "pbf" and info.spacing == D and info.qualities == ("quick",)
    assert [t.name for t in info.things] == ["tank", "ball"] and info.things[0].container
    assert "solver.xsph" in {c.path for g in info.groups for c in g.controls}
    assert {"velocity", "density"} <= set(info.fields)
    sent, arrays = partner.frames[-1]
    assert sent.header["time"] == 0.0 and arrays["position"].shape == (200, 3) and sent.rows[0]["particles"] == 200


def test_transport(partner, file):
    loaded(partner, file)
    partner.send(m.Advance())
    sent, _ = partner.frame(lambda s: s.header["step"] == 1)
    assert not sent.whole
    partner.send(m.Advance(frame=True))
    sent, _ = partner.frame(lambda s: s.header["index"] == 1)
    assert sent.whole and sent.header["step"] == 4
    partner.send(m.Play())
    sent, _ = partner.frame(lambda s: s.header["index"] >= 5)
    assert sent.rates["steps"] > 0
    partner.send(m.Pause())
    partner.a(m.State, name="paused")
    rows = [row["frame"] for s, _ in partner.frames for row in s.rows]
    assert rows == list(range(rows[-1] + 1)), "every frame was measured once, whether it was shown or not"
    partner.send(m.Reset())
    partner.a(m.Loaded, fresh=False)
    assert partner.frame()[0].header["step"] == 0


def test_nobody_who_does_not_look_holds_it_up(partner, file):
    """Frames are not taken: none piles up, and the simulation goes on regardless."""
    partner.greedy = False
    loaded(partner, file)
    partner.send(m.Play())
    partner.a(m.State, name="running")
    for _ in range(60):
        partner.engine.turn(0.0)
    assert partner.engine.sim.step_count > 40
    assert not partner.pipe.poll(0) or not isinstance(partner.pipe.recv(), m.Arrays)
    assert len(partner.frames) == 1
    partner.send(m.Taken())
    sent, _ = partner.frame()
    assert sent.header["step"] >= 40 and len(sent.rows) >= 10, "the latest state, and all rows since"


def test_stress_is_offered_by_methods_that_have_one(partner, file, tmp_path):
    """A page that still asks for the last scene's stress gets frames without it."""
    assert "stress" not in loaded(partner, file).fields
    (path := tmp_path / "honey.toml").write_text(box_scene(D, (4, 4, 4), solver={"method": "dcpbd"}).to_toml())
    info = loaded(partner, path)
    assert info.fields["stress"] == "Pa" and "stress_mises" not in info.fields
    partner.send(m.Watch(("stress",), False), m.Advance())
    _, arrays = partner.frame(lambda sent: sent.header["step"] >= 1)
    assert arrays["stress"].shape == (len(arrays["position"]), 3, 3) and np.abs(arrays["stress"]).max() > 0
    loaded(partner, file)
    assert "stress" not in partner.frames[-1][1]


def test_a_recording_misses_no_frame(partner, file):
    loaded(partner, file)
    partner.send(m.Watch((), every_frame=True), m.Play())
    partner.frame(lambda s: s.header["index"] >= 8)
    whole = [s.header["index"] for s, _ in partner.frames if s.whole]
    assert whole == sorted(set(whole)) == list(range(whole[-1] + 1))


def test_gravity_up_kinetic_energy_up(partner, tmp_path):
    """Of a block that falls through the air: by the square of gravity, to rounding."""
    scene = box_scene(D, (8, 8, 8))
    scene.fluid[0].shape.size = (4 * D, 4 * D, 4 * D)
    (path := tmp_path / "falling.toml").write_text(scene.to_toml())
    energies = []
    for strength in (9.81, 25.0):
        loaded(partner, path)
        partner.send(m.Change("gravity.strength", strength), m.Advance(frame=True), m.Advance(frame=True))
        sent, _ = partner.frame(lambda s: s.header["index"] == 2)
        energies.append(sent.rows[-1]["kinetic_energy"])
    assert energies[1] / energies[0] == pytest.approx((25 / 9.81) ** 2, rel=1e-3)
    assert load_text(partner.engine.scene.to_toml()).gravity == pytest.approx((0, -25, 0))


def in_order(rows):
    """Rows of numbers in an order of their own: live frames come in any."""
    return rows[np.lexsort(rows.T)]


def load_text(text):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_text(text)
        return load(path)


def test_a_change_that_is_refused_is_said_and_taken_back(partner, file):
    loaded(partner, file)
    partner.send(m.Change("solver.xsph", 7.0))
    problem = partner.a(m.Problem)
    assert "at most 1" in problem.text
    assert partner.a(m.Edited).values["solver.xsph"] == 0.01
    partner.send(m.Change("solver.support", 3.0))
    assert "cannot be changed while a simulation runs" in partner.a(m.Problem).text
    assert partner.engine.scene.solver.support == 2.3
    partner.send(m.Advance())
    partner.frame(lambda s: s.header["step"] == 1)


def test_of_many_changes_only_the_last_is_made(partner, file):
    loaded(partner, file)
    seen = []
    original = partner.engine._change
    partner.engine._change = lambda path, value: (seen.append(value), original(path, value))
    partner.send(*(m.Change("solver.xsph", k / 100) for k in range(1, 50)))
    partner.until(lambda e: isinstance(e, m.Edited) and e.values["solver.xsph"] == 0.49)
    assert seen == [0.49]


def test_wrong_scenes_are_said_and_the_one_that_runs_goes_on(partner, file):
    partner.send(m.Load("dam_brake"))
    assert 'Did you mean "dam_break"' in partner.a(m.Problem).text
    loaded(partner, file)
    partner.send(m.Load("upload.toml", "spacing = 0.1\nfluff = 3\n"))
    problem = partner.a(m.Problem).text
    assert 'unknown key "fluff"' in problem and "upload.toml" in problem
    partner.send(m.Load("evil.toml", "import os\nos.system('true')\n"))
    assert "not valid TOML" in partner.a(m.Problem).text
    partner.send(m.Advance())
    assert partner.frame(lambda s: s.header["step"] == 1)[1]["position"].shape == (200, 3)


def test_an_upload_is_a_scene_like_any_other(partner, file):
    partner.send(m.Load("../../pool.toml", file.read_text()))
    assert partner.a(m.Loaded).info.title == "pool"
    partner.frame()
    partner.send(m.Reset())
    partner.a(m.Loaded, fresh=False)


def test_an_explosion_is_said_and_reset_helps(partner, file):
    loaded(partner, file)
    partner.send(m.Advance())
    partner.frame(lambda s: s.header["step"] == 1)
    partner.engine.sim.world.set("velocity", np.full(3, np.nan, np.float32))
    partner.send(m.Play())
    assert "exploded" in partner.a(m.Problem).text
    partner.a(m.State, name="failed")
    partner.send(m.Reset(), m.Play())
    partner.frame(lambda s: s.header["index"] >= 2)


def test_a_bug_is_said_too(partner, file, monkeypatch, capfd):
    loaded(partner, file)
    monkeypatch.setattr(partner.engine.sim, "step", lambda: 1 / 0)
    partner.send(m.Play())
    assert "ZeroDivisionError" in partner.a(m.Problem).text
    partner.a(m.State, name="failed")
    assert "Traceback" in capfd.readouterr().err, "and leaves a trace for whoever looks"


def test_a_dragged_solid_travels_and_the_scene_follows(partner, file):
    loaded(partner, file)
    partner.send(m.Advance(frame=True))
    first, _ = partner.frame(lambda s: s.header["index"] == 1)
    turn = tuple(map(tuple, np.eye(3).tolist()))
    partner.send(m.Move("solid", 1, (0.2, 0.2, 0.12), turn))
    places = []
    for step in range(1, 100):  # one by one: who plays sees as many frames as there is time for
        partner.send(m.Advance())
        sent, _ = partner.frame(lambda s, last=first.header["step"] + step: s.header["step"] == last)
        places.append(np.array(sent.header["solids"][1]["pose"])[:3, 3])
        if np.allclose(places[-1], (0.2, 0.2, 0.12), atol=1e-6):
            break
    assert np.allclose(places[-1], (0.2, 0.2, 0.12), atol=1e-6), "it arrives"
    assert any(0.21 < p[0] < 0.29 for p in places), "it was on its way in between"
    # A second journey, waited for by its edit alone: that of the first may have come before the last frame of it.
    partner.send(m.Move("solid", 1, (0.2, 0.2, 0.14), turn), m.Play())
    partner.until(lambda e: isinstance(e, m.Edited) and load_text(e.toml).solid[1].shape.position[2] == pytest.approx(0.14))


def test_where_a_drag_ends_is_told(partner, file, monkeypatch):
    """Also when everything up to its last step had been told before that step."""
    monkeypatch.setattr(engine_module, "IDLE", 0.0)
    scene = load(file)
    nozzle = {"type": "sphere", "radius": 0.07}
    scene.emitter.append(Emitter(shape=nozzle, material="honey", position=(0.1, 0.3, 0.1), speed=1.0))
    file.write_text(scene.to_toml())
    loaded(partner, file)
    partner.send(m.Advance(frame=True))
    first, _ = partner.frame(lambda s: s.header["index"] == 1)
    turn = tuple(map(tuple, np.eye(3).tolist()))
    for kind, index in (("solid", 1), ("emitter", 0)):
        place = (0.2, 0.35, 0.14)
        partner.send(m.Move(kind, index, place, turn))
        partner.events.clear()
        for step in range(1, 40):
            partner.send(m.Advance())
            partner.frame(lambda s, last=first.header["step"] + step: s.header["step"] == last)
        first = partner.frames[-1][0]
        told = [load_text(e.toml) for e in partner.events if isinstance(e, m.Edited)]
        ends = [scene.solid[1].shape.position if kind == "solid" else scene.emitter[0].position for scene in told]
        assert len(ends) > 1 and ends[0] != pytest.approx(place) and ends[-1] == pytest.approx(place)


def test_before_the_first_step_things_are_placed_and_the_fluid_filled_around_them(partner, file):
    loaded(partner, file)
    turn = tuple(map(tuple, np.eye(3).tolist()))
    partner.send(m.Move("solid", 1, (0.2, 0.12, 0.12), turn))
    info = partner.a(m.Loaded, fresh=False).info
    assert info.things[1].position == pytest.approx((0.2, 0.12, 0.12))
    _, arrays = partner.frame(lambda s: s.header["step"] == 0 and len(partner.frames[-1][1]["position"]) < 200)
    distance = np.linalg.norm(arrays["position"] - (0.2, 0.12, 0.12), axis=1)
    assert distance.min() > 0.08, "no particle inside the ball"


def test_nozzles_are_dragged_too(partner, tmp_path):
    scene = box_scene(D, (8, 2, 5))
    ball = {"type": "sphere", "radius": 0.07}
    scene.emitter.append(Emitter(shape=ball, material="honey", position=(0.1, 0.18, 0.1), speed=1.0))
    path = tmp_path / "nozzle.toml"
    path.write_text(scene.to_toml())
    info = loaded(partner, path)
    assert [t.kind for t in info.things] == ["solid", "emitter"]
    partner.send(m.Advance(frame=True), m.Play())
    partner.frame(lambda s: s.header["index"] >= 1)
    turn = tuple(map(tuple, np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]]).tolist()))  # +y becomes +x... the flow
    partner.send(m.Move("emitter", 0, (0.2, 0.15, 0.12), turn))
    sent, _ = partner.frame(lambda s: np.allclose(s.nozzles[0][1], (0.2, 0.15, 0.12)))
    assert np.allclose(sent.nozzles[0][0][:, 1], (1, 0, 0), atol=1e-9)


def test_a_checkpoint_is_a_run_that_can_be_resumed(partner, file, tmp_path, capsys):
    """With the scene as it was edited; what comes next has the bits of what the studio goes on to."""
    loaded(partner, file)
    partner.send(m.Change("solver.xsph", 0.2), *[m.Advance(frame=True)] * 3, m.Advance())
    partner.frame(lambda s: s.header["step"] == 13)
    folder = tmp_path / "saved"
    partner.send(m.Save(str(folder)))
    saved = partner.a(m.Saved)
    assert saved.frame == 4 and saved.command.endswith("--resume"), "the frame under way was finished first"
    partner.send(m.Advance(frame=True), m.Advance(frame=True))
    _, live = partner.frame(lambda s: s.header["index"] == 6)
    run = Run.open(folder)
    assert run.scene().solver.xsph == 0.2 and run.checkpoints == [4] and run.status == "interrupted"
    assert main(["run", str(folder), "--resume", "--frames", "6"]) == 0
    later = Run.open(folder).frame(6)
    for name in ("position", "velocity"):
        assert np.array_equal(in_order(later[name]), in_order(live[name]))
    assert run.scene().time.frames > 4, "there is something left to do"


def test_frames_are_kept_as_a_run_of_what_was_done_by_hand(partner, file, tmp_path):
    loaded(partner, file)
    partner.send(m.Advance(frame=True), m.Advance())
    partner.frame(lambda s: s.header["step"] == 5)
    folder = tmp_path / "kept"
    partner.send(m.Keep(str(folder)))
    partner.a(m.Keeping, on=True)
    partner.send(m.Advance(frame=True), m.Change("gravity.strength", 2.0), m.Advance(frame=True))
    partner.frame(lambda s: s.header["index"] == 4)
    partner.send(m.Keep(None))
    saved = partner.a(m.Saved)
    assert saved.frames == 3 and partner.a(m.Keeping).on is False
    run = Run.open(folder)
    assert run.frames == [2, 3, 4] and run.checkpoints == [4] and len(run.metrics()["frame"]) == 3
    assert run.scene().gravity == pytest.approx((0, -2, 0)), "as it was at the end, where it goes on"
    assert main(["run", str(folder), "--resume", "--frames", "5"]) == 0
    partner.send(m.Advance(frame=True))
    _, live = partner.frame(lambda s: s.header["index"] == 5)
    assert np.array_equal(in_order(Run.open(folder).frame(5)["position"]), in_order(live["position"]))


def test_a_reset_ends_what_is_being_kept(partner, file, tmp_path):
    loaded(partner, file)
    partner.send(m.Keep(str(tmp_path / "a")), m.Advance(frame=True), m.Reset())
    assert partner.a(m.Saved).frames == 2
    partner.a(m.Loaded)
    (tmp_path / "taken").write_text("a file")
    partner.send(m.Keep(str(tmp_path / "taken")))
    assert "is a file" in partner.a(m.Problem).text
    partner.send(m.Advance())
    partner.frame(lambda s: s.header["step"] == 1)


def test_the_pace_is_kept(partner, file, monkeypatch):
    """By a clock that the test winds: simulated time follows it, and what a pause or a slow step cost is not made up for."""
    clock = [100.0]
    monkeypatch.setattr(engine_module, "perf_counter", lambda: clock[0])
    loaded(partner, file)
    partner.send(m.Pace(0.5), m.Play())
    partner.a(m.State, name="running")
    engine = partner.engine
    for seconds, expected in ((0.0, 0.004), (0.1, 0.05), (0.1, 0.1), (5.0, 0.104)):
        clock[0] += seconds
        for _ in range(40):
            engine.turn(0.0)
        assert engine.sim.time == pytest.approx(expected, abs=0.0085), "within two steps"
    partner.send(m.Pace(None))
    for _ in range(40):
        engine.turn(0.0)
    assert engine.sim.time > 0.2, "as fast as it can"


def test_it_ends_with_its_parent(partner, file):
    loaded(partner, file)
    partner.send(m.Play())
    partner.a(m.State, name="running")
    partner.pipe.close()
    partner.engine.run()


def test_it_ends_when_told_to(partner, file):
    loaded(partner, file)
    partner.send(m.Quit())
    partner.engine.run()
