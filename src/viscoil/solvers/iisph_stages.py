"""The stages of a step of IISPH: what is launched together."""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.contact import longest_way, resolve_all
from viscoil.constraints.pressure import (
    PressureField,
    PressureNumbers,
    accelerations,
    count_iteration,
    feel_walls,
    relax,
    sources,
    weigh,
)
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, vec3
from viscoil.solids.coupling import Bodies, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.finite import all_finite
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.sums import Sums, padded
from viscoil.steps.integrate import moved, note_speed, wrapped
from viscoil.steps.smooth_velocities import SmoothingNumbers, meet_clinging_bodies, smooth_velocities


@dataclass(frozen=True)
class Scratch:
    """Memory of one step besides the pressure's."""

    velocity: Vectors  # v_adv, v* [m/s]; of boundary samples, this step's
    smoothed: Vectors  # ṽ [m/s]


@qd.func(requires_top_level=True)
def advect(p: Particles, k: StepNumbers, count: qd.i32, solids: Solids, s: Scratch, coupled: qd.template()):
    """v_adv = v + Δt g; boundary samples move with their solids, and begin where those are that fluid can move."""
    for i in range(count):
        v = p.velocity[i]
        if p.inverse_mass[i] > 0.0:
            v += k.dt[0] * vec3(k.gx[0], k.gy[0], k.gz[0])
        elif p.solid[i] >= 0:
            if qd.static(coupled) and solids.body[p.solid[i]] >= 0:
                p.position[i] = solids.rotation0[p.solid[i]] @ p.rest[i] + solids.position0[p.solid[i]]
            v = (moved(i, p, k.dt[0], vec3(0.0), solids) - p.position[i]) / k.dt[0]
        s.velocity[i] = v


@qd.kernel(graph=True, fastcache=True)
def advect_stage(p: Particles, k: StepNumbers, solids: Solids, s: Scratch, coupled: qd.Template):
    count = k.count[0]
    advect(p, k, count, solids, s, coupled)


