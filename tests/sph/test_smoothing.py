"""Smoothing kernels: they integrate to one, their gradients are gradients, and they end at the support."""

import numpy as np
import pytest
import quadrants as qd

from kit import backend  # noqa: F401  (starts the compiler)
from viscoil.particles import Floats, allocate_array
from viscoil.sph.smoothing import cubic, cubic_gradient, poly6, poly6_gradient, spiky, spiky_gradient

NAMES = ("poly6", "spiky", "cubic")


@qd.kernel
def _evaluate(r2: Floats, n: qd.i32, h: qd.f32, w: qd.types.NDArray[qd.f32, 2], g: qd.types.NDArray[qd.f32, 2]):
    for i in range(n):
        w[i, 0] = poly6(r2[i], h)
        w[i, 1] = spiky(r2[i], h)
        w[i, 2] = cubic(r2[i], h)
        g[i, 0] = poly6_gradient(r2[i], h)
        g[i, 1] = spiky_gradient(r2[i], h)
        g[i, 2] = cubic_gradient(r2[i], h)


def evaluate(r, h):
    """W and the factors g of ∇W = g x at radii r."""
    r2 = allocate_array(qd.f32, len(r))
    r2.from_numpy((np.asarray(r, float) ** 2).astype(np.float32))
    w, g = (qd.ndarray(qd.f32, (len(r), 3)) for _ in range(2))
    _evaluate(r2, len(r), h, w, g)
    return w.to_numpy().astype(float), g.to_numpy().astype(float)


@pytest.mark.parametrize("h", [2.3e-3, 0.046, 7.0])
@pytest.mark.parametrize("kernel", range(3), ids=NAMES)
def test_integral_is_one(kernel, h):
    r = np.linspace(0, 1.2 * h, 20001)
    w, _ = evaluate(r, h)
    assert np.trapezoid(4 * np.pi * r**2 * w[:, kernel], r) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("h", [2.3e-3, 0.046, 7.0])
@pytest.mark.parametrize("kernel", range(3), ids=NAMES)
def test_gradient_is_the_derivative(kernel, h):
    r = np.linspace(0.02, 1.1, 400) * h
    step = 2e-3 * h
    slope = (evaluate(r + step, h)[0] - evaluate(r - step, h)[0])[:, kernel] / (2 * step)
    gradient = evaluate(r, h)[1][:, kernel] * r
    steepest = np.abs(slope).max()
    assert np.allclose(gradient, slope, atol=4e-3 * steepest)
    # The integral of |W'| over the ball is a norm the differences cannot fake: ∫ 4πr³ W' dr = −3.
    fine = np.linspace(1e-4, 1, 8001) * h
    assert np.trapezoid(4 * np.pi * fine**3 * evaluate(fine, h)[1][:, kernel] * fine, fine) == pytest.approx(
        -3, abs=5e-3
    )


@pytest.mark.parametrize("kernel", range(3), ids=NAMES)
def test_support_and_centre(kernel):
    h = 0.5
    w, g = evaluate([0.0, 0.5, 0.5001, 3.0, 1e15], h)
    assert np.all(w[1:, kernel] == 0) and np.all(g[1:, kernel] == 0)
    assert w[0, kernel] == pytest.approx([315 / 64, 15, 8][kernel] / np.pi / h**3, rel=1e-5)
    assert np.isfinite(g[0, kernel])
    w, g = evaluate(np.linspace(0, 0.499, 500), h)
    assert np.all(np.diff(w[:, kernel]) < 0), "W falls with distance"
    assert np.all(g[:, kernel] < 0), "∇W points to the neighbour"
