"""No slip without pressure: fluid that touches a rough wall goes with it, whether or not something presses it there.

Contact (contact.py) is Coulomb's: its friction is as strong as the wall is pressed, which is right for solids. A fluid clings
to a wall in any case; what keeps it there is viscosity, not pressure. Without this a polymer solution in a channel, whose
tension along the wall lets it lift off by a thousandth of a spacing, slips.

The tangential velocity of particles nearer to a no-slip wall than 1.5 contact radii (the first layer; the second is at three)
is that of the wall; their normal velocity stays free, so that nothing is glued: what is pulled off goes, and clings no longer.
The plane of no slip is then where these particles are, half a spacing inside the fluid: a channel acts as one spacing
narrower than it is drawn.
"""

import quadrants as qd

from viscoil.particles import vec3
from viscoil.solids.sdf import Parts, Solids, distance, normal


@qd.func
def nearest_wall(x: vec3, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    """(normal of the nearest solid, its friction)."""
    gap = 1e30
    n = vec3(0.0)
    rough = 0.0
    for solid in range(number):
        local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
        if local.norm() - solids.bound[solid] < gap:
            phi = distance(solid, local, solids, parts)
            if phi < gap:
                gap = phi
                n = solids.rotation[solid] @ normal(solid, local, 0.05 * radius, solids, parts)
                rough = solids.friction[solid]
    return n, rough


@qd.func
def clinging(x: vec3, dt: qd.f32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    """(1 when x is in the first layer at a no-slip wall, the wall's normal there, its velocity [m/s])."""
    near = 0
    n = vec3(0.0)
    u = vec3(0.0)
    gap = 1.5 * radius
    for solid in range(number):
        if solids.friction[solid] > 1e6:  # no slip is infinite friction
            local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
            if local.norm() - solids.bound[solid] < gap:
                phi = distance(solid, local, solids, parts)
                if phi < gap:
                    gap = phi
                    near = 1
                    n = solids.rotation[solid] @ normal(solid, local, 0.05 * radius, solids, parts)
                    u = (x - solids.rotation0[solid] @ local - solids.position0[solid]) / dt
    return near, n, u
