"""A step of IISPH as one graph: what a GPU runs when nobody asks for the time of its stages (see iisph_stages.py)."""

import quadrants as qd

from viscoil.constraints.pressure import PressureField, PressureNumbers, accelerations, sources
from viscoil.particles import Flag, Floats, Ints, Particles
from viscoil.solids.coupling import Bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.iisph_bodies import finish_with_bodies
from viscoil.solvers.iisph_stages import Scratch, advect, finish, iterate, smooth, weigh_all
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.bonds import BondCounts, BondNumbers, BondRows
from viscoil.sph.finding import Cells, SearchNumbers, cells_to_scan, search
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.regions import Regions
from viscoil.sph.sums import Sums, padded
from viscoil.steps.smooth_velocities import SmoothingNumbers
from viscoil.steps.velocity_correction import correct_by_bonds, update_bonds


@qd.func(requires_top_level=True)
def _begin_passes(left: Flag, c: SmoothingNumbers):
    for _ in range(1):
        left[()] = qd.cast(c.passes[0], qd.i32) - 1


@qd.func(requires_top_level=True)
def _count_pass(left: Flag):
    for _ in range(1):
        left[()] = left[()] - 1


@qd.func(requires_top_level=True)
def _first(
    p: Particles, k: StepNumbers, count: qd.i32, scanned: qd.i32, cells: Cells, torus: Torus, sk: SearchNumbers,
    near: NeighborList, c: PressureNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch, f: PressureField,
    bounded: qd.template(), walled: qd.template(), coupled: qd.template(), uniform: qd.template(), periodic: qd.template(),
    depth: qd.template(),
):  # fmt: skip
    """v_adv, lists, densities."""
    advect(p, k, count, solids, s, coupled)
    search(cells, torus, scanned, p.position, p.position, p.id, p.inverse_mass, count, sk.reach2, near, periodic, depth)
    weigh_all(p, p.position, k, count, near, torus, c, solids, parts, bodies, s, f, bounded, walled, coupled, uniform, periodic)


