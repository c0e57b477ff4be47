"""DC-PBD moves bodies: what fluid loses they gain, however stiffly viscosity ties them to it."""

import hashlib
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from body_kit import FreeBodies
from viscoil import backend
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

D = 0.02
MASS = 1000 * D**3  # of a particle
G = 9.81


class Meeting:
    """Fluid and one free body, its last solid."""

    def __init__(self, shape, mass, viscosity, fill, place=(0, 0, 0), speed=0.0, friction=0.0, gravity=0.0, steps=4, walls=()):
        self.mass = mass
        size = shape["size"][0] ** 2 / 6 if "size" in shape else 0.4 * shape["radius"] ** 2
        self.inertia = mass * size
        scene = Scene.model_validate({
            "spacing": D, "gravity": (0, -gravity, 0), "solver": {"method": "dcpbd"},
            "time": {"frames": 1000, "frame_time": 1 / 60, "steps_per_frame": steps},
            "material": {"m": {"density": 1000, "viscosity": viscosity}},
            "fluid": [{"shape": {"type": "box", "size": (fill * D,) * 3}, "material": "m", "velocity": (speed, 0, 0)}],
            "solid": [*walls, {"shape": {**shape, "position": place}, "friction": friction}],
        })  # fmt: skip
        self.sim = Simulation(scene, "cpu")
        self.rigid = FreeBodies([len(walls)], [mass], [[self.inertia] * 3], [place], (0, -gravity, 0))
        self.sim.world.solids.couple(self.rigid, D, MASS, 0.0)

    @property
    def velocity(self):
        return self.rigid.velocity[0]

    def fluid(self):
        return (self.sim.world.get(name).astype(float) for name in ("position", "velocity"))

    def totals(self):
        """Momentum, and angular momentum about the origin."""
        x, v = self.fluid()
        p = MASS * v.sum(0) + self.mass * self.velocity[:3]
        spin = np.cross(self.rigid.centres()[0], self.mass * self.velocity[:3]) + self.inertia * self.velocity[3:]
        return p, MASS * np.cross(x, v).sum(0) + spin

    def run(self, frames):
        """Twists of the body after every frame."""
        return [self.velocity.copy() for _ in self.sim.frames(frames)]


@pytest.mark.parametrize(("viscosity", "friction"), [(0.001, 0.0), (500, "no-slip")])
def test_a_collision_keeps_momentum(viscosity, friction):
    edge = 6 * D
    meeting = Meeting({"type": "box", "size": (edge,) * 3}, 108 * MASS, viscosity, 6, (edge + 0.02, 0.02, 0.01), 1.0, friction)
    p0, l0 = meeting.totals()
    meeting.run(15)
    p, l1 = meeting.totals()
    assert 0.4 < meeting.velocity[0] < 0.9  # 2/3 when they stay together
    assert np.linalg.norm(p - p0) < 1e-4 * np.linalg.norm(p0)
    assert np.linalg.norm(l1 - l0) < 5e-3 * np.linalg.norm(p0) * 0.2


@pytest.mark.parametrize("mass", [5, 500])
def test_a_body_stuck_in_stiff_fluid_takes_it_along(mass):
    """Its drag would stop it within 1e-4 of a step: exchanged after the step, impulses would grow without bound."""
    meeting = Meeting({"type": "sphere", "radius": 2.5 * D}, mass * MASS, 1e4, 9, friction="no-slip", steps=1)
    meeting.velocity[0] = 1.0
    p0 = meeting.totals()[0]
    together = p0[0] / (mass * MASS + MASS * meeting.sim.particles)
    speeds = [u[0] for u in meeting.run(6)]
    assert np.linalg.norm(meeting.totals()[0] - p0) < 1e-4 * np.linalg.norm(p0)
    assert abs(speeds[-1] - together) < 0.05 * together and max(np.abs(speeds[1:])) < 1.2 * together


