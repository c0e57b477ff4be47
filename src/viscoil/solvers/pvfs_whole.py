"""A step of PVFS in which all act at once, as one graph: what a GPU runs when nobody asks for the time of its stages."""

import quadrants as qd

from viscoil.constraints.double_density import DoubleDensityNumbers
from viscoil.particles import Flag, Floats, Ints, Particles
from viscoil.solids.coupling import Bodies
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.pvfs_stages import (
    Scratch,
    SweepNumbers,
    finish,
    meet_bodies,
    predict,
    relax_together,
    springs_together,
    viscosity_together,
)
from viscoil.solvers.solver import StepNumbers
from viscoil.sph.finding import Cells, SearchNumbers, cells_to_scan, search
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.springs import Plasticity, SpringRows
from viscoil.steps.impulses import ImpulseNumbers


@qd.kernel(graph=True, fastcache=True)
def whole_step(
    steps_left: Flag, p: Particles, k: StepNumbers, cells: Cells, torus: Torus, sk: SearchNumbers, near: NeighborList,
    i: ImpulseNumbers, c: Plasticity, springs: SpringRows, d: DoubleDensityNumbers, n: SweepNumbers, solids: Solids,
    parts: Parts, bodies: Bodies, stickiness: Floats, s: Scratch, status: Ints, damping: qd.Template, springy: qd.Template,
    growing: qd.Template, single: qd.Template, uniform: qd.Template, touching: qd.Template, sweeps: qd.Template,
    implicit: qd.Template, periodic: qd.Template, depth: qd.Template,
):  # fmt: skip
    """Algorithm 1, as often as the numbers say. ``sweeps``: towards the velocities of bodies that fluid can move, 0 where there
    are none."""
    count = k.count[0]  # once: on a GPU every bound that a loop reads from memory is a launch of its own
    scanned = cells_to_scan(torus)
    steps_left[()] = k.steps[0]
    while qd.graph.do_while(steps_left):
        predict(p, k, count, solids, s, n, springy)
        search(cells, torus, scanned, s.x, p.position, s.rank, p.inverse_mass, count, sk.reach2, near, periodic, depth)
        if qd.static(damping):
            viscosity_together(p, k, count, near, torus, i, s, single, uniform, periodic)
        if qd.static(springy):
            springs_together(p, k, count, near, torus, c, springs, s, single, growing, uniform, periodic)
        relax_together(p, k, count, near, torus, d, s, uniform, periodic)
        for _ in qd.static(range(sweeps)):
            meet_bodies(p, k, count, solids, parts, bodies, stickiness, s, implicit)
        finish(p, k, count, torus, solids, parts, bodies, stickiness, s, status, touching, sweeps > 0 and implicit, periodic)
        steps_left[()] -= 1
