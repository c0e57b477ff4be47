"""Contact of particles with solids given by signed distances (PBF, section 2.4 of our specification).

A particle must keep φ ≥ r_c. Positions are moved out along ∇φ, then the tangential displacement of the step, relative to
the wall, is reduced by Coulomb's law: by min(μ · depth / |t|, 1). Everything is computed in the solid's frame, where a
moving wall stands still and the particle's path runs from its old place in the old pose to its new place in the new.

Fast particles: when the path is long enough to have crossed a wall it is traced (sphere tracing), and from the first touch
on the rest of it slides along the surface, less friction. Sliding may lead into the next wall: the path to where it ends
is traced again, and if that still meets something the particle stops there. A wall thicker than a contact radius is not
crossed at any speed. The path in a solid's frame is taken as straight: both its ends are right, so that nothing gets out of
a vessel however it turns, but a blade that turns by more than half a radian per step misses some that it should have hit.
"""

import quadrants as qd

from viscoil.constraints.nearby import Nearby, block_beside, note, threads_beside
from viscoil.particles import Floats, Vectors, vec3
from viscoil.solids.coupling import Bodies, gauge, record
from viscoil.solids.sdf import Parts, Solids, distance, normal


@qd.func
def may_touch(clear: qd.f32, radius: qd.f32) -> bool:
    """Whether somebody at least ``clear`` [m] away from all solids may be within the contact radius of one.

    A tenth more than that, since distances are rounded. Nobody crosses a wall without coming so close."""
    return clear < 1.1 * radius


@qd.func
def trace(solid: qd.i32, a: vec3, b: vec3, radius: qd.f32, solids: Solids, parts: Parts) -> qd.f32:
    """Share of the path a → b up to the first touch, 1 when there is none. A touch is a quarter radius off the surface.

    Who begins nearer than that, or inside, and comes away from the surface has not touched it yet: short steps lead on
    until the distance is large enough, or shrinks.
    """
    length = (b - a).norm()
    travelled = 0.0
    safe = 0.0  # so far the way is free
    last = -1e30
    free = 0
    for _ in range(64):
        if free == 0:
            gap = distance(solid, a + (b - a) * (travelled / length), solids, parts) - 0.25 * radius
            if gap >= 0.01 * radius:
                travelled += gap
                safe = travelled
            elif gap > last:
                safe = travelled
                travelled += 0.1 * radius
            else:
                free = -1
            last = gap
            if free == 0 and travelled >= length:
                free = 1
    # Creeping along a surface may use up all steps: stopping early is safe, passing through is not.
    return qd.select(free == 1, 1.0, qd.min(safe / length, 1.0))


@qd.func
def _slide(
    solid: qd.i32, a: vec3, b: vec3, share: qd.f32, radius: qd.f32, friction: qd.f32, solids: Solids, parts: Parts
) -> vec3:
    """Where the path a → b ends that touches the surface after its ``share``: along it, less friction."""
    q = a + (b - a) * share
    n = normal(solid, q, 0.05 * radius, solids, parts)
    pressed = qd.max(-n.dot(b - q), 0.0)
    along = b - q + pressed * n
    return q + along * (1.0 - qd.min(friction * pressed / qd.max(along.norm(), 1e-30), 1.0))


@qd.func
def local_path(x: vec3, x0: vec3, solid: qd.i32, solids: Solids):
    """The step's path x0 → x in the solid's frame: begin, end."""
    a = solids.rotation0[solid].transpose() @ (x0 - solids.position0[solid])
    b = solids.rotation[solid].transpose() @ (x - solids.position[solid])
    return a, b


@qd.func
def first_touch(solid: qd.i32, a: vec3, b: vec3, phi: qd.f32, radius: qd.f32, solids: Solids, parts: Parts):
    """(1 if the path a → b is one that may end behind a wall, its share up to the first touch); ``phi`` is φ(b).

    A short path that ends outside has not crossed anything thicker than a radius.
    """
    length = (b - a).norm()
    traced = 0
    share = 1.0
    if length > radius or (phi < 0.0 and length > 0.0):  # noqa: SIM102 (a distance costs, and `and` would not spare it)
        if distance(solid, a, solids, parts) - 0.25 * radius < length:
            traced = 1
            share = trace(solid, a, b, radius, solids, parts)
    return traced, share


