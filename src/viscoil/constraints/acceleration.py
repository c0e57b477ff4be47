"""Jacobi's iteration with momentum: as many passes over the lists, an error that falls with the square of their number.

An iteration of Jacobi takes a share κ off the error of a mode, κ from almost 0 (a tall column that sinks as a whole) to κ_max
(neighbours against each other); after N of them 1 − Nκ of the slow ones is left. A semi-iterative method adds a share of the
step before,

    Λ ← Λ + μ_k (Λ − Λ_before) + ω_k/κ_max λ

and leaves p_N(κ) of it, a polynomial with p_N(0) = 1. Chebyshev's needs to know the slowest mode and N beforehand. Jacobi's
polynomials P_N^(α, −1/2), the ν-method of Brakhage with α = 2ν − 1/2, need neither and are good wherever one stops:

    μ_k = (k − 1)(2k − 3)(2k + 2ν − 1) / ((k + 2ν − 1)(2k + 4ν − 1)(2k + 2ν − 3))
    ω_k = 4 (2k + 2ν − 1)(k + ν − 1) / ((k + 2ν − 1)(2k + 4ν − 1))

    p_N(κ) = 1 − N(N + 1/2 + α)/(α + 1) κ/κ_max + ...,        N²/2 where Jacobi's has N, with ν = 3/4

**Why ν = 3/4.** What a step leaves, g = p_N(κ) of a mode, is carried on by velocities, e ← g (2e − e_before): it decays for
−1/3 < g < 1. Started with a share c of the last step's Λ, it decays for g → 1 if c ≤ 1/2, beyond which slow modes swing, and at
the other end if g > −1/(3 + 4c), which is −0.2. The trough of p_N is −0.25 with ν = 1/2, too deep, and −0.17 with 3/4.

**What is pushed can be let go.** Sums of multipliers are kept from becoming positive, not single ones: Λ ← min(Λ, 0).
What overshoots comes back, which without a memory of Λ would be a gain of energy (a pool then boils). Positions only see the
differences, through the same sums over pairs as without momentum: each pair's momentum is exact, and contact is untouched.

**Nothing is paid for the start.** The first iteration adds c m to its multipliers, found without it: for slow modes, which are
what it is for, that makes no difference (κ² against κ).

**What lasts is remembered, a blow is not.** An impact's Λ must not be there in the next step: a wall that pushes again cannot
pull back, and fluid falling onto a floor jumped with a third of its speed whatever the number of iterations. A step starts from

    m ← min(Λ, 1.3 m + Λ/50)

with Λ that the last step ended with: all of what rests after ten steps, and of a blow that takes three hardly anything. What is
no longer there is forgotten at once.

κ_max is known for a lattice. Disorder exceeds it only where gradients are larger than the lattice's, so that ε of eq. 11 must
grow with them (``share``): then κ_max stays under 1.1 of it in splashes too (measured; with a constant ε 1.4, and steps of
half a spacing blow up).
"""

from typing import Any

import quadrants as qd

from viscoil.constraints.density import DensityNumbers
from viscoil.particles import Floats

DISORDER = 1.1  # κ_max of splashes over that of a lattice
LARGEST_SHARE = 0.5  # of the last step's Λ that a step may start from


def momentum_numbers(lattice: Any, relaxation: float, dt: float, warm_start: float) -> dict[str, float]:
    """What :class:`DensityNumbers` needs for it, with ε as large as ``relaxation`` relative to the lattice."""
    top = DISORDER * lattice.stiffest_mode / (1 + relaxation)
    return {"unilateral": 0, "share": relaxation, "stride": 1 / top, "warm": min(warm_start, LARGEST_SHARE), "square": dt * dt}


def pace_of(k: float):
    """(μ_k, ω_k) of iteration k = 1, 2, ... for ν = 3/4. No type of the result: the kernel of the same words wants none."""
    return (
        (k - 1.0) * (2.0 * k - 3.0) * (2.0 * k + 0.5) / ((k + 0.5) * (2.0 * k + 2.0) * (2.0 * k - 1.5)),
        4.0 * (2.0 * k + 0.5) * (k - 0.25) / ((k + 0.5) * (2.0 * k + 2.0)),
    )


pace = qd.func(pace_of)


def compiled_pace(numbers: dict[str, float], done: int) -> dict[str, float]:
    """``numbers`` of an iteration after ``done`` others, as the compiled passes take them."""
    mu, omega = pace_of(done + 1.0)
    others = {name: value for name, value in numbers.items() if name != "stride"}
    return {**others, "momentum": mu, "gain": omega * numbers["stride"], "done": done}


@qd.func
def gather_momentum(
    i: qd.i32, value: qd.f32, last: qd.f32, done: qd.i32, c: DensityNumbers, pressure: Floats
) -> qd.f32:
    """By how much Λ_i changes in this iteration; ``value`` is what Jacobi's would change it by, ``done`` how many there were,
    ``last`` by how much it changed in the last of them; in the first, all that it is.

    ``pressure``, two numbers per particle: −Λ/Δt² [m²/s²] of the last step until the second iteration, which needs to know
    what the first started from, then of this one; and −m/Δt².
    """
    mu, omega = pace(qd.cast(done + 1, qd.f32))
    lasting = pressure[2 * i + 1]
    if done == 0:
        lasting = qd.min(pressure[2 * i], 1.3 * lasting + 0.02 * pressure[2 * i])  # as native/density.h has it
        pressure[2 * i + 1] = lasting
    kept = -c.square[0] * pressure[2 * i]
    start = -c.warm[0] * c.square[0] * lasting
    before = qd.select(done == 0, start, qd.select(done == 1, last, kept))
    change = qd.select(done == 0, 0.0, qd.select(done == 1, last - start, last))
    after = qd.min(before + mu * change + omega * c.stride[0] * value, 0.0)
    if done > 0:
        pressure[2 * i] = -after / c.square[0]
    return qd.select(done == 0, after, after - before)
