"""Rigid bodies as clusters of particles that keep their shape (Müller et al. 2005; Macklin et al. 2014, section 5).

Density and contact move the members of a cluster one by one. Then the rigid motion that fits best takes their place:

    x_i ← c + R (r_i − c⁰)        R, c, c⁰ from  min Σ_i m_i |R (r_i − c⁰) − (x_i − c)|²

All members have one mass, so c is where it was: what the fluid loses, the body has, to the last rounding, and the same holds
for angular momentum to first order. Two things differ from the usual recipe:

- A member that a fixed solid pushed back counts as much as N/8 others. With equal weights a body of N members, of which n
  touch the ground, is lifted by n/N of what it needs per iteration, and sinks in the deeper the larger it is. The solid takes
  any momentum, so nothing is lost by it.
- Turning bodies do not slow down. Straight steps along chords lose the share (ωΔt)² of the spin in each step. Here bodies are
  predicted along arcs, and the step's rotation, not the chord, gives the velocities at its end. (Without torque ω is kept,
  which is right for balls and principal axes; a lopsided body tumbles with constant ω instead of constant momentum.)

The members' own share of the density constraint is switched off inside a body (density.py): it could only bend it.
"""

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, mat3, vec3
from viscoil.solids.clusters import Clusters
from viscoil.sph.neighbors import Torus, separation
from viscoil.sph.rotation import rotation_near, turned, vec4, whole_turn
from viscoil.sph.sums import team_total, workers


@qd.func
def _is_rigid(c: qd.i32, b: Clusters) -> qd.i32:
    """Whether cluster c is rigid and there."""
    return qd.select(b.first_id[c] >= 0, qd.select(b.kind[c] == 0, 1, 0), 0)


@qd.func
def turn_by(omega: vec3) -> vec4:
    """Quaternion of a turn by the angle |ω| about ω."""
    angle = omega.norm()
    half = 0.5 * angle
    s = qd.select(angle > 1e-6, qd.sin(half) / qd.max(angle, 1e-30), 0.5)
    return vec4(s * omega[0], s * omega[1], s * omega[2], qd.cos(half))


@qd.func
def turn_of(q: vec4) -> vec3:
    """The inverse of :func:`turn_by`, for up to half a turn."""
    axis = vec3(q[0], q[1], q[2]) * qd.select(q[3] < 0.0, -1.0, 1.0)
    s = axis.norm()
    return axis * qd.select(s > 1e-6, 2.0 * qd.atan2(s, qd.abs(q[3])) / qd.max(s, 1e-30), 2.0)


@qd.func
def _team_matrix(m: mat3) -> mat3:
    """Sum of m over a team, in its first thread."""
    x = team_total(vec3(m[0, 0], m[0, 1], m[0, 2]))
    y = team_total(vec3(m[1, 0], m[1, 1], m[1, 2]))
    z = team_total(vec3(m[2, 0], m[2, 1], m[2, 2]))
    return mat3(x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])


