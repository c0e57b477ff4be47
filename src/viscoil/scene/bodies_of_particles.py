"""Particle solids of a scene on their way into a world: filled, placed, and added when their time has come."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from viscoil.errors import SceneError
from viscoil.scene.fill import fill_shape
from viscoil.solids.assembly import rotation_matrix, signed_distance
from viscoil.solids.clusters import RIGID, SOFT, ClusterSet, Member


class ParticleBodies:
    """The particle solids of a scene, and which of them are still to come."""

    def __init__(self, scene: Any, world: Any, materials: list[Any]):
        """Sets up the world's clusters; materials: all of the scene, those of particle solids last."""
        self._solids = list(scene.particle_solid)
        self._material = len(materials) - len(self._solids)  # of the first one
        self._clusters = world.clusters
        if not self._solids:
            return
        members = []
        for number, solid in enumerate(self._solids):
            rest = self._places(solid, world.spacing, number)
            shear, bulk = solid.moduli()
            kind = RIGID if solid.kind == "rigid" else SOFT
            mobility = materials[0].density / solid.density
            members.append(Member(kind, rest, solid.stickiness, mobility, shear, bulk, solid.damping_time or 0.0))
        self._clusters = ClusterSet(members, world.spacing, materials[0].density * world.spacing**3)
        world.clusters = self._clusters

    @staticmethod
    def _places(solid: Any, spacing: float, number: int) -> np.ndarray:
        """Lattice places in the shape's own frame [m]."""
        found = fill_shape(solid.shape.model_copy(update={"position": (0.0,) * 3, "rotation": (0.0,) * 3}), spacing)
        if len(found) == 0:
            raise SceneError(
                f"particle_solid.{number}: its {solid.shape.type} holds no particle at a spacing of {spacing:g} m; "
                "expected a larger shape or a smaller spacing",
                key=f"particle_solid.{number}.shape",
            )
        return found

    def due(self) -> float:
        """When the next one appears [s]; infinity after the last."""
        waiting = zip(self._solids, self._clusters.first_ids, strict=True)
        return min((solid.start - 1e-9 for solid, first in waiting if first < 0), default=math.inf)

    def release(self, world: Any, now: float, values: Callable[..., dict[str, np.ndarray]]) -> bool:
        """Adds what starts by ``now`` [s]; ``values`` makes fields of new particles. True when storage grew."""
        grew = False
        for number, solid in enumerate(self._solids):
            if world.clusters.first_ids[number] >= 0 or solid.start - 1e-9 > now:
                continue
            rest = world.clusters.members[number].rest
            turned = rest @ rotation_matrix(solid.shape.rotation).T
            centre = turned.mean(axis=0)
            x = (turned + np.asarray(solid.shape.position, float)).astype(np.float32)
            v = np.asarray(solid.velocity, float) + np.cross(np.asarray(solid.angular_velocity, float), turned - centre)
            first = world.next_id
            fields = values(x, v, self._material + number)
            grew |= world.add({**fields, "rest": rest, "cluster": np.full(len(x), number)})
            world.clusters.begin(number, first)
        return grew

    def around(self, x: np.ndarray, spacing: float) -> np.ndarray:
        """Which of the points x are clear of everything that is there from the start."""
        free = np.ones(len(x), bool)
        for solid in self._solids:
            if solid.start == 0 and solid.shape.type != "mesh":
                free &= signed_distance(solid.shape, x) > 0.45 * spacing
        return free
