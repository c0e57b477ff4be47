"""How the conformation tensor Q moves, stretches and forgets (Barreiro et al. 2017, eqs. 3 and 6).

    dQ/dt = L Q + Q Lᵀ − (Q − I)/λ

The first two terms carry Q along: Q̂ = F Q Fᵀ keeps it positive definite for any step (the printed form of the equation turns
it the wrong way round, specification R-8). L is known where particles end, so F = (I − ΔtL)⁻¹: with I + ΔtL a conformation
that merely turns would grow by (ωΔt)² in every step. Then it relaxes, implicitly, with s = Δt/λ:

    Maxwell, Oldroyd   Q = (Q̂ + s I)/(1 + s)
    Giesekus           −[(Q − I) + α(Q − I)²]/λ: thins under shear. A quadratic equation for each eigenvalue
    FENE-P             −(f Q − I)/λ, f = (b − 3)/(b − tr Q): the trace never reaches b. One equation for the trace
    yield              only the part of the strain beyond the yield strain relaxes: below it a solid, above it a fluid

Eigenvalues outside [0.05, 20] are brought back and counted: no physical flow of ours goes there, a particle torn off does.
"""

import quadrants as qd

from viscoil.constraints.conformation import Substances, spring_factor
from viscoil.particles import Ints, mat3


@qd.func
def carried(q: mat3, gradient: mat3, dt: qd.f32) -> mat3:
    """Q̂ = F Q Fᵀ with F = ∂x/∂x⁰ = (I − ΔtL)⁻¹; torn-off particles, for which that has no meaning, I + ΔtL."""
    one = qd.Matrix.identity(qd.f32, 3)
    back = one - dt * gradient
    f = one + dt * gradient
    if back.determinant() > 0.2:
        f = back.inverse()
    return f @ q @ f.transpose()


@qd.func
def taut_trace(trace: qd.f32, s: qd.f32, b: qd.f32) -> qd.f32:
    """t with t + s (f(t) t − 3) = ``trace``: bisected, because both sides grow with t and t < b is certain."""
    low = 0.0
    high = b * (1.0 - 1e-3)
    for _ in range(24):
        t = 0.5 * (low + high)
        if t + s * (spring_factor(t, b) * t - 3.0) < trace:
            low = t
        else:
            high = t
    return 0.5 * (low + high)


@qd.func
def relaxed(q: mat3, s: qd.f32, yielding: qd.f32, taut: qd.f32) -> mat3:
    """Q̂ after a time of s relaxation times; ``yielding`` strain (0 = none), ``taut`` trace of FENE-P (0 = never)."""
    one = qd.Matrix.identity(qd.f32, 3)
    result = (q + s * one) / (1.0 + s)
    if taut > 0.0:
        result = (q + s * one) * (taut_trace(q.trace(), s, taut) / (q.trace() + 3.0 * s))  # = 1/(1 + s f), and bounded for sure
    elif yielding > 0.0:
        mean = q.trace() / 3.0
        shape = q - mean * one
        strain = qd.sqrt(0.5) * shape.norm()  # of simple shear γ: Q_xy = γ
        keep = 1.0
        if strain > yielding:
            keep = (strain + s * yielding) / ((1.0 + s) * strain)
        result = (1.0 + (mean - 1.0) / (1.0 + s)) * one + keep * shape
    return result


@qd.func
def thinned(eigenvalue: qd.f32, s: qd.f32, alpha: qd.f32) -> qd.f32:
    """Giesekus: e with α s e² + (1 + s) e = q̂ − 1, plus 1."""
    b = 1.0 + s
    root = qd.sqrt(qd.max(b * b + 4.0 * alpha * s * (eigenvalue - 1.0), 0.0))
    return 1.0 + 2.0 * (eigenvalue - 1.0) / (b + root)


@qd.func
def next_conformation(q: mat3, gradient: mat3, dt: qd.f32, m: qd.i32, k: Substances, clamped: Ints) -> mat3:
    """Q at the end of a step in which the velocity gradient was L [1/s]; ``clamped[0]`` counts what had to be limited."""
    result = carried(q, gradient, dt)
    s = dt / qd.max(k.relaxation[m], 1e-9 * dt)
    if k.modulus[m] > 0.0:
        s = 0.0
        if k.yield_strain[m] > 0.0:
            s = dt / qd.max(k.relaxation[m], dt)  # a solid that yields flows at its own pace, at most within a step
    if k.mobility[m] == 0.0 and s > 0.0:
        result = relaxed(result, s, k.yield_strain[m], k.extensibility[m])
    # λ_max > 20 needs a trace above 20, λ_min < 0.05 a small determinant: eigenvalues are seldom looked at.
    if k.mobility[m] > 0.0 or result.trace() > 20.0 or result.determinant() < 0.5:
        values, vectors = qd.sym_eig(result)
        fixed = mat3(0.0)
        for a in qd.static(range(3)):
            value = values[a]
            if k.mobility[m] > 0.0:
                value = thinned(value, s, k.mobility[m])
            if value < 0.05 or value > 20.0:
                value = qd.min(qd.max(value, 0.05), 20.0)
                qd.atomic_add(clamped[0], 1)
            axis = qd.Vector([vectors[0, a], vectors[1, a], vectors[2, a]])
            fixed += value * axis.outer_product(axis)
        result = fixed
    return 0.5 * (result + result.transpose())
