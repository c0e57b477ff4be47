"""Compiles what a command needs on an H200, on a machine that has no GPU, into a folder to take there.

Kernels of a step take half a minute to compile, and a GPU that is lent by the minute is better used. The stand-in driver of
machine_code.py takes the place of the real one; the command runs as it would there, which compiles everything, and computes
nothing, so that what it prints means nothing:

    VISCOIL_THREADS=32 VISCOIL_CACHE=kernels python benchmarks/rehearse.py bench papers --loads cake,cube_honey --device cuda
    VISCOIL_CACHE=kernels viscoil bench papers --loads cake,cube_honey --device cuda      # over there

Found there only with the same sources in the same place, the same minor version of Python, the same packages, and as many
threads (twice the cores there, or VISCOIL_THREADS): all of them are part of what kernels are found by. The last line says how
many kernels were read from their sources: when everything is there, one, which asks the device how it is and is never kept.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine_code import stand_in

SMALLER = 25  # "--largest" is rehearsed with that many times fewer particles, and lists that are torn as much sooner


def pretend() -> None:
    """Nothing is computed: places stay where they were filled in, and nobody gets into trouble."""
    import numpy as np

    from viscoil import backend, transfer, world

    backend.start("cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    for copy in (driver.cuMemcpyDtoH_v2, driver.cuMemcpyHtoD_v2):
        copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    transfer._driver = lambda: driver  # which would be found out by a kernel that computes
    from viscoil.scene import build, emitters, fill

    fill.signed_distance = emitters.signed_distance = lambda shape, points, spacing: -np.ones(len(points))
    build.Built._outside_solids = lambda self, groups, fluids: groups
    world.World.read_status = lambda self: (None, 0.1)
    make_smaller()


def make_smaller() -> None:
    """The largest run of ``bench scaling`` does not fit here; kernels depend on whether its list is torn, not on its length."""
    from viscoil.bench import scaling
    from viscoil.sph import search

    most, measure = search.MOST_ELEMENTS, scaling._size_row

    def fitting(wanted: int, per_particle: float) -> int:
        search.MOST_ELEMENTS = most // SMALLER  # until the row that this is asked for is done
        return wanted // SMALLER

    def row(*arguments):
        found = measure(*arguments)
        search.MOST_ELEMENTS = most
        return found

    scaling._fitting, scaling._size_row = fitting, row


def rehearse(command: list[str]) -> None:
    """All kernels of ``command``, a command line of viscoil without its first word, or "plain_steps" and its arguments."""
    pretend()
    from plain_steps import main as plain_steps

    from viscoil import compiler
    from viscoil.cli import main as viscoil

    try:
        if command[0] == "plain_steps":
            plain_steps(command[1:])
        else:
            viscoil(command)
    finally:
        counts = compiler.counts
        print(f"{' '.join(command)}: {counts.read} kernels read, {counts.loaded} were there", flush=True)


def main() -> None:
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    if os.environ.get("MODULES"):
        rehearse(command)
        return
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([sys.executable, __file__, *command], env=stand_in(Path(place)), check=False)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
