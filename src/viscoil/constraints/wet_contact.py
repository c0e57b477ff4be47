"""Collisions and stickiness of fluid that wets (Clavet, Beaudoin and Poulin 2005, section 6, eqs. 9 to 12).

A particle closer than R to a solid has v̄ = (x − x_prev)/Δt − v_wall, the velocity relative to the wall (9), (10), and gets

    J = −(min(v̄·n, 0) n + μ v̄_t)                                                                    (11, signs as meant)

What approaches is stopped, what leaves is let go, and sliding loses the share μ in 1/30 s: 1 − (1 − μ)^(Δt/τ) in a step,
so that the result does not depend on the step. What is closer still is put out at d = R with x_prev moved alongside: being
put out is no velocity. Farther out, at 0 < d_i = d − R < d_stick, a sticky solid pulls:

    J_stick = −Δt k_stick d_i (1 − d_i/d_stick) n                                                                   (12)

without friction, so that drops run along what they hang from. The pull never leads beyond d = R, however stiff.

Everything is computed in the solid's frame, where a moving wall stands still: from the old place in the old pose to the new
place in the new, as in contact.py. So is the tracing of particles fast enough to have crossed a wall; they are set down
where they touched and slide on from there with the velocity that (11) leaves them.

Bodies that fluid can move receive all J with the opposite sign. As published (Algorithm 6) that is stage A: J of all particles
for the body moving as it would without them, as if it were infinitely heavy; then new velocities, and stage C: the same again
for particles, which get other impulses than the body got. Implicitly the body's velocity is found first for which both are the
same (:func:`gauge_wet`, coupling.py), and stage C is what the body receives.
"""

import quadrants as qd

from viscoil.constraints.contact import first_touch, local_path, near
from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.coupling import Bodies, gauge, record
from viscoil.solids.sdf import Parts, Solids, distance, normal


@qd.func
def _meet(
    x: vec3, before: vec3, start: vec3, dt: qd.f32, contact_radius: qd.f32, stickiness: qd.f32, attempt: qd.i32,
    solid: qd.i32, mobility: qd.f32, solids: Solids, parts: Parts,
):  # fmt: skip
    """A particle and one solid: (new x, new x_prev, 1 if it moved, 1 if it was fast enough to be traced).

    ``before`` is what the velocity is counted from, ``start`` where the particle was. ``attempt`` 0 is the step proper; later
    ones only see to it that one solid did not push it into another, nor a fast one slid on through a wall: 3 ends it where
    it touches.
    """
    radius = contact_radius * solids.standoff[solid]
    reach = solids.stick_distance[solid]
    pull = dt * dt * solids.stick_stiffness[solid] * stickiness
    grip = 1.0 - (1.0 - qd.min(solids.friction[solid], 1.0)) ** (dt * 30.0)  # R13, τ = 1/30 s
    if attempt > 0:
        pull = 0.0
        grip = 0.0
    if pull <= 0.0:
        reach = 0.0
    a, b = local_path(x, start, solid, solids)
    place = x
    origin = before
    moved = 0
    fast = 0
    if near(a, b, solids.bound[solid] + radius + reach) == 1:
        back, end = local_path(x, before, solid, solids)
        travel = end - back  # v̄ Δt
        left = -1.0  # share of the path beyond the touch; negative: not traced to one
        phi = distance(solid, b, solids, parts)
        traced, share = first_touch(solid, a, b, phi, radius, solids, parts)
        fast = traced
        if share < 1.0:
            left = 1.0 - share
            b = a + share * (b - a)
        shift = b - end  # what the particle moves without having a velocity from it
        last = vec3(0.0)
        for face in range(6):  # in an inner corner the distance knows one face at a time
            if face == moved:
                if face > 0 or left >= 0.0:
                    phi = distance(solid, b, solids, parts)
                gap = phi - radius
                if gap < qd.select(face == 0, reach, -1e-5 * radius) or left >= 0.0:
                    n = normal(solid, b, 0.05 * radius, solids, parts)
                    impulse = vec3(0.0)
                    if gap < 0.0 or left >= 0.0:
                        speed = n.dot(travel)
                        impulse = -qd.min(speed, 0.0) * n
                        if face < 3 and n.dot(last) < 0.9:  # a face rubs once, however often rounding finds it again
                            impulse -= grip * (travel - speed * n)
                        if left >= 0.0 and attempt == 3:
                            impulse = -travel
                        travel += impulse
                        onward = impulse
                        if left >= 0.0:
                            onward = left * travel
                            left = -1.0
                        put_out = qd.max(-gap - n.dot(onward), 0.0) * n
                        b += onward + put_out
                        shift += onward - impulse + put_out
                        last = n
                        moved += 1
                    elif gap > 0.0:
                        impulse = -qd.min(pull * (1.0 - gap / reach), 1.0) * gap * n
                        b += impulse
                        moved = 7  # no face to meet
        if moved > 0:
            turn = solids.rotation[solid]
            place += turn @ (b - end)
            origin += turn @ shift
            record(solid, place, turn @ (b - end - shift), mobility, solids)
    return place, origin, qd.min(moved, 1), fast


