"""Soft bodies that keep their volume: what their lattice of bonds leaves to Poisson's ratio 1/4.

Each particle measures how much its lattice neighbours were deformed, and resists changes of volume with the bulk modulus κ that
the bonds lack (XPBD, energy ½ κ V C²; with r at rest, V = d³ and m the mass unit):

    F_i = Σ_k (x_k − x_i)(r_k − r_i)ᵀ K_i⁻¹,   K_i = Σ_k (r_k − r_i)(r_k − r_i)ᵀ,   C_i = det F_i − 1
    ∂C_i/∂x_k = cof(F_i) K_i⁻¹ (r_k − r_i),    Δλ_i = (−C_i − α̃λ_i) / (ω Σ_k w |∂C_i/∂x_k|² + α̃),   α̃ = m/(κ V Δt²)

ω = 2.8: on an endless lattice the largest eigenvalue is 10/3 of the diagonal, and 1.2 of it is corrected (see distances.py).
Gradients of one constraint add up to zero: momentum is exact. What was turned inside out is left to the bonds.
"""

import quadrants as qd

from viscoil.particles import Particles, Vectors, mat3, vec3
from viscoil.solids.clusters import Clusters, Elastic, bond_of
from viscoil.sph.neighbors import Torus, separation


@qd.func
def weigh_volume(
    slot: qd.i32, p: Particles, x: Vectors, start: qd.i32, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    periodic: qd.template(),
):  # fmt: skip
    """Δλ cof(F) K⁻¹ of a slot; particles begin at ``start`` in x."""
    c = b.owner[slot]
    push = mat3(0.0)
    if e.yielding[c] > 0.0:
        i = b.index[slot]
        own = x[start + i]
        rest = e.rest[slot]
        f = mat3(0.0)
        reach = vec3(0.0)
        for number in range(18):
            k = e.partner[bond_of(slot, number, b)]
            r = e.rest[k] - rest
            f += separation(x[start + b.index[k]], own, torus, periodic).outer_product(r)
            reach += r
        inverse = e.shape[slot]
        f = f @ inverse
        volume = f.determinant()
        if volume > 0.1:  # also where there is no K⁻¹
            cofactor = volume * f.inverse().transpose()
            slope = cofactor @ inverse
            # Σ_k |S r_k|² = tr S K Sᵀ, and S K = cof F
            squares = (slope @ reach).norm_sqr() + (cofactor @ slope.transpose()).trace()
            compliance = e.yielding[c] / (dt * dt)
            change = (1.0 - volume - compliance * e.pressure[slot]) / (2.8 * p.inverse_mass[i] * squares + compliance)
            e.pressure[slot] += change
            push = change * slope
    e.push[slot] = push


@qd.func
def keep_volume(slot: qd.i32, p: Particles, x: Vectors, start: qd.i32, b: Clusters, e: Elastic):
    """Where a slot goes by its own push and its partners'; bonds find it in the first half of ``place``."""
    i = b.index[slot]
    reached = x[start + i]
    if e.yielding[b.owner[slot]] > 0.0:
        own = e.push[slot]
        rest = e.rest[slot]
        total = vec3(0.0)
        for number in range(18):
            k = e.partner[bond_of(slot, number, b)]
            total += (own + e.push[k]) @ (rest - e.rest[k])
        reached += p.inverse_mass[i] * total
    e.place[slot] = reached
