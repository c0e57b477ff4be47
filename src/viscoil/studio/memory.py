"""Keeps the memory of a process that works for days from creeping up."""

import contextlib
import ctypes
import platform

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of mallopt(3)
BLOCK = 1 << 20  # bytes from which an array gets pages of its own; smaller ones would pay for them in every frame
SPARE = 8 << 20  # bytes of the heap that may lie idle


def keep_flat() -> None:
    """Gives every large array pages of its own, which go back to the system when it is freed.

    The C library of Linux learns the opposite: once a surface of some megabytes was freed, the next ones are cut out of the
    heap, and the holes they leave between frames add up to a megabyte a minute. Thresholds that are set are not learnt.
    Elsewhere this does nothing.
    """
    if platform.libc_ver()[0] == "glibc":
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_THRESHOLD, BLOCK)
            library.mallopt(M_TRIM_THRESHOLD, SPARE)
            library.mallopt(M_ARENA_MAX, 1)
