"""Signed distances against other formulas, dense samples of the surface, and what a distance must satisfy."""

import itertools

import numpy as np
import pytest

from kit import backend  # noqa: F401
from viscoil.scene.parts import Solid
from viscoil.scene.shapes import SHAPES
from viscoil.solids.assembly import SolidSet, rotation_matrix, signed_distance
from viscoil.solids.figures import bear_parts

RNG = np.random.default_rng(11)


def shape(**fields):
    return Solid(shape=fields).shape


def rings(profile):
    """Surface of revolution about y from a dense profile (m, 2) of (radius, height)."""
    angle = np.linspace(0, 2 * np.pi, 181)
    r, y = profile[:, :1], profile[:, 1:]
    return np.stack([r * np.cos(angle), y + 0 * angle, r * np.sin(angle)], -1).reshape(-1, 3)


def polyline(*points, n=160):
    return np.concatenate([np.linspace(a, b, n) for a, b in itertools.pairwise(points)])


def arc(centre, radius, begin, end, n=160):
    a = np.linspace(begin, end, n)
    return np.stack([centre[0] + radius * np.cos(a), centre[1] + radius * np.sin(a)], 1)


def box_surface(size, n=90):
    half, points = np.asarray(size) / 2, []
    for axis in range(3):
        u, v = [k for k in range(3) if k != axis]
        a, b = np.meshgrid(np.linspace(-half[u], half[u], n), np.linspace(-half[v], half[v], n))
        for side in (-1, 1):
            p = np.empty((n * n, 3))
            p[:, u], p[:, v], p[:, axis] = a.ravel(), b.ravel(), side * half[axis]
            points.append(p)
    return np.concatenate(points)


def inside_segment(x, rho, y, t):
    """Distance of (rho, y) to the slanted middle of the funnel wall, by brute force along it."""
    line = polyline((0.1, -0.15), (0.3, 0.15), n=4000)
    return np.sqrt(((rho[:, None] - line[:, 0]) ** 2 + (y[:, None] - line[:, 1]) ** 2).min(1)) < t / 2


def inside_bowl(x, rim, height, t):
    """Closer than half the wall to an arc through the bottom and the rim, by brute force along it."""
    ball = (rim**2 + height**2) / (2 * height)
    line = arc((0, ball - height / 2), ball, -H, np.arctan2(height - ball, rim), 4000)
    rho, y = np.hypot(x[:, 0], x[:, 2]), x[:, 1]
    return np.sqrt(((rho[:, None] - line[:, 0]) ** 2 + (y[:, None] - line[:, 1]) ** 2).min(1)) < t / 2


def inside_cup(x, bottom, top, height, t):
    """Closer than half the wall to the line from the axis along the floor and up the side, by brute force along it."""
    line = polyline((0, -height / 2), (bottom, -height / 2), (top, height / 2), n=4000)
    rho, y = np.hypot(x[:, 0], x[:, 2]), x[:, 1]
    return np.sqrt(((rho[:, None] - line[:, 0]) ** 2 + (y[:, None] - line[:, 1]) ** 2).min(1)) < t / 2


