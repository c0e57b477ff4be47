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
def body_velocity(i: qd.i32, x: vec3, dt: qd.f32, f: PressureField, solids: Solids, bodies: Bodies) -> vec3:
    """Of the body beside particle i, carried on to x [m/s]; where there is none, of the first."""
    body = qd.max(f.body[i], 0)
    return way_of(body, lever_at_start(body, x, solids, bodies), bodies) / (solids.per_spacing[0] * dt)


@qd.func
def wall_velocity(
    i: qd.i32, x: vec3, dt: qd.f32, f: PressureField, solids: Solids, bodies: Bodies, coupled: qd.template()
) -> vec3:
    """Mean velocity of the walls beside particle i at x [m/s]; there must be some."""
    carried = f.wall_velocity[i]
    if qd.static(coupled):
        carried += f.of_body[i] * body_velocity(i, x, dt, f, solids, bodies)
    return carried / f.wall[i]


@qd.func
def drag_of_body(
    i: qd.i32, x: vec3, share: qd.f32, v: vec3, dt: qd.f32, p: Particles, f: PressureField, solids: Solids, bodies: Bodies
) -> vec3:
    """Impulse that particle i gets from the body when walls change its velocity v by ``share`` of the difference."""
    part = share * f.of_body[i] / (f.wall[i] * p.inverse_mass[i])
    return (part * dt * solids.per_spacing[0]) * (body_velocity(i, x, dt, f, solids, bodies) - v)


@qd.func
def drag_body(
    i: qd.i32, x: vec3, share: qd.f32, v: vec3, dt: qd.f32, p: Particles, f: PressureField, solids: Solids, bodies: Bodies
):
    """The body beside particle i, if there is one, receives the opposite of :func:`drag_of_body`."""
    body = f.body[i]
    if body >= 0:
        q = drag_of_body(i, x, share, v, dt, p, f, solids, bodies)
        add_push(body, lever_at_start(body, x, solids, bodies), q, solids)
