"""The hottest loops of the CPU in C++, written by hand for AVX2 and AVX-512; optional, chosen when present.

A compiler turns the list's indices into gathers, one load per coordinate; here sixteen neighbours come as sixteen loads
of 16 bytes and a transposition, and the search writes its hits with one compressing store instead of walking over bits.
The list is the kernels' list to the last entry. Sums differ from the kernels' by rounding, and are the same for any
number of threads. ``VISCOIL_NATIVE=0`` leaves all work to the kernels; ``1`` insists on the library.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, POINTER, byref, c_char_p, c_int, c_int32
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from viscoil import backend
from viscoil.errors import DeviceError
from viscoil.native import tasks
from viscoil.native.build import LIBRARY, SOURCES

_used = True  # what the main thread wants; False: leave everything to the kernels, see use()
_own = threading.local()  # .used: what a thread wants


@cache
def _load() -> tuple[Any, str]:
    """(the library, its instruction set) or (None, why there is none)."""
    wanted = os.environ.get("VISCOIL_NATIVE", "").strip()
    if wanted not in ("", "0", "1"):
        raise DeviceError(f"VISCOIL_NATIVE: expected 0 (kernels only) or 1 (compiled passes); got '{wanted}'")
    library, what = (None, "switched off by VISCOIL_NATIVE=0") if wanted == "0" else _open()
    if wanted == "1" and library is None:
        raise DeviceError(f"VISCOIL_NATIVE=1 asks for the compiled passes of the CPU, but {what}")
    return library, what


def _open() -> tuple[Any, str]:
    if not (path := SOURCES / LIBRARY).exists():
        return None, "they were not built (python -m viscoil.native.build)"
    try:
        library = CDLL(str(path))
        library.viscoil_passes.restype = c_char_p
        for name, kind in tasks.PASSES.items():
            function = getattr(library, f"viscoil_{name}")
            function.argtypes, function.restype = [POINTER(kind), c_int], None
        name = library.viscoil_passes()
    except (OSError, AttributeError) as error:
        return None, f"they could not be loaded: {error}"
    if library.viscoil_format() != tasks.FORMAT:
        return None, "they are of another version (python -m viscoil.native.build)"
    if name is None:
        return None, "the processor has neither AVX-512 nor AVX2"
    # Never more threads than cores: pieces are handed out as threads come, so that a late one delays nobody.
    library.viscoil_set_threads(min(backend.current().threads, backend.cores()))
    return library, name.decode()


def _wanted() -> bool:
    """What this thread wants: until it says so, what the main one did when the thread asked first."""
    if not hasattr(_own, "used"):
        _own.used = _used
    return _own.used


def _want(wanted: bool) -> None:
    global _used
    _own.used = wanted
    if threading.current_thread() is threading.main_thread():
        _used = wanted


def active() -> bool:
    """Whether the compiled passes are used."""
    return _wanted() and not backend.current().is_gpu and _load()[0] is not None


@contextmanager
def use(wanted: bool) -> Iterator[None]:
    """Inside, the passes are used where present (True), or the kernels do everything (False).

    This is said for the thread that says it. In the main thread it is also what threads begin with that start inside.
    """
    before = _wanted()
    _want(wanted)
    try:
        yield
    finally:
        _want(before)


def describe() -> str:
    """What is used, or why not, for ``viscoil doctor`` and run folders."""
    if backend.current().is_gpu:
        return "not used on GPUs"
    if not _wanted():
        return "not in use: left to the kernels"
    library, what = _load()
    return what if library is not None else f"not in use: {what}"


_ADDRESSES: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()


def address(array: Any) -> int:
    """Where the memory of a device array lies: on the CPU arrays are plain memory, and never move."""
    place = _ADDRESSES.get(array)
    if place is None:
        place = _ADDRESSES[array] = array.to_numpy(copy=False).ctypes.data
    return place


def whole_number(array: Any) -> int:
    """The first number of an array of integers, read where it lies."""
    return c_int32.from_address(address(array)).value


def run(name: str, number: int, task: Any) -> None:
    """Runs one pass over ``number`` particles, without holding Python's lock."""
    getattr(_load()[0], f"viscoil_{name}")(byref(task), number)


def list_neighbors(search: Any, inverse_mass: Any, count: int) -> None:
    """The list of a ``sph.neighbors.Neighbors`` whose particles are in cells: entry by entry what the kernel lists."""
    cells, out = search.cells, search.list
    task = tasks.ListTask(
        order=address(cells.order), cell=address(cells.cell), start=address(cells.start), x=address(cells.sorted_x),
        y=address(cells.sorted_y), z=address(cells.sorted_z), inverse_mass=address(inverse_mass), count=address(out.count),
        index=address(out.index), needed=address(out.needed), row=search.width, width=search.width, dims=search.dims,
        reach2=search.reach**2,
    )  # fmt: skip
    run("list", count, task)
