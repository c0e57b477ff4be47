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
find the same impulse from the same numbers, with opposite signs: momentum is exact however early the iterations end.
"""

import quadrants as qd

from viscoil.particles import Floats, Particles, Vectors, vec3
from viscoil.solids.clusters import Clusters, Elastic, bond_of
from viscoil.sph.neighbors import Torus, separation
from viscoil.sph.sums import on_gpu


def together() -> int:
    """Bonds whose numbers are fetched before any is written: a GPU waits long for each, and a store ends what it may fetch."""
    return 6 if on_gpu() else 1


@qd.func
def plan_turns(c: qd.i32, w: qd.f32, dt: qd.f32, e: Elastic):
    """Factors of Chebyshev's iteration for a cluster of inverse mass w."""
    ratio = e.damping[c] / dt
    low = e.compliance[c] / (dt * dt)
    half = 6.3 * w * (1.0 + ratio)  # 12 w/2, and a twentieth more for what is bent
    centre = low + half
    rho = half / centre
    e.pace[24 * c] = 0.0
    e.pace[24 * c + 1] = 1.0 / centre
    for turn in range(1, 12):
        before = rho
        rho = 1.0 / (2.0 * centre / half - before)
        e.pace[24 * c + 2 * turn] = rho * before
        e.pace[24 * c + 2 * turn + 1] = 2.0 * rho / half


@qd.func
def start_bonds(slot: qd.i32, p: Particles, torus: Torus, b: Clusters, e: Elastic, periodic: qd.template()):
    """λ = 0, and how long the bonds of a slot are at the start of a step."""
    x = p.position[b.index[slot]]
    for number in range(18):
        k = bond_of(slot, number, b)
        d = separation(x, p.position[b.index[e.partner[k]]], torus, periodic)
        e.before[k] = d.norm() - e.length[k]
        e.multiplier[k] = 0.0
    e.pressure[slot] = 0.0


@qd.func
def _partner_place(
    slot: qd.i32, half: qd.i32, x: Vectors, start: qd.i32, b: Clusters, e: Elastic, placed: qd.template()
) -> vec3:
    """Where a slot is: in its half of ``place``, or still where particles are."""
    result = vec3(0.0)
    if qd.static(placed):
        result = e.place[half * b.number[1] + slot]
    else:
        result = x[start + b.index[slot]]
    return result


@qd.func
def pull_bonds(
    slot: qd.i32, turn: qd.template(), turns: qd.template(), p: Particles, x: Vectors, start: qd.i32, clear: Floats,
    dt: qd.f32, torus: Torus, b: Clusters, e: Elastic, placed: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """One of ``turns`` turns for the bonds of a slot. Before the first one slots are in the first half of ``place``, if
    ``placed``, else where particles are, from ``start`` in x; after the last one they are there."""
    c = b.owner[slot]
    ratio = e.damping[c] / dt
    low = e.compliance[c] / (dt * dt)
    along = e.pace[24 * c + 2 * turn]
    across = e.pace[24 * c + 2 * turn + 1]
    there = qd.static(placed or turn > 0)
    own = _partner_place(slot, turn % 2, x, start, b, e, there)
    total = vec3(0.0)
    for batch in range(qd.static(18 // together())):
        first = bond_of(slot, batch * qd.static(together()), b)
        step = bond_of(slot, batch * qd.static(together()) + 1, b) - first
        d = qd.Matrix([[0.0 for _ in qd.static(range(3))] for _ in qd.static(range(together()))])
        length = qd.Vector([0.0 for _ in qd.static(range(together()))])
        before = qd.Vector([0.0 for _ in qd.static(range(together()))])
        multiplier = qd.Vector([0.0 for _ in qd.static(range(together()))])
        stride = qd.Vector([0.0 for _ in qd.static(range(together()))])
        for lane in qd.static(range(together())):
            k = first + lane * step
            to = separation(own, _partner_place(e.partner[k], turn % 2, x, start, b, e, there), torus, periodic)
            d[lane, 0] = to[0]
            d[lane, 1] = to[1]
            d[lane, 2] = to[2]
            length[lane] = e.length[k]
            before[lane] = e.before[k]
            multiplier[lane] = e.multiplier[k]
            if qd.static(turn > 0):
                stride[lane] = e.stride[k]
        for lane in qd.static(range(together())):
            k = first + lane * step
            to = vec3(d[lane, 0], d[lane, 1], d[lane, 2])
            r = to.norm()
            residual = (1.0 + ratio) * (length[lane] - r) + ratio * before[lane] - low * multiplier[lane]
            change = along * stride[lane] + across * residual
            if qd.static(turn + 1 < turns):
                e.stride[k] = change
            e.multiplier[k] = multiplier[lane] + change
            total += (change / qd.max(r, 1e-30)) * to
    i = b.index[slot]
    reached = own + p.inverse_mass[i] * total
    if qd.static(turn + 1 < turns):
        e.place[(turn + 1) % 2 * b.number[1] + slot] = reached
    else:
        clear[i] -= (reached - x[start + i]).norm()
        x[start + i] = reached
