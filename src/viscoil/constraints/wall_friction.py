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
def nearest_wall(x: vec3, dt: qd.f32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    """Of the solid nearest to x: (1 if x is in its first layer and it lets nothing slip, normal, friction, velocity [m/s],
    which it is; -1 where there is none)."""
    gap = 1e30
    n = vec3(0.0)
    rough = 0.0
    u = vec3(0.0)
    nearest = -1
    for solid in range(number):
        local = solids.rotation[solid].transpose() @ (x - solids.position[solid])
        if local.norm() - solids.bound[solid] < gap:
            phi = distance(solid, local, solids, parts)
            if phi < gap:
                gap = phi
                nearest = solid
                n = solids.rotation[solid] @ normal(solid, local, 0.05 * radius, solids, parts)
                rough = solids.friction[solid]
                u = (x - solids.rotation0[solid] @ local - solids.position0[solid]) / dt
    # No slip is infinite friction.
    return qd.cast(gap < 1.5 * radius and rough > 1e6, qd.i32), n, rough, u, nearest
