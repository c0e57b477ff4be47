"""Velocities of DC-PBD: where particles would go, who is held by solids, and the projection onto the conformation constraint.

With bodies that fluid can move (``coupled``) those are unknowns of conjugate gradients too, see body_projection.py. Rigid
bodies made of particles (``mix``) only look for rigid motions: their search directions are replaced by the nearest ones. That
is an orthogonal projection where masses are the metric, as they are here: the system stays symmetric, and momentum exact.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.body_projection import (
    BodyRows,
    follow,
    gather,
    hold_on,
    start_bodies,
    steer_bodies,
    yield_to_held,
)
from viscoil.constraints.conformation import Substances, gradient_corrections
from viscoil.constraints.contact import clearance_on_way, resolve_all
from viscoil.constraints.nearby import Nearby, lists, nobody_nearby, note, threads_beside
from viscoil.constraints.particle_solids import find_clusters
from viscoil.constraints.shape_matching import fit_and_stiffen, stiffen, sum_twist, take_twists
from viscoil.constraints.velocity_projection import (
    Projection,
    ProjectionNumbers,
    advance,
    advance_one,
    begin_with_bodies,
    bulk_pressures,
    first_stride,
    images,
    pack_search,
    remember,
    residuals,
    set_up,
    stride,
)
from viscoil.constraints.wall_friction import nearest_wall
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.solids.coupling import Bodies, approach, settle_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solids.teams import end_of
from viscoil.solvers.solver import StepNumbers, StepValues, values_of
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import Records, put_place, put_velocity
from viscoil.sph.sums import Sums, block_size, grand_total, on_gpu, padded, workers
from viscoil.steps.integrate import moved


@dataclass(frozen=True)
class Scratch:
    """Memory of one step besides the projection's."""

    predicted: Vectors  # x* [m]; twice the capacity, because the density iterations go back and forth between two halves
    wall_gradient: Vectors  # [1/m]
    wall: Floats  # density of the walls, relative
    multiplier: Floats  # of the density constraint [m²], where records do not hold it
    clear: Floats  # at least this far from all solids [m]
    inverse: Matrices  # B⁻¹
    clamped: Ints  # eigenvalues of Q that were brought back
    half: Ints  # of ``predicted``: that holds the places, that a shift reads; and if it is the last shift
    used: Ints  # iterations of the density constraint: in this step, since last asked
    records: Records  # of velocity_projection.py, then the two halves of density_iteration.py
    nearby: Nearby  # who is beside solids


@qd.func(requires_top_level=True)
def _predict(
    p: Particles, k: StepValues, n: qd.i32, full: qd.i32, solids: Solids, parts: Parts, s: Scratch, v: Projection,
    listed: qd.template(),
):  # fmt: skip
    """u* and x*. Contact comes later: what falls far in a step would be flattened before its strain is seen."""
    qd.loop_config(block_dim=256)
    for i in range(full):
        clear = 1e30
        if i < n:
            gravity = vec3(k.gx, k.gy, k.gz)
            x = moved(i, p, k.dt, gravity, solids)
            free = (x - p.position[i]) / k.dt
            if p.inverse_mass[i] > 0.0:
                free = p.velocity[i] + k.dt * gravity
                clear = clearance_on_way(p.position[i], x, k.solids, solids, parts)
            v.free[i] = free
            v.u[i] = free
            v.held[i] = 0
            s.predicted[i] = x
            s.clear[i] = clear
            if i == 0:
                v.progress[2] = 0
        if qd.static(listed):
            note(i, qd.select(clear < k.support, 1, 0), s.nearby)


