"""Compiling ahead: a few steps of scenes, so that later runs of them find their kernels ready."""

import time
from dataclasses import dataclass
from typing import Any

from viscoil import backend, compiler
from viscoil.simulate import REORDER_EVERY, Simulation


@dataclass(frozen=True)
class Warmed:
    """What the kernels of one scene cost."""

    read: int  # kernels compiled now
    loaded: int  # kernels that were ready
    seconds: float  # in all


def warm(scene: Any, device: str = "auto", threads: int | None = None) -> Warmed:
    """Takes as many steps as it needs to bring memory into order once, looks at a frame, and throws everything away.

    What only happens later in a scene (a nozzle or a sink that opens, a body that appears) is compiled when it does.
    """
    begin = time.perf_counter()
    backend.start(device, threads)
    read, loaded = compiler.counts.read, compiler.counts.loaded
    simulation = Simulation(scene)
    for _ in range(REORDER_EVERY):
        simulation.step()
    simulation.frame()
    simulation.state()
    backend.keep_kernels(wait=True)
    return Warmed(compiler.counts.read - read, compiler.counts.loaded - loaded, time.perf_counter() - begin)
