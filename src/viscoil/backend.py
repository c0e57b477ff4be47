"""Starts the kernel compiler once per process: device, precision, threads, cache.

This is the only file that calls ``qd.init``. Everything else asks :func:`start` (idempotent) and then builds arrays.
"""

import contextlib
import ctypes
import io
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import quadrants as qd
from quadrants.lang import impl

from viscoil import cache, compiler
from viscoil.errors import DeviceError
from viscoil.turns import turn

# Vulkan is never chosen by itself: a software rasteriser answers to that name too, and is slower than the CPU.
AUTOMATIC = ("cuda", "amdgpu", "metal")
DEVICES = ("auto", "cpu", *AUTOMATIC, "vulkan")
BLOCKS, FEW_BLOCKS = 16, 4  # of threads per multiprocessor that a GPU's loops are launched with, and those of small scenes


@dataclass(frozen=True)
class Backend:
    """What was started."""

    device: str  # name out of DEVICES, never "auto"
    threads: int  # CPU worker threads (also of the CPU side of a GPU run)
    is_gpu: bool
    multiprocessors: int = 1  # of a CUDA device, where that can be told


_current: Backend | None = None
_counters: list[Any] = []
_constants: dict[int, int] = {}


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


def _multiprocessors(name: str) -> int:
    """Of a CUDA device; 0 where that cannot be told."""
    if name != "cuda":
        return 0
    device, number = ctypes.c_int(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1" if platform.system() == "Linux" else "nvcuda.dll")
        asked_for = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0)
        failed = failed or driver.cuDeviceGetAttribute(ctypes.byref(number), asked_for, device)
    except (OSError, AttributeError):
        return 0
    return 0 if failed else max(number.value, 0)


def _grid(multiprocessors: int) -> dict[str, int]:
    """How many blocks of threads a GPU's loops are launched with.

    Sixteen per multiprocessor fill it. Left alone it would be 64, and an empty loop then takes 7.7 µs instead of 3.1 on an
    H200: in small scenes that is all there is (see also :func:`small_launches`).
    """
    return {"saturating_grid_dim": BLOCKS * multiprocessors} if multiprocessors else {}


@turn
def start(device: str = "auto", threads: int | None = None, profiled: bool = False) -> Backend:
    """Starts the compiler on ``device``; later calls return what runs, and refuse a change of device.

    ``profiled``: every loop is timed, and none is part of a graph (bench/loops.py)."""
    global _current
    if _current is not None:
        if device not in ("auto", _current.device):
            raise DeviceError(
                f"device: this process already runs on '{_current.device}'; "
                f"start another process to use '{device}'."
            )
        if profiled:
            raise DeviceError("the compiler already runs without a profiler; start another process to time loops.")
        return _current
    name = choose(device)
    count, multiprocessors = _thread_count(threads), _multiprocessors(name)
    if profiled:
        compiler.leave_graphs()
    with contextlib.redirect_stdout(io.StringIO()):  # it announces itself with a plain print
        qd.init(
            arch=_arch(name),
            default_fp=qd.f32,
            default_ip=qd.i32,
            cpu_max_num_threads=count,
            offline_cache=True,
            offline_cache_file_path=str(cache.folder()),
            # Left alone it throws kernels away beyond 100 MB, which the solvers' variants together exceed: some were compiled
            # again and again. Folders of old versions go as a whole (cache.py).
            offline_cache_max_size_of_files=1 << 30,
            log_level=qd.ERROR,
            # Contracting a*b+c is wanted; no sum depends on threads because sums are ordered by hand.
            fast_math=True,
            kernel_profiler=profiled,
            # Half of all compile time goes into one pass that LLVM does again: without it steps are as fast on the CPU, and
            # passes over neighbours have the same instructions on CUDA (benchmarks/machine_code.py). Others have no LLVM.
            cfg_optimization=name not in ("cpu", "cuda", "amdgpu"),
            **_grid(multiprocessors),
        )
    _current = Backend(name, count, name != "cpu", max(multiprocessors, 1))
    return _current


def _after_fork() -> None:
    """In a copy of the process whoever had the turn is gone, and so are the threads that the device's end would wait for."""
    turn.renew(forked=_current is not None)
    if _current is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(impl.get_runtime().prog))  # so that it never ends here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def keep_kernels(wait: bool = False) -> bool:
    """Writes newly compiled kernels to the cache now instead of at the end of the process; True when there were some.

    ``wait``: until they are there. On GPUs only the end of the process writes them.
    """
    return _current is not None and not _current.is_gpu and compiler.save(wait)


def current() -> Backend:
    """The running backend; starts the automatic choice when none runs yet."""
    return _current or start()


def loop_counter(depth: int = 0) -> Any:
    """The one integer on the device that counts down iterations of loops inside kernels, or of loops around loops.

    A captured graph keeps the address of its counter, so all loops of the process share these for good. They must be the
    first arguments of their kernel: the compiler remembers a counter's place in the argument list once for all variants of a
    kernel, and only the first places are the same when another variant leaves out unused arguments.
    """
    while len(_counters) <= depth:
        counter = qd.ndarray(qd.i32, ())
        counter.fill(1)
        _counters.append(counter)
    return _counters[depth]


@contextlib.contextmanager
def small_launches(wanted: bool) -> Iterator[None]:
    """Kernels that are compiled inside are launched with FEW_BLOCKS instead of BLOCKS, if that is ``wanted``: on an H200 those
    are 135,000 threads or more, as many as small scenes use, and a block that finds nothing to do takes its time too.

    Their number is part of what kernels are found by in the cache, but not in a process: there something else must tell them
    apart (sph/depth.py: FEW)."""
    config = impl.current_cfg()
    before = config.saturating_grid_dim
    if wanted and current().device == "cuda":
        config.saturating_grid_dim = before * FEW_BLOCKS // BLOCKS
    try:
        yield
    finally:
        config.saturating_grid_dim = before


def constant(value: int) -> int:
    """The one object for a number that kernels are compiled for.

    A launch is recognised by the identity of its arguments. Python makes a new object for every number beyond 256 that it works
    out: a kernel that is handed one puts its arguments together anew in every step, and remembers every one of them for good.
    """
    return _constants.setdefault(value, value)


def free_memory() -> int | None:
    """Bytes that are free on the CUDA device that runs; None on others, and in a thread that has not launched anything yet."""
    if _current is None or _current.device != "cuda":
        return None
    free, total, context = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
    try:
        driver = ctypes.CDLL("libcuda.so.1" if platform.system() == "Linux" else "nvcuda.dll")
        failed = driver.cuCtxGetCurrent(ctypes.byref(context)) or not context.value
        failed = failed or driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    except (OSError, AttributeError):
        return None
    return None if failed else free.value


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
