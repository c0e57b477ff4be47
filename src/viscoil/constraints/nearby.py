"""Who is beside solids, as a list: on GPUs the passes about walls and contact then run over those few, side by side.

Asking all particles instead is cheap on a CPU. On a GPU 32 of them wait for the one that has to look at solids, in nearly every
group of 32 of a full tank: contact took a third of the time of an iteration there.

A pass that finds out how far particles are from solids notes those closer than a support (:func:`note`); whoever comes so close
later is added by who moved it (:func:`add`). The list has no order that could be relied on, and needs none: what is done to one
particle does not depend on others. Pattern, inside a kernel, where ``listed`` is :func:`lists` of this scene:

    nobody_nearby(nearby)               # at the top of the kernel, outside of loops
    if qd.static(listed):
        qd.loop_config(block_dim=qd.static(block_beside()))  # where it is what a thread waits for that counts
        for t in range(qd.static(threads_beside())):
            at = t
            while at < nearby.number[0]:
                ...                     # nearby.index[at]
                at += qd.static(threads_beside())
    else:
        for i in range(n):
            ...
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil import backend
from viscoil.particles import Ints, allocate_array

BLOCK = 384  # threads of a block, and two of those per multiprocessor: 80 registers for each


def block_beside() -> int:
    """Threads of a block that go through the list: who waits for distances needs company more than registers."""
    return BLOCK


def threads_beside() -> int:
    """How many go through the list: as many as the device has room for at once, so that all of it is busy and nobody comes
    second. A fixed number: a length that is read from memory costs a kernel of its own."""
    return 2 * BLOCK * max(backend.current().multiprocessors, 64)


@dataclass(frozen=True)
class Nearby:
    """Indices of particles closer to a solid than a support, at some time of the step."""

    index: Ints
    number: Ints  # [1] how many


def allocate_nearby(capacity: int) -> Nearby:
    """Room for ``capacity`` particles, where lists are used."""
    return Nearby(allocate_array(qd.i32, capacity if backend.current().is_gpu else 1), allocate_array(qd.i32, 1))


def lists(coupled: bool, mix: int) -> bool:
    """Whether there is a list: not on CPUs, nor where bodies come nearer by themselves."""
    return backend.current().is_gpu and not coupled and mix == 0


@qd.func
def nobody_nearby(nearby: Nearby):
    """Nobody yet."""
    nearby.number[0] = 0


@qd.func
def note(i: qd.i32, near: qd.i32, nearby: Nearby):
    """Adds i if ``near`` is 1, for loops over whole blocks of 256: one of them asks for room for all."""
    rank = qd.simt.block.exclusive_add(near, 256, qd.i32)
    first = qd.simt.block.SharedArray(1, qd.i32)
    if qd.simt.block.thread_idx() == 255:
        first[0] = qd.atomic_add(nearby.number[0], rank + near)
    qd.simt.block.sync()
    if near == 1:
        nearby.index[first[0] + rank] = i
    qd.simt.block.sync()  # the next 256 use the same memory


@qd.func
def add(i: qd.i32, nearby: Nearby):
    """Adds i, who was not there before: listed is who is told to be closer to solids than a support, and nobody else."""
    nearby.index[qd.atomic_add(nearby.number[0], 1)] = i
