"""What walls add to the density of a particle: the part of its kernel that lies inside solids.

Signed-distance walls hold no particles, so a sum over neighbours is too small beside them: particles crowd onto walls and
pile up in corners (an artefact the PBF paper names). Here the missing part is integrated instead of sampled. Seen from a
particle at distance φ a smooth wall is a half-space, and for the Spiky kernel, with q = φ/h and s = 1 − q,

    share(q) = ∫ W over the half-space = s⁵(3/2 − s),    |∇share| = (3/2) s⁴(1 + 4q)/h

Several faces near one particle leave it the product of what each leaves, F = Π(1 − share): one eighth in the corner of a
box, as it must be. A constant factor (calibration.py) makes the first lattice layer at a flat wall exactly as dense as the
inside. Then the walls' density is 1 − F and its gradient Σ_f ∇share_f Π_(others).

The cubic spline of support h is 16/15 of the Spiky kernel of support h less 1/15 of that of support h/2, so that its
half-space is (16 share(q) − share(2q))/15. Poly6 borrows the half-space of Spiky, calibrated for the first layer.
"""

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.sdf import Parts, Solids, among, distance, is_vessel, normal


@qd.func
def _spiky_half(q: qd.f32) -> qd.f32:
    s = 1.0 - qd.min(qd.abs(q), 1.0)
    share = s * s * s * s * s * (1.5 - s)
    return qd.select(q < 0.0, 1.0 - share, share)


@qd.func
def _spiky_half_gradient(q: qd.f32) -> qd.f32:
    z = qd.min(qd.abs(q), 1.0)
    s = 1.0 - z
    return 1.5 * s * s * s * s * (1.0 + 4.0 * z)


@qd.func
def half_space(q: qd.f32, kernel: qd.template()) -> qd.f32:
    """share(q) of a half-space at distance q supports; 0 beyond 1, 1 below −1. ``kernel``: as in sph/smoothing.py."""
    share = _spiky_half(q)
    if qd.static(kernel == 2):
        share = (16.0 * share - _spiky_half(2.0 * q)) / 15.0
    return share


@qd.func
def half_space_gradient(q: qd.f32, kernel: qd.template()) -> qd.f32:
    """−d share/dq."""
    slope = _spiky_half_gradient(q)
    if qd.static(kernel == 2):
        slope = (16.0 * slope - 2.0 * _spiky_half_gradient(2.0 * q)) / 15.0
    return slope


@qd.func
def beside(
    left: qd.f32, gradient: vec3, phi: qd.f32, n: vec3, h: qd.f32, strength: qd.f32, push: qd.f32, kernel: qd.template()
):
    """Adds one face at distance φ with normal n: (F, ∇(1 − F)) before → after. ``push`` = 0: no part in the gradient."""
    q = phi / h
    keep = 1.0 - strength * half_space(q, kernel)
    toward = -push * strength * half_space_gradient(q, kernel) / h * n
    return left * keep, gradient * keep + toward * left


@qd.func
def wall_density(x: vec3, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts, kernel: qd.template()):
    """(1 − F, its gradient [1/m]) at a world point, with solids where they are at the end of the step."""
    left = 1.0
    gradient = vec3(0.0)
    for solid in range(number):
        if solids.wall[solid] > 0.0:
            local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
            if local.norm() < solids.bound[solid] + h:
                vessel = is_vessel(solid, solids, parts)
                if qd.static(among(parts.shapes, "vessel")):  # noqa: SIM102 (decided when compiled)
                    if vessel:  # up to three of its six faces are near at once
                        first = solids.first[solid]
                        q = parts.rotation[first].transpose() @ (local - parts.centre[first])
                        turn = solids.rotation[solid] @ parts.rotation[first]
                        for axis in qd.static(range(3)):
                            half = parts.size[4 * first + axis]
                            n = vec3(turn[0, axis], turn[1, axis], turn[2, axis])
                            if half - q[axis] < h:
                                left, gradient = beside(left, gradient, half - q[axis], -n, h, solids.wall[solid], 1.0, kernel)
                            if half + q[axis] < h:
                                left, gradient = beside(left, gradient, half + q[axis], n, h, solids.wall[solid], 1.0, kernel)
                if qd.static(among(parts.shapes, "other")):  # noqa: SIM102
                    if not vessel:
                        phi = distance(solid, local, solids, parts)
                        if phi < h:
                            n = solids.rotation[solid] @ normal(solid, local, 0.02 * h, solids, parts)
                            # A body that fluid can move fills space, but pushes by contact alone, where impulses are counted.
                            push = qd.select(solids.body[solid] < 0, 1.0, 0.0)
                            left, gradient = beside(left, gradient, phi, n, h, solids.wall[solid], push, kernel)
    return 1.0 - left, gradient


