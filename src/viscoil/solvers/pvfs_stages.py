"""The stages of a step of PVFS (Clavet et al. 2005), each one launch. Line and algorithm numbers are the paper's."""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.double_density import DoubleDensityNumbers, displacements, pressures, relax_colour
from viscoil.constraints.wet_contact import gauge_wet, wet_contact
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, vec3
from viscoil.solids.coupling import Bodies, accept_impulses, settle_bodies, solve_bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.finite import all_finite
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.pairs import displace
from viscoil.sph.schedule import (
    Hits,
    Schedule,
    begin_sweep,
    find_ids,
    in_line,
    next_colour,
    scrambled,
)
from viscoil.sph.springs import Plasticity, SpringRows, adjust, far_springs, spring_colour
from viscoil.sph.springs_at_once import flow_and_pull, loads
from viscoil.steps.impulses import ImpulseNumbers, damp_colour, damped
from viscoil.steps.integrate import moved, note_speed, wrapped

VECTORS = ("x", "before", "touched", "shift", "velocity", "displacement", "pressure")


@dataclass(frozen=True)
class SweepNumbers:
    """One element each."""

    ids: Ints  # ids ever given
    places: Ints  # places in the schedule
    reach: Floats  # radius of the neighbour search [m]


@dataclass(frozen=True)
class Clinging:
    """How materials stick to solids."""

    stickiness: Floats  # [material] factor on the pull


@dataclass(frozen=True)
class Known:
    """Whether springs know where their other ends are in memory."""

    known: Ints


@dataclass(frozen=True)
class Turn:
    """Which way a sweep goes."""

    backwards: Ints


@dataclass(frozen=True)
class Ranked:
    """What the neighbour search reads of particles, with ranks for ids: particles of a cell then come in random order."""

    id: Ints
    inverse_mass: Floats
    position: Vectors


@dataclass(frozen=True)
class Scratch:
    """Memory of one step."""

    x: Vectors  # positions as they are being corrected [m]
    before: Vectors  # positions before the step, moved along with what is extracted from solids [m]
    touched: Vectors  # positions before collisions [m]
    shift: Vectors  # displacements of springs and relaxation, added up [m]
    velocity: Vectors  # [m/s]
    displacement: Vectors  # [m]
    pressure: Vectors  # P Δt² [m], P' Δt² [m], limiter; velocities under way in the viscosity
    load: Floats  # V of impulses; W of springs, or the number of those too long for a sweep
    rank: Ints  # scrambled ids
    where: Ints  # [id] index
    over: Ints  # [1] 1: impulses have to be limited
    drift: Ints  # [1] bits of the farthest that viscosity moved a predicted position [m]
    counts: Ints  # pairs, limited pairs, limited springs


@qd.func(requires_top_level=True)
def predict(p: Particles, k: StepNumbers, count: qd.i32, solids: Solids, s: Scratch, n: SweepNumbers, named: qd.template()):
    """Lines 1–3 and 6–10: gravity, saved positions, predicted positions; where each id is, when ``named``."""
    for i in range(count):
        g = vec3(k.gx[0], k.gy[0], k.gz[0])
        x = moved(i, p, k.dt[0], g, solids)
        s.before[i] = p.position[i]
        s.velocity[i] = (x - p.position[i]) / k.dt[0]
        if p.inverse_mass[i] > 0.0:
            s.velocity[i] = p.velocity[i] + k.dt[0] * g
        s.shift[i] = vec3(0.0)
        s.x[i] = x
        s.rank[i] = scrambled(p.id[i])
        if i == 0:
            s.drift[0] = 0
            s.over[0] = 0
    if qd.static(named):
        find_ids(p.id, count, n.ids[0], s.where)


@qd.kernel(graph=True, fastcache=True)
def predict_stage(p: Particles, k: StepNumbers, solids: Solids, s: Scratch, n: SweepNumbers, named: qd.Template):
    count = k.count[0]
    predict(p, k, count, solids, s, n, named)


@qd.kernel(graph=True, fastcache=True)
def line_up_stage(sequence: Ints, s: Scratch, n: SweepNumbers, schedule: Schedule):
    """Everybody in the fixed random order of a sequential sweep."""
    in_line(sequence, n.ids[0], s.where, schedule)


