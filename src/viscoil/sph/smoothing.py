"""Smoothing kernels W(r) with support h, and their gradients (three dimensions).

Values take r², gradients return the factor g(r) of ∇W(x_ij) = g(r) x_ij, so that no direction is ever divided by
zero (q is kept above 1e-6, where rounding has eaten the direction). Everything is written in q = r/h: powers of h
alone would leave the range of float32 for millimetre particles.
Radii in metres, W in 1/m³, g in 1/m⁵. Every function is 0 for r >= h.
"""

import quadrants as qd

import viscoil.compiler  # noqa: F401  before the first kernel

SPIKY, POLY6, CUBIC = 0, 1, 2  # kernels of the density sum; inside kernels these numbers are written out
NAMES = ("spiky", "paper", "cubic")  # what users call them: PBF was published with Poly6


@qd.func
def poly6(r2: qd.f32, h: qd.f32) -> qd.f32:
    """W = 315/(64π h³) (1 − q²)³."""
    s = qd.max(1.0 - r2 / (h * h), 0.0)
    return 315.0 / (64.0 * qd.math.pi) / (h * h * h) * s * s * s


@qd.func
def poly6_gradient(r2: qd.f32, h: qd.f32) -> qd.f32:
    """g = −945/(32π h⁵) (1 − q²)²."""
    s = qd.max(1.0 - r2 / (h * h), 0.0)
    return -945.0 / (32.0 * qd.math.pi) / (h * h * h * h * h) * s * s


@qd.func
def _inverse_distance(r2: qd.f32, h: qd.f32) -> qd.f32:
    """1/r, with r kept above 1e-6 h. One reciprocal root serves a kernel and its gradient."""
    return qd.rsqrt(qd.max(r2, 1e-12 * h * h))


@qd.func
def spiky(r2: qd.f32, h: qd.f32) -> qd.f32:
    """W = 15/(π h³) (1 − q)³."""
    s = qd.max(1.0 - r2 * _inverse_distance(r2, h) / h, 0.0)
    return 15.0 / qd.math.pi / (h * h * h) * s * s * s


@qd.func
def spiky_gradient(r2: qd.f32, h: qd.f32) -> qd.f32:
    """g = −45/(π h⁴) (1 − q)²/r."""
    inverse = _inverse_distance(r2, h)
    s = qd.max(1.0 - r2 * inverse / h, 0.0)
    return -45.0 / qd.math.pi / (h * h * h * h) * s * s * inverse


@qd.func
def cubic(r2: qd.f32, h: qd.f32) -> qd.f32:
    """Cubic spline of support h: 8/(π h³) [6(q³ − q²) + 1] up to q = 1/2, 16/(π h³) (1 − q)³ beyond."""
    q = qd.sqrt(r2) / h
    s = qd.max(1.0 - q, 0.0)
    t = qd.max(0.5 - q, 0.0)
    return 16.0 / qd.math.pi / (h * h * h) * (s * s * s - 4.0 * t * t * t)  # both branches, without one


@qd.func
def cubic_gradient(r2: qd.f32, h: qd.f32) -> qd.f32:
    """g of the cubic spline: 48/(π h⁵)(3q − 2) up to q = 1/2, −48/(π h⁵)(1 − q)²/q beyond."""
    inverse = h * _inverse_distance(r2, h)  # 1/q
    q = r2 * inverse / (h * h)
    s = qd.max(1.0 - q, 0.0)
    g = qd.select(q <= 0.5, 3.0 * q - 2.0, -s * s * inverse)
    return 48.0 / qd.math.pi / (h * h * h * h * h) * g


@qd.func
def cubic_steepness(r2: qd.f32, least: qd.f32):
    """(g π h⁵/48, r, 1/r) of :func:`cubic_gradient` for r in units of h/2¹⁹, those of places in records: one root, no division.
    1/r ends where r² is ``least``."""
    inverse = qd.rsqrt(qd.max(r2, least))
    r = r2 * inverse
    return _steepness(r, inverse), r, inverse


@qd.func
def squared(d, least: qd.f32) -> qd.f32:
    """|d|² + ``least`` in three instructions, as many as |d|² takes."""
    return d[2] * d[2] + (d[1] * d[1] + (d[0] * d[0] + least))


@qd.func
def steepness_beyond(r2: qd.f32):
    """(g π h⁵/48, 1/r) as :func:`cubic_steepness` has them, where r² is known to be more than nothing."""
    inverse = qd.rsqrt(r2)
    return _steepness(r2 * inverse, inverse), inverse


@qd.func
def _steepness(r: qd.f32, inverse: qd.f32) -> qd.f32:
    s = qd.max(724.0773439350247 - 1.3810679320049757e-3 * r, 0.0)  # 2^9.5 (1 − q)
    return qd.select(r <= 262144.0, 5.7220458984375e-06 * r - 2.0, -s * s * inverse)


@qd.func
def density_weight(r2: qd.f32, h: qd.f32, kernel: qd.template()) -> qd.f32:
    """W of the density sum: ``kernel`` is SPIKY, POLY6 or CUBIC."""
    w = 0.0
    if qd.static(kernel == 2):
        w = cubic(r2, h)
    elif qd.static(kernel == 1):
        w = poly6(r2, h)
    else:
        w = spiky(r2, h)
    return w
