"""Reference sums on the lattice, against sums made another way."""

import numpy as np
import pytest

from kit import box_scene, cubic, cubic_gradient, differences, lattice, periodic_box, poly6, spiky, spiky_gradient
from viscoil.simulate import Simulation
from viscoil.solids.boundary import sample_volumes
from viscoil.sph.calibration import calibrate
from viscoil.sph.smoothing import CUBIC, POLY6, SPIKY

D = 0.02
RATIOS = (1.95, 2.0, 2.3, 2.9)
WEIGHTS = {SPIKY: spiky, POLY6: poly6, CUBIC: cubic}


def periodic_lattice(n):
    x = lattice((n, n, n), D)
    return x, periodic_box((0, 0, 0), (n * D,) * 3, "xyz")


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kernel", WEIGHTS)
def test_lattice_density_is_exactly_one(ratio, kernel):
    h = ratio * D
    x, box = periodic_lattice(8)
    r = np.linalg.norm(differences(x, box), axis=2)
    reference = calibrate(D, h, kernel)
    w = WEIGHTS[kernel](r, h)
    assert reference.volume * w[0].sum() == pytest.approx(1, abs=1e-6)
    assert reference.neighbors == np.count_nonzero(r[0] < h * 1.0001) - 1
    assert 0.75 * D**3 < reference.volume < 1.05 * D**3


def test_a_truth_means_what_it_meant():
    """Callers that say ``False`` or ``True`` get Spiky or Poly6."""
    assert calibrate(D, 2.3 * D, False) == calibrate(D, 2.3 * D) == calibrate(D, 2.3 * D, SPIKY)
    assert calibrate(D, 2.3 * D, True) == calibrate(D, 2.3 * D, POLY6) != calibrate(D, 2.3 * D)


def test_cubic_spline_at_two_spacings():
    """The volume is nearly d³ there; the six lattice places at the very end of the support are neighbours without weight."""
    reference = calibrate(D, 2 * D, CUBIC)
    assert reference.volume == pytest.approx(D**3, rel=1e-4)
    assert reference.neighbors == 32


@pytest.mark.parametrize("kernel", WEIGHTS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_a_layer_of_samples_completes_the_density(kernel, ratio):
    """One flat layer half a spacing inside the wall, fluid from half a spacing outside it on."""
    h = ratio * D
    reference = calibrate(D, h, kernel)
    flat = lattice((15, 1, 15), D)
    volume = reference.sample_factor * sample_volumes(flat, h, kernel)
    block = lattice((15, 6, 15), D)
    block = block[block[:, 1] > D]
    x = block[(7 * 5) * 15 + 7]  # lowest layer, in the middle
    w = WEIGHTS[kernel]
    fluid = reference.volume * w(np.linalg.norm(block - x, axis=1), h).sum()
    assert fluid + volume @ w(np.linalg.norm(flat - x, axis=1), h) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kernel", [SPIKY, CUBIC])
def test_stiffest_mode_against_a_dense_matrix(ratio, kernel):
    h, n = ratio * D, 8
    x, box = periodic_lattice(n)
    reference = calibrate(D, h, kernel)
    slope = cubic_gradient if kernel == CUBIC else spiky_gradient
    gradient = reference.volume * slope(differences(x, box), h)  # of C_i by x_i, one part per neighbour
    jacobian = -gradient
    jacobian[np.arange(n**3), np.arange(n**3)] = gradient.sum(1)
    jacobian = jacobian.reshape(n**3, 3 * n**3)
    product = jacobian @ jacobian.T
    assert product[0, 0] == pytest.approx(reference.gradient_square, rel=1e-4)
    largest = np.linalg.eigvalsh(product)[-1] / reference.gradient_square
    # The small lattice has few waves, so its largest can only be a little smaller than that of the endless one.
    assert largest <= reference.stiffest_mode * 1.005
    assert largest > 0.93 * reference.stiffest_mode


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_numbers_do_not_depend_on_size(scale):
    one, other = calibrate(D, 2.3 * D), calibrate(scale, 2.3 * scale)
    assert other.neighbors == one.neighbors
    for name in ("wall_factor", "sample_factor", "stiffest_mode"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9)
    assert other.gradient_square * scale**2 == pytest.approx(one.gradient_square * D**2, rel=1e-9)


@pytest.mark.parametrize("turn", [(0, 0, 0), (20, 30, 40)])
def test_walls_complete_the_density_of_a_full_box(turn):
    """A lattice that fills a container: 1 inside and beside faces, nearly 1 in edges and corners."""
    n = 9
    shape = {"type": "box", "size": (n * D,) * 3, "position": (0.3, 0.1, -0.2), "rotation": turn}
    scene = box_scene(D, fluid=[{"material": "water", "shape": shape}], solid=[{"container": True, "shape": shape}])
    density = (
        Simulation(scene, device="cpu").frame()["density"].reshape(n, n, n) / scene.material_named("water").density
    )
    deep = slice(3, n - 3)  # farther than h from the other faces
    for layer in (density[0, deep, deep], density[-1, deep, deep], density[deep, 0, deep], density[deep, deep, -1]):
        assert np.allclose(layer, 1, atol=2e-4)
    assert np.allclose(density[deep, deep, deep], 1, atol=2e-4)
    assert np.allclose(density, 1, atol=0.015), "edges, corners and second layers"


def test_wall_of_an_obstacle_completes_the_density_too():
    """Beside a flat floor that is a plane, the first layer is exactly as dense as the inside."""
    n = 9
    scene = box_scene(
        D,
        fluid=[{"material": "water", "shape": {"type": "box", "size": (n * D,) * 3, "position": (0, n * D / 2, 0)}}],
        solid=[{"shape": {"type": "plane"}}],
    )
    density = Simulation(scene, device="cpu").frame()["density"].reshape(n, n, n)
    middle = density[4, :, 4]
    assert middle[0] == pytest.approx(middle[4], rel=1e-4)
    assert middle[1] == pytest.approx(middle[4], rel=0.02)
    assert middle[-1] < 0.9 * middle[4], "the free surface keeps its deficit"
