"""What an NVIDIA GPU is given to do, loop by loop, on a machine that has none: registers, instructions, loads.

A stand-in for the CUDA driver (stand_in_driver.c, compiled by ``cc``) takes the place of the real one and keeps the text of all
modules; NVIDIA's assembler and disassembler, which need no GPU, say what becomes of them:

    pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-nvdisasm
    python benchmarks/machine_code.py pbf dcpbd

Times are not to be had this way; numbers of loads and instructions per neighbour, and whether registers leave room for waiting
threads, are. ``VISCOIL_RECORDS=none`` shows passes that read neighbours number by number.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

DRIVER = Path(__file__).with_name("stand_in_driver.c")
ARCHITECTURE = "sm_90"  # H100, H200


def _tool(name: str) -> str:
    """NVIDIA's packages put their programs below site-packages."""
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    found = [str(path) for path in packages.rglob(name) if path.is_file()] if packages.is_dir() else []
    program = shutil.which(name) or next(iter(found), None)
    if program is None:
        sys.exit(f"{name} is missing: pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-nvdisasm")
    os.chmod(program, 0o755)
    return program


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def step_once(solver: str, particles: int) -> None:
    """In a process of its own: a scene is built without asking a device which points are inside, and stepped once."""
    import numpy as np

    from viscoil import backend

    backend.start("cuda")
    from viscoil.bench.cases import CASES
    from viscoil.scene import build, fill
    from viscoil.simulate import Simulation

    fill.signed_distance = lambda shape, points, spacing: -np.ones(len(points))
    build.Built._outside_solids = lambda self, groups, fluids: groups
    case = CASES[solver]
    sim = Simulation(case.scene(particles, case.counts), device="cuda")
    sim.solver.step(sim.world, case.dt)


def stand_in(folder: Path, *options: str) -> dict[str, str]:
    """Environment of a process that finds the stand-in driver, in ``folder``, where a driver would be; ``options`` of cc."""
    subprocess.run(["cc", "-shared", "-fPIC", "-w", *options, "-o", str(folder / "libcuda.so"), str(DRIVER)], check=True)
    (folder / "libcuda.so.1").symlink_to("libcuda.so")
    return os.environ | {"LD_LIBRARY_PATH": str(folder), "MODULES": str(folder)}


def modules(solver: str, particles: int, folder: Path) -> list[Path]:
    """Files of all modules of a step."""
    known = stand_in(folder) | {"VISCOIL_CACHE": str(folder / "cache")}
    subprocess.run([sys.executable, __file__, solver, "--particles", str(particles), "--step"], check=True, env=known)
    return sorted(folder.glob("*.ptx"))


def loops(assembly: str) -> Iterator[tuple[str, int, int, int]]:
    """(function, instructions, loads, loads of 16 bytes) of every loop that holds no other and reads memory."""
    for found in re.finditer(r"^\.text\.(\S+):\n(.*?)(?=^//----|\Z)", assembly, re.M | re.S):
        lines = [line for line in (re.sub(r"/\*.*?\*/", "", line).strip() for line in found[2].splitlines()) if line]
        labels = {line[:-1]: place for place, line in enumerate(lines) if line.endswith(":")}
        bodies = []
        for place, line in enumerate(lines):
            back = re.search(r"BRA `\((\S+)\)", line)
            if back and labels.get(back[1], place) < place:
                bodies.append((labels[back[1]], place))
        for begin, end in bodies:
            if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in bodies):
                continue
            body = [line for line in lines[begin : end + 1] if not line.endswith(":")]
            loads = [line for line in body if re.search(r"\bLDG?\.E", line)]
            if loads:
                yield found[1], len(body), len(loads), sum(".128" in line for line in loads)


def report(solver: str, particles: int) -> None:
    """One line per loop of the module with most functions: the step."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = modules(solver, particles, folder)
        entries = {file: file.read_bytes().count(b".entry") for file in files if b"runtime_initialize" not in file.read_bytes()}
        step = max(entries, key=lambda file: entries[file])
        binary = folder / "step.cubin"
        told = _output(_tool("ptxas"), f"-arch={ARCHITECTURE}", "-v", str(step), "-o", str(binary))
        registers = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", told, re.S))
        assembly = _output(_tool("nvdisasm"), "-c", str(binary))
    print(f"{solver}, {particles:,} particles, {ARCHITECTURE}: loop, registers, instructions, loads, of those 16 bytes wide")
    for function, instructions, loads, wide in sorted(loops(assembly), key=lambda row: int(re.findall(r"\d+", row[0])[-1])):
        print(f"  {function:44} {registers.get(function, '?'):>5} {instructions:>6} {loads:>5} {wide:>5}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver", nargs="+", help="pbf, dcpbd, pvfs or iisph")
    parser.add_argument("--particles", type=int, default=1_000_000)
    parser.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    for solver in asked.solver:
        (step_once if asked.step else report)(solver, asked.particles)


if __name__ == "__main__":
    main()
