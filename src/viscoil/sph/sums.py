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
from viscoil.particles import Vectors, allocate_array, vec3


@dataclass(frozen=True)
class Sums:
    """Memory of a sum."""

    terms: Vectors  # [particle] used on CPUs
    partial: Vectors  # [chunk of 256 particles]


def allocate_sums(capacity: int) -> Sums:
    """Room to add up ``capacity`` particles."""
    return Sums(allocate_array(vec3, 1 if on_gpu() else capacity), allocate_array(vec3, capacity // 256 + 1))


def on_gpu() -> bool:
    """Whether blocks of threads do the adding."""
    return backend.current().is_gpu


def workers() -> int:
    """Threads that add up the chunks."""
    return 256 if on_gpu() else 1


@qd.func
def padded(n: qd.i32) -> qd.i32:
    """How far a loop over n particles that hands in terms has to run: blocks must be complete."""
    result = n
    if qd.static(on_gpu()):
        result = (n + 255) // 256 * 256
    return result


@qd.func
def _block_total(value: vec3) -> vec3:
    """Sum over the 256 threads of a block, in thread 0."""
    total = vec3(0.0)
    for axis in qd.static(range(3)):
        total[axis] = qd.simt.block.reduce_add(value[axis], 256, qd.f32)
        qd.simt.block.sync()  # the next sum uses the same shared memory
    return total


@qd.func
def team_total(value: vec3) -> vec3:
    """Sum over a team of workers() threads that are a block of their own, in the first of them."""
    result = value
    if qd.static(on_gpu()):
        result = _block_total(value)
    return result


@qd.func
def hand_in(i: qd.i32, n: qd.i32, value: vec3, sums: Sums):
    """The terms of particle i; zero for i ≥ n."""
    if qd.static(on_gpu()):
        total = _block_total(value)
        if i % 256 == 0:
            sums.partial[i // 256] = total
    else:
        sums.terms[i] = value


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
def grand_total(worker: qd.i32, n: qd.i32, sums: Sums) -> vec3:
    """The sum of all chunks, in worker 0."""
    total = vec3(0.0)
    chunk = worker
    while chunk < (n + 255) // 256:
        total += sums.partial[chunk]
        chunk += qd.static(workers())
    if qd.static(on_gpu()):
        total = _block_total(total)
    return total


def total_on_host(sums: Any, n: int) -> np.ndarray:
    """The three sums, for reports."""
    return sums.partial.to_numpy()[: (n + 255) // 256].astype(np.float64).sum(axis=0)