@qd.func(requires_top_level=True)
def _hold(
    p: Particles, k: StepValues, n: qd.i32, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, v: Projection,
    coupled: qd.template(), packed: qd.template(), listed: qd.template(),
):  # fmt: skip
    """Who touches a solid keeps the velocity that contact leaves it; whom a wall would have to pull is let go."""
    if qd.static(listed):
        for t in range(qd.static(threads_beside())):
            at = t
            while at < s.nearby.number[0]:
                _hold_one(s.nearby.index[at], p, k, solids, parts, bodies, s, v, coupled)
                at += qd.static(threads_beside())
    else:
        for i in range(n):
            if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support and p.cluster[i] < 0:
                _hold_one(i, p, k, solids, parts, bodies, s, v, coupled)
    if qd.static(packed):
        for i in range(n):
            put_place(s.records, i, s.predicted[i], k.support)
            put_velocity(s.records, i, v.u[i])
            put_place(s.records, s.records.words.shape[0] // 4 + i, s.predicted[i], k.support)  # beside search directions


@qd.func
def _hold_one(
    i: qd.i32, p: Particles, k: StepValues, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, v: Projection,
    coupled: qd.template(),
):  # fmt: skip
    """The same for one of those beside a solid."""
    if (v.held[i] == 1 or v.held[i] == 2) and v.normal[i].dot(v.residual[i]) > 0.0:
        v.held[i] = 0
    before = v.u[i]
    if v.held[i] == 0 or v.held[i] == 3:
        wanted = p.position[i] + k.dt * v.u[i]
        reached = resolve_all(wanted, p.position[i], k.radius, k.solids, solids, parts, 0.0)
        clings, normal, rough, wall, solid = nearest_wall(reached, k.dt, k.radius, k.solids, solids, parts)
        v.normal[i] = normal
        v.held[i] = 0
        if (reached - wanted).norm() > 1e-4 * k.radius:
            v.held[i] = qd.select(rough > 1e6, 2, 1)
            v.u[i] = (reached - p.position[i]) / k.dt
        elif clings == 1:
            v.held[i] = 3
            v.u[i] = wall + normal * normal.dot(v.u[i] - wall)
        if qd.static(coupled):
            v.holder[i] = -1
            if solid >= 0:
                v.holder[i] = solids.body[solid]
    if qd.static(coupled):  # noqa: SIM102 (decided when compiled)
        if v.held[i] > 0 and v.holder[i] >= 0:
            hold_on(i, k.dt * (v.u[i] - before), s.predicted[i], p.inverse_mass[i], v, solids, bodies)


@qd.func(requires_top_level=True)
def begin(
    left: Flag, rounds_left: Flag, p: Particles, k: StepValues, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus,
    m: Substances, c: ProjectionNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection,
    rows: BodyRows, sums: Sums, coupled: qd.template(), mix: qd.template(), team: qd.template(), uniform: qd.template(),
    even: qd.template(), periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """What a round of the velocity projection starts from: who is held, and b − A u. ``full`` = padded(n · team)."""
    _hold(p, k, n, solids, parts, bodies, s, v, coupled, packed, qd.static(lists(coupled, mix)))
    if qd.static(coupled):
        yield_to_held(solids, bodies, rows)
        follow(v.u, s.predicted, n, k.dt, v, solids, bodies, rows)
    bulk_pressures(
        v.u, p, s.predicted, n, full, near, torus, k.support, m, v, s.records, team, uniform, periodic, packed, False
    )
    residuals(
        left, rounds_left, p, s.predicted, n, full, k.dt, near, torus, k.support, c, v, s.records, sums, coupled, team, uniform,
        even, periodic, packed,
    )  # fmt: skip
    if qd.static(coupled):
        gather(v.residual, s.predicted, n, k.dt, v, solids, bodies)
        start_bodies(k.dt, v, solids, bodies, rows)
        follow(v.search, s.predicted, n, k.dt, v, solids, bodies, rows)
    if qd.static(mix & 1 > 0):
        fit_and_stiffen(s.predicted, v.search, torus, b, periodic)
        if qd.static(packed):
            pack_search(n, v, s.records)
    if qd.static(coupled):
        begin_with_bodies(left, rounds_left, n * team, c, v, sums, team)


@qd.func(requires_top_level=True)
def _advance_bodies(
    p: Particles, n: qd.i32, full: qd.i32, torus: Torus, b: Clusters, s: Scratch, v: Projection, periodic: qd.template()
):
    """Everything advances, and search directions of rigid bodies made of particles are replaced by rigid motions.

    On a GPU blocks of the same loop advance the members of a body and add them up: one kernel less."""
    if qd.static(on_gpu()):
        qd.loop_config(block_dim=256)
        for i in range(full):
            if i < n and (p.cluster[i] < 0 or b.kind[p.cluster[i]] != 0):
                advance_one(i, p, v, s.records, False)
            chunk = i // 256
            while chunk < b.number[2]:
                slot = b.chunk_slot[chunk] + i % 256
                if slot < end_of(chunk, b):
                    advance_one(b.index[slot], p, v, s.records, False)
                sum_twist(chunk, i % 256, s.predicted, v.search, torus, b, periodic)
                chunk += full // 256
        take_twists(s.predicted, v.search, torus, b, periodic)
    else:
        advance(p, n, v, s.records, False)
        stiffen(s.predicted, v.search, torus, b, periodic)


@qd.func(requires_top_level=True)
def iterate(
    left: Flag, p: Particles, k: StepValues, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus, m: Substances,
    c: ProjectionNumbers, solids: Solids, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows, sums: Sums,
    coupled: qd.template(), mix: qd.template(), team: qd.template(), uniform: qd.template(), even: qd.template(),
    periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """One iteration of conjugate gradients."""
    bulk_pressures(
        v.search, p, s.predicted, n, full, near, torus, k.support, m, v, s.records, team, uniform, periodic, packed, True
    )
    images(
        left, p, s.predicted, n, full, k.dt, near, torus, k.support, c, v, s.records, sums, True, coupled, team, uniform, even,
        periodic, packed,
    )  # fmt: skip
    if qd.static(mix & 1 > 0):
        _advance_bodies(p, n, full, torus, b, s, v, periodic)
        if qd.static(packed):
            pack_search(n, v, s.records)
    else:
        advance(p, n, v, s.records, packed)
    if qd.static(coupled):
        gather(v.image, s.predicted, n, k.dt, v, solids, bodies)
        steer_bodies(k.dt, v, solids, bodies, rows)
        follow(v.search, s.predicted, n, k.dt, v, solids, bodies, rows)


@qd.func(requires_top_level=True)
def predict(
    p: Particles, k: StepValues, n: qd.i32, full: qd.i32, torus: Torus, solids: Solids, parts: Parts, b: Clusters, e: Elastic,
    s: Scratch, v: Projection, coupled: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Where particles would go, and where bodies made of them are. ``full`` = padded(n)."""
    _predict(p, k, n, full, solids, parts, s, v, qd.static(lists(coupled, mix)))
    find_clusters(p, n, k.dt, torus, b, e, mix, periodic)


@qd.func(requires_top_level=True)
def prepare(
    p: Particles, k: StepValues, n: qd.i32, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers, s: Scratch,
    v: Projection, elastic: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Viscosities, and what the material remembers."""
    if qd.static(elastic):
        gradient_corrections(p, s.predicted, n, near, torus, k.support, 6, s.inverse, periodic)
    set_up(p, n, k.dt, m, c, s.inverse, v, elastic)
    if qd.static(elastic):
        remember(p, s.predicted, n, k.dt, near, torus, k.support, v, periodic)


@qd.func(requires_top_level=True)
def end_round(k: StepValues, n: qd.i32, solids: Solids, bodies: Bodies, s: Scratch, coupled: qd.template()):
    """Bodies are where the round has taken them."""
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, n, bodies)


@qd.kernel(graph=True, fastcache=True)
def predict_stage(
    p: Particles, numbers: StepNumbers, torus: Torus, solids: Solids, parts: Parts, b: Clusters, e: Elastic, s: Scratch,
    v: Projection, coupled: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    nobody_nearby(s.nearby)
    predict(p, k, n, padded(n), torus, solids, parts, b, e, s, v, coupled, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def prepare_stage(
    p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers, s: Scratch,
    v: Projection, elastic: qd.Template, periodic: qd.Template,
):  # fmt: skip
    k = values_of(numbers)
    n = k.count
    prepare(p, k, n, near, torus, m, c, s, v, elastic, periodic)


@qd.kernel(graph=True, fastcache=True)
def hold_stage(p: Particles, numbers: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, v: Projection):
    """Who is held, before a round of the projection that is compiled by hand."""
    k = values_of(numbers)
    n = k.count
    _hold(p, k, n, solids, parts, bodies, s, v, False, False, False)


@qd.kernel(graph=True, fastcache=True)
def gradients_stage(
    left: Flag, rounds_left: Flag, p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, m: Substances,
    c: ProjectionNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows,
    sums: Sums, coupled: qd.Template, mix: qd.Template, team: qd.Template, uniform: qd.Template, even: qd.Template,
    periodic: qd.Template, packed: qd.Template,
):  # fmt: skip
    """One round of the velocity projection by conjugate gradients: u* → u**."""
    k = values_of(numbers)
    n = k.count
    full = padded(n * team, qd.static(block_size(team)))
    begin(
        left, rounds_left, p, k, n, full, near, torus, m, c, solids, parts, bodies, b, s, v, rows, sums, coupled, mix, team,
        uniform, even, periodic, packed,
    )  # fmt: skip
    while qd.graph.do_while(left):
        iterate(
            left, p, k, n, full, near, torus, m, c, solids, bodies, b, s, v, rows, sums, coupled, mix, team, uniform, even,
            periodic, packed,
        )  # fmt: skip
    end_round(k, n, solids, bodies, s, coupled)


@qd.kernel(graph=True, fastcache=True)
def strides_stage(
    left: Flag, rounds_left: Flag, p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, m: Substances,
    c: ProjectionNumbers, solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows,
    sums: Sums, mix: qd.Template, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """The same by Chebyshev's or Jacobi's iteration, two at a time: directions go back and forth between two arrays."""
    k = values_of(numbers)
    n = k.count
    full = padded(n)
    begin(
        left, rounds_left, p, k, n, full, near, torus, m, c, solids, parts, bodies, b, s, v, rows, sums, False, mix, 1, uniform,
        even, periodic, False,
    )  # fmt: skip
    first_stride(left, p, n, c, v)
    while qd.graph.do_while(left):
        bulk_pressures(v.search, p, s.predicted, n, full, near, torus, k.support, m, v, s.records, 1, uniform, periodic)
        stride(
            left, v.search, v.direction, p, s.predicted, n, k.dt, near, torus, k.support, c, v, False,
            uniform, even, periodic,
        )  # fmt: skip
        bulk_pressures(
            v.direction, p, s.predicted, n, full, near, torus, k.support, m, v, s.records, 1, uniform, periodic
        )
        stride(
            left, v.direction, v.search, p, s.predicted, n, k.dt, near, torus, k.support, c, v, True,
            uniform, even, periodic,
        )  # fmt: skip
    if qd.static(mix & 1 > 0):
        stiffen(s.predicted, v.u, torus, b, periodic)


@qd.kernel(graph=True, fastcache=True)
def estimate_stage(
    left: Flag, p: Particles, numbers: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    s: Scratch, v: Projection, sums: Sums, number: Ints, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """The largest eigenvalue of w A, by power iteration from velocities that alternate wildly: into scalars[4]."""
    k = values_of(numbers)
    n = k.count
    full = padded(n)
    for i in range(n):
        v.residual[i] = vec3(0.0)
        v.search[i] = vec3(0.0)
        if p.inverse_mass[i] > 0.0:
            mixed = qd.cast(p.id[i], qd.u32) * qd.u32(0x9E3779B1)
            mixed = (mixed ^ (mixed >> 15)) * qd.u32(0x85EBCA77)
            for axis in qd.static(range(3)):
                v.search[i][axis] = qd.cast((mixed >> (10 * axis)) & 1023, qd.f32) / 511.5 - 1.0
        if i == 0:
            left[()] = number[0]
    while qd.graph.do_while(left):
        bulk_pressures(v.search, p, s.predicted, n, full, near, torus, k.support, m, v, s.records, 1, uniform, periodic)
        images(
            left, p, s.predicted, n, full, k.dt, near, torus, k.support, c, v, s.records, sums, False, False, 1, uniform, even,
            periodic,
        )  # fmt: skip
        qd.loop_config(block_dim=256)
        for worker in range(qd.static(workers())):
            total = grand_total(worker, n, sums)
            if worker == 0:
                v.scalars[4] = total[1] / qd.max(total[2], 1e-30)
                left[()] = qd.max(left[()] - 1, 0)
        for i in range(n):
            v.search[i] = p.inverse_mass[i] * v.image[i] / qd.max(v.scalars[4], 1e-30)
