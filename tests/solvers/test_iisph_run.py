"""Runs of IISPH: the same bits whoever computes them, killed or not; two materials; messages one can act on."""

import os
import subprocess
import sys

import numpy as np
import pytest

import viscoil as vc
from iisph_kit import cloud, made, scene, state
from resume_kit import CHILD, contents
from viscoil.errors import SceneError, SimulationFailed
from viscoil.io.execute import execute
from viscoil.io.run import Run

# Bonds that weaken, merge and split, are frozen and cleared; new particles, a sink, a moving solid, two materials, keyframes.
SCENE = """\
title = "busy bonds"
spacing = 0.04
[time]
frames = 8
frame_time = 0.012
steps_per_frame = 6
[output]
checkpoint_every = 3
[solver]
method = "METHOD"
correction = "CORRECTION"
iterations = 6
tolerance = 0.001
lower_limit = 0.1
weakening = 1.0
yield_ratio = 0.005
merge_ratio = 0.6
split_ratio = 0.3
events = [{ time = 0.03, do = "freeze" }, { time = 0.08, do = "clear" }]
[solver.materials.jelly]
merge_ratio = 0.9
weakening = 0.0
[material.clay]
density = 1200
modulus = 3000.0
relaxation_time = 0.5
changes = [{ time = 0.0 }, { time = 0.06, modulus = 1500.0, relaxation_time = 0.1 }]
[material.jelly]
density = 1000
modulus = 2000.0
relaxation_time = inf
[[fluid]]
material = "clay"
jitter = 0.1
velocity = [0.0, -1.0, 0.0]
shape = { type = "box", size = [0.32, 0.2, 0.2], position = [0.0, 0.12, 0.0] }
[[emitter]]
material = "jelly"
shape = { type = "sphere", radius = 0.08 }
position = [0.0, 0.42, 0.0]
speed = 2.5
[[sink]]
shape = { type = "box", size = [0.1, 0.1, 1.0], position = [0.16, 0.05, 0.0] }
start = 0.05
[[solid]]
name = "floor"
friction = 0.3
shape = { type = "plane" }
[[solid]]
name = "tool"
boundary = "particles"
shape = { type = "box", size = [0.1, 0.1, 0.3], position = [-0.3, 0.12, 0.0] }
motion = [{ time = 0.0, position = [0.0, 0.0, 0.0] }, { time = 0.1, position = [0.12, 0.0, 0.0] }]
"""
CORRECTIONS = ("springs", "position_based", "shape_matching")


@pytest.fixture(scope="module", params=["springs", "shape_matching"])
def whole(request, tmp_path_factory):
    """(scene file, the run left alone)."""
    folder = tmp_path_factory.mktemp("bonds")
    path = folder / "scene.toml"
    path.write_text(SCENE.replace("CORRECTION", request.param).replace("METHOD", "iisph"))
    table = vc.load(path)
    run = Run.create(folder / "whole", table)
    assert execute(vc.Simulation(table, device="cpu"), run).status == "finished"
    counts, bonds = (run.metrics()[name] for name in ("particles", "bonds"))
    assert counts[-1] > counts[0] and (np.diff(counts) < 0).any() | (counts[-1] < 1000), "emitter and sink work"
    assert bonds[1] > 5 and min(bonds) < max(bonds)
    return path, run


def child(path, folder, threads=2):
    command = [sys.executable, "-c", CHILD, str(path), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "VISCOIL_THREADS": str(threads)})


def test_killed_and_resumed(whole, tmp_path):
    """By a process of one thread, killed between two checkpoints, then by another: frames and checkpoint have the same bits."""
    path, run = whole
    process = child(path, tmp_path / "run", threads=1)
    for _ in range(5):
        assert process.stdout.readline(), "the child ended by itself"
    process.kill()
    process.communicate()
    process = child(path, tmp_path / "run")
    process.communicate()
    assert process.returncode == 0 and contents(Run.open(tmp_path / "run")) == contents(run)
    assert Run.open(tmp_path / "run").checkpoint_path(8).read_bytes() == run.checkpoint_path(8).read_bytes()


@pytest.mark.parametrize(
    ("method", "correction"),
    [("iisph", "position_based"), ("takamatsu_iisph", "shape_matching"), ("clavet_iisph", "springs")],
)
def test_others_resume(method, correction, tmp_path):
    """In this process, from the state halfway: same bits as without the interruption."""
    path = tmp_path / "scene.toml"
    path.write_text(SCENE.replace("METHOD", method).replace("CORRECTION", correction))
    first = vc.Simulation(vc.load(path), device="cpu")
    for _ in first.frames(4):
        pass
    half = first.state()
    for _ in first.frames(7):
        pass
    second = vc.Simulation(vc.load(path), device="cpu")
    second.restore(half)
    for _ in second.frames(7):
        pass
    for name in ("position", "velocity", "id"):
        assert np.array_equal(first.frame()[name], second.frame()[name]), name


