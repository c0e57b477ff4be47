"""Sums over particles: right, and the same however they are cut."""

import numpy as np
import pytest
import quadrants as qd

from viscoil.particles import Ints, Vectors, allocate_array, vec3
from viscoil.sph.sums import Sums, allocate_sums, chunk_totals, grand_total, hand_in, padded, total_on_host, workers


@qd.kernel
def _add(n: Ints, values: Vectors, sums: Sums, out: Vectors):
    qd.loop_config(block_dim=256)
    for i in range(padded(n[0])):
        value = vec3(0.0)
        if i < n[0]:
            value = values[i]
        hand_in(i, n[0], value, sums)
    chunk_totals(n[0], sums)
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        total = grand_total(worker, n[0], sums)
        if worker == 0:
            out[0] = total


@pytest.mark.parametrize("count", [1, 255, 256, 257, 70_001])
def test_equals_the_sum(count):
    values = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    array, out, n, sums = allocate_array(vec3, count), allocate_array(vec3, 1), allocate_array(qd.i32, 1), allocate_sums(count)
    array.from_numpy(values)
    n.fill(count)
    results = []
    for _ in range(3):
        _add(n, array, sums, out)
        results.append(out.to_numpy()[0])
    expected = values.astype(float).sum(0)
    scale = np.abs(values).sum()
    assert np.abs(results[0] - expected).max() < 1e-6 * scale
    assert np.abs(total_on_host(sums, count) - expected).max() < 1e-6 * scale
    assert all(np.array_equal(results[0], again) for again in results)
