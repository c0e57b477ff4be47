"""What bodies receive from fluid: sums and the 6×6 system against NumPy, one whole PVFS exchange, and who gets what when."""

import numpy as np
import pytest
import quadrants as qd

from body_kit import FreeBodies, cross, turn
from kit import make_particles
from viscoil.constraints.wet_contact import gauge_wet, wet_contact
from viscoil.particles import Floats, Particles, Vectors, allocate_array, vec3
from viscoil.scene.parts import Solid
from viscoil.solids.assembly import SolidSet
from viscoil.solids.coupling import Bodies, gauge, record, settle_bodies, solve_bodies, unit_counts
from viscoil.solids.sdf import Parts, Solids, distance

D, MASS, DT = 0.02, 0.008, 1 / 240
TAU = 1 / 30
PLACES = ((0.0, 0.0, 0.0), (0.5, 0.1, -0.2), (-0.4, 0.3, 0.1))
HEARTS = ((0.0, 0.0, 0.0), (0.01, -0.02, 0.015), (0.0, 0.03, 0.0))


@qd.kernel
def _solve(solids: Solids, bodies: Bodies):
    solve_bodies(solids, bodies)


@qd.kernel
def _settle(solids: Solids, bodies: Bodies):
    settle_bodies(solids, bodies)


@qd.kernel
def _count(
    x: Vectors, n: Vectors, change: Vectors, along: Floats, across: Floats, mobility: Floats, number: qd.i32, solids: Solids,
    bodies: Bodies,
):  # fmt: skip
    for i in range(number):
        record(i % 3, x[i], change[i], mobility[i], solids)
        gauge(i % 3, x[i], n[i], along[i], across[i], change[i], mobility[i], solids, bodies)


@qd.kernel
def _gauge_wet(
    p: Particles, x: Vectors, before: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, solids: Solids, parts: Parts,
    bodies: Bodies, stickiness: Floats,
):  # fmt: skip
    gauge_wet(p, x, before, n, dt, radius, solids, parts, bodies, stickiness, True)
    solve_bodies(solids, bodies)


@qd.kernel
def _meet(
    p: Particles, x: Vectors, before: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, solids: Solids, parts: Parts,
    bodies: Bodies, stickiness: Floats,
):  # fmt: skip
    wet_contact(p, x, before, n, dt, radius, 1, solids, parts, stickiness, True)
    settle_bodies(solids, bodies)


@qd.kernel
def _distances(x: Vectors, n: qd.i32, solids: Solids, parts: Parts, out: Floats):
    for i in range(n):
        out[i] = distance(0, solids.rotation[0].transpose() @ (x[i] - solids.position[0]), solids, parts)


def device(kind, values):
    values = np.asarray(values, np.float32)
    array = allocate_array(kind, len(values))
    array.from_numpy(values)
    return array


def three(erosion=0.0):
    """Three boxes with their centres of mass anywhere, and the rigid world they are bodies of."""
    solids = SolidSet([Solid(shape={"type": "box", "size": (0.1, 0.08, 0.12), "position": place}) for place in PLACES])
    rigid = FreeBodies([0, 1, 2], [0.5, 0.3, 2.0], [[1e-3, 2e-3, 1.5e-3]] * 3, PLACES, hearts=HEARTS)
    rng = np.random.default_rng(3)
    rigid.rotation = np.stack([turn(w) for w in rng.normal(size=(3, 3))])
    rigid.velocity = rng.normal(size=(3, 6))
    solids.couple(rigid, D, MASS, erosion)
    solids.place(0.0, DT)
    return solids, rigid


def arms(x, centre):
    """J [3, 6] of points at ``x`` about ``centre``, lengths in spacings."""
    return np.concatenate([np.eye(3), -cross((x - centre) / D)], 1)


# --- the 6×6 system ---------------------------------------------------------------------------------------------------
def symmetric(rng, rank=6, scale=1.0):
    a = rng.normal(size=(6, rank))
    return scale * a @ a.T


