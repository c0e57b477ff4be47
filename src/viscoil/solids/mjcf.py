"""A scene's solids as a MuJoCo model, built in the scene's own axes: up is wherever gravity says.

Every body's frame is the frame its shape is drawn in, and its mass is density times the shape's volume. Solids that follow
keyframes are bodies too, too heavy to be moved by others and put in their place before every step.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from viscoil.solids.bulk import bulk_of
from viscoil.solids.formulas import rotation_matrix
from viscoil.solids.mujoco_kit import library, quaternion
from viscoil.solids.pieces import Piece, pieces_of, walls_of

SOFTNESS = 0.0025  # time over which a contact pushes back [s]: two and a half of the longest steps MuJoCo makes
HEAVY = 1e4  # mass of what keyframes move, in masses of everything else
NO_SLIP = 1e3  # a Coulomb coefficient that nothing overcomes


@dataclass(frozen=True)
class MotorPlan:
    """A motor that follows keyframes."""

    name: str  # of the actuator
    joint: str | None  # that it holds; None where it does something else
    times: np.ndarray
    values: np.ndarray  # of its control, SI and radians
    smooth: bool
    tuned: bool  # whether its damping (and, where left out, its stiffness) is chosen by us
    stiffness: float | None = None
    gear: float = 1.0  # control per unit of the joint


@dataclass
class Plan:
    """A model under construction and what was found on the way."""

    spec: Any
    unit: float = 1.0  # what the model calls one unit of mass [kg], a power of two
    bodies: dict[int, str] = field(default_factory=dict)  # index of a solid that forces move -> name of its body
    keyed: dict[int, str] = field(default_factory=dict)  # index of a solid that keyframes move -> name of its body
    still: dict[int, str] = field(default_factory=dict)  # index of a solid that nothing moves -> name of its body
    motors: list[MotorPlan] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def called(solids: list[Any], index: int) -> str:
    """How messages call a solid."""
    return solids[index].name or f"solid {index}"


def animated(solid: Any) -> bool:
    """Whether keyframes or a figure's walk say where it is."""
    return bool(solid.motion) or getattr(solid, "_path", None) is not None


