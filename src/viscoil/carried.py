"""Rows of numbers that a method needs beyond FIELDS, e.g. links to other particles, and that last from step to step."""

from typing import Any

import numpy as np
import quadrants as qd

from viscoil import transfer
from viscoil.particles import Ints, allocate_array
from viscoil.transfer import copy


@qd.func
def _place(e: qd.i32, count: qd.i32, width: qd.i32, striped: qd.template()):
    """(particle, place) of the e-th of ``count`` rows' elements: neighbours in e are neighbours in memory."""
    i, a = e // width, e % width
    if qd.static(striped):
        i, a = e % count, e // count
    return i, a


@qd.kernel(fastcache=True)
def gather_rows(
    order: Ints, count: qd.i32, width: qd.i32, row: qd.i32, column: qd.i32, source: qd.types.NDArray,
    target: qd.types.NDArray, striped: qd.template(),
):  # fmt: skip
    """target row k = source row order[k] for k < count."""
    if qd.static(striped):
        for e in range(count * width):
            k, a = _place(e, count, width, striped)
            target[k * row + a * column] = source[order[k] * row + a * column]
    else:  # whole rows: a division for every element would take longer than the copying
        for k in range(count):
            first = order[k] * width
            for a in range(width):
                target[k * width + a] = source[first + a]


@qd.kernel(fastcache=True)
def copy_rows(
    source: qd.types.NDArray, row: qd.i32, column: qd.i32, target: qd.types.NDArray, new_row: qd.i32, new_column: qd.i32,
    count: qd.i32, width: qd.i32, striped: qd.template(),
):  # fmt: skip
    """The first ``width`` places of the first ``count`` particles, into another layout."""
    for e in range(count * width):
        i, a = _place(e, count, width, striped)
        target[i * new_row + a * new_column] = source[i * row + a * column]


@qd.kernel(fastcache=True)
def fill_rows(
    target: qd.types.NDArray, first: qd.i32, last: qd.i32, width: qd.i32, row: qd.i32, column: qd.i32, value: qd.i32,
    striped: qd.template(),
):  # fmt: skip
    """All places of particles first ≤ i < last take ``value``."""
    for e in range((last - first) * width):
        i, a = _place(e, last - first, width, striped)
        target[(first + i) * row + a * column] = value


class Carried:
    """Rows of ``width`` numbers per particle that a method needs beyond FIELDS, e.g. links to other particles.

    The world carries them along as it does the fields: through sorting, growth, removal, steps that are taken back, and
    restarts. Only the method that asked for them pays for them. Place a of particle i is element i·row + a·column of
    ``array``. Plain rows lie one after the other (row = width, column = 1), as CPUs like them; striped ones lie place by
    place (row = 1, column = capacity), so that neighbouring threads of a GPU read neighbouring numbers.
    """

    def __init__(self, kind: Any, width: int, fill: int = 0, striped: bool = False):
        """kind: qd.i32 or qd.f32; fill: what new particles have, a whole number; striped: place by place."""
        self.kind, self.width, self.fill, self.striped = kind, width, fill, striped
        self.row, self.column = (allocate_array(qd.i32, 1) for _ in range(2))  # for kernels; the same arrays for good
        self.capacity, self._row, self._column = 0, 0, 0
        self.steady = False  # True: steps leave these rows as they are, and nothing needs to be remembered
        self._remembered = False
        self.version = 0  # another one whenever rows or those they name have moved in memory
        self.array: Any = None
        self.made: dict[Any, Any] = {}  # dataclasses made of these arrays, alive as long as they are
        self._lay_out(0, 1, width)

    def _lay_out(self, count: int, capacity: int, width: int) -> None:
        """New arrays of this shape; the first ``count`` particles keep as many of their places as there are."""
        old, old_width, old_row, old_column = self.array, self.width, self._row, self._column
        self.made.clear()
        self.version += 1
        self.capacity, self.width = capacity, width
        self._row, self._column = (1, capacity) if self.striped else (width, 1)
        self.row.fill(self._row)
        self.column.fill(self._column)
        self.array, self._spare, self._kept = (allocate_array(self.kind, capacity * width) for _ in range(3))
        self.clear(0, capacity)
        if count:
            copy_rows(
                old, old_row, old_column, self.array, self._row, self._column, count, min(width, old_width), self.striped
            )

    def reserve(self, count: int, capacity: int) -> None:
        """Room for ``capacity`` particles; the first ``count`` stay."""
        self._lay_out(count, capacity, self.width)

    def widen(self, width: int, count: int) -> None:
        """``width`` places per particle; the first ``count`` particles keep theirs, new places hold ``fill``.

        What :meth:`remember` kept is gone: go back first.
        """
        self._lay_out(count, self.capacity, width)

    def clear(self, first: int, last: int) -> None:
        """Particles first ≤ i < last start anew."""
        fill_rows(self.array, first, last, self.width, self._row, self._column, self.fill, self.striped)

    def reorder(self, order: Any, count: int) -> None:
        """As :func:`reorder` does with fields."""
        self.version += 1
        gather_rows(order, count, self.width, self._row, self._column, self.array, self._spare, self.striped)
        self.array, self._spare = self._spare, self.array

    def _used(self, count: int) -> int:
        """Elements up to the last one of the first ``count`` particles."""
        return (self.capacity if self.striped else count) * self.width

    def remember(self, count: int) -> None:
        """Keeps the rows of the first ``count`` particles, unless steps do not change them."""
        self._remembered = not self.steady
        if self._remembered:
            copy(self.array, self._kept, 0, self._used(count))

    def go_back(self, count: int) -> None:
        """The rows as they were at :meth:`remember`."""
        if self._remembered:
            self.version += 1
            copy(self._kept, self.array, 0, self._used(count))

    def get(self, count: int) -> np.ndarray:
        """Host copy (count, width), whatever the layout."""
        values = transfer.read(self.array, self.capacity * self.width)
        if self.striped:
            return np.ascontiguousarray(values.reshape(self.width, self.capacity).T[:count])
        return values.reshape(self.capacity, self.width)[:count]

    def set(self, values: np.ndarray) -> None:
        """Overwrites the rows of the first particles: (n, width), whatever the layout.

        Another number of columns makes all rows as wide as that first, as a checkpoint may have it.
        """
        count, width = values.shape
        self.version += 1
        if width != self.width:
            self._lay_out(self.capacity, self.capacity, width)
        if not values.size:
            return
        staging = allocate_array(self.kind, values.size)
        staging.from_numpy(np.ascontiguousarray(values, np.int32 if self.kind is qd.i32 else np.float32).reshape(-1))
        copy_rows(staging, width, 1, self.array, self._row, self._column, count, width, self.striped)