@pytest.mark.parametrize("push", [0.0, 1.0])
def test_the_twist_solves_the_system(push):
    """W of a free body, of a hinge (rank 1) and of one that cannot move at all."""
    solids, _ = three()
    rng = np.random.default_rng(0)
    inverse = np.stack([symmetric(rng), symmetric(rng, 1), np.zeros((6, 6))]) * 0.1
    stiffness = np.stack([symmetric(rng, 6, 5.0), symmetric(rng, 2, 50.0), symmetric(rng, 6)])
    free, twist, pushed, wanted = 0.1 * rng.normal(size=(4, 3, 6))
    bodies = solids.bodies_device
    bodies.inverse.from_numpy(inverse.astype(np.float32).ravel())
    bodies.free.from_numpy(free.astype(np.float32).ravel())
    bodies.twist.from_numpy(twist.astype(np.float32).ravel())
    rows = np.zeros((3, 42))
    rows[:, :36] = np.triu(stiffness).reshape(3, 36) * 2.0**20
    rows[:, 36:] = wanted * 2.0**30
    bodies.system.from_numpy(np.round(rows).astype(np.int64).ravel())
    solids.device.push.from_numpy(np.round(push * pushed * 2.0**30).astype(np.int64).ravel())
    _solve(solids.device, bodies)
    expected = [
        u + np.linalg.solve(np.eye(6) + w @ s, u0 - u - w @ (push * p + q))
        for u, u0, w, s, p, q in zip(twist, free, inverse, stiffness, pushed, wanted, strict=True)
    ]
    found = bodies.twist.to_numpy().reshape(3, 6)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(found[2], free[2], atol=1e-6), "whatever pushes: it goes where it was going"
    hinge = np.linalg.svd(inverse[1])[0][:, 1:]
    assert np.abs(hinge.T @ (found[1] - free[1])).max() < 1e-5, "a hinge only turns about its axis"
    assert not bodies.system.to_numpy().any(), "empty for the next sweep"
    _settle(solids.device, bodies)
    truth = free - push * np.einsum("bij,bj->bi", inverse, pushed)
    assert np.allclose(bodies.twist.to_numpy().reshape(3, 6), truth, atol=2e-6)


@pytest.mark.parametrize("size", [1e-4, 0.019, 0.021, 1.5])
def test_poses_follow_twists(size):
    """R = exp([ω Δt]×) R₀ about the centre of mass, on both sides of the formula for small angles."""
    solids, rigid = three()
    bodies = solids.bodies_device
    rng = np.random.default_rng(1)
    twist = rng.normal(size=(3, 6))
    twist[:, 3:] *= size / np.linalg.norm(twist[:, 3:], axis=1, keepdims=True)
    bodies.inverse.fill(0)
    bodies.free.from_numpy(twist.astype(np.float32).ravel())
    _solve(solids.device, bodies)
    for b in range(3):
        rotation = turn(twist[b, 3:]) @ rigid.rotation[b]
        centre = rigid.centres()[b] + D * twist[b, :3]
        assert np.allclose(solids.device.rotation.to_numpy()[b], rotation, atol=1e-6)
        assert np.allclose(solids.device.position.to_numpy()[b], centre - rotation @ rigid.hearts[b], atol=1e-6)


def test_the_world_predicts_in_our_units():
    """Twists and W arrive scaled by spacing, step and the mass of a particle, and come back as SI impulses."""
    solids, rigid = three()
    bodies = solids.bodies_device
    twist = bodies.twist.to_numpy().reshape(3, 6)
    assert np.allclose(twist[:, :3], rigid.velocity[:, :3] * DT / D) and np.allclose(twist[:, 3:], rigid.velocity[:, 3:] * DT)
    inverse = bodies.inverse.to_numpy().reshape(3, 6, 6)
    assert np.allclose(inverse[:, 0, 0], MASS / rigid.masses)
    assert np.allclose(inverse[:, 3:, 3:], MASS * D * D * rigid.inverse()[:, 3:, 3:], rtol=1e-5)
    before, push = rigid.velocity.copy(), np.random.default_rng(5).normal(size=(3, 6))
    solids.device.push.from_numpy(np.round(push * 2.0**30).astype(np.int64).ravel())
    solids.commit(0.0, DT)
    impulse = -MASS * D / DT * push * np.array([1, 1, 1, D, D, D])
    assert np.allclose(solids.bodies.impulse, impulse, rtol=1e-7)
    assert np.allclose(rigid.velocity[:, :3] - before[:, :3], impulse[:, :3] / rigid.masses[:, None])