@qd.func(requires_top_level=True)
def weigh_all(
    p: Particles, x: Vectors, k: StepNumbers, count: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, f: PressureField, bounded: qd.template(), walled: qd.template(),
    coupled: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What walls contribute, and densities."""
    if qd.static(bounded or walled):
        feel_walls(
            p, x, count, near, torus, c, s.velocity, solids, parts, k.solids[0], f, bounded, walled, coupled, periodic
        )
    weigh(p, x, count, near, torus, c, s.velocity, f, solids, bodies, bounded or walled, coupled, uniform, periodic)
    if qd.static(coupled):
        settle_bodies(solids, bodies)


@qd.kernel(graph=True, fastcache=True)
def weigh_stage(
    p: Particles, x: Vectors, k: StepNumbers, near: NeighborList, torus: Torus, c: PressureNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, s: Scratch, f: PressureField, bounded: qd.Template, walled: qd.Template,
    coupled: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    weigh_all(p, x, k, count, near, torus, c, solids, parts, bodies, s, f, bounded, walled, coupled, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def walls_stage(
    p: Particles, x: Vectors, k: StepNumbers, near: NeighborList, torus: Torus, c: PressureNumbers, solids: Solids,
    parts: Parts, s: Scratch, f: PressureField, bounded: qd.Template, walled: qd.Template,
):  # fmt: skip
    """What walls contribute alone, where :func:`weigh` is left to compiled passes."""
    count = k.count[0]
    feel_walls(p, x, count, near, torus, c, s.velocity, solids, parts, k.solids[0], f, bounded, walled, False, False)


@qd.func(requires_top_level=True)
def smooth(
    p: Particles, k: StepNumbers, count: qd.i32, near: NeighborList, torus: Torus, c: SmoothingNumbers, s: Scratch,
    f: PressureField, solids: Solids, bodies: Bodies, again: qd.template(), central: qd.template(), enclosed: qd.template(),
    coupled: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """ṽ from v*; ``again``: another pass on top of the last."""
    if qd.static(again):
        for i in range(count):
            s.velocity[i] = s.smoothed[i]
    if qd.static(coupled):
        meet_clinging_bodies(p, p.position, count, f, s.velocity, solids, bodies, k.dt[0])
    smooth_velocities(
        p, p.position, count, near, torus, c, f, s.velocity, s.smoothed, solids, bodies, k.dt[0], central, enclosed,
        coupled, single, uniform, periodic,
    )  # fmt: skip
    if qd.static(coupled):
        settle_bodies(solids, bodies)


@qd.kernel(graph=True, fastcache=True)
def smooth_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: SmoothingNumbers, s: Scratch, f: PressureField,
    solids: Solids, bodies: Bodies, again: qd.Template, central: qd.Template, enclosed: qd.Template, coupled: qd.Template,
    single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    smooth(p, k, count, near, torus, c, s, f, solids, bodies, again, central, enclosed, coupled, single, uniform, periodic)


@qd.func(requires_top_level=True)
def iterate(
    left: Flag, p: Particles, x: Vectors, k: StepNumbers, count: qd.i32, full: qd.i32, near: NeighborList, torus: Torus,
    c: PressureNumbers, f: PressureField, sums: Sums, solids: Solids, bodies: Bodies, controlled: qd.template(),
    coupled: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """One iteration of the pressure. ``full`` = padded(count)."""
    accelerations(p, x, count, near, torus, c, f, uniform, periodic)
    relax(p, x, count, full, near, torus, c, f, sums, solids, bodies, coupled, uniform, periodic)
    if qd.static(coupled):
        solve_bodies(solids, bodies)
    count_iteration(left, count, c, f, sums, solids, bodies, coupled, controlled)


@qd.kernel(graph=True, fastcache=True)
def pressure_stage(
    left: Flag, p: Particles, x: Vectors, k: StepNumbers, near: NeighborList, torus: Torus, c: PressureNumbers, s: Scratch,
    before: Floats, f: PressureField, sums: Sums, solids: Solids, bodies: Bodies, enclosed: qd.Template,
    advected: qd.Template, controlled: qd.Template, coupled: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """p = IISPH(ṽ), and the accelerations by it."""
    count = k.count[0]
    full = padded(count)
    sources(left, p, x, count, near, torus, c, s.smoothed, before, f, enclosed, advected, uniform, periodic)
    while qd.graph.do_while(left):
        iterate(left, p, x, k, count, full, near, torus, c, f, sums, solids, bodies, controlled, coupled, uniform, periodic)
    accelerations(p, x, count, near, torus, c, f, uniform, periodic)


@qd.func
def rubbing(i: qd.i32, slip: vec3, w: qd.f32, dt: qd.f32, f: PressureField):
    """Coulomb's law: (velocity along the wall that friction takes off, its share of the slip, normal).

    That is at most μ times the push of the wall. ``slip``: velocity relative to the walls, in any direction.
    """
    share = 0.0
    push = w * f.pressure[i] * f.toward[i]
    size = push.norm()
    n = push / qd.max(size, 1e-30)
    along = slip - n * n.dot(slip)
    if size > 0.0:
        most = f.grip[i] / f.wall[i] * dt * size
        share = qd.min(most / qd.max(along.norm(), 1e-30), 1.0)
    return along * share, share, n


@qd.func(requires_top_level=True)
def finish(
    p: Particles, k: StepNumbers, count: qd.i32, torus: Torus, solids: Solids, parts: Parts, s: Scratch, before: Floats,
    f: PressureField, status: Ints, enclosed: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """v = ṽ + Δt a, x ← x + Δt v (Euler-Cromer); friction of walls, and a guard against going through them."""
    for i in range(count):
        v = s.smoothed[i]
        x = moved(i, p, k.dt[0], vec3(0.0), solids)
        if p.inverse_mass[i] > 0.0:
            v += k.dt[0] * f.acceleration[i]
            if qd.static(enclosed) and f.wall[i] > 1e-6:
                lost, _share, _n = rubbing(i, v - f.wall_velocity[i] / f.wall[i], p.inverse_mass[i], k.dt[0], f)
                v -= lost
            aim = p.position[i] + k.dt[0] * v
            x = aim
            if qd.static(enclosed):
                # Who has no wall in sight cannot reach one in a short way, nor can it reach him.
                look = qd.cast(f.wall[i] > 0.0, qd.i32)
                if look == 0 and longest_way(p.position[i], aim, k.solids[0], solids) > 0.2 * k.support[0]:
                    look = 1
                if look == 1:
                    x = resolve_all(aim, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
                    v += (x - aim) / k.dt[0]
        commit(i, x, v, p, k, torus, before, f, status, periodic)


@qd.kernel(graph=True, fastcache=True)
def finish_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, s: Scratch, before: Floats, f: PressureField,
    status: Ints, enclosed: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    finish(p, k, count, torus, solids, parts, s, before, f, status, enclosed, periodic)


@qd.func
def commit(
    i: qd.i32, x: vec3, v: vec3, p: Particles, k: StepNumbers, torus: Torus, before: Floats, f: PressureField, status: Ints,
    periodic: qd.template(),
):  # fmt: skip
    """The particle's new place and velocity, unless they are not sane; what its pressure was."""
    way = x - p.position[i]
    if not all_finite(x) or way.dot(way) > k.farthest[0] * k.farthest[0]:
        qd.atomic_min(status[0], p.id[i])
    elif p.inverse_mass[i] > 0.0:
        note_speed(v, status)
    p.velocity[i] = v
    p.position[i] = x
    if p.inverse_mass[i] > 0.0:
        p.position[i] = wrapped(x, torus, periodic)
    if p.inverse_mass[i] != 0.0:
        before[i] = f.pressure[i] * f.density[i] * f.density[i]
