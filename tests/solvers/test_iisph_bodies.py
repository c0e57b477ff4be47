"""IISPH moves bodies: what fluid loses they gain, however light they are, by pressure and by friction."""

import hashlib
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
EDGE = 8 * D


def block(place, fill=8, velocity=(1.0, 0.0, 0.0), boundary="distance", friction=0.0, solver=None, gravity=(0, 0, 0), **solid):
    """A cube of fluid at the origin that flies towards a box."""
    box = {"type": "box", "size": (EDGE,) * 3, "position": place}
    return Scene.model_validate({
        "spacing": D, "gravity": gravity, "solver": {"method": "iisph", **(solver or {})},
        "time": {"frames": 100, "frame_time": 1 / 60, "steps_per_frame": 4}, "material": {"water": {"density": 1000}},
        "fluid": [{"shape": {"type": "box", "size": (fill * D,) * 3}, "material": "water", "velocity": velocity}],
        "solid": [{"shape": box, "boundary": boundary, "friction": friction, **solid}],
    })  # fmt: skip


def inertia(shape, mass):
    """About the three axes of a box or a ball [kg m²]."""
    if shape.type == "sphere":
        return np.full(3, 0.4 * mass * shape.radius**2)
    squares = np.asarray(shape.size, float) ** 2
    return mass / 12 * (squares.sum() - squares)


class Meeting:
    """Fluid and free bodies of ``mass`` [kg], all of the scene's solids or those given by number."""

    def __init__(self, scene, mass, gravity=(0, 0, 0), solids=None):
        self.sim = Simulation(scene, "cpu")
        self.world = self.sim.world
        solids = range(len(scene.solid)) if solids is None else solids
        shapes = [scene.solid[index].shape for index in solids]
        self.mass = mass
        self.inertia = [inertia(shape, mass) for shape in shapes]
        self.rigid = FreeBodies(solids, [mass] * len(shapes), self.inertia, [s.position for s in shapes], gravity)
        self.world.solids.couple(self.rigid, D, MASS, 0.0)

    def fluid(self):
        here = self.world.get("solid") < 0
        order = np.argsort(self.world.get("id")[here])
        return (self.world.get(name)[here][order].astype(float) for name in ("position", "velocity"))

    def totals(self):
        """Momentum, angular momentum about the origin, kinetic energy."""
        x, v = self.fluid()
        p, spin = MASS * v.sum(0), MASS * np.cross(x, v).sum(0)
        energy = 0.5 * MASS * (v * v).sum()
        for u, centre, inertia in zip(self.rigid.velocity, self.rigid.centres(), self.inertia, strict=True):
            p = p + self.mass * u[:3]
            spin = spin + self.mass * np.cross(centre, u[:3]) + inertia * u[3:]
            energy += 0.5 * self.mass * u[:3] @ u[:3] + 0.5 * (inertia * u[3:]) @ u[3:]
        return p, spin, energy

    def run(self, frames):
        """Errors of momentum and angular momentum, relative to the fluid's momentum (times 0.2 m), and the energy left."""
        p0, spin0, energy0 = self.totals()
        for _ in self.sim.frames(frames):
            pass
        p, spin, energy = self.totals()
        size = np.linalg.norm(p0)
        return np.abs(p - p0).max() / size, np.abs(spin - spin0).max() / (0.2 * size), energy / energy0


@pytest.mark.parametrize("boundary", ["distance", "particles"])
@pytest.mark.parametrize("share", [0.5, 0.02], ids=["half the fluid's mass", "as good as nothing"])
def test_a_collision_keeps_momentum(boundary, share):
    """A block hits a box off its middle. Exchanged once a step, the lighter one would fly away with all the energy there is."""
    meeting = Meeting(block((0.2, 0.02, 0.01), boundary=boundary), share * 512 * MASS)
    momentum, spin, energy = meeting.run(20)
    assert momentum < 1e-6
    assert spin < 2e-3
    assert 0.3 < energy < 1.0
    speed = meeting.rigid.velocity[0, 0]
    assert 0.4 < speed < 1.3  # it is on its way with the fluid
    assert meeting.sim.metrics()["retries"] == 0


@pytest.mark.parametrize("boundary", ["distance", "particles"])
def test_a_body_too_heavy_to_yield_is_a_wall_that_moves(boundary):
    """Its part in the density, taken apart and put together again, is that of a solid moved by keyframes."""
    place, speed, steps = (0.17, 0.02, 0.01), np.array([-0.5, 0.1, 0.0]), 10
    heavy = Meeting(block(place, boundary=boundary, friction=0.3), 1e9)
    heavy.rigid.velocity[0, :3] = speed
    way = [{"time": t, "position": tuple(t * speed)} for t in (0.0, 1.0)]
    told = Simulation(block(place, boundary=boundary, friction=0.3, motion=way, interpolation="linear"), "cpu")
    for _ in range(steps):
        heavy.sim.step()
        told.step()
    x, v = heavy.fluid()
    here = told.world.get("solid") < 0
    order = np.argsort(told.world.get("id")[here])
    assert np.abs(v - (1, 0, 0)).max() > 0.5  # it was hit
    assert np.abs(told.world.get("position")[here][order] - x).max() < 1e-3 * D
    assert np.abs(told.world.get("velocity")[here][order] - v).max() < 2e-3
    np.testing.assert_allclose(heavy.rigid.position[0], place + steps / 240 * speed, atol=1e-6)


