"""Bodies that fluid can move, on the device: what particles give them, and where that takes them within a step.

Everything is counted in spacings d, steps Δt and the mass M₁ = ρ₁d³ of a particle of the first material. A body has a twist
u = (V Δt/d, ω Δt), an inverse inertia W (6×6, what an impulse at its centre of mass does to the twist, joints included), and
starts from the twist u₀ that it would have without fluid. Contact of particle i with lever r, normal n, mobility w_i gives

    Q = Σ Jᵀ q_i      impulses q_i = Δx_i/(w_i d) that particles would get from the body moving as it does now
    S = Σ Jᵀ k_i J    how those grow when it moves: k_i = (k_n nnᵀ + k_t (1 − nnᵀ))/w_i,   J = [1, −[r]×]
    P = Σ Jᵀ p_i      impulses that particles did get, so far in this step

and the body's new twist is that for which it received what it will give (implicit form of Clavet's stage B, R16):

    u ← u + (1 + W S)⁻¹ (u₀ − u − W (P + Q))

Particles are then put out of the body where it is now, which is recorded in P, and u = u₀ − W P is the truth. However well the
first guess was, momentum is exact: one number is added to both sides.

Sums are integers: 2³⁰ (impulses) or 2²⁰ (S) counts to the unit. They do not depend on the order of their terms, and need no
room per particle.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.particles import Floats, Ints, Longs, Vectors, allocate_array, mat3, vec3
from viscoil.solids.sdf import Solids

LETTER = 69  # numbers per body sent each step: centre, W, u₀, rotation and position before, and after
SYSTEM = 42  # numbers per body: 36 of S (its upper triangle), 6 of Q
WORK = 48  # 36 of a matrix, 6 of a right side, 6 more


@dataclass(frozen=True)
class Bodies:
    """One row per body, in the units above."""

    number: Ints  # [1] how many there are
    solid: Ints  # [body] the solid that it is
    centre: Vectors  # [body] centre of mass at the start of the step [m]
    inverse: Floats  # [36 body] W
    free: Floats  # [6 body] u₀
    twist: Floats  # [6 body] u
    system: Longs  # [42 body] S, Q
    work: Floats  # [48 body]
    moved: Ints  # [1] bits of the farthest that a surface moved in the last change of twists [m]


@qd.func
def lever(solid: qd.i32, x: vec3, solids: Solids) -> vec3:
    """From a body's centre of mass, as it is now, to x [spacings]."""
    return solids.per_spacing[0] * (x - solids.rotation[solid] @ solids.heart[solid] - solids.position[solid])


@qd.func
def column(k: qd.i32, r: vec3) -> vec3:
    """J e_k: how the point at lever r moves with the k-th component of a twist."""
    axis = vec3(
        qd.select(k % 3 == 0, 1.0, 0.0), qd.select(k % 3 == 1, 1.0, 0.0), qd.select(k % 3 == 2, 1.0, 0.0)
    )
    return qd.select(k < 3, axis, axis.cross(r))


@qd.func
def add_push(body: qd.i32, r: vec3, q: vec3, solids: Solids):
    """A particle at lever r got the impulse q from a body: part of P."""
    for k in range(6):
        term = qd.cast(column(k, r).dot(q), qd.f64) * 1073741824.0  # 2³⁰
        qd.atomic_add(solids.push[6 * body + k], qd.cast(qd.round(term), qd.i64))


@qd.func
def record(solid: qd.i32, x: vec3, change: vec3, mobility: qd.f32, solids: Solids):
    """A particle at x was moved by ``change`` [m] by a solid: a body receives the opposite. Mobility 0: not counted."""
    body = solids.body[solid]
    if body >= 0 and mobility > 0.0:
        q = (solids.per_spacing[0] / mobility) * change
        if q.dot(q) > 0.0:
            add_push(body, lever(solid, x, solids), q, solids)


@qd.func
def add_contact(body: qd.i32, r: vec3, n: vec3, along: qd.f32, across: qd.f32, q: vec3, bodies: Bodies):
    """One contact at lever r of S and Q: it would get the impulse q; k = along nnᵀ + across (1 − nnᵀ)."""
    for k in range(6):
        arm = column(k, r)
        response = across * arm + (along - across) * n.dot(arm) * n
        for j in range(k, 6):
            term = qd.cast(response.dot(column(j, r)), qd.f64) * 1048576.0  # 2²⁰
            qd.atomic_add(bodies.system[42 * body + 6 * k + j], qd.cast(qd.round(term), qd.i64))
        force = qd.cast(arm.dot(q), qd.f64) * 1073741824.0
        qd.atomic_add(bodies.system[42 * body + 36 + k], qd.cast(qd.round(force), qd.i64))


