"""Colours: of every kind of quantity, with a range that follows and a legend that tells."""

import numpy as np
import pytest

from viscoil.studio import colours
from viscoil.studio.colours import Colouring, choices, lit, scalars

MATERIALS = [
    {"name": "honey", "colour": (1.0, 0.5, 0.0), "density": 1400.0},
    {"name": "milk", "colour": (1.0, 1.0, 1.0), "density": 1000.0},
]


def test_by_material():
    found = Colouring().colours({"position": np.zeros((3, 3)), "material": np.array([1, 0, 1])}, MATERIALS)
    assert found.tolist() == [[255, 255, 255], [255, 128, 0], [255, 255, 255]]


def test_what_can_be_coloured_by_follows_from_the_fields():
    fields = {"velocity": "m/s", "density": "kg/m^3", "stress": "Pa", "conformation": "", "age": "s"}
    assert choices(fields) == ["material", "speed", "density", "stress", "conformation", "age"]
    assert colours.carried("stress") == ("stress",) and colours.carried("speed") == ()
    assert colours.unit_of("stress", fields) == "Pa" and colours.unit_of("speed", fields) == "m/s"


def test_vectors_by_length_and_densities_by_their_rest():
    velocity = np.array([[3.0, 4, 0], [0, 0, 0]])
    assert scalars("speed", {"velocity": velocity}, MATERIALS) == pytest.approx([5, 0])
    fields = {"density": np.array([1400.0, 1100.0]), "material": np.array([0, 1])}
    assert scalars("density", fields, MATERIALS) == pytest.approx([1.0, 1.1])
    assert scalars("age", {"age": np.array([1.0, 2.0])}, MATERIALS) == pytest.approx([1, 2])
    assert scalars("age", {}, MATERIALS) is None


def test_tensors_in_every_layout():
    """Uniaxial tension σ: von Mises is σ; a pressure does not count. The largest principal value of a conformation."""
    full = np.diag([5.0, 2.0, 2.0])[None]
    layouts = [full, full.reshape(1, 9), np.array([[5.0, 2.0, 2.0, 0, 0, 0]])]
    for stress in layouts:
        assert scalars("stress", {"stress": stress}, []) == pytest.approx([3.0])
        assert scalars("conformation", {"conformation": stress}, []) == pytest.approx([5.0])
    shear = np.array([[0, 0, 0, 2.0, 0, 0]])
    assert scalars("stress", {"stress": shear}, []) == pytest.approx([2 * np.sqrt(3)])


def test_the_range_widens_at_once_and_narrows_slowly():
    c = Colouring("speed")
    calm, wild = ({"velocity": np.outer(np.linspace(0, top, 200), [1, 0, 0])} for top in (1.0, 10.0))
    c.colours(calm, [])
    assert c.high == pytest.approx(1.0, rel=0.01) and c.low == 0
    c.colours(wild, [])
    assert c.high == pytest.approx(10.0, rel=0.01)
    c.colours(calm, [])
    assert 9 < c.high < 10
    for _ in range(200):
        c.colours(calm, [])
    assert c.high == pytest.approx(1.0, rel=0.02)
    c.fixed = (2.0, 4.0)
    shown = c.colours(wild, [])
    assert np.array_equal(shown[0], colours.table("speed")[0]) and np.array_equal(shown[-1], colours.table("speed")[255])


def test_the_density_at_rest_is_in_the_middle():
    c = Colouring("density")
    c.colours({"density": np.array([1000.0, 1100.0, 990.0]), "material": np.ones(3, int)}, MATERIALS)
    assert c.low + c.high == pytest.approx(2.0) and c.high >= 1.09


def test_numbers_that_are_none_do_no_harm():
    c = Colouring("age")
    assert c.colours({"age": np.array([np.nan, np.inf, 1.0])}, []).shape == (3, 3)
    assert c.colours({"age": np.zeros(0)}, []).shape == (0, 3)
    assert np.isfinite([c.low, c.high]).all()


def test_legends_say_what_they_show_and_trust_nobody():
    c = Colouring("speed", "m/s")
    c.colours({"velocity": np.eye(3)}, MATERIALS)
    assert "speed, m/s" in c.legend() and "linear-gradient" in c.legend()
    c = Colouring()
    c.colours({"position": np.zeros((1, 3))}, [{"name": "<script>", "colour": (0, 0, 0)}])
    assert "&lt;script&gt;" in c.legend() and "<script>" not in c.legend()


@pytest.mark.parametrize("up_axis", [1, 2])
def test_light_comes_from_above(up_axis):
    axes = [np.arange(12) * 0.1] * 3
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3).astype(np.float32)
    shaded = lit(np.full((len(x), 3), 200, np.uint8), x, 0.1, up_axis).astype(float)[:, 0]
    height = x[:, up_axis]
    assert shaded[height > 1.05].mean() > shaded[height < 0.05].mean() + 40
    few = np.zeros((2, 3), np.uint8)
    assert lit(few, x[:2], 0.1, up_axis) is few
