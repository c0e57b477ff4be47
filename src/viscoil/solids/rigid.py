"""Rigid bodies on the host: MuJoCo moves them, fluid pushes them by one impulse per step.

A step of the fluid first asks :meth:`RigidWorld.predict` where bodies would go without fluid and how easily they give way,
and then tells :meth:`RigidWorld.commit` what push they received. The push is a jump of velocities at the start of the step,
q̇ += M⁻¹ Σ Jᵀ P, so that joints pass it on, and what predict said about a push is what commit does with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.errors import SimulationFailed
from viscoil.solids.assembly import keyframed, path_of, rotation_matrix
from viscoil.solids.mjcf import MotorPlan, called, plan, start_velocities, target
from viscoil.solids.mujoco_kit import compiled, library, quaternion, rotation_vector
from viscoil.solids.resistance import resistance
from viscoil.solids.robots import attach, take_start

LONGEST = 0.001  # of MuJoCo's own steps while something touches or is jointed [s]
LARGEST_TURN = 0.02  # of a body in one of those steps [rad]: Euler's equations are integrated explicitly
MOST_STEPS = 1000  # of MuJoCo in one step of the fluid
FASTEST = 1e6  # of a body, m/s or rad/s: nothing faster is a solution
SERVO_RATE = 100.0  # natural frequency of motors whose stiffness is not given [rad/s]


def _short_steps(dt: float) -> int:
    """MuJoCo's steps in one of the fluid while something touches or is jointed."""
    return min(MOST_STEPS, max(1, math.ceil(dt / LONGEST - 1e-9)))


@dataclass(frozen=True)
class Prediction:
    """Where bodies go in a step without fluid. float64, SI, the scene's axes."""

    rotation: np.ndarray  # (B, 3, 3) of the solid's frame at the end
    position: np.ndarray  # (B, 3) of its origin at the end
    centre0: np.ndarray  # (B, 3) centre of mass at the start
    twist: np.ndarray  # (B, 6) mean velocity of the centre of mass and mean angular velocity, start to end
    inverse: np.ndarray  # (B, 6, 6) W = J (M + R)⁻¹ Jᵀ: twist per impulse (P, L about the centre of mass); R: see resistance


@dataclass(frozen=True)
class _Motor:
    """A keyframed control."""

    actuator: int
    times: np.ndarray
    values: np.ndarray  # SI, radians
    smooth: bool
    lead: float  # how much of the target's rate is added, so that a damped motor does not lag [s]


