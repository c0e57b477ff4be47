"""The three velocity corrections of Takahashi et al. 2014: springs, position-based, shape matching (sections 4.1 to 4.3).

Bonded particles are drawn back to how they were, by a change of their velocities at the positions they have, before the
pressure is solved. With D_ij = max(|x_ij| − r_ij, 0) (eq. 2; without the maximum when ``two_sided``) and κ_ij = (k_i +
k_j)/2,

    springs           Δv_i = −(Δt/m_i) Σ_j κ_ij D_ij x̂_ij                              k [N/m]
    position_based    Δv_i = −(1/Δt) Σ_j κ_ij m_j/(m_i + m_j) D_ij x̂_ij                k: share taken back per step
    shape_matching    Δv_i = (k_i/Δt)(g_i − x_i),  g_i = mean over the regions j of i of R_j x⁰ + t_j   (see regions.py)

Pairs exchange opposite impulses along their connection: linear and angular momentum are kept, whatever the masses. The sum
over all bonds is many times what one asks for; ``normalise`` multiplies each by 3/max(S_i, S_j), S the number of bonds, and
shares from 0 to 1 are then all stable.

Shape matching as printed does not keep momentum where neighbours have different numbers of regions (surfaces). ``conserve``
takes region by region instead, Δv_i = (1/Δt) Σ_j (k_j/n_j)(R_j x⁰ + t_j − x_i) over the regions of i, n_j their members: what
one region does to its members adds up to no impulse and no torque, and inside a uniform body it is the printed average. With
``goal`` = CLUSTER only the particle's own region counts; ``conserve`` then takes the impulse from the members, by mass.

Weakening comes last in a step. Pairs: s_i falls by the mean over its bonds of [D_ij/H > α_ij] dΔt/k (linear in time). Shape
matching: s_i falls by s_i dΔt while |g_i − x_i|/H > α_i (exponential). Never below l/k.
"""

import quadrants as qd

from viscoil.particles import Particles, Vectors, vec3
from viscoil.sph.bonds import BondCounts, BondNumbers, BondRows, between, own, update_pairs
from viscoil.sph.neighbors import NeighborList, Torus, separation
from viscoil.sph.regions import Regions, fit_regions, forget, place_at, rotation_at, update_regions
from viscoil.sph.rotation import turned
from viscoil.sph.schedule import find_ids

LATTICE, CLUSTER = 0, 1  # goals of shape matching: mean over regions, own region
SPRINGS, POSITIONS, SHAPES = 0, 1, 2  # schemes, for kernels


@qd.func(requires_top_level=True)
def _pairs(
    p: Particles, x: Vectors, n: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, velocity: Vectors,
    shares: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(), two_sided: qd.template(),
    normalise: qd.template(), weakening: qd.template(),
):  # fmt: skip
    """Springs, or with ``shares`` position-based corrections."""
    for i in range(n):
        w = p.inverse_mass[i]
        number = bonds.number[i]
        if w != 0.0 and number > 0:
            xi = x[i]
            ki = bonds.stiffness[i]
            scarce = bonds.scarcity[i]
            h = c.support[0]
            total = vec3(0.0)
            loss = 0.0
            alpha = between(c.yielding, i, i, p, single) * h
            rate = between(c.weakening, i, i, p, single)
            base = i * bonds.row[0]
            rest_base = i * bonds.rest_row[0]
            column = bonds.column[0]
            for a in range(number):
                j = bonds.where[bonds.partner[base + a * column]]
                rest = bonds.rest[rest_base + a * column]
                d = separation(x[j], xi, torus, periodic)
                r2 = qd.max(d.dot(d), 1e-30)
                inverse = qd.rsqrt(r2)
                pull = (ki + bonds.stiffness[j]) * (1.0 - rest * inverse)
                if qd.static(not two_sided):
                    pull = qd.max(pull, 0.0)
                if qd.static(normalise):
                    pull *= qd.min(scarce, bonds.scarcity[j])
                if qd.static(shares and not uniform):
                    pull *= qd.abs(w) / (qd.abs(w) + qd.abs(p.inverse_mass[j]))
                total += pull * d
                if qd.static(weakening):
                    if qd.static(not single):
                        alpha = between(c.yielding, i, j, p, single) * h
                        rate = between(c.weakening, i, j, p, single)
                    loss += qd.select(r2 * inverse - rest > alpha, rate, 0.0)
            factor = 0.5 * c.kick[0]
            if qd.static(shares and uniform):
                factor *= 0.5
            if qd.static(not shares):
                factor *= w
            if w > 0.0:
                velocity[i] = velocity[i] + factor * total
            if qd.static(weakening):
                s = bonds.strength[i]
                lower = own(c.lower, i, p, single)
                bonds.strength[i] = qd.min(s, qd.max(s - loss / qd.cast(number, qd.f32), lower))


