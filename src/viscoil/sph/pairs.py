"""What every exchange between two particles needs: a direction, a share, and a displacement that is not lost in rounding."""

import quadrants as qd

from viscoil.particles import Vectors, vec3
from viscoil.sph.schedule import scrambled


@qd.func
def unit(d: vec3, r: qd.f32, mine: qd.i32, other: qd.i32) -> vec3:
    """d/r; for coinciding particles a direction drawn from their ids, opposite at the other end."""
    result = d / qd.max(r, 1e-30)
    if r < 1e-12:
        low = scrambled(qd.min(mine, other))
        mixed = scrambled(low ^ qd.max(mine, other))
        z = 2.0 * qd.cast(mixed & 0xFFFF, qd.f32) / 65535.0 - 1.0
        turn = 6.2831853 * qd.cast(low & 0xFFFF, qd.f32) / 65535.0
        flat = qd.sqrt(qd.max(1.0 - z * z, 0.0))
        result = vec3(flat * qd.cos(turn), flat * qd.sin(turn), z) * qd.select(mine < other, 1.0, -1.0)
    return result


@qd.func
def share_of(mine: qd.f32, other: qd.f32) -> qd.f32:
    """Part of a displacement that falls to the first of two inverse masses; those that are not positive do not move."""
    a = qd.max(mine, 0.0)
    b = qd.max(other, 0.0)
    return a / qd.max(a + b, 1e-30)


@qd.func
def displace(i: qd.i32, by: vec3, x: Vectors, shift: Vectors):
    """Moves particle i, and adds up by how much it was moved in this step.

    A place has seven digits, and velocities are made of displacements much smaller than that: added up on their own they
    keep theirs, and with them momentum. (Written out, because x += d would be an atomic operation; nobody else is there.)
    """
    x[i] = x[i] + by
    shift[i] = shift[i] + by
