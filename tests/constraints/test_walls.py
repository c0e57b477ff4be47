"""What walls add to densities: half-spaces against quadrature, products of faces, and how moving walls change them."""

import numpy as np
import pytest
import quadrants as qd

from kit import box_scene, cubic, spiky
from viscoil.constraints.walls import half_space, half_space_gradient, wall_density, wall_motion
from viscoil.particles import Floats, Vectors, allocate_array, vec3
from viscoil.scene.parts import Solid
from viscoil.simulate import Simulation
from viscoil.solids.assembly import SolidSet
from viscoil.solids.sdf import Parts, Solids
from viscoil.sph.calibration import calibrate
from viscoil.sph.smoothing import CUBIC, POLY6, SPIKY

D = 0.04
H = 2 * D
DT = 0.002


@qd.kernel
def _halves(q: Floats, n: qd.i32, share: Floats, slope: Floats, kernel: qd.Template):
    for i in range(n):
        share[i] = half_space(q[i], kernel)
        slope[i] = half_space_gradient(q[i], kernel)


@qd.kernel
def _density(x: Vectors, n: qd.i32, number: qd.i32, solids: Solids, parts: Parts, share: Floats, gradient: Vectors):
    for i in range(n):
        s, g = wall_density(x[i], 0.08, number, solids, parts, 2)
        share[i] = s
        gradient[i] = g


@qd.kernel
def _motion(
    x: Vectors, n: qd.i32, number: qd.i32, solids: Solids, parts: Parts, share: Floats, gradient: Vectors, flux: Floats,
    carried: Vectors, grip: Floats,
):  # fmt: skip
    for i in range(n):
        s, g, f, c, r = wall_motion(x[i], 0.08, 0.002, number, solids, parts, 2)
        share[i] = s
        gradient[i] = g
        flux[i] = f
        carried[i] = c
        grip[i] = r


def halves(q, kernel):
    n = len(q)
    places, share, slope = (allocate_array(qd.f32, n) for _ in range(3))
    places.from_numpy(q.astype(np.float32))
    _halves(places, n, share, slope, kernel)
    return share.to_numpy(), slope.to_numpy()


def positions(x):
    places = allocate_array(vec3, len(x))
    places.from_numpy(np.asarray(x, np.float32))
    return places


def density(x, solids):
    share, gradient = allocate_array(qd.f32, len(x)), allocate_array(vec3, len(x))
    _density(positions(x), len(x), len(solids), solids.device, solids.parts, share, gradient)
    return share.to_numpy(), gradient.to_numpy()


def motion(x, solids):
    share, flux, grip = (allocate_array(qd.f32, len(x)) for _ in range(3))
    gradient, carried = (allocate_array(vec3, len(x)) for _ in range(2))
    _motion(positions(x), len(x), len(solids), solids.device, solids.parts, share, gradient, flux, carried, grip)
    return [a.to_numpy() for a in (share, gradient, flux, carried, grip)]


@pytest.mark.parametrize("kernel, w", [(SPIKY, spiky), (CUBIC, cubic)])
def test_half_space_is_the_integral_of_the_kernel(kernel, w):
    """∫ W over z > q by quadrature: spherical caps hold the share (1 − q/r)/2 of every shell."""
    q = np.linspace(-1.2, 1.2, 97)
    r = np.linspace(1e-9, 1, 40001)
    shell = 4 * np.pi * r**2 * w(r, 1.0)
    expected = np.array([np.trapezoid(shell * (1 - np.clip(z / r, -1, 1)) / 2, r) for z in q])
    share, slope = halves(q, kernel)
    assert np.allclose(share, expected, atol=2e-6)
    plane = np.array([2 * np.pi * np.trapezoid((r * w(r, 1.0))[r >= abs(z)], r[r >= abs(z)]) for z in q])
    assert np.allclose(slope, plane, atol=2e-4)
    assert np.all(share[q >= 1] == 0) and np.allclose(share[q <= -1], 1)


def test_poly6_borrows_the_half_space_of_spiky():
    q = np.linspace(-1, 1, 33)
    for a, b in zip(halves(q, POLY6), halves(q, SPIKY), strict=True):
        assert np.array_equal(a, b)
    assert calibrate(D, H, POLY6).wall_factor != calibrate(D, H, SPIKY).wall_factor


def walls(*solids, factor=1.0):
    return SolidSet([Solid(**fields) for fields in solids], factor)


FLOOR = {"shape": {"type": "plane"}}
BOX = {"container": True, "shape": {"type": "box", "size": (0.4, 0.5, 0.6), "rotation": (20, 30, 40)}}
BALL = {"shape": {"type": "sphere", "radius": 0.2, "position": (0.1, 0.0, 0.0)}}


@pytest.mark.parametrize("fields", [FLOOR, BOX, BALL], ids=["plane", "box", "ball"])
def test_motion_of_resting_walls_is_their_density(fields):
    """Same share and gradient, and exactly no velocity."""
    solids = walls(fields, factor=1.1)
    x = np.random.default_rng(0).uniform(-0.3, 0.3, (3000, 3))
    share, gradient = density(x, solids)
    s, g, flux, carried, _ = motion(x, solids)
    assert np.count_nonzero(share) > 100
    assert np.allclose(s, share, atol=1e-6) and np.allclose(g, gradient, atol=1e-5 / H)
    assert np.all(flux == 0) and np.all(carried == 0)


