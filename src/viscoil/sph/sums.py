"""Sums over all particles that have the same bits in every run.

Three numbers per particle are added at once. On a GPU the threads of a block add theirs up in a tree, inside the pass that
made them; on a CPU a second pass adds chunks of 256 one by one. Either way the order depends on the number of particles alone.
Pattern, inside a kernel:

    qd.loop_config(block_dim=256)
    for i in range(padded(n)):
        value = vec3(0.0)
        if i < n: ...
        hand_in(i, n, value, sums)
    chunk_totals(n, sums)
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        total = grand_total(worker, n, sums)
        if worker == 0: ...
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend
from viscoil.particles import Ints, Vectors, allocate_array, vec3
from viscoil.transfer import read


@dataclass(frozen=True)
class Sums:
    """Memory of a sum."""

    terms: Vectors  # [particle] used on CPUs
    partial: Vectors  # [chunk of 256 particles]
    arrived: Ints  # [1] chunks that were handed in; zero between loops


def allocate_sums(capacity: int) -> Sums:
    """Room to add up ``capacity`` particles."""
    terms = allocate_array(vec3, 1 if on_gpu() else capacity)
    return Sums(terms, allocate_array(vec3, capacity // 256 + 1), allocate_array(qd.i32, 1))


def on_gpu() -> bool:
    """Whether blocks of threads do the adding."""
    return backend.current().is_gpu


def workers() -> int:
    """Threads that add up the chunks."""
    return 256 if on_gpu() else 1


def block_size(team: int) -> int:
    """Threads of a GPU's block, which add up their terms together.

    512 of them leave each 64 registers, and a scheduler more of them to choose from. That helps where there are few, which is
    where teams are: on an H200 106,000 particles take 6 % less time than with 256, which may have 70 to 91 registers, and a
    million 8 % more."""
    return 512 if on_gpu() and team > 1 else 256


@qd.func
def padded(n: qd.i32, chunk: qd.template() = 256) -> qd.i32:
    """How far a loop over n particles that hands in terms has to run: blocks must be complete."""
    result = n
    if qd.static(on_gpu()):
        result = (n + qd.static(chunk - 1)) // chunk * chunk
    return result


@qd.func
def _block_total(value: vec3, size: qd.template()) -> vec3:
    """Sum over the ``size`` threads of a block, in thread 0."""
    total = vec3(0.0)
    for axis in qd.static(range(3)):
        total[axis] = qd.simt.block.reduce_add(value[axis], size, qd.f32)
        qd.simt.block.sync()  # the next sum uses the same shared memory
    return total


@qd.func
def team_sums(value, number: qd.template()):
    """Sums of the ``number`` components of a vector over a team of workers() threads that are a block of their own, for all
    of them. All components share two barriers: the subgroups' sums lie in shared memory and are added up in their order."""
    result = value
    if qd.static(on_gpu()):
        lanes = qd.static(qd.simt.subgroup.group_size())
        groups = qd.static(256 // qd.simt.subgroup.group_size())
        shared = qd.simt.block.SharedArray(qd.static((256 // qd.simt.subgroup.group_size() + 1) * number), qd.f32)
        thread = qd.simt.block.thread_idx()
        for k in qd.static(range(number)):
            part = qd.simt.subgroup.reduce_add(value[k])
            if thread % lanes == 0:
                shared[thread // lanes * number + k] = part
        qd.simt.block.sync()
        if thread < number:
            total = shared[thread]
            for group in range(1, groups):
                total += shared[group * number + thread]
            shared[groups * number + thread] = total
        qd.simt.block.sync()
        for k in qd.static(range(number)):
            result[k] = shared[groups * number + k]
        qd.simt.block.sync()  # the next sum uses the same shared memory
    return result


@qd.func
def hand_in(i: qd.i32, n: qd.i32, value: vec3, sums: Sums, chunk: qd.template() = 256):
    """The terms of particle i; zero for i ≥ n."""
    if qd.static(on_gpu()):
        total = _block_total(value, chunk)
        if i % chunk == 0:
            sums.partial[i // chunk] = total
    else:
        sums.terms[i] = value


@qd.func
def is_last(i: qd.i32, n: qd.i32, sums: Sums, chunk: qd.template() = 256) -> qd.i32:
    """GPUs, after :func:`hand_in`: whether the chunk of particle i is the last to arrive, so that its block can add up all of
    them (:func:`grand_total`) and go on with the sum in the same loop. Who that is varies, what it finds does not."""
    shared = qd.simt.block.SharedArray(1, qd.i32)
    if i % chunk == 0:
        qd.simt.grid.mem_fence()  # what was handed in is there for all before it counts
        shared[0] = qd.atomic_add(sums.arrived[0], 1)
    qd.simt.block.sync()
    last = qd.select(shared[0] == (n + qd.static(chunk - 1)) // chunk - 1, 1, 0)
    qd.simt.block.sync()
    if last == 1:
        qd.simt.grid.mem_fence()
        if i % chunk == 0:
            sums.arrived[0] = 0
    return last


@qd.func(requires_top_level=True)
def chunk_totals(n: qd.i32, sums: Sums):
    """Adds up chunks of 256 terms, where :func:`hand_in` has not."""
    if qd.static(not on_gpu()):
        for chunk in range((n + 255) // 256):
            total = vec3(0.0)
            for i in range(chunk * 256, qd.min((chunk + 1) * 256, n)):
                total += sums.terms[i]
            sums.partial[chunk] = total


@qd.func
def grand_total(worker: qd.i32, n: qd.i32, sums: Sums, chunk: qd.template() = 256, team: qd.template() = 256) -> vec3:
    """The sum of all chunks, in worker 0 of a block of ``team``, or of the one there is on a CPU."""
    total = vec3(0.0)
    at = worker
    while at < (n + qd.static(chunk - 1)) // chunk:
        total += sums.partial[at]
        at += qd.static(team if on_gpu() else 1)
    if qd.static(on_gpu()):
        total = _block_total(total, team)
    return total


def total_on_host(sums: Any, n: int) -> np.ndarray:
    """The three sums, for reports."""
    return read(sums.partial, (n + 255) // 256).astype(np.float64).sum(axis=0)
