"""Projection of velocities onto the conformation constraint, as the linear problem that it is (eqs. 10–13).

Without its multipliers the constraint leaves one equation per particle, implicit Euler for the stress:

    A u = b:   u_i/w_i − Δt F_i(u) = u*_i/w_i + Δt div(Gθ(Q − I))_i

with F the friction of friction.py. A is symmetric and positive definite. Three ways to solve it, all with masses as the
preconditioner, so that Σ r stays zero and momentum is exact however early the iterations end (the diagonal of A took more
iterations and broke that):

    cg          conjugate gradients, in the variant of Chronopoulos & Gear with one reduction per iteration
    chebyshev   the same number of passes, no reductions at all; needs the largest eigenvalue of A, and converges as for the
                worst spectrum between 1 (rigid motion) and that
    jacobi      u ← u + ω w r, the stationary iteration that the paper's relaxation amounts to

Solids: the velocity of a particle that touches one is given (no slip), or its normal part is; beside a no-slip wall the
tangential part is (wall_friction.py). That takes rows and columns out of the system and leaves it symmetric. In the next
round whoever a wall would have to pull is let go, whoever would enter one is held, and the solver goes on from where it was:
an active set. Bodies that fluid can move are unknowns as well (``coupled``, body_projection.py).

Where GPUs read neighbours as records (``packed``, sph/records.py), those hold the place and the velocity that a pass is about,
rounded to fit into 16 bytes: a pass takes as long as the bytes it fetches. The first half of them has velocities u, the second
search directions z, so that whoever finds the first z from its neighbours' u can write it down at once. Search directions are
rounded as they are found, so that everybody works with the same ones: the preconditioner is then masses, but for 4e-6.
"""

from dataclasses import dataclass

import quadrants as qd

from viscoil.constraints.conformation import Substances, divergence_of, memory_of, rates
from viscoil.constraints.friction import divergence, divergence_by_records, friction, friction_by_records
from viscoil.particles import Flag, Floats, Ints, Matrices, Particles, Vectors, mat3, vec3
from viscoil.sph.descent import strides
from viscoil.sph.finite import is_finite
from viscoil.sph.neighbors import NeighborList, Torus
from viscoil.sph.records import Records, put_velocity, rounded, velocity_of
from viscoil.sph.sums import Sums, block_size, chunk_totals, grand_total, hand_in, is_last, on_gpu, workers


@dataclass(frozen=True)
class Projection:
    """Memory of the projection, one element per particle except where noted."""

    u: Vectors  # the unknown [m/s]
    free: Vectors  # u*, without friction [m/s]; then with the impulse of the remembered stress
    residual: Vectors  # r = b − A u, true for held particles as well: theirs is what the wall must take
    search: Vectors  # z, the preconditioned residual; in iterations only where records do not hold it
    image: Vectors  # A z
    direction: Vectors  # d
    direction_image: Vectors  # A d
    normal: Vectors  # of the solid a held particle touches
    held: Ints  # 0 free, 1 normal velocity given, 2 velocity given, 3 tangential velocity given
    holder: Ints  # body that holds a held particle, -1: a solid that moves as it was told; unused without bodies
    viscosity: Floats  # ν [m²/s]
    bulk: Floats  # q
    stress: Matrices  # T of the elastic stress
    scalars: Floats  # γ, α, β, γ at the start of the step, an eigenvalue, what bodies add to γ and to δ
    progress: Ints  # iterations: in this step, since last asked; rounds in this step (set to 0 before the first)


@dataclass(frozen=True)
class ProjectionNumbers:
    """Arguments, one element each."""

    iterations: Ints  # most of them in a step
    rounds: Ints  # in a step
    tolerance: Floats  # residual relative to its start that is good enough
    pairs: Floats  # c of friction.py
    stiffest: Floats  # κ of conformation.rates [1/m²]
    largest: Floats  # eigenvalue of w A, for Chebyshev and Jacobi
    accelerated: Ints  # 1: Chebyshev, 0: Jacobi


@qd.func
def allowed(v: vec3, n: vec3, held: qd.i32) -> vec3:
    """What of v a held particle may still do."""
    result = v
    if held == 2:
        result = vec3(0.0)
    elif held == 1:
        result = v - n * n.dot(v)
    elif held == 3:
        result = n * n.dot(v)
    return result


