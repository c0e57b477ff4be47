"""Soft bodies that keep their volume: what their lattice of bonds leaves to Poisson's ratio 1/4.

Each particle measures how much its lattice neighbours were deformed, and resists changes of volume with the bulk modulus κ that
the bonds lack (XPBD, energy ½ κ V C²; with r at rest, V = d³ and m the mass unit):

    F_i = Σ_k (x_k − x_i)(r_k − r_i)ᵀ K_i⁻¹,   K_i = Σ_k (r_k − r_i)(r_k − r_i)ᵀ,   C_i = det F_i − 1
    ∂C_i/∂x_k = cof(F_i) K_i⁻¹ (r_k − r_i),    Δλ_i = (−C_i − α̃λ_i) / (ω Σ_k w |∂C_i/∂x_k|² + α̃),   α̃ = m/(κ V Δt²)

ω = 2.8: on an endless lattice the largest eigenvalue is 10/3 of the diagonal, and 1.2 of it is corrected (see distances.py).
Gradients of one constraint add up to zero: momentum is exact. What was turned inside out is left to the bonds.
"""

import quadrants as qd

from viscoil.constraints.distances import is_soft
from viscoil.particles import Floats, Particles, Vectors, mat3, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.sph.neighbors import Torus, separation


@qd.func
def _partner(entry: qd.i32, e: Elastic) -> qd.i32:
    """Slot at the other end of a bond in a slot's row."""
    result = e.a[qd.abs(entry) - 1]
    if entry > 0:
        result = e.b[entry - 1]
    return result


@qd.func(requires_top_level=True)
def keep_volumes(
    p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    periodic: qd.template(),
):  # fmt: skip
    """One iteration over all volumes; particles begin at ``start`` in x."""
    for slot in range(b.number[1]):
        c = b.owner[slot]
        push = mat3(0.0)
        if is_soft(c, b) == 1 and e.yielding[c] > 0.0:
            i = b.index[slot]
            f = mat3(0.0)
            reach = vec3(0.0)
            for place in range(18):
                entry = e.row[18 * slot + place]
                if entry != 0:
                    j = b.index[_partner(entry, e)]
                    r = p.rest[j] - p.rest[i]
                    f += separation(x[start + j], x[start + i], torus, periodic).outer_product(r)
                    reach += r
            inverse = e.shape[slot]
            f = f @ inverse
            volume = f.determinant()
            if volume > 0.1:  # also where there is no K⁻¹
                slope = volume * f.inverse().transpose() @ inverse
                squares = (slope @ reach).norm_sqr()
                for place in range(18):
                    entry = e.row[18 * slot + place]
                    if entry != 0:
                        squares += (slope @ (p.rest[b.index[_partner(entry, e)]] - p.rest[i])).norm_sqr()
                compliance = e.yielding[c] / (dt * dt)
                change = (1.0 - volume - compliance * e.pressure[slot]) / (2.8 * p.inverse_mass[i] * squares + compliance)
                e.pressure[slot] += change
                push = change * slope
        e.push[slot] = push
    for slot in range(b.number[1]):
        c = b.owner[slot]
        if is_soft(c, b) == 1 and e.yielding[c] > 0.0:
            i = b.index[slot]
            own = e.push[slot]
            total = vec3(0.0)
            for place in range(18):
                entry = e.row[18 * slot + place]
                if entry != 0:
                    other = _partner(entry, e)
                    total += (own + e.push[other]) @ (p.rest[i] - p.rest[b.index[other]])
            change = p.inverse_mass[i] * total
            x[start + i] = x[start + i] + change
            clear[i] -= change.norm()
