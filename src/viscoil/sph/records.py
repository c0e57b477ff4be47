"""Records: what a pass reads of a neighbour, side by side in 16 bytes that a GPU fetches with one instruction.

A pass over the neighbour list seems to be bound by the number of loads, not by their bytes (docs/performance.md; no measurement
has shown it yet): places lie 12 bytes apart, so x, y and z are three loads of the same lines of the cache, and a multiplier is
a fourth. As records of four numbers they are one. The compiler only makes such loads where it knows that addresses are
multiples of 16, which an array's type does not tell, so the load itself is a function of three lines in the compiler's
intermediate language (``wide.ll``), linked into kernels as bitcode and inlined there. Writes, of which there is one per
particle and not one per pair, go through the array.

``VISCOIL_RECORDS``: "wide" (default on CUDA), "words" (two loads of 8 bytes, for devices that know no such function),
"none" (default elsewhere: a CPU's passes are vector code of their own). Results do not depend on it but for rounding.
"""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import quadrants as qd
from quadrants.lang.source_builder import SourceBuilder

from viscoil import backend, transfer
from viscoil.errors import DeviceError
from viscoil.keys import did_you_mean
from viscoil.particles import allocate_array, vec3

vec4 = qd.types.vector(4, qd.f32)
Words = qd.types.NDArray[qd.u64, 1]
MODES = ("wide", "words", "none")


@dataclass(frozen=True)
class Records:
    """Four numbers per particle."""

    words: Words  # two per record: the first number in the lower half, the second in the upper; the third, the fourth
    address: Words  # [1] of ``words`` on the device, a multiple of 16


def mode() -> str:
    """One of MODES: as asked, or what suits the device."""
    device = backend.current().device
    asked = os.environ.get("VISCOIL_RECORDS", "")
    if asked and asked not in MODES:
        expected = f"expected one of {', '.join(MODES)}"
        raise DeviceError(f"VISCOIL_RECORDS: {expected}; got '{asked}'.{did_you_mean(asked, MODES)}")
    if asked == "wide" and device not in ("cuda", "cpu"):
        raise DeviceError(f"VISCOIL_RECORDS: 'wide' needs CUDA; this process runs on '{device}'")
    return asked or ("wide" if device == "cuda" else "none")


def used() -> bool:
    """Whether passes read records at all."""
    return mode() != "none"


def is_wide() -> bool:
    """Whether one load takes a whole record."""
    return mode() == "wide"


load_four: Any = None  # part of kernels: (address, a, b, c, d) sets a to d to the four numbers at the address


@cache
def _link() -> None:
    """Before the first kernel that needs it is compiled."""
    global load_four
    target = "cuda" if backend.current().device == "cuda" else "x64"
    load_four = SourceBuilder.from_file(str(Path(__file__).with_name(f"wide_{target}.bc"))).load_four


def allocate_records(size: int) -> Records:
    """Room for ``size`` records, or for one where they are not used."""
    words = allocate_array(qd.u64, 2 * size if used() else 2)
    address = allocate_array(qd.u64, 1)
    if is_wide():
        _link()
        place = transfer.place_of(words)
        if place % 16:
            raise DeviceError(f"memory for records begins at {place:#x}, which is no multiple of 16; say VISCOIL_RECORDS=words")
        transfer.write(address, np.array([place], np.uint64))
    return Records(words, address)


@qd.func
def _joined(low: qd.f32, high: qd.f32) -> qd.u64:
    return qd.cast(qd.bit_cast(low, qd.u32), qd.u64) | (qd.cast(qd.bit_cast(high, qd.u32), qd.u64) << qd.u64(32))


@qd.func
def _low(word: qd.u64) -> qd.f32:
    return qd.bit_cast(qd.cast(word & qd.u64(0xFFFFFFFF), qd.u32), qd.f32)


@qd.func
def _high(word: qd.u64) -> qd.f32:
    return qd.bit_cast(qd.cast(word >> qd.u64(32), qd.u32), qd.f32)


@qd.func
def begin_of(r: Records) -> qd.u64:
    """Where records begin, for :func:`record_from`: what a loop that also stores would look up again each time."""
    begin = qd.u64(0)
    if qd.static(is_wide()):
        begin = r.address[0]
    return begin


@qd.func
def record(r: Records, j: qd.i32) -> vec4:
    """All four numbers of record j."""
    return record_from(r, begin_of(r), j)


@qd.func
def record_from(r: Records, begin: qd.u64, j: qd.i32) -> vec4:
    """The same where ``begin`` is known."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    if qd.static(is_wide()):
        address = begin + qd.cast(j, qd.u64) * qd.u64(16)
        load_four(address, a, b, c, d)
    else:
        first = r.words[2 * j]
        second = r.words[2 * j + 1]
        a = _low(first)
        b = _high(first)
        c = _low(second)
        d = _high(second)
    return vec4(a, b, c, d)


@qd.func
def vector_of(four: vec4) -> vec3:
    """The first three numbers of a record: its place, or its velocity."""
    return vec3(four[0], four[1], four[2])


@qd.func
def put_record(r: Records, j: qd.i32, v: vec3, w: qd.f32):
    """Record j ← (v, w)."""
    r.words[2 * j] = _joined(v[0], v[1])
    r.words[2 * j + 1] = _joined(v[2], w)


@qd.func
def put_fourth(r: Records, j: qd.i32, third: qd.f32, w: qd.f32):
    """The fourth number of record j, whose third is known: others may read the first three meanwhile."""
    r.words[2 * j + 1] = _joined(third, w)
