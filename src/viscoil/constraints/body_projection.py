"""Bodies as unknowns of the velocity projection: a body in honey stops within far less than a step.

Of the velocity of particle i that body b holds the part Π_i is the body's (held 1: nnᵀ, 2: 1, 3: 1 − nnᵀ), the rest is its own:

    u_i = (1 − Π_i) u_i + σ Π_i J_i u_b,    σ = d/Δt,  J = [1, −[r]×],  u_b the twist of coupling.py

The energy whose minimum the projection seeks gains ½σ² (u_b − u₀)ᵀ W⁻¹ (u_b − u₀), and conjugate gradients gain six unknowns:

    r_b = Σ Jᵀ Π_i r_i/σ + P,      P = W⁻¹(u₀ − u_b), the impulses that the fluid got, as coupling.py counts them
    z_b = (W⁻¹ + S)⁻¹ r_b = K r_b,   K = (1 + W S)⁻¹ W,   S = Σ Jᵀ Π_i J/w_i
    z_i = w_i (1 − Π_i) r_i + σ Π_i J z_b,     γ and δ gain σ² r_b·z_b and σ² z_b·y_b

with y_b = r_b − S z_b, which is W⁻¹ z_b. W is never inverted: joints make it singular. u_b itself is not needed, because the
steps of P are −α times the search direction of y. The preconditioner is the mass matrix of everything that moves, so that
what the fluid gained and P agree however early the iterations end.

What this does not see is pressure, which comes after it: in a step fluid and body sink together, as far as viscosity lets them,
and are then lifted, the fluid more than a heavy body. That is an error of the body's speed of up to g Δt (1 − ρ_fluid/ρ_body),
first order in Δt, and no longer small where the body should sink more slowly than g Δt.

S and sums over held particles are integers as in coupling.py. A body stays where it is, and levers with it, until a round ends.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.velocity_projection import Projection, allowed
from viscoil.particles import Floats, Vectors, allocate_array, vec3
from viscoil.solids.coupling import Bodies, column, eliminate, gauge, lever
from viscoil.solids.sdf import Solids

LENGTH = 102  # numbers per body: K (36), S (36), r, z, y, direction of y, image of the direction (6 each)


@dataclass(frozen=True)
class BodyRows:
    """Memory of the bodies' part."""

    number: Floats  # [102 body]


def allocate_rows(bodies: int) -> BodyRows:
    """Room for so many bodies."""
    return BodyRows(allocate_array(qd.f32, LENGTH * bodies))


@qd.func
def given(v: vec3, n: vec3, held: qd.i32) -> vec3:
    """Π v: what of v a held particle gets from who holds it."""
    return v - allowed(v, n, held)


@qd.func
def hold_on(i: qd.i32, change: vec3, x: vec3, mobility: qd.f32, s: Projection, solids: Solids, bodies: Bodies):
    """Particle i, held by a body, had its path changed by ``change`` [m] for that: a term of S and of Q."""
    along = qd.select(s.held[i] == 3, 0.0, 1.0)
    across = qd.select(s.held[i] == 1, 0.0, 1.0)
    gauge(s.holder[i], x, s.normal[i], along, across, change, mobility, solids, bodies)


@qd.func
def _taken(body: qd.i32, k: qd.i32, bodies: Bodies) -> qd.f32:
    """A component of what was gathered, which is emptied."""
    counts = bodies.system[42 * body + 36 + k]
    bodies.system[42 * body + 36 + k] = qd.cast(0, qd.i64)
    return qd.cast(qd.cast(counts, qd.f64) / 1073741824.0, qd.f32)  # 2³⁰


@qd.func
def _give(body: qd.i32, k: qd.i32, impulse: qd.f32, solids: Solids):
    """P ← P + impulse."""
    counts = qd.cast(qd.round(qd.cast(impulse, qd.f64) * 1073741824.0), qd.i64)
    solids.push[6 * body + k] = solids.push[6 * body + k] + counts


