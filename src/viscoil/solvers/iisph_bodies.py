"""The end of a step of IISPH where fluid moves bodies: what particles got from them is recorded, to the last bit.

Levers are those of the start of the step. With x' = x + Δt v' the angular momentum Σ m x'×v' is Σ m x×v', of bodies as of
particles, so that impulses at where things were keep it.
"""

import quadrants as qd

from viscoil.constraints.body_drag import drag_of_body, hold_of_body, wall_velocity
from viscoil.constraints.contact import gauge_contacts, longest_way, resolve_all
from viscoil.constraints.pressure import PressureField, PressureNumbers, push_of_body
from viscoil.particles import Floats, Ints, Particles, vec3
from viscoil.solids.coupling import Bodies, add_contact, add_push, lever_at_start, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.iisph_stages import Scratch, commit, rubbing
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.neighbors import Torus
from viscoil.steps.integrate import moved


@qd.func(requires_top_level=True)
def _push(
    p: Particles, k: StepNumbers, count: qd.i32, c: PressureNumbers, solids: Solids, bodies: Bodies, s: Scratch,
    f: PressureField,
):  # fmt: skip
    """ṽ ← ṽ + Δt a, and bodies receive their part of it."""
    for i in range(count):
        if p.inverse_mass[i] > 0.0:
            s.smoothed[i] = s.smoothed[i] + k.dt[0] * f.acceleration[i]
            for at in range(2 * i, 2 * i + 2):
                if f.body[at] >= 0 and f.pressure[i] > 0.0:
                    r = lever_at_start(f.body[at], p.position[i], solids, bodies)
                    add_push(f.body[at], r, push_of_body(at, c, f, solids), solids)
    settle_bodies(solids, bodies)


@qd.func
def _rub(i: qd.i32, p: Particles, k: StepNumbers, solids: Solids, bodies: Bodies, s: Scratch, f: PressureField):
    """Friction of walls on particle i: (velocity it takes off, share of the slip, normal)."""
    slip = s.smoothed[i] - wall_velocity(i, p.position[i], k.dt[0], f, solids, bodies, True)
    return rubbing(i, slip, p.inverse_mass[i], k.dt[0], f)


@qd.func
def _rub_of_body(
    at: qd.i32, v: vec3, share: qd.f32, n: vec3, p: Particles, k: StepNumbers, solids: Solids, bodies: Bodies, f: PressureField
):
    """(Impulse that particle at//2 of velocity v gets by friction from body ``at``, how it grows with the body's velocity)."""
    hold = hold_of_body(at, share, p, f)
    q = drag_of_body(at, p.position[at // 2], hold, v, k.dt[0], f, solids, bodies)
    return q - n * n.dot(q), hold


@qd.func(requires_top_level=True)
def _rub_bodies(p: Particles, k: StepNumbers, count: qd.i32, solids: Solids, bodies: Bodies, s: Scratch, f: PressureField):
    """Coulomb's friction: bodies yield to it first, then particles feel it."""
    for i in range(count):
        if p.inverse_mass[i] > 0.0 and f.body[2 * i] >= 0 and f.wall[i] > 1e-6:
            _lost, share, n = _rub(i, p, k, solids, bodies, s, f)
            for at in range(2 * i, 2 * i + 2):
                if share > 0.0 and f.body[at] >= 0:
                    r = lever_at_start(f.body[at], p.position[i], solids, bodies)
                    q, hold = _rub_of_body(at, s.smoothed[i], share, n, p, k, solids, bodies, f)
                    add_contact(f.body[at], r, n, 0.0, hold, q, bodies)
    solve_bodies(solids, bodies)
    for i in range(count):
        if p.inverse_mass[i] > 0.0 and f.wall[i] > 1e-6:
            lost, share, n = _rub(i, p, k, solids, bodies, s, f)
            for at in range(2 * i, 2 * i + 2):
                if share > 0.0 and f.body[at] >= 0:
                    r = lever_at_start(f.body[at], p.position[i], solids, bodies)
                    q, _hold = _rub_of_body(at, s.smoothed[i], share, n, p, k, solids, bodies, f)
                    add_push(f.body[at], r, q, solids)
            s.smoothed[i] = s.smoothed[i] - lost
    settle_bodies(solids, bodies)


@qd.func(requires_top_level=True)
def _keep_apart(
    p: Particles, k: StepNumbers, count: qd.i32, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch,
    f: PressureField,
):  # fmt: skip
    """The guard against going through walls; s.velocity becomes the new place, s.smoothed the new velocity.

    f.flux, no longer needed, says who is to be looked at: who has no wall in sight cannot reach one in a short way, nor can it
    reach him.
    """
    for i in range(count):
        f.flux[i] = 1e30
        if p.inverse_mass[i] > 0.0:
            s.velocity[i] = p.position[i] + k.dt[0] * s.smoothed[i]
            if f.wall[i] > 0.0 or longest_way(p.position[i], s.velocity[i], k.solids[0], solids) > 0.2 * k.support[0]:
                f.flux[i] = 0.0
    gauge_contacts(
        s.velocity, p.position, p.inverse_mass, count, k.radius[0], f.flux, k.support[0], solids, parts, bodies
    )
    solve_bodies(solids, bodies)
    for i in range(count):
        if f.flux[i] == 0.0:
            aim = s.velocity[i]
            x = resolve_all(aim, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
            s.velocity[i] = x
            s.smoothed[i] = s.smoothed[i] + (x - aim) / k.dt[0]
    settle_bodies(solids, bodies)


@qd.func(requires_top_level=True)
def finish_with_bodies(
    p: Particles, k: StepNumbers, count: qd.i32, c: PressureNumbers, torus: Torus, solids: Solids, parts: Parts,
    bodies: Bodies, s: Scratch, before: Floats, f: PressureField, status: Ints, periodic: qd.template(),
):  # fmt: skip
    """As finish_stage: v = ṽ + Δt a, x ← x + Δt v; friction of walls, and a guard against going through them."""
    _push(p, k, count, c, solids, bodies, s, f)
    _rub_bodies(p, k, count, solids, bodies, s, f)
    _keep_apart(p, k, count, solids, parts, bodies, s, f)
    for i in range(count):
        x, v = s.velocity[i], s.smoothed[i]
        if p.inverse_mass[i] <= 0.0:
            x = moved(i, p, k.dt[0], vec3(0.0), solids)
            if p.solid[i] >= 0:
                v = (x - p.position[i]) / k.dt[0]
        commit(i, x, v, p, k, torus, before, f, status, periodic)


@qd.kernel(graph=True, fastcache=True)
def finish_with_bodies_stage(
    p: Particles, k: StepNumbers, c: PressureNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch,
    before: Floats, f: PressureField, status: Ints, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    finish_with_bodies(p, k, count, c, torus, solids, parts, bodies, s, before, f, status, periodic)