@qd.func
def near(a: vec3, b: vec3, reach: qd.f32) -> qd.i32:
    """Whether the path a → b comes closer to the origin than ``reach``."""
    path = b - a
    nearest = a + path * qd.min(qd.max(-a.dot(path) / qd.max(path.dot(path), 1e-30), 0.0), 1.0)
    return qd.cast(nearest.norm() < reach, qd.i32)


@qd.func
def resolve(x: vec3, x0: vec3, contact_radius: qd.f32, solid: qd.i32, stop: qd.i32, solids: Solids, parts: Parts):
    """(new place of a particle that moves from x0 to x during the step, kept at φ ≥ contact_radius · standoff of one
    solid; 1 when it was fast enough to be traced). ``stop`` = 1: a traced path ends at its touch, without sliding."""
    radius = contact_radius * solids.standoff[solid]
    a, b = local_path(x, x0, solid, solids)
    result = x
    fast = 0
    if near(a, b, solids.bound[solid] + radius) == 1:
        touched = 0
        slid = 0
        phi = distance(solid, b, solids, parts)
        traced, share = first_touch(solid, a, b, phi, radius, solids, parts)
        fast = traced
        if share < 1.0:
            grip = qd.select(stop == 1, 1e30, solids.friction[solid])
            b = _slide(solid, a, b, share, radius, grip, solids, parts)
            slid = 1
        for face in range(6):
            # In an inner corner the distance knows one face at a time. A face left for the next step would be turned
            # into velocity there: go on until all are clear.
            if face == touched:
                if face + slid > 0:
                    phi = distance(solid, b, solids, parts)
                depth = radius - phi
                if depth > 1e-5 * radius:
                    n = normal(solid, b, 0.05 * radius, solids, parts)
                    b += depth * n
                    slip = (b - a) - n * n.dot(b - a)
                    slipped = slip.norm()
                    if slipped > 0.0:
                        b -= slip * qd.min(solids.friction[solid] * depth / slipped, 1.0)
                    touched += 1
        if touched + slid > 0:
            result = solids.rotation[solid] @ b + solids.position[solid]
    return result, fast


@qd.func
def resolve_all(
    x: vec3, x0: vec3, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts, mobility: qd.f32
) -> vec3:
    """Contact with every solid in turn; for fast particles until no wall lies between x0 and the result.

    ``mobility`` is the particle's inverse mass: bodies receive what it is moved by. 0 for a look that moves nobody.
    """
    result = x
    again = 1
    for attempt in range(4):
        if again == 1:
            again = 0
            for solid in range(number):
                place, traced = resolve(result, x0, radius, solid, qd.cast(attempt == 3, qd.i32), solids, parts)
                record(solid, place, place - result, mobility, solids)
                result = place
                again = qd.max(again, traced)
    return result


@qd.func
def _gauge_one(
    x: vec3, x0: vec3, radius: qd.f32, body: qd.i32, mobility: qd.f32, solids: Solids, parts: Parts, bodies: Bodies
):
    """What :func:`resolve` would do to a particle touching a body, as one contact of the body's system."""
    solid = bodies.solid[body]
    a, b = local_path(x, x0, solid, solids)
    if near(a, b, solids.bound[solid] + radius) == 1:
        touch = b
        phi = distance(solid, b, solids, parts)
        depth = radius - phi
        _traced, reached = first_touch(solid, a, b, phi, radius, solids, parts)
        if reached < 1.0:
            touch = a + reached * (b - a)
            depth = qd.max(depth, 1e-30)
        if depth > 0.0:
            n = normal(solid, touch, 0.05 * radius, solids, parts)
            depth = qd.max(depth, n.dot(touch - b))
            slip = (b - a) - n * n.dot(b - a)
            share = qd.min(solids.friction[solid] * depth / qd.max(slip.norm(), 1e-30), 1.0)
            turn = solids.rotation[solid]
            gauge(body, x, turn @ n, 1.0, share, turn @ (depth * n - share * slip), mobility, solids, bodies)


@qd.func(requires_top_level=True)
def gauge_contacts(
    x: Vectors, x0: Vectors, inverse_mass: Floats, n: qd.i32, contact_radius: qd.f32, clear: Floats, reach: qd.f32,
    solids: Solids, parts: Parts, bodies: Bodies,
):  # fmt: skip
    """Collects the contacts of all particles closer than ``reach`` to a solid (``clear``, a lower bound) with bodies."""
    for i in range(n):
        if inverse_mass[i] > 0.0 and clear[i] < reach:
            for body in range(bodies.number[0]):
                radius = contact_radius * solids.standoff[bodies.solid[body]]
                _gauge_one(x[i], x0[i], radius, body, inverse_mass[i], solids, parts, bodies)