H = np.pi / 2
# name: (shape, points of its surface, inside by another formula)
CASES = {
    "box": (
        shape(type="box", size=(0.4, 0.6, 0.5)), box_surface((0.4, 0.6, 0.5)),
        lambda x: np.all(np.abs(x) < (0.2, 0.3, 0.25), axis=1),
    ),
    "sphere": (shape(type="sphere", radius=0.3), rings(arc((0, 0), 0.3, -H, H)), lambda x: (x**2).sum(1) < 0.09),
    "capsule": (
        shape(type="capsule", radius=0.15, height=0.3),
        rings(
            np.concatenate([arc((0, -0.15), 0.15, -H, 0), polyline((0.15, -0.15), (0.15, 0.15)), arc((0, 0.15), 0.15, 0, H)])
        ),
        lambda x: np.hypot(np.hypot(x[:, 0], x[:, 2]), np.maximum(np.abs(x[:, 1]) - 0.15, 0)) < 0.15,
    ),
    "cylinder": (
        shape(type="cylinder", radius=0.25, height=0.4), rings(polyline((0, -0.2), (0.25, -0.2), (0.25, 0.2), (0, 0.2))),
        lambda x: (np.hypot(x[:, 0], x[:, 2]) < 0.25) & (np.abs(x[:, 1]) < 0.2),
    ),
    "cone": (
        shape(type="cone", radius=0.3, height=0.5), rings(polyline((0, -0.25), (0.3, -0.25), (0, 0.25))),
        lambda x: (np.abs(x[:, 1]) < 0.25) & (np.hypot(x[:, 0], x[:, 2]) < 0.3 * (0.25 - x[:, 1]) / 0.5),
    ),
    "frustum": (
        shape(type="cone", radius=0.1, top_radius=0.35, height=0.2),
        rings(polyline((0, -0.1), (0.1, -0.1), (0.35, 0.1), (0, 0.1))),
        lambda x: (np.abs(x[:, 1]) < 0.1) & (np.hypot(x[:, 0], x[:, 2]) < 0.1 + 0.25 * (x[:, 1] + 0.1) / 0.2),
    ),
    "torus": (
        shape(type="torus", radius=0.25, tube=0.1), rings(arc((0.25, 0), 0.1, 0, 4 * H, 300)),
        lambda x: (np.hypot(x[:, 0], x[:, 2]) - 0.25) ** 2 + x[:, 1] ** 2 < 0.01,
    ),
    "funnel": (
        shape(type="funnel", bottom_radius=0.1, top_radius=0.3, height=0.3, thickness=0.06), None,
        lambda x: inside_segment(x, np.hypot(x[:, 0], x[:, 2]), x[:, 1], 0.06),
    ),
    "bowl": (
        shape(type="bowl", radius=0.35, height=0.2, thickness=0.05), None, lambda x: inside_bowl(x, 0.35, 0.2, 0.05),
    ),
    "deep bowl": (
        shape(type="bowl", radius=0.15, height=0.5, thickness=0.06), None, lambda x: inside_bowl(x, 0.15, 0.5, 0.06),
    ),
    "cup": (
        shape(type="cup", radius=0.3, height=0.5, thickness=0.06),
        rings(np.concatenate([
            polyline((0, -0.28), (0.3, -0.28)), arc((0.3, -0.25), 0.03, -H, 0), polyline((0.33, -0.25), (0.33, 0.25)),
            arc((0.3, 0.25), 0.03, 0, 2 * H), polyline((0.27, 0.25), (0.27, -0.22), (0, -0.22)),
        ])),
        lambda x: inside_cup(x, 0.3, 0.3, 0.5, 0.06),
    ),
    "conical cup": (
        shape(type="cup", radius=0.2, top_radius=0.4, height=0.4, thickness=0.08), None,
        lambda x: inside_cup(x, 0.2, 0.4, 0.4, 0.08),
    ),
    "rounded box": (
        shape(type="box", size=(0.4, 0.6, 0.5), rounding=0.1), None,
        lambda x: np.linalg.norm(np.maximum(np.abs(x) - (0.1, 0.2, 0.15), 0), axis=1) < 0.1,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def points():
    return RNG.uniform(-0.6, 0.6, (1500, 3)).astype(np.float32)


def test_every_shape_has_a_case():
    again = {"frustum", "rounded box", "deep bowl", "conical cup"}
    assert set(CASES) - again | {"plane", "union", "bear", "mesh"} == set(SHAPES)


@pytest.mark.parametrize("name", CASES)
def test_sign(name, points):
    s, _, inside = CASES[name]
    phi = signed_distance(s, points)
    clear = np.abs(phi) > 1e-4
    assert 0.01 < (phi < 0).mean() < 0.9
    assert np.array_equal((phi < 0)[clear], inside(points.astype(float))[clear])


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][1] is not None])
def test_distance_to_a_sampled_surface(name, points):
    s, surface, _inside = CASES[name]
    some = points[:300].astype(float)
    nearest = np.array([np.sqrt(((surface - p) ** 2).sum(1).min()) for p in some])
    phi = signed_distance(s, some)
    assert np.abs(signed_distance(s, surface)).max() < 2e-6, "zero on the surface"
    assert np.allclose(np.abs(phi), nearest, atol=3e-3)


