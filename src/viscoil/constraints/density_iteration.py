"""One iteration of the density constraint, as all position-based solvers carry it out: weigh, shift, touch.

Weighing (λ) and shifting (Δx) walk through the lists and do nothing else: on a GPU they are bound by how many threads wait for
neighbours at the same time, and a loop that also knows every shape of solid has registers for half as many. What solids have to
say comes in a pass of its own, for the few particles that may be near one.

Places go back and forth between the two halves of one array, so that a shift reads what was there before everybody moved:
``half[0]`` is the half that holds the places, ``half[1]`` the one a shift reads. Where GPUs read neighbours as records
(``packed``, sph/records.py) those have the same two halves, and a place that changes in one array changes in both, unless
nobody wants the array before the last iteration (``lazy``).
"""

import quadrants as qd

from viscoil.constraints.acceleration import gather_momentum
from viscoil.constraints.contact import may_touch, resolve_all
from viscoil.constraints.density import (
    DensityNumbers,
    correction_by_records,
    correction_of,
    count_down,
    multiplier_from,
    multiplier_of,
    sums_by_records,
)
from viscoil.constraints.nearby import Nearby, add, block_beside, threads_beside
from viscoil.constraints.walls import wall_density
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, note_touch
from viscoil.solids.sdf import Parts, Solids
from viscoil.sph.finite import unless_lost
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import Records, fourth, put_fourth, put_record, record, vec4, vector_of


@qd.func
def length_of(x: Vectors) -> qd.i32:
    """Places in one half."""
    return x.shape[0] // 2


# What goes on between the passes of an iteration, beside the places: ``half`` has the half that holds the places, the half that
# a shift reads, and whether this iteration is the last. Where places are in records (``packed``), and nobody else wants them
# before the end (``lazy``), only the last shift writes them as an array too.
@qd.func(requires_top_level=True)
def begin_halves(
    left: Flag, x: Vectors, half: Ints, used: Ints, r: Records, n: qd.i32, h: qd.f32, iterations: qd.i32, packed: qd.template()
):
    """Places lie in the first half; copied so that ``iterations`` shifts, all still to do, end there as well."""
    for i in range(n):
        if iterations % 2 == 1:
            x[length_of(x) + i] = x[i]
        if qd.static(packed):
            put_record(r, iterations % 2 * length_of(x) + i, x[i], 0.0)
        if i == 0:
            half[0] = iterations % 2
            left[()] = iterations
            used[0] = 0


@qd.func(requires_top_level=True)
def end_halves(x: Vectors, half: Ints, n: qd.i32):
    """Into the first half, when a loop ended earlier than it might have."""
    for i in range(n):
        if half[0] == 1:
            x[i] = x[length_of(x) + i]


@qd.func(requires_top_level=True)
def weigh_walls(
    p: Particles, x: Vectors, half: Ints, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts, clear: Floats,
    wall: Floats, wall_gradient: Vectors, nearby: Nearby, listed: qd.template(),
):  # fmt: skip
    """What walls add to the density of those whose ``clear`` [m], a lower bound of their distance to solids, is under h.

    The others' values are left as they are: nobody reads them. ``listed``: see nearby.py.
    """
    if qd.static(listed):
        for t in range(qd.static(threads_beside())):
            at = t
            while at < nearby.number[0]:
                _weigh_wall(nearby.index[at], p, x, half, h, number, solids, parts, clear, wall, wall_gradient)
                at += qd.static(threads_beside())
    else:
        for i in range(n):
            _weigh_wall(i, p, x, half, h, number, solids, parts, clear, wall, wall_gradient)


@qd.func
def _weigh_wall(
    i: qd.i32, p: Particles, x: Vectors, half: Ints, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts, clear: Floats,
    wall: Floats, wall_gradient: Vectors,
):  # fmt: skip
    if clear[i] < h and p.inverse_mass[i] > 0.0:
        share, slope = wall_density(x[half[0] * length_of(x) + i], h, number, solids, parts, 0)
        wall[i] = share
        wall_gradient[i] = slope


@qd.func(requires_top_level=True)
def weigh(
    p: Particles, x: Vectors, half: Ints, r: Records, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus,
    c: DensityNumbers, clear: Floats, wall: Floats, wall_gradient: Vectors, error: Floats, multiplier: Floats,
    pressure: Floats, left: Flag, used: Ints, team: qd.template(), kernel: qd.template(), walled: qd.template(),
    told: qd.template(), hurried: qd.template(), uniform: qd.template(), periodic: qd.template(), bodied: qd.template(),
    packed: qd.template(),
):  # fmt: skip
    """λ_i of eq. 11, and where it is ``told`` error[i] = max(C_i, 0), what is left to correct. ``packed``: multipliers are in
    records and nowhere else.

    ``hurried``: with momentum, see acceleration.py; ``pressure`` is its memory, ``used[0]`` counts the step's iterations.
    ``full`` = padded(n · team): nobody may leave before a team's sums."""
    qd.loop_config(block_dim=512)  # as in :func:`shift`
    for t in range(full):
        _weigh_one(
            t, p, x, half, r, n, near, torus, c, clear, wall, wall_gradient, error, multiplier, pressure, left, used, team,
            kernel, walled, told, hurried, uniform, periodic, bodied, packed,
        )  # fmt: skip


