"""What the machine can do: bytes copied per second, small and large, and neighbours fetched through a list.

Two floors stand beside every measured time. A pass that reads and writes its arrays once can be no faster than a copy of as
many bytes (:func:`copying`). A pass over the neighbour list also has to fetch every neighbour's place, which caches limit
long before memory does: :func:`walking` is the pass that fetches all and does nothing with them.

Copies come in all sizes, because what fits into a cache is copied several times as fast: a working set is held against
copies of its own size ("hot") and against copies far larger than any cache ("memory").
"""

import ctypes
import re
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import quadrants as qd

from viscoil import backend
from viscoil.particles import Flag, Ints, Particles, Vectors, vec3
from viscoil.sph.neighbors import NeighborList, batches, fetch, lanes
from viscoil.sph.records import Records, allocate_records, put_record, record, vec4, vector_of

Quads = qd.types.NDArray[vec4, 1]

SMALLEST = 1 << 20  # [B] read and written together
LARGEST_ON_CPU = 1 << 30
LARGEST_ON_GPU = 1 << 31
MOVED = {True: 8 << 30, False: 1 << 29}  # [B] of one timing, on a GPU and on a CPU
ROUNDS = 5
WALKS = 10
L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE


@qd.kernel(graph=True, fastcache=True)
def _copy(left: Flag, a: Quads, b: Quads, number: Ints):
    """There and back, ``number[1]`` times, inside one launch: as the passes of a step are."""
    for _ in range(1):
        left[()] = number[1]
    while qd.graph.do_while(left):
        for i in range(number[0]):
            b[i] = a[i]
        for i in range(number[0]):
            a[i] = b[i]
            if i == 0:
                left[()] = left[()] - 1


@qd.kernel(graph=True, fastcache=True)
def _walk(left: Flag, p: Particles, near: NeighborList, r: Records, number: Ints, out: Vectors, packed: qd.Template):
    """Every listed neighbour's place is fetched and added up, ``number[1]`` times: a pass over the list without any work.

    ``packed``: as passes do that read records."""
    if qd.static(packed):
        for i in range(number[0]):
            put_record(r, i, p.position[i], 0.0)
    for _ in range(1):
        left[()] = number[1]
    while qd.graph.do_while(left):
        for i in range(number[0]):
            total = vec3(0.0)
            count = near.count[i]
            for batch in range(batches(count)):
                some = fetch(near, i, batch, not packed)
                for lane in qd.static(range(lanes())):
                    if qd.static(packed):
                        total += vector_of(record(r, some[lane]))
                    else:
                        total += p.position[some[lane]]
            out[i] = total
            if i == 0:
                left[()] = left[()] - 1


def _numbers(count: int, repeats: int) -> Any:
    array = qd.ndarray(qd.i32, (2,))
    array.from_numpy(np.array([count, repeats], np.int32))
    return array


def _best(launch: Any, rounds: int) -> float:
    """Seconds of the fastest of several launches; the first one compiles."""
    taken = []
    for _ in range(rounds + 1):
        backend.synchronise()
        begin = perf_counter()
        launch()
        backend.synchronise()
        taken.append(perf_counter() - begin)
    return min(taken[1:])


def copying(largest: int | None = None, smallest: int = SMALLEST, rounds: int = ROUNDS) -> dict[str, Any]:
    """Copy rates [B/s], reads and writes counted, for working sets from ``smallest`` to ``largest`` bytes.

    {"bytes": [...], "rate": [...], "memory": that of the largest, "hot": the best of all, "cache": bytes of the last cache}
    """
    gpu = backend.current().is_gpu
    largest = largest or (LARGEST_ON_GPU if gpu else LARGEST_ON_CPU)
    sizes = [smallest]
    while sizes[-1] * 4 <= largest:
        sizes.append(sizes[-1] * 4)
    a, b = (qd.ndarray(vec4, (sizes[-1] // 32,)) for _ in range(2))
    for array in (a, b):  # every page once: memory that was never written is not there yet
        array.fill(0)
    left, rates = backend.loop_counter(), []
    for size in sizes:
        count = size // 32  # elements of 16 B, read once and written once
        repeats = int(np.clip(MOVED[gpu] // (2 * size), 1, 200))
        numbers = _numbers(count, repeats)
        seconds = _best(lambda numbers=numbers: _copy(left, a, b, numbers), rounds)
        rates.append(2 * size * repeats / seconds)
    return {"bytes": sizes, "rate": rates, "memory": rates[-1], "hot": max(rates), "cache": cache_size()}


def rate_at(copies: dict[str, Any], working_set: float) -> float:
    """Copy rate [B/s] of a working set of so many bytes, between the measured sizes; never below that of memory."""
    found = np.interp(np.log(max(working_set, 1.0)), np.log(copies["bytes"]), copies["rate"])
    # Tiny copies are bound by launches. A pass of as many bytes is, too, but that is not what its floor should say.
    return float(max(found, copies["memory"]))


def walking(world: Any, rounds: int = ROUNDS) -> float:
    """Seconds that one pass over the list of ``world`` takes when it only fetches every neighbour's place."""
    out = qd.ndarray(vec3, (max(world.capacity, 1),))
    numbers, left = _numbers(world.count, WALKS), backend.loop_counter()
    near, r = world.neighbors.list, allocate_records(world.capacity)
    return _best(lambda: _walk(left, world.particles, near, r, numbers, out, world.packed), rounds) / WALKS


def cache_size() -> int:
    """Bytes of the last cache before memory of the device that runs; 0 where nobody can tell."""
    running = backend.current()
    return _cuda_cache() if running.device == "cuda" else 0 if running.is_gpu else _cpu_cache()


def _cuda_cache() -> int:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        value = ctypes.c_int(0)
        if driver.cuInit(0) or driver.cuDeviceGetAttribute(ctypes.byref(value), L2_CACHE_SIZE, 0):
            return 0
        return value.value
    except OSError:
        return 0


def _cpu_cache() -> int:
    """As Linux tells it, the largest that the first core sees."""
    found = [0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        if match := re.fullmatch(r"(\d+)([KM]?)", file.read_text().strip()):
            found.append(int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]])
    return max(found)
