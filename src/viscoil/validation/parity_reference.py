"""The CPU's side of ``viscoil validate parity``, which runs in a process of its own.

Reads scenes from FOLDER/scenes.json and writes, for number n, the states before and after the steps that are compared as
checkpoints n/0, n/1, ... named after the step, and the measures of the end as n/measures.npy.
"""

import json
from pathlib import Path

import numpy as np

from viscoil.validation.features import measures
from viscoil.validation.parity import MOMENTS


def main(name: str) -> None:
    """Simulates all scenes in the folder called ``name``, one after the other."""
    from viscoil.io.checkpoint import encode
    from viscoil.scene.schema import Scene
    from viscoil.simulate import Simulation

    folder = Path(name)
    for number, table in enumerate(json.loads((folder / "scenes.json").read_text())):
        place = folder / str(number)
        place.mkdir()
        sim = Simulation(Scene(**table), device="cpu")
        for frame in sim.frames():
            if {frame.index, frame.index - 1} & set(MOMENTS):
                (place / str(frame.index)).write_bytes(b"".join(encode(frame.index, sim.state(), "")))
        np.save(place / "measures.npy", measures(sim))
