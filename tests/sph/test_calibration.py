"""Reference sums on the lattice, against sums made another way."""

import numpy as np
import pytest

from kit import box_scene, differences, lattice, periodic_box, poly6, spiky, spiky_gradient
from viscoil.simulate import Simulation
from viscoil.sph.calibration import calibrate

D = 0.02
RATIOS = (1.95, 2.3, 2.9)


def periodic_lattice(n):
    x = lattice((n, n, n), D)
    return x, periodic_box((0, 0, 0), (n * D,) * 3, "xyz")


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("published", [False, True])
def test_lattice_density_is_exactly_one(ratio, published):
    h = ratio * D
    x, box = periodic_lattice(8)
    r = np.linalg.norm(differences(x, box), axis=2)
    reference = calibrate(D, h, published)
    w = poly6(r, h) if published else spiky(r, h)
    assert reference.volume * w[0].sum() == pytest.approx(1, abs=1e-6)
    assert reference.neighbors == np.count_nonzero(r[0] < h * 0.9999) - 1
    assert 0.75 * D**3 < reference.volume < 1.05 * D**3


@pytest.mark.parametrize("ratio", RATIOS)
def test_stiffest_mode_against_a_dense_matrix(ratio):
    h, n = ratio * D, 8
    x, box = periodic_lattice(n)
    reference = calibrate(D, h)
    gradient = reference.volume * spiky_gradient(differences(x, box), h)  # of C_i by x_i, one part per neighbour
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
