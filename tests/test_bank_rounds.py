"""Rounds of a GPU's cache, counted where they are known; the other order of lists: the same lists in fewer rounds."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import bank_rounds  # it lies beside the package, not in it

THREADS = np.arange(32)


@pytest.mark.parametrize("size, least", [(4, 1), (8, 2), (16, 4)])
def test_neighbouring_numbers_come_as_fast_as_can_be(size, least):
    assert bank_rounds.rounds(size * THREADS, size) == least


def test_who_asks_for_the_same_is_served_at_once_and_who_asks_nothing_not_at_all():
    assert bank_rounds.rounds(np.full(32, 48), 16) == 4
    assert bank_rounds.rounds(np.full(32, -1), 16) == 0


def test_one_bank_delivers_one_number_a_round():
    assert bank_rounds.rounds(128 * THREADS, 16) == 32
    assert bank_rounds.rounds(32 * THREADS, 16) == 8  # two of eight threads at each of four places


def test_another_order_of_a_list_takes_fewer_rounds():
    at = bank_rounds.jittered_lattice(14, 2.5)
    first = 1344  # in the middle
    rows = [bank_rounds.neighbors(at, i, 2.5) for i in range(first, first + 32)]
    turned = [bank_rounds.in_turns(row, first + t) for t, row in enumerate(rows)]
    assert all(sorted(a) == sorted(b) for a, b in zip(rows, turned, strict=True))
    as_found, other = (
        sum(bank_rounds.rounds(np.where(turn < 0, -1, 16 * turn), 16) for turn in bank_rounds.warp(lists, first))
        for lists in (rows, turned)
    )
    assert other < 0.75 * as_found
