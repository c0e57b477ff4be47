"""Implicit incompressible SPH (Ihmsen et al. 2014): pressures that leave no compression at the end of the step.

Densities are relative, δ_i = Σ_j V_j W_ij + walls = ρ_i/ρ₀, so that fluids of different rest density meet without a jump, and
the unknown is P_i = p_i/(ρ_ref δ_i²) [m²/s²]. With inverse masses w and G_i = Σ_j V_j ∇W_ij + g_i, where g_i is the part of
walls and boundary samples (Akinci et al. 2012: their pressure mirrors that of the particle they push),

    a_i   = −w_i (P_i G_i + Σ_j V_j P_j ∇W_ij)                                     acceleration by pressure
    δ̃_i   = δ_i + Δt (ṽ_i·G_i − Σ_j V_j ṽ_j·∇W_ij − flux_i)                         density without it
    δ*_i  = δ̃_i + Δt² (a_i·G_i − Σ_j V_j a_j·∇W_ij)                                 density with it
    A_i   = −Δt² (w_i |G_i|² + V_i Σ_j w_j V_j |∇W_ij|²)                            ∂δ*_i/∂P_i
    P_i  ← max(0, P_i + ω (1 − δ*_i)/A_i)

which is the published iteration (Σ d_ij p_j and b_i) with its sums collected: two passes, one vector between them. Positions
stay where they are at the start of the step, so all that walls contribute is summed up once, in
:func:`feel_walls`, which also takes boundary samples off the lists: the iterations meet fluid only.

What a nozzle leads (w < 0) goes its way whatever pushes it, and has no pressure of its own: most of its neighbours are led as
well and cannot yield, so the few free ones in sight would be thrown away to make up for all of them. Free particles feel it by
their own pressure, through G, and count it as free in A, which then is a little larger than needed, never smaller.

Bodies that fluid can move take part in the iterations (strong coupling: exchanged once a step, the push on a light body would
throw it farther than the fluid it displaces). Their part b_i of g_i gives particles the impulses q_i = −Δt P_i b_i, in units of
the first material's particles, and how they move is part of the density:

    δ*_i  = ... − Δt u(x_i)·b_i,      u = u₀ − W Σ Jᵀ q_i

One iteration changes P_i by −ω Δt δu·b_i/|A_i| when the body's velocity changes by δu, and with it q_i by k_i δu, where
k_i = (ω/(−A_i/Δt²)) b_i b_iᵀ. That is the S of solids/coupling.py, which finds the twist for which the next iteration will
push as much as the body yields. Bodies so heavy that they do not yield are walls, u = u₀.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil import backend
from viscoil.constraints.acceleration import pace
from viscoil.constraints.walls import wall_motion_with_bodies
from viscoil.particles import Flag, Floats, Ints, Particles, Vectors, vec3
from viscoil.solids.coupling import Bodies, add_contact, add_push, lever_at_start, way_of
from viscoil.solids.sdf import Parts, Solids
from viscoil.sph.finite import unless_lost
from viscoil.sph.neighbors import NeighborList, Torus, batches, fetch, fill_up, form_of, lanes, seat, separation
from viscoil.sph.smoothing import cubic, cubic_gradient
from viscoil.sph.sums import Sums, chunk_totals, grand_total, hand_in, workers


@dataclass(frozen=True)
class PressureNumbers:
    """Parameters of the pressure solve, one element each."""

    dt: Floats  # [s]
    support: Floats  # H [m]
    relaxation: Floats  # ω
    warm: Floats  # share of the last step's pressure to start from
    wall_viscosity: Floats  # ν_b of Akinci's friction [m²/s]
    tolerance: Floats  # mean compression that ends the iterations
    movers: Ints  # fluid particles
    iterations: Ints  # most iterations
    least: Ints  # fewest iterations
    stride: Floats  # 1/κ_max of acceleration.py, 0 without momentum


@dataclass(frozen=True)
class PressureField:
    """What the pressure solve keeps of every particle during a step."""

    density: Floats  # δ
    gradient: Vectors  # G [1/m]
    diagonal: Floats  # −A/Δt² [1/m²]
    source: Floats  # δ̃ − 1
    pressure: Floats  # P [m²/s²]
    change: Floats  # what the last iteration changed it by [m²/s²]
    acceleration: Vectors  # a [m/s²]
    wall: Floats  # part of walls in δ
    toward: Vectors  # g [1/m]
    flux: Floats  # Σ_b V_b v_b·∇W_ib [1/s]
    wall_velocity: Vectors  # Σ_b V_b W_ib v_b [m/s]
    grip: Floats  # Σ_b V_b W_ib μ_b
    body: Ints  # [2 particle] bodies beside it that fluid can move, or −1; this and the next three only where there are such
    by_body: Vectors  # [2 particle] their parts b of g [1/m]
    of_body: Floats  # [2 particle] their parts of δ
    braked: Vectors  # [2 particle] their parts of Akinci's friction [1/(m s)]
    slope_x: Floats  # [as the neighbour list] V_j ∇W_ij [1/m], where it is kept
    slope_y: Floats
    slope_z: Floats
    used: Ints  # iterations in this step, and since they were asked for
    error: Floats  # [1] mean compression before the last iteration


def kept() -> bool:
    """Whether V ∇W of all pairs is kept for the iterations: on a CPU that saves most of their work, on a GPU nothing."""
    return not backend.current().is_gpu


@qd.func
def _slope(
    at: qd.i32, xi: vec3, j: qd.i32, own: qd.f32, p: Particles, x: Vectors, torus: Torus, h: qd.f32, f: PressureField,
    uniform: qd.template(), periodic: qd.template(),
) -> vec3:  # fmt: skip
    """V_j ∇W_ij [1/m] of the listed pair ``at``; where it is not kept, zero for j = i."""
    result = vec3(0.0)
    if qd.static(kept()):
        result = vec3(f.slope_x[at], f.slope_y[at], f.slope_z[at])
    else:
        d = separation(xi, x[j], torus, periodic)
        volume = own
        if qd.static(not uniform):
            volume = p.volume[j]
        result = volume * cubic_gradient(d.dot(d), h) * d
    return result


@qd.func
def _gathering(
    i: qd.i32, u: Vectors, p: Particles, x: Vectors, near: NeighborList, torus: Torus, h: qd.f32, f: PressureField,
    uniform: qd.template(), periodic: qd.template(),
) -> qd.f32:  # fmt: skip
    """u_i·G_i − Σ_j V_j u_j·∇W_ij: how a field u (velocities, accelerations) makes the density of particle i grow."""
    result = u[i].dot(f.gradient[i])
    own = p.volume[i]
    xi = x[i]
    base = i * near.row[0]
    count = near.count[i]
    for batch in range(batches(count)):
        some = fetch(near, i, batch)
        for lane in qd.static(range(lanes())):
            j = some[lane]
            result -= _slope(base + batch, xi, j, own, p, x, torus, h, f, uniform, periodic).dot(u[j])
    return result


@qd.func(requires_top_level=True)
def feel_walls(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers, velocity: Vectors,
    solids: Solids, parts: Parts, number: qd.i32, f: PressureField, bounded: qd.template(), walled: qd.template(),
    coupled: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """All that walls add, and lists cut down to fluid. ``velocity``: v_adv, and of boundary samples this step's.

    ``bounded``: there are boundary samples; ``walled``: there are walls by distance. Akinci's friction against approach,
    Σ_b V_b min(v_ib·x_ib, 0)/(r² + 0.01 H²) ∇W_ib, waits in ``acceleration`` for :func:`weigh`. ``coupled``: some are bodies
    that fluid can move, whose motion is no part of flux and wall_velocity. Two are kept per particle; what more do counts as
    the second's.
    """
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            h = c.support[0]
            wall = 0.0
            toward = vec3(0.0)
            flux = 0.0
            carried = vec3(0.0)
            grip = 0.0
            braked = vec3(0.0)
            a, b = -1, -1  # bodies
            by_a, by_b = vec3(0.0), vec3(0.0)
            of_a, of_b = 0.0, 0.0
            braked_a, braked_b = vec3(0.0), vec3(0.0)
            if qd.static(walled):
                wall, toward, flux, carried, grip, a, by_a, of_a, b, by_b, of_b = wall_motion_with_bodies(
                    x[i], h, c.dt[0], number, solids, parts, 2, coupled
                )
            if qd.static(bounded):
                fluid = 0
                base, column = i * near.row[0], near.column[0]
                for k in range(near.count[i]):
                    j = near.index[seat(base, column, k)]
                    if p.inverse_mass[j] == 0.0:
                        d = separation(x[i], x[j], torus, periodic)
                        r2 = d.dot(d)
                        weight = p.volume[j] * cubic(r2, h)
                        slope = p.volume[j] * cubic_gradient(r2, h) * d
                        wall += weight
                        toward += slope
                        told = 1.0
                        approach = qd.min((velocity[i] - velocity[j]).dot(d), 0.0)
                        brake = approach / (r2 + 0.01 * h * h) * slope
                        if qd.static(coupled):
                            which = solids.body[qd.max(p.solid[j], 0)]
                            if which >= 0:
                                told = 0.0
                                a = qd.select(a < 0, which, a)
                                if which == a:
                                    by_a += slope
                                    of_a += weight
                                    braked_a += brake
                                else:
                                    b = qd.select(b < 0, which, b)
                                    by_b += slope
                                    of_b += weight
                                    braked_b += brake
                        flux += told * slope.dot(velocity[j])
                        carried += told * weight * velocity[j]
                        grip += weight * qd.min(solids.friction[qd.max(p.solid[j], 0)], 1e6)
                        braked += brake
                    else:
                        near.index[seat(base, column, fluid)] = j
                        fluid += 1
                near.count[i] = fluid
                fill_up(near, i, fluid, form_of(near))
            f.wall[i] = wall
            f.toward[i] = toward
            f.flux[i] = flux
            f.wall_velocity[i] = carried
            f.grip[i] = grip
            f.acceleration[i] = braked
            if qd.static(coupled):
                f.body[2 * i], f.body[2 * i + 1] = a, b
                f.by_body[2 * i], f.by_body[2 * i + 1] = by_a, by_b
                f.of_body[2 * i], f.of_body[2 * i + 1] = of_a, of_b
                f.braked[2 * i], f.braked[2 * i + 1] = braked_a, braked_b
        elif qd.static(coupled):
            f.body[2 * i], f.body[2 * i + 1] = -1, -1


@qd.func
def _brake_bodies(
    i: qd.i32, xi: vec3, share: qd.f32, p: Particles, c: PressureNumbers, f: PressureField, solids: Solids, bodies: Bodies
):
    """The bodies' part of Akinci's friction; ``share``: velocity per f.braked [m²]."""
    if c.wall_viscosity[0] > 0.0:
        for at in range(2 * i, 2 * i + 2):
            body = f.body[at]
            if body >= 0:
                q = (share * c.dt[0] * solids.per_spacing[0] / p.inverse_mass[i]) * f.braked[at]
                add_push(body, lever_at_start(body, xi, solids, bodies), q, solids)


@qd.func
def push_of_body(at: qd.i32, c: PressureNumbers, f: PressureField, solids: Solids) -> vec3:
    """q = −Δt P b: what body ``at`` of particle at//2 gives it by pressure [M₁ spacings per step]."""
    return -(c.dt[0] * c.dt[0] * solids.per_spacing[0] * f.pressure[at // 2]) * f.by_body[at]


@qd.func
def _squeeze(i: qd.i32, xi: vec3, f: PressureField, solids: Solids, bodies: Bodies) -> qd.f32:
    """−Δt u·b: what the motion of the bodies beside particle i adds to its density."""
    result = 0.0
    for at in range(2 * i, 2 * i + 2):
        body = f.body[at]
        if body >= 0:
            way = way_of(body, lever_at_start(body, xi, solids, bodies), bodies)
            result -= way.dot(f.by_body[at]) / solids.per_spacing[0]
    return result


@qd.func
def _lean_on_bodies(
    i: qd.i32, xi: vec3, p: Particles, c: PressureNumbers, f: PressureField, solids: Solids, bodies: Bodies
):
    """Particle i as a contact of the bodies beside it: what it pushes with, and how much more when they come nearer.

    Two bodies do not know that the other yields as well: each counts double, so that together they do not overshoot.
    """
    if f.pressure[i] > 0.0 and p.inverse_mass[i] > 0.0:
        number = qd.select(f.body[2 * i + 1] < 0, 1.0, 2.0)
        for at in range(2 * i, 2 * i + 2):
            body = f.body[at]
            if body >= 0:
                size = f.by_body[at].norm()
                along = number * c.relaxation[0] * size * size / f.diagonal[i]
                n = f.by_body[at] / qd.max(size, 1e-30)
                r = lever_at_start(body, xi, solids, bodies)
                add_contact(body, r, n, along, 0.0, push_of_body(at, c, f, solids), bodies)


@qd.func(requires_top_level=True)
def weigh(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers, velocity: Vectors,
    f: PressureField, solids: Solids, bodies: Bodies, enclosed: qd.template(), coupled: qd.template(), uniform: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """δ, G and the diagonal; what :func:`feel_walls` found is part of them where the fluid is ``enclosed``."""
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            h = c.support[0]
            xi = x[i]
            own = p.volume[i]
            mobility = qd.max(p.inverse_mass[i], 0.0)
            volume = own
            other = mobility  # of neighbours; led particles need none
            density = own * cubic(0.0, h)
            gradient = vec3(0.0)
            squares = 0.0
            base = i * near.row[0]
            column = near.column[0]
            for k in range(near.count[i]):
                at = seat(base, column, k)
                j = near.index[at]
                d = separation(xi, x[j], torus, periodic)
                r2 = d.dot(d)
                if qd.static(not uniform):
                    volume = p.volume[j]
                    other = qd.abs(p.inverse_mass[j])
                slope = volume * cubic_gradient(r2, h) * d
                density += volume * cubic(r2, h)
                gradient += slope
                squares += other * slope.dot(slope) / volume
                if qd.static(kept()):
                    f.slope_x[at], f.slope_y[at], f.slope_z[at] = slope[0], slope[1], slope[2]
            if qd.static(enclosed):
                density += f.wall[i]
                gradient += f.toward[i]
                if p.inverse_mass[i] > 0.0:
                    velocity[i] = velocity[i] + c.dt[0] * c.wall_viscosity[0] / density * f.acceleration[i]
                    if qd.static(coupled):
                        _brake_bodies(i, xi, c.dt[0] * c.wall_viscosity[0] / density, p, c, f, solids, bodies)
            f.density[i] = density
            f.gradient[i] = gradient
            f.diagonal[i] = qd.select(mobility > 0.0, mobility * gradient.dot(gradient) + own * squares, 0.0)


@qd.func(requires_top_level=True)
def sources(
    left: Flag, p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers, velocity: Vectors,
    before: Floats, f: PressureField, enclosed: qd.template(), advected: qd.template(), uniform: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """δ̃ − 1, and the pressures to start from: a share of those of the last step (``before``, p/ρ_ref [m²/s²]).

    ``enclosed``: there are walls of any kind. ``advected`` = False: positions are already where velocities lead, δ̃ = δ.
    """
    for i in range(n):
        if p.inverse_mass[i] != 0.0:
            h = c.support[0]
            source = f.density[i] - 1.0
            if qd.static(advected):
                change = _gathering(i, velocity, p, x, near, torus, h, f, uniform, periodic)
                if qd.static(enclosed):
                    change -= f.flux[i]
                source += c.dt[0] * change
            f.source[i] = source
            f.pressure[i] = c.warm[0] * before[i] / (f.density[i] * f.density[i])
        else:
            f.pressure[i] = 0.0
            f.acceleration[i] = vec3(0.0)
        if i == 0:
            left[()] = c.iterations[0]
            f.used[0] = 0


@qd.func(requires_top_level=True)
def accelerations(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers, f: PressureField,
    uniform: qd.template(), periodic: qd.template(),
):  # fmt: skip
    """a_i of the pressures as they are."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            h = c.support[0]
            total = f.pressure[i] * f.gradient[i]
            own = p.volume[i]
            xi = x[i]
            base = i * near.row[0]
            count = near.count[i]
            for batch in range(batches(count)):
                some = fetch(near, i, batch)
                for lane in qd.static(range(lanes())):
                    j = some[lane]
                    total += f.pressure[j] * _slope(base + batch, xi, j, own, p, x, torus, h, f, uniform, periodic)
            f.acceleration[i] = -p.inverse_mass[i] * total
        else:
            f.acceleration[i] = vec3(0.0)


@qd.func(requires_top_level=True)
def relax(
    p: Particles, x: Vectors, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus, c: PressureNumbers,
    f: PressureField, sums: Sums, solids: Solids, bodies: Bodies, coupled: qd.template(), uniform: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """One step of the relaxed Jacobi iteration, or of one with momentum; hands in what compression there was before it.
    ``full`` = padded(n)."""
    qd.loop_config(block_dim=256)
    for i in range(full):
        report = vec3(0.0)
        if i < n:
            h = c.support[0]
            if p.inverse_mass[i] != 0.0:
                change = _gathering(i, f.acceleration, p, x, near, torus, h, f, uniform, periodic)
                excess = f.source[i] + c.dt[0] * c.dt[0] * change
                if qd.static(coupled):
                    excess += _squeeze(i, x[i], f, solids, bodies)
                stiffness = c.dt[0] * c.dt[0] * qd.max(f.diagonal[i], 1e-30)
                mu, omega = pace(qd.cast(f.used[0] + 1, qd.f32))
                hurried = c.stride[0] > 0.0
                gain = qd.select(hurried, omega * c.stride[0], c.relaxation[0])
                last = 0.0
                if hurried and f.used[0] > 0:
                    last = f.change[i]
                value = 0.0
                if f.diagonal[i] * h * h > 1e-6:  # neither alone in space nor led
                    value = qd.max(f.pressure[i] + mu * last + gain * excess / stiffness, 0.0)
                value = unless_lost(value, excess + f.diagonal[i])
                f.change[i] = value - f.pressure[i]
                f.pressure[i] = value
                if qd.static(coupled):
                    _lean_on_bodies(i, x[i], p, c, f, solids, bodies)
                report[0] = qd.max(excess, 0.0)
        hand_in(i, n, report, sums)


@qd.func(requires_top_level=True)
def count_iteration(
    left: Flag, n: qd.i32, c: PressureNumbers, f: PressureField, sums: Sums, solids: Solids, bodies: Bodies,
    coupled: qd.template(), controlled: qd.template(),
):  # fmt: skip
    """One iteration fewer to go; none when the mean compression (R25) is small enough, if asked for (``controlled``).

    Where there are bodies, the last iteration also moved none of them by more than that, in spacings.
    """
    chunk_totals(n, sums)
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        total = grand_total(worker, n, sums)
        if worker == 0:
            f.error[0] = total[0] / qd.max(c.movers[0], 1)
            f.used[0] += 1
            f.used[1] += 1
            left[()] = left[()] - 1
            if qd.static(controlled) and f.used[0] >= c.least[0] and f.error[0] <= c.tolerance[0]:
                if qd.static(coupled):
                    if qd.bit_cast(bodies.moved[0], qd.f32) * solids.per_spacing[0] <= c.tolerance[0]:
                        left[()] = 0
                else:
                    left[()] = 0
