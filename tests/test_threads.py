"""The same bits, whatever the number of threads and however often it is run."""

import hashlib
import os
import subprocess
import sys

from kit import box_scene
from viscoil.simulate import Simulation

CODE = """
import sys
sys.path.insert(0, {folder!r})
from test_threads import fingerprint
print(fingerprint())
"""


def fingerprint():
    scene = box_scene(0.02, (14, 10, 12), solver={"method": "pbf", "vorticity": 0.1, "tolerance": 0.003, "iterations": 8})
    scene.fluid[0].jitter = 0.2
    ball = {"type": "sphere", "radius": 0.05}
    scene.emitter = [{"material": "honey", "shape": ball, "position": (0.14, 0.35, 0.12), "speed": 2.0}]
    sim = Simulation(type(scene)(**scene.to_dict()), device="cpu")
    digest = hashlib.sha256()
    for frame in sim.frames(3):
        for name in ("id", "position", "velocity", "density"):
            digest.update(frame[name].tobytes())
    return f"{len(frame)} {digest.hexdigest()}"


def run(threads):
    here = os.path.dirname(os.path.abspath(__file__))
    env = {**os.environ, "VISCOIL_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", CODE.format(folder=here)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_bits_do_not_depend_on_threads():
    one = run(1)
    assert int(one.split()[0]) > 1400
    assert run(4) == one
    assert fingerprint() == one and fingerprint() == one, "as many threads as this process has, twice"