@qd.func
def _velocity(solid: qd.i32, point: vec3, dt: qd.f32, solids: Solids) -> vec3:
    """Mean velocity [m/s] in the step of what is at a world point at its start; exactly 0 of a solid at rest."""
    local = solids.rotation0[solid].transpose() @ (point - solids.position0[solid])
    turned = (solids.rotation[solid] - solids.rotation0[solid]) @ local
    return (turned + solids.position[solid] - solids.position0[solid]) / dt


@qd.func
def _beside_moving(
    left: qd.f32, gradient: vec3, flux: qd.f32, weight: qd.f32, carried: vec3, grip: qd.f32, x: vec3, phi: qd.f32,
    n: vec3, h: qd.f32, dt: qd.f32, solid: qd.i32, told: qd.f32, solids: Solids, kernel: qd.template(),
):  # fmt: skip
    """As :func:`beside`, with what :func:`wall_motion` sums up besides; ``weight`` is the sum of shares.

    ``told``: 1, and 0 for a body that fluid can move, whose velocity is not known yet."""
    q = phi / h
    share = solids.wall[solid] * half_space(q, kernel)
    toward = -solids.wall[solid] * half_space_gradient(q, kernel) / h * n
    velocity = told * _velocity(solid, x - phi * n, dt, solids)
    keep = 1.0 - share
    return (
        left * keep, gradient * keep + toward * left, flux * keep + toward.dot(velocity) * left, weight + share,
        carried + share * velocity, grip + share * qd.min(solids.friction[solid], 1e6),
    )  # fmt: skip


@qd.func
def wall_motion(x: vec3, h: qd.f32, dt: qd.f32, number: qd.i32, solids: Solids, parts: Parts, kernel: qd.template()):
    """The walls beside x and how they move: (share, gradient [1/m], flux [1/s], carried [m/s], grip).

    Solids are where they are at the *start* of the step, as the positions of a method that freezes them there; their
    velocity u_f at the point of face f nearest to x is the mean one of the step. share and gradient are those of
    :func:`wall_density`; flux = Σ_f ∇share_f·u_f Π_(others), so that the density of the walls at a particle of velocity v
    changes at the rate v·gradient − flux. carried and grip are share times the means, weighted by the faces' shares, of
    their velocities and of their friction coefficients (1e6 where nothing slips).
    """
    share, gradient, flux, carried, grip, _a, _by_a, _of_a, _b, _by_b, _of_b = wall_motion_with_bodies(
        x, h, dt, number, solids, parts, kernel, False
    )
    return share, gradient, flux, carried, grip


