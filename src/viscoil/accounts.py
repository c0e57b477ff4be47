"""The accounts of a frame: densities of the particles, and one row of numbers about fluid and bodies."""

from typing import Any

import numpy as np
import quadrants as qd

from viscoil.constraints.stress import StressField
from viscoil.constraints.walls import walls_kernel
from viscoil.measure import Measure, mean
from viscoil.particles import FIELDS, Floats, Particles, allocate_array, kind_name
from viscoil.sph.operators import density_kernel
from viscoil.sph.volume import VolumeEstimate
from viscoil.transfer import write

FULL = 0.8  # share of the lattice's neighbours from which a particle counts as inside the fluid


@qd.kernel(fastcache=True)
def _store_density(p: Particles, n: qd.i32, rest: Floats, ratio: Floats):
    """ρ_i = (ρ_i/ρ₀) ρ₀ of the particle's material."""
    for i in range(n):
        if p.material[i] >= 0:
            p.density[i] = ratio[i] * rest[p.material[i]]


class Accounts:
    """Memory and sums for one world; made anew when its storage or its materials change."""

    def __init__(self, world: Any, rest_densities: list[float], up: str, volume: str):
        """rest_densities by material [kg/m³]; volume: which volumes are wanted, as in [output]."""
        self._world, self._up, self._wanted = world, up, volume
        capacity = max(world.capacity, 1)
        self._ratio = allocate_array(qd.f32, capacity)
        self._wall, self._wall_gradient = (world.spare[kind_name(FIELDS[name])] for name in ("volume", "velocity"))
        self._totals = Measure(capacity)
        self._volume: VolumeEstimate | None = None  # made when it is asked for
        self._stress: StressField | None = None  # the same
        self._rest = allocate_array(qd.f32, len(rest_densities))
        write(self._rest, rest_densities)

    def row(self) -> dict[str, Any]:
        """Densities and the numbers of the present moment, NaN for means and extremes of no particles.

        Also brings cells into order for the next frame.
        """
        world = self._world
        world.fit_cells()
        if world.solids.bodies:  # where they are, not where the fluid's last iteration saw them
            world.solids.place(world.time, world.time)
        if world.count:
            world.neighbors.find_all(world.particles.position, world.particles, world.count)
            self._find_walls(world.particles.position)
            density_kernel(
                world.particles, world.particles.position, world.count, world.neighbors.list, world.neighbors.torus,
                world.support, self._wall, self._ratio, world.lattice.kernel, world.neighbors.periodic,
            )  # fmt: skip
            _store_density(world.particles, world.count, self._rest, self._ratio)
        return self._fluid() | self._bodies() | self._volumes()

    def stress(self, materials: list[Any], dt: float) -> np.ndarray:
        """Extra stress of all particles (n, 3, 3) [Pa], in array order; ``dt``: length of the last step [s]."""
        self._stress = self._stress or StressField(self._world.capacity)
        return self._stress.find(self._world, materials, dt)

    def _find_walls(self, places: Any) -> None:
        """Density of the walls where particles are, or would be, at ``places``."""
        world = self._world
        walls_kernel(
            world.particles, places, world.count, world.support, len(world.solids), world.solids.device, world.solids.parts,
            self._wall, self._wall_gradient, world.lattice.kernel,
        )  # fmt: skip

    def _fluid(self) -> dict[str, Any]:
        world = self._world
        total = self._totals.totals(world, self._ratio, self._rest, FULL * world.lattice.neighbors)
        low = np.array([-total[f"minus_low_{axis}"] for axis in "xyz"])
        high = np.array([total[f"high_{axis}"] for axis in "xyz"])
        return {
            "particles": int(total["particles"]),
            "density_mean": mean(total["ratio_inside"], total["inside"]),
            "density_max": total["ratio"],
            "compression": mean(total["excess"], total["particles"]),
            "kinetic_energy": total["energy"],
            **{f"momentum_{axis}": total[f"momentum_{axis}"] for axis in "xyz"},
            "speed_max": total["speed"],
            "height": total[f"high_{self._up}"],
            "front_x": total["high_x"],
            **{f"centre_of_mass_{axis}": mean(total[f"moment_{axis}"], total["mass"]) for axis in "xyz"},
            **{f"extent_{axis}": float(e) for axis, e in zip("xyz", high - low, strict=True)},
        }

    def _bodies(self) -> dict[str, float]:
        """Centres of mass [m] of bodies that fluid can move."""
        bodies = self._world.solids.bodies
        return bodies.places() if bodies else {}

    def _volumes(self) -> dict[str, float]:
        """Volumes of the fluid [m³], as many as are asked for; on the neighbour list of the present positions."""
        world, wanted = self._world, self._wanted
        if wanted == "none":
            return {}
        found = {"volume": 0.0}
        if world.count:
            self._volume = self._volume or VolumeEstimate(world.capacity)
            self._volume.find_middles(world)
            self._find_walls(self._volume.middle)
            found["volume"] = self._volume.total(world, self._wall)
        if wanted == "mesh":
            from viscoil.surface.volume import mesh_volume

            found["mesh_volume"] = mesh_volume(world.get("position")[world.fluid_order()], world.spacing)
        return found
