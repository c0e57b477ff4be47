"""A new particle quantity is one row of FIELDS: it is emitted, sorted, saved, restored and handed to frames."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import viscoil

ROW = '    "temperature": Field(qd.f32, "K", 293.0, exported=True, help="a toy"),\n'
PROGRAM = """
import numpy as np
import viscoil
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation
from viscoil.particles import append_packed

scene = Scene.model_validate({
    "spacing": 0.02, "solver": {"method": "pbf"}, "time": {"frames": 3, "frame_time": 0.02, "steps_per_frame": 4},
    "material": {"stuff": {"density": 1000}},
    "fluid": [{"material": "stuff", "shape": {"type": "box", "size": (0.1, 0.1, 0.1), "position": (0, 0.06, 0)}}],
    "emitter": [{"material": "stuff", "position": (0.3, 0.2, 0), "speed": 1.0,
                 "shape": {"type": "cylinder", "radius": 0.03, "height": 0.02}}],
    "solid": [{"shape": {"type": "plane"}}],
})
sim = Simulation(scene, "cpu")
first = sim.world.count
assert (sim.frame()["temperature"] == 293.0).all()
sim.world.set("temperature", 300.0 + sim.world.get("id"))
sim.advance_frame()
sim.advance_frame()
frame = sim.frame()
found, by_id = frame["temperature"], frame["id"]
assert len(found) > first and np.array_equal(found[:first], 300.0 + by_id[:first]) and (found[first:] == 293.0).all()
again = Simulation(scene, "cpu")
again.restore(sim.state())
assert np.array_equal(again.frame()["temperature"], found)
world = sim.world
append_packed(world.particles, world.count - 1, {"position": np.zeros((1, 3)), "temperature": 400.0}, world.lazy)
assert sim.world.get("temperature")[world.count - 1] == 400.0
print("one row")
"""


def test_a_row_is_all_it_takes(tmp_path):
    package = tmp_path / "viscoil"
    shutil.copytree(Path(viscoil.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "particles.py"
    table = re.search(r"^FIELDS: .*?^}\n", file.read_text(), re.MULTILINE | re.DOTALL)[0]
    file.write_text(file.read_text().replace(table, table[: -len("}\n")] + ROW + "}\n"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "one row\n", done.stdout + done.stderr