def start_pose(solid: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rotation matrix and position [m] a solid is placed with, keyframes not looked at."""
    return rotation_matrix(solid.shape.rotation), np.asarray(solid.shape.position, float)


def plan(scene: Any, solids: list[Any]) -> Plan:
    """The model of all solids that are not links of a robot; robots are attached to it afterwards."""
    kit = library()
    spec = kit.MjSpec()
    spec.option.gravity = [float(g) for g in scene.gravity]
    spec.option.integrator = kit.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = kit.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0  # friction holds instead of creeping
    spec.option.disableflags |= int(kit.mjtDisableBit.mjDSBL_AUTORESET)
    spec.compiler.degree = False
    bodies = [solid for solid in solids if solid.body is not None]
    weight = sum(_weight(solid) for solid in bodies)
    in_kilograms = weight <= 0 or bool(getattr(scene, "robot", ()))  # robots' files are
    made = Plan(spec, 1.0 if in_kilograms else _unit(bodies))
    by_name = {solid.name: index for index, solid in enumerate(solids) if solid.name}
    nodes: dict[int, Any] = {}
    for index, solid in enumerate(solids):
        link = getattr(solid, "link", None)
        if link is None:
            _add(made, solids, index, by_name, nodes, weight)
        elif solid.body is not None:
            made.bodies[index] = link
    made.bodies = dict(sorted(made.bodies.items()))
    return made


def _unit(bodies: list[Any]) -> float:
    """What one unit of mass is [kg]: MuJoCo refuses inertias up to 1e-15, which a ball of 0.3 mm has in kilograms.

    The lightest body's mass m times its size L: in that unit its mass is 1/L and its inertia about L/10.
    """
    return min(2.0 ** round(math.log2(_weight(solid) * bulk_of(solid.shape).volume ** (1 / 3))) for solid in bodies)


def _weight(solid: Any) -> float:
    body = solid.body
    return body.mass if body.mass is not None else body.density * bulk_of(solid.shape).volume


def _add(made: Plan, solids: list[Any], index: int, by_name: dict[str, int], nodes: dict[int, Any], weight: float) -> Any:
    """The body of one solid, its parent's before it."""
    if index in nodes:
        return nodes[index]
    solid, above = solids[index], made.spec.worldbody
    rotation, position = start_pose(solid)
    name = f"#solid/{index}"
    turn, origin = np.eye(3), np.zeros(3)
    if solid.body is not None and solid.body.parent is not None:
        parent = by_name[solid.body.parent]
        above = _add(made, solids, parent, by_name, nodes, weight)
        turn, origin = start_pose(solids[parent])
        made.spec.add_exclude(bodyname1=above.name, bodyname2=name)  # what a joint holds together may overlap
    node = above.add_body(name=name, pos=turn.T @ (position - origin), quat=quaternion(turn.T @ rotation))
    nodes[index] = node
    if solid.body is not None:
        _add_mass(node, solid, made.unit)
        _add_joint(made, node, solid, name, rotation)
        made.bodies[index] = name
    elif animated(solid):
        _add_heavy(node, weight / made.unit)
        made.keyed[index] = name
    else:
        node.mocap = True  # hands may move it; what it weighs means nothing, but what MuJoCo finds by itself it may refuse
        node.mass, node.inertia, node.explicitinertial = 1.0, [1.0, 1.0, 1.0], True
        made.still[index] = name
    _add_geoms(made, node, solids, index)
    return node


def _add_mass(node: Any, solid: Any, unit: float) -> None:
    bulk = bulk_of(solid.shape)
    density = (solid.body.density if solid.body.density is not None else solid.body.mass / bulk.volume) / unit
    i = density * bulk.inertia
    node.mass = density * bulk.volume
    node.ipos = bulk.centre
    node.fullinertia = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    node.explicitinertial = True


def _add_heavy(node: Any, weight: float) -> None:
    """What keyframes move: no gravity, and so much mass that what it meets does not matter."""
    mass = HEAVY * max(weight, 1e-6)
    node.mass, node.ipos, node.fullinertia = mass, [0, 0, 0], [mass, mass, mass, 0, 0, 0]
    node.explicitinertial = True
    node.gravcomp = 1.0
    node.add_freejoint()


def _add_joint(made: Plan, node: Any, solid: Any, name: str, rotation: np.ndarray) -> None:
    body, kit = solid.body, library()
    if body.joint == "free":
        node.add_freejoint()
        return
    if body.joint == "fixed":
        return
    kinds = {"ball": kit.mjtJoint.mjJNT_BALL, "hinge": kit.mjtJoint.mjJNT_HINGE, "slide": kit.mjtJoint.mjJNT_SLIDE}
    joint = node.add_joint(name=name, type=kinds[body.joint])
    joint.pos = rotation.T @ np.asarray(body.anchor)
    joint.damping[0] = body.damping / made.unit
    joint.stiffness[0] = body.stiffness / made.unit
    if body.axis is not None:
        joint.axis = rotation.T @ np.asarray(body.axis)
    if body.range is not None:
        joint.limited = kit.mjtLimited.mjLIMITED_TRUE
        joint.range = np.radians(body.range) if body.joint == "hinge" else np.asarray(body.range)
    if body.drive is not None:
        drive = body.drive
        stiffness, force = (None if value is None else value / made.unit for value in (drive.stiffness, drive.force))
        add_servo(made.spec, name, name, stiffness, force)
        values = np.array([key.value for key in drive.keyframes], float)
        values = np.radians(values) if body.joint == "hinge" else values
        times, smooth = np.array([key.time for key in drive.keyframes]), drive.interpolation == "smooth"
        made.motors.append(MotorPlan(name, name, times, values, smooth, tuned=True, stiffness=stiffness))


def add_servo(spec: Any, name: str, joint: str, stiffness: float | None, force: float | None) -> None:
    """A motor that pulls a joint towards its control; gains left out are chosen when the model is known."""
    kit = library()
    motor = spec.add_actuator(name=name, target=joint, trntype=kit.mjtTrn.mjTRN_JOINT)
    motor.set_to_position(kp=1.0 if stiffness is None else stiffness)
    if force is not None:
        motor.forcelimited = kit.mjtLimited.mjLIMITED_TRUE
        motor.forcerange = [-force, force]


def _add_geoms(made: Plan, node: Any, solids: list[Any], index: int) -> None:
    solid = solids[index]
    if solid.body is not None and not solid.body.collides:
        return
    pieces, note = walls_of(solid.shape) if solid.container else pieces_of(solid.shape, animated(solid))
    if note:
        made.notes.append(f"{called(solids, index)}: {note}")
    friction = min(solid.body.friction, NO_SLIP) if solid.body is not None else 0.0
    for number, piece in enumerate(pieces):
        geom = _geom(made.spec, node, piece, f"#solid/{index}/{number}")
        geom.friction[0] = friction
        geom.solref = [SOFTNESS, 1.0]
        geom.contype, geom.conaffinity = 1, int(solid.body is not None)  # what nothing moves never meets its like


def _geom(spec: Any, node: Any, piece: Piece, name: str) -> Any:
    kit = library()
    kinds = {
        "plane": kit.mjtGeom.mjGEOM_PLANE, "box": kit.mjtGeom.mjGEOM_BOX, "sphere": kit.mjtGeom.mjGEOM_SPHERE,
        "capsule": kit.mjtGeom.mjGEOM_CAPSULE, "cylinder": kit.mjtGeom.mjGEOM_CYLINDER, "hull": kit.mjtGeom.mjGEOM_MESH,
    }  # fmt: skip
    geom = node.add_geom(name=name, type=kinds[piece.kind])
    geom.pos, geom.quat = piece.centre, quaternion(piece.rotation)
    if piece.kind == "hull":
        assert piece.vertices is not None
        spec.add_mesh(name=name, uservert=np.asarray(piece.vertices, float).ravel(),
                      inertia=kit.mjtMeshInertia.mjMESH_INERTIA_CONVEX)  # fmt: skip
        geom.meshname = name
    else:
        geom.size = [*piece.size, *([0.0] * (3 - len(piece.size)))]
    return geom


# --- motors -----------------------------------------------------------------------------------------------------------
def target(times: np.ndarray, values: np.ndarray, smooth: bool, time: float) -> tuple[float, float]:
    """Value and rate of a keyframed target at a moment; "smooth" eases every stretch in and out (3s² − 2s³)."""
    after = int(np.searchsorted(times, time, side="right"))
    if after == 0 or after == len(times):
        return float(values[0 if after == 0 else -1]), 0.0
    length, rise = times[after] - times[after - 1], values[after] - values[after - 1]
    s = (time - times[after - 1]) / length
    if smooth:
        return float(values[after - 1] + s * s * (3 - 2 * s) * rise), float(6 * s * (1 - s) * rise / length)
    return float(values[after - 1] + s * rise), float(rise / length)


def start_velocities(solid: Any, rotation: np.ndarray, centre: np.ndarray) -> list[float]:
    """Velocities of a body's own joint at the start, in MuJoCo's order; ``centre`` of mass from the frame's origin [m]."""
    body = solid.body
    v, w = np.asarray(body.velocity), np.asarray(body.angular_velocity)
    if body.joint == "free":
        return [*(v - np.cross(w, centre)), *(rotation.T @ w)]
    if body.joint == "ball":
        return list(rotation.T @ w)
    if body.joint in ("hinge", "slide"):
        axis = np.asarray(body.axis) / math.hypot(*body.axis)
        return [float(axis @ (w if body.joint == "hinge" else v))]
    return []

