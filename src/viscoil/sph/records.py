"""Records: what a pass reads of a neighbour, side by side in 16 bytes that a GPU fetches with one instruction.

A pass over the neighbour list takes as long as the first-level cache needs to deliver what is fetched, which grows with the
bytes per neighbour (measured: docs/performance.md). So what belongs together lies together: a place and a multiplier in a
record of four numbers, or, rounded, a place and a velocity in one, or a place alone in half of one (the second half of this
file). The compiler only makes loads of 16 bytes where it knows that addresses are multiples of 16, which an array's type does
not tell, so the load itself is a short function in the compiler's intermediate language (``wide.ll``), linked into kernels as
bitcode and inlined there. Lists of neighbours are read by it too, four names at once, and written by its counterpart. Writes
of records, of which there is one per particle and not one per pair, go through the array.

Used on CUDA; a CPU's passes are vector code of their own, and other devices know no such function. ``VISCOIL_RECORDS`` ("wide",
"none") asks otherwise, for tests. Results do not depend on it but for rounding.
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
uvec3 = qd.types.vector(3, qd.u32)
uvec4 = qd.types.vector(4, qd.u32)
Words = qd.types.NDArray[qd.u64, 1]
MODES = ("wide", "none")


@dataclass(frozen=True)
class Records:
    """Four numbers per particle."""

    words: Words  # two per record: the first number in the lower half, the second in the upper; the third, the fourth
    address: Words  # of ``words`` on the device, a multiple of 16; of their second half; and the bits of 2²³ (see _digits)


def mode() -> str:
    """One of MODES: as asked, or what suits the device."""
    device = backend.current().device
    asked = os.environ.get("VISCOIL_RECORDS", "")
    if asked and asked not in MODES:
        expected = f"expected one of {', '.join(MODES)}"
        raise DeviceError(f"VISCOIL_RECORDS: {expected}; got '{asked}'.{did_you_mean(asked, MODES)}")
    if asked == "wide" and device not in ("cuda", "cpu"):
        raise DeviceError(f"VISCOIL_RECORDS: '{asked}' needs CUDA; this process runs on '{device}'")
    return asked or ("wide" if device == "cuda" else "none")


def used() -> bool:
    """Whether passes read records, each by one load."""
    return mode() == "wide"


load_four: Any = None  # part of kernels: (address, a, b, c, d) sets a to d to the four numbers at the address,
store_four: Any = None  # and the numbers at the address to a to d


@cache
def _link() -> None:
    """Before the first kernel that needs it is compiled."""
    global load_four, store_four
    target = "cuda" if backend.current().device == "cuda" else "x64"
    linked = SourceBuilder.from_file(str(Path(__file__).with_name(f"wide_{target}.bc")))
    load_four, store_four = linked.load_four, linked.store_four


def allocate_records(size: int) -> Records:
    """Room for ``size`` records, or for one where they are not used."""
    words = allocate_array(qd.u64, 2 * size if used() else 2)
    address, place = allocate_array(qd.u64, 3), 0
    if used():
        _link()
        place = _aligned_place(words)
    transfer.write(address, np.array([place, place + 16 * (size // 2), 0x4B000000], np.uint64))
    return Records(words, address)


def address_of(words: Any) -> Any:
    """Where an array begins on the device, for :func:`names_at`; 0 where nobody asks."""
    address = allocate_array(qd.u64, 1)
    if used():
        _link()
        transfer.write(address, np.array([_aligned_place(words)], np.uint64))
    return address


def _aligned_place(words: Any) -> int:
    place = transfer.place_of(words)
    if place % 16:
        raise DeviceError(f"memory begins at {place:#x}, which is no multiple of 16")
    return place


@qd.func
def _four_at(address: qd.u64) -> vec4:
    """Four numbers by one load."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    load_four(address, a, b, c, d)
    return vec4(a, b, c, d)


@qd.func
def names_at(address: qd.u64):
    """Four whole numbers by one load."""
    four = _four_at(address)
    return qd.Vector([qd.bit_cast(four[k], qd.i32) for k in qd.static(range(4))])


@qd.func
def put_names(address: qd.u64, names):
    """The same four by one store."""
    a = qd.bit_cast(names[0], qd.f32)
    b = qd.bit_cast(names[1], qd.f32)
    c = qd.bit_cast(names[2], qd.f32)
    d = qd.bit_cast(names[3], qd.f32)
    store_four(address, a, b, c, d)


