"""Rigid and soft bodies made of particles, as solvers call them (Barreiro et al. 2017, Fig. 1; Macklin et al. 2014).

``mix`` says what kernels are compiled for: 1 rigid bodies, 2 soft ones, 4 soft ones that keep their volume, 8 soft ones that
are stiff; the sum of what is there (ClusterSet.mix), and 0 compiles to nothing.
"""

import quadrants as qd

from viscoil.constraints.distances import pull_bonds, start_bonds
from viscoil.constraints.shape_matching import fit_centres, fit_twists, match_shapes
from viscoil.constraints.volumes import keep_volumes
from viscoil.particles import Floats, Particles, Vectors
from viscoil.solids.clusters import Clusters, Elastic, locate
from viscoil.sph.neighbors import Torus


@qd.func(requires_top_level=True)
def find_clusters(
    p: Particles, n: qd.i32, torus: Torus, b: Clusters, e: Elastic, mix: qd.template(), periodic: qd.template()
):
    """The start of a step: where members are, how rigid bodies move, how long bonds are."""
    if qd.static(mix > 0):
        locate(p, n, b)
    if qd.static(mix & 1 > 0):
        fit_centres(p, p.position, torus, b, periodic)
        fit_twists(p, p.position, p.velocity, torus, b, periodic)
    if qd.static(mix & 2 > 0):
        start_bonds(p, torus, b, e, periodic)


@qd.func(requires_top_level=True)
def hold_together(
    p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """The part of an iteration that comes after density and contact: bodies take back their shapes.

    Bonds take four or twelve turns for each of the volumes', and come last: they are what is seen.
    """
    if qd.static(mix & 1 > 0):
        match_shapes(p, x, start, clear, torus, b, periodic)
    if qd.static(mix & 2 > 0):
        if qd.static(mix & 4 > 0):
            keep_volumes(p, x, start, clear, dt, torus, b, e, periodic)
        pull_bonds(p, x, start, clear, dt, torus, b, e, 12 if mix & 8 else 4, periodic)
