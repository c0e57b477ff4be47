"""Numbers between the host and device arrays.

An array's own ``to_numpy`` and ``from_numpy`` launch a kernel over all of it, which on a GPU also makes and copies memory
both ways: 0.1 to 0.4 ms for one integer. Here memory is copied, as much as is wanted; on the CPU it is the same memory.
"""

import ctypes
import math
import platform
from functools import cache
from typing import Any

import numpy as np
import quadrants as qd
from quadrants.lang import impl
from quadrants.lang.util import to_numpy_type

import viscoil.compiler  # noqa: F401  before the first kernel
from viscoil import backend

PIECE = 1 << 20  # elements sent at once through memory on the way, where there is no shorter one


@qd.kernel(fastcache=True)
def copy(source: qd.types.NDArray, target: qd.types.NDArray, offset: qd.i32, count: qd.i32):
    """target[offset + k] = source[k] for k < count; serves every field type."""
    for k in range(count):
        target[offset + k] = source[k]


@cache
def _driver() -> Any:
    """The CUDA driver, or None where it does not do what is expected of it."""
    try:
        driver = ctypes.CDLL("libcuda.so.1" if platform.system() == "Linux" else "nvcuda.dll")
        driver.cuMemcpyDtoH_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
        driver.cuMemcpyHtoD_v2.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
        probe = qd.ndarray(qd.i32, (3,))
        probe.from_numpy(np.array([1, 2, 3], np.int32))
        place, found = place_of(probe), np.zeros(2, np.int32)
        _carry(driver, place + 4, found, to_device=False)
        _carry(driver, place, np.array([7], np.int32), to_device=True)
        return driver if found.tolist() == [2, 3] and probe.to_numpy().tolist() == [7, 2, 3] else None
    except (OSError, AttributeError, ValueError):
        return None


def place_of(array: Any) -> int:
    """Address of an array's first element in its device's memory."""
    return impl.get_runtime().prog.get_ndarray_data_ptr_as_int(array.arr)


def _direct() -> Any:
    """The CUDA driver where this thread may copy by itself, else None.

    A thread that has not launched anything has no context, and memory from a pool does not say which one it belongs to.
    """
    if backend.current().device != "cuda" or not (driver := _driver()):
        return None
    context = ctypes.c_void_p()
    return driver if not driver.cuCtxGetCurrent(ctypes.byref(context)) and context.value else None


def _carry(driver: Any, place: int, values: np.ndarray, to_device: bool) -> None:
    """Between host ``values`` and the device's memory at ``place``, after all work that was launched before."""
    qd.sync()
    if to_device:
        failed = driver.cuMemcpyHtoD_v2(place, values.ctypes.data, values.nbytes)
    else:
        failed = driver.cuMemcpyDtoH_v2(values.ctypes.data, place, values.nbytes)
    if failed:
        raise ValueError(f"the CUDA driver answered {failed}")


def _shape(array: Any) -> tuple[np.dtype, tuple[int, ...], int]:
    """(element type, shape of one element, its bytes); remembered with the array."""
    found = getattr(array, "_viscoil_shape", None)
    if found is None:
        kind, tail = np.dtype(to_numpy_type(array.dtype)), tuple(array.element_shape)
        found = array._viscoil_shape = kind, tail, kind.itemsize * math.prod(tail)
    return found


def bytes_of(array: Any) -> int:
    """Memory a one-dimensional array takes."""
    return _shape(array)[2] * array.shape[0]


def view(array: Any) -> np.ndarray:
    """The memory of a one-dimensional array itself; only on the CPU, and only while the array lives."""
    found = getattr(array, "_viscoil_view", None)
    if found is None:  # memory never moves, and a view of it keeps nothing alive
        kind, tail, size = _shape(array)
        memory = (ctypes.c_char * (size * array.shape[0])).from_address(place_of(array))
        found = array._viscoil_view = np.frombuffer(memory, kind).reshape(array.shape[0], *tail)
    return found


def read(array: Any, count: int | None = None) -> np.ndarray:
    """Host copy of the first ``count`` elements (left out: all) of a one-dimensional array; waits for the device."""
    count = array.shape[0] if count is None else count
    device = backend.current().device
    if device == "cpu":
        return view(array)[:count].copy()
    if driver := _direct():
        kind, tail, _ = _shape(array)
        values = np.empty((count, *tail), kind)
        if count:
            _carry(driver, place_of(array), values, to_device=False)
        return values
    return array.to_numpy()[:count]


def write(array: Any, values: Any, offset: int = 0, count: int | None = None) -> None:
    """Elements offset … offset + count − 1 become ``values``, which may be one for all (count left out: as many as given)."""
    kind, tail, size = _shape(array)
    values = np.asarray(values)
    count = len(values) if count is None else count
    if not count:
        return
    values = np.broadcast_to(values, (count, *tail))
    device = backend.current().device
    if device == "cpu":
        view(array)[offset : offset + count] = values
        return
    driver = _direct()
    for begin in range(0, count, PIECE):
        piece = np.ascontiguousarray(values[begin : begin + PIECE], kind)
        if driver:
            _carry(driver, place_of(array) + (offset + begin) * size, piece, to_device=True)
        elif len(piece) == array.shape[0]:
            array.from_numpy(piece)
        else:
            _send(array, piece, offset + begin)


def take(array: Any) -> np.ndarray:
    """What counters hold, which then begin at zero again; waits for the device."""
    values = read(array)
    write(array, np.zeros_like(values))
    return values


_WAY: dict[tuple[str, int], Any] = {}  # nozzles emit every few steps: memory on the way to the device is kept


def _send(array: Any, piece: np.ndarray, offset: int) -> None:
    """Through an array of a power of two of elements, so that few sizes are ever made."""
    room = 1 << max(len(piece) - 1, 0).bit_length()
    key = f"{piece.dtype}{piece.shape[1:]}", room
    if key not in _WAY:
        _WAY[key] = qd.ndarray(array.element_type if not piece.shape[1:] else _element(piece), (room,))
    padded = np.zeros((room, *piece.shape[1:]), piece.dtype)
    padded[: len(piece)] = piece
    _WAY[key].from_numpy(padded)
    copy(_WAY[key], array, offset, len(piece))


def _element(piece: np.ndarray) -> Any:
    """Vector or matrix type of single precision with the shape of one element."""
    shape = piece.shape[1:]
    return qd.types.vector(shape[0], qd.f32) if len(shape) == 1 else qd.types.matrix(*shape, qd.f32)
