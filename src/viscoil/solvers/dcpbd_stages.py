"""The stages of a step of DC-PBD (see dcpbd.py), each a kernel: predict, project velocities, settle, density, finish."""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import Substances, gradient_corrections, gradient_of
from viscoil.constraints.contact import clearance, resolve_all
from viscoil.constraints.density import DensityNumbers, correction_of, multiplier_of
from viscoil.constraints.particle_solids import find_clusters, hold_together
from viscoil.constraints.shape_matching import carry_on, fit_twists, rigid_velocities, stiffen
from viscoil.constraints.velocity_projection import (
    Projection,
    ProjectionNumbers,
    advance,
    allowed,
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
from viscoil.constraints.walls import wall_density
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic, note_touch
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.sums import Sums, chunk_totals, grand_total, hand_in, padded, workers
from viscoil.steps.conformation import next_conformation
from viscoil.steps.integrate import corrected_velocities, moved
from viscoil.steps.spreading import SpreadingNumbers, spread_and_commit


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
            path = (x - p.position[i]).norm()
            clear = clearance(p.position[i], k.solids[0], solids, parts) - path
            if clear < k.support[0]:
                clear = qd.min(clear, clearance(x, k.solids[0], solids, parts))
        v.free[i] = free
        v.u[i] = free
        v.held[i] = 0
        s.predicted[i] = x
        s.clear[i] = clear
        if i == 0:
            v.progress[2] = 0


@qd.func(requires_top_level=True)
def _hold(p: Particles, k: StepNumbers, solids: Solids, parts: Parts, s: Scratch, v: Projection):
    """Who touches a solid keeps the velocity that contact leaves it; whom a wall would have to pull is let go."""
    for i in range(k.count[0]):
        if p.inverse_mass[i] > 0.0 and s.clear[i] < k.support[0] and p.cluster[i] < 0:
            if (v.held[i] == 1 or v.held[i] == 2) and v.normal[i].dot(v.residual[i]) > 0.0:
                v.held[i] = 0
            if v.held[i] == 0 or v.held[i] == 3:
                wanted = p.position[i] + k.dt[0] * v.u[i]
                reached = resolve_all(wanted, p.position[i], k.radius[0], k.solids[0], solids, parts, 0.0)
                clings, n, rough, wall = nearest_wall(reached, k.dt[0], k.radius[0], k.solids[0], solids, parts)
                v.normal[i] = n
                v.held[i] = 0
                if (reached - wanted).norm() > 1e-4 * k.radius[0]:
                    v.held[i] = qd.select(rough > 1e6, 2, 1)
                    v.u[i] = (reached - p.position[i]) / k.dt[0]
                elif clings == 1:
                    v.held[i] = 3
                    v.u[i] = wall + n * n.dot(v.u[i] - wall)


@qd.func(requires_top_level=True)
def _begin(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, b: Clusters, s: Scratch, v: Projection, sums: Sums, uniform: qd.template(),
    even: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What a round of the velocity projection starts from: who is held, and b − A u."""
    _hold(p, k, solids, parts, s, v)
    bulk_pressures(v.u, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
    residuals(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, uniform, even, periodic)
    if qd.static(mix & 1 > 0):
        stiffen(p, s.predicted, v.search, torus, b, periodic)
    begin_round(left, k.count[0], c, v, sums)


@qd.func(requires_top_level=True)
def _iterate(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    b: Clusters, s: Scratch, v: Projection, sums: Sums, uniform: qd.template(), even: qd.template(), mix: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """One iteration of conjugate gradients; rigid bodies only look for rigid motions."""
    bulk_pressures(v.search, p, s.predicted, k.count[0], near, torus, k.support[0], m, v, uniform, periodic)
    images(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, uniform, even, periodic)
    steer(left, k.count[0], c, v, sums)
    advance(p, k.count[0], v)
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
    solids: Solids, parts: Parts, b: Clusters, s: Scratch, v: Projection, sums: Sums, uniform: qd.Template,
    even: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """One round of the velocity projection by conjugate gradients: u* → u**."""
    _begin(left, p, k, near, torus, m, c, solids, parts, b, s, v, sums, uniform, even, mix, periodic)
    while qd.graph.do_while(left):
        _iterate(left, p, k, near, torus, m, c, b, s, v, sums, uniform, even, mix, periodic)


@qd.kernel(graph=True, fastcache=True)
def strides_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: ProjectionNumbers,
    solids: Solids, parts: Parts, b: Clusters, s: Scratch, v: Projection, sums: Sums, uniform: qd.Template,
    even: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """The same by Chebyshev's or Jacobi's iteration, two at a time: directions go back and forth between two arrays."""
    _begin(left, p, k, near, torus, m, c, solids, parts, b, s, v, sums, uniform, even, mix, periodic)
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
        images(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, v, sums, uniform, even, periodic)
        qd.loop_config(block_dim=256)
        for worker in range(qd.static(workers())):
            total = grand_total(worker, k.count[0], sums)
            if worker == 0:
                v.scalars[4] = total[1] / qd.max(total[2], 1e-30)
                left[()] = qd.max(left[()] - 1, 0)
        for i in range(k.count[0]):
            v.search[i] = p.inverse_mass[i] * v.image[i] / qd.max(v.scalars[4], 1e-30)


@qd.kernel(graph=True, fastcache=True)
def settle_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, b: Clusters, s: Scratch, v: Projection,
    sums: Sums, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x** = x⁰ + Δt u**; where that aimed at is kept in ``free``. Accounts of what the projection left: r·wr, u·r and the
    power of the friction, Δt u·F(u) = u·(r − (u* − u)/w)."""
    qd.loop_config(block_dim=256)
    for i in range(padded(k.count[0])):
        account = vec3(0.0)
        if i < k.count[0]:
            if p.inverse_mass[i] > 0.0:
                w = p.inverse_mass[i]
                u = v.u[i]
                r = v.residual[i]
                possible = allowed(r, v.normal[i], v.held[i])
                account = vec3(
                    w * possible.dot(possible), u.dot(possible), u.dot((v.free[i] - u) / w - r)
                )
                x = p.position[i] + k.dt[0] * u
                v.free[i] = x
                s.clear[i] -= (x - s.predicted[i]).norm()
                if s.clear[i] < k.support[0]:
                    x = resolve_all(x, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
                s.predicted[i] = x
            s.predicted[s.predicted.shape[0] // 2 + i] = s.predicted[i]
            if i == 0:
                s.half[0] = k.iterations[0] % 2  # so that the last iteration writes the first half
        hand_in(i, k.count[0], account, sums)
    chunk_totals(k.count[0], sums)
    if qd.static(mix & 1 > 0):  # as they were before contact, which comes back in the iterations
        fit_twists(p, p.position, v.u, torus, b, periodic)
        carry_on(p, k.dt[0], 0.0, 0.0, 0.0, torus, b, s.predicted, s.predicted.shape[0] // 2, periodic)


@qd.func(requires_top_level=True)
def _weigh(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids, parts: Parts,
    s: Scratch, walled: qd.template(), uniform: qd.template(), mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Multipliers of the density constraint, walls included."""
    for i in range(k.count[0]):
        first = s.half[0] * (s.predicted.shape[0] // 2)
        value = 0.0
        if p.inverse_mass[i] > 0.0:
            wall = 0.0
            toward = vec3(0.0)
            if qd.static(walled):
                if s.clear[i] < k.support[0]:
                    share, slope = wall_density(s.predicted[first + i], k.support[0], k.solids[0], solids, parts, 0)
                    wall = share
                    toward = slope
                s.wall_gradient[i] = toward
            found, _error = multiplier_of(
                i, p, s.predicted, first, near, torus, c, wall, toward, False, uniform, periodic, mix > 0
            )
            value = found
        s.multiplier[i] = value
        if i == 0:
            s.half[1] = s.half[0]


@qd.func(requires_top_level=True)
def _move(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, b: Clusters, s: Scratch, walled: qd.template(), uniform: qd.template(), mix: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """x* ← x* + Δx, and contact: from one half of the array to the other, so that all read what was there before."""
    for i in range(k.count[0]):
        length = s.predicted.shape[0] // 2
        first = s.half[1] * length
        place = s.predicted[first + i]
        if p.inverse_mass[i] > 0.0:
            toward = vec3(0.0)
            if qd.static(walled):
                toward = s.wall_gradient[i]
            change = correction_of(
                i, p, s.predicted, first, near, torus, c, s.multiplier, toward, 1, uniform, periodic, mix > 0
            )
            place += change
            s.clear[i] -= change.norm()
            if s.clear[i] < k.support[0]:
                wanted = place
                place = resolve_all(wanted, p.position[i], k.radius[0], k.solids[0], solids, parts, p.inverse_mass[i])
                if qd.static(mix & 1 > 0):
                    note_touch(i, p, wanted, place, k.radius[0], b)
        s.predicted[length - first + i] = place
        if i == 0:
            s.half[0] = 1 - s.half[1]
            left[()] = qd.max(left[()] - 1, 0)


@qd.kernel(graph=True, fastcache=True)
def solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DensityNumbers, solids: Solids,
    parts: Parts, b: Clusters, e: Elastic, s: Scratch, walled: qd.Template, uniform: qd.Template, mix: qd.Template,
    periodic: qd.Template,
):  # fmt: skip
    """x** → x: density and contact, and bodies take back their shapes."""
    for _ in range(1):
        left[()] = k.iterations[0]
    while qd.graph.do_while(left):
        _weigh(p, k, near, torus, c, solids, parts, s, walled, uniform, mix, periodic)
        _move(left, p, k, near, torus, c, solids, parts, b, s, walled, uniform, mix, periodic)
        hold_together(
            p, s.predicted, s.half[0] * (s.predicted.shape[0] // 2), s.clear, k.dt[0], torus, b, e, mix, periodic
        )


@qd.kernel(graph=True, fastcache=True)
def finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, m: Substances, c: SpreadingNumbers, b: Clusters,
    s: Scratch, v: Projection, status: Ints, elastic: qd.Template, mix: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """u with what the positions were corrected by, the conformation at the end of the step, and even distances."""
    corrected_velocities(p, k.count[0], k.dt[0], k.farthest[0], v.free, s.predicted, v.u, status)
    if qd.static(mix & 1 > 0):
        rigid_velocities(p, s.predicted, k.dt[0], torus, b, v.u, periodic)
    if qd.static(elastic):
        for i in range(k.count[0]):
            if p.inverse_mass[i] != 0.0:
                gradient = gradient_of(i, v.u, s.predicted, p, near, torus, k.support[0], s.inverse, periodic)
                p.conformation[i] = next_conformation(p.conformation[i], gradient, k.dt[0], p.material[i], m, s.clamped)
    spread_and_commit(p, s.predicted, k.count[0], k.dt[0], near, torus, k.support[0], c, m, v.u, periodic)