@qd.func
def gauge(
    body: qd.i32, x: vec3, n: vec3, along: qd.f32, across: qd.f32, change: vec3, mobility: qd.f32, solids: Solids,
    bodies: Bodies,
):  # fmt: skip
    """One contact of S and Q: x would be moved by ``change`` [m]; k_n = ``along``, k_t = ``across`` before mobility."""
    r = lever(bodies.solid[body], x, solids)
    q = (solids.per_spacing[0] / mobility) * change
    add_contact(body, r, n, along / mobility, across / mobility, q, bodies)


@qd.func
def lever_at_start(body: qd.i32, x: vec3, solids: Solids, bodies: Bodies) -> vec3:
    """From a body's centre of mass at the start of the step to x [spacings]."""
    return solids.per_spacing[0] * (x - bodies.centre[body])


@qd.func
def way_of(body: qd.i32, r: vec3, bodies: Bodies) -> vec3:
    """How far a body takes its point at lever r in this step, to first order in the turn [spacings]."""
    way = vec3(bodies.twist[6 * body], bodies.twist[6 * body + 1], bodies.twist[6 * body + 2])
    turn = vec3(bodies.twist[6 * body + 3], bodies.twist[6 * body + 4], bodies.twist[6 * body + 5])
    return way + turn.cross(r)


