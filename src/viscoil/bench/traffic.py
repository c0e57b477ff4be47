"""Bytes that a step has to move per particle: which arrays each pass of a solver reads and writes, by name.

A model, not a measurement. Every array of a pass counts once per particle, with the size of what is really allocated; the
neighbour list counts once per pass that walks it, as many entries as there are; what neighbours hold counts nothing beyond
that, because it comes from a cache. It is the least a pass could do, so bytes divided by the copy rate is a floor. A pass that
stands here and not in the kernels, or the other way round, makes the floor wrong: change both together.

Where neighbours are read as records (sph/records.py) names in braces stand for their words, of 8 bytes, two to a record.

Names: ``p`` particles, ``s`` the solver's scratch, ``v`` the projection of DC-PBD, ``f`` the pressure field of IISPH, ``l`` the
neighbour list, ``c`` the cells, ``r`` rows that particles carry.
"""

from dataclasses import dataclass
from typing import Any

from viscoil.bench.memory import element_bytes


@dataclass(frozen=True)
class Pass:
    """One loop over all particles."""

    stage: str
    name: str
    reads: str = ""  # arrays, separated by blanks
    writes: str = ""
    times: str = ""  # how often in a step: a key of the case's counts, "" = once
    lists: int = 0  # times it walks the neighbour list
    entries: str = ""  # arrays with a value per listed neighbour that it reads or writes
    ends: str = ""  # arrays with a value per spring or bond that it reads or writes


