"""How far things get: what a view at the start has to leave room for."""

import numpy as np
import pytest

from kit import box_scene
from viscoil.simulate import Simulation
from viscoil.studio.reach import extremes, reach

TABLE = {"name": "table", "shape": {"type": "plane"}}
D = 0.01


def reached(seconds=2.0, **changes):
    changes = {"fluid": [], "solid": [TABLE], **changes}
    changes["time"] = {"frames": 10, "frame_time": seconds / 10, "steps_per_frame": 1}
    return reach(Simulation(box_scene(D, **changes), device="cpu"))


def nozzle(**changes):
    plain = {"material": "water", "position": (0, 1, 0), "direction": (0, -1, 0), "speed": 1e-3, "max_particles": 5}
    return {**plain, "shape": {"type": "cylinder", "radius": 0.02, "height": 0.02}, **changes}


def test_a_jet_reaches_what_is_below():
    found = reached(emitter=[nozzle()])
    assert found[:, 1].min() == pytest.approx(0.0, abs=1e-6) and found[:, 1].max() == pytest.approx(1.0)
    assert np.abs(found[:, [0, 2]]).max() < 0.04, "straight down, and five particles are a small heap"


def test_it_ends_on_what_is_in_between():
    plate = {"shape": {"type": "box", "size": (1, 0.1, 1), "position": (0, 0.55, 0)}}
    assert reached(emitter=[nozzle()], solid=[TABLE, plate])[:, 1].min() == pytest.approx(0.6, abs=1e-3)


def test_a_level_jet_lands_where_it_has_to():
    """x = v √(2h/g), and the rim is 2 cm wide."""
    found = reached(emitter=[nozzle(direction=(1, 0, 0), speed=2.0, end=1e-3)])
    assert found[:, 0].max() == pytest.approx(2.0 * np.sqrt(2 * 1.0 / 9.81), abs=0.06)


def test_a_fountain_rises_to_its_height():
    """h = v²/2g, and comes down again."""
    found = reached(emitter=[nozzle(position=(0, 0.5, 0), direction=(0, 1, 0), speed=4.0, end=1e-3)])
    assert found[:, 1].max() == pytest.approx(0.5 + 16 / 2 / 9.81, rel=0.01) and found[:, 1].min() < 1e-3


def test_a_nozzle_that_moves_is_followed_and_ends_in_time():
    motion = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 1.0, "position": (3, 0, 0)}]
    on = 3.0 * np.sqrt(2 * 1.0 / 9.81)  # what leaves it goes as fast as it
    for end, way in ((10.0, 3.0), (0.5, 1.5)):
        found = reached(emitter=[nozzle(motion=motion, interpolation="linear", end=end)])
        assert way + on - 0.45 < found[:, 0].max() < way + on + 0.05, "a moment looked at is up to 2/15 s before the end"


def test_a_heap_has_room_for_what_was_poured():
    """Half a ball of all that flows: V = π r² v t."""
    found = reached(emitter=[nozzle(speed=0.5, max_particles=None)])
    volume = np.pi * 0.02**2 * 0.5 * 2.0
    radius = np.cbrt(3 * volume / (2 * np.pi))
    assert found[:, 0].max() == pytest.approx(radius + 0.02, rel=0.15)


def test_blocks_and_bodies_fall_and_pistons_travel():
    block = [{"material": "water", "shape": {"type": "box", "size": (0.1, 0.1, 0.1), "position": (0, 1, 0)}}]
    assert reached(fluid=block)[:, 1].min() < 1e-3
    ball = {"shape": {"type": "sphere", "radius": 0.1, "position": (2, 3, 0)}, "body": {"density": 500}}
    found = reached(fluid=block, solid=[TABLE, ball])
    assert found[:, 0].max() == pytest.approx(2.1, abs=0.01) and found[found[:, 0] > 1.8, 1].min() < 1e-3
    motion = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 1.0, "position": (0, 0, 4)}]
    piston = {"shape": {"type": "box", "size": (0.2, 0.2, 0.2), "position": (0, 0.5, 0)}, "motion": motion}
    assert reached(fluid=block, solid=[TABLE, piston])[:, 2].max() == pytest.approx(4.1)


def test_walls_and_ends_keep_it_in():
    tank = {"container": True, "shape": {"type": "box", "size": (1, 2, 1), "position": (0, 1, 0)}}
    found = reached(emitter=[nozzle(direction=(1, 0, 0), speed=20.0, max_particles=None)], solid=[tank])
    assert found.min() > -0.501 and found[:, 0].max() < 0.501
    nothing = reached(seconds=50.0, emitter=[nozzle()], solid=[])
    assert 1.0 > nothing[:, 1].min() > -5.0, "what nothing stops is followed some way"


def test_the_outermost_are_kept():
    points = np.random.default_rng(0).normal(size=(5000, 3))
    kept = extremes(points)
    assert len(kept) <= 124 and np.allclose(kept.max(0), points.max(0)) and np.allclose(kept.min(0), points.min(0))
