"""Runs a program on CUDA's kernels, numbers and all, on a machine without a GPU.

    python benchmarks/emulate.py SCRIPT.py ARGUMENTS
    python benchmarks/emulate.py -m viscoil run dam_break --frames 2 --device cuda

The stand-in driver (stand_in_driver.c with emulator.c) translates what the kernel compiler made for an H200 to C (ptx.py) and
carries it out thread by thread, with barriers, shuffles and blocks that wait for each other. So it shows whether GPUs' kernels
compute what they should, and nothing about how fast: one core does the work of all, some 1000 times slower than a GPU.
``MULTIPROCESSORS`` is how many the device says it has, 2 unless it is set. For Linux on x86-64, with a C compiler.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from machine_code import stand_in  # noqa: E402


def emulated(folder: Path) -> dict[str, str]:
    """Environment of a process that finds the emulator, in ``folder``, where a driver would be."""
    told = stand_in(folder, "-D_GNU_SOURCE", "-DCARRY_OUT", "-O1", f"-I{HERE}")
    return {"MULTIPROCESSORS": "2"} | told | {"EMULATOR": str(HERE), "EMULATOR_PYTHON": sys.executable}


def main() -> None:
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as place:
        sys.exit(subprocess.run([sys.executable, *command], env=emulated(Path(place)), check=False).returncode)


if __name__ == "__main__":
    main()
