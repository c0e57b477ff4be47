"""Runs one scene of SPlisHSPlasH, headless, and obeys line by line; in its own environment, so nothing of ours is imported.

    python peers_splish.py SCENE.json

Reads "advance TIME FILE" from its input: simulates up to TIME [s], writes positions to FILE (.npy), answers with one line of
JSON: time [s], steps, iterations, wall and cpu [s] since the start, particles, and its own densities' mean and largest excess.
Waiting and writing are not timed, nor is the first step, which comes with all preparations (volume maps take a minute).
"""

import json
import os
import sys
import time

import numpy as np

answers = os.fdopen(os.dup(1), "w", buffering=1)  # it reports to standard output itself: that goes to the log
os.dup2(2, 1)

import pysplishsplash as sph  # noqa: E402


class Obedient:
    """Called after every step; does not come back before it is told how far to go."""

    def __init__(self, base):
        self.base = base
        self.steps = self.iterations = self.solves = 0
        self.wall = self.cpu = 0.0
        self.target, self.file = None, ""
        self.begin = self.cpu_begin = 0.0

    def __call__(self):
        now, cpu = time.perf_counter(), time.process_time()
        simulation = sph.Simulation.getCurrent()
        moment = sph.TimeManager.getCurrent().getTime()
        if self.target is None:  # the first step: everything is ready now
            self.started = moment
            self.answer(simulation, moment)
            self.obey()
        else:
            self.wall += now - self.begin
            self.cpu += cpu - self.cpu_begin
            self.steps += 1
            self.iterations += simulation.getTimeStep().getNumIterations()
        while moment >= self.target - 1e-7:
            self.answer(simulation, moment)
            self.obey()
        self.begin, self.cpu_begin = time.perf_counter(), time.process_time()

    def answer(self, simulation, moment):
        """One line about the present."""
        model = simulation.getFluidModel(0)
        count = model.numActiveParticles()
        if self.file:
            np.save(self.file, np.array(model.getFieldBuffer("position"))[:count])
        excess = np.array(model.getFieldBuffer("density"), float)[:count] / model.getDensity0() - 1.0
        boundary = [simulation.getBoundaryModel(k) for k in range(simulation.numberOfBoundaryModels())]
        told = {
            "time": moment, "simulated": moment - self.started, "steps": self.steps, "iterations": self.iterations,
            "wall": self.wall, "cpu": self.cpu, "particles": count,
            "boundary": sum(b.numberOfParticles() for b in boundary if hasattr(b, "numberOfParticles")),
            "own_mean": float(np.maximum(excess, 0.0).mean()), "own_max": float(excess.max()),
        }  # fmt: skip
        answers.write(json.dumps(told) + "\n")

    def obey(self):
        """Waits for the next order."""
        words = sys.stdin.readline().split(maxsplit=2)
        if not words or words[0] != "advance":
            sys.stderr.flush()
            os._exit(0)  # its main loop has no other way out
        self.target, self.file = float(words[1]), words[2].strip()


def main(scene):
    """Runs until told to stop."""
    base = sph.Exec.SimulatorBase()
    base.init(
        sceneFile=scene, useGui=False, initialPause=False, useCache=True, outputDir=os.path.join(os.path.dirname(scene), "out")
    )
    base.initSimulation()
    base.setTimeStepCB(Obedient(base))
    base.setValueFloat(base.STOP_AT, 1e9)
    base.runSimulation()


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