@qd.func(requires_top_level=True)
def _last(
    p: Particles, k: StepNumbers, count: qd.i32, torus: Torus, near: NeighborList, c: PressureNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, s: Scratch, before: Floats, f: PressureField, status: Ints, enclosed: qd.template(),
    coupled: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """Accelerations by the pressure, new velocities and places."""
    accelerations(p, p.position, count, near, torus, c, f, uniform, periodic)
    if qd.static(coupled):
        finish_with_bodies(p, k, count, c, torus, solids, parts, bodies, s, before, f, status, periodic)
    else:
        finish(p, k, count, torus, solids, parts, s, before, f, status, enclosed, periodic)


@qd.kernel(graph=True, fastcache=True)
def whole_step_of_liquid(
    left: Flag, steps_left: Flag, p: Particles, k: StepNumbers, cells: Cells, torus: Torus, sk: SearchNumbers,
    near: NeighborList, c: PressureNumbers, e: SmoothingNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch,
    before: Floats, f: PressureField, sums: Sums, status: Ints, bounded: qd.Template, walled: qd.Template, coupled: qd.Template,
    single: qd.Template, uniform: qd.Template, periodic: qd.Template, depth: qd.Template, enclosed: qd.Template,
    central: qd.Template, controlled: qd.Template, more: qd.Template,
):  # fmt: skip
    """The algorithm of section 3.2, without bonds, as often as the numbers say. ``more``: velocities are smoothed more than
    once."""
    count = k.count[0]  # once: on a GPU every bound that a loop reads from memory is a launch of its own
    full = padded(count)
    scanned = cells_to_scan(torus)
    steps_left[()] = k.steps[0]
    while qd.graph.do_while(steps_left):
        _first(
            p, k, count, scanned, cells, torus, sk, near, c, solids, parts, bodies, s, f, bounded, walled, coupled, uniform,
            periodic, depth,
        )  # fmt: skip
        smooth(p, k, count, near, torus, e, s, f, solids, bodies, False, central, enclosed, coupled, single, uniform, periodic)
        if qd.static(more):
            _begin_passes(left, e)
            while qd.graph.do_while(left):
                smooth(
                    p, k, count, near, torus, e, s, f, solids, bodies, True, central, enclosed, coupled, single, uniform,
                    periodic,
                )  # fmt: skip
                _count_pass(left)
        sources(
            left, p, p.position, count, near, torus, c, s.smoothed, before, f, enclosed, True, uniform, periodic
        )
        while qd.graph.do_while(left):
            iterate(
                left, p, p.position, k, count, full, near, torus, c, f, sums, solids, bodies, controlled, coupled, uniform,
                periodic,
            )  # fmt: skip
        _last(p, k, count, torus, near, c, solids, parts, bodies, s, before, f, status, enclosed, coupled, uniform, periodic)
        steps_left[()] -= 1


@qd.kernel(graph=True, fastcache=True)
def whole_step(
    left: Flag, steps_left: Flag, p: Particles, k: StepNumbers, cells: Cells, torus: Torus, sk: SearchNumbers,
    near: NeighborList, c: PressureNumbers, e: SmoothingNumbers, solids: Solids, parts: Parts, bodies: Bodies, s: Scratch,
    before: Floats, f: PressureField, sums: Sums, status: Ints, bk: BondCounts, b: BondNumbers, bonds: BondRows, m: Regions,
    scheme: qd.Template, splitting: qd.Template, merging: qd.Template, flowing: qd.Template, two_sided: qd.Template,
    normalise: qd.Template, goal: qd.Template, conserve: qd.Template, weakening: qd.Template, bounded: qd.Template,
    walled: qd.Template, coupled: qd.Template, single: qd.Template, uniform: qd.Template, periodic: qd.Template,
    depth: qd.Template, enclosed: qd.Template, central: qd.Template, controlled: qd.Template, more: qd.Template,
):  # fmt: skip
    """The algorithm of section 3.2, as often as the numbers say. ``more``: velocities are smoothed more than once."""
    count = k.count[0]  # once: on a GPU every bound that a loop reads from memory is a launch of its own
    full = padded(count)
    scanned = cells_to_scan(torus)
    steps_left[()] = k.steps[0]
    while qd.graph.do_while(steps_left):
        _first(
            p, k, count, scanned, cells, torus, sk, near, c, solids, parts, bodies, s, f, bounded, walled, coupled, uniform,
            periodic, depth,
        )  # fmt: skip
        update_bonds(
            p, p.position, bk, count, near, torus, b, bonds, m, scheme, single, uniform, periodic, splitting, merging, flowing
        )
        correct_by_bonds(
            p, p.position, bk, count, torus, b, bonds, m, s.velocity, scheme, single, uniform, periodic, two_sided, normalise,
            goal, conserve, weakening, flowing,
        )  # fmt: skip
        smooth(p, k, count, near, torus, e, s, f, solids, bodies, False, central, enclosed, coupled, single, uniform, periodic)
        if qd.static(more):
            _begin_passes(left, e)
            while qd.graph.do_while(left):
                smooth(
                    p, k, count, near, torus, e, s, f, solids, bodies, True, central, enclosed, coupled, single, uniform,
                    periodic,
                )  # fmt: skip
                _count_pass(left)
        sources(
            left, p, p.position, count, near, torus, c, s.smoothed, before, f, enclosed, True, uniform, periodic
        )
        while qd.graph.do_while(left):
            iterate(
                left, p, p.position, k, count, full, near, torus, c, f, sums, solids, bodies, controlled, coupled, uniform,
                periodic,
            )  # fmt: skip
        _last(p, k, count, torus, near, c, solids, parts, bodies, s, before, f, status, enclosed, coupled, uniform, periodic)
        steps_left[()] -= 1