# --- sums over particles ----------------------------------------------------------------------------------------------
def test_sums_over_particles():
    """P, Q and S of 500 particles; one without mobility is not counted in P."""
    solids, rigid = three()
    rng = np.random.default_rng(2)
    count = 500
    owner = np.arange(count) % 3
    x = np.array(PLACES)[owner] + 0.1 * rng.normal(size=(count, 3))
    n = rng.normal(size=(count, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    change = 0.002 * rng.normal(size=(count, 3))
    along, across, mobility = rng.uniform(0, 1, (3, count))
    mobility += 0.5
    arrays = [device(vec3, a) for a in (x, n, change)]
    numbers = [device(qd.f32, a) for a in (along, across, mobility)]
    _count(*arrays, *numbers, count, solids.device, solids.bodies_device)
    rotation, position = solids.device.rotation.to_numpy(), solids.device.position.to_numpy()
    centre = position + np.einsum("bij,bj->bi", rotation, rigid.hearts)
    pushed, stiffness = np.zeros((3, 6)), np.zeros((3, 6, 6))
    for i in range(count):
        j = arms(x[i], centre[owner[i]])
        pushed[owner[i]] += j.T @ change[i] / D / mobility[i]
        normal = np.outer(n[i], n[i])
        stiffness[owner[i]] += j.T @ (along[i] * normal + across[i] * (np.eye(3) - normal)) @ j / mobility[i]
    found = unit_counts(solids.device.push.to_numpy())
    system = solids.bodies_device.system.to_numpy().reshape(3, 42)
    assert np.allclose(found, pushed, rtol=1e-4, atol=1e-4 * np.abs(pushed).max())
    assert np.array_equal(system[:, 36:], solids.device.push.to_numpy().reshape(3, 6)), "the same numbers twice"
    upper = system[:, :36].reshape(3, 6, 6) / 2.0**20
    assert np.allclose(upper, np.triu(stiffness), atol=1e-5 * np.abs(stiffness).max())
    nobody = device(qd.f32, np.zeros(count))
    solids.device.push.fill(0)
    _count(*arrays, *numbers[:2], nobody, count, solids.device, solids.bodies_device)
    assert not solids.device.push.to_numpy().any()


def test_erosion_makes_bodies_thinner():
    """For the fluid only, and only those that it moves."""
    points = device(vec3, [[0.06, 0, 0], [0.0, 0.05, 0.0], [0.01, 0.0, 0.0]])
    found = []
    for erosion in (0.0, 0.004):
        solids, rigid = three(erosion)
        rigid.rotation[:] = np.eye(3)
        rigid.velocity[:] = 0
        solids.place(0.0, DT)
        out = allocate_array(qd.f32, 3)
        _distances(points, 3, solids.device, solids.parts, out)
        found.append(out.to_numpy())
    assert np.allclose(found[0], [0.01, 0.01, -0.04], atol=1e-7) and np.allclose(found[1], found[0] + 0.004, atol=1e-7)


# --- Clavet's exchange, implicitly ------------------------------------------------------------------------------------
RADIUS, FRICTION, STICK, PULL = D / 2, 0.4, 0.016, 3000.0
SIZE = np.array([0.1, 0.08, 0.12])


def outline(point):
    """(distance, normal) of the box about the origin."""
    q = np.abs(point) - SIZE / 2
    if (q > 0).any():
        out = np.maximum(q, 0)
        return np.linalg.norm(out), np.sign(point) * out / np.linalg.norm(out)
    k = int(np.argmax(q))
    return q[k], np.sign(point) * np.eye(3)[k]


def by_hand(x, v, mass, u0, inertia):
    """u of section 6.3 after four sweeps, and the impulses per mass of the last; SI.

    The body starts at the origin, unturned.

    (M₆ + Σ m Jᵀ K J) u = M₆ u₀ + Σ m Jᵀ K (v − v_body + J u), and the slope of a pull for K where the body holds a particle.
    """
    m6 = np.diag([mass] * 3 + list(inertia))
    grip = 1 - (1 - FRICTION) ** (DT / TAU)
    u = u0.copy()
    for _ in range(4):
        rotation, centre = turn(DT * u[3:]), DT * u[:3]
        matrix, right, pushes = m6.copy(), m6 @ u0, []
        for place, speed in zip(x, v, strict=True):
            arm = np.concatenate([np.eye(3), -cross(place - centre)], 1)
            local = rotation.T @ (place - centre)
            gap, n = outline(local)
            relative = rotation @ (local - (place - DT * speed)) / DT
            gap, n = gap - RADIUS, rotation @ n
            part, push = np.zeros((3, 3)), np.zeros(3)
            if gap < 0:
                part = (n @ relative < 0) * np.outer(n, n) + grip * (np.eye(3) - np.outer(n, n))
                push = -part @ relative
            elif gap < STICK:
                push = -DT * PULL * gap * (1 - gap / STICK) * n
                part = DT * DT * PULL * max(1 - 2 * gap / STICK, 0.0) * np.outer(n, n)
            matrix += MASS * arm.T @ part @ arm
            right += MASS * arm.T @ (part @ arm @ u - push)
            pushes.append((part, arm, push, u))
        u = np.linalg.solve(matrix, right)
    return u, np.array([push + part @ arm @ (u - before) for part, arm, push, before in pushes])


def test_one_exchange_by_hand():
    """A few particles and a box: touching, sliding, leaving, held, too far. Then what both got sums up to nothing."""
    side = SIZE / 2 + RADIUS
    x = np.array([
        [side[0] - 1e-3, 0.01, -0.02], [side[0] - 2e-3, -0.02, 0.03], [side[0] - 1e-3, 0.02, 0.02],
        [0.02, side[1] - 1e-3, 0.03],
        [-0.03, -side[1] + 5e-4, 0.01], [0.01, 0.01, side[2] - 1e-3], [-side[0] - 0.3 * STICK, 0.02, 0.01],
        [-0.02, side[1] + 0.2 * STICK, -0.02], [side[0] + 2 * STICK, 0.0, 0.0],
    ])  # fmt: skip
    v = np.array([
        [-1.0, 0.3, 0.1], [-0.6, 0.0, -0.4], [0.5, 0.2, 0.0], [0.2, -0.8, 0.1], [0.1, 0.5, 0.0], [-0.3, 0.2, -0.7],
        [0.1, 0.0, 0.2],
        [0.0, 0.05, 0.1], [-0.5, 0.0, 0.0],
    ])  # fmt: skip
    mass, inertia, u0 = 6 * MASS, np.array([3e-5, 5e-5, 4e-5]), np.array([0.1, -0.05, 0.02, 0.4, -0.3, 0.2])
    shape = {"type": "box", "size": tuple(SIZE)}
    solids = SolidSet([Solid(shape=shape, friction=FRICTION, stick_distance=STICK, stick_stiffness=PULL)])
    rigid = FreeBodies([0], [mass], [inertia], [[0, 0, 0]])
    rigid.velocity[0] = u0
    solids.couple(rigid, D, MASS, 0.0)
    solids.place(0.0, DT)
    p, n = make_particles(x, inverse_mass=np.ones(len(x))), len(x)
    places, before, clings = device(vec3, x), device(vec3, x - DT * v), device(qd.f32, [1.0])
    rest = (n, DT, RADIUS, solids.device, solids.parts, solids.bodies_device, clings)
    for _ in range(4):
        _gauge_wet(p, places, before, *rest)
    guess = solids.bodies_device.twist.to_numpy().astype(float) * np.array([D / DT] * 3 + [1 / DT] * 3)
    u, pushes = by_hand(x, v, mass, u0, inertia)
    moved = np.abs(u - u0).max()
    assert np.allclose(guess, u, atol=1e-3 * moved)
    _meet(p, places, before, *rest)
    after = (places.to_numpy().astype(float) - before.to_numpy().astype(float)) / DT
    assert np.allclose(after - v, pushes, atol=0.02 * np.abs(pushes).max())
    assert np.allclose(after[2] - v[2], pushes[2], atol=1e-3) and abs(after[2, 0] - v[2, 0]) < 1e-3, "what leaves is let go"
    assert np.allclose(after[8], v[8], atol=1e-5), "nobody reaches that far"
    twist = solids.bodies_device.twist.to_numpy().astype(float) * np.array([D / DT] * 3 + [1 / DT] * 3)
    assert np.allclose(twist, guess, atol=0.01 * moved), "the guess was good"
    solids.commit(0.0, DT)
    fluid = MASS * (after - v).sum(0)
    assert np.allclose(fluid, -mass * (rigid.velocity[0, :3] - u0[:3]), atol=1e-6 * mass)
    assert np.allclose(rigid.velocity[0], twist, atol=1e-4), "the host makes of the impulse what the device did"
