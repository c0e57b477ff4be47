"""What is drawn, looked at from the server's side: nodes, surfaces as glTF, pages that play alone."""

import base64
import io
import json
import re
import struct
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import trimesh
import zstandard

from viscoil.io.frame import Frame
from viscoil.solids.meshes import mesh
from viscoil.studio import playback, server
from viscoil.studio import stage as stage_module
from viscoil.studio.colours import Colouring
from viscoil.studio.glb import glb
from viscoil.studio.messages import SceneInfo, Thing
from viscoil.studio.plots import MOST, Axis, History, axis_of
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


def handles(stage):
    return {handle.name: handle for handle in stage.server.scene._handle_from_node_name.values()}


def nodes(stage):
    """What hangs on the present scene's root, by its name there."""
    root = stage._root.name
    return {name.removeprefix(root): node for name, node in handles(stage).items() if name.startswith(root + "/")}


def test_a_scene_is_set_and_cleared(stage):
    first = frame()
    stage.build(info(box=((0, 0, 0), (1, 1, 1))), first, framing(first, info()))
    names = set(nodes(stage))
    assert {"/floor", "/box", "/fluid/points", "/things/solid 0", "/things/emitter 0"} <= names
    assert "/things/solid 2" not in names, "the ground is the floor"
    stage.clear()
    assert not [name for name in handles(stage) if name.startswith("/scene")]


def test_a_scene_shares_no_name_with_the_one_before(stage):
    """A browser would give a node of the same name the place it knows, and a place of zero is not sent."""
    first, seen = frame(), []
    for _ in range(3):
        stage.build(info(), first, framing(first, info()))
        stage.draw(points_of(first, Colouring(), shaded=False))
        seen.append({name for name in handles(stage) if name.startswith("/scene") and name.count("/") > 1})
        assert len(seen[-1]) >= 5
    assert not seen[0] & seen[1] and not seen[1] & seen[2]
    stage.visible("solid", False)
    stage.build(info(), first, framing(first, info()))
    assert not nodes(stage)["/things/solid 1"].visible, "what is not to be shown is not shown in the next scene either"
    assert nodes(stage)["/things/emitter 0"].visible


def test_moments_move_points_and_solids(stage):
    first = frame()
    stage.build(info(), first, framing(first, info()))
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
    stage.build(info(), first, framing(first, info()))
    moment = points_of(first, Colouring(), shaded=True)
    assert len(moment.points) == 256 and len(moment.colours) == 256
    stage.draw(moment)
    assert nodes(stage)["/fluid/points"].point_size == pytest.approx(0.1 * 2 ** (1 / 3))


def test_a_surface_is_shown_after_it_was_sent(stage):
    first = frame()
    stage.build(info(), first, framing(first, info()))
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
    close, below = framing(first, info(things=())), ((0.4, -1.5, 0.4), (2.0, 0.4, 0.4))
    for aspect in (0.4, 1.0, 2.5):
        wide = framing(first, info(things=(NOZZLE,), reach=below), aspect)
        size = 1000 * aspect, 1000.0
        pixels = np.array(wide.project(np.array([NOZZLE.position, *below]), size)[:2]).T
        assert (pixels > 0.02 * np.array(size)).all() and (pixels < 0.98 * np.array(size)).all()
        far = [np.linalg.norm(np.subtract(camera.position, camera.target)) for camera in (close, wide)]
        assert far[1] > far[0]
        assert wide.floor == pytest.approx(-1.55), "below all that will be there, not below what is there now"


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


def test_curves_are_drawn_from_zero_in_units_with_few_digits():
    cases = [
        (([0.1342, 0.1351], "m"), Axis(1.0, "m", 0.0, 0.15)), (([2.1e-5, 1e-6], "J"), Axis(1e6, "µJ", 0.0, 30.0)),
        (([0.00066], "J"), Axis(1e3, "mJ", 0.0, 0.8)), (([0.0, 0.0], "J"), Axis(1.0, "J", 0.0, 1.0)),
        (([-0.3, 0.05], "m"), Axis(1.0, "m", -0.3, 0.05)), (([np.nan, np.nan], "m"), Axis(1.0, "m", 0.0, 1.0)),
        (([1e-5], "%"), Axis(1.0, "%", 0.0, 0.1)), (([23.6], "%"), Axis(1.0, "%", 0.0, 30.0)),
    ]  # fmt: skip
    for (values, unit), expected in cases:
        found = axis_of(np.array(values), unit)
        assert (found.unit, found.factor) == (expected.unit, expected.factor)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_curve_of_one_frame_is_not_made_up():
    history = History()
    assert np.isnan(history.columns()[1:]).all() and history.columns()[0].tolist() == [0.0, 0.1]
    history.add({"time": 0.5, "height": 1.0, "kinetic_energy": 2.0, "compression": 0.0})
    columns = history.columns()
    assert columns[:, 0].tolist() == [0.5, 1.0, 2.0, 0.0] and np.isnan(columns[1:, 1]).all() and columns[0, 1] > 0.5


def test_what_grows_is_seldom_moved():
    """Points are sent about a middle that arrives a picture earlier: a jet that grows would tremble."""
    tall, middles = frame(), []
    for k in range(60):
        tall.fields["position"] = np.array([[0, 1, 0], [0, 1 - 0.05 * (k + 1), 0]], np.float32)
        tall.fields["material"] = np.zeros(2, np.int32)
        moment = points_of(tall, Colouring(), shaded=False)
        middles.append(moment.centre)
        assert np.abs(moment.points + np.float32(moment.centre) - tall["position"]).max() < 0.05 * (k + 1) / 1000
    assert len(set(middles)) < 15


def opening_view(page):
    """Where a page looks from when it is opened: position and target, as its player is told."""
    data = base64.b64decode(re.search(r'__VISER_EMBED_DATA__="([^"]+)"', page)[1])
    inner = zstandard.ZstdDecompressor().decompress(data[8:], max_output_size=int.from_bytes(data[:8], "little"))
    told = msgspec.msgpack.decode(inner[8 : 8 + int.from_bytes(inner[:8], "little")])["messages"]
    found = {m["type"]: m for _, m in told if m.get("initial")}
    return found["SetCameraPositionMessage"]["position"], found["SetCameraLookAtMessage"]["look_at"]


def test_a_playback_page_opens_in_the_view_of_who_recorded_it():
    first = frame()
    camera = framing(first, info())
    view = replace(camera, position=(3.0, 2.0, 1.0), target=(0.1, 0.2, 0.3))
    for own, expected in ((None, camera), (view, view)):
        recorder = playback.Recorder(info(), first, camera, "points", 1.0, own)
        for k in range(2):
            recorder.add(points_of(frame(0.02 * k, k), Colouring(), True))
        position, target = opening_view(recorder.page())
        assert np.allclose(position, expected.position) and np.allclose(target, expected.target)


@pytest.mark.parametrize("show", ["points", "surface"])
def test_a_playback_page_is_one_file_that_asks_for_nothing(show):
    frames = [frame(0.02 * k, k) for k in range(4)]
    recorder = playback.Recorder(info(), frames[0], framing(frames[0], info()), show, 1.0)
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
    recorder = playback.Recorder(info(), frame(), framing(frame(), info(things=())), "points", 1.0)
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