@qd.func(requires_top_level=True)
def springs(
    p: Particles, x: Vectors, n: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, velocity: Vectors,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), two_sided: qd.template(),
    normalise: qd.template(), goal: qd.template(), conserve: qd.template(), weakening: qd.template(),
    flowing: qd.template(),
):  # fmt: skip
    """Adds the correction by springs to ``velocity``, then weakens."""
    _pairs(p, x, n, torus, c, bonds, velocity, False, single, uniform, periodic, two_sided, normalise, weakening)


@qd.func(requires_top_level=True)
def position_based(
    p: Particles, x: Vectors, n: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, velocity: Vectors,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), two_sided: qd.template(),
    normalise: qd.template(), goal: qd.template(), conserve: qd.template(), weakening: qd.template(),
    flowing: qd.template(),
):  # fmt: skip
    """Adds the position-based correction to ``velocity``, then weakens."""
    _pairs(p, x, n, torus, c, bonds, velocity, True, single, uniform, periodic, two_sided, normalise, weakening)


@qd.func(requires_top_level=True)
def shape_matching(
    p: Particles, x: Vectors, n: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, velocity: Vectors,
    single: qd.template(), uniform: qd.template(), periodic: qd.template(), two_sided: qd.template(),
    normalise: qd.template(), goal: qd.template(), conserve: qd.template(), weakening: qd.template(),
    flowing: qd.template(),
):  # fmt: skip
    """Adds the correction by shape matching to ``velocity``, then weakens and lets references flow. Regions are fitted to x."""
    for i in range(n):
        if p.inverse_mass[i] != 0.0 and bonds.number[i] > 0:
            xi = x[i]
            shape = m.lightness[i]
            kept = bonds.stiffness[i] * shape  # k/n of the region
            total = kept * m.offset[i]
            mean = qd.select(shape > 0.0, 1.0, 0.0) * m.offset[i]
            regions = qd.select(shape > 0.0, 1.0, 0.0)
            if qd.static(goal == 1):  # CLUSTER
                total = bonds.stiffness[i] * mean
                if qd.static(conserve):
                    total -= m.share[i] * total
            base = i * bonds.row[0]
            rest_base = i * bonds.rest_row[0]
            column = bonds.column[0]
            for a in range(bonds.number[i]):
                j = bonds.where[bonds.partner[base + a * column]]
                shape = m.lightness[j]
                weight = bonds.stiffness[j] * shape
                if qd.static(goal == 0):  # LATTICE
                    d = separation(x[j], xi, torus, periodic)
                    place = place_at(rest_base + (6 * a + 3) * column, bonds)
                    miss = turned(rotation_at(j, m), place) + m.offset[j] + d
                    if qd.static(conserve):
                        total += weight * miss
                    if qd.static(weakening or not conserve):
                        there = qd.select(shape > 0.0, 1.0, 0.0)
                        mean += there * miss
                        regions += there
                elif qd.static(conserve):
                    total -= qd.select(shape > 0.0, bonds.stiffness[j] * m.share[j], 0.0) * m.offset[j]
            mean /= qd.max(regions, 1.0)
            if qd.static(goal == 0 and not conserve):
                total = bonds.stiffness[i] * mean
            if qd.static(flowing):
                for a in range(bonds.number[i]):
                    j = bonds.where[bonds.partner[base + a * column]]
                    d = separation(x[j], xi, torus, periodic)
                    forget(i, rest_base + 6 * a * column, j, d, p, c, bonds, m, single)
            if p.inverse_mass[i] > 0.0:
                velocity[i] = velocity[i] + c.kick[0] * total
            if qd.static(weakening):
                s = bonds.strength[i]
                alpha = own(c.yielding, i, p, single) * c.support[0]
                loss = qd.select(mean.norm() > alpha, s * own(c.weakening, i, p, single), 0.0)
                bonds.strength[i] = qd.min(s, qd.max(s - loss, own(c.lower, i, p, single)))