@qd.func
def wall_motion_with_bodies(
    x: vec3, h: qd.f32, dt: qd.f32, number: qd.i32, solids: Solids, parts: Parts, kernel: qd.template(), coupled: qd.template()
):
    """:func:`wall_motion`, and of two bodies that fluid can move: which one, its parts of the gradient [1/m] and the share.

    −1 where there is none; what more than two do counts as the second's. flux and carried are those of other solids: how
    bodies move is yet to be found. Not ``coupled``: there are no bodies.
    """
    left = 1.0
    gradient = vec3(0.0)
    flux = 0.0
    weight = 0.0
    carried = vec3(0.0)
    grip = 0.0
    a, b = -1, -1
    of_a, of_b = 0.0, 0.0
    by_a, by_b = vec3(0.0), vec3(0.0)
    for solid in range(number):
        if solids.wall[solid] > 0.0:
            local = solids.rotation0[solid].transpose() @ (x - solids.position0[solid])
            if local.norm() < solids.bound[solid] + h:
                vessel = is_vessel(solid, solids, parts)
                before = left
                gradient0 = gradient
                weight0 = weight
                told = 1.0
                if qd.static(coupled):
                    told = qd.select(solids.body[solid] < 0, 1.0, 0.0)
                if qd.static(among(parts.shapes, "vessel")):  # noqa: SIM102 (decided when compiled)
                    if vessel:
                        first = solids.first[solid]
                        q = parts.rotation[first].transpose() @ (local - parts.centre[first])
                        turn = solids.rotation0[solid] @ parts.rotation[first]
                        for axis in qd.static(range(3)):
                            direction = vec3(turn[0, axis], turn[1, axis], turn[2, axis])
                            for opposite in range(2):  # a loop, not two more copies: kernels compile faster
                                side = 1.0 - 2.0 * opposite
                                phi = parts.size[4 * first + axis] - side * q[axis]
                                if phi < h:
                                    left, gradient, flux, weight, carried, grip = _beside_moving(
                                        left, gradient, flux, weight, carried, grip, x, phi, -side * direction, h, dt,
                                        solid, told, solids, kernel,
                                    )  # fmt: skip
                if qd.static(among(parts.shapes, "other")):  # noqa: SIM102
                    if not vessel:
                        phi = distance(solid, local, solids, parts)
                        if phi < h:
                            n = solids.rotation0[solid] @ normal(solid, local, 0.02 * h, solids, parts)
                            left, gradient, flux, weight, carried, grip = _beside_moving(
                                left, gradient, flux, weight, carried, grip, x, phi, n, h, dt, solid, told, solids, kernel
                            )
                if qd.static(coupled):
                    # What the solid changed: all that was there before lost the same factor.
                    keep = qd.select(before > 1e-12, left / before, 1.0)
                    by_a, by_b = by_a * keep, by_b * keep
                    if told == 0.0 and weight > weight0:
                        part = gradient - gradient0 * keep
                        if a < 0:
                            a, by_a, of_a = solids.body[solid], part, weight - weight0
                        else:
                            b = qd.select(b < 0, solids.body[solid], b)
                            by_b += part
                            of_b += weight - weight0
    share = 1.0 - left
    scale = share / qd.max(weight, 1e-12)
    return share, gradient, flux, scale * carried, scale * grip, a, by_a, scale * of_a, b, by_b, scale * of_b


@qd.func(requires_top_level=True)
def walls(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts,
    share: Floats, gradient: Vectors, kernel: qd.template(),
):  # fmt: skip
    """Density of the walls at every particle that moves, and its gradient; ``number`` = 0 switches walls off."""
    for i in range(n):
        share[i] = 0.0
        gradient[i] = vec3(0.0)
        if number > 0 and p.inverse_mass[i] > 0.0:
            s, g = wall_density(x[i], h, number, solids, parts, kernel)
            share[i] = s
            gradient[i] = g


@qd.func(requires_top_level=True)
def walls_nearby(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts, clear: Floats,
    share: Floats, gradient: Vectors, kernel: qd.template(),
):  # fmt: skip
    """As :func:`walls`, for particles whose ``clear`` [m], a lower bound of their distance to solids, is under a support."""
    for i in range(n):
        share[i] = 0.0
        gradient[i] = vec3(0.0)
        if clear[i] < h and p.inverse_mass[i] > 0.0:
            s, g = wall_density(x[i], h, number, solids, parts, kernel)
            share[i] = s
            gradient[i] = g


@qd.kernel(graph=True, fastcache=True)
def walls_kernel(
    p: Particles, x: Vectors, n: qd.i32, h: qd.f32, number: qd.i32, solids: Solids, parts: Parts,
    share: Floats, gradient: Vectors, kernel: qd.Template,
):  # fmt: skip
    """:func:`walls` on its own."""
    walls(p, x, n, h, number, solids, parts, share, gradient, kernel)
