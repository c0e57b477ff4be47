"""The registry of solvers: the one place where a method gets its name.

Importing this module is cheap; a solver's own module (and with it the kernel compiler) loads on first use.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class SolverInfo:
    """Where a method lives and what it is."""

    summary: str
    module: str
    name: str  # class inside the module; its parameters are the class named <name>Params


SOLVERS: dict[str, SolverInfo] = {
    "pbf": SolverInfo("Position Based Fluids (Macklin & Müller 2013)", "viscoil.solvers.pbf", "PBF"),
    "dcpbd": SolverInfo(
        "Viscoelastic fluids by conformation constraints (Barreiro et al. 2017)", "viscoil.solvers.dcpbd", "DCPBD"
    ),
    "dcpbd_jacobi": SolverInfo(
        "Conformation constraints with the published Jacobi iterations (Barreiro et al. 2017), for comparison",
        "viscoil.solvers.dcpbd_jacobi",
        "DCPBDJacobi",
    ),
    "pvfs": SolverInfo(
        "Particle-based viscoelastic fluids with springs (Clavet et al. 2005)", "viscoil.solvers.pvfs", "PVFS"
    ),
    "iisph": SolverInfo(
        "Volume-preserving viscoelastic fluids by velocity corrections on IISPH (Takahashi et al. 2014)",
        "viscoil.solvers.iisph",
        "IISPH",
    ),
    "takamatsu_iisph": SolverInfo(
        "Shape matching mixed with IISPH's velocities (Takamatsu & Kanai 2011), for comparison",
        "viscoil.solvers.takamatsu_iisph",
        "TakamatsuIISPH",
    ),
    "clavet_iisph": SolverInfo(
        "Springs that displace particles on IISPH (after Clavet et al. 2005), for comparison",
        "viscoil.solvers.clavet_iisph",
        "ClavetIISPH",
    ),
    "pcisph": SolverInfo(
        "Predictive-corrective SPH (Solenthaler & Pajarola 2009), for comparison", "viscoil.solvers.pcisph", "PCISPH"
    ),
    "peer_pbf": SolverInfo(
        "PBF with the implicit viscosity of Peer et al. 2015, for comparison", "viscoil.solvers.peer_pbf", "PeerPBF"
    ),
    "viscous_pbf": SolverInfo(
        "PBF with plastic links (Takahashi et al. 2014), for comparison", "viscoil.solvers.viscous_pbf", "ViscousPBF"
    ),
    "ucm_sph": SolverInfo(
        "Explicit upper-convected Maxwell stress on SPH, for comparison", "viscoil.solvers.ucm_sph", "UCMSPH"
    ),
}


def solver_class(method: str) -> Any:
    """The solver class registered under ``method``."""
    info = SOLVERS[method]
    return getattr(import_module(info.module), info.name)


def params_class(method: str) -> Any:
    """The pydantic model of the parameters of ``method``."""
    info = SOLVERS[method]
    return getattr(import_module(info.module), info.name + "Params")


def without_stress(method: str) -> str:
    """What to say where a method without a stress tensor is asked for one."""
    able = ", ".join(name for name in SOLVERS if solver_class(name).has_stress)
    return f'method "{method}" has no stress tensor: its forces act between pairs of particles. Expected one of: {able}'
