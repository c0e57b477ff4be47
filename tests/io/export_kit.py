"""What tests of exports share: runs with everything that is hard to export, and surfaces for them."""

import numpy as np

from viscoil.io import export as module
from viscoil.io.frame import Frame
from viscoil.io.run import Run
from viscoil.solids.meshes import mesh
from viscoil.surface.mesh import SurfaceMesh

COUNTS = (20, 0, 33, 33, 7)  # particles per frame: born, gone, come back
FRAME_TIME = 0.016
SCENE = f'title = "x"\nspacing = 0.1\n[time]\nframe_time = {FRAME_TIME}\n'
MATERIALS = [
    {"name": "honey", "colour": [0.9, 0.6, 0.1], "density": 1400.0, "look": "honey"},
    {"name": "thick mud", "colour": "#664422", "density": 1700.0, "look": "mud"},
]


def turned(degrees: float, shift: tuple[float, float, float]) -> list[list[float]]:
    """A pose: about z, then moved."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return [[c, -s, 0, shift[0]], [s, c, 0, shift[1]], [0, 0, 1, shift[2]], [0, 0, 0, 1]]


def lively_frame(index: int, count: int, up: str = "y", materials: int = 2) -> Frame:
    """A frame with every kind of field, a resting, a moving, a late and a hollow solid."""
    random = np.random.default_rng(index)
    fields = {
        "position": random.standard_normal((count, 3)).astype(np.float32),
        "velocity": random.standard_normal((count, 3)).astype(np.float32),
        "id": np.arange(count, dtype=np.int32) * 3,
        "material": random.integers(0, materials, count).astype(np.int32),
        "density": random.random(count, dtype=np.float32) * 1000,
        "conformation": random.random((count, 6), dtype=np.float32),
        "stress": random.standard_normal((count, 3, 3)).astype(np.float32),
        "born": random.integers(0, 2**40, count),
        "flag": random.integers(0, 2, count).astype(np.uint8),
    }
    if count:
        fields["position"][0, 0] = -0.0
    solids = [
        {"name": "floor", "pose": np.eye(4).tolist(), "shape": {"type": "plane"}, "colour": [0.5, 0.5, 0.5]},
        {"name": "tank", "pose": turned(0, (0, 1, 0)), "shape": {"type": "box", "size": [3, 2, 3]}, "container": True},
        {"name": "stirrer", "pose": turned(15 * max(0, index - 1), (0.1 * max(0, index - 1), 0.2, 0)),
         "shape": {"type": "capsule", "radius": 0.1, "height": 0.5}, "container": False, "colour": [1.0, 0.0, 0.0]},
    ]  # fmt: skip
    if index >= 3:
        solids.append({"name": "stirrer", "pose": turned(0, (1, 0, 0)), "shape": {"type": "sphere", "radius": 0.2}})
    return Frame(
        index, index * FRAME_TIME, 4 * index, fields, 0.1, up, materials=MATERIALS[:materials], solids=solids, title="a <b> µ"
    )


def make_run(path, up: str = "y", materials: int = 2, counts=COUNTS) -> Run:
    """A run folder with such frames."""
    run = Run.create(path, SCENE)
    for index, count in enumerate(counts):
        run.write_frame(lively_frame(index, count, up, materials))
    run.close()
    return run


def make_surface(run: Run, index: int) -> SurfaceMesh:
    """A ball that grows from frame to frame; none for a frame without particles."""
    frame = run.frame(index)
    vertices, triangles = (np.array(a) for a in mesh({"type": "sphere", "radius": 0.5 + 0.1 * index}, 16 + 4 * index))
    if not len(frame):
        vertices, triangles = vertices[:0], triangles[:0]
    normal = vertices / np.maximum(np.linalg.norm(vertices, axis=1, keepdims=True), 1e-9)
    fields = {
        "normal": normal.astype(np.float32), "velocity": 2 * vertices,
        "material": np.minimum(vertices[:, 0] > 0, len(frame.materials) - 1).astype(np.int32),
        "colour": np.abs(normal).astype(np.float32), "density": 1000 + vertices[:, 1],
        "stress": np.random.default_rng(index).random((len(vertices), 3, 3)).astype(np.float32),
    }  # fmt: skip
    return SurfaceMesh(vertices, triangles, fields, index, frame.time, frame.spacing, frame.up, frame.materials, 0.5)


def use_made_up_surfaces(monkeypatch) -> None:
    """Exports take :func:`make_surface` instead of computing surfaces."""
    monkeypatch.setattr(module, "_make_surfaces", lambda run, indices, progress: None)
    monkeypatch.setattr(module, "_surface", make_surface)
    monkeypatch.setattr(module, "_surface_file", lambda run, index: run.frame_path(index))