@qd.func(requires_top_level=True)
def fit_centres(p: Particles, x: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Centre and inverse inertia of every rigid body with its members at x."""
    qd.loop_config(block_dim=256)
    for worker in range(b.number[0] * qd.static(workers())):
        c = worker // qd.static(workers())
        first = vec3(0.0)
        square = mat3(0.0)
        count = 0.0
        if _is_rigid(c, b) == 1:
            origin = x[b.index[b.begin[c]]]
            count = qd.cast(b.begin[c + 1] - b.begin[c], qd.f32)
            slot = b.begin[c] + worker % qd.static(workers())
            while slot < b.begin[c + 1]:
                d = separation(x[b.index[slot]], origin, torus, periodic)
                first += d
                square += d.outer_product(d)
                slot += qd.static(workers())
        first = team_total(first)
        square = _team_matrix(square)
        if count > 0.0 and worker % qd.static(workers()) == 0:
            first /= count
            s = square - count * first.outer_product(first)
            size = qd.max(s.trace(), 1e-30)
            # A line of particles has no inertia about itself: it does not turn there either way.
            inertia = (1.0 + 1e-6) * qd.Matrix.identity(qd.f32, 3) - s / size
            b.centre[c] = x[b.index[b.begin[c]]] + first
            b.inverse[c] = inertia.inverse() / size
            b.turn[c] = vec4(0.0, 0.0, 0.0, 1.0)


@qd.func(requires_top_level=True)
def fit_twists(p: Particles, x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Velocity and spin of every rigid body from places x, whose centres are known, and velocities v: linear and angular
    momentum stay."""
    qd.loop_config(block_dim=256)
    for worker in range(b.number[0] * qd.static(workers())):
        c = worker // qd.static(workers())
        linear = vec3(0.0)
        angular = vec3(0.0)
        count = 0.0
        if _is_rigid(c, b) == 1:
            centre = b.centre[c]
            count = qd.cast(b.begin[c + 1] - b.begin[c], qd.f32)
            slot = b.begin[c] + worker % qd.static(workers())
            while slot < b.begin[c + 1]:
                i = b.index[slot]
                linear += v[i]
                angular += separation(x[i], centre, torus, periodic).cross(v[i])
                slot += qd.static(workers())
        linear = team_total(linear)
        angular = team_total(angular)
        if count > 0.0 and worker % qd.static(workers()) == 0:
            b.velocity[c] = linear / count
            b.spin[c] = b.inverse[c] @ angular


@qd.func(requires_top_level=True)
def stiffen(p: Particles, x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Replaces the velocities v of every rigid body's members by the rigid motion nearest to them; centres are known."""
    fit_twists(p, x, v, torus, b, periodic)
    for slot in range(b.number[1]):
        c = b.owner[slot]
        if _is_rigid(c, b) == 1:
            i = b.index[slot]
            v[i] = b.velocity[c] + b.spin[c].cross(separation(x[i], b.centre[c], torus, periodic))


@qd.func(requires_top_level=True)
def carry_on(
    p: Particles, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, torus: Torus, b: Clusters, x: Vectors, second: qd.i32,
    periodic: qd.template(),
):  # fmt: skip
    """x_i where the body's motion (as :func:`fit_twists` found it at the present places) and gravity take member i in Δt,
    along an arc; another copy at x[second + i]."""
    for slot in range(b.number[1]):
        c = b.owner[slot]
        if _is_rigid(c, b) == 1:
            i = b.index[slot]
            d = separation(p.position[i], b.centre[c], torus, periodic)
            fall = dt * (b.velocity[c] + dt * vec3(gx, gy, gz))
            place = p.position[i] + fall + (turned(turn_by(dt * b.spin[c]), d) - d)
            x[i] = place
            x[second + i] = place


@qd.func(requires_top_level=True)
def match_shapes(p: Particles, x: Vectors, start: qd.i32, clear: Floats, torus: Torus, b: Clusters, periodic: qd.template()):
    """x_i ← c + R (r_i − c⁰) for the members of rigid bodies, which begin at ``start`` in x."""
    qd.loop_config(block_dim=256)
    for worker in range(b.number[0] * qd.static(workers())):
        c = worker // qd.static(workers())
        weight = vec3(0.0)
        first = vec3(0.0)
        second = vec3(0.0)
        product = mat3(0.0)
        rigid = _is_rigid(c, b)
        if rigid == 1:
            origin = x[start + b.index[b.begin[c]]]
            heavy = qd.max(0.125 * qd.cast(b.begin[c + 1] - b.begin[c], qd.f32), 1.0)
            slot = b.begin[c] + worker % qd.static(workers())
            while slot < b.begin[c + 1]:
                i = b.index[slot]
                m = qd.select(b.touched[slot] == 1, heavy, 1.0)
                d = separation(x[start + i], origin, torus, periodic)
                r = p.rest[i]
                weight[0] += m
                first += m * d
                second += m * r
                product += (m * d).outer_product(r)
                slot += qd.static(workers())
        weight = team_total(weight)
        first = team_total(first)
        second = team_total(second)
        product = _team_matrix(product)
        if rigid == 1 and worker % qd.static(workers()) == 0:
            first /= weight[0]
            second /= weight[0]
            b.turn[c] = rotation_near(product - weight[0] * first.outer_product(second), whole_turn(b.turn[c]))
            b.centre[c] = x[start + b.index[b.begin[c]]] + first
            b.rest_centre[c] = second
    for slot in range(b.number[1]):
        c = b.owner[slot]
        if _is_rigid(c, b) == 1:
            i = b.index[slot]
            now = x[start + i]
            goal = b.centre[c] + turned(b.turn[c], p.rest[i] - b.rest_centre[c])
            change = separation(goal, now, torus, periodic)
            clear[i] -= change.norm()
            if qd.static(periodic):
                goal = now + change
            x[start + i] = goal


@qd.func(requires_top_level=True)
def rigid_velocities(p: Particles, x: Vectors, dt: qd.f32, torus: Torus, b: Clusters, v: Vectors, periodic: qd.template()):
    """v of members from the body's displacement and rotation between the present places and x, the places after the step."""
    qd.loop_config(block_dim=256)
    for worker in range(b.number[0] * qd.static(workers())):
        c = worker // qd.static(workers())
        first = vec3(0.0)
        second = vec3(0.0)
        product = mat3(0.0)
        count = 0.0
        if _is_rigid(c, b) == 1:
            now = b.index[b.begin[c]]
            count = qd.cast(b.begin[c + 1] - b.begin[c], qd.f32)
            slot = b.begin[c] + worker % qd.static(workers())
            while slot < b.begin[c + 1]:
                i = b.index[slot]
                d = separation(x[i], x[now], torus, periodic)
                r = separation(p.position[i], p.position[now], torus, periodic)
                first += d
                second += r
                product += d.outer_product(r)
                slot += qd.static(workers())
        first = team_total(first)
        second = team_total(second)
        product = _team_matrix(product)
        if count > 0.0 and worker % qd.static(workers()) == 0:
            now = b.index[b.begin[c]]
            first /= count
            second /= count
            q = rotation_near(product - count * first.outer_product(second), vec4(0.0, 0.0, 0.0, 1.0))
            b.spin[c] = turn_of(q) / dt
            b.velocity[c] = (x[now] - p.position[now] + (first - second)) / dt
            b.centre[c] = x[now] + first
    for slot in range(b.number[1]):
        c = b.owner[slot]
        if _is_rigid(c, b) == 1:
            i = b.index[slot]
            v[i] = b.velocity[c] + b.spin[c].cross(separation(x[i], b.centre[c], torus, periodic))