@qd.func(requires_top_level=True)
def wet_contact(
    p: Particles, x: Vectors, before: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts, stickiness: Floats, counted: qd.template(),
):  # fmt: skip
    """Collisions and stickiness of the predicted positions ``x``, with ``before`` as x_prev: velocities are their difference.

    ``stickiness`` is by material, a factor on the pull. Particles that do not move by themselves are left alone. ``counted``:
    bodies receive what particles get.
    """
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            start = before[i]
            place = x[i]
            back = start
            mobility = p.inverse_mass[i]
            if qd.static(not counted):
                mobility = 0.0
            touched = 0
            again = 1
            for attempt in range(4):
                if again == 1:
                    fast = 0
                    met = 0
                    for solid in range(number):
                        place, back, moved, traced = _meet(
                            place, back, start, dt, radius, stickiness[p.material[i]], attempt, solid, mobility, solids,
                            parts,
                        )  # fmt: skip
                        met += moved
                        fast = qd.max(fast, traced)
                    touched = qd.max(touched, met)
                    again = qd.cast(met + fast > 1 and met > 0, qd.i32)
            if touched > 0:
                x[i] = place
                before[i] = back


@qd.func
def _gauge_one(
    x: vec3, start: vec3, dt: qd.f32, contact_radius: qd.f32, stickiness: qd.f32, body: qd.i32, mobility: qd.f32,
    stiff: qd.f32, solids: Solids, parts: Parts, bodies: Bodies,
):  # fmt: skip
    """J of a particle and a body moving as it does now, as one contact of the body's system; ``stiff`` 0: without S."""
    solid = bodies.solid[body]
    radius = contact_radius * solids.standoff[solid]
    pull = dt * dt * solids.stick_stiffness[solid] * stickiness
    reach = qd.select(pull > 0.0, solids.stick_distance[solid], 0.0)
    a, b = local_path(x, start, solid, solids)
    if near(a, b, solids.bound[solid] + radius + reach) == 1:
        touch = b
        phi = distance(solid, b, solids, parts)
        gap = phi - radius
        _traced, share = first_touch(solid, a, b, phi, radius, solids, parts)
        if share < 1.0:
            touch = a + share * (b - a)
            gap = qd.min(gap, -1e-30)
        if gap < reach:
            n = normal(solid, touch, 0.05 * radius, solids, parts)
            travel = b - a
            speed = n.dot(travel)
            along = qd.select(speed < 0.0, 1.0, 0.0)
            across = 1.0 - (1.0 - qd.min(solids.friction[solid], 1.0)) ** (dt * 30.0)
            change = -qd.min(speed, 0.0) * n - across * (travel - speed * n)
            if gap >= 0.0:
                along = qd.max(pull * (1.0 - 2.0 * gap / reach), 0.0)
                across = 0.0
                change = -qd.min(pull * (1.0 - gap / reach), 1.0) * gap * n
            turn = solids.rotation[solid]
            gauge(body, x, turn @ n, stiff * along, stiff * across, turn @ change, mobility, solids, bodies)


@qd.func(requires_top_level=True)
def gauge_wet(
    p: Particles, x: Vectors, before: Vectors, n: qd.i32, dt: qd.f32, radius: qd.f32, solids: Solids, parts: Parts,
    bodies: Bodies, stickiness: Floats, implicit: qd.template(),
):  # fmt: skip
    """Collects what all particles would get from bodies that move as they do now: stage A of Algorithm 6."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            for body in range(bodies.number[0]):
                _gauge_one(
                    x[i], before[i], dt, radius, stickiness[p.material[i]], body, p.inverse_mass[i],
                    qd.static(1.0 if implicit else 0.0), solids, parts, bodies,
                )  # fmt: skip