class RigidWorld:
    """All rigid bodies of a scene."""

    def __init__(
        self, scene: Any, solids: list[Any], pose: Callable[[int, float], tuple[np.ndarray, np.ndarray]] | None = None
    ):
        """``pose``: rotation and position of a solid that keyframes move, at a moment; left out: from its keyframes."""
        kit = self._kit = library()
        self._solids = list(solids)
        self._pose = pose or self._keyframed_pose
        made = plan(scene, self._solids)
        for number, robot in enumerate(getattr(scene, "robot", ())):
            attach(made, robot, number, scene.up)
        self.notes, self._unit = made.notes, made.unit
        self._model = model = compiled(made.spec)
        self._data = kit.MjData(model)
        body = lambda name: kit.mj_name2id(model, kit.mjtObj.mjOBJ_BODY, name)  # noqa: E731
        self.solid = list(made.bodies)
        self.names = [called(self._solids, index) for index in self.solid]
        self._body = np.array([body(made.bodies[index]) for index in self.solid], int)
        keyed = {index: int(model.body_jntadr[body(name)]) for index, name in made.keyed.items()}
        self._keyed = [(i, int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])) for i, j in keyed.items()]
        self._still = [(index, int(model.body_mocapid[body(name)])) for index, name in made.still.items()]
        roots = {body(name) for name in made.keyed.values()}
        self._carry = any(int(model.body_rootid[b]) in roots for b in self._body)
        self.masses = made.unit * model.body_mass[self._body]
        self.hearts = model.body_ipos[self._body].copy()  # (B, 3) centre of mass in the solid's frame [m]
        self.follows = np.array([getattr(solids[i], "two_way", True) for i in self.solid], bool)  # whether fluid moves it
        self._jointed = any(j != kit.mjtJoint.mjJNT_FREE for j in model.jnt_type)
        self._spec_state = kit.mjtState.mjSTATE_INTEGRATION
        take_start(model, self._data, [motor for motor in made.motors if motor.name.split("/")[0] != "#solid"])
        self._motors = self._tune(made.motors)
        self._start()

    # --- setting up ---------------------------------------------------------------------------------------------------
    def _keyframed_pose(self, index: int, time: float) -> tuple[np.ndarray, np.ndarray]:
        solid = self._solids[index]
        if path := path_of(solid):
            return path.pose(time)
        moved, turned = keyframed(solid.motion, solid.interpolation, time)
        turn = rotation_matrix(turned) @ rotation_matrix(solid.shape.rotation)
        return turn, np.asarray(solid.shape.position, float) + moved

    def _tune(self, plans: list[MotorPlan]) -> list[_Motor]:
        """Gains of motors that are ours: critically damped against the inertia they have at the start."""
        kit, model, data = self._kit, self._model, self._data
        kit.mj_forward(model, data)
        full = np.empty((model.nv, model.nv))
        kit.mj_fullM(model, data, full)
        found = []
        for motor in plans:
            row, lead = model.actuator(motor.name).id, 0.0
            if motor.tuned:
                dof = model.joint(motor.joint).dofadr[0]
                stiffness = motor.stiffness or full[dof, dof] * SERVO_RATE**2
                damping = 2 * math.sqrt(stiffness * full[dof, dof])
                model.actuator_gainprm[row, 0] = stiffness
                model.actuator_biasprm[row, 1:3] = -stiffness, -damping
                lead = damping / stiffness
            found.append(_Motor(row, motor.times, motor.values, motor.smooth, lead))
        return found

    def _start(self) -> None:
        """Velocities at the start, and everything in its place."""
        kit, model, data = self._kit, self._model, self._data
        for index, body in zip(self.solid, self._body, strict=True):
            solid = self._solids[index]
            if getattr(solid, "link", None) is not None or model.body_jntnum[body] == 0:
                continue
            rotation = data.xmat[body].reshape(3, 3)
            velocities = start_velocities(solid, rotation, data.xipos[body] - data.xpos[body])
            begin = model.body_dofadr[body]
            data.qvel[begin : begin + len(velocities)] = velocities
        self._put_keyed(0.0, 0.0)
        self._control(0.0)
        kit.mj_forward(model, data)

    # --- what it looks like -------------------------------------------------------------------------------------------
    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Rotation matrices (B, 3, 3) and positions (B, 3) [m] of the solids' frames now."""
        self._kit.mj_kinematics(self._model, self._data)
        return self._frames()

    def _frames(self) -> tuple[np.ndarray, np.ndarray]:
        return self._data.xmat[self._body].reshape(-1, 3, 3).copy(), self._data.xpos[self._body].copy()

    def twists(self) -> np.ndarray:
        """Velocity of the centre of mass [m/s] and angular velocity [rad/s] of every body now, (B, 6)."""
        self._kit.mj_kinematics(self._model, self._data)
        self._kit.mj_comPos(self._model, self._data)
        return self._jacobians() @ self._data.qvel

    def centres(self) -> np.ndarray:
        """Centres of mass now (B, 3) [m]."""
        self._kit.mj_kinematics(self._model, self._data)
        return self._data.xipos[self._body].copy()

    def _jacobians(self) -> np.ndarray:
        """(B, 6, nv): twist at the centre of mass by joint velocities."""
        kit, model, data = self._kit, self._model, self._data
        result = np.zeros((len(self._body), 6, model.nv))
        for rows, body in zip(result, self._body, strict=True):
            kit.mj_jacBodyCom(model, data, rows[:3], rows[3:], int(body))
        return result

    # --- a step -------------------------------------------------------------------------------------------------------
    def predict(self, time: float, dt: float) -> Prediction:
        """A step of dt [s] from ``time`` without fluid; the state is as before afterwards."""
        before = self.state()
        # Contacts are as stiff as MuJoCo's step allows, and its step is no part of the state: that of contacts, not the last.
        self._model.opt.timestep = dt / _short_steps(dt)
        self._kit.mj_forward(self._model, self._data)
        rotation0, _ = self._frames()
        centre0 = self._data.xipos[self._body].copy()
        inverse = self._mobility(dt)
        self.restore(before)
        self._advance(time, dt)
        rotation, position = self.poses()
        moved = self._data.xipos[self._body] - centre0
        turned = np.array([rotation_vector(a @ b.T) for a, b in zip(rotation, rotation0, strict=True)]).reshape(-1, 3)
        self.restore(before)
        return Prediction(rotation, position, centre0, np.concatenate([moved, turned], 1) / dt, inverse)

    def commit(self, impulse: np.ndarray, time: float, dt: float) -> None:
        """Advances by dt [s] from ``time`` after fluid gave every body an impulse (P [N s], L [N m s] about its centre)."""
        impulse = np.asarray(impulse, float).reshape(len(self._body), 6) * self.follows[:, None]
        if np.any(impulse):
            self._positions()
            push = np.einsum("bij,bi->j", self._jacobians(), impulse / self._unit)
            change = np.zeros((1, self._model.nv))
            self._kit.mj_solveM(self._model, self._data, change, push[None])
            self._data.qvel += change[0]
            if not np.abs(self._data.qvel).max() < FASTEST:
                worst = int(np.nan_to_num(np.abs(impulse), nan=np.inf).max(1).argmax())
                raise SimulationFailed(
                    f"{self.names[worst]}: fluid pushed it beyond all measure ({np.abs(impulse[worst]).max():.3g} N s)",
                    time=time, cause="steps that are too long for the forces, or a body far too light for the fluid",
                )  # fmt: skip
        self._advance(time, dt)
        if not np.isfinite(self._data.qpos).all():
            raise SimulationFailed("rigid bodies: positions are no longer numbers", time=time, cause="joints or contacts that "
                                   "contradict each other, or motors that are too stiff")  # fmt: skip

    def _positions(self) -> None:
        """Everything that follows from positions alone, the mass matrix among it."""
        self._kit.mj_fwdPosition(self._model, self._data)

    def _mobility(self, dt: float) -> np.ndarray:
        """W: what an impulse at the start changes of the mean twist over dt, with all that holds against it meanwhile."""
        jacobian = self._jacobians()
        rows = np.ascontiguousarray(jacobian.reshape(-1, self._model.nv))
        if self._jointed or self._data.nefc:
            full = np.empty((self._model.nv, self._model.nv))
            self._kit.mj_fullM(self._model, self._data, full)
            solved = np.linalg.solve(full + resistance(self._model, self._data, full, dt), rows.T).T
        else:  # bodies that fly freely know nothing of each other
            solved = np.zeros_like(rows)
            self._kit.mj_solveM(self._model, self._data, solved, rows)
        inverse = np.einsum("bik,bjk->bij", jacobian, solved.reshape(jacobian.shape)) / self._unit
        return inverse * self.follows[:, None, None]

    def _advance(self, time: float, dt: float) -> None:
        """MuJoCo's steps over dt. One, as the fluid's own, while bodies fly freely; short ones where they touch."""
        turning = float(np.abs(self.twists()[:, 3:]).max(initial=0.0))
        spins = min(MOST_STEPS, max(1, math.ceil(turning * dt / LARGEST_TURN)))
        short = max(spins, _short_steps(dt))
        if self._jointed or short == spins:
            return self._steps(time, dt, short)
        before = self.state()
        self._kit.mj_fwdPosition(self._model, self._data)
        if self._data.ncon == 0:
            self._steps(time, dt, spins)
            self._kit.mj_fwdPosition(self._model, self._data)
        if self._data.ncon:
            self.restore(before)
            self._steps(time, dt, short)
        return None

    def _steps(self, time: float, dt: float, number: int) -> None:
        kit, model, data = self._kit, self._model, self._data
        model.opt.timestep = dt / number
        self._put_still(time + dt)
        for k in range(number):
            now = time + dt * k / number
            data.time = now
            self._put_keyed(now, now + dt / number)
            self._control(now + dt / number)
            kit.mj_step(model, data)
        self._put_keyed(time + dt, time + dt)

    def _put_keyed(self, now: float, then: float) -> None:
        """What keyframes move: where it is, with the velocity that takes it to where it will be."""
        data = self._data
        before = data.qvel.copy()
        for index, place, way in self._keyed:
            rotation, position = self._pose(index, now)
            data.qpos[place : place + 3] = position
            self._kit.mju_mat2Quat(data.qpos[place + 3 : place + 7], np.ascontiguousarray(rotation).ravel())
            if then > now:
                turn, shift = self._pose(index, then)
                data.qvel[way : way + 3] = (shift - position) / (then - now)
                data.qvel[way + 3 : way + 6] = rotation.T @ rotation_vector(turn @ rotation.T) / (then - now)
        if self._carry and np.any(data.qvel != before):
            self._leave_behind(data.qvel - before)

    def _put_still(self, time: float) -> None:
        """What stands still, unless hands are moving it."""
        for index, row in self._still:
            rotation, position = self._pose(index, time)
            self._data.mocap_pos[row], self._data.mocap_quat[row] = position, quaternion(rotation)

    def _leave_behind(self, jump: np.ndarray) -> None:
        """Bodies that hang from what just changed its velocity by a jump keep their momentum along their own joints.

        M q̇ stays as it was in all rows but those that the keyframes decide.
        """
        driven = np.zeros(self._model.nv, bool)
        for *_, way in self._keyed:
            driven[way : way + 6] = True
        self._positions()
        full = np.empty((self._model.nv, self._model.nv))
        self._kit.mj_fullM(self._model, self._data, full)
        own = full[np.ix_(~driven, ~driven)]
        self._data.qvel[~driven] -= np.linalg.solve(own, full[np.ix_(~driven, driven)] @ jump[driven])

    def _control(self, time: float) -> None:
        for motor in self._motors:
            value, rate = target(motor.times, motor.values, motor.smooth, time)
            self._data.ctrl[motor.actuator] = value + motor.lead * rate

    # --- changes while it runs ----------------------------------------------------------------------------------------
    def take_over(self, old: "RigidWorld") -> None:
        """After the scene was changed: bodies of solids that were there before go on as they were."""
        kit, model, before = self._kit, self._model, old._model
        known = {id(solid): index for index, solid in enumerate(old._solids)}
        twins = {f"#solid/{new}": f"#solid/{known[id(s)]}" for new, s in enumerate(self._solids) if id(s) in known}
        for body in range(1, model.nbody):
            name = model.body(body).name
            other = kit.mj_name2id(before, kit.mjtObj.mjOBJ_BODY, twins.get(name, "" if name.startswith("#solid/") else name))
            if other < 0 or model.body_jntnum[body] != before.body_jntnum[other]:
                continue
            for k in range(model.body_jntnum[body]):
                self._take_joint(old, int(model.body_jntadr[body]) + k, int(before.body_jntadr[other]) + k)
        kit.mj_forward(model, self._data)

    def _take_joint(self, old: "RigidWorld", new: int, was: int) -> None:
        model, before = self._model, old._model
        if model.jnt_type[new] != before.jnt_type[was]:
            return
        places, ways = ((7, 6), (4, 3), (1, 1), (1, 1))[int(model.jnt_type[new])]  # free, ball, slide, hinge
        a, b = int(model.jnt_qposadr[new]), int(before.jnt_qposadr[was])
        self._data.qpos[a : a + places] = old._data.qpos[b : b + places]
        a, b = int(model.jnt_dofadr[new]), int(before.jnt_dofadr[was])
        self._data.qvel[a : a + ways] = old._data.qvel[b : b + ways]
        self._data.qacc_warmstart[a : a + ways] = old._data.qacc_warmstart[b : b + ways]

    # --- restart ------------------------------------------------------------------------------------------------------
    def state(self) -> np.ndarray:
        """Everything the future depends on: positions, velocities, activations, controls, the solver's first guess."""
        result = np.empty(self._kit.mj_stateSize(self._model, self._spec_state))
        self._kit.mj_getState(self._model, self._data, result, self._spec_state)
        return result

    def restore(self, state: np.ndarray) -> None:
        """Back to what :meth:`state` returned, bit for bit."""
        self._kit.mj_setState(self._model, self._data, np.asarray(state, float), self._spec_state)
