"""Positions of DC-PBD: where the projected velocities lead, the density constraint, and what a step leaves behind."""

import quadrants as qd

from viscoil.constraints.conformation import Substances, gradient_of
from viscoil.constraints.contact import gauge_contacts, may_touch, resolve_all
from viscoil.constraints.density import DensityNumbers
from viscoil.constraints.density_iteration import copy_places, shift, touch, weigh, weigh_walls
from viscoil.constraints.nearby import add, lists
from viscoil.constraints.particle_solids import hold_together
from viscoil.constraints.shape_matching import carry_on, rigid_velocities
from viscoil.constraints.velocity_projection import Projection, allowed
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.solids.coupling import Bodies, approach, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.dcpbd_projection import Scratch
from viscoil.solvers.solver import StepNumbers, StepValues, values_of
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import put_record
from viscoil.sph.sums import Sums, chunk_totals, hand_in, padded
from viscoil.steps.conformation import next_conformation
from viscoil.steps.integrate import corrected_velocities
from viscoil.steps.spreading import SpreadingNumbers, spread_and_commit, spread_by_records


@qd.func(requires_top_level=True)
def _meet_bodies(
    x: Vectors, p: Particles, k: StepValues, n: qd.i32, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch
):
    """Bodies yield to what pushes into them, before particles are put out."""
    gauge_contacts(x, p.position, p.inverse_mass, n, k.radius, s.clear, k.support, solids, parts, bodies)
    solve_bodies(solids, bodies)
    approach(s.clear, n, bodies)


@qd.func
def _place(i: qd.i32, x: vec3, k: StepValues, s: Scratch, packed: qd.template()):
    """Into the half that the first density iteration reads, and into the first, which others read (where contact comes later,
    for a list, the last iteration writes it anyway)."""
    s.predicted[i] = x
    other = s.predicted.shape[0] // 2 + i
    if k.iterations % 2 == 1:  # so that the last iteration writes the first half
        s.predicted[other] = x
    if qd.static(packed):
        put_record(s.records, qd.select(k.iterations % 2 == 1, other, i), x, 0.0)


