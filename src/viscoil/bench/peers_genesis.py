"""Runs a dam break of Genesis (genesis-world), headless on the CPU, and obeys line by line; in its own environment.

    python peers_genesis.py CASE.json

Speaks as peers_splish.py does. Genesis has z up: axes are exchanged on the way in and out. Its walls are the bounds of its
solvers. It tells no densities of its own.
"""

import json
import os
import sys
import time

answers = os.fdopen(os.dup(1), "w", buffering=1)  # it reports to standard output itself: that goes to the log
os.dup2(2, 1)

import genesis as gs  # noqa: E402
import numpy as np  # noqa: E402


def upright(values):
    """y up to z up, and back."""
    x, y, z = values
    return x, z, y


def build(case):
    """(scene, liquid) of a case: spacing [m], corner, size and box [m], method "PBD" or "MPM", step [s], substeps."""
    spacing = case["spacing"]
    low, high = (0.0, 0.0, 0.0), upright(case["box"])
    middle = [a + b / 2 for a, b in zip(case["corner"], case["size"], strict=True)]
    options = {"sim_options": gs.options.SimOptions(dt=case["step"], substeps=case["substeps"])}
    if case["method"] == "PBD":
        options["pbd_options"] = gs.options.PBDOptions(
            lower_bound=low, upper_bound=high, particle_size=spacing, max_density_solver_iterations=case["iterations"]
        )
        material = gs.materials.PBD.Liquid(
            rho=1.0, density_relaxation=1.0, viscosity_relaxation=0.0, sampler="regular"  # as in its example of a liquid
        )
    else:  # eight particles per cell; its grid needs some cells beyond the walls, which are three cells inside the bounds
        cell = 2 * spacing
        margin = 3 * cell
        options["mpm_options"] = gs.options.MPMOptions(
            lower_bound=[a - margin for a in low], upper_bound=[b + margin for b in high], particle_size=spacing,
            grid_density=1 / cell,
        )  # fmt: skip
        material = gs.materials.MPM.Liquid(rho=1000.0, sampler="regular")
    scene = gs.Scene(show_viewer=False, **options)
    box = gs.morphs.Box(pos=upright(middle), size=upright(case["size"]))
    liquid = scene.add_entity(material=material, morph=box)
    scene.build()
    return scene, liquid


def main(file):
    """Runs until told to stop."""
    with open(file) as opened:
        case = json.load(opened)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if cores:  # it starts a thread for every core it may use
        os.sched_setaffinity(0, cores[: int(os.environ.get("OMP_NUM_THREADS", len(cores)))])
    gs.init(backend=gs.cpu, logging_level="warning")
    scene, liquid = build(case)
    scene.step()  # compiles
    begun = steps = 1
    wall = cpu = 0.0
    path = ""
    while True:
        x = np.asarray(liquid.get_particles_pos().cpu()).reshape(-1, 3)[:, [0, 2, 1]]
        if path:
            np.save(path, x)
        told = {
            "time": steps * case["step"], "simulated": (steps - begun) * case["step"], "steps": steps - begun,
            "iterations": (steps - begun) * case["iterations"], "wall": wall, "cpu": cpu, "particles": len(x),
            "own_mean": None, "own_max": None,
        }  # fmt: skip
        answers.write(json.dumps(told) + "\n")
        words = sys.stdin.readline().split(maxsplit=2)
        if not words or words[0] != "advance":
            os._exit(0)
        until, path = float(words[1]), words[2].strip()
        while steps * case["step"] < until - 1e-7:
            begin, cpu_begin = time.perf_counter(), time.process_time()
            scene.step()
            wall += time.perf_counter() - begin
            cpu += time.process_time() - cpu_begin
            steps += 1


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
