import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from viscoil.io.frame import Frame


def make_frame(index: int = 3, count: int = 50, seed: int = 0) -> Frame:
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


@pytest.fixture
def frame() -> Frame:
    return make_frame()
