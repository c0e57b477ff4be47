"""Presets in small simulations: what stands, stands, what flows, flows; yielding, thinning and tautness by their numbers."""

from pathlib import Path

import numpy as np
import pytest

import kit  # noqa: F401  starts the backend
from viscoil.cli import listing
from viscoil.material import PRESETS, Material
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.solvers.pvfs import PVFSParams
from viscoil.solvers.pvfs_matter import TAU, matter_of


def cube(material, size, drop=0.0, frames=30, **changes):
    """A cube of 8³ particles on, or ``drop`` metres above, a floor it sticks to."""
    values = {
        "spacing": size / 8, "time": {"frames": frames, "frame_time": 1 / 60, "steps_per_frame": 4},
        "solver": {"method": "dcpbd"}, "material": {"m": material},
        "fluid": [{"material": "m", "shape": {"type": "box", "size": (size,) * 3, "position": (0, size / 2 + drop, 0)}}],
        "solid": [{"friction": "no-slip", "shape": {"type": "plane"}}],
    }  # fmt: skip
    return Scene(**{**values, **changes})


def without(name, *properties):
    material = PRESETS[name].model_copy(deep=True)
    for key in properties:
        setattr(material, key, None)
    return material


def left_standing(material, size, **changes):
    """Share of its height that a cube keeps."""
    sim = Simulation(cube(material, size, **changes), "cpu")
    start = sim.metrics()["height"]
    for _ in sim.frames():
        pass
    return sim.metrics()["height"] / start


def test_the_documentation_lists_the_presets_as_they_are():
    text = (Path(__file__).parents[1] / "docs" / "materials.md").read_text()
    table = text.split("| name | numbers |\n|---|---|\n")[1].split("\n\n")[0]
    assert table.splitlines() == [f"| {name} | {numbers} |" for name, numbers in listing.materials()]


# --- standing and flowing ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "size"), [("whipped cream", 0.04), ("toothpaste", 0.015), ("ice cream", 0.06)])
def test_what_yields_stands_and_slumps_without_its_yield_strain(name, size):
    """Slump of a column is small while ρ g H is below about four yield stresses; without yielding it only flows slower."""
    material = PRESETS[name]
    assert material.density * 9.81 * size < 4 * material.modulus * material.yield_strain
    standing, slumped = (left_standing(m, size, frames=45) for m in (material, without(name, "yield_strain")))
    assert standing > 0.88 and slumped < standing - 0.15


def test_whipped_cream_gives_way_where_it_is_piled_too_high():
    assert left_standing(PRESETS["whipped cream"], 0.15) < 0.7


@pytest.mark.parametrize(
    ("name", "most"), [("strawberry syrup", 0.3), ("runny honey", 0.3), ("honey", 0.45), ("runny cream", 0.55)]
)
def test_what_flows_flows(name, most):
    assert left_standing(PRESETS[name], 0.04) < most


def test_thicker_presets_flow_later():
    heights = [left_standing(PRESETS[name], 0.04, frames=10) for name in ("strawberry syrup", "honey", "whipped cream")]
    assert heights[0] < heights[1] - 0.1 < heights[2] - 0.2


def test_jelly_bounces_and_honey_does_not():
    """Height of the centre of mass after a fall of 4 cm, above where it was when it touched the floor."""
    highest = {}
    for name in ("jelly", "honey"):
        sim = Simulation(cube(PRESETS[name], 0.04, drop=0.04, frames=24), "cpu")
        heights = [frame["position"][:, 1].mean() for frame in sim.frames()]
        highest[name] = max(heights[int(np.argmin(heights[:12])) :]) - 0.02
    assert highest["jelly"] > 0.06 * 0.04 and highest["honey"] < 0


# --- springs and impulses of PVFS ----------------------------------------------------------------------------------------
def in_pvfs(name, drop=0.0, frames=24):
    """Heights, relative to the first, of a cube of 7³ particles with h = 5 cm, frame by frame."""
    size = 7 * 0.019
    scene = cube(
        PRESETS[name], size, drop=drop, frames=frames, spacing=0.019, solver={"method": "pvfs"},
        time={"frames": frames, "frame_time": 1 / 30, "steps_per_frame": 1},
    )  # fmt: skip
    heights = [np.ptp(np.percentile(frame["position"][:, 1], (2, 98))) for frame in Simulation(scene, "cpu").frames()]
    return np.array(heights) / heights[0]


def test_the_papers_materials_are_its_constants_in_si_units():
    """k_spring of 0.1 and 0.3 and σ of 1.8, at h = 5 cm; springs for 9.81 m/s² instead of ĝ = 0.004."""
    h, params = 0.05, PVFSParams()
    heavier = 9.81 * TAU**2 / h / 0.004
    for name, published in (("gel", 0.1), ("elastic", 0.3)):
        matter = matter_of(PRESETS[name], params, h)
        assert matter.spring * TAU**2 / heavier == pytest.approx(published, rel=0.02)
        assert matter.stretch == matter.compress == matter.linear == 0
    rain = matter_of(PRESETS["viscous rain"], params, h)
    assert rain.linear * TAU == pytest.approx(1.8, rel=0.02) and rain.spring == 0


