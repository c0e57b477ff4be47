"""Contact of particles with solids given by signed distances (PBF, section 2.4 of our specification).

A particle must keep φ ≥ r_c. Positions are moved out along ∇φ, then the tangential displacement of the step, relative to
the wall, is reduced by Coulomb's law: by min(μ · depth / |t|, 1). Everything is computed in the solid's frame, where a
moving wall stands still and the particle's path runs from its old place in the old pose to its new place in the new.

Fast particles: when the path is long enough to have crossed the wall it is traced (sphere tracing) and ends at the first
touch, from where it slides. A wall thicker than half a contact radius is not crossed at any speed; a solid should turn by
less than half a radian per step, because the path in its frame is taken as straight.
"""

import quadrants as qd

from viscoil.particles import Floats, Vectors, vec3
from viscoil.solids.sdf import Parts, Solids, distance, normal


@qd.func
def _first_touch(solid: qd.i32, a: vec3, b: vec3, radius: qd.f32, solids: Solids, parts: Parts) -> vec3:
    """Where the path a → b ends: b when free, else the first touch plus what is left of the way along the surface."""
    length = (b - a).norm()
    end = b
    travelled = 0.0
    for _ in range(64):
        if travelled < length:
            q = a + (b - a) * (travelled / length)
            gap = distance(solid, q, solids, parts) - 0.25 * radius
            if gap < 0.01 * radius:
                n = normal(solid, q, 0.05 * radius, solids, parts)
                rest = b - q
                end = q + rest - n * qd.min(n.dot(rest), 0.0)
                travelled = length
            travelled += qd.max(gap, 0.01 * radius)
    if travelled < length:
        # Creeping along a surface used up all steps: stopping early is safe, passing through is not.
        end = a + (b - a) * (travelled / length)
    return end


@qd.func
def resolve(x: vec3, x0: vec3, contact_radius: qd.f32, solid: qd.i32, solids: Solids, parts: Parts) -> vec3:
    """New place of a particle that moves from x0 to x during the step, kept at φ ≥ contact_radius · standoff of one solid."""
    radius = contact_radius * solids.standoff[solid]
    a = solids.rotation0[solid].transpose() @ (x0 - solids.position0[solid])
    b = solids.rotation[solid].transpose() @ (x - solids.position[solid])
    path = b - a
    nearest = a + path * qd.min(qd.max(-a.dot(path) / qd.max(path.dot(path), 1e-30), 0.0), 1.0)
    result = x
    if nearest.norm() < solids.bound[solid] + radius:
        length = path.norm()
        if length > radius and distance(solid, a, solids, parts) - 0.25 * radius < length:
            b = _first_touch(solid, a, b, radius, solids, parts)
        touched = 0
        for face in range(3):
            # In an inner corner the distance knows one face at a time. A face left for the next step would be turned
            # into velocity there: go on until all are clear.
            if face == touched:
                depth = radius - distance(solid, b, solids, parts)
                if depth > 1e-5 * radius:
                    n = normal(solid, b, 0.05 * radius, solids, parts)
                    b += depth * n
                    slip = (b - a) - n * n.dot(b - a)
                    slipped = slip.norm()
                    if slipped > 0.0:
                        b -= slip * qd.min(solids.friction[solid] * depth / slipped, 1.0)
                    touched += 1
        if touched > 0:
            result = solids.rotation[solid] @ b + solids.position[solid]
    return result


@qd.func
def resolve_all(x: vec3, x0: vec3, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts) -> vec3:
    """Contact with every solid in turn."""
    result = x
    for solid in range(number):
        result = resolve(result, x0, radius, solid, solids, parts)
    return result


@qd.func(requires_top_level=True)
def contact(
    predicted: Vectors, position: Vectors, inverse_mass: Floats, n: qd.i32, radius: qd.f32, number: qd.i32,
    solids: Solids, parts: Parts,
):  # fmt: skip
    """Moves predicted positions out of all solids."""
    for i in range(n):
        if inverse_mass[i] > 0.0:
            predicted[i] = resolve_all(predicted[i], position[i], radius, number, solids, parts)
