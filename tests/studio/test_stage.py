"""What is drawn, looked at from the server's side: nodes, surfaces as glTF, pages that play alone."""

import io
import json
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
import trimesh

from viscoil.io.frame import Frame
from viscoil.solids.meshes import mesh
from viscoil.studio import playback, server
from viscoil.studio import stage as stage_module
from viscoil.studio.colours import Colouring
from viscoil.studio.glb import glb
from viscoil.studio.messages import SceneInfo, Thing
from viscoil.studio.plots import MOST, History
from viscoil.studio.stage import Moment, Stage, framing, matrix, nozzle_mesh, points_of, quaternion, sharp_edges, surface_of

EYE = tuple(map(tuple, np.eye(3).tolist()))
TANK = Thing("solid", 0, "tank", {"type": "box", "size": (1, 2, 1)}, True, (0.7,) * 3, (0.5, 1, 0.5), EYE)
BALL = Thing("solid", 1, "ball", {"type": "sphere", "radius": 0.1}, False, (1, 0, 0), (0.5, 0.8, 0.5), EYE)
GROUND = Thing("solid", 2, "ground", {"type": "plane"}, False, (0.5,) * 3, (0, 0, 0), EYE)
NOZZLE = Thing("emitter", 0, "nozzle 0", {"type": "sphere", "radius": 0.05}, False, (1, 1, 1), (0.2, 1.5, 0.5), EYE)


def info(**changes):
    plain = SceneInfo(
        source="pool", title="A <pool>", description="", quality="quick", qualities=("quick",), method="pbf", spacing=0.1,
        up="y", frame_time=0.02, groups=(), things=(TANK, BALL, GROUND, NOZZLE), materials=(), fields={}, box=None, toml="",
        notes=(),
    )  # fmt: skip
    return replace(plain, **changes)


def frame(time=0.0, index=0):
    axes = [np.arange(8) * 0.1 + 0.05] * 3
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3).astype(np.float32)
    x[:, 1] += np.float32(time)
    solids = []
    for thing in (TANK, BALL, GROUND):
        pose = np.eye(4)
        pose[:3, 3] = thing.position
        solids.append({"name": thing.name, "pose": pose.tolist(), "shape": thing.shape, "container": thing.container})
    solids[1]["pose"][0][3] += time
    fields = {"position": x, "velocity": np.ones_like(x), "material": np.zeros(len(x), np.int32)}
    return Frame(index, time, index, fields, 0.1, "y", [{"name": "water", "colour": (0.2, 0.4, 0.8)}], solids)


@pytest.fixture
def stage():
    web = server.start(server.LOCAL, 0)
    yield Stage(web)
    web.stop()


def nodes(stage):
    return {handle.name: handle for handle in stage.server.scene._handle_from_node_name.values()}


def test_a_scene_is_set_and_cleared(stage):
    first = frame()
    stage.build(info(box=((0, 0, 0), (1, 1, 1))), first, framing(first, info().things))
    names = set(nodes(stage))
    assert {"/floor", "/box", "/fluid/points", "/things/solid 0", "/things/emitter 0"} <= names
    assert "/things/solid 2" not in names, "the ground is the floor"
    stage.clear()
    assert not [name for name in nodes(stage) if name.startswith(("/things/", "/fluid/", "/floor", "/box"))]


def test_moments_move_points_and_solids(stage):
    first = frame()
    stage.build(info(), first, framing(first, info().things))
    moment = points_of(frame(0.25), Colouring(), shaded=False)
    stage.draw(moment)
    cloud = nodes(stage)["/fluid/points"]
    assert np.allclose(cloud.points.astype(float) + cloud.position, frame(0.25)["position"], atol=1e-3)
    assert cloud.visible and cloud.colors[0].tolist() == [51, 102, 204]
    assert nodes(stage)["/things/solid 1"].position[0] == pytest.approx(0.75)
    stage.draw(Moment(0.3, np.zeros((0, 3), np.float16), np.zeros((0, 3), np.uint8)))
    assert not cloud.visible, "nothing left to see, and no empty buffers for browsers to complain about"


def test_of_too_many_points_some_are_drawn_larger(stage, monkeypatch):
    monkeypatch.setattr(stage_module, "MOST_POINTS", 300)
    first = frame()
    stage.build(info(), first, framing(first, info().things))
    moment = points_of(first, Colouring(), shaded=True)
    assert len(moment.points) == 256 and len(moment.colours) == 256
    stage.draw(moment)
    assert nodes(stage)["/fluid/points"].point_size == pytest.approx(0.1 * 2 ** (1 / 3))


def test_a_surface_is_shown_after_it_was_sent(stage):
    first = frame()
    stage.build(info(), first, framing(first, info().things))
    stage.show("surface")
    vertices, triangles = mesh({"type": "sphere", "radius": 0.3}, 16)
    for number in range(3):
        stage.draw(surface_of(vertices, triangles, {"normal": vertices / 0.3}, [], 0.1 * number, Colouring()))
        assert stage.waiting
        stage.reveal()
        shown = [name for name, node in nodes(stage).items() if "surface" in name and node.visible]
        assert shown == [f"/fluid/surface {number % 2}"], "one at a time, the other loads"
    stage.show("points")
    assert not [name for name, node in nodes(stage).items() if "surface" in name and node.visible]