SEARCH = (
    Pass("neighbours", "count", "{x}", "c.cell c.slot"),
    Pass("neighbours", "names", "c.cell c.slot p.id", "c.sorted_id"),
    Pass("neighbours", "sort", "c.cell p.id {x}", "c.order {sorted}"),
    Pass("neighbours", "list", "c.order c.cell {sorted} p.inverse_mass", "l.count", lists=1),
)
DENSITY = (  # density_iteration.py; what solids say concerns few
    Pass("solve", "weigh", "p.inverse_mass {volume} {place} s.clear {momentum} l.count", "{noted} {momentum}",
         "iterations", 1),
    Pass("solve", "shift", "p.inverse_mass {volume} {place} s.clear {own} l.count", "{moved} s.clear",
         "iterations", 1),
    Pass("solve", "touch", "s.clear", "", "iterations"),
)  # fmt: skip
PBF = (
    Pass("integrate", "predict", "p.position p.velocity p.inverse_mass", "s.predicted"),
    Pass("integrate", "contact", "s.predicted p.position p.inverse_mass", "s.predicted s.clear"),
    *SEARCH,
    Pass("solve", "walls", "s.clear"),
    *DENSITY,
    Pass("velocity", "velocities", "s.predicted p.position p.inverse_mass p.id", "s.velocity {packed}"),
    Pass("velocity", "xsph", "s.velocity s.predicted {packed} {packed} p.inverse_mass p.volume l.count",
         "p.velocity p.position", lists=1),
)  # fmt: skip
DCPBD = (
    Pass("integrate", "predict", "p.position p.velocity p.inverse_mass", "v.free v.u v.held s.predicted s.clear"),
    *SEARCH,
    Pass("project", "corrections of gradients", "p.inverse_mass p.volume s.predicted l.count", "s.inverse", lists=1),
    Pass("project", "set up", "p.inverse_mass p.cluster p.material p.conformation s.inverse", "v.viscosity v.stress"),
    Pass("project", "remember", "p.inverse_mass p.volume s.predicted v.stress v.free l.count", "v.free", lists=1),
    Pass("project", "hold", "p.inverse_mass s.clear {moves}", "{both}", "rounds"),
    Pass("project", "bulk of u", "p.inverse_mass p.material p.volume v.viscosity {moving} l.count", "v.bulk {half}",
         "rounds", 1),
    Pass("project", "residuals", "p.inverse_mass p.volume v.free v.u {rubbing} {moving} v.normal v.held l.count",
         "v.residual v.search v.direction v.direction_image", "rounds", 1),
    Pass("project", "search", "{again}", "{one}", "rounds"),
    Pass("project", "bulk", "p.inverse_mass p.material p.volume v.viscosity {searching} l.count", "v.bulk {half}",
         "velocity_iterations", 1),
    Pass("project", "images", "p.inverse_mass p.volume {rubbing} {searching} l.count", "v.image",
         "velocity_iterations", 1),
    Pass("project", "advance",
         "p.inverse_mass {search} v.direction v.image v.direction_image v.residual v.u v.held",
         "v.u v.direction v.direction_image v.residual {search}", "velocity_iterations"),
    Pass("project", "settle", "p.inverse_mass p.cluster v.u v.residual v.normal v.held v.free p.position s.predicted s.clear",
         "v.free s.clear s.predicted {packed}"),
    Pass("project", "walls", "s.clear"),
    *DENSITY,
    Pass("velocity", "velocities", "p.inverse_mass p.position s.predicted v.free v.u", "v.u"),
    Pass("velocity", "conformation", "p.inverse_mass p.material v.u s.predicted s.inverse p.conformation l.count",
         "p.conformation", lists=1),
    Pass("velocity", "pair up", "{paired}", "{one}"),
    Pass("velocity", "spread", "p.inverse_mass p.material v.u s.predicted {one} l.count", "p.velocity p.position", lists=1),
)  # fmt: skip
PVFS_AT_ONCE = (
    Pass("integrate", "predict", "p.position p.velocity p.inverse_mass p.id", "s.before s.velocity s.shift s.x s.rank s.where"),
    *SEARCH,
    Pass("viscosity", "damped", "p.inverse_mass p.position s.velocity l.count", "s.load s.pressure", lists=1),
    Pass("viscosity", "aim", "s.pressure p.inverse_mass p.position", "s.velocity s.x"),
    Pass("springs", "loads", "p.inverse_mass r.number", "s.load", ends="r.rest"),
    Pass("springs", "flow and pull", "p.inverse_mass s.x s.load r.number l.count", "r.number s.displacement", lists=1,
         ends="r.partner r.rest r.rest"),
    Pass("springs", "displace", "s.displacement s.x s.shift", "s.x s.shift"),
    Pass("relaxation", "pressures", "p.inverse_mass s.x l.count", "s.pressure", lists=1),
    Pass("relaxation", "displacements", "p.inverse_mass s.x s.pressure l.count", "s.displacement", lists=1),
    Pass("relaxation", "displace", "s.displacement s.x s.shift", "s.x s.shift"),
    Pass("contact", "collide", "s.x s.before p.inverse_mass", "s.touched s.x"),
    Pass("contact", "finish", "s.x s.velocity s.touched s.before s.shift p.position p.inverse_mass p.id",
         "p.velocity p.position"),
)  # fmt: skip
PVFS_IN_SWEEPS = (
    *[each for each in PVFS_AT_ONCE if each.stage in ("integrate", "neighbours", "contact")],
    Pass("viscosity", "sweep", "c.order p.position p.id s.velocity l.count", "s.velocity", lists=1),
    Pass("viscosity", "aim", "p.inverse_mass p.position s.velocity", "s.x"),
    Pass("springs", "flow", "s.x r.number l.count", "r.number s.load", lists=1, ends="r.partner r.rest r.rest r.partner"),
    Pass("springs", "sweep", "c.order s.x s.shift r.number", "s.x s.shift", ends="r.partner r.rest"),
    Pass("relaxation", "sweep", "c.order s.x s.shift l.count", "s.x s.shift", lists=1),
)
IISPH = (
    Pass("integrate", "advect", "p.velocity p.inverse_mass", "s.velocity"),
    *SEARCH,
    Pass("density", "walls", "p.inverse_mass p.position",
         "f.wall f.toward f.flux f.wall_velocity f.grip f.acceleration"),
    Pass("density", "weigh", "p.inverse_mass p.volume p.position f.wall f.toward f.acceleration s.velocity l.count",
         "s.velocity f.density f.gradient f.diagonal", lists=1, entries="{slopes}"),
    Pass("correction", "look after bonds", "p.position r.number r.strength l.count", "r.number", lists=1, ends="r.partner"),
    Pass("correction", "pull", "p.position r.number r.strength s.velocity", "s.velocity", ends="r.partner r.rest"),
    Pass("smoothing", "xsph", "p.inverse_mass p.volume p.position s.velocity f.density f.wall f.grip l.count", "s.smoothed",
         lists=1),
    Pass("pressure", "sources", "p.inverse_mass p.volume p.position s.smoothed f.gradient f.density f.flux r.pressure l.count",
         "f.source f.pressure", lists=1, entries="{slopes}"),
    Pass("pressure", "accelerations", "p.inverse_mass {own} f.pressure f.gradient l.count", "f.acceleration",
         "iterations", 1, "{slopes}"),
    Pass("pressure", "relax", "p.inverse_mass {own} f.acceleration f.gradient f.source f.diagonal f.pressure f.change l.count",
         "f.pressure f.change", "iterations", 1, "{slopes}"),
    Pass("pressure", "last accelerations", "p.inverse_mass {own} f.pressure f.gradient l.count", "f.acceleration",
         lists=1, entries="{slopes}"),
    Pass("finish", "commit", "p.inverse_mass p.position p.id s.smoothed f.acceleration f.wall f.pressure f.density",
         "p.velocity p.position r.pressure"),
)  # fmt: skip

GOALS = Pass("correction", "goals", "p.position r.number r.strength r.rotation s.velocity", "s.velocity r.rotation",
             ends="r.partner r.rest")  # fmt: skip


