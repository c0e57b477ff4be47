"""Double density relaxation against sums over all pairs, in any order, limited, periodic, and by colours with the same bits."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
import quadrants as qd

from kit import differences, periodic_box
from pvfs_kit import Swept, cloud
from pvfs_reference import densities, pairs, relaxed, relaxed_in_turn
from viscoil import backend
from viscoil.constraints.double_density import (
    COUNTERS,
    LIMIT,
    DoubleDensityNumbers,
    displacements,
    pressures,
    relax_colour,
)
from viscoil.particles import Flag, Ints, Particles, Uploaded, Vectors, allocate_array, vec3
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.schedule import Hits, Schedule, begin_sweep, next_colour

SET = {"k": 0.004, "k_near": 0.01, "rho0": 10.0}


@qd.kernel(graph=True)
def sweep(
    left: Flag, p: Particles, x: Vectors, shift: Vectors, near: NeighborList, torus: Torus, c: DoubleDensityNumbers,
    schedule: Schedule, hits: Hits, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    begin_sweep(left, schedule)
    while qd.graph.do_while(left):
        relax_colour(schedule, p, x, shift, near, torus, c, hits, uniform, periodic)
        next_colour(left, schedule)


@qd.kernel
def at_once(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: DoubleDensityNumbers, pressure: Vectors,
    displacement: Vectors, counts: Ints, uniform: qd.Template, periodic: qd.Template,
):  # fmt: skip
    pressures(p, x, n, near, torus, c, pressure, counts, periodic)
    displacements(p, x, n, near, torus, c, pressure, displacement, counts, uniform, periodic)


def numbers(k=0.004, k_near=0.01, rho0=10.0, limited=True):
    limit = LIMIT * max(k, k_near / 2.5) if limited else 0.0
    return Uploaded(DoubleDensityNumbers).set(support=1.0, push=k, near_push=k_near, rest=rho0, limit=limit)


def swept(s, schedule, uniform=True, **constants):
    """Displacements of a sweep [h], the bits of float32."""
    x, shift = (allocate_array(vec3, s.n) for _ in range(2))
    x.from_numpy(s.particles.position.to_numpy()[: s.n])
    sweep(
        backend.loop_counter(), s.particles, x, shift, s.neighbors.list, s.neighbors.torus, numbers(**constants), schedule,
        s.hits, uniform, s.neighbors.periodic,
    )  # fmt: skip
    moved = shift.to_numpy()[: s.n]
    assert np.allclose(x.to_numpy()[: s.n] - s.particles.position.to_numpy()[: s.n], moved, atol=1e-4)
    return moved


def displaced(s, uniform=True, **constants):
    """(displacements, (P, P', limiter), pairs and limited pairs) of all at once."""
    arrays = [allocate_array(vec3, s.n) for _ in range(2)]
    counts = allocate_array(qd.i32, 2 * COUNTERS)
    at_once(
        s.particles, s.particles.position, s.n, s.neighbors.list, s.neighbors.torus, numbers(**constants), *arrays, counts,
        uniform, s.neighbors.periodic,
    )  # fmt: skip
    pressure, displacement = (array.to_numpy()[: s.n] for array in arrays)
    return displacement, pressure, counts.to_numpy().reshape(2, COUNTERS).sum(1)


# --- all at once -------------------------------------------------------------------------------------------------------
def test_pressures_are_equations_1_to_5():
    x = cloud()
    _, pressure, (number, _) = displaced(Swept(x))
    rho, rho_near = densities(x)
    assert np.allclose(pressure[:, :2], np.stack([0.004 * (rho - 10), 0.01 * rho_near], 1), atol=1e-6)
    assert number == pairs(x)[2].sum() and pressure[:, 0].min() < 0 < pressure[:, 1].min()


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("stiffer", [1, 8])
def test_displacements_are_equation_6_from_both_ends(stiffer, limited):
    x = cloud(seed=4)
    constants = {"k": 0.004 * stiffer, "k_near": 0.01 * stiffer, "rho0": 10.0}
    moved, _, (number, limited_pairs) = displaced(Swept(x), limited=limited, **constants)
    assert np.allclose(moved, relaxed(x, 1.0, **constants, limit=limited), atol=2e-6 * stiffer)
    stiff = LIMIT * constants["k"] * densities(x)[0] ** 2 > 1
    expected = (pairs(x)[2] & (stiff[:, None] | stiff)).sum() if limited else 0
    assert limited_pairs == expected and limited_pairs <= number and (expected > 0) == (limited and stiffer > 1)


def test_limited_pairs_keep_the_momentum():
    moved, _, (_, limited_pairs) = displaced(Swept(cloud((7, 7, 7))), k=0.05, k_near=0.125)
    assert limited_pairs > 1000 and np.abs(moved.sum(0)).max() < 1e-6 * np.abs(moved).sum()


def test_heavy_and_light_share_by_their_masses():
    x, light = cloud(), np.where(np.arange(150) % 3 == 0, 1.0, 0.25).astype(np.float32)
    s = Swept(x, inverse_mass=light)
    moved = displaced(s, uniform=False)[0]
    one = swept(s, s.coloured, uniform=False)
    for way in (moved, one):
        assert np.abs((way / light[:, None]).sum(0)).max() < 1e-5 * np.abs(way / light[:, None]).sum()
    assert not np.allclose(moved, displaced(s)[0], atol=1e-4)


def test_periodic_boxes_have_no_surface():
    size = 12 * 0.38
    box = periodic_box((0, 0, 0), (size,) * 3, "xyz")
    x = cloud((12, 12, 12), 0.1)
    s = Swept(x, box)
    d = differences(x, box)
    w = np.maximum(1 - np.linalg.norm(d, axis=2), 0)
    np.fill_diagonal(w, 0)
    pressure = displaced(s)[1]
    assert np.allclose(pressure[:, 0], 0.004 * ((w**2).sum(1) - 10), atol=2e-6)
    moved = swept(s, s.coloured)
    assert np.abs(moved.sum(0)).max() < 1e-6 * np.abs(moved).sum()


# --- one after the other ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sweep_in_any_order_is_algorithm_2(seed):
    x = cloud()
    s = Swept(x)
    order = np.random.default_rng(seed).permutation(s.n)
    assert np.allclose(x + swept(s, s.in_turn(order)), relaxed_in_turn(x, order, 1.0, **SET), atol=3e-6)


def test_the_order_matters_a_little():
    s = Swept(cloud())
    one, two = (swept(s, s.in_turn(np.random.default_rng(seed).permutation(s.n))) for seed in (0, 1))
    assert 1e-5 < np.abs(one - two).max() < 0.05


CROWDS = {
    "block": cloud((20, 17, 18), 0.3),
    "sheet": cloud((40, 3, 40), 0.3),
    "two far apart": np.concatenate([cloud((9, 9, 9), 0.3), cloud((9, 9, 9), 0.3) + np.array([31.3, -7.7, 3.1])]),
}


@pytest.mark.parametrize("name", CROWDS)
def test_colours_are_one_particular_order(name):
    """The same bits, although blocks of a colour run in parallel."""
    s = Swept(CROWDS[name])
    order = s.induced()
    assert np.array_equal(np.sort(order), np.arange(s.n)) and not np.array_equal(order, np.arange(s.n))
    coloured, in_turn = swept(s, s.coloured), swept(s, s.in_turn(order))
    assert np.array_equal(coloured.view(np.int32), in_turn.view(np.int32))
    assert np.abs(coloured).max() > 0.01


@pytest.mark.parametrize("axes", ["x", "xz", "xyz"])
@pytest.mark.parametrize("cells", [10, 14, 20])
def test_colours_on_a_closed_torus(cells, axes):
    """Three to six cells around: an odd number of blocks needs a third colour."""
    box = periodic_box((0, 0, 0), (cells * 0.38,) * 3, axes)
    s = Swept(cloud((cells, 8, cells), 0.3), box)
    coloured, in_turn = swept(s, s.coloured), swept(s, s.in_turn(s.induced()))
    assert np.array_equal(coloured.view(np.int32), in_turn.view(np.int32))


def test_two_in_one_place_go_apart_the_same_way_for_all():
    x = cloud((4, 4, 4), 0.1)
    x[20] = x[21]
    s = Swept(x)
    for moved in (displaced(s)[0], swept(s, s.coloured)):
        assert np.isfinite(moved).all() and np.linalg.norm(moved[20] - moved[21]) > 1e-3
        assert np.abs(moved.sum(0)).max() < 1e-6 * np.abs(moved).sum()


CODE = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
from test_double_density import fingerprint
print(fingerprint())
"""


def fingerprint():
    """Of three sweeps."""
    s = Swept(CROWDS["block"])
    digest = hashlib.sha256()
    for _ in range(3):
        digest.update(swept(s, s.coloured).tobytes())
    return digest.hexdigest()


def test_bits_do_not_depend_on_threads():
    here = os.path.dirname(os.path.abspath(__file__))
    code = CODE.format(tests=os.path.dirname(here), here=here)
    found = {fingerprint()}
    for threads in (1, 4):
        env = {**os.environ, "VISCOIL_THREADS": str(threads)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr[-2000:]
        found.add(done.stdout.strip())
    assert len(found) == 1
