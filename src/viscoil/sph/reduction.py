"""Sums over all particles, with the same bits whatever the threads do.

Terms are added up in chunks of 256, then 64 chunks at a time, then in one row: a fixed order, three launches, and rounding
that grows with the number of levels instead of the number of particles. Three sums travel together in a vector.
"""

from dataclasses import dataclass
from typing import Any

import quadrants as qd

from viscoil.particles import Vectors, allocate_array, vec3


@dataclass(frozen=True)
class Sums:
    """Memory of up to three sums at a time."""

    terms: Vectors  # [particle]
    partial: Vectors  # sums of 256, then of 64 of those


def allocate_sums(capacity: int) -> Any:
    """Room for sums over ``capacity`` particles."""
    return Sums(allocate_array(vec3, capacity), allocate_array(vec3, capacity // 256 + capacity // 16384 + 3))


@qd.func(requires_top_level=True)
def sum_chunks(n: qd.i32, s: Sums):
    """First two levels: what :func:`total` then needs to look at is a row of n/16384 vectors."""
    for a in range((n + 255) // 256):
        part = vec3(0.0)
        for i in range(a * 256, qd.min((a + 1) * 256, n)):
            part += s.terms[i]
        s.partial[a] = part
    for b in range((n + 16383) // 16384):
        chunks = (n + 255) // 256
        part = vec3(0.0)
        for a in range(b * 64, qd.min((b + 1) * 64, chunks)):
            part += s.partial[a]
        s.partial[chunks + b] = part


@qd.func
def total(n: qd.i32, s: Sums) -> vec3:
    """The three sums, after :func:`sum_chunks`."""
    result = vec3(0.0)
    chunks = (n + 255) // 256
    for b in range((n + 16383) // 16384):
        result += s.partial[chunks + b]
    return result