@qd.func
def _joined(low: qd.f32, high: qd.f32) -> qd.u64:
    return qd.cast(qd.bit_cast(low, qd.u32), qd.u64) | (qd.cast(qd.bit_cast(high, qd.u32), qd.u64) << qd.u64(32))


@qd.func
def _high(word: qd.u64) -> qd.f32:
    return qd.bit_cast(qd.cast(word >> qd.u64(32), qd.u32), qd.f32)


@qd.func
def begin_of(r: Records) -> qd.u64:
    """Where records begin, for :func:`record_from`: what a loop that also stores would look up again each time."""
    return r.address[0]


@qd.func
def record(r: Records, j: qd.i32) -> vec4:
    """All four numbers of record j."""
    return record_from(begin_of(r), j)


@qd.func
def record_from(begin: qd.u64, j: qd.i32, more: qd.template() = 0) -> vec4:
    """Record j + ``more`` of those that ``begin`` is the begin of: of several that follow each other only the first has its
    address found."""
    return _four_at(begin + qd.cast(j, qd.u64) * qd.u64(16) + qd.u64(qd.static(16 * more)))


@qd.func
def begin_at(r: Records, half: qd.i32) -> qd.u64:
    """Where the first (0) or the second (1) half of the records begins. Looked up: an address that is worked out here is worked
    out again for every neighbour, in four instructions instead of one."""
    return r.address[half]


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
def fourth(r: Records, j: qd.i32) -> qd.f32:
    """The fourth number of record j alone."""
    return _high(r.words[2 * j + 1])


@qd.func
def put_fourth(r: Records, j: qd.i32, third: qd.f32, w: qd.f32):
    """The fourth number of record j, whose third is known: others may read the first three meanwhile."""
    r.words[2 * j + 1] = _joined(third, w)


# --- a place and a velocity in one record -------------------------------------------------------------------------------
# The first word has the place as three whole numbers of 21 bits, in units of 4 h/2²¹ and modulo 2²¹: of two particles only the
# difference is wanted, right up to two supports wherever they are, to 2e-6 h. The second word has three mantissas of 18 bits
# and their common exponent of 8: 4e-6 of the largest component. Whoever uses a velocity besides sums over pairs rounds it the
# same way (:func:`rounded`), so that what one particle gives another gets.
#
# A GPU makes floats of integers in the unit that also finds roots (NVIDIA's XU), one while others do eight additions, and
# six of them per neighbour were what passes waited for. So a whole number below 2²³ is put where a float between 2²³ and 2²⁴
# has its digits, and 2²³ is taken off, with what made it positive: exact, by the units that add. The bits of 2²³ are read from
# memory (:func:`digits_of`): "and, then or" is one instruction only where not both numbers are literal.


@qd.func
def place_word(x: vec3, h: qd.f32) -> qd.u64:
    """x as the first word; ``h``: support [m]."""
    word = qd.u64(0)
    for axis in qd.static(range(3)):
        turns = x[axis] / (4.0 * h)
        whole = qd.cast((turns - qd.floor(turns)) * 2097152.0, qd.i32) & 0x1FFFFF
        word |= qd.cast(whole, qd.u64) << qd.u64(qd.static(21 * axis))
    return word


@qd.func
def _halves(word: qd.u64):
    """(lower, upper) 32 bits."""
    return qd.cast(word & qd.u64(0xFFFFFFFF), qd.u32), qd.cast(word >> qd.u64(32), qd.u32)


@qd.func
def aligned(low: qd.u32, high: qd.u32):
    """The three numbers of a place, each at the lower end of 32 bits. What is above its 21 bits belongs to others."""
    return uvec3(low, (high << qd.u32(11)) | (low >> qd.u32(21)), high >> qd.u32(10))


@qd.func
def here(place):
    """An :func:`aligned` place that others are seen from, see :func:`apart`: half a period is added to it."""
    return place + qd.u32(0x100000)


@qd.func
def apart(own, other, digits: qd.u32) -> vec3:
    """x_i − x_j of two :func:`aligned` places, of which that of i was made :func:`here`; in units of :func:`unit_of` (h)."""
    d = own - other
    return vec3(*[_digits(d[axis], 0x1FFFFF, digits) - 9437184.0 for axis in qd.static(range(3))])  # 2²³ + 2²⁰