def test_viscosity_brakes_a_spin_and_keeps_its_momentum():
    meeting = Meeting({"type": "sphere", "radius": 2.5 * D}, 100 * MASS, 200, 9, friction="no-slip")
    meeting.velocity[5] = 3.0
    l0 = meeting.totals()[1]
    spins = [u[5] for u in meeting.run(12)]
    x, _ = meeting.fluid()
    inertia = MASS * (x[:, 0] ** 2 + x[:, 1] ** 2).sum() + meeting.inertia
    assert all(b < a + 1e-3 for a, b in itertools.pairwise(spins))
    assert spins[-1] == pytest.approx(l0[2] / inertia, rel=0.1)
    assert np.linalg.norm(meeting.totals()[1] - l0) < 2e-3 * l0[2]


def test_a_heavy_ball_sinks_as_slowly_as_stokes_says():
    """Walls at 2.8 radii: a tube leaves 0.3 of Stokes' speed (Faxén). The first layer sticks half a spacing outside."""
    radius, width, viscosity = 2.5 * D, 14 * D, 100
    wall = {"shape": {"type": "box", "size": (width, 1, width), "position": (0, 0.5 - width / 2, 0)}, "container": True,
            "friction": "no-slip"}  # fmt: skip
    mass = 4 / 3 * np.pi * radius**3 * 4000
    meeting = Meeting(
        {"type": "sphere", "radius": radius}, mass, viscosity, 14, (0, 0.02, 0), friction="no-slip", gravity=G, walls=[wall]
    )
    speeds = [-u[1] for u in meeting.run(20)]
    stokes = 2 / 9 * 3000 * G * radius**2 / viscosity
    assert max(speeds) < stokes
    assert 0.15 < np.mean(speeds[-5:]) / stokes < 0.5


CODE = """
import sys
sys.path[:0] = [{here!r}, {kits!r}]
import test_dcpbd_bodies as t
print(t.fingerprint())
"""


def fingerprint():
    """Of a collision of more particles than a thread takes at once."""
    meeting = Meeting({"type": "box", "size": (8 * D,) * 3}, 200 * MASS, 5.0, 10, (0.2, 0.02, 0.01), 1.0, "no-slip")
    meeting.run(4)
    x, v = meeting.fluid()
    return len(x), hashlib.sha256(x.tobytes() + v.tobytes() + meeting.rigid.state().tobytes()).hexdigest()


def test_bits_do_not_depend_on_threads():
    """One in a process of its own, and as many as this one has."""
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(here=here, kits=os.path.dirname(here))], capture_output=True, text=True,
        env={**os.environ, "VISCOIL_THREADS": str(1 if backend.current().threads > 1 else 2)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = fingerprint()
    assert found[0] == 1000 and done.stdout.strip() == str(found)


def test_solids_that_are_no_bodies_hold_fluid_as_before():
    """Mean place of a block that fell onto a moving no-slip ball, as it was before bodies could be moved."""
    scene = Scene.model_validate({
        "spacing": D, "solver": {"method": "dcpbd", "acceleration": "none"},  # as it was then
        "time": {"frames": 8, "frame_time": 1 / 60, "steps_per_frame": 2},
        "material": {"m": {"density": 1000, "viscosity": 5.0}},
        "fluid": [{"shape": {"type": "box", "size": (0.16, 0.12, 0.16), "position": (0, 0.22, 0)}, "material": "m"}],
        "solid": [
            {"shape": {"type": "box", "size": (1, 1, 1), "position": (0, 0.5, 0)}, "container": True, "friction": "no-slip"},
            {"shape": {"type": "sphere", "radius": 0.07, "position": (0.03, 0.07, 0)}, "friction": "no-slip",
             "motion": [{"time": 0, "position": (0, 0, 0)}, {"time": 1, "position": (0.3, 0, 0)}]},
        ],
    })  # fmt: skip
    sim = Simulation(scene, "cpu")
    for _ in sim.frames():
        pass
    assert sim.world.get("position").astype(float).mean(0) == pytest.approx([1.17336e-3, 0.1418718, 0], abs=2e-5)
