"""The stage a picture is taken on: its axes and unit, the floor, the lights, the camera. As Mitsuba's dictionaries.

Everything is drawn in stage coordinates: x to the camera's right, y up from the floor, z towards the camera, and the height
of the picture (where the camera looks at) as the unit. A thimble and a swimming pool then are the same to the renderer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from viscoil.view.camera import Camera
from viscoil.view.lights import FLOOR, panorama

NEAR, FAR = 2.6, 11.0  # radius of the solid floor, and where it has melted into the backdrop, in picture heights


@dataclass(frozen=True)
class Stage:
    """The world as the camera has it in front of it."""

    origin: np.ndarray  # (3,) [m]: below what the camera looks at, on the floor
    axes: np.ndarray  # (3, 3), rows: right, up, towards the camera
    unit: float  # [m]
    camera: Camera

    @classmethod
    def before(cls, camera: Camera) -> "Stage":
        """The stage in front of ``camera``."""
        up = np.asarray(camera.up, float)
        origin = np.asarray(camera.target, float)
        height = camera.floor if camera.floor is not None else origin @ up - 10 * camera.height_at_target
        return cls(origin - up * (origin @ up - height), camera.stage_axes(), camera.height_at_target, camera)

    def points(self, points: Any) -> np.ndarray:
        """World points [m] on the stage."""
        return (np.asarray(points, float) - self.origin) @ self.axes.T / self.unit

    def directions(self, vectors: Any) -> np.ndarray:
        """World directions on the stage."""
        return np.asarray(vectors, float) @ self.axes.T

    def matrix(self, pose: Any) -> np.ndarray:
        """4x4 matrix from a solid's own frame [m] to the stage."""
        pose = np.asarray(pose, float)
        result = np.eye(4)
        result[:3, :3] = self.axes @ pose[:3, :3] / self.unit
        result[:3, 3] = self.points(pose[:3, 3])
        return result


def sensor(mi: Any, stage: Stage, size: tuple[int, int]) -> dict[str, Any]:
    """The camera. Pixels are averaged without overlap: the denoiser expects noise that neighbours do not share."""
    camera = stage.camera
    position, target = stage.points(camera.position), stage.points(camera.target)
    up = stage.directions(camera.axes()[1])
    return {
        "type": "perspective", "fov": float(camera.field_of_view), "fov_axis": "y", "near_clip": 1e-3, "far_clip": 1e3,
        "to_world": mi.ScalarTransform4f().look_at(origin=position.tolist(), target=target.tolist(), up=up.tolist()),
        "film": {
            "type": "hdrfilm", "width": size[0], "height": size[1], "rfilter": {"type": "box"}, "pixel_format": "rgb",
            "component_format": "float32",
        },
        "sampler": {"type": "independent"},
    }


def lights(mi: Any) -> dict[str, Any]:
    """The studio's panorama."""
    return {"type": "envmap", "bitmap": mi.Bitmap(panorama()), "scale": 1.0}


def floor(mi: Any, stage: Stage) -> dict[str, Any]:
    """Two shapes: the floor nearby, and a ring around it that fades into the backdrop."""
    if stage.camera.floor is None:
        return {}
    paint = {"type": "diffuse", "reflectance": {"type": "rgb", "value": FLOOR.tolist()}}  # as bright as the backdrop
    lying = mi.ScalarTransform4f().rotate([1, 0, 0], -90)
    x = (np.arange(512) + 0.5) / 256 - 1
    away = np.hypot(*np.meshgrid(x, x)) * FAR
    fade = np.clip((FAR - away) / (FAR - NEAR), 0, 1)
    fade = np.where(away < 0.9 * NEAR, 0.0, fade * fade * (3 - 2 * fade)).astype(np.float32)  # hidden below the disc anyway
    opacity = {"type": "bitmap", "bitmap": mi.Bitmap(fade[..., None]), "raw": True}
    return {
        "floor": {"type": "disk", "to_world": lying.scale(NEAR), "bsdf": paint},
        "far_floor": {
            "type": "rectangle", "to_world": mi.ScalarTransform4f().translate([0, -1e-4, 0]) @ lying.scale(FAR),
            "bsdf": {"type": "mask", "opacity": opacity, "nested": paint},
        },
    }