@pytest.mark.parametrize("name", CASES)
def test_eikonal(name, points):
    """|∇φ| = 1 except where the nearest point jumps, and there it is smaller."""
    s = CASES[name][0]
    step = 1e-3
    gradient = np.stack([
        signed_distance(s, points + step * e) - signed_distance(s, points - step * e) for e in np.eye(3, dtype=np.float32)
    ], 1) / (2 * step)  # fmt: skip
    length = np.linalg.norm(gradient, axis=1)
    assert length.max() < 1.01
    assert (np.abs(length - 1) < 0.01).mean() > 0.93


def test_plane():
    x = RNG.normal(size=(50, 3))
    turned = shape(type="plane", position=(1, 2, 3), rotation=(0, 0, 90))
    assert np.allclose(signed_distance(shape(type="plane"), x), x[:, 1], atol=1e-6)
    assert np.allclose(signed_distance(turned, x), -(x[:, 0] - 1), atol=1e-5), "local +y is −x after a quarter turn"


def test_rotation_order_is_intrinsic():
    """About x, then the new y, then the new z."""
    turn = rotation_matrix((90, 90, 0))
    assert np.allclose(turn @ [0, 0, 1], [1, 0, 0], atol=1e-12), "z: turned about the new y"
    assert np.allclose(turn @ [0, 1, 0], [0, 0, 1], atol=1e-12), "y: only the first turn moves it"
    assert np.allclose(rotation_matrix((30, 40, 50)) @ rotation_matrix((30, 40, 50)).T, np.eye(3))


@pytest.mark.parametrize("name", CASES)
def test_placed_and_turned(name, points):
    s = CASES[name][0]
    placed = s.model_copy(update={"position": (0.3, -1.0, 2.0), "rotation": (25.0, -50.0, 110.0)})
    moved = points @ rotation_matrix(placed.rotation).T + placed.position
    assert np.allclose(signed_distance(placed, moved), signed_distance(s, points), atol=2e-6)


def test_union_and_container(points):
    parts = [
        {"type": "sphere", "radius": 0.2, "position": (0.1, 0, 0)},
        {"type": "box", "size": (0.2, 0.5, 0.2), "position": (-0.2, 0.1, 0), "rotation": (0, 0, 30)},
    ]
    a, b = (signed_distance(shape(**p), points) for p in parts)
    union = shape(type="union", parts=parts)
    assert np.allclose(signed_distance(union, points), np.minimum(a, b), atol=1e-6)
    k = 0.1
    blended = signed_distance(shape(type="union", parts=parts, blend=k), points)
    expected = np.minimum(a, b) - np.maximum(k - np.abs(a - b), 0) ** 2 / (4 * k)
    assert np.allclose(blended, expected, atol=1e-6)
    hollow = SolidSet([Solid(shape=union, container=True)]).distance(0, points)
    assert np.allclose(hollow, -np.minimum(a, b), atol=1e-6)
    nested = shape(type="union", parts=[{"type": "union", "parts": parts, "position": (0.1, 0.2, 0.3), "rotation": (0, 90, 0)}])
    moved = points @ rotation_matrix((0, 90, 0)).T + np.float32([0.1, 0.2, 0.3])
    assert np.allclose(signed_distance(nested, moved), np.minimum(a, b), atol=2e-6)


