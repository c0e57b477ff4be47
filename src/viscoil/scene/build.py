"""From a scene to a world that can be stepped."""

from typing import Any

import numpy as np

from viscoil import backend, solvers
from viscoil.errors import SceneError
from viscoil.material import Material, unsupported
from viscoil.scene.bodies_of_particles import ParticleBodies
from viscoil.scene.emitters import Nozzle
from viscoil.scene.fill import fill_shape, jittered
from viscoil.scene.mesh_checks import mesh_notes, thin_notes
from viscoil.scene.robots import robot_notes
from viscoil.solids.boundary import overlaps, sample_surface, sample_volumes
from viscoil.sph.calibration import calibrate
from viscoil.sph.search import team_size
from viscoil.sph.smoothing import NAMES
from viscoil.world import World

TOUCHING = 0.5  # particles of different fluids closer than this (in spacings) overlap


def _fixed(scene: Any) -> list[tuple[str, Any]]:
    """What storage and calibration were made for."""
    params = scene.solver
    domain = scene.domain.model_dump() if scene.domain else None
    kernels = NAMES[params.density_kernel]
    numbers = [("solver.support", params.support), ("solver.margin", params.margin), ("solver.kernels", kernels)]
    bodies = [solid.model_dump() for solid in scene.particle_solid]
    return [("spacing", scene.spacing), ("domain", domain), ("particle_solid", bodies), *numbers]


def _walls(scene: Any) -> list[Any]:
    """What boundary samples were made from."""
    place = {"position", "rotation"}
    return [
        (index, solid.container, solid.shape.model_dump(exclude=place))
        for index, solid in enumerate(scene.every_solid())
        if solid.boundary == "particles"
    ]


def _remembers(material: Material) -> bool:
    """Whether it is elastic at all."""
    return material.maxwell()[1] > 0


def _inside_period(x: np.ndarray, domain: Any) -> np.ndarray:
    """Which points lie in the periodic box: of a wall longer than the period, every image is wanted once."""
    inside = np.ones(len(x), bool)
    for axis, name in enumerate("xyz"):
        if domain is not None and name in domain.periodic:
            inside &= (x[:, axis] >= domain.min[axis]) & (x[:, axis] < domain.max[axis])
    return inside