def test_memory_order_does_not_matter():
    """The same particles in another order of memory and ids make the same motion, to rounding."""
    x = cloud((5, 5, 5), 0.1, 1.0)
    v = np.random.default_rng(0).normal(size=x.shape)
    turn = np.random.default_rng(1).permutation(len(x))
    solver = {"correction": "springs", "spring_stiffness": 500.0, "xsph": 0.05}
    a, b = made(x, v, solver), made(x[turn], v[turn], solver)
    for _ in range(10):
        a.step()
        b.step()
    assert np.abs(state(a)[0][turn] - state(b)[0]).max() < 1e-5


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_two_materials_are_as_stiff_as_each_is(correction):
    """Two blocks pulled apart alike; the one whose material is softer follows its ends less."""
    strengths = {"springs": ("spring_stiffness", 1000.0, 50.0), "position_based": ("rigidity", 0.5, 0.02),
                 "shape_matching": ("rigidity", 0.5, 0.02)}  # fmt: skip
    key, firm, soft = strengths[correction]
    box = {"type": "box", "size": (0.4, 0.16, 0.16)}
    table = scene(
        (2, 2, 2), solver={"correction": correction, "materials": {"firm": {key: firm}, "soft": {key: soft}}},
        material={"firm": {"density": 1000.0}, "soft": {"density": 1000.0}},
        fluid=[{"material": name, "shape": box | {"position": (0, y, 0)}} for name, y in (("firm", 0.0), ("soft", 2.0))],
    )  # fmt: skip
    sim = vc.Simulation(table, device="cpu")
    v = np.zeros((sim.world.count, 3), np.float32)
    v[:, 0] = sim.world.get("position")[:, 0] * 1.5  # stretches by 15 % in 0.1 s
    sim.world.set("velocity", v)
    for _ in range(50):
        sim.step()
    order = np.argsort(sim.world.get("id"))
    x, kind = sim.world.get("position")[order], sim.world.get("material")[order]
    lengths = [float(np.ptp(x[kind == n, 0])) for n in (0, 1)]
    assert lengths[0] + 0.015 < lengths[1], lengths


def test_unequal_masses_keep_momentum():
    """A heavy and a light material, bonded across: momentum Σ m v stays."""
    box = {"type": "box", "size": (0.16, 0.16, 0.16)}
    table = scene(
        (2, 2, 2), solver={"correction": "springs", "spring_stiffness": 300.0, "xsph": 0.1, "merge_ratio": 0.9},
        material={"heavy": {"density": 3000.0}, "light": {"density": 1000.0}},
        fluid=[
            {"material": "heavy", "velocity": (0.5, 0, 0), "shape": box},
            {"material": "light", "velocity": (-0.5, 0.2, 0), "shape": box | {"position": (0.16, 0, 0)}},
        ],
    )  # fmt: skip
    sim = vc.Simulation(table, device="cpu")

    def momentum():
        return (sim.world.get("velocity").astype(float) / sim.world.get("inverse_mass").astype(float)[:, None]).sum(0)

    before, scale = momentum(), 64 * (1 + 1 / 3) * 0.5
    for _ in range(40):
        sim.step()
    assert np.abs(momentum() - before).max() < 2e-6 * scale * 40**0.5, (momentum() - before) / scale


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ({"correction": "spring"}, ("spring", "springs", "shape_matching", "position_based")),
        ({"rigidity": 1.5}, ("rigidity", "1.5")),
        ({"goal": "grid"}, ("goal", "lattice", "cluster")),
        ({"correction": "position_based", "rigidity": 0.5, "normalise": False}, ("0.37", "normalise")),
        ({"lower_limit": 2.0}, ("lower_limit",)),
        ({"spring_stifness": 3.0}, ("spring_stiffness",)),
        ({"materials": {"m": {"rigidty": 0.3}}}, ("rigidty", "rigidity")),
        ({"materials": {"nobody": {"rigidity": 0.3}}}, ("nobody",)),
        ({"events": [{"time": 0.1, "do": "thaw"}]}, ("thaw", "freeze", "clear")),
        ({"events": [{"time": -0.1, "do": "freeze"}]}, ("time",)),
        ({"relaxation": 0.0}, ("relaxation",)),
        ({"merge_ratio": -1}, ("merge_ratio",)),
    ],
)
def test_wrong_values_are_named(solver, words):
    with pytest.raises((SceneError, ValueError)) as error:
        vc.Simulation(scene((3, 3, 3), solver=solver), device="cpu").step()
    text = str(error.value)
    missing = [word for word in words if word not in text]
    assert not missing and len(text) < 1500, text


def test_stiff_springs_shorten_the_step_and_say_so():
    """k S Δt² 2/(3m) = 4 is the limit of stability: 3000 N/m at 2 ms; ten times that needs steps √10 times shorter."""
    sim = made(cloud((5, 5, 5), 0.02, 1.0), None, {"correction": "springs", "spring_stiffness": 30000.0, "stability": 2.5})
    sim.world.set("velocity", np.random.default_rng(0).normal(size=(125, 3)).astype(np.float32) * 0.2)
    for _ in range(10):
        sim.advance_frame()
    row = sim.metrics()
    assert row["steps"] >= 3 and "bonds of m" in row["limited_by"], (row["steps"], row["limited_by"])
    assert np.isfinite(row["kinetic_energy"]) and row["kinetic_energy"] < 0.5  # of which 0.48 J at the start


def test_a_solid_that_crushes_the_fluid_ends_in_a_message_or_holds():
    """A plate driven to the floor at 20 m/s: no NaN is ever handed out, whatever happens."""
    box = {"type": "box", "size": (0.6, 0.16, 0.6)}
    down = [{"time": 0.0, "position": (0, 0, 0)}, {"time": 0.01, "position": (0, -0.2, 0)}]
    plates = [
        {"name": "floor", "boundary": "particles", "shape": box | {"position": (0, -0.08, 0)}},
        {"name": "plate", "boundary": "particles", "shape": box | {"position": (0, 0.3, 0)}, "motion": down},
    ]
    solver = {"correction": "springs", "spring_stiffness": 500.0, "iterations": 20}
    table = scene((5, 5, 5), frames=8, solver=solver, solid=plates)
    table.fluid[0].shape.position = (0.0, 0.1, 0.0)
    sim = vc.Simulation(table, device="cpu")
    try:
        for frame in sim.frames():
            assert np.isfinite(frame["position"]).all()
    except SimulationFailed as error:
        assert "exploded" in str(error)
