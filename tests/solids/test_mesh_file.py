"""Mesh files: what can be used is used, everything else is told in one message."""

import numpy as np
import pytest
import trimesh

from mesh_kit import write
from viscoil.errors import SceneError
from viscoil.solids.mass import mass_properties
from viscoil.solids.mesh_file import load

BOX = trimesh.creation.box((1, 1, 1))
POINTS, FACES = np.asarray(BOX.vertices), np.asarray(BOX.faces)


def refused(path, *words):
    """The message about a file, which names the file and holds all words."""
    with pytest.raises(SceneError) as caught:
        load(str(path))
    text = str(caught.value)
    for word in (path.name, *words):
        assert word in text
    assert text.count("\n") == 0 and caught.value.file == str(path)
    return text


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "glb", "off"])
def test_formats_and_scale(suffix, tmp_path):
    file = write(tmp_path / f"box.{suffix}", POINTS, FACES)
    mesh = load(file, 0.5)
    assert len(mesh.vertices) == 8 and len(mesh.triangles) == 12 and not mesh.notes, "corners of STL files are made one"
    assert np.allclose(mesh.high - mesh.low, 0.5)
    assert load(file, 0.5) is mesh


def test_a_changed_file_is_read_again(tmp_path):
    file = write(tmp_path / "box.ply", POINTS, FACES)
    before = load(file)
    write(tmp_path / "box.ply", 2.0 * trimesh.creation.icosphere(1).vertices, trimesh.creation.icosphere(1).faces)
    assert load(file) is not before and load(file).high[0] > 1.5


def test_holes_are_counted_and_placed(tmp_path):
    write(tmp_path / "one.stl", POINTS, np.delete(FACES, (0, 1), axis=0))
    refused(tmp_path / "one.stl", "not closed", "4 open edges", "one hole")
    far = next(i for i, f in enumerate(FACES) if POINTS[f][:, 0].min() > 0)
    near = next(i for i, f in enumerate(FACES) if POINTS[f][:, 0].max() < 0)
    write(tmp_path / "two.obj", POINTS, np.delete(FACES, (far, near), axis=0))
    refused(tmp_path / "two.obj", "6 open edges", "2 holes")
    write(tmp_path / "sheet.ply", [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    refused(tmp_path / "sheet.ply", "3 open edges", "give sheets a thickness")


def test_gaps_of_few_digits_are_closed(tmp_path):
    shaken = POINTS[FACES].reshape(-1, 3) + np.random.default_rng(0).uniform(-1e-6, 1e-6, (36, 3))
    mesh = load(write(tmp_path / "torn.ply", shaken, np.arange(36).reshape(12, 3)))
    assert len(mesh.vertices) == 8 and "made one" in mesh.notes[0]


def test_no_area_and_no_volume(tmp_path):
    write(tmp_path / "line.ply", [[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2], [0, 2, 1]])
    refused(tmp_path / "line.ply", "has no area", "2 triangles are degenerate")
    write(tmp_path / "point.ply", np.ones((3, 3)), [[0, 1, 2]])
    refused(tmp_path / "point.ply", "no extent")
    write(tmp_path / "flat.ply", [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]])
    refused(tmp_path / "flat.ply", "is flat", "encloses no volume")


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl"])
def test_not_a_number(suffix, tmp_path):
    points = POINTS.copy()
    points[2, 1] = np.nan
    if suffix == "obj":
        rows = [f"v {x} {y} {z}" for x, y, z in points] + ["f {} {} {}".format(*(f + 1)) for f in FACES]
        (tmp_path / "nan.obj").write_text("\n".join(rows))
    else:
        write(tmp_path / f"nan.{suffix}", points, FACES)
    refused(tmp_path / f"nan.{suffix}", "not finite (NaN")


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "glb", "off"])
def test_what_is_not_a_mesh(suffix, tmp_path):
    file = tmp_path / f"thing.{suffix}"
    file.write_bytes(b"")
    refused(file, "0 bytes")
    file.write_text("Dear all,\nthe mesh will follow tomorrow.\nRegards\n")
    refused(file, "a text file without triangles")
    file.write_bytes(bytes(range(256)) * 3)
    refused(file, "thing")
    file.unlink()
    refused(file, "does not exist", "copied or moved")


def test_points_without_triangles(tmp_path):
    (tmp_path / "cloud.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    refused(tmp_path / "cloud.obj", "no triangles")


def test_triangles_face_outwards(tmp_path):
    inside_out = load(write(tmp_path / "inside_out.ply", POINTS, FACES[:, ::-1]))
    faces = FACES.copy()
    faces[[2, 5, 7]] = faces[[2, 5, 7], ::-1]
    mixed = load(write(tmp_path / "mixed.ply", POINTS, faces))
    assert not inside_out.notes and "3 of 12 triangles faced the wrong way" in mixed.notes[0]
    for mesh in (inside_out, mixed):
        corners = mesh.vertices[mesh.triangles]
        sixfold = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
        assert (sixfold > 0).all()


def test_cavities_stay_and_neighbours_are_turned(tmp_path):
    ball = trimesh.creation.icosphere(2)
    v, t = np.asarray(ball.vertices), np.asarray(ball.faces)
    hollow = load(write(tmp_path / "hollow.ply", np.concatenate([v, 0.5 * v]), np.concatenate([t, t[:, ::-1] + len(v)])))
    assert mass_properties(hollow.vertices, hollow.triangles).volume == pytest.approx(ball.volume * 7 / 8, rel=1e-6)
    both = np.concatenate([v, v + np.array([3, 0, 0])])
    beside = load(write(tmp_path / "two.ply", both, np.concatenate([t, t[:, ::-1] + len(v)])))
    assert mass_properties(beside.vertices, beside.triangles).volume == pytest.approx(2 * ball.volume, rel=1e-6)


def test_one_sided_surfaces_are_refused(tmp_path):
    """A Klein bottle, wherever its vertices are: every edge has two triangles, and yet no side is outside."""
    n = 12
    i, j = (k.ravel() for k in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    name = lambda a, b: (a % n) * n + np.where((a // n) % 2 == 1, -b, b) % n  # noqa: E731
    faces = np.concatenate([
        np.stack([name(i, j), name(i + 1, j), name(i + 1, j + 1)], 1),
        np.stack([name(i, j), name(i + 1, j + 1), name(i, j + 1)], 1),
    ])  # fmt: skip
    write(tmp_path / "klein.ply", np.random.default_rng(0).random((n * n, 3)), faces)
    refused(tmp_path / "klein.ply", "cannot all face outwards")
