"""Starts the kernel compiler once per process: device, precision, threads, cache.

This is the only file that calls ``qd.init``. Everything else asks :func:`start` (idempotent) and then builds arrays.
"""

import contextlib
import hashlib
import io
import os
import platform
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import quadrants as qd

from viscoil.errors import DeviceError

# Vulkan is never chosen by itself: a software rasteriser answers to that name too, and is slower than the CPU.
AUTOMATIC = ("cuda", "amdgpu", "metal")
STALE = 14 * 24 * 3600  # seconds after which compiled kernels of other versions are removed
DEVICES = ("auto", "cpu", *AUTOMATIC, "vulkan")


@dataclass(frozen=True)
class Backend:
    """What was started."""

    device: str  # name out of DEVICES, never "auto"
    threads: int  # CPU worker threads (also of the CPU side of a GPU run)
    is_gpu: bool


_current: Backend | None = None
_counter: Any = None


def _arch(name: str) -> Any:
    return {"cpu": qd.cpu, "cuda": qd.cuda, "amdgpu": qd.amdgpu, "metal": qd.metal, "vulkan": qd.vulkan}[name]


def available(name: str) -> bool:
    """Whether this machine has a driver for the device called ``name``."""
    if name == "cpu":
        return True
    if name == "metal" and platform.system() != "Darwin":
        return False
    from quadrants.lang import misc

    qd.set_logging_level(qd.ERROR)  # a missing driver is an answer here, not a warning
    try:
        return bool(misc.is_arch_supported(_arch(name)))
    except Exception:  # a broken driver answers in many ways; all of them mean "not usable"
        return False


def choose(device: str = "auto") -> str:
    """Resolves "auto" (and ``VISCOIL_DEVICE``) to a device that exists, or says what is missing."""
    wanted = os.environ.get("VISCOIL_DEVICE", "auto") if device == "auto" else device
    if wanted not in DEVICES:
        from viscoil.keys import did_you_mean

        raise DeviceError(
            f"device: there is no device called '{wanted}'; expected one of {', '.join(DEVICES)}."
            f"{did_you_mean(wanted, DEVICES)}"
        )
    if wanted == "auto":
        return next((name for name in AUTOMATIC if available(name)), "cpu")
    if not available(wanted):
        have = [name for name in DEVICES[1:] if available(name)]
        raise DeviceError(
            f"device: '{wanted}' was asked for, but no working driver for it was found on this machine; "
            f"available here: {', '.join(have)}. Leave the device out to let viscoil choose."
        )
    return wanted


def cores() -> int:
    """Cores this process may use (respects affinity masks and containers that set them)."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _thread_count(threads: int | None) -> int:
    if threads is None:
        wanted = os.environ.get("VISCOIL_THREADS", "0").strip() or "0"
        if not wanted.isdecimal():
            raise DeviceError(f"VISCOIL_THREADS: expected a whole number of at least 1; got '{wanted}'")
        threads = int(wanted) or None
    if threads is None:
        # Twice the cores: with exactly as many threads as cores one late worker stalls every barrier.
        return 2 * cores()
    if threads < 1:
        raise DeviceError(f"threads: expected a whole number of at least 1; got {threads}")
    return threads


def start(device: str = "auto", threads: int | None = None) -> Backend:
    """Starts the compiler on ``device``; later calls return what runs, and refuse a change of device."""
    global _current
    if _current is not None:
        if device not in ("auto", _current.device):
            raise DeviceError(
                f"device: this process already runs on '{_current.device}'; "
                f"start another process to use '{device}'."
            )
        return _current
    name = choose(device)
    count = _thread_count(threads)
    with contextlib.redirect_stdout(io.StringIO()):  # it announces itself with a plain print
        qd.init(
            arch=_arch(name),
            default_fp=qd.f32,
            default_ip=qd.i32,
            cpu_max_num_threads=count,
            offline_cache=True,
            offline_cache_file_path=str(kernel_cache()),
            log_level=qd.ERROR,
            # Contracting a*b+c is wanted; no sum depends on threads because sums are ordered by hand.
            fast_math=True,
        )
    _current = Backend(name, count, name != "cpu")
    return _current


def kernel_cache() -> Path:
    """Folder of compiled kernels, one per state of our sources.

    The compiler looks sources up when it compiles, not when they were imported: editing while a process runs would file
    old code under the new text. A folder named after what was there at the start cannot mix them up.
    """
    base = Path(os.environ.get("VISCOIL_CACHE") or Path.home() / ".cache" / "viscoil" / "kernels")
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        text = source.read_bytes()
        if b"quadrants" in text:
            digest.update(text)
    folder = base / digest.hexdigest()[:16]
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for old in base.iterdir():
            if time.time() - old.stat().st_mtime > STALE:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def current() -> Backend:
    """The running backend; starts the automatic choice when none runs yet."""
    return _current or start()


def loop_counter() -> Any:
    """The one integer on the device that counts down iterations of loops inside kernels.

    A captured graph keeps the address of its counter, so all loops of the process share this one for good. It must be
    the first argument of its kernel: the compiler remembers the counter's place in the argument list once for all
    variants of a kernel, and only the first place is the same when another variant leaves out unused arguments.
    """
    global _counter
    if _counter is None:
        _counter = qd.ndarray(qd.i32, ())
        _counter.fill(1)
    return _counter


def synchronise() -> None:
    """Waits until the device has finished all launched work."""
    qd.sync()


@qd.kernel
def _probe(out: qd.types.NDArray[qd.f32, 1]):
    for i in range(out.shape[0]):
        out[i] = qd.sqrt(qd.cast(i, qd.f32))


def probe() -> bool:
    """Runs one small kernel and checks its numbers."""
    start()
    out = qd.ndarray(qd.f32, (1000,))
    _probe(out)
    return bool(np.allclose(out.to_numpy(), np.sqrt(np.arange(1000)), rtol=1e-6))


def describe() -> dict[str, Any]:
    """Device, versions, memory and whether a small kernel ran: what ``viscoil doctor`` prints."""
    import viscoil

    backend = start()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "viscoil": viscoil.__version__,
        "python": platform.python_version(),
        "quadrants": ".".join(map(str, qd.__version__)) if not isinstance(qd.__version__, str) else qd.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": backend.device,
        "devices available": ", ".join(name for name in DEVICES[1:] if available(name)),
        "cores": cores(),
        "threads": backend.threads,
        "memory": f"{memory / 2**30:.1f} GiB",
        "kernel ran": probe(),
    }
