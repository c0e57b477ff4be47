"""Rotations of the polar decomposition against the singular value decomposition: every angle, flat, mirrored, from anywhere."""

import numpy as np
import pytest
import quadrants as qd

import kit  # noqa: F401  (starts the backend)
from viscoil.particles import Floats, Matrices, allocate_array, mat3
from viscoil.sph.rotation import rotation_matrix, rotation_near, vec4, whole_turn


@qd.kernel
def _rotations(a: Matrices, start: Floats, n: qd.i32, out: Matrices):
    for i in range(n):
        q = whole_turn(vec4(start[4 * i], start[4 * i + 1], start[4 * i + 2], start[4 * i + 3]))
        out[i] = rotation_matrix(rotation_near(a[i], q))


def found(a, start=None):
    n = len(a)
    source, target, begin = allocate_array(mat3, n), allocate_array(mat3, n), allocate_array(qd.f32, 4 * n)
    source.from_numpy(np.array(a, np.float32))
    if start is not None:
        begin.from_numpy(np.array(start, np.float32).reshape(-1))
    _rotations(source, begin, n, target)
    return target.to_numpy().astype(float)


def rotation(axis, angle):
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def best(a):
    """The rotation of the largest tr(Rᵀ A), and how clear a winner it is."""
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.det(u @ vt)
    return u @ np.diag([1, 1, sign]) @ vt, (s[1] + sign * s[2]) / s[0]


SHAPES = {"round": (1, 1, 1), "flat": (1, 1, 1e-4), "plane": (1, 1, 0), "long": (1, 0.2, 0.2), "thin": (1, 0.05, 0.02)}


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("start", ["nothing", "close", "random"])
def test_every_angle(shape, start):
    rng = np.random.default_rng(3)
    a, expected, begin = [], [], []
    for k in range(300):
        angle = np.pi * (k % 31) / 30  # 180° included
        turn = rotation(rng.normal(size=3), angle)
        points = rng.normal(size=(33, 3)) * SHAPES[shape]
        moved = points @ turn.T + (0.1 * min(SHAPES[shape][:2]) if k % 2 else 0.0) * rng.normal(size=points.shape)
        a.append(0.003 * moved.T @ points)
        expected.append(best(moved.T @ points)[0])
        q = rng.normal(size=4)
        if start == "close":
            near = rotation(rng.normal(size=3), 0.05) @ expected[-1]
            _, vectors = np.linalg.eigh(_horn(near))
            q = vectors[:, -1]
        begin.append(q * 0 if start == "nothing" else q)
    r = found(a, begin)
    assert np.abs(r - expected).max() < (2e-5 if shape != "thin" else 2e-3)
    assert np.abs(np.linalg.det(r) - 1).max() < 1e-6


def _horn(a):
    """Horn's matrix, for quaternions with the real part last."""
    n = np.zeros((4, 4))
    n[:3, :3] = a + a.T - np.trace(a) * np.eye(3)
    n[:3, 3] = n[3, :3] = a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]
    n[3, 3] = np.trace(a)
    return n


def test_mirrored_points_get_the_best_rotation_not_a_reflection():
    rng = np.random.default_rng(5)
    a = [rng.normal(size=(3, 3)) for _ in range(500)]
    a = [m if np.linalg.det(m) < 0 else -m for m in a]
    expected, clear = (np.array(part) for part in zip(*map(best, a), strict=True))
    r = found(a)
    assert np.abs(np.linalg.det(r) - 1).max() < 1e-6
    gain = np.einsum("nij,nij->n", r, a) / np.einsum("nij,nij->n", expected, a)
    assert gain.min() > 1 - 1e-5
    assert np.abs(r - expected)[clear > 0.1].max() < 1e-4 and (clear > 0.1).sum() > 200


def test_points_in_a_line_and_points_in_a_point():
    """Many rotations are as good as any; one of them is found, and it turns the line."""
    rng = np.random.default_rng(6)
    for k in range(20):
        line, turn = rng.normal(size=3), rotation(rng.normal(size=3), np.pi * k / 19)
        a = np.outer(turn @ line, line)
        r = found([a])[0]
        assert np.abs(r @ line - turn @ line).max() < 1e-4 and np.linalg.det(r) == pytest.approx(1, abs=1e-6)
    start = np.array([0.5, 0.5, 0.5, 0.5])
    assert np.abs(found([np.zeros((3, 3))], [start])[0] - [[0, 0, 1], [1, 0, 0], [0, 1, 0]]).max() < 1e-6