def test_the_camera_sees_where_the_fluid_may_go():
    first = frame()
    narrow, wide = framing(first, ()), framing(first, (NOZZLE,))
    pixels = np.array(wide.project(np.array([NOZZLE.position]), (1150, 1000))[:2]).ravel()
    assert (pixels > 0).all() and (pixels < (1150, 1000)).all()
    far = [np.linalg.norm(np.subtract(c.position, c.target)) for c in (narrow, wide)]
    assert far[1] > far[0]


def test_quaternions_and_matrices():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert np.allclose(matrix(quaternion(turn)), turn)


def test_sharp_edges_of_a_box_are_its_twelve():
    edges = sharp_edges(*mesh({"type": "box", "size": (1, 2, 3)}))
    lengths = np.linalg.norm(edges[:, 0] - edges[:, 1], axis=1)
    assert lengths.sum() == pytest.approx(4 * (1 + 2 + 3), rel=1e-5)
    assert len(sharp_edges(*mesh({"type": "sphere", "radius": 1.0}, 64))) == 0


@pytest.mark.parametrize("shape", [{"type": "sphere", "radius": 0.1}, {"type": "box", "size": (0.2, 0.1, 0.3)}])
def test_a_nozzle_ends_at_its_opening(shape):
    vertices, _ = nozzle_mesh(shape)
    assert vertices[:, 1].max() == pytest.approx(0.0, abs=1e-6) and vertices[:, 1].min() < -0.1


def test_gltf_is_read_by_others():
    vertices, triangles = mesh({"type": "sphere", "radius": 0.5}, 24)
    colours = np.tile(np.array([255, 128, 0], np.uint8), (len(vertices), 1))
    data = glb(vertices, triangles, vertices / 0.5, colours)
    found = trimesh.load(io.BytesIO(data), file_type="glb", force="mesh", process=False)
    assert np.allclose(found.vertices, vertices, atol=1e-6) and len(found.faces) == len(triangles)
    assert found.is_watertight
    (size,) = struct.unpack("<I", data[12:16])
    view = json.loads(data[20 : 20 + size])["bufferViews"][2]
    first = np.frombuffer(data, "<u2", 4, 28 + size + view["byteOffset"]) / 65535
    assert first == pytest.approx([1.0, 0.2158, 0.0, 1.0], abs=1e-3), "sRGB 128 is 0.216 of the light"


def test_history_stays_small_and_keeps_its_ends():
    history = History()
    for k in range(20 * MOST):
        history.add({"time": k * 0.01, "height": 1.0 + k, "kinetic_energy": 2.0, "compression": 0.03})
    columns = history.columns()
    assert columns.shape[1] <= MOST and columns[0, 0] == 0.0 and columns[0, -1] > 0.95 * 20 * MOST * 0.01
    assert (np.diff(columns[0]) > 0).all() and columns[3, 0] == pytest.approx(3.0), "per cent"


@pytest.mark.parametrize("show", ["points", "surface"])
def test_a_playback_page_is_one_file_that_asks_for_nothing(show):
    frames = [frame(0.02 * k, k) for k in range(4)]
    recorder = playback.Recorder(info(), frames[0], framing(frames[0], info().things), show, 1.0)
    vertices, triangles = mesh({"type": "sphere", "radius": 0.3}, 16)
    for one in frames:
        recorder.add(points_of(one, Colouring(), True))
        recorder.add(surface_of(vertices, triangles, {"normal": vertices / 0.3}, [], one.time, Colouring()))
        recorder.add(points_of(one, Colouring(), True))
    assert len(recorder.moments) == 4 and recorder.seconds == pytest.approx(0.06), "only what is shown, each time once"
    page = recorder.page()
    assert "__VISER_EMBED_DATA__" in page and "<title>A &lt;pool&gt;</title>" in page
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?https?:", page)


def test_a_recording_knows_when_it_is_full(monkeypatch):
    monkeypatch.setattr(playback, "MOST_BYTES", 10_000)
    recorder = playback.Recorder(info(), frame(), framing(frame(), ()), "points", 1.0)
    kept = [recorder.add(points_of(frame(0.02 * k, k), Colouring(), False)) for k in range(4)]
    assert kept == [True, True, False, False], "512 points of nine bytes each"


# --- the server ------------------------------------------------------------------------------------------------------


def test_a_taken_port_gives_way_or_is_said():
    import socket

    with socket.socket() as other:
        other.bind((server.LOCAL, 0))
        other.listen()
        taken = other.getsockname()[1]
        assert server.free_port(server.LOCAL, taken, exactly=False) > taken
        with pytest.raises(server.AddressError, match=f"port {taken} is in use"):
            server.free_port(server.LOCAL, taken, exactly=True)
    with pytest.raises(server.AddressError, match="from 0 to 65535"):
        server.free_port(server.LOCAL, 70000, exactly=True)
    with pytest.raises(server.AddressError, match="cannot listen there"):
        server.free_port("203.0.113.7", 8080, exactly=False)