@qd.func(requires_top_level=True)
def set_up(
    p: Particles, n: qd.i32, dt: qd.f32, k: Substances, c: ProjectionNumbers, inverse: Matrices, s: Projection,
    elastic: qd.template(),
):  # fmt: skip
    """Viscosities, and the stress the material remembers."""
    for i in range(n):
        nu = -1.0  # a solid's sample, see friction
        t = mat3(0.0)
        if p.inverse_mass[i] != 0.0:
            correction = qd.Matrix.identity(qd.f32, 3)
            if qd.static(elastic):
                correction = inverse[i]
            modulus, viscous = rates(i, p, dt, correction, c.stiffest[0], k)
            nu = viscous
            if p.cluster[i] >= 0:  # a particle solid: what fluid clings to, see friction
                nu = -qd.max(k.stickiness[p.material[i]], 1e-12)
            if qd.static(elastic):
                t = modulus * memory_of(p.conformation[i], p.material[i], k) @ inverse[i]
        s.viscosity[i] = nu
        if qd.static(elastic):
            s.stress[i] = t


@qd.func(requires_top_level=True)
def remember(
    p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32, s: Projection,
    periodic: qd.template(),
):  # fmt: skip
    """Adds the impulse of the remembered stress to what friction starts from: b."""
    for i in range(n):
        if p.inverse_mass[i] > 0.0:
            s.free[i] += p.inverse_mass[i] * dt * divergence_of(i, s.stress, x, p, near, torus, h, periodic)


@qd.func(requires_top_level=True)
def bulk_pressures(
    u: Vectors, p: Particles, x: Vectors, n: qd.i32, full: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, k: Substances,
    s: Projection, r: Records, team: qd.template(), uniform: qd.template(), periodic: qd.template(),
    packed: qd.template() = False, searching: qd.template() = True,
):  # fmt: skip
    """q_i = b ν_i div u_i. ``full`` = padded(n · team), made once for all passes. ``searching``: u is the search direction."""
    if qd.static(team == 1 and not packed):
        for i in range(n):
            q = 0.0
            if p.inverse_mass[i] != 0.0:
                q = k.bulk[p.material[i]] * qd.max(s.viscosity[i], 0.0)
                if q > 0.0:
                    q *= divergence(i, near.count[i], u, x, p, near, torus, h, 0, 1, uniform, periodic)
            s.bulk[i] = q
    else:
        qd.loop_config(block_dim=qd.static(block_size(team)))
        for t in range(full):  # nobody may leave before the sums of the teams
            _bulk_pressure(t, u, p, x, n, near, torus, h, k, s, r, team, uniform, periodic, packed, searching)


