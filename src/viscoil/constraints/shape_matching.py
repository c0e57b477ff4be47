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
from viscoil.solids.teams import add_up, chunks_for, crew, crews, end_of, hand_over, pace, whole
from viscoil.sph.neighbors import Torus, separation
from viscoil.sph.rotation import rotation_near, turned, vec4, whole_turn
from viscoil.sph.sums import workers


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
def _is_first(chunk: qd.i32, place: qd.i32, b: Clusters) -> qd.i32:
    """Whether this thread is the one of its cluster that writes down what all of them found."""
    return qd.select(b.chunk[b.chunk_cluster[chunk]] == chunk, qd.select(place == 0, 1, 0), 0)


@qd.func
def _origin(chunk: qd.i32, x: Vectors, start: qd.i32, b: Clusters) -> vec3:
    """Place of a cluster's first member: what distances are counted from, so that sums keep their digits."""
    return x[start + b.index[b.begin[b.chunk_cluster[chunk]]]]


@qd.func
def _members(chunk: qd.i32, b: Clusters) -> qd.f32:
    c = b.chunk_cluster[chunk]
    return qd.cast(b.begin[c + 1] - b.begin[c], qd.f32)


@qd.func
def _frame(count: qd.f32, first: vec3, xx: vec3, xy: vec3):
    """(centre from the origin [m], inverse inertia [1/m²]) from the sums of d, of d_x² …, and of d_x d_y, d_x d_z, d_y d_z."""
    c = first / count
    s = mat3(xx[0], xy[0], xy[1], xy[0], xx[1], xy[2], xy[1], xy[2], xx[2]) - count * c.outer_product(c)
    size = qd.max(s.trace(), 1e-30)
    # A line of particles has no inertia about itself: it does not turn there either way.
    inertia = (1.0 + 1e-6) * qd.Matrix.identity(qd.f32, 3) - s / size
    return c, inertia.inverse() / size