def test_presets_stand_sag_and_flow_in_pvfs():
    kept = {name: in_pvfs(name)[-1] for name in ("clay", "elastic", "gel", "mud", "paint", "viscous rain")}
    assert kept["clay"] > 0.97 and 0.8 < kept["elastic"] < 0.97 and 0.6 < kept["gel"] < kept["elastic"]
    assert max(kept["mud"], kept["paint"], kept["viscous rain"]) < 0.35


def test_what_is_elastic_comes_back_in_pvfs_and_rain_does_not():
    elastic, rain = in_pvfs("elastic", drop=0.15), in_pvfs("viscous rain", drop=0.15)
    assert elastic.min() < 0.75 and elastic[-1] > elastic.min() + 0.15
    assert rain[-1] < 0.35
    assert rain[8] > in_pvfs("paint", drop=0.15)[8] - 0.02, "thicker spreads later"


# --- thinning ----------------------------------------------------------------------------------------------------------
def giesekus(alpha, wi):
    """Steady viscosity relative to that at rest (Giesekus, J. Non-Newtonian Fluid Mech. 11, 1982)."""
    chi2 = (np.sqrt(1 + 16 * alpha * (1 - alpha) * wi**2) - 1) / (8 * alpha * (1 - alpha) * wi**2)
    f = (1 - np.sqrt(chi2)) / (1 + (1 - 2 * alpha) * np.sqrt(chi2))
    return (1 - f) ** 2 / (1 + (1 - 2 * alpha) * f)


def sheared(material, rate):
    """(rate of strain, Q_xy) in the middle of a layer between two plates, once the flow is steady."""
    d, height = 0.005, 0.04
    plates = [
        {"shape": {"type": "plane", "position": (0, y, 0), "rotation": (0, 0, turn)}, "friction": "no-slip",
         "interpolation": "linear",
         "motion": [{"time": 0, "position": (0, 0, 0)}, {"time": 10, "position": (sign * 5 * rate * height, 0, 0)}]}
        for y, turn, sign in ((0, 0, -1), (height, 180, 1))
    ]  # fmt: skip
    scene = Scene(
        spacing=d, gravity=(0, 0, 0), solver={"method": "dcpbd"}, material={"m": material},
        domain={"min": (0, 0, 0), "max": (8 * d, height, 8 * d), "periodic": "xz"},
        time={"frames": 18, "frame_time": 0.025, "steps_per_frame": 20},
        fluid=[{"material": "m", "shape": {"type": "box", "size": (8 * d, height, 8 * d),
                                           "position": (4 * d, height / 2, 4 * d)}}],
        solid=plates, output={"fields": ["conformation"]},
    )  # fmt: skip
    rates, shears = [], []
    for frame in Simulation(scene, "cpu").frames():
        y = frame["position"][:, 1]
        if frame.time > 0.3:
            middle = np.abs(y - height / 2) < 0.25 * height
            rates.append(np.polyfit(y[middle], frame["velocity"][middle, 0], 1)[0])
            shears.append(frame["conformation"][middle, 0, 1].mean())
    return np.mean(rates), np.mean(shears)


def test_shampoo_thins_as_giesekus_says():
    """Sheared at about 13 1/s its polymer carries 60 % of the stress that the viscosity at rest would give."""
    shampoo = PRESETS["shampoo"]
    rate, shear = sheared(shampoo, 10.0)
    wi = shampoo.relaxation_time * rate
    assert wi > 0.8 and shear / wi == pytest.approx(giesekus(shampoo.mobility, wi), rel=0.1)
    rate, plain = sheared(without("shampoo", "mobility"), 10.0)
    assert plain / (shampoo.relaxation_time * rate) > 0.85, "Maxwell's fluid does not thin"


@pytest.mark.parametrize("wi", [0.1, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5])
def test_flow_curve_of_the_conformation(alpha, wi):
    from steps.test_conformation import LAM, evolve, shear

    q, clamped = evolve(shear(wi / LAM), 12 * LAM, 6000, mobility=alpha)
    assert q[0, 1] == pytest.approx(wi * giesekus(alpha, wi), rel=0.02) and clamped == 0


# --- tautness ----------------------------------------------------------------------------------------------------------
def widest_trace(material):
    """Largest trace of Q in a block that is thrown apart along x."""
    size, rate = 0.04, 30.0
    scene = cube(material, size, frames=8, gravity=(0, 0, 0), solid=[], output={"fields": ["conformation"]})
    sim = Simulation(scene, "cpu")
    centre = np.array([0, size / 2, 0])
    sim.world.set("velocity", (sim.world.get("position") - centre) * rate * np.array([1, -0.5, -0.5]))
    return max(np.trace(frame["conformation"], axis1=1, axis2=2).max() for frame in sim.frames())


def test_slime_is_taut_before_its_polymer_is_endless():
    slime = PRESETS["slime"]
    # Softer than slime, so that it can be thrown that far apart; slime itself stays near 4.
    soft = {"density": 1020, "modulus": 10, "relaxation_time": slime.relaxation_time}
    assert widest_trace(Material(**soft)) > 1.2 * slime.extensibility
    assert 0.6 * slime.extensibility < widest_trace(Material(**soft, extensibility=slime.extensibility)) < slime.extensibility
