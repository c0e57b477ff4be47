"""The rotation that fits two sets of points best (Müller et al. 2005; Becker et al. 2009; Barreiro et al. 2017, eq. 14).

    R = argmin Σ_k m_k |R (x⁰_k − c⁰) − (x_k − c)|²          R Rᵀ = 1, det R = 1

is the rotation of the polar decomposition of A = Σ_k m_k (x_k − c)(x⁰_k − c⁰)ᵀ, c the centres of mass. Newton's method finds
it: for the remaining turn ω, with K = A Rᵀ and S its symmetric part, (tr S · 1 − S) ω is the axial vector of K − Kᵀ. Where
that matrix is positive definite R is less than a quarter of a turn from the only maximum there is, and the error is cubed
with every turn: one or two are enough from the rotation of the step before.

Elsewhere (a body that was turned by up to 180°, mirrored, or squashed into a line) a start comes from Horn 1987: with q the
unit quaternion of R, tr(Rᵀ A) = qᵀ N q, whose largest eigenvector is found by squaring N over and over. The best *rotation*
is found for mirrored points too, never a reflection.

Rotations are unit quaternions (x, y, z, w) with the real part last; all zeros count as no turn.
"""

import quadrants as qd

from viscoil.particles import mat3, vec3

vec4 = qd.types.vector(4, qd.f32)


@qd.func
def turned(q: vec4, v: vec3) -> vec3:
    """R(q) v."""
    axis = vec3(q[0], q[1], q[2])
    twice = 2.0 * axis.cross(v)
    return v + q[3] * twice + axis.cross(twice)


@qd.func
def turned_back(q: vec4, v: vec3) -> vec3:
    """R(q)ᵀ v."""
    return turned(vec4(-q[0], -q[1], -q[2], q[3]), v)


@qd.func
def rotation_matrix(q: vec4) -> mat3:
    """R(q)."""
    x, y, z, w = 2.0 * q[0], 2.0 * q[1], 2.0 * q[2], q[3]
    xx, yy, zz = x * q[0], y * q[1], z * q[2]
    xy, xz, yz = x * q[1], x * q[2], y * q[2]
    wx, wy, wz = x * w, y * w, z * w
    return mat3(
        1.0 - yy - zz, xy - wz, xz + wy,
        xy + wz, 1.0 - xx - zz, yz - wx,
        xz - wy, yz + wx, 1.0 - xx - yy,
    )  # fmt: skip


@qd.func
def _product(a: vec4, b: vec4) -> vec4:
    """First b, then a."""
    u = vec3(a[0], a[1], a[2])
    v = vec3(b[0], b[1], b[2])
    w = a[3] * v + b[3] * u + u.cross(v)
    return vec4(w[0], w[1], w[2], a[3] * b[3] - u.dot(v))


@qd.func
def whole_turn(q: vec4) -> vec4:
    """q with length 1; no turn for all zeros."""
    size2 = q.dot(q)
    result = vec4(0.0, 0.0, 0.0, 1.0)
    if size2 > 1e-12:
        result = q / qd.sqrt(size2)
    return result


@qd.func
def _step(k: mat3):
    """(remaining turn ω [rad] of K = A Rᵀ by Newton's method, whether that is to be trusted; else the step is a damped one)."""
    t = k.trace()
    axial = vec3(k[2, 1] - k[1, 2], k[0, 2] - k[2, 0], k[1, 0] - k[0, 1])
    a, b, c = t - k[0, 0], t - k[1, 1], t - k[2, 2]  # h = tr S · 1 − S
    d, e, f = -0.5 * (k[1, 2] + k[2, 1]), -0.5 * (k[0, 2] + k[2, 0]), -0.5 * (k[0, 1] + k[1, 0])
    first = vec3(b * c - d * d, d * e - c * f, d * f - b * e)  # columns of its adjugate
    second = vec3(first[1], a * c - e * e, e * f - a * d)
    third = vec3(first[2], second[2], a * b - f * f)
    det = a * first[0] + f * first[1] + e * first[2]
    mean = 2.0 * t / 3.0
    sound = qd.select(mean > 0.0, qd.select(a > 0.0, qd.select(third[2] > 0.0, 1, 0), 0), 0)  # positive definite
    sound = qd.select(det > 1e-3 * mean * mean * mean, sound, 0)
    omega = axial / (qd.abs(t) + 1e-9)  # Müller et al. 2016
    if sound == 1:
        omega = (axial[0] * first + axial[1] * second + axial[2] * third) / det
    return omega, sound


@qd.func
def _from_anywhere(a: mat3) -> vec4:
    """A quaternion near the best one, for |A| = 1: the largest eigenvector of Horn's matrix."""
    t = a.trace()
    n = qd.Matrix([
        [2.0 * a[0, 0] - t, a[0, 1] + a[1, 0], a[0, 2] + a[2, 0], a[2, 1] - a[1, 2]],
        [a[0, 1] + a[1, 0], 2.0 * a[1, 1] - t, a[1, 2] + a[2, 1], a[0, 2] - a[2, 0]],
        [a[0, 2] + a[2, 0], a[1, 2] + a[2, 1], 2.0 * a[2, 2] - t, a[1, 0] - a[0, 1]],
        [a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1], t],
    ])  # fmt: skip
    n += 2.0 * qd.Matrix.identity(qd.f32, 4)  # no eigenvalue is below −√3 |A|
    for _ in range(16):
        n *= 1.0 / n.trace()
        n = n @ n
    best = vec4(n[0, 0], n[1, 0], n[2, 0], n[3, 0])
    for c in qd.static(range(1, 4)):
        column = vec4(n[0, c], n[1, c], n[2, c], n[3, c])
        if column.dot(column) > best.dot(best):
            best = column
    return best / qd.sqrt(best.dot(best))


@qd.func
def rotation_near(a: mat3, start: vec4) -> vec4:
    """q of the polar decomposition of A, found from ``start`` (length 1), which is also the answer for A = 0."""
    q = start
    size = a.norm()
    if size > 0.0:
        scaled = a / size
        left = 9
        begun = 0
        while left > 0:
            omega, sound = _step(scaled @ rotation_matrix(q).transpose())
            if begun == 0 and sound == 0:
                q = _from_anywhere(scaled)
                left -= 1
            else:
                size2 = omega.dot(omega)
                omega *= 0.5 / qd.max(qd.sqrt(size2), 1.0)  # at most about a radian at a time
                q = _product(vec4(omega[0], omega[1], omega[2], 1.0), q)  # Cayley's form of exp, exact to ω³
                q /= qd.sqrt(q.dot(q))
                left = qd.select(size2 < 1e-6, 0, left - 1)  # what is left of the error is below a rounding
            begun = 1
    return q


@qd.func
def rotation_of(a: mat3) -> mat3:
    """R of the polar decomposition of A; the identity for A = 0."""
    return rotation_matrix(rotation_near(a, vec4(0.0, 0.0, 0.0, 1.0)))
