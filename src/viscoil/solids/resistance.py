"""How much motors, springs, dampers and contacts hold against a push within a step.

A push at the start of a step moves a free body by dt M⁻¹ P. Where something holds, it moves less, and fluid that reckoned with
the free way would find itself inside the body when the step is done. So mobilities are those of M + R:

    R = dt D + dt² K  of joints and motors (backward Euler),      R = c m  along every contact that pushes, c = dt b + dt² k

with MuJoCo's own b and k of the contact and the mass m that it sees, reduced where the contact itself is soft. What bodies
receive is not changed by this, only where they are expected at the end of the step.
"""

from typing import Any

import numpy as np

from viscoil.solids.mujoco_kit import library


def resistance(model: Any, data: Any, mass: np.ndarray, dt: float) -> np.ndarray:
    """R (nv, nv) after forward dynamics at the start of a step; ``mass``: M (nv, nv)."""
    held = np.diag(_joints(model, dt))
    return held + _contacts(model, data, mass, dt) if data.nefc else held


def _joints(model: Any, dt: float) -> np.ndarray:
    """dt D + dt² K by degree of freedom, of joints and of motors on them."""
    kit = library()
    held = dt * _first(model.dof_damping).copy()
    for joint in range(model.njnt):
        if model.jnt_type[joint] in (kit.mjtJoint.mjJNT_HINGE, kit.mjtJoint.mjJNT_SLIDE):
            held[model.jnt_dofadr[joint]] += dt**2 * _first(model.jnt_stiffness)[joint]
    for motor in range(model.nu):
        affine = model.actuator_biastype[motor] == kit.mjtBias.mjBIAS_AFFINE
        if affine and model.actuator_trntype[motor] == kit.mjtTrn.mjTRN_JOINT:
            joint = int(model.actuator_trnid[motor, 0])
            stiffness, damping = (max(-float(b), 0.0) for b in model.actuator_biasprm[motor, 1:3])
            held[model.jnt_dofadr[joint]] += model.actuator_gear[motor, 0] ** 2 * (dt**2 * stiffness + dt * damping)
    return held


def _first(values: np.ndarray) -> np.ndarray:
    """Coefficients of first order, where a model has more of them."""
    return values if values.ndim == 1 else values[:, 0]


def _contacts(model: Any, data: Any, mass: np.ndarray, dt: float) -> np.ndarray:
    kit = library()
    state = np.asarray(data.efc_state)
    active = state == int(kit.mjtConstraintState.mjCNSTRSTATE_QUADRATIC)
    sliding = state == int(kit.mjtConstraintState.mjCNSTRSTATE_CONE)
    first = np.diff(np.asarray(data.efc_id), prepend=-1) != 0  # of a sliding contact only the row along the normal holds
    active |= sliding & first
    if not active.any():
        return np.zeros_like(mass)
    rows = _dense(model, data)[active]
    give = np.einsum("ri,ri->r", rows, np.linalg.solve(mass, rows.T).T)  # 1/m along each row
    stiff = np.asarray(data.efc_D)[active]
    spring, damper = np.asarray(data.efc_KBIP).reshape(-1, 4)[active, :2].T
    weight = (dt * damper + dt**2 * spring) * stiff / (1 + stiff * give)
    return np.einsum("ri,r,rj->ij", rows, weight, rows)


def _dense(model: Any, data: Any) -> np.ndarray:
    """Rows of the constraints' Jacobian."""
    kit = library()
    if not kit.mj_isSparse(model):
        return np.asarray(data.efc_J).reshape(data.nefc, model.nv)
    full = np.zeros((data.nefc, model.nv))
    kit.mju_sparse2dense(full, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return full
