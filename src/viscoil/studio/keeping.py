"""Run folders from a live simulation: one moment to go on from, or every frame of what was done by hand."""

import shlex
from pathlib import Path
from typing import Any

from viscoil.errors import ViscoilError
from viscoil.io.atomic import write_atomic
from viscoil.io.run import Run


class Keeper:
    """A run folder that is being filled. Its scene is the scene as it is at the end, which is what goes on from there."""

    def __init__(self, sim: Any, folder: Path, device: str):
        self.folder = folder
        details = {"device": device, "passes": sim.passes, "command": "viscoil studio"}
        self._run = Run.create(folder, _endless(sim), details)
        self.frames = 0
        self.add(sim)

    def add(self, sim: Any) -> None:
        """One finished frame."""
        self._run.write_frame(sim.frame())
        self._run.write_metrics({"frame": sim.frame_index} | sim.metrics())
        self.frames += 1

    def finish(self, sim: Any) -> str:
        """A checkpoint of the last frame; returns the command that goes on."""
        run, scene = self._run, _endless(sim)
        command = shlex.join(["viscoil", "run", str(self.folder), "--resume"])
        write_atomic(self.folder / "scene.toml", scene.to_toml().encode())
        run.write_checkpoint(sim.frame_index, sim.state())
        text = f"saved by the studio at frame {sim.frame_index}. Go on with: {command}"
        run.set_status("interrupted", text, frames=scene.time.frames)
        run.close()
        return command

    def drop(self) -> None:
        """Lets go of the folder after something went wrong; what was written stays."""
        self._run.close()


def at_frame(sim: Any) -> bool:
    """Whether the simulation stands at the end of a frame."""
    length = sim.scene.time.frame_time
    return abs(sim.time - sim.frame_index * length) < 1e-6 * length


def _endless(sim: Any) -> Any:
    """The scene with more frames than there are: something is left to go on with."""
    if sim is None:
        raise ViscoilError("there is nothing to save: no scene is running.")
    time, index = sim.scene.time, sim.frame_index
    frames = time.frames if time.frames > index else index + max(time.frames, 1)
    return sim.scene.model_copy(update={"time": time.model_copy(update={"frames": frames})})