@qd.func(requires_top_level=True)
def update_bonds(
    p: Particles, x: Vectors, k: BondCounts, count: qd.i32, near: NeighborList, torus: Torus, c: BondNumbers,
    bonds: BondRows, m: Regions, scheme: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(),
    splitting: qd.template(), merging: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """The set of bonds at positions x; for shape matching also the regions."""
    find_ids(p.id, count, k.ids[0], bonds.where)
    if qd.static(scheme == 2):  # SHAPES
        fit_regions(p, x, count, torus, c, bonds, m, single, uniform, periodic, splitting)
        if qd.static(splitting or merging or flowing):
            update_regions(
                p, x, count, near, torus, c, bonds, m, single, uniform, periodic, splitting, merging, flowing
            )
    else:
        update_pairs(
            p, x, count, near, torus, c, bonds, single, uniform, periodic, splitting, merging, flowing
        )


@qd.kernel(graph=True, fastcache=True)
def update_stage(
    p: Particles, x: Vectors, k: BondCounts, near: NeighborList, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions,
    scheme: qd.Template, single: qd.Template, uniform: qd.Template, periodic: qd.Template,
    splitting: qd.Template, merging: qd.Template, flowing: qd.Template,
):  # fmt: skip
    count = k.count[0]
    update_bonds(p, x, k, count, near, torus, c, bonds, m, scheme, single, uniform, periodic, splitting, merging, flowing)


@qd.func(requires_top_level=True)
def correct_by_bonds(
    p: Particles, x: Vectors, k: BondCounts, count: qd.i32, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions,
    velocity: Vectors, scheme: qd.template(), single: qd.template(), uniform: qd.template(), periodic: qd.template(),
    two_sided: qd.template(), normalise: qd.template(), goal: qd.template(), conserve: qd.template(),
    weakening: qd.template(), flowing: qd.template(),
):  # fmt: skip
    """Adds the correction to ``velocity``; bonds are those of :func:`update_stage` at the same x."""
    if qd.static(scheme == 0):  # SPRINGS
        springs(
            p, x, count, torus, c, bonds, m, velocity, single, uniform, periodic, two_sided, normalise, goal,
            conserve, weakening, flowing,
        )  # fmt: skip
    elif qd.static(scheme == 1):  # POSITIONS
        position_based(
            p, x, count, torus, c, bonds, m, velocity, single, uniform, periodic, two_sided, normalise, goal,
            conserve, weakening, flowing,
        )  # fmt: skip
    else:
        shape_matching(
            p, x, count, torus, c, bonds, m, velocity, single, uniform, periodic, two_sided, normalise, goal,
            conserve, weakening, flowing,
        )  # fmt: skip


@qd.kernel(graph=True, fastcache=True)
def correct_stage(
    p: Particles, x: Vectors, k: BondCounts, torus: Torus, c: BondNumbers, bonds: BondRows, m: Regions, velocity: Vectors,
    scheme: qd.Template, single: qd.Template, uniform: qd.Template, periodic: qd.Template, two_sided: qd.Template,
    normalise: qd.Template, goal: qd.Template, conserve: qd.Template, weakening: qd.Template, flowing: qd.Template,
):  # fmt: skip
    count = k.count[0]
    correct_by_bonds(
        p, x, k, count, torus, c, bonds, m, velocity, scheme, single, uniform, periodic, two_sided, normalise, goal, conserve,
        weakening, flowing,
    )  # fmt: skip
