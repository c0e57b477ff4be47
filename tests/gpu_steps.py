"""A few steps of every method, on the device that is asked for; as a program, for a process that finds an emulated GPU.

    python gpu_steps.py DEVICE FOLDER METHOD:VARIANT ...

Instead of a method also a scene out of viscoil.validation.features.

How neighbours are read (VISCOIL_RECORDS) is the process's: kernels are compiled for one way.
"""

import functools
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

PARTICLES, STEPS = 700, 3
SMALL = 2e-4  # spacing of the variant "small" [m]


def scene_of(method: str, variant: str) -> Any:
    """What is simulated."""
    from viscoil.bench.cases import CASES
    from viscoil.scene.schema import Scene
    from viscoil.validation.features import FEATURES
    from viscoil.validation.similarity import scaled

    if method in FEATURES:
        return Scene(**scaled(FEATURES[method].scene(5.0), SMALL))
    case = CASES[method]
    scene = case.scene(PARTICLES, {name: min(count, 5) for name, count in case.counts.items()})
    if method == "pvfs":
        scene.solver.relaxation = "jacobi"  # as GPUs choose by themselves
        if variant == "small":
            scene.solver.substeps = None  # the scene's are parts of 1/30 s, whatever the size
    if variant == "shape_matching":
        scene.solver.correction = variant
    return Scene(**scaled(scene, SMALL / scene.spacing)) if variant == "small" else scene


def after(method: str, device: str, variant: str = "") -> dict[str, Any]:
    """Places and velocities by id, numbers of bonds, the spacing, and whether the list was torn."""
    from viscoil.simulate import Simulation
    from viscoil.transfer import read

    scene = scene_of(method, variant)
    sim = Simulation(scene, device)
    for _ in range(STEPS):
        sim.step()
    p, n = sim.world.particles, sim.world.count
    order = np.argsort(read(p.id, n))
    bonds = sim.world.carried.get("number")
    nearby = getattr(getattr(sim.solver, "scratch", None), "nearby", None)
    listed = read(nearby.index, int(read(nearby.number)[0])) if nearby else np.zeros(0, np.int32)
    return {
        "bonds": read(bonds.array, n)[order] if bonds else np.zeros(0, np.int32),
        "position": read(p.position, n)[order], "velocity": read(p.velocity, n)[order], "spacing": sim.world.spacing,
        "listed": listed, "torn": sim.world.neighbors.torn,
    }  # fmt: skip


def with_fault(module: str, good: str, bad: str) -> None:
    """Has a module, not imported yet, say ``bad`` where it says ``good``: in a file, as kernels need."""
    found = importlib.util.find_spec(module)
    text = Path(found.origin).read_text(encoding="utf-8")
    assert text.count(good) == 1, f"{module} says it differently now: what was faulty once has to be written for what it says"
    file = Path(tempfile.mkdtemp()) / Path(found.origin).name
    file.write_text(text.replace(good, bad), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(module, file)
    sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[module])


def compile_in_a_hurry() -> None:
    """Kernels with what LLVM makes of them alone: a compiler's pass that LLVM mostly repeats takes 40 s of DC-PBD's 50."""
    import quadrants as qd

    qd.init = functools.partial(qd.init, advanced_optimization=False)


def main(device: str, folder: str, *asked: str) -> None:
    from viscoil import backend
    from viscoil.scene import build
    from viscoil.sph import depth, search

    compile_in_a_hurry()
    backend.start(device)
    most, baskets = search.MOST_ELEMENTS, depth.BASKETS
    for name in asked:
        method, _, variant = name.partition(":")
        build.team_size = (lambda *_: 8) if variant == "eight" else search.team_size
        depth.BASKETS = (12,) if variant == "spilling" else baskets  # lists longer than what is collected of them
        search.MOST_ELEMENTS = 20 * PARTICLES if variant == "torn" else most  # a list of several pieces
        np.savez(Path(folder) / f"{method}_{variant}.npz", **after(method, device, variant))


if __name__ == "__main__":
    main(*sys.argv[1:])
