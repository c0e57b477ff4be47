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
from viscoil.constraints.particle_solids import find_clusters
from viscoil.constraints.shape_matching import fit_centres, stiffen
from viscoil.constraints.velocity_projection import (
    Projection,
    ProjectionNumbers,
    advance,
    begin_round,
    bulk_pressures,
    first_stride,
    images,
    remember,
    residuals,
    set_up,
    steer,
    stride,
)
from viscoil.constraints.wall_friction import nearest_wall
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.solids.coupling import Bodies, approach, settle_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.sums import Sums, grand_total, workers
from viscoil.steps.integrate import moved


@dataclass(frozen=True)
class Scratch:
    """Memory of one step besides the projection's."""

    predicted: Vectors  # x* [m]; twice the capacity, because the density iterations go back and forth between two halves
    wall_gradient: Vectors  # [1/m]
    multiplier: Floats  # of the density constraint [m²]
    clear: Floats  # at least this far from all solids [m]
    inverse: Matrices  # B⁻¹
    clamped: Ints  # eigenvalues of Q that were brought back
    half: Ints  # that the next density iteration reads: before its multipliers, after them


@qd.func(requires_top_level=True)
def _predict(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, v: Projection):
    """u* and x*. Contact comes later: what falls far in a step would be flattened before its strain is seen."""
    for i in range(k.count[0]):
        gravity = vec3(k.gx[0], k.gy[0], k.gz[0])
        x = moved(i, p, k.dt[0], gravity, solids)
        clear = 1e30
        free = (x - p.position[i]) / k.dt[0]
        if p.inverse_mass[i] > 0.0:
            free = p.velocity[i] + k.dt[0] * gravity
            clear = clearance_on_way(p.position[i], x, k.solids[0], solids, parts)
        v.free[i] = free
        v.u[i] = free
        v.held[i] = 0
        s.predicted[i] = x
        s.clear[i] = clear
        if i == 0:
            v.progress[2] = 0


