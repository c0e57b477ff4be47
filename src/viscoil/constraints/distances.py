"""Soft bodies as lattices of elastic bonds (XPBD: Macklin, Müller & Chentanez 2016), all bonds at once.

Bonds run along the edges and across the faces of the cubic lattice, 18 per particle. With one stiffness k for all of them the
lattice is an isotropic solid with Poisson's ratio 1/4 and shear modulus μ = k/d, whatever the spacing d: stiffness is a material's
and not a resolution's. For C = |x_a − x_b| − l, m the mass unit, T the damping time (Kelvin and Voigt's, C⁰ at the start of
the step):

    Δλ = (−(1 + T/Δt) C + (T/Δt) C⁰ − α̃λ) / ((1 + T/Δt) ω (w_a + w_b) + α̃),   α̃ = m/(k Δt²)
    Δx_a = w_a Σ Δλ n,   Δx_b = −w_b Σ Δλ n

Converged this is implicit Euler for the springs. Jacobi's iteration needs ω: the largest eigenvalue of the bonds' J Jᵀ on an
endless lattice is 12 w, met by a wave of two spacings, and ω = 5 corrects at most 1.2 of it, as PBF does with densities. A
body is a part of that lattice, so its eigenvalues are smaller. Both ends of a bond get the same impulse, so momentum is exact.
"""

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic
from viscoil.sph.neighbors import Torus, separation


@qd.func
def is_soft(c: qd.i32, b: Clusters) -> qd.i32:
    """Whether cluster c is soft and there."""
    return qd.select(b.first_id[c] >= 0, qd.select(b.kind[c] == 1, 1, 0), 0)


@qd.func(requires_top_level=True)
def start_bonds(p: Particles, torus: Torus, b: Clusters, e: Elastic, periodic: qd.template()):
    """λ = 0, and how long the bonds are at the start of a step."""
    for k in range(e.number[0]):
        if is_soft(b.owner[e.a[k]], b) == 1:
            d = separation(p.position[b.index[e.a[k]]], p.position[b.index[e.b[k]]], torus, periodic)
            e.before[k] = d.norm() - e.length[k]
            e.multiplier[k] = 0.0
    for slot in range(b.number[1]):
        e.pressure[slot] = 0.0


@qd.func(requires_top_level=True)
def pull_bonds(
    p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    periodic: qd.template(),
):  # fmt: skip
    """One iteration over all bonds; particles begin at ``start`` in x."""
    for k in range(e.number[0]):
        c = b.owner[e.a[k]]
        if is_soft(c, b) == 1:
            i = b.index[e.a[k]]
            j = b.index[e.b[k]]
            d = separation(x[start + i], x[start + j], torus, periodic)
            r = d.norm()
            ratio = e.damping[c] / dt
            compliance = e.compliance[c] / (dt * dt)
            softness = (1.0 + ratio) * 5.0 * (p.inverse_mass[i] + p.inverse_mass[j]) + compliance
            wanted = -(1.0 + ratio) * (r - e.length[k]) + ratio * e.before[k] - compliance * e.multiplier[k]
            change = wanted / softness
            e.multiplier[k] += change
            e.impulse[k] = (change / qd.max(r, 1e-6 * e.length[k])) * d
    for slot in range(b.number[1]):
        if is_soft(b.owner[slot], b) == 1:
            i = b.index[slot]
            total = vec3(0.0)
            for place in range(18):
                entry = e.row[18 * slot + place]
                if entry > 0:
                    total += e.impulse[entry - 1]
                elif entry < 0:
                    total -= e.impulse[-entry - 1]
            change = p.inverse_mass[i] * total
            x[start + i] = x[start + i] + change
            clear[i] -= change.norm()