def test_bear_is_the_union_of_its_parts(points):
    parts, blend = bear_parts(1.0)
    keys = {"capsule": ("radius", "height"), "sphere": ("radius",)}
    lowest = np.full(len(points), np.inf)
    for kind, lengths, centre, rotation in parts:
        fields = dict(zip(keys[kind], lengths, strict=True))
        if kind == "capsule":
            fields["height"] *= 2  # rows hold half lengths
        lowest = np.minimum(lowest, signed_distance(shape(type=kind, position=centre, rotation=rotation, **fields), points))
    phi = signed_distance(shape(type="bear", height=1.0), points)
    assert np.all(phi <= lowest + 1e-6) and np.all(phi >= lowest - 1.25 * blend)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.6, 0.6, 61)] * 3, indexing="ij"), -1).reshape(-1, 3)
    body = grid[signed_distance(shape(type="bear", height=1.0), grid) < 0]
    assert body[:, 1].max() == pytest.approx(0.5, abs=0.03) and body[:, 1].min() == pytest.approx(-0.5, abs=0.03)
    assert np.allclose(body[:, 0].mean(), 0, atol=0.01), "left and right are alike"


def test_a_blended_solid_is_felt_where_it_bulges():
    """Parts that coincide swell by a quarter of the blend: the ball that stands for the solid must hold that."""
    parts = [{"type": "sphere", "radius": 0.1}] * 4
    solids = SolidSet([Solid(shape=shape(type="union", parts=parts, blend=0.2))])
    axis = np.array([[0.0, y, 0.0] for y in np.linspace(0.1, 0.4, 301)])
    surface = axis[np.abs(solids.distance(0, axis)).argmin(), 1]
    assert surface > 0.15
    assert solids.device.bound.to_numpy()[0] >= surface


@pytest.mark.parametrize("container", [False, True])
def test_normals_at_edges_do_not_lean_along_them(container):
    """Probing with four points of a tetrahedron did, and drove particles along the edges of a box."""
    solids = SolidSet([Solid(shape=shape(type="box", size=(1, 1, 1)), container=container)])
    side = 0.5 - 0.01 if container else 0.5 + 0.01
    z = np.linspace(-0.4, 0.4, 41)
    edge = np.stack([np.full(41, side), np.full(41, side), z], 1)
    n = solids.normals(0, edge, 0.02)
    assert np.abs(n[:, 2]).max() < 1e-4
    assert np.allclose(n[:, 0], n[:, 1], atol=1e-4)
    assert np.all(n[:, 0] * (-1 if container else 1) > 0.7)


@pytest.mark.parametrize("name", CASES)
def test_normals_point_away(name, points):
    s = CASES[name][0]
    solids = SolidSet([Solid(shape=s.model_copy(update={"rotation": (10.0, 20.0, 30.0), "position": (1.0, 0.0, 0.0)}))])
    x = points + np.float32([1, 0, 0])
    n = solids.normals(0, x, 1e-3)
    assert np.allclose(np.linalg.norm(n, axis=1), 1, atol=1e-5)
    out = solids.distance(0, x + 0.01 * n) - solids.distance(0, x)
    assert (np.abs(out - 0.01) < 5e-4).mean() > 0.93


@pytest.mark.parametrize("container", [False, True])
@pytest.mark.parametrize("fields", [
    {"type": "plane"}, {"type": "sphere", "radius": 0.3}, {"type": "box", "size": (1, 0.6, 0.8)},
    {"type": "box", "size": (1, 0.6, 0.8), "rounding": 0.1},
])  # fmt: skip
def test_normals_by_formula_are_those_that_are_measured(fields, container):
    s = shape(**fields, rotation=(10.0, 20.0, 30.0), position=(0.1, -0.2, 0.3))
    solids = SolidSet([Solid(shape=s, container=container)])
    x = RNG.uniform(-0.8, 0.8, (400, 3)).astype(np.float32) + np.float32([0.1, -0.2, 0.3])
    step = 1e-3
    ways = step * np.eye(3, dtype=np.float32)
    slope = np.stack([solids.distance(0, x + way) - solids.distance(0, x - way) for way in ways], 1) / (2 * step)
    smooth = np.abs(np.linalg.norm(slope, axis=1) - 1) < 2e-3  # not across the middle of something
    assert smooth.mean() > 0.9
    assert np.abs(solids.normals(0, x, step) - slope)[smooth].max() < 5e-3
