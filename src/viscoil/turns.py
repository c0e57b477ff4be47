"""One thread at a time has the device, and no copy of a process has it.

The kernel compiler belongs to the process: the tables of its kernels, the counters of loops inside captured graphs and the
memory on the way to the device are shared. A thread therefore takes its turn for a launch or, where launches depend on
each other, for a step. Threads are served in the order in which they ask. A copy of the process (``os.fork``) inherits
the memory but none of the device's threads, and would wait for them for good: it gets an error instead.
"""

import threading
from contextlib import ContextDecorator

from viscoil.errors import DeviceError

FORKED = (
    "this process is a copy (os.fork) of one that had already started viscoil's device, whose threads were not copied with "
    "it. Expected a process of its own: with multiprocessing say get_context('spawn') (or set_start_method('spawn')), or "
    "start viscoil in the copy only, where the first simulation is made after the fork."
)


class Turn(ContextDecorator):
    """A lock that its owner may take again, first come, first served; as ``with turn:`` or as a decorator."""

    def __init__(self) -> None:
        self.renew(forked=False)

    def renew(self, forked: bool) -> None:
        """Nobody has the turn, and nobody gets it in a copy of a process in which the device ran (``forked``)."""
        self._forked = forked
        self._queue, self._lock = threading.Lock(), threading.Lock()
        self._owner, self._depth = 0, 0

    def __enter__(self) -> "Turn":
        if self._forked:
            raise DeviceError(FORKED)
        me = threading.get_ident()
        if self._owner != me:
            with self._queue:  # without it a thread that steps on and on would take the lock back before anybody wakes up
                self._lock.acquire()
            self._owner = me
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()


turn = Turn()
