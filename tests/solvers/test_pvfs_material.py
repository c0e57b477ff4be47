"""PVFS parameters: published numbers and SI, materials, limits, keyframes, events."""

import math

import numpy as np
import pytest

from pvfs_kit import TAU, H, cloud, made, rest_lengths, scene, state
from viscoil.errors import SceneError
from viscoil.material import Material
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solvers.pvfs import PVFSParams
from viscoil.solvers.pvfs_matter import FRICTION, SHEAR, matter_of


def test_published_numbers_in_si():
    p = PVFSParams.clavet(0.05, k=0.004, k_near=0.01, k_spring=0.3, alpha=0.2, gamma=0.1, sigma=0.5, beta=0.3)
    assert p.stiffness == pytest.approx(0.004 * 0.05 * 900) and p.near_stiffness == pytest.approx(0.01 * 0.05 * 900)
    assert p.spring_stiffness == pytest.approx(270) and p.plasticity == pytest.approx(6) and p.yield_ratio == 0.1
    assert p.linear_viscosity == pytest.approx(15) and p.quadratic_viscosity == pytest.approx(6) and p.rest_density == 10


def test_size_does_not_matter():
    """Published numbers at h = 1 m and h = 5 cm: the same motion, in h."""
    ends = []
    for h in (1.0, 0.05):
        d = 0.38 * h
        sim = Simulation(
            Scene(
                spacing=d, gravity=(0, -0.002 * h / TAU**2, 0), time={"frames": 20, "frame_time": TAU, "steps_per_frame": 1},
                solver=PVFSParams.clavet(h, k_spring=0.1, alpha=0.05, sigma=0.1, beta=0.1), material={"m": {"density": 1000}},
                fluid=[{"material": "m", "shape": {"type": "box", "size": (6 * d, 4 * d, 4 * d), "position": (0, 2 * d, 0)}}],
                solid=[{"friction": 0.2, "shape": {"type": "plane"}}],
            ),
            "cpu",
        )  # fmt: skip
        ends.append(list(sim.frames())[-1]["position"].astype(float) / h)
    assert np.abs(ends[0] - ends[1]).max() < 2e-3


def test_materials_in_springs_and_impulses():
    """G = SHEAR ρkh², η = FRICTION ρσh², α = 1/λ; what a material does not say is the solver's."""
    params, h, rho = PVFSParams.clavet(0.05, k_spring=0.3, alpha=0.2, gamma=0.1, sigma=0.5), 0.05, 1200.0

    def matter(**own):
        return matter_of(Material(density=rho, **own), params, h)

    silent = matter()
    assert (silent.spring, silent.stretch, silent.compress) == pytest.approx((270, 6, 6))
    assert (silent.stretch_yield, silent.linear, silent.stickiness) == pytest.approx((0.1, 15, 1))
    jelly = matter(modulus=500.0, relaxation_time=math.inf, yield_strain=0.3, stickiness=0.2)
    assert jelly.spring == pytest.approx(500 / (SHEAR * rho * h * h)) and jelly.stretch == jelly.compress == 0
    assert (jelly.stretch_yield, jelly.compress_yield, jelly.stickiness) == (0.3, 0.3, 0.2)
    assert matter(viscosity=50.0, relaxation_time=0.25).spring == pytest.approx(200 / (SHEAR * rho * h * h)), "G = η/λ"
    assert matter(viscosity=50.0, relaxation_time=0.25).stretch == pytest.approx(4)
    honey = matter(viscosity=10.0)
    assert honey.linear == pytest.approx(10 / (FRICTION * rho * h * h)) and honey.spring == silent.spring
    params.plasticity_stretch, params.yield_compression = 1.0, 0.02
    assert (matter().stretch, matter().compress) == pytest.approx((1, 6))
    assert (matter().stretch_yield, matter().compress_yield) == (0.1, 0.02)