def test_gradient_is_the_derivative_in_corners():
    solids = walls(BOX)
    x = np.random.default_rng(1).uniform(-0.25, 0.25, (2000, 3))
    _, gradient = density(x, solids)
    step = 1e-3
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        slope = (density(x + shift, solids)[0] - density(x - shift, solids)[0]) / (2 * step)
        assert np.allclose(gradient[:, axis], slope, atol=2e-3 / H)
    assert np.abs(gradient).max() > 1 / H


KEYS = {
    "shift": {"position": (0.3, -0.2, 0.1)},
    "turn": {"rotation": (10, 20, 30)},
    "both": {"position": (0.3, 0.5, -0.1), "rotation": (0, 40, 0)},
}


@pytest.mark.parametrize("fields", [BOX, BALL, FLOOR], ids=["box", "ball", "plane"])
@pytest.mark.parametrize("end", KEYS.values(), ids=KEYS)
def test_flux_is_what_the_moving_wall_takes(fields, end):
    """Density of the walls at a resting point: its change in a step is −flux Δt, to first order."""
    moving = {**fields, "interpolation": "linear", "motion": [{"time": 0.0}, {"time": 1.0, **end}]}
    solids = walls(moving)
    x = np.random.default_rng(2).uniform(-0.3, 0.3, (3000, 3))
    solids.place(0.5, 0.5)
    before, gradient = density(x, solids)
    solids.place(0.5, 0.5 + DT)
    after, _ = density(x, solids)
    share, g, flux, carried, _ = motion(x, solids)
    assert np.allclose(share, before, atol=1e-5) and np.allclose(g, gradient, atol=1e-3 / H), "as at the start of the step"
    change = after - before
    assert np.allclose(-flux * DT, change, atol=0.02 * np.abs(change).max() + 1e-5)
    assert np.abs(change).max() > 1e-3 or fields is FLOOR or end is KEYS["turn"]
    if "rotation" not in end:
        assert np.allclose(carried, share[:, None] * np.array(end["position"]), atol=1e-3)


def test_several_walls_share_what_they_carry():
    """Between two plates: shares in proportion, friction as a mean, no slip as 1e6; samples do not count."""
    plate = {"type": "box", "size": (1.0, 0.2, 1.0)}
    key = {"interpolation": "linear", "motion": [{"time": 0.0}, {"time": 1.0, "position": (1.0, 0, 0)}]}
    low = {"shape": {**plate, "position": (0, -0.1, 0)}, "friction": 0.2}
    high = {"shape": {**plate, "position": (0, 0.16, 0)}, "friction": 0.6, **key}
    solids = walls(low, high)
    solids.place(0.2, 0.2 + DT)
    middle, lower = [0.0, 0.03, 0.0], [0.0, 0.01, 0.0]
    share, gradient, flux, carried, grip = motion([middle, lower], solids)
    one = halves(np.array([0.03 / H]), CUBIC)[0][0]
    assert share[0] == pytest.approx(1 - (1 - one) ** 2, rel=1e-4)
    assert carried[0] == pytest.approx([share[0] / 2, 0, 0], abs=1e-4)
    assert grip[0] == pytest.approx(0.4 * share[0], rel=1e-4) and 0.2 < grip[1] / share[1] < 0.3
    assert np.allclose(gradient[0], 0, atol=1e-3) and np.allclose(flux, 0, atol=1e-3), "they slide"
    sampled = walls({**low, "boundary": "particles"}, {**high, "friction": "no-slip"})
    sampled.place(0.2, 0.2 + DT)
    share, _, _, carried, grip = motion([middle], sampled)
    assert share[0] == pytest.approx(one, rel=1e-4) and grip[0] == pytest.approx(1e6 * share[0])
    assert carried[0, 0] == pytest.approx(share[0], rel=1e-3)


def test_far_from_walls_there_is_nothing():
    share, gradient, flux, carried, grip = motion([[0.0, 0.5, 0.0]], walls(FLOOR))
    for values in (share, gradient, flux, carried, grip):
        assert np.all(values == 0)


@pytest.mark.parametrize("kernels", ["spiky", "paper"])
@pytest.mark.parametrize("boundary", ["distance", "particles"])
def test_first_layer_is_as_dense_as_the_inside(kernels, boundary):
    """Whatever kernel and boundary: lattice on a floor."""
    n, d = 9, 0.02
    size = (n * d, 8 * d, n * d)
    floor = {"type": "box", "size": (2 * n * d, 4 * d, 2 * n * d), "position": (n * d / 2, -2 * d, n * d / 2)}
    fluid = {"material": "water", "shape": {"type": "box", "size": size, "position": tuple(s / 2 for s in size)}}
    scene = box_scene(
        d, fluid=[fluid], solid=[{"shape": floor, "boundary": boundary}], solver={"method": "pbf", "kernels": kernels}
    )
    layer = Simulation(scene, "cpu").frame()["density"].reshape(n, 8, n)[3:6, :, 3:6] / 1000
    water = scene.material_named("water").density / 1000
    assert np.allclose(layer[:, 4], water, atol=1e-3)
    assert layer[:, 0].mean() == pytest.approx(water, abs=0.01 if boundary == "particles" else 1e-3)