@qd.func
def _sum_motion(chunk: qd.i32, place: qd.i32, x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Sums for centre, inertia, velocity and spin of a rigid body with members at x that move with v."""
    first = vec3(0.0)
    squares = vec3(0.0)
    products = vec3(0.0)
    linear = vec3(0.0)
    angular = vec3(0.0)
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    origin = _origin(chunk, x, 0, b)
    while slot < end:
        i = b.index[slot]
        d = separation(x[i], origin, torus, periodic)
        u = v[i]
        first += d
        squares += d * d
        products += vec3(d[0] * d[1], d[0] * d[2], d[1] * d[2])
        linear += u
        angular += d.cross(u)
        slot += qd.static(workers())
    value = qd.Vector([
        first[0], first[1], first[2], squares[0], squares[1], squares[2], products[0], products[1], products[2],
        linear[0], linear[1], linear[2], angular[0], angular[1], angular[2],
    ])  # fmt: skip
    hand_over(chunk, place, value, 15, b)


@qd.func
def _motion(chunk: qd.i32, place: qd.i32, b: Clusters):
    """(centre from the origin, inverse inertia, velocity, spin) of the body from these sums: both momenta stay."""
    t = whole(chunk, place, 15, b)
    count = _members(chunk, b)
    centre, inverse = _frame(count, vec3(t[0], t[1], t[2]), vec3(t[3], t[4], t[5]), vec3(t[6], t[7], t[8]))
    linear = vec3(t[9], t[10], t[11])
    spin = inverse @ (vec3(t[12], t[13], t[14]) - centre.cross(linear))
    return centre, inverse, linear / count, spin


@qd.func(requires_top_level=True)
def fit_and_stiffen(x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Replaces the velocities v of every rigid body's members by the rigid motion nearest to them. Centres and inertias of
    the bodies with members at x are remembered."""
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            _sum_motion(chunk, place, x, v, torus, b, periodic)
            chunk += qd.static(crews())
    add_up(b)
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            offset, inverse, velocity, spin = _motion(chunk, place, b)
            centre = _origin(chunk, x, 0, b) + offset
            slot = b.chunk_slot[chunk] + place
            end = end_of(chunk, b)
            while slot < end:
                i = b.index[slot]
                v[i] = velocity + spin.cross(separation(x[i], centre, torus, periodic))
                slot += qd.static(workers())
            if _is_first(chunk, place, b) == 1:
                b.centre[b.chunk_cluster[chunk]] = centre
                b.inverse[b.chunk_cluster[chunk]] = inverse
            chunk += qd.static(crews())


@qd.func
def sum_twist(chunk: qd.i32, place: qd.i32, x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Sums for the velocity and spin of a rigid body whose members at x, where it was fitted, move with v."""
    linear = vec3(0.0)
    angular = vec3(0.0)
    centre = b.centre[b.chunk_cluster[chunk]]
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    while slot < end:
        i = b.index[slot]
        u = v[i]
        linear += u
        angular += separation(x[i], centre, torus, periodic).cross(u)
        slot += qd.static(workers())
    hand_over(chunk, place, qd.Vector([linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]]), 6, b)


@qd.func(requires_top_level=True)
def take_twists(x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """Velocities v of members from these sums: those of the nearest rigid motion."""
    add_up(b)
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            t = whole(chunk, place, 6, b)
            centre = b.centre[b.chunk_cluster[chunk]]
            velocity = vec3(t[0], t[1], t[2]) / _members(chunk, b)
            spin = b.inverse[b.chunk_cluster[chunk]] @ vec3(t[3], t[4], t[5])
            slot = b.chunk_slot[chunk] + place
            end = end_of(chunk, b)
            while slot < end:
                i = b.index[slot]
                v[i] = velocity + spin.cross(separation(x[i], centre, torus, periodic))
                slot += qd.static(workers())
            chunk += qd.static(crews())


@qd.func(requires_top_level=True)
def stiffen(x: Vectors, v: Vectors, torus: Torus, b: Clusters, periodic: qd.template()):
    """As :func:`fit_and_stiffen`, for other velocities at the same places x."""
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            sum_twist(chunk, place, x, v, torus, b, periodic)
            chunk += qd.static(crews())
    take_twists(x, v, torus, b, periodic)


@qd.func(requires_top_level=True)
def carry_on(
    p: Particles, v: Vectors, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, torus: Torus, b: Clusters, x: Vectors,
    falling: qd.template(), twice: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """x_i where the body's motion, as the velocities v of its members say, and gravity (``falling``) take member i in Δt, along
    an arc; ``twice``: the second half of x gets a copy. From here on shapes are matched."""
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            _sum_motion(chunk, place, p.position, v, torus, b, periodic)
            chunk += qd.static(crews())
    add_up(b)
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            offset, _inverse, velocity, spin = _motion(chunk, place, b)
            centre = _origin(chunk, p.position, 0, b) + offset
            fall = dt * velocity
            if qd.static(falling):
                fall += dt * dt * vec3(gx, gy, gz)
            turn = turn_by(dt * spin)
            slot = b.chunk_slot[chunk] + place
            end = end_of(chunk, b)
            while slot < end:
                i = b.index[slot]
                d = separation(p.position[i], centre, torus, periodic)
                reached = p.position[i] + fall + (turned(turn, d) - d)
                x[i] = reached
                if qd.static(twice):
                    x[x.shape[0] // 2 + i] = reached
                slot += qd.static(workers())
            if _is_first(chunk, place, b) == 1:
                b.turn[b.chunk_cluster[chunk]] = vec4(0.0, 0.0, 0.0, 1.0)
            chunk += qd.static(crews())


@qd.func
def sum_shape(
    chunk: qd.i32, place: qd.i32, p: Particles, x: Vectors, start: qd.i32, torus: Torus, b: Clusters, periodic: qd.template()
):
    """The sums of which :func:`take_shape` makes a rigid body; particles begin at ``start`` in x."""
    weight = 0.0
    first = vec3(0.0)
    second = vec3(0.0)
    product = mat3(0.0)
    c = b.chunk_cluster[chunk]
    heavy = qd.max(0.125 * _members(chunk, b), 1.0)
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    origin = _origin(chunk, x, start, b)
    while slot < end:
        i = b.index[slot]
        m = qd.select(b.touched[slot] == 1, heavy, 1.0)
        d = separation(x[start + i], origin, torus, periodic)
        r = p.rest[i]
        weight += m
        first += m * d
        second += m * r
        product += (m * d).outer_product(r)
        slot += qd.static(workers())
    value = qd.Vector([
        weight, first[0], first[1], first[2], second[0], second[1], second[2], product[0, 0], product[0, 1], product[0, 2],
        product[1, 0], product[1, 1], product[1, 2], product[2, 0], product[2, 1], product[2, 2],
    ])  # fmt: skip
    hand_over(chunk, place, value, 16, b)
    if _is_first(chunk, place, b) == 1:
        b.start[c] = b.turn[c]
        b.base[c] = origin


@qd.func
def take_shape(
    chunk: qd.i32, place: qd.i32, p: Particles, x: Vectors, start: qd.i32, clear: Floats, torus: Torus, b: Clusters,
    periodic: qd.template(),
):  # fmt: skip
    """x_i ← c + R (r_i − c⁰) for the members of a rigid body."""
    t = whole(chunk, place, 16, b)
    c = b.chunk_cluster[chunk]
    weight = qd.max(t[0], 1e-30)
    first = vec3(t[1], t[2], t[3]) / weight
    rest_centre = vec3(t[4], t[5], t[6]) / weight
    product = mat3(t[7], t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15])
    turn = rotation_near(product - weight * first.outer_product(rest_centre), whole_turn(b.start[c]))
    centre = b.base[c] + first
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    while slot < end:
        i = b.index[slot]
        now = x[start + i]
        goal = centre + turned(turn, p.rest[i] - rest_centre)
        change = separation(goal, now, torus, periodic)
        clear[i] -= change.norm()
        if qd.static(periodic):
            goal = now + change
        x[start + i] = goal
        slot += qd.static(workers())
    if _is_first(chunk, place, b) == 1:
        b.turn[c] = turn


@qd.func
def _sum_displacement(
    chunk: qd.i32, place: qd.i32, p: Particles, x: Vectors, torus: Torus, b: Clusters, periodic: qd.template()
):
    """Sums for the way of a rigid body from the present places to x."""
    first = vec3(0.0)
    second = vec3(0.0)
    product = mat3(0.0)
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    after = _origin(chunk, x, 0, b)
    before = _origin(chunk, p.position, 0, b)
    while slot < end:
        i = b.index[slot]
        d = separation(x[i], after, torus, periodic)
        r = separation(p.position[i], before, torus, periodic)
        first += d
        second += r
        product += d.outer_product(r)
        slot += qd.static(workers())
    value = qd.Vector([
        first[0], first[1], first[2], second[0], second[1], second[2], product[0, 0], product[0, 1], product[0, 2],
        product[1, 0], product[1, 1], product[1, 2], product[2, 0], product[2, 1], product[2, 2],
    ])  # fmt: skip
    hand_over(chunk, place, value, 15, b)


@qd.func(requires_top_level=True)
def rigid_velocities(p: Particles, x: Vectors, dt: qd.f32, torus: Torus, b: Clusters, v: Vectors, periodic: qd.template()):
    """v of members from the body's displacement and rotation between the present places and x, the places after the step."""
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            _sum_displacement(chunk, place, p, x, torus, b, periodic)
            chunk += qd.static(crews())
    add_up(b)
    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk = worker // qd.static(pace())
        place = worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            t = whole(chunk, place, 15, b)
            count = _members(chunk, b)
            first = vec3(t[0], t[1], t[2]) / count
            second = vec3(t[3], t[4], t[5]) / count
            product = mat3(t[6], t[7], t[8], t[9], t[10], t[11], t[12], t[13], t[14])
            q = rotation_near(product - count * first.outer_product(second), vec4(0.0, 0.0, 0.0, 1.0))
            spin = turn_of(q) / dt
            after = _origin(chunk, x, 0, b)
            velocity = (after - _origin(chunk, p.position, 0, b) + (first - second)) / dt
            centre = after + first
            slot = b.chunk_slot[chunk] + place
            end = end_of(chunk, b)
            while slot < end:
                i = b.index[slot]
                v[i] = velocity + spin.cross(separation(x[i], centre, torus, periodic))
                slot += qd.static(workers())
            chunk += qd.static(crews())
