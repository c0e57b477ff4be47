"""Kernels that hold the formulas of the shapes there are, and no others."""

from dataclasses import replace

import numpy as np
import pytest
import quadrants as qd

from kit import backend  # noqa: F401
from viscoil.particles import allocate_array, vec3
from viscoil.scene.load import load
from viscoil.scene.parts import Solid
from viscoil.simulate import Simulation
from viscoil.solids import assembly, sdf
from viscoil.solids.assembly import SolidSet
from viscoil.transfer import read, write

BOX = {"type": "box", "size": [1, 2, 3], "position": [0.1, 0, 0], "rotation": [10, 20, 30]}
BALL = {"type": "sphere", "radius": 0.7}
FUNNEL = {"type": "funnel", "bottom_radius": 0.2, "top_radius": 0.8, "height": 1.0, "thickness": 0.1}
PLANE = {"type": "plane", "rotation": [0, 0, 15]}
UNION = {"type": "union", "blend": 0.2, "parts": [{"type": "capsule", "radius": 0.3, "height": 1.0}, BALL]}
SETS = {
    "a tank": ([(BOX, True)], {"box", "vessel"}),
    "a box": ([(BOX, False)], {"box", "other"}),
    "a ball in a tank": ([(BOX, True), (BALL, False)], {"box", "sphere", "vessel", "other"}),
    "a funnel over a plane": ([(FUNNEL, False), (PLANE, False)], {"funnel", "plane", "other"}),
    "a union": ([(UNION, False)], {"capsule", "sphere", "compound", "other"}),
    "nothing": ([], set()),
}


def solids_of(name, monkeypatch, shapes):
    monkeypatch.setattr(assembly, "_knows_all", lambda: shapes == "all")
    return SolidSet([Solid(shape=shape, container=container) for shape, container in SETS[name][0]])


def distances(solids, parts, index, points):
    """By a kernel that is compiled for these parts; what solids tell the host comes from one for all shapes."""
    x, phi = allocate_array(vec3, len(points)), allocate_array(qd.f32, len(points))
    write(x, points.astype(np.float32))
    sdf.evaluate(index, x, len(points), solids.device, parts, phi)
    return read(phi)


def normals(solids, parts, index, points):
    x, out = allocate_array(vec3, len(points)), allocate_array(vec3, len(points))
    write(x, points.astype(np.float32))
    sdf.evaluate_normal(index, x, len(points), 1e-3, solids.device, parts, out)
    return read(out)


@pytest.mark.parametrize("name", SETS)
def test_distances_and_normals_are_those_of_kernels_with_all_formulas(name, monkeypatch):
    present, everything = (solids_of(name, monkeypatch, shapes) for shapes in ("present", "all"))
    assert present.parts.shapes == sum(sdf.bit(trait) for trait in SETS[name][1])
    assert everything.parts.shapes == sdf.EVERYTHING
    points = np.random.default_rng(1).uniform(-2, 2, (400, 3))
    for index in range(len(present)):
        assert np.allclose(distances(present, present.parts, index, points), everything.distance(index, points), atol=1e-6)
        found = normals(present, present.parts, index, points)
        near = np.abs(found - everything.normals(index, points, 1e-3)).max(axis=1) < 1e-3
        assert near.mean() > 0.99  # at an edge rounding decides between two


def test_a_kernel_is_compiled_for_its_shapes_and_no_others(monkeypatch):
    """Also where compiled kernels come from the disk: without the shapes in their key the second would be the first."""
    solids = solids_of("a ball in a tank", monkeypatch, "present")
    right = distances(solids, solids.parts, 1, np.zeros((1, 3)))
    assert right == pytest.approx(-0.7)
    fewer = replace(solids.parts, shapes=sdf.bit("box") | sdf.bit("vessel") | sdf.bit("other"))
    assert distances(solids, fewer, 1, np.zeros((1, 3))) == pytest.approx(0.0)  # nobody knows balls: the plane all begin with
    assert np.array_equal(distances(solids, solids.parts, 1, np.zeros((1, 3))), right)


@pytest.mark.parametrize("name", ["dam_break", "bear_bath", "nothing"])
def test_steps_are_the_same(name, monkeypatch):
    """Contact, walls' density and bodies, but for rounding, and where there are no solids at all."""
    places = []
    for shapes in ("present", "all"):
        monkeypatch.setattr(assembly, "_knows_all", lambda all_of_them=shapes == "all": all_of_them)
        scene = load("dam_break" if name == "nothing" else name, quality="quick")
        if name == "nothing":
            scene.solid = []
        sim = Simulation(scene, device="cpu")
        for _ in range(3):
            sim.step()
        places.append(read(sim.world.particles.position, sim.world.count))
    assert np.abs(places[0] - places[1]).max() < 1e-4 * sim.world.spacing
