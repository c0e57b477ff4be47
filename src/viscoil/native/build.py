"""Compiles the passes into one shared library with whatever C++ compiler there is: no Python headers, no build system.

Run by the wheel's build (``hatch_build.py``), and by hand where the sources are used as they lie:
``python -m viscoil.native.build``.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent
LIBRARY = "passes.so"
COMMON = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"]
# GCC warns about its own headers for wide vectors. Products and sums become one operation only where the source says so.
PASSES = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-Wno-uninitialized", "-Wno-maybe-uninitialized"]
NARROW = ["-mavx2", "-mfma", "-mpopcnt", "-mbmi", "-mbmi2"]
INSTRUCTIONS = {"avx2": NARROW, "avx512": [*NARROW, "-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw"]}


def compiler() -> str | None:
    """The C++ compiler asked for with CXX, or the first of the usual ones."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    return next((path for name in names if (path := shutil.which(name))), None)


def build(folder: Path) -> tuple[Path | None, str]:
    """Compiles into ``folder``; (the library, what was used) or (None, why there is none)."""
    if platform.machine().lower() not in ("x86_64", "amd64") or sys.platform == "win32":
        return None, f"the passes are written for x86-64 under Linux and macOS; this is {platform.machine()} {sys.platform}"
    tool = compiler()
    if tool is None:
        return None, "no C++ compiler was found (CXX, c++, g++, clang++)"
    with tempfile.TemporaryDirectory() as scratch:
        objects = [str(Path(scratch) / f"{name}.o") for name in INSTRUCTIONS]
        commands = [
            [tool, *COMMON, *PASSES, *flags, "-c", str(SOURCES / "passes.cpp"), "-o", target]
            for flags, target in zip(INSTRUCTIONS.values(), objects, strict=True)
        ]
        made = Path(scratch) / LIBRARY
        plain = [str(SOURCES / name) for name in ("library.cpp", "pool.cpp")]
        commands.append([tool, *COMMON, "-O2", "-shared", "-pthread", *plain, *objects, "-o", str(made)])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                return None, f"{tool} could not compile the passes: {done.stderr.strip()[:500]}"
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{LIBRARY}.{os.getpid()}"
        shutil.copy(made, beside)
        beside.replace(folder / LIBRARY)  # at once: another process may be loading the old one
    return folder / LIBRARY, tool


if __name__ == "__main__":
    library, why = build(SOURCES)
    sys.stdout.write(f"{library} (by {why})\n" if library else f"not built: {why}\n")
    sys.exit(0 if library else 1)
