"""Soft bodies as lattices of elastic bonds (XPBD: Macklin, Müller & Chentanez 2016), all bonds at once.

Bonds run along the edges and across the faces of the cubic lattice, 18 per particle. With one stiffness k for all of them the
lattice is an isotropic solid with Poisson's ratio 1/4 and shear modulus μ = k/d, whatever the spacing d: stiffness is a
material's and not a resolution's. For C = |x_a − x_b| − l, m the mass unit, T the damping time (Kelvin and Voigt's; C⁰ at the
start of the step):

    A Δλ = r,   r = −(1 + T/Δt) C + (T/Δt) C⁰ − α̃λ,   A = (1 + T/Δt) J W Jᵀ + α̃,   α̃ = m/(k Δt²)
    Δx_a = w_a Σ Δλ n,   Δx_b = −w_b Σ Δλ n

Solved, this is implicit Euler for the springs. Jacobi's iteration, the usual way, would take as many turns as A is ill
conditioned, and a body of which only some were taken is softer than it should be. The bounds of A's spectrum are known here: α̃
below, and above 12 w (1 + T/Δt) + α̃, because 12 w is the largest eigenvalue of J W Jᵀ on an endless lattice (a wave of two
spacings) and a body is a part of that. Chebyshev's iteration needs no more, and only the square root of the turns:

    d ← r/θ,  then  d ← ρ ρ′ d + (2ρ/δ) r,   λ ← λ + d,   θ, δ = half the sum and difference of the bounds,  ρ = 1/(2θ/δ − ρ′)

Residuals are taken from the places themselves, so that turned and stretched bonds count as they are. Both ends of a bond
get the same impulse: momentum is exact however early the iterations end.
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


@qd.func
def _pull(k: qd.i32, x: Vectors, start: qd.i32, dt: qd.f32, turn: qd.i32, w: qd.f32, torus: Torus, b: Clusters, e: Elastic,
          periodic: qd.template()):  # fmt: skip
    """Turn number ``turn`` of Chebyshev's iteration for bond k."""
    c = b.owner[e.a[k]]
    d = separation(x[start + b.index[e.a[k]]], x[start + b.index[e.b[k]]], torus, periodic)
    r = d.norm()
    ratio = e.damping[c] / dt
    low = e.compliance[c] / (dt * dt)
    half = 6.3 * w * (1.0 + ratio)  # 12 w/2, and a twentieth more for what is bent
    centre = low + half
    rho = half / centre
    before = 0.0
    for _ in range(turn):
        before = rho
        rho = 1.0 / (2.0 * centre / half - before)
    residual = -(1.0 + ratio) * (r - e.length[k]) + ratio * e.before[k] - low * e.multiplier[k]
    change = residual / centre
    if turn > 0:
        change = rho * before * e.stride[k] + (2.0 * rho / half) * residual
    e.stride[k] = change
    e.multiplier[k] += change
    e.impulse[k] = (change / qd.max(r, 1e-6 * e.length[k])) * d


@qd.func(requires_top_level=True)
def pull_bonds(
    p: Particles, x: Vectors, start: qd.i32, clear: Floats, dt: qd.f32, torus: Torus, b: Clusters, e: Elastic,
    turns: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """So many turns over all bonds; particles begin at ``start`` in x."""
    for turn in qd.static(range(turns)):
        for k in range(e.number[0]):
            if is_soft(b.owner[e.a[k]], b) == 1:
                _pull(k, x, start, dt, turn, p.inverse_mass[b.index[e.a[k]]], torus, b, e, periodic)
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
