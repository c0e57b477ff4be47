"""Keeps the memory of a process that works for days from creeping up."""

import contextlib
import ctypes
import platform

M_MMAP_THRESHOLD = -3  # of mallopt(3)
BLOCK = 64 * 1024  # bytes from which an array gets pages of its own


def keep_flat() -> None:
    """Gives every large array pages of its own, which go back to the system when it is freed.

    The C library of Linux learns the opposite: once a surface of a megabyte was freed, frames of a hundred kilobytes are
    cut out of the heap, and holes between them add up to a megabyte a minute. A threshold that is set is not learnt.
    Elsewhere this does nothing.
    """
    if platform.libc_ver()[0] == "glibc":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, BLOCK)