@qd.func(requires_top_level=True)
def yield_to_held(solids: Solids, bodies: Bodies, rows: BodyRows):
    """K and S of who is held now. z ← −K Q: bodies yield to what holding them took, and receive Q + S z."""
    for b in range(bodies.number[0]):
        base = 102 * b
        for k in range(36):
            low = qd.min(k // 6, k % 6)
            high = qd.max(k // 6, k % 6)
            stiff = qd.cast(bodies.system[42 * b + 6 * low + high], qd.f64) / 1048576.0  # 2²⁰
            rows.number[base + 36 + k] = qd.cast(stiff, qd.f32)
        for k in range(36):
            bodies.system[42 * b + k] = qd.cast(0, qd.i64)
        for j in range(6):
            for i in range(6):
                for k in range(6):
                    entry = qd.select(i == k, 1.0, 0.0)
                    for m in range(6):
                        entry += bodies.inverse[36 * b + 6 * i + m] * rows.number[base + 36 + 6 * m + k]
                    bodies.work[48 * b + 6 * i + k] = entry
                bodies.work[48 * b + 36 + i] = bodies.inverse[36 * b + 6 * i + j]
            eliminate(b, bodies)
            for i in range(6):
                rows.number[base + 6 * i + j] = bodies.work[48 * b + 36 + i]
        for k in range(6):
            rows.number[base + 72 + k] = _taken(b, k, bodies)
        for i in range(6):
            value = 0.0
            for k in range(6):
                value -= rows.number[base + 6 * i + k] * rows.number[base + 72 + k]
            rows.number[base + 78 + i] = value
        for i in range(6):
            value = rows.number[base + 72 + i]
            for k in range(6):
                value += rows.number[base + 36 + 6 * i + k] * rows.number[base + 78 + k]
            _give(b, i, value, solids)


@qd.func(requires_top_level=True)
def follow(into: Vectors, x: Vectors, n: qd.i32, dt: qd.f32, s: Projection, solids: Solids, bodies: Bodies, rows: BodyRows):
    """Adds σ Π J z_b to what belongs to held particles."""
    for i in range(n):
        if s.held[i] > 0 and s.holder[i] >= 0:
            body = s.holder[i]
            base = 102 * body + 78
            way = vec3(rows.number[base], rows.number[base + 1], rows.number[base + 2])
            turn = vec3(rows.number[base + 3], rows.number[base + 4], rows.number[base + 5])
            moved = way + turn.cross(lever(bodies.solid[body], x[i], solids))
            into[i] = into[i] + given(moved / (solids.per_spacing[0] * dt), s.normal[i], s.held[i])


@qd.func(requires_top_level=True)
def gather(of: Vectors, x: Vectors, n: qd.i32, dt: qd.f32, s: Projection, solids: Solids, bodies: Bodies):
    """Σ Jᵀ Π of_i/σ over who is held, into Q."""
    for i in range(n):
        if s.held[i] > 0 and s.holder[i] >= 0:
            body = s.holder[i]
            r = lever(bodies.solid[body], x[i], solids)
            q = (solids.per_spacing[0] * dt) * given(of[i], s.normal[i], s.held[i])
            for k in range(6):
                term = qd.cast(column(k, r).dot(q), qd.f64) * 1073741824.0  # 2³⁰
                qd.atomic_add(bodies.system[42 * body + 36 + k], qd.cast(qd.round(term), qd.i64))


@qd.func
def _prepare(body: qd.i32, rows: BodyRows):
    """z = K r and y = r − S z; returns r·z and z·y."""
    base = 102 * body
    for i in range(6):
        value = 0.0
        for k in range(6):
            value += rows.number[base + 6 * i + k] * rows.number[base + 72 + k]
        rows.number[base + 78 + i] = value
    gamma = 0.0
    delta = 0.0
    for i in range(6):
        value = rows.number[base + 72 + i]
        gamma += value * rows.number[base + 78 + i]
        for k in range(6):
            value -= rows.number[base + 36 + 6 * i + k] * rows.number[base + 78 + k]
        rows.number[base + 84 + i] = value
        delta += value * rows.number[base + 78 + i]
    return gamma, delta


@qd.func
def _account(dt: qd.f32, s: Projection, solids: Solids, bodies: Bodies, rows: BodyRows):
    """The next z_b and y_b of all bodies; their terms of γ and δ into scalars[5] and [6]."""
    gamma = 0.0
    delta = 0.0
    for b in range(bodies.number[0]):
        more_gamma, more_delta = _prepare(b, rows)
        gamma += more_gamma
        delta += more_delta
    sigma = 1.0 / (solids.per_spacing[0] * dt)
    s.scalars[5] = sigma * sigma * gamma
    s.scalars[6] = sigma * sigma * delta


@qd.func(requires_top_level=True)
def start_bodies(dt: qd.f32, s: Projection, solids: Solids, bodies: Bodies, rows: BodyRows):
    """r_b from gathered residuals, z_b, y_b; their terms of γ and δ into scalars[5] and [6]."""
    for _ in range(1):
        for b in range(bodies.number[0]):
            for k in range(6):
                received = qd.cast(qd.cast(solids.push[6 * b + k], qd.f64) / 1073741824.0, qd.f32)
                rows.number[102 * b + 72 + k] = _taken(b, k, bodies) + received
                rows.number[102 * b + 90 + k] = 0.0
                rows.number[102 * b + 96 + k] = 0.0
        _account(dt, s, solids, bodies, rows)


@qd.func(requires_top_level=True)
def steer_bodies(dt: qd.f32, s: Projection, solids: Solids, bodies: Bodies, rows: BodyRows):
    """The part of bodies in an iteration: P ← P − α d_y, r_b ← r_b − α A d_b from gathered images, the next z_b and y_b."""
    for _ in range(1):
        alpha = s.scalars[1]
        beta = s.scalars[2]
        for b in range(bodies.number[0]):
            base = 102 * b
            for k in range(6):
                y = rows.number[base + 84 + k]
                along = y + beta * rows.number[base + 90 + k]
                image = _taken(b, k, bodies) + y + beta * rows.number[base + 96 + k]
                rows.number[base + 90 + k] = along
                rows.number[base + 96 + k] = image
                rows.number[base + 72 + k] = rows.number[base + 72 + k] - alpha * image
                _give(b, k, -alpha * along, solids)
        _account(dt, s, solids, bodies, rows)