class Built:
    """A world, its solver, and what else the time loop needs."""

    def __init__(self, scene: Any):
        backend.start()
        self.notes: list[str] = []
        self._rigid: Any = None
        self.materials = scene.used_materials()
        self._fixed, self._walls = _fixed(scene), _walls(scene)
        params = scene.solver
        support = params.support * scene.spacing
        lattice = calibrate(scene.spacing, support, params.density_kernel)
        reach = support * (1 + params.margin)
        self.world = World(scene.spacing, support, lattice, scene.every_solid(), scene.domain, reach)
        self.world.gravity = tuple(float(g) for g in scene.gravity)
        method = solvers.solver_class(params.method)
        self._couple(scene, method)
        self.nozzles = [Nozzle(emitter, scene.spacing, self._pipe(method)) for emitter in scene.emitter]
        self.notes += [*thin_notes(scene), *mesh_notes(scene, support)]
        self.particle_bodies = ParticleBodies(scene, self.world, list(self.materials.values()))
        self._fill(scene)
        self.particle_bodies.release(self.world, 0.0, self.fluid_values)
        self._sample_boundaries(scene)
        self._check_nozzles(scene)
        if self.world.fluid_count == 0 and not scene.emitter:
            raise SceneError(
                "the scene holds no particles: every [[fluid]] is thinner than one spacing or lies inside a solid, "
                "and there is no [[emitter]]"
            )
        self.world.neighbors.team = team_size(self.world.count, bool(scene.emitter), self.world.neighbors.width)
        self.solver = self._made(method, params)
        for name, material in scene.fluid_materials().items():
            self.notes += [f"{name}: {text}" for text in unsupported(material, set(self.solver.honours))]

    def _couple(self, scene: Any, method: Any) -> None:
        """Hands solids with a body to a rigid world; after a change, with the poses and velocities they have."""
        solids = self.world.solids.solids
        wanted = [(index, solid) for index, solid in enumerate(solids) if solid.body is not None]
        if not wanted:
            return
        for index, solid in wanted:
            if not getattr(solid, "two_way", True):  # a robot that fluid does not move
                continue
            where = f"solid.{index}" + (f' ("{solid.name}")' if solid.name else "")
            if not method.couples:
                able = [name for name in solvers.SOLVERS if solvers.solver_class(name).couples]
                raise SceneError(
                    f'{where}: method "{scene.solver.method}" cannot move bodies; expected one of {", ".join(able)}, or a '
                    "solid without body", key=f"solid.{index}.body",
                )  # fmt: skip
            if solid.boundary == "particles" and not method.samples_couple:
                raise SceneError(
                    f'{where}: with method "{scene.solver.method}" a body needs boundary = "distance"; got "particles"',
                    key=f"solid.{index}.boundary",
                )
        from viscoil.solids.rigid import RigidWorld  # only scenes with bodies pay for it

        rigid = RigidWorld(scene, solids, self.world.solids.pose)
        if self._rigid is not None:
            rigid.take_over(self._rigid)
        self._rigid = rigid
        self.notes += [*rigid.notes, *robot_notes(scene)]
        density = next(iter(self.materials.values())).density
        spacing = self.world.spacing
        self.world.solids.couple(rigid, spacing, density * spacing**3, method.erosion * spacing)
        self.world.solids.place(self.world.time, self.world.time)

    def _pipe(self, method: Any) -> float:
        """How far before its opening a nozzle leads particles [m]: as far as those outside can see."""
        return self.world.support if method.leads_nozzles else 0.0

    def _made(self, method: Any, params: Any) -> Any:
        neighbors = self.world.neighbors
        before, neighbors.multiple = neighbors.multiple, 1
        neighbors.allow_split(method.long_lists)
        self.world.material_names = list(self.materials)
        solver = method(params, self.world)
        if neighbors.multiple != before:  # what this method needs, and no longer what the one before did
            self.world.fit_cells()
        present = list(self.present().values())
        self._taken = [material.model_copy() for material in present]
        solver.take_materials(present)
        self.world.evolve(method.evolves)
        self.world.carry(getattr(solver, "carried", {}))
        return solver

    # --- materials that change in time -------------------------------------------------------------------------------
    def present(self) -> dict[str, Material]:
        """The materials as they are now."""
        return {name: material.at(self.world.time) for name, material in self.materials.items()}

    def take_present(self, scene: Any = None) -> None:
        """Hands the materials (of ``scene``, when it was changed) to the solver if one is no longer what it was."""
        if scene is not None:
            self.materials = {name: scene.material_named(name) for name in self.materials}
        present = list(self.present().values())
        if present != self._taken:
            forgetting = any(map(_remembers, self._taken)) and not any(map(_remembers, present))
            if forgetting and "conformation" in self.solver.evolves:  # nobody would relax it, and it would come back later
                self.world.set("conformation", np.tile(np.eye(3, dtype=np.float32), (self.world.count, 1, 1)))
            self._taken = [material.model_copy() for material in present]
            self.solver.take_materials(present)

    @property
    def keyed(self) -> bool:
        """Whether materials have keyframes: then the host looks at them before every step."""
        return any(material.changes for material in self.materials.values())

    def _fill(self, scene: Any) -> None:
        groups = [self._filled(fluid, number) for number, fluid in enumerate(scene.fluid)]
        groups = self._outside_solids(groups, scene.fluid)
        if len(groups) > 1:
            everyone = np.concatenate([x for x, _, _ in groups])
            owner = np.repeat(np.arange(len(groups)), [len(x) for x, _, _ in groups])
            if len(everyone):
                for a, b, pairs in overlaps(everyone, owner, TOUCHING * scene.spacing):
                    raise SceneError(
                        f"fluid.{b} overlaps fluid.{a}: {pairs} pairs of particles are closer than half a spacing; "
                        "move one of them or make it smaller",
                        key=f"fluid.{b}.shape",
                    )
        for x, v, material in groups:
            self.world.add(self.fluid_values(x, v, material))

    def _filled(self, fluid: Any, number: int) -> tuple[np.ndarray, np.ndarray, int]:
        """(positions, velocities, material) of one fluid's particles, solids not looked at."""
        spacing = self.world.spacing
        x = fill_shape(fluid.shape, spacing)
        if len(x) == 0:
            raise SceneError(
                f"fluid.{number}: its {fluid.shape.type} holds no particle at a spacing of {spacing:g} m; "
                "expected a larger shape or a smaller spacing",
                key=f"fluid.{number}.shape",
            )
        v = np.broadcast_to(np.asarray(fluid.velocity, float), x.shape)
        if any(fluid.angular_velocity):
            v = v + np.cross(np.asarray(fluid.angular_velocity, float), x - np.asarray(fluid.shape.position, float))
        return x, v, list(self.materials).index(fluid.material)

    # --- changes while it runs ---------------------------------------------------------------------------------------
    def update(self, scene: Any) -> None:
        """Takes over what was changed in the scene: gravity, solids, emitters, materials, solver parameters."""
        world = self.world
        for (what, before), (_, now) in zip(self._fixed, _fixed(scene), strict=True):
            if before != now:
                raise SceneError(
                    f"{what} cannot be changed while a simulation runs (it was {before}, now {now}); "
                    "make a new Simulation instead",
                    key=what,
                )
        world.gravity = tuple(float(g) for g in scene.gravity)
        self.materials = {name: scene.material_named(name) for name in [*self.materials, *scene.used_materials()]}
        world.material_names = list(self.materials)
        if world.fluid_count:
            led = np.where(world.get("inverse_mass") < 0, -1, 1)
            masses = led * self._inverse_masses()[world.get("material")]
            world.set("inverse_mass", np.where(world.get("solid") < 0, masses, 0))
            world.learn_uniform()
        capacity = world.capacity
        world.solids.solids = scene.every_solid()
        world.solids.rebuild(world.time)
        self._couple(scene, solvers.solver_class(scene.solver.method))
        if self._walls != (walls := _walls(scene)):
            self._walls = walls
            if world.boundary_count:
                world.keep_only(world.get("solid") < 0)
            self._sample_boundaries(scene)
        known = {id(nozzle.emitter): nozzle for nozzle in self.nozzles}
        method = solvers.solver_class(scene.solver.method)
        pipe = self._pipe(method)
        self.nozzles = [known.get(id(emitter)) or Nozzle(emitter, scene.spacing, pipe) for emitter in scene.emitter]
        for nozzle in self.nozzles:
            nozzle.change(world.time)
        self._check_nozzles(scene)
        if type(self.solver) is method:
            self.solver.params = scene.solver
            self.take_present()
            if world.capacity != capacity:
                self.solver.resize(world.capacity)
        else:
            self.solver = self._made(method, scene.solver)

    def add_fluid(self, fluid: Any, number: int) -> None:
        """Fills a fluid into the running world; refuses places that are taken."""
        ((x, v, material),) = self._outside_solids([self._filled(fluid, number)], [fluid])
        present = self.world.get("position")[self.world.fluid_order()]
        owner = np.repeat([0, 1], [len(present), len(x)])
        for *_, pairs in overlaps(np.concatenate([present, x]), owner, TOUCHING * self.world.spacing):
            raise SceneError(
                f"fluid.{number} overlaps fluid that is already there: {pairs} pairs of particles are closer than half a "
                "spacing; move it or make it smaller",
                key=f"fluid.{number}.shape",
            )
        if self.world.add(self.fluid_values(x, v, material)):
            self.solver.resize(self.world.capacity)

    def _inverse_masses(self) -> np.ndarray:
        """By material, relative to the first one."""
        densities = np.array([m.density for m in self.materials.values()])
        return densities[0] / densities

    def _outside_solids(self, groups: list[Any], fluids: list[Any]) -> list[Any]:
        """Fluid does not start inside solids: a full bath with a figure in it is written as box and figure.

        Looked at before particles are jittered, so that disorder beside a wall costs none of them.
        """
        world, clear = self.world, 0.45 * self.world.spacing
        result, dropped = [], 0
        for (x, v, material), fluid in zip(groups, fluids, strict=True):
            free = self.particle_bodies.around(x, world.spacing)
            for index in range(len(world.solids)):
                free &= world.solids.distance(index, x) > clear
            if not free.all():  # else no copies: they may be large
                dropped += int((~free).sum())
                x, v = x[free], v[free]
            result.append((jittered(x, fluid.jitter, world.spacing, fluid.seed), v, material))
        if dropped:
            self.notes.append(f"{dropped} particles would have started inside solids and were left out")
        return result

    def fluid_values(self, x: np.ndarray, v: np.ndarray, material: int) -> dict[str, np.ndarray]:
        """Fields of new fluid particles of one material (index)."""
        n = len(x)
        return {
            "position": x,
            "velocity": v,
            "material": np.broadcast_to(material, n),
            "volume": np.broadcast_to(self.world.lattice.volume, n),
            "inverse_mass": np.broadcast_to(self._inverse_masses()[material], n),
        }

    def _sample_boundaries(self, scene: Any) -> None:
        for index, solid in enumerate(scene.every_solid()):
            if solid.boundary != "particles":
                continue
            rest = sample_surface(solid.shape, scene.spacing, solid.container)
            gain = scene.solver.sample_gain * self.world.lattice.sample_factor
            volume = gain * sample_volumes(rest, self.world.support, self.world.lattice.kernel)
            rotation, position = self.world.solids.pose(index, self.world.time)
            placed = rest @ rotation.T + position
            once = _inside_period(placed, scene.domain)
            rest, placed, volume = rest[once], placed[once], volume[once]
            n = len(rest)
            self.world.add(
                {
                    "position": placed,
                    "rest": rest,
                    "solid": np.full(n, index),
                    "material": np.full(n, -1),
                    "volume": volume,
                    "inverse_mass": np.zeros(n),
                }
            )

    def _note_blocked_nozzles(self) -> None:
        """Says which nozzles open inside a solid that stands still: nothing of what they pour gets where it should."""
        solids = self.world.solids
        for number, nozzle in enumerate(self.nozzles):
            rotation, place = nozzle.pose(nozzle.emitter.start)
            opening = nozzle.section @ rotation.T + place
            for index, solid in enumerate(solids.solids):
                if not solid.motion and solid.body is None and (solids.distance(index, opening) < 0).all():
                    name = f' ("{solid.name}")' if solid.name else ""
                    self.notes.append(f"emitter.{number} opens inside solid.{index}{name}; expected some spacings away from it")

    def _check_nozzles(self, scene: Any) -> None:
        for number, nozzle in enumerate(self.nozzles):
            if len(nozzle.section) == 0:
                raise SceneError(
                    f"emitter.{number}: its opening is smaller than one particle spacing ({scene.spacing:g} m); "
                    "expected a larger shape or a smaller spacing",
                    key=f"emitter.{number}.shape",
                )
        self._note_blocked_nozzles()
        still = [(k, n) for k, n in enumerate(self.nozzles) if not n.emitter.motion]
        if len(still) < 2:
            return
        places = [n.section @ n.pose(n.emitter.start)[0].T + n.pose(n.emitter.start)[1] for _, n in still]
        owner = np.repeat([k for k, _ in still], [len(x) for x in places])
        for a, b, _ in overlaps(np.concatenate(places), owner, TOUCHING * scene.spacing):
            first, second = scene.emitter[a], scene.emitter[b]
            if first.start < second.end and second.start < first.end:
                raise SceneError(
                    f"emitter.{b} overlaps emitter.{a}: their openings share space while both are switched on; "
                    "move one of them or let them run one after the other",
                    key=f"emitter.{b}.position",
                )

