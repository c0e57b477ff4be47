"""The rotation of a neighbourhood during a step (Barreiro et al. 2017, eq. 14; Becker et al. 2009).

    R_i = argmin Σ_j |R (x⁰_j − c⁰_i) − (x_j − c_i)|²

is the rotation of the polar decomposition of A = Σ_j (x_j − c)(x⁰_j − c⁰)ᵀ, c the centres of particle i and its neighbours.
Newton's method finds it: for the remaining small turn ω, with K = A Rᵀ and S its symmetric part, (tr S · I − S) ω is the axial
vector of K − Kᵀ. From R = I three turns are enough in float32, because a step turns by little. Where the matrix on the left is
singular (neighbours in a line, or turned inside out) the damped form of Müller et al. 2016 takes the step instead.
"""

import quadrants as qd

from viscoil.particles import mat3, vec3


@qd.func
def turn(omega: vec3) -> mat3:
    """exp of the cross product with ω [rad] (Rodrigues)."""
    angle2 = omega.dot(omega)
    first = 1.0 - angle2 / 6.0
    second = 0.5 - angle2 / 24.0
    if angle2 > 1e-4:
        angle = qd.sqrt(angle2)
        first = qd.sin(angle) / angle
        second = (1.0 - qd.cos(angle)) / angle2
    cross = mat3(0.0, -omega[2], omega[1], omega[2], 0.0, -omega[0], -omega[1], omega[0], 0.0)
    return qd.Matrix.identity(qd.f32, 3) + first * cross + second * (cross @ cross)


@qd.func
def rotation_of(a: mat3) -> mat3:
    """R of the polar decomposition of A; the identity for A = 0."""
    r = qd.Matrix.identity(qd.f32, 3)
    size = a.norm()
    if size > 0.0:
        scaled = a / size
        for _ in range(4):
            k = scaled @ r.transpose()
            axial = vec3(k[2, 1] - k[1, 2], k[0, 2] - k[2, 0], k[1, 0] - k[0, 1])
            h = k.trace() * qd.Matrix.identity(qd.f32, 3) - 0.5 * (k + k.transpose())
            third = h.trace() / 3.0
            omega = axial / (qd.abs(k.trace()) + 1e-9)
            if third > 0.0 and h.determinant() > 1e-3 * third * third * third:
                omega = h.inverse() @ axial
            r = turn(omega / qd.max(omega.norm(), 1.0)) @ r  # at most a radian at a time
    return r