@pytest.mark.parametrize("friction", [0.5, np.inf], ids=["rough", "no slip"])
def test_a_stream_drags_a_body_along(friction):
    """Fluid that slides over what it presses on loses along it what the body gains, by Coulomb's law."""
    found = []
    for mu in (0.0, friction):
        meeting = Meeting(block((0.17, 0.0, 0.0), velocity=(0.5, 0.0, 1.0), friction=mu), 0.5 * 512 * MASS)
        momentum, spin, energy = meeting.run(10)
        assert momentum < 1e-6
        assert spin < 5e-3
        assert energy < 1.0
        found.append(meeting.rigid.velocity[0])
    (pushed, _, still), (along, _, dragged) = found[0][:3], found[1][:3]
    assert pushed > 0.1 and abs(still) < 0.02
    assert 0.3 * min(friction, 1.0) * along < dragged < 1.05 * friction * along


def test_friction_against_approach_is_shared():
    """Akinci's friction: fluid and body together keep their momentum."""
    scene = block((0.2, 0.0, 0.0), boundary="particles", solver={"wall_viscosity": 0.02})
    momentum, spin, energy = Meeting(scene, 0.5 * 512 * MASS).run(10)
    assert momentum < 1e-6
    assert spin < 2e-3
    assert energy < 1.0


def test_what_is_between_two_bodies_pushes_each_of_them():
    """A ball and a box close upon a block. Nothing can spin a smooth ball, not even what is beside the box as well."""
    scene = block((0.17, 0.0, 0.0), velocity=(0.0, 0.0, 1.0))
    ball = {"type": "sphere", "radius": 4 * D, "position": (0.04, -0.17, 0.01)}
    scene.solid.append(type(scene.solid[0]).model_validate({"shape": ball}))
    meeting = Meeting(scene, 256 * MASS)
    meeting.rigid.velocity[0, 0], meeting.rigid.velocity[1, 1] = -0.5, 0.5
    momentum, spin, energy = meeting.run(10)
    assert momentum < 1e-6
    assert spin < 2e-3
    assert energy < 1.0
    assert (meeting.sim.solver.field.body.to_numpy()[1::2] >= 0).any()  # particles beside both
    assert np.linalg.norm(meeting.rigid.velocity[1, 3:]) < 0.01


@pytest.mark.parametrize("boundary", ["distance", "particles"])
def test_a_box_floats_as_deep_as_it_is_heavy(boundary):
    """Archimedes, within a tenth; and it lies calm."""
    inner, edge, density = np.array([14, 9, 14]) * D, 6 * D, 0.6
    scene = block((0.0, inner[1] - 0.2 * edge, 0.0), boundary=boundary, velocity=(0, 0, 0), gravity=(0, -9.81, 0))
    scene.solid[0].shape.size = (edge,) * 3
    scene.solid.append(type(scene.solid[0]).model_validate(
        {"shape": {"type": "box", "size": tuple(inner * (1, 2, 1)), "position": (0, inner[1], 0)}, "container": True}
    ))  # fmt: skip
    scene.fluid[0].shape.size, scene.fluid[0].shape.position = tuple(inner), (0, inner[1] / 2, 0)
    meeting = Meeting(scene, density * 1000 * edge**3, (0, -9.81, 0), [0])
    for _ in meeting.sim.frames(60):
        pass
    x, _ = meeting.fluid()
    grid = (np.stack(np.meshgrid(*[np.arange(20)] * 3), -1).reshape(-1, 3) + 0.5) / 20 - 0.5
    height = (edge * grid @ meeting.rigid.rotation[0].T + meeting.rigid.position[0])[:, 1]
    wet = 0.0
    for _ in range(20):  # the level that fluid and what is wet of the box fill
        level = (len(x) * D**3 + wet * edge**3) / (inner[0] * inner[2])
        wet = (height < level).mean()
    assert abs(wet - density) < 0.1
    assert np.linalg.norm(meeting.rigid.velocity[0, :3]) < 0.05
    assert meeting.sim.metrics()["retries"] == 0


CODE = """
import sys
sys.path[:0] = [{here!r}, {kits!r}]
import test_iisph_bodies as t
print(t.fingerprint())
"""


def fingerprint():
    """Of a block that hits a box, with another one of samples below: more than one batch of work."""
    scene = block((0.2, 0.02, 0.01), fill=12, friction=float("inf"))
    scene.solid.append(scene.solid[0].model_copy(deep=True))
    scene.solid[1].shape.position, scene.solid[1].boundary = (0.03, -0.2, 0.01), "particles"
    meeting = Meeting(scene, 256 * MASS)
    meeting.rigid.velocity[1, 1] = 0.5
    meeting.run(3)
    state = meeting.world.get("position").tobytes() + meeting.world.get("velocity").tobytes() + meeting.rigid.state().tobytes()
    return meeting.world.count, hashlib.sha256(state).hexdigest()


def test_bits_do_not_depend_on_threads():
    """One in a process of its own, and as many as this one has."""
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(here=here, kits=os.path.dirname(here))], capture_output=True, text=True,
        env={**os.environ, "VISCOIL_THREADS": str(1 if backend.current().threads > 1 else 2)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = fingerprint()
    assert found[0] > 1728 and done.stdout.strip() == str(found)  # with samples
