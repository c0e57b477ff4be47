"""XSPH in the form that keeps momentum (R40), as a viscosity one can ask for, and no slip at walls.

    ṽ_i = v_i + Σ_j ε_ij 2V_j/(δ_i + δ_j) 2w_i/(w_i + w_j) (v_j − v_i) W_ij

Printed with m_j/ρ_j alone, what i gains is not what j loses. Over smooth flows the sum is ε ⟨r²⟩/6 ∇²v, with ⟨r²⟩ the second
moment of the kernel, so one pass is a kinematic viscosity ν = ε⟨r²⟩/(6Δt); larger ones take several passes.
Velocities that differ because the fluid turns are mixed as well: XSPH brakes rotation. ``central`` mixes only what is along the
line between two particles, 3 (v_ij·x̂_ij) x̂_ij: that keeps angular momentum, and is a viscosity of ε⟨r²⟩/(10Δt).
Beside walls without slip the fluid takes their velocity, as far as they fill its neighbourhood.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.body_drag import drag_bodies, drag_of_body, hold_of_body, wall_velocity
from viscoil.constraints.pressure import PressureField
from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.coupling import Bodies, add_contact, lever_at_start, solve_bodies
from viscoil.solids.sdf import Solids
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, lanes, separation
from viscoil.sph.smoothing import cubic


@dataclass(frozen=True)
class SmoothingNumbers:
    """How strongly velocities are mixed."""

    support: Floats  # [1] H [m]
    strength: Floats  # [material] ε of one pass
    passes: Floats  # [1] how many


@qd.func
def clinging(i: qd.i32, f: PressureField) -> qd.f32:
    """Share of the difference to the walls' velocity that walls without slip (a friction of 1e6 here) take off in a pass."""
    held = qd.min(1e-6 * f.grip[i], f.wall[i])
    return qd.select(held > 1e-3 * f.wall[i], qd.min(held / f.density[i], 1.0), 0.0)


@qd.func(requires_top_level=True)
def meet_clinging_bodies(
    p: Particles, x: Vectors, n: qd.i32, f: PressureField, velocity: Vectors, solids: Solids, bodies: Bodies, dt: qd.f32
):
    """Bodies without slip go along with the fluid, before :func:`smooth_velocities` makes it go along with them."""
    for i in range(n):
        if f.body[2 * i] >= 0 and p.inverse_mass[i] > 0.0:
            share = clinging(i, f)
            for at in range(2 * i, 2 * i + 2):
                body = f.body[at]
                if body >= 0 and share > 0.0:
                    hold = hold_of_body(at, share, p, f)
                    q = drag_of_body(at, x[i], hold, velocity[i], dt, f, solids, bodies)
                    add_contact(body, lever_at_start(body, x[i], solids, bodies), vec3(0.0), hold, hold, q, bodies)
    solve_bodies(solids, bodies)


@qd.func(requires_top_level=True)
def smooth_velocities(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: SmoothingNumbers, f: PressureField,
    velocity: Vectors, smoothed: Vectors, solids: Solids, bodies: Bodies, dt: qd.f32, central: qd.template(),
    enclosed: qd.template(), coupled: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """One pass; ``enclosed``: there are walls; ``coupled``: some of them are bodies that fluid can move."""
    for i in range(n):
        vi = velocity[i]
        result = vi
        if p.inverse_mass[i] > 0.0:
            h = c.support[0]
            mine = 0
            if qd.static(not single):
                mine = qd.max(p.material[i], 0)
            strength = c.strength[mine]
            xi = x[i]
            own = f.density[i]
            volume = p.volume[i]
            change = vec3(0.0)
            count = near.count[i]
            for batch in range(batches(count)):
                some = fetch(near, i, batch)
                for lane in qd.static(range(lanes())):
                    j = some[lane]
                    d = separation(xi, x[j], torus, periodic)
                    pair = strength
                    if qd.static(not single):
                        pair = 0.5 * (strength + c.strength[qd.max(p.material[j], 0)])
                    if qd.static(not uniform):
                        wi = p.inverse_mass[i]
                        volume = p.volume[j] * 2.0 * wi / (wi + qd.max(p.inverse_mass[j], 0.0))
                    r2 = d.dot(d)
                    apart = velocity[j] - vi
                    if qd.static(central):
                        apart = 3.0 * apart.dot(d) / qd.max(r2, 1e-12 * h * h) * d
                    change += pair * 2.0 * volume / (own + f.density[j]) * cubic(r2, h) * apart
            result += change
            if qd.static(enclosed):
                share = clinging(i, f)
                if share > 0.0:
                    result += share * (wall_velocity(i, xi, dt, f, solids, bodies, coupled) - vi)
                    if qd.static(coupled):
                        drag_bodies(i, xi, share, vi, dt, p, f, solids, bodies)
        smoothed[i] = result
