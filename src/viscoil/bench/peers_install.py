"""Other people's simulators, each in a virtual environment of its own below the user's cache, never in the user's.

SPlisHSPlasH's wheel carries a copy of libGLdispatch, and its libGLU asks the system for libGL.so.1, which brings the system's
copy too: two dispatchers in one process, and ``import pysplishsplash`` ends in a segmentation fault. A folder that answers
to "libGL.so.1" with the wheel's own libOpenGL, put into LD_LIBRARY_PATH, keeps the second one out; nothing is drawn anyway.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from viscoil.errors import ViscoilError

PATIENCE = 600.0  # [s] for an installation


@dataclass(frozen=True)
class Peer:
    """A simulator to compare with."""

    name: str
    module: str  # what its script imports
    packages: tuple[str, ...]  # for pip
    licence: str


SPLISH = Peer("SPlisHSPlasH", "pysplishsplash", ("pysplishsplash==2.19.0", "numpy>=2,<3"), "MIT")
GENESIS = Peer("Genesis", "genesis", ("genesis-world", "torch"), "Apache-2.0")


class PeerMissing(ViscoilError):
    """A peer could not be installed or does not start; the message says why."""


def default_folder() -> Path:
    """Where peers live unless told otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "viscoil" / "peers"


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def variables(environment: Path, threads: int) -> dict[str, str]:
    """Environment variables for a peer's process: threads, no spinning while it waits for its turn, and the library path."""
    told = {
        "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", "OMP_DYNAMIC": "false", "PYTHONNOUSERSITE": "1",
    }  # fmt: skip
    ours = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    shim = environment / "shim"
    if shim.is_dir():
        told["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(shim), ours.get("LD_LIBRARY_PATH", "")]))
    return ours | told


def lay_shim(environment: Path) -> bool:
    """Makes the folder for LD_LIBRARY_PATH (see above); True where the peer brings a libOpenGL to put there."""
    found = sorted(environment.glob("lib/python*/site-packages/pysplishsplash.libs/libOpenGL-*.so*"))
    if not found:
        return False
    shim = environment / "shim"
    shim.mkdir(exist_ok=True)
    link = shim / "libGL.so.1"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(found[0], shim))
    return True


def _run(command: list[str], what: str, env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env)
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{what} took longer than {PATIENCE:.0f} s") from None
    except OSError as error:
        raise PeerMissing(f"{what} failed: {error}") from None
    if done.returncode:
        told = [line for line in (done.stderr or done.stdout).strip().splitlines() if not line.startswith("WARNING")]
        why = told[-1] if told else f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
        raise PeerMissing(f"{what} failed: {why}")
    return done.stdout.strip()


def version(peer: Peer, environment: Path) -> str:
    """The version installed there; PeerMissing where it does not start."""
    code = f"import {peer.module}; from importlib.metadata import version; print(version({peer.packages[0].split('==')[0]!r}))"
    command = [str(python_of(environment)), "-c", code]
    return _run(command, f"{peer.name}: starting it", variables(environment, 1)).splitlines()[-1]


def install(
    peer: Peer, folder: Path | None = None, say: Callable[[str], None] = lambda text: None
) -> tuple[Path, str]:
    """(virtual environment, version) of a peer; made when it is not there yet."""
    environment = (folder or default_folder()) / peer.module
    done = environment / "installed"
    if not done.exists():
        say(
            f"{peer.name} ({peer.licence}) is not installed yet: {', '.join(peer.packages)} go into a virtual environment of "
            f"their own, {environment} (delete it to get rid of them)"
        )
        shutil.rmtree(environment, ignore_errors=True)
        environment.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(environment)], f"{peer.name}: making its environment")
        pip = [str(python_of(environment)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *peer.packages], f"{peer.name}: pip install {' '.join(peer.packages)}")
        lay_shim(environment)
        number = version(peer, environment)
        done.write_text(number + "\n")
    return environment, done.read_text().strip()
