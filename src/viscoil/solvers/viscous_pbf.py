"""Viscous PBF after Takahashi et al. 2014: the method of Fig. 2 in Barreiro et al. 2017, for comparison.

T. Takahashi, I. Fujishiro, T. Nishita and others, Computers & Graphics 43, 2014, make Position Based Fluids viscous by length
constraints on links between particles, which are made, cut and flow plastically like the springs of Clavet et al. 2005.
Written from the description in Barreiro et al. and from the links of a sister paper (position-based velocity corrections,
2014); its own text was not at hand, and its parameters are not known.

No parameter is a viscosity in Pa s: how stiff links are depends on the iterations and on the time step.
"""

from typing import Annotated, Any, Literal

import quadrants as qd

from viscoil import backend
from viscoil.constraints.density import DensityNumbers
from viscoil.constraints.links import LinkNumbers, flow_and_cut, link_corrections
from viscoil.particles import Flag, Floats, Ints, Particles, Uploaded, allocate_array
from viscoil.solids.sdf import Parts, Solids
from viscoil.solvers.incompressible import (
    Flow,
    Incompressible,
    IncompressibleParams,
    begin_iterations,
    commit,
    density_corrections,
    end_iteration,
    move,
    predict_stage,
)
from viscoil.solvers.solver import StepNumbers, step_numbers
from viscoil.sph.links import LinkRows, agree, carried_links, link_rows, make, recall, store
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.transfer import read
from viscoil.units import Count, Quantity, Slider


class ViscousPBFParams(IncompressibleParams):
    """[solver] method = "viscous_pbf"."""

    method: Literal["viscous_pbf"] = "viscous_pbf"
    iterations: Annotated[int, Count(at_least=1, at_most=1000), Slider(1, 40)] = 20
    """iterations of density and links per step"""
    stiffness: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(1e-3, 1.0, log=True, off=True)] = 0.3
    """k, share of its error a link corrects per iteration; 0 = no links"""
    flow_time: Annotated[float, Quantity("time", above=0.0, infinite=True), Slider(1e-3, 10.0, log=True)] = 0.1
    """time in which lengths at rest follow their links [s]; inf = an elastic body"""
    yield_strain: Annotated[float, Quantity("number", at_least=0.0, at_most=1.0), Slider(0.0, 0.5)] = 0.01
    """γ, strain of a link below which it does not flow"""
    link_reach: Annotated[float, Quantity("number", above=0.0, at_most=1.0)] = 0.7
    """distance below which pairs are linked, in supports"""
    cut_reach: Annotated[float, Quantity("number", above=0.0, at_most=1.0)] = 1.0
    """distance beyond which links are cut, in supports"""
    cut_strain: Annotated[float, Quantity("number", above=0.0, at_most=1.0), Slider(0.01, 1.0, log=True)] = 0.3
    """difference between a link and its length at rest that cuts it, in supports"""
    links: Annotated[int, Count(at_least=4, at_most=128)] = 32
    """most links a particle can have; cannot be changed while a simulation runs"""


@qd.kernel(graph=True, fastcache=True)
def _link_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: LinkNumbers, rows: LinkRows, length: Floats,
    number: Ints, periodic: qd.Template,
):  # fmt: skip
    """Links of the last step beside the new list, and new ones between who is close at the start of the step."""
    recall(p, k.count[0], near, rows, length, number)
    make(p, p.position, k.count[0], near, torus, c.reach[0], rows, length, number, periodic)
    agree(k.count[0], near, length, number)


@qd.kernel(graph=True, fastcache=True)
def _solve_stage(
    left: Flag, p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, d: DensityNumbers, c: LinkNumbers,
    solids: Solids, parts: Parts, s: Flow, length: Floats, number: Ints, walled: qd.Template, uniform: qd.Template,
    controlled: qd.Template, periodic: qd.Template,
):  # fmt: skip
    """x* → density, links and contact, in turn."""
    begin_iterations(left, k, s)
    while qd.graph.do_while(left):
        density_corrections(p, k, near, torus, d, solids, parts, s, walled, uniform, periodic)
        move(p, k, solids, parts, s)
        link_corrections(p, s.predicted, k.count[0], near, torus, c, length, number, s.correction, periodic)
        move(p, k, solids, parts, s)
        end_iteration(left, k, s, controlled)


@qd.kernel(graph=True, fastcache=True)
def _finish_stage(
    p: Particles, k: StepNumbers, near: NeighborList, torus: Torus, c: LinkNumbers, s: Flow, length: Floats,
    rows: LinkRows, total: Ints, status: Ints, periodic: qd.Template,
):  # fmt: skip
    """Lengths at rest flow, links end, velocities follow."""
    flow_and_cut(s.predicted, k.count[0], near, torus, c, length, periodic)
    for _ in range(1):
        total[0] = 0
    store(p, k.count[0], near, length, rows, total)
    commit(p, k, torus, s, status, periodic)


class ViscousPBF(Incompressible):
    """The solver. Links last, so the world carries them."""

    stages = ("integrate", "neighbours", "links", "solve", "velocity")

    def __init__(self, params: ViscousPBFParams, world: Any):
        self._numbers = Uploaded(LinkNumbers)
        self._total = allocate_array(qd.i32, 1)
        self._length = allocate_array(qd.f32, 1)
        self.carried = carried_links(params.links)
        super().__init__(params, world)

    def resize(self, capacity: int) -> None:
        """Scratch for ``capacity`` particles."""
        super().resize(capacity)
        self._number = allocate_array(qd.i32, capacity)

    def _link_numbers(self, world: Any, dt: float) -> LinkNumbers:
        c, h = self.params, world.support
        return self._numbers.set(
            stiffness=c.stiffness, reach=c.link_reach * h if c.stiffness > 0 else 0.0, cut=c.cut_reach * h,
            strain=c.cut_strain * h, flow=min(dt / c.flow_time, 1.0), yielding=c.yield_strain,
        )  # fmt: skip

    def step(self, world: Any, dt: float) -> None:
        """Prediction, links, density and lengths in turn, plastic flow."""
        p, s = world.particles, self.flow
        near, torus, periodic = world.neighbors.list, world.neighbors.torus, world.neighbors.periodic
        solids, parts, left = world.solids.device, world.solids.parts, backend.loop_counter()
        k, c = step_numbers(self._step, world, self.params, dt), self._link_numbers(world, dt)
        rows = link_rows(world)
        if self._length.shape != near.index.shape:  # the list was widened
            self._length = allocate_array(qd.f32, near.index.shape[0])
        length, number = self._length, self._number
        with world.stages("integrate"):
            predict_stage(p, k, solids, parts, s)
        with world.stages("neighbours"):
            world.neighbors.find(s.predicted, p, world.count)
        with world.stages("links"):
            _link_stage(p, k, near, torus, c, rows, length, number, periodic)
        with world.stages("solve"):
            _solve_stage(
                left, p, k, near, torus, self.density_numbers(world), c, solids, parts, s, length, number,
                *self.variant(world),
            )  # fmt: skip
        with world.stages("velocity"):
            _finish_stage(p, k, near, torus, c, s, length, rows, self._total, world.status, periodic)

    def metrics(self) -> dict[str, float]:
        """Links there are."""
        return {"links": int(read(self._total)[0]) // 2}
