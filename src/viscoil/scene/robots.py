"""Links of robots as solids of the scene: what fluid meets, pictures show and a rigid world moves."""

from typing import Any

from pydantic import PrivateAttr

from viscoil.scene.bodies import Body, Robot
from viscoil.scene.parts import Solid
from viscoil.solids.drag import degrees_of


class LinkSolid(Solid):
    """A link of a robot; its pose and mass are the file's."""

    _link: str = PrivateAttr("")
    _two_way: bool = PrivateAttr(True)

    @property
    def link(self) -> str:
        """Its body's name in the rigid world."""
        return self._link

    @property
    def two_way(self) -> bool:
        """Whether fluid moves it."""
        return self._two_way


def robot_solids(scene: Any) -> list[Solid]:
    """The links of all robots of a scene, as they start; the same objects as long as a robot is not changed."""
    return [solid for number, robot in enumerate(scene.robot) for solid in _solids(robot, number, scene.up)]


def robot_notes(scene: Any) -> list[str]:
    """What could not be taken over from the files of the robots."""
    robot_solids(scene)
    return [note for robot in scene.robot for note in robot._made[2]]


def _solids(robot: Robot, number: int, up: str) -> list[Solid]:
    key = (robot.model_dump_json(), number, up)
    if robot._made is None or robot._made[0] != key:
        from viscoil.solids.robots import links  # only scenes with robots pay for it

        found, notes = links(robot, number, up)
        robot._made = key, [_solid(robot, link) for link in found], notes
    return robot._made[1]


def _solid(robot: Robot, link: Any) -> LinkSolid:
    place = {"position": tuple(float(x) for x in link.position), "rotation": degrees_of(link.rotation)}
    solid = LinkSolid(
        name=link.name, shape={**link.shape, **place}, friction=robot.friction, boundary=robot.boundary,
        colour=link.colour, body=Body(mass=max(link.mass, 1e-9)) if link.moves else None,
    )  # fmt: skip
    solid._link, solid._two_way = link.name, robot.two_way
    return solid
