"""Prediction and velocities from positions."""

import quadrants as qd

from viscoil.particles import Ints, Particles, Vectors, vec3
from viscoil.solids.sdf import Solids
from viscoil.sph.finite import all_finite
from viscoil.sph.neighbors import Torus
from viscoil.sph.records import Records, put_place, put_velocity


@qd.func
def moved(i: qd.i32, p: Particles, dt: qd.f32, acceleration: vec3, solids: Solids) -> vec3:
    """Where particle i is after Δt: accelerated if it moves freely, else where its solid or its velocity takes it."""
    x = p.position[i] + dt * p.velocity[i]
    if p.inverse_mass[i] > 0.0:
        x = p.position[i] + dt * (p.velocity[i] + dt * acceleration)
    elif p.solid[i] >= 0:
        x = solids.rotation[p.solid[i]] @ p.rest[i] + solids.position[p.solid[i]]
    return x


@qd.func(requires_top_level=True)
def predict(p: Particles, n: qd.i32, dt: qd.f32, gx: qd.f32, gy: qd.f32, gz: qd.f32, solids: Solids, predicted: Vectors):
    """v ← v + Δt g, x* ← x + Δt v; boundary samples go where their solid goes (Algorithm 1, lines 1–4)."""
    for i in range(n):
        predicted[i] = moved(i, p, dt, vec3(gx, gy, gz), solids)


@qd.func(requires_top_level=True)
def velocities(p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, predicted: Vectors, velocity: Vectors, status: Ints):
    """v ← (x* − x)/Δt (line 21). Notes the smallest id that is not finite or moved farther than ``farthest`` [m]."""
    for i in range(n):
        velocity[i] = _velocity(i, p, dt, farthest, predicted, status)


@qd.func
def _velocity(i: qd.i32, p: Particles, dt: qd.f32, farthest: qd.f32, predicted: Vectors, status: Ints) -> vec3:
    move = predicted[i] - p.position[i]
    velocity = move / dt
    if not all_finite(predicted[i]) or move.dot(move) > farthest * farthest:
        qd.atomic_min(status[0], p.id[i])
    elif p.inverse_mass[i] > 0.0:
        note_speed(velocity, status)
    return velocity


@qd.func
def note_speed(velocity: vec3, status: Ints):
    """Keeps the maximum in status[1]. Positive floats order like their bits: no floating-point atomic is needed. Who reads that
    others were faster leaves it at that: a million atomics on one number take longer than all else in such a pass."""
    bits = qd.bit_cast(velocity.norm(), qd.i32)
    if bits > status[1]:
        qd.atomic_max(status[1], bits)


@qd.func(requires_top_level=True)
def packed_velocities(
    p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, support: qd.f32, predicted: Vectors, half: Ints, velocity: Vectors,
    r: Records, status: Ints,
):  # fmt: skip
    """:func:`velocities`, and records of places and velocities in the half of them that density iterations have left."""
    for i in range(n):
        v = _velocity(i, p, dt, farthest, predicted, status)
        velocity[i] = v
        at = (1 - half[0]) * velocity.shape[0] + i
        put_place(r, at, predicted[i], support)
        put_velocity(r, at, v)


@qd.func(requires_top_level=True)
def corrected_velocities(
    p: Particles, n: qd.i32, dt: qd.f32, farthest: qd.f32, aim: Vectors, predicted: Vectors, velocity: Vectors, status: Ints
):
    """v ← v + (x* − x_aim)/Δt, with x_aim where v alone would have led; records trouble as :func:`velocities` does.

    Not (x* − x)/Δt: in single precision a place has seven digits, and in a short step velocities change by less than that.
    """
    for i in range(n):
        move = predicted[i] - p.position[i]
        if p.inverse_mass[i] > 0.0:
            velocity[i] += (predicted[i] - aim[i]) / dt
        else:
            velocity[i] = move / dt
        if not all_finite(predicted[i]) or move.dot(move) > farthest * farthest:
            qd.atomic_min(status[0], p.id[i])
        elif p.inverse_mass[i] > 0.0:
            note_speed(velocity[i], status)


@qd.func
def wrapped(x: vec3, torus: Torus, periodic: qd.template()) -> vec3:
    """The image of x inside the periodic box."""
    y = x
    if qd.static(periodic):
        for axis in qd.static(range(3)):
            period = torus.real[6 + axis]
            if period > 0.0:
                y[axis] -= period * qd.floor((y[axis] - torus.real[axis]) / period)
    return y


@qd.kernel(fastcache=True)
def lead(p: Particles, n: qd.i32, now: qd.f32):
    """Particles that have left the pipe of their nozzle at ``now`` [s] move by themselves, the others are led."""
    for i in range(n):
        w = qd.abs(p.inverse_mass[i])
        p.inverse_mass[i] = qd.select(p.free_at[i] <= now, w, -w)