@qd.func
def _weigh_one(
    t: qd.i32, p: Particles, x: Vectors, half: Ints, r: Records, n: qd.i32, near: NeighborList, torus: Torus,
    c: DensityNumbers, clear: Floats, wall: Floats, wall_gradient: Vectors, error: Floats, multiplier: Floats,
    pressure: Floats, left: Flag, used: Ints, team: qd.template(), kernel: qd.template(), walled: qd.template(),
    told: qd.template(), hurried: qd.template(), uniform: qd.template(), periodic: qd.template(), bodied: qd.template(),
    packed: qd.template(),
):  # fmt: skip
    """The share of thread ``t``: member t % team of those who weigh particle t // team."""
    i = qd.min(t // team, n - 1)
    moves = p.inverse_mass[i] > 0.0
    first = half[0] * length_of(x)
    count = qd.select(moves, near.count[i], 0)
    value = 0.0
    excess = 0.0
    if qd.static(packed):
        density = 0.0
        gradients = vec3(0.0)
        squares = 0.0
        density, gradients, squares = sums_by_records(
            i, count, r, half[0], near, torus, c.support[0], t % team, team, kernel, periodic
        )
        if t < n * team and t % team == 0:  # what follows is read after the loop: it would take registers from it
            share, toward = _of_walls(i, moves, clear, wall, wall_gradient, c, walled)
            value, excess = multiplier_from(i, p, density, gradients, squares, share, toward, c)
    else:
        share, toward = _of_walls(i, moves, clear, wall, wall_gradient, c, walled)
        value, excess = multiplier_of(
            i, count, p, x, first, near, torus, c, share, toward, t % team, team, kernel, uniform, periodic, bodied
        )
    if t < n * team and t % team == 0:
        if not moves:
            value = 0.0
            excess = 0.0
        own = vec4(0.0)
        if qd.static(packed):
            own = record(r, first + i)
        if qd.static(hurried):  # noqa: SIM102 (decided when compiled)
            if moves:
                hurries = True
                if qd.static(bodied):  # what holds a body together works against it in all iterations: plain ones
                    hurries = p.cluster[i] < 0
                alone = value
                if hurries:
                    last = own[3]
                    if qd.static(not packed):
                        last = multiplier[i]
                    value = gather_momentum(i, value, last, used[0], c, pressure)
                else:
                    value = qd.min(value, 0.0)
                value = unless_lost(value, alone)
        if qd.static(packed):
            put_fourth(r, first + i, own[2], value)
        else:
            multiplier[i] = value
        if qd.static(told):
            error[i] = excess
    if t == 0:
        half[1] = half[0]
        half[2] = qd.select(left[()] == 1, 1, 0)


@qd.func
def _of_walls(
    i: qd.i32, moves: qd.i32, clear: Floats, wall: Floats, wall_gradient: Vectors, c: DensityNumbers, walled: qd.template()
):
    """Density of the walls beside particle i, and its gradient."""
    share = 0.0
    toward = vec3(0.0)
    if qd.static(walled):  # noqa: SIM102 (decided when compiled)
        if moves and clear[i] < c.support[0]:
            share = wall[i]
            toward = wall_gradient[i]
    return share, toward


@qd.func(requires_top_level=True)
def shift(
    p: Particles, x: Vectors, half: Ints, r: Records, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus,
    c: DensityNumbers, clear: Floats, wall_gradient: Vectors, multiplier: Floats, left: Flag, used: Ints, team: qd.template(),
    power: qd.template(), walled: qd.template(), uniform: qd.template(), periodic: qd.template(), bodied: qd.template(),
    packed: qd.template(), lazy: qd.template(), nearby: Nearby, listed: qd.template(),
):  # fmt: skip
    """x_i ← x_i + Δx_i of eq. 14, from one half to the other; ``power`` as in density.correction_of. One iteration less.
    ``listed``: who comes near a solid is added to the list of those (nearby.py)."""
    qd.loop_config(block_dim=512)  # which leaves it 64 registers: more of them would leave fewer threads
    for t in range(full):
        _shift_one(
            t, p, x, half, r, n, near, torus, c, clear, wall_gradient, multiplier, left, used, team, power, walled, uniform,
            periodic, bodied, packed, lazy, nearby, listed,
        )  # fmt: skip


@qd.func
def _shift_one(
    t: qd.i32, p: Particles, x: Vectors, half: Ints, r: Records, n: qd.i32, near: NeighborList, torus: Torus,
    c: DensityNumbers, clear: Floats, wall_gradient: Vectors, multiplier: Floats, left: Flag, used: Ints, team: qd.template(),
    power: qd.template(), walled: qd.template(), uniform: qd.template(), periodic: qd.template(), bodied: qd.template(),
    packed: qd.template(), lazy: qd.template(), nearby: Nearby, listed: qd.template(),
):  # fmt: skip
    """The share of thread ``t``, as in :func:`_weigh_one`."""
    i = qd.min(t // team, n - 1)
    first = half[1] * length_of(x)
    moves = p.inverse_mass[i] > 0.0
    count = qd.select(moves, near.count[i], 0)
    place = vec3(0.0)
    change = vec3(0.0)
    own = 0.0
    if qd.static(packed):
        place, own, change = correction_by_records(i, count, p, r, half[1], near, torus, c, t % team, team, power, periodic)
        if qd.static(walled):  # noqa: SIM102 (decided when compiled)
            if moves and clear[i] < c.support[0]:
                change += own * wall_gradient[i]
        change *= p.inverse_mass[i]
    else:
        toward = vec3(0.0)
        if qd.static(walled):  # noqa: SIM102 (decided when compiled)
            if moves and clear[i] < c.support[0]:
                toward = wall_gradient[i]
        change = correction_of(
            i, count, p, x, first, near, torus, c, multiplier, toward, t % team, team, power, uniform, periodic, bodied
        )
        place = x[first + i]
    if t < n * team and t % team == 0:
        if moves:
            place += change
            gap = clear[i]
            clear[i] = gap - change.norm()
            if qd.static(listed):  # noqa: SIM102 (decided when compiled)
                if gap >= c.support[0] and gap - change.norm() < c.support[0]:
                    add(i, nearby)
        if qd.static(packed):
            put_record(r, length_of(x) - first + i, place, own)  # the next multiplier depends on this one
        if qd.static(lazy):
            if half[2] == 1:
                x[length_of(x) - first + i] = place
        else:
            x[length_of(x) - first + i] = place
    if t == 0:
        half[0] = 1 - half[1]
        count_down(left, used)


@qd.func(requires_top_level=True)
def touch(
    p: Particles, x: Vectors, half: Ints, r: Records, n: qd.i32, radius: qd.f32, h: qd.f32, number: qd.i32, solids: Solids,
    parts: Parts, b: Clusters, clear: Floats, wall: Floats, wall_gradient: Vectors, nearby: Nearby, walled: qd.template(),
    mix: qd.template(), touching: qd.template(), packed: qd.template(), listed: qd.template(),
):  # fmt: skip
    """Particles that may touch solids are put out of them; with ``walled`` what walls add to the density of those near them is
    weighed at once. ``touching``: only who may be closer than a contact radius is looked at; with bodies that fluid can move
    everybody near a solid, as when their contacts are counted. ``listed``: see nearby.py."""
    if qd.static(listed):
        qd.loop_config(block_dim=qd.static(block_beside()))
        for t in range(qd.static(threads_beside())):
            at = t
            while at < nearby.number[0]:
                i = nearby.index[at]
                _touch_one(
                    i, p, x, half, r, radius, h, number, solids, parts, b, clear, wall, wall_gradient, walled, mix, touching,
                    packed,
                )  # fmt: skip
                at += qd.static(threads_beside())
    else:
        for i in range(n):
            _touch_one(
                i, p, x, half, r, radius, h, number, solids, parts, b, clear, wall, wall_gradient, walled, mix, touching, packed
            )


@qd.func
def _touch_one(
    i: qd.i32, p: Particles, x: Vectors, half: Ints, r: Records, radius: qd.f32, h: qd.f32, number: qd.i32, solids: Solids,
    parts: Parts, b: Clusters, clear: Floats, wall: Floats, wall_gradient: Vectors, walled: qd.template(), mix: qd.template(),
    touching: qd.template(), packed: qd.template(),
):  # fmt: skip
    if clear[i] < h and p.inverse_mass[i] > 0.0:
        at = half[0] * length_of(x) + i
        place = vec3(0.0)
        if qd.static(packed):
            place = vector_of(record(r, at))
        else:
            place = x[at]
        if qd.static(not touching) or may_touch(clear[i], radius):
            wanted = place
            place = resolve_all(wanted, p.position[i], radius, number, solids, parts, p.inverse_mass[i])
            if qd.static(mix & 1 > 0):
                note_touch(i, p, wanted, place, radius, b)
            x[at] = place
            if qd.static(packed):
                put_record(r, at, place, fourth(r, at))
        if qd.static(walled):
            share, slope = wall_density(place, h, number, solids, parts, 0)
            wall[i] = share
            wall_gradient[i] = slope


@qd.func(requires_top_level=True)
def copy_places(x: Vectors, half: Ints, n: qd.i32, out: Vectors):
    """The places as an array of their own, for what knows nothing of halves."""
    for i in range(n):
        out[i] = x[half[0] * length_of(x) + i]