@qd.func
def digits_of(r: Records) -> qd.u32:
    """What :func:`apart` and :func:`velocity_in` are handed: the bits of 2²³."""
    return qd.cast(r.address[2], qd.u32)


@qd.func
def _digits(bits: qd.u32, mask: qd.template(), digits: qd.u32) -> qd.f32:
    """2²³ + what ``bits`` have in the ``mask``."""
    return qd.bit_cast((bits & qd.u32(mask)) | digits, qd.f32)


@qd.func
def unit_of(h: qd.f32) -> qd.f32:
    """Metres per unit of places: h/2¹⁹."""
    return 1.9073486328125e-06 * h


@qd.func
def velocity_word(v: vec3) -> qd.u64:
    """v as the second word."""
    largest = qd.max(qd.abs(v[0]), qd.abs(v[1]), qd.abs(v[2]))
    # The exponent e of 2^e > largest by its bits, biased by 127; what is smaller than 2^-100 is nothing.
    exponent = qd.max(((qd.bit_cast(largest, qd.i32) >> 23) & 0xFF) + 1, 27)
    scale = qd.bit_cast((254 + 17 - exponent) << 23, qd.f32)  # 2^(17 − e)
    x = _whole(v[0] * scale)
    y = _whole(v[1] * scale)
    z = _whole(v[2] * scale)
    low = x | (y << qd.u32(18))
    high = (y >> qd.u32(14)) | (z << qd.u32(4)) | (qd.cast(exponent - 17, qd.u32) << qd.u32(23))  # 2^(e − 17) as it stands
    return qd.cast(low, qd.u64) | (qd.cast(high, qd.u64) << qd.u64(32))


@qd.func
def _whole(x: qd.f32) -> qd.u32:
    """The nearest number of 18 bits, and 2¹⁷."""
    return qd.cast(qd.min(qd.cast(qd.floor(x + 0.5), qd.i32), 131071) + 131072, qd.u32)


@qd.func
def velocity_in(low: qd.u32, high: qd.u32, digits: qd.u32) -> vec3:
    """What the halves of a second word say."""
    scale = qd.bit_cast(high & qd.u32(0x7F800000), qd.f32)
    y = (high << qd.u32(14)) | (low >> qd.u32(18))
    mantissas = vec3(_digits(low, 0x3FFFF, digits), _digits(y, 0x3FFFF, digits), _digits(high >> qd.u32(4), 0x3FFFF, digits))
    return scale * (mantissas - 8519680.0)  # 2²³ + 2¹⁷


@qd.func
def velocity_of(r: Records, j: qd.i32) -> vec3:
    """The velocity in record j."""
    return _velocity_from(r.words[2 * j + 1])


@qd.func
def rounded(v: vec3) -> vec3:
    """What a record will say of v."""
    return _velocity_from(velocity_word(v))


@qd.func
def _velocity_from(word: qd.u64) -> vec3:
    low, high = _halves(word)
    return velocity_in(low, high, qd.u32(0x4B000000))


@qd.func
def put_place(r: Records, j: qd.i32, x: vec3, h: qd.f32):
    """The first word of record j."""
    r.words[2 * j] = place_word(x, h)


@qd.func
def put_velocity(r: Records, j: qd.i32, v: vec3):
    """The second word of record j."""
    r.words[2 * j + 1] = velocity_word(v)


@qd.func
def bits_of(four: vec4):
    """A record as whole numbers: place (lower, upper half), velocity (lower, upper half)."""
    return uvec4(
        qd.bit_cast(four[0], qd.u32), qd.bit_cast(four[1], qd.u32), qd.bit_cast(four[2], qd.u32), qd.bit_cast(four[3], qd.u32)
    )


@qd.func
def own_of(begin: qd.u64, i: qd.i32, digits: qd.u32):
    """(place that others are seen from, velocity) of record i of a half; ``begin``, ``digits``: begin_at, digits_of."""
    bits = bits_of(record_from(begin, i))
    return here(aligned(bits[0], bits[1])), velocity_in(bits[2], bits[3], digits)


@qd.func
def other_of(own, begin: qd.u64, j: qd.i32, digits: qd.u32):
    """(x_i − x_j in units of :func:`unit_of` (h), velocity) of record j, seen from a place of :func:`own_of`."""
    bits = bits_of(record_from(begin, j))
    return apart(own, aligned(bits[0], bits[1]), digits), velocity_in(bits[2], bits[3], digits)