def test_two_materials_share_the_weaker_spring():
    """min k, max α, min γ: a pair of a stiff and a soft particle moves as one of two soft ones would."""
    x = np.array([[0, 0, 0], [0.5, 0, 0]])
    stiff, soft = {"density": 1000.0, "modulus": 100.0, "relaxation_time": math.inf}, None
    soft = {**stiff, "modulus": 20.0}
    ends = {}
    for name, materials in {"both": (stiff, soft), "soft": (soft, soft), "stiff": (stiff, stiff)}.items():
        sim = made(x, material={"m": materials[0], "n": materials[1]}, fluid=[
            {"material": kind, "shape": {"type": "box", "size": (0.038,) * 3, "position": (k * 0.05, 0, 0)}}
            for k, kind in enumerate("mn")
        ])  # fmt: skip
        sim.world.set("position", (1.2 * x[sim.world.get("id")] * H).astype(np.float32))
        sim.step()
        ends[name] = state(sim)[0]
    assert np.array_equal(ends["both"], ends["soft"]) and not np.allclose(ends["both"], ends["stiff"], atol=1e-4)


def test_an_unstable_request_is_refused_and_told_the_limit():
    with pytest.raises(SceneError) as problem:
        made(cloud(), published={"k": 0.05, "k_near": 0.125, "substeps": 1})
    assert any(character.isdigit() for character in str(problem.value)) and "substeps" in str(problem.value)


def test_stiffness_left_out_comes_from_the_asked_compressibility():
    """k̂ ≥ 0.04 ĝ (H/h)/compressibility, and as many steps as that needs."""
    stiff = {}
    for asked in (0.1, 0.05):
        sim = Simulation(scene((6, 16, 6), solver={"method": "pvfs", "compressibility": asked}, gravity=(0, -9.81, 0)), "cpu")
        sim.step()
        stiff[asked] = sim.metrics().get("stiffness", 0.0) or sim.solver.metrics()["stiffness"]
    ghat, depth = 9.81 * TAU**2 / H, 16 * 0.38
    assert stiff[0.05] == pytest.approx(2 * stiff[0.1], rel=0.01)
    assert 0.025 * ghat * depth / 0.1 < stiff[0.1] * TAU**2 / H < 0.06 * ghat * depth / 0.1


def test_events_freeze_and_clear():
    events = [{"time": 3 * TAU, "do": "clear"}, {"time": 6 * TAU, "do": "freeze"}]
    built = scene(published={"k_spring": 0.1, "freeze_at_start": True})
    built.solver = {**built.solver.model_dump(), "events": events}
    sim = Simulation(Scene(**built.to_dict()), "cpu")
    springs = []
    for _ in sim.frames(8):
        rest = rest_lengths(sim)
        springs.append(int((rest < 0.999).sum()))
    assert springs[2] > 1000 and springs[4] == 0 and springs[8] > 1000


def test_keyframed_springs():
    """A material whose modulus falls and whose springs begin to flow: what the numbers say at every moment."""
    material = {
        "density": 1000.0, "modulus": 50.0, "relaxation_time": 10.0, "yield_strain": 0.2,
        "changes": [{"time": 5 * TAU}, {"time": 10 * TAU, "modulus": 5.0, "relaxation_time": 0.1, "yield_strain": 0.01}],
    }  # fmt: skip
    x = cloud()
    v = 0.02 * (x - x.mean(0)) * [1, -0.5, -0.5]
    keyed = made(x, v, material={"m": material})
    plain = made(x, v, material={"m": {key: value for key, value in material.items() if key != "changes"}})
    by_hand = made(x, v, material={"m": {key: value for key, value in material.items() if key != "changes"}})
    for frame in range(14):
        values = keyed.scene.material["m"].at(keyed.time)
        by_hand.update({f"material.m.{key}": getattr(values, key) for key in ("modulus", "relaxation_time", "yield_strain")})
        for sim in (keyed, plain, by_hand):
            sim.advance_frame()
        same = np.array_equal(state(keyed)[0], state(plain)[0])
        assert same == (frame < 5) or frame == 5
        assert np.allclose(state(keyed)[0], state(by_hand)[0], atol=1e-6)
