"""What a run says about viscosity and volume that were asked for and did not act."""

import math

import pytest
from fake_simulation import SCENE, FakeSimulation

from viscoil.io.acted import STANDING, Watch, judged, rows_of
from viscoil.io.execute import Progress, execute
from viscoil.io.run import Run

DCPBD = {
    "method": "dcpbd", "projection": "cg", "iterations": 5, "velocity_iterations": 10, "velocity_tolerance": 0.005,
}  # fmt: skip
TIME = {"frame_time": 0.02, "steps_per_frame": 4}


def settings(time=None, **solver):
    return {"solver": DCPBD | solver, "time": time or TIME}


def sentences(*, share=(), compression=(), residual=0.06, time=None, **solver):
    """About frames with these shares, or these compressions."""
    watch = Watch(settings(time, **solver))
    for index, value in enumerate(share, 1):
        watch.add({"frame": index, "viscosity_share": value, "residual": residual, "compression": 0.0})
    for index, value in enumerate(compression, 1):
        watch.add({"frame": index, "compression": value})
    return watch.sentences()


def test_nothing_is_said_where_all_is_well():
    assert sentences(share=[1.0] * 20) == []
    assert sentences(compression=[0.001] * 20, method="iisph") == []
    assert Watch({}).sentences() == [] and Watch({}).words() == {}
    assert judged({"frame": []}, {}) == judged({}, {}) == []


def test_four_fifths_of_the_viscosity_are_enough():
    assert sentences(share=[0.8, 0.8]) == []
    [said] = sentences(share=[1.0, 0.79, 0.0234, 0.9])
    assert said.startswith("less than 80 % of the asked viscosity or modulus acted in 2 of 4 frames: 2.3 % in frame 3 at the ")
    assert said.count("What helps: ") == 1


def test_frames_without_a_share_are_no_frames_with_little():
    assert sentences(share=[math.nan, "", None]) == []
    assert judged({"frame": [1, 2], "viscosity_share": [math.nan, 0.5]}, settings()) != []


def test_friction_below_the_rounding_of_velocities_has_no_share():
    """In free fall nothing is sheared: work and friction are both noise."""
    for energy, said in ((0.0, 0), (1e-6, 0), (1.1e-6, 1), (math.nan, 1)):
        watch = Watch(settings())
        watch.add({"frame": 1, "viscosity_share": 0.0, "friction_energy": 2 * energy, "kinetic_energy": 2.0, "residual": 0.1})
        assert len(watch.sentences()) == len(watch.words()) == said, energy


@pytest.mark.parametrize(
    ("numbers", "helps"),
    [
        ({}, "solver.velocity_iterations = 400 (now 10); they end at solver.velocity_tolerance."),
        ({"velocity_iterations": 400}, "solver.velocity_iterations = 1000 (now 400); they end at solver.velocity_tolerance."),
        ({"velocity_iterations": 1000}, "time.steps_per_frame = 8 (now 4)."),
        ({"velocity_iterations": 1000, "time": {"step": 0.005}}, "time.step = 0.0025 (now 0.005)."),
        ({"velocity_iterations": 1000, "time": {"cfl": 0.4}}, "time.cfl = 0.2 (now 0.4)."),
        ({"residual": 0.005}, "solver.velocity_tolerance = 0.001 (now 0.005)."),
        ({"residual": 1e-4, "velocity_tolerance": 2e-4}, "solver.velocity_tolerance = 0.0001 (now 0.0002)."),
        ({"residual": 1e-4, "velocity_tolerance": 1e-4}, "time.steps_per_frame = 8 (now 4)."),
        ({"projection": "jacobi"}, 'solver.projection = "cg" (now "jacobi").'),
        ({"method": "dcpbd_jacobi", "mode": "paper"}, 'solver.mode = "corrected" (now "paper"), or solver.method = "dcpbd".'),
        (
            {"method": "dcpbd_jacobi", "mode": "corrected", "velocity_tolerance": 0, "velocity_iterations": 20},
            'solver.velocity_iterations = 400 (now 20), or solver.method = "dcpbd".',
        ),
    ],
)
def test_the_setting_that_lets_more_of_the_viscosity_act(numbers, helps):
    [said] = sentences(share=[1.0, 0.5], **numbers)
    assert said.endswith(f"What helps: {helps}")


def test_compression_is_said_when_it_has_stood_for_ten_frames():
    assert sentences(compression=[0.04] * (STANDING - 1)) == []
    assert sentences(compression=[0.03] * 20) == []
    assert sentences(compression=([0.04] * (STANDING - 1) + [0.0]) * 3) == []
    [said] = sentences(compression=[0.5] + [0.0] + [0.04] * (STANDING + 1) + [0.06] + [0.0, 0.2])
    assert said.startswith("the fluid was compressed by more than 3 % in the mean for 12 frames in a row, by 6 % at the most. ")


def test_a_frame_that_is_missing_ends_a_row():
    watch = Watch(settings())
    for index in [*range(STANDING), *range(STANDING + 1, 2 * STANDING)]:  # frame 0 does not count
        watch.add({"frame": index, "compression": 0.1})
    assert watch.sentences() == [] and watch.words() == {}
    watch.add({"frame": STANDING, "compression": 0.1})
    assert watch.sentences() and watch.words() == {"compression": "compressed by 10 %"}


