"""Fields to columns and back, and names of bodies."""

import numpy as np
import pytest

from viscoil.io import columns
from viscoil.io.frame import Frame
from viscoil.io.moment import Bodies, Target, colour_of, linear, look_of, particle_colours

FIELDS = {
    "number": np.arange(4, dtype=np.float32), "vector": np.arange(12, dtype=np.float32).reshape(4, 3),
    "tensor": np.arange(36, dtype=np.float64).reshape(4, 3, 3), "six": np.arange(24, dtype=np.float32).reshape(4, 6),
    "cell": np.arange(12, dtype=np.int32).reshape(4, 3), "one": np.arange(4, dtype=np.uint8).reshape(4, 1),
}  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("vectors", [True, False])
def test_split_and_join(count, vectors):
    fields = {name: values[:count] for name, values in FIELDS.items()}
    parts = dict(piece for name, values in fields.items() for piece in columns.split(name, values, vectors))
    assert all(column.shape in ((count,), (count, 3)) if vectors else column.shape == (count,) for column in parts.values())
    again = columns.join(columns.layout(fields), parts.__getitem__, vectors)
    assert again.keys() == fields.keys()
    for name, values in fields.items():
        assert again[name].dtype == values.dtype and np.array_equal(again[name], values)


def test_names_say_what_they_hold():
    vectors = [name for field, values in FIELDS.items() for name, _ in columns.split(field, values)]
    assert vectors[:5] == ["number", "vector", "tensor_x", "tensor_y", "tensor_z"]
    assert {"six_5", "cell_z", "one_0"} <= set(vectors)
    rows = dict(columns.split("tensor", FIELDS["tensor"]))
    assert np.array_equal(rows["tensor_y"], FIELDS["tensor"][:, 1]), "rows of the tensor"
    numbers = [name for name, _ in columns.split("vector", FIELDS["vector"], vectors=False)]
    assert numbers == ["vector_x", "vector_y", "vector_z"]


def test_bodies_keep_their_names():
    ball, box = {"type": "sphere", "radius": 1.0}, {"type": "box", "size": [1, 1, 1]}
    bodies = Bodies()

    def names(*solids):
        position = np.zeros((2, 3), np.float32)
        return [body.name for body in bodies.of(Frame(0, 0.0, 0, {"position": position}, 0.1, solids=list(solids)))]

    assert names({"name": "a", "shape": ball}, {"name": "a", "shape": ball}, {"shape": box}) == ["a", "a 2", "solid 2"]
    assert names({"name": "b", "shape": box}, {"name": "a", "shape": ball}) == ["b", "a"], "whatever the order"
    assert names({"name": "a", "shape": box}) == ["a 3"], "another shape is another body"


def test_colours():
    assert colour_of({"colour": "#f00"}) == colour_of({"colour": "#ff0000"}) == colour_of({"colour": [1, 0, 0]}) == (1, 0, 0)
    assert colour_of({}) == colour_of({"colour": "amber"}) == (0.7, 0.7, 0.7)
    assert linear([0.0, 0.5, 1.0]) == pytest.approx([0, 0.21404, 1], abs=1e-5)
    assert look_of({"look": "honey"}).index == 1.49
    assert look_of({"name": "mud", "colour": [0.4, 0.3, 0.2]}).colour == (0.4, 0.3, 0.2)
    fields = {"position": np.zeros((3, 3), np.float32), "material": np.array([0, 1, 7])}
    frame = Frame(0, 0.0, 0, fields, materials=[{"colour": [1, 0, 0]}, {"colour": [0, 1, 0]}])
    assert particle_colours(frame).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_rate_has_no_digits_left_from_divisions(tmp_path):
    assert Target(tmp_path, frame_time=1 / 60).rate == 60 and Target(tmp_path, frame_time=0.016).rate == 62.5


def test_von_mises():
    """Of a pull p along one axis p, of a shear τ √3 τ, of a pressure 0, and beside stresses in files."""
    pull, shear = np.diag([7.0, 0, 0]), np.zeros((3, 3))
    shear[0, 1] = shear[1, 0] = 2.0
    stress = np.stack([pull, shear, -5.0 * np.eye(3), pull - 5.0 * np.eye(3)])
    assert columns.von_mises(stress) == pytest.approx([7.0, 2 * np.sqrt(3), 0.0, 7.0], abs=1e-12)
    fields = columns.with_scalars({"stress": stress, "age": np.zeros(4)})
    assert list(fields) == ["stress", "age", "stress_mises"] and fields["stress_mises"][0] == pytest.approx(7.0)
    assert columns.with_scalars(fields) is fields, "frames may have it already"
    assert list(columns.with_scalars({"stress": np.zeros((4, 6))})) == ["stress"]
