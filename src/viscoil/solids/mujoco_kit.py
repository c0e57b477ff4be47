"""The one door to MuJoCo: loaded when a scene has bodies or robots, with a sentence that names the package otherwise."""

import warnings
from typing import Any

import numpy as np

from viscoil.extras import require


def library() -> Any:
    """The module mujoco; its warnings go nowhere instead of into a file in the user's folder: what matters is checked."""
    kit = require("mujoco", "to move rigid bodies")
    if kit.get_mju_user_warning() is None:
        kit.set_mju_user_warning(_unheard)
    return kit


def _unheard(text: str) -> None:
    """Positions are looked at after every step, and files of robots before they are used."""


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation matrix."""
    result = np.empty(4)
    library().mju_mat2Quat(result, np.ascontiguousarray(rotation, float).ravel())
    return result


def rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """Axis times angle [rad] of a rotation matrix."""
    vector = np.empty(3)
    library().mju_quat2Vel(vector, quaternion(rotation), 1.0)
    return vector


def compiled(spec: Any) -> Any:
    """The model; that a robot's file has its own gravity or time step, which do not count here, is no news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Attach conflict")
        return spec.compile()
