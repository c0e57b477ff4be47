"""Contact with mesh solids: nothing gets through thin walls, however fast, and what rests on them keeps its distance."""

import numpy as np
import pytest
import quadrants as qd

from kit import make_particles
from mesh_kit import write
from viscoil.constraints.contact import contact
from viscoil.particles import Floats, Vectors, allocate_array, vec3
from viscoil.scene.parts import Solid
from viscoil.solids.assembly import SolidSet
from viscoil.solids.mesh_file import load
from viscoil.solids.mesh_tree import tree_of
from viscoil.solids.meshes import mesh
from viscoil.solids.sdf import Parts, Solids

D = 0.02
R = D / 2
A = 4 * D  # inner half width of the shells


@qd.kernel
def _contact(new: Vectors, old: Vectors, w: Floats, n: qd.i32, radius: qd.f32, number: qd.i32, solids: Solids, parts: Parts):
    contact(new, old, w, n, radius, number, solids, parts)


def resolved(solids, old, new):
    p = make_particles(old)
    target = allocate_array(vec3, len(old))
    target.from_numpy(np.asarray(new, np.float32))
    _contact(target, p.position, p.inverse_mass, len(old), R, len(solids), solids.device, solids.parts)
    return target.to_numpy()


def shell(kind, wall):
    """A hollow ball or cube with its walls, as one mesh with a cavity."""
    lengths = (A + wall, A)
    shapes = [{"type": "sphere", "radius": a} if kind == "ball" else {"type": "box", "size": (2 * a,) * 3} for a in lengths]
    (v, t), (w, u) = (mesh(shape, 48) for shape in shapes)
    return np.concatenate([v, w]), np.concatenate([t, u[:, ::-1] + len(v)])


@pytest.mark.parametrize("kind", ["ball", "cube"])
@pytest.mark.parametrize("wall", [1.0, 0.5])
def test_nothing_leaves_a_shell(kind, wall, tmp_path):
    """Twenty thousand particles, steps of up to thirty spacings, walls of one and of half a spacing."""
    file = write(tmp_path / "shell.ply", *shell(kind, wall * D))
    solids = SolidSet([Solid(shape={"type": "mesh", "file": file})], spacing=D, support=2 * D)
    rng, n = np.random.default_rng(0), 20_000
    x = rng.uniform(-1, 1, (n, 3)) * (A - 1.01 * R)
    if kind == "ball":
        x *= (np.abs(x).max(axis=1) / np.linalg.norm(x, axis=1))[:, None]
    step = rng.normal(size=(n, 3))
    step *= D * rng.choice([0.3, 1, 3, 10, 30], (n, 1)) / np.linalg.norm(step, axis=1, keepdims=True)
    y = resolved(solids, x, x + step)
    out = np.linalg.norm(y, axis=1) if kind == "ball" else np.abs(y).max(axis=1)
    assert out.max() < A, "all are inside"
    assert tree_of(load(file)).distance(y).min() > 0.99 * R


def test_a_moving_mesh_pushes(tmp_path):
    """A cube that moves by two spacings takes along what is in its way."""
    file = write(tmp_path / "cube.ply", *mesh({"type": "box", "size": (0.1, 0.1, 0.1)}))
    cube = Solid(shape={"type": "mesh", "file": file}, motion=[{"time": 0, "position": (0, 0, 0)},
                 {"time": 1, "position": (2 * D, 0, 0)}])  # fmt: skip
    solids = SolidSet([cube], spacing=D, support=2 * D)
    solids.place(0.0, 1.0)
    x = np.array([[0.05 + R, 0.0, 0.01], [-0.05 - R, 0.0, 0.0], [0.05 + 4 * D, 0.0, 0.0]])
    y = resolved(solids, x, x)
    assert np.allclose(y - x, [[2 * D, 0, 0], [0, 0, 0], [0, 0, 0]], atol=1e-5)