@qd.func(requires_top_level=True)
def contact(
    predicted: Vectors, position: Vectors, inverse_mass: Floats, n: qd.i32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts,
):  # fmt: skip
    """Moves predicted positions out of all solids."""
    for i in range(n):
        if inverse_mass[i] > 0.0:
            predicted[i] = resolve_all(predicted[i], position[i], radius, number, solids, parts, inverse_mass[i])


@qd.func
def clearance(x: vec3, number: qd.i32, solids: Solids, parts: Parts) -> qd.f32:
    """Distance to the nearest solid [m], in its pose at the end of the step; 1e30 where there is none."""
    gap = 1e30
    for solid in range(number):
        local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
        if local.norm() - solids.bound[solid] < gap:
            gap = qd.min(gap, distance(solid, local, solids, parts))
    return gap


@qd.func
def clearance_on_way(x0: vec3, x: vec3, number: qd.i32, solids: Solids, parts: Parts) -> qd.f32:
    """At least as far [m] from all solids stays who moves from x0 to x while they move too; 1e30 where there is none.

    In a solid's frame distances change by no more than a particle moves there, which is not what it moves in the world: a wall
    may sweep over one at rest and be far away again at the end of the step.
    """
    gap = 1e30
    for solid in range(number):
        a, b = local_path(x, x0, solid, solids)
        path = (b - a).norm()
        if a.norm() - solids.bound[solid] - path < gap:
            gap = qd.min(gap, distance(solid, a, solids, parts) - path)
    return gap


@qd.func
def longest_way(x0: vec3, x: vec3, number: qd.i32, solids: Solids) -> qd.f32:
    """How far [m] a particle moves in a step relative to the solids, at most: a wall may come while it rests."""
    longest = 0.0
    for solid in range(number):
        a, b = local_path(x, x0, solid, solids)
        longest = qd.max(longest, (b - a).norm())
    return longest


@qd.func(requires_top_level=True)
def contact_and_clearance(
    predicted: Vectors, position: Vectors, inverse_mass: Floats, n: qd.i32, radius: qd.f32, h: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts, clear: Floats,
):  # fmt: skip
    """As :func:`contact`, and how far from all solids each particle then is at least.

    Distances change by no more than a particle moves. Taking every later displacement off ``clear`` keeps it a lower bound,
    and while it is larger than a support h neither walls nor contact have to be looked at: most particles never do.
    """
    for i in range(n):
        gap = 1e30
        if inverse_mass[i] > 0.0:
            gap = clearance_on_way(position[i], predicted[i], number, solids, parts)
            if gap < h:
                predicted[i] = resolve_all(predicted[i], position[i], radius, number, solids, parts, inverse_mass[i])
                gap = clearance(predicted[i], number, solids, parts)
        clear[i] = gap


@qd.func(requires_top_level=True)
def contact_of_nearby(
    predicted: Vectors, position: Vectors, inverse_mass: Floats, n: qd.i32, full: qd.i32, radius: qd.f32, h: qd.f32,
    number: qd.i32, solids: Solids, parts: Parts, clear: Floats, nearby: Nearby,
):  # fmt: skip
    """:func:`contact_and_clearance`, where only those who may be closer than h are looked at twice, as a list (nearby.py).
    ``full`` = padded(n)."""
    qd.loop_config(block_dim=256)
    for i in range(full):
        gap = 1e30
        if i < n:
            if inverse_mass[i] > 0.0:
                gap = clearance_on_way(position[i], predicted[i], number, solids, parts)
            clear[i] = gap
        note(i, qd.select(gap < h, 1, 0), nearby)
    qd.loop_config(block_dim=qd.static(block_beside()))
    for t in range(qd.static(threads_beside())):
        at = t
        while at < nearby.number[0]:
            i = nearby.index[at]
            predicted[i] = resolve_all(predicted[i], position[i], radius, number, solids, parts, inverse_mass[i])
            # Who is in the list stays closer than h: nobody comes nearer and is added a second time.
            clear[i] = qd.min(clearance(predicted[i], number, solids, parts), 0.9999 * h)
            at += qd.static(threads_beside())