@qd.func(requires_top_level=True)
def _aim_again(p: Particles, k: StepNumbers, count: qd.i32, s: Scratch):
    """Lines 9–10 with the velocities as they are now."""
    for i in range(count):
        if p.inverse_mass[i] > 0.0:
            s.x[i] = p.position[i] + k.dt[0] * s.velocity[i]


@qd.func(requires_top_level=True)
def _displace(k: StepNumbers, count: qd.i32, s: Scratch):
    for i in range(count):
        displace(i, s.displacement[i], s.x, s.shift)


@qd.kernel(graph=True, fastcache=True)
def viscosity_sweep(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: ImpulseNumbers, schedule: Schedule,
    hits: Hits, s: Scratch, bins: Vectors, single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Line 5 (Algorithm 5), pair after pair."""
    count = k.count[0]
    begin_sweep(left, schedule)
    while qd.graph.do_while(left):
        damp_colour(schedule, p, s.velocity, near, torus, c, hits, single, uniform, periodic)
        next_colour(left, schedule)
    for i in range(count):
        bins[i] = s.x[i]
    _aim_again(p, k, count, s)
    for i in range(count):
        bits = qd.bit_cast((s.x[i] - bins[i]).norm(), qd.i32)
        if bits > s.drift[0]:
            qd.atomic_max(s.drift[0], bits)


@qd.func(requires_top_level=True)
def viscosity_together(
    p: Particles, k: StepNumbers, count: qd.i32, near: NeighborList, torus: Torus, c: ImpulseNumbers, s: Scratch,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Line 5 (Algorithm 5), all pairs together, and lines 9–10."""
    damped(p, s.velocity, count, near, torus, c, s.load, s.over, s.pressure, single, uniform, periodic)
    for i in range(count):
        s.velocity[i] = s.pressure[i]
        if p.inverse_mass[i] > 0.0:
            s.x[i] = p.position[i] + k.dt[0] * s.velocity[i]


@qd.kernel(graph=True, fastcache=True)
def viscosity_at_once(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: ImpulseNumbers, s: Scratch,
    single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    viscosity_together(p, k, count, near, torus, c, s, single, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def adjust_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows, s: Scratch,
    bins: Vectors, n: SweepNumbers, single: qd.Template, growing: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Line 12 (Algorithm 4)."""
    count = k.count[0]
    adjust(
        p, s.x, bins, count, near, torus, c, springs, s.where, n.reach[0], s.drift, s.load,
        single, growing, uniform, periodic,
    )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def spring_sweep(
    left: Flag, p: Particles, torus: Torus, c: Plasticity, springs: SpringRows, schedule: Schedule, n: SweepNumbers, s: Scratch,
    single: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Line 15 (Algorithm 3), spring after spring; those that are too long for a parallel sweep come last."""
    begin_sweep(left, schedule)
    while qd.graph.do_while(left):
        spring_colour(schedule, p, s.x, s.shift, torus, c, springs, single, uniform, periodic)
        next_colour(left, schedule)
    far_springs(p, s.x, s.shift, n.places[0], schedule, torus, c, springs, s.load, single, uniform, periodic)


@qd.func(requires_top_level=True)
def springs_together(
    p: Particles, k: StepNumbers, count: qd.i32, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows,
    s: Scratch, single: qd.template(), growing: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lines 12 and 15 (Algorithms 4 and 3), all springs together."""
    loads(p, count, c, springs, s.where, s.load, single)
    flow_and_pull(
        p, s.x, count, near, torus, c, springs, s.where, s.load, s.displacement, s.counts, single, growing, uniform,
        periodic,
    )  # fmt: skip
    _displace(k, count, s)


@qd.kernel(graph=True, fastcache=True)
def springs_at_once(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: Plasticity, springs: SpringRows, s: Scratch,
    single: qd.Template, growing: qd.Template, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    springs_together(p, k, count, near, torus, c, springs, s, single, growing, uniform, periodic)


@qd.kernel(graph=True, fastcache=True)
def relax_sweep(
    left: Flag, p: Particles, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, schedule: Schedule, hits: Hits,
    s: Scratch, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """Line 16 (Algorithm 2), particle after particle."""
    begin_sweep(left, schedule)
    while qd.graph.do_while(left):
        relax_colour(schedule, p, s.x, s.shift, near, torus, c, hits, uniform, periodic)
        next_colour(left, schedule)


@qd.func(requires_top_level=True)
def relax_together(
    p: Particles, k: StepNumbers, count: qd.i32, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, s: Scratch,
    uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Line 16 (Algorithm 2), all particles together."""
    pressures(p, s.x, count, near, torus, c, s.pressure, s.counts, periodic)
    displacements(p, s.x, count, near, torus, c, s.pressure, s.displacement, s.counts, uniform, periodic)
    _displace(k, count, s)


@qd.kernel(graph=True, fastcache=True)
def relax_at_once(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, s: Scratch,
    uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    relax_together(p, k, count, near, torus, c, s, uniform, periodic)


@qd.func(requires_top_level=True)
def meet_bodies(
    p: Particles, k: StepNumbers, count: qd.i32, solids: Solids, parts: Parts, bodies: Bodies, stickiness: Floats, s: Scratch,
    implicit: qd.template(),
):  # fmt: skip
    """Stages A and B of Algorithm 6: what bodies receive, and how they move then. Implicitly, one sweep towards that."""
    gauge_wet(p, s.x, s.before, count, k.dt[0], k.radius[0], solids, parts, bodies, stickiness, implicit)
    if qd.static(implicit):
        solve_bodies(solids, bodies)
    else:
        accept_impulses(solids, bodies)
        settle_bodies(solids, bodies)


@qd.kernel(graph=True, fastcache=True)
def yield_stage(
    p: Particles, k: StepNumbers, solids: Solids, parts: Parts, bodies: Bodies, stickiness: Floats, s: Scratch,
    implicit: qd.Template,
):  # fmt: skip
    count = k.count[0]
    meet_bodies(p, k, count, solids, parts, bodies, stickiness, s, implicit)


@qd.func(requires_top_level=True)
def finish(
    p: Particles, k: StepNumbers, count: qd.i32, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies,
    stickiness: Floats, s: Scratch, status: Ints, touching: qd.template(), counted: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Lines 17–20: collisions (Algorithm 6) and velocities.

    Velocities change by all that moved the particle, which is (x − x_prev)/Δt without losing the digits places have in common.
    """
    if qd.static(touching):
        for i in range(count):
            s.touched[i] = s.x[i]
        wet_contact(p, s.x, s.before, count, k.dt[0], k.radius[0], k.solids[0], solids, parts, stickiness, counted)
    if qd.static(counted):
        settle_bodies(solids, bodies)
    for i in range(count):
        x = s.x[i]
        v = s.velocity[i]
        if p.inverse_mass[i] <= 0.0:  # sweeps push solids' samples and what nozzles lead as well: back where they belong
            x = moved(i, p, k.dt[0], vec3(0.0), solids)
            v = (x - p.position[i]) / k.dt[0]
        way = x - p.position[i]
        if not all_finite(x) or way.dot(way) > k.farthest[0] * k.farthest[0]:
            qd.atomic_min(status[0], p.id[i])
        elif p.inverse_mass[i] > 0.0:
            change = s.shift[i]
            if qd.static(touching):
                change += (x - s.touched[i]) - (s.before[i] - p.position[i])
            v += change / k.dt[0]
            note_speed(v, status)
            x = wrapped(x, torus, periodic)
        p.velocity[i] = v
        p.position[i] = x


@qd.kernel(graph=True, fastcache=True)
def finish_stage(
    p: Particles, k: StepNumbers, torus: Torus, solids: Solids, parts: Parts, bodies: Bodies, stickiness: Floats, s: Scratch,
    status: Ints, touching: qd.Template, counted: qd.Template, periodic: qd.Template,
):  # fmt: skip
    count = k.count[0]
    finish(p, k, count, torus, solids, parts, bodies, stickiness, s, status, touching, counted, periodic)