@pytest.mark.parametrize(
    ("numbers", "helps"),
    [
        ({}, "What helps: solver.iterations = 10 (now 5), or time.steps_per_frame = 8 (now 4)."),
        ({"iterations": 600}, "solver.iterations = 1000 (now 600), or time.steps_per_frame = 8 (now 4)."),
        ({"iterations": 1000}, "What helps: time.steps_per_frame = 8 (now 4)."),
        ({"method": "pbf", "tolerance": 0.0}, "solver.iterations = 10 (now 5), or time.steps_per_frame = 8 (now 4)."),
        ({"method": "pbf", "tolerance": 0.05}, "What helps: solver.tolerance = 0.003 (now 0.05)."),
        (
            {"method": "iisph", "tolerance": 0.0, "iterations": 2},
            "solver.tolerance = 0.001 and solver.iterations = 50 (now always 2), or time.steps_per_frame = 8 (now 4).",
        ),
        ({"method": "iisph", "tolerance": 0.001, "iterations": 50}, "solver.iterations = 100 (now 50), or "),
        ({"method": "ucm_sph", "iterations": None}, "What helps: time.steps_per_frame = 8 (now 4)."),
    ],
)
def test_the_setting_that_keeps_the_volume(numbers, helps):
    [said] = sentences(compression=[0.1] * STANDING, **numbers)
    assert helps in said


@pytest.mark.parametrize(
    ("solver", "helps"),
    [
        ({"compressibility": 0.1}, "solver.compressibility = 0.05 (now 0.1), with up to 1.4 times the steps."),
        ({"compressibility": 0.1, "stiffness": 15.0}, "solver.stiffness = 30 (now 15), with up to 1.4 times the steps."),
        ({"substeps": 10}, "solver.compressibility = 0.05 (now 0.1), with solver.substeps = 15 (now 10)."),
    ],
)
def test_pvfs_says_that_some_of_it_is_normal(solver, helps):
    [said] = sentences(compression=[0.236] * STANDING, method="pvfs", **solver)
    assert "for 10 frames in a row, by 24 % at the most. PVFS is never without" in said and said.endswith(helps)


def test_the_line_of_progress_names_what_does_not_act_now():
    watch = Watch(settings())
    for index in range(1, STANDING + 1):
        watch.add({"frame": index, "viscosity_share": 0.62, "compression": 0.05})
        assert watch.words()["share"] == "only 62 % of the viscosity acts"
        assert ("compression" in watch.words()) == (index == STANDING)
    watch.add({"frame": STANDING + 1, "viscosity_share": 0.9, "compression": 0.0})
    assert watch.words() == {} and len(watch.sentences()) == 2


class Thin(FakeSimulation):
    """Half of the viscosity acts from frame 3 on, and all of it from frame 6 on."""

    def metrics(self):
        return super().metrics() | {"viscosity_share": 0.5 if 3 <= self.frame_index < 6 else 1.0, "compression": 0.0}


class Heard(Progress):
    def __init__(self):
        self.notes, self.words = [], {}

    def note(self, text):
        self.notes.append(text)

    def frame(self, frame, metrics):
        assert self.watch
        self.words[frame.index] = self.watch.words()


def test_a_run_says_it_at_once_in_the_log_and_at_the_end(tmp_path):
    scene = SCENE + '[solver]\nmethod = "dcpbd"\nvelocity_iterations = 1\nvelocity_tolerance = 0.005\n'
    run, heard = Run.create(tmp_path / "run", scene), Heard()
    outcome = execute(Thin(toml=scene), run, progress=heard)
    assert [text.split(":")[0].split(" in ")[1] for text in heard.notes] == ["1 of 3 frames"]
    assert {index for index, words in heard.words.items() if words} == {3, 4, 5}
    [said] = outcome.acted
    assert "in 3 of 12 frames" in said and "solver.velocity_iterations = 400 (now 1)" in said
    assert said in (run.path / "log.txt").read_text().splitlines()[-1]
    assert run.acted() == [said]


def test_a_resumed_run_remembers_and_one_that_is_fine_says_nothing(tmp_path):
    run, heard = Run.create(tmp_path / "run", SCENE), Heard()
    assert len(execute(Thin(toml=SCENE), run, 5).acted) == 1
    outcome = execute(Thin(toml=SCENE), Run.open(run.path), progress=heard)
    assert outcome.resumed_from == 5 and "in 3 of 12 frames" in outcome.acted[0]
    assert heard.notes == ["resumed from checkpoint_00005.h5."], "it was said before"
    fine = Run.create(tmp_path / "fine", SCENE)
    assert execute(FakeSimulation(toml=SCENE), fine).acted == ()
    assert "asked" not in (fine.path / "log.txt").read_text()


def test_rows_hold_what_is_judged():
    assert rows_of({"frame": [1, 2], "height": [0.1, 0.2], "compression": [0.0, 0.5]}) == [
        {"frame": 1, "compression": 0.0}, {"frame": 2, "compression": 0.5},
    ]  # fmt: skip
