"""Loops whose threads stay: all iterations of a small scene in one launch of a GPU.

Launched pass by pass, an iteration of a few ten thousand particles is mostly waiting: every pass is a kernel that takes
microseconds to begin and to end, whatever it does, and another one asks whether the loop goes on. Here as many threads as fit
the device at once are launched a single time, each takes its share of every pass, and between two passes all wait for one
another (:func:`wait_for_all`). Pattern, inside a kernel, for a ``gate`` that was reset at the top of it:

    qd.loop_config(block_dim=qd.static(block_that_stays()))
    for thread in range(qd.static(threads_of(blocks))):
        while left[()] > 0:                     # read by all, changed in a pass with a gate before and behind it
            at = thread
            while at < full:                    # a multiple of a block where its threads add something up together
                ...
                at += qd.static(threads_of(blocks))
            wait_for_all(gate, blocks)

Nobody may wait for a block that has no place on the device. The compiler leaves registers for two such blocks per
multiprocessor, so that many have a place. Should they not all come, as on a device that others use too, the first one who has
waited too long opens the gate for good, and the frame ends with an error instead of never (:func:`check`).

``VISCOIL_STAYING=1`` asks for it. It is not the default: on an H200 one scene of six gained 6 %, the others nothing
(docs/performance.md). Bodies, of particles or not, have passes of their own in an iteration: with them every pass is a launch.
"""

import os
from typing import Any

import quadrants as qd

from viscoil import backend
from viscoil.errors import DeviceError
from viscoil.particles import Ints, allocate_array
from viscoil.transfer import read, write

BLOCKS = 2  # of a multiprocessor
PATIENCE = 4_000_000  # how often one looks whether all are there: some seconds


def blocks_that_stay(team: int, coupled: bool, mix: int) -> int:
    """Blocks of threads that iterations are carried out by, 0: every pass is a launch. For particles so few that a ``team`` of
    threads works for each (sph/search.py), and without bodies (SolidSet.coupled, Clusters.mix)."""
    asked = os.environ.get("VISCOIL_STAYING", "0")
    if asked not in ("0", "1"):
        raise DeviceError(f"VISCOIL_STAYING: expected 0 or 1; got '{asked}'")
    running = backend.current()
    if asked == "0" or coupled or mix != 0 or running.device != "cuda" or team == 1:
        return 0
    return backend.constant(BLOCKS * running.multiprocessors)


def block_that_stays() -> int:
    """Threads of a block: as many as add up their terms together where there are teams (sums.block_size)."""
    return 512


def threads_of(blocks: int) -> int:
    """How many stay."""
    return blocks * block_that_stays()


def patience_of() -> int:
    """PATIENCE, for kernels."""
    return PATIENCE


def allocate_gate() -> Any:
    """What :func:`wait_for_all` counts with: who has arrived, and whether somebody did not."""
    return allocate_array(qd.i32, 2)


def check(gate: Any) -> None:
    """Stops the run if threads waited for others in vain since the last call; ``gate``: None where they wait for nobody."""
    if gate is not None and read(gate)[1]:
        write(gate, [0, 0])
        raise DeviceError(
            "VISCOIL_STAYING: threads of one launch waited for each other in vain: there was no place for all of them on the "
            "device, or others use it too; leave VISCOIL_STAYING out"
        )


@qd.func
def reset_gate(gate: Ints):
    """Nobody has arrived. At the top of a kernel, outside of loops."""
    gate[0] = 0


@qd.func
def wait_for_all(gate: Ints, blocks: qd.template()):
    """Until all ``blocks`` are here; what they stored before is there for all of them. All threads of a block have to come."""
    qd.simt.block.sync()
    if qd.simt.block.thread_idx() == 0:
        qd.simt.grid.mem_fence()
        arrived = qd.atomic_add(gate[0], 1)
        wanted = (arrived // blocks + 1) * blocks
        arrived += 1
        patience = qd.cast(qd.static(patience_of()), qd.i32)
        while arrived < wanted and patience > 0:
            arrived = qd.atomic_add(gate[0], 0)
            patience -= 1
            if patience == 0:
                qd.atomic_max(gate[1], 1)
            if patience % 1024 == 0 and qd.atomic_add(gate[1], 0) == 1:
                patience = 0
        qd.simt.grid.mem_fence()
    qd.simt.block.sync()