def passes_of(sim: Any) -> tuple[tuple[Pass, ...], dict[str, str]]:
    """(the passes of a step of this simulation, what its names in braces stand for)."""
    method = sim.scene.method
    if method in ("pbf", "dcpbd"):
        # With momentum the sum of all multipliers is kept; what the last iteration changed it by is kept anyway.
        hurried = getattr(sim.solver, "hurried", sim.scene.solver.acceleration == "momentum")
        known = {"x": "s.predicted", "momentum": "r.pressure" if hurried else "", **_sorted(sim)}
        return (PBF, known | _places(sim)) if method == "pbf" else (DCPBD, known | _places(sim) | _moves(sim))
    if method == "pvfs":
        return (PVFS_AT_ONCE if sim.solver.form == "jacobi" else PVFS_IN_SWEEPS), {"x": "s.x", **_sorted(sim)}
    if method == "iisph":
        kept = sim.solver.field.slope_x.shape == sim.world.neighbors.list.index.shape
        passes = tuple(each for each in IISPH if sim.solver.held or each.stage != "correction")
        if sim.scene.solver.correction == "shape_matching":
            passes += (GOALS,)
        if kept:  # a CPU keeps V ∇W of all pairs and need not fetch places again
            return passes, {"x": "p.position", "own": "", "slopes": "f.slope_x f.slope_y f.slope_z", **_sorted(sim)}
        return passes, {"x": "p.position", "own": "p.volume p.position", "slopes": "", **_sorted(sim)}
    return (), {}


def _sorted(sim: Any) -> dict[str, str]:
    recorded = sim.world.neighbors.recorded
    return {"sorted": "c.sorted.words c.sorted.words" if recorded else "c.sorted_x c.sorted_y c.sorted_z"}


def _places(sim: Any) -> dict[str, str]:
    """What density iterations read and write of a particle."""
    if not sim.world.packs_places(len(sim.world.clusters)):
        found = {"volume": "p.volume", "place": "s.predicted", "own": "s.multiplier", "noted": "s.multiplier"}
        return {**found, "moved": "s.predicted", "packed": ""}
    word = "s.records.words"
    found = {"volume": "", "place": f"{word} {word}", "own": "", "noted": word}
    always = sim.world.solids.coupled or getattr(sim.scene.solver, "tolerance", 0.0) > 0  # not by the last iteration alone
    return {**found, "moved": f"{word} {word}" + " s.predicted" * always, "packed": f"{word} {word}"}


def _moves(sim: Any) -> dict[str, str]:
    """What the velocity projection reads and writes of a particle."""
    if not sim.world.packed or sim.world.solids.coupled:
        empty = dict.fromkeys(("moves", "both", "half", "again", "one", "paired"), "")
        found = {"moving": "v.u s.predicted", "searching": "v.search s.predicted", "search": "v.search"}
        return {"rubbing": "v.viscosity v.bulk", **found, **empty}
    one = "s.records.words s.records.words"
    return {
        "moves": "s.predicted v.u v.viscosity", "both": f"{one} {one}", "half": "s.records.words",
        "again": "v.search v.viscosity", "one": one, "moving": f"{one} {one}", "searching": f"{one} {one}", "rubbing": "",
        "search": "s.records.words", "paired": "s.predicted v.u",
    }  # fmt: skip


def array_named(sim: Any, name: str) -> Any:
    """The device array that a name of the model stands for."""
    where, what, *inside = name.split(".")
    world, solver = sim.world, sim.solver
    if where == "r":
        return world.carried[what].array
    owner = {
        "p": world.particles, "s": solver.scratch, "l": world.neighbors.list, "c": world.neighbors.cells,
        "v": getattr(solver, "projection", None), "f": getattr(solver, "field", None),
    }[where]  # fmt: skip
    array = getattr(owner, what)
    return getattr(array, inside[0]) if inside else array


def bytes_of(sim: Any, each: Pass, names: dict[str, str], neighbours: float, ends: float) -> float:
    """Bytes one particle needs in one run of a pass."""

    def size(text: str, per_end: bool = False) -> float:
        rows = sim.world.carried
        total = 0.0
        for name in text.format(**names).split():
            one = element_bytes(array_named(sim, name))
            if name.startswith("r."):  # a row has several places, and a place may have several numbers
                one *= rows[name[2:]].width / (rows["partner"].width if per_end else 1)
            total += one
        return total

    listed = element_bytes(sim.world.neighbors.list.index)
    own, entry = size(each.reads) + size(each.writes), each.lists * listed + size(each.entries)
    return own + neighbours * entry + (ends * size(each.ends, True) if each.ends else 0.0)


def account(sim: Any, counts: dict[str, int], neighbours: float, ends: float = 0.0) -> dict[str, Any]:
    """Bytes per particle: of a step by stage, and of one iteration by the key that counts it; and list passes of each.

    ``counts``: how often what is repeated runs in a step; ``ends``: springs or bonds that a particle's row holds.
    """
    passes, names = passes_of(sim)
    stages: dict[str, float] = {}
    each_time: dict[str, float] = {}
    walks: dict[str, int] = {}
    for each in passes:
        one = bytes_of(sim, each, names, neighbours, ends)
        stages[each.stage] = stages.get(each.stage, 0.0) + one * counts.get(each.times, 1)
        if each.times:
            each_time[each.times] = each_time.get(each.times, 0.0) + one
            walks[each.times] = walks.get(each.times, 0) + each.lists
    return {"stages": stages, "step": sum(stages.values()), "iteration": each_time, "walks": walks}