@qd.func
def _bulk_pressure(
    t: qd.i32, u: Vectors, p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, h: qd.f32, k: Substances,
    s: Projection, r: Records, team: qd.template(), uniform: qd.template(), periodic: qd.template(), packed: qd.template(),
    searching: qd.template(),
):  # fmt: skip
    """The share of thread ``t``: member t % team of those who sum up for particle t // team."""
    i = qd.min(t // team, n - 1)
    q = 0.0
    if p.inverse_mass[i] != 0.0:
        q = k.bulk[p.material[i]] * qd.max(s.viscosity[i], 0.0)
    count = qd.select(q > 0.0, near.count[i], 0)
    if qd.static(packed):
        q *= divergence_by_records(i, count, r, qd.static(int(searching)), p.volume[i], near, h, t % team, team)
    else:
        q *= divergence(i, count, u, x, p, near, torus, h, t % team, team, uniform, periodic)
    if t < n * team and t % team == 0:
        s.bulk[i] = q


@qd.func
def _searched_from(r: Records) -> qd.i32:
    """The first record with a search direction: those before it have velocities."""
    return r.words.shape[0] // 4  # a record is two words


@qd.func
def _drag(
    i: qd.i32, count: qd.i32, u: Vectors, x: Vectors, p: Particles, near: NeighborList, torus: Torus, h: qd.f32,
    c: ProjectionNumbers, s: Projection, r: Records, member: qd.i32, team: qd.template(), uniform: qd.template(),
    even: qd.template(), periodic: qd.template(), packed: qd.template(), searching: qd.template(),
) -> vec3:  # fmt: skip
    """Friction of the velocities u, which are those of the records where these are read."""
    drag = vec3(0.0)
    if qd.static(packed):
        drag = friction_by_records(
            i, count, r, qd.static(int(searching)), p.volume[i], near, h, c.pairs[0], s.viscosity, s.bulk, member, team, even
        )
    else:
        drag = friction(
            i, count, u, x, p, near, torus, h, c.pairs[0], s.viscosity, s.bulk, member, team, uniform, even, periodic
        )
    return drag


@qd.func(requires_top_level=True)
def residuals(
    left: Flag, rounds_left: Flag, p: Particles, x: Vectors, n: qd.i32, full: qd.i32, dt: qd.f32, near: NeighborList,
    torus: Torus, h: qd.f32, c: ProjectionNumbers, s: Projection, r: Records, sums: Sums, coupled: qd.template(),
    team: qd.template(), uniform: qd.template(), even: qd.template(), periodic: qd.template(), packed: qd.template() = False,
):  # fmt: skip
    """r = b − A u and z = w r, and the terms of γ = r·z, with which the round begins unless bodies have a say in γ as well.
    ``full`` as in :func:`bulk_pressures`."""
    qd.loop_config(block_dim=qd.static(block_size(team)))  # what hand_in adds up
    for t in range(full):
        i = qd.min(t // team, n - 1)
        w = p.inverse_mass[i]
        count = qd.select(w > 0.0, near.count[i], 0)
        drag = _drag(i, count, s.u, x, p, near, torus, h, c, s, r, t % team, team, uniform, even, periodic, packed, False)
        account = vec3(0.0)
        if t < n * team and t % team == 0:
            rest = vec3(0.0)
            z = vec3(0.0)
            if w > 0.0:
                rest = (s.free[i] - s.u[i]) / w + dt * drag
                z = w * allowed(rest, s.normal[i], s.held[i])
                account[0] = z.dot(z) / w  # z·r, but that would drown in what walls take from held particles
            s.residual[i] = rest
            if qd.static(packed):
                z = rounded(z)
                put_velocity(r, _searched_from(r) + i, z)
            s.search[i] = z
            s.direction[i] = vec3(0.0)
            s.direction_image[i] = vec3(0.0)
        hand_in(t, n * team, account, sums, qd.static(block_size(team)))
        if qd.static(on_gpu() and not coupled):  # noqa: SIM102 (decided when compiled)
            if is_last(t, n * team, sums, qd.static(block_size(team))) == 1:
                size = qd.static(block_size(team))
                _begin(t % size, left, rounds_left, n * team, c, s, sums, coupled, team, size)
    chunk_totals(n * team, sums)
    if qd.static(not on_gpu() and not coupled):
        for worker in range(1):
            _begin(worker, left, rounds_left, n * team, c, s, sums, coupled, team, 1)


@qd.func
def _search_of(i: qd.i32, s: Projection, r: Records, packed: qd.template()) -> vec3:
    """The search direction of particle i, which in the iterations stands in the records alone where there are such."""
    z = vec3(0.0)
    if qd.static(packed):
        z = velocity_of(r, _searched_from(r) + i)
    else:
        z = s.search[i]
    return z


@qd.func
def _steer(
    worker: qd.i32, left: Flag, terms: qd.i32, c: ProjectionNumbers, s: Projection, sums: Sums, coupled: qd.template(),
    team: qd.template(),
):  # fmt: skip
    """γ, δ → α, β by a team. Stops when √(γ/γ₀) is below the tolerance, or when nothing can be gained."""
    total = grand_total(worker, terms, sums, qd.static(block_size(team)), qd.static(block_size(team)))
    if worker == 0:
        gamma = total[0]
        delta = total[1]
        if qd.static(coupled):
            gamma += s.scalars[5]
            delta += s.scalars[6]
        alpha, beta = strides(gamma, delta, s.scalars[0], s.scalars[1])
        if left[()] <= 0:  # the body of a do-while runs once in any case
            alpha = 0.0
        else:
            s.progress[0] += 1
            s.progress[1] += 1
        s.scalars[0] = gamma
        s.scalars[1] = alpha
        s.scalars[2] = beta
        left[()] = qd.max(left[()] - 1, 0)
        if gamma <= c.tolerance[0] * c.tolerance[0] * s.scalars[3] or not alpha > 0.0 or not is_finite(alpha):
            left[()] = 0


@qd.func
def image_of(
    i: qd.i32, d: Vectors, p: Particles, x: Vectors, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32,
    c: ProjectionNumbers, s: Projection, uniform: qd.template(), even: qd.template(), periodic: qd.template(),
) -> vec3:  # fmt: skip
    """(A d)_i of a moving particle; the bulk pressures of d are known."""
    drag = friction(i, near.count[i], d, x, p, near, torus, h, c.pairs[0], s.viscosity, s.bulk, 0, 1, uniform, even, periodic)
    return d[i] / p.inverse_mass[i] - dt * drag


@qd.func(requires_top_level=True)
def images(
    left: Flag, p: Particles, x: Vectors, n: qd.i32, full: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32,
    c: ProjectionNumbers, s: Projection, r: Records, sums: Sums, steered: qd.template(), coupled: qd.template(),
    team: qd.template(), uniform: qd.template(), even: qd.template(), periodic: qd.template(), packed: qd.template() = False,
):  # fmt: skip
    """A z, and the terms of γ = r·z, δ = z·A z and z·z/w; what of γ is due to bodies is not among them.

    ``steered``: α and β as well. On a GPU the last block that hands in its terms finds them, which saves a kernel."""
    qd.loop_config(block_dim=qd.static(block_size(team)))  # what hand_in adds up
    for t in range(full):
        _image(
            t, left, p, x, n, dt, near, torus, h, c, s, r, sums, steered, coupled, team, uniform, even, periodic, packed
        )
    chunk_totals(n * team, sums)
    if qd.static(steered and not on_gpu()):
        for worker in range(1):
            _steer(worker, left, n * team, c, s, sums, coupled, team)


@qd.func
def _image(
    t: qd.i32, left: Flag, p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus, h: qd.f32,
    c: ProjectionNumbers, s: Projection, r: Records, sums: Sums, steered: qd.template(), coupled: qd.template(),
    team: qd.template(), uniform: qd.template(), even: qd.template(), periodic: qd.template(), packed: qd.template(),
):  # fmt: skip
    """The share of thread ``t``, as in :func:`_bulk_pressure`."""
    i = qd.min(t // team, n - 1)
    w = p.inverse_mass[i]
    count = qd.select(w > 0.0, near.count[i], 0)
    drag = _drag(i, count, s.search, x, p, near, torus, h, c, s, r, t % team, team, uniform, even, periodic, packed, True)
    account = vec3(0.0)
    if t < n * team and t % team == 0:
        image = vec3(0.0)
        if w > 0.0:
            z = _search_of(i, s, r, packed)
            image = z / w - dt * drag
            square = z.dot(z) / w
            account = vec3(square, z.dot(image), square)
            if qd.static(coupled):  # of a particle that a body holds z is not all its own
                own = allowed(s.residual[i], s.normal[i], s.held[i])
                account[0] = w * own.dot(own)
        s.image[i] = image
    hand_in(t, n * team, account, sums, qd.static(block_size(team)))
    if qd.static(steered and on_gpu()):  # noqa: SIM102 (decided when compiled)
        if is_last(t, n * team, sums, qd.static(block_size(team))) == 1:
            _steer(t % qd.static(block_size(team)), left, n * team, c, s, sums, coupled, team)


@qd.func
def _begin(
    worker: qd.i32, left: Flag, rounds_left: Flag, terms: qd.i32, c: ProjectionNumbers, s: Projection, sums: Sums,
    coupled: qd.template(), team: qd.template(), together: qd.template(),
):  # fmt: skip
    """γ of the ``terms`` that :func:`residuals` handed in, and how many iterations this round may take: its share. By as many
    threads ``together``."""
    total = grand_total(worker, terms, sums, qd.static(block_size(team)), together)
    if worker == 0:
        gamma = total[0]
        if qd.static(coupled):
            gamma += s.scalars[5]
        if s.progress[2] == 0:
            s.scalars[3] = gamma
            s.progress[0] = 0
        s.scalars[0] = gamma
        s.scalars[1] = 0.0
        s.progress[2] += 1
        rounds_left[()] = c.rounds[0] - s.progress[2]
        budget = (c.iterations[0] * s.progress[2] + c.rounds[0] - 1) // c.rounds[0] - s.progress[0]
        left[()] = qd.select(gamma > c.tolerance[0] * c.tolerance[0] * s.scalars[3], qd.max(budget, 0), 0)
        if not is_finite(gamma):  # an iteration takes it to the velocities
            left[()] = 1


@qd.func(requires_top_level=True)
def begin_with_bodies(
    left: Flag, rounds_left: Flag, terms: qd.i32, c: ProjectionNumbers, s: Projection, sums: Sums, team: qd.template()
):
    """The round begins once it is known what bodies add to γ."""
    qd.loop_config(block_dim=256)
    for worker in range(qd.static(workers())):
        _begin(worker, left, rounds_left, terms, c, s, sums, True, team, 256)


@qd.func
def advance_one(i: qd.i32, p: Particles, s: Projection, r: Records, packed: qd.template()):
    """d ← z + β d, u ← u + α d, r ← r − α A d, and the next z, of particle i."""
    if p.inverse_mass[i] > 0.0:
        alpha = s.scalars[1]
        beta = s.scalars[2]
        d = _search_of(i, s, r, packed) + beta * s.direction[i]
        image = s.image[i] + beta * s.direction_image[i]
        rest = s.residual[i] - alpha * image
        s.u[i] = s.u[i] + alpha * d
        s.direction[i] = d
        s.direction_image[i] = image
        s.residual[i] = rest
        z = p.inverse_mass[i] * rest
        if s.held[i] != 0:  # few are, and nobody else needs a normal
            z = p.inverse_mass[i] * allowed(rest, s.normal[i], s.held[i])
        if qd.static(packed):
            put_velocity(r, _searched_from(r) + i, z)
        else:
            s.search[i] = z


@qd.func(requires_top_level=True)
def advance(p: Particles, n: qd.i32, s: Projection, r: Records, packed: qd.template()):
    """The same for all particles."""
    for i in range(n):
        advance_one(i, p, s, r, packed)


@qd.func(requires_top_level=True)
def pack_search(n: qd.i32, s: Projection, r: Records):
    """Search directions that were made rigid since they were found."""
    for i in range(n):
        s.search[i] = rounded(s.search[i])
        put_velocity(r, _searched_from(r) + i, s.search[i])


@qd.func(requires_top_level=True)
def first_stride(left: Flag, p: Particles, n: qd.i32, c: ProjectionNumbers, s: Projection):
    """Chebyshev and Jacobi: the first d, in ``search``. Iterations come in pairs here."""
    for i in range(n):
        d = 2.0 / (1.0 + c.largest[0]) * s.search[i]
        s.search[i] = d
        s.u[i] += d
        if i == 0:
            s.scalars[1] = (c.largest[0] - 1.0) / (c.largest[0] + 1.0)  # ρ
            left[()] = (left[()] + 1) // 2


@qd.func(requires_top_level=True)
def stride(
    left: Flag, now: Vectors, then: Vectors, p: Particles, x: Vectors, n: qd.i32, dt: qd.f32, near: NeighborList, torus: Torus,
    h: qd.f32, c: ProjectionNumbers, s: Projection, second: qd.template(), uniform: qd.template(), even: qd.template(),
    periodic: qd.template(),
):  # fmt: skip
    """r ← r − A d, and the next d from d (``now``) and r into ``then``; u follows. The recurrence of Chebyshev polynomials."""
    for i in range(n):
        half = 0.5 * (c.largest[0] - 1.0)
        centre = 0.5 * (c.largest[0] + 1.0)
        rho = s.scalars[qd.static(2 if second else 1)]
        after = 1.0 / qd.max(2.0 * centre / qd.max(half, 1e-6) - rho, 1e-6)
        along = 0.0
        across = 1.0 / centre
        if c.accelerated[0] == 1 and half > 1e-6:
            along = after * rho
            across = 2.0 * after / half
        if p.inverse_mass[i] > 0.0:
            r = s.residual[i] - image_of(i, now, p, x, dt, near, torus, h, c, s, uniform, even, periodic)
            d = along * now[i] + across * p.inverse_mass[i] * allowed(r, s.normal[i], s.held[i])
            s.residual[i] = r
            then[i] = d
            s.u[i] += d
        else:
            then[i] = now[i]
        if i == 0:
            s.progress[0] += 1
            s.progress[1] += 1
            if qd.static(second):
                s.scalars[1] = after
                left[()] = qd.max(left[()] - 1, 0)
            else:
                s.scalars[2] = after
