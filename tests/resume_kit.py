"""A run in a process of its own, which tests kill, and what it leaves."""

import viscoil as vc
from viscoil.io.execute import execute
from viscoil.io.run import Run

CHILD = """
import sys
import viscoil as vc
from viscoil.io.execute import Progress, execute
from viscoil.io.run import Run

class Lines(Progress):
    def frame(self, frame, metrics):
        print(frame.index, flush=True)

scene = vc.load(sys.argv[1])
run = Run.open(sys.argv[2]) if Run.resumable(sys.argv[2]) else Run.create(sys.argv[2], scene)
execute(vc.Simulation(scene, device="cpu"), run, progress=Lines())
"""


def contents(run: Run) -> dict[int, bytes]:
    return {index: run.frame_path(index).read_bytes() for index in run.frames}


def left_alone(folder, text):
    """(scene file, its run from the first frame to the last)."""
    path = folder / "scene.toml"
    path.write_text(text)
    scene = vc.load(path)
    run = Run.create(folder / "whole", scene)
    assert execute(vc.Simulation(scene, device="cpu"), run).status == "finished"
    return path, run
