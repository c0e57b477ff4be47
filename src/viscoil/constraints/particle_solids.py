"""Rigid and soft bodies made of particles, as solvers call them (Barreiro et al. 2017, Fig. 1; Macklin et al. 2014).

``mix`` says what kernels are compiled for: 1 rigid bodies, 2 soft ones, 4 soft ones that keep their volume, 8 soft ones that
are stiff; the sum of what is there (ClusterSet.mix), and 0 compiles to nothing.

On a GPU a loop takes as long as it takes to start one, so bodies of all kinds share theirs: an iteration has two for rigid
bodies, two for volumes, one for each turn of the bonds, and the first two of either kind are the same.
"""

import quadrants as qd

from viscoil.constraints.distances import plan_turns, pull_bonds, start_bonds
from viscoil.constraints.shape_matching import sum_shape, take_shape
from viscoil.constraints.volumes import keep_volume, weigh_volume
from viscoil.particles import Floats, Ints, Particles, Vectors
from viscoil.solids.clusters import Clusters, Elastic, locate
from viscoil.solids.teams import add_up, chunks_for, crew, crews, end_of, pace
from viscoil.sph.neighbors import Torus
from viscoil.sph.sums import workers


def turns_of(mix: int) -> int:
    """Turns that bonds take per iteration: four for each of the volumes', twelve where they are stiff."""
    return (12 if mix & 8 else 4) if mix & 2 else 0


def loops_of(mix: int) -> int:
    """Loops of an iteration."""
    return max(2 if mix & 1 else 0, turns_of(mix) + (2 if mix & 4 else 0))


def share_of(loop: int, mix: int) -> tuple[bool, bool]:
    """(whether rigid bodies take part in that loop, whether soft ones do)."""
    return bool(mix & 1) and loop < 2, loop < turns_of(mix) + (2 if mix & 4 else 0)


@qd.func(requires_top_level=True)
def find_clusters(
    p: Particles, n: qd.i32, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic, mix: qd.template(), periodic: qd.template()
):
    """The start of a step: where members are, and how long bonds are."""
    if qd.static(mix > 0):
        locate(p, n, b)
    if qd.static(mix & 2 > 0):
        qd.loop_config(block_dim=128)
        for worker in range(crew(b, False, True)):
            chunk = b.number[2] + worker // qd.static(pace())
            place = worker % qd.static(pace())
            while chunk < chunks_for(place, b.number[3]):
                slot = b.chunk_slot[chunk] + place
                end = end_of(chunk, b)
                c = b.chunk_cluster[chunk]
                if slot < end and slot == b.begin[c]:
                    plan_turns(c, p.inverse_mass[b.index[slot]], dt, e)
                while slot < end:
                    start_bonds(slot, p, torus, b, e, periodic)
                    slot += qd.static(workers())
                chunk += qd.static(crews())


@qd.func
def _soft_part(
    chunk: qd.i32, place: qd.i32, loop: qd.template(), p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32,
    torus: Torus, b: Clusters, e: Elastic, mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What soft bodies do in a loop: volumes first, and bonds last: they are what is seen."""
    slot = b.chunk_slot[chunk] + place
    end = end_of(chunk, b)
    while slot < end:
        if qd.static(mix & 4 > 0 and loop == 0):
            weigh_volume(slot, p, x, start, dt, torus, b, e, periodic)
        elif qd.static(mix & 4 > 0 and loop == 1):
            keep_volume(slot, p, x, start, b, e)
        else:
            pull_bonds(
                slot, qd.static(loop - (2 if mix & 4 else 0)), qd.static(turns_of(mix)), p, x, start, clear, dt, torus, b, e,
                qd.static(mix & 4 > 0), periodic,
            )  # fmt: skip
        slot += qd.static(workers())


@qd.func
def _part(
    chunk: qd.i32, place: qd.i32, loop: qd.template(), p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32,
    torus: Torus, b: Clusters, e: Elastic, mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """What a chunk does in a loop."""
    if qd.static(share_of(loop, mix)[0]):  # noqa: SIM102 (decided when compiled)
        if chunk < b.number[2]:
            if qd.static(loop == 0):
                sum_shape(chunk, place, p, x, start, torus, b, periodic)
            else:
                take_shape(chunk, place, p, x, start, clear, torus, b, periodic)
    if qd.static(share_of(loop, mix)[1]):  # noqa: SIM102
        if chunk >= b.number[2]:
            _soft_part(chunk, place, loop, p, x, start, clear, dt, torus, b, e, mix, periodic)


@qd.func(requires_top_level=True)
def hold_together(
    p: Particles, x: Vectors, half: Ints, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    mix: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """The part of an iteration that comes after density and contact: bodies take back their shapes.

    Particles are in the half[0]-th half of x."""
    for loop in qd.static(range(loops_of(mix))):
        qd.loop_config(block_dim=qd.static(256 if share_of(loop, mix)[0] else 128))
        for worker in range(crew(b, qd.static(share_of(loop, mix)[0]), qd.static(share_of(loop, mix)[1]))):
            chunk = worker // qd.static(pace())
            place = worker % qd.static(pace())
            start = half[0] * (x.shape[0] // 2)
            if qd.static(not share_of(loop, mix)[0]):
                chunk += b.number[2]
            while chunk < chunks_for(place, b.number[qd.static(3 if share_of(loop, mix)[1] else 2)]):
                _part(chunk, place, loop, p, x, start, clear, dt, torus, b, e, mix, periodic)
                chunk += qd.static(crews())
        if qd.static(loop == 0 and mix & 1 > 0):
            add_up(b)
