"""Walls drag the fluid beside them along; where a wall is a body that fluid can move, fluid drags the body.

The velocity of the walls beside particle i is the mean of theirs, weighted by their shares of its neighbourhood. Of what it
changes the particle's velocity v by, s (u_walls − v), a body with the share φ of the walls has given s φ (u_body − v): it
receives the opposite, and that grows with its velocity as s φ/w, which the implicit exchange of solids/coupling.py is told.
"""

import quadrants as qd

from viscoil.constraints.pressure import PressureField
from viscoil.particles import Particles, vec3
from viscoil.solids.coupling import Bodies, add_push, lever_at_start, way_of
from viscoil.solids.sdf import Solids


@qd.func
def body_velocity(at: qd.i32, x: vec3, dt: qd.f32, f: PressureField, solids: Solids, bodies: Bodies) -> vec3:
    """Of body ``at`` of particle at//2, carried on to x [m/s]; where there is none, of the first."""
    body = qd.max(f.body[at], 0)
    return way_of(body, lever_at_start(body, x, solids, bodies), bodies) / (solids.per_spacing[0] * dt)


@qd.func
def wall_velocity(
    i: qd.i32, x: vec3, dt: qd.f32, f: PressureField, solids: Solids, bodies: Bodies, coupled: qd.template()
) -> vec3:
    """Mean velocity of the walls beside particle i at x [m/s]; there must be some."""
    carried = f.wall_velocity[i]
    if qd.static(coupled):
        for at in range(2 * i, 2 * i + 2):
            carried += f.of_body[at] * body_velocity(at, x, dt, f, solids, bodies)
    return carried / f.wall[i]


@qd.func
def hold_of_body(at: qd.i32, share: qd.f32, p: Particles, f: PressureField) -> qd.f32:
    """s φ/w of body ``at`` when walls change the velocity of particle at//2 by the share s of the difference."""
    return share * f.of_body[at] / (f.wall[at // 2] * p.inverse_mass[at // 2])


@qd.func
def drag_of_body(
    at: qd.i32, x: vec3, hold: qd.f32, v: vec3, dt: qd.f32, f: PressureField, solids: Solids, bodies: Bodies
) -> vec3:
    """Impulse that particle at//2 of velocity v gets from body ``at``; ``hold``: see :func:`hold_of_body`."""
    return (hold * dt * solids.per_spacing[0]) * (body_velocity(at, x, dt, f, solids, bodies) - v)


@qd.func
def drag_bodies(
    i: qd.i32, x: vec3, share: qd.f32, v: vec3, dt: qd.f32, p: Particles, f: PressureField, solids: Solids, bodies: Bodies
):
    """The bodies beside particle i receive the opposite of :func:`drag_of_body`."""
    for at in range(2 * i, 2 * i + 2):
        body = f.body[at]
        if body >= 0:
            q = drag_of_body(at, x, hold_of_body(at, share, p, f), v, dt, f, solids, bodies)
            add_push(body, lever_at_start(body, x, solids, bodies), q, solids)
