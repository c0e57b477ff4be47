"""Fluid that clings to particle solids, and they to each other, for methods without a viscosity (PBF).

Across the border of a body velocities are exchanged as XSPH does it, with a strength of its own and symmetric in momentum:

    v_i ← v_i + Σ_j s_ij V_j 2w_i/(w_i + w_j) (v_j − v_i) W_ij,   s_ij = 1 − (1 − σ)^(30 Δt)

σ is the stickiness: the share of the sliding speed that is lost in 1/30 s, all of it at once for σ = 1; between two bodies
that of the less sticky one.
"""

import quadrants as qd

from viscoil.particles import Particles, Vectors
from viscoil.solids.clusters import Clusters
from viscoil.sph.neighbors import NeighborList, Torus, entry, separation
from viscoil.sph.smoothing import poly6


@qd.func(requires_top_level=True)
def cling(
    p: Particles, x: Vectors, n: qd.i32, near: NeighborList, torus: Torus, dt: qd.f32, support: qd.f32, b: Clusters,
    before: Vectors, after: Vectors, periodic: qd.template(),
):  # fmt: skip
    """Velocities ``after`` the exchange from those ``before``."""
    for i in range(n):
        vi = before[i]
        change = vi * 0.0
        wi = p.inverse_mass[i]
        if wi > 0.0:
            own = p.cluster[i]
            for k in range(near.count[i]):
                j = entry(near, i, k)
                other = p.cluster[j]
                wj = p.inverse_mass[j]
                if own != other and wj > 0.0:
                    grip = 1.0
                    if own >= 0:
                        grip = b.grip[own]
                    if other >= 0:
                        grip = qd.min(grip, b.grip[other])
                    share = 1.0 - qd.pow(qd.max(1.0 - grip, 0.0), 30.0 * dt)
                    d = separation(x[i], x[j], torus, periodic)
                    change += share * p.volume[j] * 2.0 * wi / (wi + wj) * poly6(d.dot(d), support) * (before[j] - vi)
        after[i] = vi + change