@qd.func
def turn_by(w: vec3) -> mat3:
    """Rotation by the vector w [rad]: Rodrigues."""
    angle2 = w.dot(w)
    angle = qd.sqrt(angle2)
    a = 1.0 - angle2 / 6.0
    b = 0.5 - angle2 / 24.0
    if angle > 0.02:
        a = qd.sin(angle) / angle
        b = (1.0 - qd.cos(angle)) / angle2
    cross = qd.Matrix([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    return qd.Matrix.identity(qd.f32, 3) + a * cross + b * (cross @ cross)


@qd.func
def _pose(body: qd.i32, solids: Solids, bodies: Bodies):
    """Where the twist takes a body in this step."""
    solid = bodies.solid[body]
    way = vec3(bodies.twist[6 * body], bodies.twist[6 * body + 1], bodies.twist[6 * body + 2])
    turn = vec3(bodies.twist[6 * body + 3], bodies.twist[6 * body + 4], bodies.twist[6 * body + 5])
    rotation = turn_by(turn) @ solids.rotation0[solid]
    solids.rotation[solid] = rotation
    solids.position[solid] = bodies.centre[body] + way / solids.per_spacing[0] - rotation @ solids.heart[solid]


@qd.func
def _follow(body: qd.i32, first: qd.i32, solids: Solids, bodies: Bodies):
    """Adds work[first:first + 6] to the twist; how far that moves the surface counts."""
    base = 48 * body + first
    way = vec3(bodies.work[base], bodies.work[base + 1], bodies.work[base + 2])
    turn = vec3(bodies.work[base + 3], bodies.work[base + 4], bodies.work[base + 5])
    for k in range(6):
        bodies.twist[6 * body + k] = bodies.twist[6 * body + k] + bodies.work[base + k]
    _pose(body, solids, bodies)
    solid = bodies.solid[body]
    reach = solids.bound[solid] + solids.heart[solid].norm()
    far = way.norm() / solids.per_spacing[0] + turn.norm() * reach
    qd.atomic_max(bodies.moved[0], qd.bit_cast(far, qd.i32))


@qd.func
def _received(body: qd.i32, k: qd.i32, solids: Solids, bodies: Bodies) -> qd.f32:
    """P + Q of one component."""
    counts = qd.cast(solids.push[6 * body + k] + bodies.system[42 * body + 36 + k], qd.f64)
    return qd.cast(counts / 1073741824.0, qd.f32)


@qd.func
def eliminate(body: qd.i32, bodies: Bodies):
    """Solves the 6×6 system in work[0:36] for work[36:42], in place, by Gauss with pivots."""
    base = 48 * body
    for k in range(6):
        pivot = k
        for i in range(k + 1, 6):
            if qd.abs(bodies.work[base + 6 * i + k]) > qd.abs(bodies.work[base + 6 * pivot + k]):
                pivot = i
        if pivot != k:
            for j in range(6):
                kept = bodies.work[base + 6 * k + j]
                bodies.work[base + 6 * k + j] = bodies.work[base + 6 * pivot + j]
                bodies.work[base + 6 * pivot + j] = kept
            kept = bodies.work[base + 36 + k]
            bodies.work[base + 36 + k] = bodies.work[base + 36 + pivot]
            bodies.work[base + 36 + pivot] = kept
        for i in range(k + 1, 6):
            factor = bodies.work[base + 6 * i + k] / bodies.work[base + 6 * k + k]
            for j in range(k, 6):
                bodies.work[base + 6 * i + j] = bodies.work[base + 6 * i + j] - factor * bodies.work[base + 6 * k + j]
            bodies.work[base + 36 + i] = bodies.work[base + 36 + i] - factor * bodies.work[base + 36 + k]
    for back in range(6):
        k = 5 - back
        value = bodies.work[base + 36 + k]
        for j in range(k + 1, 6):
            value -= bodies.work[base + 6 * k + j] * bodies.work[base + 36 + j]
        bodies.work[base + 36 + k] = value / bodies.work[base + 6 * k + k]


@qd.func(requires_top_level=True)
def solve_bodies(solids: Solids, bodies: Bodies):
    """u ← u + (1 + W S)⁻¹ (u₀ − u − W (P + Q)), and poses; S and Q are emptied."""
    for _ in range(1):
        bodies.moved[0] = 0
    for b in range(bodies.number[0]):
        base = 48 * b
        for i in range(6):
            value = bodies.free[6 * b + i] - bodies.twist[6 * b + i]
            for k in range(6):
                value -= bodies.inverse[36 * b + 6 * i + k] * _received(b, k, solids, bodies)
            bodies.work[base + 36 + i] = value
            for j in range(6):
                entry = qd.select(i == j, 1.0, 0.0)
                for k in range(6):
                    stiff = qd.cast(bodies.system[42 * b + 6 * qd.min(k, j) + qd.max(k, j)], qd.f64) / 1048576.0
                    entry += bodies.inverse[36 * b + 6 * i + k] * qd.cast(stiff, qd.f32)
                bodies.work[base + 6 * i + j] = entry
        eliminate(b, bodies)
        _follow(b, 36, solids, bodies)
        for k in range(42):
            bodies.system[42 * b + k] = qd.cast(0, qd.i64)


@qd.func(requires_top_level=True)
def settle_bodies(solids: Solids, bodies: Bodies):
    """u ← u₀ − W P: what was received, no more and no less."""
    for _ in range(1):
        bodies.moved[0] = 0
    for b in range(bodies.number[0]):
        for i in range(6):
            value = bodies.free[6 * b + i] - bodies.twist[6 * b + i]
            for k in range(6):
                value -= bodies.inverse[36 * b + 6 * i + k] * _received(b, k, solids, bodies)
            bodies.work[48 * b + 42 + i] = value
        _follow(b, 42, solids, bodies)


@qd.func(requires_top_level=True)
def approach(clear: Floats, n: qd.i32, bodies: Bodies):
    """Lower bounds of the distance to solids, after bodies moved."""
    for i in range(n):
        clear[i] = clear[i] - qd.bit_cast(bodies.moved[0], qd.f32)


@qd.func(requires_top_level=True)
def accept_impulses(solids: Solids, bodies: Bodies):
    """P ← P + Q: bodies receive what particles would get; Q and S are emptied. For the explicit form as published."""
    for b in range(bodies.number[0]):
        for k in range(6):
            solids.push[6 * b + k] = solids.push[6 * b + k] + bodies.system[42 * b + 36 + k]
        for k in range(42):
            bodies.system[42 * b + k] = qd.cast(0, qd.i64)


@qd.func
def _vector(mail: Floats, first: qd.i32) -> vec3:
    return vec3(mail[first], mail[first + 1], mail[first + 2])


@qd.func
def _matrix(mail: Floats, first: qd.i32) -> mat3:
    return qd.Matrix.rows([_vector(mail, first), _vector(mail, first + 3), _vector(mail, first + 6)])


@qd.kernel(fastcache=True)
def deliver(mail: Floats, solids: Solids, bodies: Bodies):
    """What the host sent: bodies start their step."""
    for b in range(bodies.number[0]):
        base = 69 * b
        solid = bodies.solid[b]
        bodies.centre[b] = _vector(mail, base)
        for k in range(36):
            bodies.inverse[36 * b + k] = mail[base + 3 + k]
        for k in range(6):
            bodies.free[6 * b + k] = mail[base + 39 + k]
            bodies.twist[6 * b + k] = mail[base + 39 + k]
            solids.push[6 * b + k] = qd.cast(0, qd.i64)
        solids.rotation0[solid] = _matrix(mail, base + 45)
        solids.position0[solid] = _vector(mail, base + 54)
        solids.rotation[solid] = _matrix(mail, base + 57)
        solids.position[solid] = _vector(mail, base + 66)


def unit_counts(push: np.ndarray) -> np.ndarray:
    """P (b, 6) in the units above from what the device counted."""
    return push.reshape(-1, 6).astype(np.float64) / 2.0**30


def _rows(number: int) -> Bodies:
    return Bodies(
        number=allocate_array(qd.i32, 1), solid=allocate_array(qd.i32, number), centre=allocate_array(vec3, number),
        inverse=allocate_array(qd.f32, 36 * number), free=allocate_array(qd.f32, 6 * number),
        twist=allocate_array(qd.f32, 6 * number), system=allocate_array(qd.i64, SYSTEM * number),
        work=allocate_array(qd.f32, WORK * number), moved=allocate_array(qd.i32, 1),
    )  # fmt: skip


def nobody() -> Bodies:
    """Rows for kernels of a world without bodies."""
    return _rows(0)


class BodySet:
    """The bodies of a world: a rigid world on the host, its rows on the device, and the exchange between them once a step."""

    def __init__(self, rigid: Any, solids: Any, spacing: float, mass: float):
        """rigid: see solids/rigid.py; solids: the SolidSet they are part of; mass: M₁ [kg]."""
        self.rigid, self._spacing, self._mass = rigid, spacing, mass
        number = len(rigid.solid)
        self.index = {solid: body for body, solid in enumerate(rigid.solid)}
        self.device = _rows(number)
        transfer.write(self.device.number, np.array([number], np.int32))
        transfer.write(self.device.solid, np.array(rigid.solid, np.int32))
        self._solids = solids
        self._mail = allocate_array(qd.f32, LETTER * number)
        self.impulse = np.zeros((number, 6))  # of the fluid on the bodies in the last step, SI
        self._kept: Any = None

    def __len__(self) -> int:
        return len(self.rigid.solid)

    def scales(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """(units of a twist, units of an impulse) in SI."""
        d, ones = self._spacing, np.ones(3)
        return np.concatenate([d * ones, ones]) / dt, self._mass * d * np.concatenate([ones, d * ones]) / dt

    def predict(self, time: float, dt: float) -> None:
        """Sends the bodies on their way without fluid: one small message to the device."""
        before = self.rigid.poses()
        found = self.rigid.predict(time, dt)
        twist, impulse = self.scales(dt)
        number = len(self)
        letter = np.concatenate(
            [
                found.centre0, (found.inverse / twist[:, None] * impulse).reshape(number, 36), found.twist / twist,
                before[0].reshape(number, 9), before[1], found.rotation.reshape(number, 9), found.position,
            ], axis=1,
        )  # fmt: skip
        transfer.write(self._mail, np.ascontiguousarray(letter, np.float32).ravel())
        deliver(self._mail, self._solids.device, self.device)

    def commit(self, time: float, dt: float) -> None:
        """Takes what the fluid gave and lets the bodies move by it."""
        counted = transfer.read(self._solids.device.push, 6 * len(self))
        self.impulse = -unit_counts(counted) * self.scales(dt)[1]
        self.rigid.commit(self.impulse, time, dt)

    def places(self) -> dict[str, float]:
        """Centres of mass [m] by name and axis."""
        rotation, position = self.rigid.poses()
        centre = position + np.einsum("bij,bj->bi", rotation, np.asarray(self.rigid.hearts, float))
        names = [self._solids.solids[index].name.replace(" ", "_") or str(index) for index in self.rigid.solid]
        return {f"body_{name}_{axis}": float(x) for name, row in zip(names, centre, strict=True)
                for axis, x in zip("xyz", row, strict=True)}  # fmt: skip

    def remember(self) -> None:
        """Keeps the present state, to try again from here."""
        self._kept = self.rigid.state()

    def go_back(self) -> None:
        """As it was at :meth:`remember`."""
        self.rigid.restore(self._kept)
