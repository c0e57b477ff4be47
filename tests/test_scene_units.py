"""Numbers with units."""

import math
import re

import numpy as np
import pytest

from viscoil.material import Material
from viscoil.scene.schema import Scene
from viscoil.scene.shapes import Box, Sphere
from viscoil.units import Count, Quantity, Vector


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("length", "2 cm", 0.02),
        ("length", "5mm", 0.005),
        ("length", "1e2 µm", 1e-4),
        ("length", "3 metres", 3.0),
        ("length", "1 in", 0.0254),
        ("time", "2 ms", 0.002),
        ("time", "1 min", 60.0),
        ("speed", "36 km/h", 10.0),
        ("acceleration", "981 cm/s^2", 9.81),
        ("acceleration", "9.81 m/s²", 9.81),
        ("density", "1.4 g/cm³", 1400.0),
        ("density", "1 kg/l", 1000.0),
        ("viscosity", "10 Pa s", 10.0),
        ("viscosity", "10 Pa·s", 10.0),
        ("viscosity", "500 mPa s", 0.5),
        ("viscosity", "2 MPa s", 2e6),
        ("viscosity", "100 cP", 0.1),
        ("modulus", "3 mPa", 0.003),
        ("modulus", "3 MPa", 3e6),
        ("surface tension", "72 mN/m", 0.072),
        ("angle", "3.141592653589793 rad", 180.0),
        ("angular velocity", "60 rpm", 2 * math.pi),
        ("rate", "30 1/s", 30.0),
        ("rate", "30 1/min", 0.5),
        ("rate", "50 Hz", 50.0),
        ("rate squared", "270 1/s²", 270.0),
        ("rate squared", "2.5e2 1/s^2", 250.0),
        ("per length", "0.05 1/cm", 5.0),
        ("time", "1/30 s", 1 / 30),
        ("time", "1/24s", 1 / 24),
        ("time", "-1 / 2.5 ms", -0.0004),
        ("length", "3/2 mm", 0.0015),
        ("rate", "1/2 1/s", 0.5),
        ("rate", "30 1 / s", 30.0),
    ],
)
def test_text_becomes_si(kind, text, value):
    assert Quantity(kind)(text) == pytest.approx(value)


@pytest.mark.parametrize(("kind", "text", "message"), [
    ("time", "1/30", 'got the text "1/30": write "1/30 s"'),
    ("number", "1/4", 'got the text "1/4": write 0.25'),
    ("time", "1/0 s", "divides by zero"),
    ("length", "1/3 s", "s is a unit of time"),
    ("rate", "5/s", 'unknown unit "/s"'),
    ("time", "1/30/2 s", 'unknown unit "/2 s"'),
])  # fmt: skip
def test_fractions_that_cannot_be_read(kind, text, message):
    with pytest.raises(Exception, match=re.escape(message)):
        Quantity(kind)(text)


def test_ambiguous_case_is_not_guessed():
    with pytest.raises(Exception, match="unknown unit"):
        Quantity("modulus")("3 mpa")


@pytest.mark.parametrize(
    "quantity",
    [
        Quantity("number"),
        Quantity("number", at_least=1.5, at_most=4.0),
        Quantity("number", above=0, at_most=0.1),
        Quantity("length", above=10),
        Quantity("density", above=0, at_most=1e5),
        Count(at_least=7),
        Count(at_least=0, at_most=2),
    ],
)
def test_the_example_in_a_message_would_be_accepted(quantity):
    example = quantity.expected.split("e.g. ")[1].split()[0]
    value = int(example) if isinstance(quantity, Count) else float(example)
    assert quantity(value) == value


def test_vectors_take_units_tuples_and_arrays():
    assert Vector("length")(["1 cm", 2, "3 mm"]) == pytest.approx((0.01, 2, 0.003))
    assert Vector("length")(np.array([1, 2, 3])) == (1.0, 2.0, 3.0)


def test_numpy_scalars_are_numbers():
    assert Sphere(radius=np.float32(0.5)).radius == 0.5
    assert Material(density=np.int64(1000)).density == 1000.0


def test_python_objects_take_units_too():
    assert Box(size=("1 cm", "2 cm", "3 cm")).size == pytest.approx((0.01, 0.02, 0.03))
    scene = Scene(spacing="2 cm")
    scene.spacing = "5 mm"
    assert scene.spacing == pytest.approx(0.005)
