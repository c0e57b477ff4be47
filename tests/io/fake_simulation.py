"""A small deterministic simulation with the interface that the run folder expects, and frames to write."""

import time
from types import SimpleNamespace

import numpy as np

from viscoil.io.frame import Frame

SCENE = """\
title = "fake"
spacing = 0.1
[time]
frames = 12
[output]
checkpoint_every = 4
"""


class FakeSimulation:
    """Particles in a chaotic map; grows by two particles a frame, so that sizes change too."""

    def __init__(self, count: int = 40, pause: float = 0.0, toml: str | None = None) -> None:
        random = np.random.default_rng(7)
        self.position = random.random((count, 3), dtype=np.float32)
        self.velocity = random.standard_normal((count, 3)).astype(np.float32)
        self.step_count = 0
        self.frame_index = 0
        self.fresh = True
        self.pause = pause
        self.notes: list[str] = []
        self.frames_computed: list[int] = []
        if toml is not None:
            self.scene = SimpleNamespace(to_toml=lambda: toml)

    @property
    def time(self) -> float:
        return self.step_count / 240

    def step(self) -> None:
        self.velocity = np.sin(self.velocity * np.float32(3.7) + self.position)
        self.position = np.mod(self.position + self.velocity * np.float32(1 / 240), np.float32(1))
        self.step_count += 1

    def frames(self, count=None):
        last = 12 if count is None else count
        if self.fresh:
            self.fresh = False
            self.frames_computed.append(0)
            yield self.frame()
        while self.frame_index < last:
            for _ in range(4):
                self.step()
                time.sleep(self.pause)
            self.position = np.concatenate([self.position, self.position[:2] * np.float32(0.5)])
            self.velocity = np.concatenate([self.velocity, self.velocity[:2]])
            self.frame_index += 1
            self.frames_computed.append(self.frame_index)
            yield self.frame()

    def frame(self) -> Frame:
        count = len(self.position)
        fields = {
            "position": self.position.copy(), "velocity": self.velocity.copy(),
            "id": np.arange(count, dtype=np.int32), "material": np.zeros(count, np.int32),
        }
        return Frame(
            self.frame_index, self.time, self.step_count, fields, 0.1,
            materials=[{"name": "water", "colour": "#3377cc", "density": 1000.0}], title="fake",
        )

    def metrics(self) -> dict:
        return {
            "frame": self.frame_index, "time": self.time, "particles": len(self.position),
            "kinetic_energy": float((self.velocity**2).sum()), "limited_by": "fixed", "seconds": 0.01,
        }

    def state(self) -> dict:
        return {
            "particles": {"position": self.position.copy(), "velocity": self.velocity.copy()},
            "step_count": self.step_count, "frame_index": self.frame_index, "kind": "fake",
        }

    def restore(self, state: dict) -> None:
        self.position, self.velocity = state["particles"]["position"], state["particles"]["velocity"]
        self.step_count, self.frame_index = state["step_count"], state["frame_index"]
        self.fresh = False


def make_frame(index: int = 3, count: int = 50, seed: int = 0) -> Frame:
    """A frame with every kind of field."""
    random = np.random.default_rng(seed)
    fields = {
        "position": random.standard_normal((count, 3)).astype(np.float32),
        "velocity": random.standard_normal((count, 3)).astype(np.float32),
        "id": np.arange(count, dtype=np.int64) * 3,
        "material": random.integers(0, 2, count).astype(np.int32),
        "density": random.random(count, dtype=np.float32) * 1000,
        "stress": random.random((count, 3, 3)),
    }
    if count:
        fields["position"][0, 0] = -0.0
    return Frame(
        index, index / 60, 4 * index, fields, spacing=0.02, up="z", title='a "quoted" <title> µ',
        materials=[{"name": "honey", "colour": "#c80", "density": 1400.0}, {"name": "mud", "density": np.float32(1e3)}],
        solids=[{"name": "floor", "pose": np.eye(4), "shape": {"type": "plane", "friction": float("inf")}}],
    )
