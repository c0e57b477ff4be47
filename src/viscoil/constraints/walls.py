"""What walls add to the density of a particle: the part of its kernel that lies inside solids.

Signed-distance walls hold no particles, so a sum over neighbours is too small beside them: particles crowd onto walls and
pile up in corners (an artefact the PBF paper names). Here the missing part is integrated instead of sampled. Seen from a
particle at distance φ a smooth wall is a half-space, and for the Spiky kernel, with q = φ/h and s = 1 − q,

    share(q) = ∫ W over the half-space = s⁵(3/2 − s),    |∇share| = (3/2) s⁴(1 + 4q)/h

Several faces near one particle leave it the product of what each leaves, F = Π(1 − share): one eighth in the corner of a
box, as it must be. A constant factor (calibration.py) makes the first lattice layer at a flat wall exactly as dense as the
inside. Then the walls' density is 1 − F and its gradient Σ_f ∇share_f Π_(others).
"""

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.sdf import Parts, Solids, distance, normal


@qd.func
def half_space(q: qd.f32) -> qd.f32:
    """share(q) of a half-space at distance q supports; 0 beyond 1, 1 below −1."""
    s = 1.0 - qd.min(qd.abs(q), 1.0)
    share = s * s * s * s * s * (1.5 - s)
    return qd.select(q < 0.0, 1.0 - share, share)


@qd.func
def half_space_gradient(q: qd.f32) -> qd.f32:
    """−d share/dq."""
    z = qd.min(qd.abs(q), 1.0)
    s = 1.0 - z
    return 1.5 * s * s * s * s * (1.0 + 4.0 * z)


@qd.func
def beside(left: qd.f32, gradient: vec3, phi: qd.f32, n: vec3, h: qd.f32, strength: qd.f32):
    """Adds one face at distance φ with normal n: (F, ∇(1 − F)) before → after."""
    q = phi / h
    keep = 1.0 - strength * half_space(q)
    toward = -strength * half_space_gradient(q) / h * n
    return left * keep, gradient * keep + toward * left


@qd.func
def wall_density(x: vec3, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    """(1 − F, its gradient [1/m]) at a world point."""
    left = 1.0
    gradient = vec3(0.0)
    for solid in range(number):
        if solids.wall[solid] > 0.0:
            local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
            if local.norm() < solids.bound[solid] + h:
                first = solids.first[solid]
                if solids.sign[solid] < 0.0 and solids.last[solid] == first + 1 and parts.kind[first] == 1:
                    # A box to be filled: up to three of its six faces are near at once.
                    q = parts.rotation[first].transpose() @ (local - parts.centre[first])
                    turn = solids.rotation[solid] @ parts.rotation[first]
                    for axis in qd.static(range(3)):
                        half = parts.size[4 * first + axis]
                        direction = vec3(turn[0, axis], turn[1, axis], turn[2, axis])
                        if half - q[axis] < h:
                            left, gradient = beside(left, gradient, half - q[axis], -direction, h, solids.wall[solid])
                        if half + q[axis] < h:
                            left, gradient = beside(left, gradient, half + q[axis], direction, h, solids.wall[solid])
                else:
                    phi = distance(solid, local, solids, parts)
                    if phi < h:
                        n = solids.rotation[solid] @ normal(solid, local, 0.02 * h, solids, parts)
                        left, gradient = beside(left, gradient, phi, n, h, solids.wall[solid])
    return 1.0 - left, gradient


@qd.func(requires_top_level=True)
def walls(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts,
    share: Floats, gradient: Vectors,
):  # fmt: skip
    """Density of the walls at every particle that moves, and its gradient; ``number`` = 0 switches walls off."""
    for i in range(n):
        share[i] = 0.0
        gradient[i] = vec3(0.0)
        if number > 0 and p.inverse_mass[i] > 0.0:
            s, g = wall_density(x[i], h, number, solids, parts)
            share[i] = s
            gradient[i] = g


@qd.func(requires_top_level=True)
def walls_nearby(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts, clear: Floats,
    share: Floats, gradient: Vectors,
):  # fmt: skip
    """As :func:`walls`, for particles whose ``clear`` [m], a lower bound of their distance to solids, is under a support."""
    for i in range(n):
        share[i] = 0.0
        gradient[i] = vec3(0.0)
        if clear[i] < h and p.inverse_mass[i] > 0.0:
            s, g = wall_density(x[i], h, number, solids, parts)
            share[i] = s
            gradient[i] = g


@qd.kernel(graph=True, fastcache=True)
def walls_kernel(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts,
    share: Floats, gradient: Vectors,
):  # fmt: skip
    """:func:`walls` on its own."""
    walls(p, x, n, h, number, solids, parts, share, gradient)
