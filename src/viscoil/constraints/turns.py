"""Two iterations in a turn of a graph's loop, where particles are few.

A GPU asks after every turn whether the loop goes on, which may take it as long as two or three kernels of a small scene. With
``VISCOIL_TURNS=2`` a turn holds two iterations there, the ``second`` of which takes place only if there is one left. Its first
pass finds that out and writes it down, because what counts down is changed by a later pass; those ask what was written. Bodies,
of particles or not, have passes of their own in an iteration: with them a turn is one iteration.

Not the default: what it gains has not been measured yet, and kernels of DC-PBD take 1.6 times as long to compile.
"""

import os

import quadrants as qd

from viscoil.errors import DeviceError


def two_at_once(few: bool, coupled: bool, mix: int) -> bool:
    """Whether turns hold two iterations: ``few`` particles, no bodies (SolidSet.coupled, Clusters.mix)."""
    asked = os.environ.get("VISCOIL_TURNS", "1")
    if asked not in ("1", "2"):
        raise DeviceError(f"VISCOIL_TURNS: expected 1 or 2; got '{asked}'")
    return asked == "2" and few and not coupled and mix == 0


@qd.func
def goes_on(told: qd.i32, second: qd.template()) -> qd.i32:
    """Whether an iteration takes place: always, or if the number it is ``told`` is positive where it is the second one."""
    goes = 1
    if qd.static(second):
        goes = qd.select(told > 0, 1, 0)
    return goes