@qd.func(requires_top_level=True)
def _hold(
    p: Particles, k: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, v: Projection,
    coupled: qd.template(),
):  # fmt: skip
    """Who touches a solid keeps the velocity that contact leaves it; whom a wall would have to pull is let go."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0] and p.cluster[i] < 0:
            if (v.held[i] == 1 or v.held[i] == 2) and v.normal[i].dot(v.residual[i]) > 0.0:
                v.held[i] = 0
            before = v.u[i]
            if v.held[i] == 0 or v.held[i] == 3:
                wanted = p.position[i] + k.dt[0] * v.u[i]
                reached = resolve_all(wanted, p.position[i], k.radius[0], k.solids[0], solids, parts, 0.0)
                clings, n, rough, wall, solid = nearest_wall(reached, k.dt[0], k.radius[0], k.solids[0], solids, parts)
                v.normal[i] = n
                v.held[i] = 0
                if (reached - wanted).norm() > 1e-4 * k.radius[0]:
                    v.held[i] = qd.select(rough > 1e6, 2, 1)
                    v.u[i] = (reached - p.position[i]) / k.dt[0]
                elif clings == 1:
                    v.held[i] = 3
                    v.u[i] = wall + n * n.dot(v.u[i] - wall)
                if qd.static(coupled):
                    v.holder[i] = -1
                    if solid >= 0:
                        v.holder[i] = solids.body[solid]
            if qd.static(coupled):  # noqa: SIM102 (decided when compiled)
                if v.held[i] > 0 and v.holder[i] >= 0:
                    hold_on(i, k.dt[0] * (v.u[i] - before), s.predicted[i], p.inverse_mass[i], v, solids, bodies)


@qd.func(requires_top_level=True)
def _begin(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows, sums: Sums,
    coupled: qd.template(), mix: qd.template(), uniform: qd.template(), even: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What a round of the velocity projection starts from: who is held, and b − A u."""
    _hold(p, k, solids, parts, bodies, s, v, coupled)
    if qd.static(coupled):
        yield_to_held(solids, bodies, rows)
        follow(v.u, s.predicted, k.count[0], k.dt[0], v, solids, bodies, rows)
    bulk_pressures(v.u, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
    residuals(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, coupled, uniform, even, periodic)
    if qd.static(coupled):
        gather(v.residual, s.predicted, k.count[0], k.dt[0], v, solids, bodies)
        start_bodies(k.dt[0], v, solids, bodies, rows)
        follow(v.search, s.predicted, k.count[0], k.dt[0], v, solids, bodies, rows)
    if qd.static(mix & 1 > 0):
        fit_centres(p, s.predicted, torus, b, periodic)
        stiffen(p, s.predicted, v.search, torus, b, periodic)
    begin_round(left, k.count[0], c, v, sums, coupled)


@qd.func(requires_top_level=True)
def _iterate(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows, sums: Sums,
    coupled: qd.template(), mix: qd.template(), uniform: qd.template(), even: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """One iteration of conjugate gradients."""
    bulk_pressures(v.search, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
    images(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, coupled, uniform, even, periodic)
    steer(left, k.count[0], c, v, sums, coupled)
    advance(p, k.count[0], v)
    if qd.static(coupled):
        gather(v.image, s.predicted, k.count[0], k.dt[0], v, solids, bodies)
        steer_bodies(k.dt[0], v, solids, bodies, rows)
        follow(v.search, s.predicted, k.count[0], k.dt[0], v, solids, bodies, rows)
    if qd.static(mix & 1 > 0):
        stiffen(p, s.predicted, v.search, torus, b, periodic)


@qd.kernel(graph=True, fastcache=True)
def predict_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, b: Clusters, e: Elastic, s: Scratch,
    v: Projection, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    _predict(p, k, solids, parts, s, v)
    find_clusters(p, k.count[0], torus, b, e, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def prepare_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers, s: Scratch,
    v: Projection, elastic: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Viscosities, and what the material remembers."""
    if qd.static(elastic):
        gradient_corrections(p, s.predicted, k.count[0], near, torus, k.support[0], 6, s.inverse, periodic)
    set_up(p, k.count[0], k.dt[0], m, c, s.inverse, v, elastic)
    if qd.static(elastic):
        remember(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], v, periodic)


@qd.kernel(graph=True, fastcache=True)
def gradients_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows, sums: Sums,
    coupled: qd.Template, mix: qd.Template, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """One round of the velocity projection by conjugate gradients: u* → u**; bodies then are where that takes them."""
    _begin(
        left, p, k, near, torus, m, c, solids, parts, bodies, b, s, v, rows, sums, coupled, mix, uniform, even, periodic
    )
    while qd.graph.do_while(left):
        _iterate(
            left, p, k, near, torus, m, c, solids, bodies, b, s, v, rows, sums, coupled, mix, uniform, even, periodic
        )
    if qd.static(coupled):
        settle_bodies(solids, bodies)
        approach(s.clear, k.count[0], bodies)


@qd.kernel(graph=True, fastcache=True)
def strides_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, bodies: Bodies, b: Clusters, s: Scratch, v: Projection, rows: BodyRows, sums: Sums,
    mix: qd.Template, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """The same by Chebyshev's or Jacobi's iteration, two at a time: directions go back and forth between two arrays."""
    _begin(left, p, k, near, torus, m, c, solids, parts, bodies, b, s, v, rows, sums, False, mix, uniform, even, periodic)
    first_stride(left, p, k.count[0], c, v)
    while qd.graph.do_while(left):
        bulk_pressures(v.search, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
        stride(
            left, v.search, v.direction, p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, False,
            uniform, even, periodic,
        )  # fmt: skip
        bulk_pressures(v.direction, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
        stride(
            left, v.direction, v.search, p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, True,
            uniform, even, periodic,
        )  # fmt: skip
    if qd.static(mix & 1 > 0):
        stiffen(p, s.predicted, v.u, torus, b, periodic)


@qd.kernel(graph=True, fastcache=True)
def estimate_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    s: Scratch, v: Projection, sums: Sums, number: Ints, uniform: qd.Template, even: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """The largest eigenvalue of w A, by power iteration from velocities that alternate wildly: into scalars[4]."""
    for i in range(k.count[0]):
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
        bulk_pressures(v.search, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
        images(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, False, uniform, even, periodic)
        qd.loop_config(block_dim=256)
        for worker in range(qd.static(workers())):
            total = grand_total(worker, k.count[0], sums)
            if worker == 0:
                v.scalars[4] = total[1] / qd.max(total[2], 1e-30)
                left[()] = qd.max(left[()] - 1, 0)
        for i in range(k.count[0]):
            v.search[i] = p.inverse_mass[i] * v.image[i] / qd.max(v.scalars[4], 1e-30)
