"""Robots from MJCF and URDF files: read, stood up in the scene's axes, and their links as shapes of the scene format.

Files have z up and scenes, unless they say otherwise, y: a robot's frame is turned by ``upright`` and then by what the scene
asks. Everything else (joints, motors, contacts among links) stays as the file has it; gravity is the scene's.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.keys import closest, did_you_mean
from viscoil.solids.drag import degrees_of
from viscoil.solids.formulas import rotation_matrix
from viscoil.solids.meshes import mesh
from viscoil.solids.mjcf import MotorPlan, Plan, add_servo, target
from viscoil.solids.mujoco_kit import compiled, library, quaternion
from viscoil.solids.pieces import TURN


@dataclass(frozen=True)
class Link:
    """One rigid part of a robot that has geometry."""

    name: str  # robot/link
    rotation: np.ndarray  # (3, 3) of its frame in the scene, as it starts
    position: np.ndarray  # (3,) [m]
    shape: dict[str, Any]  # in its frame
    mass: float  # [kg]
    colour: tuple[float, float, float]
    moves: bool


def upright(file_up: str, scene_up: str) -> np.ndarray:
    """Turns the file's up axis into the scene's, about x: z-up to y-up sends (x, y, z) to (x, z, −y)."""
    degrees = 0.0 if file_up == scene_up else -90.0 if file_up == "z" else 90.0
    return rotation_matrix((degrees, 0, 0))


def read(robot: Any, number: int) -> Any:
    """The file as MuJoCo's specification; one sentence when it is none."""
    kit = library()
    try:
        text = Path(robot.file).read_text(encoding="utf-8")
        if "<robot" not in text and "<mujoco" not in text:
            raise ValueError("neither <mujoco> nor <robot> in it")
        spec = kit.MjSpec.from_file(robot.file) if Path(robot.file).suffix.lower() != ".mjcf" else _from_text(text, robot)
        spec.copy().compile()
    except (ValueError, OSError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise SceneError(
            f"robot.{number}.file: {robot.file} is not a robot that can be read ({reason}); expected an MJCF or URDF file",
            file=robot.file, key=f"robot.{number}.file", expected="an MJCF or URDF file",
        ) from None  # fmt: skip
    return spec


def _from_text(text: str, robot: Any) -> Any:
    spec = library().MjSpec.from_string(text)
    spec.modelfiledir = str(Path(robot.file).parent)
    return spec


def attach(made: Plan, robot: Any, number: int, up: str) -> None:
    """Stands a robot into a model, with a motor for each of its drives."""
    kit = library()
    spec = read(robot, number)
    prefix = f"{robot.title}/"
    turn = rotation_matrix(robot.rotation) @ upright(robot.up, up)
    frame = made.spec.worldbody.add_frame(pos=list(robot.position), quat=quaternion(turn))
    for key in list(spec.keys):
        spec.delete(key)
    made.spec.attach(spec, prefix=prefix, frame=frame)
    own = [body for body in made.spec.bodies if body.name.startswith(prefix)]
    for body in own:
        body.gravcomp = 1.0 if robot.weightless else body.gravcomp
        above = body.parent
        if above.name.startswith(prefix):  # MuJoCo lets neighbours overlap, but not those of a base that stands still
            made.spec.add_exclude(bodyname1=above.name, bodyname2=body.name)
    joints = {j.name.removeprefix(prefix): j for body in own for j in body.joints if j.name}
    motors = {a.name.removeprefix(prefix): a for a in made.spec.actuators if a.name.startswith(prefix)}
    for index, drive in enumerate(robot.drive):
        where = f"robot.{number}.drive.{index}"
        smooth = drive.interpolation == "smooth"
        times = np.array([key.time for key in drive.keyframes])
        if drive.actuator is not None:
            motor = _named(motors, drive.actuator, "actuator", robot, where)
            values = _values(drive, "actuator", where)
            joint = motor.target if _holds(kit, motor) else None
            made.motors.append(MotorPlan(motor.name, joint, times, values, smooth, tuned=False, gear=float(motor.gear[0])))
            continue
        joint = _named(joints, drive.joint, "joint", robot, where)
        kinds = {kit.mjtJoint.mjJNT_HINGE: "hinge", kit.mjtJoint.mjJNT_SLIDE: "slide"}
        if joint.type not in kinds:
            raise SceneError(f'{where}.joint: "{drive.joint}" is neither hinge nor slide; expected one that a motor can hold',
                             key=f"{where}.joint")  # fmt: skip
        values = _values(drive, kinds[joint.type], where)
        values = np.radians(values) if joint.type == kit.mjtJoint.mjJNT_HINGE else values
        holding = [a for a in motors.values() if a.target == joint.name and _holds(kit, a)]
        if holding:
            gear = float(holding[0].gear[0])
            made.motors.append(MotorPlan(holding[0].name, joint.name, times, gear * values, smooth, tuned=False, gear=gear))
            continue
        name = f"{prefix}drive/{index}"
        add_servo(made.spec, name, joint.name, None, None)
        made.motors.append(MotorPlan(name, joint.name, times, values, smooth, tuned=True))


def _holds(kit: Any, motor: Any) -> bool:
    """Whether an actuator pulls a joint towards its control, as position servos do."""
    on_joint = motor.trntype in (kit.mjtTrn.mjTRN_JOINT, kit.mjtTrn.mjTRN_JOINTINPARENT)
    affine = motor.biastype == kit.mjtBias.mjBIAS_AFFINE and motor.gaintype == kit.mjtGain.mjGAIN_FIXED
    return bool(on_joint and affine and motor.gainprm[0] > 0 and abs(motor.gainprm[0] + motor.biasprm[1]) < 1e-9)


def _values(drive: Any, kind: str, where: str) -> np.ndarray:
    from pydantic_core import PydanticCustomError

    try:
        return np.array(drive.values(kind))
    except PydanticCustomError as error:
        raise SceneError(f"{where}.{error.message()}", key=where) from None


def _named(found: dict[str, Any], name: str, what: str, robot: Any, where: str) -> Any:
    if name in found:
        return found[name]
    names = list(found)
    near = did_you_mean(name, names)
    there = f"Expected one of: {', '.join(names)}" if names else f"It has no {what}s with a name"
    raise SceneError(
        f'{where}.{what}: {Path(robot.file).name} has no {what} called "{name}".{near} {there}',
        file=robot.file, key=f"{where}.{what}", expected=f"a {what} of the file", suggestion=closest(name, names),
    )  # fmt: skip


def take_start(model: Any, data: Any, motors: list[MotorPlan]) -> None:
    """Driven joints begin where their motors want them at time 0."""
    for motor in motors:
        if motor.joint is not None:
            value = target(motor.times, motor.values, motor.smooth, 0.0)[0] / motor.gear
            data.qpos[model.joint(motor.joint).qposadr[0]] = value


# --- links as shapes --------------------------------------------------------------------------------------------------
def links(robot: Any, number: int, up: str) -> tuple[list[Link], list[str]]:
    """The parts of a robot that have geometry, as they start, and notes about what could not be taken over."""
    kit = library()
    made = Plan(kit.MjSpec())
    made.spec.compiler.degree = False
    attach(made, robot, number, up)
    model = compiled(made.spec)
    data = kit.MjData(model)
    take_start(model, data, made.motors)
    kit.mj_kinematics(model, data)
    found, notes = [], []
    for body in range(model.nbody):
        geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body]
        touching = [g for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
        name = model.body(body).name if body else f"{robot.title}/world"
        shape = _shape(model, touching or geoms, name, notes)
        if shape is not None:
            colour = robot.colour or tuple(float(c) for c in model.geom_rgba[(touching or geoms)[0], :3])
            rotation, position = data.xmat[body].reshape(3, 3).copy(), data.xpos[body].copy()
            moves = bool(model.body_weldid[body])
            found.append(Link(name, rotation, position, shape, float(model.body_mass[body]), colour, moves))
    return found, notes


def _shape(model: Any, geoms: list[int], name: str, notes: list[str]) -> dict[str, Any] | None:
    kit, parts = library(), []
    for geom in geoms:
        kind = kit.mjtGeom(model.geom_type[geom])
        turn = np.empty(9)
        kit.mju_quat2Mat(turn, model.geom_quat[geom])
        turn = turn.reshape(3, 3)
        if kind in (kit.mjtGeom.mjGEOM_MESH, kit.mjtGeom.mjGEOM_ELLIPSOID):
            part = {"type": "mesh", "file": _written(*_triangles(model, geom, name, notes))}
        else:
            part = _part(kind, model.geom_size[geom])
            turn = turn if kind == kit.mjtGeom.mjGEOM_BOX else turn @ TURN.T
        if part is None:
            notes.append(f"{name}: geometry of the kind {kind.name.removeprefix('mjGEOM_').lower()} is left out")
            continue
        place = tuple(float(x) for x in model.geom_pos[geom])
        parts.append({**part, "rotation": degrees_of(turn), "position": place})
    return {"type": "union", "parts": parts} if parts else None


def _part(kind: Any, size: np.ndarray) -> dict[str, Any] | None:
    """A primitive of MuJoCo (axis along z) as one of ours (axis along y)."""
    kit = library()
    a, b, c = (float(x) for x in size)
    if kind == kit.mjtGeom.mjGEOM_BOX:
        return {"type": "box", "size": (2 * a, 2 * b, 2 * c)}
    if kind == kit.mjtGeom.mjGEOM_SPHERE:
        return {"type": "sphere", "radius": a}
    if kind == kit.mjtGeom.mjGEOM_CAPSULE:
        return {"type": "capsule", "radius": a, "height": 2 * b}
    if kind == kit.mjtGeom.mjGEOM_CYLINDER:
        return {"type": "cylinder", "radius": a, "height": 2 * b}
    return {"type": "plane"} if kind == kit.mjtGeom.mjGEOM_PLANE else None


def _triangles(model: Any, geom: int, name: str, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a mesh or ellipsoid in the geometry's frame; of an open mesh, those of its convex hull."""
    if model.geom_dataid[geom] < 0:
        vertices, triangles = mesh({"type": "sphere", "radius": 1.0})
        return vertices * model.geom_size[geom], triangles
    asset = int(model.geom_dataid[geom])
    first, number = int(model.mesh_vertadr[asset]), int(model.mesh_vertnum[asset])
    begin, count = int(model.mesh_faceadr[asset]), int(model.mesh_facenum[asset])
    vertices, triangles = model.mesh_vert[first : first + number].copy(), model.mesh_face[begin : begin + count].copy()
    _, welded = np.unique(vertices, axis=0, return_inverse=True)
    corner = welded.reshape(-1)[triangles]
    edges = np.sort(np.concatenate([corner[:, [0, 1]], corner[:, [1, 2]], corner[:, [2, 0]]]), 1)
    if (np.unique(edges, axis=0, return_counts=True)[1] % 2).any() and model.mesh_graphadr[asset] >= 0:
        notes.append(f"{name}: a mesh of it is open, so fluid meets its convex hull")
        graph = model.mesh_graph[int(model.mesh_graphadr[asset]) :]
        corners, faces = int(graph[0]), int(graph[1])
        begin = 2 + 3 * corners + 3 * faces
        triangles = graph[begin : begin + 3 * faces].reshape(-1, 3).copy()
    return vertices, triangles


def _written(vertices: np.ndarray, triangles: np.ndarray) -> str:
    """A mesh as a file in the cache, named by its content."""
    import trimesh  # only robots with meshes pay for it

    content = bytes(trimesh.Trimesh(vertices, triangles, process=False).export(file_type="ply"))
    folder = Path(os.environ.get("VISCOIL_CACHE") or Path.home() / ".cache" / "viscoil") / "links"
    path = folder / f"{hashlib.sha256(content).hexdigest()[:24]}.ply"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        draft.replace(path)  # never half a file
    return str(path)