@qd.func(requires_top_level=True)
def settle(
    left: Flag, p: Particles, k: StepValues, n: qd.i32, full: qd.i32, torus: Torus, solids: Solids, parts: Parts,
    bodies: Bodies, b: Clusters, s: Scratch, v: Projection, sums: Sums, walled: qd.template(), coupled: qd.template(),
    mix: qd.template(), periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """x** = x⁰ + Δt u**; where that aimed at is kept in ``free``. Accounts of what the projection left: r·wr, u·r and the
    power of the friction, Δt u·F(u) = u·(r − (u* − u)/w). All iterations of the density constraint are still to do.

    Contact comes at once, or where there is a list of those near solids for them alone: a loop that also knows solids has
    registers for a quarter of the threads."""
    qd.loop_config(block_dim=256)
    for i in range(full):
        account = vec3(0.0)
        if i < n:
            x = s.predicted[i]
            if p.inverse_mass[i] > 0.0:
                w = p.inverse_mass[i]
                u = v.u[i]
                r = v.residual[i]
                possible = allowed(r, v.normal[i], v.held[i])
                account = vec3(
                    w * possible.dot(possible), u.dot(possible), u.dot((v.free[i] - u) / w - r)
                )
                if p.cluster[i] >= 0:  # what holds a body together is not for the projection to take away
                    account = vec3(0.0)
                x = p.position[i] + k.dt * u
                v.free[i] = x
                gap = s.clear[i]
                s.clear[i] = gap - (x - s.predicted[i]).norm()
                if qd.static(lists(coupled, mix)):  # noqa: SIM102 (decided when compiled)
                    if gap >= k.support and gap - (x - s.predicted[i]).norm() < k.support:
                        add(i, s.nearby)
                if qd.static(not coupled and not lists(coupled, mix)):  # noqa: SIM102 (decided when compiled)
                    if may_touch(s.clear[i], k.radius):
                        x = resolve_all(x, p.position[i], k.radius, k.solids, solids, parts, p.inverse_mass[i])
            _place(i, x, k, s, packed)
            if i == 0:
                s.half[0] = k.iterations % 2
                left[()] = k.iterations
                s.used[0] = 0
        hand_in(i, n, account, sums)
    chunk_totals(n, sums)
    if qd.static(coupled):
        _meet_bodies(s.predicted, p, k, n, solids, parts, bodies, s)
        for i in range(n):
            # Clusters leave their contact to the iterations: it would be counted and then undone here.
            if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support and p.cluster[i] < 0:
                x = resolve_all(
                    s.predicted[i], p.position[i], k.radius, k.solids, solids, parts, p.inverse_mass[i]
                )
                _place(i, x, k, s, packed)
        settle_bodies(solids, bodies)
        approach(s.clear, n, bodies)
    if qd.static(mix & 1 > 0):  # as they were before contact, which comes back in the iterations
        carry_on(p, v.u, k.dt, k.gx, k.gy, k.gz, torus, b, s.predicted, False, True, periodic)
    if qd.static(walled and lists(coupled, mix)):
        touch(
            p, s.predicted, s.half, s.records, n, k.radius, k.support, k.solids, solids, parts, b, s.clear, s.wall,
            s.wall_gradient, s.nearby, True, mix, True, packed, True,
        )  # fmt: skip
    elif qd.static(walled):
        weigh_walls(
            p, s.predicted, s.half, n, k.support, k.solids, solids, parts, s.clear, s.wall, s.wall_gradient, s.nearby, False
        )


@qd.func(requires_top_level=True)
def relax(
    left: Flag, p: Particles, k: StepValues, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus, c: DensityNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, trial: Vectors, pressure: Floats,
    team: qd.template(), hurried: qd.template(), walled: qd.template(), coupled: qd.template(), uniform: qd.template(),
    mix: qd.template(), periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """One iteration: density and contact, and bodies made of particles take back their shapes. ``trial``: spare memory."""
    weigh(
        p, s.predicted, s.half, s.records, n, full, near, torus, c, s.clear, s.wall, s.wall_gradient, s.multiplier,
        s.multiplier, pressure, left, s.used, team, 0, walled, False, hurried, uniform, periodic, mix > 0, packed,
    )  # fmt: skip
    shift(
        p, s.predicted, s.half, s.records, n, full, near, torus, c, s.clear, s.wall_gradient, s.multiplier, left, s.used, team,
        0, walled, uniform, periodic, mix > 0, packed, packed and not coupled, s.nearby, qd.static(lists(coupled, mix)),
    )  # fmt: skip
    if qd.static(coupled):
        copy_places(s.predicted, s.half, n, trial)
        _meet_bodies(trial, p, k, n, solids, parts, bodies, s)
    if qd.static(walled):
        touch(
            p, s.predicted, s.half, s.records, n, k.radius, k.support, k.solids, solids, parts, b, s.clear, s.wall,
            s.wall_gradient, s.nearby, not coupled and mix == 0, mix, not coupled, packed, qd.static(lists(coupled, mix)),
        )  # fmt: skip
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, n, bodies)
    hold_together(p, s.predicted, s.half, s.clear, k.dt, torus, b, e, mix, periodic)
    if qd.static(walled and (coupled or mix > 0)):
        weigh_walls(
            p, s.predicted, s.half, n, k.support, k.solids, solids, parts, s.clear, s.wall, s.wall_gradient, s.nearby, False
        )


@qd.func(requires_top_level=True)
def finish(
    p: Particles, k: StepValues, n: qd.i32, near: NeighborList, torus: Torus, m: Substances, c: SpreadingNumbers, b: Clusters,
    s: Scratch, v: Projection, status: Ints, elastic: qd.template(), mix: qd.template(), periodic: qd.template(),
    packed: qd.template(),
):  # fmt: skip
    """u with what the positions were corrected by, the conformation at the end of the step, and even distances."""
    corrected_velocities(p, n, k.dt, k.farthest, v.free, s.predicted, v.u, status)
    if qd.static(mix & 1 > 0):
        rigid_velocities(p, s.predicted, k.dt, torus, b, v.u, periodic)
    if qd.static(elastic):
        for i in range(n):
            if p.inverse_mass[i] != 0.0:
                gradient = gradient_of(i, v.u, s.predicted, p, near, torus, k.support, s.inverse, periodic)
                p.conformation[i] = next_conformation(p.conformation[i], gradient, k.dt, p.material[i], m, s.clamped)
    if qd.static(packed):
        spread_by_records(p, s.predicted, n, k.dt, near, k.support, c, m, v.u, s.records)
    else:
        spread_and_commit(p, s.predicted, n, k.dt, near, torus, k.support, c, m, v.u, periodic)


@qd.kernel(graph=True, fastcache=True)
def settle_stage(
    left: Flag, p: Particles, numbers: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters,
    s: Scratch, v: Projection, sums: Sums, walled: qd.Template, coupled: qd.Template, mix: qd.Template, periodic: qd.Template,
    packed: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    full = padded(n)
    settle(left, p, k, n, full, torus, solids, parts, bodies, b, s, v, sums, walled, coupled, mix, periodic, packed)


@qd.kernel(graph=True, fastcache=True)
def solve_stage(
    left: Flag, p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, b: Clusters, e: Elastic, s: Scratch, trial: Vectors, pressure: Floats, team: qd.Template,
    hurried: qd.Template, walled: qd.Template, coupled: qd.Template, uniform: qd.Template, mix: qd.Template,
    periodic: qd.Template, packed: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    full = padded(n * team)
    while qd.graph.do_while(left):
        relax(
            left, p, k, n, full, near, torus, c, solids, parts, bodies, b, e, s, trial, pressure, team, hurried, walled,
            coupled, uniform, mix, periodic, packed,
        )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def touch_stage(p: Particles, numbers: StepNumbers, solids: Solids, parts: Parts, b: Clusters, s: Scratch):
    """Contact, after an iteration of the density constraint that is compiled by hand."""
    k = values_of(numbers)
    n = k.count
    touch(
        p, s.predicted, s.half, s.records, n, k.radius, k.support, k.solids, solids, parts, b, s.clear, s.wall, s.wall_gradient,
        s.nearby, True, 0, True, False, False,
    )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def finish_stage(
    p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: SpreadingNumbers, b: Clusters,
    s: Scratch, v: Projection, status: Ints, elastic: qd.Template, mix: qd.Template, periodic: qd.Template,
    packed: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    finish(p, k, n, near, torus, m, c, b, s, v, status, elastic, mix, periodic, packed)
